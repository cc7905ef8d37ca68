/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Ranks read what other ranks have not committed yet: each tells the others the records of its
 * pending fragments. The fragments themselves lie in packs, or in the records. */
#include <stdlib.h>

#include "base/error.h"
#include "io/ranks/collective.h"
#include "io/ranks/page_stream.h"

/* The records that the other ranks do not know, as they are sent. */
static esdm_status
pack_records(esdm__dataset_io *io, esdm__buffer *out, esdm_error *err)
{
    esdm__page_set set = {0};
    (void) pthread_mutex_lock(&io->lock);
    esdm_status status = esdm__index_encode_pending(io->index, io->epochs.shared, &set, err);
    (void) pthread_mutex_unlock(&io->lock);
    for (size_t i = 0; i < set.npages && status == ESDM_OK; i++)
        esdm__page_put(out, &set.pages[i]);
    if (status == ESDM_OK && out->failed)
        status = esdm__error_nomem(err, out->bytes, "records of fragments");
    esdm__page_set_clear(&set);
    return status;
}

/* Enters the records of another rank. */
static esdm_status
unpack_records(esdm__dataset_io *io, esdm_comm *comm, int rank, void *batch, size_t bytes,
               esdm_error *err)
{
    esdm__page_reader reader;
    esdm__page_reader_begin_batch(&reader, comm, rank, batch, bytes);
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

/* Rank `from` sends its records to all. All succeed or fail. */
static esdm_status
pass(esdm__dataset_io *io, esdm_comm *comm, int from, const esdm__buffer *own, esdm_error *err)
{
    bool sending = comm->rank == from;
    uint64_t bytes = sending ? own->bytes : 0;
    void *batch = sending ? own->data : NULL;
    esdm_status status = comm->ops->broadcast(comm, &bytes, sizeof bytes, from, err);
    if (status != ESDM_OK || bytes == 0)
        return status;
    if (!sending && (batch = malloc((size_t) bytes)) == NULL)
        status = esdm__error_nomem(err, (size_t) bytes, "records of other ranks");
    status = esdm__comm_agree(comm, status, err);
    if (status == ESDM_OK)
        status = comm->ops->broadcast(comm, batch, (size_t) bytes, from, err);
    if (status != ESDM_OK) {
        if (!sending)
            free(batch);
        return status;
    }
    if (!sending)
        status = unpack_records(io, comm, from, batch, (size_t) bytes, err);
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
            status = pack_records(io, &records, err);
        status = esdm__comm_agree(comm, status, err);
    }
    for (int r = 0; r < comm->size && status == ESDM_OK; r++)
        status = pass(io, comm, r, &records, err);
    if (status == ESDM_OK) {
        io->epochs.shared = (uint32_t) esdm__index_pending_count(io->index);
        io->epochs.unshared = false;
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
