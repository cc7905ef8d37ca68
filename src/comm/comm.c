/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "comm/comm.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Numbers of all ranks that are exchanged in one message. */
#define EXCHANGE_NUMBERS 1024u

esdm_comm *
esdm_comm_ref(esdm_comm *comm)
{
    if (comm == NULL)
        return NULL;
    comm->references++;
    return comm;
}

void
esdm_comm_unref(esdm_comm *comm)
{
    if (comm != NULL && --comm->references == 0)
        comm->ops->release(comm);
}

/* What a rank that failed contributes: the largest number belongs to the lowest such rank. */
static uint64_t
failure_code(const esdm_comm *comm, esdm_status status)
{
    return status == ESDM_OK ? 0 : (uint64_t) (comm->size - comm->rank);
}

/* All learn the failure of the rank with the worst code; 0: nobody failed. */
static esdm_status
share_failure(esdm_comm *comm, uint64_t worst, esdm_status status, esdm_error *err)
{
    esdm_error failure = {0};
    if (worst == 0)
        return ESDM_OK;
    int rank = comm->size - (int) worst;
    if (rank == comm->rank && err != NULL)
        failure = *err;
    failure.status = rank == comm->rank ? status : ESDM_OK;
    esdm_status sent = comm->ops->broadcast(comm, &failure, sizeof failure, rank, &failure);
    if (sent != ESDM_OK)
        failure.status = sent;
    else if (comm->size > 1)
        (void) esdm__error_prefix(&failure, failure.status, "rank %d", rank);
    if (err != NULL)
        *err = failure;
    return failure.status;
}

esdm_status
esdm__comm_agree_on(esdm_comm *comm, esdm_status status, uint64_t *values, size_t count,
                    esdm_error *err)
{
    esdm_error lost = {0};
    values[0] = failure_code(comm, status);
    esdm_status sent = comm->ops->maximum(comm, values, count + 1, &lost);
    if (sent == ESDM_OK)
        return share_failure(comm, values[0], status, err);
    if (err != NULL)
        *err = lost;
    return sent;
}

esdm_status
esdm__comm_agree_twice(esdm_comm *comm, esdm_status status, uint64_t *value, bool *ret_lost,
                       esdm_error *err)
{
    esdm_error lost[2] = {{0}};
    uint64_t answers[2][2];
    esdm_status sent[2];
    for (int i = 0; i < 2; i++) {
        answers[i][0] = failure_code(comm, status);
        answers[i][1] = *value;
        sent[i] = comm->ops->maximum(comm, answers[i], 2, &lost[i]);
    }
    *ret_lost = sent[0] != ESDM_OK && sent[1] != ESDM_OK;
    if (!*ret_lost) {
        const uint64_t *known = sent[0] == ESDM_OK ? answers[0] : answers[1];
        *value = known[1];
        return share_failure(comm, known[0], status, err);
    }
    if (status != ESDM_OK) { /* the others hear of it from this rank, unless a lower one failed */
        esdm_error told = err != NULL ? *err : (esdm_error){0};
        (void) share_failure(comm, failure_code(comm, status), status, &told);
    }
    if (err != NULL)
        *err = lost[0];
    return sent[0];
}

/* All numbers of all ranks in one message. */
static esdm_status
exchange_small(esdm_comm *comm, uint64_t *maxima, size_t nmaxima, const uint64_t *values,
               size_t nvalues, uint64_t *ret_lower, uint64_t *ret_all, esdm_error *err)
{
    uint64_t mine[EXCHANGE_NUMBERS];
    uint64_t all[EXCHANGE_NUMBERS];
    size_t length = nmaxima + nvalues;
    memcpy(mine, maxima, nmaxima * sizeof *mine);
    for (size_t i = 0; i < nvalues; i++) {
        mine[nmaxima + i] = values[i];
        ret_lower[i] = ret_all[i] = 0;
    }
    esdm_status status = comm->ops->gather(comm, mine, length * sizeof *mine, all, err);
    for (int r = 0; r < comm->size && status == ESDM_OK; r++) {
        const uint64_t *theirs = all + (size_t) r * length;
        for (size_t i = 0; i < nmaxima; i++)
            maxima[i] = theirs[i] > maxima[i] ? theirs[i] : maxima[i];
        for (size_t i = 0; i < nvalues; i++) {
            ret_lower[i] += r < comm->rank ? theirs[nmaxima + i] : 0;
            ret_all[i] += theirs[nmaxima + i];
        }
    }
    return status;
}

esdm_status
esdm__comm_exchange(esdm_comm *comm, esdm_status status, uint64_t *maxima, size_t nmaxima,
                    const uint64_t *values, size_t nvalues, uint64_t *ret_lower, uint64_t *ret_all,
                    esdm_error *err)
{
    esdm_error lost = {0};
    esdm_status sent;
    maxima[0] = failure_code(comm, status);
    if (nmaxima + 1 + nvalues <= EXCHANGE_NUMBERS / (size_t) comm->size) {
        sent =
            exchange_small(comm, maxima, nmaxima + 1, values, nvalues, ret_lower, ret_all, &lost);
    } else {
        sent = comm->ops->maximum(comm, maxima, nmaxima + 1, &lost);
        if (sent == ESDM_OK && maxima[0] == 0)
            sent = comm->ops->sums(comm, values, nvalues, ret_lower, ret_all, &lost);
    }
    if (sent == ESDM_OK)
        return share_failure(comm, maxima[0], status, err);
    if (err != NULL)
        *err = lost;
    return sent;
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
    void *received = NULL; /* owned, on other ranks than 0 */
    esdm_status status = comm->ops->broadcast(comm, &length, sizeof length, 0, err);
    if (status != ESDM_OK)
        return status;
    if (comm->rank != 0) {
        received = malloc((size_t) length + 1);
        if (received == NULL)
            status = esdm__error_nomem(err, (size_t) length, "what rank 0 sends");
        else
            ((char *) received)[length] = '\0';
    }
    status = esdm__comm_agree(comm, status, err);
    if (status == ESDM_OK)
        status =
            comm->ops->broadcast(comm, comm->rank == 0 ? *data : received, (size_t) length, 0, err);
    if (status != ESDM_OK) {
        free(received);
        return status;
    }
    if (received != NULL)
        *data = received;
    *bytes = (size_t) length;
    return ESDM_OK;
}
