/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/container/behind.h"

#include <stdlib.h>

#include "io/session/behind.h"
#include "io/session/session.h"

static esdm__behind *
behind_of(const esdm_dataset *dataset)
{
    return dataset->group->container->session->behind;
}

esdm_status
esdm__container_check_process(const esdm_container *container, esdm_error *err)
{
    const esdm__behind *behind = container->session->behind;
    return behind != NULL ? esdm__behind_check(behind, err) : ESDM_OK;
}

esdm_status
esdm__dataset_settle(const esdm_dataset *dataset, esdm__dataset_io *io, esdm_error *err)
{
    esdm__behind *behind = behind_of(dataset);
    return behind != NULL ? esdm__behind_settle(behind, &io->lane, err) : ESDM_OK;
}

void
esdm__dataset_wait(const esdm_dataset *dataset, const esdm__dataset_io *io)
{
    esdm__behind *behind = behind_of(dataset);
    if (behind != NULL)
        esdm__behind_wait(behind, &io->lane);
}

typedef struct teller {
    void (*lost)(void *user, const esdm_dataspace *space);
    void *user;
} teller;

static void
tell(void *user, const esdm__job *job)
{
    const teller *t = user;
    const esdm__behind_box *what = (const esdm__behind_box *) (job + 1);
    esdm_dataspace space;
    if (what->strided != NULL) {
        t->lost(t->user, what->strided);
        return;
    }
    (void) !esdm_dataspace_init(&space, what->box.rank, what->box.lo, what->box.n, NULL);
    t->lost(t->user, &space);
}

void
esdm__dataset_drop_boxes(const esdm_dataset *dataset, esdm__dataset_io *io,
                         void (*lost)(void *user, const esdm_dataspace *space), void *user)
{
    esdm__behind *behind = behind_of(dataset);
    teller t = {lost, user};
    if (behind != NULL)
        (void) esdm__behind_drop(behind, &io->lane, true, lost != NULL ? tell : NULL, &t);
}

size_t
esdm__dataset_give_up_boxes(const esdm_dataset *dataset, esdm__dataset_io *io)
{
    esdm__behind *behind = behind_of(dataset);
    size_t given_up = 0;
    while (behind != NULL && esdm__behind_settle(behind, &io->lane, NULL) != ESDM_OK)
        given_up += esdm__behind_drop(behind, &io->lane, false, NULL, NULL);
    return given_up;
}

/* What is to be written again. */
typedef struct given_up {
    esdm__dataset_io *io;
    const esdm_error *why;
} given_up;

static void
note_lost_selection(void *user, const esdm_dataspace *space)
{
    const given_up *g = user;
    esdm__failed_note(&g->io->failed, space, g->why);
}

static void
note_lost(void *user, const esdm__box *box)
{
    esdm_dataspace space;
    (void) !esdm_dataspace_init(&space, box->rank, box->lo, box->n, NULL);
    note_lost_selection(user, &space);
}

void
esdm__dataset_give_up_unstored(const esdm_dataset *dataset, esdm__dataset_io *io,
                               const esdm_error *why)
{
    given_up g = {.io = io, .why = why};
    esdm__dataset_drop_boxes(dataset, io, note_lost_selection, &g);
    atomic_fetch_sub(&dataset->group->container->session->gathered,
                     esdm__gather_bytes(&io->gather));
    esdm__gather_give_up(&io->gather, note_lost, &g);
    atomic_store(&io->gathered, false);
}

void
esdm__container_wait(esdm_container *container)
{
    esdm__container_io *io = esdm__io_of(container);
    esdm__behind *behind = container->session->behind;
    if (behind == NULL || esdm__behind_is_empty(behind) ||
        esdm__behind_check(behind, NULL) != ESDM_OK)
        return;
    /* Others that have boxes are in this list, and only this thread may change structure. */
    for (size_t i = 0;; i++) {
        (void) pthread_mutex_lock(&io->lock);
        const esdm_dataset *dataset = i < io->ndirty ? io->dirty[i] : NULL;
        (void) pthread_mutex_unlock(&io->lock);
        if (dataset == NULL)
            return;
        const esdm__dataset_io *of = esdm__dataset_io_find(dataset);
        if (of == NULL)
            continue;
        esdm__behind_wait(behind, &of->lane);
        esdm__dataset_io_put(dataset);
    }
}
