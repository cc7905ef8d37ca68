/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef FIELD_FIT_H
#define FIELD_FIT_H

/** @file Robust least squares for the weights of a prediction, in two rounds over a sample. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels.h"

#define FIELD__UNKNOWNS   (FIELD__TAPS_MAX + 1)
#define FIELD__WEIGHT_MAX ((8 << FIELD__WEIGHT_BITS) - 1)

typedef struct field__fit {
    uint32_t unknowns;
    uint32_t rounds;
    double matrix[FIELD__UNKNOWNS_ROOM][FIELD__UNKNOWNS_ROOM]; /* lower half */
    double right[FIELD__UNKNOWNS_ROOM];
    double solution[FIELD__UNKNOWNS];
    size_t samples;
    size_t waiting;
    double v[FIELD__FIT_WAITING][FIELD__UNKNOWNS_ROOM]; /* zeros behind the unknowns */
    double across[FIELD__UNKNOWNS][FIELD__FIT_WAITING]; /* the same, by unknown */
    double target[FIELD__FIT_WAITING];
} field__fit;

/** Begins a round. */
void field__fit_start(field__fit *fit);
/** Adds a sample: `target` is to be the weighted sum of v. In units of what an error may be. */
void field__fit_add(field__fit *fit, const double v[FIELD__UNKNOWNS], double target);
/** Ends a round; false when there are too few samples or no stable solution. */
bool field__fit_solve(field__fit *fit);
/** A weight of the solution with FIELD__WEIGHT_BITS of fraction; 0 in place of absurd ones. */
int32_t field__fit_weight(const field__fit *fit, uint32_t i);

#endif
