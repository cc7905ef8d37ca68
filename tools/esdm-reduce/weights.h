/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_REDUCE_WEIGHTS_H
#define ESDM_REDUCE_WEIGHTS_H

/** @file Weights of the values of a variable: areas of cells, or another variable. */

#include "esdm/esdm.h"

/** Weights as esdm_reduce_weighted() takes them. */
typedef struct reduce_weights {
    bool axes[ESDM_MAX_RANK];
    double *values; /**< g_free() */
} reduce_weights;

/** Areas of the cells of a grid of latitudes and longitudes, in no certain unit: from the bounds of
 *  latitudes and longitudes where the container has these, else from the middles between
 * neighbours.
 *  @return ESDM_ENOTSUP: the variable has no such grid. Else as esdm_read(). */
esdm_status weights_of_area(const esdm_dataset *dataset, bool great_circles, reduce_weights *ret,
                            esdm_error *err);
/** Values of a variable whose dimensions are among those of the dataset; missing ones are 0.
 *  @param variable NULL: there is none. @param name of it, for messages. */
esdm_status weights_of_variable(const esdm_dataset *dataset, esdm_dataset *variable,
                                const char *name, reduce_weights *ret, esdm_error *err);

#endif
