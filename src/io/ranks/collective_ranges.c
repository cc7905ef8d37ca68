/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * What queries find containers of ranks by: ranges of values and of coordinates, lengths. As with
 * one process a commit enters what it brings, in its transaction: the ranks tell each other between
 * which values lie those that they have written, and rank 0 widens the ranges by that. So a query
 * misses nothing that is committed.
 *
 * Where values hide others, ranges may be too wide then, and longitudes often are. Rank 0 makes all
 * of them anew from the statistics of all fragments, after the commit. That takes the longer the
 * more there are: commits that follow each other closely leave it to a later one, or to the end.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/ids.h"
#include "io/commit/extents.h"
#include "io/ranks/collective.h"

/* So many are made anew with each commit. */
#define ALWAYS 16u
/* Then at most one part in so many of the time goes into them. */
#define SHARE 20u

/* ---- with a commit ------------------------------------------------------------------------ */

#define SIGN (UINT64_C(1) << 63)

/* In the order of the numbers; 0 is none of them. */
static uint64_t
to_ordered(double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return (bits & SIGN) != 0 ? ~bits : bits | SIGN;
}

static double
from_ordered(uint64_t ordered)
{
    uint64_t bits = (ordered & SIGN) != 0 ? ordered & ~SIGN : ~ordered;
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

void
esdm__ranges_tell(const esdm__commit_work *work, const esdm__orders *orders, uint64_t *numbers)
{
    if (work->io->session->meta->extent_put == NULL)
        return;
    for (size_t i = 0, k = 0; i < orders->ndatasets && k < work->ndatasets; i++) {
        esdm__range r;
        if (orders->datasets[i] != work->datasets[k])
            continue;
        esdm__range_of_pending(work->datasets[k++], &r);
        if (!r.known || isnan(r.low) || isnan(r.high))
            continue;
        numbers[ESDM__RANGES_NUMBERS * i] = to_ordered(-r.low);
        numbers[ESDM__RANGES_NUMBERS * i + 1] = to_ordered(r.high);
    }
}

esdm_status
esdm__ranges_enter(esdm__commit_work *work, const esdm__orders *orders, const uint64_t *numbers,
                   esdm_error *err)
{
    size_t count = 0;
    size_t bytes = (orders->ndatasets + 1) * sizeof(esdm__range);
    esdm__range *ranges = calloc(1, bytes);
    esdm_dataset **datasets = calloc(orders->ndatasets + 1, sizeof *datasets);
    esdm_status status = ESDM_OK;
    if (ranges == NULL || datasets == NULL)
        status = esdm__error_nomem(err, bytes, "the index of a container");
    for (size_t i = 0; i < orders->ndatasets && status == ESDM_OK; i++) {
        const uint64_t *ends = numbers + ESDM__RANGES_NUMBERS * i;
        if (orders->sums[i] == 0)
            continue;
        if (ends[0] != 0 && ends[1] != 0)
            ranges[count] = (esdm__range){
                .low = -from_ordered(ends[0]), .high = from_ordered(ends[1]), .known = true};
        datasets[count++] = orders->datasets[i];
    }
    const esdm__written written = {.datasets = datasets, .count = count, .ranges = ranges};
    if (status == ESDM_OK)
        status = esdm__extents_of_commit(work->container, &written, work->document != NULL,
                                         &work->extents, err);
    free(ranges);
    free(datasets);
    return status;
}

/* ---- anew ----------------------------------------------------------------------------------- */

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
