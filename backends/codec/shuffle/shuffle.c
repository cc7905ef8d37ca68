/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Codec "shuffle" (id 3): bytes of equal weight together; a filter for compressors. */

#include <string.h>

#include "base/error.h"
#include "esdm/sys/codec.h"

/* ---- any element size --------------------------------------------------------------------- */

static void
shuffle_from(const uint8_t *raw, size_t elements, size_t size, size_t first, uint8_t *out)
{
    for (size_t k = 0; k < size; k++) {
        for (size_t i = first; i < elements; i++)
            out[k * elements + i] = raw[i * size + k];
    }
}

static void
unshuffle_from(const uint8_t *in, size_t elements, size_t size, size_t first, uint8_t *raw)
{
    for (size_t k = 0; k < size; k++) {
        for (size_t i = first; i < elements; i++)
            raw[i * size + k] = in[k * elements + i];
    }
}

/* ---- 2, 4 and 8 bytes: 16 elements at a time ---------------------------------------------- */

#if defined(__has_builtin) && __has_builtin(__builtin_shufflevector)
#define LANES 16u
typedef uint8_t lanes __attribute__((vector_size(LANES)));
typedef uint8_t lanes_any __attribute__((vector_size(LANES), aligned(1), may_alias));

static inline lanes
evens(lanes a, lanes b)
{
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
}

static inline lanes
odds(lanes a, lanes b)
{
    return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
}

static inline lanes
zip_low(lanes a, lanes b)
{
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

static inline lanes
zip_high(lanes a, lanes b)
{
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                   31);
}

/* Each round separates bytes of even and odd index, so that after log2(size) rounds line k holds
 * the bytes of weight k of 16 elements. */
static inline void
split_round(const lanes *from, size_t size, lanes *to)
{
    for (size_t i = 0; i < size / 2; i++) {
        to[i] = evens(from[2 * i], from[2 * i + 1]);
        to[size / 2 + i] = odds(from[2 * i], from[2 * i + 1]);
    }
}

/* The inverse of a round. */
static inline void
merge_round(const lanes *from, size_t size, lanes *to)
{
    for (size_t i = 0; i < size / 2; i++) {
        to[2 * i] = zip_low(from[i], from[size / 2 + i]);
        to[2 * i + 1] = zip_high(from[i], from[size / 2 + i]);
    }
}

static inline __attribute__((always_inline)) size_t
shuffle_lanes(const uint8_t *raw, size_t elements, size_t size, uint8_t *out)
{
    size_t i = 0;
    for (; i + LANES <= elements; i += LANES) {
        lanes a[8];
        lanes b[8];
        for (size_t k = 0; k < size; k++)
            a[k] = *(const lanes_any *) (raw + i * size + k * LANES);
        split_round(a, size, b);
        if (size == 2)
            memcpy(a, b, 2 * sizeof *a);
        if (size >= 4)
            split_round(b, size, a);
        if (size == 8) {
            split_round(a, size, b);
            memcpy(a, b, sizeof a);
        }
        for (size_t k = 0; k < size; k++)
            *(lanes_any *) (out + k * elements + i) = a[k];
    }
    return i;
}

static inline __attribute__((always_inline)) size_t
unshuffle_lanes(const uint8_t *in, size_t elements, size_t size, uint8_t *raw)
{
    size_t i = 0;
    for (; i + LANES <= elements; i += LANES) {
        lanes a[8];
        lanes b[8];
        for (size_t k = 0; k < size; k++)
            a[k] = *(const lanes_any *) (in + k * elements + i);
        merge_round(a, size, b);
        if (size == 2)
            memcpy(a, b, 2 * sizeof *a);
        if (size >= 4)
            merge_round(b, size, a);
        if (size == 8) {
            merge_round(a, size, b);
            memcpy(a, b, sizeof a);
        }
        for (size_t k = 0; k < size; k++)
            *(lanes_any *) (raw + i * size + k * LANES) = a[k];
    }
    return i;
}
#else
static inline size_t
shuffle_lanes(const uint8_t *raw, size_t elements, size_t size, uint8_t *out)
{
    (void) raw, (void) elements, (void) size, (void) out;
    return 0;
}

static inline size_t
unshuffle_lanes(const uint8_t *in, size_t elements, size_t size, uint8_t *raw)
{
    (void) in, (void) elements, (void) size, (void) raw;
    return 0;
}
#endif

/* ---- codec -------------------------------------------------------------------------------- */

static size_t
shuffle_bound(size_t raw_bytes)
{
    return raw_bytes;
}

static size_t
element_size(const esdm_codec_input *input)
{
    return input->element_bytes > 0 ? input->element_bytes : 1;
}

static esdm_status
shuffle_encode(const esdm_codec_input *input, const void *raw, size_t raw_bytes, void *out,
               size_t out_bytes, size_t *ret_bytes, esdm_error *err)
{
    (void) err;
    size_t size = element_size(input);
    size_t elements = raw_bytes / size;
    size_t whole = elements * size;
    *ret_bytes = 0;
    if (out_bytes < raw_bytes)
        return ESDM_OK;
    if (size == 1) {
        memcpy(out, raw, raw_bytes);
    } else {
        size_t done = size == 2   ? shuffle_lanes(raw, elements, 2, out)
                      : size == 4 ? shuffle_lanes(raw, elements, 4, out)
                      : size == 8 ? shuffle_lanes(raw, elements, 8, out)
                                  : 0;
        shuffle_from(raw, elements, size, done, out);
        memcpy((uint8_t *) out + whole, (const uint8_t *) raw + whole, raw_bytes - whole);
    }
    *ret_bytes = raw_bytes;
    return ESDM_OK;
}

static esdm_status
shuffle_decode(const esdm_codec_input *input, const void *encoded, size_t encoded_bytes, void *raw,
               size_t raw_bytes, esdm_error *err)
{
    size_t size = element_size(input);
    size_t elements = raw_bytes / size;
    size_t whole = elements * size;
    if (encoded_bytes != raw_bytes)
        return esdm__error_set(err, ESDM_ECORRUPT,
                               "shuffle: %zu stored bytes for %zu raw ones; it keeps the length",
                               encoded_bytes, raw_bytes);
    if (size == 1) {
        memcpy(raw, encoded, raw_bytes);
        return ESDM_OK;
    }
    size_t done = size == 2   ? unshuffle_lanes(encoded, elements, 2, raw)
                  : size == 4 ? unshuffle_lanes(encoded, elements, 4, raw)
                  : size == 8 ? unshuffle_lanes(encoded, elements, 8, raw)
                              : 0;
    unshuffle_from(encoded, elements, size, done, raw);
    memcpy((uint8_t *) raw + whole, (const uint8_t *) encoded + whole, raw_bytes - whole);
    return ESDM_OK;
}

extern const esdm_codec_plugin esdm_codec_shuffle_plugin;
const esdm_codec_plugin esdm_codec_shuffle_plugin = {
    .base = {.abi = ESDM_PLUGIN_ABI,
             .table_bytes = sizeof(esdm_codec_plugin),
             .kind = ESDM_PLUGIN_CODEC,
             .name = "shuffle",
             .summary = "groups bytes of equal weight; before a compressor"},
    .id = 3,
    .flags = ESDM_CODEC_FILTER,
    .bound = shuffle_bound,
    .encode = shuffle_encode,
    .decode = shuffle_decode,
};
