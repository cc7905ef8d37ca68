/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Writing packs. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/error.h"
#include "kv.h"

/* What a small pack has in memory at first. */
#define FIRST_BYTES ((size_t) 2 << 10)

typedef struct pack {
    struct pack *next; /* list of unsealed packs of this process */
    kv__target *target;
    kv__handle *own; /* its own database; NULL: it is small so far */
    uint8_t *data;   /* owned: of a small pack all bytes, else the chunk that is not full */
    size_t capacity;
    uint64_t length_bytes;
    uint64_t stored_bytes; /* of a small pack, by a sync: what the shard has */
    bool offered;          /* to the shard, which may have it or a part of it */
    bool lost;             /* its own database did not take all of it */
    char name[KV__NAME_MAX + 1];
} pack;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards unsealed */
static pack *unsealed;

void
kv__lock_packs(void)
{
    (void) pthread_mutex_lock(&mutex);
}

void
kv__unlock_packs(void)
{
    (void) pthread_mutex_unlock(&mutex);
}

/* ---- names in use --------------------------------------------------------------------------- */

static bool
claim_name(pack *created)
{
    bool good = true;
    (void) pthread_mutex_lock(&mutex);
    for (const pack *other = unsealed; other != NULL && good; other = other->next)
        good = strcmp(other->target->directory, created->target->directory) != 0 ||
               strcmp(other->name, created->name) != 0;
    if (good) {
        created->next = unsealed;
        unsealed = created;
    }
    (void) pthread_mutex_unlock(&mutex);
    return good;
}

static void
free_pack(pack *gone)
{
    (void) pthread_mutex_lock(&mutex);
    for (pack **at = &unsealed; *at != NULL; at = &(*at)->next) {
        if (*at == gone) {
            *at = gone->next;
            break;
        }
    }
    (void) pthread_mutex_unlock(&mutex);
    free(gone->data);
    free(gone);
}

static esdm_status
check_writable(const kv__target *target, esdm_error *err)
{
    if (faccessat(target->fd, ".", W_OK | X_OK, AT_EACCESS) == 0)
        return ESDM_OK;
    return esdm__error_set_errno(err, errno, "kv: cannot create a pack in '%s'", target->directory);
}

static esdm_status
exists_error(const kv__target *target, const char *name, esdm_error *err)
{
    return esdm__error_set(err, ESDM_EEXIST, "kv: pack '%s' exists in '%s'", name,
                           target->directory);
}

/* Opening a shard takes longer than storing a few bytes in it: for those of this process its
 * memory is asked. Whether it was right shows when the pack is stored. */
static esdm_status
check_vacant(kv__target *target, const char *name, esdm_error *err)
{
    char own[KV__FILE_BYTES];
    char shard[KV__FILE_BYTES];
    kv__handle *there = NULL;
    esdm_error why = {0};
    kv__own_file(name, own);
    kv__shard_file(name, shard);
    if (kv__made_take(target, shard, name))
        return ESDM_OK;
    esdm_status status = check_writable(target, err);
    if (status != ESDM_OK)
        return status;
    if (!kv__is_there(target, shard) && !kv__is_there(target, own)) {
        kv__made_note(target, shard);
        (void) kv__made_take(target, shard, name);
        return ESDM_OK;
    }
    status = kv__find_pack(target, name, &there, &why);
    (void) !kv__release(there, NULL);
    if (status == ESDM_ENOENT)
        return ESDM_OK;
    if (status == ESDM_OK)
        return exists_error(target, name, err);
    if (err != NULL)
        *err = why;
    return status;
}

esdm_status
kv__pack_create(void *self, const char *name, void **ret_pack, esdm_error *err)
{
    kv__target *target = self;
    esdm_status status = kv__check_name(name, err);
    if (status == ESDM_OK)
        status = check_vacant(target, name, err);
    if (status != ESDM_OK)
        return status;
    pack *created = calloc(1, sizeof *created);
    if (created == NULL)
        return esdm__error_nomem(err, sizeof *created, "a pack");
    created->target = target;
    memcpy(created->name, name, strlen(name) + 1);
    if (!claim_name(created)) {
        free(created);
        return esdm__error_set(err, ESDM_EEXIST, "kv: pack '%s' is being written in '%s'", name,
                               target->directory);
    }
    *ret_pack = created;
    return ESDM_OK;
}

/* ---- chunks --------------------------------------------------------------------------------- */

static bool
put_chunk(kv__handle *handle, const char *name, uint64_t chunk, const void *data, size_t bytes)
{
    char key[KV__FILE_BYTES + 24];
    size_t key_bytes = kv__chunk_key(name, chunk, key);
    return kcdbset(kv__database(handle), key, key_bytes, data, bytes) != 0;
}

static esdm_status
own_error(const pack *of, const char *what, esdm_error *err)
{
    char file[KV__FILE_BYTES];
    kv__own_file(of->name, file);
    return kv__error(of->target, file, kv__database(of->own), what, err);
}

/* All bytes that are in memory. */
static bool
put_small(kv__handle *handle, const pack *of)
{
    bool good = true;
    for (uint64_t at = 0; at < of->length_bytes && good; at += KV__CHUNK_BYTES) {
        uint64_t left = of->length_bytes - at;
        good = put_chunk(handle, of->name, at / KV__CHUNK_BYTES, of->data + at,
                         left < KV__CHUNK_BYTES ? (size_t) left : KV__CHUNK_BYTES);
    }
    return good && kv__write_length(handle, of->name, of->length_bytes);
}

/* Gives a small pack a database of its own, where all but the last chunk go. There must be room for
 * `more` bytes, too. */
static esdm_status
move_out(pack *of, uint64_t more, esdm_error *err)
{
    char file[KV__FILE_BYTES];
    kv__own_file(of->name, file);
    if (kv__is_there(of->target, file))
        return exists_error(of->target, of->name, err);
    esdm_status status = kv__acquire(of->target, file, KV__WRITE, KV__WRITE_WAIT_MS, &of->own, err);
    if (status != ESDM_OK)
        return status;
    uint64_t whole = of->length_bytes / KV__CHUNK_BYTES;
    uint64_t total = of->length_bytes + more;
    status = kv__reserve(of->target, of->own, total, total / KV__CHUNK_BYTES + 1, err);
    bool good = status == ESDM_OK;
    for (uint64_t chunk = 0; chunk < whole && good; chunk++)
        good = put_chunk(of->own, of->name, chunk, of->data + chunk * KV__CHUNK_BYTES,
                         KV__CHUNK_BYTES);
    uint8_t *rest = good ? malloc(KV__CHUNK_BYTES) : NULL;
    if (!good && status == ESDM_OK)
        status = own_error(of, "write", err);
    else if (good && rest == NULL)
        status = esdm__error_nomem(err, KV__CHUNK_BYTES, "a pack");
    if (status != ESDM_OK) { /* it stays small: another attempt begins anew */
        (void) !kv__release(of->own, NULL);
        (void) !kv__delete(of->target, file, NULL);
        of->own = NULL;
        return status;
    }
    if (of->data != NULL) /* else nothing was appended so far */
        memcpy(rest, of->data + whole * KV__CHUNK_BYTES,
               (size_t) (of->length_bytes % KV__CHUNK_BYTES));
    free(of->data);
    of->data = rest;
    of->capacity = KV__CHUNK_BYTES;
    return ESDM_OK;
}

/* ---- appending ------------------------------------------------------------------------------ */

static esdm_status
append_small(pack *to, const esdm_iov *iov, size_t niov, uint64_t end, esdm_error *err)
{
    if (end > to->capacity) {
        size_t capacity = to->capacity == 0 ? FIRST_BYTES : to->capacity;
        while (capacity < end)
            capacity *= 2;
        uint8_t *grown = realloc(to->data, capacity);
        if (grown == NULL)
            return esdm__error_nomem(err, capacity, "a pack");
        to->data = grown;
        to->capacity = capacity;
    }
    uint64_t at = to->length_bytes;
    for (size_t i = 0; i < niov; i++) {
        if (iov[i].bytes > 0)
            memcpy(to->data + at, iov[i].data, iov[i].bytes);
        at += iov[i].bytes;
    }
    return ESDM_OK;
}

/* Whole chunks go from the caller's memory. `tail` holds the bytes behind the last whole chunk, and
 * is put back by the caller after a failure. */
static bool
append_piece(pack *to, const uint8_t *data, size_t bytes, uint64_t *end)
{
    while (bytes > 0) {
        size_t used = (size_t) (*end % KV__CHUNK_BYTES);
        size_t n = KV__CHUNK_BYTES - used;
        n = n < bytes ? n : bytes;
        const uint8_t *chunk = data;
        if (n < KV__CHUNK_BYTES) {
            memcpy(to->data + used, data, n);
            chunk = to->data;
        }
        if (used + n == KV__CHUNK_BYTES &&
            !put_chunk(to->own, to->name, *end / KV__CHUNK_BYTES, chunk, KV__CHUNK_BYTES))
            return false;
        *end += n;
        data += n;
        bytes -= n;
    }
    return true;
}

static esdm_status
append_large(pack *to, const esdm_iov *iov, size_t niov, esdm_error *err)
{
    size_t used = (size_t) (to->length_bytes % KV__CHUNK_BYTES);
    uint8_t *before = malloc(used + 1);
    if (before == NULL)
        return esdm__error_nomem(err, used + 1, "a pack");
    memcpy(before, to->data, used);
    uint64_t end = to->length_bytes;
    bool good = true;
    for (size_t i = 0; i < niov && good; i++)
        good = append_piece(to, iov[i].data, iov[i].bytes, &end);
    if (!good) /* chunks behind the length do not matter: they are written again */
        memcpy(to->data, before, used);
    free(before);
    return good ? ESDM_OK : own_error(to, "append to", err);
}

esdm_status
kv__pack_append(void *self, const esdm_iov *iov, size_t niov, uint64_t *ret_position,
                esdm_error *err)
{
    pack *to = self;
    uint64_t end = to->length_bytes;
    for (size_t i = 0; i < niov; i++) {
        if (!esdm__add_u64(end, iov[i].bytes, &end) || end > INT64_MAX)
            return esdm__error_set(err, ESDM_EINVAL, "kv: pack '%s' would exceed 2^63 bytes",
                                   to->name);
    }
    esdm_status status = ESDM_OK;
    uint64_t more = end - to->length_bytes;
    if (to->own == NULL && end > KV__SMALL_BYTES)
        status = move_out(to, more, err);
    else if (to->own == NULL)
        status = kv__expect_room(to->target, end, err);
    else
        status = kv__reserve(to->target, to->own, more, more / KV__CHUNK_BYTES + 1, err);
    if (status == ESDM_OK)
        status = to->own != NULL ? append_large(to, iov, niov, err)
                                 : append_small(to, iov, niov, end, err);
    if (status != ESDM_OK)
        return status;
    *ret_position = to->length_bytes;
    to->length_bytes = end;
    return ESDM_OK;
}

/* ---- storing -------------------------------------------------------------------------------- */

/* Puts a small pack into its writer's shard, in one transaction. */
static esdm_status
store_small(pack *of, bool durable, esdm_error *err)
{
    char file[KV__FILE_BYTES];
    kv__handle *shard = NULL;
    kv__shard_file(of->name, file);
    esdm_status status = kv__acquire(of->target, file, KV__WRITE, KV__WRITE_WAIT_MS, &shard, err);
    if (status != ESDM_OK)
        return status;
    KCDB *db = kv__database(shard);
    if (!of->offered && kcdbcheck(db, of->name, strlen(of->name)) >= 0)
        status = exists_error(of->target, of->name, err);
    bool listed = kv__made_is_listed(of->target, file, of->name, kcdbcount(db) == 0);
    if (status == ESDM_OK)
        status = kv__reserve(of->target, shard, of->length_bytes,
                             of->length_bytes / KV__CHUNK_BYTES + 1, err);
    bool good = status == ESDM_OK && kv__begin(of->target, db, durable);
    bool group = false;
    of->offered |= good;
    if (good) {
        good = put_small(shard, of) && (listed || kv__list_add(shard, of->name, &group));
        esdm_status failed = good ? ESDM_OK : kv__error(of->target, file, db, "write", err);
        if (!kv__end(of->target, db, durable, good) && good)
            failed = kv__error(of->target, file, db, "write", err);
        status = failed;
    } else if (status == ESDM_OK) {
        status = kv__error(of->target, file, db, "write", err);
    }
    esdm_status closed =
        status == ESDM_OK ? kv__release_soon(of->target, shard, err) : kv__release(shard, NULL);
    status = status == ESDM_OK ? closed : status;
    if (status == ESDM_OK && group)
        kv__made_list(of->target, file, of->name);
    return status;
}

/* The bytes behind the last whole chunk, and the length. */
static esdm_status
store_tail(pack *of, bool durable, esdm_error *err)
{
    size_t used = (size_t) (of->length_bytes % KV__CHUNK_BYTES);
    bool good = used == 0 ||
                put_chunk(of->own, of->name, of->length_bytes / KV__CHUNK_BYTES, of->data, used);
    good = good && kv__write_length(of->own, of->name, of->length_bytes);
    good = good && (!durable || kcdbsync(kv__database(of->own), 1, NULL, NULL) != 0);
    return good ? ESDM_OK : own_error(of, "write", err);
}

static esdm_status
store(pack *of, bool durable, esdm_error *err)
{
    if (of->own == NULL) {
        esdm_status status = store_small(of, durable, err);
        if (status != ESDM_ETIMEDOUT)
            return status;
        /* Somebody does not let go of the shard: there is another way. */
        status = move_out(of, 0, err);
        if (status != ESDM_OK)
            return status;
    }
    return store_tail(of, durable, err);
}

esdm_status
kv__pack_sync(void *self, esdm_error *err)
{
    pack *of = self;
    esdm_status status = kv__held_failure(of->target, err);
    if (status == ESDM_OK)
        status = store(of, true, err);
    if (status == ESDM_OK && fsync(of->target->fd) != 0)
        status = esdm__error_set_errno(err, errno, "kv: cannot flush '%s'", of->target->directory);
    if (status == ESDM_OK)
        of->stored_bytes = of->length_bytes;
    return status;
}

esdm_status
kv__pack_seal(void *self, esdm_error *err)
{
    pack *of = self;
    if (of == NULL)
        return ESDM_OK;
    bool stored = of->own == NULL && of->stored_bytes == of->length_bytes && of->length_bytes > 0;
    esdm_status status = kv__held_failure(of->target, err);
    if (status == ESDM_OK && !stored)
        status = store(of, false, err);
    if (status != ESDM_OK)
        return status; /* it can still be asked for its bytes */
    if (of->own != NULL)
        status = kv__release(of->own, err);
    of->own = NULL;
    if (status != ESDM_OK) { /* what was in memory may be lost with the database */
        of->lost = true;
        return status;
    }
    free_pack(of);
    return ESDM_OK;
}

esdm_status
kv__pack_recall(void *self, uint64_t position, size_t bytes, void *buffer, esdm_error *err)
{
    const pack *of = self;
    uint64_t whole = of->length_bytes - of->length_bytes % KV__CHUNK_BYTES;
    uint8_t *to = buffer;
    if (of->lost || position > of->length_bytes || bytes > of->length_bytes - position)
        return esdm__error_set(err, ESDM_EIO, "kv: what was in pack '%s' is lost", of->name);
    while (bytes > 0) {
        size_t from = (size_t) (position % KV__CHUNK_BYTES);
        size_t step = KV__CHUNK_BYTES - from < bytes ? KV__CHUNK_BYTES - from : bytes;
        if (of->own == NULL)
            memcpy(to, of->data + position, step);
        else if (position >= whole)
            memcpy(to, of->data + from, step);
        else if (!kv__read_chunk(of->own, of->name, position / KV__CHUNK_BYTES, from, step, to))
            return own_error(of, "read", err);
        position += step;
        bytes -= step;
        to += step;
    }
    return ESDM_OK;
}

esdm_status
kv__pack_discard(void *self, esdm_error *err)
{
    pack *of = self;
    char file[KV__FILE_BYTES];
    esdm_status status = ESDM_OK;
    if (of == NULL)
        return ESDM_OK;
    kv__own_file(of->name, file);
    if (of->own != NULL || of->lost) {
        (void) !kv__release(of->own, NULL);
        status = kv__delete(of->target, file, err);
    } else if (of->stored_bytes > 0) {
        status = kv__pack_remove(of->target, of->name, err);
    }
    free_pack(of);
    return status;
}
