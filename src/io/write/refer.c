/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/write/refer.h"

#include "base/error.h"
#include "io/container/access.h"

static esdm_status
describe(esdm__dataset_io *io, const esdm__reference *reference, esdm__elsewhere *ret,
         esdm_error *err)
{
    bool foreign = reference->kind == ESDM__KIND_FOREIGN;
    esdm__elsewhere e = {.check = reference->check,
                         .filter_mask = reference->filter_mask,
                         .check_kind = reference->check_kind};
    if (reference->source_bytes > ESDM__SOURCE_BYTES_MAX ||
        reference->decoding_bytes > ESDM__SOURCE_BYTES_MAX)
        return esdm__error_set(err, ESDM_EINVAL,
                               "the description of a source has more than %u bytes",
                               ESDM__SOURCE_BYTES_MAX);
    e.source = esdm__index_source(io->index, foreign ? ESDM__ROLE_FOREIGN : ESDM__ROLE_LINK,
                                  reference->source, reference->source_bytes);
    if (reference->decoding != NULL)
        e.decoding = esdm__index_source(io->index, foreign ? ESDM__ROLE_DECODING : ESDM__ROLE_MAP,
                                        reference->decoding, reference->decoding_bytes);
    if (e.source == NULL || (reference->decoding != NULL && e.decoding == NULL))
        return esdm__error_nomem(err, reference->source_bytes, "the description of a source");
    *ret = e;
    return ESDM_OK;
}

/* With io->lock held. */
static esdm_status
enter(esdm__dataset_io *io, const esdm__reference *reference, esdm_error *err)
{
    uint64_t elements = esdm__box_elements(&reference->box);
    esdm__fragment fragment = {.box = reference->box,
                               .kind = (uint8_t) reference->kind,
                               .position = reference->position,
                               .stored_bytes = reference->stored_bytes,
                               .statistics = reference->statistics};
    if (__builtin_mul_overflow(elements, io->elements.bytes, &fragment.raw_bytes))
        return esdm__error_set(err, ESDM_EINVAL, "a reference to too many elements");
    esdm_status status = describe(io, reference, &fragment.elsewhere, err);
    return status == ESDM_OK ? esdm__index_add_pending(io->index, &fragment, err) : status;
}

static esdm_status
check(const esdm_dataset *dataset, const esdm__reference *reference, esdm_error *err)
{
    esdm_dataspace space;
    if (!esdm__kind_is_elsewhere((uint8_t) reference->kind) ||
        reference->box.rank != dataset->rank || esdm__box_is_empty(&reference->box))
        return esdm__error_set(err, ESDM_EINVAL, "a reference of another kind or rank, or empty");
    esdm_status status =
        esdm_dataspace_init(&space, dataset->rank, reference->box.lo, reference->box.n, err);
    return status != ESDM_OK ? status : esdm__space_check(dataset, &space, true, err);
}

static void
grow_dimensions(const esdm_dataset *dataset, const esdm__box *box)
{
    for (uint32_t i = 0; i < box->rank; i++) {
        if (dataset->dimensions[i]->unlimited)
            (void) esdm__dimension_grow(dataset->dimensions[i], box->lo[i] + box->n[i]);
    }
}

/* With the write lock held. */
static esdm_status
refer_locked(esdm_dataset *dataset, esdm__dataset_io *io, const esdm__reference *references,
             size_t n, esdm_error *err)
{
    esdm_status status = esdm__dataset_mark_dirty(dataset, io, err);
    if (status == ESDM_OK)
        status = esdm__dataset_flush(dataset, io, err); /* older data goes first */
    (void) pthread_mutex_lock(&io->lock);
    esdm__index_free_little(io->index); /* what a reference stands for now is not kept beside it */
    (void) pthread_mutex_unlock(&io->lock);
    for (size_t i = 0; i < n && status == ESDM_OK; i++) {
        (void) pthread_mutex_lock(&io->lock);
        status = enter(io, &references[i], err);
        (void) pthread_mutex_unlock(&io->lock);
        if (status == ESDM_OK)
            grow_dimensions(dataset, &references[i].box);
    }
    return status;
}

esdm_status
esdm__io_refer(esdm_dataset *dataset, const esdm__reference *references, size_t n, esdm_error *err)
{
    esdm__dataset_io *io = NULL;
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < n && status == ESDM_OK; i++)
        status = check(dataset, &references[i], err);
    if (status == ESDM_OK)
        status = n > 0 ? esdm__dataset_io_get(dataset, &io, err) : ESDM_OK;
    if (status != ESDM_OK || n == 0)
        return status;
    esdm_error failure = {0};
    (void) pthread_mutex_lock(&io->write_lock);
    status = refer_locked(dataset, io, references, n, &failure);
    (void) pthread_mutex_unlock(&io->write_lock);
    esdm__dataset_io_put(dataset);
    if (status == ESDM_OK)
        atomic_store_explicit(&dataset->has_data, true, memory_order_relaxed);
    else if (err != NULL)
        *err = failure;
    return status == ESDM_OK ? ESDM_OK : esdm__dataset_prefix(dataset, status, err);
}

/* ---- stored already ------------------------------------------------------------------------- */

/* Names that the dataset's own index keeps. */
static bool
intern(esdm__index *index, esdm__fragment *fragment)
{
    esdm__elsewhere *e = &fragment->elsewhere;
    if (fragment->pack != NULL) {
        fragment->pack = esdm__index_pack(index, fragment->pack->target, fragment->pack->pack);
        if (fragment->pack == NULL)
            return false;
    }
    if (e->source != NULL) {
        e->source = esdm__index_source(index, e->source->role, e->source->data, e->source->bytes);
        if (e->source == NULL)
            return false;
    }
    if (e->decoding != NULL) {
        e->decoding =
            esdm__index_source(index, e->decoding->role, e->decoding->data, e->decoding->bytes);
        if (e->decoding == NULL)
            return false;
    }
    return true;
}

/* With the write lock held. */
static esdm_status
share_locked(esdm_dataset *dataset, esdm__dataset_io *io, const esdm__fragment *fragment,
             esdm_error *err)
{
    esdm__fragment own = *fragment;
    esdm_status status = esdm__dataset_mark_dirty(dataset, io, err);
    if (status == ESDM_OK)
        status = esdm__dataset_flush(dataset, io, err); /* older data goes first */
    if (status != ESDM_OK)
        return status;
    (void) pthread_mutex_lock(&io->lock);
    status = intern(io->index, &own)
                 ? esdm__index_add_pending(io->index, &own, err)
                 : esdm__error_nomem(err, sizeof own, "the record of a fragment");
    (void) pthread_mutex_unlock(&io->lock);
    if (status == ESDM_OK)
        grow_dimensions(dataset, &own.box);
    return status;
}

esdm_status
esdm__io_share(esdm_dataset *dataset, const esdm__fragment *fragment, esdm_error *err)
{
    esdm__dataset_io *io = NULL;
    esdm_dataspace space;
    esdm_status status =
        esdm_dataspace_init(&space, fragment->box.rank, fragment->box.lo, fragment->box.n, err);
    if (status == ESDM_OK && fragment->box.rank != dataset->rank)
        status = esdm__error_set(err, ESDM_EINVAL, "a fragment of another rank");
    if (status == ESDM_OK)
        status = esdm__space_check(dataset, &space, true, err);
    if (status == ESDM_OK)
        status = esdm__dataset_io_get(dataset, &io, err);
    if (status != ESDM_OK)
        return status;
    (void) pthread_mutex_lock(&io->write_lock);
    status = share_locked(dataset, io, fragment, err);
    (void) pthread_mutex_unlock(&io->write_lock);
    esdm__dataset_io_put(dataset);
    if (status == ESDM_OK)
        atomic_store_explicit(&dataset->has_data, true, memory_order_relaxed);
    return status;
}
