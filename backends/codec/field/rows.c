/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Rows that are predicted from those before them, and coded. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/scratch.h"
#include "predict.h"
#include "stream.h"

/* What both directions keep while they walk over the rows. */
typedef struct walk {
    const field__volume *volume;
    field__weights weights[FIELD__CLASSES];
    field__models *models;
    uint8_t *errors; /* sizes of errors: planes of rows with room around */
    size_t planes;
    size_t error_bytes;
    int64_t *sums;
    uint64_t *sizes;
} walk;

static void
walk_clear(walk *w)
{
    free(w->models);
    esdm__scratch_free(w->errors);
    free(w->sums);
    free(w->sizes);
}

/* Errors of the planes that are still needed: the first one of this and the last volume (2, 3), of
 * the others this and the last one (0, 1). Volumes of one plane keep rows of planes 2 and 3. */
static size_t
plane_of(const walk *w, size_t b, size_t z)
{
    return w->planes == 1 ? 0 : z == 0 ? b & 1 : 2 + (z & 1);
}

static esdm_status
walk_init(walk *w, const field__volume *volume, esdm_error *err)
{
    memset(w, 0, sizeof *w);
    w->volume = volume;
    w->error_bytes = volume->wide ? 8 : 4;
    w->planes = volume->axes.nz == 1 && volume->axes.nb == 1 ? 1 : 4;
    size_t nx = (size_t) volume->axes.nx;
    size_t bytes = w->planes * (size_t) volume->axes.ny * volume->stride * w->error_bytes;
    w->models = field__models_new();
    w->errors = esdm__scratch_new(bytes);
    w->sums = malloc(nx * sizeof *w->sums);
    w->sizes = malloc(nx * sizeof *w->sizes);
    if (w->models == NULL || w->errors == NULL || w->sums == NULL || w->sizes == NULL) {
        walk_clear(w);
        return esdm__error_nomem(err, bytes + sizeof *w->models, "models of a block");
    }
    memset(w->errors, 0, bytes);
    return ESDM_OK;
}

static uint8_t *
errors_of(const walk *w, size_t b, size_t z, size_t y)
{
    size_t row = plane_of(w, b, z) * (size_t) w->volume->axes.ny + y;
    return w->errors + (row * w->volume->stride + FIELD__PAD) * w->error_bytes;
}

/* Copies the element at `from` to those around a row of sizes of errors. */
static void
spread(const walk *w, uint8_t *row, const uint8_t *from, ptrdiff_t first)
{
    for (ptrdiff_t i = 0; i < FIELD__PAD; i++)
        memcpy(row + (first + i) * (ptrdiff_t) w->error_bytes, from, w->error_bytes);
}

static void
start_row(const walk *w, size_t r, field__row *row)
{
    const field__volume *v = w->volume;
    size_t ny = (size_t) v->axes.ny;
    size_t y = r % ny;
    size_t z = r / ny % (size_t) v->axes.nz;
    size_t b = r / ny / (size_t) v->axes.nz;
    memset(row, 0, sizeof *row);
    row->nx = (size_t) v->axes.nx;
    row->class = field__volume_lines(v, r, row->lines);
    row->weights = &w->weights[row->class];
    row->codes = v->wide ? (void *) field__row64(v, r) : (void *) field__row32(v, r);
    row->errors = errors_of(w, b, z, y);
    row->near_errors[0] = y > 0 ? errors_of(w, b, z, y - 1) : NULL;
    row->near_errors[1] = z > 0 ? errors_of(w, b, z - 1, y) : NULL;
    row->near_errors[2] = b > 0 && z == 0 ? errors_of(w, b - 1, z, y) : NULL;
    row->sums = w->sums;
    row->sizes = w->sizes;
    if (v->mask != NULL && memchr(v->mask + r * row->nx, 1, row->nx) != NULL)
        row->mask = v->mask + r * row->nx;
    field__volume_open_row(v, row->class, row->lines, r);

    static const uint8_t none[8] = {0};
    const uint8_t *from = none;
    for (int i = 2; i >= 0; i--)
        from = row->near_errors[i] != NULL ? row->near_errors[i] : from;
    spread(w, row->errors, from, -FIELD__PAD);
}

static void
end_row(const walk *w, size_t r, const field__row *row)
{
    uint8_t *errors = row->errors;
    spread(w, errors, errors, -FIELD__PAD);
    spread(w, errors, errors + (row->nx - 1) * w->error_bytes, (ptrdiff_t) row->nx);
    field__volume_close_row(w->volume, r);
}

/* ---- encoding ----------------------------------------------------------------------------- */

static esdm_status
encode_rows(walk *w, esdm__buffer *out, esdm_error *err)
{
    const field__kernels *kernels = field__kernels_best();
    const field__volume *v = w->volume;
    field__writer writer = {.sink.models = w->models};
    esdm_status st = ESDM_OK;
    for (size_t r = 0; r < v->rows && st == ESDM_OK; r++) {
        field__row row;
        st = field__writer_reserve(&writer, (size_t) v->axes.nx, v->elements, err);
        if (st != ESDM_OK)
            break;
        start_row(w, r, &row);
        (v->wide ? kernels->encode_row64 : kernels->encode_row32)(&row, &writer.sink);
        end_row(w, r, &row);
    }
    if (st == ESDM_OK)
        st = field__writer_finish(&writer, out, err);
    field__writer_clear(&writer);
    return st;
}

esdm_status
field__rows_encode(const field__volume *volume, size_t samples, esdm__buffer *out, size_t *ret_head,
                   esdm_error *err)
{
    walk w;
    size_t start = out->bytes;
    esdm_status st = walk_init(&w, volume, err);
    if (st != ESDM_OK)
        return st;
    field__volume_fill_masked(volume);
    uint32_t classes = field__classes_of(&volume->axes);
    for (uint32_t c = 0; c < FIELD__CLASSES; c++) {
        if ((classes >> c & 1) == 0)
            continue;
        if (samples == 0)
            field__weights_lorenzo(&w.weights[c], c);
        else
            field__weights_fit(&w.weights[c], volume, c, samples);
        field__weights_put(&w.weights[c], out);
    }
    *ret_head = out->bytes - start;
    st = encode_rows(&w, out, err);
    walk_clear(&w);
    return st;
}

/* ---- decoding ----------------------------------------------------------------------------- */

/* Everything before the values; `w` is to be cleared when that is ESDM_OK. */
static esdm_status
open_walk(walk *w, field__source *source, const field__volume *volume, esdm__cursor *in,
          esdm_error *err)
{
    esdm_status st = walk_init(w, volume, err);
    if (st != ESDM_OK)
        return st;
    uint32_t classes = field__classes_of(&volume->axes);
    for (uint32_t c = 0; c < FIELD__CLASSES && st == ESDM_OK; c++) {
        if ((classes >> c & 1) != 0 && !field__weights_get(&w->weights[c], c, in))
            st = esdm__error_set(err, ESDM_ECORRUPT, "field: bad weights of a prediction");
    }
    if (st == ESDM_OK)
        st = field__source_open(source, w->models, in, err);
    if (st != ESDM_OK)
        walk_clear(w);
    return st;
}

static void
decode_row(const walk *w, size_t r, field__source *source)
{
    const field__kernels *kernels = field__kernels_best();
    field__row row;
    start_row(w, r, &row);
    (w->volume->wide ? kernels->decode_row64 : kernels->decode_row32)(&row, source);
    end_row(w, r, &row);
}

static void
decode_both(const walk w[2], size_t r, field__source sources[2])
{
    field__row a, b;
    start_row(&w[0], r, &a);
    start_row(&w[1], r, &b);
    field__kernels_best()->decode_rows32(&a, &sources[0], &b, &sources[1]);
    end_row(&w[0], r, &a);
    end_row(&w[1], r, &b);
}

esdm_status
field__rows_decode(const field__volume *const volumes[2], esdm__cursor *const ins[2], size_t count,
                   esdm_error *err)
{
    walk w[2];
    field__source sources[2];
    size_t open = 0;
    esdm_status st = ESDM_OK;
    while (open < count && st == ESDM_OK) {
        st = open_walk(&w[open], &sources[open], volumes[open], ins[open], err);
        open += st == ESDM_OK;
    }
    bool together = open == 2 && !volumes[0]->wide && !volumes[1]->wide;
    bool overrun = false;
    if (st == ESDM_OK && together) {
        for (size_t r = 0; r < volumes[0]->rows && !overrun; r++) {
            decode_both(w, r, sources);
            overrun = sources[0].overrun || sources[1].overrun;
        }
    }
    for (size_t i = 0; i < count && st == ESDM_OK && !together; i++) {
        for (size_t r = 0; r < volumes[i]->rows && !overrun; r++) {
            decode_row(&w[i], r, &sources[i]);
            overrun = sources[i].overrun;
        }
    }
    for (size_t i = 0; i < open; i++)
        walk_clear(&w[i]);
    if (st == ESDM_OK && overrun)
        st = esdm__error_set(err, ESDM_ECORRUPT, "field: coded values end too early");
    return st;
}
