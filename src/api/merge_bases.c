/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The snapshots of a merge are opened: of both lines, and the base, since which theirs is
 * merged. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/merge_parts.h"
#include "api/tags.h"
#include "base/error.h"
#include "io/io.h"

/* ---- snapshots ------------------------------------------------------------------------------- */

/* The two lines: the one that began with the other, and that one. */
bool
esdm__merge_is_down(const esdm__merge_attempt *all)
{
    return all->way == ESDM__LINE_DOWN;
}

const char *
esdm__merge_below(const esdm__merge_attempt *all)
{
    return esdm__merge_is_down(all) ? all->name : all->full;
}

const char *
esdm__merge_above(const esdm__merge_attempt *all)
{
    return esdm__merge_is_down(all) ? all->full : all->name;
}

/* Whether both began as one: neither was replaced since. */
static esdm_status
check_line(const esdm__merge_attempt *all, esdm_error *err)
{
    bool shares = false;
    const esdm_container *began = esdm__merge_is_down(all) ? all->m.theirs : all->m.ours;
    if (all->way == ESDM__LINE_BESIDE)
        began = all->m.fork;
    esdm_status status =
        esdm__branch_shares(all->session, esdm__merge_is_down(all) ? all->container : all->record,
                            esdm__io_of(began)->uuid, &shares, err);
    if (status == ESDM_OK && shares && all->way == ESDM__LINE_BESIDE)
        status = esdm__branch_shares(all->session, all->container, esdm__io_of(began)->uuid,
                                     &shares, err);
    if (status != ESDM_OK || shares)
        return status;
    return esdm__error_set(
        err, ESDM_ENOTSUP,
        "'%s' and the branch '%s' have no snapshot in common any more: one of "
        "them was written anew as a whole since (esdm-restore brings back what it was); "
        "esdm-diff compares them",
        esdm__merge_above(all), esdm__name_branch(esdm__merge_below(all), NULL));
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
not_own(const esdm__merge_attempt *all, uint64_t snapshot, uint64_t from, esdm_error *err)
{
    if (esdm__merge_is_down(all))
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
find_parent(const esdm__merge_attempt *all, uint64_t from, uint64_t *ret, esdm_error *err)
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

void
esdm__merge_lines(const esdm__merge_attempt *all, esdm__line *ret_ours, esdm__line *ret_theirs)
{
    esdm__line_fill(ret_ours, all->name, all->container, esdm__io_of(all->m.ours)->uuid);
    esdm__line_fill(ret_theirs, all->full, all->record, esdm__io_of(all->m.theirs)->uuid);
}

/* All is looked at again then. */
static esdm_status
gone(const char *stored, esdm_error *err)
{
    char name[ESDM__FORMER_NAME_BYTES];
    esdm__former_tell(stored, name, sizeof name);
    return esdm__error_set(err, ESDM_ECONFLICT, "'%.300s' was removed or renamed meanwhile", name);
}

esdm_status
esdm__merge_find_holder(const esdm__merge_attempt *all, esdm__line *ret, esdm_error *err)
{
    esdm_status status = esdm__line_find(all->session, all->common.holder, ret, err);
    return status == ESDM_OK && ret->record != all->common.record ? gone(all->common.holder, err)
                                                                  : status;
}

/* A snapshot of a line that was found before. ESDM_ENOENT: it is not kept; ESDM_ECONFLICT: the line
 * is not there any more under that name, or another one is. */
static esdm_status
open_of(const esdm__merge_attempt *all, const char *stored, uint64_t record, uint64_t snapshot,
        esdm_container **ret, esdm_error *err)
{
    bool there = false;
    uint64_t opened = 0, number = 0;
    esdm_error why = {0};
    esdm__line l;
    esdm__line_fill(&l, stored, record, "");
    esdm_status status = esdm__io_open(all->session, stored, ESDM_OPEN_READ, snapshot, ret, &why);
    if (status == ESDM_OK) {
        esdm__container_position(*ret, &opened, &number);
        if (opened == record)
            return ESDM_OK;
        esdm_container_discard(*ret);
        *ret = NULL;
        return gone(stored, err);
    }
    if (status == ESDM_ENOENT) {
        esdm_status found = esdm__line_is_there(all->session, &l, &there, err);
        if (found != ESDM_OK)
            return found;
        if (!there)
            return gone(stored, err);
    }
    if (err != NULL)
        *err = why;
    return status;
}

/* The newest snapshot that both had in common when the branch began, as what it began with keeps
 * it. */
static esdm_status
open_fork(esdm__merge_attempt *all, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    if (all->way != ESDM__LINE_BESIDE) {
        (void) snprintf(all->fork, sizeof all->fork, "%s", esdm__merge_above(all));
        all->fork_record = esdm__merge_is_down(all) ? all->record : all->container;
        status = esdm__line_fork(all->session, esdm__merge_below(all), esdm__merge_above(all),
                                 &all->forked, err);
    }
    return status == ESDM_OK && all->forked != 0
               ? open_of(all, all->fork, all->fork_record, all->forked, &all->m.fork, err)
               : status;
}

static esdm_status
not_known(const esdm__merge_attempt *all, const esdm__common *common, esdm_error *err)
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
                           esdm__name_branch(esdm__merge_below(all), NULL), esdm__merge_above(all));
}

/* Where theirs goes on from the base: it is one of its snapshots, or one from before they parted.
 */
static void
find_after(esdm__merge_attempt *all, const esdm__common *base)
{
    uint64_t fork = all->m.fork != NULL ? all->m.fork->snapshot : 0;
    bool own = strcmp(base->holder, all->full) == 0;
    all->m.apart = !own && base->snapshot > fork &&
                   (esdm__merge_is_down(all) || base->is_given || base->is_late);
    all->m.after = all->m.apart ? fork : base->snapshot;
}

static esdm_status
find_picked(const esdm__merge_attempt *all, esdm__common *base, esdm_error *err)
{
    uint64_t from = 0;
    char parent[ESDM_CONTAINER_NAME_MAX + 1];
    *base = (esdm__common){.record = all->record, .related = true};
    (void) snprintf(base->holder, sizeof base->holder, "%s", all->full);
    esdm_status status = esdm__merge_is_down(all)
                             ? ESDM_OK
                             : esdm__line_parent(all->session, all->full, parent, &from, NULL, err);
    if (esdm__merge_is_down(all) && all->m.fork != NULL)
        from = all->m.fork->snapshot;
    return status == ESDM_OK ? find_parent(all, from, &base->snapshot, err) : status;
}

/* Whether a line went on from what both began with, up to that snapshot at least: the numbers of
 * others are their own. */
static esdm_status
is_of_fork(const esdm__merge_attempt *all, const char *holder, uint64_t snapshot, bool *ret,
           esdm_error *err)
{
    uint64_t fork = 0;
    esdm_status status = ESDM_OK;
    *ret = strcmp(holder, all->name) == 0 || strcmp(holder, all->full) == 0 ||
           strcmp(holder, all->fork) == 0;
    if (!*ret)
        status = esdm__line_fork(all->session, holder, all->fork, &fork, err);
    *ret = *ret || fork >= snapshot;
    return status;
}

static esdm_status
open_snapshot(esdm__merge_attempt *all, const char *holder, uint64_t record, uint64_t snapshot,
              esdm_container **ret, esdm_error *err)
{
    esdm_error why = {0};
    esdm_status status =
        snapshot != 0 ? open_of(all, holder, record, snapshot, ret, &why) : ESDM_ENOENT;
    /* It has the same number in the line that both have in common. */
    bool shared = false;
    if (status == ESDM_ENOENT && all->m.fork != NULL && snapshot == all->forked) {
        esdm_status found = is_of_fork(all, holder, snapshot, &shared, &why);
        status = found != ESDM_OK ? found : status;
    }
    if (status == ESDM_ENOENT && shared)
        status = open_of(all, all->fork, all->fork_record, snapshot, ret, &why);
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

/* The snapshot that both have, or the one before what is picked. */
static esdm_status
open_one_base(esdm__merge_attempt *all, esdm_error *err)
{
    esdm__common base = all->common;
    esdm_status status = ESDM_OK;
    if (all->options->pick != 0)
        status = find_picked(all, &base, err);
    if (status != ESDM_OK)
        return status;
    find_after(all, &base);
    status = open_snapshot(all, base.holder, base.record, base.snapshot, &all->m.base, err);
    return status == ESDM_ENOENT ? not_known(all, &base, err) : status;
}

static void
close_bases(esdm__merge_attempt *all)
{
    for (size_t i = 0; all->bases != NULL && i < all->bases->bases.nleaves; i++) {
        if (all->bases->bases.leaves[i] != all->m.base)
            esdm_container_discard(all->bases->bases.leaves[i]);
    }
    esdm_container_discard(all->m.base);
    free(all->bases);
    all->m.base = NULL;
    all->m.bases = NULL;
    all->bases = NULL;
}

/* Whether theirs went on from it. */
static esdm_status
is_of_theirs(const esdm__merge_attempt *all, const esdm__base_leaf *leaf, bool *ret,
             esdm_error *err)
{
    uint64_t fork = 0;
    bool ours = strcmp(leaf->holder, all->name) == 0 && leaf->snapshot <= all->forked;
    *ret = ours || strcmp(leaf->holder, all->full) == 0;
    if (*ret || strcmp(leaf->holder, leaf->line) != 0)
        return ESDM_OK;
    esdm_status status = esdm__line_fork(all->session, all->full, leaf->line, &fork, err);
    *ret = fork >= leaf->snapshot;
    return status;
}

/* What a snapshot had that is not kept is not known. What both began with stands in its place. */
static esdm_status
lose_leaf(esdm__merge_attempt *all, size_t leaf, esdm_error *err)
{
    esdm__bases *bases = &all->bases->bases;
    all->unknown = true;
    for (size_t n = 0; n < bases->count; n++) {
        if (bases->nodes[n].is_leaf && bases->nodes[n].leaf == leaf)
            bases->nodes[n] = (esdm__base_node){
                .base = ESDM__BASE_UNKNOWN, .one = ESDM__BASE_UNKNOWN, .other = ESDM__BASE_UNKNOWN};
    }
    return open_of(all, all->fork, all->fork_record, all->forked, &bases->leaves[leaf], err);
}

static esdm_status
open_leaf(esdm__merge_attempt *all, size_t leaf, esdm_error *err)
{
    esdm_error why = {0};
    const esdm__base_leaf *wanted = &all->bases->leaves[leaf];
    esdm_status status = open_snapshot(all, wanted->holder, wanted->record, wanted->snapshot,
                                       &all->bases->bases.leaves[leaf], &why);
    if (status == ESDM_ENOENT && all->m.fork != NULL)
        return lose_leaf(all, leaf, err);
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

/* ESDM_ENOENT: one of the snapshots is not kept, and it is not known what both began with. */
static esdm_status
open_bases(esdm__merge_attempt *all, esdm_error *err)
{
    bool own = false;
    esdm__bases *bases = &all->bases->bases;
    all->unknown = all->bases->lacks || bases->nleaves == 0;
    esdm_status status = all->unknown && all->m.fork == NULL ? ESDM_ENOENT : ESDM_OK;
    if (status == ESDM_OK && bases->nleaves == 0)
        status = lose_leaf(all, bases->nleaves++, err);
    else
        for (size_t i = 0; i < bases->nleaves && status == ESDM_OK; i++)
            status = open_leaf(all, i, err);
    if (status != ESDM_OK)
        return status;
    all->m.base = bases->leaves[0];
    if (bases->nleaves > 1 || all->unknown)
        all->m.bases = bases;
    else
        status = is_of_theirs(all, &all->bases->leaves[0], &own, err);
    all->m.apart = !own;
    all->m.after = own ? all->m.base->snapshot : all->forked;
    return status;
}

/* Whether the newest snapshot that is noted of both lines alone has all that both have. */
static esdm_status
has_all(const esdm__merge_attempt *all, const esdm__vector *both, bool *ret, esdm_error *err)
{
    esdm__line l;
    bool there = false;
    esdm__vector has = {0};
    esdm__former former;
    const char *name = all->common.holder;
    *ret = false;
    if (all->common.snapshot == 0)
        return ESDM_OK;
    esdm_status status = esdm__merge_find_holder(all, &l, err);
    if (esdm__former_parse(name, &former))
        name = former.name;
    if (status != ESDM_OK || l.record == 0)
        return status;
    status = esdm__line_vector(all->session, name, &l, all->common.snapshot, &has, err);
    if (status == ESDM_OK)
        status = esdm__line_is_there(all->session, &l, &there, err);
    *ret = status == ESDM_OK && there;
    for (size_t i = 0; i < both->count && *ret; i++)
        *ret = esdm__vector_get(&has, both->items[i].id) >= both->items[i].snapshot;
    esdm__vector_clear(&has);
    return status;
}

/* Where one snapshot of what both have is gone, and what is noted of both lines alone has less: an
 * older base would lose what was changed back since, so all that differs is in conflict. */
static esdm_status
open_base_of(esdm__merge_attempt *all, const esdm__vector *both, esdm_error *err)
{
    bool whole = false;
    esdm_error why = {0};
    esdm_status status = esdm__line_find_bases(all->session, all->name, both, all->bases, err);
    if (status != ESDM_OK)
        return status;
    status = open_bases(all, &why);
    if (status == ESDM_OK && !all->unknown)
        return ESDM_OK;
    if (status != ESDM_OK && status != ESDM_ENOENT) {
        if (err != NULL)
            *err = why;
        return status;
    }
    esdm_status found = has_all(all, both, &whole, err);
    if (found != ESDM_OK || (status == ESDM_OK && !whole))
        return found;
    close_bases(all);
    all->unknown = false;
    return whole ? open_one_base(all, err) : not_known(all, &all->common, err);
}

/* All that both have. */
static esdm_status
open_base(esdm__merge_attempt *all, esdm_error *err)
{
    esdm__vector both = {0};
    if (all->options->pick != 0)
        return open_one_base(all, err);
    all->bases = calloc(1, sizeof *all->bases);
    if (all->bases == NULL)
        return esdm__error_nomem(err, sizeof *all->bases, "a merge");
    esdm_status status = esdm__vector_meet(&all->has, &all->brings, &both, err);
    if (status == ESDM_OK)
        status = open_base_of(all, &both, err);
    esdm__vector_clear(&both);
    return status;
}

/* The newest snapshot of a line. ESDM_ECONFLICT: it is another record now. */
esdm_status
esdm__merge_look_at(const esdm__merge_attempt *all, const char *name, esdm_meta_seen *seen,
                    esdm_error *err)
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

/* The notes are of both as they were opened, as neither has a newer snapshot: else it is
 * ESDM_ECONFLICT, and what was merged later could count as what both have. */
static esdm_status
check_newest(const esdm__merge_attempt *all, esdm_error *err)
{
    esdm_meta_seen theirs = {.container = all->record}, ours = {.container = all->container};
    esdm_status status = esdm__merge_look_at(all, all->full, &theirs, err);
    if (status == ESDM_OK)
        status = esdm__merge_look_at(all, all->name, &ours, err);
    bool newest = all->options->pick != 0 || theirs.snapshot == all->result.theirs;
    if (status != ESDM_OK || (newest && ours.snapshot == all->m.before->snapshot))
        return status;
    return esdm__error_set(err, ESDM_ECONFLICT, "'%s' and '%s' were written to meanwhile",
                           all->full, all->name);
}

/* What is not known of a line that goes meanwhile says nothing: ESDM_ECONFLICT then, and whoever
 * looks again is told that it is gone. */
static esdm_status
unless_gone(const esdm__merge_attempt *all, esdm_status status, esdm_error *err)
{
    esdm__line ours, theirs;
    bool ours_there = false, theirs_there = false;
    esdm_error ignored;
    esdm__merge_lines(all, &ours, &theirs);
    if ((status != ESDM_ENOENT && status != ESDM_ENOTSUP) ||
        esdm__line_is_there(all->session, &ours, &ours_there, &ignored) != ESDM_OK ||
        esdm__line_is_there(all->session, &theirs, &theirs_there, &ignored) != ESDM_OK ||
        (ours_there && theirs_there))
        return status;
    return gone(ours_there ? all->full : all->name, err);
}

static esdm_status
open_all(esdm__merge_attempt *all, esdm_error *err)
{
    uint64_t snapshot = 0;
    esdm__container_position(all->m.ours, &all->container, &snapshot);
    esdm_status status = open_of(all, all->name, all->container, snapshot, &all->m.before, err);
    if (status == ESDM_OK)
        status = esdm__merge_find_noted(all, &all->common, err);
    if (status == ESDM_OK)
        status = check_newest(all, err);
    if (status == ESDM_OK && all->way != ESDM__LINE_BESIDE)
        status = check_line(all, err);
    if (status == ESDM_OK)
        status = open_fork(all, err);
    if (status == ESDM_OK && all->options->pick == 0)
        status = esdm__merge_find_vectors(all, err);
    if (status == ESDM_OK)
        status = check_newest(all, err);
    if (status == ESDM_OK && all->options->pick == 0)
        status = esdm__merge_find_more(all, err);
    if (status == ESDM_OK && all->way == ESDM__LINE_BESIDE)
        status = check_line(all, err);
    if (status == ESDM_OK)
        status = open_base(all, err);
    if (status == ESDM_OK)
        all->result.base = all->m.base->snapshot;
    return status;
}

esdm_status
esdm__merge_open(esdm__merge_attempt *all, esdm_error *err)
{
    all->unknown = false;
    uint64_t wanted = all->options->pick != 0 ? all->options->pick : ESDM_SNAPSHOT_LATEST;
    esdm_status status =
        esdm__io_open(all->session, all->full, ESDM_OPEN_READ, wanted, &all->m.theirs, err);
    if (status == ESDM_OK)
        status = esdm_container_open(all->session, all->name, ESDM_OPEN_WRITE, ESDM_SNAPSHOT_LATEST,
                                     &all->m.ours, err);
    if (status != ESDM_OK)
        return status;
    esdm__container_position(all->m.theirs, &all->record, &all->result.theirs);
    return unless_gone(all, open_all(all, err), err);
}

void
esdm__merge_close(esdm__merge_attempt *all)
{
    esdm__pack_guard_free(all->m.guard); /* after the commit */
    esdm_container_discard(all->m.ours);
    esdm_container_discard(all->m.before);
    close_bases(all);
    esdm__vector_clear(&all->has);
    esdm__vector_clear(&all->brings);
    esdm_container_discard(all->m.fork);
    esdm_container_discard(all->m.theirs);
    all->m = (esdm__merging){.options = all->options, .result = &all->result};
}
