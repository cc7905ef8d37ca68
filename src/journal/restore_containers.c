/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The containers of a catalogue that is brought back. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/error.h"
#include "journal/commit.h"
#include "journal/replay.h"
#include "journal/restore.h"
#include "journal/whole.h"

/* Clocks of nodes may differ by that much. */
#define SKEW_NS (UINT64_C(300) * 1000000000)

/* A container of which something is known. */
typedef struct known {
    char uuid[ESDM__UUID_BYTES];
    char *name;      /* it should have; owned; NULL: none, it was removed or replaced */
    char *base_name; /* in the catalogue that this began with; owned; NULL: it is not there */
    esdm_meta_container base;
    size_t first; /* its refs */
    size_t nrefs;
    uint64_t first_ns; /* the oldest of them */
    bool present;      /* it is in the catalogue now */
} known;

/* What a container was called from when on. */
typedef struct naming {
    uint64_t time_ns;
    char *name;    /* owned; NULL: no more */
    char *keep_as; /* of the container that had the name; owned; NULL: none */
    char uuid[ESDM__UUID_BYTES];
} naming;

typedef struct work {
    esdm__restoration *r;
    known *all; /* owned; by uuid */
    size_t count;
    naming *names; /* owned; by time */
    size_t nnames;
    known **holders; /* of names; owned; open addressing, a power of two */
    size_t slots;
    bool touched;       /* the catalogue is closed to others */
    uint64_t from_ns;   /* names and removals that are older are in the catalogue */
    uint64_t newest_ns; /* last commit in the catalogue */
    bool failed;
} work;

static esdm_status
no_memory(esdm_error *err)
{
    return esdm__error_nomem(err, sizeof(known), "the list of containers");
}

static int
by_uuid(const void *a, const void *b)
{
    return strcmp(((const known *) a)->uuid, ((const known *) b)->uuid);
}

static known *
find(const work *w, const char *uuid)
{
    known key;
    memcpy(key.uuid, uuid, sizeof key.uuid);
    return w->count > 0 ? bsearch(&key, w->all, w->count, sizeof key, by_uuid) : NULL;
}

/* ---- who is there --------------------------------------------------------------------------- */

static known *
add_known(work *w, const char *uuid)
{
    if (!esdm__array_grow(&w->all, w->count, sizeof *w->all)) {
        w->failed = true;
        return NULL;
    }
    known *one = &w->all[w->count++];
    *one = (known){.nrefs = 0};
    memcpy(one->uuid, uuid, sizeof one->uuid);
    return one;
}

static bool
note_container(const char *name, const esdm_meta_container *record, void *user)
{
    work *w = user;
    known *one = add_known(w, record->uuid);
    if (one == NULL)
        return false;
    one->base = *record;
    one->base_name = strdup(name);
    one->name = strdup(name);
    one->present = true;
    w->newest_ns = record->modified_ns > w->newest_ns ? record->modified_ns : w->newest_ns;
    w->failed = one->base_name == NULL || one->name == NULL;
    return !w->failed;
}

static esdm_status
list_known(work *w, esdm_error *err)
{
    const esdm__restoration *r = w->r;
    const esdm__scan *scan = &r->scan;
    esdm_status status = ESDM_OK;
    if (r->catalogue.store != NULL)
        status =
            r->catalogue.plugin->container_list(r->catalogue.store, NULL, note_container, w, err);
    if (w->count > 0)
        qsort(w->all, w->count, sizeof *w->all, by_uuid);
    size_t based = w->count;
    for (size_t i = 0; i < scan->nrefs && status == ESDM_OK && !w->failed;) {
        size_t end = i;
        while (end < scan->nrefs && strcmp(scan->refs[end].uuid, scan->refs[i].uuid) == 0)
            end++;
        known key;
        memcpy(key.uuid, scan->refs[i].uuid, sizeof key.uuid);
        known *one = based > 0 ? bsearch(&key, w->all, based, sizeof key, by_uuid) : NULL;
        if (one == NULL)
            one = add_known(w, scan->refs[i].uuid);
        if (one != NULL) {
            one->first = i;
            one->nrefs = end - i;
            one->first_ns = scan->refs[i].time_ns;
        }
        i = end;
    }
    if (w->count > 0)
        qsort(w->all, w->count, sizeof *w->all, by_uuid);
    return status == ESDM_OK && w->failed ? no_memory(err) : status;
}

/* ---- names ---------------------------------------------------------------------------------- */

static bool
add_naming(work *w, const esdm__journal_ref *ref, const char *name, const char *keep_as)
{
    if (!esdm__array_grow(&w->names, w->nnames, sizeof *w->names))
        return false;
    bool named = name != NULL && name[0] != '\0';
    bool keeps = keep_as != NULL && keep_as[0] != '\0';
    naming *one = &w->names[w->nnames++];
    *one = (naming){.time_ns = ref->time_ns,
                    .name = named ? strdup(name) : NULL,
                    .keep_as = keeps ? strdup(keep_as) : NULL};
    memcpy(one->uuid, ref->uuid, sizeof one->uuid);
    return (one->name != NULL) == named && (one->keep_as != NULL) == keeps;
}

/* What a record says about the name of its container. */
static esdm_status
read_naming(work *w, const esdm__journal_ref *ref, esdm_error *err)
{
    esdm__journal_record record;
    esdm__journal_commit commit;
    esdm__cursor pages;
    uint8_t *data = NULL;
    bool good = true;
    esdm_error why = {0};
    esdm_status status = esdm__scan_load(&w->r->scan, ref, &record, &data, &why);
    if (status == ESDM_OK && ref->kind == ESDM__JOURNAL_NAME) {
        char *name = esdm__journal_text(&record.body);
        char *keep_as = esdm__journal_text(&record.body);
        good = name != NULL && add_naming(w, ref, name, keep_as);
        free(name);
        free(keep_as);
    } else if (status == ESDM_OK) {
        status = esdm__journal_take_commit(&record, &commit, &pages, &why);
        if (status == ESDM_OK) {
            good =
                commit.kind == ESDM_META_UPDATE || add_naming(w, ref, commit.name, commit.keep_as);
            esdm__journal_commit_clear(&commit);
        }
    }
    free(data);
    if (!good || status == ESDM_ENOMEM)
        return no_memory(err);
    return ESDM_OK; /* replaying counts what is damaged */
}

static int
by_time(const void *a, const void *b)
{
    const naming *x = a;
    const naming *y = b;
    return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static void
free_naming(naming *one)
{
    free(one->name);
    free(one->keep_as);
    one->name = NULL;
    one->keep_as = NULL;
}

/* Slot of who had the name last, in a table with room; another one may be in it that has lost the
 * name since. */
static known **
holder(const work *w, const char *name)
{
    size_t at = (size_t) esdm__checksum(name, strlen(name)) & (w->slots - 1);
    while (w->holders[at] != NULL &&
           (w->holders[at]->name == NULL || strcmp(w->holders[at]->name, name) != 0))
        at = (at + 1) & (w->slots - 1);
    return &w->holders[at];
}

static bool
list_holders(work *w)
{
    w->slots = 64;
    while (w->slots < 4 * (w->count + 2 * w->nnames))
        w->slots *= 2;
    w->holders = calloc(w->slots, sizeof(known *));
    for (size_t i = 0; w->holders != NULL && i < w->count; i++) {
        if (w->all[i].name != NULL)
            *holder(w, w->all[i].name) = &w->all[i];
    }
    return w->holders != NULL;
}

static void
rename_known(work *w, known *one, char *name)
{
    free(one->name);
    one->name = name;
    if (name != NULL)
        *holder(w, name) = one;
}

/* Who had the name loses it, or is kept under another one. */
static void
apply_naming(work *w, naming *step)
{
    known *one = find(w, step->uuid);
    known *before = step->name != NULL ? *holder(w, step->name) : NULL;
    if (before != NULL && before != one) {
        rename_known(w, before, step->keep_as);
        step->keep_as = NULL;
    }
    if (one != NULL) {
        rename_known(w, one, step->name);
        step->name = NULL;
    }
}

/* The catalogue has the names of its time; what came later is done once more, in its order. */
static esdm_status
settle_names(work *w, esdm_error *err)
{
    const esdm__restoration *r = w->r;
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < r->scan.nrefs && status == ESDM_OK; i++) {
        const esdm__journal_ref *ref = &r->scan.refs[i];
        bool names = ref->kind == ESDM__JOURNAL_NAME ||
                     (ref->kind == ESDM__JOURNAL_COMMIT && ref->snapshot == 1);
        if (names && ref->time_ns >= w->from_ns)
            status = read_naming(w, ref, err);
    }
    if (w->nnames > 0)
        qsort(w->names, w->nnames, sizeof *w->names, by_time);
    if (status == ESDM_OK && !list_holders(w))
        status = no_memory(err);
    for (size_t i = 0; i < w->nnames && status == ESDM_OK; i++)
        apply_naming(w, &w->names[i]);
    return status;
}

/* ---- changing the catalogue ----------------------------------------------------------------- */

/* Nobody else may use it meanwhile. */
static esdm_status
touch(work *w, esdm_error *err)
{
    const esdm__catalogue *to = &w->r->catalogue;
    if (w->touched || !w->r->kept)
        return ESDM_OK;
    w->touched = true;
    return to->plugin->set_state(to->store, ESDM_META_ARRIVING,
                                 "is being brought up to date; call esdm-mkfs --restore again to "
                                 "complete it",
                                 err);
}

static esdm_status
drop_record(const esdm__catalogue *to, const char *name, esdm_error *err)
{
    uint64_t container = 0;
    esdm_status status = to->plugin->container_remove(to->store, name, &container, err);
    return status == ESDM_OK ? to->plugin->forget(to->store, container, err) : status;
}

/* Exchanges the record of a container, or enters it; under a name of its own until all are there.
 */
static esdm_status
enter(work *w, known *one, esdm__whole *whole, esdm_error *err)
{
    const esdm__catalogue *to = &w->r->catalogue;
    char name[sizeof ESDM__RESTORE_PREFIX + ESDM__UUID_BYTES];
    (void) snprintf(name, sizeof name, ESDM__RESTORE_PREFIX "%s", one->uuid);
    esdm_meta_container left;
    esdm_status status = touch(w, err);
    if (status == ESDM_OK && to->plugin->container_find(to->store, name, &left, NULL) == ESDM_OK)
        status = drop_record(to, name, err); /* of an interrupted call */
    if (status != ESDM_OK)
        return status;
    free(whole->name);
    whole->name = strdup(name);
    if (whole->name == NULL)
        return no_memory(err);
    status = esdm__whole_import(whole, to, to, err);
    if (status == ESDM_OK && one->base_name != NULL)
        status = drop_record(to, one->base_name, err);
    free(one->base_name);
    one->base_name = status == ESDM_OK ? strdup(name) : NULL;
    one->present = status == ESDM_OK;
    return status;
}

/* Names are exchanged by way of ones that nobody else has. */
static esdm_status
give_names(work *w, esdm_error *err)
{
    const esdm__catalogue *to = &w->r->catalogue;
    esdm_status status = ESDM_OK;
    for (int pass = 0; pass < 2 && status == ESDM_OK; pass++) {
        for (size_t i = 0; i < w->count && status == ESDM_OK; i++) {
            known *one = &w->all[i];
            char own[sizeof ESDM__RESTORE_PREFIX + ESDM__UUID_BYTES];
            uint64_t replaced = 0;
            if (one->base_name == NULL || !one->present ||
                (one->name != NULL && strcmp(one->base_name, one->name) == 0))
                continue;
            (void) snprintf(own, sizeof own, ESDM__RESTORE_PREFIX "%s", one->uuid);
            status = touch(w, err);
            if (status == ESDM_OK && one->name == NULL) {
                status = drop_record(to, one->base_name, err);
                one->present = false;
                w->r->result.restored += status == ESDM_OK;
                continue;
            }
            const char *next = pass == 0 ? own : one->name;
            if (status == ESDM_OK && strcmp(one->base_name, next) != 0)
                status = to->plugin->container_move(to->store, one->base_name, next, false, NULL,
                                                    &replaced, err);
            char *copy = strdup(next);
            free(one->base_name);
            one->base_name = copy;
            if (status == ESDM_OK && copy == NULL)
                status = no_memory(err);
        }
    }
    return status;
}

/* ---- one container -------------------------------------------------------------------------- */

static bool
has_news(const work *w, const known *one)
{
    for (size_t i = one->first; i < one->first + one->nrefs; i++) {
        const esdm__journal_ref *ref = &w->r->scan.refs[i];
        if (ref->kind == ESDM__JOURNAL_MOVED ||
            (ref->kind == ESDM__JOURNAL_COMMIT && ref->snapshot > one->base.snapshot))
            return true;
    }
    return false;
}

static void
tell_losses(work *w, const known *one, const esdm__replayed *got)
{
    const esdm__restoration *r = w->r;
    if (got->lost_commits > 0)
        esdm__say(r->say,
                  "container '%s': %" PRIu64 " commit%s missing; what %s wrote is lost, unless it "
                  "was written again later",
                  one->name, got->lost_commits, got->lost_commits == 1 ? " is" : "s are",
                  got->lost_commits == 1 ? "it" : "they");
    if (got->lost_packs > 0)
        esdm__say(r->say,
                  "container '%s': packs that it needs are on no target that can be reached; "
                  "esdm-fsck tells what is lost",
                  one->name);
    if (got->damaged > 0)
        esdm__say(r->say, "container '%s': %" PRIu64 " record%s of the journal %s damaged",
                  one->name, got->damaged, got->damaged == 1 ? "" : "s",
                  got->damaged == 1 ? "is" : "are");
    w->r->result.incomplete += got->lost_commits + got->lost_packs + got->damaged > 0;
}

static esdm_status
bring_back(work *w, known *one, esdm_error *err)
{
    esdm__restoration *r = w->r;
    esdm__whole whole = {0};
    esdm__replayed got = {0};
    esdm_error why = {0};
    esdm_status status = ESDM_OK;
    if (one->base_name != NULL) {
        status = esdm__whole_load(&r->catalogue, one->base_name, &whole, &why);
        if (status == ESDM_OK)
            status = esdm__replay_load_pages(&r->catalogue, &whole, &why);
    } else {
        memcpy(whole.record.uuid, one->uuid, sizeof whole.record.uuid);
        whole.name = strdup(one->name);
        status = whole.name != NULL ? ESDM_OK : no_memory(&why);
    }
    if (status == ESDM_OK)
        status = esdm__replay(&r->scan, r->scan.refs + one->first, one->nrefs, r->site->history,
                              &whole, &got, &why);
    bool changed = status == ESDM_OK && got.commits + got.moved > 0;
    if (changed)
        status = esdm__whole_index(&whole, &why);
    if (status == ESDM_OK && changed && !r->dry_run)
        status = enter(w, one, &whole, &why);
    esdm__whole_clear(&whole);
    if (status == ESDM_OK) {
        r->result.restored += changed;
        r->result.commits += got.commits;
        if (changed)
            tell_losses(w, one, &got);
        return ESDM_OK;
    }
    if (status == ESDM_ENOENT || status == ESDM_ECORRUPT || status == ESDM_ENOTSUP) {
        esdm__say(r->say, "container '%s' cannot be brought %s: %s", one->name,
                  one->present ? "up to date" : "back", why.message);
        r->result.lost++;
        return ESDM_OK;
    }
    if (err != NULL)
        *err = why;
    return esdm__error_prefix(err, status, "container '%s'", one->name);
}

/* Whether a container that the backup does not have was there after it: others were removed
 * before. */
static bool
is_wanted(const work *w, const known *one)
{
    return one->name != NULL && one->nrefs > 0 &&
           (one->base_name != NULL || one->first_ns >= w->from_ns);
}

static void
clear(work *w)
{
    for (size_t i = 0; i < w->count; i++) {
        free(w->all[i].name);
        free(w->all[i].base_name);
    }
    for (size_t i = 0; i < w->nnames; i++)
        free_naming(&w->names[i]);
    free(w->holders);
    free(w->all);
    free(w->names);
}

esdm_status
esdm__restore_containers(esdm__restoration *restoration, esdm_error *err)
{
    work w = {.r = restoration};
    const esdm__catalogue *to = &restoration->catalogue;
    esdm_status status = list_known(&w, err);
    w.from_ns = restoration->kept                ? w.newest_ns + 1
                : restoration->base_ns > SKEW_NS ? restoration->base_ns - SKEW_NS
                                                 : 0;
    if (status == ESDM_OK)
        status = settle_names(&w, err);
    for (size_t i = 0; i < w.count && status == ESDM_OK; i++) {
        if (is_wanted(&w, &w.all[i]) && has_news(&w, &w.all[i]))
            status = bring_back(&w, &w.all[i], err);
        if (status == ESDM_OK && i % 1000 == 999)
            esdm__say(restoration->say, "%zu of %zu containers looked at", i + 1, w.count);
    }
    if (status == ESDM_OK && !restoration->dry_run)
        status = give_names(&w, err);
    for (size_t i = 0; i < w.count; i++)
        restoration->result.containers +=
            w.all[i].present && w.all[i].name != NULL && w.all[i].name[0] != '/';
    if (status == ESDM_OK && w.touched)
        status = to->plugin->set_state(to->store, ESDM_META_ACTIVE, "", err);
    clear(&w);
    return status;
}
