/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The coder "lorenzo": rows of differences, and the streams that they become. */
#include "lorenzo.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/scratch.h"
#include "modes.h"
#include "tables.h"

/* ---- sizes of differences ----------------------------------------------------------------- */

/* Of all rows, with one element more on both sides; a row of zeros is behind the last one. */
typedef struct sizes {
    uint16_t *all; /* base/scratch.h */
    size_t stride;
    size_t rows;
} sizes;

static uint16_t *
sizes_row(const sizes *s, size_t r)
{
    return s->all + r * s->stride + 1;
}

static esdm_status
sizes_init(sizes *s, const field__volume *v, esdm_error *err)
{
    s->stride = (size_t) v->axes.nx + 2;
    s->rows = v->rows;
    size_t bytes = (s->rows + 1) * s->stride * sizeof *s->all;
    s->all = esdm__scratch_new(bytes);
    if (s->all == NULL)
        return esdm__error_nomem(err, bytes, "sizes of differences");
    memset(s->all + s->rows * s->stride, 0, s->stride * sizeof *s->all);
    return ESDM_OK;
}

static void
sizes_close(const sizes *s, size_t r, size_t nx)
{
    uint16_t *row = sizes_row(s, r);
    row[-1] = row[0];
    row[nx] = row[nx - 1];
}

/* Those of the row with these codes; NULL: zeros. */
static const uint16_t *
sizes_beside(const sizes *s, const field__volume *v, const int32_t *codes)
{
    return sizes_row(s,
                     codes != NULL ? (size_t) (codes - field__row32(v, 0)) / v->stride : s->rows);
}

/* What is missing is the nearest of what is there. */
static field__sizes
sizes_around(const sizes *s, const field__volume *v, size_t r)
{
    const void *all[FIELD__LINES];
    uint32_t class = field__volume_lines(v, r, all);
    bool has_z = (class & FIELD__HAS_Z) != 0;
    const void *n = field__modes_nearest(class, all);
    const void *z = has_z ? all[FIELD__Z] : n;
    const void *b = (class & FIELD__HAS_B) != 0 ? all[FIELD__B] : z;
    return (field__sizes){.n = sizes_beside(s, v, n),
                          .z = sizes_beside(s, v, z),
                          .zn = sizes_beside(s, v, has_z ? all[FIELD__ZN] : z),
                          .zs = sizes_beside(s, v, has_z ? all[FIELD__ZS] : z),
                          .b = sizes_beside(s, v, b)};
}

/* ---- encoding ----------------------------------------------------------------------------- */

typedef struct encoder {
    const field__volume *volume;
    sizes sizes;
    uint32_t *folded;  /* a row */
    uint8_t *tokens;   /* a row */
    uint8_t *levels;   /* a row */
    uint16_t *symbols; /* of all points that are coded */
    uint32_t *coded;   /* of each row: how many */
    uint8_t *raw;      /* raw bits */
    size_t raw_room;   /* bytes */
    size_t raw_bytes;  /* whole ones */
    uint64_t pending;  /* bits that are no whole byte yet */
    uint32_t npending;
    uint32_t *counts; /* of all symbols, COUNTED times: of every so manieth point */
} encoder;

/* Neighbours are often the same: what adds one to them does not wait for the one before. */
#define COUNTED 4u

static void
encoder_clear(encoder *e)
{
    esdm__scratch_free(e->sizes.all);
    free(e->folded);
    free(e->tokens);
    esdm__scratch_free(e->symbols);
    free(e->coded);
    free(e->raw);
    free(e->counts);
}

static esdm_status
encoder_init(encoder *e, const field__volume *v, esdm_error *err)
{
    size_t nx = (size_t) v->axes.nx;
    *e = (encoder){.volume = v};
    esdm_status st = sizes_init(&e->sizes, v, err);
    if (st != ESDM_OK)
        return st;
    e->folded = malloc((nx + 16) * sizeof *e->folded);
    e->tokens = malloc(2 * (nx + 16));
    e->symbols = esdm__scratch_new((v->elements + 16) * sizeof *e->symbols);
    e->coded = malloc(v->rows * sizeof *e->coded);
    e->counts = calloc((size_t) COUNTED * FIELD__SYMBOLS_OF_ROWS, sizeof *e->counts);
    if (e->folded != NULL && e->tokens != NULL && e->symbols != NULL && e->coded != NULL &&
        e->counts != NULL) {
        e->levels = e->tokens + nx + 16;
        return ESDM_OK;
    }
    return esdm__error_nomem(err, v->elements * 2, "tokens of a block");
}

/* Room for the raw bits of a row. */
static esdm_status
need_raw(encoder *e, size_t nx, esdm_error *err)
{
    size_t need = e->raw_bytes + nx * 4 + 16;
    if (need <= e->raw_room)
        return ESDM_OK;
    size_t room = need + need / 2;
    uint8_t *grown = realloc(e->raw, room);
    if (grown == NULL)
        return esdm__error_nomem(err, room, "bits of a block");
    e->raw = grown;
    e->raw_room = room;
    return ESDM_OK;
}

static inline void
put_raw(encoder *e, uint32_t token, uint32_t folded)
{
    uint32_t n = token < FIELD__SMALL ? 0 : token / 2 - 5;
    e->pending |= (uint64_t) (folded & ((UINT32_C(1) << n) - 1)) << e->npending;
    e->npending += n;
    memcpy(e->raw + e->raw_bytes, &e->pending, sizeof e->pending);
    e->raw_bytes += e->npending / 8;
    e->pending >>= e->npending & ~7u;
    e->npending &= 7;
}

/* Whether each of eight bytes has some of its upper bits set. */
static inline bool
all_large(uint64_t eight)
{
    eight |= eight >> 1;
    eight |= eight >> 2;
    return (eight & UINT64_C(0x1010101010101010)) == UINT64_C(0x1010101010101010);
}

/* Raw bits of a row; where few tokens have some, eight tokens are looked at at once. */
static void
put_row_bits(encoder *e, const uint8_t *tokens, size_t count)
{
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        uint64_t eight;
        memcpy(&eight, tokens + i, sizeof eight);
        eight &= UINT64_C(0xF0F0F0F0F0F0F0F0);
        if (all_large(eight)) {
            for (size_t k = 0; k < 8; k++)
                put_raw(e, tokens[i + k], e->folded[i + k]);
            continue;
        }
        while (eight != 0) {
            size_t k = (size_t) __builtin_ctzll(eight) / 8;
            eight &= ~(UINT64_C(0xFF) << (8 * k));
            put_raw(e, tokens[i + k], e->folded[i + k]);
        }
    }
    for (; i < count; i++) {
        if (tokens[i] >= FIELD__SMALL)
            put_raw(e, tokens[i], e->folded[i]);
    }
}

static void
count_symbols(uint32_t *counts, const uint16_t *symbols, size_t count)
{
    size_t i = 0;
    for (; i + COUNTED <= count; i += COUNTED) {
        for (size_t k = 0; k < COUNTED; k++)
            counts[k * FIELD__SYMBOLS_OF_ROWS + symbols[i + k]]++;
    }
    for (; i < count; i++)
        counts[symbols[i]]++;
}

static esdm_status
encode_row(encoder *e, uint32_t mode, size_t r, size_t first, esdm_error *err)
{
    const field__kernels *kernels = field__kernels_best();
    const field__volume *v = e->volume;
    size_t nx = (size_t) v->axes.nx;
    const uint8_t *mask = field__modes_mask(v, r);
    field__sizes around = sizes_around(&e->sizes, v, r);
    uint8_t *levels = e->levels;
    uint8_t *tokens = e->tokens;
    size_t count = nx;
    field__modes_differences(v, mode, r, nx, e->folded);
    kernels->find_levels(&around, nx, levels);
    uint32_t any = FIELD__SMALL;
    if (mask == NULL) {
        any = kernels->find_sizes(e->folded, nx, sizes_row(&e->sizes, r));
    } else {
        kernels->find_masked_sizes(e->folded, mask, around.n, nx, sizes_row(&e->sizes, r));
        count = kernels->leave_out_bytes(levels, mask, nx);
        (void) kernels->leave_out(e->folded, mask, nx);
    }
    sizes_close(&e->sizes, r, nx);
    e->coded[r] = (uint32_t) count;
    kernels->find_tokens(e->folded, count, tokens);
    kernels->join_symbols(levels, tokens, count, e->symbols + first);
    count_symbols(e->counts, e->symbols + first, count);
    if (any < FIELD__SMALL)
        return ESDM_OK;
    esdm_status st = need_raw(e, count, err);
    if (st == ESDM_OK)
        put_row_bits(e, tokens, count);
    return st;
}

/* Codes the tokens backwards; the words end at `end`. Returns their start. */
static uint8_t *
encode_tokens(const encoder *e, const field__tables *tables, size_t total, uint32_t *state,
              uint8_t *end)
{
    const field__kernels *kernels = field__kernels_best();
    field__token_code codes[FIELD__SYMBOLS_OF_ROWS];
    field__tables_codes(tables, codes);
    for (size_t i = 0; i < FIELD__STATES; i++)
        state[i] = FIELD__STATE_LEAST;
    for (size_t r = e->volume->rows; r-- > 0;) {
        total -= e->coded[r];
        end = kernels->encode_tokens(state, codes, e->symbols + total, e->coded[r], end);
    }
    return end;
}

static esdm_status
put_streams(encoder *e, const field__tables *tables, size_t total, esdm__buffer *out,
            esdm_error *err)
{
    static const uint8_t zeros[2 * FIELD__WORDS_ROOM] = {0};
    uint32_t state[FIELD__STATES];
    size_t room = 2 * (total + FIELD__WORDS_ROOM);
    uint8_t *words = esdm__scratch_new(room);
    if (words == NULL)
        return esdm__error_nomem(err, room, "an encoded block");
    const uint8_t *start = encode_tokens(e, tables, total, state, words + room);
    size_t words_bytes = (size_t) (words + room - start);
    size_t raw_bytes = e->raw_bytes + (e->npending > 0);
    esdm__buffer_put_varint(out, raw_bytes);
    esdm__buffer_put_varint(out, words_bytes / 2);
    if (raw_bytes > 0)
        esdm__buffer_put(out, e->raw, raw_bytes);
    esdm__buffer_put(out, zeros, 8);
    esdm__buffer_put(out, state, sizeof state);
    esdm__buffer_put(out, start, words_bytes);
    esdm__buffer_put(out, zeros, sizeof zeros);
    esdm__scratch_free(words);
    return out->failed ? esdm__error_nomem(err, raw_bytes + words_bytes, "an encoded block")
                       : ESDM_OK;
}

esdm_status
field__lorenzo_encode(const field__volume *volume, esdm__buffer *out, esdm_error *err)
{
    encoder e;
    field__tables tables;
    size_t total = 0;
    esdm_status st = encoder_init(&e, volume, err);
    if (st != ESDM_OK) {
        encoder_clear(&e);
        return st;
    }
    if (volume->mask != NULL)
        field__modes_fill(volume);
    uint32_t mode = field__modes_choose(volume, 1, e.folded);
    for (size_t r = 0; r < volume->rows && st == ESDM_OK; r++) {
        st = encode_row(&e, mode, r, total, err);
        total += e.coded[r];
    }
    for (size_t i = FIELD__SYMBOLS_OF_ROWS; i < (size_t) COUNTED * FIELD__SYMBOLS_OF_ROWS; i++)
        e.counts[i % FIELD__SYMBOLS_OF_ROWS] += e.counts[i];
    if (st == ESDM_OK) {
        field__tables_make((const field__counts *) e.counts, &tables);
        esdm__buffer_put_u8(out, (uint8_t) mode);
        field__tables_put(&tables, out);
        st = put_streams(&e, &tables, total, out, err);
    }
    encoder_clear(&e);
    return st;
}

/* ---- decoding ----------------------------------------------------------------------------- */

typedef struct decoder {
    const field__volume *volume;
    uint32_t mode;
    sizes sizes;
    uint32_t *slots;                /* of all tables */
    uint32_t tables[FIELD__LEVELS]; /* first slot of each level's */
    uint32_t *folded, *spread;      /* a row */
    uint32_t *places;               /* first slot of each point's table */
    uint8_t *levels, *tokens;       /* a row */
    field__states states;
    const uint8_t *raw;
    uint64_t at, raw_bits;
} decoder;

static void
decoder_clear(decoder *d)
{
    esdm__scratch_free(d->sizes.all);
    free(d->slots);
    free(d->folded);
    free(d->levels);
}

static esdm_status
decoder_init(decoder *d, const field__volume *v, const field__tables *tables, esdm_error *err)
{
    size_t nx = (size_t) v->axes.nx + 32;
    esdm_status st = sizes_init(&d->sizes, v, err);
    if (st != ESDM_OK)
        return st;
    d->slots = malloc((size_t) tables->count << FIELD__SUM_BITS << 2);
    d->folded = malloc(3 * nx * sizeof *d->folded);
    d->levels = malloc(2 * nx);
    if (d->slots == NULL || d->folded == NULL || d->levels == NULL)
        return esdm__error_nomem(err, nx * 14, "a row of differences");
    d->spread = d->folded + nx;
    d->places = d->spread + nx;
    d->tokens = d->levels + nx;
    field__tables_slots(tables, d->slots);
    for (size_t i = 0; i < FIELD__LEVELS; i++)
        d->tables[i] = (uint32_t) tables->table[i] << FIELD__SUM_BITS;
    return ESDM_OK;
}

static bool
open_streams(decoder *d, esdm__cursor *in)
{
    uint64_t raw_bytes = esdm__cursor_varint(in);
    uint64_t words = esdm__cursor_varint(in);
    size_t left = esdm__cursor_left(in);
    size_t rest = 8 + sizeof d->states.state + 2 * FIELD__WORDS_ROOM;
    if (in->failed || left < rest || raw_bytes > left - rest ||
        words > (left - rest - raw_bytes) / 2)
        return false;
    d->raw = esdm__cursor_take(in, (size_t) raw_bytes + 8);
    d->raw_bits = raw_bytes * 8;
    const uint8_t *states = esdm__cursor_take(in, sizeof d->states.state);
    d->states.word = esdm__cursor_take(in, 2 * ((size_t) words + FIELD__WORDS_ROOM));
    if (d->raw == NULL || states == NULL || d->states.word == NULL)
        return false;
    d->states.end = d->states.word + 2 * (words + FIELD__WORDS_ROOM);
    memcpy(d->states.state, states, sizeof d->states.state);
    for (size_t i = 0; i < FIELD__STATES; i++) {
        if (d->states.state[i] < FIELD__STATE_LEAST || d->states.state[i] > INT32_MAX)
            return false;
    }
    return true;
}

/* The differences of a row's coded points. */
static bool
decode_folded(decoder *d, size_t count)
{
    const field__kernels *kernels = field__kernels_best();
    kernels->decode_tokens(&d->states, d->slots, d->places, count, d->tokens);
    uint64_t raw = kernels->count_raw(d->tokens, count);
    if (d->states.word == NULL || raw > d->raw_bits - d->at)
        return false;
    d->at = kernels->join_tokens(d->tokens, count, d->raw, d->at, d->folded);
    return true;
}

static bool
decode_row(decoder *d, size_t r)
{
    const field__kernels *kernels = field__kernels_best();
    const field__volume *v = d->volume;
    size_t nx = (size_t) v->axes.nx;
    const uint8_t *mask = field__modes_mask(v, r);
    field__sizes around = sizes_around(&d->sizes, v, r);
    kernels->find_levels(&around, nx, d->levels);
    kernels->look_up(d->tables, d->levels, nx, d->places);
    size_t count = mask != NULL ? kernels->leave_out(d->places, mask, nx) : nx;
    if (!decode_folded(d, count))
        return false;
    field__near at = field__modes_near(v, d->mode, r);
    if (mask == NULL) {
        (void) kernels->find_sizes(d->folded, nx, sizes_row(&d->sizes, r));
        kernels->restore_row(d->folded, at.n, at.z, at.zn, nx, field__row32(v, r));
    } else {
        kernels->put_between(d->folded, mask, nx, d->spread);
        kernels->find_masked_sizes(d->spread, mask, around.n, nx, sizes_row(&d->sizes, r));
        kernels->restore_masked(d->spread, mask, field__modes_filling(v, r), at.n, at.z, at.zn, nx,
                                field__row32(v, r));
    }
    sizes_close(&d->sizes, r, nx);
    return true;
}

esdm_status
field__lorenzo_decode(const field__volume *volume, esdm__cursor *in, field__row_sink sink,
                      void *user, esdm_error *err)
{
    decoder d = {.volume = volume, .mode = esdm__cursor_u8(in)};
    field__tables tables;
    if (in->failed || volume->wide || d.mode < FIELD__MODE_X || d.mode >= FIELD__MODES ||
        !field__tables_get(&tables, in) || !open_streams(&d, in))
        return esdm__error_set(err, ESDM_ECORRUPT, "field: bad parameters of coded differences");
    esdm_status st = decoder_init(&d, volume, &tables, err);
    for (size_t r = 0; r < volume->rows && st == ESDM_OK; r++) {
        if (decode_row(&d, r))
            sink(user, volume, r);
        else
            st = esdm__error_set(err, ESDM_ECORRUPT, "field: coded differences are cut off");
    }
    decoder_clear(&d);
    return st;
}
