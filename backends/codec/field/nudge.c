/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Keeping the sum of what levels left, which round after their prediction, so that no number
 * has two neighbours to choose from: numbers at the beginning of the block stand for half a fine
 * step more, or less. Fine codes are at most half a step off what they stand for, and levels leave
 * at most (width - 1) / 2 steps: together that is half a step less than the bound, so that all of
 * them may be nudged, and nothing is stored but how many are. */

#include <math.h>

#include "encode.h"

#define CHUNK 512
#define AIM   0.9e-6 /* of the sum of sizes */
#define KEPT  0.9    /* of a bound of the sum that was asked for */

static void
load_codes(const field__map *map, const field__volume *volume, size_t row, size_t x, size_t count,
           int64_t *codes)
{
    for (size_t i = 0; i < count; i++)
        codes[i] = field__row32(volume, row)[x + i] + map->origin;
}

/* Of errors, and of sizes. */
static void
add_up(const field__job *job, const field__map *map, const field__volume *volume, double sums[2])
{
    size_t nx = (size_t) volume->axes.nx;
    sums[0] = sums[1] = 0;
    for (size_t row = 0; row < volume->rows; row++) {
        for (size_t x = 0; x < nx; x += CHUNK) {
            int64_t codes[CHUNK];
            double values[CHUNK], again[CHUNK];
            size_t first = row * nx + x;
            size_t count = nx - x < CHUNK ? nx - x : CHUNK;
            load_codes(map, volume, row, x, count, codes);
            field__load(job->kind, job->raw, first, count, values);
            field__map_values(map, codes, count, again);
            field__kernels_best()->sum_errors(values, again, job->mask + first, count, sums);
        }
    }
}

/* How many elements at the beginning, nudged by `map`, turn the sum of errors. */
static size_t
count_nudged(const field__job *job, const field__map *map, const field__volume *volume, double sum)
{
    size_t nx = (size_t) volume->axes.nx;
    const bool falls = sum > 0;
    for (size_t row = 0; row < volume->rows; row++) {
        for (size_t x = 0; x < nx; x += CHUNK) {
            int64_t codes[CHUNK];
            double usual[CHUNK], nudged[CHUNK];
            size_t first = row * nx + x;
            size_t count = nx - x < CHUNK ? nx - x : CHUNK;
            load_codes(map, volume, row, x, count, codes);
            field__map_values(map, codes, count, usual);
            field__map_values_at(map, codes, first, count, nudged);
            for (size_t i = 0; i < count; i++) {
                sum += job->mask[first + i] ? 0 : nudged[i] - usual[i];
                if (falls ? sum <= 0 : sum >= 0)
                    return first + i + 1;
            }
        }
    }
    return job->block->elements;
}

void
field__nudge(const field__job *job, field__map *map, const field__volume *volume)
{
    double sums[2];
    map->nudged = 0;
    if ((map->kind == FIELD__MAP_GRID ? map->divisor != 1 : !field__is_log_alone(map)) ||
        volume->wide || !field__half_steps_show(job, map))
        return;
    add_up(job, map, volume, sums);
    double most =
        job->accuracy->sum_bound < INFINITY ? KEPT * job->accuracy->sum_bound : AIM * sums[1];
    if (!(fabs(sums[0]) > most))
        return;
    int64_t elements = (int64_t) job->block->elements;
    map->nudged = sums[0] > 0 ? -elements : elements;
    int64_t nudged = (int64_t) count_nudged(job, map, volume, sums[0]);
    map->nudged = sums[0] > 0 ? -nudged : nudged;
}
