/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_API_TRANSFER_H
#define ESDM_API_TRANSFER_H

/** @file Argument checks that independent and collective transfers share. */

#include "io/io.h"

/** NULL arguments, types that do not convert. */
esdm_status esdm__check_transfer(const esdm_dataset *dataset, const esdm_dataspace *space,
                                 esdm_type memory_type, const void *buffer, esdm_error *err);
/** ESDM_EACCES when the container was opened for reading. */
esdm_status esdm__check_writable(const esdm_dataset *dataset, esdm_error *err);

#endif
