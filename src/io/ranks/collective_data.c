/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Collective writes and reads of one dataset. The ranks tell each other what they are about to
 * transfer and what they wrote before; from that all of them conclude alike how long the dimensions
 * are, whether the order of writes matters (a cut, see io/container/epochs.h), and whether a read
 * needs to know what other ranks wrote.
 */
#include <string.h>

#include "base/error.h"
#include "io/ranks/collective.h"
#include "io/read/read.h"
#include "io/write/write.h"

#define SMALL_RANK 8u

/* What a rank tells: these, then for each axis the length and two boxes. */
enum { NOTE_DATASET, NOTE_FAILED, NOTE_HAS_BOX, NOTE_HAS_HULL, NOTE_AXES };
enum { AXIS_LENGTH, AXIS_LO, AXIS_N, AXIS_HULL_LO, AXIS_HULL_N, AXIS_NUMBERS };

size_t
esdm__transfer_note_bytes(void)
{
    return (NOTE_AXES + (size_t) AXIS_NUMBERS * ESDM_MAX_RANK) * sizeof(uint64_t);
}

/* Numbers in a note. Ranks that (wrongly) name different datasets mostly agree on it all the same,
 * and can be told. */
static size_t
note_length(const esdm_dataset *dataset)
{
    uint32_t axes = dataset->rank <= SMALL_RANK ? SMALL_RANK : ESDM_MAX_RANK;
    return NOTE_AXES + (size_t) AXIS_NUMBERS * axes;
}

static uint64_t *
axis_of(uint64_t *note, uint32_t axis)
{
    return note + NOTE_AXES + (size_t) AXIS_NUMBERS * axis;
}

/* The box that is to be transferred (1), or the hull of what was written (2). */
static bool
take_box(uint64_t *note, uint32_t rank, int which, esdm__box *ret_box)
{
    if (note[which == 1 ? NOTE_HAS_BOX : NOTE_HAS_HULL] == 0)
        return false;
    ret_box->rank = rank;
    for (uint32_t i = 0; i < rank; i++) {
        const uint64_t *axis = axis_of(note, i);
        ret_box->lo[i] = axis[which == 1 ? AXIS_LO : AXIS_HULL_LO];
        ret_box->n[i] = axis[which == 1 ? AXIS_N : AXIS_HULL_N];
    }
    return true;
}

static void
put_box(uint64_t *note, int which, const esdm__box *box)
{
    note[which == 1 ? NOTE_HAS_BOX : NOTE_HAS_HULL] = 1;
    for (uint32_t i = 0; i < box->rank; i++) {
        uint64_t *axis = axis_of(note, i);
        axis[which == 1 ? AXIS_LO : AXIS_HULL_LO] = box->lo[i];
        axis[which == 1 ? AXIS_N : AXIS_HULL_N] = box->n[i];
    }
}

/* One collective transfer. */
typedef struct transfer {
    esdm_dataset *dataset;
    esdm_comm *comm;
    uint64_t *notes; /* of all ranks; borrowed from the container */
    size_t length;   /* numbers in one */
} transfer;

/* Exchanges notes. @param box NULL: this rank transfers nothing. @param unshared tell of what the
 * other ranks cannot see; else of what was written since the last cut. */
static esdm_status
exchange(transfer *t, esdm__dataset_io *io, const esdm__box *box, bool unshared, esdm_error *err)
{
    const esdm_dataset *dataset = t->dataset;
    uint64_t *mine = t->notes;
    t->length = note_length(dataset);
    t->notes = mine + t->length;
    memset(mine, 0, t->length * sizeof *mine);
    mine[NOTE_DATASET] = dataset->id;
    mine[NOTE_FAILED] = io == NULL;
    for (uint32_t i = 0; i < dataset->rank; i++)
        axis_of(mine, i)[AXIS_LENGTH] = atomic_load(&dataset->dimensions[i]->length);
    if (box != NULL)
        put_box(mine, 1, box);
    if (io != NULL) {
        (void) pthread_mutex_lock(&io->write_lock);
        if (unshared && io->epochs.unshared)
            put_box(mine, 2, &io->epochs.hulls->unshared);
        else if (!unshared && io->epochs.open)
            put_box(mine, 2, &io->epochs.hulls->written);
        (void) pthread_mutex_unlock(&io->write_lock);
    }
    esdm_status status =
        t->comm->ops->gather(t->comm, mine, t->length * sizeof *mine, t->notes, err);
    for (int r = 0; r < t->comm->size && status == ESDM_OK; r++) {
        const uint64_t *note = t->notes + (size_t) r * t->length;
        if (note[NOTE_FAILED] != 0)
            status = esdm__error_set(err, ESDM_ENOMEM, "rank %d has no memory", r);
        else if (note[NOTE_DATASET] != dataset->id)
            status = esdm__error_set(err, ESDM_EINVAL,
                                     "the ranks call a collective transfer for different datasets");
    }
    return status;
}

/* The longest dimensions of any rank; `growing`: and what they are about to write. */
static void
apply_lengths(const transfer *t, bool growing)
{
    for (uint32_t i = 0; i < t->dataset->rank; i++) {
        esdm_dimension *dimension = t->dataset->dimensions[i];
        for (int r = 0; dimension->unlimited && r < t->comm->size; r++) {
            uint64_t *note = t->notes + (size_t) r * t->length;
            const uint64_t *axis = axis_of(note, i);
            (void) esdm__dimension_grow(dimension, axis[AXIS_LENGTH]);
            if (growing && note[NOTE_HAS_BOX] != 0)
                (void) esdm__dimension_grow(dimension, axis[AXIS_LO] + axis[AXIS_N]);
        }
    }
}

/* Whether a rank is about to transfer what another one wrote. */
static bool
meets_others(const transfer *t)
{
    esdm__box box;
    esdm__box hull;
    for (int a = 0; a < t->comm->size; a++) {
        if (!take_box(t->notes + (size_t) a * t->length, t->dataset->rank, 1, &box))
            continue;
        for (int b = 0; b < t->comm->size; b++) {
            if (a != b && take_box(t->notes + (size_t) b * t->length, t->dataset->rank, 2, &hull) &&
                esdm__box_meets(&box, &hull))
                return true;
        }
    }
    return false;
}

/* A gathered box that is to be written again. */
typedef struct given_up {
    esdm__dataset_io *io;
    const esdm_error *why;
} given_up;

static void
note_lost(void *user, const esdm__box *box)
{
    const given_up *g = user;
    esdm_dataspace space;
    (void) !esdm_dataspace_init(&space, box->rank, box->lo, box->n, NULL);
    esdm__failed_note(&g->io->failed, &space, g->why);
}

/* What could not be stored before the cut would be taken for newer than what others write after
 * it. So it counts as a write that failed: commits tell, until it is written again or given up. */
static void
give_up_gathered(esdm_dataset *dataset, esdm__dataset_io *io, const esdm_error *why)
{
    given_up g = {.io = io, .why = why};
    atomic_fetch_sub(&dataset->group->container->session->gathered,
                     esdm__gather_bytes(&io->gather));
    esdm__gather_give_up(&io->gather, note_lost, &g);
    atomic_store(&io->gathered, false);
}

void
esdm__dataset_cut(esdm_dataset *dataset, esdm__dataset_io *io)
{
    esdm_error failure = {0};
    failure.status = esdm__dataset_flush(dataset, io, &failure);
    if (failure.status != ESDM_OK)
        give_up_gathered(dataset, io, &failure);
    (void) pthread_mutex_lock(&io->lock);
    uint32_t pending = (uint32_t) esdm__index_pending_count(io->index);
    (void) pthread_mutex_unlock(&io->lock);
    if (!esdm__epochs_cut(&io->epochs, pending) && io->failure == NULL) {
        failure.status = esdm__error_nomem(&failure, pending, "the order of writes");
        esdm__dataset_fail(io, &failure);
    }
}

/* All ranks come to the same conclusions here. */
static esdm_status
settle(const transfer *t, esdm__dataset_io *io, bool writing, esdm_error *err)
{
    apply_lengths(t, writing);
    if (!meets_others(t))
        return ESDM_OK;
    if (!writing)
        return esdm__collective_share(t->dataset, io, err);
    if (io == NULL) /* exchange() failed on all ranks when it is missing on one */
        return ESDM_OK;
    (void) pthread_mutex_lock(&io->write_lock);
    esdm__dataset_cut(t->dataset, io);
    (void) pthread_mutex_unlock(&io->write_lock);
    return ESDM_OK;
}

esdm_status
esdm__collective_transfer(esdm_dataset *dataset, const esdm_dataspace *space, bool writing,
                          esdm_error *err)
{
    const esdm__container_io *container_io = esdm__io_of(dataset->group->container);
    transfer t = {.dataset = dataset, .comm = container_io->comm, .notes = container_io->notes};
    esdm__dataset_io *io = NULL;
    esdm__box box;
    bool empty = space == NULL || esdm_dataspace_elements(space) == 0;
    if (!dataset->group->container->writable)
        return ESDM_OK; /* what is read is the same for all, and committed */
    if (!empty)
        esdm__box_of_space(&box, space);
    if (esdm__dataset_io_get(dataset, &io, NULL) != ESDM_OK)
        io = NULL; /* the other ranks hear of it */
    esdm_status status = esdm__collective_check(dataset->group->container, err);
    if (status == ESDM_OK)
        status = exchange(&t, io, empty ? NULL : &box, !writing, err);
    if (status == ESDM_OK)
        status = settle(&t, io, writing, err);
    return status == ESDM_OK ? ESDM_OK : esdm__dataset_prefix(dataset, status, err);
}
