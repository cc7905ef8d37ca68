/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_SYS_CODEC_H
#define ESDM_SYS_CODEC_H

/**
 * @file
 * Codecs: maps from bytes to bytes, applied to one block at a time. They are reversible; those with
 * ESDM_CODEC_LOSSY give back other values when they are told how far off these may be.
 *
 * Codec ids are stored in fragments and never reused: 0 none, 1 lz4, 2 zstd, 3 shuffle, 4 field,
 * 5 kept, 6 zfp, 7 fpzip, 8 szip (libaec), 9 bitround, 10 deflate, 11–127 kept for ESDM's own
 * codecs, 128–255 for site-local ones, 200 for the template. Threads: all functions are pure and
 * may run in many threads at once.
 */

#include "esdm/sys/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Keeps the length and compresses nothing itself: stands before a compressor in a chain. */
#define ESDM_CODEC_FILTER 0x1u

/** encode() uses esdm_codec_input.accuracy. Where that is NULL, it is lossless all the same. */
#define ESDM_CODEC_LOSSY 0x2u
/** Wants to know the shape: blocks are then larger, and boxes that are whole in the fastest axes.
 */
#define ESDM_CODEC_SHAPED 0x4u
/** What encode() writes has the length and meaning of the raw bytes: decode() would only copy it,
 *  and is left out. For filters that round values. */
#define ESDM_CODEC_ROUNDS 0x8u
/** encode() is ESDM_ENOTSUP: the plug-in was built without what it takes, and reads alone. */
#define ESDM_CODEC_READS 0x10u

/** How much time is worth spending on fewer bytes. */
typedef enum esdm_codec_effort {
    ESDM_EFFORT_FAST = 1,     /**< a GB/s and more */
    ESDM_EFFORT_BALANCED = 2, /**< some 100 MB/s */
    ESDM_EFFORT_ARCHIVE = 3   /**< the fewest bytes */
} esdm_codec_effort;

/**
 * How far values may be off, in units of the stored numbers; the same for a whole dataset but for
 * `sum_bound`.
 *
 * Where x is finite and none of the exact ones, x' must be finite, have none of the listed exact
 * values, and |x' - x| <= min(absolute, max(relative * |x|, finest)), computed exactly. All others
 * keep their bits: NaN with its payload, infinities, the ranges and values listed here. Where the
 * bound of a zero is 0 its sign is kept. Every block is verified by the caller, who asks again for
 * less, at last for no loss: a codec may miss rarely, where guarding against it would be dear.
 */
typedef struct esdm_codec_accuracy {
    double absolute;          /**< INFINITY: not asked for; > 0 */
    double relative;          /**< INFINITY: not asked for; > 0 */
    double finest;            /**< the relative bound need not be finer than this; 0: as stated */
    double exact_below;       /**< x <= this is exact; -INFINITY: nothing */
    double exact_above;       /**< x >= this is exact; INFINITY: nothing */
    double sum_bound;         /**< largest |sum(x') - sum(x)| over the inexact points of the block;
                                   INFINITY: not asked for */
    const void *exact_values; /**< `exact_count` elements of the type whose bits are exact */
    uint32_t exact_count;
} esdm_codec_accuracy;

/** What a codec may know about the bytes. */
typedef struct esdm_codec_input {
    uint32_t element_bytes; /**< size of one element; 1 for serialised strings */
    int32_t type;           /**< esdm_type */
    uint32_t rank;          /**< axes of the block; 0: its shape is not known */
    /** `rank` elements along each axis, slowest first, each >= 1; their product times element_bytes
     *  is raw_bytes. decode() gets the same rank and shape as encode(). */
    const uint64_t *shape;
    const esdm_codec_accuracy *accuracy; /**< NULL: lossless. Always NULL for decode(): what it
                                              needs is in the encoded bytes */
    esdm_codec_effort effort;            /**< for encode(); 0 is the codec's own choice */
} esdm_codec_input;

/** Raw bytes from … to - 1 of a block. */
typedef struct esdm_codec_range {
    size_t from;
    size_t to; /**< > from */
} esdm_codec_range;

typedef struct esdm_codec_plugin {
    esdm_plugin base;
    uint8_t id;
    /** Upper limit of encoded bytes for `raw_bytes`; SIZE_MAX on overflow. */
    size_t (*bound)(size_t raw_bytes);
    /**
     * Encodes `raw_bytes` (> 0) into `out` of `out_bytes` capacity. A type that a codec knows
     * nothing of, and bytes that are no whole number of elements, are encoded without loss. The
     * same input gives the same bytes on every machine.
     * @param ret_bytes bytes written. When they would not be fewer than raw_bytes or not fit into
     *        `out_bytes`: ESDM_OK and 0, the block is then stored raw. A filter writes raw_bytes.
     */
    esdm_status (*encode)(const esdm_codec_input *input, const void *raw, size_t raw_bytes,
                          void *out, size_t out_bytes, size_t *ret_bytes, esdm_error *err);
    /** Decodes exactly `raw_bytes` into `raw`. Hostile input is ESDM_ECORRUPT (ESDM_ENOTSUP: it
     *  says that it is of a newer format), never a write or read outside the given bounds. */
    esdm_status (*decode)(const esdm_codec_input *input, const void *encoded, size_t encoded_bytes,
                          void *raw, size_t raw_bytes, esdm_error *err);
    uint32_t flags; /**< ESDM_CODEC_* */
    /**
     * As decode(), but at least the `count` ranges that are wanted, which lie within the block; the
     * rest of `raw` is undefined. For codecs that can do that in less time. NULL: they cannot.
     * @param ret_bytes raw bytes that were decoded; raw_bytes: all of them.
     */
    esdm_status (*decode_some)(const esdm_codec_input *input, const void *encoded,
                               size_t encoded_bytes, const esdm_codec_range *wanted, size_t count,
                               void *raw, size_t raw_bytes, size_t *ret_bytes, esdm_error *err);
} esdm_codec_plugin;

#ifdef __cplusplus
}
#endif
#endif
