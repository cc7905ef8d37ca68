/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "layout/statistics.h"

static bool
is_less(uint8_t class, esdm__number a, esdm__number b)
{
    if (class == ESDM__CLASS_SIGNED)
        return a.i < b.i;
    return class == ESDM__CLASS_UNSIGNED ? a.u < b.u : a.f < b.f;
}

void
esdm__statistics_add(esdm__statistics *total, const esdm__statistics *more)
{
    if (total->class == ESDM__CLASS_NONE) {
        *total = *more;
        return;
    }
    if (total->class != more->class) {
        total->class = ESDM__CLASS_NONE;
        return;
    }
    if (more->valid == 0)
        return;
    if (total->valid == 0 || is_less(total->class, more->min, total->min))
        total->min = more->min;
    if (total->valid == 0 || is_less(total->class, total->max, more->max))
        total->max = more->max;
    total->sum += more->sum;
    total->valid += more->valid;
}
