/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/io.h"
#include "layout/strided.h"
#include "model/copy.h"

/* Fragments in one plan (about 1 KiB each); a request that meets more is halved. */
#define PLAN_FRAGMENTS ((size_t) 32768)
/* Strided pieces read at once when they do not meet. */
#define LAYER_PIECES 64u
/* Strided data is converted in steps of at most so many elements. */
#define CONVERT_ELEMENTS (UINT64_C(1) << 20)

/* ---- own writes --------------------------------------------------------------------------- */

/* Serves a read that lies in the newest gathered box, without turning it into a fragment. */
static bool
read_gathered(const esdm_dataset *dataset, const esdm__dataset_io *io, const esdm_dataspace *space,
              const esdm__box *hull, esdm_type memory_type, void *buffer, uint64_t *out_of_range)
{
    const esdm__gather_level *level = esdm__gather_find(&io->gather, hull);
    if (level == NULL)
        return false;
    int64_t stride[ESDM_MAX_RANK];
    int64_t memory_stride[ESDM_MAX_RANK];
    uint64_t at = 0;
    esdm__dense_strides(hull->rank, level->box.n, stride);
    esdm__space_memory_strides(space, memory_stride);
    for (uint32_t i = 0; i < hull->rank; i++) {
        at += (hull->lo[i] - level->box.lo[i]) * (uint64_t) stride[i];
        stride[i] *= space->has_stride ? (int64_t) space->stride[i] : 1;
    }
    esdm__copy_nd(hull->rank, space->size, dataset->type,
                  level->data + at * esdm_type_size(dataset->type), stride, memory_type, buffer,
                  memory_stride, out_of_range);
    return true;
}

static esdm_status
settle_writes(esdm_dataset *dataset, esdm__dataset_io *io, const esdm_dataspace *space,
              const esdm__box *hull, esdm_type memory_type, void *buffer, uint64_t *out_of_range,
              bool *ret_done, esdm_error *err)
{
    esdm_error failure = {0};
    *ret_done = false;
    if (atomic_load(&io->gathered)) {
        (void) pthread_mutex_lock(&io->write_lock);
        *ret_done = read_gathered(dataset, io, space, hull, memory_type, buffer, out_of_range);
        if (!*ret_done) {
            failure.status = esdm__dataset_flush(dataset, io, &failure);
            if (failure.status != ESDM_OK && io->failure.status == ESDM_OK)
                io->failure = failure;
        }
        (void) pthread_mutex_unlock(&io->write_lock);
    }
    if (failure.status != ESDM_OK && err != NULL)
        *err = failure;
    const esdm__container_io *container_io = esdm__io_of(dataset->group->container);
    esdm__pack_set *packs = __atomic_load_n(&container_io->packs, __ATOMIC_ACQUIRE);
    if (failure.status == ESDM_OK && !*ret_done && packs != NULL)
        return esdm__pack_set_make_readable(packs, err);
    return failure.status;
}

/* ---- plan --------------------------------------------------------------------------------- */

static esdm_status
make_plan(esdm_dataset *dataset, esdm__dataset_io *io, const esdm__box *hull, esdm__plan *ret_plan,
          esdm_error *err)
{
    for (;;) {
        uint64_t *missing = NULL;
        size_t nmissing = 0;
        (void) pthread_mutex_lock(&io->lock);
        if (!io->directory_loaded) { /* forgotten: another thread commits or refreshes */
            (void) pthread_mutex_unlock(&io->lock);
            esdm_status loaded = esdm__dataset_load_directory(dataset, io, err);
            if (loaded != ESDM_OK)
                return loaded;
            continue;
        }
        esdm_status status = esdm__index_missing(io->index, hull, &missing, &nmissing, err);
        if (status == ESDM_OK && nmissing == 0)
            status = esdm__index_resolve(io->index, hull, ret_plan, err);
        if (nmissing == 0)
            esdm__dataset_trim_index(dataset, io);
        (void) pthread_mutex_unlock(&io->lock);
        if (status == ESDM_OK && nmissing == 0)
            return ESDM_OK;
        if (status == ESDM_OK)
            status = esdm__dataset_load_pages(dataset, io, missing, nmissing, err);
        free(missing);
        if (status != ESDM_OK)
            return status;
    }
}

/* ---- fill values -------------------------------------------------------------------------- */

static esdm_status
fill_numbers(esdm_dataset *dataset, const esdm_dataspace *space, const int64_t *stride,
             esdm_type memory_type, void *buffer, uint64_t *out_of_range, esdm_error *err)
{
    uint64_t value[2]; /* room for every type */
    uint64_t misfits = 0;
    esdm_status status = esdm_convert(dataset->type, esdm_dataset_fill(dataset, NULL), memory_type,
                                      value, 1, &misfits, err);
    if (status != ESDM_OK)
        return status;
    *out_of_range += misfits;
    esdm__fill_nd(space->rank, space->size, memory_type, value, buffer, stride);
    return ESDM_OK;
}

/* Visits every element of the caller's texts. */
static esdm_status
for_each_text(const esdm_dataspace *space, const int64_t *stride, char **texts, const char *fill,
              bool free_all, esdm_error *err)
{
    uint64_t index[ESDM_MAX_RANK] = {0};
    for (;;) {
        int64_t at = 0;
        for (uint32_t i = 0; i < space->rank; i++)
            at += (int64_t) index[i] * stride[i];
        if (free_all) {
            free(texts[at]);
            texts[at] = NULL;
        } else if (texts[at] == NULL) {
            texts[at] = strdup(fill);
            if (texts[at] == NULL)
                return esdm__error_nomem(err, strlen(fill) + 1, "a text");
        }
        uint32_t axis = space->rank;
        while (axis > 0 && ++index[axis - 1] == space->size[axis - 1])
            index[--axis] = 0;
        if (axis == 0)
            return ESDM_OK;
    }
}

/* ---- the call ----------------------------------------------------------------------------- */

/* Strided pieces from `first` on that do not meet each other; returns the end of them. */
static size_t
layer_end(const esdm__plan *plan, size_t first)
{
    size_t end = first + 1;
    for (; end < plan->npieces && end - first < LAYER_PIECES; end++) {
        for (size_t i = first; i < end; i++) {
            if (esdm__strided_meet(&plan->pieces[i], &plan->pieces[end]))
                return end;
        }
    }
    return end;
}

static esdm_status
read_layers(esdm_dataset *dataset, const esdm_dataspace *space, const int64_t *stride,
            const esdm__plan *plan, esdm_type memory_type, void *buffer, uint64_t *out_of_range,
            esdm_error *err)
{
    esdm_status status = esdm__read_pieces(dataset, space, stride, plan->pieces, plan->ndense,
                                           memory_type, buffer, out_of_range, err);
    for (size_t i = plan->ndense; i < plan->npieces && status == ESDM_OK;) {
        size_t end = layer_end(plan, i);
        status = esdm__read_pieces(dataset, space, stride, plan->pieces + i, end - i, memory_type,
                                   buffer, out_of_range, err);
        i = end;
    }
    return status;
}

/* Values that strided fragments hide must not count as out of range: everything is put together in
 * the dataset's type, then converted once. */
static esdm_status
read_converted(esdm_dataset *dataset, const esdm_dataspace *space, const int64_t *stride,
               const esdm__plan *plan, esdm_type memory_type, void *buffer, uint64_t *out_of_range,
               esdm_error *err)
{
    esdm_type type = dataset->type;
    int64_t dense[ESDM_MAX_RANK];
    size_t bytes = (size_t) esdm_dataspace_elements(space) * esdm_type_size(type);
    uint8_t *copy = malloc(bytes);
    if (copy == NULL)
        return esdm__error_nomem(err, bytes, "the conversion of strided data");
    esdm__dense_strides(space->rank, space->size, dense);
    esdm_status status = ESDM_OK;
    if (!plan->covered)
        status = fill_numbers(dataset, space, dense, type, copy, out_of_range, err);
    if (status == ESDM_OK)
        status = read_layers(dataset, space, dense, plan, type, copy, out_of_range, err);
    if (status == ESDM_OK)
        esdm__copy_nd(space->rank, space->size, type, copy, dense, memory_type, buffer, stride,
                      out_of_range);
    free(copy);
    return status;
}

/* One plan at a time: the request meets a bounded number of fragments. Nothing is read, and
 * *ret_too_large set, when the selection must be cut to keep memory bounded. */
static esdm_status
read_planned(esdm_dataset *dataset, esdm__dataset_io *io, const esdm_dataspace *space,
             const esdm__box *hull, esdm_type memory_type, void *buffer, uint64_t *out_of_range,
             bool *ret_too_large, esdm_error *err)
{
    esdm__plan plan = {0};
    esdm_status status = make_plan(dataset, io, hull, &plan, err);
    if (status != ESDM_OK)
        return status;
    int64_t stride[ESDM_MAX_RANK];
    esdm__space_memory_strides(space, stride);
    bool convert = plan.npieces > plan.ndense && memory_type != dataset->type;
    *ret_too_large = convert && esdm_dataspace_elements(space) > CONVERT_ELEMENTS;
    if (convert && !*ret_too_large)
        status =
            read_converted(dataset, space, stride, &plan, memory_type, buffer, out_of_range, err);
    else if (!convert && !plan.covered && dataset->type != ESDM_TYPE_STRING)
        status = fill_numbers(dataset, space, stride, memory_type, buffer, out_of_range, err);
    if (status == ESDM_OK && !convert)
        status = read_layers(dataset, space, stride, &plan, memory_type, buffer, out_of_range, err);
    esdm__plan_clear(&plan);
    return status == ESDM_OK ? ESDM_OK : esdm__dataset_prefix(dataset, status, err);
}

static bool
meets_too_many(esdm__dataset_io *io, const esdm__box *hull)
{
    (void) pthread_mutex_lock(&io->lock);
    size_t count = esdm__index_count(io->index, hull, PLAN_FRAGMENTS + 1);
    (void) pthread_mutex_unlock(&io->lock);
    return count > PLAN_FRAGMENTS;
}

/* The selection in two halves along its slowest axis. */
static void
halve(const esdm_dataspace *space, uint32_t axis, esdm_dataspace *ret_low, esdm_dataspace *ret_high)
{
    *ret_low = *space;
    *ret_high = *space;
    ret_low->size[axis] = space->size[axis] / 2;
    ret_high->size[axis] = space->size[axis] - ret_low->size[axis];
    ret_high->offset[axis] += ret_low->size[axis] * (space->has_stride ? space->stride[axis] : 1);
    if (!space->has_memory_stride) { /* "dense" meant the whole selection */
        esdm__dense_strides(space->rank, space->size, ret_low->memory_stride);
        memcpy(ret_high->memory_stride, ret_low->memory_stride, sizeof ret_low->memory_stride);
        ret_low->has_memory_stride = true;
        ret_high->has_memory_stride = true;
    }
}

static esdm_status
read_committed(esdm_dataset *dataset, esdm__dataset_io *io, const esdm_dataspace *space,
               esdm_type memory_type, uint8_t *buffer, uint64_t *out_of_range, esdm_error *err)
{
    esdm__box hull;
    esdm__box_of_space(&hull, space);
    uint32_t axis = 0;
    while (axis < space->rank && space->size[axis] == 1)
        axis++;
    if (axis == space->rank || !meets_too_many(io, &hull)) {
        bool too_large = false;
        esdm_status done = read_planned(dataset, io, space, &hull, memory_type, buffer,
                                        out_of_range, &too_large, err);
        if (!too_large || done != ESDM_OK)
            return done;
    }

    esdm_dataspace low;
    esdm_dataspace high;
    halve(space, axis, &low, &high);
    esdm_status status = read_committed(dataset, io, &low, memory_type, buffer, out_of_range, err);
    if (status != ESDM_OK)
        return status;
    int64_t at = (int64_t) low.size[axis] * high.memory_stride[axis];
    return read_committed(dataset, io, &high, memory_type,
                          buffer + at * (int64_t) esdm_type_size(memory_type), out_of_range, err);
}

/* Texts: all elements are NULL first, so that what is left NULL is a hole, or freed on failure. */
static esdm_status
read_texts(esdm_dataset *dataset, esdm__dataset_io *io, const esdm_dataspace *space,
           esdm_type memory_type, void *buffer, uint64_t *out_of_range, esdm_error *err)
{
    static char *const none = NULL;
    int64_t stride[ESDM_MAX_RANK];
    esdm__space_memory_strides(space, stride);
    esdm__fill_nd(space->rank, space->size, memory_type, &none, buffer, stride);
    esdm_status status = read_committed(dataset, io, space, memory_type, buffer, out_of_range, err);
    if (status == ESDM_OK) {
        const char *const *fill = esdm_dataset_fill(dataset, NULL);
        status = for_each_text(space, stride, buffer, *fill, false, err);
    }
    if (status != ESDM_OK)
        (void) for_each_text(space, stride, buffer, NULL, true, NULL);
    return status;
}

esdm_status
esdm__io_read(esdm_dataset *dataset, const esdm_dataspace *space, esdm_type memory_type,
              void *buffer, uint64_t *ret_out_of_range, esdm_error *err)
{
    esdm_status status = esdm__space_check(dataset, space, false, err);
    if (status != ESDM_OK)
        return status;
    uint64_t out_of_range = 0;
    if (esdm_dataspace_elements(space) > 0) {
        esdm__dataset_io *io = NULL;
        bool done = false;
        esdm__box hull;
        esdm__box_of_space(&hull, space);
        status = esdm__dataset_io_get(dataset, &io, err);
        if (status == ESDM_OK)
            status = settle_writes(dataset, io, space, &hull, memory_type, buffer, &out_of_range,
                                   &done, err);
        if (status == ESDM_OK && !done)
            status = esdm__dataset_load_directory(dataset, io, err);
        if (status == ESDM_OK && !done && dataset->type == ESDM_TYPE_STRING)
            status = read_texts(dataset, io, space, memory_type, buffer, &out_of_range, err);
        else if (status == ESDM_OK && !done)
            status = read_committed(dataset, io, space, memory_type, buffer, &out_of_range, err);
    }
    if (status == ESDM_OK && ret_out_of_range != NULL)
        *ret_out_of_range = out_of_range;
    return status;
}
