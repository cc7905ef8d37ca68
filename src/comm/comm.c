/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "comm/comm.h"

#include <stdlib.h>

#include "base/error.h"

esdm_comm *
esdm_comm_ref(esdm_comm *comm)
{
    comm->references++;
    return comm;
}

void
esdm_comm_unref(esdm_comm *comm)
{
    if (comm != NULL && --comm->references == 0)
        comm->ops->release(comm);
}

esdm_status
esdm__comm_agree_on(esdm_comm *comm, esdm_status status, uint64_t *values, size_t count,
                    esdm_error *err)
{
    esdm_error failure = {0};
    /* The largest number belongs to the lowest rank that failed. */
    values[0] = status == ESDM_OK ? 0 : (uint64_t) (comm->size - comm->rank);
    esdm_status sent = comm->ops->maximum(comm, values, count + 1, &failure);
    if (sent == ESDM_OK && values[0] == 0)
        return ESDM_OK;
    if (sent == ESDM_OK) {
        int rank = comm->size - (int) values[0];
        if (rank == comm->rank && err != NULL)
            failure = *err;
        failure.status = rank == comm->rank ? status : ESDM_OK;
        sent = comm->ops->broadcast(comm, &failure, sizeof failure, rank, &failure);
        if (sent == ESDM_OK && comm->size > 1)
            (void) esdm__error_prefix(&failure, failure.status, "rank %d", rank);
    }
    if (sent != ESDM_OK)
        failure.status = sent;
    if (err != NULL)
        *err = failure;
    return failure.status;
}

esdm_status
esdm__comm_agree(esdm_comm *comm, esdm_status status, esdm_error *err)
{
    uint64_t values[1];
    return esdm__comm_agree_on(comm, status, values, 0, err);
}

esdm_status
esdm__comm_share_block(esdm_comm *comm, void **data, size_t *bytes, esdm_error *err)
{
    uint64_t length = *bytes;
    void *block = *data;
    esdm_status status = comm->ops->broadcast(comm, &length, sizeof length, 0, err);
    if (status != ESDM_OK)
        return status;
    if (comm->rank != 0) {
        block = malloc((size_t) length + 1);
        if (block == NULL)
            status = esdm__error_nomem(err, (size_t) length, "what rank 0 sends");
        else
            ((char *) block)[length] = '\0';
    }
    status = esdm__comm_agree(comm, status, err);
    if (status == ESDM_OK)
        status = comm->ops->broadcast(comm, block, (size_t) length, 0, err);
    if (status != ESDM_OK) {
        if (comm->rank != 0)
            free(block);
        return status;
    }
    *data = block;
    *bytes = (size_t) length;
    return ESDM_OK;
}
