/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Public functions on virtual containers that have a name. */

#include "esdm/virtual.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arguments.h"
#include "base/error.h"
#include "esdm/float_env.h"
#include "esdm/history.h"
#include "virtual/virtual.h"

/* What a tag may not contain becomes '_'; a long name is cut. */
static void
tag_of(const char *name, char tag[ESDM_TAG_MAX + 1])
{
    (void) snprintf(tag, ESDM_TAG_MAX + 1, "virtual-%.*s", (int) ESDM_TAG_MAX - 8, name);
    for (char *at = tag; *at != '\0'; at++)
        if ((unsigned char) *at <= ' ' || (unsigned char) *at >= 127 || strchr("/@?:", *at) != NULL)
            *at = '_';
}

typedef struct keeping {
    esdm_session *session;
    const char *name;
    esdm_status status;
    esdm_error *err;
} keeping;

/* The snapshot of a member that a virtual container needs is not pruned. */
static bool
keep_member(const char *member, uint64_t snapshot, void *user)
{
    keeping *k = user;
    char tag[ESDM_TAG_MAX + 1];
    char which[ESDM_CONTAINER_NAME_MAX + 32];
    tag_of(k->name, tag);
    (void) snprintf(which, sizeof which, "%s@%" PRIu64, member, snapshot);
    k->status = esdm_container_tag(k->session, which, tag, true, NULL, k->err);
    return k->status == ESDM_OK;
}

static esdm_status
save(esdm_session *session, esdm_container *whole, const char *query, const char *name, bool pin,
     bool replace, esdm_error *err)
{
    esdm_container *to = NULL;
    keeping k = {session, name, ESDM_OK, err};
    char saved[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_status status = esdm_container_create(
        session, name, replace ? ESDM_CREATE_REPLACE : ESDM_CREATE_NEW, &to, err);
    if (status != ESDM_OK)
        return status;
    (void) snprintf(saved, sizeof saved, "%s", to->name); /* without "esdm://" */
    status = esdm__virtual_save(whole, query, pin, to, err);
    if (status == ESDM_OK && pin) {
        esdm__virtual_pinned(whole, keep_member, &k);
        status = k.status;
    }
    if (status == ESDM_OK)
        status = esdm_container_close(to, err);
    else
        esdm_container_discard(to);
    if (status == ESDM_OK) /* it is there: what the index lacks is made when it is opened */
        (void) !esdm__virtual_index(whole, saved, NULL);
    return status;
}

esdm_status
esdm_virtual_save(esdm_session *session, const char *query, const char *name, bool pin,
                  bool replace, esdm_error *err)
{
    ESDM__NEED(err, session);
    ESDM__NEED(err, query);
    ESDM__NEED(err, name);
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_container *whole = NULL;
    if (!esdm__virtual_is_said(query))
        return esdm__error_set(err, ESDM_EINVAL,
                               "'%s' is no query: '?source_id=MPI-ESM1-2-LR&table_id=Amon' is one",
                               query);
    esdm_status status = esdm__virtual_normalise(query, normal, err);
    if (status == ESDM_OK)
        status = esdm__virtual_open(session, normal, &whole, err);
    if (status != ESDM_OK)
        return status;
    status = save(session, whole, normal, name, pin, replace, err);
    esdm_container_discard(whole);
    return status;
}

esdm_status
esdm_virtual_follow(esdm_session *session, bool *ret_waits, esdm_error *err)
{
    ESDM_FLOAT_ENV_OWN;
    ESDM__NEED(err, session);
    ESDM__NEED(err, ret_waits);
    *ret_waits = esdm__virtual_follow(session);
    return ESDM_OK;
}

esdm_status
esdm_virtual_members(esdm_session *session, esdm_virtual_visitor visit, void *user, esdm_error *err)
{
    ESDM__NEED(err, session);
    ESDM__NEED(err, visit);
    return esdm__virtual_members(session, visit, user, err);
}

esdm_status
esdm_virtual_found(esdm_session *session, const char *query, esdm_found_visitor visit, void *user,
                   esdm_error *err)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    ESDM__NEED(err, session);
    ESDM__NEED(err, query);
    ESDM__NEED(err, visit);
    if (!esdm__virtual_is_said(query))
        return esdm__error_set(err, ESDM_EINVAL,
                               "'%s' is no query: '?source_id=MPI-ESM1-2-LR&table_id=Amon' is one",
                               query);
    esdm_status status = esdm__virtual_normalise(query, normal, err);
    return status == ESDM_OK ? esdm__virtual_found(session, normal, visit, user, err) : status;
}
