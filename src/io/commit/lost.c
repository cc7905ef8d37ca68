/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Fragments in packs that were lost before a commit: they are to be written again. */
#include "base/error.h"
#include "io/commit/commit.h"

typedef struct dropper {
    esdm__pack_set *packs;
    esdm__dataset_io *io;
    const esdm_error *why;
    bool any;
} dropper;

static bool
is_lost(void *user, const char *pack)
{
    const dropper *d = user;
    return esdm__pack_set_is_lost(d->packs, pack);
}

/* The selection that the fragment holds is to be written again. */
static void
note(void *user, const esdm__fragment *fragment, uint32_t number)
{
    dropper *d = user;
    esdm_dataspace space;
    uint64_t size[ESDM_MAX_RANK];
    for (uint32_t i = 0; i < fragment->box.rank; i++) {
        uint64_t step = fragment->strided ? fragment->stride[i] : 1;
        size[i] = (fragment->box.n[i] - 1) / step + 1;
    }
    (void) !esdm_dataspace_init(&space, fragment->box.rank, fragment->box.lo, size, NULL);
    if (fragment->strided)
        (void) !esdm_dataspace_set_stride(&space, fragment->stride, NULL);
    esdm__failed_note(&d->io->failed, &space, d->why);
    if (d->io->epochs != NULL)
        esdm__epochs_drop(d->io->epochs, number);
    d->any = true;
}

bool
esdm__commit_drop_lost(const esdm__commit_work *w, esdm__pack_set *packs, const esdm_error *why)
{
    esdm_error lost = {0};
    if (!esdm__pack_set_give_up_lost(packs))
        return false;
    if (why == NULL)
        lost.status =
            esdm__error_set(&lost, ESDM_EIO, "a pack in which it was could not be stored");
    dropper d = {.packs = packs, .why = why != NULL ? why : &lost};
    for (size_t i = 0; i < w->ndatasets; i++) {
        d.io = esdm__commit_io_of(w, i);
        (void) pthread_mutex_lock(&d.io->lock);
        esdm__index_drop_lost(d.io->index, is_lost, note, &d);
        (void) pthread_mutex_unlock(&d.io->lock);
    }
    return d.any;
}
