/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/session/sharers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"

typedef struct loading {
    esdm__sharers *all;
    bool failed;
} loading;

static bool
note_sharer(const char *uuid, uint64_t container, void *user)
{
    loading *l = user;
    esdm__sharers *all = l->all;
    l->failed = !esdm__array_grow(&all->items, all->count, sizeof *all->items);
    if (l->failed)
        return false;
    esdm__sharer *one = &all->items[all->count++];
    one->container = container;
    (void) snprintf(one->uuid, sizeof one->uuid, "%s", uuid);
    return true;
}

esdm_status
esdm__sharers_load(const esdm_session *session, esdm__sharers *ret_all, esdm_error *err)
{
    esdm__sharers all = {0};
    loading l = {.all = &all};
    esdm_status status = ESDM_OK;
    if (session->meta->shared_list != NULL)
        status = session->meta->shared_list(session->store, 0, note_sharer, &l, err);
    if (status == ESDM_OK && l.failed)
        status = esdm__error_nomem(err, all.count * sizeof *all.items, "who shares packs");
    if (status == ESDM_OK)
        *ret_all = all;
    else
        free(all.items);
    return status;
}

void
esdm__sharers_clear(esdm__sharers *all)
{
    free(all->items);
    *all = (esdm__sharers){0};
}

bool
esdm__sharers_any(const esdm__sharers *all, const char *uuid)
{
    for (size_t i = 0; i < all->count; i++) {
        if (strcmp(all->items[i].uuid, uuid) == 0)
            return true;
    }
    return false;
}

bool
esdm__sharers_has(const esdm__sharers *all, const char *uuid, uint64_t container)
{
    for (size_t i = 0; i < all->count; i++) {
        if (all->items[i].container == container && strcmp(all->items[i].uuid, uuid) == 0)
            return true;
    }
    return false;
}
