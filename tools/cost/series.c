/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Numbers that change over the years. */

#include "cost/cost.h"

#include <math.h>

/* Between two points: the same factor each year, or the same step where a factor makes no sense. */
static double
between(const cost_point *a, const cost_point *b, double year)
{
    double part = (year - a->year) / (b->year - a->year);
    if (a->value > 0 && b->value > 0)
        return a->value * pow(b->value / a->value, part);
    return a->value + part * (b->value - a->value);
}

double
cost_series_at(const cost_series *series, double year, double otherwise)
{
    const GArray *points = series->points;
    if (points == NULL || points->len == 0)
        return otherwise;
    const cost_point *first = &g_array_index(points, cost_point, 0);
    if (series->growth > 0)
        return first->value * pow(series->growth, year - first->year);
    if (year <= first->year)
        return first->value;
    for (guint i = 1; i < points->len; i++) {
        const cost_point *next = &g_array_index(points, cost_point, i);
        if (year <= next->year)
            return between(next - 1, next, year);
    }
    return g_array_index(points, cost_point, points->len - 1).value;
}
