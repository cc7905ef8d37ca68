/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * What queries find containers of ranks by: ranges of values and of coordinates, lengths. A commit
 * of one process enters what it has written itself; of ranks none knows what the others wrote, so
 * that rank 0 makes all of them anew from the statistics of all fragments, after the commit. That
 * takes the longer the more there are: commits that follow each other closely leave it to a later
 * one, or to the end.
 */

#include "base/ids.h"
#include "io/commit/extents.h"
#include "io/ranks/collective.h"

/* So many are made with each commit. */
#define ALWAYS 16u
/* Then at most one part in so many of the time goes into them. */
#define SHARE 20u

void
esdm__collective_ranges(esdm_container *container, bool all)
{
    esdm__container_io *io = esdm__io_of(container);
    uint64_t began = esdm__now_ns();
    io->ranges_behind = true;
    if (!all && !io->leaves && io->ranges_made >= ALWAYS &&
        began - io->ranges_ns < SHARE * io->ranges_cost_ns)
        return;
    /* Best effort, and nobody waits for it. */
    (void) !esdm__extents_refresh(container, false, NULL);
    io->ranges_ns = esdm__now_ns();
    io->ranges_cost_ns = io->ranges_ns - began;
    io->ranges_made += io->ranges_made < ALWAYS;
    io->ranges_behind = false;
}

/* Whether something was written that is not committed. */
static bool
has_uncommitted(esdm_container *container)
{
    esdm__container_io *io = esdm__io_of(container);
    (void) pthread_mutex_lock(&io->lock);
    bool found = io->ndirty > 0;
    (void) pthread_mutex_unlock(&io->lock);
    return found || container->structure_dirty;
}

void
esdm__collective_end_ranges(esdm_container *container)
{
    const esdm__container_io *io = esdm__io_of(container);
    if (io->comm == NULL || io->comm->rank != 0 || !io->ranges_behind ||
        io->parted.status != ESDM_OK || has_uncommitted(container))
        return;
    esdm__collective_ranges(container, true);
}
