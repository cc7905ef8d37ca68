/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Compressors of other people behind one interface, for compare.py: each on one thread, with the
 * settings that its users choose. Those whose library was not there when this was built are
 * missing.
 */

#include "rivals.h"

#include <lz4.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "esdm/types.h"
#include "field.h"

#ifdef WITH_ZFP
#include <zfp.h>
#endif
#ifdef WITH_FPZIP
#include <fpzip.h>
#endif
#ifdef WITH_AEC
#include <libaec.h>
#endif

typedef struct rival {
    const char *name;
    rivals_kind kind;
    bool shaped; /* what it makes depends on the shape */
    bool shuffled;
    int level;
    /* Bytes; 0: failed. */
    size_t (*encode)(const struct rival *r, const rivals_block *b, const void *in, void *out,
                     size_t room);
    bool (*decode)(const struct rival *r, const rivals_block *b, const void *in, size_t bytes,
                   void *out);
} rival;

/* ---- bytes -------------------------------------------------------------------------------- */

static void
shuffle(const uint8_t *in, size_t n, uint8_t *out)
{
    for (size_t k = 0; k < 4; k++) {
        for (size_t i = 0; i < n; i++)
            out[k * n + i] = in[4 * i + k];
    }
}

static void
unshuffle(const uint8_t *in, size_t n, uint8_t *out)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < 4; k++)
            out[4 * i + k] = in[k * n + i];
    }
}

static size_t
lz4_encode(const rival *r, const rivals_block *b, const void *in, void *out, size_t room)
{
    (void) r;
    int n = LZ4_compress_default(in, out, (int) (b->elements * 4), (int) room);
    return n > 0 ? (size_t) n : 0;
}

static bool
lz4_decode(const rival *r, const rivals_block *b, const void *in, size_t bytes, void *out)
{
    (void) r;
    return LZ4_decompress_safe(in, out, (int) bytes, (int) (b->elements * 4)) ==
           (int) (b->elements * 4);
}

static size_t
zstd_encode(const rival *r, const rivals_block *b, const void *in, void *out, size_t room)
{
    size_t n = ZSTD_compress(out, room, in, b->elements * 4, r->level);
    return ZSTD_isError(n) ? 0 : n;
}

static bool
zstd_decode(const rival *r, const rivals_block *b, const void *in, size_t bytes, void *out)
{
    (void) r;
    return ZSTD_decompress(out, b->elements * 4, in, bytes) == b->elements * 4;
}

static size_t
zlib_encode(const rival *r, const rivals_block *b, const void *in, void *out, size_t room)
{
    uLongf n = room;
    return compress2(out, &n, in, b->elements * 4, r->level) == Z_OK ? n : 0;
}

static bool
zlib_decode(const rival *r, const rivals_block *b, const void *in, size_t bytes, void *out)
{
    (void) r;
    uLongf n = b->elements * 4;
    return uncompress(out, &n, in, bytes) == Z_OK && n == b->elements * 4;
}

/* ---- rounded to fewer bits ---------------------------------------------------------------- */

/* Keeps as many bits of the fraction as the relative bound needs, to nearest, ties to even. */
static size_t
bitround_encode(const rival *r, const rivals_block *b, const void *in, void *out, size_t room)
{
    const float *from = in;
    uint32_t *rounded = malloc(b->elements * 8);
    unsigned kept = 0;
    if (rounded == NULL)
        return 0;
    for (double half = 0.5; half > b->bound && kept < 23; half /= 2)
        kept++;
    unsigned drop = 23 - kept;
    for (size_t i = 0; i < b->elements; i++) {
        uint32_t bits;
        memcpy(&bits, &from[i], sizeof bits);
        bool keep = drop == 0 || (bits & 0x7f800000u) == 0x7f800000u ||
                    !(from[i] < 1e9f && from[i] > -1e9f);
        uint32_t half = keep ? 0 : (UINT32_C(1) << (drop - 1)) - 1 + (bits >> drop & 1);
        rounded[i] = keep ? bits : (bits + half) >> drop << drop;
    }
    uint8_t *planes = (uint8_t *) (rounded + b->elements);
    shuffle((const uint8_t *) rounded, b->elements, planes);
    size_t bytes = zstd_encode(r, b, planes, out, room);
    free(rounded);
    return bytes;
}

/* ---- numbers ------------------------------------------------------------------------------ */

#ifdef WITH_ZFP
static zfp_stream *
zfp_open(const rivals_block *b, void *memory, size_t bytes, void *values, zfp_field *ret_field)
{
    size_t n[4] = {0, 0, 0, 0};
    for (uint32_t i = 0; i < b->rank && i < 4; i++)
        n[i] = b->shape[b->rank - 1 - i];
    *ret_field = (zfp_field){
        .type = zfp_type_float, .nx = n[0], .ny = n[1], .nz = n[2], .nw = n[3], .data = values};
    zfp_stream *stream = zfp_stream_open(stream_open(memory, bytes));
    if (b->bound > 0)
        (void) zfp_stream_set_accuracy(stream, b->bound);
    else
        zfp_stream_set_reversible(stream);
    return stream;
}

static void
zfp_close(zfp_stream *stream)
{
    stream_close(zfp_stream_bit_stream(stream));
    zfp_stream_close(stream);
}

static size_t
zfp_encode(const rival *r, const rivals_block *b, const void *in, void *out, size_t room)
{
    zfp_field field;
    (void) r;
    zfp_stream *stream = zfp_open(b, out, room, (void *) (uintptr_t) in, &field);
    size_t bytes =
        zfp_stream_maximum_size(stream, &field) <= room ? zfp_compress(stream, &field) : 0;
    zfp_close(stream);
    return bytes;
}

static bool
zfp_decode(const rival *r, const rivals_block *b, const void *in, size_t bytes, void *out)
{
    zfp_field field;
    (void) r;
    zfp_stream *stream = zfp_open(b, (void *) (uintptr_t) in, bytes, out, &field);
    bool good = zfp_decompress(stream, &field) > 0;
    zfp_close(stream);
    return good;
}
#endif

#ifdef WITH_FPZIP
static void
fpzip_describe(FPZ *fpz, const rivals_block *b)
{
    uint64_t slow = 1;
    for (uint32_t i = 0; i + 3 < b->rank; i++)
        slow *= b->shape[i];
    fpz->type = FPZIP_TYPE_FLOAT;
    fpz->prec = 0;
    fpz->nx = (int) (b->rank > 0 ? b->shape[b->rank - 1] : 1);
    fpz->ny = (int) (b->rank > 1 ? b->shape[b->rank - 2] : 1);
    fpz->nz = (int) (b->rank > 2 ? b->shape[b->rank - 3] : 1);
    fpz->nf = (int) slow;
}

static size_t
fpzip_encode(const rival *r, const rivals_block *b, const void *in, void *out, size_t room)
{
    (void) r;
    FPZ *fpz = fpzip_write_to_buffer(out, room);
    fpzip_describe(fpz, b);
    size_t bytes = fpzip_write(fpz, in);
    fpzip_write_close(fpz);
    return bytes;
}

static bool
fpzip_decode(const rival *r, const rivals_block *b, const void *in, size_t bytes, void *out)
{
    (void) r, (void) bytes;
    FPZ *fpz = fpzip_read_from_buffer(in);
    fpzip_describe(fpz, b);
    bool good = fpzip_read(fpz, out) > 0;
    fpzip_read_close(fpz);
    return good;
}
#endif

#ifdef WITH_AEC
static struct aec_stream
aec_of(const void *in, size_t bytes, void *out, size_t room)
{
    return (struct aec_stream){.next_in = in,
                               .avail_in = bytes,
                               .next_out = out,
                               .avail_out = room,
                               .bits_per_sample = 32,
                               .block_size = 32,
                               .rsi = 128,
                               .flags = AEC_DATA_PREPROCESS};
}

static size_t
aec_encode_block(const rival *r, const rivals_block *b, const void *in, void *out, size_t room)
{
    (void) r;
    struct aec_stream s = aec_of(in, b->elements * 4, out, room);
    return aec_buffer_encode(&s) == AEC_OK ? s.total_out : 0;
}

static bool
aec_decode_block(const rival *r, const rivals_block *b, const void *in, size_t bytes, void *out)
{
    (void) r;
    struct aec_stream s = aec_of(in, bytes, out, b->elements * 4);
    return aec_buffer_decode(&s) == AEC_OK;
}
#endif

/* ---- ESDM's codec without the rest of ESDM -------------------------------------------------- */

extern const esdm_codec_plugin esdm_codec_field_plugin;

static size_t
field_encode(const rival *r, const rivals_block *b, const void *in, void *out, size_t room)
{
    size_t bytes = 0;
    const esdm_codec_accuracy accuracy = {
        .absolute = r->kind == RIVALS_ABSOLUTE ? b->bound : (double) INFINITY,
        .relative = r->kind == RIVALS_RELATIVE ? b->bound : (double) INFINITY,
        .exact_below = -(double) INFINITY,
        .exact_above = (double) INFINITY,
        .sum_bound = (double) INFINITY,
        .exact_values = &b->fill,
        .exact_count = b->fill != 0};
    const esdm_codec_input input = {.element_bytes = 4,
                                    .type = ESDM_TYPE_FLOAT32,
                                    .rank = b->rank,
                                    .shape = b->shape,
                                    .accuracy = r->kind == RIVALS_LOSSLESS ? NULL : &accuracy,
                                    .effort = (esdm_codec_effort) r->level};
    esdm_status st =
        esdm_codec_field_plugin.encode(&input, in, b->elements * 4, out, room, &bytes, NULL);
    return st == ESDM_OK ? bytes : 0;
}

static bool
field_decode(const rival *r, const rivals_block *b, const void *in, size_t bytes, void *out)
{
    const esdm_codec_input input = {
        .element_bytes = 4, .type = ESDM_TYPE_FLOAT32, .rank = b->rank, .shape = b->shape};
    (void) r;
    return esdm_codec_field_plugin.decode(&input, in, bytes, out, b->elements * 4, NULL) == ESDM_OK;
}

/* ---- the table ---------------------------------------------------------------------------- */

static const rival rivals[] = {
    {"lz4", RIVALS_LOSSLESS, false, false, 0, lz4_encode, lz4_decode},
    {"shuffle+lz4", RIVALS_LOSSLESS, false, true, 0, lz4_encode, lz4_decode},
    {"zstd-3", RIVALS_LOSSLESS, false, false, 3, zstd_encode, zstd_decode},
    {"shuffle+zstd-1", RIVALS_LOSSLESS, false, true, 1, zstd_encode, zstd_decode},
    {"shuffle+zstd-3", RIVALS_LOSSLESS, false, true, 3, zstd_encode, zstd_decode},
    {"shuffle+zlib-4", RIVALS_LOSSLESS, false, true, 4, zlib_encode, zlib_decode},
    {"bitround+shuffle+zstd-3", RIVALS_RELATIVE, false, false, 3, bitround_encode, zstd_decode},
    {"field fast", RIVALS_LOSSLESS, false, false, ESDM_EFFORT_FAST, field_encode, field_decode},
    {"field balanced", RIVALS_LOSSLESS, false, false, ESDM_EFFORT_BALANCED, field_encode,
     field_decode},
    {"field archive", RIVALS_LOSSLESS, false, false, ESDM_EFFORT_ARCHIVE, field_encode,
     field_decode},
    {"field fast", RIVALS_ABSOLUTE, false, false, ESDM_EFFORT_FAST, field_encode, field_decode},
    {"field balanced", RIVALS_ABSOLUTE, false, false, ESDM_EFFORT_BALANCED, field_encode,
     field_decode},
    {"field archive", RIVALS_ABSOLUTE, false, false, ESDM_EFFORT_ARCHIVE, field_encode,
     field_decode},
    {"field fast", RIVALS_RELATIVE, false, false, ESDM_EFFORT_FAST, field_encode, field_decode},
    {"field balanced", RIVALS_RELATIVE, false, false, ESDM_EFFORT_BALANCED, field_encode,
     field_decode},
    {"field archive", RIVALS_RELATIVE, false, false, ESDM_EFFORT_ARCHIVE, field_encode,
     field_decode},
#ifdef WITH_ZFP
    {"zfp", RIVALS_LOSSLESS, true, false, 0, zfp_encode, zfp_decode},
    {"zfp", RIVALS_ABSOLUTE, true, false, 0, zfp_encode, zfp_decode},
#endif
#ifdef WITH_FPZIP
    {"fpzip", RIVALS_LOSSLESS, true, false, 0, fpzip_encode, fpzip_decode},
#endif
#ifdef WITH_AEC
    {"libaec", RIVALS_LOSSLESS, false, false, 0, aec_encode_block, aec_decode_block},
#endif
};
#define NRIVALS (sizeof rivals / sizeof rivals[0])

const char *
rivals_name(size_t which)
{
    return which < NRIVALS ? rivals[which].name : NULL;
}

rivals_kind
rivals_kind_of(size_t which)
{
    return rivals[which].kind;
}

bool
rivals_is_shaped(size_t which)
{
    return rivals[which].shaped;
}

size_t
rivals_encode(size_t which, const rivals_block *block, const void *values, void *out, size_t room)
{
    const rival *r = &rivals[which];
    if (!r->shuffled)
        return r->encode(r, block, values, out, room);
    uint8_t *planes = malloc(block->elements * 4);
    if (planes == NULL)
        return 0;
    shuffle(values, block->elements, planes);
    size_t bytes = r->encode(r, block, planes, out, room);
    free(planes);
    return bytes;
}

bool
rivals_decode(size_t which, const rivals_block *block, const void *encoded, size_t bytes,
              void *values)
{
    const rival *r = &rivals[which];
    bool planar = r->shuffled || r->encode == bitround_encode;
    uint8_t *planes = planar ? malloc(block->elements * 4) : NULL;
    if (planar && planes == NULL)
        return false;
    bool good = r->decode(r, block, encoded, bytes, planar ? planes : values);
    if (good && planar)
        unshuffle(planes, block->elements, values);
    free(planes);
    return good;
}
