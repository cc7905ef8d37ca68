/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_READ_HISTOGRAM_H
#define ESDM_IO_READ_HISTOGRAM_H

/** @file How many values of a box lie in each of several intervals. */

#include "esdm/statistics.h"
#include "model/box.h"

/** esdm_histogram() of a box inside of the dataset, with edges that increase. */
esdm_status esdm__io_histogram(esdm_dataset *dataset, const esdm__box *box, const double *edges,
                               size_t nedges, uint64_t *ret_counts, esdm_histogram_rest *ret_rest,
                               esdm_error *err);

#endif
