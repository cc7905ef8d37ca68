/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_CONTAINER_ROUNDED_H
#define ESDM_IO_CONTAINER_ROUNDED_H

/** @file What numbers were rounded by since the last commit, in the units of then. The caller holds
 *  the write_lock of the dataset. */

#include "io/container/dataset_io.h"

/** Before numbers are stored by what the dataset itself states. */
esdm_status esdm__rounded_note(const esdm_dataset *dataset, esdm__dataset_io *io, esdm_error *err);
/** Before another accuracy is stated: the units of the one of now are not known after that. */
esdm_status esdm__rounded_restate(const esdm_dataset *dataset, esdm__dataset_io *io,
                                  esdm_error *err);
/** Before a commit. ESDM_EINVAL: units were changed since, and what is stated in those of now does
 *  not allow the same of the numbers: they may have lost what they were. */
esdm_status esdm__rounded_check(const esdm_dataset *dataset, const esdm__dataset_io *io,
                                esdm_error *err);
/** After it. */
void esdm__rounded_clear(esdm__dataset_io *io);

#endif
