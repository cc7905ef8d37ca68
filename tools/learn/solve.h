/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_LEARN_SOLVE_H
#define ESDM_TOOLS_LEARN_SOLVE_H

/** @file Systems of linear equations with a symmetric positive matrix. Rows lie `stride` apart. */

#include <glib.h>

/** The lower factor L, with L Lᵀ = a, takes the place of a's lower half. */
void learn_factor(double *a, guint n, guint stride);
/** b becomes the y of L y = b. */
void learn_solve_lower(const double *l, guint n, guint stride, double *b);
/** b becomes the x of Lᵀ x = b. */
void learn_solve_upper(const double *l, guint n, guint stride, double *b);

#endif
