/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "upkeep/guarded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "io/packs/pack_guard.h"

void
esdm__guarded_clear(esdm__guarded *all)
{
    free(all->items);
    *all = (esdm__guarded){0};
}

static bool
note_guard(const char *name, const char *text, void *user)
{
    esdm__guarded *to = user;
    to->failed = !esdm__array_grow(&to->items, to->count, sizeof *to->items);
    if (to->failed)
        return false;
    esdm__guard *one = &to->items[to->count++];
    (void) snprintf(one->writer, sizeof one->writer, "%s", name + sizeof ESDM__FACT_GUARDED - 1);
    (void) snprintf(one->chance, sizeof one->chance, "%s", text);
    return true;
}

static int
by_writer(const void *a, const void *b)
{
    return strcmp(((const esdm__guard *) a)->writer, ((const esdm__guard *) b)->writer);
}

esdm_status
esdm__guarded_list(const esdm_session *session, esdm__guarded *ret, esdm_error *err)
{
    if (session->meta->fact_list == NULL || session->meta->fact_put == NULL)
        return ESDM_OK;
    esdm_status status =
        session->meta->fact_list(session->store, ESDM__FACT_GUARDED, note_guard, ret, err);
    if (status == ESDM_OK && ret->failed)
        status = esdm__error_nomem(err, ret->count * sizeof *ret->items, "guarded packs");
    if (status == ESDM_OK && ret->count > 1)
        qsort(ret->items, ret->count, sizeof *ret->items, by_writer);
    return status;
}

static const char *
guard_of(const esdm__guarded *all, const char *writer)
{
    esdm__guard key;
    (void) snprintf(key.writer, sizeof key.writer, "%s", writer);
    const esdm__guard *found =
        all->count > 0 ? bsearch(&key, all->items, all->count, sizeof key, by_writer) : NULL;
    return found != NULL ? found->chance : "";
}

esdm_status
esdm__guarded_spare(const esdm_session *session, const esdm__inventory *packs,
                    const esdm__guarded *before, bool *dead, esdm_error *err)
{
    esdm__guarded now = {0};
    esdm_status status = esdm__guarded_list(session, &now, err);
    for (size_t i = 0; i < packs->count && status == ESDM_OK; i++) {
        char writer[ESDM__UUID_BYTES];
        if (!dead[i] || atomic_load(&packs->entries[i].used))
            continue;
        esdm__pack_writer(packs->entries[i].name, writer);
        dead[i] = strcmp(guard_of(before, writer), guard_of(&now, writer)) == 0;
    }
    esdm__guarded_clear(&now);
    return status;
}

/* The facts come first: their packs are older. */
void
esdm__guarded_forget(esdm_session *session)
{
    esdm__guarded all = {0};
    esdm__inventory packs = {0};
    if (esdm__guarded_list(session, &all, NULL) != ESDM_OK || all.count == 0 ||
        esdm__targets_report(session, NULL, NULL) > 0 ||
        esdm__inventory_add(&packs, session, NULL, NULL) != ESDM_OK)
        all.count = 0;
    bool *there = calloc(all.count + 1, sizeof *there);
    for (size_t i = 0; i < packs.count && there != NULL && all.count > 0; i++) {
        esdm__guard key;
        esdm__pack_writer(packs.entries[i].name, key.writer);
        const esdm__guard *found = bsearch(&key, all.items, all.count, sizeof key, by_writer);
        if (found != NULL)
            there[found - all.items] = true;
    }
    for (size_t i = 0; i < all.count && there != NULL; i++) {
        char fact[sizeof ESDM__FACT_GUARDED + ESDM__UUID_BYTES];
        (void) snprintf(fact, sizeof fact, ESDM__FACT_GUARDED "%s", all.items[i].writer);
        if (!there[i])
            (void) !session->meta->fact_put(session->store, fact, NULL, NULL);
    }
    free(there);
    esdm__guarded_clear(&all);
    esdm__inventory_clear(&packs);
}
