/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Ranks read what other ranks have not committed yet: all learn the records of all pending
 * fragments. The fragments themselves lie in packs, or in the records. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "io/ranks/collective.h"
#include "io/ranks/page_stream.h"

/* Precedes what one rank tells; 8 bytes are a page's alignment. */
typedef struct part_head {
    uint64_t rank;
    uint64_t bytes;
} part_head;

/* The records that the other ranks do not know, as they are sent. Nothing, when there are none. */
static esdm_status
pack_records(esdm__dataset_io *io, int rank, esdm__buffer *out, esdm_error *err)
{
    esdm__page_set set = {0};
    (void) pthread_mutex_lock(&io->lock);
    esdm_status status = esdm__index_encode_pending(io->index, io->epochs->shared, &set, err);
    (void) pthread_mutex_unlock(&io->lock);
    part_head head = {.rank = (uint64_t) rank};
    if (status == ESDM_OK && set.npages > 0)
        esdm__buffer_put(out, &head, sizeof head);
    for (size_t i = 0; i < set.npages && status == ESDM_OK; i++)
        esdm__page_put(out, &set.pages[i]);
    if (status == ESDM_OK && out->failed)
        status = esdm__error_nomem(err, out->bytes, "records of fragments");
    if (status == ESDM_OK && set.npages > 0) {
        head.bytes = out->bytes - sizeof head;
        memcpy(out->data, &head, sizeof head);
    }
    esdm__page_set_clear(&set);
    return status;
}

/* Enters the records of another rank. */
static esdm_status
unpack_records(esdm__dataset_io *io, esdm_comm *comm, int rank, uint8_t *pages, size_t bytes,
               esdm_error *err)
{
    esdm__page_reader reader;
    esdm__page_reader_begin_batch(&reader, comm, rank, pages, bytes);
    esdm_status status = esdm__page_reader_step(&reader, err);
    while (status == ESDM_OK && esdm__page_reader_page(&reader) != NULL) {
        (void) pthread_mutex_lock(&io->lock);
        status = esdm__index_add_foreign(io->index, esdm__page_reader_page(&reader), err);
        (void) pthread_mutex_unlock(&io->lock);
        if (status == ESDM_OK)
            status = esdm__page_reader_step(&reader, err);
    }
    esdm__page_reader_clear(&reader);
    return status;
}

static esdm_status
unpack_all(esdm__dataset_io *io, esdm_comm *comm, const esdm__buffer *all, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    part_head head;
    for (size_t at = 0; at < all->bytes && status == ESDM_OK; at += (size_t) head.bytes) {
        if (all->bytes - at < sizeof head)
            return esdm__error_set(err, ESDM_EIO, "the records of other ranks are damaged");
        memcpy(&head, all->data + at, sizeof head);
        at += sizeof head;
        if (head.bytes > all->bytes - at)
            return esdm__error_set(err, ESDM_EIO, "the records of rank %" PRIu64 " are damaged",
                                   head.rank);
        if (head.rank != (uint64_t) comm->rank)
            status =
                unpack_records(io, comm, (int) head.rank, all->data + at, (size_t) head.bytes, err);
    }
    return status;
}

/* All tell their records to all. All succeed or fail. */
static esdm_status
spread(esdm__dataset_io *io, const esdm__container_io *container_io, esdm__buffer *records,
       esdm_error *err)
{
    esdm_comm *comm = container_io->comm;
    esdm_status status = esdm__tree_spread(comm, &container_io->tree, records, err);
    if (status != ESDM_OK)
        return status;
    status = unpack_all(io, comm, records, err);
    return esdm__comm_agree(comm, status, err);
}

/* With the write lock held. */
static esdm_status
share_locked(esdm_dataset *dataset, esdm__dataset_io *io, esdm_error *err)
{
    esdm__container_io *container_io = esdm__io_of(dataset->group->container);
    esdm_comm *comm = container_io->comm;
    esdm__orders orders = {0};
    esdm__buffer records;
    esdm__buffer_init(&records);
    esdm__dataset_cut(dataset, io);
    esdm_status status = io->failure != NULL ? io->failure->status : ESDM_OK;
    if (status != ESDM_OK && err != NULL)
        *err = *io->failure;
    esdm__pack_set *packs = __atomic_load_n(&container_io->packs, __ATOMIC_ACQUIRE);
    if (status == ESDM_OK && packs != NULL)
        status = esdm__pack_set_make_readable(packs, err);
    if (status == ESDM_OK)
        status = esdm__orders_count(&orders, &dataset, 1, &dataset, 1, err);
    status = esdm__comm_agree(comm, status, err);
    if (status == ESDM_OK) {
        uint64_t none[1];
        status = esdm__orders_exchange(&orders, comm, ESDM_OK, none, 0, err);
        if (status == ESDM_OK)
            status = esdm__orders_apply(&orders, err);
        if (status == ESDM_OK)
            status = pack_records(io, comm->rank, &records, err);
        status = esdm__comm_agree(comm, status, err);
    }
    if (status == ESDM_OK)
        status = spread(io, container_io, &records, err);
    if (status == ESDM_OK) {
        io->epochs->shared = (uint32_t) esdm__index_pending_count(io->index);
        io->epochs->unshared = false;
    }
    esdm__orders_clear(&orders);
    esdm__buffer_clear(&records);
    return status;
}

esdm_status
esdm__collective_share(esdm_dataset *dataset, esdm__dataset_io *io, esdm_error *err)
{
    esdm_error mine = {0};
    (void) pthread_mutex_lock(&io->write_lock);
    esdm_status status = share_locked(dataset, io, &mine);
    (void) pthread_mutex_unlock(&io->write_lock);
    if (status != ESDM_OK && err != NULL)
        *err = mine;
    return status;
}
