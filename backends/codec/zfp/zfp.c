/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Codec "zfp" (id 6): blocks of 4^d numbers, transformed, in bit planes, by libzfp.
 *
 * After the head (base/seal.h), whose variant is axes - 1, with 4 added where values were changed:
 * then the tolerance (f64) and the bytes (u32) of a list of exact points (points.h) with that list.
 * Then zfp's bytes, without its header. Little-endian.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zfp.h>

#include "base/axes.h"
#include "base/error.h"
#include "base/seal.h"
#include "esdm/types.h"
#include "points.h"

#define NAME       "zfp"
#define AXES_MAX   3u
#define LOSSY      4u
#define LOSSY_HEAD 12u
/* One in so many points may be listed. */
#define LISTED 8u
/* zfp's own figure of the longest encoding has no room for reading ahead. */
#define SLACK_BYTES 64u

/* A block as zfp sees it. */
typedef struct block {
    size_t bytes; /* of a number */
    size_t n;
    uint32_t axes;
    size_t length[AXES_MAX]; /* fastest first */
} block;

/* ---- shapes ------------------------------------------------------------------------------- */

/* false: not of a kind that zfp takes. */
static bool
is_number(const esdm_codec_input *input, size_t raw_bytes)
{
    size_t bytes = input->type == ESDM_TYPE_FLOAT32   ? sizeof(float)
                   : input->type == ESDM_TYPE_FLOAT64 ? sizeof(double)
                                                      : 0;
    return bytes > 0 && input->element_bytes == bytes && raw_bytes % bytes == 0;
}

/* At most `most` axes: those of one element do not count, the slowest ones are one. */
static block
block_of(const esdm_codec_input *input, size_t raw_bytes, uint32_t most)
{
    block b = {.bytes = input->element_bytes, .n = raw_bytes / input->element_bytes};
    b.axes = esdm__axes_join(input->rank, input->shape, b.n, most, b.length);
    return b;
}

/* ---- libzfp ------------------------------------------------------------------------------- */

/* zfp's stream over memory. */
typedef struct coder {
    zfp_stream *stream;
    bitstream *bits;
    zfp_field field;
    uint8_t *memory; /* owned; as long as any encoding of the block */
    size_t room;
} coder;

static void
coder_clear(coder *c)
{
    if (c->stream != NULL)
        zfp_stream_close(c->stream);
    if (c->bits != NULL)
        stream_close(c->bits);
    free(c->memory);
}

/* @param numbers aligned. @param tolerance 0: reversible. */
static esdm_status
coder_init(coder *c, const block *b, void *numbers, double tolerance, esdm_error *err)
{
    *c = (coder){.field = {.type = b->bytes == sizeof(float) ? zfp_type_float : zfp_type_double,
                           .nx = b->length[0],
                           .ny = b->length[1],
                           .nz = b->length[2],
                           .data = numbers},
                 .stream = zfp_stream_open(NULL)};
    if (c->stream == NULL)
        return esdm__error_nomem(err, sizeof *c->stream, NAME);
    if (tolerance > 0)
        (void) zfp_stream_set_accuracy(c->stream, tolerance);
    else
        zfp_stream_set_reversible(c->stream);
    c->room = zfp_stream_maximum_size(c->stream, &c->field);
    /* Two bytes for each block of 4^d numbers on top: damaged bytes make zfp read on. */
    size_t slack = SLACK_BYTES + 2 * (size_t) zfp_field_blocks(&c->field);
    c->memory = c->room > SIZE_MAX - slack ? NULL : calloc(1, c->room + slack);
    if (c->memory != NULL)
        c->bits = stream_open(c->memory, c->room + slack);
    if (c->bits == NULL) {
        coder_clear(c);
        return esdm__error_nomem(err, c->room, NAME);
    }
    zfp_stream_set_bit_stream(c->stream, c->bits);
    zfp_stream_rewind(c->stream);
    return ESDM_OK;
}

/* Bytes in *ret_bytes; the memory of `c`, to be cleared, holds them. `numbers` become what is
 * decoded of them. */
static esdm_status
run_coder(coder *c, const block *b, void *numbers, double tolerance, size_t *ret_bytes,
          esdm_error *err)
{
    esdm_status st = coder_init(c, b, numbers, tolerance, err);
    if (st != ESDM_OK)
        return st;
    *ret_bytes = zfp_compress(c->stream, &c->field);
    zfp_stream_rewind(c->stream);
    if (*ret_bytes > 0 && zfp_decompress(c->stream, &c->field) == 0)
        *ret_bytes = 0;
    return ESDM_OK;
}

/* ---- encoding ----------------------------------------------------------------------------- */

/* What encode() has in hand. */
typedef struct job {
    const esdm_codec_accuracy *accuracy; /* NULL: lossless */
    const uint8_t *raw;
    size_t raw_bytes;
    void *numbers; /* raw_bytes, aligned */
    uint8_t *out;
    size_t room;
    size_t best; /* bytes in `out`; 0: none yet */
} job;

/* The result becomes the best one if it is. */
static void
keep_if_smaller(job *j, const block *b, const coder *c, size_t coded_bytes, double tolerance,
                const esdm__buffer *list)
{
    size_t head = ESDM__SEAL_BYTES + (list != NULL ? LOSSY_HEAD + list->bytes : 0);
    size_t total = head + coded_bytes;
    if (coded_bytes == 0 || total >= j->raw_bytes || total > j->room ||
        (j->best > 0 && total >= j->best))
        return;
    esdm__seal_write(j->out, (uint8_t) (b->axes - 1 + (list != NULL ? LOSSY : 0)), total,
                     j->numbers, j->raw_bytes);
    if (list != NULL) {
        uint32_t bytes = (uint32_t) list->bytes;
        memcpy(j->out + ESDM__SEAL_BYTES, &tolerance, sizeof tolerance);
        memcpy(j->out + ESDM__SEAL_BYTES + sizeof tolerance, &bytes, sizeof bytes);
        if (bytes > 0)
            memcpy(j->out + ESDM__SEAL_BYTES + LOSSY_HEAD, list->data, bytes);
    }
    memcpy(j->out + head, c->memory, coded_bytes);
    j->best = total;
}

static esdm_status
try_lossless(job *j, const block *b, esdm_error *err)
{
    coder c;
    size_t bytes = 0;
    memcpy(j->numbers, j->raw, j->raw_bytes);
    esdm_status st = run_coder(&c, b, j->numbers, 0, &bytes, err);
    if (st != ESDM_OK)
        return st;
    if (memcmp(j->numbers, j->raw, j->raw_bytes) == 0)
        keep_if_smaller(j, b, &c, bytes, 0, NULL);
    coder_clear(&c);
    return ESDM_OK;
}

static esdm_status
try_lossy(job *j, const block *b, esdm_error *err)
{
    coder c;
    double tolerance = 0;
    size_t bytes = 0;
    if (!zfp__points_hide(j->accuracy, b->bytes, j->raw, j->numbers, b->n, &tolerance))
        return ESDM_OK;
    tolerance = fmin(tolerance, 0x1p1000); /* INFINITY: any value will do */
    esdm_status st = run_coder(&c, b, j->numbers, tolerance, &bytes, err);
    if (st != ESDM_OK)
        return st;
    esdm__buffer list;
    esdm__buffer_init(&list);
    if (bytes > 0 &&
        zfp__points_list(j->accuracy, b->bytes, j->raw, j->numbers, b->n, b->n, &list) &&
        list.bytes <= j->raw_bytes / LISTED + b->bytes && list.bytes <= UINT32_MAX)
        keep_if_smaller(j, b, &c, bytes, tolerance, &list);
    esdm__buffer_clear(&list);
    coder_clear(&c);
    return ESDM_OK;
}

/* As many axes as there are; with more effort also fewer, which fits some fields better. */
static esdm_status
try_all(job *j, const esdm_codec_input *input, bool lossy, esdm_error *err)
{
    esdm_status st = ESDM_OK;
    uint32_t last = 0;
    uint32_t least = input->effort >= ESDM_EFFORT_BALANCED ? 1 : AXES_MAX;
    for (uint32_t most = AXES_MAX; most >= least && most > 0 && st == ESDM_OK; most--) {
        block b = block_of(input, j->raw_bytes, most);
        if (b.axes == last)
            continue;
        last = b.axes;
        st = lossy ? try_lossy(j, &b, err) : try_lossless(j, &b, err);
    }
    return st;
}

static size_t
zfp_bound(size_t raw_bytes)
{
    return raw_bytes; /* longer ones are not kept */
}

static esdm_status
zfp_encode(const esdm_codec_input *input, const void *raw, size_t raw_bytes, void *out,
           size_t out_bytes, size_t *ret_bytes, esdm_error *err)
{
    *ret_bytes = 0;
    if (!is_number(input, raw_bytes))
        return ESDM_OK;
    job j = {.accuracy = input->accuracy,
             .raw = raw,
             .raw_bytes = raw_bytes,
             .numbers = malloc(raw_bytes),
             .out = out,
             .room = out_bytes};
    if (j.numbers == NULL)
        return esdm__error_nomem(err, raw_bytes, NAME);
    esdm_status st = ESDM_OK;
    if (j.accuracy != NULL)
        st = try_all(&j, input, true, err);
    if (st == ESDM_OK && j.best == 0)
        st = try_all(&j, input, false, err);
    free(j.numbers);
    if (st == ESDM_OK)
        *ret_bytes = j.best;
    return st;
}

/* ---- decoding ----------------------------------------------------------------------------- */

/* zfp's bytes to numbers, which are aligned. */
static esdm_status
decode_stream(const block *b, double tolerance, const uint8_t *from, size_t bytes, void *numbers,
              esdm_error *err)
{
    coder c;
    esdm_status st = coder_init(&c, b, numbers, tolerance, err);
    if (st != ESDM_OK)
        return st;
    if (bytes > c.room) {
        st = esdm__error_set(err, ESDM_ECORRUPT, NAME ": %zu bytes for at most %zu", bytes, c.room);
    } else {
        memcpy(c.memory, from, bytes);
        if (zfp_decompress(c.stream, &c.field) == 0)
            st = esdm__error_set(err, ESDM_ECORRUPT, NAME ": %zu bytes are not zfp's", bytes);
    }
    coder_clear(&c);
    return st;
}

static esdm_status
decode_numbers(const esdm_codec_input *input, const uint8_t *encoded, size_t encoded_bytes,
               void *numbers, size_t raw_bytes, esdm_error *err)
{
    uint8_t variant = 0;
    double tolerance = 0;
    uint32_t list_bytes = 0;
    esdm_status st = esdm__seal_read(NAME, encoded, encoded_bytes, &variant, err);
    if (st != ESDM_OK)
        return st;
    const uint8_t *from = encoded + ESDM__SEAL_BYTES;
    size_t left = encoded_bytes - ESDM__SEAL_BYTES;
    bool lossy = (variant & LOSSY) != 0;
    if (variant % LOSSY >= AXES_MAX || variant >= 2 * LOSSY)
        return esdm__error_set(err, ESDM_ENOTSUP, NAME ": variant %u is not known", variant);
    if (lossy) {
        if (left < LOSSY_HEAD)
            return esdm__error_set(err, ESDM_ECORRUPT, NAME ": %zu bytes, cut off", encoded_bytes);
        memcpy(&tolerance, from, sizeof tolerance);
        memcpy(&list_bytes, from + sizeof tolerance, sizeof list_bytes);
        from += LOSSY_HEAD;
        left -= LOSSY_HEAD;
        if (!(tolerance > 0 && isfinite(tolerance)) || list_bytes > left)
            return esdm__error_set(err, ESDM_ECORRUPT, NAME ": a damaged head");
    }
    block b = block_of(input, raw_bytes, variant % LOSSY + 1u);
    st = decode_stream(&b, tolerance, from + list_bytes, left - list_bytes, numbers, err);
    if (st == ESDM_OK && !zfp__points_apply(from, list_bytes, b.bytes, numbers, b.n))
        st = esdm__error_set(err, ESDM_ECORRUPT, NAME ": a damaged list of points");
    return st == ESDM_OK ? esdm__seal_check(NAME, encoded, numbers, raw_bytes, err) : st;
}

static esdm_status
zfp_decode(const esdm_codec_input *input, const void *encoded, size_t encoded_bytes, void *raw,
           size_t raw_bytes, esdm_error *err)
{
    if (raw_bytes == 0 || !is_number(input, raw_bytes))
        return esdm__error_set(err, ESDM_ECORRUPT, NAME ": %zu bytes of type %d", raw_bytes,
                               (int) input->type);
    void *aligned = (uintptr_t) raw % sizeof(double) == 0 ? raw : malloc(raw_bytes);
    if (aligned == NULL)
        return esdm__error_nomem(err, raw_bytes, NAME);
    esdm_status st = decode_numbers(input, encoded, encoded_bytes, aligned, raw_bytes, err);
    if (aligned != raw) {
        memcpy(raw, aligned, st == ESDM_OK ? raw_bytes : 0);
        free(aligned);
    }
    return st;
}

extern const esdm_codec_plugin esdm_codec_zfp_plugin;
const esdm_codec_plugin esdm_codec_zfp_plugin = {
    .base = {.abi = ESDM_PLUGIN_ABI,
             .table_bytes = sizeof(esdm_codec_plugin),
             .kind = ESDM_PLUGIN_CODEC,
             .name = NAME,
             .summary = "zfp for floating-point numbers, reversible or within a bound"},
    .id = 6,
    .bound = zfp_bound,
    .encode = zfp_encode,
    .decode = zfp_decode,
    .flags = ESDM_CODEC_LOSSY | ESDM_CODEC_SHAPED,
};

#ifdef ESDM_PLUGIN_LOADABLE
ESDM_API const esdm_plugin *esdm_plugin_entry(void);

const esdm_plugin *
esdm_plugin_entry(void)
{
    return &esdm_codec_zfp_plugin.base;
}
#endif
