/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "pack.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/scratch.h"
#include "exponent.h"
#include "mask.h"

#define PROBES 24    /* rows that the axes are chosen by */
#define PROBED 4096u /* values of each whose bytes are counted */

/* The rows that row r is taken the difference to. */
typedef struct near {
    const int32_t *n, *z, *zn;
} near;

static near
near_of(const field__volume *v, uint32_t axes, size_t r)
{
    size_t ny = (size_t) v->axes.ny;
    size_t y = r % ny;
    size_t z = r / ny % (size_t) v->axes.nz;
    near at = {NULL, NULL, NULL};
    if (axes >= 2 && y > 0)
        at.n = field__row32(v, r - 1);
    if (axes >= 3 && z > 0) {
        at.z = field__row32(v, r - ny);
        at.zn = y > 0 ? field__row32(v, r - ny - 1) : NULL;
    }
    return at;
}

static void
difference(const field__volume *v, uint32_t axes, size_t r, uint32_t *out)
{
    if (axes == 0) {
        memcpy(out, field__row32(v, r), (size_t) v->axes.nx * sizeof *out);
        return;
    }
    near at = near_of(v, axes, r);
    field__kernels_best()->difference_row(field__row32(v, r), at.n, at.z, at.zn,
                                          (size_t) v->axes.nx, out);
}

/* Takes the differences back. */
static void
restore(const field__volume *v, uint32_t axes, size_t r, uint32_t *differences)
{
    if (axes == 0) {
        memcpy(field__row32(v, r), differences, (size_t) v->axes.nx * sizeof *differences);
        return;
    }
    near at = near_of(v, axes, r);
    field__kernels_best()->restore_row(differences, at.n, at.z, at.zn, (size_t) v->axes.nx,
                                       field__row32(v, r));
}

/* Entropy of the byte planes of the differences of some rows. */
static double
planes_cost(const field__volume *v, uint32_t axes, uint32_t *differences)
{
    uint32_t counts[4][256] = {{0}};
    size_t n = v->axes.nx < PROBED ? (size_t) v->axes.nx : PROBED;
    size_t step = v->rows / PROBES + 1;
    double bits = 0;
    for (size_t r = v->rows / 2 % step; r < v->rows; r += step) {
        difference(v, axes, r, differences);
        for (size_t i = 0; i < n; i++) {
            for (size_t k = 0; k < 4; k++)
                counts[k][differences[i] >> 8 * k & 255]++;
        }
    }
    for (size_t k = 0; k < 4; k++) {
        for (size_t i = 0; i < 256; i++)
            bits -= counts[k][i] > 0 ? counts[k][i] * field__log2(counts[k][i]) : 0;
    }
    return bits; /* less a number that is the same for all axes */
}

static uint32_t
choose_axes(const field__volume *v, uint32_t *differences)
{
    uint32_t most = v->axes.nz > 1 ? 3 : v->axes.ny > 1 ? 2 : 1;
    uint32_t best = 0;
    double least = planes_cost(v, best, differences);
    for (uint32_t axes = best + 1; axes <= most; axes++) {
        double cost = planes_cost(v, axes, differences);
        if (cost < least) {
            least = cost;
            best = axes;
        }
    }
    return best;
}

/* ---- packed bits, which are read alone ----------------------------------------------------- */

static size_t
group_count(size_t elements)
{
    return elements / FIELD__PACK_VALUES + (elements % FIELD__PACK_VALUES != 0);
}

typedef struct unpacker {
    const uint8_t *widths, *widths_end;
    const uint8_t *from, *end;
} unpacker;

/* One group more; false when the bytes do not hold it. */
static bool
unpack_group(unpacker *u, uint32_t *values)
{
    if (u->widths == u->widths_end || *u->widths > 32 ||
        (size_t) (u->end - u->from) < FIELD__PACK_BYTES(*u->widths))
        return false;
    field__kernels_best()->unpack(u->from, *u->widths, values);
    u->from += FIELD__PACK_BYTES(*u->widths);
    u->widths++;
    return true;
}

static esdm_status
decode_bits(const field__volume *v, uint32_t axes, uint32_t *waiting, esdm__cursor *in,
            field__row_sink sink, void *user, esdm_error *err)
{
    size_t nx = (size_t) v->axes.nx;
    size_t groups = group_count(v->elements);
    const uint8_t *widths = esdm__cursor_take(in, groups);
    if (widths == NULL)
        return esdm__error_set(err, ESDM_ECORRUPT, "field: packed values are cut off");
    unpacker u = {.widths = widths, .widths_end = widths + groups, .from = widths + groups};
    u.end = u.from + esdm__cursor_left(in);
    size_t have = 0;
    size_t used = 0;
    for (size_t r = 0; r < v->rows; r++) {
        memmove(waiting, waiting + used, (have - used) * sizeof *waiting);
        have -= used;
        for (; have < nx; have += FIELD__PACK_VALUES) {
            if (!unpack_group(&u, waiting + have))
                return esdm__error_set(err, ESDM_ECORRUPT, "field: packed values are cut off");
        }
        restore(v, axes, r, waiting);
        used = nx;
        sink(user, v, r);
    }
    return ESDM_OK;
}

/* ---- byte planes ------------------------------------------------------------------------- */

static esdm_status
encode_planes(const field__volume *v, uint32_t axes, uint32_t *row, esdm__buffer *out,
              esdm_error *err)
{
    size_t nx = (size_t) v->axes.nx;
    size_t n = v->elements;
    uint8_t *planes = esdm__scratch_new(n * 4);
    esdm_status st = ESDM_OK;
    if (planes == NULL)
        return esdm__error_nomem(err, n * 4, "differences of a block");
    for (size_t r = 0; r < v->rows; r++) {
        uint8_t *to = planes + r * nx;
        uint8_t *const parts[4] = {to, to + n, to + 2 * n, to + 3 * n};
        difference(v, axes, r, row);
        field__kernels_best()->split_planes(row, nx, parts);
    }
    for (size_t k = 0; k < 4 && st == ESDM_OK; k++)
        st = field__bytes_encode(planes + k * n, n, 1, out, err);
    esdm__scratch_free(planes);
    return st;
}

static esdm_status
decode_planes(const field__volume *v, uint32_t axes, uint32_t *row, esdm__cursor *in,
              field__row_sink sink, void *user, esdm_error *err)
{
    size_t nx = (size_t) v->axes.nx;
    size_t n = v->elements;
    const uint8_t *parts[4];
    uint8_t *planes = esdm__scratch_new(n * 4);
    esdm_status st =
        planes == NULL ? esdm__error_nomem(err, n * 4, "differences of a block") : ESDM_OK;
    for (size_t k = 0; k < 4 && st == ESDM_OK; k++)
        st = field__bytes_view(planes + k * n, n, in, &parts[k], err);
    for (size_t r = 0; r < v->rows && st == ESDM_OK; r++) {
        field__kernels_best()->join_planes(parts, nx, row);
        for (size_t k = 0; k < 4; k++)
            parts[k] += nx;
        restore(v, axes, r, row);
        sink(user, v, r);
    }
    esdm__scratch_free(planes);
    return st;
}

/* ---- both --------------------------------------------------------------------------------- */

static uint32_t *
waiting_new(const field__volume *v, esdm_error *err)
{
    size_t bytes = ((size_t) v->axes.nx + 2 * FIELD__PACK_VALUES) * sizeof(uint32_t);
    uint32_t *waiting = malloc(bytes);
    if (waiting == NULL)
        (void) esdm__error_nomem(err, bytes, "a row of differences");
    return waiting;
}

esdm_status
field__pack_encode(const field__volume *volume, esdm__buffer *out, uint32_t *ret_axes,
                   esdm_error *err)
{
    uint32_t *waiting = waiting_new(volume, err);
    if (waiting == NULL)
        return ESDM_ENOMEM;
    uint32_t axes = choose_axes(volume, waiting);
    esdm__buffer_put_u8(out, (uint8_t) axes);
    esdm__buffer_put_u8(out, FIELD__PACK_PLANES);
    esdm_status st = encode_planes(volume, axes, waiting, out, err);
    free(waiting);
    *ret_axes = axes;
    return st;
}

esdm_status
field__pack_decode(const field__volume *volume, esdm__cursor *in, field__row_sink sink, void *user,
                   esdm_error *err)
{
    uint8_t axes = esdm__cursor_u8(in);
    uint8_t method = esdm__cursor_u8(in);
    if (in->failed || volume->wide || axes > 3 || method > FIELD__PACK_PLANES)
        return esdm__error_set(err, ESDM_ECORRUPT, "field: bad parameters of packed values");
    uint32_t *waiting = waiting_new(volume, err);
    if (waiting == NULL)
        return ESDM_ENOMEM;
    esdm_status st = method == FIELD__PACK_BITS
                         ? decode_bits(volume, axes, waiting, in, sink, user, err)
                         : decode_planes(volume, axes, waiting, in, sink, user, err);
    free(waiting);
    return st;
}
