/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Space that data held before they were written again. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/ids.h"
#include "io/packs/page_list.h"
#include "upkeep/upkeep.h"

/* With more packs than this the question is left to esdm-gc. */
#define PACKS_MOST 4096

/* How far the published fragments of a pack reach. */
typedef struct reach {
    char *pack; /* owned */
    uint64_t end;
} reach;

typedef struct reaches {
    reach *items; /* owned */
    size_t count;
} reaches;

static bool
note_end(reaches *all, const char *pack, uint64_t end)
{
    for (size_t i = all->count; i-- > 0;) {
        if (strcmp(all->items[i].pack, pack) != 0)
            continue;
        all->items[i].end = end > all->items[i].end ? end : all->items[i].end;
        return true;
    }
    if (all->count == PACKS_MOST)
        return false;
    reach *grown = realloc(all->items, (all->count + 1) * sizeof *grown);
    if (grown == NULL)
        return false;
    all->items = grown;
    char *copy = strdup(pack);
    if (copy == NULL)
        return false;
    all->items[all->count++] = (reach){.pack = copy, .end = end};
    return true;
}

static void
clear_reaches(reaches *all)
{
    for (size_t i = 0; i < all->count; i++)
        free(all->items[i].pack);
    free(all->items);
}

static esdm_status
note_ends(void *user, const esdm_meta_page *entry, const esdm__page *page, esdm_error *err)
{
    reaches *all = user;
    (void) entry;
    for (uint32_t k = 0; k < page->records.count; k++) {
        const esdm__record *one = &page->records.items[k];
        if (one->pack != NULL && !note_end(all, one->pack->pack, one->position + one->stored_bytes))
            return esdm__error_nomem(err, (all->count + 1) * sizeof *all->items, "packs");
    }
    return ESDM_OK;
}

static esdm_status
load_reaches(esdm_session *session, uint64_t container, reaches *all)
{
    esdm__page_walk walk = {.container = container,
                            .snapshot = ESDM_META_EVERY_SNAPSHOT,
                            .visit = note_ends,
                            .user = all};
    return esdm__pages_walk(session, &walk, NULL);
}

/* Whether everything in it was published: nobody can have anything pending there. */
static bool
is_published(const reaches *all, const esdm__pack_entry *entry)
{
    for (size_t i = 0; i < all->count; i++) {
        if (strcmp(all->items[i].pack, entry->name) == 0)
            return all->items[i].end == entry->bytes;
    }
    return false;
}

void
esdm__upkeep_trim(esdm_session *session, uint64_t container, const char *uuid, const char *name)
{
    uint64_t now_ns = esdm__now_ns();
    bool may_seem_dead = session->meta->writer_check != NULL;
    const esdm__stray_record only = {.container = container, .uuid = uuid, .name = name};
    esdm__inventory packs = {0};
    esdm__strays strays = {0};
    reaches published = {0};
    esdm_status status = may_seem_dead ? load_reaches(session, container, &published) : ESDM_OK;
    if (status == ESDM_OK)
        status = esdm__upkeep_prune(session, container, name, NULL);
    if (status == ESDM_OK)
        status = esdm__inventory_add(&packs, session, uuid, NULL);
    if (status == ESDM_OK && packs.count > 0) {
        esdm__inventory_sort(&packs);
        status = esdm__strays_find(session, &packs, &only, true, &strays, NULL);
    }
    for (uint64_t i = 0; i < strays.dead && status == ESDM_OK; i++) {
        const esdm__pack_entry *entry = &packs.entries[strays.dead_packs[i]];
        const esdm__target *target = &session->targets[entry->target];
        if ((!may_seem_dead || is_published(&published, entry) ||
             esdm__pack_is_old(entry, false, 0, now_ns)) &&
            !esdm__stray_may_be_unknown(&strays, entry) && esdm__stray_stays_dead(session, entry))
            (void) target->plugin->pack_remove(target->handle, entry->name, NULL);
    }
    free(strays.dead_packs);
    clear_reaches(&published);
    esdm__inventory_clear(&packs);
}
