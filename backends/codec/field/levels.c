/* SPDX-License-Identifier: LGPL-3.0-or-later */

/*
 * A level of spacing s has two passes over a plane: "y" codes rows at odd multiples of s, there
 * points at multiples of 2s; "x" codes in rows at all multiples of s the points at odd multiples.
 * The points at multiples of the largest spacing come first, as a pass of their own.
 */

#include "levels.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/scratch.h"
#include "fit.h"
#include "stream.h"
#include "taps.h"

#define GROUPS      4u /* of levels: the finest or others, of planes: the last ones or others */
#define WEIGHT_SETS (GROUPS * 2u * LEVEL_CLASSES)
/* Points that the weights of a set are fitted to, at least, where it has as many. */
#define SAMPLES_LEAST 2000u

typedef struct walk {
    const field__volume *volume;
    field__levels levels;
    uint32_t top;                  /* the coarsest level */
    field__level_weights *weights; /* WEIGHT_SETS */
    uint32_t *errors_memory;
    uint32_t *errors; /* sizes of errors of a volume; as much room around as the largest spacing */
    uint32_t *zeros;  /* a row */
    int64_t *sums;    /* of a row, and two sizes behind them */
    field__models *models;
    field__writer *writer; /* encoding */
    field__source *source; /* decoding */
    struct walk *other;    /* decoding: another volume of these axes and levels, side by side */
    field__fit *fits;      /* fitting: as weights */
    size_t *thin;          /* fitting: of each set, one of so many rows */
    size_t *points;        /* counting those of each set */
} walk;

/* y of plane z of volume b, by its number among all planes. */
static int32_t *
codes_at(const walk *w, size_t plane, size_t y)
{
    return field__row32(w->volume, plane * (size_t) w->volume->axes.ny + y);
}

static uint32_t *
errors_at(const walk *w, size_t plane, size_t y)
{
    size_t z = plane % (size_t) w->volume->axes.nz;
    return w->errors + (z * (size_t) w->volume->axes.ny + y) * (size_t) w->volume->axes.nx;
}

/* ---- one row of one pass ------------------------------------------------------------------ */

typedef struct spot {
    field__pass pass;
    uint32_t level;
    size_t spacing, plane, y;
    size_t distance; /* to the planes before and after that are known; 0: there is none */
    bool after;      /* one after is known, too */
} spot;

static uint32_t
class_of(const walk *w, const spot *at)
{
    bool below = at->y + at->spacing < w->volume->axes.ny;
    bool above = at->y >= at->spacing;
    return (above && below ? HAS_SIDES : 0) | (at->distance > 0 ? HAS_PLANE : 0) |
           (at->after ? HAS_AFTER : 0) | (at->plane >= w->volume->axes.nz ? HAS_VOLUME : 0);
}

static uint32_t
index_of(const walk *w, const spot *at)
{
    uint32_t group = (at->level > 0) * 2u + (at->distance > 1);
    return (group * 2u + (at->pass == PASS_X)) * LEVEL_CLASSES + class_of(w, at);
}

/* The plane of a tap; three distances away the nearest one that is known. */
static size_t
tap_plane(const walk *w, const spot *at, const field__level_tap *tap)
{
    size_t nz = (size_t) w->volume->axes.nz;
    size_t z = at->plane % nz;
    size_t d = at->distance;
    switch (tap->plane) {
    case PLANE_BEFORE:
        return at->plane - d;
    case PLANE_AFTER:
        return at->plane + d;
    case PLANE_BEFORE3:
        return at->plane - (z >= 3 * d ? 3 * d : d);
    case PLANE_AFTER3:
        return at->plane + (z + 3 * d < nz ? 3 * d : d);
    case PLANE_VOLUME:
        return at->plane - nz;
    default:
        return at->plane;
    }
}

/* Row of a tap: outside the plane the nearest one that is known. */
static const int32_t *
tap_row(const walk *w, const spot *at, const field__level_tap *tap)
{
    size_t ny = (size_t) w->volume->axes.ny;
    size_t s = at->spacing;
    ptrdiff_t steps = tap->dy;
    if (steps == -3 && at->y < 3 * s)
        steps = -1;
    else if (steps == 3 && at->y + 3 * s >= ny)
        steps = 1;
    if ((steps == -1 && at->y < s) || (steps == 1 && at->y + s >= ny))
        steps = 0;
    return codes_at(w, tap_plane(w, at, tap), (size_t) ((ptrdiff_t) at->y + steps * (ptrdiff_t) s));
}

static uint32_t
width_at(const field__levels *levels, uint32_t level)
{
    double factor = 1;
    for (uint32_t i = 0; i < level; i++)
        factor = factor * levels->growth / 4;
    double most = levels->narrow / 4.0;
    uint32_t width = (uint32_t) (levels->width / (factor < most ? factor : most));
    return (width > 0 ? width - 1 : 0) | 1;
}

static void
set_points(const walk *w, const spot *at, field__level_row *row)
{
    size_t nx = row->nx;
    size_t s = at->spacing;
    row->step = at->pass == PASS_GRID ? s : 2 * s;
    row->first = at->pass == PASS_X ? s : 0;
    row->count = nx > row->first ? (nx - row->first + row->step - 1) / row->step : 0;
    row->inner = 1;
    row->inner_end = 0;
    if (at->pass == PASS_X && nx > 4 * s)
        row->inner_end = (nx - 4 * s + row->step - 1) / row->step;
    else if (at->pass == PASS_Y && row->count > 0)
        row->inner_end = row->count - 1;
    row->reach = at->pass == PASS_X ? s : 0;
    row->width = width_at(&w->levels, at->level);
    row->set = at->level > 1 ? 3 : at->level == 1 ? 2 : at->pass == PASS_Y;
}

static void
set_errors(const walk *w, const spot *at, field__level_row *row)
{
    size_t ny = (size_t) w->volume->axes.ny;
    size_t s = at->spacing;
    size_t back = at->pass == PASS_Y ? 2 * s : s; /* to the row before of this pass */
    row->errors = errors_at(w, at->plane, at->y);
    row->north = at->y >= back ? errors_at(w, at->plane, at->y - back) : w->zeros;
    row->before = at->distance > 0 ? errors_at(w, at->plane - at->distance, at->y) : w->zeros;
    row->parents[0] = row->parents[1] = w->zeros;
    if (at->pass == PASS_X) {
        row->parents[0] = row->errors - s;
        row->parents[1] = row->errors + s;
    } else if (at->pass == PASS_Y) {
        row->parents[0] = errors_at(w, at->plane, at->y - s);
        row->parents[1] = errors_at(w, at->plane, at->y + s < ny ? at->y + s : at->y - s);
    }
}

static void
set_taps(walk *w, const spot *at, field__level_row *row)
{
    field__level_weights *weights = &w->weights[index_of(w, at)];
    size_t unit = at->pass == PASS_X ? at->spacing : row->step;
    row->taps = weights->taps;
    row->west_weight = weights->west;
    for (uint32_t t = 0; t < weights->taps && row->inner < row->inner_end; t++) {
        ptrdiff_t x = (ptrdiff_t) (row->first + row->inner * row->step) +
                      weights->tap[t].dx * (ptrdiff_t) unit;
        row->from[t] = tap_row(w, at, &weights->tap[t]) + x;
        row->weights[t] = weights->weight[t];
    }
}

static void
start_row(walk *w, const spot *at, field__level_row *row)
{
    size_t ny = (size_t) w->volume->axes.ny;
    size_t s = at->spacing;
    memset(row, 0, sizeof *row);
    row->nx = (size_t) w->volume->axes.nx;
    row->codes = codes_at(w, at->plane, at->y);
    row->sums = w->sums;
    row->near = (uint32_t *) (void *) (w->sums + row->nx);
    row->larger = row->near + row->nx;
    if (w->volume->mask != NULL)
        row->mask = w->volume->mask + (at->plane * ny + at->y) * row->nx;
    set_points(w, at, row);
    set_errors(w, at, row);
    row->above = at->y >= s ? codes_at(w, at->plane, at->y - s) : NULL;
    if (at->pass == PASS_Y && at->y + s < ny)
        row->below = codes_at(w, at->plane, at->y + s);
    if (at->pass != PASS_GRID)
        set_taps(w, at, row);
    else if (at->distance > 0)
        row->above = codes_at(w, at->plane - at->distance, at->y);
}

static void
count_row(const walk *w, const spot *at)
{
    size_t nx = (size_t) w->volume->axes.nx;
    if (at->pass != PASS_GRID)
        w->points[index_of(w, at)] += nx / (2 * at->spacing);
}

/* Takes the inner points of a row as samples. */
static void
sample_row(walk *w, const spot *at)
{
    field__level_row row;
    uint64_t number = at->plane * w->volume->axes.ny + at->y;
    if (at->pass == PASS_GRID || (number * 2654435761u >> 8) % w->thin[index_of(w, at)] != 0)
        return;
    start_row(w, at, &row);
    const field__level_weights *weights = &w->weights[index_of(w, at)];
    field__fit *f = &w->fits[index_of(w, at)];
    double scale = 1.0 / w->levels.width;
    f->unknowns = weights->taps - 1 + (at->pass == PASS_Y);
    for (size_t k = row.inner; k < row.inner_end; k++) {
        double v[FIELD__UNKNOWNS];
        size_t x = row.first + k * row.step;
        size_t offset = (k - row.inner) * row.step;
        if (row.mask != NULL && row.mask[x])
            continue;
        double origin = row.from[0][offset];
        for (uint32_t t = 1; t < weights->taps; t++)
            v[t - 1] = (row.from[t][offset] - origin) * scale;
        v[weights->taps - 1] = (row.codes[x - row.step] - origin) * scale;
        field__fit_add(f, v, (row.codes[x] - origin) * scale);
    }
}

static esdm_status
check_source(bool overrun, esdm_error *err)
{
    return overrun ? esdm__error_set(err, ESDM_ECORRUPT, "field: coded values end too early")
                   : ESDM_OK;
}

static esdm_status
do_row(walk *w, const spot *at, esdm_error *err)
{
    const field__kernels *kernels = field__kernels_best();
    field__level_row row;
    if (w->points != NULL) {
        count_row(w, at);
        return ESDM_OK;
    }
    if (w->fits != NULL) {
        sample_row(w, at);
        return ESDM_OK;
    }
    start_row(w, at, &row);
    if (w->source != NULL && w->other != NULL) {
        field__level_row other;
        start_row(w->other, at, &other);
        kernels->decode_level_rows(&row, w->source, &other, w->other->source);
        return check_source(w->source->overrun || w->other->source->overrun, err);
    }
    if (w->source != NULL) {
        kernels->decode_level_row(&row, w->source);
        return check_source(w->source->overrun, err);
    }
    esdm_status st = field__writer_reserve(w->writer, row.count, w->volume->elements, err);
    if (st == ESDM_OK)
        kernels->encode_level_row(&row, &w->writer->sink);
    return st;
}

static esdm_status
do_pass(walk *w, spot *at, size_t first, size_t step, esdm_error *err)
{
    esdm_status st = ESDM_OK;
    for (at->y = first; at->y < w->volume->axes.ny && st == ESDM_OK; at->y += step)
        st = do_row(w, at, err);
    return st;
}

static esdm_status
do_plane(walk *w, spot *at, esdm_error *err)
{
    size_t s = (size_t) 1 << w->top;
    at->pass = PASS_GRID;
    at->level = w->top;
    at->spacing = s;
    esdm_status st = do_pass(w, at, 0, s, err);
    while (at->level > 0 && st == ESDM_OK) {
        at->level--;
        s = at->spacing = (size_t) 1 << at->level;
        at->pass = PASS_Y;
        st = do_pass(w, at, s, 2 * s, err);
        at->pass = PASS_X;
        if (st == ESDM_OK)
            st = do_pass(w, at, 0, s, err);
    }
    return st;
}

/* Planes at multiples of the largest distance first, one after the other, then those between. */
static esdm_status
do_volume(walk *w, size_t b, esdm_error *err)
{
    size_t nz = (size_t) w->volume->axes.nz;
    size_t d = (size_t) 1 << w->levels.depth;
    esdm_status st = ESDM_OK;
    for (size_t z = 0; z < nz && st == ESDM_OK; z += d) {
        spot at = {.plane = b * nz + z, .distance = z > 0 ? d : 0};
        st = do_plane(w, &at, err);
    }
    for (d /= 2; d > 0; d /= 2) {
        for (size_t z = d; z < nz && st == ESDM_OK; z += 2 * d) {
            spot at = {.plane = b * nz + z, .distance = d, .after = z + d < nz};
            st = do_plane(w, &at, err);
        }
    }
    return st;
}

static esdm_status
do_planes(walk *w, esdm_error *err)
{
    esdm_status st = ESDM_OK;
    for (size_t b = 0; b < w->volume->axes.nb && st == ESDM_OK; b++)
        st = do_volume(w, b, err);
    return st;
}

/* ---- the whole ---------------------------------------------------------------------------- */

static void
walk_clear(walk *w)
{
    free(w->weights);
    esdm__scratch_free(w->errors_memory);
    free(w->zeros);
    free(w->sums);
    free(w->models);
}

static esdm_status
walk_init(walk *w, const field__volume *volume, const field__levels *levels, esdm_error *err)
{
    memset(w, 0, sizeof *w);
    w->volume = volume;
    w->levels = *levels;
    size_t nx = (size_t) volume->axes.nx;
    size_t ny = (size_t) volume->axes.ny;
    size_t longer = nx > ny ? nx : ny;
    while (w->top < 6 && ((size_t) 2 << w->top) < longer)
        w->top++;
    size_t slack = (size_t) 1 << w->top;
    size_t count = nx * ny * (size_t) volume->axes.nz + 2 * slack;
    w->errors_memory = esdm__scratch_new(count * sizeof *w->errors);
    w->zeros = calloc(nx, sizeof *w->zeros);
    w->sums = malloc(nx * (sizeof *w->sums + 2 * sizeof *w->zeros));
    w->models = field__models_new();
    w->weights = malloc(WEIGHT_SETS * sizeof *w->weights);
    if (w->weights == NULL || w->errors_memory == NULL || w->zeros == NULL || w->sums == NULL ||
        w->models == NULL) {
        walk_clear(w);
        return esdm__error_nomem(err, count * sizeof *w->errors, "errors of a block");
    }
    memset(w->errors_memory, 0, count * sizeof *w->errors);
    w->errors = w->errors_memory + slack;
    for (uint32_t i = 0; i < WEIGHT_SETS; i++)
        field__taps_default(&w->weights[i], i / LEVEL_CLASSES % 2 ? PASS_X : PASS_Y,
                            i % LEVEL_CLASSES);
    return ESDM_OK;
}

static void
complete(field__level_weights *weights)
{
    int32_t sum = weights->west;
    for (uint32_t t = 1; t < weights->taps; t++)
        sum += weights->weight[t];
    weights->weight[0] = (1 << FIELD__WEIGHT_BITS) - sum;
}

static void
take_solution(field__level_weights *weights, const field__fit *f)
{
    for (uint32_t t = 1; t < weights->taps; t++)
        weights->weight[t] = field__fit_weight(f, t - 1);
    weights->west = f->unknowns == weights->taps ? field__fit_weight(f, weights->taps - 1) : 0;
    complete(weights);
    weights->fitted = true;
}

static esdm_status
fit_weights(walk *w, size_t samples, esdm_error *err)
{
    size_t points[WEIGHT_SETS] = {0};
    size_t thin[WEIGHT_SETS];
    w->points = points;
    (void) do_planes(w, err); /* counting does not fail */
    w->points = NULL;
    for (uint32_t i = 0; i < WEIGHT_SETS; i++) {
        size_t share =
            (size_t) ((double) points[i] * (double) samples / (double) w->volume->elements);
        thin[i] = points[i] / (share > SAMPLES_LEAST ? share : SAMPLES_LEAST) + 1;
    }
    w->thin = thin;
    w->fits = calloc(WEIGHT_SETS, sizeof *w->fits);
    if (w->fits == NULL)
        return esdm__error_nomem(err, WEIGHT_SETS * sizeof *w->fits, "weights of a block");
    bool unsolved[WEIGHT_SETS] = {false};
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < WEIGHT_SETS; i++)
            field__fit_start(&w->fits[i]);
        (void) do_planes(w, err); /* sampling does not fail */
        for (uint32_t i = 0; i < WEIGHT_SETS; i++) {
            if (w->fits[i].unknowns == 0 || !field__fit_solve(&w->fits[i]))
                unsolved[i] = true;
        }
    }
    for (uint32_t i = 0; i < WEIGHT_SETS; i++) {
        if (!unsolved[i])
            take_solution(&w->weights[i], &w->fits[i]);
    }
    free(w->fits);
    w->fits = NULL;
    return ESDM_OK;
}

/* Stored: width, growth, narrow, depth (varints), a bit for each set that is fitted, and of these
 * the weights but the first, which completes the sum. */
static void
put_parameters(walk *w, esdm__buffer *out)
{
    esdm__buffer_put_varint(out, w->levels.width);
    esdm__buffer_put_varint(out, w->levels.growth);
    esdm__buffer_put_varint(out, w->levels.narrow);
    esdm__buffer_put_varint(out, w->levels.depth);
    uint64_t fitted[WEIGHT_SETS / 64] = {0};
    for (uint32_t i = 0; i < WEIGHT_SETS; i++)
        fitted[i / 64] |= (uint64_t) w->weights[i].fitted << i % 64;
    for (uint32_t i = 0; i < WEIGHT_SETS / 64; i++)
        esdm__buffer_put_u64(out, fitted[i]);
    for (uint32_t i = 0; i < WEIGHT_SETS; i++) {
        const field__level_weights *weights = &w->weights[i];
        for (uint32_t t = 1; t < weights->taps && weights->fitted; t++)
            esdm__buffer_put_svarint(out, weights->weight[t]);
        if (weights->fitted)
            esdm__buffer_put_svarint(out, weights->west);
    }
}

static bool
get_weight(esdm__cursor *in, int32_t *ret_weight)
{
    int64_t weight = esdm__cursor_svarint(in);
    *ret_weight = (int32_t) weight;
    return weight >= -FIELD__WEIGHT_MAX && weight <= FIELD__WEIGHT_MAX;
}

static bool
get_levels(field__levels *levels, esdm__cursor *in)
{
    uint64_t width = esdm__cursor_varint(in);
    uint64_t growth = esdm__cursor_varint(in);
    uint64_t narrow = esdm__cursor_varint(in);
    uint64_t depth = esdm__cursor_varint(in);
    *levels =
        (field__levels){(uint32_t) width, (uint32_t) growth, (uint32_t) narrow, (uint32_t) depth};
    return !in->failed && (width & 1) == 1 && width < 1u << 20 && growth >= 4 && growth <= 64 &&
           narrow >= 4 && narrow <= 256 && depth <= 6;
}

static bool
get_weights(walk *w, esdm__cursor *in)
{
    uint64_t fitted[WEIGHT_SETS / 64];
    for (uint32_t i = 0; i < WEIGHT_SETS / 64; i++)
        fitted[i] = esdm__cursor_u64(in);
    for (uint32_t i = 0; i < WEIGHT_SETS; i++) {
        field__level_weights *weights = &w->weights[i];
        if ((fitted[i / 64] >> i % 64 & 1) == 0)
            continue;
        for (uint32_t t = 1; t < weights->taps; t++) {
            if (!get_weight(in, &weights->weight[t]))
                return false;
        }
        if (!get_weight(in, &weights->west))
            return false;
        complete(weights);
    }
    return !in->failed;
}

esdm_status
field__levels_encode(const field__volume *volume, const field__levels *levels, size_t samples,
                     esdm__buffer *out, size_t *ret_head, esdm_error *err)
{
    walk w;
    size_t start = out->bytes;
    esdm_status st = walk_init(&w, volume, levels, err);
    if (st != ESDM_OK)
        return st;
    field__volume_fill_masked(volume);
    field__writer writer = {.sink.models = w.models};
    w.writer = &writer;
    st = fit_weights(&w, samples, err);
    if (st == ESDM_OK) {
        put_parameters(&w, out);
        *ret_head = out->bytes - start;
        st = do_planes(&w, err);
    }
    if (st == ESDM_OK)
        st = field__writer_finish(&writer, out, err);
    field__writer_clear(&writer);
    walk_clear(&w);
    return st;
}

/* Everything before the values. `source` is set; `w` is to be cleared when that is ESDM_OK. */
static esdm_status
open_walk(walk *w, field__source *source, const field__volume *volume, esdm__cursor *in,
          esdm_error *err)
{
    field__levels levels;
    if (volume->wide || !get_levels(&levels, in))
        return esdm__error_set(err, ESDM_ECORRUPT, "field: bad parameters of levels");
    esdm_status st = walk_init(w, volume, &levels, err);
    if (st != ESDM_OK)
        return st;
    w->source = source;
    if (!get_weights(w, in))
        st = esdm__error_set(err, ESDM_ECORRUPT, "field: bad weights of levels");
    if (st == ESDM_OK)
        st = field__source_open(source, w->models, in, err);
    if (st != ESDM_OK)
        walk_clear(w);
    return st;
}

static bool
same_levels(const field__levels *a, const field__levels *b)
{
    return a->width == b->width && a->growth == b->growth && a->narrow == b->narrow &&
           a->depth == b->depth;
}

esdm_status
field__levels_decode(const field__volume *const volumes[2], esdm__cursor *const ins[2],
                     size_t count, esdm_error *err)
{
    walk w[2];
    field__source sources[2];
    size_t open = 0;
    esdm_status st = ESDM_OK;
    while (open < count && st == ESDM_OK) {
        st = open_walk(&w[open], &sources[open], volumes[open], ins[open], err);
        open += st == ESDM_OK;
    }
    bool together = open == 2 && same_levels(&w[0].levels, &w[1].levels);
    if (together)
        w[0].other = &w[1];
    for (size_t i = 0; i < (together ? 1 : count) && st == ESDM_OK; i++)
        st = do_planes(&w[i], err);
    for (size_t i = 0; i < open; i++)
        walk_clear(&w[i]);
    return st;
}
