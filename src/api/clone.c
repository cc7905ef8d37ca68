/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Containers that begin with a snapshot of another one. */

#include <string.h>

#include "api/branches.h"
#include "api/catalogue.h"
#include "api/moment.h"
#include "api/seal.h"
#include "api/seen.h"
#include "base/arguments.h"
#include "base/error.h"
#include "io/commit/clone.h"
#include "io/io.h"
#include "io/session/nesting.h"
#include "query/view.h"
#include "virtual/virtual.h"

/* How often a source that is replaced meanwhile is looked up again. */
#define ATTEMPTS 8

static esdm_status
normalise_target(const esdm_session *session, const char *to, char *normal, esdm_error *err)
{
    esdm_status status = esdm_container_normalise(to, normal, err);
    if (status == ESDM_OK && esdm__virtual_is_said(normal))
        return esdm__error_set(err, ESDM_EACCES,
                               "'%s' is a query, which nobody can write to: name a container",
                               normal);
    if (status == ESDM_OK && esdm__view_is_said(session->site, normal))
        return esdm__view_refuse(normal, err);
    return status;
}

static esdm_status
normalise_source(const char *from, char *normal, esdm_error *err)
{
    esdm_status status = esdm_container_normalise(from, normal, err);
    if (status == ESDM_OK && esdm__virtual_is_said(normal))
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "'%s' is a query, whose containers lie apart: it can be copied, or "
                               "cloned into a folder, each container for itself (esdm-cp "
                               "--reflink 'esdm://?…' esdm://FOLDER/)",
                               normal);
    return status;
}

esdm_status
esdm_container_clone(esdm_session *session, const char *from, const char *to, bool replace,
                     esdm_error *err)
{
    ESDM__NEED(err, session);
    ESDM__NEED(err, from);
    ESDM__NEED(err, to);
    char source_name[ESDM_CONTAINER_NAME_MAX + 1];
    char target_name[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_status status = normalise_source(from, source_name, err);
    if (status == ESDM_OK)
        status = normalise_target(session, to, target_name, err);
    if (status == ESDM_OK && strcmp(source_name, target_name) == 0)
        status = esdm__error_set(err, ESDM_EINVAL, "container '%s' cannot be cloned to itself",
                                 source_name);
    if (status == ESDM_OK)
        status = esdm__need_writable(session, err);
    if (status == ESDM_OK)
        status = esdm__nesting_check(session, target_name, err);
    if (status == ESDM_OK)
        status = esdm__branch_check_name(session, target_name, err);
    if (status == ESDM_OK)
        status = esdm__moment_check_new(session, target_name, err);
    if (status == ESDM_OK && replace)
        status = esdm__sealed_check(session, target_name, err);
    if (status != ESDM_OK)
        return status;
    for (int i = 0; i < ATTEMPTS; i++) {
        esdm_container *source = NULL;
        status = esdm_container_open(session, source_name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST,
                                     &source, err);
        if (status == ESDM_OK && source->coarse)
            status = esdm__error_set(err, ESDM_ENOTSUP,
                                     "'%s' is read less accurately than it is stored, and a clone "
                                     "has what is stored: clone '%s', or copy it",
                                     source_name, source->name);
        if (status == ESDM_OK)
            status = esdm__io_clone(source, target_name, replace, err);
        if (status == ESDM_OK && esdm_container_name_is_intermediate(target_name))
            status = esdm__seen_note(session, target_name, source_name, esdm_container_uuid(source),
                                     source->snapshot, err);
        esdm_container_discard(source);
        if (status != ESDM_ECONFLICT)
            break;
    }
    return status;
}
