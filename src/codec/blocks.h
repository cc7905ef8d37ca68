/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CODEC_BLOCKS_H
#define ESDM_CODEC_BLOCKS_H

/**
 * @file
 * Where the blocks of a fragment begin in its raw bytes.
 *
 * Plain blocks have a power of two of bytes each, the last one the rest. Shaped ones are boxes of
 * the fragment: single indices of the slow axes, a range of `axis`, all of the axes behind it. They
 * are contiguous as well, but the last range of `axis` may be shorter. Pure functions.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "esdm/types.h"

/** Largest block that a reader believes in; writers make some of 1 MiB, in mode archive of this
 * size where memory allows. Buffers for it and the memory of codecs, some times as much, are all
 * that a hostile head can make a reader allocate, whatever the size of the fragment. */
#define ESDM__BLOCK_LOG2_MAX 24u

typedef struct esdm__blocks {
    uint64_t raw_bytes;
    uint32_t blocks;
    uint32_t block_log2;  /* of plain ones; 63 when there is one */
    uint64_t block_bytes; /* of a full block */
    uint64_t group_bytes; /* of all blocks of one index of the slow axes; 0: plain blocks */
    uint32_t per_group;   /* blocks of it */
    uint32_t rank;        /* of shaped ones */
    uint32_t axis;
    uint64_t extent; /* of a full block along `axis` */
    uint64_t shape[ESDM_MAX_RANK];
} esdm__blocks;

/** Plain ones; `blocks` as many as fit. */
void esdm__blocks_plain(uint64_t raw_bytes, uint32_t blocks, uint32_t block_log2,
                        esdm__blocks *ret_blocks);
/** Shaped ones of about `target_bytes`, equal in size as far as possible. The shape has no 0, and
 *  its bytes fit 64 bits. false: more blocks than the format holds. */
bool esdm__blocks_cut(uint32_t rank, const uint64_t *shape, uint32_t element_bytes,
                      uint64_t target_bytes, esdm__blocks *ret_blocks);
/** The same from stored numbers, which may be hostile: false when they make no sense, or are not
 *  those of `raw_bytes`. */
bool esdm__blocks_shaped(uint32_t rank, const uint64_t *shape, uint32_t axis, uint64_t extent,
                         uint32_t element_bytes, uint64_t raw_bytes, esdm__blocks *ret_blocks);
/** First raw byte of block b, which may be the end (b == blocks). */
uint64_t esdm__blocks_start(const esdm__blocks *blocks, uint32_t b);
/** The block of a raw byte. */
uint32_t esdm__blocks_at(const esdm__blocks *blocks, uint64_t raw_offset);
/** Shape of block b: `rank` sizes; nothing for plain blocks. */
void esdm__blocks_shape(const esdm__blocks *blocks, uint32_t b, uint64_t *ret_shape);

#endif
