/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stddef.h>
#include <stdlib.h>

#include "base/error.h"
#include "io/container/access.h"
#include "io/container/behind.h"
#include "io/write/write.h"
#include "io/write/write_behind.h"
#include "model/copy.h"

/* A strided selection of so many boxes, each shorter than that, is kept as strided fragments. */
#define SCATTERED_BOXES 16u
#define SCATTERED_BYTES 4096u
#define STACK_BYTES     4096u

/* ---- gathering ---------------------------------------------------------------------------- */

typedef struct sink_context {
    esdm_dataset *dataset;
    esdm__dataset_io *io;
    bool now; /* it is waited for anyhow */
} sink_context;

static esdm_status
sink(void *user, const esdm__box *box, void *data, esdm_error *err)
{
    const sink_context *context = user;
    const esdm__elements *e = &context->io->elements;
    int64_t stride[ESDM_MAX_RANK];
    esdm__dense_strides(box->rank, box->n, stride);
    const esdm__transfer t = {.dataset = context->dataset,
                              .io = context->io,
                              .elements = e,
                              .memory = {e->type, data, stride}};
    return context->now ? esdm__write_fragments(&t, box, false, err)
                        : esdm__write_behind(&t, box, false, err);
}

static esdm_status
flush_gathered(esdm_dataset *dataset, esdm__dataset_io *io, bool now, esdm_error *err)
{
    if (esdm__gather_is_empty(&io->gather))
        return ESDM_OK;
    sink_context context = {dataset, io, now};
    uint64_t before = esdm__gather_bytes(&io->gather);
    esdm_status status = esdm__gather_flush(&io->gather, sink, &context, err);
    atomic_fetch_sub(&dataset->group->container->session->gathered,
                     before - esdm__gather_bytes(&io->gather));
    atomic_store(&io->gathered, !esdm__gather_is_empty(&io->gather));
    return status;
}

esdm_status
esdm__dataset_flush(esdm_dataset *dataset, esdm__dataset_io *io, esdm_error *err)
{
    esdm_status status = esdm__dataset_settle(dataset, io, err);
    return status == ESDM_OK ? flush_gathered(dataset, io, true, err) : status;
}

/* What cannot be flushed stays gathered: that is no failure as long as there is memory. */
static esdm_status
flush_other(esdm_dataset *other, esdm__dataset_io *io, esdm_error *why)
{
    esdm_error error = {0};
    if (pthread_mutex_trylock(&io->write_lock) != 0)
        return ESDM_OK;
    error.status = flush_gathered(other, io, false, &error);
    (void) pthread_mutex_unlock(&io->write_lock);
    if (error.status != ESDM_OK && why->status == ESDM_OK) {
        (void) esdm__dataset_prefix(other, error.status, &error);
        *why = error;
    }
    return error.status;
}

/* Over the session's bound the other datasets of this container give their buffers back, then this
 * one. Datasets that another thread is writing to are left alone. */
static esdm_status
relieve_memory(esdm_dataset *dataset, esdm__dataset_io *io, esdm_error *err)
{
    const esdm_container *container = dataset->group->container;
    const esdm_session *session = container->session;
    esdm_error why = {0};
    for (size_t i = 0; i < container->datasets.count; i++) {
        esdm_dataset *other = container->datasets.items[i];
        esdm__dataset_io *other_io = other != dataset ? esdm__dataset_io_find(other) : NULL;
        if (other_io == NULL)
            continue;
        bool relieved = atomic_load(&other_io->gathered) &&
                        flush_other(other, other_io, &why) == ESDM_OK &&
                        atomic_load(&session->gathered) <= session->gather_limit_bytes / 2;
        esdm__dataset_io_put(other);
        if (relieved)
            return ESDM_OK;
    }
    esdm_error own = {0};
    own.status = flush_gathered(dataset, io, false, &own);
    if (own.status == ESDM_OK && why.status == ESDM_OK)
        return ESDM_OK;
    if (atomic_load(&session->gathered) <= session->gather_limit_bytes)
        return ESDM_OK;
    own = own.status != ESDM_OK ? own : why;
    if (err != NULL)
        *err = own;
    return esdm__error_prefix(err, own.status, "memory is full of data that cannot be stored");
}

/* Dense data in the engine's form. */
static esdm_status
gather_box(esdm_dataset *dataset, esdm__dataset_io *io, const esdm__box *box, const void *data,
           esdm_error *err)
{
    esdm_session *session = dataset->group->container->session;
    sink_context context = {dataset, io, false};
    /* Before it is taken: who is told of an error keeps the data. */
    esdm_status status = ESDM_OK;
    if (atomic_load(&session->gathered) > session->gather_limit_bytes)
        status = relieve_memory(dataset, io, err);
    if (status != ESDM_OK)
        return status;
    uint64_t before = esdm__gather_bytes(&io->gather);
    status = esdm__gather_add(&io->gather, box, data, sink, &context, err);
    atomic_store(&io->gathered, !esdm__gather_is_empty(&io->gather));
    atomic_fetch_add(&session->gathered, esdm__gather_bytes(&io->gather) - before);
    return status;
}

/* Elements that vary: encoded, then gathered. */
static esdm_status
gather_encoded(const esdm__transfer *t, const esdm__box *box, esdm_error *err)
{
    uint64_t count = esdm__box_elements(box);
    uint8_t **blobs = malloc((size_t) count * sizeof *blobs);
    if (blobs == NULL)
        return esdm__error_nomem(err, (size_t) count * sizeof *blobs, "a write");
    esdm_status status = esdm__blobs_make(t->elements, box->rank, box->n, &t->memory, blobs, err);
    if (status == ESDM_OK) {
        status = gather_box(t->dataset, t->io, box, blobs, err);
        esdm__blobs_free(blobs, count);
    }
    free(blobs);
    return status;
}

/* A small box: made dense in the engine's form, then gathered. */
static esdm_status
gather_converted(const esdm__transfer *t, const esdm__box *box, esdm_error *err)
{
    const esdm__elements *e = t->elements;
    const esdm__memory *memory = &t->memory;
    if (esdm__elements_encode(e, memory->form))
        return gather_encoded(t, box, err);
    if (memory->form == e->type && esdm__strides_are_dense(box->rank, box->n, memory->stride))
        return gather_box(t->dataset, t->io, box, memory->data, err);
    max_align_t stack[STACK_BYTES / sizeof(max_align_t)];
    size_t bytes = (size_t) esdm__box_elements(box) * e->bytes;
    void *dense = bytes <= sizeof stack ? stack : malloc(bytes);
    if (dense == NULL)
        return esdm__error_nomem(err, bytes, "a write");
    int64_t dense_stride[ESDM_MAX_RANK];
    esdm__dense_strides(box->rank, box->n, dense_stride);
    const esdm__memory engine = {e->type, dense, dense_stride};
    esdm__elements_copy(e, box->rank, box->n, memory, &engine, t->out_of_range);
    esdm_status status = gather_box(t->dataset, t->io, box, dense, err);
    if (dense != stack)
        free(dense);
    return status;
}

static esdm_status
write_dense(const esdm__transfer *t, const esdm__box *box, esdm_error *err)
{
    esdm__dataset_io *io = t->io;
    if (!io->readers_asked) { /* small datasets never do */
        uint64_t preferred = esdm__dataset_io_preferred(io);
        if (esdm__box_elements(box) * t->elements->bytes >= preferred / 16 ||
            esdm__gather_bytes(&io->gather) >= preferred / 2)
            esdm__access_by_readers(t->dataset, io);
    }
    if (esdm__box_elements(box) < t->io->direct_bytes / t->elements->bytes)
        return gather_converted(t, box, err);
    esdm_status status = flush_gathered(t->dataset, t->io, false, err); /* older data goes first */
    return status == ESDM_OK ? esdm__write_behind(t, box, false, err) : status;
}

/* ---- the call ----------------------------------------------------------------------------- */

/* Whether a strided selection should become strided fragments: it would be very many small boxes.
 */
static bool
is_scattered(const esdm__elements *e, const esdm_dataspace *space)
{
    uint64_t boxes = 1;
    uint64_t elements = 1; /* of one box */
    if (esdm__elements_vary(e))
        return false;
    for (uint32_t i = 0; i < space->rank; i++) {
        if (space->stride[i] > 1)
            boxes *= space->size[i]; /* the product of all sizes fits */
        else
            elements *= space->size[i];
    }
    return boxes >= SCATTERED_BOXES && elements * e->bytes < SCATTERED_BYTES;
}

static esdm_status
write_scattered(const esdm__transfer *t, esdm_error *err)
{
    esdm__box indices;
    esdm__box_set(&indices, t->space->rank, NULL, t->space->size);
    esdm_status status = flush_gathered(t->dataset, t->io, false, err); /* older data goes first */
    return status == ESDM_OK ? esdm__write_behind(t, &indices, true, err) : status;
}

/* Few strided rows are written as dense boxes; in any case what lies between belongs to others,
 * perhaps to another process, and is never rewritten. */
static esdm_status
write_strided(const esdm__transfer *t, esdm_error *err)
{
    const esdm_dataspace *space = t->space;
    uint32_t rank = space->rank;
    int64_t element = (int64_t) esdm__elements_bytes(t->elements, t->memory.form);
    esdm__transfer row = *t;
    uint64_t index[ESDM_MAX_RANK] = {0};
    esdm__box box;
    esdm__box_set(&box, rank, space->offset, space->size);
    for (uint32_t i = 0; i < rank; i++) {
        if (space->stride[i] > 1)
            box.n[i] = 1;
    }
    for (;;) {
        int64_t at = 0;
        for (uint32_t i = 0; i < rank; i++) {
            box.lo[i] = space->offset[i] + index[i] * space->stride[i];
            at += (int64_t) index[i] * t->memory.stride[i];
        }
        row.memory.data = (uint8_t *) t->memory.data + at * element;
        esdm_status status = write_dense(&row, &box, err);
        if (status != ESDM_OK)
            return status;
        uint32_t axis = rank;
        while (axis > 0) {
            axis--;
            if (space->stride[axis] > 1 && ++index[axis] < space->size[axis])
                break;
            index[axis] = 0;
            if (axis == 0)
                return ESDM_OK;
        }
    }
}

static esdm_status
write_space(esdm_dataset *dataset, esdm__dataset_io *io, const esdm_dataspace *space,
            esdm_type form, const void *buffer, uint64_t *out_of_range, esdm_error *err)
{
    int64_t stride[ESDM_MAX_RANK];
    esdm__space_memory_strides(space, stride);
    const esdm__transfer t = {.dataset = dataset,
                              .io = io,
                              .elements = &io->elements,
                              .space = space,
                              .memory = {form, (void *) (uintptr_t) buffer, stride},
                              .out_of_range = out_of_range};
    if (space->has_stride)
        return is_scattered(t.elements, space) ? write_scattered(&t, err) : write_strided(&t, err);
    esdm__box box;
    esdm__box_set(&box, space->rank, space->offset, space->size);
    return write_dense(&t, &box, err);
}

static void
grow_dimensions(const esdm_dataset *dataset, const esdm_dataspace *space)
{
    for (uint32_t i = 0; i < space->rank; i++) {
        if (!dataset->dimensions[i]->unlimited)
            continue;
        uint64_t step = space->has_stride ? space->stride[i] : 1;
        (void) esdm__dimension_grow(dataset->dimensions[i],
                                    space->offset[i] + (space->size[i] - 1) * step + 1);
    }
}

/* The common case of a model that writes record by record: false when it is not that. Caller holds
 * the write lock. */
static bool
append_fast(esdm_dataset *dataset, esdm__dataset_io *io, const esdm_dataspace *space,
            esdm_type form, const void *buffer)
{
    esdm_session *session = dataset->group->container->session;
    if (space->has_stride || space->has_memory_stride || form != io->elements.type)
        return false;
    esdm__box box;
    esdm__box_set(&box, space->rank, space->offset, space->size);
    if (esdm__box_elements(&box) * io->elements.bytes > STACK_BYTES ||
        atomic_load_explicit(&session->gathered, memory_order_relaxed) >
            session->gather_limit_bytes)
        return false;
    const esdm__gather_level *level = io->gather.levels;
    if (level == NULL)
        return false;
    uint64_t before = level->capacity_bytes + level->text_bytes;
    if (!esdm__gather_append(&io->gather, &box, buffer))
        return false;
    uint64_t after = level->capacity_bytes + level->text_bytes;
    if (after != before) /* over the bound, the next slow write relieves */
        atomic_fetch_add(&session->gathered, after - before);
    return true;
}

/* With the write lock held. What fails here is to be written again before a commit. */
static esdm_status
write_locked(esdm_dataset *dataset, esdm__dataset_io *io, const esdm_dataspace *space,
             esdm_type form, const void *buffer, uint64_t *out_of_range, esdm_error *failure)
{
    if (io->failure != NULL) {
        *failure = *io->failure;
        return failure->status;
    }
    bool appended = append_fast(dataset, io, space, form, buffer);
    atomic_store_explicit(&io->appends, appended, memory_order_relaxed);
    if (!appended)
        failure->status = write_space(dataset, io, space, form, buffer, out_of_range, failure);
    if (failure->status != ESDM_OK)
        esdm__failed_note(&io->failed, space, failure);
    else
        esdm__failed_mend(&io->failed, space);
    return failure->status;
}

/* With the write lock held, so that no other thread counts; who reads it has no lock. */
static void
count_write(esdm__dataset_io *io)
{
    uint_fast64_t writes = atomic_load_explicit(&io->writes, memory_order_relaxed);
    atomic_store_explicit(&io->writes, writes + 1, memory_order_release);
}

static bool
append_record(esdm_dataset *dataset, esdm__dataset_io *io, const uint64_t *offset,
              const uint64_t *size, const void *buffer)
{
    const esdm_session *session = dataset->group->container->session;
    (void) pthread_mutex_lock(&io->write_lock);
    bool done = io->failure == NULL && io->failed.list == NULL &&
                atomic_load_explicit(&io->listed, memory_order_relaxed) &&
                atomic_load_explicit(&session->gathered, memory_order_relaxed) <=
                    session->gather_limit_bytes &&
                esdm__gather_continue(&io->gather, offset, size, buffer);
    if (done) {
        for (uint32_t i = 0; i < dataset->rank; i++)
            if (dataset->dimensions[i]->unlimited)
                (void) esdm__dimension_grow(dataset->dimensions[i], offset[i] + size[i]);
        count_write(io);
    }
    (void) pthread_mutex_unlock(&io->write_lock);
    return done;
}

bool
esdm__io_append(esdm_dataset *dataset, uint32_t rank, const uint64_t *offset, const uint64_t *size,
                esdm_type memory_type, const void *buffer)
{
    const esdm_container *container = dataset->group->container;
    const esdm_session *session = container->session;
    if (!container->writable || session->monitor != NULL || session->behind != NULL ||
        esdm__io_of(container)->comm != NULL || memory_type != dataset->type || rank == 0 ||
        rank != dataset->rank || !dataset->dimensions[0]->unlimited ||
        atomic_load_explicit(&dataset->unregioned_at, memory_order_relaxed) !=
            atomic_load_explicit(&container->changes, memory_order_relaxed))
        return false;
    (void) atomic_fetch_add(&dataset->io_users, 1);
    esdm__dataset_io *io = __atomic_load_n(&dataset->io, __ATOMIC_SEQ_CST);
    bool done = io != NULL && atomic_load_explicit(&io->appends, memory_order_relaxed) &&
                memory_type == io->elements.type &&
                append_record(dataset, io, offset, size, buffer);
    esdm__dataset_io_put(dataset);
    if (done)
        atomic_store_explicit(&dataset->has_data, true, memory_order_relaxed);
    return done;
}

static esdm_status
write_selection(esdm_dataset *dataset, const esdm_dataspace *space, esdm_type memory_type,
                const void *buffer, uint64_t *ret_out_of_range, esdm_error *err)
{
    esdm_status status = esdm__space_check(dataset, space, true, err);
    if (status == ESDM_OK)
        status = esdm__container_check_process(dataset->group->container, err);
    if (status != ESDM_OK)
        return status;
    if (esdm_dataspace_elements(space) == 0)
        return ESDM_OK;
    esdm__dataset_io *io = NULL;
    status = esdm__dataset_io_get(dataset, &io, err);
    if (status != ESDM_OK)
        return status;

    esdm_error failure; /* the whole message, set to 0, would be a tenth of a small write */
    failure.status = ESDM_OK;
    failure.os_errno = 0;
    failure.message[0] = '\0';
    uint64_t out_of_range = 0;
    (void) pthread_mutex_lock(&io->write_lock);
    /* Under the lock: a commit takes datasets off its list while it holds it. */
    status = esdm__dataset_mark_dirty(dataset, io, &failure);
    bool shared = esdm__io_of(dataset->group->container)->comm != NULL;
    if (status == ESDM_OK && shared && !esdm__epochs_reserve(io->epochs))
        status = esdm__error_nomem(&failure, sizeof *io->epochs->hulls, "a write of several ranks");
    if (status == ESDM_OK)
        status = write_locked(dataset, io, space, esdm__elements_form(&io->elements, memory_type),
                              buffer, &out_of_range, &failure);
    if (status == ESDM_OK) {
        grow_dimensions(dataset, space);
        if (shared)
            esdm__epochs_note(io->epochs, space);
    }
    count_write(io);
    (void) pthread_mutex_unlock(&io->write_lock);
    esdm__dataset_io_put(dataset);
    if (status != ESDM_OK) {
        if (err != NULL)
            *err = failure;
        return esdm__dataset_prefix(dataset, status, err);
    }
    atomic_store_explicit(&dataset->has_data, true, memory_order_relaxed);
    if (ret_out_of_range != NULL)
        *ret_out_of_range = out_of_range;
    return ESDM_OK;
}

esdm_status
esdm__io_write(esdm_dataset *dataset, const esdm_dataspace *space, esdm_type memory_type,
               const void *buffer, uint64_t *ret_out_of_range, esdm_error *err)
{
    esdm__span span;
    esdm__span_begin(&span, dataset->group->container->session->monitor);
    esdm_status status =
        write_selection(dataset, space, memory_type, buffer, ret_out_of_range, err);
    if (esdm__span_is_observed(&span))
        esdm__dataset_observed(
            dataset, &span,
            (esdm__span_facts){.kind = ESDM__SPAN_WRITE,
                               .bytes =
                                   esdm_dataspace_elements(space) * esdm_type_size(dataset->type),
                               .status = status,
                               .detail = esdm__selection_detail(dataset, space, memory_type)});
    return status;
}
