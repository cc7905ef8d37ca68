/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Handles whose snapshot is there no more: a pin dies with the connection of its session, so that a
 * server which was away for a while may have let others delete the snapshot. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "io/container/dataset_io.h"
#include "io/container/lengths.h"

/* Takes the pin and the lengths of a loaded snapshot over, unless another thread was first. */
static void
move_on(esdm_container *container, uint64_t lost, esdm_meta_snapshot *loaded)
{
    esdm__container_io *io = esdm__io_of(container);
    const esdm_session *session = io->session;
    (void) pthread_mutex_lock(&io->lock);
    bool first = io->snapshot == lost;
    bool was_pinned = io->pinned; /* else by rank 0, for all ranks */
    if (first) {
        io->pinned = true;
        io->snapshot = loaded->snapshot;
        container->snapshot = loaded->snapshot;
    }
    (void) pthread_mutex_unlock(&io->lock);
    if (!first) {
        session->meta->unpin(session->store, loaded->record.container, loaded->snapshot);
        return;
    }
    esdm__container_forget_pages(container);
    esdm__lengths_apply(container, loaded->lengths, loaded->nlengths);
    esdm__lengths_set_published(container, loaded->lengths, loaded->nlengths);
    loaded->lengths = NULL;
    if (was_pinned)
        session->meta->unpin(session->store, loaded->record.container, lost);
}

esdm_status
esdm__container_catch_up(esdm_container *container, uint64_t lost, esdm_error *err)
{
    const esdm__container_io *io = esdm__io_of(container);
    const esdm_session *session = io->session;
    esdm_meta_snapshot loaded = {0};
    uint64_t record;
    uint64_t snapshot;
    esdm__container_position(container, &record, &snapshot);
    if (!container->writable)
        return esdm__error_set(err, ESDM_EIO,
                               "snapshot %" PRIu64 " of container '%s' was deleted while the "
                               "metadata store did not know that it is read here (it was away for "
                               "a while); open the container again",
                               lost, container->name);
    esdm_status status = session->meta->snapshot_open(session->store, container->name, 0, record,
                                                      io->structure, &loaded, err);
    if (status == ESDM_ENOENT)
        return esdm__error_set(err, ESDM_ECONFLICT, "container '%s' was removed", container->name);
    if (status != ESDM_OK)
        return status;
    if (loaded.record.container == record) {
        move_on(container, lost, &loaded);
    } else {
        session->meta->unpin(session->store, loaded.record.container, loaded.snapshot);
        status = esdm__error_set(err, ESDM_ECONFLICT, "container '%s' was replaced by another one",
                                 container->name);
    }
    free(loaded.document);
    free(loaded.lengths);
    return status;
}
