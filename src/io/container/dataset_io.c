/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/short_mutex.h"
#include "io/container/accuracy.h"
#include "io/container/behind.h"
#include "io/container/shared_pages.h"
#include "io/packs/equals.h"
#include "io/packs/taker.h"

#define SMALL_FRAGMENT_BYTES (UINT64_C(256) << 10)

esdm_status
esdm__container_io_new(esdm_session *session, esdm_container *container, esdm_error *err)
{
    esdm__container_io *io = calloc(1, sizeof *io);
    if (io == NULL)
        return esdm__error_nomem(err, sizeof *io, "a container");
    io->session = session;
    (void) pthread_mutex_init(&io->commit_lock, NULL);
    (void) pthread_mutex_init(&io->lock, NULL);
    (void) pthread_mutex_init(&io->equals_lock, NULL);
    (void) pthread_mutex_init(&io->shapes_lock, NULL);
    esdm__dedup dedup = esdm__site_dedup(session->site, container->name);
    io->dedups = session->meta->commit_shares && !session->read_only && dedup != ESDM__DEDUP_OFF;
    io->by_content = dedup == ESDM__DEDUP_CONTENT;
    container->session = session;
    container->io = io;
    container->settle = session->behind != NULL ? esdm__container_wait : NULL;
    return ESDM_OK;
}

static void
end_pin(const esdm__container_io *io)
{
    bool common =
        io->shared != NULL && esdm__shared_pages_are_of(io->shared, io->record, io->snapshot);
    if (io->shared != NULL)
        esdm__shared_pages_end(io->shared, io->session, common && io->pinned);
    if (io->pinned && !common)
        io->session->meta->unpin(io->session->store, io->record, io->snapshot);
}

void
esdm__container_io_free(esdm_container *container)
{
    esdm__container_io *io = container->io;
    if (io != NULL)
        esdm__taker_free(io->taker); /* it uses the packs */
    for (size_t i = 0; i < container->datasets.count; i++)
        esdm__dataset_io_free(container->datasets.items[i]);
    if (io == NULL)
        return;
    esdm__pack_set_free(io->packs);
    esdm_comm_unref(io->comm);
    esdm__tree_clear(&io->tree);
    end_pin(io);
    if (io->shapes != NULL) {
        esdm__container_io_free(io->shapes);
        esdm__container_free(io->shapes);
    }
    esdm__equals_free(io->equals);
    free(io->dirty);
    free(io->published);
    free(io->over);
    esdm__cf_clear(&io->cf);
    esdm__opened_clear(&io->opened);
    (void) pthread_mutex_destroy(&io->shapes_lock);
    (void) pthread_mutex_destroy(&io->equals_lock);
    (void) pthread_mutex_destroy(&io->lock);
    (void) pthread_mutex_destroy(&io->commit_lock);
    free(io);
    container->io = NULL;
}

void
esdm__container_position(const esdm_container *container, uint64_t *ret_record,
                         uint64_t *ret_snapshot)
{
    esdm__container_io *io = esdm__io_of(container);
    (void) pthread_mutex_lock(&io->lock);
    *ret_record = io->record;
    *ret_snapshot = io->snapshot;
    (void) pthread_mutex_unlock(&io->lock);
}

uint64_t
esdm__container_set_position(esdm_container *container, uint64_t record, uint64_t snapshot)
{
    esdm__container_io *io = esdm__io_of(container);
    (void) pthread_mutex_lock(&io->lock);
    uint64_t left = io->snapshot;
    io->record = record;
    io->snapshot = snapshot;
    container->snapshot = snapshot;
    (void) pthread_mutex_unlock(&io->lock);
    return left;
}

/* The pending fragments of the pack lie on another target now. */
static esdm_status
note_moved_pack(void *user, const char *pack, const char *from, const char *to, esdm_error *err)
{
    const esdm_container *container = user;
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < container->datasets.count && status == ESDM_OK; i++) {
        const esdm_dataset *dataset = container->datasets.items[i];
        esdm__dataset_io *io = esdm__dataset_io_find(dataset);
        if (io == NULL)
            continue;
        (void) pthread_mutex_lock(&io->lock);
        status = esdm__index_move_pack(io->index, pack, from, to, err);
        (void) pthread_mutex_unlock(&io->lock);
        esdm__dataset_io_put(dataset);
    }
    return status;
}

/* Whether pending fragments of any dataset lie in the pack. */
static bool
needs_pack(void *user, const char *pack)
{
    const esdm_container *container = user;
    bool needed = false;
    for (size_t i = 0; i < container->datasets.count && !needed; i++) {
        const esdm_dataset *dataset = container->datasets.items[i];
        esdm__dataset_io *io = esdm__dataset_io_find(dataset);
        if (io == NULL)
            continue;
        (void) pthread_mutex_lock(&io->lock);
        needed = esdm__index_needs_pack(io->index, pack);
        (void) pthread_mutex_unlock(&io->lock);
        esdm__dataset_io_put(dataset);
    }
    return needed;
}

esdm_status
esdm__container_packs(esdm_container *container, esdm__pack_set **ret_packs, esdm_error *err)
{
    esdm__container_io *io = esdm__io_of(container);
    (void) pthread_mutex_lock(&io->lock);
    if (io->packs == NULL) { /* others look without the lock whether there are any */
        esdm__pack_owner owner = {.session = io->session,
                                  .moved = note_moved_pack,
                                  .needed = needs_pack,
                                  .user = container};
        memcpy(owner.uuid, io->uuid, sizeof owner.uuid);
        memcpy(owner.writer, io->writer, sizeof owner.writer);
        owner.rank = io->writer_rank;
        __atomic_store_n(&io->packs, esdm__pack_set_new(&owner), __ATOMIC_RELEASE);
    }
    *ret_packs = io->packs;
    (void) pthread_mutex_unlock(&io->lock);
    return *ret_packs != NULL ? ESDM_OK : esdm__error_nomem(err, sizeof(void *), "packs");
}

esdm_status
esdm__dataset_prefix(const esdm_dataset *dataset, esdm_status status, esdm_error *err)
{
    char *path = esdm__dataset_path(dataset);
    status =
        esdm__error_prefix(err, status, "container '%s', dataset '%s'",
                           dataset->group->container->name, path != NULL ? path : dataset->name);
    free(path);
    return status;
}

/* Blocks of mode archive. Codecs make 32-bit numbers of all that is shorter. */
static uint32_t
archive_block_bytes(const esdm_session *session, const esdm__dataset_io *io)
{
    size_t bytes = io->elements.bytes < 4 ? io->elements.bytes : 4;
    uint64_t scaled = session->archive_block_bytes / 4 * bytes;
    if (scaled > UINT32_MAX)
        return UINT32_MAX;
    return (uint32_t) (scaled > ESDM__ARCHIVE_BLOCK_LEAST ? scaled : ESDM__ARCHIVE_BLOCK_LEAST);
}

void
esdm__dataset_io_widen(esdm__dataset_io *io, uint64_t bytes)
{
    while (io->gather.limit_bytes <= bytes / 2) {
        io->gather.limit_bytes *= 2;
        io->widened++;
    }
    /* Steps that come in fours at least can be cut along them. */
    if (io->direct_bytes < io->gather.limit_bytes / 4)
        io->direct_bytes = io->gather.limit_bytes / 4;
}

void
esdm__dataset_io_size(const esdm_dataset *dataset, esdm__dataset_io *io)
{
    const esdm_session *session = dataset->group->container->session;
    esdm_accuracy accuracy;
    bool chosen = dataset->stated->codec == NULL && esdm__accuracy_in_force(dataset, &accuracy);
    bool archive =
        chosen && (accuracy.stated & ESDM_ACCURACY_MODE) != 0 && accuracy.mode == ESDM_MODE_ARCHIVE;
    uint64_t preferred = session->fragment_bytes;
    io->block_bytes = archive ? archive_block_bytes(session, io) : 0;
    if (io->block_bytes > preferred && !session->site->engine.fragment_stated)
        preferred = io->block_bytes;
    io->gather.limit_bytes = preferred;
    io->widened = 0;
    io->readers_asked = false;
    io->encodes =
        chosen && (accuracy.stated & ESDM_ACCURACY_MODE) != 0 && accuracy.mode == ESDM_MODE_FAST;
    /* Where data are encoded a copy costs little, and what was gathered keeps all threads busy. */
    bool early = !archive && !io->encodes && preferred > ESDM__DIRECT_BYTES;
    io->direct_bytes = early ? ESDM__DIRECT_BYTES : preferred;
    uint64_t gather = session->site->engine.gather_bytes;
    if (!archive && !io->encodes && preferred <= gather / 2)
        esdm__dataset_io_widen(io, gather);
}

uint64_t
esdm__dataset_io_minimum(const esdm__dataset_io *io)
{
    uint64_t preferred = esdm__dataset_io_preferred(io);
    if (io->block_bytes > 0)
        return preferred;
    return preferred / 4 < SMALL_FRAGMENT_BYTES ? preferred / 4 : SMALL_FRAGMENT_BYTES;
}

static void
free_chain(const esdm_session *session, esdm__dataset_io *io)
{
    if (io->chain != &session->default_chain)
        free((void *) (uintptr_t) io->chain);
    io->chain = &session->default_chain;
}

/* @param chain NULL: the session's. Caller holds the write lock. */
static esdm_status
set_chain(const esdm_dataset *dataset, esdm__dataset_io *io, const esdm__chain *chain,
          esdm_error *err)
{
    esdm__chain *own = NULL;
    if (chain != NULL) {
        own = malloc(sizeof *own);
        if (own == NULL)
            return esdm__error_nomem(err, sizeof *own, "a codec chain");
        *own = *chain;
    }
    esdm__dataset_wait(dataset, io); /* what is stored behind its put uses the one of before */
    free_chain(dataset->group->container->session, io);
    if (own != NULL)
        io->chain = own;
    return ESDM_OK;
}

void
esdm__dataset_obey(const esdm_dataset *dataset, esdm__dataset_io *io)
{
    const char *codec = dataset->stated->codec;
    esdm__chain chain;
    if (codec == NULL || esdm__chain_parse_stored(codec, &chain, NULL) == ESDM_OK)
        (void) !set_chain(dataset, io, codec != NULL ? &chain : NULL, NULL);
    /* else it is which it was before: the codec is gone meanwhile */
    esdm__dataset_io_size(dataset, io);
}

static esdm_status
init_layout(const esdm_dataset *dataset, esdm__dataset_io *io, esdm_error *err)
{
    esdm_status status = esdm__elements_of(dataset, &io->elements, err);
    if (status != ESDM_OK)
        return status;
    const esdm_session *session = dataset->group->container->session;
    char *path = esdm__dataset_path(dataset);
    if (path == NULL)
        return esdm__error_nomem(err, 1, "the path of a dataset");
    const char *container = dataset->group->container->name;
    io->copies = esdm__site_copies(session->site, container, path);
    io->allowed = esdm__site_allowed(session->site, container, path);
    io->cheap = esdm__site_prefer(session->site, container, path) == ESDM__PREFER_CHEAP;
    free(path);
    io->chain = &session->default_chain;
    if (dataset->stated->codec == NULL)
        return ESDM_OK;
    esdm__chain chain;
    status = esdm__chain_parse_stored(dataset->stated->codec, &chain, err);
    return status == ESDM_OK ? set_chain(dataset, io, &chain, err) : status;
}

static esdm_status
dataset_io_new(const esdm_dataset *dataset, esdm__dataset_io **ret_io, esdm_error *err)
{
    esdm__dataset_io *io = calloc(1, sizeof *io);
    if (io == NULL)
        return esdm__error_nomem(err, sizeof *io, "a dataset");
    io->index = esdm__index_new(dataset->rank);
    if (io->index == NULL) {
        free(io);
        return esdm__error_nomem(err, sizeof *io, "a fragment index");
    }
    esdm_status status = init_layout(dataset, io, err);
    if (status == ESDM_OK && esdm__io_of(dataset->group->container)->comm != NULL &&
        (io->epochs = calloc(1, sizeof *io->epochs)) == NULL) {
        status = esdm__error_nomem(err, sizeof *io->epochs, "the order of writes");
        free_chain(dataset->group->container->session, io);
    }
    if (status != ESDM_OK) {
        esdm__index_free(io->index);
        free(io);
        return status;
    }
    (void) pthread_mutex_init(&io->write_lock, NULL);
    esdm__mutex_init_short(&io->lock);
    esdm__gather_init(&io->gather, io->elements.type, io->elements.bytes, 0);
    esdm__dataset_io_size(dataset, io);
    *ret_io = io;
    return ESDM_OK;
}

static void
free_io(const esdm_dataset *dataset, esdm__dataset_io *io)
{
    esdm__gather_clear(&io->gather);
    if (io->epochs != NULL)
        esdm__epochs_clear(io->epochs);
    free(io->epochs);
    free_chain(dataset->group->container->session, io);
    esdm__failed_clear(&io->failed);
    esdm__dataset_fail(io, NULL);
    free(io->territory);
    free(io->rounded);
    free(io->choice);
    free(io->choice_in_regions);
    esdm__region_map_free(io->regions.map);
    esdm__index_free(io->index);
    free(io->steps);
    (void) pthread_mutex_destroy(&io->lock);
    (void) pthread_mutex_destroy(&io->write_lock);
    free(io);
}

/* Makes the state, unless another thread is first. */
static esdm_status
make_io(esdm_dataset *dataset, esdm__dataset_io **ret_io, esdm_error *err)
{
    esdm__container_io *container_io = esdm__io_of(dataset->group->container);
    esdm__dataset_io *io = NULL;
    esdm_status status = dataset_io_new(dataset, &io, err);
    if (status != ESDM_OK)
        return status;
    (void) pthread_mutex_lock(&container_io->lock);
    esdm__dataset_io *other = dataset->io;
    /* What this handle alone has published, it knows: of this dataset nothing so far. */
    io->directory_loaded =
        container_io->record == 0 ||
        (container_io->sole && container_io->comm == NULL && !dataset->io_was_freed);
    if (other == NULL) {
        io->choice = dataset->io_choice;
        dataset->io_choice = NULL;
        __atomic_store_n(&dataset->io, io, __ATOMIC_SEQ_CST);
    }
    (void) pthread_mutex_unlock(&container_io->lock);
    if (other != NULL) {
        free_io(dataset, io);
        io = other;
    }
    *ret_io = io;
    return ESDM_OK;
}

static atomic_uint *
users_of(const esdm_dataset *dataset)
{
    return (atomic_uint *) (uintptr_t) &dataset->io_users;
}

/* One is counted before the pointer is read: who takes the pointer away looks whether others were
 * counted after that. */
esdm__dataset_io *
esdm__dataset_io_find(const esdm_dataset *dataset)
{
    (void) atomic_fetch_add(users_of(dataset), 1);
    esdm__dataset_io *io = __atomic_load_n(&dataset->io, __ATOMIC_SEQ_CST);
    if (io == NULL)
        esdm__dataset_io_put(dataset);
    return io;
}

esdm__dataset_io *
esdm__dataset_io_find_for_sure(const esdm_dataset *dataset)
{
    esdm__container_io *container_io = esdm__io_of(dataset->group->container);
    (void) pthread_mutex_lock(&container_io->lock);
    esdm__dataset_io *io = esdm__dataset_io_find(dataset);
    (void) pthread_mutex_unlock(&container_io->lock);
    return io;
}

void
esdm__dataset_io_put(const esdm_dataset *dataset)
{
    (void) atomic_fetch_sub_explicit(users_of(dataset), 1, memory_order_release);
}

esdm_status
esdm__dataset_io_get(esdm_dataset *dataset, esdm__dataset_io **ret_io, esdm_error *err)
{
    (void) atomic_fetch_add(&dataset->io_users, 1);
    *ret_io = __atomic_load_n(&dataset->io, __ATOMIC_SEQ_CST);
    if (*ret_io != NULL)
        return ESDM_OK;
    esdm_status status = make_io(dataset, ret_io, err);
    if (status != ESDM_OK)
        esdm__dataset_io_put(dataset);
    return status;
}

static void
uncount(const esdm_dataset *dataset, esdm__dataset_io *io)
{
    esdm_session *session = dataset->group->container->session;
    atomic_fetch_sub(&session->gathered, esdm__gather_bytes(&io->gather));
    atomic_fetch_sub(&session->indexed, io->index_bytes);
    atomic_fetch_sub(&session->inlined, io->inline_bytes);
    esdm__ahead_drop(session->ahead, io, 0, UINT64_MAX);
}

void
esdm__dataset_io_free(esdm_dataset *dataset)
{
    esdm__dataset_io *io = dataset->io;
    free(dataset->io_choice);
    dataset->io_choice = NULL;
    if (io == NULL)
        return;
    esdm__dataset_drop_boxes(dataset, io, NULL, NULL);
    uncount(dataset, io);
    free_io(dataset, io);
    dataset->io = NULL;
}

void
esdm__dataset_io_release(esdm_dataset *dataset, esdm__dataset_io *io)
{
    esdm__container_io *container_io = esdm__io_of(dataset->group->container);
    (void) pthread_mutex_lock(&io->lock);
    bool idle = io->planning == 0 && esdm__dataset_io_is_idle(dataset, io);
    (void) pthread_mutex_unlock(&io->lock);
    if (idle) {
        (void) pthread_mutex_lock(&container_io->lock);
        __atomic_store_n(&dataset->io, NULL, __ATOMIC_SEQ_CST);
        idle = atomic_load(&dataset->io_users) == 1;
        if (idle) {
            dataset->io_was_freed = true;
            dataset->io_choice = io->choice;
            io->choice = NULL;
            container_io->writes += atomic_load(&io->writes);
        } else {
            __atomic_store_n(&dataset->io, io, __ATOMIC_SEQ_CST);
        }
        (void) pthread_mutex_unlock(&container_io->lock);
    }
    (void) pthread_mutex_unlock(&io->write_lock);
    if (!idle)
        return;
    uncount(dataset, io);
    free_io(dataset, io);
}

void
esdm__dataset_fail(esdm__dataset_io *io, const esdm_error *why)
{
    static const esdm_error no_memory = {.status = ESDM_ENOMEM,
                                         .message = "out of memory while ranks were writing"};
    if (io->failure != &no_memory)
        free((void *) (uintptr_t) io->failure);
    io->failure = NULL;
    if (why == NULL)
        return;
    esdm_error *copy = malloc(sizeof *copy);
    if (copy != NULL)
        *copy = *why;
    io->failure = copy != NULL ? copy : &no_memory;
}

int
esdm__dataset_by_id(const void *a, const void *b)
{
    const esdm_dataset *x = *(esdm_dataset *const *) a;
    const esdm_dataset *y = *(esdm_dataset *const *) b;
    return x->id < y->id ? -1 : x->id > y->id;
}

bool
esdm__datasets_hold(esdm_dataset *const *list, size_t count, const esdm_dataset *dataset)
{
    return count > 0 &&
           bsearch(&dataset, list, count, sizeof(esdm_dataset *), esdm__dataset_by_id) != NULL;
}

esdm_status
esdm__dataset_mark_dirty(esdm_dataset *dataset, esdm__dataset_io *io, esdm_error *err)
{
    if (atomic_load_explicit(&io->listed, memory_order_relaxed))
        return ESDM_OK;
    esdm__container_io *container_io = esdm__io_of(dataset->group->container);
    esdm_status status = ESDM_OK;
    (void) pthread_mutex_lock(&container_io->lock);
    if (container_io->ndirty == container_io->dirty_capacity) {
        size_t capacity = container_io->dirty_capacity == 0 ? 8 : 2 * container_io->dirty_capacity;
        esdm_dataset **grown = realloc(container_io->dirty, capacity * sizeof *container_io->dirty);
        if (grown == NULL) {
            status = esdm__error_nomem(err, capacity * sizeof *grown, "the list of datasets");
        } else {
            container_io->dirty = grown;
            container_io->dirty_capacity = capacity;
        }
    }
    if (status == ESDM_OK && !atomic_load(&io->listed)) {
        container_io->dirty[container_io->ndirty++] = dataset;
        atomic_store(&io->listed, true);
    }
    (void) pthread_mutex_unlock(&container_io->lock);
    return status;
}

/* ---- hyperslabs --------------------------------------------------------------------------- */

esdm_status
esdm__space_check(const esdm_dataset *dataset, const esdm_dataspace *space, bool growing,
                  esdm_error *err)
{
    if (space->rank != dataset->rank) {
        (void) esdm__error_set(err, ESDM_EINVAL, "hyperslab of rank %u for a dataset of rank %u",
                               space->rank, dataset->rank);
        return esdm__dataset_prefix(dataset, ESDM_EINVAL, err);
    }
    for (uint32_t i = 0; i < space->rank; i++) {
        const esdm_dimension *dimension = dataset->dimensions[i];
        if (space->size[i] == 0 || (growing && dimension->unlimited))
            continue;
        uint64_t length = atomic_load_explicit(&dimension->length, memory_order_relaxed);
        uint64_t step = space->has_stride ? space->stride[i] : 1;
        uint64_t last = space->offset[i] + (space->size[i] - 1) * step;
        if (last >= length) {
            (void) esdm__error_set(err, ESDM_EINVAL,
                                   "index %" PRIu64 " is past the end of dimension '%s' (%" PRIu64
                                   ")",
                                   last, dimension->name, length);
            return esdm__dataset_prefix(dataset, ESDM_EINVAL, err);
        }
    }
    return ESDM_OK;
}

/* ---- settings ----------------------------------------------------------------------------- */

esdm_status
esdm__io_set_codec(esdm_dataset *dataset, const char *text, const esdm__chain *chain,
                   esdm_error *err)
{
    esdm_status status = esdm__dataset_set_codec_text(dataset, text, err);
    if (status != ESDM_OK)
        return status;
    esdm__dataset_io *io = esdm__dataset_io_find_for_sure(dataset);
    if (io != NULL) {
        (void) pthread_mutex_lock(&io->write_lock);
        status = set_chain(dataset, io, text != NULL ? chain : NULL, err);
        esdm__dataset_io_size(dataset, io);
        (void) pthread_mutex_unlock(&io->write_lock);
        esdm__dataset_io_put(dataset);
    }
    return status;
}
