/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Linear models by normal equations of standardised terms, which a small ridge keeps solvable. */
#include <math.h>
#include <string.h>

#include "learn/learn.h"
#include "learn/solve.h"

#define TERMS_MOST (1 + LEARN_FEATURES + LEARN_FEATURES * (LEARN_FEATURES + 1) / 2)
#define RIDGE      1e-6
/* Deviations below that, as a share of the mean, are rounding. */
#define SAME 1e-12
/* What is beyond that times the range of what was seen is not predicted. */
#define BEYOND 2.0

static double
logarithm(double x)
{
    return x >= 0 ? log2(1 + x) : -log2(1 - x);
}

static guint
terms_of(const learn_linear *l, const double *x, double *ret)
{
    guint n = 0;
    ret[n++] = 1;
    for (guint f = 0; f < l->features; f++)
        ret[n++] = l->squares ? logarithm(x[f]) : x[f];
    for (guint f = 0; l->squares && f < l->features; f++)
        for (guint g = 0; g <= f; g++)
            ret[n++] = ret[1 + f] * ret[1 + g];
    return n;
}

/* Means and deviations of the terms; terms that do not vary get a deviation of 1. */
static void
scale_of(const learn_linear *l, const learn_rows *r, double *mean, double *deviation)
{
    double t[TERMS_MOST];
    memset(mean, 0, l->terms * sizeof *mean);
    memset(deviation, 0, l->terms * sizeof *deviation);
    for (gsize i = 0; i < r->count; i++) {
        (void) terms_of(l, r->table->x + r->list[i] * l->features, t);
        for (guint k = 0; k < l->terms; k++)
            mean[k] += t[k] / (double) r->count;
    }
    for (gsize i = 0; i < r->count; i++) {
        (void) terms_of(l, r->table->x + r->list[i] * l->features, t);
        for (guint k = 0; k < l->terms; k++)
            deviation[k] += pow(t[k] - mean[k], 2) / (double) r->count;
    }
    for (guint k = 0; k < l->terms; k++)
        deviation[k] = sqrt(deviation[k]) > SAME * fabs(mean[k]) ? sqrt(deviation[k]) : 1;
    mean[0] = 0;
    deviation[0] = 1;
}

learn_linear *
learn_linear_fit(const learn_rows *r, bool squares)
{
    double t[TERMS_MOST];
    double mean[TERMS_MOST];
    double deviation[TERMS_MOST];
    learn_linear *l = g_new0(learn_linear, 1);
    l->features = r->table->features;
    l->squares = squares;
    l->low = INFINITY;
    l->high = -INFINITY;
    l->terms = 1 + l->features + (squares ? l->features * (l->features + 1) / 2 : 0);
    l->coefficients = g_new0(double, l->terms);
    for (gsize i = 0; i < r->count; i++) {
        double y = r->table->y[r->list[i]];
        l->low = fmin(l->low, y);
        l->high = fmax(l->high, y);
    }
    if (squares && !(l->low > 0)) {
        learn_linear_free(l);
        return NULL;
    }
    scale_of(l, r, mean, deviation);
    g_autofree double *a = g_new0(double, (gsize) l->terms * l->terms);
    for (gsize i = 0; i < r->count; i++) {
        double y = r->table->y[r->list[i]];
        y = squares ? log(y) : y;
        (void) terms_of(l, r->table->x + r->list[i] * l->features, t);
        for (guint k = 0; k < l->terms; k++)
            t[k] = (t[k] - mean[k]) / deviation[k];
        for (guint k = 0; k < l->terms; k++) {
            for (guint m = 0; m <= k; m++)
                a[k * l->terms + m] += t[k] * t[m];
            l->coefficients[k] += t[k] * y;
        }
    }
    for (guint k = 0; k < l->terms; k++)
        a[k * l->terms + k] += RIDGE * (double) r->count;
    learn_factor(a, l->terms, l->terms);
    learn_solve_lower(a, l->terms, l->terms, l->coefficients);
    learn_solve_upper(a, l->terms, l->terms, l->coefficients);
    for (guint k = 1; k < l->terms; k++) {
        l->coefficients[k] /= deviation[k];
        l->coefficients[0] -= l->coefficients[k] * mean[k];
    }
    return l;
}

double
learn_linear_value(const learn_linear *l, const double *x)
{
    double t[TERMS_MOST];
    double sum = 0;
    (void) terms_of(l, x, t);
    for (guint k = 0; k < l->terms; k++)
        sum += l->coefficients[k] * t[k];
    if (l->squares)
        return CLAMP(exp(sum), l->low / BEYOND, l->high * BEYOND);
    double range = (l->high - l->low) * (BEYOND - 1);
    return CLAMP(sum, l->low - range, l->high + range);
}

void
learn_linear_free(learn_linear *l)
{
    if (l != NULL)
        g_free(l->coefficients);
    g_free(l);
}
