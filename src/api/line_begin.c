/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Branches that are being made: what they begin with is kept before they are there. */

#include <stdio.h>
#include <string.h>

#include "api/line_parts.h"
#include "api/line_tags.h"
#include "base/error.h"
#include "base/ids.h"

/* Who is that long between the two steps was interrupted. */
#define LONG_NS (UINT64_C(3600) * 1000000000)

static void
tag_begin(const char *uuid, esdm__tag_name tag)
{
    (void) snprintf(tag, sizeof(esdm__tag_name), ESDM__BEGIN_TAG "%s", uuid);
}

esdm_status
esdm__line_prepare(esdm_session *session, const char *parent, const char *uuid, uint64_t snapshot,
                   esdm_error *err)
{
    esdm__tag_name tag;
    esdm__line l;
    tag_begin(uuid, tag);
    esdm_status status = esdm__line_find(session, parent, &l, err);
    return status == ESDM_OK ? esdm__line_tag_need(session, &l, tag, snapshot, NULL, err) : status;
}

void
esdm__line_prepared(esdm_session *session, const char *parent, const char *uuid)
{
    esdm__tag_name tag;
    esdm__line l;
    esdm_error ignored;
    tag_begin(uuid, tag);
    if (esdm__line_find(session, parent, &l, &ignored) == ESDM_OK)
        esdm__line_tag_take(session, &l, tag);
}

/* ---- interrupted ---------------------------------------------------------------------------- */

typedef struct settling {
    esdm_session *session;
    const char *name;
    esdm_meta_container record;
    bool looks; /* and notes nothing */
    bool found;
    uint64_t snapshot;
    char *parent; /* room for a name */
} settling;

/* If the branch began with this one, and that is not noted yet. */
static esdm_status
settle_with(const char *parent, void *user, esdm_error *err)
{
    settling *s = user;
    esdm__tag_name tag, began;
    esdm__line l;
    esdm__tag_wanted w = {.name = tag};
    tag_begin(s->record.uuid, tag);
    if (s->found || strcmp(parent, s->name) == 0)
        return ESDM_OK;
    esdm_status status = esdm__line_find(s->session, parent, &l, err);
    if (status == ESDM_OK && l.record != 0)
        status = esdm__tag_look(s->session, l.record, &w, err);
    if (status != ESDM_OK || w.snapshot == 0)
        return status;
    s->found = true;
    s->snapshot = w.snapshot;
    if (s->looks) {
        (void) snprintf(s->parent, ESDM_CONTAINER_NAME_MAX + 1, "%s", parent);
        return ESDM_OK;
    }
    esdm__line_tag_began(s->name, began);
    status = esdm__line_tag_set(s->session, &l, began, w.snapshot, NULL, err);
    if (status == ESDM_OK)
        status =
            esdm__line_begin(s->session, parent, s->name, s->record.container, w.snapshot, err);
    if (status == ESDM_OK)
        esdm__line_tag_take(s->session, &l, tag);
    return status;
}

esdm_status
esdm__line_settle(esdm_session *session, const char *name, esdm_error *err)
{
    char parent[ESDM_CONTAINER_NAME_MAX + 1];
    settling s = {.session = session, .name = name};
    esdm_error why = {0};
    esdm__tag_wanted merged = {.name = ESDM__MERGED_TAG, .begins = true};
    if (session->meta->tag_list == NULL)
        return ESDM_OK;
    esdm_status status = esdm__line_merge_settle(session, name, err);
    if (status != ESDM_OK || esdm__name_branch(name, NULL) == NULL)
        return status;
    status = session->meta->container_find(session->store, name, &s.record, &why);
    if (status == ESDM_ENOENT)
        return ESDM_OK; /* whoever asks will say so */
    if (status != ESDM_OK && err != NULL)
        *err = why;
    if (status == ESDM_OK)
        status = esdm__line_parent(session, name, parent, NULL, NULL, err);
    if (status == ESDM_OK)
        status = settle_with(parent, &s, err);
    if (status == ESDM_OK && !s.found)
        status = esdm__tag_look(session, s.record.container, &merged, err);
    if (status != ESDM_OK || s.found || merged.snapshot != 0)
        return status;
    esdm__line_base(name, parent); /* nothing at all is noted */
    return esdm__branch_names(session, parent, settle_with, &s, err);
}

esdm_status
esdm__line_begun(esdm_session *session, const char *name,
                 char ret_parent[ESDM_CONTAINER_NAME_MAX + 1], uint64_t *ret_from, esdm_error *err)
{
    char base[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_error why = {0};
    settling s = {.session = session, .name = name, .looks = true, .parent = ret_parent};
    esdm_status status = session->meta->container_find(session->store, name, &s.record, &why);
    if (status != ESDM_OK)
        return status == ESDM_ENOENT ? ESDM_OK : esdm__error_set(err, status, "%s", why.message);
    esdm__line_base(name, base);
    status = settle_with(base, &s, err);
    if (status == ESDM_OK && !s.found)
        status = esdm__branch_names(session, base, settle_with, &s, err);
    *ret_from = s.snapshot;
    return status;
}

/* ---- left over ------------------------------------------------------------------------------ */

typedef struct search {
    esdm_session *session;
    const char *uuid;
    bool found;
} search;

static esdm_status
note_uuid(const char *name, void *user, esdm_error *err)
{
    search *s = user;
    esdm_meta_container record;
    if (s->session->meta->container_find(s->session->store, name, &record, err) == ESDM_OK)
        s->found = s->found || strcmp(record.uuid, s->uuid) == 0;
    return ESDM_OK;
}

void
esdm__line_sweep(esdm_session *session, const char *parent)
{
    char base[ESDM_CONTAINER_NAME_MAX + 1];
    esdm__line l;
    esdm__tag_texts all;
    esdm_error ignored;
    uint64_t now_ns = esdm__now_ns();
    if (esdm__line_find(session, parent, &l, &ignored) != ESDM_OK || l.record == 0)
        return;
    esdm__line_base(parent, base);
    esdm_status status = esdm__tag_texts_load(session, l.record, ESDM__BEGIN_TAG, &all, &ignored);
    for (size_t i = 0; i < all.count && status == ESDM_OK; i++) {
        search s = {.session = session, .uuid = all.items[i].rest};
        if (all.items[i].created_ns + LONG_NS > now_ns)
            continue;
        status = esdm__branch_names(session, base, note_uuid, &s, &ignored);
        if (status == ESDM_OK && !s.found)
            esdm__line_prepared(session, parent, all.items[i].rest);
    }
    esdm__tag_texts_clear(&all);
    esdm__line_merge_sweep(session, parent);
}
