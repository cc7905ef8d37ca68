/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Saved queries follow commits: what the index has of them is widened by containers that
 * bear a mark. Commits set it in their transaction, where the store has saved queries; it is taken
 * off when all saved queries have seen the container, so nothing is lost when a program ends in
 * between. Who saves a query asks it again once the store has it. A server's commit that began
 * before the store had its first saved query, and ends behind that question, bears no mark: the
 * next opening of the saved query makes its ranges exact. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/commit/extents.h"
#include "io/session/former.h"
#include "virtual/parts.h"

/* Of a session that commits: between two looks at what is marked. */
#define FOLLOW_EVERY_NS 1000000000u

/* Containers that bear the mark. */
typedef struct fresh {
    esdm__virtual_member *items; /* owned, with names; by name, each once */
    uint64_t *records;           /* owned */
    size_t count;
    bool nomem;
} fresh;

static bool
note_fresh(const char *container, const char *dataset, void *user)
{
    fresh *f = user;
    (void) dataset;
    if (f->count > 0 && strcmp(f->items[f->count - 1].name, container) == 0)
        return true;
    f->nomem = !esdm__array_grow(&f->items, f->count, sizeof *f->items);
    if (f->nomem)
        return false;
    f->items[f->count] = (esdm__virtual_member){.name = strdup(container)};
    f->nomem = f->items[f->count].name == NULL;
    f->count += !f->nomem;
    return !f->nomem;
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(((const esdm__virtual_member *) a)->name,
                  ((const esdm__virtual_member *) b)->name);
}

static void
clear_fresh(fresh *f)
{
    for (size_t i = 0; i < f->count; i++)
        free(f->items[i].name);
    free(f->items);
    free(f->records);
}

/* Those that are gone meanwhile are left out. */
static esdm_status
find_records(const esdm_session *session, fresh *f)
{
    size_t n = 0;
    esdm_status status = ESDM_OK;
    f->records = malloc((f->count + 1) * sizeof *f->records);
    if (f->records == NULL)
        return ESDM_ENOMEM;
    for (size_t i = 0; i < f->count; i++) {
        esdm__virtual_member *m = &f->items[i];
        esdm_status one = status == ESDM_OK ? esdm__member_find(session, m, NULL) : status;
        if (one != ESDM_OK) {
            status = one == ESDM_ENOENT ? status : one;
            free(m->name);
            continue;
        }
        f->records[n] = m->record;
        f->items[n++] = *m;
    }
    f->count = n;
    return status;
}

static esdm_status
find_fresh(const esdm_session *session, fresh *f)
{
    const esdm_meta_condition marked = {.variable = "",
                                        .attribute = ESDM__EXTENT_FRESH,
                                        .op = ESDM_META_EQ,
                                        .is_number = true,
                                        .number = 1,
                                        .text = "1"};
    esdm_status status = session->meta->find(session->store, &marked, 1, note_fresh, f, NULL);
    if (status == ESDM_OK && f->nomem)
        status = ESDM_ENOMEM;
    if (status != ESDM_OK || f->count == 0)
        return status;
    qsort(f->items, f->count, sizeof *f->items, by_name);
    return find_records(session, f);
}

/* ---- one saved query ------------------------------------------------------------------------ */

/* Those of the marked containers that the query finds. @param members room for all of them. */
static size_t
choose(const fresh *f, const esdm__question *found, const esdm__question *saved,
       esdm__virtual_member *members)
{
    size_t n = 0;
    for (size_t i = 0, k = 0, s = 0; i < found->count; i++) {
        const char *name = found->names[i];
        while (k < f->count && strcmp(f->items[k].name, name) < 0)
            k++;
        while (s < saved->count && strcmp(saved->names[s], name) < 0)
            s++;
        bool is_saved = s < saved->count && strcmp(saved->names[s], name) == 0;
        bool again = n > 0 && strcmp(members[n - 1].name, name) == 0;
        if (k < f->count && strcmp(f->items[k].name, name) == 0 && !is_saved && !again)
            members[n++] = f->items[k];
    }
    return n;
}

/* @param definition open; borrowed. @param members room for all that are marked. */
static esdm_status
follow_one(esdm_session *session, esdm_container *definition, const fresh *f,
           const esdm__question *saved, esdm__virtual_member *members)
{
    const char *query = esdm_container_hint(definition, ESDM__SAVED_QUERY);
    esdm__question found = {0};
    esdm_meta_container record = {0};
    bool all = false;
    if (query == NULL || query[0] != '?' ||
        esdm_container_hint(definition, ESDM__SAVED_PINS) != NULL)
        return ESDM_OK;
    esdm_status status =
        esdm__question_ask_among(session, query, f->records, f->count, &found, NULL);
    if (status == ESDM_EINVAL || status == ESDM_ENOTSUP)
        return ESDM_OK; /* nobody can open it */
    size_t n = status == ESDM_OK ? choose(f, &found, saved, members) : 0;
    esdm__question_clear(&found);
    if (n == 0)
        return status;
    esdm__container_position(definition, &record.container, &record.snapshot);
    status = esdm__hull_widen(session, definition->name, &record, members, n, &all, NULL);
    if (status == ESDM_OK && all) { /* what cannot be joined is for who opens it */
        esdm_container *whole = NULL;
        (void) !esdm__virtual_open_saved(definition, &whole, NULL);
        esdm__container_drop(whole);
    }
    return status;
}

/* What nobody can open, or ask any more, keeps nobody waiting. */
static bool
is_lasting(esdm_status status)
{
    return status == ESDM_ENOENT || status == ESDM_ECORRUPT || status == ESDM_EINVAL ||
           status == ESDM_ENOTSUP;
}

/* One that fails does not keep the others from it. @return what failed first, if the next attempt
 * may have more luck. */
static esdm_status
follow_all(esdm_session *session, const fresh *f)
{
    esdm__question saved = {0};
    esdm__virtual_member *members = malloc((f->count + 1) * sizeof *members);
    esdm_status status =
        members != NULL ? esdm__question_saved(session, &saved, NULL) : ESDM_ENOMEM;
    for (size_t i = 0; i < saved.count; i++) {
        esdm_container *definition = NULL;
        esdm_status one = esdm__io_open(session, saved.names[i], ESDM_OPEN_READ,
                                        ESDM_SNAPSHOT_LATEST, &definition, NULL);
        if (one == ESDM_OK)
            one = follow_one(session, definition, f, &saved, members);
        if (status == ESDM_OK && !is_lasting(one))
            status = one;
        esdm__container_drop(definition);
    }
    esdm__question_clear(&saved);
    free(members);
    return status;
}

/* ---- marks ---------------------------------------------------------------------------------- */

/* One that has a newer snapshot by now keeps it; so does one that has got another name. */
static void
take_off(const esdm_session *session, const fresh *f)
{
    const esdm_meta_extent seen = {.name = ESDM__EXTENT_FRESH, .has_number = true};
    const esdm_meta_extent again = {.name = ESDM__EXTENT_FRESH, .has_number = true, .number = 1};
    const esdm_meta_plugin *meta = session->meta;
    for (size_t i = 0; i < f->count; i++) {
        const esdm__virtual_member *m = &f->items[i];
        esdm_meta_container record;
        if (meta->extent_merge(session->store, m->record, m->snapshot, &seen, 1, NULL) != ESDM_OK)
            continue;
        if (meta->container_find(session->store, m->name, &record, NULL) != ESDM_OK ||
            record.container != m->record)
            (void) !meta->extent_merge(session->store, m->record, m->snapshot, &again, 1, NULL);
    }
}

static bool
note_followed(const char *name, void *user)
{
    *(bool *) user |= strcmp(name, ESDM_META_EXTENT_FOLLOWS) == 0;
    return false;
}

/* Costs a search in an index; looking for marks, too, reads what waits to be entered into it. */
static bool
has_saved_queries(const esdm_session *session)
{
    bool followed = false;
    esdm_status status = session->meta->extent_names(session->store, ESDM_META_EXTENT_FOLLOWS,
                                                     note_followed, &followed, NULL);
    return status == ESDM_OK && followed;
}

bool
esdm__virtual_follow(esdm_session *session)
{
    fresh f = {0};
    const esdm_meta_plugin *meta = session->meta;
    if (meta->extent_merge == NULL || !has_saved_queries(session))
        return false;
    bool writes = !session->read_only && meta->is_writable(session->store);
    esdm_status status = find_fresh(session, &f);
    bool waits = status == ESDM_OK && f.count > 0;
    if (waits && writes)
        status = follow_all(session, &f);
    if (waits && writes && status == ESDM_OK)
        take_off(session, &f);
    clear_fresh(&f);
    return waits && (!writes || status != ESDM_OK);
}

void
esdm__virtual_follow_later(esdm_session *session)
{
    uint64_t now = esdm__now_ns();
    uint64_t last = atomic_load(&session->followed_ns);
    if (now - last < FOLLOW_EVERY_NS ||
        !atomic_compare_exchange_strong(&session->followed_ns, &last, now))
        return;
    if (last != 0) /* else the first commit: the next ones, or the end, look at it, too */
        (void) esdm__virtual_follow(session);
}
