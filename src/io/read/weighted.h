/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_READ_WEIGHTED_H
#define ESDM_IO_READ_WEIGHTED_H

/** @file Weighted sums and means of a box along some of its axes. */

#include "esdm/statistics.h"
#include "model/box.h"

/** esdm_reduce_weighted() of a box inside of the dataset. */
esdm_status esdm__io_reduce_weighted(esdm_dataset *dataset, const esdm__box *box, const bool *over,
                                     esdm_reduction what, const bool *weighted,
                                     const double *weights, double *ret_values, double *ret_weights,
                                     esdm_error *err);
/** Bytes of a part of a reduction that is read by a thread: not by the number of threads, as sums
 *  depend on where parts end. */
esdm_status esdm__reduction_part_bytes(esdm_dataset *dataset, uint64_t *ret_bytes, esdm_error *err);

#endif
