/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_CONTAINER_MISSING_H
#define ESDM_IO_CONTAINER_MISSING_H

/** @file Which values of a dataset say that nothing is known. */

#include "base/statistics.h"
#include "model/container.h"

/** Of whole numbers with a sign, what readers take them for where the attribute `_Unsigned` says
 * so; else the type itself. */
esdm_type esdm__type_of_readers(const esdm_dataset *dataset);

/**
 * The fill value in force (single bytes have none by default, as programs of NetCDF see it), and
 * the attributes `_FillValue` and `missing_value`. NaN is missing anyhow. The class is
 * ESDM__CLASS_NONE where statistics cannot be made: no numbers, or more values than fit.
 */
void esdm__missing_of(const esdm_dataset *dataset, esdm__missing *ret);
/** The same for a reduction: ESDM_ENOTSUP where the class is ESDM__CLASS_NONE. */
esdm_status esdm__missing_of_reduced(const esdm_dataset *dataset, esdm__missing *ret,
                                     esdm_error *err);

#endif
