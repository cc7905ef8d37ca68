/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "base/per_thread.h"

#include <stdbool.h>
#include <stdlib.h>

/* The memory of one thread. */
typedef struct slot {
    const esdm__per_thread *all;
    max_align_t memory[];
} slot;

static void
end_slot(void *memory)
{
    slot *own = memory;
    own->all->clear(own->memory);
    free(own);
}

static bool
make_key(esdm__per_thread *all)
{
    (void) pthread_mutex_lock(&all->lock);
    if (!atomic_load(&all->ready) && pthread_key_create(&all->key, end_slot) == 0)
        atomic_store(&all->ready, true);
    (void) pthread_mutex_unlock(&all->lock);
    return atomic_load(&all->ready);
}

void *
esdm__per_thread_get(esdm__per_thread *all)
{
    if (!atomic_load_explicit(&all->ready, memory_order_acquire) && !make_key(all))
        return NULL;
    slot *own = pthread_getspecific(all->key);
    if (own != NULL)
        return own->memory;
    own = calloc(1, sizeof *own + all->bytes);
    if (own == NULL)
        return NULL;
    own->all = all;
    if (pthread_setspecific(all->key, own) != 0) {
        free(own);
        return NULL;
    }
    return own->memory;
}

void
esdm__per_thread_drop(esdm__per_thread *all)
{
    if (!atomic_exchange(&all->ready, false))
        return;
    slot *own = pthread_getspecific(all->key);
    (void) pthread_key_delete(all->key);
    if (own != NULL)
        end_slot(own);
}
