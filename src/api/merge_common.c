/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What the two lines of a merge have in common, as their tags tell it: which began with
 * which, the line that both began with, what each has of all lines, and whether that is more than
 * the other one has. */

#include <stdio.h>
#include <string.h>

#include "api/merge_parts.h"
#include "api/tags.h"
#include "base/error.h"

/* A line that both of two branches began with, at the newest snapshot that both had of it. */
static esdm_status
look_for_fork(const char *line, void *user, esdm_error *err)
{
    esdm__merge_attempt *all = user;
    esdm__line l;
    uint64_t theirs = 0, ours = 0;
    if (strcmp(line, all->full) == 0 || strcmp(line, all->name) == 0)
        return ESDM_OK;
    esdm_status status = esdm__line_find(all->session, line, &l, err);
    if (status == ESDM_OK)
        status = esdm__line_fork_of(all->session, all->full, &l, &theirs, err);
    if (status == ESDM_OK && theirs != 0)
        status = esdm__line_fork_of(all->session, all->name, &l, &ours, err);
    if (ours > theirs)
        ours = theirs;
    if (status == ESDM_OK && theirs != 0 && ours > all->forked) {
        all->forked = ours;
        all->fork_record = l.record;
        (void) snprintf(all->fork, sizeof all->fork, "%s", line);
    }
    return status;
}

static esdm_status
find_fork(esdm__merge_attempt *all, esdm_error *err)
{
    char base[ESDM_CONTAINER_NAME_MAX + 1];
    all->forked = 0;
    esdm__line_base(all->name, base);
    esdm_status status = look_for_fork(base, all, err);
    return status == ESDM_OK ? esdm__branch_names(all->session, base, look_for_fork, all, err)
                             : status;
}

/* Which of both began with the other, which is no matter of when. */
static esdm_status
find_common(esdm__merge_attempt *all, esdm__common *ret, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    *ret = (esdm__common){.snapshot = 0};
    all->way = ESDM__LINE_UP;
    if (all->branch != NULL)
        status = esdm__line_common(all->session, all->full, all->name, ret, err);
    if (status != ESDM_OK || ret->related || esdm__name_branch(all->name, NULL) == NULL)
        return status; /* of its container every branch was one */
    status = esdm__line_common(all->session, all->name, all->full, ret, err);
    if (status == ESDM_OK && (ret->related || all->branch == NULL)) {
        all->way = ESDM__LINE_DOWN;
        return ESDM_OK;
    }
    all->way = ESDM__LINE_BESIDE;
    if (status == ESDM_OK)
        status = find_fork(all, err);
    if (status != ESDM_OK || all->forked != 0)
        return status;
    return esdm__error_set(err, ESDM_ENOTSUP,
                           "with which snapshot '%s' and '%s' both began is not known any more: "
                           "they cannot be merged",
                           all->full, all->name);
}

/* What both have in common, once merges of others are noted that ended before both were opened. */
esdm_status
esdm__merge_find_noted(esdm__merge_attempt *all, esdm__common *ret, esdm_error *err)
{
    esdm_status status = esdm__line_settle(all->session, all->full, err);
    if (status == ESDM_OK)
        status = esdm__line_settle(all->session, all->name, err);
    return status == ESDM_OK ? find_common(all, ret, err) : status;
}

/* What both have of all lines, and what is noted of these two alone: by older versions, or before
 * one of the others was removed. */
static esdm_status
find_noted_vectors(esdm__merge_attempt *all, esdm_error *err)
{
    esdm__line ours, theirs, l;
    esdm__former former;
    const char *name = all->common.holder;
    esdm__merge_lines(all, &ours, &theirs);
    esdm_status status =
        esdm__line_vector(all->session, all->name, &ours, all->m.before->snapshot, &all->has, err);
    if (status == ESDM_OK)
        status = esdm__line_vector(all->session, all->full, &theirs, all->result.theirs,
                                   &all->brings, err);
    if (status != ESDM_OK || all->common.snapshot <= all->forked)
        return status;
    status = esdm__merge_find_holder(all, &l, err);
    if (status != ESDM_OK || l.record == 0)
        return status;
    if (esdm__former_parse(name, &former))
        name = former.name;
    const char *branch = esdm__name_branch(name, NULL);
    branch = branch != NULL ? branch : "";
    status = esdm__vector_raise(&all->has, branch, l.id, all->common.snapshot, err);
    return status == ESDM_OK
               ? esdm__vector_raise(&all->brings, branch, l.id, all->common.snapshot, err)
               : status;
}

/* What a line had when it began is what it began with: its number says nothing of the line itself,
 * and would stand beside what that one has since. */
static esdm_status
raise_where_it_is_from(const esdm__merge_attempt *all, const char *name, const esdm__line *line,
                       const esdm__vector_item *itself, uint64_t snapshot, esdm__vector *to,
                       esdm_error *err)
{
    char here[ESDM_CONTAINER_NAME_MAX + 1], above[ESDM_CONTAINER_NAME_MAX + 1];
    esdm__line l = *line;
    esdm_status status = ESDM_OK;
    (void) snprintf(here, sizeof here, "%s", name);
    while (status == ESDM_OK && esdm__name_branch(here, NULL) != NULL) {
        esdm__line parent;
        bool there = false;
        uint64_t from = 0, fork = 0;
        status = esdm__line_parent(all->session, here, above, &from, NULL, err);
        if (status == ESDM_OK)
            status = esdm__line_is_there(all->session, &l, &there, err);
        if (status != ESDM_OK || (there && snapshot > from))
            break;
        status = esdm__line_find(all->session, above, &parent, err);
        if (status == ESDM_OK)
            status = esdm__line_fork_of(all->session, here, &parent, &fork, err);
        l = parent;
        if (status == ESDM_OK && (!there || fork == 0)) /* one of both lines is gone */
            return esdm__vector_raise(to, itself->branch, itself->id, snapshot, err);
        (void) snprintf(here, sizeof here, "%s", above);
    }
    const char *branch = esdm__name_branch(here, NULL);
    return status == ESDM_OK
               ? esdm__vector_raise(to, branch != NULL ? branch : "", l.id, snapshot, err)
               : status;
}

/* The same of a third line: older versions note what one line has of another one for these two
 * alone. */
static esdm_status
raise_by_older(const esdm__merge_attempt *all, size_t i, const esdm__vector *of, esdm__vector *to,
               const char *side, esdm_error *err)
{
    esdm__line l;
    uint64_t snapshot = 0;
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    const esdm__vector_item *one = &of->items[i];
    if (one->snapshot <= esdm__vector_get(to, one->id))
        return ESDM_OK;
    esdm_status status =
        esdm__line_by_id(all->session, all->name, one->branch, one->id, &l, name, err);
    if (status != ESDM_OK || l.record == 0 || strcmp(l.stored, name) != 0 ||
        strcmp(name, all->name) == 0 || strcmp(name, all->full) == 0)
        return status;
    status = esdm__line_noted_in(all->session, name, &l, side, &snapshot, err);
    return status == ESDM_OK && snapshot != 0
               ? raise_where_it_is_from(all, name, &l, one, snapshot, to, err)
               : status;
}

esdm_status
esdm__merge_find_vectors(esdm__merge_attempt *all, esdm_error *err)
{
    esdm_status status = find_noted_vectors(all, err);
    /* Lists of what there was before: each raises the other one. */
    for (size_t i = 0; i < all->brings.count && status == ESDM_OK; i++)
        status = raise_by_older(all, i, &all->brings, &all->has, all->name, err);
    for (size_t i = 0; i < all->has.count && status == ESDM_OK; i++)
        status = raise_by_older(all, i, &all->has, &all->brings, all->full, err);
    return status;
}

esdm_status
esdm__merge_find_more(esdm__merge_attempt *all, esdm_error *err)
{
    esdm__line ours, theirs;
    bool only_merged = false;
    esdm__merge_lines(all, &ours, &theirs);
    uint64_t after = esdm__vector_get(&all->has, theirs.id);
    if (after < all->forked)
        after = all->forked;
    esdm_status status =
        esdm__line_only_merged(all->session, &theirs, after, all->result.theirs, &only_merged, err);
    all->more = !only_merged;
    for (size_t i = 0; i < all->brings.count && !all->more; i++) {
        const esdm__vector_item *one = &all->brings.items[i];
        all->more =
            strcmp(one->id, theirs.id) != 0 && one->snapshot > esdm__vector_get(&all->has, one->id);
    }
    return status;
}
