/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_READ_REDUCE_H
#define ESDM_IO_READ_REDUCE_H

/** @file Sums, means and the like of a box along some of its axes. */

#include "esdm/statistics.h"
#include "model/box.h"

/** esdm_reduce() of a box inside of the dataset. */
esdm_status esdm__io_reduce(esdm_dataset *dataset, const esdm__box *box, const bool *over,
                            esdm_reduction what, double *ret_values, uint64_t *ret_valid,
                            esdm_error *err);

#endif
