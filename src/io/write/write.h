/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_WRITE_WRITE_H
#define ESDM_IO_WRITE_WRITE_H

/** @file Writing the elements of a selection. */

#include "io/container/transfer.h"

/** esdm_write() after its argument checks. */
esdm_status esdm__io_write(esdm_dataset *dataset, const esdm_dataspace *space,
                           esdm_type memory_type, const void *buffer, uint64_t *ret_out_of_range,
                           esdm_error *err);

/**
 * The record after the last one, of a program that puts many small ones: nothing but a copy.
 * @return false: nothing was done, and the write goes the way of all others.
 */
bool esdm__io_append(esdm_dataset *dataset, uint32_t rank, const uint64_t *offset,
                     const uint64_t *size, esdm_type memory_type, const void *buffer);

/**
 * Writes a box as fragments: cuts it, encodes and appends in the pool, enters them as pending.
 * Caller holds the write lock.
 *
 * @param t its memory holds the box. @param strided false: `box` is one of the dataset, and the
 * transfer's selection does not count; true: it is a box of indices of the selection, and the
 * fragments are strided.
 */
esdm_status esdm__write_fragments(const esdm__transfer *t, const esdm__box *box, bool strided,
                                  esdm_error *err);

#endif
