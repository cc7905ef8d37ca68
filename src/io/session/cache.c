/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/session/cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/short_mutex.h"

#define BUCKETS 16384u /* power of two */
/* Copies up to this length are made under the lock, as taking it twice would cost more. */
#define COPIED_WITHIN 1024u

typedef struct entry {
    esdm__cache_key key;
    struct entry *chain; /* same bucket */
    struct entry *newer;
    struct entry *older;
    size_t bytes;
    unsigned readers; /* that copy from it without the lock */
    bool dropped;     /* it is in no list any more: the last reader frees it */
    uint8_t data[];
} entry;

struct esdm__cache {
    pthread_mutex_t lock; /* guards all below; a leaf lock */
    entry **buckets;      /* allocated with the first entry */
    entry *newest;
    entry *oldest;
    uint64_t used_bytes;
    uint64_t limit_bytes;
};

esdm__cache *
esdm__cache_new(uint64_t limit_bytes)
{
    esdm__cache *cache = calloc(1, sizeof *cache);
    if (cache == NULL)
        return NULL;
    cache->limit_bytes = limit_bytes;
    esdm__mutex_init_short(&cache->lock);
    return cache;
}

void
esdm__cache_free(esdm__cache *cache)
{
    if (cache == NULL)
        return;
    for (entry *e = cache->newest; e != NULL;) {
        entry *older = e->older;
        free(e);
        e = older;
    }
    free(cache->buckets);
    (void) pthread_mutex_destroy(&cache->lock);
    free(cache);
}

esdm__cache_key
esdm__cache_key_of(const char *target, const char *pack, uint64_t position)
{
    XXH64_hash_t seed = XXH3_64bits(target, strlen(target)) ^ position;
    XXH128_hash_t hash = XXH3_128bits_withSeed(pack, strlen(pack), seed);
    return (esdm__cache_key){.low = hash.low64, .high = hash.high64 ^ (position << 1)};
}

static entry **
bucket_of(esdm__cache *cache, const esdm__cache_key *key)
{
    uint64_t part = key->block + ((uint64_t) key->layers << 32);
    return &cache->buckets[(key->low + part * UINT64_C(0x9e3779b97f4a7c15)) & (BUCKETS - 1)];
}

static bool
same_key(const esdm__cache_key *a, const esdm__cache_key *b)
{
    return a->low == b->low && a->high == b->high && a->block == b->block && a->layers == b->layers;
}

static entry *
find(esdm__cache *cache, const esdm__cache_key *key)
{
    if (cache->buckets == NULL)
        return NULL;
    for (entry *e = *bucket_of(cache, key); e != NULL; e = e->chain) {
        if (same_key(&e->key, key))
            return e;
    }
    return NULL;
}

static void
unlink_age(esdm__cache *cache, entry *e)
{
    *(e->newer != NULL ? &e->newer->older : &cache->newest) = e->older;
    *(e->older != NULL ? &e->older->newer : &cache->oldest) = e->newer;
}

static void
link_newest(esdm__cache *cache, entry *e)
{
    e->newer = NULL;
    e->older = cache->newest;
    *(cache->newest != NULL ? &cache->newest->newer : &cache->oldest) = e;
    cache->newest = e;
}

static void
drop(esdm__cache *cache, entry *e)
{
    entry **at = bucket_of(cache, &e->key);
    while (*at != e)
        at = &(*at)->chain;
    *at = e->chain;
    unlink_age(cache, e);
    cache->used_bytes -= e->bytes;
    e->dropped = true;
    if (e->readers == 0)
        free(e);
}

static void
make_room(esdm__cache *cache, size_t bytes)
{
    entry *e = cache->oldest;
    while (e != NULL && cache->used_bytes + bytes > cache->limit_bytes) {
        entry *newer = e->newer;
        drop(cache, e);
        e = newer;
    }
}

bool
esdm__cache_get_part(esdm__cache *cache, const esdm__cache_key *key, size_t offset, void *data,
                     size_t bytes)
{
    (void) pthread_mutex_lock(&cache->lock);
    entry *e = find(cache, key);
    bool hit = e != NULL && offset <= e->bytes && bytes <= e->bytes - offset;
    bool outside = hit && bytes > COPIED_WITHIN;
    if (hit && e != cache->newest) {
        unlink_age(cache, e);
        link_newest(cache, e);
    }
    if (outside)
        e->readers++;
    else if (hit)
        memcpy(data, e->data + offset, bytes);
    (void) pthread_mutex_unlock(&cache->lock);
    if (!outside)
        return hit;
    memcpy(data, e->data + offset, bytes); /* other threads go on meanwhile */
    (void) pthread_mutex_lock(&cache->lock);
    bool last = --e->readers == 0 && e->dropped;
    (void) pthread_mutex_unlock(&cache->lock);
    if (last)
        free(e);
    return true;
}

bool
esdm__cache_get(esdm__cache *cache, const esdm__cache_key *key, void *data, size_t bytes)
{
    return esdm__cache_get_part(cache, key, 0, data, bytes);
}

bool
esdm__cache_has(esdm__cache *cache, const esdm__cache_key *key)
{
    (void) pthread_mutex_lock(&cache->lock);
    bool has = find(cache, key) != NULL;
    (void) pthread_mutex_unlock(&cache->lock);
    return has;
}

bool
esdm__cache_takes(const esdm__cache *cache, size_t bytes)
{
    return bytes <= cache->limit_bytes / 4;
}

void
esdm__cache_put(esdm__cache *cache, const esdm__cache_key *key, const void *data, size_t bytes)
{
    if (!esdm__cache_takes(cache, bytes))
        return;
    entry *e = malloc(sizeof *e + bytes);
    if (e == NULL)
        return;
    e->key = *key;
    e->bytes = bytes;
    e->readers = 0;
    e->dropped = false;
    memcpy(e->data, data, bytes);

    (void) pthread_mutex_lock(&cache->lock);
    if (cache->buckets == NULL)
        cache->buckets = calloc(BUCKETS, sizeof *cache->buckets);
    if (cache->buckets == NULL || find(cache, key) != NULL) {
        (void) pthread_mutex_unlock(&cache->lock);
        free(e);
        return;
    }
    make_room(cache, bytes);
    entry **at = bucket_of(cache, key);
    e->chain = *at;
    *at = e;
    link_newest(cache, e);
    cache->used_bytes += bytes;
    (void) pthread_mutex_unlock(&cache->lock);
}
