/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_SYS_CODEC_H
#define ESDM_SYS_CODEC_H

/**
 * @file
 * Codecs: reversible maps from bytes to bytes, applied to one block at a time.
 *
 * Codec ids are stored in fragments and never reused: 0 none, 1 lz4, 2 zstd, 3 shuffle, 4–127 kept
 * for ESDM's own codecs, 128–255 for site-local ones, 200 for the template. Threads: all functions
 * are pure and may run in many threads at once.
 */

#include "esdm/sys/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Keeps the length and compresses nothing itself: stands before a compressor in a chain. */
#define ESDM_CODEC_FILTER 0x1u

/** What a codec may know about the bytes. */
typedef struct esdm_codec_input {
    uint32_t element_bytes; /**< size of one element; 1 for serialised strings */
    int32_t type;           /**< esdm_type */
} esdm_codec_input;

typedef struct esdm_codec_plugin {
    esdm_plugin base;
    uint8_t id;
    /** Upper limit of encoded bytes for `raw_bytes`; SIZE_MAX on overflow. */
    size_t (*bound)(size_t raw_bytes);
    /**
     * Encodes `raw_bytes` (> 0) into `out` of `out_bytes` capacity.
     * @param ret_bytes bytes written. When they would not be fewer than raw_bytes or not fit into
     *        `out_bytes`: ESDM_OK and 0, the block is then stored raw. A filter writes raw_bytes.
     */
    esdm_status (*encode)(const esdm_codec_input *input, const void *raw, size_t raw_bytes,
                          void *out, size_t out_bytes, size_t *ret_bytes, esdm_error *err);
    /** Decodes exactly `raw_bytes` into `raw`. Hostile input is ESDM_ECORRUPT, never a write or
     *  read outside the given bounds. */
    esdm_status (*decode)(const esdm_codec_input *input, const void *encoded, size_t encoded_bytes,
                          void *raw, size_t raw_bytes, esdm_error *err);
    uint32_t flags; /**< ESDM_CODEC_* */
} esdm_codec_plugin;

#ifdef __cplusplus
}
#endif
#endif
