/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Shards that this process has made. A shard is written to by one writer alone, so that who has
 * made it knows which numbers of packs are taken in it; a few of the last ones are remembered.
 */

#include <string.h>

#include "kv.h"

/* Where the shard is remembered. */
static kv__made *
place_of(kv__target *target, const char *shard)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (const char *c = shard; *c != '\0'; c++)
        hash = (hash ^ (uint8_t) *c) * 16777619u;
    return &target->made[hash % KV__MADE];
}

void
kv__made_note(kv__target *target, const char *shard)
{
    (void) pthread_mutex_lock(&target->made_lock);
    kv__made *made = place_of(target, shard);
    if (strcmp(made->file, shard) != 0) { /* else it is being made, or was removed */
        memset(made, 0, sizeof *made);
        memcpy(made->file, shard, strlen(shard) + 1);
    }
    (void) pthread_mutex_unlock(&target->made_lock);
}

/* 0: none. */
static uint32_t
group_of(const char *name)
{
    return kv__is_numbered(name) ? UINT32_C(1) << (kv__shard_number(name) / KV__LISTED_AHEAD) : 0;
}

/* Names begin with the container. */
static bool
is_of_container(const kv__made *made, const char *name)
{
    size_t bytes = strcspn(name, "-");
    return strncmp(made->container, name, bytes) == 0 && made->container[bytes] == '\0';
}

bool
kv__made_is_listed(kv__target *target, const char *shard, const char *name, bool empty)
{
    (void) pthread_mutex_lock(&target->made_lock);
    kv__made *made = place_of(target, shard);
    bool known = strcmp(made->file, shard) == 0;
    if (known && empty) /* it was removed meanwhile, with its list */
        made->listed = 0;
    bool listed = known && is_of_container(made, name) && (made->listed & group_of(name)) != 0;
    (void) pthread_mutex_unlock(&target->made_lock);
    return listed;
}

void
kv__made_list(kv__target *target, const char *shard, const char *name)
{
    (void) pthread_mutex_lock(&target->made_lock);
    kv__made *made = place_of(target, shard);
    if (strcmp(made->file, shard) == 0) {
        if (!is_of_container(made, name)) {
            size_t bytes = strcspn(name, "-");
            memcpy(made->container, name, bytes);
            made->container[bytes] = '\0';
            made->listed = 0;
        }
        made->listed |= group_of(name);
    }
    (void) pthread_mutex_unlock(&target->made_lock);
}

bool
kv__made_take(kv__target *target, const char *shard, const char *name)
{
    unsigned number = kv__shard_number(name);
    uint8_t bit = (uint8_t) (1u << (number % 8));
    (void) pthread_mutex_lock(&target->made_lock);
    kv__made *made = place_of(target, shard);
    bool vacant = strcmp(made->file, shard) == 0 && (made->used[number / 8] & bit) == 0;
    if (vacant)
        made->used[number / 8] |= bit;
    (void) pthread_mutex_unlock(&target->made_lock);
    return vacant;
}
