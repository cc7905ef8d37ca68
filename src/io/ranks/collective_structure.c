/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Definitions of all ranks are the same, or become so, or all ranks hear in what they differ. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/error.h"
#include "io/container/lengths.h"
#include "io/ranks/collective.h"
#include "model/compare.h"

/* What this rank's structure has another way than rank 0's. */
static esdm_status
explain(const esdm_container *mine, int rank, const esdm_container *first, esdm_error *err)
{
    char text[ESDM_ERROR_MESSAGE_BYTES - 100];
    char here[32];
    (void) snprintf(here, sizeof here, "rank %d", rank);
    if (!esdm__structure_differs(first, "rank 0", mine, here, text, sizeof text))
        (void) snprintf(text, sizeof text, "something is defined in another order or way");
    return esdm__error_set(err, ESDM_EINVAL, "definitions differ from those of rank 0: %s", text);
}

static esdm_status
hash_of(const esdm_container *container, uint64_t *ret_hash, esdm_error *err)
{
    char *document = NULL;
    size_t bytes = 0;
    esdm_status status = esdm__document_write(container, &document, &bytes, err);
    if (status == ESDM_OK)
        *ret_hash = esdm__checksum(document, bytes);
    free(document);
    return status;
}

/* Makes this rank's attributes as rank 0's. @param settled receives what had another value.
 * ESDM_EINVAL when more than that differs. */
static esdm_status
follow(esdm_container *mine, int rank, const char *document, size_t bytes, char *settled,
       size_t settled_bytes, esdm_error *err)
{
    uint64_t hash = 0;
    esdm_container *first = esdm__container_new(mine->name);
    if (first == NULL)
        return esdm__error_nomem(err, sizeof *first, "a structure");
    first->session = mine->session;
    first->writable = true; /* while it is filled */
    esdm_status status = esdm__document_read(document, bytes, first, err);
    if (status == ESDM_OK)
        esdm__container_settle(mine);
    if (status == ESDM_OK)
        status = esdm__attributes_follow(mine, first, settled, settled_bytes, err);
    if (status == ESDM_OK)
        status = hash_of(mine, &hash, err);
    if (status == ESDM_OK && hash != esdm__checksum(document, bytes))
        status = explain(mine, rank, first, err);
    esdm__container_free(first);
    return status;
}

/* Lets all ranks know what one of them followed rank 0 in: the lowest one's text. */
static esdm_status
share_settled(esdm_container *container, const char *settled, esdm_error *err)
{
    esdm__container_io *io = esdm__io_of(container);
    esdm_error mine = {0};
    if (settled[0] != '\0')
        mine.status = esdm__error_set(&mine, ESDM_ECANCELED, "%s", settled);
    esdm_status status = esdm__comm_agree(io->comm, mine.status, &mine);
    if (status == ESDM_ECANCELED) { /* a text, no failure */
        const char *text = strchr(mine.message, ':');
        (void) snprintf(io->settled, sizeof io->settled, "%.299s",
                        text != NULL ? text + 2 : mine.message);
        return ESDM_OK;
    }
    if (status != ESDM_OK && err != NULL)
        *err = mine;
    return status;
}

/* At least one rank differs from rank 0: it follows where it can, or has to say in what. */
static esdm_status
settle_difference(esdm_container *container, char *document, size_t bytes, uint64_t hash,
                  esdm_error *err)
{
    esdm_comm *comm = esdm__io_of(container)->comm;
    esdm_error mine = {0};
    char settled[300] = "";
    void *first = document;
    size_t first_bytes = bytes;
    esdm_status status = esdm__comm_share_block(comm, &first, &first_bytes, err);
    if (status != ESDM_OK)
        return status;
    if (comm->rank != 0 && (first_bytes != bytes || hash != esdm__checksum(first, first_bytes)))
        mine.status =
            follow(container, comm->rank, first, first_bytes, settled, sizeof settled, &mine);
    status = esdm__comm_agree(comm, mine.status, &mine);
    if (comm->rank != 0)
        free(first);
    if (status == ESDM_OK)
        status = share_settled(container, settled, &mine);
    if (err != NULL)
        *err = mine;
    return status;
}

esdm_status
esdm__collective_compare(esdm_container *container, esdm_error *err)
{
    esdm_comm *comm = esdm__io_of(container)->comm;
    esdm_error mine = {0};
    char *document = NULL;
    size_t bytes = 0;
    uint64_t hash = 0;
    if (comm->size == 1)
        return ESDM_OK;
    mine.status = esdm__document_write(container, &document, &bytes, &mine);
    if (mine.status == ESDM_OK)
        hash = esdm__checksum(document, bytes);
    uint64_t bounds[3] = {0, hash, ~hash};
    esdm_status status = esdm__comm_agree_on(comm, mine.status, bounds, 2, &mine);
    if (status == ESDM_OK && bounds[1] != ~bounds[2])
        status = settle_difference(container, document, bytes, hash, &mine);
    free(document);
    if (status != ESDM_OK && err != NULL)
        *err = mine;
    return status;
}

bool
esdm__collective_take_settled(esdm_container *container, char *text, size_t bytes)
{
    esdm__container_io *io = esdm__io_of(container);
    (void) pthread_mutex_lock(&io->commit_lock);
    bool some = io->settled[0] != '\0';
    if (some)
        (void) snprintf(text, bytes, "%s", io->settled);
    io->settled[0] = '\0';
    (void) pthread_mutex_unlock(&io->commit_lock);
    return some;
}

/* ---- align -------------------------------------------------------------------------------- */

/* Whether this rank wrote to the dataset since its last cut. */
static bool
is_open(const esdm_dataset *dataset)
{
    esdm__dataset_io *io = esdm__dataset_io_find(dataset);
    if (io == NULL)
        return false;
    (void) pthread_mutex_lock(&io->write_lock);
    bool open = io->epochs->open;
    (void) pthread_mutex_unlock(&io->write_lock);
    esdm__dataset_io_put(dataset);
    return open;
}

/* Cuts every dataset that some rank wrote to. `open` has one number a dataset; the same on all. */
static esdm_status
cut_datasets(esdm_container *container, const uint64_t *open, esdm_error *err)
{
    for (size_t i = 0; i < container->datasets.count; i++) {
        esdm__dataset_io *io = NULL;
        if (open[i] == 0)
            continue;
        esdm_status status = esdm__dataset_io_get(container->datasets.items[i], &io, err);
        if (status != ESDM_OK)
            return status;
        (void) pthread_mutex_lock(&io->write_lock);
        esdm__dataset_cut(container->datasets.items[i], io);
        (void) pthread_mutex_unlock(&io->write_lock);
        esdm__dataset_io_put(container->datasets.items[i]);
    }
    return ESDM_OK;
}

/* The numbers that all ranks shall have the largest of: lengths of unlimited dimensions, then
 * which datasets were written to. */
static void
collect_numbers(const esdm_container *container, uint64_t *numbers)
{
    size_t at = 0;
    for (size_t i = 0; i < container->dimensions.count; i++) {
        const esdm_dimension *dimension = container->dimensions.items[i];
        numbers[at++] = dimension->unlimited ? atomic_load(&dimension->length) : 0;
    }
    for (size_t i = 0; i < container->datasets.count; i++)
        numbers[at++] = is_open(container->datasets.items[i]);
}

static esdm_status
align_data(esdm_container *container, esdm_error *err)
{
    esdm_comm *comm = esdm__io_of(container)->comm;
    size_t ndimensions = container->dimensions.count;
    size_t count = ndimensions + container->datasets.count;
    esdm_error mine = {0};
    uint64_t *numbers = malloc((count + 1) * sizeof *numbers);
    if (numbers == NULL)
        mine.status = esdm__error_nomem(&mine, count * sizeof *numbers, "an agreement of ranks");
    esdm_status status = esdm__comm_agree(comm, mine.status, &mine);
    if (status == ESDM_OK && numbers != NULL) {
        collect_numbers(container, numbers);
        status = comm->ops->maximum(comm, numbers, count, &mine);
    }
    if (status == ESDM_OK && numbers != NULL) {
        for (size_t i = 0; i < ndimensions; i++) {
            esdm_dimension *dimension = container->dimensions.items[i];
            if (dimension->unlimited)
                (void) esdm__dimension_grow(dimension, numbers[i]);
        }
        mine.status = cut_datasets(container, numbers + ndimensions, &mine);
        status = esdm__comm_agree(comm, mine.status, &mine);
    }
    free(numbers);
    if (status != ESDM_OK && err != NULL)
        *err = mine;
    return status;
}

esdm_status
esdm__collective_align(esdm_container *container, esdm_error *err)
{
    esdm__container_io *io = esdm__io_of(container);
    if (!container->writable)
        return ESDM_OK;
    (void) pthread_mutex_lock(&io->commit_lock);
    uint64_t changed = container->structure_dirty;
    esdm_status status = esdm__collective_check(container, err);
    if (status == ESDM_OK)
        status = io->comm->ops->maximum(io->comm, &changed, 1, err);
    if (status == ESDM_OK && changed != 0)
        status = esdm__collective_compare(container, err);
    if (status == ESDM_OK)
        status = align_data(container, err);
    (void) pthread_mutex_unlock(&io->commit_lock);
    return status == ESDM_OK ? ESDM_OK
                             : esdm__error_prefix(err, status, "container '%s'", container->name);
}
