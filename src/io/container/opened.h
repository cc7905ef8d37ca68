/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_CONTAINER_OPENED_H
#define ESDM_IO_CONTAINER_OPENED_H

/**
 * @file
 * What a handle found when it was opened or refreshed, and what it has published since: by that a
 * commit knows what others have appended meanwhile (io/commit/overlap.h). Threads: the container's
 * commit_lock.
 */

#include "esdm/sys/meta_store.h"
#include "model/container.h"

struct esdm__container_io;

/** Snapshots first … last. */
typedef struct esdm__snapshots {
    uint64_t first;
    uint64_t last;
} esdm__snapshots;

/** What a handle found when it was opened or refreshed, and what it has published since. */
typedef struct esdm__opened {
    uint64_t snapshot;         /* 0: it made the container */
    esdm_meta_length *lengths; /* of the unlimited dimensions; owned; those missing here were 0 */
    size_t nlengths;
    esdm__snapshots *own; /* rising; owned */
    size_t nown;
    size_t capacity;
    bool guards_all; /* all elements count as appended, whatever "overlap" says: what this handle
                        stores anew must not hide what others have written meanwhile */
} esdm__opened;

/** The handle has just been opened or refreshed. On failure it is as before. */
esdm_status esdm__opened_set(esdm_container *container, esdm_error *err);
void esdm__opened_clear(esdm__opened *opened);
/** Room for one esdm__opened_note(). */
esdm_status esdm__opened_reserve(struct esdm__container_io *io, esdm_error *err);
/** The handle has published a snapshot. */
void esdm__opened_note(struct esdm__container_io *io, uint64_t snapshot);
/** The newest snapshot up to which this handle alone has published; 0: others have, too. */
uint64_t esdm__opened_alone_until(const struct esdm__container_io *io);

#endif
