/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file After a commit: the handle moves to what was published. */

#include <stdlib.h>

#include "io/commit/commit.h"
#include "io/container/lengths.h"
#include "io/container/rounded.h"

typedef esdm__commit_work work;

/* Opens the published snapshot, or the newest one when that is gone already, and takes over the
 * lengths that it has from other writers. */
static bool
pin_shared(work *w, const esdm_meta_committed *committed, uint64_t *ret_snapshot)
{
    const esdm_session *session = w->io->session;
    uint64_t structure = w->document != NULL ? committed->structure : w->io->structure;
    esdm_meta_snapshot loaded = {0};
    esdm_status status =
        session->meta->snapshot_open(session->store, w->container->name, committed->snapshot,
                                     committed->container, structure, &loaded, NULL);
    if (status != ESDM_OK)
        status = session->meta->snapshot_open(session->store, w->container->name, 0,
                                              committed->container, structure, &loaded, NULL);
    if (status != ESDM_OK)
        return false;
    bool ours = loaded.record.container == committed->container;
    if (ours) {
        *ret_snapshot = loaded.snapshot;
        free(w->lengths);
        w->lengths = loaded.lengths;
        w->nlengths = loaded.nlengths;
        loaded.lengths = NULL;
    } else {
        session->meta->unpin(session->store, loaded.record.container, loaded.snapshot);
    }
    free(loaded.document);
    free(loaded.lengths);
    return ours;
}

void
esdm__commit_forget(work *w)
{
    for (size_t i = 0; i < w->ndatasets; i++) {
        esdm__dataset_io *io = esdm__commit_io_of(w, i);
        (void) pthread_mutex_lock(&io->lock);
        esdm__index_drop_pending(io->index);
        esdm__index_forget_pages(io->index);
        io->directory_loaded = false;
        io->generation++;
        esdm__dataset_trim_index(w->datasets[i], io);
        (void) pthread_mutex_unlock(&io->lock);
    }
    esdm__container_forget_pages(w->container);
}

/* Whether the handle is being closed, and nothing of what others did has to be looked at: nobody
 * reads the snapshot through it, so that it is neither pinned nor are its pages kept in memory. */
static bool
leaves_after(const work *w, const esdm_meta_committed *committed)
{
    uint64_t record, before;
    esdm__container_position(w->container, &record, &before);
    return w->io->leaves && w->io->comm == NULL && committed->snapshot == before + 1;
}

/* The old snapshot is unpinned when nobody looks for its pages any more. */
void
esdm__commit_move(work *w, const esdm_meta_committed *committed, bool collective)
{
    esdm__container_io *io = w->io;
    const esdm_session *session = io->session;
    bool was_pinned = io->pinned;
    uint64_t record;
    uint64_t left;
    esdm__container_position(w->container, &record, &left);
    uint64_t snapshot = committed->snapshot;
    esdm__opened_note(io, snapshot);
    bool alone = snapshot == left + 1; /* else others committed in between: see their data too */
    bool leaves = leaves_after(w, committed);
    io->pinned =
        !leaves && alone &&
        session->meta->pin(session->store, committed->container, snapshot, NULL) == ESDM_OK;
    if (!io->pinned && !leaves) {
        io->pinned = pin_shared(w, committed, &snapshot);
        alone = alone && !io->pinned; /* neither: it was removed or replaced at once */
    }
    if (!io->pinned && !leaves) /* or its name was changed */
        io->pinned =
            session->meta->pin(session->store, committed->container, snapshot, NULL) == ESDM_OK;
    uint64_t moved = left; /* a reader may have lost that one, and moved on (catch_up.c) */
    left = esdm__container_set_position(w->container, committed->container, snapshot);
    alone = alone && left == moved;
    if (collective)
        esdm__commit_forget(w);
    else if (!alone)
        esdm__container_forget_pages(w->container);
    if (!alone)
        esdm__lengths_apply(w->container, w->lengths, w->nlengths);
    esdm__lengths_set_published(w->container, w->lengths, w->nlengths);
    w->lengths = NULL;
    if (was_pinned)
        session->meta->unpin(session->store, record, left);
}

bool
esdm__commit_holds(const work *w, const esdm_dataset *dataset)
{
    return esdm__datasets_hold(w->datasets, w->ndatasets, dataset);
}

/* What became dirty meanwhile stays. */
void
esdm__commit_clean(work *w)
{
    esdm__container_io *io = w->io;
    (void) pthread_mutex_lock(&io->lock);
    size_t left = 0;
    for (size_t i = 0; i < io->ndirty; i++) {
        if (!esdm__commit_holds(w, io->dirty[i]))
            io->dirty[left++] = io->dirty[i];
    }
    io->ndirty = left;
    if (left == 0) { /* it may have held very many */
        free(io->dirty);
        io->dirty = NULL;
        io->dirty_capacity = 0;
    }
    for (size_t i = 0; i < w->ndatasets; i++) {
        atomic_store(&esdm__commit_io_of(w, i)->listed, false);
        esdm__rounded_clear(esdm__commit_io_of(w, i));
    }
    (void) pthread_mutex_unlock(&io->lock);
}

/* Packs are removed as a whole. So after so many bytes that were written over new packs are
 * begun: else these bytes would lie between bytes that are needed, and stay. */
#define HIDDEN_IN_PACK (UINT64_C(16) << 20)

static void
part_packs(esdm__container_io *io, esdm__pack_set *packs)
{
    if (io->dropped_bytes - io->parted_bytes < HIDDEN_IN_PACK)
        return;
    io->parted_bytes = io->dropped_bytes;
    esdm__pack_set_begin_anew(packs);
}

void
esdm__commit_adopt(work *w, const esdm_meta_committed *committed)
{
    esdm__container_io *io = w->io;
    uint64_t page = committed->first_page;
    bool leaves = leaves_after(w, committed);
    for (size_t i = 0; i < w->ndatasets; i++) {
        io->dropped_bytes += w->sets[i].dropped_bytes;
        esdm__dataset_io *dataset_io = esdm__commit_io_of(w, i);
        (void) pthread_mutex_lock(&dataset_io->lock);
        if (!leaves)
            esdm__index_committed(dataset_io->index, &w->sets[i], page, committed->snapshot);
        (void) pthread_mutex_unlock(&dataset_io->lock);
        page += w->sets[i].npages;
    }
    if (leaves)
        esdm__commit_forget(w);
    esdm__commit_clean(w);
    esdm__pack_set *packs = __atomic_load_n(&io->packs, __ATOMIC_ACQUIRE);
    if (packs != NULL)
        esdm__pack_set_committed(packs);
    if (packs != NULL && !leaves)
        part_packs(io, packs);
    esdm__commit_move(w, committed, false);
    if (w->stale)
        esdm__container_forget_pages(w->container);
    if (w->document != NULL) {
        io->structure = committed->structure;
        w->container->structure_dirty = false;
    }
}
