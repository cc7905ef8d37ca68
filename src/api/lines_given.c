/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Lines that were merged into branches which began with them. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/line_parts.h"
#include "api/line_tags.h"

/* ---- tags ----------------------------------------------------------------------------------- */

static void
tag_given(const char *name, esdm__tag_name tag)
{
    (void) snprintf(tag, sizeof(esdm__tag_name), ESDM__GIVEN_TAG "%s",
                    esdm__name_branch(name, NULL));
}

esdm_status
esdm__line_given(esdm_session *session, const char *name, const char *in, esdm__shared *ret,
                 esdm_error *err)
{
    esdm__tag_name tag;
    esdm__tag_wanted w = {.name = tag};
    *ret = (esdm__shared){.is_given = true};
    esdm_status status = esdm__line_find(session, in, &ret->holder, err);
    if (status != ESDM_OK || ret->holder.record == 0 || esdm__name_branch(name, NULL) == NULL)
        return status;
    tag_given(name, tag);
    status = esdm__tag_look(session, ret->holder.record, &w, err);
    ret->snapshot = w.snapshot;
    ret->related = w.snapshot != 0;
    ret->since = w.snapshot != 0 ? strtoull(w.text, NULL, 10) : 0;
    return status;
}

esdm_status
esdm__line_note_given(esdm_session *session, const char *name, const char *in, uint64_t snapshot,
                      uint64_t since, esdm_error *err)
{
    esdm__tag_name tag;
    esdm__shared has;
    char text[24];
    uint64_t fork = 0;
    esdm_status status = esdm__line_given(session, name, in, &has, err);
    if (status == ESDM_OK)
        status = esdm__line_fork_of(session, name, &has.holder, &fork, err);
    if (status != ESDM_OK || fork == 0 || snapshot <= fork || snapshot <= has.snapshot)
        return status;
    tag_given(name, tag);
    (void) snprintf(text, sizeof text, "%" PRIu64, since);
    return esdm__line_tag_raise(session, &has.holder, tag, snapshot, text, err);
}

void
esdm__line_untag_given(esdm_session *session, const esdm__line *in, const char *name)
{
    esdm__tag_name tag;
    tag_given(name, tag);
    esdm__line_tag_take(session, in, tag);
}

/* ---- what both have ------------------------------------------------------------------------- */

/* The later one has what the earlier one had. */
esdm_status
esdm__line_newest(esdm_session *session, const char *name, const char *in, esdm__shared *ret,
                  esdm_error *err)
{
    esdm__shared given;
    esdm_status status = esdm__line_shared(session, name, in, ret, err);
    if (status == ESDM_OK)
        status = esdm__line_given(session, name, in, &given, err);
    if (status == ESDM_OK && given.snapshot != 0 &&
        (ret->snapshot == 0 || given.since > ret->since))
        *ret = given;
    return status;
}

esdm_status
esdm__line_begin_given(esdm_session *session, const char *parent, const char *name, const char *in,
                       uint64_t from, esdm_error *err)
{
    esdm__shared given;
    esdm_status status = esdm__line_given(session, parent, in, &given, err);
    if (status != ESDM_OK || given.snapshot == 0 || given.since > from)
        return status;
    return esdm__line_note_given(session, name, in, given.snapshot, given.since, err);
}

/* Of a line of that name which was removed since there may be tags, but the newer one of the name
 * is another record. */
esdm_status
esdm__line_noted_in(esdm_session *session, const char *name, const esdm__line *l, const char *in,
                    uint64_t *ret, esdm_error *err)
{
    esdm__tag_name tag;
    esdm__shared given;
    esdm_meta_container record;
    esdm__tag_wanted w = {.name = tag};
    bool shares = false;
    *ret = 0;
    esdm_status status = session->meta->container_find(session->store, in, &record, err);
    if (status == ESDM_OK)
        status = esdm__line_given(session, in, name, &given, err);
    if (status != ESDM_OK)
        return status;
    if (given.holder.record == l->record)
        *ret = given.snapshot;
    esdm__line_tag_in(ESDM__MERGED_TAG, in, tag);
    status = esdm__tag_look(session, l->record, &w, err);
    if (status == ESDM_OK && w.snapshot > *ret)
        status = esdm__branch_shares(session, l->record, record.uuid, &shares, err);
    if (status == ESDM_OK && shares)
        *ret = w.snapshot;
    return status;
}

/* ---- after a merge -------------------------------------------------------------------------- */

/* A line that came into another one, looked at beside all lines of the container. */
typedef struct carried {
    esdm_session *session;
    const char *name;
    uint64_t record;
    uint64_t snapshot;
    const char *to;
    uint64_t since; /* snapshot of `to` that has it */
} carried;

/* Whether what was read of the line is of that one, and not of another one of its name. */
static esdm_status
is_same(const carried *c, bool *ret, esdm_error *err)
{
    esdm__line l;
    esdm__line_fill(&l, c->name, c->record, "");
    return esdm__line_is_there(c->session, &l, ret, err);
}

static esdm_status
for_others(const carried *c, esdm_status (*visit)(const char *, void *, esdm_error *),
           esdm_error *err)
{
    char base[ESDM_CONTAINER_NAME_MAX + 1];
    carried copy = *c;
    esdm__line_base(c->to, base);
    esdm_status status = visit(base, &copy, err);
    return status == ESDM_OK ? esdm__branch_names(c->session, base, visit, &copy, err) : status;
}

/* What a branch has of a line is in another one now. */
static esdm_status
raise_own(esdm_session *session, const char *name, const char *to, uint64_t snapshot,
          esdm_error *err)
{
    esdm__shared there;
    esdm__line l;
    bool same = false;
    esdm_status status = esdm__line_find(session, name, &l, err);
    if (status == ESDM_OK)
        status = esdm__line_shared(session, name, to, &there, err);
    if (status != ESDM_OK || l.record == 0 || snapshot <= there.since)
        return status;
    status = esdm__line_is_there(session, &l, &same, err);
    if (status != ESDM_OK || !same)
        return status;
    return esdm__line_note_own(session, name, &l, to, snapshot, err);
}

static esdm_status
carry_up(const char *other, void *user, esdm_error *err)
{
    const carried *c = user;
    esdm__shared given;
    bool same = false;
    uint64_t above = 0, between = 0;
    if (strcmp(other, c->name) == 0 || strcmp(other, c->to) == 0)
        return ESDM_OK;
    esdm_status status = esdm__line_given(c->session, c->name, other, &given, err);
    if (status == ESDM_OK)
        status = is_same(c, &same, err);
    if (status != ESDM_OK || !same || given.snapshot == 0 || given.since > c->snapshot)
        return status;
    status = esdm__line_fork(c->session, c->to, other, &above, err);
    if (status == ESDM_OK && above != 0)
        return esdm__line_note_given(c->session, c->to, other, given.snapshot, c->since, err);
    if (status == ESDM_OK)
        status = esdm__line_fork(c->session, other, c->to, &between, err);
    return status == ESDM_OK && between != 0
               ? raise_own(c->session, other, c->to, given.snapshot, err)
               : status;
}

esdm_status
esdm__line_carry_up(esdm_session *session, const char *name, uint64_t record, uint64_t snapshot,
                    const char *to, uint64_t since, esdm_error *err)
{
    const carried c = {session, name, record, snapshot, to, since};
    return esdm__name_branch(name, NULL) != NULL ? for_others(&c, carry_up, err) : ESDM_OK;
}

esdm_status
esdm__line_spread_given(esdm_session *session, const char *between, uint64_t snapshot,
                        const char *name, const char *in, esdm_error *err)
{
    esdm__shared given, there;
    esdm__line l;
    bool same = false;
    esdm_status status = esdm__line_find(session, name, &l, err);
    if (status == ESDM_OK)
        status = esdm__line_given(session, name, between, &given, err);
    if (status != ESDM_OK || given.snapshot == 0)
        return status;
    status = esdm__line_newest(session, name, in, &there, err);
    if (status != ESDM_OK || !there.related || l.record == 0)
        return status;
    if (given.snapshot > snapshot)
        given.snapshot = snapshot;
    bool more = given.since == there.since && given.holder.record == there.holder.record &&
                given.snapshot > there.snapshot; /* of the same line */
    if (given.since <= there.since && !more)
        return ESDM_OK;
    status = esdm__line_is_there(session, &l, &same, err);
    if (status != ESDM_OK || !same)
        return status;
    (void) snprintf(given.branch, sizeof given.branch, "%s", esdm__name_branch(between, NULL));
    return esdm__line_note_behind(session, name, &l, in, &given, given.since, err);
}

/* What a line has in common with one above both, as a branch that it was merged into has it. */
static esdm_status
carry_above(const carried *c, const char *above, esdm_error *err)
{
    esdm__shared own, given;
    bool same = false;
    esdm__line l;
    esdm_status status = esdm__line_shared(c->session, c->name, above, &own, err);
    if (status == ESDM_OK)
        status = esdm__line_given(c->session, c->name, above, &given, err);
    if (status == ESDM_OK)
        status = is_same(c, &same, err);
    if (status != ESDM_OK || !same)
        return status;
    bool has_own = own.is_own && own.snapshot <= c->snapshot;
    bool has_given = given.snapshot != 0 && given.since <= c->snapshot;
    if (has_own && (!has_given || own.since >= given.since)) {
        status = esdm__line_find(c->session, c->to, &l, err);
        return status == ESDM_OK
                   ? esdm__line_note_behind(c->session, c->to, &l, above, &own, c->since, err)
                   : status;
    }
    return has_given
               ? esdm__line_note_given(c->session, c->to, above, given.snapshot, c->since, err)
               : ESDM_OK;
}

/* Whether the line has no newer snapshot: what was merged into it is in it, as tags come after
 * their commits. */
static bool
is_newest(const carried *c)
{
    esdm_meta_container record;
    esdm_error ignored;
    return c->session->meta->container_find(c->session->store, c->name, &record, &ignored) ==
               ESDM_OK &&
           record.container == c->record && record.snapshot == c->snapshot;
}

/* Of lines that the branch began with. */
static esdm_status
carry_down(const char *other, void *user, esdm_error *err)
{
    const carried *c = user;
    esdm__shared own;
    uint64_t above = 0, above_both = 0;
    if (strcmp(other, c->name) == 0 || strcmp(other, c->to) == 0)
        return ESDM_OK;
    esdm_status status = esdm__line_fork(c->session, c->to, other, &above, err);
    if (status == ESDM_OK && above != 0)
        status = esdm__line_fork(c->session, c->name, other, &above_both, err);
    if (status != ESDM_OK || above == 0)
        return status;
    if (above_both != 0)
        return carry_above(c, other, err);
    status = esdm__line_shared(c->session, other, c->name, &own, err);
    return status == ESDM_OK && own.is_own && is_newest(c)
               ? esdm__line_note_given(c->session, c->to, other, own.snapshot, c->since, err)
               : status;
}

/* Of branches that began with the branch: what of them was in the line comes back. */
static esdm_status
carry_below(const carried *c, uint64_t record, esdm_error *err)
{
    char other[ESDM_CONTAINER_NAME_MAX + 1];
    esdm__shared own;
    esdm__tag_texts all;
    esdm_status status = esdm__tag_texts_load(c->session, record, ESDM__BRANCH_TAG, &all, err);
    for (size_t i = 0; i < all.count && status == ESDM_OK; i++) {
        esdm__line_beside(c->to, all.items[i].rest, other);
        status = esdm__line_shared(c->session, other, c->name, &own, err);
        if (status == ESDM_OK && own.is_own && is_newest(c))
            status = raise_own(c->session, other, c->to, own.snapshot, err);
    }
    esdm__tag_texts_clear(&all);
    return status;
}

esdm_status
esdm__line_caught_up(esdm_session *session, const char *line, uint64_t snapshot, const char *in,
                     uint64_t record, uint64_t since, esdm_error *err)
{
    const carried c = {session, in, record, snapshot, line, since};
    esdm__line l;
    esdm__tag_wanted parent = {.name = ESDM__PARENT_TAG, .begins = true};
    esdm_status status = esdm__line_find(session, line, &l, err);
    if (status == ESDM_OK && l.record != 0)
        status = carry_below(&c, l.record, err);
    if (status == ESDM_OK && l.record != 0)
        status = esdm__tag_look(session, l.record, &parent, err);
    if (status == ESDM_OK && parent.snapshot != 0)
        status = for_others(&c, carry_down, err);
    bool same = false;
    if (status == ESDM_OK)
        status = is_same(&c, &same, err);
    return status == ESDM_OK && same
               ? esdm__line_note_given(session, line, in, snapshot, since, err)
               : status;
}
