/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_CONTAINER_TRANSFER_H
#define ESDM_IO_CONTAINER_TRANSFER_H

/** @file What a read or a write of a selection hands on: whose elements, which, from or to where.
 */

#include "io/container/dataset_io.h"

/**
 * Elements of a dataset on their way from or to a program's memory. Lives as long as the call, in
 * one thread; a copy with another memory or selection is a part of it, with the same counter.
 * Borrows everything.
 */
typedef struct esdm__transfer {
    esdm_dataset *dataset;
    esdm__dataset_io *io;           /* its state */
    const esdm__elements *elements; /* the one in `io` */
    const esdm_dataspace *space;    /* the selection; its own memory strides do not count */
    esdm__memory memory;            /* where the selection's elements are or go; a write reads it */
    uint64_t *out_of_range;         /* incremented: values that did not fit; NULL: not counted */
} esdm__transfer;

static inline void
esdm__transfer_count(const esdm__transfer *t, uint64_t out_of_range)
{
    if (t->out_of_range != NULL)
        *t->out_of_range += out_of_range;
}

#endif
