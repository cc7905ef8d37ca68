/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file An open target: reading, listing and removing packs. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/usage.h"
#include "kv.h"

esdm_status
kv__open(const esdm_plugin_config *config, void **ret_target, esdm_error *err)
{
    esdm__place place = {0};
    kv__prepare_forks();
    esdm_status status = esdm__place_init(&place, "kv", config, err);
    if (status != ESDM_OK)
        return status;
    kv__target *target = calloc(1, sizeof *target);
    if (target == NULL) {
        esdm__place_clear(&place);
        return esdm__error_nomem(err, sizeof *target, "a kv target");
    }
    target->fd = -1;
    (void) pthread_mutex_init(&target->made_lock, NULL);
    status = esdm__place_open(&place, &target->fd, err);
    target->fd = esdm__descriptor_keep(target->fd);
    target->directory = place.directory;
    target->durable = config->durable;
    place.directory = NULL;
    esdm__place_clear(&place);
    if (status != ESDM_OK) {
        kv__close(target);
        return status;
    }
    *ret_target = target;
    return ESDM_OK;
}

void
kv__close(void *self)
{
    kv__target *target = self;
    if (target == NULL)
        return;
    kv__release_all(target);
    if (target->fd >= 0)
        (void) esdm__descriptor_close(target->fd);
    (void) pthread_mutex_destroy(&target->made_lock);
    free(target->directory);
    free(target);
}

/* ---- finding -------------------------------------------------------------------------------- */

/* Opens one of the two databases, and looks whether the pack is in it. */
static esdm_status
find_in(const kv__target *target, const char *file, const char *name, kv__handle **ret_handle,
        esdm_error *err)
{
    kv__handle *handle = NULL;
    uint64_t bytes = 0;
    uint64_t modified_ns = 0;
    esdm_status status = kv__acquire(target, file, KV__READ, KV__READ_WAIT_MS, &handle, err);
    if (status != ESDM_OK)
        return status;
    if (kv__read_length(handle, name, &bytes, &modified_ns) == ESDM_OK) {
        *ret_handle = handle;
        return ESDM_OK;
    }
    (void) !kv__release(handle, NULL);
    return esdm__error_set(err, ESDM_ENOENT, "kv: there is no pack '%s' in '%s'", name,
                           target->directory);
}

esdm_status
kv__find_pack(const kv__target *target, const char *name, kv__handle **ret_handle, esdm_error *err)
{
    char file[KV__FILE_BYTES];
    esdm_error why = {0};
    esdm_status own = ESDM_ENOENT;
    kv__own_file(name, file);
    if (faccessat(target->fd, file, F_OK, 0) == 0)
        own = find_in(target, file, name, ret_handle, &why);
    if (own == ESDM_OK)
        return ESDM_OK;
    kv__shard_file(name, file);
    esdm_status status = find_in(target, file, name, ret_handle, err);
    if (status == ESDM_ENOENT && own != ESDM_ENOENT) { /* it is the damaged one */
        if (err != NULL)
            *err = why;
        return own;
    }
    if (status == ESDM_ENOENT) /* the shard may be what is not there */
        return esdm__error_set(err, ESDM_ENOENT, "kv: there is no pack '%s' in '%s'", name,
                               target->directory);
    return status;
}

/* ---- reading -------------------------------------------------------------------------------- */

static bool
read_range(const kv__handle *handle, const char *name, const esdm_range *range)
{
    uint8_t *to = range->buffer;
    uint64_t at = range->position;
    uint64_t left = range->bytes;
    while (left > 0) {
        size_t from = (size_t) (at % KV__CHUNK_BYTES);
        size_t n = KV__CHUNK_BYTES - from;
        n = left < n ? (size_t) left : n;
        if (!kv__read_chunk(handle, name, at / KV__CHUNK_BYTES, from, n, to))
            return false;
        to += n;
        at += n;
        left -= n;
    }
    return true;
}

esdm_status
kv__pack_read(void *self, const char *name, const esdm_range *ranges, size_t nranges,
              esdm_error *err)
{
    const kv__target *target = self;
    kv__handle *handle = NULL;
    uint64_t length = 0;
    uint64_t modified_ns = 0;
    esdm_status status = kv__check_name(name, err);
    if (status == ESDM_OK)
        status = kv__find_pack(target, name, &handle, err);
    if (status != ESDM_OK)
        return status;
    status = kv__read_length(handle, name, &length, &modified_ns);
    for (size_t i = 0; i < nranges && status == ESDM_OK; i++) {
        if (ranges[i].position > length || ranges[i].bytes > length - ranges[i].position)
            status = esdm__error_set(err, ESDM_ECORRUPT,
                                     "kv: pack '%s' in '%s' is shorter than the bytes asked for",
                                     name, target->directory);
        else if (!read_range(handle, name, &ranges[i]))
            status = esdm__error_set(err, ESDM_ECORRUPT, "kv: pack '%s' in '%s' has lost a record",
                                     name, target->directory);
    }
    (void) !kv__release(handle, NULL);
    return status;
}

/* ---- listing -------------------------------------------------------------------------------- */

typedef struct listing {
    const kv__target *target;
    const char *prefix;
    esdm_pack_visitor visit;
    void *user;
    bool go_on;
} listing;

static void
show_pack(listing *l, const char *name, uint64_t bytes, uint64_t modified_ns)
{
    if (l->go_on && strncmp(name, l->prefix, strlen(l->prefix)) == 0)
        l->go_on = l->visit(name, bytes, modified_ns, l->user);
}

/* Its database is locked while it is being written, and has no length when a writer was killed:
 * then its size and time are told. */
static void
list_own(listing *l, const char *file)
{
    char name[KV__NAME_MAX + 1];
    struct stat found;
    size_t bytes = 0;
    const char *pack = kv__pack_of(file, &bytes);
    if (pack == NULL || bytes > KV__NAME_MAX || fstatat(l->target->fd, file, &found, 0) != 0)
        return;
    memcpy(name, pack, bytes);
    name[bytes] = '\0';
    if (kv__check_name(name, NULL) != ESDM_OK || strncmp(name, l->prefix, strlen(l->prefix)) != 0)
        return;
    kv__handle *handle = NULL;
    uint64_t length = (uint64_t) found.st_size;
    uint64_t modified_ns =
        (uint64_t) found.st_mtim.tv_sec * 1000000000u + (uint64_t) found.st_mtim.tv_nsec;
    if (kv__acquire(l->target, file, KV__READ, 0, &handle, NULL) == ESDM_OK) {
        (void) !kv__read_length(handle, name, &length, &modified_ns);
        (void) !kv__release(handle, NULL);
    }
    show_pack(l, name, length, modified_ns);
}

static esdm_status
list_shard(listing *l, const char *file, esdm_error *err)
{
    kv__handle *handle = NULL;
    char *list = NULL;
    size_t bytes = 0;
    esdm_status status = kv__acquire(l->target, file, KV__READ, KV__READ_WAIT_MS, &handle, err);
    if (status != ESDM_OK)
        return status == ESDM_ENOENT ? ESDM_OK : status; /* removed just now */
    kv__list_read(handle, &list, &bytes);
    /* Removed packs must not be asked for in a database that is closed: all is read first. */
    esdm__buffer entries;
    esdm__buffer_init(&entries);
    for (size_t at = 0; list != NULL && at < bytes;) {
        const char *end = memchr(list + at, '\n', bytes - at);
        size_t length = end != NULL ? (size_t) (end - (list + at)) : bytes - at;
        char name[KV__NAME_MAX + 1] = "";
        uint64_t sizes[2] = {0, 0};
        memcpy(name, list + at, length <= KV__NAME_MAX ? length : 0);
        if (kv__read_length(handle, name, &sizes[0], &sizes[1]) == ESDM_OK) {
            esdm__buffer_put(&entries, sizes, sizeof sizes);
            esdm__buffer_put(&entries, name, sizeof name);
        }
        at += length + 1;
    }
    kcfree(list);
    (void) !kv__release(handle, NULL);
    size_t step = 2 * sizeof(uint64_t) + KV__NAME_MAX + 1;
    for (size_t at = 0; !entries.failed && at + step <= entries.bytes; at += step) {
        uint64_t sizes[2];
        memcpy(sizes, entries.data + at, sizeof sizes);
        show_pack(l, (const char *) entries.data + at + sizeof sizes, sizes[0], sizes[1]);
    }
    status = entries.failed ? esdm__error_nomem(err, entries.bytes, "a list of packs") : ESDM_OK;
    esdm__buffer_clear(&entries);
    return status;
}

esdm_status
kv__pack_list(void *self, const char *prefix, esdm_pack_visitor visit, void *user, esdm_error *err)
{
    const kv__target *target = self;
    listing l = {.target = target,
                 .prefix = prefix != NULL ? prefix : "",
                 .visit = visit,
                 .user = user,
                 .go_on = true};
    esdm_status status = ESDM_OK;
    DIR *dir = opendir(target->directory);
    if (dir == NULL)
        return esdm__error_set_errno(err, errno, "kv: cannot list '%s'", target->directory);
    for (struct dirent *entry = readdir(dir); entry != NULL && l.go_on && status == ESDM_OK;
         entry = readdir(dir)) {
        if (kv__is_shard(entry->d_name))
            status = list_shard(&l, entry->d_name, err);
        else
            list_own(&l, entry->d_name);
    }
    (void) closedir(dir);
    return status;
}

esdm_status
kv__space(void *self, esdm_target_usage *ret_usage, esdm_error *err)
{
    const kv__target *target = self;
    return esdm__usage_of_directory(target->fd, "kv", target->directory, ret_usage, err);
}

esdm_status
kv__usage(void *self, esdm_target_usage *ret_usage, esdm_error *err)
{
    const kv__target *target = self;
    esdm_target_usage usage;
    esdm_status status = esdm__usage_of_directory(target->fd, "kv", target->directory, &usage, err);
    if (status == ESDM_OK)
        status = kv__pack_list(self, NULL, esdm__usage_add, &usage, err);
    if (status == ESDM_OK)
        *ret_usage = usage;
    return status;
}

/* ---- removing ------------------------------------------------------------------------------- */

static esdm_status
remove_records(const kv__target *target, const char *file, const char *name, kv__handle *shard,
               esdm_error *err)
{
    KCDB *db = kv__database(shard);
    uint64_t length = 0;
    uint64_t modified_ns = 0;
    if (kv__read_length(shard, name, &length, &modified_ns) != ESDM_OK) {
        if (!kv__has_packs(shard)) /* its writer was killed before the first one */
            kv__delete_empty(target, file);
        return ESDM_OK;
    }
    bool good = kv__begin(target, db, false);
    for (uint64_t at = 0; at < length && good; at += KV__CHUNK_BYTES) {
        char key[KV__FILE_BYTES + 24];
        size_t key_bytes = kv__chunk_key(name, at / KV__CHUNK_BYTES, key);
        (void) kcdbremove(db, key, key_bytes);
    }
    good = good && kcdbremove(db, name, strlen(name)) != 0;
    esdm_status status = good ? ESDM_OK : kv__error(target, file, db, "remove from", err);
    if (!kv__end(target, db, false, good) && good)
        status = kv__error(target, file, db, "remove from", err);
    if (status == ESDM_OK && !kv__has_packs(shard))
        kv__delete_empty(target, file);
    return status;
}

esdm_status
kv__pack_remove(void *self, const char *name, esdm_error *err)
{
    const kv__target *target = self;
    char file[KV__FILE_BYTES];
    kv__handle *shard = NULL;
    esdm_status status = kv__check_name(name, err);
    if (status != ESDM_OK)
        return status;
    if (faccessat(target->fd, ".", W_OK | X_OK, AT_EACCESS) != 0)
        return esdm__error_set_errno(err, errno, "kv: cannot remove pack '%s' in '%s'", name,
                                     target->directory);
    kv__own_file(name, file);
    status = kv__delete(target, file, err);
    kv__shard_file(name, file);
    if (status != ESDM_OK || faccessat(target->fd, file, F_OK, 0) != 0)
        return status;
    esdm_error why = {0};
    status = kv__acquire(target, file, KV__CHANGE, KV__REMOVE_WAIT_MS, &shard, &why);
    if (status == ESDM_ENOENT) /* removed just now, or never made */
        return ESDM_OK;
    if (status != ESDM_OK) {
        if (err != NULL)
            *err = why;
        return status;
    }
    status = remove_records(target, file, name, shard, err);
    esdm_status closed = kv__release(shard, status == ESDM_OK ? err : NULL);
    return status == ESDM_OK ? closed : status;
}
