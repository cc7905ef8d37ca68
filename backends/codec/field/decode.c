/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file From a stored block to numbers. Trusts nothing in it. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/scratch.h"
#include "encode.h"

typedef struct head {
    field__kind kind;
    field__coder coder;
    uint8_t flags;
    field__axes axes;
} head;

static esdm_status
get_head(head *h, field__kind kind, size_t elements, esdm__cursor *in, esdm_error *err)
{
    uint8_t version = esdm__cursor_u8(in);
    uint8_t stored_kind = esdm__cursor_u8(in);
    uint8_t coder = esdm__cursor_u8(in);
    h->flags = esdm__cursor_u8(in);
    if (!in->failed && version > FIELD__VERSION_LORENZO)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "field: a block of format %u; this version reads up to %u", version,
                               FIELD__VERSION_LORENZO);
    if (in->failed || version == 0 || coder >= FIELD__CODERS || stored_kind != kind ||
        (h->flags & ~(FIELD__FLAG_MASK | FIELD__FLAG_WIDE | FIELD__FLAG_ONE)) != 0)
        return esdm__error_set(err, ESDM_ECORRUPT, "field: the head of a block is damaged");
    if ((h->flags & FIELD__FLAG_WIDE) != 0 &&
        field__kind_bytes(kind) < 4) /* all codes fit 32 bits */
        return esdm__error_set(err, ESDM_ECORRUPT, "field: the head of a block is damaged");
    h->kind = kind;
    h->coder = (field__coder) coder;
    if (coder == FIELD__CODER_BYTES)
        return ESDM_OK;
    h->axes.nb = esdm__cursor_varint(in);
    h->axes.nz = esdm__cursor_varint(in);
    h->axes.ny = esdm__cursor_varint(in);
    h->axes.nx = esdm__cursor_varint(in);
    if (in->failed || !field__axes_valid(&h->axes, elements))
        return esdm__error_set(err, ESDM_ECORRUPT, "field: a block's shape is not of %zu elements",
                               elements);
    return ESDM_OK;
}

/* Puts elements into raw where the mask is; `one` of them everywhere. */
static void
put_specials(const uint8_t *mask, size_t elements, const uint8_t *special, bool one, size_t size,
             uint8_t *raw)
{
    const uint8_t *from = special;
    for (size_t i = 0; i < elements;) {
        const uint8_t *next = memchr(mask + i, mask[i] ? 0 : 1, elements - i);
        size_t end = next != NULL ? (size_t) (next - mask) : elements;
        size_t bytes = (end - i) * size;
        if (mask[i] && one) {
            for (size_t k = i; k < end; k++)
                memcpy(raw + k * size, special, size);
        } else if (mask[i]) {
            memcpy(raw + i * size, from, bytes);
            from += bytes;
        }
        i = end;
    }
}

/* The mask, and the elements under it put into raw. */
static esdm_status
get_specials(const head *h, size_t elements, uint8_t *mask, uint8_t *raw, esdm__cursor *in,
             esdm_error *err)
{
    esdm_status st = field__mask_decode(mask, &h->axes, in, err);
    if (st != ESDM_OK)
        return st;
    size_t size = field__kind_bytes(h->kind);
    if ((h->flags & FIELD__FLAG_ONE) != 0) {
        const uint8_t *one = esdm__cursor_take(in, size);
        if (one == NULL)
            return esdm__error_set(err, ESDM_ECORRUPT, "field: special values are cut off");
        put_specials(mask, elements, one, true, size, raw);
        return ESDM_OK;
    }
    size_t masked = 0;
    for (size_t i = 0; i < elements; i++)
        masked += mask[i];
    uint8_t *special = esdm__scratch_new(masked * size + 1);
    if (special == NULL)
        return esdm__error_nomem(err, masked * size, "special values");
    st = field__bytes_decode(special, masked * size, size, in, err);
    if (st == ESDM_OK)
        put_specials(mask, elements, special, false, size, raw);
    esdm__scratch_free(special);
    return st;
}

/* Where the values of rows go. */
typedef struct target {
    const field__map *map;
    const field__volume *volume;
    uint8_t *raw;
    int64_t *codes; /* a row */
    uint8_t *row;
    bool simple;  /* single precision, a multiple of a step */
    bool pieces;  /* codes of pieces */
    bool ordered; /* single precision, the codes are the patterns in order */
} target;

static void
target_clear(target *t)
{
    free(t->codes);
    free(t->row);
}

static esdm_status
target_init(target *t, const field__map *map, const field__volume *volume, uint8_t *raw,
            esdm_error *err)
{
    size_t nx = (size_t) volume->axes.nx;
    *t = (target){.map = map, .volume = volume, .raw = raw};
    /* Products of what a hostile step gives may be infinite, which is a value like others. */
    t->simple = map->kind == FIELD__MAP_GRID && map->type == FIELD__FLOAT32 && map->base == 0 &&
                map->divisor == 1 && !volume->wide && ((uintptr_t) raw & 3) == 0 &&
                map->origin > -(INT64_C(1) << 52) && map->origin < INT64_C(1) << 52;
    t->pieces = map->kind == FIELD__MAP_PIECES && !volume->wide && ((uintptr_t) raw & 3) == 0;
    t->ordered = map->kind == FIELD__MAP_ORDERED && map->type == FIELD__FLOAT32 &&
                 map->origin == 0 && !volume->wide && ((uintptr_t) raw & 3) == 0;
    t->codes = malloc(nx * sizeof *t->codes);
    t->row = malloc(nx * field__kind_bytes(map->type));
    if (t->codes != NULL && t->row != NULL)
        return ESDM_OK;
    target_clear(t);
    return esdm__error_nomem(err, nx * 16, "a row of values");
}

/* Values of a row's points that are coded; the others stay. */
static void
put_row(void *user, const field__volume *volume, size_t r)
{
    const target *t = user;
    size_t nx = (size_t) volume->axes.nx;
    size_t size = field__kind_bytes(t->map->type);
    uint8_t *to = t->raw + r * nx * size;
    const uint8_t *mask = volume->mask != NULL ? volume->mask + r * nx : NULL;
    bool some = mask != NULL && memchr(mask, 1, nx) != NULL;
    uint8_t *values = some ? t->row : to;
    if (t->simple) {
        field__kernels_best()->scale_codes(field__row32(volume, r), nx, t->map->multiplier,
                                           t->map->origin, (float *) (void *) values);
    } else if (t->pieces) {
        field__kernels_best()->piece_values(t->map->pieces, field__row32(volume, r), nx,
                                            (uint32_t) t->map->origin,
                                            (uint32_t *) (void *) values);
    } else if (t->ordered) {
        field__kernels_best()->order_patterns((const uint32_t *) field__row32(volume, r), nx,
                                              (int32_t *) (void *) values);
    } else {
        for (size_t x = 0; x < nx; x++)
            t->codes[x] = volume->wide ? field__row64(volume, r)[x] : field__row32(volume, r)[x];
        field__map_decode(t->map, t->codes, 0, nx, values);
    }
    if (some && size == 4 && ((uintptr_t) to & 3) == 0) {
        field__kernels_best()->blend((const uint32_t *) (const void *) values, mask, nx,
                                     (uint32_t *) (void *) to);
        return;
    }
    for (size_t x = 0; some && x < nx; x++) {
        if (!mask[x])
            memcpy(to + x * size, values + x * size, size);
    }
}

/* Rows of values, as the coder completes them or at its end. */
static esdm_status
decode_volume(const head *h, const field__map *map, const field__volume *volume, uint8_t *raw,
              esdm__cursor *in, esdm_error *err)
{
    target t;
    esdm_status st = target_init(&t, map, volume, raw, err);
    if (st != ESDM_OK)
        return st;
    if (h->coder == FIELD__CODER_PACK) {
        st = field__pack_decode(volume, in, put_row, &t, err);
    } else if (h->coder == FIELD__CODER_LORENZO) {
        st = field__lorenzo_decode(volume, in, put_row, &t, err);
    } else {
        st = h->coder == FIELD__CODER_ROWS ? field__rows_decode(volume, in, err)
                                           : field__levels_decode(volume, in, err);
        for (size_t r = 0; r < volume->rows && st == ESDM_OK; r++)
            put_row(&t, volume, r);
    }
    target_clear(&t);
    return st;
}

static esdm_status
decode_codes(const head *h, size_t elements, uint8_t *raw, esdm__cursor *in, esdm_error *err)
{
    field__map map;
    field__volume volume = {0};
    uint8_t *mask = NULL;
    esdm_status st = ESDM_OK;
    if (!field__map_get(&map, h->kind, in))
        return esdm__error_set(err, ESDM_ECORRUPT, "field: the map of a block is damaged");
    if (map.kind == FIELD__MAP_PALETTE)
        st = field__palette_get(&map, elements, in, err);
    if (st == ESDM_OK && (h->flags & FIELD__FLAG_MASK) != 0) {
        mask = esdm__scratch_new(elements);
        st = mask == NULL ? esdm__error_nomem(err, elements, "a mask")
                          : get_specials(h, elements, mask, raw, in, err);
    }
    if (st == ESDM_OK && h->coder == FIELD__CODER_NONE &&
        (mask == NULL || memchr(mask, 0, elements) != NULL))
        st = esdm__error_set(err, ESDM_ECORRUPT, "field: a block without values for some points");
    if (st == ESDM_OK && h->coder >= FIELD__CODER_ROWS) {
        st = field__volume_init(&volume, &h->axes, (h->flags & FIELD__FLAG_WIDE) != 0, err);
        volume.mask = mask;
        mask = NULL;
        if (st == ESDM_OK)
            st = decode_volume(h, &map, &volume, raw, in, err);
    }
    field__volume_clear(&volume);
    field__map_clear(&map);
    esdm__scratch_free(mask);
    return st;
}

esdm_status
field__decode(int32_t type, size_t elements, const void *encoded, size_t encoded_bytes, void *raw,
              esdm_error *err)
{
    esdm__cursor in;
    head h;
    esdm__cursor_init(&in, encoded, encoded_bytes);
    field__kind kind = field__kind_of(type);
    esdm_status st = get_head(&h, kind, elements, &in, err);
    if (st != ESDM_OK)
        return st;
    size_t size = field__kind_bytes(kind);
    if (h.coder == FIELD__CODER_BYTES)
        return field__bytes_decode(raw, elements * size, size, &in, err);
    return decode_codes(&h, elements, raw, &in, err);
}
