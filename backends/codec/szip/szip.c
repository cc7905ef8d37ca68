/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Codec "szip" (id 8): adaptive Golomb-Rice coding of differences, CCSDS 121.0-B, by libaec.
 *
 * After the head (base/seal.h) come libaec's bytes. Variant 0: samples are the elements of 1, 2 or
 * 4 bytes, else single bytes. Variant 1: samples are bytes, those of equal weight together, as the
 * szip filter of HDF5 has them.
 */

#include <libaec.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/seal.h"
#include "esdm/sys/codec.h"

#define NAME "szip"
/* What HDF5 and GRIB use. */
#define BLOCK_SAMPLES 32u
#define INTERVAL      128u

enum { ELEMENTS = 0, PLANES = 1, VARIANTS = 2 };

/* ---- bytes of equal weight ---------------------------------------------------------------- */

static void
split(const uint8_t *raw, size_t elements, size_t size, uint8_t *planes)
{
    for (size_t k = 0; k < size; k++) {
        for (size_t i = 0; i < elements; i++)
            planes[k * elements + i] = raw[i * size + k];
    }
}

static void
merge(const uint8_t *planes, size_t elements, size_t size, uint8_t *raw)
{
    for (size_t k = 0; k < size; k++) {
        for (size_t i = 0; i < elements; i++)
            raw[i * size + k] = planes[k * elements + i];
    }
}

/* ---- libaec ------------------------------------------------------------------------------- */

static size_t
element_of(const esdm_codec_input *input, size_t raw_bytes)
{
    size_t size = input->element_bytes;
    return size > 0 && raw_bytes % size == 0 ? size : 1;
}

static unsigned
sample_bits(int variant, size_t size)
{
    return variant == ELEMENTS && (size == 2 || size == 4) ? (unsigned) size * 8 : 8;
}

static struct aec_stream
stream_of(unsigned bits, const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes)
{
    return (struct aec_stream){.next_in = in,
                               .avail_in = in_bytes,
                               .next_out = out,
                               .avail_out = out_bytes,
                               .bits_per_sample = bits,
                               .block_size = BLOCK_SAMPLES,
                               .rsi = INTERVAL,
                               .flags = AEC_DATA_PREPROCESS};
}

/* Exactly raw_bytes come out, into `raw`; false: they do not. */
static bool
decode_stream(int variant, size_t size, const uint8_t *in, size_t in_bytes, uint8_t *raw,
              size_t raw_bytes, uint8_t *stage)
{
    uint8_t *out = variant == PLANES ? stage : raw;
    struct aec_stream s = stream_of(sample_bits(variant, size), in, in_bytes, out, raw_bytes);
    if (aec_buffer_decode(&s) != AEC_OK || s.total_out != raw_bytes)
        return false;
    if (variant == PLANES)
        merge(stage, raw_bytes / size, size, raw);
    return true;
}

/* Bytes written; 0: they do not fit, or libaec cannot give them back. @param stage, back: room for
 * raw_bytes each. */
static size_t
encode_stream(int variant, size_t size, const uint8_t *raw, size_t raw_bytes, uint8_t *out,
              size_t out_bytes, uint8_t *stage, uint8_t *back)
{
    if (variant == PLANES)
        split(raw, raw_bytes / size, size, stage);
    struct aec_stream s = stream_of(sample_bits(variant, size), variant == PLANES ? stage : raw,
                                    raw_bytes, out, out_bytes);
    if (aec_buffer_encode(&s) != AEC_OK || s.avail_in > 0 || s.total_out == 0 ||
        s.total_out >= out_bytes)
        return 0;
    if (!decode_stream(variant, size, out, s.total_out, back, raw_bytes, stage) ||
        memcmp(back, raw, raw_bytes) != 0)
        return 0;
    return s.total_out;
}

/* ---- codec -------------------------------------------------------------------------------- */

static size_t
szip_bound(size_t raw_bytes)
{
    return raw_bytes > SIZE_MAX - ESDM__SEAL_BYTES ? SIZE_MAX : raw_bytes + ESDM__SEAL_BYTES;
}

/* Which samples become shorter is told by trying; with little effort by experience. */
static bool
is_tried(int variant, size_t size, esdm_codec_effort effort)
{
    if (size != 4)
        return (variant == PLANES) == (size == 8);
    return effort >= ESDM_EFFORT_BALANCED || variant == ELEMENTS;
}

static esdm_status
szip_encode(const esdm_codec_input *input, const void *raw, size_t raw_bytes, void *out,
            size_t out_bytes, size_t *ret_bytes, esdm_error *err)
{
    size_t size = element_of(input, raw_bytes);
    size_t room = out_bytes < raw_bytes ? out_bytes : raw_bytes;
    *ret_bytes = 0;
    if (room <= ESDM__SEAL_BYTES)
        return ESDM_OK;
    room -= ESDM__SEAL_BYTES;
    /* In turn: samples, what comes back, what was encoded. */
    uint8_t *memory = raw_bytes > SIZE_MAX / 3 ? NULL : malloc(3 * raw_bytes);
    if (memory == NULL)
        return esdm__error_nomem(err, raw_bytes, NAME);
    size_t best = 0;
    for (int variant = 0; variant < VARIANTS; variant++) {
        uint8_t *encoded = memory + 2 * raw_bytes;
        if (!is_tried(variant, size, input->effort))
            continue;
        size_t bytes =
            encode_stream(variant, size, raw, raw_bytes, encoded, room, memory, memory + raw_bytes);
        if (bytes == 0 || (best > 0 && bytes >= best))
            continue;
        best = bytes;
        esdm__seal_write(out, (uint8_t) variant, ESDM__SEAL_BYTES + bytes, raw, raw_bytes);
        memcpy((uint8_t *) out + ESDM__SEAL_BYTES, encoded, bytes);
    }
    free(memory);
    *ret_bytes = best > 0 ? best + ESDM__SEAL_BYTES : 0;
    return ESDM_OK;
}

static esdm_status
szip_decode(const esdm_codec_input *input, const void *encoded, size_t encoded_bytes, void *raw,
            size_t raw_bytes, esdm_error *err)
{
    uint8_t variant = 0;
    esdm_status st = esdm__seal_read(NAME, encoded, encoded_bytes, &variant, err);
    if (st != ESDM_OK)
        return st;
    if (variant >= VARIANTS)
        return esdm__error_set(err, ESDM_ENOTSUP, NAME ": variant %u is not known", variant);
    uint8_t *stage = variant == PLANES ? malloc(raw_bytes) : NULL;
    if (variant == PLANES && stage == NULL)
        return esdm__error_nomem(err, raw_bytes, NAME);
    bool good = decode_stream(variant, element_of(input, raw_bytes),
                              (const uint8_t *) encoded + ESDM__SEAL_BYTES,
                              encoded_bytes - ESDM__SEAL_BYTES, raw, raw_bytes, stage);
    free(stage);
    if (!good)
        return esdm__error_set(err, ESDM_ECORRUPT,
                               NAME ": %zu stored bytes do not decode to %zu raw ones",
                               encoded_bytes, raw_bytes);
    return esdm__seal_check(NAME, encoded, raw, raw_bytes, err);
}

extern const esdm_codec_plugin esdm_codec_szip_plugin;
const esdm_codec_plugin esdm_codec_szip_plugin = {
    .base = {.abi = ESDM_PLUGIN_ABI,
             .table_bytes = sizeof(esdm_codec_plugin),
             .kind = ESDM_PLUGIN_CODEC,
             .name = NAME,
             .summary = "szip (CCSDS 121) by libaec, lossless"},
    .id = 8,
    .bound = szip_bound,
    .encode = szip_encode,
    .decode = szip_decode,
};

#ifdef ESDM_PLUGIN_LOADABLE
ESDM_API const esdm_plugin *esdm_plugin_entry(void);

const esdm_plugin *
esdm_plugin_entry(void)
{
    return &esdm_codec_szip_plugin.base;
}
#endif
