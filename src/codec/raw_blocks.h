/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CODEC_RAW_BLOCKS_H
#define ESDM_CODEC_RAW_BLOCKS_H

/**
 * @file
 * Short cut for blobs with an empty chain (format: codec/blob.h): the payload is the raw data, so a
 * reader that knows raw_bytes and head_bytes from the fragment record needs only the table entries
 * of the blocks it reads, not the whole head. A damaged entry shows as a checksum mismatch.
 * Pure functions.
 */

#include "codec/blob.h"

/** Derives the block size from the record; ESDM_ECORRUPT when none fits. */
esdm_status esdm__raw_blocks_init(uint64_t raw_bytes, uint32_t head_bytes, esdm__blocks *ret_blocks,
                                  esdm_error *err);
/**
 * Verifies blocks first … first+count-1.
 * @param entries their table entries. @param data their raw bytes.
 */
esdm_status esdm__raw_blocks_verify(const esdm__blocks *blocks, uint32_t first, uint32_t count,
                                    const uint8_t *entries, const void *data, esdm_error *err);

#endif
