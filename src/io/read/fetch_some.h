/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_READ_FETCH_SOME_H
#define ESDM_IO_READ_FETCH_SOME_H

/**
 * @file
 * What is wanted of large blocks that codecs decode in part, and whether that is worth it: parts
 * are not kept, so that once a block was decoded in parts of its size together, it is decoded as a
 * whole, which is kept. Threads: pure but for the cache, which locks itself.
 */

#include "codec/blocks.h"
#include "esdm/sys/codec.h"
#include "io/read/fetch.h"
#include "io/session/cache.h"

/** Ranges of raw bytes, ascending, of all wanted blocks. */
typedef struct esdm__some {
    esdm_codec_range *ranges; /* owned; offsets in the fragment */
    size_t count;
} esdm__some;

/** Sets a bit for each wanted block in [first, last]. NULL: all are wanted, or out of memory, in
 *  which case reading them all is right too. Owned, free(). */
uint8_t *esdm__want_blocks(const esdm__want *want, const esdm__blocks *blocks, uint32_t first,
                           uint32_t last);
/** What a want meets; nothing where that is much or cannot be told. */
void esdm__some_find(const esdm__want *want, esdm__some *ret_some);
void esdm__some_clear(esdm__some *some);
/** Ranges within a block, from its start on: owned, free(); NULL: none. */
esdm_codec_range *esdm__some_of(const esdm__some *some, const esdm__blocks *blocks, uint32_t block,
                                size_t *ret_count);
/** Whether a part of that block is to be decoded alone; else all of it. */
bool esdm__some_is_worth(esdm__cache *cache, const esdm__cache_key *key, size_t block_bytes);
/** So many bytes of it were. */
void esdm__some_note(esdm__cache *cache, const esdm__cache_key *key, size_t bytes);

#endif
