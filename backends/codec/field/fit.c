/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "fit.h"

#include <math.h>
#include <string.h>

void
field__fit_start(field__fit *f)
{
    f->samples = 0;
    f->waiting = 0;
    memset(f->matrix, 0, sizeof f->matrix);
    memset(f->right, 0, sizeof f->right);
    memset(f->v, 0, sizeof f->v);
    memset(f->across, 0, sizeof f->across);
    memset(f->target, 0, sizeof f->target);
}

/* The samples that wait, one after the other. */
static void
add_waiting(field__fit *f)
{
    const field__kernels *kernels = field__kernels_best();
    double weights[FIELD__FIT_WAITING];
    if (f->waiting == 0)
        return;
    kernels->weigh_samples(f->across[0], f->solution, f->unknowns, f->target, f->rounds == 0,
                           weights);
    kernels->add_samples(f->v[0], weights, f->target, f->waiting, f->unknowns, f->matrix[0],
                         f->right);
    f->waiting = 0;
}

void
field__fit_add(field__fit *f, const double v[FIELD__UNKNOWNS], double target)
{
    double *mine = f->v[f->waiting];
    for (uint32_t i = 0; i < f->unknowns; i++)
        f->across[i][f->waiting] = mine[i] = v[i];
    f->target[f->waiting] = target;
    f->samples++;
    if (++f->waiting == FIELD__FIT_WAITING)
        add_waiting(f);
}

/* Cholesky decomposition; false when there is no stable solution. */
static bool
solve(field__fit *f)
{
    uint32_t n = f->unknowns;
    for (uint32_t i = 0; i < n; i++)
        f->matrix[i][i] += f->matrix[i][i] * 1e-9 + 1e-6;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j <= i; j++) {
            double sum = f->matrix[i][j];
            for (uint32_t k = 0; k < j; k++)
                sum -= f->matrix[i][k] * f->matrix[j][k];
            if (i == j && !(sum > 0))
                return false;
            f->matrix[i][j] = i == j ? sqrt(sum) : sum / f->matrix[j][j];
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        double sum = f->right[i];
        for (uint32_t k = 0; k < i; k++)
            sum -= f->matrix[i][k] * f->solution[k];
        f->solution[i] = sum / f->matrix[i][i];
    }
    for (uint32_t i = n; i-- > 0;) {
        double sum = f->solution[i];
        for (uint32_t k = i + 1; k < n; k++)
            sum -= f->matrix[k][i] * f->solution[k];
        f->solution[i] = sum / f->matrix[i][i];
    }
    return true;
}

bool
field__fit_solve(field__fit *f)
{
    if (f->samples < 8 * (size_t) f->unknowns)
        return false;
    add_waiting(f);
    f->rounds++;
    return solve(f);
}

int32_t
field__fit_weight(const field__fit *f, uint32_t i)
{
    double scaled = f->solution[i] * (1 << FIELD__WEIGHT_BITS);
    bool sane = scaled > -FIELD__WEIGHT_MAX && scaled < FIELD__WEIGHT_MAX;
    return sane ? (int32_t) floor(scaled + 0.5) : 0;
}
