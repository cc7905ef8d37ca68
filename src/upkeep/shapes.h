/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_UPKEEP_SHAPES_H
#define ESDM_UPKEEP_SHAPES_H

/** @file Second shapes: made, brought up to date and removed. io/read/second_shape.h says what they
 *  are, and who reads them. */

#include "esdm/shapes.h"
#include "io/io.h"
#include "model/names.h"

/** esdm_shapes_update(), for a handle that reads the newest snapshot. */
esdm_status esdm__upkeep_shapes(esdm_container *container, const esdm_shapes_options *options,
                                esdm_shapes_result *result, esdm_error *err);

/**
 * Removes second shapes whose container is gone, or was replaced.
 * @param dry_run only counts. @param ret_count, ret_bytes what was removed. @param ret_failed is
 *        raised by those that could not be removed.
 */
esdm_status esdm__shapes_sweep(esdm_session *session, bool dry_run, uint64_t *ret_count,
                               uint64_t *ret_bytes, uint64_t *ret_failed, esdm_error *err);
/** A container has lost its name: so does its second shape. Best effort: esdm__shapes_sweep() finds
 *  what is left. @param to its new name; NULL: it was removed. */
void esdm__shapes_follow(esdm_session *session, const char *from, const char *to);

#endif
