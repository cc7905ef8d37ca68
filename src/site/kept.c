/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "site/kept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/checksum.h"
#include "base/error.h"
#include "layout/page.h"
#include "layout/places.h"

/* ---- the set ------------------------------------------------------------------------------ */

static esdm__kept_pack *
slot_of(esdm__kept_pack *table, size_t slots, uint32_t target, const char *name)
{
    size_t at = (size_t) (esdm__checksum(name, strlen(name)) + target) & (slots - 1);
    while (table[at].name != NULL &&
           (table[at].target != target || strcmp(table[at].name, name) != 0))
        at = (at + 1) & (slots - 1);
    return &table[at];
}

static esdm__kept_pack *
find(const esdm__kept *kept, size_t target, const char *name)
{
    if (kept->slots == 0)
        return NULL;
    esdm__kept_pack *slot = slot_of(kept->table, kept->slots, (uint32_t) target, name);
    return slot->name != NULL ? slot : NULL;
}

static bool
grow(esdm__kept *kept)
{
    size_t slots = kept->slots > 0 ? 2 * kept->slots : 256;
    esdm__kept_pack *table = calloc(slots, sizeof *table);
    if (table == NULL)
        return false;
    for (size_t i = 0; i < kept->slots; i++) {
        const esdm__kept_pack *old = &kept->table[i];
        if (old->name != NULL)
            *slot_of(table, slots, old->target, old->name) = *old;
    }
    free(kept->table);
    kept->table = table;
    kept->slots = slots;
    return true;
}

static bool
enter(esdm__kept *kept, uint32_t target, const char *name)
{
    if (2 * (kept->count + 1) > kept->slots && !grow(kept))
        return false;
    esdm__kept_pack *slot = slot_of(kept->table, kept->slots, target, name);
    if (slot->name != NULL)
        return true;
    slot->name = strdup(name);
    slot->target = target;
    kept->count += slot->name != NULL;
    return slot->name != NULL;
}

void
esdm__kept_clear(esdm__kept *kept)
{
    for (size_t i = 0; i < kept->slots; i++)
        free(kept->table[i].name);
    free(kept->table);
    *kept = (esdm__kept){0};
}

uint64_t
esdm__kept_on(const esdm__kept *kept, size_t target)
{
    uint64_t count = 0;
    for (size_t i = 0; i < kept->slots; i++)
        count += kept->table[i].name != NULL && kept->table[i].target == target;
    return count;
}

/* ---- the catalogue ------------------------------------------------------------------------ */

typedef struct reading {
    const esdm__site *site;
    const esdm_meta_plugin *plugin;
    void *store;
    esdm__kept *kept;
    esdm__buffer containers; /* uint64_t */
    esdm__buffer pages;      /* esdm_meta_page, without their boxes */
    esdm__buffer boxes;      /* 2 * ESDM_MAX_RANK numbers each */
} reading;

static bool
note_container(const char *name, const esdm_meta_container *record, void *user)
{
    (void) name;
    esdm__buffer *to = &((reading *) user)->containers;
    esdm__buffer_put(to, &record->container, sizeof record->container);
    return !to->failed;
}

static bool
note_page(const esdm_meta_page *page, void *user)
{
    reading *r = user;
    uint64_t box[2 * ESDM_MAX_RANK] = {0};
    uint32_t rank = page->rank <= ESDM_MAX_RANK ? page->rank : 0; /* decoding refuses others */
    if (rank > 0)
        memcpy(box, page->box, (size_t) 2 * rank * sizeof box[0]);
    esdm__buffer_put(&r->pages, page, sizeof *page);
    esdm__buffer_put(&r->boxes, box, sizeof box);
    return !r->pages.failed && !r->boxes.failed;
}

static bool
enter_places(reading *r, const esdm__pack_name *pack)
{
    esdm__pack_place place;
    bool known = false;
    char other[sizeof r->kept->elsewhere] = "";
    for (const char *text = pack->target; esdm__places_next(&text, &place);) {
        bool found = false;
        for (size_t i = 0; i < r->site->ntargets; i++) {
            if (strcmp(r->site->targets[i].name, place.target) != 0)
                continue;
            found = true;
            if (!r->site->targets[i].local && place.node[0] == '\0' &&
                !enter(r->kept, (uint32_t) i, pack->pack))
                return false;
        }
        known = known || found;
        if (!found)
            (void) snprintf(other, sizeof other, "%s", place.target);
    }
    if (known || other[0] == '\0')
        return true;
    (void) snprintf(r->kept->elsewhere, sizeof other, "%s", other);
    return enter(r->kept, (uint32_t) r->site->ntargets, pack->pack);
}

static esdm_status
read_page(reading *r, size_t i, esdm_error *err)
{
    esdm_meta_page entry;
    uint64_t box[2 * ESDM_MAX_RANK];
    void *data = NULL;
    size_t bytes = 0;
    esdm__page *page = NULL;
    memcpy(&entry, r->pages.data + i * sizeof entry, sizeof entry);
    memcpy(box, r->boxes.data + i * sizeof box, sizeof box);
    entry.box = box;
    esdm_error why = {0};
    esdm_status status = r->plugin->page_load(r->store, entry.page, &data, &bytes, &why);
    if (status == ESDM_ENOENT) /* merged or moved meanwhile, or its container was removed */
        return ESDM_OK;
    if (status == ESDM_OK)
        status = esdm__page_decode(&entry, data, bytes, &page, &why);
    free(data);
    bool room = true;
    for (uint32_t k = 0; status == ESDM_OK && room && k < page->npacks; k++)
        room = enter_places(r, &page->packs[k]);
    esdm__page_unref(page);
    if (!room)
        return esdm__error_nomem(err, sizeof(esdm__kept_pack), "the packs of the catalogue");
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

static esdm_status
read_containers(reading *r, esdm_error *err)
{
    esdm_status status = r->plugin->container_list(r->store, NULL, note_container, r, err);
    size_t count = r->containers.bytes / sizeof(uint64_t);
    for (size_t i = 0; i < count && status == ESDM_OK && !r->containers.failed; i++) {
        uint64_t container;
        memcpy(&container, r->containers.data + i * sizeof container, sizeof container);
        r->pages.bytes = 0;
        r->boxes.bytes = 0;
        esdm_error why = {0};
        status = r->plugin->page_list(r->store, container, ESDM_META_EVERY_SNAPSHOT, 0, note_page,
                                      r, &why);
        if (status == ESDM_ENOENT) /* it was removed meanwhile */
            status = ESDM_OK;
        else if (status != ESDM_OK && err != NULL)
            *err = why;
        if (r->pages.failed || r->boxes.failed)
            break;
        for (size_t k = 0; k < r->pages.bytes / sizeof(esdm_meta_page) && status == ESDM_OK; k++)
            status = read_page(r, k, err);
    }
    if (status == ESDM_OK && (r->containers.failed || r->pages.failed || r->boxes.failed))
        status = esdm__error_nomem(err, r->pages.bytes, "the index pages");
    return status;
}

esdm_status
esdm__kept_load(const esdm__site *site, esdm__kept *ret_kept, esdm_error *err)
{
    esdm__part part;
    esdm_error why = {0};
    reading r = {.site = site, .kept = ret_kept};
    esdm_status status = esdm__part_at(site, site->ntargets, &part, &why);
    if (status == ESDM_OK) {
        r.plugin = part.meta;
        status = part.meta->open(&part.config, true, &r.store, &why);
    }
    if (status == ESDM_ENOENT)
        return ESDM_OK;
    if (status == ESDM_OK) {
        esdm__buffer_init(&r.containers);
        esdm__buffer_init(&r.pages);
        esdm__buffer_init(&r.boxes);
        status = read_containers(&r, &why);
        esdm__buffer_clear(&r.containers);
        esdm__buffer_clear(&r.pages);
        esdm__buffer_clear(&r.boxes);
        part.meta->close(r.store);
    }
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

/* ---- comparing ---------------------------------------------------------------------------- */

typedef struct comparison {
    const esdm__kept *kept;
    size_t target;
} comparison;

static bool
note_there(const char *name, uint64_t bytes, uint64_t modified_ns, void *user)
{
    (void) bytes;
    (void) modified_ns;
    const comparison *c = user;
    esdm__kept_pack *pack = find(c->kept, c->target, name);
    if (pack != NULL)
        pack->there = true;
    return true;
}

/* @param now NULL: whatever the catalogue says now. */
static uint64_t
count_missing(const esdm__kept *kept, size_t target, const esdm__kept *now)
{
    uint64_t count = 0;
    for (size_t i = 0; i < kept->slots; i++) {
        const esdm__kept_pack *pack = &kept->table[i];
        count += pack->name != NULL && pack->target == target && !pack->there &&
                 (now == NULL || find(now, target, pack->name) != NULL);
    }
    return count;
}

esdm_status
esdm__kept_compare(esdm__kept *kept, const esdm__site *site, size_t target, const esdm__part *part,
                   uint64_t *ret_missing, esdm_error *err)
{
    void *handle = NULL;
    const comparison c = {.kept = kept, .target = target};
    *ret_missing = 0;
    if (esdm__kept_on(kept, target) == 0)
        return ESDM_OK;
    esdm_status status = part->data->open(&part->config, &handle, err);
    if (status != ESDM_OK)
        return status;
    status = part->data->pack_list(handle, NULL, note_there, (void *) &c, err);
    part->data->close(handle);
    if (status != ESDM_OK || count_missing(kept, target, NULL) == 0)
        return status;
    /* Others may have removed containers or moved packs since the catalogue was read. */
    esdm__kept now = {0};
    status = esdm__kept_load(site, &now, err);
    if (status == ESDM_OK)
        *ret_missing = count_missing(kept, target, &now);
    esdm__kept_clear(&now);
    return status;
}
