/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "upkeep/groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/ids.h"
#include "upkeep/inventory.h"

typedef struct loading {
    esdm__share_groups *groups;
    const esdm__sharers *sharers;
    bool failed;
} loading;

static int
by_uuid(const void *a, const void *b)
{
    return strncmp(((const esdm__share_node *) a)->uuid, ((const esdm__share_node *) b)->uuid,
                   ESDM__UUID_DIGITS);
}

static esdm__share_node *
find(const esdm__share_groups *groups, const char *uuid)
{
    esdm__share_node key = {.parent = 0};
    memcpy(key.uuid, uuid, strnlen(uuid, ESDM__UUID_DIGITS));
    return groups->count > 0 ? bsearch(&key, groups->nodes, groups->count, sizeof key, by_uuid)
                             : NULL;
}

static size_t
root_of(const esdm__share_groups *groups, size_t at)
{
    while (groups->nodes[at].parent != at)
        at = groups->nodes[at].parent;
    return at;
}

static bool
add(esdm__share_groups *groups, const char *uuid, bool has_record)
{
    if (!esdm__array_grow(&groups->nodes, groups->count, sizeof *groups->nodes))
        return false;
    esdm__share_node *one = &groups->nodes[groups->count++];
    *one = (esdm__share_node){.has_record = has_record};
    memcpy(one->uuid, uuid, strnlen(uuid, ESDM__UUID_DIGITS));
    return true;
}

/* Each uuid once; one that a record has says so. */
static void
sort(esdm__share_groups *groups)
{
    size_t left = 0;
    if (groups->count > 0)
        qsort(groups->nodes, groups->count, sizeof *groups->nodes, by_uuid);
    for (size_t i = 0; i < groups->count; i++) {
        if (left > 0 && by_uuid(&groups->nodes[left - 1], &groups->nodes[i]) == 0)
            groups->nodes[left - 1].has_record |= groups->nodes[i].has_record;
        else
            groups->nodes[left++] = groups->nodes[i];
    }
    groups->count = left;
    for (size_t i = 0; i < left; i++)
        groups->nodes[i].parent = i;
}

static bool
note_record(uint64_t container, const char *uuid, const char *name, void *user)
{
    loading *l = user;
    (void) name;
    const esdm__sharer *own;
    if (esdm__sharers_of(l->sharers, container, &own) > 0 || esdm__sharers_any(l->sharers, uuid))
        l->failed = !add(l->groups, uuid, true);
    return !l->failed;
}

static bool
join_record(uint64_t container, const char *uuid, const char *name, void *user)
{
    loading *l = user;
    const esdm__share_groups *groups = l->groups;
    const esdm__share_node *own = find(groups, uuid);
    const esdm__sharer *shared;
    size_t count = esdm__sharers_of(l->sharers, container, &shared);
    (void) name;
    for (size_t i = 0; own != NULL && i < count; i++) {
        const esdm__share_node *other = find(groups, shared[i].uuid);
        if (other != NULL)
            groups->nodes[root_of(groups, (size_t) (other - groups->nodes))].parent =
                root_of(groups, (size_t) (own - groups->nodes));
    }
    return true;
}

esdm_status
esdm__share_groups_load(const esdm_session *session, esdm__share_groups *ret_groups,
                        esdm_error *err)
{
    esdm__sharers sharers = {0};
    esdm__share_groups groups = {0};
    loading l = {.groups = &groups, .sharers = &sharers};
    esdm_status status = esdm__sharers_load(session, &sharers, err);
    if (status == ESDM_OK && sharers.count > 0) {
        for (size_t i = 0; i < sharers.count && !l.failed; i++)
            l.failed = !add(&groups, sharers.items[i].uuid, false);
        if (!l.failed)
            status = session->meta->record_list(session->store, note_record, &l, err);
        if (status == ESDM_OK && l.failed)
            status =
                esdm__error_nomem(err, groups.count * sizeof *groups.nodes, "who shares packs");
        sort(&groups);
        if (status == ESDM_OK)
            status = session->meta->record_list(session->store, join_record, &l, err);
    }
    esdm__sharers_clear(&sharers);
    if (status == ESDM_OK)
        *ret_groups = groups;
    else
        esdm__share_groups_clear(&groups);
    return status;
}

void
esdm__share_groups_clear(esdm__share_groups *groups)
{
    free(groups->nodes);
    *groups = (esdm__share_groups){0};
}

size_t
esdm__share_group_of(const esdm__share_groups *groups, const char *uuid)
{
    const esdm__share_node *one = find(groups, uuid);
    return one != NULL ? root_of(groups, (size_t) (one - groups->nodes)) : ESDM__NO_GROUP;
}
