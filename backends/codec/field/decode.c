/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file From a stored block to numbers. Trusts nothing in it. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/scratch.h"
#include "encode.h"

typedef struct head {
    bool parts;  /* the block is in parts */
    bool nudged; /* some of its elements are */
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
    if (!in->failed && version > FIELD__VERSION_NUDGED)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "field: a block of format %u; this version reads up to %u", version,
                               FIELD__VERSION_NUDGED);
    h->nudged = version == FIELD__VERSION_NUDGED;
    h->parts = version == FIELD__VERSION_PARTS;
    if (h->nudged) {
        h->parts = (h->flags & FIELD__FLAG_PARTS) != 0;
        h->flags = (uint8_t) (h->flags & ~FIELD__FLAG_PARTS);
    }
    if (in->failed || version == 0 || coder >= FIELD__CODERS || stored_kind != kind ||
        (h->nudged && coder != FIELD__CODER_LEVELS) ||
        (h->flags & ~(FIELD__FLAG_MASK | FIELD__FLAG_WIDE | FIELD__FLAG_ONE)) != 0)
        return esdm__error_set(err, ESDM_ECORRUPT, "field: the head of a block is damaged");
    if ((h->flags & FIELD__FLAG_WIDE) != 0 &&
        field__kind_bytes(kind) < 4) /* all codes fit 32 bits */
        return esdm__error_set(err, ESDM_ECORRUPT, "field: the head of a block is damaged");
    if (h->parts && ((coder != FIELD__CODER_ROWS && coder != FIELD__CODER_LEVELS &&
                      coder != FIELD__CODER_LORENZO) ||
                     (h->flags & ~FIELD__FLAG_WIDE) != 0))
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

/* A block, or a part of one, that is decoded. */
typedef struct piece {
    field__kind kind;
    field__coder coder;
    uint8_t flags;
    field__axes axes;
    size_t elements;
    const field__parts *parts; /* NULL: the block */
    field__part part;
} piece;

/* Elements of the block before a row of the piece. */
static size_t
row_start(const piece *p, size_t r)
{
    return p->parts != NULL ? field__part_row(p->parts, &p->part, r) : r * (size_t) p->axes.nx;
}

/* Puts elements into raw where the mask is, `one` of them everywhere; returns how many. */
static size_t
put_specials(const uint8_t *mask, size_t elements, const uint8_t *special, bool one, size_t size,
             uint8_t *raw)
{
    const uint8_t *from = special;
    size_t count = 0;
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
        count += mask[i] ? end - i : 0;
        i = end;
    }
    return count;
}

/* The same of rows that lie apart. */
static void
spread_specials(const piece *p, const uint8_t *mask, const uint8_t *special, bool one, uint8_t *raw)
{
    size_t size = field__kind_bytes(p->kind);
    size_t nx = (size_t) p->axes.nx;
    if (p->parts == NULL) {
        (void) put_specials(mask, p->elements, special, one, size, raw);
        return;
    }
    for (size_t r = 0; r * nx < p->elements; r++) {
        size_t count =
            put_specials(mask + r * nx, nx, special, one, size, raw + row_start(p, r) * size);
        special += one ? 0 : count * size;
    }
}

/* The mask, and the elements under it put into raw. */
static esdm_status
get_specials(const piece *p, uint8_t *mask, uint8_t *raw, esdm__cursor *in, esdm_error *err)
{
    esdm_status st = field__mask_decode(mask, &p->axes, in, err);
    if (st != ESDM_OK)
        return st;
    size_t size = field__kind_bytes(p->kind);
    if ((p->flags & FIELD__FLAG_ONE) != 0) {
        const uint8_t *one = esdm__cursor_take(in, size);
        if (one == NULL)
            return esdm__error_set(err, ESDM_ECORRUPT, "field: special values are cut off");
        spread_specials(p, mask, one, true, raw);
        return ESDM_OK;
    }
    size_t masked = 0;
    for (size_t i = 0; i < p->elements; i++)
        masked += mask[i];
    uint8_t *special = esdm__scratch_new(masked * size + 1);
    if (special == NULL)
        return esdm__error_nomem(err, masked * size, "special values");
    st = field__bytes_decode(special, masked * size, size, in, err);
    if (st == ESDM_OK)
        spread_specials(p, mask, special, false, raw);
    esdm__scratch_free(special);
    return st;
}

/* Where the values of rows go. */
typedef struct target {
    const piece *piece;
    const field__map *map;
    const field__volume *volume;
    uint8_t *raw;
    int64_t *codes; /* a row */
    uint8_t *row;
    bool simple;   /* single precision, a multiple of a step */
    size_t nudged; /* so many elements of the block are */
    field__map half;
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
target_init(target *t, const piece *p, const field__map *map, const field__volume *volume,
            uint8_t *raw, esdm_error *err)
{
    size_t nx = (size_t) volume->axes.nx;
    *t = (target){.piece = p, .map = map, .volume = volume, .raw = raw};
    /* Products of what a hostile step gives may be infinite, which is a value like others. */
    t->simple = map->kind == FIELD__MAP_GRID && map->type == FIELD__FLOAT32 && map->base == 0 &&
                map->divisor == 1 && !volume->wide && ((uintptr_t) raw & 3) == 0 &&
                map->origin > -(INT64_C(1) << 52) && map->origin < INT64_C(1) << 52;
    t->pieces = map->kind == FIELD__MAP_PIECES && !volume->wide && ((uintptr_t) raw & 3) == 0;
    t->ordered = map->kind == FIELD__MAP_ORDERED && map->type == FIELD__FLOAT32 && !volume->wide &&
                 ((uintptr_t) raw & 3) == 0;
    t->nudged = field__map_nudge(map, &t->half);
    t->codes = malloc(nx * sizeof *t->codes);
    t->row = malloc(nx * field__kind_bytes(map->type));
    if (t->codes != NULL && t->row != NULL)
        return ESDM_OK;
    target_clear(t);
    return esdm__error_nomem(err, nx * 16, "a row of values");
}

/* The values of a row's points that are nudged. */
static void
nudge_row(const target *t, const field__volume *volume, size_t r, uint8_t *values)
{
    size_t nx = (size_t) volume->axes.nx;
    size_t start = row_start(t->piece, r);
    size_t count = start >= t->nudged ? 0 : t->nudged - start < nx ? t->nudged - start : nx;
    for (size_t x = 0; x < count; x++) {
        uint64_t code =
            (uint64_t) (volume->wide ? field__row64(volume, r)[x] : field__row32(volume, r)[x]);
        t->codes[x] = field__map_nudged_code(t->map, (int64_t) (code + (uint64_t) t->map->origin));
    }
    field__map_decode(&t->half, t->codes, 0, count, values);
}

/* Values of a row's points that are coded; the others stay. */
static void
put_row(void *user, const field__volume *volume, size_t r)
{
    const target *t = user;
    size_t nx = (size_t) volume->axes.nx;
    size_t size = field__kind_bytes(t->map->type);
    uint8_t *to = t->raw + row_start(t->piece, r) * size;
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
        field__kernels_best()->code_patterns(field__row32(volume, r), nx, (uint32_t) t->map->origin,
                                             (uint32_t *) (void *) values);
    } else {
        for (size_t x = 0; x < nx; x++)
            t->codes[x] = volume->wide ? field__row64(volume, r)[x] : field__row32(volume, r)[x];
        field__map_decode(t->map, t->codes, 0, nx, values);
    }
    if (t->nudged > 0)
        nudge_row(t, volume, r, values);
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

/* A piece whose mask is read and whose codes come next. */
typedef struct opened {
    piece piece;
    esdm__cursor in;
    field__volume volume; /* rows 0: there are no codes */
    target target;
} opened;

static void
piece_close(opened *o)
{
    target_clear(&o->target);
    field__volume_clear(&o->volume);
}

/* Behind the map: mask, special values, codes. The piece is to be closed in any case. */
static esdm_status
piece_open(opened *o, const field__map *map, uint8_t *raw, esdm_error *err)
{
    const piece *p = &o->piece;
    uint8_t *mask = NULL;
    esdm_status st = ESDM_OK;
    memset(&o->volume, 0, sizeof o->volume);
    memset(&o->target, 0, sizeof o->target);
    if ((p->flags & FIELD__FLAG_MASK) != 0) {
        mask = esdm__scratch_new(p->elements);
        st = mask == NULL ? esdm__error_nomem(err, p->elements, "a mask")
                          : get_specials(p, mask, raw, &o->in, err);
    }
    bool all = st == ESDM_OK && mask != NULL && memchr(mask, 0, p->elements) == NULL;
    if (st == ESDM_OK && p->coder == FIELD__CODER_NONE && !all)
        st = esdm__error_set(err, ESDM_ECORRUPT, "field: a block without values for some points");
    if (st == ESDM_OK && p->coder >= FIELD__CODER_ROWS && !(all && p->parts != NULL)) {
        st = field__volume_init(&o->volume, &p->axes, (p->flags & FIELD__FLAG_WIDE) != 0, err);
        o->volume.mask = mask;
        mask = NULL;
        if (st == ESDM_OK)
            st = target_init(&o->target, p, map, &o->volume, raw, err);
    }
    esdm__scratch_free(mask);
    return st;
}

/* Codes and values of one piece, or of two of the same axes. */
static esdm_status
decode_pieces(opened *o, size_t count, esdm_error *err)
{
    const field__volume *volumes[2] = {&o[0].volume, count > 1 ? &o[1].volume : NULL};
    esdm__cursor *ins[2] = {&o[0].in, count > 1 ? &o[1].in : NULL};
    esdm_status st = o[0].piece.coder == FIELD__CODER_ROWS
                         ? field__rows_decode(volumes, ins, count, err)
                         : field__levels_decode(volumes, ins, count, err);
    for (size_t i = 0; i < count; i++) {
        for (size_t r = 0; r < o[i].volume.rows && st == ESDM_OK; r++)
            put_row(&o[i].target, &o[i].volume, r);
    }
    return st;
}

/* Rows of values, as the coder completes them or at its end. */
static esdm_status
decode_opened(opened *o, esdm_error *err)
{
    if (o->volume.rows == 0)
        return ESDM_OK;
    if (o->piece.coder == FIELD__CODER_PACK)
        return field__pack_decode(&o->volume, &o->in, put_row, &o->target, err);
    if (o->piece.coder == FIELD__CODER_GROUPS)
        return field__groups_decode(&o->volume, &o->in, put_row, &o->target, err);
    if (o->piece.coder == FIELD__CODER_LORENZO)
        return field__lorenzo_decode(&o->volume, &o->in, put_row, &o->target, err);
    return decode_pieces(o, 1, err);
}

static bool
same_axes(const field__axes *a, const field__axes *b)
{
    return a->nb == b->nb && a->nz == b->nz && a->ny == b->ny && a->nx == b->nx;
}

static bool
go_together(const opened *a, const opened *b)
{
    return a->volume.rows > 0 && b->volume.rows > 0 && same_axes(&a->piece.axes, &b->piece.axes) &&
           (a->piece.coder == FIELD__CODER_ROWS || a->piece.coder == FIELD__CODER_LEVELS);
}

static esdm_status
open_part(opened *o, const head *h, const field__map *map, const field__parts *parts, size_t i,
          uint8_t *raw, esdm_error *err)
{
    piece p = {.kind = h->kind, .coder = h->coder, .parts = parts};
    p.part = field__parts_at(parts, i);
    p.axes = p.part.axes;
    p.elements = (size_t) (p.axes.nb * p.axes.nz * p.axes.ny * p.axes.nx);
    uint8_t flags = esdm__cursor_u8(&o->in);
    p.flags = (uint8_t) (flags | h->flags);
    o->piece = p;
    if (o->in.failed || (flags & ~(FIELD__FLAG_MASK | FIELD__FLAG_ONE)) != 0)
        return esdm__error_set(err, ESDM_ECORRUPT, "field: the head of a part is damaged");
    return piece_open(o, map, raw, err);
}

/* Parts that are decoded side by side: a second one waits for the first to be complete else. */
typedef struct pair {
    opened parts[2];
    size_t count;
} pair;

static esdm_status
pair_finish(pair *p, esdm_error *err)
{
    esdm_status st = ESDM_OK;
    bool together = p->count == 2 && go_together(&p->parts[0], &p->parts[1]);
    if (together)
        st = decode_pieces(p->parts, 2, err);
    for (size_t i = 0; i < p->count; i++) {
        if (st == ESDM_OK && !together)
            st = decode_opened(&p->parts[i], err);
        piece_close(&p->parts[i]);
    }
    p->count = 0;
    return st;
}

/* Of the parts those that are marked. */
static esdm_status
decode_marked(const head *h, const field__map *map, const field__parts *parts, const uint8_t *marks,
              uint8_t *raw, esdm__cursor *in, size_t *ret_elements, esdm_error *err)
{
    pair p = {.count = 0};
    uint64_t *bytes = malloc(parts->count * sizeof *bytes);
    esdm_status st = bytes != NULL ? ESDM_OK : esdm__error_nomem(err, parts->count * 8, "parts");
    for (size_t i = 0; i < parts->count && st == ESDM_OK; i++)
        bytes[i] = esdm__cursor_varint(in);
    *ret_elements = 0;
    for (size_t i = 0; i < parts->count && st == ESDM_OK; i++) {
        const uint8_t *from =
            bytes[i] <= esdm__cursor_left(in) ? esdm__cursor_take(in, (size_t) bytes[i]) : NULL;
        if (from == NULL || in->failed) {
            st = esdm__error_set(err, ESDM_ECORRUPT, "field: parts of a block are cut off");
        } else if (marks[i]) {
            opened *o = &p.parts[p.count++];
            *o = (opened){0};
            esdm__cursor_init(&o->in, from, (size_t) bytes[i]);
            st = open_part(o, h, map, parts, i, raw, err);
            *ret_elements += o->piece.elements;
            if (st == ESDM_OK && p.count == 2)
                st = pair_finish(&p, err);
        }
    }
    if (st == ESDM_OK)
        st = pair_finish(&p, err);
    for (size_t i = 0; i < p.count; i++)
        piece_close(&p.parts[i]);
    free(bytes);
    return st;
}

/* What is wanted of a block. */
typedef struct wish {
    const esdm_codec_range *ranges; /* of bytes; NULL: all */
    size_t count;
    size_t *decoded; /* elements that were */
} wish;

static void
mark_wanted(const head *h, const wish *wanted, const field__parts *parts, size_t elements,
            uint8_t *marks)
{
    size_t size = field__kind_bytes(h->kind);
    for (size_t i = 0; i < wanted->count; i++) {
        size_t to = wanted->ranges[i].to / size + (wanted->ranges[i].to % size != 0);
        field__parts_mark(parts, wanted->ranges[i].from / size, to < elements ? to : elements,
                          marks);
    }
}

static esdm_status
decode_parts(const head *h, const field__map *map, const wish *wanted, size_t elements,
             uint8_t *raw, esdm__cursor *in, esdm_error *err)
{
    field__parts parts;
    if (!field__parts_get(&h->axes, in, &parts))
        return esdm__error_set(err, ESDM_ECORRUPT, "field: the parts of a block are damaged");
    uint8_t *marks = calloc(parts.count, 1);
    if (marks == NULL)
        return esdm__error_nomem(err, parts.count, "parts");
    if (wanted->ranges != NULL)
        mark_wanted(h, wanted, &parts, elements, marks);
    else
        memset(marks, 1, parts.count);
    esdm_status st = decode_marked(h, map, &parts, marks, raw, in, wanted->decoded, err);
    free(marks);
    return st;
}

/* Behind the map. */
static bool
get_nudge(field__map *map, size_t elements, esdm__cursor *in)
{
    field__map half;
    map->nudged = esdm__cursor_svarint(in);
    return !in->failed && map->nudged != 0 &&
           (map->kind == FIELD__MAP_GRID || map->kind == FIELD__MAP_LOG) &&
           field__map_nudge(map, &half) <= elements;
}

static esdm_status
decode_codes(const head *h, const wish *wanted, size_t elements, uint8_t *raw, esdm__cursor *in,
             esdm_error *err)
{
    field__map map;
    esdm_status st = ESDM_OK;
    if (!field__map_get(&map, h->kind, in))
        return esdm__error_set(err, ESDM_ECORRUPT, "field: the map of a block is damaged");
    if (h->nudged && !get_nudge(&map, elements, in))
        st = esdm__error_set(err, ESDM_ECORRUPT, "field: the map of a block is damaged");
    if (st == ESDM_OK && map.kind == FIELD__MAP_PALETTE)
        st = field__palette_get(&map, elements, in, err);
    if (st == ESDM_OK && h->parts) {
        st = decode_parts(h, &map, wanted, elements, raw, in, err);
    } else if (st == ESDM_OK) {
        opened o = {.piece = {.kind = h->kind,
                              .coder = h->coder,
                              .flags = h->flags,
                              .axes = h->axes,
                              .elements = elements},
                    .in = *in};
        st = piece_open(&o, &map, raw, err);
        if (st == ESDM_OK)
            st = decode_opened(&o, err);
        piece_close(&o);
    }
    field__map_clear(&map);
    return st;
}

esdm_status
field__decode_some(int32_t type, size_t elements, const void *encoded, size_t encoded_bytes,
                   const esdm_codec_range *wanted, size_t count, void *raw, size_t *ret_elements,
                   esdm_error *err)
{
    const wish some = {.ranges = wanted, .count = count, .decoded = ret_elements};
    esdm__cursor in;
    head h;
    esdm__cursor_init(&in, encoded, encoded_bytes);
    field__kind kind = field__kind_of(type);
    esdm_status st = get_head(&h, kind, elements, &in, err);
    if (st != ESDM_OK)
        return st;
    size_t size = field__kind_bytes(kind);
    *ret_elements = elements;
    if (h.coder == FIELD__CODER_BYTES)
        return field__bytes_decode(raw, elements * size, size, &in, err);
    return decode_codes(&h, &some, elements, raw, &in, err);
}

esdm_status
field__decode(int32_t type, size_t elements, const void *encoded, size_t encoded_bytes, void *raw,
              esdm_error *err)
{
    size_t decoded;
    return field__decode_some(type, elements, encoded, encoded_bytes, NULL, 0, raw, &decoded, err);
}
