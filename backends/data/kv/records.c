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

/* Length of the entry that begins there, with its end of line. */
static size_t
entry_bytes(const char *list, size_t bytes, size_t at)
{
    const char *end = memchr(list + at, '\n', bytes - at);
    return end != NULL ? (size_t) (end - (list + at)) + 1 : bytes - at;
}

/* What a name may end with. Names that differ in a digit there are a group. */
static const char ends[] = "0123456789abcdef-";

static uint32_t
bit_of(char end)
{
    const char *found = end != '\0' ? strchr(ends, end) : NULL;
    return found != NULL ? UINT32_C(1) << (found - ends) : 0;
}

/* Those of the name's group that are listed. */
static uint32_t
listed_of_group(const kv__handle *handle, const char *name, size_t *ret_list_bytes)
{
    char *list = NULL;
    size_t bytes = 0;
    size_t stem = strlen(name) - 1;
    uint32_t found = 0;
    kv__list_read(handle, &list, &bytes);
    for (size_t at = 0; list != NULL && at < bytes;) {
        size_t entry = entry_bytes(list, bytes, at);
        if (entry == stem + 2 && memcmp(list + at, name, stem) == 0)
            found |= bit_of(list[at + stem]);
        at += entry;
    }
    kcfree(list);
    *ret_list_bytes = bytes;
    return found;
}

/* Entries of those that are chosen of the group. */
static size_t
put_names(const char *name, uint32_t chosen, char ret_entries[sizeof ends * (KV__NAME_MAX + 2)])
{
    size_t bytes = strlen(name);
    size_t used = 0;
    for (const char *end = ends; *end != '\0'; end++) {
        if ((chosen & bit_of(*end)) == 0)
            continue;
        memcpy(ret_entries + used, name, bytes);
        ret_entries[used + bytes - 1] = *end;
        ret_entries[used + bytes] = '\n';
        used += bytes + 1;
    }
    return used;
}

bool
kv__list_add(const kv__handle *handle, const char *name, bool *ret_group)
{
    char entries[sizeof ends * (KV__NAME_MAX + 2)];
    size_t bytes = 0;
    uint32_t own = bit_of(name[strlen(name) - 1]);
    uint32_t listed = listed_of_group(handle, name, &bytes);
    size_t used = put_names(name, (own | (bit_of('-') - 1)) & ~listed, entries);
    /* Where containers share a writer, names that never come would make the list too long. */
    *ret_group = bytes + used <= KV__SHARD_PACKS * (strlen(name) + 1);
    if (!*ret_group)
        used = put_names(name, own & ~listed, entries);
    return used == 0 ||
           kcdbappend(kv__database(handle), LIST_KEY, strlen(LIST_KEY), entries, used) != 0;
}

bool
kv__has_packs(const kv__handle *handle)
{
    return kcdbcount(kv__database(handle)) > 1; /* beside the list */
}
