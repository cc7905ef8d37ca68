/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/session/cache.h"

#include <pthread.h>
#include <stdatomic.h>
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
    atomic_uint readers; /* that copy from it without the lock */
    bool dropped;        /* it is in no list any more: the last reader frees it */
    atomic_bool wanted;  /* it was found since it became the newest, or was passed over for room */
    uint8_t data[];
} entry;

/* Readers take the lock of their lane, writers those of all lanes that have had a reader or writer:
 * what is found is copied without a write to memory that other cores have in their caches. */
enum { LANES = 8, LINE_BYTES = 64 };

typedef struct lane {
    pthread_mutex_t lock;
    char apart[LINE_BYTES - sizeof(pthread_mutex_t) % LINE_BYTES];
} lane;

struct esdm__cache {
    _Alignas(LINE_BYTES) lane lanes[LANES]; /* guard all below; leaf locks, taken in their order */
    atomic_uint taken; /* bits of lanes that threads have; set with the first lane's lock held */
    entry **buckets;   /* allocated with the first entry */
    entry *newest;
    entry *oldest;
    uint64_t used_bytes;
    uint64_t limit_bytes;
};

/* Locks the lane of this thread, and returns its lock. */
static pthread_mutex_t *
lock_own(esdm__cache *cache)
{
    static atomic_uint next;
    static _Thread_local unsigned mine;
    if (mine == 0)
        mine = atomic_fetch_add(&next, 1) % LANES + 1;
    unsigned own = mine - 1;
    if ((atomic_load_explicit(&cache->taken, memory_order_acquire) >> own & 1) == 0) {
        /* No writer is at work meanwhile, and each that comes later finds the lane. */
        (void) pthread_mutex_lock(&cache->lanes[0].lock);
        (void) atomic_fetch_or(&cache->taken, 1U << own);
        (void) pthread_mutex_unlock(&cache->lanes[0].lock);
    }
    (void) pthread_mutex_lock(&cache->lanes[own].lock);
    return &cache->lanes[own].lock;
}

/* For writers. Returns the lanes, for unlock_all(). */
static unsigned
lock_all(esdm__cache *cache)
{
    (void) pthread_mutex_lock(&cache->lanes[0].lock);
    unsigned taken = atomic_load(&cache->taken) | 1U;
    for (unsigned left = taken & ~1U; left != 0; left &= left - 1)
        (void) pthread_mutex_lock(&cache->lanes[__builtin_ctz(left)].lock);
    return taken;
}

static void
unlock_all(esdm__cache *cache, unsigned taken)
{
    for (unsigned left = taken; left != 0; left &= left - 1)
        (void) pthread_mutex_unlock(&cache->lanes[__builtin_ctz(left)].lock);
}

esdm__cache *
esdm__cache_new(uint64_t limit_bytes)
{
    esdm__cache *cache = aligned_alloc(LINE_BYTES, sizeof *cache);
    if (cache == NULL)
        return NULL;
    memset(cache, 0, sizeof *cache);
    cache->limit_bytes = limit_bytes;
    for (int i = 0; i < LANES; i++)
        esdm__mutex_init_short(&cache->lanes[i].lock);
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
    for (int i = 0; i < LANES; i++)
        (void) pthread_mutex_destroy(&cache->lanes[i].lock);
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
        if (e->wanted) { /* once more */
            e->wanted = false;
            unlink_age(cache, e);
            link_newest(cache, e);
            newer = newer != NULL ? newer : e;
        } else {
            drop(cache, e);
        }
        e = newer;
    }
}

bool
esdm__cache_get_part(esdm__cache *cache, const esdm__cache_key *key, size_t offset, void *data,
                     size_t bytes)
{
    pthread_mutex_t *own = lock_own(cache);
    entry *e = find(cache, key);
    bool hit = e != NULL && offset <= e->bytes && bytes <= e->bytes - offset;
    bool outside = hit && bytes > COPIED_WITHIN;
    if (hit && !e->wanted) /* once: others would wait for each write */
        e->wanted = true;
    if (outside)
        atomic_fetch_add(&e->readers, 1);
    else if (hit)
        memcpy(data, e->data + offset, bytes);
    (void) pthread_mutex_unlock(own);
    if (!outside)
        return hit;
    memcpy(data, e->data + offset, bytes); /* other threads go on meanwhile */
    (void) pthread_mutex_lock(own);
    bool last = atomic_fetch_sub(&e->readers, 1) == 1 && e->dropped;
    (void) pthread_mutex_unlock(own);
    if (last)
        free(e);
    return true;
}

bool
esdm__cache_get(esdm__cache *cache, const esdm__cache_key *key, void *data, size_t bytes)
{
    return esdm__cache_get_part(cache, key, 0, data, bytes);
}

void
esdm__cache_get_blocks(esdm__cache *cache, esdm__cache_wanted *blocks, size_t count)
{
    entry *found[ESDM__CACHE_BLOCKS_MOST];
    bool any = false;
    pthread_mutex_t *own = lock_own(cache);
    for (size_t i = 0; i < count; i++) {
        entry *e = find(cache, &blocks[i].key);
        blocks[i].found = e != NULL && blocks[i].bytes <= e->bytes;
        found[i] = blocks[i].found ? e : NULL;
        if (!blocks[i].found)
            continue;
        any = true;
        if (!e->wanted)
            e->wanted = true;
        atomic_fetch_add(&e->readers, 1);
    }
    (void) pthread_mutex_unlock(own);
    if (!any)
        return;
    for (size_t i = 0; i < count; i++) {
        if (blocks[i].found)
            memcpy(blocks[i].data, found[i]->data, blocks[i].bytes);
    }
    (void) pthread_mutex_lock(own);
    for (size_t i = 0; i < count; i++) {
        if (blocks[i].found && (atomic_fetch_sub(&found[i]->readers, 1) != 1 || !found[i]->dropped))
            found[i] = NULL;
    }
    (void) pthread_mutex_unlock(own);
    for (size_t i = 0; i < count; i++) {
        if (blocks[i].found)
            free(found[i]);
    }
}

bool
esdm__cache_has(esdm__cache *cache, const esdm__cache_key *key)
{
    pthread_mutex_t *own = lock_own(cache);
    bool has = find(cache, key) != NULL;
    (void) pthread_mutex_unlock(own);
    return has;
}

bool
esdm__cache_takes(const esdm__cache *cache, size_t bytes)
{
    return bytes <= cache->limit_bytes / 4;
}

static entry *
entry_new(const esdm__cache_key *key, const void *data, size_t bytes)
{
    entry *e = malloc(sizeof *e + bytes);
    if (e == NULL)
        return NULL;
    e->key = *key;
    e->bytes = bytes;
    e->readers = 0;
    e->dropped = false;
    e->wanted = false;
    memcpy(e->data, data, bytes);
    return e;
}

/* With the locks of all lanes. false: it is there already, or there is no memory. */
static bool
enter(esdm__cache *cache, entry *e)
{
    if (cache->buckets == NULL)
        cache->buckets = calloc(BUCKETS, sizeof *cache->buckets);
    if (cache->buckets == NULL || find(cache, &e->key) != NULL)
        return false;
    make_room(cache, e->bytes);
    entry **at = bucket_of(cache, &e->key);
    e->chain = *at;
    *at = e;
    link_newest(cache, e);
    cache->used_bytes += e->bytes;
    return true;
}

void
esdm__cache_put_blocks(esdm__cache *cache, const esdm__cache_block *blocks, size_t count)
{
    entry *made[ESDM__CACHE_BLOCKS_MOST];
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        const esdm__cache_block *b = &blocks[i];
        if (!esdm__cache_takes(cache, b->bytes))
            continue;
        made[left] = entry_new(&b->key, b->data, b->bytes);
        left += made[left] != NULL;
    }
    if (left == 0)
        return;
    size_t refused = 0;
    unsigned taken = lock_all(cache);
    for (size_t i = 0; i < left; i++) {
        if (!enter(cache, made[i]))
            made[refused++] = made[i];
    }
    unlock_all(cache, taken);
    while (refused > 0)
        free(made[--refused]);
}

void
esdm__cache_put(esdm__cache *cache, const esdm__cache_key *key, const void *data, size_t bytes)
{
    entry *e = esdm__cache_takes(cache, bytes) ? entry_new(key, data, bytes) : NULL;
    if (e == NULL)
        return;
    unsigned taken = lock_all(cache);
    bool entered = enter(cache, e);
    unlock_all(cache, taken);
    if (!entered)
        free(e);
}
