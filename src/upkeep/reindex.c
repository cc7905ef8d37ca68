/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Extents of all containers, made anew from their data. */

#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "io/commit/extents.h"
#include "io/container/container_io.h"
#include "io/session/former.h"
#include "upkeep/upkeep.h"

/* Attempts at a container that others commit to. */
#define ATTEMPTS 8

static bool
note_name(const char *name, const esdm_meta_container *record, void *user)
{
    (void) record;
    if (!esdm__name_is_own(name))
        esdm__buffer_put(user, name, strlen(name) + 1);
    return true;
}

static bool
note_any(const esdm_meta_extent *extent, void *user)
{
    (void) extent;
    *(bool *) user = true;
    return false;
}

/* Whether the index has something of a container. */
static esdm_status
is_indexed(const esdm_session *session, const char *name, bool *ret_indexed, esdm_error *err)
{
    esdm_meta_container record;
    *ret_indexed = false;
    esdm_status status = session->meta->container_find(session->store, name, &record, err);
    if (status == ESDM_OK)
        status = session->meta->extent_list(session->store, record.container, note_any, ret_indexed,
                                            err);
    return status;
}

static esdm_status
reindex_one(esdm_session *session, const char *name, esdm_error *err)
{
    esdm_status status = ESDM_ECONFLICT;
    for (int i = 0; i < ATTEMPTS && status == ESDM_ECONFLICT; i++) {
        esdm_container *container = NULL;
        status =
            esdm__io_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container, err);
        if (status == ESDM_OK)
            status = esdm__extents_refresh(container, true, err);
        if (container != NULL)
            esdm__container_drop(container);
    }
    return status;
}

esdm_status
esdm__upkeep_reindex(esdm_session *session, const esdm_reindex_options *options,
                     esdm_reindex_result *ret_result, esdm_error *err)
{
    esdm__buffer names;
    esdm_reindex_result result = {0};
    if (session->meta->extent_put == NULL)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "the metadata store of site '%s' keeps no index of times, boxes and "
                               "values",
                               session->site->name);
    esdm__buffer_init(&names);
    esdm_status status = esdm__site_views_keep(session->site, session->meta, session->store,
                                               !options->only_missing, err);
    if (status == ESDM_OK)
        status = session->meta->container_list(session->store, NULL, note_name, &names, err);
    if (status == ESDM_OK && names.failed)
        status = esdm__error_nomem(err, names.bytes, "the names of containers");
    for (size_t at = 0; at < names.bytes && status == ESDM_OK;) {
        const char *name = (const char *) names.data + at;
        esdm_error why = {0};
        bool indexed = false;
        esdm_status one =
            options->only_missing ? is_indexed(session, name, &indexed, &why) : ESDM_OK;
        if (one == ESDM_OK && !indexed)
            one = reindex_one(session, name, &why);
        at += strlen(name) + 1;
        if (one == ESDM_ENOTSUP || one == ESDM_EACCES || one == ESDM_ENOMEM) {
            if (err != NULL)
                *err = why;
            status = one;
        } else if (one == ESDM_OK) {
            result.containers += !indexed;
        } else if (one != ESDM_ENOENT) { /* else it was removed meanwhile */
            const esdm_finding finding = {.kind = ESDM_FINDING_PROBLEM,
                                          .status = one,
                                          .container = name,
                                          .what = why.message,
                                          .remedy = "esdm-fsck tells more"};
            result.failed++;
            if (options->report != NULL)
                options->report(&finding, options->user);
        }
    }
    esdm__buffer_clear(&names);
    if (status == ESDM_OK)
        *ret_result = result;
    return status;
}
