/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/packs/equals.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/numbered.h"
#include "io/packs/pack_guard.h"
#include "io/packs/page_list.h"
#include "io/packs/sources.h"
#include "layout/packs.h"
#include "layout/places.h"
#include "model/names.h"

#define CONTAINERS_MOST ESDM__EQUALS_CONTAINERS
#define FRAGMENTS_MOST  ESDM__EQUALS_FRAGMENTS
#define SLOTS_LEAST     1024u

/* A container whose fragments are known. */
typedef struct source {
    char *name; /* owned */
    uint64_t container;
    uint64_t snapshot; /* pinned; 0: not yet */
    uint64_t modified_ns;
    uint64_t fragments;
    atomic_bool used;
} source;

typedef struct stored {
    const esdm__pack_name *pack; /* interned */
    uint64_t position;
    uint64_t stored_bytes;
    uint64_t hash; /* the bytes are compared, too: 64 bits are enough */
    uint32_t head_bytes;
    uint16_t source;
    bool hashed;
} stored;

static_assert(CONTAINERS_MOST <= UINT16_MAX, "sources have 16 bits");

struct esdm__equals {
    esdm_session *session;
    const char *folder; /* while containers are listed; borrowed */
    size_t folder_bytes;
    source *sources; /* owned */
    size_t nsources;
    stored *items; /* owned */
    size_t count;
    uint32_t *table; /* owned; by hash: number of an item plus 1 */
    size_t slots;
    esdm__packs *packs;
    esdm__pack_guard *guard;
    bool failed;
};

/* ---- containers ----------------------------------------------------------------------------- */

static int
newest_first(const void *a, const void *b)
{
    const source *x = a;
    const source *y = b;
    return (x->modified_ns < y->modified_ns) - (x->modified_ns > y->modified_ns);
}

static void
drop_last(esdm__equals *e)
{
    source *last = &e->sources[--e->nsources];
    if (last->snapshot != 0)
        e->session->meta->unpin(e->session->store, last->container, last->snapshot);
    free(last->name);
}

/* Of the folder itself, not of those below it. */
static bool
note_source(const char *name, const esdm_meta_container *record, void *user)
{
    esdm__equals *e = user;
    size_t skip = e->folder_bytes + (e->folder_bytes > 0);
    if (name[0] == '/' || strlen(name) <= skip || strchr(name + skip, '/') != NULL ||
        record->fragments == 0)
        return true;
    char *copy = strdup(name);
    if (copy == NULL || !esdm__array_grow(&e->sources, e->nsources, sizeof *e->sources)) {
        free(copy);
        e->failed = true;
        return false;
    }
    source *one = &e->sources[e->nsources++];
    *one = (source){.name = copy,
                    .container = record->container,
                    .modified_ns = record->modified_ns,
                    .fragments = record->fragments};
    if (e->nsources == 4 * CONTAINERS_MOST) { /* a folder may have very many */
        qsort(e->sources, e->nsources, sizeof *e->sources, newest_first);
        while (e->nsources > CONTAINERS_MOST)
            drop_last(e);
    }
    return true;
}

static esdm_status
list_sources(esdm__equals *e, const char *container, esdm_error *err)
{
    char folder[ESDM_CONTAINER_NAME_MAX + 1] = "";
    const char *slash = strrchr(container, '/');
    uint64_t fragments = 0;
    size_t left = 0;
    if (slash != NULL) {
        e->folder_bytes = (size_t) (slash - container);
        memcpy(folder, container, e->folder_bytes);
    }
    esdm_status status = e->session->meta->container_list(
        e->session->store, slash != NULL ? folder : NULL, note_source, e, err);
    if (status == ESDM_OK && e->failed)
        status = esdm__error_nomem(err, e->nsources * sizeof *e->sources, "containers");
    if (e->nsources > 1)
        qsort(e->sources, e->nsources, sizeof *e->sources, newest_first);
    while (left < e->nsources && left < CONTAINERS_MOST &&
           fragments + e->sources[left].fragments <= FRAGMENTS_MOST)
        fragments += e->sources[left++].fragments;
    while (e->nsources > left)
        drop_last(e);
    return status;
}

/* What somebody removed or replaced meanwhile is passed by. */
static void
pin_sources(esdm__equals *e)
{
    const esdm_meta_plugin *meta = e->session->meta;
    for (size_t i = e->nsources; i-- > 0;) {
        esdm_meta_snapshot loaded;
        source *one = &e->sources[i];
        esdm_error ignored;
        if (meta->snapshot_open(e->session->store, one->name, 0, 0, 0, &loaded, &ignored) ==
            ESDM_OK) {
            one->container = loaded.record.container;
            one->snapshot = loaded.snapshot;
            free(loaded.document);
            free(loaded.lengths);
            continue;
        }
        free(one->name);
        *one = e->sources[e->nsources - 1];
        e->nsources--;
    }
}

/* ---- fragments ------------------------------------------------------------------------------ */

/* On targets that all nodes see, and known to this configuration. */
static bool
is_shared_place(const esdm_session *session, const esdm__pack_name *pack)
{
    const char *places = pack->target;
    esdm__pack_place place;
    while (esdm__places_next(&places, &place)) {
        const esdm__target *target = esdm__session_target((esdm_session *) session, place.target);
        if (place.node[0] != '\0' || target == NULL || target->local)
            return false;
    }
    return true;
}

static bool
note_fragment(esdm__equals *e, const esdm__record *record, uint32_t number)
{
    if (record->pack == NULL || record->kind != ESDM__KIND_STORED ||
        record->head_bytes < ESDM__BLOB_HEADER_BYTES || record->head_bytes > ESDM__HEAD_MOST ||
        e->count >= FRAGMENTS_MOST || !is_shared_place(e->session, record->pack))
        return true;
    const esdm__pack_name *pack =
        esdm__packs_intern(e->packs, record->pack->target, record->pack->pack);
    if (pack == NULL || !esdm__array_grow(&e->items, e->count, sizeof *e->items))
        return false;
    e->items[e->count++] = (stored){.pack = pack,
                                    .position = record->position,
                                    .stored_bytes = record->stored_bytes,
                                    .head_bytes = record->head_bytes,
                                    .source = (uint16_t) number};
    return true;
}

typedef struct pass {
    esdm__equals *equals;
    uint32_t number; /* of the source */
    bool fragments;  /* are noted; else who wrote their packs counts as alive from now on */
} pass;

static esdm_status
read_page(void *user, const esdm_meta_page *entry, const esdm__page *page, esdm_error *err)
{
    const pass *p = user;
    esdm__equals *e = p->equals;
    esdm_status status = ESDM_OK;
    (void) entry;
    for (uint32_t k = 0; status == ESDM_OK && !p->fragments && k < page->npacks; k++)
        status = esdm__pack_guard_add(e->guard, page->packs[k].pack, true, err);
    for (uint32_t k = 0; status == ESDM_OK && p->fragments && k < page->records.count; k++) {
        if (!note_fragment(e, &page->records.items[k], p->number))
            status = esdm__error_nomem(err, e->count * sizeof *e->items, "fragments");
    }
    return status;
}

/* Twice: places are read after their packs are sure to stay. What is in pages that are moved
 * meanwhile is not looked at. */
static esdm_status
list_fragments(esdm__equals *e, uint32_t number, esdm_error *err)
{
    pass p = {.equals = e, .number = number};
    esdm__page_walk walk = {.container = e->sources[number].container,
                            .snapshot = e->sources[number].snapshot,
                            .pass_gone = true,
                            .visit = read_page,
                            .user = &p};
    esdm_status status = esdm__pages_walk(e->session, &walk, err);
    p.fragments = true;
    return status == ESDM_OK ? esdm__pages_walk(e->session, &walk, err) : status;
}

/* A pack that came between the passes is not sure to stay. */
static void
drop_unguarded(esdm__equals *e)
{
    size_t left = 0;
    for (size_t i = 0; i < e->count; i++) {
        esdm_error ignored;
        if (esdm__pack_guard_add(e->guard, e->items[i].pack->pack, false, &ignored) == ESDM_OK)
            e->items[left++] = e->items[i];
    }
    e->count = left;
}

esdm_status
esdm__stored_hash(esdm_session *session, const esdm__pack_name *pack, uint64_t position,
                  uint32_t head_bytes, uint64_t *ret_hash, bool *ret_hashed, esdm_error *err)
{
    esdm__sources sources;
    *ret_hashed = false;
    if (head_bytes < ESDM__BLOB_HEADER_BYTES || head_bytes > ESDM__HEAD_MOST)
        return ESDM_OK;
    uint8_t *head = malloc(head_bytes);
    if (head == NULL)
        return esdm__error_nomem(err, head_bytes, "the head of a fragment");
    const esdm_range range = {position, head_bytes, head};
    esdm_error ignored;
    if (esdm__sources_of(session, pack, &sources, &ignored) == ESDM_OK &&
        esdm__session_read(session, sources.targets[0], pack->pack, &range, 1, &ignored) ==
            ESDM_OK) {
        uint64_t hash[2];
        esdm__blob_hash(head, head_bytes, hash);
        *ret_hash = hash[0];
        *ret_hashed = true;
    }
    free(head);
    return ESDM_OK;
}

static esdm_status
hash_one(void *context, size_t i, esdm_error *err)
{
    esdm__equals *e = context;
    stored *one = &e->items[i];
    return esdm__stored_hash(e->session, one->pack, one->position, one->head_bytes, &one->hash,
                             &one->hashed, err);
}

static size_t
slots_for(size_t fragments)
{
    size_t slots = fragments + fragments / 2;
    return slots > SLOTS_LEAST ? slots : SLOTS_LEAST;
}

uint64_t
esdm__equals_bytes(uint64_t fragments)
{
    return fragments * sizeof(stored) + slots_for((size_t) fragments) * sizeof(uint32_t);
}

static size_t
next_slot(const esdm__equals *e, size_t at)
{
    return at + 1 < e->slots ? at + 1 : 0;
}

/* Where several are equal the first one counts: that of the newest container. */
static esdm_status
fill_table(esdm__equals *e, esdm_error *err)
{
    e->slots = slots_for(e->count);
    e->table = calloc(e->slots, sizeof *e->table);
    if (e->table == NULL)
        return esdm__error_nomem(err, e->slots * sizeof *e->table, "fragments");
    for (size_t i = 0; i < e->count; i++) {
        const stored *one = &e->items[i];
        size_t at = esdm__slot_of_hash(one->hash, e->slots);
        bool there = !one->hashed;
        for (; !there && e->table[at] != 0; at = next_slot(e, at)) {
            const stored *other = &e->items[e->table[at] - 1];
            there = one->hash == other->hash && one->stored_bytes == other->stored_bytes &&
                    one->pack == other->pack;
        }
        if (!there)
            e->table[at] = (uint32_t) i + 1;
    }
    return ESDM_OK;
}

esdm__equals *
esdm__equals_new(esdm_session *session, const char *container)
{
    esdm_error ignored;
    esdm__equals *e = calloc(1, sizeof *e);
    if (e == NULL)
        return NULL;
    e->session = session;
    e->packs = esdm__packs_new();
    e->guard = esdm__pack_guard_new(session);
    esdm_status status =
        e->packs != NULL && e->guard != NULL ? list_sources(e, container, &ignored) : ESDM_ENOMEM;
    if (status == ESDM_OK)
        pin_sources(e);
    for (uint32_t i = 0; i < e->nsources && status == ESDM_OK; i++)
        status = list_fragments(e, i, &ignored);
    if (status == ESDM_OK)
        drop_unguarded(e);
    if (status == ESDM_OK && e->count > 0)
        status = esdm__pool_run(session->pool, e->count, hash_one, e, &ignored);
    if (status == ESDM_OK)
        status = fill_table(e, &ignored);
    if (status == ESDM_OK && e->count > 0)
        return e;
    esdm__equals_free(e);
    return NULL;
}

void
esdm__equals_free(esdm__equals *equals)
{
    esdm__equals *e = equals;
    if (e == NULL)
        return;
    while (e->nsources > 0)
        drop_last(e);
    esdm__pack_guard_free(e->guard);
    esdm__packs_unref(e->packs);
    free(e->sources);
    free(e->items);
    free(e->table);
    free(e);
}

/* ---- finding -------------------------------------------------------------------------------- */

/* Whether it lies where the new one may lie, and as often. */
static bool
is_placed(const esdm__equals *e, const stored *one, const esdm__equals_wish *wish)
{
    const char *places = one->pack->target;
    esdm__pack_place place;
    uint32_t copies = 0;
    for (; esdm__places_next(&places, &place); copies++) {
        const esdm__target *target = esdm__session_target(e->session, place.target);
        if (target == NULL ||
            (wish->allowed != NULL && !wish->allowed[target - e->session->targets]))
            return false;
    }
    return copies >= (wish->copies > 0 ? wish->copies : 1);
}

/* Byte by byte, but for the number of the dataset and the checksum over it. */
static bool
is_equal(const esdm__equals *e, const stored *one, const esdm__blob *blob)
{
    esdm__sources sources;
    esdm_error ignored;
    uint8_t *bytes = malloc((size_t) one->stored_bytes);
    const esdm_range range = {one->position, one->stored_bytes, bytes};
    bool equal =
        bytes != NULL && esdm__sources_of(e->session, one->pack, &sources, &ignored) == ESDM_OK &&
        esdm__session_read(e->session, sources.targets[0], one->pack->pack, &range, 1, &ignored) ==
            ESDM_OK &&
        esdm__blob_head_equals(bytes, blob->head, blob->head_bytes) &&
        memcmp(bytes + blob->head_bytes, blob->payload, blob->payload_bytes) == 0;
    free(bytes);
    return equal;
}

bool
esdm__equals_find(esdm__equals *equals, const esdm__equals_wish *wish,
                  const esdm__pack_name **ret_pack, uint64_t *ret_position)
{
    esdm__equals *e = equals;
    const esdm__blob *blob = wish->blob;
    uint64_t hash[2];
    esdm__blob_hash(blob->head, blob->head_bytes, hash);
    for (size_t at = esdm__slot_of_hash(hash[0], e->slots); e->table[at] != 0;
         at = next_slot(e, at)) {
        const stored *one = &e->items[e->table[at] - 1];
        if (one->hash != hash[0] || one->head_bytes != blob->head_bytes ||
            one->stored_bytes != blob->head_bytes + blob->payload_bytes ||
            !is_placed(e, one, wish) || !is_equal(e, one, blob))
            continue;
        atomic_store(&e->sources[one->source].used, true);
        *ret_pack = one->pack;
        *ret_position = one->position;
        return true;
    }
    return false;
}

esdm_status
esdm__equals_records(const esdm__equals *equals, uint64_t **ret_records, size_t *ret_count,
                     esdm_error *err)
{
    uint64_t *records = malloc((equals->nsources + 1) * sizeof *records);
    size_t count = 0;
    if (records == NULL)
        return esdm__error_nomem(err, equals->nsources * sizeof *records, "shared packs");
    for (size_t i = 0; i < equals->nsources; i++) {
        if (atomic_load(&equals->sources[i].used))
            records[count++] = equals->sources[i].container;
    }
    *ret_records = records;
    *ret_count = count;
    return ESDM_OK;
}
