/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Positive matrices by their factor (Cholesky). */
#include "learn/solve.h"

#include <math.h>

void
learn_factor(double *a, guint n, guint stride)
{
    for (guint i = 0; i < n; i++) {
        for (guint k = 0; k <= i; k++) {
            double sum = a[i * stride + k];
            for (guint m = 0; m < k; m++)
                sum -= a[i * stride + m] * a[k * stride + m];
            a[i * stride + k] = i == k ? sqrt(fmax(sum, 1e-300)) : sum / a[k * stride + k];
        }
    }
}

void
learn_solve_lower(const double *l, guint n, guint stride, double *b)
{
    for (guint i = 0; i < n; i++) {
        for (guint k = 0; k < i; k++)
            b[i] -= l[i * stride + k] * b[k];
        b[i] /= l[i * stride + i];
    }
}

void
learn_solve_upper(const double *l, guint n, guint stride, double *b)
{
    for (guint i = n; i-- > 0;) {
        for (guint k = i + 1; k < n; k++)
            b[i] -= l[k * stride + i] * b[k];
        b[i] /= l[i * stride + i];
    }
}
