/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Committed index pages of a dataset: their directory, and loading them. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/container/dataset_io.h"
#include "io/container/shared_pages.h"
#include "io/session/session.h"

/* Snapshots that are deleted one after the other before their pages are listed. */
#define ATTEMPTS 20

/* ---- directories ---------------------------------------------------------------------------- */

/* What ranks of a node share of the snapshot that the handle is at; NULL: nothing. */
static const esdm__shared_pages *
shared_of(const esdm_container *container)
{
    const esdm__container_io *io = esdm__io_of(container);
    return atomic_load(&io->shared_stale) ? NULL : io->shared;
}

esdm_status
esdm__container_load_page(const esdm_container *container, uint64_t page, void **ret_data,
                          size_t *ret_bytes, esdm_error *err)
{
    const esdm_session *session = container->session;
    const esdm__shared_pages *shared = shared_of(container);
    if (shared != NULL && esdm__shared_pages_load(shared, page, ret_data, ret_bytes))
        return ESDM_OK;
    return session->meta->page_load(session->store, page, ret_data, ret_bytes, err);
}

esdm_status
esdm__dataset_list_pages(const esdm_dataset *dataset, esdm__page_list *ret_pages, esdm_error *err)
{
    esdm_container *container = dataset->group->container;
    uint64_t record;
    uint64_t snapshot;
    esdm_status status = ESDM_ENOENT;
    for (int attempt = 0; attempt < ATTEMPTS && status == ESDM_ENOENT; attempt++) {
        esdm__container_position(container, &record, &snapshot);
        const esdm__shared_pages *shared = shared_of(container);
        if (shared != NULL &&
            esdm__shared_pages_list(shared, record, snapshot, dataset->id, ret_pages))
            return ESDM_OK;
        status =
            esdm__page_list_load(container->session, record, snapshot, dataset->id, ret_pages, err);
        esdm_status moved =
            status == ESDM_ENOENT ? esdm__container_catch_up(container, snapshot, err) : ESDM_OK;
        if (moved != ESDM_OK)
            return moved;
    }
    return status;
}

/* Enters all pages of the dataset, or none. With the index lock held. */
static esdm_status
enter_directory(esdm__dataset_io *io, const esdm__page_list *d, uint32_t dataset, esdm_error *err)
{
    for (size_t i = 0; i < d->count; i++) {
        const esdm_meta_page page = esdm__page_list_at(d, i);
        esdm_status status = ESDM_OK;
        if (page.dataset == dataset)
            status = esdm__index_add_page(io->index, &page, err);
        if (status != ESDM_OK) {
            esdm__index_forget_pages(io->index);
            return status;
        }
    }
    io->directory_loaded = true;
    return ESDM_OK;
}

static bool
directory_is_loaded(esdm__dataset_io *io, uint64_t *ret_generation)
{
    (void) pthread_mutex_lock(&io->lock);
    bool loaded = io->directory_loaded;
    *ret_generation = io->generation;
    (void) pthread_mutex_unlock(&io->lock);
    return loaded;
}

/* Most programs read small containers as a whole: one question for all datasets saves one for each
 * of the others. Of those that are read alone, in one process. */
#define TOGETHER_DATASETS  32u
#define TOGETHER_FRAGMENTS 512u

/* One dataset whose directory is asked for together with others. */
typedef struct asked {
    esdm_dataset *dataset;
    esdm__dataset_io *io;
    uint64_t generation;
} asked;

/* Those whose directory is not known. Their states are put back after that. */
static size_t
unknown_ones(const esdm_container *container, asked all[TOGETHER_DATASETS])
{
    size_t count = 0;
    for (size_t i = 0; i < container->datasets.count && count < TOGETHER_DATASETS; i++) {
        asked *one = &all[count];
        one->dataset = container->datasets.items[i];
        if (esdm__dataset_io_get(one->dataset, &one->io, NULL) != ESDM_OK)
            continue;
        if (!directory_is_loaded(one->io, &one->generation))
            count++;
        else
            esdm__dataset_io_put(one->dataset);
    }
    return count;
}

/* Reads the directories of all datasets, where that is worth it. What fails is told when each is
 * read: damage of one does not concern the others. */
static void
try_directories(esdm_container *container)
{
    asked all[TOGETHER_DATASETS];
    const esdm__container_io *container_io = esdm__io_of(container);
    esdm__page_list d = {0};
    uint64_t record;
    uint64_t before;
    uint64_t after;
    if (container->writable || container_io->comm != NULL ||
        container->datasets.count > TOGETHER_DATASETS ||
        container_io->fragments > TOGETHER_FRAGMENTS)
        return;
    size_t count = unknown_ones(container, all);
    esdm__container_position(container, &record, &before);
    bool known = count >= 2 && esdm__page_list_load(container_io->session, record, before, 0, &d,
                                                    NULL) == ESDM_OK;
    esdm__container_position(container, &record, &after);
    for (size_t i = 0; i < count; i++) {
        const asked *one = &all[i];
        (void) pthread_mutex_lock(&one->io->lock);
        if (known && before == after && !one->io->directory_loaded &&
            one->io->generation == one->generation &&
            enter_directory(one->io, &d, one->dataset->id, NULL) == ESDM_OK)
            esdm__dataset_trim_index(one->dataset, one->io);
        (void) pthread_mutex_unlock(&one->io->lock);
        esdm__dataset_io_put(one->dataset);
    }
    esdm__page_list_clear(&d);
}

/* Reads the directory once; *ret_again: another thread moved the handle meanwhile. */
static esdm_status
try_directory(esdm_dataset *dataset, esdm__dataset_io *io, bool *ret_again, esdm_error *err)
{
    const esdm_container *container = dataset->group->container;
    uint64_t record;
    uint64_t before;
    uint64_t after;
    uint64_t generation;
    *ret_again = false;
    if (directory_is_loaded(io, &generation))
        return ESDM_OK;
    try_directories(dataset->group->container);
    if (directory_is_loaded(io, &generation))
        return ESDM_OK;

    esdm__page_list d = {0};
    esdm__container_position(container, &record, &before);
    esdm_status status = esdm__dataset_list_pages(dataset, &d, err);
    esdm__container_position(container, &record, &after);
    (void) pthread_mutex_lock(&io->lock);
    *ret_again = io->generation != generation || before != after;
    if (status == ESDM_OK && !*ret_again && !io->directory_loaded) /* no other thread was first */
        status = enter_directory(io, &d, dataset->id, err);
    (void) pthread_mutex_unlock(&io->lock);
    esdm__page_list_clear(&d);
    return status;
}

esdm_status
esdm__dataset_load_directory(esdm_dataset *dataset, esdm__dataset_io *io, esdm_error *err)
{
    esdm_error error = {0};
    esdm_status status;
    bool again = false;
    do
        status = try_directory(dataset, io, &again, &error);
    while (again);
    if (status == ESDM_OK)
        return ESDM_OK;
    if (err != NULL)
        *err = error;
    return esdm__dataset_prefix(dataset, status, err);
}

/* With the index lock held. */
static void
forget_directory(esdm__dataset_io *io)
{
    esdm__index_forget_pages(io->index);
    io->directory_loaded = false;
    io->generation++;
}

bool
esdm__dataset_was_moved(esdm_dataset *dataset, esdm__dataset_io *io, esdm_status failure)
{
    esdm__page_list now = {0};
    bool moved = false;
    if (failure != ESDM_ENOENT && failure != ESDM_ECORRUPT && failure != ESDM_EIO)
        return false;
    (void) pthread_mutex_lock(&io->lock);
    uint64_t generation = io->generation;
    (void) pthread_mutex_unlock(&io->lock);
    atomic_store(&esdm__io_of(dataset->group->container)->shared_stale, true);
    if (esdm__dataset_list_pages(dataset, &now, NULL) == ESDM_OK) {
        (void) pthread_mutex_lock(&io->lock);
        /* A page gets another number when its fragments do; or another thread was first. */
        for (size_t i = 0; i < now.count && !moved && io->directory_loaded; i++)
            moved = !esdm__index_page_entry(io->index, now.entries[i].page, &(esdm_meta_page){0});
        moved |= io->generation != generation;
        if (moved && io->generation == generation)
            forget_directory(io);
        (void) pthread_mutex_unlock(&io->lock);
    }
    esdm__page_list_clear(&now);
    return moved;
}

/* Whether a page is missing because the whole snapshot was deleted. */
static bool
snapshot_is_gone(const esdm_dataset *dataset, uint64_t *ret_snapshot)
{
    const esdm_container *container = dataset->group->container;
    esdm__page_list pages = {0};
    uint64_t record;
    esdm__container_position(container, &record, ret_snapshot);
    esdm_status status =
        esdm__page_list_load(container->session, record, *ret_snapshot, dataset->id, &pages, NULL);
    esdm__page_list_clear(&pages);
    return status == ESDM_ENOENT;
}

static esdm_status
load_page(esdm_dataset *dataset, esdm__dataset_io *io, uint64_t number, esdm__page **ret_held,
          esdm_error *err)
{
    esdm_meta_page entry;
    uint64_t box[2 * ESDM_MAX_RANK];
    uint64_t snapshot = 0;
    (void) pthread_mutex_lock(&io->lock);
    bool known = esdm__index_page_entry(io->index, number, &entry);
    if (known && entry.rank > 0)
        memcpy(box, entry.box, (size_t) 2 * entry.rank * sizeof *box);
    if (ret_held != NULL)
        *ret_held = esdm__index_hold(io->index, number);
    (void) pthread_mutex_unlock(&io->lock);
    if (!known || (ret_held != NULL && *ret_held != NULL))
        return ESDM_OK;
    entry.box = box;

    void *data = NULL;
    size_t bytes = 0;
    esdm_error error = {0};
    esdm_status status =
        esdm__container_load_page(dataset->group->container, number, &data, &bytes, &error);
    esdm__page *page = NULL;
    if (status == ESDM_OK)
        status = esdm__page_decode(&entry, data, bytes, &page, &error);
    free(data);
    (void) pthread_mutex_lock(&io->lock);
    /* Another thread may have moved the handle, and the page is not wanted any more. */
    known = esdm__index_page_entry(io->index, number, &entry);
    if (status == ESDM_OK)
        status = esdm__index_insert(io->index, number, page, &error);
    if (status == ESDM_OK && ret_held != NULL)
        *ret_held = esdm__index_hold(io->index, number);
    (void) pthread_mutex_unlock(&io->lock);
    if (status == ESDM_OK || !known || esdm__dataset_was_moved(dataset, io, status))
        return ESDM_OK;
    if (status == ESDM_ENOENT && snapshot_is_gone(dataset, &snapshot))
        return esdm__container_catch_up(dataset->group->container, snapshot, err);
    if (err != NULL)
        *err = error;
    return esdm__error_prefix(err, status, "index page %" PRIu64, number);
}

esdm_status
esdm__dataset_load_pages(esdm_dataset *dataset, esdm__dataset_io *io, const uint64_t *pages,
                         size_t npages, esdm__page **ret_held, esdm_error *err)
{
    for (size_t i = 0; i < npages && ret_held != NULL; i++)
        ret_held[i] = NULL;
    for (size_t i = 0; i < npages; i++) {
        esdm_status status =
            load_page(dataset, io, pages[i], ret_held != NULL ? &ret_held[i] : NULL, err);
        if (status != ESDM_OK)
            return esdm__dataset_prefix(dataset, status, err);
    }
    return ESDM_OK;
}

void
esdm__dataset_release_pages(esdm__page **held, size_t npages)
{
    for (size_t i = 0; i < npages; i++)
        esdm__page_unref(held[i]);
}

void
esdm__container_forget_pages(const esdm_container *container)
{
    esdm__container_io *container_io = esdm__io_of(container);
    (void) pthread_mutex_lock(&container_io->lock);
    container_io->sole = false;
    (void) pthread_mutex_unlock(&container_io->lock);
    for (size_t i = 0; i < container->datasets.count; i++) {
        const esdm_dataset *dataset = container->datasets.items[i];
        esdm__dataset_io *io = esdm__dataset_io_find_for_sure(dataset);
        if (io == NULL)
            continue;
        (void) pthread_mutex_lock(&io->lock);
        forget_directory(io);
        esdm__dataset_trim_index(dataset, io);
        (void) pthread_mutex_unlock(&io->lock);
        esdm__dataset_io_put(dataset);
    }
}
