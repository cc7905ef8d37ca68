/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "api/formers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"

static bool
note(const char *stored, const esdm_meta_container *record, void *user)
{
    esdm__formers *all = user;
    esdm__former former;
    if (!esdm__former_parse(stored, &former) || strcmp(former.name, all->name) != 0)
        return true;
    char *copy = strdup(stored);
    if (copy == NULL || !esdm__array_grow(&all->items, all->count, sizeof *all->items)) {
        free(copy);
        all->failed = true;
        return false;
    }
    esdm__former_record *one = &all->items[all->count++];
    *one = (esdm__former_record){.stored = copy,
                                 .record = record->container,
                                 .created_ns = record->created_ns,
                                 .time_ns = former.time_ns,
                                 .removed = former.removed};
    memcpy(one->id, former.id, sizeof one->id);
    memcpy(one->uuid, record->uuid, sizeof one->uuid);
    return true;
}

static int
by_time(const void *a, const void *b)
{
    const esdm__former_record *x = a;
    const esdm__former_record *y = b;
    return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

esdm_status
esdm__formers_load(esdm_session *session, const char *name, esdm__formers *ret_formers,
                   esdm_error *err)
{
    char prefix[ESDM__FORMER_NAME_BYTES];
    *ret_formers = (esdm__formers){.name = name};
    (void) snprintf(prefix, sizeof prefix, ESDM__FORMER_PREFIX "/%s", name);
    esdm_status status =
        session->meta->container_list(session->store, prefix, note, ret_formers, err);
    if (status == ESDM_OK && ret_formers->failed)
        status = esdm__error_nomem(err, ret_formers->count * sizeof *ret_formers->items,
                                   "former containers");
    if (ret_formers->count > 0)
        qsort(ret_formers->items, ret_formers->count, sizeof *ret_formers->items, by_time);
    return status;
}

void
esdm__formers_clear(esdm__formers *formers)
{
    for (size_t i = 0; i < formers->count; i++)
        free(formers->items[i].stored);
    free(formers->items);
    *formers = (esdm__formers){.name = NULL};
}
