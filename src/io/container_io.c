/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Life of a container: create, open, refresh. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/io.h"
#include "io/lengths.h"
#include "io/nesting.h"

static esdm_status
need_writable(const esdm_session *session, const char *name, esdm_error *err)
{
    if (!session->read_only && session->meta->is_writable(session->store))
        return ESDM_OK;
    return esdm__error_set(err, ESDM_EACCES,
                           "container '%s' cannot be written: the metadata store of site '%s' is "
                           "read-only for this process",
                           name, session->site->name);
}

static void
drop(esdm_container *container)
{
    esdm__container_io_free(container);
    esdm__container_free(container);
}

static esdm_status
container_new(esdm_session *session, const char *name, esdm_container **ret_container,
              esdm_error *err)
{
    esdm_container *container = esdm__container_new(name);
    if (container == NULL)
        return esdm__error_nomem(err, sizeof *container, "a container");
    esdm_status status = esdm__container_io_new(session, container, err);
    if (status != ESDM_OK) {
        esdm__container_free(container);
        return status;
    }
    *ret_container = container;
    return ESDM_OK;
}

esdm_status
esdm__io_create(esdm_session *session, const char *name, esdm_create_mode mode,
                esdm_container **ret_container, esdm_error *err)
{
    esdm_status status = need_writable(session, name, err);
    if (status != ESDM_OK)
        return status;
    if (mode == ESDM_CREATE_NEW) {
        esdm_meta_container record;
        esdm_error ignored;
        status = session->meta->container_find(session->store, name, &record, &ignored);
        if (status == ESDM_OK)
            return esdm__error_set(err, ESDM_EEXIST, "container '%s' exists", name);
        if (status != ESDM_ENOENT) {
            if (err != NULL)
                *err = ignored;
            return status;
        }
    }
    status = esdm__nesting_check(session, name, err);
    if (status != ESDM_OK)
        return status;
    esdm_container *container = NULL;
    status = container_new(session, name, &container, err);
    if (status != ESDM_OK)
        return status;
    esdm__container_io *io = esdm__io_of(container);
    io->replace = mode == ESDM_CREATE_REPLACE;
    esdm__uuid_new(io->uuid);
    container->writable = true;
    container->structure_dirty = true;
    *ret_container = container;
    return ESDM_OK;
}

/* Fills a fresh container from a loaded snapshot; takes over its pin. */
static esdm_status
fill_container(esdm_container *container, esdm_meta_snapshot *loaded, esdm_error *err)
{
    esdm__container_io *io = esdm__io_of(container);
    io->record = loaded->record.container;
    io->structure = loaded->structure;
    io->snapshot = loaded->snapshot;
    io->pinned = true;
    io->historic = loaded->snapshot != loaded->record.snapshot;
    memcpy(io->uuid, loaded->record.uuid, sizeof io->uuid);
    container->snapshot = loaded->snapshot;
    container->writable = true; /* while it is filled */
    esdm_status status =
        esdm__document_read(loaded->document, loaded->document_bytes, container, err);
    if (status != ESDM_OK)
        return status;
    for (size_t i = 0; i < container->datasets.count; i++)
        atomic_store(&((esdm_dataset *) container->datasets.items[i])->has_data, true);
    esdm__lengths_apply(container, loaded->lengths, loaded->nlengths);
    esdm__lengths_set_published(container, loaded->lengths, loaded->nlengths);
    loaded->lengths = NULL;
    container->structure_dirty = false;
    return ESDM_OK;
}

esdm_status
esdm__io_open(esdm_session *session, const char *name, esdm_open_mode mode, uint64_t snapshot,
              esdm_container **ret_container, esdm_error *err)
{
    esdm_container *container = NULL;
    esdm_meta_snapshot loaded = {0};
    esdm_status status = container_new(session, name, &container, err);
    if (status != ESDM_OK)
        return status;
    status = session->meta->snapshot_open(session->store, name, snapshot, 0, 0, &loaded, err);
    if (status == ESDM_OK)
        status = fill_container(container, &loaded, err);
    free(loaded.document);
    free(loaded.lengths);
    if (status == ESDM_OK && mode == ESDM_OPEN_WRITE) {
        if (snapshot != ESDM_SNAPSHOT_LATEST && esdm__io_of(container)->historic)
            status = esdm__error_set(
                err, ESDM_EACCES, "an old snapshot of container '%s' opens for reading only", name);
        else
            status = need_writable(session, name, err);
    }
    if (status != ESDM_OK) {
        drop(container);
        return status == ESDM_ENOENT || status == ESDM_EACCES
                   ? status
                   : esdm__error_prefix(err, status, "container '%s'", name);
    }
    container->writable = mode == ESDM_OPEN_WRITE;
    *ret_container = container;
    return ESDM_OK;
}

/* ---- refresh ------------------------------------------------------------------------------ */

static esdm_status
check_refreshable(const esdm_container *container, esdm_error *err)
{
    const esdm__container_io *io = esdm__io_of(container);
    if (io->historic)
        return esdm__error_set(err, ESDM_EINVAL, "container '%s' was opened at an old snapshot",
                               container->name);
    if (esdm__io_is_dirty(container))
        return esdm__error_set(err, ESDM_EINVAL, "container '%s' has uncommitted changes",
                               container->name);
    return ESDM_OK;
}

static void
move_to(esdm_container *container, esdm_meta_snapshot *loaded)
{
    esdm__container_io *io = esdm__io_of(container);
    const esdm_session *session = io->session;
    uint64_t left = io->snapshot;
    bool was_pinned = io->pinned;
    io->pinned = true;
    esdm__container_set_position(container, io->record, loaded->snapshot);
    if (left != loaded->snapshot)
        esdm__container_forget_pages(container);
    /* Only now: who sees the new lengths must find what lies there. */
    esdm__lengths_apply(container, loaded->lengths, loaded->nlengths);
    esdm__lengths_set_published(container, loaded->lengths, loaded->nlengths);
    loaded->lengths = NULL;
    if (was_pinned)
        session->meta->unpin(session->store, io->record, left);
}

esdm_status
esdm__io_refresh(esdm_container *container, esdm_error *err)
{
    esdm__container_io *io = esdm__io_of(container);
    const esdm_session *session = io->session;
    esdm_meta_snapshot loaded = {0};
    (void) pthread_mutex_lock(&io->commit_lock);
    esdm_status status = check_refreshable(container, err);
    if (status == ESDM_OK)
        status = session->meta->snapshot_open(session->store, container->name, 0, io->record,
                                              io->structure, &loaded, err);
    if (status == ESDM_OK) {
        if (loaded.record.container == io->record && loaded.document == NULL) {
            move_to(container, &loaded);
        } else {
            bool same = loaded.record.container == io->record;
            session->meta->unpin(session->store, loaded.record.container, loaded.snapshot);
            status =
                esdm__error_set(err, ESDM_ECONFLICT, "container '%s' %s: reopen it",
                                container->name, same ? "has a new structure" : "was replaced");
        }
    }
    (void) pthread_mutex_unlock(&io->commit_lock);
    free(loaded.document);
    free(loaded.lengths);
    return status;
}
