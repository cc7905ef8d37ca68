/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The containers of a catalogue that is brought back. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "journal/commit.h"
#include "journal/put_back.h"
#include "journal/replay.h"
#include "journal/restore_work.h"

/* Clocks of nodes may differ by that much. */
#define SKEW_NS (UINT64_C(300) * 1000000000)

static int
by_uuid(const void *a, const void *b)
{
    return strcmp(((const known *) a)->uuid, ((const known *) b)->uuid);
}

known *
esdm__restore_find(const work *w, const char *uuid)
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
    one->nameless = esdm__restore_is_own_name(name);
    one->name = one->nameless ? NULL : strdup(name);
    one->present = true;
    w->interrupted = w->interrupted || one->nameless;
    w->newest_ns = record->modified_ns > w->newest_ns ? record->modified_ns : w->newest_ns;
    w->failed = one->base_name == NULL || (!one->nameless && one->name == NULL);
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
    if (status == ESDM_OK && w->interrupted)
        status = esdm__restore_resume(w, err);
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
    return status == ESDM_OK && w->failed ? esdm__restore_no_memory(err) : status;
}

/* ---- one container -------------------------------------------------------------------------- */

/* Tags of before are in the catalogue. */
static uint64_t
tags_since(const work *w, const known *one)
{
    return one->base_name != NULL ? w->from_ns : 0;
}

/* Of a former container: of those that have its name. */
static esdm__retention
retention_of(const work *w, const known *one)
{
    static const char former[] = "/former/";
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    const char *end = strrchr(one->name, '/');
    if (strncmp(one->name, former, sizeof former - 1) != 0 || end[-1] != '/')
        return esdm__site_retention(w->r->site, one->name);
    const char *begin = one->name + sizeof former - 1;
    (void) snprintf(name, sizeof name, "%.*s", (int) (end - 1 - begin), begin);
    return esdm__site_retention(w->r->site, name);
}

static bool
has_news(const work *w, const known *one)
{
    for (size_t i = one->first; i < one->first + one->nrefs; i++) {
        const esdm__journal_ref *ref = &w->r->scan.refs[i];
        if (ref->kind == ESDM__JOURNAL_MOVED ||
            (ref->kind == ESDM__JOURNAL_TAG && ref->time_ns >= tags_since(w, one)) ||
            (ref->kind == ESDM__JOURNAL_COMMIT && ref->snapshot > one->base.snapshot) ||
            (ref->kind == ESDM__JOURNAL_CLONE && one->base_name == NULL))
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
    w->r->result.incomplete +=
        got->lost_commits + got->lost_packs + got->lost_tags + got->damaged > 0;
}

static esdm_status
bring_back(work *w, known *one, esdm_error *err)
{
    esdm__restoration *r = w->r;
    esdm__whole whole = {0};
    esdm__replayed got = {0};
    esdm_error why = {0};
    esdm_status status = ESDM_OK;
    const esdm__replay_rules rules = {.name = one->name,
                                      .say = r->say,
                                      .keep = retention_of(w, one),
                                      .tags_since_ns = tags_since(w, one)};
    if (one->base_name != NULL) {
        status = esdm__whole_load(&r->catalogue, one->base_name, &whole, &why);
        if (status == ESDM_OK)
            status = esdm__replay_load_pages(&r->catalogue, &whole, &why);
    } else {
        memcpy(whole.record.uuid, one->uuid, sizeof whole.record.uuid);
        whole.name = strdup(one->name);
        status = whole.name != NULL ? ESDM_OK : esdm__restore_no_memory(&why);
    }
    if (status == ESDM_OK)
        status = esdm__replay(&r->scan, r->scan.refs + one->first, one->nrefs, &rules, &whole, &got,
                              &why);
    bool changed = status == ESDM_OK && got.commits + got.moved + got.tags > 0;
    if (changed)
        status = esdm__whole_index(&whole, &why);
    if (status == ESDM_OK && changed && !r->dry_run)
        status = esdm__restore_enter(w, one, &whole, &why);
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

/* Commits whose numbers were given again since an older copy of the catalogue was put back: nothing
 * tells how they go together with what came later. */
static void
tell_superseded(const work *w, const known *one)
{
    uint64_t least = UINT64_MAX;
    uint64_t superseded = 0;
    for (size_t i = one->first + one->nrefs; i-- > one->first;) {
        const esdm__journal_ref *ref = &w->r->scan.refs[i];
        if (ref->kind == ESDM__JOURNAL_COMMIT && ref->snapshot < least)
            least = ref->snapshot;
        else if (ref->kind == ESDM__JOURNAL_COMMIT && ref->time_ns >= w->from_ns)
            superseded++;
    }
    if (superseded == 0)
        return;
    esdm__say(w->r->say,
              "container '%s': %" PRIu64 " commit%s left out that %s made before the older copy "
              "was put back, as it was written to since: what %s wrote is lost, unless it was "
              "written again",
              one->name, superseded, superseded == 1 ? " is" : "s are",
              superseded == 1 ? "was" : "were", superseded == 1 ? "it" : "they");
    w->r->result.incomplete++;
}

/* Packs that nothing tells of: killed programs leave some; or what told of them is not there. In a
 * dry run nobody knows what the backup has. */
static void
tell_unknown(const work *w)
{
    const esdm__restoration *r = w->r;
    char uuid[ESDM__UUID_BYTES];
    uint64_t unknown = 0;
    if (r->catalogue.store == NULL && r->result.from_backup)
        return;
    for (size_t i = 0; i < r->scan.ndata_packs; i++) {
        (void) snprintf(uuid, sizeof uuid, "%s", r->scan.data_packs[i]);
        unknown += esdm__restore_find(w, uuid) == NULL;
    }
    if (unknown > 0)
        esdm__say(r->say,
                  "%" PRIu64 " pack%s of the targets belong%s to containers of which nothing found "
                  "here tells: killed programs leave such packs. If containers are missing, their "
                  "journal or backup lies elsewhere: is a target not in the configuration, or was "
                  "one taken out of it? Name it again (esdm-gc keeps such packs meanwhile), and "
                  "call esdm-mkfs --restore again",
                  unknown, unknown == 1 ? "" : "s", unknown == 1 ? "s" : "");
}

static void
clear(work *w)
{
    for (size_t i = 0; i < w->count; i++) {
        free(w->all[i].name);
        free(w->all[i].base_name);
    }
    for (size_t i = 0; i < w->nnames; i++)
        esdm__restore_free_naming(&w->names[i]);
    free(w->holders);
    free(w->all);
    free(w->names);
}

/* What was committed up to then the catalogue knows: one that is kept to its newest commit, one
 * from a backup to that; unless these came after an older copy was put back. */
static uint64_t
known_until(const work *w, bool *ret_put_back)
{
    const esdm__restoration *r = w->r;
    uint64_t from_ns = 0;
    uint64_t until_ns = r->kept ? w->newest_ns + 1 : r->base_ns;
    if (r->kept)
        *ret_put_back = esdm__put_back_look(&r->catalogue, r->targets, r->ntargets, &from_ns);
    else /* not yet there in a dry run */
        *ret_put_back = r->catalogue.store != NULL && esdm__put_back_noted(&r->catalogue, &from_ns);
    if (*ret_put_back)
        esdm__say(r->say,
                  "an older copy of it was put back: what was committed since is looked for");
    return *ret_put_back && from_ns < until_ns ? from_ns : until_ns;
}

esdm_status
esdm__restore_containers(esdm__restoration *restoration, esdm_error *err)
{
    work w = {.r = restoration};
    bool put_back;
    esdm_status status = list_known(&w, err);
    w.from_ns = known_until(&w, &put_back);
    w.from_ns = w.from_ns > SKEW_NS ? w.from_ns - SKEW_NS : 0;
    if (restoration->kept)
        esdm__restore_resume_time(&w);
    if (status == ESDM_OK)
        status = esdm__restore_settle_names(&w, err);
    for (size_t i = 0; i < w.count && status == ESDM_OK; i++) {
        if (w.all[i].name != NULL && !esdm__name_is_shapes(w.all[i].name, NULL) &&
            esdm__restore_is_wanted(&w, &w.all[i]) && has_news(&w, &w.all[i]))
            status = bring_back(&w, &w.all[i], err);
        if (status == ESDM_OK && put_back && w.all[i].present && w.all[i].name != NULL)
            tell_superseded(&w, &w.all[i]);
        if (status == ESDM_OK && i % 1000 == 999)
            esdm__say(restoration->say, "%zu of %zu containers looked at", i + 1, w.count);
    }
    if (status == ESDM_OK && !restoration->dry_run)
        status = esdm__restore_give_names(&w, err);
    if (status == ESDM_OK)
        tell_unknown(&w);
    if (status == ESDM_OK && !restoration->dry_run)
        status = esdm__restore_drop_shapes(&w, err);
    for (size_t i = 0; i < w.count; i++)
        restoration->result.containers +=
            w.all[i].present && w.all[i].name != NULL && w.all[i].name[0] != '/';
    if (status == ESDM_OK && !restoration->dry_run)
        status = esdm__restore_end(&w, err);
    clear(&w);
    return status;
}
