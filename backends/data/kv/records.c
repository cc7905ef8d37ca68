/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Records: "<pack>/<chunk>" holds a chunk, "<pack>" its length and time (two numbers of 8 bytes,
 * little-endian), "packs" the list of a shard.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/ids.h"
#include "kv.h"

#define LIST_KEY "packs"

size_t
kv__chunk_key(const char *name, uint64_t chunk, char ret_key[KV__FILE_BYTES + 24])
{
    int n = snprintf(ret_key, KV__FILE_BYTES + 24, "%.*s/%llx", KV__NAME_MAX, name,
                     (unsigned long long) chunk);
    return (size_t) n;
}

/* ---- length --------------------------------------------------------------------------------- */

esdm_status
kv__read_length(const kv__handle *handle, const char *name, uint64_t *ret_bytes,
                uint64_t *ret_modified_ns)
{
    uint8_t head[16];
    if (kcdbgetbuf(kv__database(handle), name, strlen(name), (char *) head, sizeof head) !=
        (int32_t) sizeof head)
        return ESDM_ENOENT;
    esdm__cursor cursor;
    esdm__cursor_init(&cursor, head, sizeof head);
    *ret_bytes = esdm__cursor_u64(&cursor);
    *ret_modified_ns = esdm__cursor_u64(&cursor);
    return ESDM_OK;
}

bool
kv__write_length(const kv__handle *handle, const char *name, uint64_t bytes)
{
    esdm__buffer head;
    esdm__buffer_init(&head);
    esdm__buffer_put_u64(&head, bytes);
    esdm__buffer_put_u64(&head, esdm__now_ns());
    bool good = !head.failed && kcdbset(kv__database(handle), name, strlen(name),
                                        (const char *) head.data, head.bytes) != 0;
    esdm__buffer_clear(&head);
    return good;
}

/* ---- chunks --------------------------------------------------------------------------------- */

typedef struct wanted {
    size_t from;
    size_t bytes;
    void *to;
    bool found;
} wanted;

/* Called with the record's value: nothing but the range is copied. */
static const char *
copy_range(const char *key, size_t key_bytes, const char *value, size_t value_bytes,
           size_t *ret_bytes, void *user)
{
    (void) key, (void) key_bytes, (void) ret_bytes;
    wanted *range = user;
    range->found = range->from <= value_bytes && range->bytes <= value_bytes - range->from;
    if (range->found)
        memcpy(range->to, value + range->from, range->bytes);
    return KCVISNOP;
}

static const char *
note_absence(const char *key, size_t key_bytes, size_t *ret_bytes, void *user)
{
    (void) key, (void) key_bytes, (void) ret_bytes, (void) user;
    return KCVISNOP;
}

bool
kv__read_chunk(const kv__handle *handle, const char *name, uint64_t chunk, size_t from,
               size_t bytes, void *to)
{
    char key[KV__FILE_BYTES + 24];
    size_t key_bytes = kv__chunk_key(name, chunk, key);
    wanted range = {.from = from, .bytes = bytes, .to = to};
    return kcdbaccept(kv__database(handle), key, key_bytes, copy_range, note_absence, &range, 0) !=
               0 &&
           range.found;
}

/* ---- list ----------------------------------------------------------------------------------- */

void
kv__list_read(const kv__handle *handle, char **ret_list, size_t *ret_bytes)
{
    *ret_bytes = 0;
    *ret_list = kcdbget(kv__database(handle), LIST_KEY, strlen(LIST_KEY), ret_bytes);
}

bool
kv__list_add(const kv__handle *handle, const char *name)
{
    char entry[KV__NAME_MAX + 2];
    int n = snprintf(entry, sizeof entry, "%.*s\n", KV__NAME_MAX, name);
    return kcdbappend(kv__database(handle), LIST_KEY, strlen(LIST_KEY), entry, (size_t) n) != 0;
}

bool
kv__list_remove(const kv__handle *handle, const char *name, bool *ret_empty)
{
    char *list = NULL;
    size_t bytes = 0;
    size_t kept = 0;
    size_t name_bytes = strlen(name);
    kv__list_read(handle, &list, &bytes);
    *ret_empty = true;
    if (list == NULL)
        return true;
    for (size_t at = 0; at < bytes;) {
        const char *end = memchr(list + at, '\n', bytes - at);
        size_t entry = end != NULL ? (size_t) (end - (list + at)) + 1 : bytes - at;
        if (entry != name_bytes + 1 || memcmp(list + at, name, name_bytes) != 0) {
            memmove(list + kept, list + at, entry);
            kept += entry;
        }
        at += entry;
    }
    bool good = kcdbset(kv__database(handle), LIST_KEY, strlen(LIST_KEY), list, kept) != 0;
    kcfree(list);
    *ret_empty = kept == 0;
    return good;
}
