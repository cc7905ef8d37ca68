/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The short way to integers: single precision, one absolute bound, nothing that keeps its
 * bits. */

#include <math.h>
#include <string.h>

#include "encode.h"

#define CODE_MOST 0x1p29

/* Whether single precision with an absolute bound needs nothing kept exactly; *ret_most is the
 * largest size. Values that must be exact: none may occur. */
static bool
is_plain(const field__job *job, double *ret_most)
{
    const field__kernels *kernels = field__kernels_best();
    const esdm_codec_accuracy *a = job->accuracy;
    size_t n = job->block->elements;
    if (job->kind != FIELD__FLOAT32 || ((uintptr_t) job->raw & 3) != 0)
        return false;
    if (a == NULL)
        return true;
    if (!(a->absolute < INFINITY) || a->relative < INFINITY || a->exact_below > -INFINITY ||
        a->exact_above < INFINITY || a->sum_bound < INFINITY || a->exact_count > 4)
        return false;
    uint32_t bits = kernels->largest_bits(job->raw, n);
    float most;
    memcpy(&most, &bits, sizeof most);
    *ret_most = most;
    if (!(*ret_most < INFINITY))
        return false;
    for (uint32_t i = 0; i < a->exact_count; i++) {
        uint32_t pattern;
        memcpy(&pattern, (const uint8_t *) a->exact_values + i * sizeof pattern, sizeof pattern);
        float value;
        memcpy(&value, &pattern, sizeof value);
        /* What is larger than all values does not occur, and nothing becomes it. */
        if (!(fabs((double) value) > *ret_most + a->absolute))
            return false;
    }
    return true;
}

/* Whether the values lie on a grid of their own, of which the bound leaves steps: fewer bytes, and
 * none changes more than it must. */
static bool
lies_on_grid(const field__job *job, double most)
{
    field__job surveyed = *job;
    field__map grid;
    surveyed.least = -most;
    surveyed.most = most;
    return field__grid_find(&surveyed, &grid) &&
           grid.multiplier / grid.divisor > job->accuracy->absolute / 256;
}

/* Whether the values lie on other steps that the same statement had: on those they stay. */
static bool
has_other_steps(const field__job *job, double most, const field__map *map)
{
    field__job surveyed = *job;
    field__map former;
    surveyed.least = -most;
    surveyed.most = most;
    return field__find_former_steps(&surveyed, job->accuracy->absolute, &former) &&
           former.multiplier != map->multiplier;
}

esdm_status
field__fast_codes(const field__job *job, field__map *map, field__volume *ret_volume, bool *ret_good,
                  esdm_error *err)
{
    const field__kernels *kernels = field__kernels_best();
    size_t nx = (size_t) job->axes.nx;
    size_t missed = 0;
    double most = 0;
    *ret_good = is_plain(job, &most);
    *map = (field__map){.kind = FIELD__MAP_ORDERED, .type = job->kind};
    if (*ret_good && job->accuracy != NULL) {
        double rounding = field__spacing(job->kind, most) / 2;
        map->kind = FIELD__MAP_GRID;
        map->multiplier = 2 * (job->accuracy->absolute - rounding) * (1 - 0x1p-44);
        map->divisor = 1;
        /* Where rounding may be another one the next time, steps are looked for that are there. */
        *ret_good = field__spacing(job->kind, most - 2 * job->accuracy->absolute) / 2 == rounding &&
                    field__spacing(job->kind, most + 2 * job->accuracy->absolute) / 2 == rounding &&
                    map->multiplier > rounding && most / map->multiplier < CODE_MOST &&
                    !lies_on_grid(job, most) && !has_other_steps(job, most, map) &&
                    !field__zeros_have_edges(job, map->multiplier);
    }
    if (!*ret_good)
        return ESDM_OK;
    esdm_status st = field__volume_init(ret_volume, &job->axes, false, err);
    double bound = job->accuracy != NULL ? job->accuracy->absolute * FIELD__BOUND_KEPT : 0;
    for (size_t r = 0; r < ret_volume->rows && st == ESDM_OK; r++) {
        const uint8_t *from = (const uint8_t *) job->raw + r * nx * sizeof(float);
        int32_t *to = field__row32(ret_volume, r);
        if (job->accuracy == NULL)
            kernels->order_patterns((const uint32_t *) (const void *) from, nx, to);
        else
            missed += kernels->quantise((const float *) (const void *) from, nx,
                                        1 / map->multiplier, map->multiplier, bound, to);
    }
    *ret_good = missed == 0;
    if (st != ESDM_OK || !*ret_good)
        field__volume_clear(ret_volume);
    return st;
}
