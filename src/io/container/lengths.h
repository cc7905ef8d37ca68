/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_CONTAINER_LENGTHS_H
#define ESDM_IO_CONTAINER_LENGTHS_H

/** @file Lengths of the unlimited dimensions: published apart from the structure. */

#include "io/container/dataset_io.h"

/** Current lengths, sorted by dimension. @param ret_lengths owned, free(); NULL when none. */
esdm_status esdm__lengths_collect(const esdm_container *container, esdm_meta_length **ret_lengths,
                                  size_t *ret_count, esdm_error *err);
/** Whether they differ from the ones published last. */
bool esdm__lengths_changed(const esdm_container *container);
/** Remembers `lengths` (takes ownership) as published. */
void esdm__lengths_set_published(esdm_container *container, esdm_meta_length *lengths,
                                 size_t count);
/** Raises dimensions to loaded lengths. */
void esdm__lengths_apply(esdm_container *container, const esdm_meta_length *lengths, size_t count);

#endif
