/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "base/statistics.h"

#include <string.h>

#include "base/checksum.h"

void
esdm__missing_add(esdm__missing *missing, esdm__number value)
{
    bool is_float = missing->class >= ESDM__CLASS_FLOAT;
    if (is_float && value.f != value.f)
        return;
    for (uint32_t i = 0; i < missing->count; i++) {
        if (is_float ? missing->values[i].f == value.f : missing->values[i].u == value.u)
            return;
    }
    if (missing->count == ESDM__MISSING_MOST)
        missing->class = ESDM__CLASS_NONE;
    else
        missing->values[missing->count++] = value;
}

uint32_t
esdm__missing_rule(const esdm__missing *missing)
{
    esdm__number sorted[ESDM__MISSING_MOST + 1];
    if (missing->count == 0)
        return 0;
    memset(sorted, 0, sizeof sorted);
    for (uint32_t i = 0; i < missing->count; i++) {
        uint32_t at = i;
        for (; at > 0 && sorted[at - 1].u > missing->values[i].u; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = missing->values[i];
    }
    sorted[missing->count].u = missing->class;
    uint32_t rule = (uint32_t) esdm__checksum(sorted, (missing->count + 1) * sizeof *sorted);
    return rule != 0 ? rule : 1;
}

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
