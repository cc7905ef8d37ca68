/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Merging a branch into what it began with, and the other way: which snapshots, and the
 * commit.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/branches.h"
#include "api/catalogue.h"
#include "api/merge_parts.h"
#include "api/tags.h"
#include "base/arguments.h"
#include "base/error.h"
#include "base/ids.h"
#include "io/commit/commit.h"
#include "io/io.h"
#include "io/session/journaling.h"
#include "merge/merge.h"
#include "upkeep/upkeep.h"

/* How often it is done again when others commit meanwhile, and how often it begins anew when they
 * have before it has compared anything. */
#define ATTEMPTS 8
#define LOOKS    32

/* ---- commit ---------------------------------------------------------------------------------- */

static void
say_what(const esdm__merge_attempt *all, char *text, size_t bytes)
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
note_merged(const esdm__merge_attempt *all, uint64_t newest, const char *uuid, const char *text,
            esdm_error *err)
{
    esdm__line ours, theirs;
    esdm__merge_lines(all, &ours, &theirs);
    esdm_status status = esdm__line_note_vector(all->session, &ours, uuid, newest, text, err);
    if (status == ESDM_OK && esdm__merge_is_down(all))
        status = esdm__line_caught_up(all->session, all->name, all->result.theirs, all->full,
                                      all->record, newest, err);
    else if (status == ESDM_OK && all->way == ESDM__LINE_UP)
        status = esdm__line_merged(all->session, all->full, all->record, all->result.theirs,
                                   all->name, newest, err);
    if (status != ESDM_OK)
        return esdm__error_prefix(err, status, "it was merged, which is not noted");
    esdm__line_sweep_vectors(all->session, all->full);
    return ESDM_OK;
}

/* Whether ours was merged into theirs since that was read. */
static esdm_status
came_back(const esdm__merge_attempt *all, uint64_t snapshot, bool *ret, esdm_error *err)
{
    esdm__line ours, theirs;
    esdm__vector now = {0};
    esdm__merge_lines(all, &ours, &theirs);
    esdm_status status = esdm__line_vector(all->session, all->full, &theirs, snapshot, &now, err);
    *ret = esdm__vector_get(&now, ours.id) > esdm__vector_get(&all->brings, ours.id);
    esdm__vector_clear(&now);
    return status;
}

/* Theirs may have been written to since it was opened, but ours was not merged into it.
 * ESDM_ECONFLICT: it may have been. @param seen the newest snapshot of theirs of which that was
 * known. */
static esdm_status
follow(esdm__merge_attempt *all, esdm_meta_seen *seen, esdm_error *err)
{
    esdm__common again;
    uint64_t before = seen->snapshot;
    esdm_status status = esdm__merge_look_at(all, all->full, seen, err);
    if (status != ESDM_OK || seen->snapshot == before)
        return status;
    status = esdm__merge_find_noted(all, &again, err);
    const esdm__common *common = &all->common;
    bool back = false;
    if (status == ESDM_OK)
        status = came_back(all, seen->snapshot, &back, err);
    if (status != ESDM_OK ||
        (!back && again.snapshot == common->snapshot && strcmp(again.holder, common->holder) == 0 &&
         again.is_given == common->is_given && again.is_late == common->is_late))
        return status;
    return esdm__error_set(err, ESDM_ECONFLICT, "'%s' was merged into '%s' meanwhile", all->name,
                           all->full);
}

/* Lines that are merged into each other at the same time come one after the other. Else a conflict
 * could be decided twice: by each of both for its own line, after which they differ. */
static esdm_status
commit(esdm__merge_attempt *all, const char *message, esdm_error *err)
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

/* What ours is going to have, as text; owned by the caller. */
static esdm_status
say_vector(const esdm__merge_attempt *all, char **ret, esdm_error *err)
{
    esdm__vector both = {0};
    esdm_status status = esdm__vector_join(&both, &all->has, err);
    if (status == ESDM_OK)
        status = esdm__vector_join(&both, &all->brings, err);
    *ret = status == ESDM_OK ? esdm__vector_text(&both) : NULL;
    if (status == ESDM_OK && *ret == NULL)
        status = esdm__error_nomem(err, both.count * sizeof *both.items, "lines");
    esdm__vector_clear(&both);
    return status;
}

/* What is to be there before the commit: too much does no harm. What is merged is pinned until
 * after it. */
static esdm_status
prepare(const esdm__merge_attempt *all, const char *text, esdm__line_merge *noted, esdm_error *err)
{
    esdm_session *session = all->session;
    esdm_status status = ESDM_OK;
    if (all->m.shares)
        status = session->meta->share(session->store, all->container, all->record, err);
    if (status != ESDM_OK || all->options->pick != 0)
        return status;
    if (session->meta->commit_tags)
        status = esdm__line_merge_begin(session, all->full, all->result.theirs, all->name, all->way,
                                        text, noted, err);
    else
        esdm__uuid_new(noted->uuid);
    return status == ESDM_OK
               ? esdm__line_keep(session, all->name, &all->has, &all->brings, noted->uuid, err)
               : status;
}

static esdm_status
publish_as(esdm__merge_attempt *all, const char *text, esdm__line_merge *noted, esdm_error *err)
{
    esdm_session *session = all->session;
    char message[ESDM_CONTAINER_NAME_MAX + 96];
    uint64_t before = all->m.before->snapshot;
    say_what(all, message, sizeof message);
    esdm_status status = prepare(all, text, noted, err);
    if (status == ESDM_ENOENT) /* theirs has gone since it was opened: it is looked at again */
        status = ESDM_ECONFLICT;
    const esdm_meta_tag *tag = noted->tag.name != NULL ? &noted->tag : NULL;
    esdm__io_of(all->m.ours)->commit_tag = tag;
    /* What theirs has is told by a snapshot, also where ours has all changes of it: else it would
     * not be known which of two merges at once came first, and what is changed back later could be
     * lost. */
    esdm__io_of(all->m.ours)->commit_always = tag != NULL && (all->m.known || all->more);
    if (status == ESDM_OK)
        status = commit(all, all->options->message != NULL ? all->options->message : message, err);
    esdm__io_of(all->m.ours)->commit_tag = NULL;
    esdm__io_of(all->m.ours)->commit_always = false;
    if (status != ESDM_OK) {
        /* What may have been committed all the same, as a connection was lost, is found by it. */
        if (esdm__commit_is_refused(status))
            esdm__line_merge_end(session, all->full, all->name, noted);
        return status;
    }
    all->result.snapshot = all->m.ours->snapshot != before ? all->m.ours->snapshot : 0;
    esdm__drain_later(session, all->name);
    /* What a commit without a condition could have overtaken is not noted: the base is as good. */
    if (all->options->pick == 0 &&
        (all->result.snapshot != 0 || !all->session->meta->commit_follows))
        status = note_merged(all, all->m.ours->snapshot, noted->uuid, text, err);
    if (status == ESDM_OK)
        esdm__line_merge_end(session, all->full, all->name, noted);
    return status;
}

static esdm_status
publish(esdm__merge_attempt *all, esdm_error *err)
{
    char *text = NULL;
    esdm__line_merge noted = {.author = NULL};
    esdm_status status = say_vector(all, &text, err);
    if (status == ESDM_OK)
        status = publish_as(all, text, &noted, err);
    free(noted.author);
    free(text);
    return status;
}

static esdm_status
merge_once(esdm__merge_attempt *all, bool *ret_again, esdm_error *err)
{
    all->result = (esdm_merge_result){0};
    all->compared = false;
    esdm_status status = esdm__merge_open(all, err);
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
        return esdm__error_set(
            err, ESDM_ECONFLICT,
            "'%s' and the branch '%s' have changed the same in %" PRIu64
            " places: nothing is merged%s",
            esdm__merge_above(all), esdm__name_branch(esdm__merge_below(all), NULL),
            all->result.open_conflicts,
            all->unknown ? " (a line that both have merged was removed for good, or "
                           "its snapshot is not kept: what differs where both have "
                           "written since they parted may have been changed by one "
                           "of them alone)"
                         : "");
    if (status == ESDM_OK && !all->options->dry_run)
        status = publish(all, err);
    *ret_again = status == ESDM_ECONFLICT;
    return status;
}

/* ---- public -----------------------------------------------------------------------------------
 */

static esdm_status
check(esdm__merge_attempt *all, esdm_error *err)
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
    esdm__merge_attempt all = {.session = session,
                               .name = normal,
                               .branch = branch,
                               .options = options != NULL ? options : &standard};
    esdm_status status = esdm__name_normalise(name, normal, err);
    if (status == ESDM_OK)
        status = check(&all, err);
    bool again = status == ESDM_OK;
    for (int i = 0; i < ATTEMPTS * LOOKS && again; i += all.compared ? LOOKS : 1) {
        esdm__merge_close(&all);
        status = merge_once(&all, &again, err);
    }
    esdm__merge_close(&all);
    if (ret_result != NULL)
        *ret_result = all.result;
    if (again)
        return esdm__error_set(err, ESDM_ECONFLICT,
                               "others wrote to '%s' each of %d times that '%s' was merged into "
                               "it: nothing is merged. Call again when less is written",
                               normal, ATTEMPTS, all.full);
    return status;
}
