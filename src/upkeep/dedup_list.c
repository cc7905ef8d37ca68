/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "upkeep/dedup_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/hidden_names.h"
#include "io/container/container_io.h"
#include "layout/places.h"
#include "upkeep/asked.h"

#define NONE ESDM__DEDUP_NONE
/* Of so many slots one at least is free. */
#define SLOTS_FULL 5u

typedef esdm__dedup_holder holder;
typedef esdm__dedup_blob blob;
typedef esdm__dedup_origin origin;
typedef esdm__dedup_run dedup;

static bool
note_holder(const char *name, const esdm_meta_container *record, void *user)
{
    dedup *d = user;
    for (size_t i = 0; i < d->nholders; i++) {
        if (d->holders[i].container == record->container)
            return true;
    }
    char *copy = strdup(name);
    if (copy == NULL || !esdm__array_grow(&d->holders, d->nholders, sizeof *d->holders)) {
        free(copy);
        return false;
    }
    holder *one = &d->holders[d->nholders++];
    *one = (holder){.container = record->container, .name = copy};
    memcpy(one->uuid, record->uuid, sizeof one->uuid - 1);
    one->uuid[sizeof one->uuid - 1] = '\0';
    return true;
}

static uint32_t *
slot_of(const dedup *d, const esdm__pack_name *pack, uint64_t position)
{
    uint64_t key[2] = {(uint64_t) (uintptr_t) pack, position};
    size_t at = esdm__slot_of_hash(esdm__checksum(key, sizeof key), d->slots);
    while (d->table[at] != 0) {
        const blob *one = &d->blobs[d->table[at] - 1];
        if (one->position == position && esdm__dedup_origin_of(d, one)->pack == pack)
            break;
        at = at + 1 < d->slots ? at + 1 : 0;
    }
    return &d->table[at];
}

static bool
grow_table(dedup *d)
{
    if (d->nblobs + 1 <= d->slots / SLOTS_FULL * (SLOTS_FULL - 1))
        return true;
    size_t slots = d->slots > 0 ? d->slots + d->slots / 4 : 1024;
    uint32_t *table = calloc(slots, sizeof *table);
    if (table == NULL)
        return false;
    free(d->table);
    d->table = table;
    d->slots = slots;
    for (size_t i = 0; i < d->nblobs; i++)
        *slot_of(d, esdm__dedup_origin_of(d, &d->blobs[i])->pack, d->blobs[i].position) =
            (uint32_t) i + 1;
    return true;
}

static bool
number_origin(dedup *d, const origin *from, uint32_t *ret)
{
    origin key;
    memset(&key, 0, sizeof key); /* gaps are compared, too */
    key.pack = from->pack;
    key.wish.copies = from->wish.copies;
    key.wish.allowed = from->wish.allowed;
    key.wish.differs = from->wish.differs;
    key.places = from->places;
    key.holder = from->holder;
    return esdm__numbered_add(&d->origins, &key, sizeof key, ret);
}

static bool
number_shape(dedup *d, const esdm__record *record, uint32_t *ret)
{
    esdm__dedup_shape key = {.raw_bytes = record->raw_bytes, .head_bytes = record->head_bytes};
    memcpy(key.codec_ids, record->codec_ids, sizeof key.codec_ids);
    return esdm__numbered_add(&d->shapes, &key, sizeof key, ret);
}

/* Somebody else refers to it, too. */
static bool
note_wish(dedup *d, blob *one, const esdm__dedup_wish *wish)
{
    origin from = *esdm__dedup_origin_of(d, one);
    esdm__dedup_wish_add(&from.wish, wish);
    return number_origin(d, &from, &one->origin);
}

static bool
note_fragment(dedup *d, const esdm__record *record, const esdm__dedup_wish *wish,
              uint32_t holder_number)
{
    if (record->pack == NULL || record->kind != ESDM__KIND_STORED)
        return true;
    const esdm__pack_name *pack =
        esdm__packs_intern(d->packs, record->pack->target, record->pack->pack);
    if (pack == NULL || !grow_table(d) || d->nblobs >= NONE - 1)
        return false;
    uint32_t *slot = slot_of(d, pack, record->position);
    if (*slot != 0)
        return note_wish(d, &d->blobs[*slot - 1], wish);
    const origin from = {.pack = pack,
                         .wish = *wish,
                         .places = (uint32_t) esdm__places_count(pack->target),
                         .holder = holder_number};
    blob one = {.position = record->position, .stored_bytes = record->stored_bytes, .same = NONE};
    if (!number_origin(d, &from, &one.origin) || !number_shape(d, record, &one.shape) ||
        !esdm__array_grow(&d->blobs, d->nblobs, sizeof *d->blobs))
        return false;
    d->blobs[d->nblobs++] = one;
    *slot = (uint32_t) d->nblobs;
    d->result->fragments++;
    d->result->bytes += record->stored_bytes;
    return true;
}

uint64_t
esdm__dedup_bytes(const dedup *d)
{
    return d->slots * sizeof *d->table + d->nblobs * (sizeof *d->blobs + sizeof *d->order) +
           d->origins.bytes + d->shapes.bytes +
           (d->origins.slots + d->shapes.slots) * sizeof *d->origins.table;
}

static void
note_named(const dedup *d, const esdm__record *record)
{
    if (record->pack == NULL)
        return;
    const esdm__pack_name *pack =
        esdm__packs_intern(d->packs, record->pack->target, record->pack->pack);
    uint32_t number = pack != NULL ? *slot_of(d, pack, record->position) : 0;
    if (number != 0)
        d->blobs[number - 1].named = true;
}

typedef struct listing {
    dedup *dedup;
    uint32_t number; /* of the holder */
    bool again;      /* what is known already is looked for */
    bool begun;
    esdm_container *model; /* owned */
    uint32_t dataset;      /* of the last page, which wants this: */
    esdm__dedup_wish wish;
} listing;

static esdm_status
list_page(void *user, const esdm_meta_page *entry, const esdm__page *page, esdm_error *err)
{
    listing *l = user;
    dedup *d = l->dedup;
    if (!l->again && (!l->begun || entry->dataset != l->dataset))
        esdm__dedup_wish_of(d->session, d->holders[l->number].name, l->model, entry->dataset,
                            &l->wish);
    l->begun = true;
    l->dataset = entry->dataset;
    for (uint32_t k = 0; k < page->records.count; k++) {
        if (l->again)
            note_named(d, &page->records.items[k]);
        else if (!note_fragment(d, &page->records.items[k], &l->wish, l->number))
            return esdm__error_nomem(err, d->nblobs * sizeof *d->blobs, "fragments");
    }
    return ESDM_OK;
}

/* Pages that go away meanwhile are passed by; their fragments are in other pages, which the next
 * call sees. @param again whether fragments that are known already are looked for. */
static esdm_status
list_fragments(dedup *d, uint32_t number, bool again, esdm_error *err)
{
    const holder *one = &d->holders[number];
    listing l = {.dedup = d, .number = number, .again = again};
    esdm__page_walk walk = {.container = one->container,
                            .snapshot = ESDM_META_EVERY_SNAPSHOT,
                            .pass_gone = true,
                            .visit = list_page,
                            .user = &l};
    esdm_status status =
        again ? ESDM_OK : esdm__dedup_model(d->session, one->name, one->container, &l.model, err);
    if (status == ESDM_OK)
        status = esdm__pages_walk(d->session, &walk, err);
    esdm__container_drop(l.model);
    return status;
}

esdm_status
esdm__dedup_list(dedup *d, esdm_error *err)
{
    esdm_status status =
        esdm__asked_visit(d->session, d->options->containers, d->options->ncontainers,
                          esdm__name_is_own, note_holder, d, err);
    d->result->containers = d->nholders;
    for (uint32_t i = 0; i < d->nholders && status == ESDM_OK; i++)
        status = list_fragments(d, i, false, err);
    return status;
}

esdm_status
esdm__dedup_list_again(dedup *d, uint32_t number, esdm_error *err)
{
    return list_fragments(d, number, true, err);
}

esdm__dedup_blob *
esdm__dedup_blob_of(const dedup *d, const esdm__fragment *fragment)
{
    const esdm__pack_name *pack =
        esdm__packs_intern(d->packs, fragment->pack->target, fragment->pack->pack);
    uint32_t number = pack != NULL && d->slots > 0 ? *slot_of(d, pack, fragment->position) : 0;
    return number != 0 ? &d->blobs[number - 1] : NULL;
}

void
esdm__dedup_clear(dedup *d)
{
    for (size_t i = 0; i < d->nholders; i++)
        free(d->holders[i].name);
    free(d->holders);
    free(d->shared);
    free(d->blobs);
    free(d->table);
    esdm__numbered_clear(&d->origins);
    esdm__numbered_clear(&d->shapes);
    free(d->order);
    free(d->loads);
    esdm__packs_unref(d->packs);
}
