/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "upkeep/inventory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/site_packs.h"
#include "io/session/backups.h"
#include "layout/places.h"

typedef struct listing {
    esdm__inventory *inventory;
    uint32_t target;
    bool failed;
} listing;

static bool
note_pack(const char *name, uint64_t bytes, uint64_t modified_ns, void *user)
{
    listing *to = user;
    esdm__inventory *all = to->inventory;
    if (esdm__is_site_pack(name))
        return true;
    char *copy = strdup(name);
    if (copy != NULL && all->count == all->capacity) {
        size_t capacity = all->capacity > 0 ? 2 * all->capacity : 256;
        esdm__pack_entry *grown = realloc(all->entries, capacity * sizeof *grown);
        if (grown != NULL) {
            all->entries = grown;
            all->capacity = capacity;
        }
    }
    if (copy == NULL || all->count == all->capacity) {
        free(copy);
        to->failed = true;
        return false;
    }
    esdm__pack_entry *entry = &all->entries[all->count++];
    *entry = (esdm__pack_entry){
        .name = copy, .target = to->target, .bytes = bytes, .modified_ns = modified_ns};
    return true;
}

esdm_status
esdm__inventory_add(esdm__inventory *inventory, esdm_session *session, const char *prefix,
                    esdm_error *err)
{
    for (size_t i = 0; i < session->ntargets; i++) {
        esdm__target *target = &session->targets[i];
        if (esdm__target_need(session, target, NULL) != ESDM_OK)
            continue;
        listing to = {.inventory = inventory, .target = (uint32_t) i};
        esdm_status status = target->plugin->pack_list(target->handle, prefix, note_pack, &to, err);
        if (status != ESDM_OK)
            return esdm__error_prefix(err, status, "target '%s'", target->name);
        if (to.failed)
            return esdm__error_nomem(err, inventory->count * sizeof *inventory->entries,
                                     "the list of packs");
    }
    return ESDM_OK;
}

esdm_status
esdm__inventory_add_files(esdm__inventory *inventory, esdm_session *session, esdm_error *err)
{
    inventory->files = true;
    for (size_t i = 0; i < session->ntargets; i++) {
        esdm__target *target = &session->targets[i];
        if (target->plugin->file_list == NULL ||
            esdm__target_need(session, target, NULL) != ESDM_OK)
            continue;
        listing to = {.inventory = inventory, .target = (uint32_t) i};
        esdm_status status = target->plugin->file_list(target->handle, note_pack, &to, err);
        if (status != ESDM_OK)
            return esdm__error_prefix(err, status, "target '%s'", target->name);
        if (to.failed)
            return esdm__error_nomem(err, inventory->count * sizeof *inventory->entries,
                                     "the list of files");
    }
    return ESDM_OK;
}

size_t
esdm__targets_report(esdm_session *session, esdm_finding_visitor report, void *user)
{
    size_t count = 0;
    for (size_t i = 0; i < session->ntargets; i++) {
        esdm_error error = {0};
        char place[ESDM__PLACE_TARGET_BYTES + 16];
        esdm_status status = esdm__target_need(session, &session->targets[i], &error);
        count += status != ESDM_OK;
        if (status == ESDM_OK || report == NULL)
            continue;
        (void) snprintf(place, sizeof place, "target '%s'", session->targets[i].name);
        const esdm_finding finding = {.kind = ESDM_FINDING_PROBLEM,
                                      .status = status,
                                      .place = place,
                                      .what = error.message,
                                      .remedy = "bring it back; esdm-mkfs --check tells more"};
        report(&finding, user);
    }
    return count;
}

static int
by_name(const void *a, const void *b)
{
    const esdm__pack_entry *x = a;
    const esdm__pack_entry *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x->target > y->target) - (x->target < y->target);
}

void
esdm__inventory_sort(esdm__inventory *inventory)
{
    if (inventory->count == 0)
        return;
    qsort(inventory->entries, inventory->count, sizeof *inventory->entries, by_name);
    /* S3 lists a pack once more for each upload of its name that was begun and not ended, as when
     * the answer to the first attempt was lost. Removing goes by the name: they are one pack, which
     * is referred to when any of them is. */
    size_t count = 1;
    for (size_t i = 1; i < inventory->count; i++) {
        esdm__pack_entry *last = &inventory->entries[count - 1];
        esdm__pack_entry *next = &inventory->entries[i];
        if (by_name(last, next) != 0) {
            inventory->entries[count++] = *next;
            continue;
        }
        last->bytes = next->bytes > last->bytes ? next->bytes : last->bytes;
        last->modified_ns =
            next->modified_ns > last->modified_ns ? next->modified_ns : last->modified_ns;
        free(next->name);
    }
    inventory->count = count;
}

void
esdm__inventory_clear(esdm__inventory *inventory)
{
    for (size_t i = 0; i < inventory->count; i++)
        free(inventory->entries[i].name);
    free(inventory->entries);
    *inventory = (esdm__inventory){0};
}

esdm__pack_entry *
esdm__inventory_find(const esdm__inventory *inventory, uint32_t target, const char *name)
{
    const esdm__pack_entry key = {.name = (char *) name, .target = target};
    if (inventory->count == 0)
        return NULL;
    return bsearch(&key, inventory->entries, inventory->count, sizeof key, by_name);
}

size_t
esdm__inventory_first(const esdm__inventory *inventory, const char *uuid)
{
    size_t from = 0;
    size_t to = inventory->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (strcmp(inventory->entries[middle].name, uuid) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* The clock of a server may be ahead of ours: what seems to come from the future is young. */
bool
esdm__pack_is_old(const esdm__pack_entry *entry, bool any_age, uint64_t age_s, uint64_t now_ns)
{
    uint64_t limit_s = any_age || age_s > 0 ? age_s : ESDM_GC_AGE_S;
    if (entry->modified_ns > now_ns)
        return limit_s == 0;
    return (now_ns - entry->modified_ns) / UINT64_C(1000000000) >= limit_s;
}

bool
esdm__put_back_report(esdm_session *session, esdm_finding_visitor report, void *user)
{
    uint64_t from_ns;
    char what[200], when[32] = "";
    if (!esdm__backup_put_back(session, &from_ns))
        return false;
    time_t seconds = (time_t) (from_ns / 1000000000u);
    struct tm date = {0};
    (void) gmtime_r(&seconds, &date);
    (void) strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC", &date);
    (void) snprintf(what, sizeof what,
                    "an older copy of the catalogue was put back: what was committed between then "
                    "(after %s) and that may be missing; its packs are kept",
                    from_ns > 0 ? when : "the begin");
    const esdm_finding finding = {.kind = ESDM_FINDING_PROBLEM,
                                  .status = ESDM_ECORRUPT,
                                  .what = what,
                                  .remedy = "'esdm-mkfs --restore' brings it back; where it shall "
                                            "not come back: 'esdm-gc --restoration-complete'"};
    if (report != NULL)
        report(&finding, user);
    return true;
}
