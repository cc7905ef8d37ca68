/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CODEC_BLOB_H
#define ESDM_CODEC_BLOB_H

/**
 * @file
 * The stored form of a fragment: head (64-byte header and block table), then payload.
 *
 * Version 1, or 2 when texts of it are NULL (io/encode/strings.h), little-endian:
 *
 *     0  magic "ESDMFRAG"          32  raw_bytes      u64
 *     8  version        u16        40  payload_bytes  u64
 *    10  codecs         u8  0…4    48  dataset id     u32
 *    11  block_log2     u8         52  blocks         u32
 *    12  element type   i32        56  checksum, u64: XXH3 of bytes 0…55 and the table's XXH3 (u64)
 *    16  codec ids      u8[4]      64  table: blocks × { stored_bytes u32, flags u32, XXH3 u64 }
 *    20  element_bytes  u32            flags bit 0: block is stored raw; XXH3 of stored bytes
 *    24  reserved = 0   u64
 *
 * Block b holds raw bytes [b << block_log2, …). With an empty chain the payload is the raw data.
 * Blocks follow each other without gaps. Each can be read, verified and decoded alone. With a chain
 * of c > 1 codecs, a block that is not raw begins with c-1 lengths (u32): of the results of all
 * codecs but the last, in order of encoding. A block that its chain does not shrink is raw.
 *
 * Version 3 is written where a codec wants shaped blocks, or larger blocks than the usual are
 * wanted, or values were rounded. `version` is 3,
 * `block_log2` 0, and the bytes 24…27 (u32) are the length of a second header between the first and
 * the table, which the checksum covers as it does the table:
 *
 *     64  rank           u8          80         shape, u64 × rank
 *     65  axis           u8          80+8·rank  with flag bit 0, what values became:
 *     66  flags          u16           +0  absolute, relative, finest; conserved  f64 × 4
 *     68  reserved = 0   u32           +32 largest error, largest share of its bound  f64 × 2
 *     72  extent         u64           +48 change of the sum  f64
 *                                      +56 points, exact points  u64 × 2
 *                                      +72 blocks asked for again, kept without loss  u32 × 2
 *                                      +80 reserved = 0  u64
 *
 * Blocks are boxes, each with `extent` indices of `axis` (codec/blocks.h). Lengths between codecs
 * of a chain are as above; a codec that rounds (ESDM_CODEC_ROUNDS) is left out when decoding.
 *
 * Version 4 is as version 3, in layers: more of them make numbers more accurate. Flag bit 1 is set,
 * and behind the rest of the second header stand
 *
 *     +0  layers         u32  2…4       +8   range of the numbers that may be off  f64
 *     +4  reserved = 0   u32            +16  largest error with the first 1…3 layers  f64 × 3
 *
 * The table has entries for the blocks of the first layer, then for those of the second one, and so
 * on; the payload has the same order. Blocks of the first layer are as above, by the one codec of
 * the chain, what others hold codec/layers.h says.
 * Pure functions, safe on hostile input.
 */

#include "codec/blocks.h"
#include "codec/limits.h"
#include "codec/tally.h"
#include "codec/verify.h"
#include "esdm/sys/codec.h"
#include "esdm/sys/plugin.h"

#define ESDM__BLOB_HEADER_BYTES 64u
#define ESDM__BLOB_ENTRY_BYTES  16u
#define ESDM__BLOB_RAW_LOG2     12u /* uncompressed: 4 KiB, a point read is cheap */
#define ESDM__BLOB_CODED_LOG2   16u /* compressed: 64 KiB */
#define ESDM__CHAIN_MAX         4u
#define ESDM__BLOB_LAYERS_MAX   4u

/** Codecs in order of encoding; borrowed from the registry. Empty: stored as it is. */
typedef struct esdm__chain {
    uint32_t count;
    const esdm_codec_plugin *codecs[ESDM__CHAIN_MAX];
} esdm__chain;

/** Looks codecs up by id for decoding; NULL when unknown. */
typedef const esdm_codec_plugin *(*esdm__codec_by_id)(uint8_t id);

/** What was asked of the values of a fragment, and what became of them. */
typedef struct esdm__blob_accuracy {
    double absolute; /* as in esdm_codec_accuracy */
    double relative;
    double finest;
    double conserved; /* largest change of the sum, as a share of sum(|x|); INFINITY: not asked */
    esdm__accuracy_facts facts;
    uint32_t blocks_again;    /* encoded again with smaller bounds */
    uint32_t blocks_lossless; /* of those, kept as they are in the end */
} esdm__blob_accuracy;

/** An encoded fragment, ready to be appended. */
typedef struct esdm__blob {
    uint8_t *head; /* owned */
    size_t head_bytes;
    const void *payload; /* borrowed raw data when the chain is empty, else `owned` */
    size_t payload_bytes;
    void *owned; /* or NULL */
} esdm__blob;

/** Bytes of the head for `raw_bytes` with that block size; SIZE_MAX when the format cannot hold
 *  them: a head has at most UINT32_MAX bytes. */
size_t esdm__blob_head_bytes(uint64_t raw_bytes, uint32_t block_log2);

/**
 * Checksums, and with a chain compresses, in one pass.
 * @param raw borrowed until the blob is cleared; raw_bytes > 0.
 * @return ESDM_EINVAL when there is nothing to encode or more than the format holds (1 TiB at 4 KiB
 * a block), ESDM_ENOMEM, or what a codec reports.
 */
esdm_status esdm__blob_encode(const esdm__chain *chain, int32_t type, uint32_t element_bytes,
                              uint32_t dataset, const void *raw, size_t raw_bytes,
                              esdm__blob *ret_blob, esdm_error *err);
/** Gives it version 2: texts of it are NULL. */
void esdm__blob_mark_nulls(esdm__blob *blob);

/** Numbers of known shape, and what may become of them. */
typedef struct esdm__blob_numbers {
    const esdm__chain *chain;
    int32_t type;
    uint32_t element_bytes;
    uint32_t dataset;
    uint32_t rank; /* shape[d] >= 1, slowest first; 0: one number */
    const uint64_t *shape;
    const void *raw;                     /* borrowed until the blob is cleared */
    const esdm_codec_accuracy *accuracy; /* NULL: lossless. Its sum_bound is not looked at: */
    const esdm_codec_accuracy *coarse;   /* NULL: one layer. Else in layers, where the chain is one
                                            codec for that: which numbers keep their bits in all of
                                            them; its bounds are not looked at */
    double conserved;                    /* as in esdm__blob_accuracy */
    double noise; /* the root of the mean square of errors of each block, at most, over the numbers
                     that may be off; > 0; INFINITY, or 0: not asked */
    double mean;  /* what the mean of these numbers may change by, in each block; as `noise` */
    const esdm__limits *limits; /* that no number may leave; NULL: none */
    esdm_codec_effort effort;   /* 0: each codec's own choice */
    uint64_t block_bytes;       /* raw bytes of a block, about; 0: the usual */
    esdm__tally *tally;         /* of the numbers as they will be read; borrowed; NULL: none */
} esdm__blob_numbers;

/**
 * The same for numbers. Every block with an accuracy is verified; where a codec missed it, it is
 * asked again for half the bounds, or where numbers left the limits, to keep those near them; then
 * for no loss.
 * @param ret_accuracy what was found; may be NULL; zeroed without accuracy.
 */
esdm_status esdm__blob_encode_numbers(const esdm__blob_numbers *numbers, esdm__blob *ret_blob,
                                      esdm__blob_accuracy *ret_accuracy, esdm_error *err);
void esdm__blob_clear(esdm__blob *blob); /* a zeroed one is accepted */

/** A parsed head. Borrows the head bytes. */
typedef struct esdm__blob_view {
    const uint8_t *table;
    uint64_t raw_bytes;
    uint64_t payload_bytes;
    uint32_t blocks;
    uint32_t block_log2;
    uint32_t dataset;
    int32_t type;
    uint32_t element_bytes;
    esdm__chain chain;
    esdm__blocks geometry;
    uint32_t layers; /* 1, or more of version 4, */
    uint32_t use;    /* of which so many are to be read: all, unless the caller takes fewer */
    double range;    /* of the numbers that may be off, of version 4 */
    double errors[ESDM__BLOB_LAYERS_MAX]; /* largest one with so many layers and one */
    bool lossy;                           /* `accuracy` says what values became */
    esdm__blob_accuracy accuracy;
} esdm__blob_view;

/** Verifies magic, version, checksum and that all lengths agree. ESDM_ECORRUPT, or ESDM_ENOTSUP for
 * a newer version or an unknown codec id. */
esdm_status esdm__blob_parse(const void *head, size_t head_bytes, esdm__codec_by_id find,
                             esdm__blob_view *ret_view, esdm_error *err);
/** A hash over a head but for the number of the dataset: fragments of other datasets may be equal.
 *  @param head_bytes ≥ ESDM__BLOB_HEADER_BYTES. */
void esdm__blob_hash(const void *head, size_t head_bytes, uint64_t ret_hash[2]);
/** Whether two heads of the same length say the same but for that number. */
bool esdm__blob_head_equals(const void *a, const void *b, size_t head_bytes);
/** Takes as few layers as keep |x' - x| <= max(absolute, share * range), or all of them. */
void esdm__blob_use(esdm__blob_view *view, double absolute, double share);
/** Where blocks first … first+count-1 of a layer lie: offset from the start of the payload. */
void esdm__blob_range(const esdm__blob_view *view, uint32_t layer, uint32_t first, uint32_t count,
                      uint64_t *ret_offset, uint64_t *ret_bytes);
/** Bytes of these blocks in the layers that are used. */
uint64_t esdm__blob_stored_bytes(const esdm__blob_view *view, uint32_t first, uint32_t count);
/**
 * Verifies and decodes blocks first … first+count-1.
 * @param stored their stored bytes (esdm__blob_range), of one layer that is used behind the other,
 *        `stored_bytes` long. Of all blocks and layers that is the payload.
 * @param raw receives the raw bytes of these blocks; may equal `stored` when the chain is empty
 *        (then only verified). @param raw_bytes capacity, must equal their raw length.
 */
esdm_status esdm__blob_decode(const esdm__blob_view *view, uint32_t first, uint32_t count,
                              const void *stored, size_t stored_bytes, void *raw, size_t raw_bytes,
                              esdm_error *err);
/** Whether a block may be decoded in part. */
bool esdm__blob_has_parts(const esdm__blob_view *view, uint32_t block);
/**
 * Verifies a block that may, and decodes what is wanted of it.
 * @param stored its stored bytes. @param raw room for all of it; what was not wanted is undefined.
 * @param ret_bytes raw bytes that were decoded; raw_bytes: all.
 */
esdm_status esdm__blob_decode_some(const esdm__blob_view *view, uint32_t block,
                                   const esdm_codec_range *wanted, size_t count, const void *stored,
                                   size_t stored_bytes, void *raw, size_t raw_bytes,
                                   size_t *ret_bytes, esdm_error *err);
/** Memory that esdm__blob_decode() takes beside what it is given, about: of its largest block, what
 *  lies between codecs and what those make of numbers. */
uint64_t esdm__blob_decode_bytes(const esdm__blob_view *view);
/** Raw length of blocks first … first+count-1. */
uint64_t esdm__blob_raw_bytes(const esdm__blob_view *view, uint32_t first, uint32_t count);

#endif
