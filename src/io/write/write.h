/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_WRITE_WRITE_H
#define ESDM_IO_WRITE_WRITE_H

/** @file Writing the elements of a selection. */

#include "io/container/dataset_io.h"

/** esdm_write() after its argument checks. */
esdm_status esdm__io_write(esdm_dataset *dataset, const esdm_dataspace *space,
                           esdm_type memory_type, const void *buffer, uint64_t *ret_out_of_range,
                           esdm_error *err);

/**
 * Writes a box as fragments: cuts it, encodes and appends in the pool, enters them as pending.
 * Caller holds the write lock.
 *
 * @param strided NULL; or a strided selection, then `box` is a box of its indices, and the
 * fragments are strided. @param form of the memory (io/encode/elements.h). @param stride of the
 * memory in elements.
 */
esdm_status esdm__write_fragments(esdm_dataset *dataset, esdm__dataset_io *io, const esdm__box *box,
                                  const esdm_dataspace *strided, esdm_type form, const void *buffer,
                                  const int64_t *stride, uint64_t *ret_out_of_range,
                                  esdm_error *err);

#endif
