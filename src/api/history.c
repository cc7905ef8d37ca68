/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Names of snapshots. */

#include "esdm/history.h"

#include <stdio.h>
#include <string.h>

#include "api/catalogue.h"
#include "api/moment.h"
#include "api/tags.h"
#include "base/arguments.h"
#include "base/error.h"
#include "io/session/journaling.h"
#include "model/names.h"

static esdm_status
check_tag(const char *tag, esdm_error *err)
{
    return esdm__tag_is_valid(tag)
               ? ESDM_OK
               : esdm__error_set(err, ESDM_EINVAL,
                                 "'%s' cannot be a tag: it has 1 to %d bytes of UTF-8, and no "
                                 "'/', '@', '?', ':', blanks or control characters",
                                 tag, ESDM_TAG_MAX);
}

static esdm_status
check_store(const esdm_session *session, esdm_error *err)
{
    return session->meta->tag_set != NULL
               ? ESDM_OK
               : esdm__error_set(err, ESDM_ENOTSUP,
                                 "the metadata store of site '%s' knows no tags: its plug-in was "
                                 "built for an older ESDM",
                                 session->site->name);
}

esdm_status
esdm__tag_place(esdm_session *session, const char *name, char ret_stored[ESDM__FORMER_NAME_BYTES],
                uint64_t *ret_record, uint64_t *ret_snapshot, esdm_error *err)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_meta_container record;
    esdm_status status = esdm__name_normalise(name, normal, err);
    if (status != ESDM_OK)
        return status;
    status = session->meta->container_find(session->store, normal, &record, err);
    *ret_snapshot = record.snapshot;
    (void) snprintf(ret_stored, ESDM__FORMER_NAME_BYTES, "%s", normal);
    if (status == ESDM_ENOENT && esdm__moment_is_said(normal)) {
        esdm__moment moment;
        status = esdm__moment_find(session, normal, &moment, err);
        if (status == ESDM_OK)
            status = session->meta->container_find(session->store, moment.stored, &record, err);
        *ret_snapshot = moment.snapshot;
        memcpy(ret_stored, moment.stored, sizeof moment.stored);
    }
    if (status == ESDM_OK)
        *ret_record = record.container;
    return status;
}

/* ---- setting and removing ------------------------------------------------------------------ */

/* How often a newest snapshot that is not kept any more is looked up again. */
#define ATTEMPTS 1000

/* Others may commit between the two steps, more often than the site keeps snapshots. */
esdm_status
esdm__tag_newest(esdm_session *session, const char *name, const esdm_meta_tag *tag, bool replace,
                 uint64_t *ret_record, uint64_t *ret_snapshot, esdm_error *err)
{
    char stored[ESDM__FORMER_NAME_BYTES];
    uint64_t record = 0, snapshot = 0;
    esdm_status status = ESDM_ENOENT;
    for (int i = 0; i < ATTEMPTS && status == ESDM_ENOENT; i++) {
        uint64_t before_record = record, before = snapshot;
        status = esdm__tag_place(session, name, stored, &record, &snapshot, err);
        if (status != ESDM_OK)
            return status;
        esdm_meta_tag wanted = *tag;
        wanted.snapshot = snapshot;
        status = esdm__noted_tag(session, stored, record, &wanted, replace, err);
        if (record == before_record && snapshot == before)
            break;
    }
    if (ret_record != NULL)
        *ret_record = record;
    if (ret_snapshot != NULL)
        *ret_snapshot = snapshot;
    return status;
}

/* A tag of another container that had, or has, the name: readers of NAME@tag:TAG would be given
 * something else without a word. */
static esdm_status
check_not_hidden(esdm_session *session, const char *name, const char *tag, esdm_error *err)
{
    char stored[ESDM__FORMER_NAME_BYTES], told[ESDM__FORMER_NAME_BYTES];
    esdm__former former;
    esdm__moment there;
    uint64_t record = 0, snapshot = 0, tagged = 0;
    esdm_status status = esdm__tag_place(session, name, stored, &record, &snapshot, err);
    if (status != ESDM_OK)
        return status;
    const char *base = esdm__former_parse(stored, &former) ? former.name : stored;
    status = esdm__moment_find_tag(session, base, tag, &there, &tagged, err);
    if (status == ESDM_ENOENT || (status == ESDM_OK && tagged == record))
        return ESDM_OK;
    if (status != ESDM_OK)
        return status;
    esdm__former_tell(there.stored, told, sizeof told);
    return esdm__error_set(err, ESDM_EEXIST,
                           "container '%s' has the tag '%s' at snapshot %llu, which '%s@tag:%s' "
                           "would not find any more",
                           told, tag, (unsigned long long) there.snapshot, base, tag);
}

static esdm_status
set_tag(esdm_session *session, const char *name, const char *tag, bool replace,
        uint64_t *ret_snapshot, esdm_error *err)
{
    uint64_t record = 0, snapshot = 0;
    esdm__tagged there = {.name = tag};
    const esdm_meta_tag wanted = {.name = tag, .author = esdm__session_writer(session)};
    esdm_status status = replace ? ESDM_OK : check_not_hidden(session, name, tag, err);
    if (status != ESDM_OK)
        return status;
    status = esdm__tag_newest(session, name, &wanted, replace, &record, &snapshot, err);
    if (status == ESDM_EEXIST && esdm__tag_find(session, record, &there, NULL) == ESDM_OK &&
        there.snapshot != 0)
        status = there.snapshot == snapshot
                     ? ESDM_OK
                     : esdm__error_set(err, ESDM_EEXIST,
                                       "container '%s' has the tag '%s' at snapshot %llu", name,
                                       tag, (unsigned long long) there.snapshot);
    if (status == ESDM_OK && ret_snapshot != NULL)
        *ret_snapshot = snapshot;
    return status;
}

esdm_status
esdm_container_tag(esdm_session *session, const char *name, const char *tag, bool replace,
                   uint64_t *ret_snapshot, esdm_error *err)
{
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    ESDM__NEED(err, tag);
    esdm_status status = check_tag(tag, err);
    if (status == ESDM_OK)
        status = check_store(session, err);
    if (status == ESDM_OK)
        status = esdm__need_writable(session, err);
    return status == ESDM_OK ? set_tag(session, name, tag, replace, ret_snapshot, err) : status;
}

esdm_status
esdm_container_untag(esdm_session *session, const char *name, const char *tag, esdm_error *err)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    esdm__moment moment;
    uint64_t record;
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    ESDM__NEED(err, tag);
    esdm_status status = check_store(session, err);
    if (status == ESDM_OK)
        status = esdm__need_writable(session, err);
    if (status == ESDM_OK)
        status = esdm__name_normalise(name, normal, err);
    if (status == ESDM_OK)
        status = esdm__moment_find_tag(session, normal, tag, &moment, &record, err);
    return status == ESDM_OK ? esdm__noted_untag(session, moment.stored, record, tag, err) : status;
}

/* ---- listing ------------------------------------------------------------------------------- */

esdm_status
esdm_container_tags(esdm_session *session, const char *name, esdm_tag_visitor visit, void *user,
                    esdm_error *err)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    ESDM__NEED(err, visit);
    esdm_status status = esdm__name_normalise(name, normal, err);
    return status == ESDM_OK ? esdm__tags_visit(session, normal, visit, user, err) : status;
}
