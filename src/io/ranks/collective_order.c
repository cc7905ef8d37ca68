/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The order of pending fragments among those of all ranks; see io/container/epochs.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/ranks/collective.h"

static size_t
epochs_of(esdm_dataset *dataset)
{
    const esdm__dataset_io *io = __atomic_load_n(&dataset->io, __ATOMIC_ACQUIRE);
    return io != NULL ? (size_t) io->epochs->count + 1 : 1;
}

/* Pending fragments before epoch `epoch`. */
static uint32_t
first_of_epoch(const esdm__dataset_io *io, size_t epoch)
{
    if (epoch == 0)
        return 0;
    if (epoch <= io->epochs->count && epoch <= io->epochs->capacity)
        return io->epochs->cuts[epoch - 1];
    return (uint32_t) esdm__index_pending_count(io->index);
}

esdm_status
esdm__orders_count(esdm__orders *orders, esdm_dataset *const *datasets, size_t ndatasets,
                   esdm_dataset *const *own, size_t nown, esdm_error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < ndatasets; i++)
        count += epochs_of(datasets[i]);
    uint64_t *numbers = calloc(3 * count + ndatasets + 1, sizeof *numbers);
    if (numbers == NULL)
        return esdm__error_nomem(err, 3 * count * sizeof *numbers, "a commit");
    size_t at = 0;
    for (size_t i = 0; i < ndatasets; i++) {
        esdm__dataset_io *io = datasets[i]->io;
        size_t epochs = epochs_of(datasets[i]);
        if (io != NULL && esdm__datasets_hold(own, nown, datasets[i])) {
            (void) pthread_mutex_lock(&io->lock);
            for (size_t e = 0; e < epochs; e++)
                numbers[at + e] = first_of_epoch(io, e + 1) - first_of_epoch(io, e);
            (void) pthread_mutex_unlock(&io->lock);
        }
        at += epochs;
    }
    *orders = (esdm__orders){.datasets = datasets,
                             .ndatasets = ndatasets,
                             .count = count,
                             .own = numbers,
                             .lower = numbers + count,
                             .all = numbers + 2 * count,
                             .sums = numbers + 3 * count};
    return ESDM_OK;
}

/* Gives the pending fragments of the i-th dataset their orders; its numbers begin at `at`. */
static esdm_status
renumber(esdm__orders *orders, size_t i, size_t at, esdm_error *err)
{
    esdm_dataset *dataset = orders->datasets[i];
    size_t epochs = epochs_of(dataset);
    uint64_t base = 0;
    for (size_t e = 0; e < epochs; e++)
        base += orders->all[at + e];
    orders->sums[i] = base;
    if (base > UINT32_MAX) { /* the same sum on all ranks, so all refuse */
        (void) esdm__error_set(err, ESDM_ENOTSUP,
                               "a commit holds at most 2^32 fragments of a dataset; commit more "
                               "often");
        return esdm__dataset_prefix(dataset, ESDM_ENOTSUP, err);
    }
    esdm__dataset_io *io = dataset->io;
    if (io == NULL || base == 0)
        return ESDM_OK;
    esdm__order_run *runs = malloc(epochs * sizeof *runs);
    if (runs == NULL)
        return esdm__error_nomem(err, epochs * sizeof *runs, "a commit");
    (void) pthread_mutex_lock(&io->lock);
    base = 0;
    for (size_t e = 0; e < epochs; e++) {
        runs[e] =
            (esdm__order_run){first_of_epoch(io, e), (uint32_t) (base + orders->lower[at + e])};
        base += orders->all[at + e];
    }
    esdm__index_renumber(io->index, runs, epochs, (uint32_t) base);
    (void) pthread_mutex_unlock(&io->lock);
    free(runs);
    return ESDM_OK;
}

esdm_status
esdm__orders_exchange(esdm__orders *orders, esdm_comm *comm, esdm_status status, uint64_t *maxima,
                      size_t nmaxima, esdm_error *err)
{
    return esdm__comm_exchange(comm, status, maxima, nmaxima, orders->own, orders->count,
                               orders->lower, orders->all, err);
}

esdm_status
esdm__orders_apply(esdm__orders *orders, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    size_t at = 0;
    for (size_t i = 0; i < orders->ndatasets && status == ESDM_OK; i++) {
        status = renumber(orders, i, at, err);
        at += epochs_of(orders->datasets[i]);
    }
    return status;
}

void
esdm__orders_clear(esdm__orders *orders)
{
    free(orders->own);
    *orders = (esdm__orders){0};
}
