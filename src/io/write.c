/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/io.h"
#include "io/strings.h"
#include "layout/fragmenter.h"
#include "model/copy.h"

/* Writes from here on go to fragments at once, without a copy in the gather buffer. */
#define DIRECT_BYTES (UINT64_C(256) << 10)
/* Uncommitted inline data of a dataset; beyond it small fragments go to packs too. Datasets that
 * share the memory have less. */
#define PENDING_INLINE_BYTES       (UINT64_C(8) << 20)
#define LEAST_PENDING_INLINE_BYTES (UINT64_C(64) << 10)
/* Fragments in flight in one round of the pool. */
#define BATCH       64u
#define STACK_BYTES 4096u

/* ---- one fragment ------------------------------------------------------------------------- */

/* A fragment in the making. */
typedef struct slot {
    esdm__fragment fragment;
    esdm__place place;
    void *inline_data; /* owned; NULL for fragments in packs */
} slot;

/* A write box in the caller's memory, and the fragments that one round of the pool makes of it. */
typedef struct round {
    esdm_dataset *dataset;
    esdm__dataset_io *io;
    esdm__pack_set *packs; /* NULL until something does not fit inline */
    const esdm__box *box;
    esdm_type memory_type;
    const uint8_t *buffer;
    const int64_t *stride;
    slot *slots;  /* of the fragments of one round */
    size_t batch; /* slots there are */
    bool inline_room;
    atomic_uint_fast64_t out_of_range;
} round;

static const uint8_t *
memory_of(const round *r, const esdm__box *part)
{
    int64_t at = 0;
    for (uint32_t i = 0; i < part->rank; i++)
        at += (int64_t) (part->lo[i] - r->box->lo[i]) * r->stride[i];
    return r->buffer + at * (int64_t) esdm_type_size(r->memory_type);
}

/* Dense elements of the fragment in the dataset's type: the caller's memory itself where it is
 * dense already, else a copy in *ret_owned. */
static esdm_status
dense_elements(round *r, const esdm__box *part, const void **ret_data, void **ret_owned,
               esdm_error *err)
{
    const uint8_t *source = memory_of(r, part);
    esdm_type type = r->dataset->type;
    *ret_owned = NULL;
    if (r->memory_type == type && esdm__strides_are_dense(part->rank, part->n, r->stride)) {
        *ret_data = source;
        return ESDM_OK;
    }
    size_t bytes = (size_t) esdm__box_elements(part) * esdm_type_size(type);
    void *copy = malloc(bytes);
    if (copy == NULL)
        return esdm__error_nomem(err, bytes, "a fragment");
    int64_t stride[ESDM_MAX_RANK];
    uint64_t out_of_range = 0;
    esdm__dense_strides(part->rank, part->n, stride);
    esdm__copy_nd(part->rank, part->n, r->memory_type, source, r->stride, type, copy, stride,
                  &out_of_range);
    if (out_of_range > 0)
        atomic_fetch_add(&r->out_of_range, out_of_range);
    *ret_data = copy;
    *ret_owned = copy;
    return ESDM_OK;
}

/* The bytes to store; strings are serialised. */
static esdm_status
raw_bytes_of(round *r, const esdm__box *part, const void **ret_raw, size_t *ret_bytes,
             void **ret_owned, esdm_error *err)
{
    const void *data = NULL;
    esdm_status status = dense_elements(r, part, &data, ret_owned, err);
    if (status != ESDM_OK)
        return status;
    uint64_t elements = esdm__box_elements(part);
    if (r->dataset->type != ESDM_TYPE_STRING) {
        *ret_raw = data;
        *ret_bytes = (size_t) elements * esdm_type_size(r->dataset->type);
        return ESDM_OK;
    }
    esdm__buffer out;
    esdm__buffer_init(&out);
    status = esdm__strings_encode(data, elements, &out, err);
    free(*ret_owned);
    *ret_owned = NULL;
    if (status != ESDM_OK) {
        esdm__buffer_clear(&out);
        return status;
    }
    *ret_owned = esdm__buffer_steal(&out, ret_bytes);
    *ret_raw = *ret_owned;
    return ESDM_OK;
}

static esdm_status
store_in_pack(round *r, size_t i, const void *raw, size_t bytes, esdm_error *err)
{
    esdm__fragment *fragment = &r->slots[i].fragment;
    esdm_type type = r->dataset->type;
    uint32_t element_bytes = type == ESDM_TYPE_STRING ? 1 : (uint32_t) esdm_type_size(type);
    esdm__pack_set *packs = NULL;
    esdm_status status = esdm__container_packs(r->dataset->group->container, &packs, err);
    if (status != ESDM_OK)
        return status;
    esdm__blob blob = {0};
    status = esdm__blob_encode(&r->io->chain, type, element_bytes, r->dataset->id, raw, bytes,
                               &blob, err);
    if (status != ESDM_OK)
        return status;
    esdm_iov iov[2] = {{blob.head, blob.head_bytes}, {blob.payload, blob.payload_bytes}};
    status = esdm__pack_set_append(packs, iov, 2, &r->slots[i].place, err);
    if (status == ESDM_OK) {
        fragment->position = r->slots[i].place.position;
        fragment->stored_bytes = blob.head_bytes + blob.payload_bytes;
        fragment->head_bytes = (uint32_t) blob.head_bytes;
        for (uint32_t k = 0; k < r->io->chain.count; k++)
            fragment->codec_ids[k] = r->io->chain.codecs[k]->id;
    }
    esdm__blob_clear(&blob);
    return status;
}

static esdm_status
store_fragment(void *context, size_t i, esdm_error *err)
{
    round *r = context;
    esdm__fragment *fragment = &r->slots[i].fragment;
    const void *raw = NULL;
    void *owned = NULL;
    size_t bytes = 0;
    esdm_status status = raw_bytes_of(r, &fragment->box, &raw, &bytes, &owned, err);
    if (status != ESDM_OK)
        return status;
    fragment->raw_bytes = bytes;
    const esdm_session *session = r->dataset->group->container->session;
    if (bytes > session->site->engine.inline_bytes || !r->inline_room) {
        status = store_in_pack(r, i, raw, bytes, err);
        free(owned);
        return status;
    }
    if (owned == NULL) {
        owned = malloc(bytes > 0 ? bytes : 1);
        if (owned == NULL)
            return esdm__error_nomem(err, bytes, "a fragment");
        if (raw != NULL)
            memcpy(owned, raw, bytes);
    }
    r->slots[i].inline_data = owned;
    fragment->inline_data = owned;
    fragment->stored_bytes = bytes;
    return ESDM_OK;
}

/* ---- one box ------------------------------------------------------------------------------ */

static esdm_status
enter_pending(round *r, size_t count, esdm_error *err)
{
    esdm__dataset_io *io = r->io;
    esdm_status status = ESDM_OK;
    (void) pthread_mutex_lock(&io->lock);
    for (size_t i = 0; i < count && status == ESDM_OK; i++) {
        esdm__fragment *fragment = &r->slots[i].fragment;
        if (fragment->inline_data == NULL) {
            fragment->pack =
                esdm__index_pack(io->index, r->slots[i].place.target, r->slots[i].place.pack);
            if (fragment->pack == NULL)
                status = esdm__error_nomem(err, sizeof *fragment, "the fragment index");
        }
        if (status == ESDM_OK)
            status = esdm__index_add_pending(io->index, fragment, err);
    }
    (void) pthread_mutex_unlock(&io->lock);
    return status;
}

static bool
has_inline_room(const round *r)
{
    const esdm_container *container = r->dataset->group->container;
    uint64_t limit = container->session->index_limit_bytes / container->datasets.count;
    limit = limit < PENDING_INLINE_BYTES ? limit : PENDING_INLINE_BYTES;
    limit = limit > LEAST_PENDING_INLINE_BYTES ? limit : LEAST_PENDING_INLINE_BYTES;
    (void) pthread_mutex_lock(&r->io->lock);
    bool room = esdm__index_pending_inline_bytes(r->io->index) < limit;
    (void) pthread_mutex_unlock(&r->io->lock);
    return room;
}

static esdm_status
run_round(round *r, size_t count, esdm_error *err)
{
    r->inline_room = has_inline_room(r);
    esdm__pool *pool = r->dataset->group->container->session->pool;
    esdm_status status = esdm__pool_run(pool, count, store_fragment, r, err);
    if (status == ESDM_OK)
        status = enter_pending(r, count, err);
    for (size_t i = 0; i < count; i++) {
        free(r->slots[i].inline_data);
        r->slots[i].inline_data = NULL;
    }
    return status;
}

/* Stored bytes of an element; of texts on average, so that fragments of long ones stay small. */
static uint64_t
element_bytes(const round *r)
{
    const char *const *texts = (const void *) r->buffer;
    uint64_t index[ESDM_MAX_RANK] = {0};
    uint64_t sum = 0;
    if (r->dataset->type != ESDM_TYPE_STRING)
        return esdm_type_size(r->dataset->type);
    for (;;) {
        int64_t at = 0;
        for (uint32_t i = 0; i < r->box->rank; i++)
            at += (int64_t) index[i] * r->stride[i];
        sum += sizeof(uint32_t) + (texts[at] != NULL ? strlen(texts[at]) : 0);
        uint32_t axis = r->box->rank;
        while (axis > 0 && ++index[axis - 1] == r->box->n[axis - 1])
            index[--axis] = 0;
        if (axis == 0)
            return sum / esdm__box_elements(r->box);
    }
}

static esdm__layout
layout_of(const round *r)
{
    const esdm_dataset *dataset = r->dataset;
    const esdm__dataset_io *io = r->io;
    esdm__layout layout = {.rank = dataset->rank,
                           .element_bytes = element_bytes(r),
                           .chunk = dataset->chunk,
                           .preferred_bytes = io->preferred_bytes,
                           .minimum_bytes = io->minimum_bytes};
    if (layout.chunk != NULL) {
        esdm__box chunk;
        esdm__box_set(&chunk, dataset->rank, NULL, dataset->chunk);
        /* A chunk that does not fit the memory bound is a hint we cannot follow. */
        uint64_t limit = dataset->group->container->session->fragment_limit_bytes;
        if (esdm__box_elements(&chunk) > limit / layout.element_bytes)
            layout.chunk = NULL;
    }
    return layout;
}

static esdm_status
cut_and_store(round *r, const esdm__layout *layout, esdm_error *err)
{
    esdm__cutter cutter;
    esdm__cutter_init(&cutter, layout, r->box);
    bool more = true;
    while (more) {
        size_t count = 0;
        while (count < r->batch) {
            more = esdm__cutter_next(&cutter, &r->slots[count].fragment.box);
            if (!more)
                break;
            esdm__fragment *fragment = &r->slots[count++].fragment;
            fragment->inline_data = NULL;
            fragment->pack = NULL;
            fragment->position = 0;
            fragment->head_bytes = 0;
            memset(fragment->codec_ids, 0, sizeof fragment->codec_ids);
        }
        esdm_status status = count > 0 ? run_round(r, count, err) : ESDM_OK;
        if (status != ESDM_OK)
            return status;
    }
    return ESDM_OK;
}

esdm_status
esdm__write_box(esdm_dataset *dataset, esdm__dataset_io *io, const esdm__box *box,
                esdm_type memory_type, const void *buffer, const int64_t *stride,
                uint64_t *ret_out_of_range, esdm_error *err)
{
    round r = {.dataset = dataset,
               .io = io,
               .box = box,
               .memory_type = memory_type,
               .buffer = buffer,
               .stride = stride};
    esdm__layout layout = layout_of(&r);
    uint64_t count = esdm__cutter_count(&layout, box);
    r.batch = count > BATCH ? BATCH : count > 0 ? (size_t) count : 1;
    r.slots = calloc(r.batch + 1, sizeof *r.slots);
    if (r.slots == NULL)
        return esdm__error_nomem(err, r.batch * sizeof *r.slots, "a write");
    esdm_status status = cut_and_store(&r, &layout, err);
    if (ret_out_of_range != NULL)
        *ret_out_of_range += atomic_load(&r.out_of_range);
    free(r.slots);
    return status;
}

/* ---- gathering ---------------------------------------------------------------------------- */

typedef struct sink_context {
    esdm_dataset *dataset;
    esdm__dataset_io *io;
} sink_context;

static esdm_status
sink(void *user, const esdm__box *box, void *data, esdm_error *err)
{
    const sink_context *context = user;
    int64_t stride[ESDM_MAX_RANK];
    esdm__dense_strides(box->rank, box->n, stride);
    return esdm__write_box(context->dataset, context->io, box, context->dataset->type, data, stride,
                           NULL, err);
}

esdm_status
esdm__dataset_flush(esdm_dataset *dataset, esdm__dataset_io *io, esdm_error *err)
{
    if (esdm__gather_is_empty(&io->gather))
        return ESDM_OK;
    sink_context context = {dataset, io};
    atomic_fetch_sub(&dataset->group->container->session->gathered,
                     esdm__gather_bytes(&io->gather));
    esdm_status status = esdm__gather_flush(&io->gather, sink, &context, err);
    atomic_store(&io->gathered, false);
    return status;
}

/* Over the session's bound the other datasets of this container give their buffers back, then this
 * one. Datasets that another thread is writing to are left alone. */
static esdm_status
relieve_memory(esdm_dataset *dataset, esdm__dataset_io *io, esdm_error *err)
{
    const esdm_container *container = dataset->group->container;
    const esdm_session *session = container->session;
    for (size_t i = 0; i < container->datasets.count; i++) {
        esdm_dataset *other = container->datasets.items[i];
        esdm__dataset_io *other_io = __atomic_load_n(&other->io, __ATOMIC_ACQUIRE);
        if (other == dataset || other_io == NULL || !atomic_load(&other_io->gathered) ||
            pthread_mutex_trylock(&other_io->write_lock) != 0)
            continue;
        esdm_status status = esdm__dataset_flush(other, other_io, err);
        if (status != ESDM_OK && other_io->failure.status == ESDM_OK && err != NULL)
            other_io->failure = *err;
        (void) pthread_mutex_unlock(&other_io->write_lock);
        if (status != ESDM_OK)
            return status;
        if (atomic_load(&session->gathered) <= session->gather_limit_bytes / 2)
            return ESDM_OK;
    }
    return esdm__dataset_flush(dataset, io, err);
}

/* Dense data in the dataset's type. */
static esdm_status
gather_box(esdm_dataset *dataset, esdm__dataset_io *io, const esdm__box *box, const void *data,
           esdm_error *err)
{
    esdm_session *session = dataset->group->container->session;
    sink_context context = {dataset, io};
    uint64_t before = esdm__gather_bytes(&io->gather);
    esdm_status status = esdm__gather_add(&io->gather, box, data, sink, &context, err);
    atomic_store(&io->gathered, true);
    uint64_t after = esdm__gather_bytes(&io->gather);
    uint64_t total = atomic_fetch_add(&session->gathered, after - before) + after - before;
    if (status == ESDM_OK && total > session->gather_limit_bytes)
        status = relieve_memory(dataset, io, err);
    return status;
}

/* A small box: made dense in the dataset's type, then gathered. */
static esdm_status
gather_converted(esdm_dataset *dataset, esdm__dataset_io *io, const esdm__box *box,
                 esdm_type memory_type, const void *buffer, const int64_t *stride,
                 uint64_t *out_of_range, esdm_error *err)
{
    if (memory_type == dataset->type && esdm__strides_are_dense(box->rank, box->n, stride))
        return gather_box(dataset, io, box, buffer, err);
    max_align_t stack[STACK_BYTES / sizeof(max_align_t)];
    size_t bytes = (size_t) esdm__box_elements(box) * esdm_type_size(dataset->type);
    void *dense = bytes <= sizeof stack ? stack : malloc(bytes);
    if (dense == NULL)
        return esdm__error_nomem(err, bytes, "a write");
    int64_t dense_stride[ESDM_MAX_RANK];
    esdm__dense_strides(box->rank, box->n, dense_stride);
    esdm__copy_nd(box->rank, box->n, memory_type, buffer, stride, dataset->type, dense,
                  dense_stride, out_of_range);
    esdm_status status = gather_box(dataset, io, box, dense, err);
    if (dense != stack)
        free(dense);
    return status;
}

static esdm_status
write_dense(esdm_dataset *dataset, esdm__dataset_io *io, const esdm__box *box,
            esdm_type memory_type, const void *buffer, const int64_t *stride,
            uint64_t *out_of_range, esdm_error *err)
{
    uint64_t limit = DIRECT_BYTES < io->preferred_bytes ? DIRECT_BYTES : io->preferred_bytes;
    if (esdm__box_elements(box) < limit / esdm_type_size(dataset->type))
        return gather_converted(dataset, io, box, memory_type, buffer, stride, out_of_range, err);
    esdm_status status = esdm__dataset_flush(dataset, io, err); /* older data goes first */
    if (status != ESDM_OK)
        return status;
    return esdm__write_box(dataset, io, box, memory_type, buffer, stride, out_of_range, err);
}

/* ---- the call ----------------------------------------------------------------------------- */

/* A strided selection is written as the dense boxes it consists of: what lies between belongs to
 * others, perhaps to another process, and is never rewritten. */
static esdm_status
write_strided(esdm_dataset *dataset, esdm__dataset_io *io, const esdm_dataspace *space,
              esdm_type memory_type, const uint8_t *buffer, const int64_t *stride,
              uint64_t *out_of_range, esdm_error *err)
{
    uint32_t rank = space->rank;
    size_t element = esdm_type_size(memory_type);
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
            at += (int64_t) index[i] * stride[i];
        }
        esdm_status status =
            write_dense(dataset, io, &box, memory_type, buffer + at * (int64_t) element, stride,
                        out_of_range, err);
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
            esdm_type memory_type, const void *buffer, uint64_t *out_of_range, esdm_error *err)
{
    int64_t stride[ESDM_MAX_RANK];
    esdm__space_memory_strides(space, stride);
    if (space->has_stride)
        return write_strided(dataset, io, space, memory_type, buffer, stride, out_of_range, err);
    esdm__box box;
    esdm__box_set(&box, space->rank, space->offset, space->size);
    return write_dense(dataset, io, &box, memory_type, buffer, stride, out_of_range, err);
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
            esdm_type memory_type, const void *buffer)
{
    esdm_session *session = dataset->group->container->session;
    if (space->has_stride || space->has_memory_stride || memory_type != dataset->type)
        return false;
    esdm__box box;
    esdm__box_set(&box, space->rank, space->offset, space->size);
    if (esdm__box_elements(&box) * esdm_type_size(memory_type) > STACK_BYTES ||
        atomic_load_explicit(&session->gathered, memory_order_relaxed) >
            session->gather_limit_bytes)
        return false;
    const esdm__gather_level *level = &io->gather.levels[0];
    uint64_t before = level->capacity_bytes + level->text_bytes;
    if (!esdm__gather_append(&io->gather, &box, buffer))
        return false;
    uint64_t after = level->capacity_bytes + level->text_bytes;
    if (after != before) /* over the bound, the next slow write relieves */
        atomic_fetch_add(&session->gathered, after - before);
    return true;
}

/* With the write lock held. What is lost here makes every later commit fail. */
static esdm_status
write_locked(esdm_dataset *dataset, esdm__dataset_io *io, const esdm_dataspace *space,
             esdm_type memory_type, const void *buffer, uint64_t *out_of_range, esdm_error *failure)
{
    if (io->failure.status != ESDM_OK) {
        *failure = io->failure;
        return failure->status;
    }
    if (append_fast(dataset, io, space, memory_type, buffer))
        return ESDM_OK;
    failure->status = write_space(dataset, io, space, memory_type, buffer, out_of_range, failure);
    if (failure->status != ESDM_OK)
        io->failure = *failure;
    return failure->status;
}

esdm_status
esdm__io_write(esdm_dataset *dataset, const esdm_dataspace *space, esdm_type memory_type,
               const void *buffer, uint64_t *ret_out_of_range, esdm_error *err)
{
    esdm_status status = esdm__space_check(dataset, space, true, err);
    if (status != ESDM_OK)
        return status;
    if (esdm_dataspace_elements(space) == 0)
        return ESDM_OK;
    esdm__dataset_io *io = NULL;
    status = esdm__dataset_io_get(dataset, &io, err);
    if (status != ESDM_OK)
        return status;

    esdm_error failure = {0};
    uint64_t out_of_range = 0;
    (void) pthread_mutex_lock(&io->write_lock);
    /* Under the lock: a commit takes datasets off its list while it holds it. */
    status = esdm__dataset_mark_dirty(dataset, io, &failure);
    if (status == ESDM_OK)
        status = write_locked(dataset, io, space, memory_type, buffer, &out_of_range, &failure);
    if (status == ESDM_OK)
        grow_dimensions(dataset, space);
    (void) pthread_mutex_unlock(&io->write_lock);
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
