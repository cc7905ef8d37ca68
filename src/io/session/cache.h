/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_SESSION_CACHE_H
#define ESDM_IO_SESSION_CACHE_H

/**
 * @file
 * Bounded cache of verified, decoded blocks; the oldest go first, but those that were used since
 * they were put, or since room was wanted of them, are passed over once.
 * Packs never change, so entries never become wrong. Threads: locked inside.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct esdm__cache esdm__cache;

/** Identity of a block: 128-bit hash of target, pack, position of the blob; the block; and of how
 *  many of its layers it was decoded. */
typedef struct esdm__cache_key {
    uint64_t low;
    uint64_t high;
    uint32_t block;
    uint32_t layers; /* 0: all of them */
} esdm__cache_key;

/** @param limit_bytes of block data; 0 keeps nothing. NULL when out of memory. */
esdm__cache *esdm__cache_new(uint64_t limit_bytes);
void esdm__cache_free(esdm__cache *cache); /* NULL is accepted */
esdm__cache_key esdm__cache_key_of(const char *target, const char *pack, uint64_t position);
/** Copies a cached block of exactly `bytes` into `data`; false when it is not there. */
bool esdm__cache_get(esdm__cache *cache, const esdm__cache_key *key, void *data, size_t bytes);
/** Copies part of a cached block; false when it is not there or shorter. */
bool esdm__cache_get_part(esdm__cache *cache, const esdm__cache_key *key, size_t offset, void *data,
                          size_t bytes);
/** Whether it is there. */
bool esdm__cache_has(esdm__cache *cache, const esdm__cache_key *key);
/** Whether blocks of so many bytes are kept at all. */
bool esdm__cache_takes(const esdm__cache *cache, size_t bytes);
/** Blocks of one call at most, of those that take one lock for all. */
#define ESDM__CACHE_BLOCKS_MOST 16u
/** A block that is looked for beside others. */
typedef struct esdm__cache_wanted {
    esdm__cache_key key;
    void *data; /* borrowed; room for `bytes`, which are copied there when it is found */
    size_t bytes;
    bool found;
} esdm__cache_wanted;
/** As esdm__cache_get() of each, with one lock for all where none is there. Different keys. */
void esdm__cache_get_blocks(esdm__cache *cache, esdm__cache_wanted *blocks, size_t count);

/** A block that is put beside others. */
typedef struct esdm__cache_block {
    esdm__cache_key key;
    const void *data; /* borrowed */
    size_t bytes;
} esdm__cache_block;

/** Keeps copies, with one lock for all. Best effort. */
void esdm__cache_put_blocks(esdm__cache *cache, const esdm__cache_block *blocks, size_t count);
/** Keeps a copy. Best effort. */
void esdm__cache_put(esdm__cache *cache, const esdm__cache_key *key, const void *data,
                     size_t bytes);

#endif
