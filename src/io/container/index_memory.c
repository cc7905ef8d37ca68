/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The memory that indexes and states of all datasets of a session take together. */
#include "io/container/dataset_io.h"
#include "io/session/session.h"

/* A dataset may keep so much, as long as there is room for all. */
#define LEAST_INDEX_BYTES (UINT64_C(1) << 20)

static void
count(atomic_uint_fast64_t *sum, uint64_t *counted, uint64_t now)
{
    if (now > *counted)
        (void) atomic_fetch_add(sum, now - *counted);
    else if (now < *counted)
        (void) atomic_fetch_sub(sum, *counted - now);
    *counted = now;
}

/* With the index, which it owns. */
static size_t
state_bytes(void)
{
    return sizeof(esdm__dataset_io) + esdm__index_fixed_bytes();
}

bool
esdm__dataset_io_is_idle(const esdm_dataset *dataset, const esdm__dataset_io *io)
{
    bool kept = io->gather.levels != NULL || io->failed.list != NULL || io->failure != NULL ||
                atomic_load(&io->lane.count) > 0 || atomic_load(&io->listed) ||
                io->regions.map != NULL || atomic_load(&io->regions.doubt) != NULL;
    bool chosen = io->choice_in_regions != NULL; /* that took time; the other one is kept */
    bool shared = esdm__io_of(dataset->group->container)->comm != NULL;
    return !kept && !chosen && !shared && esdm__index_is_idle(io->index);
}

void
esdm__dataset_trim_index(const esdm_dataset *dataset, esdm__dataset_io *io)
{
    const esdm_container *container = dataset->group->container;
    esdm_session *session = container->session;
    uint64_t limit = session->index_limit_bytes / container->datasets.count;
    limit = limit > LEAST_INDEX_BYTES ? limit : LEAST_INDEX_BYTES;
    if (esdm__index_memory_bytes(io->index) > limit)
        esdm__index_evict(io->index, (size_t) limit / 2);
    bool kept = atomic_load(&io->listed) || esdm__io_of(container)->comm != NULL;
    count(&session->indexed, &io->index_bytes,
          esdm__index_memory_bytes(io->index) + esdm__index_directory_bytes(io->index) +
              (kept ? 0 : state_bytes()));
    count(&session->inlined, &io->inline_bytes, esdm__index_pending_inline_bytes(io->index));
}

/* Not of one that is being read, or written or committed, where another thread holds pages. */
static void
release(esdm_dataset *dataset, esdm__dataset_io *io)
{
    if (pthread_mutex_trylock(&io->write_lock) != 0)
        return;
    (void) pthread_mutex_lock(&io->lock);
    if (io->planning == 0 && io->index_bytes > 0 && esdm__index_release(io->index)) {
        io->directory_loaded = false;
        io->generation++;
    }
    esdm__dataset_trim_index(dataset, io);
    (void) pthread_mutex_unlock(&io->lock);
    esdm__dataset_io_release(dataset, io);
}

void
esdm__container_trim_indexes(const esdm_container *container, size_t most)
{
    const esdm_session *session = container->session;
    esdm__container_io *container_io = esdm__io_of(container);
    size_t n = container->datasets.count;
    if (atomic_load_explicit(&session->indexed, memory_order_relaxed) <= session->index_limit_bytes)
        return;
    most = most < n ? most : n;
    /* Down to half of it, so that most calls find nothing to do. */
    for (size_t i = 0; i < most && atomic_load(&session->indexed) > session->index_limit_bytes / 2;
         i++) {
        esdm_dataset *dataset =
            container->datasets.items[atomic_fetch_add(&container_io->hand, 1) % n];
        esdm__dataset_io *io = esdm__dataset_io_find(dataset);
        if (io == NULL)
            continue;
        release(dataset, io);
        esdm__dataset_io_put(dataset);
    }
}
