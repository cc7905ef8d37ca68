/* SPDX-License-Identifier: LGPL-3.0-or-later */

/*
 * Keeping the sum: where the errors do not cancel each other by themselves, codes are moved to
 * their neighbours where the bound allows that, each by one step against the sum of errors. What is
 * then left is less than a step; keeping a few points exactly takes their errors out of the sum.
 */

#include <math.h>
#include <string.h>

#include "encode.h"

#define CHUNK  512
#define STRIDE UINT64_C(11400714819323198485) /* spreads what is moved over the block */
#define EXACT  256                            /* points that may be kept exactly for the sum */
#define MARGIN 0.98                           /* of the bound, for other ways of summing */

/* Neumaier's sum. */
typedef struct total {
    double sum, rest;
} total;

static void
add(total *t, double value)
{
    double sum = t->sum + value;
    t->rest += fabs(t->sum) >= fabs(value) ? (t->sum - sum) + value : (value - sum) + t->sum;
    t->sum = sum;
}

static int64_t
code_at(const field__map *map, const field__volume *v, size_t i)
{
    size_t nx = (size_t) v->axes.nx;
    int64_t code = v->wide ? field__row64(v, i / nx)[i % nx] : field__row32(v, i / nx)[i % nx];
    return (int64_t) ((uint64_t) code + (uint64_t) map->origin);
}

static void
move_code(const field__volume *v, size_t i, int step)
{
    size_t nx = (size_t) v->axes.nx;
    if (v->wide)
        field__row64(v, i / nx)[i % nx] += step;
    else
        field__row32(v, i / nx)[i % nx] += step;
}

/* Whether a code may move without leaving the range of its type. */
static bool
can_move(const field__volume *v, size_t i, int step)
{
    size_t nx = (size_t) v->axes.nx;
    if (v->wide)
        return true;
    int32_t code = field__row32(v, i / nx)[i % nx];
    return step > 0 ? code < INT32_MAX : code > INT32_MIN;
}

double
field__sum_of_errors(const field__job *job, const field__map *map, const field__volume *volume)
{
    total t = {0, 0};
    size_t n = job->block->elements;
    for (size_t first = 0; first < n; first += CHUNK) {
        double values[CHUNK], again[CHUNK];
        int64_t codes[CHUNK];
        size_t count = n - first < CHUNK ? n - first : CHUNK;
        field__load(job->kind, job->raw, first, count, values);
        for (size_t i = 0; i < count; i++)
            codes[i] = code_at(map, volume, first + i);
        field__map_values_at(map, codes, first, count, again);
        for (size_t i = 0; i < count; i++) {
            if (!job->mask[first + i])
                add(&t, again[i] - values[i]);
        }
    }
    return t.sum + t.rest;
}

bool
field__sum_move(const field__job *job, const field__map *map, const field__volume *volume, size_t i,
                int step, double *sum)
{
    double value, both[2];
    if (job->mask[i] || !can_move(volume, i, step))
        return false;
    field__load(job->kind, job->raw, i, 1, &value);
    int64_t code = code_at(map, volume, i);
    field__map_values(map, (const int64_t[]){code, code + step}, 2, both);
    double change = both[1] - both[0];
    if (!field__keeps_bound(job, value, both[1]) || !(fabs(*sum + change) < fabs(*sum)))
        return false;
    move_code(volume, i, step);
    *sum += change;
    return true;
}

/* Moves codes against `sum`; returns what it has become. */
static double
move_codes(const field__job *job, const field__map *map, const field__volume *volume, double sum)
{
    size_t n = job->block->elements;
    int step = sum > 0 ? -1 : 1;
    uint64_t place = 0;
    for (size_t k = 0; k < n && fabs(sum) > MARGIN * job->accuracy->sum_bound; k++) {
        place += STRIDE;
        size_t i = (size_t) (((__uint128_t) place * n) >> 64);
        (void) field__sum_move(job, map, volume, i, step, &sum);
    }
    return sum;
}

/* Masks points whose errors leave less; returns what is left. */
static double
keep_points(field__job *job, const field__map *map, const field__volume *volume, double sum)
{
    size_t n = job->block->elements;
    size_t kept = 0;
    for (size_t i = 0; i < n && kept < EXACT; i++) {
        double value, again;
        if (fabs(sum) <= MARGIN * job->accuracy->sum_bound)
            break;
        if (job->mask[i])
            continue;
        field__load(job->kind, job->raw, i, 1, &value);
        field__map_values(map, (const int64_t[]){code_at(map, volume, i)}, 1, &again);
        /* At least a quarter each time, so that few are needed. */
        if (fabs(sum - (again - value)) > 0.75 * fabs(sum))
            continue;
        sum -= again - value;
        job->mask[i] = 1;
        job->masked++;
        kept++;
    }
    return sum;
}

void
field__sum_keep_again(field__job *job, const field__map *map, const field__volume *volume)
{
    size_t n = job->block->elements;
    size_t others = 0;
    for (int pass = 0; pass < 2 && others <= EXACT; pass++) {
        for (size_t i = 0; i < n && others <= EXACT; i++) {
            double value, again;
            if (job->mask[i])
                continue;
            field__load(job->kind, job->raw, i, 1, &value);
            field__map_values(map, (const int64_t[]){code_at(map, volume, i)}, 1, &again);
            others += pass == 0 && again != value;
            if (pass == 1 && again != value) {
                job->mask[i] = 1;
                job->masked++;
            }
        }
    }
}

bool
field__sum_keep(field__job *job, const field__map *map, const field__volume *volume)
{
    const esdm_codec_accuracy *a = job->accuracy;
    if (a == NULL || !(a->sum_bound < INFINITY) || map->kind == FIELD__MAP_ORDERED ||
        map->kind == FIELD__MAP_PALETTE)
        return true;
    double sum = field__sum_of_errors(job, map, volume);
    if (fabs(sum) <= MARGIN * a->sum_bound)
        return true;
    sum = move_codes(job, map, volume, sum);
    (void) keep_points(job, map, volume, sum);
    return fabs(field__sum_of_errors(job, map, volume)) <= MARGIN * a->sum_bound;
}
