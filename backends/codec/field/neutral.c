/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Keeping the sum though nobody asked for it, as far as that costs next to nothing: steps
 * are a little finer than the bounds allow, and numbers that are nearly half-way between two of
 * them go to the other one while the errors do not cancel each other by themselves. */

#include <math.h>
#include <string.h>

#include "base/scratch.h"
#include "encode.h"

#define CHUNK 512
#define AIM   0.9e-6 /* of the sum of sizes */

/* Numbers that may move, those that are too large and those that are too small apart. */
typedef struct movable {
    size_t *places; /* owned; room for `most` of each */
    size_t most, count[2];
    double share;   /* of its bound: who is off by more may move */
    double sums[2]; /* of errors, and of sizes */
} movable;

/* By so much steps are finer. Errors that add up by chance do so with the root of their count, and
 * of fewer numbers too few are nearly half-way. */
static const struct {
    size_t most; /* elements */
    double slack;
} slacks[] = {{(size_t) 1 << 16, 0x1p-6}, {(size_t) 1 << 17, 0x1p-7}, {SIZE_MAX, 0x1p-8}};
#define SLACKS (sizeof slacks / sizeof slacks[0])

static double
slack_of(size_t elements)
{
    size_t i = 0;
    while (elements > slacks[i].most)
        i++;
    return slacks[i].slack;
}

/* Of the bound: who is off by more may have another neighbour. Pieces have whole numbers of steps,
 * which leaves some room in most of them. */
static double
share_of(const field__map *map, size_t elements)
{
    double share = 1 - 3 * slack_of(elements);
    for (int i = 0; i < 16 && map->kind == FIELD__MAP_PIECES; i++) {
        double half = 1.0 / (32 * map->pieces->steps[i]);
        share = fmin(share, 2 * half / (map->pieces->relative * (1 + i / 16.0)) - 1);
    }
    return fmax(share, 0.25);
}

/* Without branches: with relative bounds every other chunk has some. */
static void
note_far(const field__job *job, const double *values, const double *again, size_t first,
         size_t count, movable *m)
{
    const esdm_codec_accuracy *a = job->accuracy;
    const uint8_t *mask = job->mask + first;
    const bool one_bound = !(a->relative < INFINITY);
    const double relative = one_bound ? 0 : m->share * a->relative;
    const double finest = m->share * (one_bound ? a->absolute : a->finest);
    const double absolute = m->share * a->absolute;
    if (one_bound && field__kernels_best()->count_far(values, again, mask, count, absolute) == 0)
        return;
    size_t *large = m->places;
    size_t *small = m->places + m->most;
    for (size_t i = 0; i < count; i++) {
        double error = again[i] - values[i];
        double bound = relative * fabs(values[i]);
        bound = bound > finest ? bound : finest;
        bound = bound < absolute ? bound : absolute;
        bool far = mask[i] == 0;
        large[m->count[0]] = first + i;
        small[m->count[1]] = first + i;
        m->count[0] += far & (error > bound) & (m->count[0] + 1 < m->most);
        m->count[1] += far & (error < -bound) & (m->count[1] + 1 < m->most);
    }
}

/* Whether errors can be had from single precision and codes at once. */
static bool
is_simple(const field__job *job, const field__map *map, const field__volume *volume)
{
    return job->kind == FIELD__FLOAT32 && ((uintptr_t) job->raw & 3) == 0 && !volume->wide &&
           map->kind == FIELD__MAP_GRID && map->base == 0 && map->divisor == 1 &&
           !(job->accuracy->relative < INFINITY);
}

/* As note_far(), of what is_simple(): in the same order. */
static void
note_far_singles(const field__job *job, const field__map *map, const int32_t *codes, size_t first,
                 size_t count, movable *m)
{
    uint8_t far[CHUNK + 8];
    const float *values = (const float *) job->raw + first;
    memset(far + count, 0, 8);
    if (field__kernels_best()->far_singles(values, codes, job->mask + first, count, map->multiplier,
                                           map->origin, m->share * job->accuracy->absolute,
                                           far) == 0)
        return;
    for (size_t i = 0; i < count; i += 8) {
        uint64_t eight;
        memcpy(&eight, far + i, sizeof eight);
        if (eight == 0)
            continue;
        for (size_t k = i; k < i + 8; k++) {
            size_t which = far[k] == 2;
            if (far[k] != 0 && m->count[which] + 1 < m->most)
                m->places[which * m->most + m->count[which]++] = first + k;
        }
    }
}

static void
look_at_singles(const field__job *job, const field__map *map, const field__volume *volume,
                size_t row, bool wants_places, movable *m)
{
    size_t nx = (size_t) volume->axes.nx;
    for (size_t x = 0; x < nx; x += CHUNK) {
        size_t first = row * nx + x;
        size_t count = nx - x < CHUNK ? nx - x : CHUNK;
        const int32_t *codes = field__row32(volume, row) + x;
        if (wants_places)
            note_far_singles(job, map, codes, first, count, m);
        else
            field__kernels_best()->sum_single_errors((const float *) job->raw + first, codes,
                                                     job->mask + first, count, map->multiplier,
                                                     map->origin, m->sums);
    }
}

/* What a part of a row becomes. */
static void
decode(const field__map *map, const field__volume *volume, size_t row, size_t x, size_t count,
       double *again)
{
    int64_t codes[CHUNK];
    uint32_t patterns[CHUNK];
    if (map->kind == FIELD__MAP_PIECES) { /* these are never wide */
        field__kernels_best()->piece_values(map->pieces, field__row32(volume, row) + x, count,
                                            (uint32_t) map->origin, patterns);
        field__load(FIELD__FLOAT32, patterns, 0, count, again);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        int64_t code =
            volume->wide ? field__row64(volume, row)[x + i] : field__row32(volume, row)[x + i];
        codes[i] = (int64_t) ((uint64_t) code + (uint64_t) map->origin);
    }
    field__map_values(map, codes, count, again);
}

static void
look_at_row(const field__job *job, const field__map *map, const field__volume *volume, size_t row,
            bool wants_places, movable *m)
{
    size_t nx = (size_t) volume->axes.nx;
    if (is_simple(job, map, volume)) {
        look_at_singles(job, map, volume, row, wants_places, m);
        return;
    }
    for (size_t x = 0; x < nx; x += CHUNK) {
        double values[CHUNK], again[CHUNK];
        size_t first = row * nx + x;
        size_t count = nx - x < CHUNK ? nx - x : CHUNK;
        field__load(job->kind, job->raw, first, count, values);
        decode(map, volume, row, x, count, again);
        if (wants_places)
            note_far(job, values, again, first, count, m);
        else
            field__kernels_best()->sum_errors(values, again, job->mask + first, count, m->sums);
    }
}

/* Spread over the block: each of so many rounds takes every so manieth. */
static void
move_some(const field__job *job, const field__map *map, const field__volume *volume,
          const movable *m, double bound)
{
    double sum = m->sums[0];
    const size_t which = sum < 0;
    const size_t *places = m->places + which * m->most;
    const size_t rounds = 16;
    for (size_t first = 0; first < rounds; first++) {
        for (size_t i = first; i < m->count[which] && fabs(sum) > bound; i += rounds)
            (void) field__sum_move(job, map, volume, places[i], which ? 1 : -1, &sum);
    }
}

static bool
is_stepped(const field__map *map)
{
    return (map->kind == FIELD__MAP_GRID && map->divisor == 1) || map->kind == FIELD__MAP_LOG ||
           map->kind == FIELD__MAP_PIECES;
}

/* Whether this effort has the time, and nothing else decides about the sum. */
static bool
is_wanted(const field__job *job)
{
    const esdm_codec_accuracy *a = job->accuracy;
    return a != NULL && !(a->sum_bound < INFINITY) && job->effort != ESDM_EFFORT_FAST &&
           field__is_float(job->kind);
}

void
field__neutral_move(const field__job *job, const field__map *map, const field__volume *volume)
{
    size_t n = job->block->elements;
    movable m = {.most = n / 16 + 2, .share = share_of(map, n)};
    if (!is_wanted(job) || !is_stepped(map) || job->masked == n ||
        !(job->tighter < 1 || map->kind == FIELD__MAP_PIECES))
        return;
    for (size_t row = 0; row < volume->rows; row++)
        look_at_row(job, map, volume, row, false, &m);
    if (!(fabs(m.sums[0]) > AIM * m.sums[1]))
        return;
    m.places = esdm__scratch_new(2 * m.most * sizeof *m.places);
    if (m.places == NULL) /* the sum is nothing that was promised */
        return;
    for (size_t row = 0; row < volume->rows; row++)
        look_at_row(job, map, volume, row, true, &m);
    move_some(job, map, volume, &m, AIM * m.sums[1]);
    esdm__scratch_free(m.places);
}

double
field__neutral_tightness(field__job *job)
{
    if (!is_wanted(job))
        return 1;
    field__map usual, finer;
    const field__probes *p = field__probes_of(job);
    job->tighter = 1;
    field__map_choose(job, &usual);
    /* What was rounded before keeps its bits; pieces have room as they are. */
    bool room = usual.kind != FIELD__MAP_PIECES && !field__grid_fits(p, &usual);
    field__map_clear(&usual);
    if (!room)
        return 1;
    const double slack = slack_of(job->block->elements);
    for (size_t i = 0; i < SLACKS; i++) { /* blocks may have been larger or smaller then */
        job->tighter = 1 - slacks[i].slack;
        field__map_choose(job, &finer);
        bool before =
            is_stepped(&finer) && finer.kind != FIELD__MAP_PIECES && field__grid_fits(p, &finer);
        field__map_clear(&finer);
        job->tighter = 1;
        if (before)
            return 1 - slacks[i].slack;
    }
    job->tighter = 1 - slack;
    field__map_choose(job, &finer);
    bool suits = is_stepped(&finer) && finer.kind != FIELD__MAP_PIECES && is_stepped(&usual) &&
                 usual.kind == finer.kind;
    /* Grids of the numbers' own are not made finer. */
    if (usual.kind == FIELD__MAP_GRID)
        suits = suits && finer.multiplier < usual.multiplier &&
                finer.multiplier > usual.multiplier * (1 - 2 * slack);
    field__map_clear(&finer);
    job->tighter = 1;
    return suits ? 1 - slack : 1;
}
