/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Collective writes and reads of one dataset. The ranks tell each other what they are about to
 * transfer and what they wrote before; from that all of them conclude alike how long the dimensions
 * are, whether the order of writes matters (a cut, see io/container/epochs.h), and whether a read
 * needs to know what other ranks wrote (meeting.h).
 */
#include <stdlib.h>

#include "base/error.h"
#include "io/container/behind.h"
#include "io/ranks/collective.h"
#include "io/ranks/meeting.h"
#include "io/read/read.h"
#include "io/write/write.h"

#define SMALL_RANK 8u

/* Numbers of which all ranks need the largest: these, the length of each axis, and those of
 * meeting.h. The first is for the agreement. */
enum { NOTE_AGREED, NOTE_DATASET, NOTE_OTHER_DATASET, NOTE_LENGTHS };
enum {
    NOTE_NUMBERS =
        NOTE_LENGTHS + ESDM_MAX_RANK * (1 + ESDM__MEETING_AXIS_NUMBERS) + ESDM__MEETING_AXES
};

/* One collective transfer. */
typedef struct transfer {
    esdm_dataset *dataset;
    esdm__container_io *container_io;
    esdm__dataset_io *io; /* NULL: no memory */
    esdm__meeting meeting;
    esdm__box hull; /* what `meeting` names */
    uint64_t numbers[NOTE_NUMBERS];
    uint64_t *of_meeting; /* among them */
} transfer;

/* Ranks that (wrongly) name different datasets mostly agree on the length of what they tell all the
 * same, and can be told. */
static size_t
axes_told(const esdm_dataset *dataset)
{
    return dataset->rank <= SMALL_RANK ? SMALL_RANK : ESDM_MAX_RANK;
}

/* What this rank wrote. @param unshared and the other ranks cannot see; else since the last cut. */
static void
take_hull(transfer *t, bool unshared)
{
    const esdm__epochs *epochs = t->io->epochs;
    (void) pthread_mutex_lock(&t->io->write_lock);
    if (unshared ? epochs->unshared : epochs->open) {
        esdm__box_copy(&t->hull, unshared ? &epochs->hulls->unshared : &epochs->hulls->written);
        t->meeting.hull = &t->hull;
    }
    (void) pthread_mutex_unlock(&t->io->write_lock);
}

/* The ranks tell each other. @param box NULL: this rank transfers nothing. */
static esdm_status
exchange(transfer *t, const esdm__box *box, bool writing, esdm_error *err)
{
    const esdm_dataset *dataset = t->dataset;
    size_t axes = axes_told(dataset);
    esdm_error mine = {0};
    t->of_meeting = t->numbers + NOTE_LENGTHS + axes;
    t->numbers[NOTE_DATASET] = dataset->id;
    t->numbers[NOTE_OTHER_DATASET] = ~(uint64_t) dataset->id;
    for (uint32_t i = 0; i < dataset->rank; i++) {
        uint64_t length = atomic_load(&dataset->dimensions[i]->length);
        uint64_t end = box != NULL && writing ? box->lo[i] + box->n[i] : 0;
        t->numbers[NOTE_LENGTHS + i] = length > end ? length : end;
    }
    if (t->io != NULL) {
        t->meeting.box = box;
        take_hull(t, !writing);
        esdm__meeting_tell(&t->meeting, t->of_meeting);
    } else {
        mine.status = esdm__error_nomem(&mine, sizeof *t->io, "a collective transfer");
    }
    size_t count = NOTE_LENGTHS - 1 + axes + esdm__meeting_numbers((uint32_t) axes);
    esdm_status status =
        esdm__comm_agree_on(t->container_io->comm, mine.status, t->numbers, count, &mine);
    if (status == ESDM_OK && t->numbers[NOTE_DATASET] != ~t->numbers[NOTE_OTHER_DATASET])
        status = esdm__error_set(&mine, ESDM_EINVAL,
                                 "the ranks call a collective transfer for different datasets");
    if (status != ESDM_OK && err != NULL)
        *err = mine;
    return status;
}

/* The longest dimensions of any rank, and what they are about to write. */
static void
apply_lengths(const transfer *t)
{
    for (uint32_t i = 0; i < t->dataset->rank; i++) {
        esdm_dimension *dimension = t->dataset->dimensions[i];
        if (dimension->unlimited)
            (void) esdm__dimension_grow(dimension, t->numbers[NOTE_LENGTHS + i]);
    }
}

void
esdm__dataset_cut(esdm_dataset *dataset, esdm__dataset_io *io)
{
    esdm_error failure = {0};
    failure.status = esdm__dataset_flush(dataset, io, &failure);
    /* Else it would be taken for newer than what others write after the cut. */
    if (failure.status != ESDM_OK)
        esdm__dataset_give_up_unstored(dataset, io, &failure);
    (void) pthread_mutex_lock(&io->lock);
    uint32_t pending = (uint32_t) esdm__index_pending_count(io->index);
    (void) pthread_mutex_unlock(&io->lock);
    if (!esdm__epochs_cut(io->epochs, pending) && io->failure == NULL) {
        failure.status = esdm__error_nomem(&failure, pending, "the order of writes");
        esdm__dataset_fail(io, &failure);
    }
}

/* All ranks come to the same conclusions here. */
static esdm_status
settle(transfer *t, bool writing, esdm_error *err)
{
    bool meets = false;
    apply_lengths(t);
    esdm_status status = esdm__meeting_decide(t->container_io->comm, &t->container_io->tree,
                                              &t->meeting, t->of_meeting, &meets, err);
    if (status != ESDM_OK || !meets)
        return status;
    if (!writing)
        return esdm__collective_share(t->dataset, t->io, err);
    (void) pthread_mutex_lock(&t->io->write_lock);
    esdm__dataset_cut(t->dataset, t->io);
    (void) pthread_mutex_unlock(&t->io->write_lock);
    return ESDM_OK;
}

static uint32_t
unlimited_axes(const esdm_dataset *dataset)
{
    uint32_t axes = 0;
    for (uint32_t i = 0; i < dataset->rank; i++)
        axes |= (uint32_t) dataset->dimensions[i]->unlimited << i;
    return axes;
}

/* Engine state of the dataset, with room for what meetings remember. NULL: no memory. */
static esdm__dataset_io *
io_for_meetings(esdm_dataset *dataset)
{
    esdm__dataset_io *io = NULL;
    if (esdm__dataset_io_get(dataset, &io, NULL) != ESDM_OK)
        return NULL;
    if (io->territory == NULL)
        io->territory = calloc(1, sizeof *io->territory);
    if (io->territory == NULL)
        esdm__dataset_io_put(dataset);
    return io->territory != NULL ? io : NULL;
}

esdm_status
esdm__collective_transfer(esdm_dataset *dataset, const esdm_dataspace *space, bool writing,
                          esdm_error *err)
{
    transfer t = {.dataset = dataset,
                  .container_io = esdm__io_of(dataset->group->container),
                  .meeting = {.rank = dataset->rank, .unlimited = unlimited_axes(dataset)}};
    esdm__box box;
    bool empty = space == NULL || esdm_dataspace_elements(space) == 0;
    if (!dataset->group->container->writable)
        return ESDM_OK; /* what is read is the same for all, and committed */
    if (!empty)
        esdm__box_of_space(&box, space);
    t.io = io_for_meetings(dataset); /* without, the other ranks hear of it */
    if (t.io != NULL)
        t.meeting.territory = t.io->territory;
    esdm_status status = esdm__collective_check(dataset->group->container, err);
    if (status == ESDM_OK)
        status = exchange(&t, empty ? NULL : &box, writing, err);
    if (status == ESDM_OK)
        status = settle(&t, writing, err);
    if (t.io != NULL)
        esdm__dataset_io_put(dataset);
    return status == ESDM_OK ? ESDM_OK : esdm__dataset_prefix(dataset, status, err);
}
