/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Containers that nobody needs any more: their packs are removed, then they are forgotten. */
#include <stdlib.h>
#include <string.h>

#include "io/session/session.h"
#include "io/session/sharers.h"
#include "plugin/registry.h"

typedef struct garbage_item {
    uint64_t container;
    char uuid[ESDM_META_UUID_BYTES];
    struct garbage_item *next;
} garbage_item;

static bool
note_garbage(uint64_t container, const char *uuid, void *user)
{
    garbage_item **list = user;
    garbage_item *item = calloc(1, sizeof *item);
    if (item == NULL)
        return false;
    item->container = container;
    strncpy(item->uuid, uuid, sizeof item->uuid - 1);
    item->next = *list;
    *list = item;
    return true;
}

/* Packs to be removed from one target. */
typedef struct doomed {
    esdm__pool *pool;
    const esdm__target *target;
    char **names;
    size_t count;
    size_t capacity;
} doomed;

static bool
note_pack(const char *name, uint64_t bytes, uint64_t modified_ns, void *user)
{
    (void) bytes;
    (void) modified_ns;
    doomed *list = user;
    if (list->count == list->capacity) {
        size_t capacity = list->capacity > 0 ? 2 * list->capacity : 64;
        char **grown = realloc(list->names, capacity * sizeof *grown);
        if (grown == NULL)
            return false;
        list->names = grown;
        list->capacity = capacity;
    }
    list->names[list->count] = strdup(name);
    if (list->names[list->count] == NULL)
        return false;
    list->count++;
    return true;
}

/* Best effort: no failure stops the others. */
static esdm_status
remove_pack(void *context, size_t i, esdm_error *err)
{
    const doomed *list = context;
    (void) err;
    esdm__pool_wait_begin(list->pool);
    (void) list->target->plugin->pack_remove(list->target->handle, list->names[i], NULL);
    esdm__pool_wait_end(list->pool);
    return ESDM_OK;
}

static void
remove_packs(esdm_session *session, esdm__target *target, const char *prefix)
{
    doomed list = {.pool = session->pool, .target = target};
    if (esdm__target_need(session, target, NULL) != ESDM_OK)
        return; /* esdm-mkfs --check tells of them */
    (void) target->plugin->pack_list(target->handle, prefix, note_pack, &list, NULL);
    if (target->plugin->concurrency > 0)
        (void) !esdm__pool_run(session->pool, list.count, remove_pack, &list, NULL);
    else
        for (size_t i = 0; i < list.count; i++)
            (void) !remove_pack(&list, i, NULL);
    for (size_t i = 0; i < list.count; i++)
        free(list.names[i]);
    free(list.names);
}

/* A record that has the uuid, and is not forgotten. */
typedef struct uuid_search {
    const char *uuid;
    bool found;
} uuid_search;

static bool
see_uuid(uint64_t container, const char *uuid, const char *name, void *user)
{
    uuid_search *search = user;
    (void) container, (void) name;
    search->found = strcmp(uuid, search->uuid) == 0;
    return !search->found;
}

/* Whether a record has the uuid or shares its packs; true when that cannot be told: esdm-gc removes
 * what is left. Once nobody does, nobody ever will (io/session/sharers.h). */
static bool
is_needed(const esdm_session *session, const char *uuid)
{
    bool needed = false;
    uuid_search search = {.uuid = uuid};
    return esdm__sharers_ask(session, uuid, &needed, NULL) != ESDM_OK || needed ||
           session->meta->record_list(session->store, see_uuid, &search, NULL) != ESDM_OK ||
           search.found;
}

static void
remove_unneeded(esdm_session *session, const esdm__sharers *before, const garbage_item *item)
{
    bool shared = esdm__sharers_any(before, item->uuid);
    if (!shared || !is_needed(session, item->uuid)) {
        for (size_t i = 0; i < session->ntargets; i++)
            remove_packs(session, &session->targets[i], item->uuid);
    }
    /* It may have been the last one that needed the packs of others. */
    const esdm__sharer *own;
    size_t count = esdm__sharers_of(before, item->container, &own);
    for (size_t k = 0; k < count; k++) {
        if (is_needed(session, own[k].uuid))
            continue;
        for (size_t i = 0; i < session->ntargets; i++)
            remove_packs(session, &session->targets[i], own[k].uuid);
    }
}

void
esdm__session_collect(esdm_session *session)
{
    garbage_item *list = NULL;
    esdm__sharers sharers = {0};
    (void) session->meta->garbage(session->store, note_garbage, &list, NULL);
    /* After the list: nobody can clone what is garbage. */
    bool known = list == NULL || esdm__sharers_load(session, &sharers, NULL) == ESDM_OK;
    while (list != NULL) {
        garbage_item *item = list;
        list = item->next;
        /* The record goes first: once it is gone nobody can reach the packs any more. */
        if (known && session->meta->forget(session->store, item->container, NULL) == ESDM_OK)
            remove_unneeded(session, &sharers, item);
        free(item);
    }
    esdm__sharers_clear(&sharers);
}
