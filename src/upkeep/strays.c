/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Packs that nothing refers to. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/packs/page_list.h"
#include "io/session/held_files.h"
#include "io/session/sharers.h"
#include "journal/restore.h"
#include "layout/places.h"
#include "layout/source.h"
#include "upkeep/guarded.h"
#include "upkeep/upkeep.h"

/* ---- records ------------------------------------------------------------------------------ */

/* One with packs in the inventory. */
typedef struct record {
    uint64_t container;
    char *name; /* owned; NULL: garbage that somebody may read */
    char uuid[ESDM_META_UUID_BYTES];
    unsigned seen; /* the look that found it last */
    bool gone;     /* a later look has not found it */
} record;

typedef struct records {
    const esdm__inventory *packs;
    const bool *asked; /* of which packs it is asked whether they are needed; NULL: of all */
    const esdm__sharers *sharers;
    const esdm__stray_record *only; /* NULL: all records */
    record *items;                  /* owned; the first `sorted` by number */
    size_t count;
    size_t sorted;
    unsigned look; /* number of the look under way */
    bool failed;
} records;

static bool
has_packs(const records *to, const char *uuid)
{
    const esdm__inventory *packs = to->packs;
    size_t i = esdm__inventory_first(packs, uuid);
    while (i < packs->count && strncmp(packs->entries[i].name, uuid, ESDM__UUID_DIGITS) == 0) {
        if (to->asked == NULL || (to->asked[i] && !atomic_load(&packs->entries[i].used)))
            return true;
        i++;
    }
    return false;
}

/* Whether it may refer to packs of the inventory, its own or those of others. */
static bool
is_concerned(const records *to, uint64_t container, const char *uuid)
{
    if (to->only != NULL)
        return container == to->only->container ||
               esdm__sharers_has(to->sharers, to->only->uuid, container);
    if (has_packs(to, uuid) || to->packs->files) /* a merge takes references over */
        return true;
    const esdm__sharer *shared;
    size_t count = esdm__sharers_of(to->sharers, container, &shared);
    for (size_t i = 0; i < count; i++) {
        if (has_packs(to, shared[i].uuid))
            return true;
    }
    return false;
}

static int
by_number(const void *a, const void *b)
{
    const record *x = a;
    const record *y = b;
    return (x->container > y->container) - (x->container < y->container);
}

/* By an earlier look: numbers are never given again. */
static record *
noted(const records *to, uint64_t container)
{
    const record key = {.container = container};
    return to->sorted > 0 ? bsearch(&key, to->items, to->sorted, sizeof key, by_number) : NULL;
}

static bool
note_record(uint64_t container, const char *uuid, const char *name, void *user)
{
    records *to = user;
    record *known = noted(to, container);
    if (known != NULL)
        known->seen = to->look;
    if (!is_concerned(to, container, uuid) || known != NULL)
        return true;
    record *grown = realloc(to->items, (to->count + 1) * sizeof *grown);
    to->failed = grown == NULL;
    if (grown == NULL)
        return false;
    char *copy = name != NULL ? strdup(name) : NULL;
    to->items = grown;
    to->failed = name != NULL && copy == NULL;
    if (to->failed)
        return false;
    record *one = &to->items[to->count++];
    *one = (record){.container = container, .name = copy, .seen = to->look};
    strncpy(one->uuid, uuid, sizeof one->uuid - 1);
    one->uuid[sizeof one->uuid - 1] = '\0';
    return true;
}

/* ---- references --------------------------------------------------------------------------- */

typedef struct marking {
    esdm_session *session;
    esdm__inventory *packs;
    const esdm__sharers *sharers;
    uint64_t lost;
} marking;

/* Of a target that this configuration does not name: it may have another name now. */
static void
mark_anywhere(const marking *m, const char *pack)
{
    for (uint32_t t = 0; t < m->session->ntargets; t++) {
        esdm__pack_entry *entry = esdm__inventory_find(m->packs, t, pack);
        if (entry != NULL)
            atomic_store(&entry->used, true);
    }
}

/* Clones that a page refers to. */
static void
mark_files(const marking *m, const esdm__page *page)
{
    for (uint32_t k = 0; k < page->nsources; k++) {
        esdm__foreign foreign;
        if (page->sources[k].role == ESDM__ROLE_FOREIGN &&
            esdm__foreign_get(&page->sources[k], &foreign, NULL) == ESDM_OK &&
            esdm__held_is(foreign.location))
            mark_anywhere(m, esdm__held_name(foreign.location));
    }
}

static void
mark_pack(const marking *m, const esdm__pack_name *name)
{
    const char *places = name->target;
    esdm__pack_place place;
    while (esdm__places_next(&places, &place)) {
        const esdm__target *target = esdm__session_target(m->session, place.target);
        esdm__pack_entry *entry =
            target == NULL ? NULL
                           : esdm__inventory_find(
                                 m->packs, (uint32_t) (target - m->session->targets), name->pack);
        if (entry != NULL)
            atomic_store(&entry->used, true);
        if (target == NULL)
            mark_anywhere(m, name->pack);
    }
}

/* Marks all packs of a record ("": of all), when it cannot be told which ones it needs. */
static void
mark_all(const marking *m, const char *uuid)
{
    for (size_t i = esdm__inventory_first(m->packs, uuid);
         i < m->packs->count && strncmp(m->packs->entries[i].name, uuid, strlen(uuid)) == 0; i++)
        atomic_store(&m->packs->entries[i].used, true);
}

static esdm_status
mark_page(void *user, const esdm_meta_page *entry, const esdm__page *page, esdm_error *err)
{
    const marking *m = user;
    (void) entry;
    (void) err;
    for (uint32_t k = 0; k < page->npacks; k++)
        mark_pack(m, &page->packs[k]);
    if (m->packs->files)
        mark_files(m, page);
    return ESDM_OK;
}

/* *ret_again: a page went away between the directory and the look at it; what has become of its
 * fragments stands in a page that was not seen. */
static esdm_status
mark_pages(marking *m, const record *one, bool *ret_again, esdm_error *err)
{
    esdm__page_walk walk = {.container = one->container,
                            .snapshot = ESDM_META_EVERY_SNAPSHOT,
                            .pass_gone = true,
                            .visit = mark_page,
                            .user = m};
    esdm_status status = esdm__pages_walk(m->session, &walk, err);
    *ret_again = walk.gone;
    return status;
}

/* Whether the directory lists as much as was committed: a page that it has lost refers to packs
 * too.
 * @param ret_lost whether it does not; what cannot be told, as while somebody commits or removes,
 * is neither. */
static bool
is_whole(const marking *m, const record *one, bool *ret_lost)
{
    const esdm_meta_plugin *meta = m->session->meta;
    esdm__page_list pages = {0};
    esdm_meta_container now;
    esdm_meta_container later;
    *ret_lost = false;
    if (one->name == NULL) /* its sums are not counted on */
        return true;
    if (meta->container_find(m->session->store, one->name, &now, NULL) != ESDM_OK ||
        now.container != one->container)
        return false;
    esdm_status status =
        esdm__page_list_load(m->session, one->container, now.snapshot, 0, &pages, NULL);
    const esdm__page_sums sums = esdm__page_list_sums(&pages);
    esdm__page_list_clear(&pages);
    if (status == ESDM_OK && esdm__page_sums_agree(&sums, &now))
        return true;
    *ret_lost = status == ESDM_OK &&
                meta->container_find(m->session->store, one->name, &later, NULL) == ESDM_OK &&
                later.container == now.container && later.snapshot == now.snapshot;
    return false;
}

static esdm_status
mark_record(marking *m, const record *one, esdm_error *err)
{
    esdm_error error = {0};
    bool again = true;
    esdm_status status = ESDM_OK;
    for (int attempt = 0; attempt < 100 && again && status == ESDM_OK; attempt++)
        status = mark_pages(m, one, &again, &error);
    /* A damaged page says nothing about its packs, one of a newer ESDM neither. */
    bool lost = status == ESDM_ECORRUPT || status == ESDM_ENOTSUP;
    if (lost || (status == ESDM_OK && (again || !is_whole(m, one, &lost)))) {
        mark_all(m, m->packs->files ? "" : one->uuid);
        const esdm__sharer *shared;
        size_t count = esdm__sharers_of(m->sharers, one->container, &shared);
        for (size_t i = 0; i < count; i++)
            mark_all(m, shared[i].uuid);
        m->lost += lost;
        return ESDM_OK;
    }
    if (status != ESDM_OK && err != NULL)
        *err = error;
    return status;
}

/* An empty change comes after those that are in progress. */
static esdm_status
wait_for_commits(esdm_session *session, const record *one, esdm_error *err)
{
    esdm_status status =
        session->meta->relocate(session->store, one->container, NULL, 0, false, err);
    return status == ESDM_OK
               ? ESDM_OK
               : esdm__error_prefix(err, status, "cannot tell which commits are in progress");
}

/* Whether a record has gone since the look before. */
static bool
has_gone(const records *list, const char *uuid)
{
    for (size_t i = 0; i < list->sorted; i++) {
        const record *one = &list->items[i];
        if (one->seen + 1 == list->look && !one->gone && strcmp(one->uuid, uuid) == 0)
            return true;
    }
    return false;
}

/* Since a record was looked at, a merge may have given it fragments of another record. The merge
 * adds a row first. So a record is looked at again when it has a new row. It is also looked at
 * again when the record whose packs its row names has gone: that may have been gone before its
 * packs were marked. */
static esdm_status
mark_sharers_again(marking *m, const records *list, const esdm__sharers *before, bool fence,
                   bool *ret_any, esdm_error *err)
{
    const esdm__sharers *now = m->sharers;
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < now->count && status == ESDM_OK; i++) {
        const esdm__sharer *row = &now->items[i];
        const record *one = noted(list, row->container);
        if (one == NULL ||
            (esdm__sharers_has(before, row->uuid, row->container) && !has_gone(list, row->uuid)))
            continue;
        *ret_any = true;
        if (fence)
            status = wait_for_commits(m->session, one, err);
        if (status == ESDM_OK)
            status = mark_record(m, one, err);
    }
    for (size_t i = 0; i < list->sorted; i++)
        list->items[i].gone = list->items[i].seen != list->look;
    return status;
}

/* Marks what the records need that are there now and were not marked yet. @param sharers those of
 *  the look before; replaced. */
static esdm_status
mark_new_records(marking *m, records *list, esdm__sharers *sharers_before, bool fence,
                 bool *ret_any, esdm_error *err)
{
    esdm__sharers sharers = {0};
    size_t first = list->count;
    list->look++;
    esdm_status status = esdm__sharers_load(m->session, &sharers, err);
    m->sharers = list->sharers = &sharers;
    bool alone = list->only != NULL && !esdm__sharers_any(&sharers, list->only->uuid);
    if (status == ESDM_OK && alone)
        (void) note_record(list->only->container, list->only->uuid, list->only->name, list);
    else if (status == ESDM_OK)
        status = m->session->meta->record_list(m->session->store, note_record, list, err);
    if (status == ESDM_OK && list->failed)
        status = esdm__error_nomem(err, list->count * sizeof *list->items, "records");
    for (size_t i = first; i < list->count && status == ESDM_OK; i++) {
        if (fence)
            status = wait_for_commits(m->session, &list->items[i], err);
        if (status == ESDM_OK)
            status = mark_record(m, &list->items[i], err);
    }
    *ret_any = list->count > first;
    if (status == ESDM_OK && list->look > 1 && !alone)
        status = mark_sharers_again(m, list, sharers_before, fence, ret_any, err);
    if (list->count > first)
        qsort(list->items, list->count, sizeof *list->items, by_number);
    list->sorted = list->count;
    esdm__sharers_clear(sharers_before);
    *sharers_before = sharers;
    m->sharers = list->sharers = sharers_before;
    return status;
}

/* A clone that was made meanwhile may need what the container, which was looked at after it, has
 * given up since. So it goes on until there is no new record: what is cloned later is cloned of one
 * that was marked, with all that it needs. */
static esdm_status
mark_used(esdm_session *session, esdm__inventory *packs, const bool *asked,
          const esdm__stray_record *only, bool fence, uint64_t *ret_lost, esdm_error *err)
{
    marking m = {.session = session, .packs = packs};
    records list = {.packs = packs, .asked = asked, .only = only};
    esdm__sharers sharers = {0};
    bool any = true;
    esdm_status status = ESDM_OK;
    while (any && status == ESDM_OK)
        status = mark_new_records(&m, &list, &sharers, fence, &any, err);
    esdm__sharers_clear(&sharers);
    for (size_t i = 0; i < list.count; i++)
        free(list.items[i].name);
    free(list.items);
    *ret_lost = m.lost > *ret_lost ? m.lost : *ret_lost;
    return status;
}

/* ---- writers ------------------------------------------------------------------------------ */

/* Entries of one writer follow each other within a container: the last answer is kept. Asked is of
 * those that count as dead and were not seen to be needed. */
static esdm_status
find_dead(esdm_session *session, const esdm__inventory *packs, bool *dead, bool *ret_any,
          esdm_error *err)
{
    char last[ESDM__UUID_BYTES] = "";
    bool lives = true;
    *ret_any = false;
    for (size_t i = 0; i < packs->count; i++) {
        char writer[ESDM__UUID_BYTES];
        if (!dead[i] || atomic_load(&packs->entries[i].used))
            continue;
        esdm__pack_writer(packs->entries[i].name, writer);
        if (writer[0] != '\0' && strcmp(writer, last) != 0) {
            esdm_status status = session->meta->writer_lives(session->store, writer, &lives, err);
            if (status != ESDM_OK)
                return status;
            memcpy(last, writer, sizeof last);
        }
        /* A name that is none of ours is left alone. */
        dead[i] = writer[0] != '\0' && !lives;
        *ret_any |= dead[i];
    }
    return ESDM_OK;
}

/* ---- a catalogue that was brought back ----------------------------------------------------- */

esdm_status
esdm__restoration_read(const esdm_session *session, esdm_restoration *ret_restoration,
                       esdm_error *err)
{
    char *text = NULL;
    char *end = NULL;
    esdm_error why = {0};
    esdm_status status = ESDM_ENOENT;
    if (session->meta->fact_get != NULL)
        status = session->meta->fact_get(session->store, ESDM__FACT_RESTORED, &text, &why);
    if (status == ESDM_ENOENT)
        return esdm__error_set(
            err, ESDM_ENOENT,
            "the catalogue was not brought back from what lies on the targets, or "
            "that has been ended since: no packs are kept for it");
    if (status != ESDM_OK) {
        if (err != NULL)
            *err = why;
        return esdm__error_prefix(err, status, "whether the catalogue was brought back");
    }
    uint64_t backup_ns = strtoull(text, &end, 10);
    uint64_t margin_ns = ESDM_GC_AGE_S * UINT64_C(1000000000);
    ret_restoration->from_ns = backup_ns > margin_ns ? backup_ns - margin_ns : 0;
    ret_restoration->restored_ns = strtoull(end, NULL, 10);
    free(text);
    return ESDM_OK;
}

/* A failure to tell is one: it may not have been brought back, and it may. */
static esdm_status
read_restored(const esdm_session *session, esdm__strays *strays, esdm_error *err)
{
    esdm_restoration restoration = {0};
    esdm_error why = {0};
    esdm_status status = esdm__restoration_read(session, &restoration, &why);
    if (status != ESDM_OK && status != ESDM_ENOENT) {
        if (err != NULL)
            *err = why;
        return status;
    }
    strays->unknown_from_ns = restoration.from_ns;
    strays->unknown_until_ns = restoration.restored_ns;
    return ESDM_OK;
}

bool
esdm__stray_may_be_unknown(const esdm__strays *strays, const esdm__pack_entry *entry)
{
    return entry->modified_ns >= strays->unknown_from_ns &&
           entry->modified_ns < strays->unknown_until_ns;
}

/* ---- all of it ---------------------------------------------------------------------------- */

/*
 * Two kinds of programs publish what names a pack. Its writer, who lives until then: whoever is
 * dead before the pages are looked at has published all. And who names what others have committed,
 * in de-duplication and merges (io/packs/pack_guard.h): the writer of such a pack counts as alive
 * from before its place is read, in a page that names it, until the commit. While the records are
 * looked at, one after the other, that may begin and end, and the page from which the place came
 * may give it up (a drain, an old snapshot that is deleted): then a record names the pack that was
 * looked at before it did, and the other one was looked at when it did not any more. So it is
 * looked twice, and asked in between who lives. What is named by then is seen by the second look,
 * and a place that is read after that is in a page that the first look has seen.
 *
 * Unless it is named twice, once beside each look, by programs that both guard it in between. Each
 * guard changes a fact after its writer counts as alive and before it reads a place: what has
 * another fact behind the looks than before them is kept. If none has, all that named packs of the
 * writer beside the looks were guarding them before, and had ended when it was asked who lives, so
 * that nothing was named beside the second look.
 */
static esdm_status
look_twice(esdm_session *session, esdm__inventory *packs, const esdm__stray_record *only,
           bool *dead, uint64_t *ret_lost, esdm_error *err)
{
    bool any = true;
    esdm__guarded before = {0};
    esdm_status status = esdm__guarded_list(session, &before, err);
    if (status == ESDM_OK)
        status = mark_used(session, packs, NULL, only, true, ret_lost, err);
    if (status == ESDM_OK)
        status = find_dead(session, packs, dead, &any, err);
    if (status == ESDM_OK && any)
        status = mark_used(session, packs, dead, only, true, ret_lost, err);
    if (status == ESDM_OK && any)
        status = esdm__guarded_spare(session, packs, &before, dead, err);
    esdm__guarded_clear(&before);
    return status;
}

esdm_status
esdm__strays_find(esdm_session *session, esdm__inventory *packs, const esdm__stray_record *only,
                  bool fence, esdm__strays *ret_strays, esdm_error *err)
{
    bool any;
    bool *dead = malloc((packs->count + 1) * sizeof *dead);
    ret_strays->dead_packs = malloc((packs->count + 1) * sizeof *ret_strays->dead_packs);
    for (size_t i = 0; i < packs->count && dead != NULL; i++)
        dead[i] = true;
    esdm_status status = dead != NULL && ret_strays->dead_packs != NULL
                             ? find_dead(session, packs, dead, &any, err)
                             : esdm__error_nomem(err, packs->count, "packs");
    if (status == ESDM_OK)
        status = read_restored(session, ret_strays, err);
    if (status == ESDM_OK && fence)
        status = look_twice(session, packs, only, dead, &ret_strays->lost, err);
    else if (status == ESDM_OK)
        status = mark_used(session, packs, NULL, only, false, &ret_strays->lost, err);
    for (size_t i = 0; i < packs->count && status == ESDM_OK; i++) {
        const esdm__pack_entry *entry = &packs->entries[i];
        if (atomic_load(&entry->used))
            continue;
        ret_strays->living += !dead[i];
        if (!dead[i])
            continue;
        ret_strays->dead_packs[ret_strays->dead++] = i;
        ret_strays->dead_bytes += entry->bytes;
    }
    free(dead);
    return status;
}

bool
esdm__stray_stays_dead(esdm_session *session, const esdm__pack_entry *entry)
{
    char writer[ESDM__UUID_BYTES];
    bool lives = true;
    esdm__pack_writer(entry->name, writer);
    return session->meta->writer_lives(session->store, writer, &lives, NULL) == ESDM_OK && !lives;
}

esdm_status
esdm__store_check(const esdm_session *session, esdm_error *err)
{
    esdm_plugin_config config;
    esdm__site_plugin_config(session->site, &session->site->metadata, &config);
    return session->meta->check(&config, NULL, NULL, err);
}
