/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Packs that are open for reading: a bounded number of descriptors. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "posix.h"

#define SLOTS 64

typedef struct slot {
    uint64_t hash; /* of the name; compared before the name */
    uint64_t used; /* tick of the last use */
    uint32_t users;
    int fd;       /* -1: the slot is empty */
    bool dropped; /* the pack was removed: not to be found again */
    char name[POSIX__NAME_MAX + 1];
} slot;

struct posix__cache {
    pthread_mutex_t mutex; /* guards everything below; innermost; never held while opening */
    uint64_t tick;
    slot slots[SLOTS];
};

posix__cache *
posix__cache_new(void)
{
    posix__cache *cache = calloc(1, sizeof *cache);
    if (cache == NULL)
        return NULL;
    if (pthread_mutex_init(&cache->mutex, NULL) != 0) {
        free(cache);
        return NULL;
    }
    for (size_t i = 0; i < SLOTS; i++)
        cache->slots[i].fd = -1;
    return cache;
}

/* Opens a pack. What is no file, as a pipe that nobody writes to, must not be waited for. */
static esdm_status
open_pack(const posix__target *target, const char *name, int *ret_fd, esdm_error *err)
{
    struct stat found;
    char file[POSIX__FILE_BYTES];
    esdm_status status = posix__file_name(name, file, err);
    if (status != ESDM_OK)
        return status;
    int fd = esdm__descriptor_keep(
        openat(target->fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (fd < 0 && (errno == ELOOP || errno == ENXIO))
        return esdm__error_set(err, ESDM_ECORRUPT, "posix: pack '%s/%s' is no regular file",
                               target->directory, file);
    if (fd < 0)
        return esdm__error_set_errno(err, errno, "posix: cannot open pack '%s/%s'",
                                     target->directory, file);
    if (fstat(fd, &found) != 0 || !S_ISREG(found.st_mode)) {
        (void) esdm__descriptor_close(fd);
        return esdm__error_set(err, ESDM_ECORRUPT, "posix: pack '%s/%s' is no regular file",
                               target->directory, file);
    }
    *ret_fd = fd;
    return ESDM_OK;
}

void
posix__cache_free(posix__cache *cache)
{
    if (cache == NULL)
        return;
    for (size_t i = 0; i < SLOTS; i++) {
        if (cache->slots[i].fd >= 0)
            (void) esdm__descriptor_close(cache->slots[i].fd);
    }
    (void) pthread_mutex_destroy(&cache->mutex);
    free(cache);
}

/* Under the mutex; -1 when it is not there. */
static int
find_slot(posix__cache *cache, uint64_t hash, const char *name)
{
    for (int i = 0; i < SLOTS; i++) {
        const slot *s = &cache->slots[i];
        if (s->fd >= 0 && s->hash == hash && !s->dropped && strcmp(s->name, name) == 0)
            return i;
    }
    return -1;
}

/* Under the mutex: an empty slot, else the longest unused one; -1 when all are in use. */
static int
free_slot(const posix__cache *cache)
{
    int best = -1;
    for (int i = 0; i < SLOTS; i++) {
        const slot *s = &cache->slots[i];
        if (s->fd < 0)
            return i;
        if (s->users == 0 && (best < 0 || s->used < cache->slots[best].used))
            best = i;
    }
    return best;
}

/* Under the mutex. */
static int
take_slot(posix__cache *cache, int index)
{
    cache->slots[index].users++;
    cache->slots[index].used = ++cache->tick;
    return cache->slots[index].fd;
}

/* Under the mutex: enters an open file. Returns its slot and the file to close, if any. */
static int
enter_slot(posix__cache *cache, uint64_t hash, const char *name, int fd, int *ret_surplus)
{
    *ret_surplus = -1;
    int index = free_slot(cache);
    if (index < 0)
        return -1;
    slot *s = &cache->slots[index];
    *ret_surplus = s->fd;
    *s = (slot){.hash = hash, .fd = fd};
    memcpy(s->name, name, strlen(name) + 1);
    return index;
}

esdm_status
posix__cache_acquire(posix__cache *cache, const posix__target *target, const char *name,
                     int *ret_fd, int *ret_slot, esdm_error *err)
{
    uint64_t hash = esdm__checksum(name, strlen(name));

    (void) pthread_mutex_lock(&cache->mutex);
    int index = find_slot(cache, hash, name);
    int fd = index >= 0 ? take_slot(cache, index) : -1;
    (void) pthread_mutex_unlock(&cache->mutex);
    if (index < 0) {
        esdm_status status = open_pack(target, name, &fd, err);
        if (status != ESDM_OK)
            return status;
        int surplus = -1;
        (void) pthread_mutex_lock(&cache->mutex);
        index = find_slot(cache, hash, name);
        if (index >= 0) { /* another thread was faster */
            surplus = fd;
            fd = take_slot(cache, index);
        } else if ((index = enter_slot(cache, hash, name, fd, &surplus)) >= 0) {
            (void) take_slot(cache, index);
        }
        (void) pthread_mutex_unlock(&cache->mutex);
        if (surplus >= 0)
            (void) esdm__descriptor_close(surplus);
    }
    *ret_fd = fd;
    *ret_slot = index;
    return ESDM_OK;
}

void
posix__cache_release(posix__cache *cache, int fd, int index)
{
    int surplus = -1;
    if (index < 0) {
        surplus = fd;
    } else {
        (void) pthread_mutex_lock(&cache->mutex);
        slot *s = &cache->slots[index];
        if (--s->users == 0 && s->dropped) {
            surplus = s->fd;
            s->fd = -1;
        }
        (void) pthread_mutex_unlock(&cache->mutex);
    }
    if (surplus >= 0)
        (void) esdm__descriptor_close(surplus);
}

void
posix__cache_drop(posix__cache *cache, const char *name)
{
    int surplus = -1;
    uint64_t hash = esdm__checksum(name, strlen(name));
    (void) pthread_mutex_lock(&cache->mutex);
    int index = find_slot(cache, hash, name);
    if (index >= 0) {
        slot *s = &cache->slots[index];
        s->dropped = true;
        if (s->users == 0) {
            surplus = s->fd;
            s->fd = -1;
        }
    }
    (void) pthread_mutex_unlock(&cache->mutex);
    if (surplus >= 0)
        (void) esdm__descriptor_close(surplus);
}
