/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file How much containers store, what several of them refer to counted once. Most containers
 * share nothing: of these the sums in their records are right, and no index page is read.
 */

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/checksum.h"
#include "base/error.h"
#include "io/packs/page_list.h"
#include "io/session/former.h"
#include "layout/packs.h"
#include "site/site.h"
#include "upkeep/groups.h"
#include "upkeep/upkeep.h"

#define OUTSIDE UINT32_MAX /* of containers that were not asked for */
/* A commit may merge index pages while they are read. */
#define ATTEMPTS 8

/* A container whose index pages are looked at. */
typedef struct member {
    char *name; /* owned; that the store knows */
    uint64_t container;
    uint64_t snapshot;
    uint32_t group; /* of the caller, or OUTSIDE */
} member;

/* A stored fragment. */
typedef struct piece {
    uint64_t key; /* of pack and position; 0: free */
    uint64_t bytes;
    uint32_t first_group;
    uint32_t last_group;
    uint64_t last_container;
    bool shared_by_containers;
    bool shared_by_groups;
} piece;

typedef struct usage {
    esdm_session *session;
    const esdm_usage_part *parts;
    size_t count;
    uint32_t *order; /* owned; parts by name and id */
    bool *looked_at; /* owned; of each part: a member stands for it */
    bool *wanted;    /* owned; of each node of `groups`: root of one that a part belongs to */
    esdm__share_groups groups;
    member *members; /* owned */
    size_t nmembers;
    piece *pieces; /* owned; open addressing; a power of two */
    size_t slots;
    size_t npieces;
    esdm_usage *by_group; /* borrowed */
    esdm_usage *total;
    bool collects; /* else it looks which groups of sharers are needed */
    bool failed;
} usage;

/* ---- which containers ---------------------------------------------------------------------- */

static int
compare_parts(const char *name, const char *id, const esdm_usage_part *part)
{
    int order = strcmp(name, part->name);
    if (order != 0)
        return order;
    return strcmp(id != NULL ? id : "", part->former != NULL ? part->former : "");
}

static int
by_name(const void *a, const void *b, void *user)
{
    const esdm_usage_part *parts = user;
    const esdm_usage_part *x = &parts[*(const uint32_t *) a];
    return compare_parts(x->name, x->former, &parts[*(const uint32_t *) b]);
}

/* The first place in `order` of this name; the end when there is none. */
static size_t
find_part(const usage *u, const char *name, const char *id)
{
    size_t low = 0;
    size_t high = u->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_parts(name, id, &u->parts[u->order[middle]]) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < u->count && compare_parts(name, id, &u->parts[u->order[low]]) == 0)
        return low;
    return u->count;
}

static bool
add_member(usage *u, const char *stored, const esdm_meta_container *record, uint32_t group)
{
    char *name = strdup(stored);
    u->failed = name == NULL || !esdm__array_grow(&u->members, u->nmembers, sizeof *u->members);
    if (u->failed)
        free(name);
    else
        u->members[u->nmembers++] = (member){.name = name,
                                             .container = record->container,
                                             .snapshot = record->snapshot,
                                             .group = group};
    return !u->failed;
}

static bool
note_container(const char *stored, const esdm_meta_container *record, void *user)
{
    usage *u = user;
    esdm__former former;
    bool is_former = esdm__former_parse(stored, &former);
    if (esdm__name_is_own(stored) && !is_former)
        return true;
    const char *name = is_former ? former.name : stored;
    size_t at = find_part(u, name, is_former ? former.id : NULL);
    size_t sharers = esdm__share_group_of(&u->groups, record->uuid);
    bool repeats = at < u->count && esdm__site_dedup(u->session->site, name) != ESDM__DEDUP_OFF;
    if (!u->collects) {
        if (at < u->count && sharers != ESDM__NO_GROUP)
            u->wanted[sharers] = true;
        return true;
    }
    if (!repeats && (sharers == ESDM__NO_GROUP || !u->wanted[sharers]))
        return true;
    if (at == u->count) /* former containers are looked at when they are asked for */
        return is_former || add_member(u, stored, record, OUTSIDE);
    while (at < u->count &&
           compare_parts(name, is_former ? former.id : NULL, &u->parts[u->order[at]]) == 0 &&
           !u->failed) {
        u->looked_at[u->order[at]] = true;
        (void) add_member(u, stored, record, u->parts[u->order[at]].group);
        at++;
    }
    return !u->failed;
}

/* By group: what was not asked for comes last. */
static int
compare_members(const void *a, const void *b)
{
    const member *x = a;
    const member *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return (x->container > y->container) - (x->container < y->container);
}

static esdm_status
list_containers(usage *u, esdm_error *err)
{
    const esdm_meta_plugin *meta = u->session->meta;
    esdm_status status = ESDM_OK;
    for (int i = 0; i < 2 && status == ESDM_OK; i++) {
        u->collects = i == 1;
        status = meta->container_list(u->session->store, NULL, note_container, u, err);
        if (status == ESDM_OK && !u->failed)
            status = meta->container_list(u->session->store, ESDM__FORMER_PREFIX, note_container, u,
                                          err);
    }
    if (status == ESDM_OK && u->failed)
        status = esdm__error_nomem(err, u->nmembers * sizeof *u->members, "containers");
    if (u->nmembers > 1)
        qsort(u->members, u->nmembers, sizeof *u->members, compare_members);
    return status;
}

/* ---- their fragments ----------------------------------------------------------------------- */

static piece *
slot_of(piece *pieces, size_t slots, uint64_t key)
{
    size_t at = (size_t) key & (slots - 1);
    while (pieces[at].key != 0 && pieces[at].key != key)
        at = (at + 1) & (slots - 1);
    return &pieces[at];
}

static bool
grow(usage *u)
{
    if (2 * (u->npieces + 1) <= u->slots)
        return true;
    size_t slots = u->slots > 0 ? 2 * u->slots : 1024;
    piece *pieces = calloc(slots, sizeof *pieces);
    if (pieces == NULL)
        return false;
    for (size_t i = 0; i < u->slots; i++) {
        if (u->pieces[i].key != 0)
            *slot_of(pieces, slots, u->pieces[i].key) = u->pieces[i];
    }
    free(u->pieces);
    u->pieces = pieces;
    u->slots = slots;
    return true;
}

static void
count(usage *u, uint32_t group, uint64_t bytes)
{
    if (group == OUTSIDE)
        return;
    u->by_group[group].stored_bytes += bytes;
    u->total->stored_bytes += bytes;
}

/* Members come by group. @param number of the member in its order. */
static bool
count_piece(usage *u, uint32_t number, const esdm__record *record)
{
    const member *m = &u->members[number];
    uint32_t group = m->group;
    const uint64_t parts[2] = {esdm__checksum(record->pack->pack, strlen(record->pack->pack)),
                               record->position};
    uint64_t key = esdm__checksum(parts, sizeof parts);
    if (!grow(u))
        return false;
    piece *p = slot_of(u->pieces, u->slots, key != 0 ? key : 1);
    if (p->key == 0) {
        if (group == OUTSIDE)
            return true;
        *p = (piece){.key = key != 0 ? key : 1,
                     .bytes = record->stored_bytes,
                     .first_group = group,
                     .last_group = group,
                     .last_container = m->container};
        u->npieces++;
        count(u, group, p->bytes);
        return true;
    }
    if (p->last_container != m->container && !p->shared_by_containers) {
        p->shared_by_containers = true;
        u->total->shared_bytes += p->bytes;
    }
    if (p->last_group != group) {
        if (!p->shared_by_groups)
            u->by_group[p->first_group].shared_bytes += p->bytes;
        p->shared_by_groups = true;
        if (group != OUTSIDE) {
            u->by_group[group].stored_bytes += p->bytes;
            u->by_group[group].shared_bytes += p->bytes;
        }
    }
    p->last_group = group;
    p->last_container = m->container;
    return true;
}

static esdm_status
fetch_all(const usage *u, const esdm__page_list *list, esdm__page **pages, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < list->count && status == ESDM_OK; i++) {
        const esdm_meta_page entry = esdm__page_list_at(list, i);
        status = esdm__page_fetch(u->session, &entry, &pages[i], err);
    }
    return status;
}

static bool
count_pages(usage *u, uint32_t number, size_t npages, esdm__page *const *pages)
{
    bool done = true;
    for (size_t i = 0; i < npages && done; i++) {
        const esdm__records *records = &pages[i]->records;
        for (uint32_t k = 0; k < records->count && done; k++) {
            const esdm__record *record = &records->items[k];
            if (record->pack != NULL && record->kind == ESDM__KIND_STORED)
                done = count_piece(u, number, record);
            else /* each container has its own */
                count(u, u->members[number].group, esdm__record_held_bytes(record));
        }
    }
    return done;
}

/* ESDM_ENOENT: pages went away meanwhile. */
static esdm_status
look_once(usage *u, uint32_t number, esdm_error *err)
{
    const member *m = &u->members[number];
    esdm__page_list list = {0};
    esdm__page **pages = NULL;
    esdm_status status = esdm__page_list_load(u->session, m->container, m->snapshot, 0, &list, err);
    if (status == ESDM_OK && (pages = calloc(list.count + 1, sizeof(esdm__page *))) == NULL)
        status = esdm__error_nomem(err, list.count * sizeof(esdm__page *), "the index pages");
    if (status == ESDM_OK)
        status = fetch_all(u, &list, pages, err);
    if (status == ESDM_OK && !count_pages(u, number, list.count, pages))
        status = esdm__error_nomem(err, 2 * u->slots * sizeof *u->pieces, "fragments");
    for (size_t i = 0; pages != NULL && i < list.count; i++)
        esdm__page_unref(pages[i]);
    free(pages);
    esdm__page_list_clear(&list);
    return status;
}

static esdm_status
look_at(usage *u, uint32_t number, esdm_error *err)
{
    member *m = &u->members[number];
    esdm_status status = look_once(u, number, err);
    for (int i = 0; status == ESDM_ENOENT && i < ATTEMPTS; i++) {
        esdm_meta_container now;
        status = u->session->meta->container_find(u->session->store, m->name, &now, err);
        if (status == ESDM_ENOENT || (status == ESDM_OK && now.container != m->container))
            return ESDM_OK; /* it was removed */
        if (status == ESDM_OK) {
            m->snapshot = now.snapshot;
            status = look_once(u, number, err);
        }
    }
    return status;
}

/* ---- all ----------------------------------------------------------------------------------- */

static esdm_status
begin(usage *u, esdm_error *err)
{
    esdm_status status = esdm__share_groups_load(u->session, &u->groups, err);
    if (status != ESDM_OK)
        return status;
    u->order = calloc(u->count + 1, sizeof *u->order);
    u->looked_at = calloc(u->count + 1, sizeof *u->looked_at);
    u->wanted = calloc(u->groups.count + 1, sizeof *u->wanted);
    if (u->order == NULL || u->looked_at == NULL || u->wanted == NULL)
        return esdm__error_nomem(err, u->count * sizeof *u->order, "containers");
    for (size_t i = 0; i < u->count; i++)
        u->order[i] = (uint32_t) i;
    if (u->count > 1)
        qsort_r(u->order, u->count, sizeof *u->order, by_name, (void *) (uintptr_t) u->parts);
    return ESDM_OK;
}

static bool
may_share(const usage *u)
{
    bool any = u->groups.count > 0 && u->count > 0;
    for (size_t i = 0; i < u->count && !any; i++)
        any = esdm__site_dedup(u->session->site, u->parts[i].name) != ESDM__DEDUP_OFF;
    return any;
}

esdm_status
esdm__upkeep_usage(esdm_session *session, const esdm_usage_part *parts, size_t nparts,
                   esdm_usage *groups, esdm_usage *total, esdm_error *err)
{
    usage u = {
        .session = session, .parts = parts, .count = nparts, .by_group = groups, .total = total};
    esdm_status status = begin(&u, err);
    if (status == ESDM_OK && may_share(&u))
        status = list_containers(&u, err);
    for (uint32_t i = 0; i < u.nmembers && status == ESDM_OK; i++)
        status = look_at(&u, i, err);
    for (size_t i = 0; i < nparts && status == ESDM_OK; i++) {
        if (!u.looked_at[i])
            count(&u, parts[i].group, parts[i].stored_bytes);
    }
    esdm__share_groups_clear(&u.groups);
    free(u.order);
    free(u.looked_at);
    free(u.wanted);
    for (size_t i = 0; i < u.nmembers; i++)
        free(u.members[i].name);
    free(u.members);
    free(u.pieces);
    return status;
}
