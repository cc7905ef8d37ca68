/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/commit/clone.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/ids.h"
#include "io/commit/extents.h"
#include "io/session/former.h"
#include "io/session/journaling.h"
#include "meta/attribute_index.h"

static esdm_status
make_clone(esdm_session *session, const esdm_meta_clone *clone, esdm_error *err)
{
    esdm_meta_committed made = {0};
    esdm_status status = esdm__noted_clone(session, clone, &made, err);
    if (status == ESDM_ENOSPC && esdm__former_relieve(session))
        status = esdm__noted_clone(session, clone, &made, err);
    if (status == ESDM_OK && made.replaced != 0)
        esdm__session_replaced(session);
    return status;
}

/* Extents are those of the newest snapshot: of an older one what its fragments tell. esdm-mkfs
 * --reindex does the rest; to lack some is no failure. */
static void
index_older(esdm_session *session, const esdm_container *source, const char *name,
            uint64_t snapshot)
{
    esdm_meta_container record;
    esdm_container *made = NULL;
    if (session->meta->extent_put == NULL ||
        session->meta->container_find(session->store, source->name, &record, NULL) != ESDM_OK ||
        record.snapshot == snapshot ||
        esdm__io_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &made, NULL) != ESDM_OK)
        return;
    (void) !esdm__extents_refresh(made, false, NULL);
    esdm__container_drop(made);
}

static esdm_status
clone_named(esdm_container *source, const char *name, bool replace, const char *what,
            const char *uuid, esdm_error *err)
{
    esdm_session *session = source->session;
    esdm__attribute_index attributes = {0};
    uint64_t record = 0;
    uint64_t snapshot = 0;
    char former[ESDM__FORMER_NAME_BYTES];
    char message[ESDM_CONTAINER_NAME_MAX + 48];
    if (session->meta->clone == NULL)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "the metadata store '%s' cannot make clones: copy the container",
                               session->meta->base.name);
    esdm__container_position(source, &record, &snapshot);
    esdm_status status = esdm__attribute_index_make(source, &attributes, err);
    if (status != ESDM_OK)
        return status;
    char told[ESDM__FORMER_NAME_BYTES];
    esdm__former_tell(source->name, told, sizeof told);
    (void) snprintf(message, sizeof message, "%.16s of %.*s@%" PRIu64, what,
                    ESDM_CONTAINER_NAME_MAX, told, snapshot);
    const esdm_meta_clone clone = {
        .container = record,
        .from = source->name,
        .snapshot = snapshot,
        .name = name,
        .uuid = uuid,
        .replace = replace,
        .keep_as = replace ? esdm__former_name(session, name, false, former) : NULL,
        .writer = esdm__session_writer(session),
        .message = message,
        .durable = session->site->durability == ESDM__DURABLE_SYSTEM,
        .attributes = attributes.entries,
        .nattributes = attributes.count,
    };
    status = make_clone(session, &clone, err);
    if (status == ESDM_OK) {
        index_older(session, source, name, snapshot);
        esdm__extents_mark(session, name);
    }
    esdm__attribute_index_clear(&attributes);
    return status;
}

esdm_status
esdm__io_clone(esdm_container *source, const char *name, bool replace, esdm_error *err)
{
    char uuid[ESDM__UUID_BYTES];
    esdm__uuid_new(uuid);
    return clone_named(source, name, replace, "clone", uuid, err);
}

esdm_status
esdm__io_clone_as(esdm_container *source, const char *name, const char *what, const char *uuid,
                  esdm_error *err)
{
    return clone_named(source, name, false, what, uuid, err);
}
