/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "upkeep/drain_records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/ids.h"
#include "upkeep/asked.h"

typedef esdm__drain_record record;
typedef esdm__drain_records records;

static int
by_uuid(const void *a, const void *b)
{
    return strncmp(((const record *) a)->uuid, ((const record *) b)->uuid, ESDM__UUID_DIGITS);
}

static bool
add_record(records *to, uint64_t container, const char *uuid, const char *name)
{
    char *copy = name != NULL ? strdup(name) : NULL;
    to->failed = (name != NULL && copy == NULL) ||
                 !esdm__array_grow(&to->items, to->count, sizeof *to->items);
    if (to->failed) {
        free(copy);
        return false;
    }
    record *one = &to->items[to->count++];
    *one = (record){.container = container, .name = copy};
    (void) snprintf(one->uuid, sizeof one->uuid, "%s", uuid);
    return true;
}

static bool
note_record(uint64_t container, const char *uuid, const char *name, void *user)
{
    return add_record(user, container, uuid, name);
}

static bool
note_container(const char *name, const esdm_meta_container *info, void *user)
{
    return add_record(user, info->container, info->uuid, name);
}

/* What was asked for cannot be moved without those that share packs with it. */
typedef struct relatives {
    const esdm__share_groups *all;
    records *list;
    size_t *groups; /* that are asked for; owned */
    size_t count;
} relatives;

static bool
note_relative(uint64_t container, const char *uuid, const char *name, void *user)
{
    const relatives *r = user;
    size_t group = esdm__share_group_of(r->all, uuid);
    bool asked = false;
    for (size_t i = 0; i < r->count && !asked; i++)
        asked = r->groups[i] == group;
    for (size_t i = 0; i < r->list->count && asked; i++)
        asked = r->list->items[i].container != container;
    return !asked || add_record(r->list, container, uuid, name);
}

static esdm_status
add_relatives(const esdm_session *session, const esdm__share_groups *groups, records *list,
              esdm_error *err)
{
    relatives r = {.all = groups, .list = list};
    esdm_status status = ESDM_OK;
    if (groups->count == 0 || list->count == 0)
        return ESDM_OK;
    r.groups = malloc(list->count * sizeof *r.groups);
    if (r.groups == NULL)
        return esdm__error_nomem(err, list->count * sizeof *r.groups, "containers");
    for (size_t i = 0; i < list->count; i++) {
        size_t group = esdm__share_group_of(groups, list->items[i].uuid);
        if (group != ESDM__NO_GROUP)
            r.groups[r.count++] = group;
    }
    if (r.count > 0)
        status = session->meta->record_list(session->store, note_relative, &r, err);
    free(r.groups);
    return status;
}

esdm_status
esdm__drain_records_load(const esdm_session *session, const esdm_drain_options *options,
                         const esdm__share_groups *groups, records *list, esdm_error *err)
{
    const esdm_meta_plugin *meta = session->meta;
    esdm_status status = ESDM_OK;
    if (options->containers == NULL)
        status = meta->record_list(session->store, note_record, list, err);
    else
        status = esdm__asked_visit(session, options->containers, options->ncontainers, NULL,
                                   note_container, list, err);
    if (status == ESDM_OK && options->containers != NULL)
        status = add_relatives(session, groups, list, err);
    if (status == ESDM_OK && list->failed)
        status = esdm__error_nomem(err, list->count * sizeof *list->items, "containers");
    if (list->count > 0)
        qsort(list->items, list->count, sizeof *list->items, by_uuid);
    return status;
}

void
esdm__drain_records_clear(records *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].name);
    free(list->items);
    *list = (records){0};
}

bool
esdm__drain_records_have(const records *list, const esdm_drain_options *options,
                         const esdm__share_groups *groups, const char *pack)
{
    record key = {.container = 0};
    if (options->containers == NULL)
        return true;
    (void) snprintf(key.uuid, sizeof key.uuid, "%s", pack);
    if (list->count > 0 && bsearch(&key, list->items, list->count, sizeof key, by_uuid) != NULL)
        return true;
    size_t group = esdm__share_group_of(groups, pack);
    for (size_t i = 0; i < list->count && group != ESDM__NO_GROUP; i++) {
        if (esdm__share_group_of(groups, list->items[i].uuid) == group)
            return true; /* of one that is gone, and that this one needs */
    }
    return false;
}
