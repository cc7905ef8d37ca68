/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Life of a container: create, open, refresh. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/container/behind.h"
#include "io/container/container_io.h"
#include "io/container/lengths.h"
#include "io/packs/decisions.h"
#include "io/session/nesting.h"
#include "model/undo.h"

static esdm_status
need_writable(esdm_session *session, const char *name, esdm_error *err)
{
    esdm_status status = esdm__session_writes(session) ? esdm__targets_need_one(session, err)
                                                       : esdm__session_read_only(session, err);
    return status == ESDM_OK
               ? ESDM_OK
               : esdm__error_prefix(err, status, "container '%s' cannot be written", name);
}

void
esdm__container_drop(esdm_container *container)
{
    if (container == NULL)
        return;
    esdm__container_io_free(container);
    esdm__container_free(container);
}

esdm_status
esdm__container_new_handle(esdm_session *session, const char *name, esdm_container **ret_container,
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
esdm__container_begin(esdm_session *session, const char *name, esdm_create_mode mode,
                      esdm_container **ret_container, esdm_error *err)
{
    esdm_container *container = NULL;
    esdm_status status = need_writable(session, name, err);
    if (status == ESDM_OK)
        status = esdm__container_new_handle(session, name, &container, err);
    if (status != ESDM_OK)
        return status;
    esdm__container_io *io = esdm__io_of(container);
    io->replace = mode == ESDM_CREATE_REPLACE;
    io->sole = true;
    esdm__uuid_new(io->uuid);
    container->writable = true;
    esdm__container_changed(container);
    *ret_container = container;
    return ESDM_OK;
}

static esdm_status
create_checked(esdm_session *session, const char *name, esdm_create_mode mode,
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
    uint64_t former = 0;
    status = esdm__nesting_find(session, name, &former, err);
    if (status == ESDM_OK)
        status = esdm__container_begin(session, name, mode, ret_container, err);
    if (status == ESDM_OK)
        esdm__io_of(*ret_container)->former = former;
    return status;
}

esdm_status
esdm__io_create(esdm_session *session, const char *name, esdm_create_mode mode,
                esdm_container **ret_container, esdm_error *err)
{
    esdm__span span;
    esdm__span_begin(&span, session->monitor);
    esdm_status status = create_checked(session, name, mode, ret_container, err);
    esdm__opening_observed(&span, name, status == ESDM_OK ? *ret_container : NULL,
                           mode == ESDM_CREATE_REPLACE ? "replace" : "create", NULL, status);
    return status;
}

/* @param snapshot that was asked for. Of the newest one others may have committed the next by the
 * time that its record was read. */
static esdm_status
fill_container(esdm_container *container, esdm_meta_snapshot *loaded, uint64_t snapshot,
               esdm_error *err)
{
    esdm__container_io *io = esdm__io_of(container);
    io->record = loaded->record.container;
    io->structure = loaded->structure;
    io->snapshot = loaded->snapshot;
    io->fragments = loaded->record.fragments;
    io->pinned = true;
    io->untagged = loaded->untagged;
    io->historic = snapshot != ESDM_SNAPSHOT_LATEST && loaded->snapshot != loaded->record.snapshot;
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
    return esdm__opened_set(container, err);
}

esdm_status
esdm__container_fill(esdm_container *container, esdm_meta_snapshot *loaded, esdm_open_mode mode,
                     uint64_t snapshot, esdm_error *err)
{
    const esdm__container_io *io = esdm__io_of(container);
    esdm_status status = fill_container(container, loaded, snapshot, err);
    container->writable = mode == ESDM_OPEN_WRITE;
    if (status != ESDM_OK || mode != ESDM_OPEN_WRITE)
        return status;
    if (io->historic)
        return esdm__error_set(err, ESDM_EACCES,
                               "an old snapshot of container '%s' opens for reading only",
                               container->name);
    return need_writable(io->session, container->name, err);
}

static esdm_status
open_snapshot(esdm_session *session, const char *name, esdm_open_mode mode, uint64_t snapshot,
              esdm_container **ret_container, esdm_error *err)
{
    esdm_container *container = NULL;
    esdm_meta_snapshot loaded = {0};
    esdm_status status = esdm__container_new_handle(session, name, &container, err);
    if (status != ESDM_OK)
        return status;
    status = session->meta->snapshot_open(session->store, name, snapshot, 0, 0, &loaded, err);
    if (status == ESDM_OK)
        status = esdm__container_fill(container, &loaded, mode, snapshot, err);
    free(loaded.document);
    free(loaded.lengths);
    if (status != ESDM_OK) {
        esdm__container_drop(container);
        return status == ESDM_ENOENT || status == ESDM_EACCES
                   ? status
                   : esdm__error_prefix(err, status, "container '%s'", name);
    }
    *ret_container = container;
    return ESDM_OK;
}

esdm_status
esdm__io_open(esdm_session *session, const char *name, esdm_open_mode mode, uint64_t snapshot,
              esdm_container **ret_container, esdm_error *err)
{
    esdm__span span;
    esdm__span_begin(&span, session->monitor);
    esdm_status status = open_snapshot(session, name, mode, snapshot, ret_container, err);
    esdm__opening_observed(&span, name, status == ESDM_OK ? *ret_container : NULL,
                           mode == ESDM_OPEN_WRITE ? "write" : "read", NULL, status);
    return status;
}

/* ---- undo --------------------------------------------------------------------------------- */

/* Nothing is left of datasets that were created since the mark: data, if any, lie in packs as
 * garbage. */
static void
release_new(esdm_container *container)
{
    esdm__container_io *io = esdm__io_of(container);
    uint32_t first = container->undo.next_dataset_id;
    size_t left = 0;
    (void) pthread_mutex_lock(&io->lock);
    for (size_t i = 0; i < io->ndirty; i++) {
        if (io->dirty[i]->id < first)
            io->dirty[left++] = io->dirty[i];
    }
    io->ndirty = left;
    (void) pthread_mutex_unlock(&io->lock);
    for (size_t i = container->undo.datasets; i < container->datasets.count; i++)
        esdm__dataset_io_free(container->datasets.items[i]);
}

/* What was written since the mark is stored as was stated then; what cannot be is to be written
 * again. */
static void
end_statements(esdm_container *container)
{
    for (size_t i = 0; i < container->undo.datasets; i++) {
        esdm_dataset *dataset = container->datasets.items[i];
        if (esdm__undo_has_kept(dataset))
            esdm__dataset_end_statement(dataset);
    }
}

void
esdm__io_revert(esdm_container *container)
{
    if (!container->undo.active || esdm__container_check_process(container, NULL) != ESDM_OK)
        return;
    esdm__container_settle(container);
    release_new(container);
    end_statements(container);
    esdm__undo_revert(container);
    for (size_t i = 0; i < container->datasets.count; i++) {
        const esdm_dataset *dataset = container->datasets.items[i];
        esdm__dataset_io *io = esdm__dataset_io_find_for_sure(dataset);
        if (io == NULL)
            continue;
        (void) pthread_mutex_lock(&io->write_lock);
        esdm__dataset_obey(dataset, io);
        (void) pthread_mutex_unlock(&io->write_lock);
        esdm__dataset_io_put(dataset);
    }
}

size_t
esdm__io_give_up_failed(esdm_container *container)
{
    size_t given_up = 0;
    if (esdm__container_check_process(container, NULL) != ESDM_OK)
        return 0;
    for (size_t i = 0; i < container->datasets.count; i++) {
        const esdm_dataset *dataset = container->datasets.items[i];
        esdm__dataset_io *io = esdm__dataset_io_find(dataset);
        if (io == NULL)
            continue;
        (void) pthread_mutex_lock(&io->write_lock);
        given_up += esdm__dataset_give_up_boxes(dataset, io);
        given_up += esdm__failed_count(&io->failed);
        esdm__failed_clear(&io->failed);
        (void) pthread_mutex_unlock(&io->write_lock);
        esdm__dataset_io_put(dataset);
    }
    return given_up;
}

/* ---- refresh ------------------------------------------------------------------------------ */

esdm_status
esdm__container_check_refreshable(const esdm_container *container, esdm_error *err)
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

void
esdm__container_move_to(esdm_container *container, esdm_meta_snapshot *loaded)
{
    esdm__container_io *io = esdm__io_of(container);
    const esdm_session *session = io->session;
    bool was_pinned = io->pinned;
    io->pinned = true;
    uint64_t left = esdm__container_set_position(container, io->record, loaded->snapshot);
    if (left != loaded->snapshot)
        esdm__container_forget_pages(container);
    /* Only now: who sees the new lengths must find what lies there. */
    esdm__lengths_apply(container, loaded->lengths, loaded->nlengths);
    esdm__lengths_set_published(container, loaded->lengths, loaded->nlengths);
    loaded->lengths = NULL;
    (void) !esdm__opened_set(container, NULL); /* else it refuses more than it has to */
    if (was_pinned)
        session->meta->unpin(session->store, io->record, left);
}

esdm_status
esdm__container_check_same(const esdm_container *container, const esdm_meta_snapshot *loaded,
                           esdm_error *err)
{
    const esdm__container_io *io = esdm__io_of(container);
    bool same = loaded->record.container == io->record;
    if (same && loaded->document == NULL)
        return ESDM_OK;
    io->session->meta->unpin(io->session->store, loaded->record.container, loaded->snapshot);
    return esdm__error_set(err, ESDM_ECONFLICT, "container '%s' %s: reopen it", container->name,
                           same ? "has a new structure" : "was replaced");
}

esdm_status
esdm__container_refresh(esdm_container *container, esdm_error *err)
{
    esdm__container_io *io = esdm__io_of(container);
    const esdm_session *session = io->session;
    esdm_meta_snapshot loaded = {0};
    (void) pthread_mutex_lock(&io->commit_lock);
    esdm_status status = esdm__container_check_refreshable(container, err);
    if (status == ESDM_OK)
        status = session->meta->snapshot_open(session->store, container->name, 0, io->record,
                                              io->structure, &loaded, err);
    if (status == ESDM_OK)
        status = esdm__container_check_same(container, &loaded, err);
    if (status == ESDM_OK)
        esdm__container_move_to(container, &loaded);
    (void) pthread_mutex_unlock(&io->commit_lock);
    free(loaded.document);
    free(loaded.lengths);
    return status;
}

bool
esdm__io_has_dropped(const esdm_container *container, uint64_t *ret_record, char *ret_uuid)
{
    const esdm__container_io *io = esdm__io_of(container);
    if (io == NULL || io->dropped_bytes < ESDM__HIDDEN_BYTES)
        return false;
    *ret_record = io->record;
    memcpy(ret_uuid, io->uuid, ESDM__UUID_BYTES);
    return true;
}

bool
esdm__io_is_dirty(const esdm_container *container)
{
    esdm__container_io *io = esdm__io_of(container);
    (void) pthread_mutex_lock(&io->lock);
    bool dirty = io->ndirty > 0;
    (void) pthread_mutex_unlock(&io->lock);
    return container->writable && (dirty || container->structure_dirty || io->record == 0 ||
                                   esdm__lengths_changed(container));
}

esdm_status
esdm__container_decisions(const esdm_container *container, esdm_decision_visitor visit, void *user,
                          esdm_error *err)
{
    const esdm__container_io *io = esdm__io_of(container);
    return esdm__decisions_visit(io->session, io->uuid, visit, user, err);
}
