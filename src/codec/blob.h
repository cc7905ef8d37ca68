/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CODEC_BLOB_H
#define ESDM_CODEC_BLOB_H

/**
 * @file
 * The stored form of a fragment: head (64-byte header and block table), then payload.
 *
 * Version 1, little-endian:
 *
 *     0  magic "ESDMFRAG"          32  raw_bytes      u64
 *     8  version        u16 = 1    40  payload_bytes  u64
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
 * Pure functions, safe on hostile input.
 */

#include "esdm/sys/codec.h"
#include "esdm/sys/plugin.h"

#define ESDM__BLOB_HEADER_BYTES 64u
#define ESDM__BLOB_ENTRY_BYTES  16u
#define ESDM__BLOB_RAW_LOG2     12u /* uncompressed: 4 KiB, a point read is cheap */
#define ESDM__BLOB_CODED_LOG2   16u /* compressed: 64 KiB */
#define ESDM__CHAIN_MAX         4u

/** Codecs in order of encoding; borrowed from the registry. Empty: stored as it is. */
typedef struct esdm__chain {
    uint32_t count;
    const esdm_codec_plugin *codecs[ESDM__CHAIN_MAX];
} esdm__chain;

/** Looks codecs up by id for decoding; NULL when unknown. */
typedef const esdm_codec_plugin *(*esdm__codec_by_id)(uint8_t id);

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
} esdm__blob_view;

/** Verifies magic, version, checksum and that all lengths agree. ESDM_ECORRUPT, or ESDM_ENOTSUP for
 * a newer version or an unknown codec id. */
esdm_status esdm__blob_parse(const void *head, size_t head_bytes, esdm__codec_by_id find,
                             esdm__blob_view *ret_view, esdm_error *err);
/** Where blocks first … first+count-1 lie: offset from the start of the payload. */
void esdm__blob_range(const esdm__blob_view *view, uint32_t first, uint32_t count,
                      uint64_t *ret_offset, uint64_t *ret_bytes);
/**
 * Verifies and decodes blocks first … first+count-1.
 * @param stored their stored bytes (esdm__blob_range), `stored_bytes` long.
 * @param raw receives the raw bytes of these blocks; may equal `stored` when the chain is empty
 *        (then only verified). @param raw_bytes capacity, must equal their raw length.
 */
esdm_status esdm__blob_decode(const esdm__blob_view *view, uint32_t first, uint32_t count,
                              const void *stored, size_t stored_bytes, void *raw, size_t raw_bytes,
                              esdm_error *err);
/** Raw length of blocks first … first+count-1. */
uint64_t esdm__blob_raw_bytes(const esdm__blob_view *view, uint32_t first, uint32_t count);

#endif
