/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Results of a reduction as a container, with coordinates and attributes as CF has them. */

#ifndef ESDM_REDUCE_OUTPUT_H
#define ESDM_REDUCE_OUTPUT_H

#include "esdm/statistics.h"

typedef struct reduce_output {
    const char *name; /**< of the container that is made; replaced if `replace` */
    bool replace;
    esdm_reduction what;
    const char *operation; /**< its name, for `history` */
    const char *weights;   /**< as --weights names them; NULL: none */
    esdm_dataset *source;
    const bool *over; /**< one for each axis: whether it was reduced */
} reduce_output;

/**
 * Commits a container with one variable, named as the source's, and with the coordinates, their
 * bounds and the grid mapping that fit its axes. Where a value is NaN the fill value is stored.
 * @param values one for each element along the axes that stay, in C order; changed.
 */
esdm_status reduce_store(esdm_session *session, const reduce_output *output, double *values,
                         uint64_t count, esdm_error *err);

#endif
