/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/container/opened.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/container/dataset_io.h"

esdm_status
esdm__opened_set(esdm_container *container, esdm_error *err)
{
    esdm__container_io *io = esdm__io_of(container);
    esdm__opened *opened = &io->opened;
    (void) pthread_mutex_lock(&io->lock);
    size_t count = io->npublished;
    esdm_meta_length *lengths = malloc((count + 1) * sizeof *lengths);
    if (lengths != NULL && count > 0)
        memcpy(lengths, io->published, count * sizeof *lengths);
    uint64_t snapshot = io->snapshot;
    (void) pthread_mutex_unlock(&io->lock);
    if (lengths == NULL)
        return esdm__error_nomem(err, count * sizeof *lengths, "dimension lengths");
    free(opened->lengths);
    *opened = (esdm__opened){.snapshot = snapshot,
                             .lengths = lengths,
                             .nlengths = count,
                             .own = opened->own,
                             .capacity = opened->capacity};
    return ESDM_OK;
}

void
esdm__opened_clear(esdm__opened *opened)
{
    free(opened->lengths);
    free(opened->own);
    *opened = (esdm__opened){0};
}

esdm_status
esdm__opened_reserve(esdm__container_io *io, esdm_error *err)
{
    esdm__opened *opened = &io->opened;
    if (opened->nown < opened->capacity)
        return ESDM_OK;
    size_t capacity = opened->capacity == 0 ? 8 : 2 * opened->capacity;
    esdm__snapshots *own = realloc(opened->own, capacity * sizeof *own);
    if (own == NULL)
        return esdm__error_nomem(err, capacity * sizeof *own, "a commit");
    opened->own = own;
    opened->capacity = capacity;
    return ESDM_OK;
}

void
esdm__opened_note(esdm__container_io *io, uint64_t snapshot)
{
    esdm__opened *opened = &io->opened;
    esdm__snapshots *last = opened->nown > 0 ? &opened->own[opened->nown - 1] : NULL;
    if (last != NULL && last->last + 1 == snapshot)
        last->last = snapshot;
    else if (opened->nown < opened->capacity)
        opened->own[opened->nown++] = (esdm__snapshots){snapshot, snapshot};
}

uint64_t
esdm__opened_alone_until(const esdm__container_io *io)
{
    const esdm__opened *opened = &io->opened;
    if (opened->nown == 0)
        return opened->snapshot;
    bool alone = opened->nown == 1 && opened->own[0].first == opened->snapshot + 1;
    return alone ? opened->own[0].last : 0;
}
