/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "api/adopt.h"
#include "api/branches.h"
#include "api/catalogue.h"
#include "api/digest.h"
#include "api/lines.h"
#include "api/moment.h"
#include "api/renamed.h"
#include "api/seal.h"
#include "api/seen.h"
#include "base/arguments.h"
#include "base/error.h"
#include "io/commit/extents.h"
#include "io/read/coarse.h"
#include "io/session/former.h"
#include "io/session/journaling.h"
#include "io/session/nesting.h"
#include "io/session/session.h"
#include "model/container.h"
#include "query/view.h"
#include "upkeep/shapes.h"
#include "upkeep/upkeep.h"
#include "virtual/virtual.h"

esdm_container_info
esdm__info_of(const char *name, const esdm_meta_container *record)
{
    return (esdm_container_info){
        .name = name,
        .snapshot = record->snapshot,
        .created_ns = record->created_ns,
        .modified_ns = record->modified_ns,
        .raw_bytes = record->raw_bytes,
        .stored_bytes = record->stored_bytes,
        .fragments = record->fragments,
        .datasets = record->datasets,
    };
}

typedef struct list_visitor {
    esdm_container_visitor visit;
    void *user;
    const char *prefix; /* NULL: all of the site */
    bool unfinished;    /* what is not whole yet, and nothing else */
} list_visitor;

static bool
is_passed_by(const list_visitor *v, const char *name)
{
    if (esdm__name_is_shapes(name, NULL))
        return v->prefix == NULL || strcmp(name, v->prefix) != 0;
    if (esdm__name_is_unfinished(name))
        return !v->unfinished && (v->prefix == NULL || strcmp(name, v->prefix) != 0);
    return v->unfinished || (v->prefix == NULL && esdm__name_is_scratch(name));
}

static bool
visit_record(const char *name, const esdm_meta_container *record, void *user)
{
    const list_visitor *v = user;
    if (esdm__name_is_own(name) || is_passed_by(v, name))
        return true;
    const esdm_container_info info = esdm__info_of(name, record);
    return v->visit(&info, v->user);
}

esdm_status
esdm_container_list(esdm_session *session, const char *prefix, esdm_container_visitor visit,
                    void *user, esdm_error *err)
{
    ESDM__NEED(err, session);
    ESDM__NEED(err, visit);
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    if (prefix != NULL) {
        esdm_status status = esdm__name_normalise(prefix, normal, err);
        if (status != ESDM_OK)
            return status;
        prefix = normal;
    }
    bool unfinished = prefix != NULL && strcmp(prefix, ESDM_UNFINISHED_COPY) == 0;
    list_visitor v = {visit, user, prefix, unfinished};
    return session->meta->container_list(session->store, unfinished ? NULL : prefix, visit_record,
                                         &v, err);
}

esdm_status
esdm_container_stat(esdm_session *session, const char *name, esdm_container_info *ret_info,
                    esdm_error *err)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    ESDM__NEED(err, ret_info);
    esdm_meta_container record;
    esdm_status status = esdm__virtual_is_said(name) ? esdm__virtual_normalise(name, normal, err)
                                                     : esdm__name_normalise(name, normal, err);
    if (status == ESDM_OK && esdm__virtual_is_said(normal)) {
        status = esdm__virtual_stat(session, normal, &record, err);
        if (status == ESDM_OK)
            *ret_info = esdm__info_of(NULL, &record);
        return status;
    }
    if (status != ESDM_OK)
        return status;
    esdm__moment moment = {.snapshot = 0};
    status = session->meta->container_find(session->store, normal, &record, err);
    char plain[ESDM_CONTAINER_NAME_MAX + 1];
    if (status == ESDM_ENOENT && esdm__coarse_is_said(normal, plain) != NULL)
        return esdm_container_stat(session, plain, ret_info, err);
    if (status == ESDM_ENOENT && esdm__view_is_said(session->site, normal)) {
        status = esdm__virtual_stat_view(session, normal, &record, err);
        if (status == ESDM_OK)
            *ret_info = esdm__info_of(NULL, &record);
        return status;
    }
    if (status == ESDM_ENOENT && esdm__digest_is_asked(normal, plain))
        return esdm_container_stat(session, plain, ret_info, err);
    if (status == ESDM_ENOENT && esdm__moment_is_said(normal)) {
        status = esdm__moment_find(session, normal, &moment, err);
        if (status == ESDM_OK)
            status = session->meta->container_find(session->store, moment.stored, &record, err);
    }
    if (status == ESDM_OK && moment.snapshot != 0)
        record.snapshot = moment.snapshot;
    if (status == ESDM_OK)
        *ret_info = esdm__info_of(NULL, &record);
    return status;
}

esdm_status
esdm__need_writable(const esdm_session *session, esdm_error *err)
{
    return esdm__session_writes(session) ? ESDM_OK : esdm__session_read_only(session, err);
}

esdm_status
esdm__remove(esdm_session *session, const char *name, bool sealed, esdm_error *err)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    char stored[ESDM__FORMER_NAME_BYTES];
    esdm_meta_container record = {0};
    esdm_error ignored;
    uint64_t removed = 0;
    esdm_status status = esdm__name_normalise(name, normal, err);
    if (status == ESDM_OK)
        status = esdm__need_writable(session, err);
    if (status == ESDM_OK && !sealed)
        status = esdm__sealed_check(session, normal, err);
    if (status != ESDM_OK)
        return status;
    if (esdm__name_branch(normal, NULL) != NULL)
        (void) session->meta->container_find(session->store, normal, &record, &ignored);
    const char *former = esdm__former_name(session, normal, true, stored);
    if (former != NULL)
        status = esdm__named_move(session, normal, former, false, NULL, NULL, &removed, err);
    else
        status = esdm__named_remove(session, normal, &removed, err);
    if (status == ESDM_OK) {
        esdm__shapes_follow(session, normal, NULL);
        if (record.container != 0)
            esdm__line_gone(session, normal, record.container);
        esdm__session_replaced(session);
    }
    return status;
}

esdm_status
esdm_container_remove(esdm_session *session, const char *name, esdm_error *err)
{
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    return esdm__remove(session, name, false, err);
}

/* @param seen NULL: whatever `to` is. @param dry only tells whether it would be refused. */
static esdm_status
move(esdm_session *session, const char *from, const char *to, bool replace, esdm__seen *seen,
     bool dry, esdm_error *err)
{
    char normal_from[ESDM_CONTAINER_NAME_MAX + 1];
    char normal_to[ESDM_CONTAINER_NAME_MAX + 1];
    char stored[ESDM__FORMER_NAME_BYTES];
    ESDM__NEED(err, session);
    ESDM__NEED(err, from);
    ESDM__NEED(err, to);
    uint64_t replaced = 0;
    esdm_status status = esdm__name_normalise(from, normal_from, err);
    if (status == ESDM_OK)
        status = esdm__name_normalise(to, normal_to, err);
    if (status == ESDM_OK && esdm__virtual_is_said(normal_to))
        status = esdm__error_set(err, ESDM_EACCES,
                                 "'%s' is a query, which nobody can write to: name a container",
                                 normal_to);
    if (status == ESDM_OK && esdm__view_is_said(session->site, normal_to))
        status = esdm__view_refuse(normal_to, err);
    if (status == ESDM_OK)
        status = esdm__need_writable(session, err);
    if (status == ESDM_OK && strcmp(normal_from, normal_to) != 0)
        status = esdm__nesting_check(session, normal_to, err);
    if (status == ESDM_OK)
        status = esdm__branch_check_move(normal_from, normal_to, err);
    if (status == ESDM_OK && esdm_container_name_is_intermediate(normal_from))
        status = esdm__branch_check_name(session, normal_to, err);
    if (status == ESDM_OK)
        status = esdm__moment_check_new(session, normal_to, err);
    esdm_meta_seen expected;
    bool expects = false;
    if (status == ESDM_OK && seen != NULL) {
        esdm__seen_find(session, normal_from, normal_to, seen);
        status = esdm__seen_check(session, normal_from, normal_to, seen, &expected, &expects, err);
    }
    if (dry)
        return status;
    if (status == ESDM_OK && replace && esdm_container_name_is_intermediate(normal_from)) {
        bool adopted = false;
        status = esdm__branch_adopt(session, normal_from, normal_to, expects ? &expected : NULL,
                                    &adopted, err);
        if (status == ESDM_OK && adopted) {
            esdm__drain_later(session, normal_to);
            return esdm_container_erase(session, normal_from, err);
        }
        if (status == ESDM_ECONFLICT && expects) /* as below */
            (void) !esdm__seen_check(session, normal_from, normal_to, seen, &expected, &expects,
                                     err);
    }
    if (status == ESDM_OK && strcmp(normal_from, normal_to) != 0)
        status =
            esdm__named_move(session, normal_from, normal_to, replace,
                             replace ? esdm__former_name(session, normal_to, false, stored) : NULL,
                             expects ? &expected : NULL, &replaced, err);
    if (status == ESDM_ECONFLICT && expects) /* others came in between: it says what they did */
        (void) !esdm__seen_check(session, normal_from, normal_to, seen, &expected, &expects, err);
    if (status == ESDM_OK && seen != NULL && esdm_container_name_is_intermediate(normal_from))
        esdm__seen_forget(session, normal_to);
    bool rejoined = false;
    esdm_error why = {0};
    if (status == ESDM_ENOENT && strcmp(normal_from, normal_to) != 0) {
        esdm_status more = esdm__branches_rejoin(session, normal_from, normal_to, &rejoined, &why);
        if (rejoined && more != ESDM_OK && err != NULL)
            *err = why;
        if (rejoined)
            return more;
    }
    if (status == ESDM_OK && replaced != 0)
        esdm__session_replaced(session);
    if (status == ESDM_OK && strcmp(normal_from, normal_to) != 0 && seen == NULL)
        esdm__renamed_note(session, normal_from, normal_to);
    if (status == ESDM_OK && strcmp(normal_from, normal_to) != 0) {
        esdm__drain_later(session, normal_to); /* it waits under the name that it had */
        esdm__extents_mark(session, normal_to);
        esdm__shapes_follow(session, normal_from, normal_to);
        status = esdm__branches_follow(session, normal_from, normal_to, err);
    }
    return status;
}

esdm_status
esdm_container_move(esdm_session *session, const char *from, const char *to, bool replace,
                    esdm_error *err)
{
    return move(session, from, to, replace, NULL, false, err);
}

static esdm_status
move_seen(esdm_session *session, const char *from, const char *to, const char *uuid,
          uint64_t snapshot, bool dry, esdm_error *err)
{
    esdm__seen seen = {.snapshot = snapshot};
    ESDM__NEED(err, session);
    ESDM__NEED(err, from);
    ESDM__NEED(err, to);
    if (uuid != NULL && strspn(uuid, "0123456789abcdef") != sizeof seen.uuid - 1)
        return esdm__error_set(err, ESDM_EINVAL, "'%.40s' is no uuid of a container", uuid);
    if (uuid != NULL)
        memcpy(seen.uuid, uuid, sizeof seen.uuid);
    return move(session, from, to, true, &seen, dry, err);
}

esdm_status
esdm_container_move_seen(esdm_session *session, const char *from, const char *to, const char *uuid,
                         uint64_t snapshot, esdm_error *err)
{
    return move_seen(session, from, to, uuid, snapshot, false, err);
}

esdm_status
esdm_container_check_seen(esdm_session *session, const char *from, const char *to, const char *uuid,
                          uint64_t snapshot, esdm_error *err)
{
    return move_seen(session, from, to, uuid, snapshot, true, err);
}

typedef struct snapshot_visitor {
    esdm_snapshot_visitor visit;
    void *user;
} snapshot_visitor;

static bool
visit_snapshot(uint64_t snapshot, uint64_t parent, uint64_t time_ns, const char *writer,
               const char *message, void *user)
{
    const snapshot_visitor *v = user;
    const esdm_snapshot_info info = {.snapshot = snapshot,
                                     .parent = parent,
                                     .time_ns = time_ns,
                                     .writer = writer != NULL ? writer : "",
                                     .message = message != NULL ? message : ""};
    return v->visit(&info, v->user);
}

esdm_status
esdm_container_snapshots(esdm_session *session, const char *name, esdm_snapshot_visitor visit,
                         void *user, esdm_error *err)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    ESDM__NEED(err, visit);
    esdm_status status = esdm__name_normalise(name, normal, err);
    if (status != ESDM_OK)
        return status;
    snapshot_visitor v = {visit, user};
    esdm_error why = {0};
    status = session->meta->snapshot_list(session->store, normal, visit_snapshot, &v, &why);
    if (status == ESDM_ENOENT && esdm__moment_is_said(normal)) {
        esdm__moment moment;
        status = esdm__moment_find(session, normal, &moment, &why);
        if (status == ESDM_OK)
            status = session->meta->snapshot_list(session->store, moment.stored, visit_snapshot, &v,
                                                  &why);
    }
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}
