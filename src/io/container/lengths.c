/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/container/lengths.h"

#include <stdlib.h>

#include "base/error.h"

esdm_status
esdm__lengths_collect(const esdm_container *container, esdm_meta_length **ret_lengths,
                      size_t *ret_count, esdm_error *err)
{
    esdm_meta_length *lengths = NULL;
    size_t count = 0;
    size_t all = container->dimensions.count;
    for (size_t i = 0; i < all; i++) {
        const esdm_dimension *dimension = container->dimensions.items[i];
        if (!dimension->unlimited)
            continue;
        if (lengths == NULL)
            lengths = malloc((all - i) * sizeof *lengths);
        if (lengths == NULL)
            return esdm__error_nomem(err, all * sizeof *lengths, "dimension lengths");
        lengths[count++] = (esdm_meta_length){dimension->id, atomic_load(&dimension->length)};
    }
    *ret_lengths = lengths;
    *ret_count = count;
    return ESDM_OK;
}

bool
esdm__lengths_changed(const esdm_container *container)
{
    esdm__container_io *io = esdm__io_of(container);
    size_t next = 0;
    bool changed = false;
    (void) pthread_mutex_lock(&io->lock);
    for (size_t i = 0; i < container->dimensions.count && !changed; i++) {
        const esdm_dimension *dimension = container->dimensions.items[i];
        if (!dimension->unlimited)
            continue;
        while (next < io->npublished && io->published[next].dimension < dimension->id)
            next++;
        uint64_t known = next < io->npublished && io->published[next].dimension == dimension->id
                             ? io->published[next].length
                             : 0;
        changed = atomic_load(&dimension->length) > known;
    }
    (void) pthread_mutex_unlock(&io->lock);
    return changed;
}

void
esdm__lengths_set_published(esdm_container *container, esdm_meta_length *lengths, size_t count)
{
    esdm__container_io *io = esdm__io_of(container);
    (void) pthread_mutex_lock(&io->lock);
    free(io->published);
    io->published = lengths;
    io->npublished = count;
    (void) pthread_mutex_unlock(&io->lock);
}

void
esdm__lengths_apply(esdm_container *container, const esdm_meta_length *lengths, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (lengths[i].dimension >= container->dimensions.count)
            continue; /* of a newer structure than ours */
        esdm_dimension *dimension = container->dimensions.items[lengths[i].dimension];
        if (dimension->unlimited)
            (void) esdm__dimension_grow(dimension, lengths[i].length);
    }
}
