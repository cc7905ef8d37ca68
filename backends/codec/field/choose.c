/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file How numbers become integers: the grid they lie on, or steps of the bound, linear,
 * logarithmic or by pieces. */

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "encode.h"
#include "exponent.h"

#define CHUNK          512
#define MARGIN         (1 - 0x1p-44)
#define CODES_MOST     0x1p50
#define MISSES         100  /* one in so many points may miss the map */
#define PIECES_MOST    0.02 /* a larger relative bound: pieces of few steps waste bits */
#define MISSES_REFINED 8    /* of what levels left: as many as were kept exactly then */

/* ---- choice ------------------------------------------------------------------------------- */

static void
set_ordered(const field__job *job, field__map *map)
{
    *map = (field__map){.kind = FIELD__MAP_ORDERED, .type = job->kind};
}

/* How many steps of a grid become one: an odd number, of which half are within the bound as points
 * are checked against it. A tie of the two would leave many points without a code. */
static double
steps_within(double reach, double absolute, double distance)
{
    double half = floor(fmax(reach, 0) / distance * (1 + 0x1p-40));
    if (half > 0 && half * distance > absolute * FIELD__BOUND_KEPT)
        half--;
    return 2 * half + 1;
}

/* Whether rounding to bits leaves numbers of that grid as they are under that bound: then nothing
 * tells them from those that were rounded so, and they must not change again. */
static bool
looks_rounded(const field__map *grid, double absolute)
{
    int exponent;
    return grid->divisor == 1 && frexp(grid->multiplier, &exponent) == 0.5 &&
           grid->multiplier > absolute && grid->multiplier <= 2 * absolute;
}

/* Steps of that grid which numbers were rounded to, as field__find_former_steps(): a bound that
 * follows from values may have left another count of them. */
static bool
find_former_grid(const field__job *job, const field__map *grid, double absolute, field__map *map)
{
    double distance = grid->multiplier / grid->divisor;
    double off = grid->divisor > 1 ? field__spacing(job->kind, field__largest(job)) : 0;
    const field__probes *p = field__probes_of(job);
    for (size_t i = 0; i < FIELD__FORMER / FIELD__ROUNDINGS; i++) {
        double bound = absolute * field__former_parts[i];
        double factor = steps_within(bound - off, bound, distance);
        *map = *grid;
        map->multiplier *= factor;
        if (factor > 1 && field__grid_fits(p, map))
            return true;
    }
    return false;
}

static void
choose_linear(const field__job *job, double absolute, field__map *map)
{
    double most = field__largest(job);
    double rounding = field__is_float(job->kind) ? field__spacing(job->kind, most) / 2 : 0;
    double step =
        field__is_float(job->kind) ? field__step_of(absolute, rounding) : 2 * floor(absolute) + 1;
    field__map former;
    /* Before grids: a few numbers lie on some grid by chance. */
    if (field__is_float(job->kind) && field__find_former_steps(job, absolute, &former)) {
        *map = former;
        return;
    }
    field__map grid;
    if (field__is_float(job->kind) && field__grid_find(job, &grid)) {
        double distance = grid.multiplier / grid.divisor;
        /* Decimals are rounded to the type themselves: a bound that is just so many of them is
         * less. */
        double reach = absolute - (grid.divisor > 1 ? field__spacing(job->kind, most) : 0);
        double factor = steps_within(reach, absolute, distance);
        if (find_former_grid(job, &grid, absolute, map))
            return;
        if (factor * distance > 0.9 * step || looks_rounded(&grid, absolute)) {
            *map = grid;
            map->multiplier *= factor;
            return;
        }
    }
    if (!(step > 2 * rounding) || !((job->most - job->least) / step < CODES_MOST) ||
        !(most / step < CODES_MOST)) {
        set_ordered(job, map);
        return;
    }
    *map =
        (field__map){.kind = FIELD__MAP_GRID, .type = job->kind, .multiplier = step, .divisor = 1};
    if (field__is_float(job->kind) && field__takes_exact(job, map))
        map->base = field__base_beside_exact(job, map);
}

/* Whether values can have steps of a relative bound alone, as fast codes want them. */
static bool
suits_pieces(const field__job *job, const esdm_codec_accuracy *a)
{
    return job->effort != ESDM_EFFORT_ARCHIVE && job->kind == FIELD__FLOAT32 &&
           ((uintptr_t) job->raw & 3) == 0 && !(a->absolute < INFINITY) && !(a->finest > 0) &&
           job->smallest >= FLT_MIN && a->exact_count <= 8 &&
           (job->effort == ESDM_EFFORT_FAST || a->relative <= PIECES_MOST);
}

/* From some size on the absolute bound is the finer one. Logarithmic steps end where the first of
 * those begins: of numbers between the two none would be within its bound, and many that are kept
 * exactly hide that all others were rounded before. */
static void
set_cap(const field__job *job, const esdm_codec_accuracy *a, double absolute, double rounding,
        field__map *map)
{
    bool is_float = field__is_float(job->kind);
    map->cap = absolute / a->relative;
    map->widest = is_float ? absolute * MARGIN - rounding : floor(absolute) + 0.5;
    map->cap = is_float ? map->cap : ceil(map->cap);
    if (is_float && map->finest == 0 && map->cap > job->smallest) {
        double middle = map->cap / map->centre * (1 + 0x1p-40);
        map->edge = middle * field__edge_below(job->smallest / middle, map->growth);
    }
}

/* As field__find_former_steps(). */
static void
find_former_cap(const field__job *job, const esdm_codec_accuracy *a, field__map *map)
{
    field__map former = *map;
    double most = field__largest(job);
    const field__probes *p = field__probes_of(job);
    for (size_t i = 0; i < FIELD__FORMER; i++) {
        double absolute = a->absolute * field__former_parts[i / FIELD__ROUNDINGS];
        double rounding = field__former_rounding(job, most, a->absolute, i % FIELD__ROUNDINGS);
        set_cap(job, a, absolute, rounding, &former);
        if (former.cap > former.edge && former.widest > 0 && field__grid_fits(p, &former)) {
            *map = former;
            return;
        }
    }
}

static void
choose_log(const field__job *job, const esdm_codec_accuracy *a, field__map *map)
{
    field__map grid;
    if (field__is_float(job->kind) && !(a->finest > 0) && field__grid_find(job, &grid) &&
        grid.multiplier / grid.divisor > 1.8 * a->relative * field__largest(job)) {
        *map = grid; /* coarser than all steps of the bound */
        return;
    }
    if (suits_pieces(job, a) && field__pieces_make(map, a->relative, job->smallest)) {
        if (!field__meets_exact(job, map))
            return;
        field__map_clear(map);
    }
    bool is_float = field__is_float(job->kind);
    double finest = a->finest;
    double relative = a->relative;
    if (is_float) {
        relative -= job->kind == FIELD__FLOAT32 ? FLT_EPSILON : DBL_EPSILON;
    } else if (finest < 0.5) {
        finest = 0.5; /* steps of 1 */
    }
    double edge = finest > 0 ? finest / relative : job->smallest; /* below, steps are equal */
    if (!is_float) {
        edge = 4 * floor(finest / relative + 1);
        relative *= 0.875; /* the rest is for rounding to integers */
    }
    if (!(relative > 1e-12) || !(edge > 0x1p-1000) || !(job->smallest < INFINITY)) {
        set_ordered(job, map);
        return;
    }
    relative = relative < 0.9 ? relative : 0.9;
    *map = (field__map){.kind = FIELD__MAP_LOG,
                        .type = job->kind,
                        .edge = edge,
                        .finest = finest * MARGIN,
                        .cap = INFINITY};
    map->growth = field__log2((1 + relative) / (1 - relative)) * MARGIN;
    map->centre = sqrt((1 + relative) * (1 - relative));
    if (is_float && finest > 0) {
        map->finest = (finest - field__spacing(job->kind, edge) / 2) * MARGIN;
        if (!(map->finest > finest / 2)) { /* as fine as the type: the relative bound is no finer */
            map->finest = 0;
        }
    }
    if (is_float && map->finest == 0)
        map->edge = field__edge_below(job->smallest, map->growth);
    if (!(a->absolute < INFINITY) || !(a->absolute < relative * field__largest(job)))
        return;
    double rounding = is_float ? field__spacing(job->kind, field__largest(job)) / 2 : 0;
    set_cap(job, a, a->absolute, rounding, map);
    if (!(map->cap > map->edge)) /* the absolute bound is the finer one everywhere */
        choose_linear(job, a->absolute, map);
    else if (!(map->widest > 0))
        set_ordered(job, map);
    else if (is_float)
        find_former_cap(job, a, map);
}

double
field__linear_bound(const field__job *job)
{
    double tightest = field__bound(job->accuracy, 0);
    return (tightest > 0 ? tightest : job->accuracy->absolute) * fmin(job->tighter, 1);
}

void
field__map_choose(const field__job *job, field__map *map)
{
    const esdm_codec_accuracy *a = job->accuracy;
    bool relative = a != NULL && a->relative > 0 && a->relative < INFINITY;
    bool absolute = a != NULL && a->absolute > 0 && a->absolute < INFINITY;
    double tightest = a == NULL ? 0 : field__bound(a, 0);
    esdm_codec_accuracy tightened;
    set_ordered(job, map);
    if (a != NULL && job->tighter < 1) {
        tightened = *a;
        tightened.absolute *= job->tighter;
        tightened.relative *= job->tighter;
        tightened.finest *= job->tighter;
        tightest *= job->tighter;
        a = &tightened;
    }
    if (relative && !(absolute && a->absolute <= a->finest) &&
        a->relative * field__largest(job) > a->finest)
        choose_log(job, a, map);
    else if (absolute || tightest > 0)
        choose_linear(job, tightest > 0 ? tightest : a->absolute, map);
    else
        set_ordered(job, map);
    if (map->kind == FIELD__MAP_ORDERED && field__is_float(job->kind)) {
        field__map grid;
        if (field__grid_find(job, &grid))
            *map = grid;
    }
}

/* ---- codes -------------------------------------------------------------------------------- */

/* Whether patterns of single precision are ordered as integers. */
static bool
orders_singles(const field__job *job, const field__map *map)
{
    return map->kind == FIELD__MAP_ORDERED && job->kind == FIELD__FLOAT32 &&
           ((uintptr_t) job->raw & 3) == 0;
}

/* Extremes of the codes of points that are not masked. */
static void
code_range(const field__job *job, const field__map *map, int64_t *ret_least, int64_t *ret_most)
{
    size_t n = job->block->elements;
    int64_t least = INT64_MAX;
    int64_t most = INT64_MIN;
    if (map->kind != FIELD__MAP_ORDERED) {
        double ends[2] = {job->least, job->most};
        int64_t codes[2];
        field__map_codes(map, ends, 2, codes);
        least = codes[0];
        most = codes[1];
    } else if (orders_singles(job, map)) {
        int32_t ends[2] = {INT32_MAX, INT32_MIN};
        field__kernels_best()->order_range(job->raw, job->mask, n, ends);
        least = ends[0];
        most = ends[1];
    } else {
        for (size_t first = 0; first < n; first += CHUNK) {
            int64_t codes[CHUNK];
            size_t count = n - first < CHUNK ? n - first : CHUNK;
            field__load_ordered(job->kind, job->raw, first, count, codes);
            for (size_t i = 0; i < count; i++) {
                bool masked = job->mask[first + i];
                least = !masked && codes[i] < least ? codes[i] : least;
                most = !masked && codes[i] > most ? codes[i] : most;
            }
        }
    }
    *ret_least = least;
    *ret_most = most;
}

/* Whether a value that was not exact would become one that is. */
static bool
is_exact_value(const field__job *job, double value)
{
    for (uint32_t i = 0; i < job->accuracy->exact_count; i++) {
        double exact;
        field__load(job->kind, job->accuracy->exact_values, i, 1, &exact);
        if (exact == value)
            return true;
    }
    return false;
}

/* Whole numbers are off by whole numbers, mostly by the bound itself where that is one. */
static double
kept(const field__job *job, double bound)
{
    bool rounds = field__is_float(job->kind) || job->accuracy->relative < INFINITY;
    return rounds ? bound * FIELD__BOUND_KEPT : bound;
}

bool
field__keeps_bound(const field__job *job, double value, double again)
{
    bool exact = job->accuracy == NULL;
    double bound = exact ? 0 : kept(job, field__bound(job->accuracy, value));
    bool good = fabs(again - value) <= bound;
    if (!(bound > 0)) /* else it covers the sign of a zero */
        good = good && signbit(again) == signbit(value);
    return good && (exact || !is_exact_value(job, again));
}

/* Whether one bound holds for all points, and none can become a value that is exact. */
static bool
has_one_bound(const field__job *job, const field__map *map)
{
    const esdm_codec_accuracy *a = job->accuracy;
    if (a == NULL || !(a->absolute > 0) || a->relative < INFINITY || map->kind != FIELD__MAP_GRID ||
        a->exact_count > 8)
        return false;
    for (uint32_t i = 0; i < a->exact_count; i++) {
        double exact;
        field__load(job->kind, a->exact_values, i, 1, &exact);
        if (exact >= job->least - a->absolute && exact <= job->most + a->absolute)
            return false;
    }
    return true;
}

/* Whether a chunk needs no closer look: no point is off by more than the bound of all of them. */
static bool
all_near(const field__job *job, const field__map *map, const double *values, const double *again,
         size_t first, size_t count)
{
    return has_one_bound(job, map) &&
           field__kernels_best()->count_far(values, again, job->mask + first, count,
                                            kept(job, job->accuracy->absolute)) == 0;
}

/* Masks the points of a chunk that their codes miss; returns how many. */
static size_t
mask_misses(field__job *job, const field__map *map, const double *values, const int64_t *codes,
            size_t first, size_t count)
{
    double again[CHUNK];
    size_t missed = 0;
    field__map_values(map, codes, count, again);
    if (all_near(job, map, values, again, first, count))
        return 0;
    for (size_t i = 0; i < count; i++) {
        if (job->mask[first + i])
            continue;
        bool good = codes[i] != INT64_MIN && field__keeps_bound(job, values[i], again[i]);
        job->mask[first + i] = !good;
        missed += !good;
    }
    return missed;
}

static void
put_codes(const field__volume *volume, const int64_t *codes, size_t first, size_t count,
          uint64_t origin)
{
    size_t nx = (size_t) volume->axes.nx;
    size_t row = first / nx;
    size_t x = first % nx;
    for (size_t i = 0; i < count; i++) {
        uint64_t code = (uint64_t) codes[i] - origin;
        if (volume->wide)
            field__row64(volume, row)[x] = (int64_t) code;
        else
            field__row32(volume, row)[x] = (int32_t) (uint32_t) code;
        if (++x == nx) {
            x = 0;
            row++;
        }
    }
}

/* The codes are within the bound by the way they are made (pieces.c). Returns how many are masked.
 */
static size_t
map_pieces(const field__job *job, const field__map *map, const field__volume *volume)
{
    size_t nx = (size_t) volume->axes.nx;
    size_t masked = 0;
    for (size_t r = 0; r < volume->rows; r++)
        masked += field__kernels_best()->piece_codes(
            map->pieces, (const uint32_t *) job->raw + r * nx, nx, (uint32_t) map->origin,
            job->mask + r * nx, field__row32(volume, r));
    return masked;
}

/* Codes of single precision on a grid without base and divisor; false when some point misses its
 * bound, or that cannot be told so. */
static bool
map_singles(const field__job *job, const field__map *map, const field__volume *volume,
            size_t *ret_missed)
{
    size_t nx = (size_t) volume->axes.nx;
    size_t missed = 0;
    if (map->kind == FIELD__MAP_PIECES) {
        *ret_missed = map_pieces(job, map, volume);
        return true;
    }
    if (orders_singles(job, map) && !volume->wide) {
        for (size_t r = 0; r < volume->rows; r++)
            field__kernels_best()->order_codes((const uint32_t *) job->raw + r * nx, nx,
                                               (uint32_t) map->origin, field__row32(volume, r));
        return true;
    }
    if (job->kind != FIELD__FLOAT32 || ((uintptr_t) job->raw & 3) != 0 || volume->wide ||
        !has_one_bound(job, map) || map->base != 0 || map->divisor != 1)
        return false;
    double bound = job->accuracy->absolute * FIELD__BOUND_KEPT;
    for (size_t r = 0; r < volume->rows; r++)
        missed += field__kernels_best()->quantise_masked(
            (const float *) job->raw + r * nx, job->mask + r * nx, nx, 1 / map->multiplier,
            map->multiplier, bound, (uint32_t) map->origin, field__row32(volume, r));
    return missed == 0;
}

esdm_status
field__map_apply(field__job *job, field__map *map, field__volume *ret_volume, bool *ret_good,
                 esdm_error *err)
{
    size_t n = job->block->elements;
    size_t missed = 0;
    int64_t least, most;
    code_range(job, map, &least, &most);
    *ret_good = map->kind == FIELD__MAP_ORDERED || (least != INT64_MIN && most != INT64_MIN);
    if (!*ret_good)
        return ESDM_OK;
    uint64_t range = (uint64_t) most - (uint64_t) least;
    map->origin = (int64_t) ((uint64_t) least + range / 2);
    esdm_status st = field__volume_init(ret_volume, &job->axes, range >= UINT32_MAX, err);
    bool done = st == ESDM_OK && map_singles(job, map, ret_volume, &missed);
    for (size_t first = 0; first < n && st == ESDM_OK && !done; first += CHUNK) {
        int64_t codes[CHUNK];
        size_t count = n - first < CHUNK ? n - first : CHUNK;
        if (map->kind == FIELD__MAP_ORDERED) {
            field__load_ordered(job->kind, job->raw, first, count, codes);
        } else {
            double values[CHUNK];
            field__load(job->kind, job->raw, first, count, values);
            field__map_codes(map, values, count, codes);
            missed += mask_misses(job, map, values, codes, first, count);
        }
        put_codes(ret_volume, codes, first, count, (uint64_t) map->origin);
    }
    job->masked += missed;
    *ret_good = missed <= n / (job->refined ? MISSES_REFINED : MISSES);
    if (st != ESDM_OK || !*ret_good)
        field__volume_clear(ret_volume);
    return st;
}

esdm_status
field__palette_apply(const field__job *job, field__map *map, const uint32_t *ranks,
                     field__volume *ret_volume, esdm_error *err)
{
    size_t n = job->block->elements;
    map->origin = (int64_t) map->palette_count / 2;
    esdm_status st = field__volume_init(ret_volume, &job->axes, false, err);
    for (size_t first = 0; first < n && st == ESDM_OK; first += CHUNK) {
        int64_t codes[CHUNK];
        size_t count = n - first < CHUNK ? n - first : CHUNK;
        for (size_t i = 0; i < count; i++)
            codes[i] = ranks[first + i];
        put_codes(ret_volume, codes, first, count, (uint64_t) map->origin);
    }
    return st;
}

/* ---- refined steps ------------------------------------------------------------------------ */

static bool
refine_log(const field__job *job, field__map *ret_map, uint32_t *ret_width)
{
    return field__fine_log(job, ret_map, ret_width) &&
           field__log2(field__largest(job) / job->smallest) / ret_map->growth <
               FIELD__LEVEL_CODE_MAX;
}

static bool
refine_grid(const field__job *job, const field__map *map, field__map *ret_map, uint32_t *ret_width)
{
    if (map->kind != FIELD__MAP_GRID || map->divisor != 1 || map->base != 0)
        return false;
    double absolute = field__linear_bound(job);
    double rounding = field__spacing(job->kind, field__largest(job)) / 2;
    int parts = field__fineness(job, absolute);
    if (parts == 0)
        return false;
    *ret_map = *map;
    ret_map->multiplier = field__step_of(absolute, rounding) / parts;
    *ret_width = (uint32_t) parts - 1;
    double range = (job->most - job->least) / ret_map->multiplier;
    return range < FIELD__LEVEL_CODE_MAX && field__largest(job) / ret_map->multiplier < CODES_MOST;
}

bool
field__map_refine(const field__job *job, const field__map *map, field__map *ret_map,
                  uint32_t *ret_width)
{
    if (job->accuracy == NULL || !field__is_float(job->kind) ||
        !(field__is_log_alone(map) ? refine_log(job, ret_map, ret_width)
                                   : refine_grid(job, map, ret_map, ret_width)))
        return false;
    int64_t least, most;
    code_range(job, ret_map, &least, &most);
    ret_map->origin = least + (most - least) / 2;
    return true;
}

esdm_status
field__map_refined_codes(const field__job *job, const field__map *map, field__volume *ret_volume,
                         esdm_error *err)
{
    size_t n = job->block->elements;
    esdm_status st = field__volume_init(ret_volume, &job->axes, false, err);
    for (size_t first = 0; first < n && st == ESDM_OK; first += CHUNK) {
        int64_t codes[CHUNK];
        double values[CHUNK];
        size_t count = n - first < CHUNK ? n - first : CHUNK;
        field__load(job->kind, job->raw, first, count, values);
        field__map_codes(map, values, count, codes);
        put_codes(ret_volume, codes, first, count, (uint64_t) map->origin);
    }
    return st;
}

bool
field__map_holds(const field__job *job, const field__map *map, const field__volume *volume)
{
    size_t nx = (size_t) volume->axes.nx;
    for (size_t row = 0; row < volume->rows; row++) {
        for (size_t x = 0; x < nx; x += CHUNK) {
            int64_t codes[CHUNK];
            double values[CHUNK], again[CHUNK];
            size_t count = nx - x < CHUNK ? nx - x : CHUNK;
            for (size_t i = 0; i < count; i++)
                codes[i] = field__row32(volume, row)[x + i] + map->origin;
            field__load(job->kind, job->raw, row * nx + x, count, values);
            field__map_values_at(map, codes, row * nx + x, count, again);
            if (all_near(job, map, values, again, row * nx + x, count))
                continue;
            for (size_t i = 0; i < count; i++) {
                if (!job->mask[row * nx + x + i] && !field__keeps_bound(job, values[i], again[i]))
                    return false;
            }
        }
    }
    double bound = job->accuracy->sum_bound;
    return !(bound < INFINITY) || fabs(field__sum_of_errors(job, map, volume)) < 0.98 * bound;
}
