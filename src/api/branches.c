/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Branches: made, listed, removed, and renamed with their container. */

#include "api/branches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/catalogue.h"
#include "api/line_parts.h"
#include "api/line_tags.h"
#include "api/lines.h"
#include "api/seen.h"
#include "api/tags.h"
#include "base/arguments.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/ids.h"
#include "io/commit/clone.h"
#include "io/io.h"
#include "io/session/journaling.h"
#include "io/session/nesting.h"
#include "virtual/virtual.h"

/* ---- names --------------------------------------------------------------------------------- */

static void
tag_of(const char *branch, char tag[ESDM__BRANCH_TAG_BYTES])
{
    (void) snprintf(tag, ESDM__BRANCH_TAG_BYTES, ESDM__BRANCH_TAG "%s", branch);
}

esdm_status
esdm__branch_full_name(const char *base, const char *branch, char full[ESDM_CONTAINER_NAME_MAX + 1],
                       esdm_error *err)
{
    char text[ESDM_CONTAINER_NAME_MAX + sizeof ESDM__BRANCH_MARK + ESDM_BRANCH_MAX];
    size_t bytes = strlen(base);
    esdm_status status = esdm__branch_check(branch, err);
    if (status != ESDM_OK)
        return status;
    (void) esdm__name_branch(base, &bytes);
    (void) snprintf(text, sizeof text, "%.*s" ESDM__BRANCH_MARK "%s", (int) bytes, base, branch);
    return esdm__name_normalise(text, full, err);
}

esdm_status
esdm__branch_check_name(esdm_session *session, const char *made, esdm_error *err)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    size_t bytes;
    esdm__name_to_be(made, normal); /* NCO is told before */
    const char *branch = esdm__name_branch(normal, &bytes);
    esdm_meta_container record;
    esdm_error why = {0};
    if (branch == NULL)
        return ESDM_OK;
    esdm_status status = session->meta->container_find(session->store, normal, &record, &why);
    if (status == ESDM_ENOENT)
        return esdm__error_set(err, ESDM_ENOENT,
                               "container '%.*s' has no branch '%s': esdm-branch '%.*s' '%s' makes "
                               "it",
                               (int) bytes, normal, branch, (int) bytes, normal, branch);
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

esdm_status
esdm__branch_check_move(const char *from, const char *to, esdm_error *err)
{
    const char *old = esdm__name_branch(from, NULL);
    const char *new = esdm__name_branch(to, NULL);
    if (new == NULL || (old != NULL && strcmp(old, new) == 0))
        return ESDM_OK;
    if (esdm_container_name_is_intermediate(new) ||
        (old != NULL && esdm_container_name_is_intermediate(old)))
        return ESDM_OK; /* esdm__branch_adopt() */
    return esdm__error_set(err, ESDM_EINVAL,
                           "'%s' is the name of a branch, which '%s' is not: esdm-branch makes one",
                           to, from);
}

/* ---- making -------------------------------------------------------------------------------- */

/* @param normal of a container or of one of its snapshots. @param ret_base name of the container.
 */
static esdm_status
find_base(esdm_session *session, const char *normal, char ret_base[ESDM_CONTAINER_NAME_MAX + 1],
          uint64_t *ret_snapshot, esdm_error *err)
{
    esdm_meta_container record;
    esdm__moment moment = {.snapshot = 0};
    esdm_status status = session->meta->container_find(session->store, normal, &record, err);
    if (status == ESDM_ENOENT && esdm__moment_is_said(normal))
        status = esdm__moment_find(session, normal, &moment, err);
    else
        (void) snprintf(moment.stored, sizeof moment.stored, "%s", normal);
    if (status != ESDM_OK)
        return status;
    if (esdm__name_is_own(moment.stored))
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "'%s' was replaced or removed: esdm-restore brings it back, and "
                               "esdm-cp --reflink makes another container of it",
                               normal);
    (void) snprintf(ret_base, ESDM_CONTAINER_NAME_MAX + 1, "%.*s", ESDM_CONTAINER_NAME_MAX,
                    moment.stored);
    *ret_snapshot = moment.snapshot != 0 ? moment.snapshot : ESDM_SNAPSHOT_LATEST;
    return ESDM_OK;
}

static esdm_status
make_prepared(esdm_container *source, const char *full, const char *branch, const char *uuid,
              uint64_t snapshot, esdm_error *err)
{
    esdm_session *session = source->session;
    char name[ESDM__BRANCH_TAG_BYTES];
    uint64_t base, opened;
    esdm_meta_container made;
    esdm_error why = {0};
    esdm_status status = esdm__io_clone_as(source, full, "branch", uuid, err);
    if (status != ESDM_OK)
        return status;
    esdm__container_position(source, &base, &opened);
    tag_of(branch, name);
    const esdm_meta_tag began = {
        .name = name, .snapshot = snapshot, .author = esdm__session_writer(session)};
    status = esdm__noted_tag(session, source->name, base, &began, true, err);
    if (status != ESDM_OK)
        return esdm__error_prefix(err, status, "'%s' is made, but with what it began is not noted",
                                  full);
    status = session->meta->container_find(session->store, full, &made, &why);
    if (status == ESDM_ENOENT || (status == ESDM_OK && strcmp(made.uuid, uuid) != 0))
        return ESDM_OK; /* somebody has removed it already */
    if (status != ESDM_OK)
        return esdm__error_set(err, status, "%s", why.message);
    return esdm__line_begin(session, source->name, full, made.container, snapshot, err);
}

typedef struct forgetting {
    esdm_session *session;
    const char *gone;
} forgetting;

static esdm_status
forget_in(const char *name, void *user, esdm_error *err)
{
    const forgetting *f = user;
    esdm__line l;
    esdm_status status = esdm__line_find(f->session, name, &l, err);
    return status == ESDM_OK && l.record != 0 ? esdm__line_forget_of(f->session, &l, f->gone, err)
                                              : status;
}

/* Lines may tell of a branch of that name which was removed: what they have of it, or it of them,
 * is not in the new one. */
static esdm_status
forget_former(esdm_session *session, const char *full, esdm_error *err)
{
    char base[ESDM_CONTAINER_NAME_MAX + 1];
    forgetting f = {session, full};
    esdm__line_base(full, base);
    esdm_status status = forget_in(base, &f, err);
    return status == ESDM_OK ? esdm__branch_names(session, base, forget_in, &f, err) : status;
}

/* The snapshot is kept on both sides. Its own container keeps it before the clone is there: what is
 * interrupted leaves a branch that can be merged, or one snapshot more than is needed for a while.
 */
static esdm_status
make(esdm_container *source, const char *full, const char *branch, uint64_t *ret_snapshot,
     esdm_error *err)
{
    esdm_session *session = source->session;
    uint64_t base, snapshot;
    char uuid[ESDM__UUID_BYTES];
    esdm_meta_container there;
    esdm_error ignored;
    if (session->meta->container_find(session->store, full, &there, &ignored) == ESDM_OK)
        return esdm__error_set(err, ESDM_EEXIST, "container '%s' exists", full);
    esdm__container_position(source, &base, &snapshot);
    esdm__uuid_new(uuid);
    esdm__line_sweep(session, source->name);
    esdm_status status = forget_former(session, full, err);
    if (status == ESDM_OK)
        status = esdm__line_prepare(session, source->name, uuid, snapshot, err);
    if (status != ESDM_OK)
        return status;
    status = make_prepared(source, full, branch, uuid, snapshot, err);
    if (status == ESDM_OK && ret_snapshot != NULL)
        *ret_snapshot = snapshot;
    /* It may have been made all the same, when the answer was lost. */
    if (status == ESDM_OK || status == ESDM_EEXIST)
        esdm__line_prepared(session, source->name, uuid);
    return status;
}

static esdm_status
check_site(const esdm_session *session, esdm_error *err)
{
    esdm_status status = esdm__need_writable(session, err);
    if (status != ESDM_OK)
        return status;
    return session->meta->clone != NULL && session->meta->tag_set != NULL
               ? ESDM_OK
               : esdm__error_set(err, ESDM_ENOTSUP,
                                 "the metadata store of site '%s' makes no clones: its plug-in was "
                                 "built for an older ESDM",
                                 session->site->name);
}

/* A virtual container has no fragments that could be shared. */
static esdm_status
check_source(const esdm_container *source, esdm_error *err)
{
    if (!esdm__virtual_is_saved(source))
        return ESDM_OK;
    return esdm__error_set(err, ESDM_ENOTSUP,
                           "'%s' is a virtual container, which has no branches: copy it first "
                           "(esdm-cp)",
                           source->name);
}

esdm_status
esdm_branch_create(esdm_session *session, const char *name, const char *branch,
                   uint64_t *ret_snapshot, esdm_error *err)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1], base[ESDM_CONTAINER_NAME_MAX + 1];
    char full[ESDM_CONTAINER_NAME_MAX + 1];
    uint64_t snapshot = 0;
    esdm_container *source = NULL;
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    ESDM__NEED(err, branch);
    if (esdm__virtual_is_said(name))
        return esdm__error_set(err, ESDM_ENOTSUP, "'%s' is a query, which has no branches", name);
    esdm_status status = esdm__name_normalise(name, normal, err);
    if (status == ESDM_OK)
        status = check_site(session, err);
    if (status == ESDM_OK)
        status = find_base(session, normal, base, &snapshot, err);
    if (status == ESDM_OK)
        status = esdm__branch_full_name(base, branch, full, err);
    if (status == ESDM_OK)
        status = esdm__nesting_check(session, full, err);
    if (status == ESDM_OK)
        status = esdm__line_settle(session, base, err);
    if (status == ESDM_OK)
        status = esdm__io_open(session, base, ESDM_OPEN_READ, snapshot, &source, err);
    if (status != ESDM_OK)
        return status;
    status = check_source(source, err);
    if (status == ESDM_OK)
        status = make(source, full, branch, ret_snapshot, err);
    esdm_container_discard(source);
    return status;
}

/* ---- listing ------------------------------------------------------------------------------- */

typedef struct branches {
    const char *base;
    size_t base_bytes;
    struct {
        char *name; /* owned; of the container */
        esdm_meta_container record;
    } * items; /* owned */
    size_t count;
    bool failed;
} branches;

static bool
note_branch(const char *stored, const esdm_meta_container *record, void *user)
{
    branches *all = user;
    size_t bytes;
    if (esdm__name_branch(stored, &bytes) == NULL || esdm_container_name_is_intermediate(stored) ||
        bytes != all->base_bytes || memcmp(stored, all->base, bytes) != 0)
        return true;
    char *copy = strdup(stored);
    if (copy == NULL || !esdm__array_grow(&all->items, all->count, sizeof *all->items)) {
        free(copy);
        all->failed = true;
        return false;
    }
    all->items[all->count].name = copy;
    all->items[all->count++].record = *record;
    return true;
}

static void
clear_branches(branches *all)
{
    for (size_t i = 0; i < all->count; i++)
        free(all->items[i].name);
    free(all->items);
}

/* All that lies in the folder of the container is looked at. clear_branches(), in any case. */
static esdm_status
load_branches(esdm_session *session, const char *base, branches *all, esdm_error *err)
{
    char folder[ESDM_CONTAINER_NAME_MAX + 1];
    const char *slash = strrchr(base, '/');
    *all = (branches){.base = base, .base_bytes = strlen(base)};
    if (slash != NULL)
        (void) snprintf(folder, sizeof folder, "%.*s", (int) (slash - base), base);
    esdm_status status = session->meta->container_list(
        session->store, slash != NULL ? folder : NULL, note_branch, all, err);
    if (status == ESDM_OK && all->failed)
        status = esdm__error_nomem(err, all->count * sizeof *all->items, "branches");
    return status;
}

esdm_status
esdm__branch_names(esdm_session *session, const char *base,
                   esdm_status (*visit)(const char *name, void *user, esdm_error *err), void *user,
                   esdm_error *err)
{
    branches all;
    esdm_status status = load_branches(session, base, &all, err);
    for (size_t i = 0; i < all.count && status == ESDM_OK; i++)
        status = visit(all.items[i].name, user, err);
    clear_branches(&all);
    return status;
}

static esdm_status
tell(esdm_session *session, const char *full, const esdm_meta_container *record, char *parent,
     esdm_branch_info *ret, esdm_error *err)
{
    uint64_t from = 0, merged = 0;
    esdm_status status = esdm__line_parent(session, full, parent, &from, &merged, err);
    *ret = (esdm_branch_info){.branch = esdm__name_branch(full, NULL),
                              .name = full,
                              .parent = parent,
                              .from = from,
                              .merged = merged != from ? merged : 0,
                              .snapshot = record->snapshot,
                              .created_ns = record->created_ns,
                              .modified_ns = record->modified_ns};
    return status;
}

/* Of a container all, of a branch those that began with it. */
static esdm_status
visit_branches(esdm_session *session, const char *name, const branches *all,
               esdm_branch_visitor visit, void *user, esdm_error *err)
{
    char parent[ESDM_CONTAINER_NAME_MAX + 1];
    bool is_branch = esdm__name_branch(name, NULL) != NULL;
    bool more = true;
    esdm_status status = ESDM_OK;
    esdm_error unsettled;
    if (!session->read_only)
        (void) !esdm__line_settle(session, name, &unsettled);
    for (size_t i = 0; i < all->count && more && status == ESDM_OK; i++) {
        esdm_branch_info info;
        esdm_error ignored;
        if (!session->read_only)
            (void) !esdm__line_settle(session, all->items[i].name, &ignored);
        status = tell(session, all->items[i].name, &all->items[i].record, parent, &info, err);
        if (status == ESDM_OK && (!is_branch || strcmp(parent, name) == 0))
            more = visit(&info, user);
    }
    return status;
}

esdm_status
esdm_branch_list(esdm_session *session, const char *name, esdm_branch_visitor visit, void *user,
                 esdm_error *err)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1], base[ESDM_CONTAINER_NAME_MAX + 1];
    size_t bytes;
    branches all;
    esdm_meta_container record;
    esdm_error why = {0};
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    ESDM__NEED(err, visit);
    esdm_status status = esdm__name_normalise(name, normal, err);
    if (status != ESDM_OK)
        return status;
    status = session->meta->container_find(session->store, normal, &record, &why);
    bool absent = status == ESDM_ENOENT;
    if (status != ESDM_OK && !absent)
        return esdm__error_set(err, status, "%s", why.message);
    bytes = strlen(normal);
    bool is_branch = esdm__name_branch(normal, &bytes) != NULL;
    (void) snprintf(base, sizeof base, "%.*s", (int) bytes, normal);
    status = load_branches(session, base, &all, err);
    if (status == ESDM_OK && absent && (is_branch || all.count == 0))
        status = esdm__error_set(err, ESDM_ENOENT, "container '%s' does not exist", normal);
    if (status == ESDM_OK)
        status = visit_branches(session, normal, &all, visit, user, err);
    clear_branches(&all);
    return status;
}

/* ---- removing and renaming ------------------------------------------------------------------ */

esdm_status
esdm_branch_remove(esdm_session *session, const char *name, const char *branch, esdm_error *err)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1], full[ESDM_CONTAINER_NAME_MAX + 1];
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    ESDM__NEED(err, branch);
    esdm_status status = esdm__name_normalise(name, normal, err);
    if (status == ESDM_OK)
        status = esdm__branch_full_name(normal, branch, full, err);
    if (status == ESDM_OK)
        status = esdm__need_writable(session, err);
    if (status == ESDM_OK)
        status = esdm__branch_check_name(session, full, err);
    return status == ESDM_OK ? esdm_container_remove(session, full, err) : status;
}

static bool
note_tag(const esdm_meta_tag *tag, void *user)
{
    bool own = strncmp(tag->name, ESDM__BRANCH_TAG, sizeof ESDM__BRANCH_TAG - 1) == 0 ||
               strncmp(tag->name, ESDM__BEGIN_TAG, sizeof ESDM__BEGIN_TAG - 1) == 0;
    *(bool *) user = own;
    return !own;
}

/* Asked of the container, as looking for branches takes longer the more lies in its folder. */
static bool
has_branches(esdm_session *session, const char *name)
{
    esdm_meta_container record;
    esdm_error ignored;
    bool has = false;
    return session->meta->tag_list != NULL &&
           session->meta->container_find(session->store, name, &record, &ignored) == ESDM_OK &&
           session->meta->tag_list(session->store, record.container, note_tag, &has, &ignored) ==
               ESDM_OK &&
           has;
}

/* A branch is a container of its own from now on. */
static void
leave(esdm_session *session, const char *from, const char *to)
{
    esdm_meta_container record;
    esdm_error ignored;
    if (session->meta->container_find(session->store, to, &record, &ignored) != ESDM_OK)
        return;
    esdm__line_gone(session, from, record.container);
    esdm__line_forget(session, to);
}

/* A branch that was removed since it was listed is passed by. */
static esdm_status
follow_one(esdm_session *session, const char *name, const char *from, const char *to,
           esdm_error *err)
{
    char full[ESDM_CONTAINER_NAME_MAX + 1];
    uint64_t replaced = 0;
    const char *branch = esdm__name_branch(name, NULL);
    esdm_status status = esdm__branch_full_name(to, branch, full, err);
    esdm_error why = {0};
    if (status == ESDM_OK)
        status = esdm__named_move(session, name, full, false, NULL, NULL, &replaced, &why);
    if (status == ESDM_OK || status == ESDM_ENOENT)
        return ESDM_OK;
    if (err != NULL && why.status != ESDM_OK)
        *err = why;
    return esdm__error_prefix(err, status, "'%s' is called '%s' now, but its branch '%s' is not",
                              from, to, branch);
}

esdm_status
esdm__branches_follow(esdm_session *session, const char *from, const char *to, esdm_error *err)
{
    branches all;
    if (esdm__name_branch(to, NULL) == NULL && esdm__name_branch(from, NULL) != NULL)
        leave(session, from, to);
    if (esdm__name_branch(to, NULL) != NULL || !has_branches(session, to))
        return ESDM_OK;
    esdm_status status = load_branches(session, from, &all, err);
    for (size_t i = 0; i < all.count && status == ESDM_OK; i++)
        status = follow_one(session, all.items[i].name, from, to, err);
    clear_branches(&all);
    return status;
}

typedef struct sharing {
    const char *uuid;
    bool found;
} sharing;

static bool
note_shared(const char *uuid, uint64_t container, void *user)
{
    sharing *s = user;
    (void) container;
    s->found = s->found || strcmp(uuid, s->uuid) == 0;
    return !s->found;
}

esdm_status
esdm__branch_shares(esdm_session *session, uint64_t record, const char *uuid, bool *ret_shares,
                    esdm_error *err)
{
    sharing s = {.uuid = uuid};
    esdm_status status = session->meta->shared_list(session->store, record, note_shared, &s, err);
    *ret_shares = s.found;
    return status;
}

esdm_status
esdm__branches_rejoin(esdm_session *session, const char *from, const char *to, bool *ret_any,
                      esdm_error *err)
{
    branches all;
    esdm_meta_container record;
    esdm_error ignored;
    *ret_any = false;
    if (esdm__name_branch(from, NULL) != NULL || esdm__name_branch(to, NULL) != NULL ||
        session->meta->container_find(session->store, to, &record, &ignored) != ESDM_OK ||
        !has_branches(session, to))
        return ESDM_OK;
    esdm_status status = load_branches(session, from, &all, err);
    for (size_t i = 0; i < all.count && status == ESDM_OK; i++) {
        char tag[ESDM__BRANCH_TAG_BYTES];
        tag_of(esdm__name_branch(all.items[i].name, NULL), tag);
        esdm__tagged began = {.name = tag};
        status = esdm__tag_find(session, record.container, &began, err);
        if (status != ESDM_OK || began.snapshot == 0)
            continue;
        bool is_branch = false;
        esdm_meta_container branch;
        esdm_error why = {0};
        status = session->meta->container_find(session->store, all.items[i].name, &branch, &why);
        if (status == ESDM_ENOENT) { /* it was removed since it was listed */
            status = ESDM_OK;
            continue;
        }
        if (status == ESDM_OK)
            status = esdm__branch_shares(session, branch.container, record.uuid, &is_branch, err);
        else if (err != NULL)
            *err = why;
        if (status != ESDM_OK || !is_branch)
            continue;
        status = follow_one(session, all.items[i].name, from, to, err);
        *ret_any = *ret_any || status == ESDM_OK;
    }
    clear_branches(&all);
    return status;
}
