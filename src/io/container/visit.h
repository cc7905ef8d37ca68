/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_CONTAINER_VISIT_H
#define ESDM_IO_CONTAINER_VISIT_H

/** @file The committed fragments of a dataset, one after the other. */

#include "io/container/dataset_io.h"

/** Visits the committed fragments in the handle's snapshot. */
esdm_status esdm__io_visit_fragments(esdm_dataset *dataset, esdm__fragment_fn visit, void *user,
                                     esdm_error *err);

#endif
