/* SPDX-License-Identifier: LGPL-3.0-or-later */

/*
 * Masks are coded by four neighbours in a row as one symbol. Its model is chosen by the same four
 * in the row before (and in the plane before), and by the points around. A row that equals the one
 * in the plane before, or else the row before, is one symbol.
 */

#include "mask.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "entropy.inc"

#define GROUP       4u
#define ROW_MODELS  4u
#define MASK_MODELS 4096u
#define TAIL_BYTES  16u

typedef struct mask_coder {
    field__cdf row[ROW_MODELS]; /* is the row a repetition? */
    field__cdf group[MASK_MODELS];
    field__cdf rough[256]; /* fewer contexts, which learn faster */
    uint8_t row_seen[ROW_MODELS];
    uint8_t group_seen[MASK_MODELS];
    uint8_t rough_seen[256];
} mask_coder;

static mask_coder *
mask_coder_new(void)
{
    mask_coder *coder = aligned_alloc(32, (sizeof *coder + 31) / 32 * 32);
    if (coder != NULL) {
        field__models_init(coder->row, coder->row_seen, ROW_MODELS);
        field__models_init(coder->group, coder->group_seen, MASK_MODELS);
        field__models_init(coder->rough, coder->rough_seen, 256);
    }
    return coder;
}

static uint32_t
point(const uint8_t *row, size_t nx, size_t x)
{
    return row != NULL && x < nx ? row[x] & 1u : 0;
}

/* Bits of four points, the first one highest; at once where all are there. */
static inline uint32_t
four(const uint8_t *row, size_t nx, size_t x)
{
    uint32_t bytes;
    if (row != NULL && x + 4 <= nx) {
        memcpy(&bytes, row + x, sizeof bytes);
        return (bytes & 0x01010101u) * 0x08040201u >> 24 & 15;
    }
    return point(row, nx, x) << 3 | point(row, nx, x + 1) << 2 | point(row, nx, x + 2) << 1 |
           point(row, nx, x + 3);
}

/* Contexts of groups from the left to the right: what the one before knows is not read again. */
typedef struct around {
    const uint8_t *north, *before;
    size_t nx;
    uint32_t four, next; /* of the row north of the group, and of the group behind it */
    uint32_t left;       /* the points before the group, the last one lowest */
    uint32_t north_west;
} around;

static around
around_row(const uint8_t *north, const uint8_t *before, size_t nx)
{
    return (around){.north = north,
                    .before = before,
                    .nx = nx,
                    .four = four(north, nx, 0),
                    .next = four(north, nx, GROUP),
                    .left = 3 * point(north, nx, 0),
                    .north_west = point(north, nx, 0)};
}

static inline __attribute__((always_inline)) uint32_t
context_at(const around *a, size_t x)
{
    uint32_t z = a->before != NULL ? four(a->before, a->nx, x) : a->next;
    uint32_t next = a->before != NULL ? point(a->before, a->nx, x + GROUP) : a->next >> 3;
    return (a->left & 1) << 7 | a->four << 3 | z >> 1 | (z & 1) << 11 | next << 10 |
           a->north_west << 9 | (a->left & 2) << 7;
}

/* The group at x is `bits`. */
static inline __attribute__((always_inline)) void
step_right(around *a, size_t x, uint32_t bits)
{
    a->north_west = a->four & 1;
    a->left = bits;
    a->four = a->next;
    a->next = four(a->north, a->nx, x + 2 * GROUP);
}

typedef struct mask_rows {
    size_t nx, ny, rows;
} mask_rows;

static mask_rows
mask_rows_of(const field__axes *axes)
{
    return (mask_rows){.nx = (size_t) axes->nx,
                       .ny = (size_t) axes->ny,
                       .rows = (size_t) (axes->ny * axes->nz * axes->nb)};
}

/* The row in the plane before and the row before; each NULL where there is none. */
static const uint8_t *
rows_before(const uint8_t *mask, const mask_rows *m, size_t r, const uint8_t **ret_north)
{
    *ret_north = r % m->ny > 0 ? mask + (r - 1) * m->nx : NULL;
    return r >= m->ny ? mask + (r - m->ny) * m->nx : NULL;
}

static void
encode_mask_row(field__sink *sink, mask_coder *coder, const uint8_t *row, const uint8_t *north,
                const uint8_t *before, size_t nx)
{
    const uint8_t *same = before != NULL ? before : north;
    bool repeated = same != NULL ? memcmp(row, same, nx) == 0 : memchr(row, 1, nx) == NULL;
    uint32_t model = before != NULL ? 0 : 1;
    put_mixed(sink, &coder->row[model], &coder->row_seen[model], &coder->row[2],
              &coder->row_seen[2], repeated ? 0 : 1);
    around a = around_row(north, before, nx);
    for (size_t x = 0; !repeated && x < nx; x += GROUP) {
        uint32_t c = context_at(&a, x);
        uint32_t bits = four(row, nx, x);
        put_mixed(sink, &coder->group[c], &coder->group_seen[c], &coder->rough[c & 255],
                  &coder->rough_seen[c & 255], bits);
        step_right(&a, x, bits);
    }
}

static void
decode_mask_row(field__source *source, mask_coder *coder, uint8_t *row, const uint8_t *north,
                const uint8_t *before, size_t nx)
{
    const uint8_t *same = before != NULL ? before : north;
    uint32_t model = before != NULL ? 0 : 1;
    uint32_t different = get_mixed(source, source, &coder->row[model], &coder->row_seen[model],
                                   &coder->row[2], &coder->row_seen[2]);
    if (different == 0) {
        if (same != NULL)
            memcpy(row, same, nx);
        else
            memset(row, 0, nx);
        return;
    }
    around a = around_row(north, before, nx);
    for (size_t x = 0; x < nx; x += GROUP) {
        uint32_t c = context_at(&a, x);
        uint32_t bits = get_mixed(source, source, &coder->group[c], &coder->group_seen[c],
                                  &coder->rough[c & 255], &coder->rough_seen[c & 255]);
        uint32_t points =
            (bits >> 3 & 1) | (bits >> 2 & 1) << 8 | (bits >> 1 & 1) << 16 | (bits & 1) << 24;
        if (x + GROUP <= nx)
            memcpy(row + x, &points, GROUP);
        else
            memcpy(row + x, &points, nx - x);
        step_right(&a, x, bits);
    }
}

esdm_status
field__mask_encode(const uint8_t *mask, const field__axes *axes, esdm__buffer *out, esdm_error *err)
{
    mask_rows m = mask_rows_of(axes);
    size_t most = m.rows * (m.nx / GROUP + 2);
    mask_coder *coder = mask_coder_new();
    field__sink sink = {.symbols = malloc(most * sizeof *sink.symbols)};
    uint8_t *words = malloc(most * 2 + TAIL_BYTES);
    esdm_status st = ESDM_OK;
    if (coder == NULL || sink.symbols == NULL || words == NULL) {
        st = esdm__error_nomem(err, most * 6, "a mask");
    } else {
        for (size_t r = 0; r < m.rows; r++) {
            const uint8_t *north;
            const uint8_t *before = rows_before(mask, &m, r, &north);
            encode_mask_row(&sink, coder, mask + r * m.nx, north, before, m.nx);
        }
        uint8_t *end = words + most * 2 + TAIL_BYTES;
        const uint8_t *start = finish(&sink, end);
        esdm__buffer_put_varint(out, (size_t) (end - start));
        esdm__buffer_put(out, start, (size_t) (end - start));
        if (out->failed)
            st = esdm__error_nomem(err, (size_t) (end - start), "a mask");
    }
    free(coder);
    free(sink.symbols);
    free(words);
    return st;
}

esdm_status
field__mask_decode(uint8_t *mask, const field__axes *axes, esdm__cursor *in, esdm_error *err)
{
    mask_rows m = mask_rows_of(axes);
    uint64_t bytes = esdm__cursor_varint(in);
    field__source source = {0};
    if (bytes < sizeof source.state || bytes > esdm__cursor_left(in))
        return esdm__error_set(err, ESDM_ECORRUPT, "field: a mask is cut off");
    mask_coder *coder = mask_coder_new();
    if (coder == NULL)
        return esdm__error_nomem(err, sizeof *coder, "a mask");
    const uint8_t *words = esdm__cursor_take(in, (size_t) bytes);
    memcpy(source.state, words, sizeof source.state);
    source.words = words + sizeof source.state;
    source.words_end = words + bytes;
    for (size_t r = 0; r < m.rows && !source.overrun; r++) {
        const uint8_t *north;
        const uint8_t *before = rows_before(mask, &m, r, &north);
        decode_mask_row(&source, coder, mask + r * m.nx, north, before, m.nx);
    }
    free(coder);
    return source.overrun ? esdm__error_set(err, ESDM_ECORRUPT, "field: a mask ends too early")
                          : ESDM_OK;
}
