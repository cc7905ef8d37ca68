/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Merging a branch into what it began with, and the other way: which snapshots, and the
 * commit.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/branches.h"
#include "api/catalogue.h"
#include "api/line_parts.h"
#include "api/tags.h"
#include "base/arguments.h"
#include "base/error.h"
#include "io/commit/commit.h"
#include "io/io.h"
#include "io/session/journaling.h"
#include "merge/merge.h"
#include "upkeep/upkeep.h"

/* How often it is done again when others commit meanwhile, and how often it begins anew when they
 * have before it has compared anything. */
#define ATTEMPTS 8
#define LOOKS    32

/* One attempt; handles are owned. */
typedef struct merging {
    esdm_session *session;
    const char *name;   /* normalised */
    const char *branch; /* checked; NULL: theirs is the container that ours is a branch of */
    char full[ESDM_CONTAINER_NAME_MAX + 1]; /* name of theirs */
    const esdm_merge_options *options;
    uint64_t record;     /* of theirs */
    uint64_t container;  /* record of ours */
    bool down;           /* ours began with theirs */
    bool compared;       /* it was not overtaken before that */
    esdm__common common; /* of both lines, as they were opened */
    esdm__merging m;
    esdm_merge_result result;
} merging;

/* ---- snapshots ------------------------------------------------------------------------------- */

/* The two lines: the one that began with the other, and that one. */
static const char *
below(const merging *all)
{
    return all->down ? all->name : all->full;
}

static const char *
above(const merging *all)
{
    return all->down ? all->full : all->name;
}

/* Whether both began as one: neither was replaced since. */
static esdm_status
check_line(const merging *all, esdm_error *err)
{
    bool shares = false;
    esdm_status status = esdm__branch_shares(
        all->session, all->down ? all->container : all->record,
        esdm__io_of(all->down ? all->m.theirs : all->m.ours)->uuid, &shares, err);
    if (status != ESDM_OK || shares)
        return status;
    return esdm__error_set(
        err, ESDM_ENOTSUP,
        "'%s' and its branch '%s' have no snapshot in common any more: one of "
        "them was written anew as a whole since (esdm-restore brings back what it was); "
        "esdm-diff compares them",
        above(all), esdm__name_branch(below(all), NULL));
}

typedef struct parent_search {
    uint64_t snapshot;
    uint64_t parent;
    bool found;
} parent_search;

static bool
note_parent(uint64_t snapshot, uint64_t parent, uint64_t time_ns, const char *writer,
            const char *message, void *user)
{
    parent_search *s = user;
    (void) time_ns, (void) writer, (void) message;
    s->found = snapshot == s->snapshot;
    s->parent = parent != 0 ? parent : snapshot - 1;
    return !s->found;
}

static esdm_status
not_own(const merging *all, uint64_t snapshot, uint64_t from, esdm_error *err)
{
    if (all->down)
        return esdm__error_set(err, ESDM_EINVAL,
                               "'%s' began with snapshot %" PRIu64 " of '%s': it has %" PRIu64
                               " already",
                               all->name, from, all->full, snapshot);
    return esdm__error_set(err, ESDM_EINVAL,
                           "branch '%s' began with snapshot %" PRIu64 ": %" PRIu64
                           " is not one of its own commits",
                           all->branch, from, snapshot);
}

/* @param from snapshot with which the branch began; 0: not known. @param ret the one before what is
 * picked. */
static esdm_status
find_parent(const merging *all, uint64_t from, uint64_t *ret, esdm_error *err)
{
    const esdm_session *session = all->session;
    parent_search s = {.snapshot = all->options->pick};
    esdm_status status =
        session->meta->snapshot_list(session->store, all->full, note_parent, &s, err);
    if (status != ESDM_OK)
        return status;
    if (!s.found)
        return esdm__error_set(err, ESDM_ENOENT, "'%s' has no snapshot %" PRIu64, all->full,
                               s.snapshot);
    if (s.snapshot <= from || s.parent == 0)
        return not_own(all, s.snapshot, from, err);
    *ret = s.parent;
    if (all->options->pick_after == 0)
        return ESDM_OK;
    if (all->options->pick_after < from)
        return not_own(all, all->options->pick_after, from, err);
    *ret = all->options->pick_after;
    return ESDM_OK;
}

/* The newest snapshot that both had in common when the branch began, as what it began with keeps
 * it. */
static esdm_status
open_fork(merging *all, esdm_error *err)
{
    uint64_t began = 0;
    esdm_status status = esdm__line_fork(all->session, below(all), above(all), &began, err);
    return status == ESDM_OK && began != 0
               ? esdm__io_open(all->session, above(all), ESDM_OPEN_READ, began, &all->m.fork, err)
               : status;
}

static esdm_status
not_known(const merging *all, const esdm__common *common, esdm_error *err)
{
    if (all->options->pick != 0)
        return esdm__error_set(err, ESDM_ENOENT,
                               "snapshot %" PRIu64 " of '%s', before the one that was picked, is "
                               "not kept any more (\"history\" of the site says how many are)",
                               common->snapshot, all->full);
    if (common->related && common->snapshot == 0)
        return esdm__error_set(err, ESDM_ENOENT,
                               "what of '%s' is in '%s' already is not known any more: the branch "
                               "between them, by way of which it came, was removed for good",
                               all->full, all->name);
    return esdm__error_set(err, ESDM_ENOENT,
                           "with which snapshot branch '%s' of '%s' began is not known any more",
                           esdm__name_branch(below(all), NULL), above(all));
}

/* Where theirs goes on from the base: it is one of its snapshots, or one from before they parted.
 */
static void
find_after(merging *all, const esdm__common *base)
{
    uint64_t fork = all->m.fork != NULL ? all->m.fork->snapshot : 0;
    bool own = strcmp(base->holder, all->full) == 0;
    all->m.apart = !own && base->snapshot > fork && (all->down || base->is_given || base->is_late);
    all->m.after = all->m.apart ? fork : base->snapshot;
}

static esdm_status
find_picked(const merging *all, esdm__common *base, esdm_error *err)
{
    uint64_t from = 0;
    char parent[ESDM_CONTAINER_NAME_MAX + 1];
    *base = (esdm__common){.related = true};
    (void) snprintf(base->holder, sizeof base->holder, "%s", all->full);
    esdm_status status =
        all->down ? ESDM_OK : esdm__line_parent(all->session, all->full, parent, &from, NULL, err);
    if (all->down && all->m.fork != NULL)
        from = all->m.fork->snapshot;
    return status == ESDM_OK ? find_parent(all, from, &base->snapshot, err) : status;
}

/* @param common of both lines. The base is that snapshot, or the one before what is picked. */
static esdm_status
open_base(merging *all, const esdm__common *common, esdm_error *err)
{
    esdm__common base = *common;
    esdm_error why = {0};
    esdm_status status = open_fork(all, err);
    if (status == ESDM_OK && all->options->pick != 0)
        status = find_picked(all, &base, err);
    if (status != ESDM_OK)
        return status;
    find_after(all, &base);
    status = base.snapshot != 0 ? esdm__io_open(all->session, base.holder, ESDM_OPEN_READ,
                                                base.snapshot, &all->m.base, &why)
                                : ESDM_ENOENT;
    /* It has the same number in the line that both have in common. */
    if (status == ESDM_ENOENT && all->m.fork != NULL && base.snapshot == all->m.fork->snapshot)
        status = esdm__io_open(all->session, above(all), ESDM_OPEN_READ, base.snapshot,
                               &all->m.base, &why);
    if (status == ESDM_ENOENT)
        return not_known(all, &base, err);
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

/* Which of both began with the other, which is no matter of when. */
static esdm_status
find_common(merging *all, esdm__common *ret, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    *ret = (esdm__common){.snapshot = 0};
    all->down = false;
    if (all->branch != NULL)
        status = esdm__line_common(all->session, all->full, all->name, ret, err);
    if (status != ESDM_OK || ret->related || esdm__name_branch(all->name, NULL) == NULL)
        return status; /* of its container every branch was one */
    status = esdm__line_common(all->session, all->name, all->full, ret, err);
    all->down = ret->related || all->branch == NULL;
    if (status != ESDM_OK || all->down)
        return status;
    return esdm__error_set(err, ESDM_ENOTSUP,
                           "'%s' did not begin with '%s', nor the other way: a branch is merged "
                           "with what it began with, and with what that began with (esdm-branch "
                           "lists them)",
                           all->full, all->name);
}

/* The newest snapshot of a line. ESDM_ECONFLICT: it is another record now. */
static esdm_status
look_at(const merging *all, const char *name, esdm_meta_seen *seen, esdm_error *err)
{
    esdm_meta_container record;
    esdm_status status =
        all->session->meta->container_find(all->session->store, name, &record, err);
    if (status != ESDM_OK)
        return status;
    if (record.container != seen->container)
        return esdm__error_set(err, ESDM_ECONFLICT, "'%s' was replaced meanwhile", name);
    seen->snapshot = record.snapshot;
    return ESDM_OK;
}

/* What both have in common, once merges of others are noted that ended before both were opened. */
static esdm_status
find_noted(merging *all, esdm__common *ret, esdm_error *err)
{
    esdm_status status = esdm__line_settle(all->session, all->full, err);
    if (status == ESDM_OK)
        status = esdm__line_settle(all->session, all->name, err);
    return status == ESDM_OK ? find_common(all, ret, err) : status;
}

/* The notes are of both as they were opened, as neither has a newer snapshot: else it is
 * ESDM_ECONFLICT, and what was merged later could count as what both have. */
static esdm_status
find_common_of_opened(merging *all, esdm_error *err)
{
    esdm_meta_seen theirs = {.container = all->record}, ours = {.container = all->container};
    esdm_status status = find_noted(all, &all->common, err);
    if (status == ESDM_OK)
        status = look_at(all, all->full, &theirs, err);
    if (status == ESDM_OK)
        status = look_at(all, all->name, &ours, err);
    bool newest = all->options->pick != 0 || theirs.snapshot == all->result.theirs;
    if (status != ESDM_OK || (newest && ours.snapshot == all->m.before->snapshot))
        return status;
    return esdm__error_set(err, ESDM_ECONFLICT, "'%s' and '%s' were written to meanwhile",
                           all->full, all->name);
}

static esdm_status
open_all(merging *all, esdm_error *err)
{
    uint64_t snapshot;
    uint64_t wanted = all->options->pick != 0 ? all->options->pick : ESDM_SNAPSHOT_LATEST;
    esdm_status status =
        esdm__io_open(all->session, all->full, ESDM_OPEN_READ, wanted, &all->m.theirs, err);
    if (status == ESDM_OK)
        status = esdm_container_open(all->session, all->name, ESDM_OPEN_WRITE, ESDM_SNAPSHOT_LATEST,
                                     &all->m.ours, err);
    if (status != ESDM_OK)
        return status;
    esdm__container_position(all->m.theirs, &all->record, &all->result.theirs);
    esdm__container_position(all->m.ours, &all->container, &snapshot);
    status = esdm__io_open(all->session, all->name, ESDM_OPEN_READ, snapshot, &all->m.before, err);
    if (status == ESDM_OK)
        status = find_common_of_opened(all, err);
    if (status == ESDM_OK)
        status = check_line(all, err);
    if (status == ESDM_OK)
        status = open_base(all, &all->common, err);
    if (status == ESDM_OK)
        all->result.base = all->m.base->snapshot;
    return status;
}

static void
close_all(merging *all)
{
    esdm__pack_guard_free(all->m.guard); /* after the commit */
    esdm_container_discard(all->m.ours);
    esdm_container_discard(all->m.before);
    esdm_container_discard(all->m.base);
    esdm_container_discard(all->m.fork);
    esdm_container_discard(all->m.theirs);
    all->m = (esdm__merging){.options = all->options, .result = &all->result};
}

/* ---- commit ---------------------------------------------------------------------------------- */

static void
say_what(const merging *all, char *text, size_t bytes)
{
    const char *what = all->options->pick != 0 ? "pick" : "merge";
    char since[24] = "";
    if (all->options->pick_after != 0)
        (void) snprintf(since, sizeof since, "%" PRIu64 "..", all->options->pick_after);
    if (all->branch != NULL)
        (void) snprintf(text, bytes, "%s of branch %s@%s%" PRIu64, what, all->branch, since,
                        all->result.theirs);
    else
        (void) snprintf(text, bytes, "%s of %s@%s%" PRIu64, what, all->full, since,
                        all->result.theirs);
}

static esdm_status
note_merged(const merging *all, uint64_t newest, esdm_error *err)
{
    esdm_status status = all->down
                             ? esdm__line_caught_up(all->session, all->name, all->result.theirs,
                                                    all->full, newest, err)
                             : esdm__line_merged(all->session, all->full, all->result.theirs,
                                                 all->name, newest, err);
    return status == ESDM_OK ? status
                             : esdm__error_prefix(err, status, "it was merged, which is not noted");
}

/* Theirs may have been written to since it was opened, but ours was not merged into it.
 * ESDM_ECONFLICT: it may have been. @param seen the newest snapshot of theirs of which that was
 * known. */
static esdm_status
follow(merging *all, esdm_meta_seen *seen, esdm_error *err)
{
    esdm__common again;
    uint64_t before = seen->snapshot;
    esdm_status status = look_at(all, all->full, seen, err);
    if (status != ESDM_OK || seen->snapshot == before)
        return status;
    status = find_noted(all, &again, err);
    const esdm__common *common = &all->common;
    if (status != ESDM_OK ||
        (again.snapshot == common->snapshot && strcmp(again.holder, common->holder) == 0 &&
         again.is_given == common->is_given && again.is_late == common->is_late))
        return status;
    return esdm__error_set(err, ESDM_ECONFLICT, "'%s' was merged into '%s' meanwhile", all->name,
                           all->full);
}

/* Lines that are merged into each other at the same time come one after the other: each of both
 * would have the other's changes else, but neither of the two snapshots that they have in common
 * would have all. */
static esdm_status
commit(merging *all, const char *message, esdm_error *err)
{
    esdm__container_io *io = esdm__io_of(all->m.ours);
    esdm_meta_seen seen = {.container = all->record, .snapshot = all->result.theirs};
    if (all->options->pick != 0 || !all->session->meta->commit_follows)
        return esdm__io_commit(all->m.ours, message, err);
    for (int i = 0;; i++) {
        uint64_t before = seen.snapshot;
        esdm_status status = follow(all, &seen, err);
        if (status != ESDM_OK || (i > 0 && seen.snapshot == before))
            return status != ESDM_OK ? status : ESDM_ECONFLICT; /* for another reason */
        io->commit_follows = &seen;
        status = esdm__io_commit(all->m.ours, message, err);
        io->commit_follows = NULL;
        if (status != ESDM_ECONFLICT || i == LOOKS)
            return status;
    }
}

static esdm_status
publish(merging *all, esdm_error *err)
{
    esdm_session *session = all->session;
    char message[ESDM_CONTAINER_NAME_MAX + 96];
    esdm_status status = ESDM_OK;
    uint64_t before = all->m.before->snapshot;
    esdm__line_merge noted = {0};
    say_what(all, message, sizeof message);
    /* Before the commit: too much does no harm. What is merged is pinned until after it. */
    if (all->m.shares)
        status = session->meta->share(session->store, all->container, all->record, err);
    if (status == ESDM_OK && all->options->pick == 0 && session->meta->commit_tags)
        status = esdm__line_merge_begin(session, all->full, all->result.theirs, all->name,
                                        all->down, &noted, err);
    esdm__io_of(all->m.ours)->commit_tag = noted.tag.name != NULL ? &noted.tag : NULL;
    /* That both have the same of what was changed since the base is told by a snapshot, too: else
     * it would not be known which of two merges at once came first, and what is changed back later
     * could be lost. */
    esdm__io_of(all->m.ours)->commit_always = all->m.known && noted.tag.name != NULL;
    if (status == ESDM_OK)
        status = commit(all, all->options->message != NULL ? all->options->message : message, err);
    esdm__io_of(all->m.ours)->commit_tag = NULL;
    esdm__io_of(all->m.ours)->commit_always = false;
    if (status != ESDM_OK) {
        /* What may have been committed all the same, as a connection was lost, is found by it. */
        if (esdm__commit_is_refused(status))
            esdm__line_merge_end(session, all->full, all->name, &noted);
        return status;
    }
    all->result.snapshot = all->m.ours->snapshot != before ? all->m.ours->snapshot : 0;
    esdm__drain_later(session, all->name);
    /* What a commit without a condition could have overtaken is not noted: the base is as good. */
    if (all->options->pick == 0 &&
        (all->result.snapshot != 0 || !all->session->meta->commit_follows))
        status = note_merged(all, all->m.ours->snapshot, err);
    if (status == ESDM_OK)
        esdm__line_merge_end(session, all->full, all->name, &noted);
    return status;
}

static esdm_status
merge_once(merging *all, bool *ret_again, esdm_error *err)
{
    all->result = (esdm_merge_result){0};
    all->compared = false;
    esdm_status status = open_all(all, err);
    *ret_again = status == ESDM_ECONFLICT;
    if (status != ESDM_OK || (!all->m.apart && all->result.base == all->result.theirs))
        return status;
    all->m.writes = !all->options->dry_run;
    all->m.guard = all->m.writes ? esdm__pack_guard_new(all->session) : NULL;
    if (all->m.writes && all->m.guard == NULL)
        return esdm__error_nomem(err, 256, "a merge");
    all->compared = true;
    status = esdm__merge_branch(&all->m, err);
    *ret_again = status == ESDM_ECONFLICT;
    if (status == ESDM_OK && all->result.open_conflicts > 0)
        return esdm__error_set(err, ESDM_ECONFLICT,
                               "'%s' and its branch '%s' have changed the same in %" PRIu64
                               " places: nothing is merged",
                               above(all), esdm__name_branch(below(all), NULL),
                               all->result.open_conflicts);
    if (status == ESDM_OK && !all->options->dry_run)
        status = publish(all, err);
    *ret_again = status == ESDM_ECONFLICT;
    return status;
}

/* ---- public -----------------------------------------------------------------------------------
 */

static esdm_status
check(merging *all, esdm_error *err)
{
    const esdm_merge_options *o = all->options;
    if (o->prefer != ESDM_MERGE_REFUSE && o->prefer != ESDM_MERGE_OURS &&
        o->prefer != ESDM_MERGE_THEIRS)
        return esdm__error_set(err, ESDM_EINVAL, "esdm_merge: unknown preference");
    esdm_status status = ESDM_OK;
    if (o->pick_after != 0 && o->pick_after >= o->pick)
        return esdm__error_set(err, ESDM_EINVAL,
                               "esdm_merge: what is picked ends with snapshot %" PRIu64
                               ", which is not after %" PRIu64,
                               o->pick, o->pick_after);
    if (all->branch != NULL)
        status = esdm__branch_full_name(all->name, all->branch, all->full, err);
    else
        esdm__line_base(all->name, all->full);
    if (status == ESDM_OK && strcmp(all->full, all->name) == 0)
        status = esdm__error_set(err, ESDM_EINVAL, "'%s' cannot be merged into itself", all->full);
    if (status == ESDM_OK)
        status = esdm__need_writable(all->session, err);
    if (status == ESDM_OK && all->session->meta->share == NULL)
        status = esdm__error_set(err, ESDM_ENOTSUP,
                                 "the metadata store of site '%s' cannot merge: its plug-in was "
                                 "built for an older ESDM",
                                 all->session->site->name);
    return status == ESDM_OK ? esdm__branch_check_name(all->session, all->full, err) : status;
}

esdm_status
esdm_merge(esdm_session *session, const char *name, const char *branch,
           const esdm_merge_options *options, esdm_merge_result *ret_result, esdm_error *err)
{
    static const esdm_merge_options standard = {.prefer = ESDM_MERGE_REFUSE};
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    merging all = {.session = session,
                   .name = normal,
                   .branch = branch,
                   .options = options != NULL ? options : &standard};
    esdm_status status = esdm__name_normalise(name, normal, err);
    if (status == ESDM_OK)
        status = check(&all, err);
    bool again = status == ESDM_OK;
    for (int i = 0; i < ATTEMPTS * LOOKS && again; i += all.compared ? LOOKS : 1) {
        close_all(&all);
        status = merge_once(&all, &again, err);
    }
    close_all(&all);
    if (ret_result != NULL)
        *ret_result = all.result;
    if (again)
        return esdm__error_set(err, ESDM_ECONFLICT,
                               "others wrote to '%s' each of %d times that '%s' was merged into "
                               "it: nothing is merged. Call again when less is written",
                               normal, ATTEMPTS, all.full);
    return status;
}
