/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Steps on which numbers lie already: grids of their own, and what they were rounded to
 * before. */

#include <float.h>
#include <math.h>

#include "base/divisor.h"
#include "encode.h"
#include "exponent.h"

#define CHUNK       512
#define PROBES_FAST 256
#define MARGIN      (1 - 0x1p-44)
#define CODES_MOST  0x1p50
#define MISSES      200  /* one probe in so many may lie elsewhere */
#define EXACT_MOST  8    /* values that steps can evade */
#define TAKEN       1000 /* one probe in so many may become a value that is exact */
#define MISSES_FINE 10   /* the same of fine steps: some were kept exactly by another map */

/* ---- grids -------------------------------------------------------------------------------- */

double
field__spacing(field__kind kind, double size)
{
    if (!field__is_float(kind))
        return 1;
    int exponent;
    (void) frexp(size, &exponent);
    int bits = kind == FIELD__FLOAT32 ? FLT_MANT_DIG : DBL_MANT_DIG;
    int least = kind == FIELD__FLOAT32 ? FLT_MIN_EXP - FLT_MANT_DIG : DBL_MIN_EXP - DBL_MANT_DIG;
    return ldexp(1, exponent - bits > least ? exponent - bits : least);
}

double
field__largest(const field__job *job)
{
    double a = fabs(job->least);
    double b = fabs(job->most);
    return a > b ? a : b;
}

static size_t
probe_step(const field__job *job)
{
    size_t probes = job->effort == ESDM_EFFORT_FAST ? PROBES_FAST : FIELD__PROBES;
    return job->block->elements / probes + 1;
}

static void
take_probes(const field__job *job, field__probes *p)
{
    size_t n = job->block->elements;
    size_t step = probe_step(job);
    p->count = p->numbers = 0;
    for (size_t i = 0; i < n; i += step) {
        if (job->mask != NULL && job->mask[i])
            continue;
        field__load(job->kind, job->raw, i, 1, &p->values[p->count]);
        p->numbers += p->values[p->count++] != 0;
    }
    /* Of rare numbers the first ones. */
    for (size_t i = 0; i < n && p->numbers == 0 && p->count > 0; i++) {
        field__load(job->kind, job->raw, i, 1, &p->values[0]);
        p->numbers += p->values[0] != 0 && (job->mask == NULL || !job->mask[i]);
    }
}

const field__probes *
field__probes_of(const field__job *job)
{
    field__taken *taken = job->taken;
    if (taken->masked != job->masked) {
        take_probes(job, &taken->probes);
        taken->masked = job->masked;
    }
    return &taken->probes;
}

/* At how many probes the map is not exact; those behind the first `most` are not all counted. */
static size_t
count_misses(const field__probes *p, const field__map *map, size_t most)
{
    size_t missed = 0;
    for (size_t first = 0; first < p->count && missed <= most; first += CHUNK) {
        int64_t codes[CHUNK];
        double again[CHUNK];
        size_t count = p->count - first < CHUNK ? p->count - first : CHUNK;
        const double *values = p->values + first;
        field__map_codes(map, values, count, codes);
        field__map_values(map, codes, count, again);
        for (size_t i = 0; i < count; i++)
            missed += !(again[i] == values[i] && signbit(again[i]) == signbit(values[i]));
    }
    return missed;
}

/* Of the numbers that are not 0, which lies on all steps. */
static bool
fits(const field__probes *p, const field__map *map, size_t misses)
{
    size_t most = p->numbers / misses;
    return p->count > 0 && count_misses(p, map, most) <= most;
}

bool
field__grid_fits(const field__probes *p, const field__map *map)
{
    return fits(p, map, MISSES);
}

bool
field__nearly_fits(const field__probes *p, const field__map *map)
{
    return fits(p, map, MISSES_FINE);
}

/* The coarsest power of two, or one at most `finest`, of which the probes are multiples. */
static double
power_grid(const field__probes *p, double finest)
{
    double grid = INFINITY;
    for (size_t i = 0; i < p->count && grid > finest; i++) {
        double value = p->values[i];
        if (value == 0)
            continue;
        while (grid > fabs(value) || fmod(value, grid) != 0)
            grid = grid == INFINITY ? ldexp(1, ilogb(value)) : grid / 2;
    }
    return grid;
}

bool
field__grid_find(const field__job *job, field__map *map)
{
    double most = field__largest(job);
    double finest = field__spacing(job->kind, most);
    *map = (field__map){.kind = FIELD__MAP_GRID, .type = job->kind, .multiplier = 1, .divisor = 1};
    if (most == 0 || !(most < 0x1p60))
        return false;
    const field__probes *p = field__probes_of(job);
    for (double divisor = 1; divisor <= 1e6 && 1 / divisor > 2 * finest; divisor *= 10) {
        map->divisor = divisor;
        if (field__grid_fits(p, map))
            return true;
    }
    map->divisor = 1;
    map->multiplier = power_grid(p, finest);
    return map->multiplier < INFINITY && map->multiplier > finest && field__grid_fits(p, map);
}

/* ---- steps beside what must be exact ------------------------------------------------------ */

bool
field__meets_exact(const field__job *job, const field__map *map)
{
    const esdm_codec_accuracy *a = job->accuracy;
    for (uint32_t i = 0; a != NULL && i < a->exact_count; i++) {
        double exact, again;
        int64_t code;
        field__load(job->kind, a->exact_values, i, 1, &exact);
        field__map_codes(map, &exact, 1, &code);
        if (code == INT64_MIN)
            continue;
        field__map_values(map, &code, 1, &again);
        if (again == exact)
            return true;
    }
    return false;
}

bool
field__takes_exact(const field__job *job, const field__map *map)
{
    const esdm_codec_accuracy *a = job->accuracy;
    size_t taken = 0;
    if (a == NULL || a->exact_count > EXACT_MOST || !field__meets_exact(job, map))
        return false;
    const field__probes *p = field__probes_of(job);
    for (uint32_t i = 0; i < a->exact_count; i++) {
        double exact, again;
        int64_t code, other;
        field__load(job->kind, a->exact_values, i, 1, &exact);
        field__map_codes(map, &exact, 1, &code);
        if (code == INT64_MIN)
            continue;
        field__map_values(map, &code, 1, &again);
        for (size_t k = 0; k < p->count && again == exact; k++) {
            field__map_codes(map, &p->values[k], 1, &other);
            taken += other == code;
        }
    }
    return taken > p->count / TAKEN;
}

double
field__base_beside_exact(const field__job *job, const field__map *map)
{
    static const double parts[] = {0.5, 0.25, 0.75};
    if (job->accuracy == NULL || job->accuracy->exact_count > EXACT_MOST)
        return 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        field__map moved = *map;
        moved.base = parts[i] * map->multiplier;
        if (!field__meets_exact(job, &moved))
            return moved.base;
    }
    return 0;
}

/* ---- what was rounded before --------------------------------------------------------------- */

#define EIGHTH        1.0905077326652577 /* 2^(1/8): bounds that follow from values go by such steps */
#define TWO_EIGHTHS   (EIGHTH * EIGHTH)
#define THREE_EIGHTHS (EIGHTH * EIGHTH * EIGHTH)

double
field__step_of(double absolute, double rounding)
{
    return 2 * (absolute - rounding) * MARGIN;
}

/* Numbers that were rounded under the same statement lie on its steps, but these may have been a
 * little others: the largest number was on the other side of a power of two, or a bound that
 * follows from values on that of an eighth of an octave. On those steps they keep their bits,
 * however often they are written again. The first of these steps are those of today. An eighth of
 * an octave less, and half of a bound, is what blocks are encoded with that missed what was asked
 * of them as a whole (a mean square of errors). Two and three eighths more: a range has lost its
 * ends, as numbers near `exact_above` were rounded to beyond it, or of few steps the outermost were
 * rounded inwards. */
const double field__former_parts[FIELD__FORMER / FIELD__ROUNDINGS] = {
    1,           1 / EIGHTH,   EIGHTH, 0.5, 0.5 / EIGHTH, 0.5 * EIGHTH, 1 / EIGHTH / EIGHTH,
    TWO_EIGHTHS, THREE_EIGHTHS};

double
field__former_rounding(const field__job *job, double most, double absolute, size_t which)
{
    /* What stands apart now may not have done so then, or the other way round. Steps that nothing
     * was taken from for rounding are those of whole numbers, too. */
    const double bases[] = {most, job->apart > 0 ? job->apart : most, most / 2, most / 4};
    double base = bases[which / 3 < 2 ? which / 3 : which - 4];
    double off = which % 3 == 0 || which >= 6 ? 0 : which % 3 == 1 ? -2 * absolute : 2 * absolute;
    return field__spacing(job->kind, base + off) / 2;
}

/* Steps of part `fine` of these, which are more than `apart` times as far from each other as
 * neighbouring numbers of the type. One probe in so many may miss them. */
static bool
find_steps(const field__job *job, double absolute, double fine, double apart, size_t misses,
           field__map *map)
{
    double most = field__largest(job);
    double usual = field__former_rounding(job, most, absolute, 0);
    const field__probes *p = field__probes_of(job);
    *map = (field__map){.kind = FIELD__MAP_GRID, .type = job->kind, .divisor = 1};
    for (size_t i = 0; i < FIELD__FORMER; i++) {
        double rounding = field__former_rounding(job, most, absolute, i % FIELD__ROUNDINGS);
        double part = field__former_parts[i / FIELD__ROUNDINGS];
        map->multiplier = fine * field__step_of(absolute * part, rounding);
        if ((i % FIELD__ROUNDINGS == 0 || rounding != usual) &&
            map->multiplier > apart * 2 * usual && most / map->multiplier < CODES_MOST) {
            map->base = 0;
            if (fits(p, map, misses))
                return true;
            map->base =
                fine == 1 && field__meets_exact(job, map) ? field__base_beside_exact(job, map) : 0;
            if (map->base != 0 && fits(p, map, misses))
                return true;
        }
    }
    return false;
}

bool
field__find_former_steps(const field__job *job, double absolute, field__map *map)
{
    return find_steps(job, absolute, 1, 2, MISSES, map);
}

/* ---- fine steps ---------------------------------------------------------------------------- */

#define APART    1.25 /* of fine steps, so that what lies on them does not do so by chance */
#define LN2      0.6931471805599453
#define LOG_EDGE 0x1p-100 /* the same for all numbers: their steps stay */
#define RARE     14.0     /* -log of a chance that counts as none */
#define COARSER  2
#define DISTINCT 64 /* numbers that tell */

static const int finenesses[] = {256, 32};
#define FINENESSES (sizeof finenesses / sizeof finenesses[0])

int
field__fineness(const field__job *job, double absolute)
{
    double most = field__largest(job);
    double step = field__step_of(absolute, field__spacing(job->kind, most) / 2);
    for (size_t i = 0; i < FINENESSES; i++) {
        if (step / finenesses[i] > APART * field__spacing(job->kind, most + absolute))
            return finenesses[i];
    }
    return 0;
}

/* Distance of neighbouring steps at a size. */
static double
step_at(const field__map *fine, double size)
{
    return fine->kind == FIELD__MAP_LOG ? size * fine->growth * LN2 : fine->multiplier;
}

/* Whether so many numbers lie on these steps that this is no chance. */
static bool
is_no_chance(const field__job *job, const field__probes *p, const field__map *fine)
{
    double chance = 0;
    for (size_t i = 0; i < p->count; i++) {
        double size = fabs(p->values[i]);
        if (size != 0)
            chance += log(step_at(fine, size) / field__spacing(job->kind, size));
    }
    return chance > RARE;
}

/* Whether many numbers lie on each so manieth of these steps, as those of a grid of their own may:
 * what levels left lies on all. `halves`: the steps are halves of theirs, and numbers lie on those
 * between. */
static bool
lies_coarser(const field__probes *p, const field__map *fine, bool halves)
{
    const uint64_t coarser = halves ? 2 * COARSER : COARSER;
    int64_t codes[DISTINCT];
    size_t distinct = 0;
    uint64_t common = 0;
    bool between = !halves;
    for (size_t i = 0; i < p->count && !(common == 1 && between); i++) {
        int64_t code;
        double again;
        size_t k = 0;
        field__map_codes(fine, &p->values[i], 1, &code);
        field__map_values(fine, &code, 1, &again);
        if (again != p->values[i] || code == 0) /* was kept exactly, or tells nothing */
            continue;
        /* Codes of logarithmic steps begin with 1, those of their halves with that, too. */
        between = between || ((code & 1) != 0) == (fine->kind == FIELD__MAP_GRID);
        while (k < distinct && codes[k] != code)
            k++;
        if (k == distinct && distinct < DISTINCT)
            codes[distinct++] = code;
        uint64_t rest = (uint64_t) code - (uint64_t) codes[0];
        common = esdm__common_divisor(common, code < codes[0] ? 0 - rest : rest);
    }
    return !between || (distinct == DISTINCT && common >= coarser);
}

bool
field__is_log_alone(const field__map *map)
{
    return map->kind == FIELD__MAP_LOG && map->finest == 0 && !(map->cap < INFINITY);
}

static double
epsilon_of(const field__job *job)
{
    return job->kind == FIELD__FLOAT32 ? FLT_EPSILON : DBL_EPSILON;
}

bool
field__fine_log(const field__job *job, field__map *ret_fine, uint32_t *ret_width)
{
    double epsilon = epsilon_of(job);
    double relative = fmin(job->accuracy->relative * fmin(job->tighter, 1) - epsilon, 0.9);
    double growth = 2 * field__log2(1 + relative) * MARGIN;
    if (!(job->least > 0 || job->most < 0) || !(job->smallest > LOG_EDGE) ||
        !(field__largest(job) < 1 / LOG_EDGE))
        return false;
    for (size_t i = 0; i < FINENESSES; i++) {
        *ret_fine = (field__map){.kind = FIELD__MAP_LOG,
                                 .type = job->kind,
                                 .edge = LOG_EDGE,
                                 .growth = growth / finenesses[i],
                                 .centre = 1,
                                 .cap = INFINITY};
        *ret_width = (uint32_t) finenesses[i] - 1;
        if (ret_fine->growth * LN2 > APART * epsilon)
            return true;
    }
    return false;
}

bool
field__find_fine_log_steps(const field__job *job, field__map *ret_fine)
{
    uint32_t width;
    const field__probes *p = field__probes_of(job);
    if (!field__fine_log(job, ret_fine, &width))
        return false;
    /* Some may have been nudged by half a step. */
    ret_fine->growth /= 2;
    if (ret_fine->growth * LN2 > APART * epsilon_of(job) && fits(p, ret_fine, MISSES_FINE) &&
        is_no_chance(job, p, ret_fine) && !lies_coarser(p, ret_fine, true))
        return true;
    ret_fine->growth *= 2;
    return fits(p, ret_fine, MISSES_FINE) && is_no_chance(job, p, ret_fine);
}

bool
field__find_fine_steps(const field__job *job, double absolute, field__map *ret_fine)
{
    const field__probes *p = field__probes_of(job);
    /* The coarser ones are of numbers for which the finer ones are too fine, or nearly so. */
    double spacing = field__spacing(job->kind, field__largest(job) + absolute);
    for (size_t i = 0; i < FINENESSES; i++) {
        if (i > 0 && 2 * absolute / finenesses[i - 1] > 8 * APART * spacing)
            break;
        for (int parts = 2; parts > 0; parts--) { /* some may have been nudged by a half */
            double fine = 1.0 / (parts * finenesses[i]);
            if (find_steps(job, absolute, fine, APART, MISSES_FINE, ret_fine) &&
                is_no_chance(job, p, ret_fine) && !lies_coarser(p, ret_fine, parts == 2))
                return true;
        }
    }
    return false;
}

bool
field__half_steps_show(const field__job *job, const field__map *fine)
{
    if (fine->kind == FIELD__MAP_LOG)
        return fine->growth / 2 * LN2 > APART * epsilon_of(job);
    double most = field__largest(job) + job->accuracy->absolute;
    return fine->multiplier / 2 > APART * field__spacing(job->kind, most);
}

bool
field__fine_steps_show(const field__job *job, const field__map *fine, const field__volume *volume)
{
    field__probes p;
    size_t nx = (size_t) volume->axes.nx;
    size_t n = job->block->elements;
    size_t step = probe_step(job);
    field__map used = *fine;
    if (fine->nudged != 0)
        (void) field__map_nudge(fine, &used);
    p.count = 0;
    for (size_t i = 0; i < n; i += step) {
        int64_t code = field__row32(volume, i / nx)[i % nx] + fine->origin;
        if (!job->mask[i])
            field__map_values_at(fine, &code, i, 1, &p.values[p.count++]);
    }
    return is_no_chance(job, &p, &used);
}

/* The logarithmic steps of the type are the same for all numbers, wherever the smallest lies: those
 * that were rounded before stay. This is where the one before that of the smallest begins. */
double
field__edge_below(double smallest, double growth)
{
    return field__exp2((floor(field__log2(smallest) / growth + 0.5) - 1) * growth);
}

bool
field__map_fits(const field__job *job, const field__map *map)
{
    if (map->kind == FIELD__MAP_ORDERED || map->kind == FIELD__MAP_PALETTE)
        return false;
    const field__probes *p = field__probes_of(job);
    return p->numbers > 0 && field__grid_fits(p, map);
}
