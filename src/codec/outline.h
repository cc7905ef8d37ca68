/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CODEC_OUTLINE_H
#define ESDM_CODEC_OUTLINE_H

/**
 * @file
 * The outline of a blob (format: codec/blob.h): what index pages keep of its head, so that a reader
 * who is far away can read a part of it by one request, and verify what comes.
 *
 *     with codecs     the head as it is: where blocks lie, and their checksums
 *     without codecs  for each group of blocks, 256 KiB of them, XXH3 (u64) of their table entries:
 *                     whoever reads a whole group makes the entries of the data
 *
 * Pure functions, safe on hostile input.
 */

#include "codec/blob.h"

/** Longest outline. */
#define ESDM__OUTLINE_MOST 16384u
/** An outline takes at most one part in so many of what is stored. */
#define ESDM__OUTLINE_SHARE 1024u
/** Raw bytes of a group. */
#define ESDM__OUTLINE_GROUP_BYTES (UINT64_C(256) << 10)

/** Whether the payload is the raw data, by a head of at least ESDM__BLOB_HEADER_BYTES. */
bool esdm__outline_is_raw(const uint8_t *head);
/** Bytes of the outline of a blob that this program has encoded or verified. 0: it would take too
 *  much. @param head head_bytes long. @param stored_bytes head and payload. */
uint32_t esdm__outline_bytes(const uint8_t *head, uint32_t head_bytes, uint64_t stored_bytes);
/** Makes it. @param ret_outline room for esdm__outline_bytes(), which is not 0. */
void esdm__outline_make(const uint8_t *head, uint32_t head_bytes, uint8_t *ret_outline);

/** Blocks of a group of raw data. */
uint32_t esdm__outline_group(const esdm__blocks *blocks);
/** Widens blocks *first … *end-1 to whole groups; the last one of all may be short. */
void esdm__outline_widen(const esdm__blocks *blocks, uint32_t *first, uint32_t *end);
/** Whether an outline of raw data with these blocks has that length. */
bool esdm__outline_fits(const esdm__blocks *blocks, uint32_t outline_bytes);
/**
 * Verifies raw blocks first … first+count-1: whole groups, the last one of all may be short.
 * @param outline that fits. @param data their raw bytes.
 */
esdm_status esdm__outline_verify(const esdm__blocks *blocks, uint32_t first, uint32_t count,
                                 const uint8_t *outline, const void *data, esdm_error *err);

#endif
