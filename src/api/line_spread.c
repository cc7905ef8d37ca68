/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file After a merge: what the merged line has of others is noted as part of the line that it
 * came into, and so is what lines between the two began with. */

#include <stdio.h>
#include <string.h>

#include "api/line_parts.h"
#include "api/line_tags.h"
#include "api/line_vector.h"
#include "base/error.h"

/* What is done with each line of a container. */
typedef struct each {
    esdm_session *session;
    const char *name;
    const char *in;
} each;

/* A line that is, up to a snapshot, in another one now. */
typedef struct spread {
    const char *name;
    uint64_t record;
    uint64_t snapshot;
    const char *in;
    bool newest; /* the snapshot is its newest one: it has all that was merged into it */
} spread;

/* Whether it has that snapshot, and no newer one. */
static esdm_status
is_newest(esdm_session *session, const char *name, uint64_t record, uint64_t snapshot, bool *ret,
          esdm_error *err)
{
    esdm_meta_container now = {0};
    esdm_error why = {0};
    esdm_status status = session->meta->container_find(session->store, name, &now, &why);
    *ret = status == ESDM_OK && now.container == record && now.snapshot == snapshot;
    if (status == ESDM_OK || status == ESDM_ENOENT)
        return ESDM_OK;
    return esdm__error_set(err, status, "%s", why.message);
}

/* So is what it has of a branch. */
static esdm_status
spread_to(esdm_session *session, const spread *s, const char *name, esdm_error *err)
{
    esdm__shared has, there;
    esdm__line l, other;
    uint64_t from = 0;
    char parent[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_status status = esdm__line_find(session, name, &l, err);
    if (status == ESDM_OK)
        status = esdm__line_shared(session, name, s->name, &has, err);
    if (status == ESDM_OK && has.related)
        status = esdm__line_shared(session, name, s->in, &there, err);
    if (status != ESDM_OK || !has.related || !there.related || has.snapshot == 0)
        return status;
    status = esdm__line_parent(session, name, parent, &from, NULL, err);
    if (status == ESDM_OK)
        status = esdm__line_find(session, s->name, &other, err);
    if (status != ESDM_OK || other.record != s->record) /* what was read may be of another one */
        return status;
    bool direct = strcmp(parent, s->name) == 0;
    bool newest = s->newest;
    uint64_t fork = direct ? from : has.is_fork ? has.snapshot : 0;
    if (newest) { /* what was merged meanwhile is not in it: a commit comes before its tag */
        status = is_newest(session, s->name, s->record, s->snapshot, &newest, err);
        if (status != ESDM_OK)
            return status;
    }
    if (!newest && fork == 0) /* when it came into the line is not known */
        return ESDM_OK;
    if (!newest && fork > s->snapshot) {
        has = (esdm__shared){.holder = other, .snapshot = s->snapshot};
        (void) snprintf(has.branch, sizeof has.branch, "%s", esdm__name_branch(s->name, NULL));
    } else if (!newest && direct) {
        has = (esdm__shared){.holder = l, .snapshot = from, .is_own = true};
    }
    if (has.since < from)
        has.since = from;
    if (has.snapshot <= there.snapshot || has.since < there.since)
        return ESDM_OK;
    bool same = false; /* else another one of its name was looked at */
    status = esdm__line_is_there(session, &l, &same, err);
    if (status != ESDM_OK || !same)
        return status;
    return has.is_own ? esdm__line_note_own(session, name, &l, s->in, has.snapshot, err)
                      : esdm__line_note_behind(session, name, &l, s->in, &has, has.since, err);
}

/* To the branches that began with it, directly or not: its tags name them. */
static esdm_status
spread_to_all(esdm_session *session, const spread *s, uint64_t record, esdm_error *err)
{
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    esdm__tag_texts all;
    esdm_status status = esdm__tag_texts_load(session, record, ESDM__BRANCH_TAG, &all, err);
    for (size_t i = 0; i < all.count && status == ESDM_OK; i++) {
        esdm__line_beside(s->name, all.items[i].rest, name);
        status = spread_to(session, s, name, err);
        if (status == ESDM_OK)
            status = esdm__line_spread_given(session, s->name, s->snapshot, name, s->in, err);
    }
    esdm__tag_texts_clear(&all);
    return status;
}

/* Of a line between the branch and the one that has it now: up to where the branch began. */
static esdm_status
spread_from(esdm_session *session, const char *between, const char *name, const char *in,
            esdm_error *err)
{
    esdm__tag_name began;
    esdm__shared there;
    esdm__line l;
    esdm__line_tag_began(name, began);
    esdm__tag_wanted w = {.name = began};
    esdm_status status = esdm__line_find(session, between, &l, err);
    if (status == ESDM_OK && l.record != 0)
        status = esdm__tag_look(session, l.record, &w, err);
    if (status != ESDM_OK || w.snapshot == 0)
        return status;
    status = esdm__line_shared(session, between, in, &there, err);
    if (status != ESDM_OK || !there.related)
        return status;
    const spread s = {.name = between, .record = l.record, .snapshot = w.snapshot, .in = in};
    bool same = false;
    status = esdm__line_is_there(session, &l, &same, err);
    if (status != ESDM_OK || !same)
        return status;
    if (w.snapshot > there.snapshot)
        status = esdm__line_note_own(session, between, &l, in, w.snapshot, err);
    return status == ESDM_OK ? spread_to_all(session, &s, l.record, err) : status;
}

static esdm_status
spread_by(const char *between, void *user, esdm_error *err)
{
    const each *e = user;
    return strcmp(between, e->in) == 0 || strcmp(between, e->name) == 0
               ? ESDM_OK
               : spread_from(e->session, between, e->name, e->in, err);
}

esdm_status
esdm__line_merged(esdm_session *session, const char *name, uint64_t record, uint64_t snapshot,
                  const char *in, uint64_t since, esdm_error *err)
{
    char base[ESDM_CONTAINER_NAME_MAX + 1];
    esdm__line l;
    bool newest = false;
    esdm__tag_wanted parent = {.name = ESDM__PARENT_TAG, .begins = true};
    esdm_status status = esdm__line_find(session, name, &l, err);
    if (status == ESDM_OK)
        status = is_newest(session, name, record, snapshot, &newest, err);
    if (status != ESDM_OK || l.record != record)
        return status;
    const spread s = {
        .name = name, .record = record, .snapshot = snapshot, .in = in, .newest = newest};
    each e = {.session = session, .name = name, .in = in};
    esdm__line_base(name, base);
    status = spread_to_all(session, &s, record, err);
    if (status == ESDM_OK)
        status = esdm__tag_look(session, record, &parent, err);
    if (status == ESDM_OK && parent.snapshot != 0)
        status = esdm__branch_names(session, base, spread_by, &e, err);
    if (status == ESDM_OK && parent.snapshot != 0)
        status = esdm__line_carry_up(session, name, record, snapshot, in, since, err);
    return status == ESDM_OK ? esdm__line_note_own(session, name, &l, in, snapshot, err) : status;
}
