/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/container/access.h"
#include "io/container/behind.h"
#include "io/encode/strings.h"
#include "io/read/ahead.h"
#include "io/read/fetch.h"
#include "io/read/read.h"
#include "io/read/second_shape.h"
#include "io/session/models.h"
#include "io/session/readers.h"
#include "layout/strided.h"
#include "model/copy.h"

/* Fragments in one plan (about 1 KiB each); a request that meets more is halved. */
#define PLAN_FRAGMENTS ((size_t) 32768)
/* Datasets that a read looks at when memory is wanted. */
#define TRIMMED_AT_ONCE 256u
/* Plans that are made anew because packs moved to other targets meanwhile. */
#define PASSES 100
/* Strided pieces read at once when they do not meet. */
#define LAYER_PIECES 64u
/* Strided data is converted in steps of at most so many elements. */
#define CONVERT_ELEMENTS (UINT64_C(1) << 20)

/* ---- own writes --------------------------------------------------------------------------- */

/* Serves a read that lies in the newest gathered box, without turning it into a fragment. */
static bool
read_gathered(const esdm__transfer *t, const esdm__box *hull)
{
    const esdm__elements *e = t->elements;
    const esdm_dataspace *space = t->space;
    const esdm__gather_level *level = esdm__gather_find(&t->io->gather, hull);
    if (level == NULL)
        return false;
    int64_t stride[ESDM_MAX_RANK];
    uint64_t at = 0;
    esdm__dense_strides(hull->rank, level->n, stride);
    for (uint32_t i = 0; i < hull->rank; i++) {
        at += (hull->lo[i] - level->lo[i]) * (uint64_t) stride[i];
        stride[i] *= space->has_stride ? (int64_t) space->stride[i] : 1;
    }
    const esdm__memory gathered = {e->type, level->data + at * e->bytes, stride};
    esdm__elements_copy(e, hull->rank, space->size, &gathered, &t->memory, t->out_of_range);
    return true;
}

static esdm_status
settle_writes(const esdm__transfer *t, const esdm__box *hull, bool *ret_done, esdm_error *err)
{
    esdm__dataset_io *io = t->io;
    esdm_error failure = {0};
    *ret_done = false;
    if (atomic_load(&io->gathered) || atomic_load(&io->lane.count) > 0) {
        esdm_status status = esdm__container_check_process(t->dataset->group->container, err);
        if (status != ESDM_OK)
            return status;
        (void) pthread_mutex_lock(&io->write_lock);
        *ret_done = read_gathered(t, hull);
        if (!*ret_done)
            failure.status = esdm__dataset_flush(t->dataset, io, &failure);
        (void) pthread_mutex_unlock(&io->write_lock);
    }
    if (failure.status != ESDM_OK && err != NULL)
        *err = failure;
    return failure.status;
}

/* Makes readable what the plan has from packs that are being written, and leaves the others alone.
 * *ret_moved: one of them lies elsewhere now, and a new plan is needed. */
static esdm_status
open_pending(const esdm_dataset *dataset, const esdm__plan *plan, bool *ret_moved, esdm_error *err)
{
    const esdm__container_io *io = esdm__io_of(dataset->group->container);
    esdm__pack_set *packs = __atomic_load_n(&io->packs, __ATOMIC_ACQUIRE);
    const esdm__pack_name **names = NULL;
    size_t count = 0;
    size_t capacity = 0;
    *ret_moved = false;
    for (size_t i = 0; i < plan->npieces && packs != NULL; i++) {
        const esdm__fragment *fragment = plan->pieces[i].fragment;
        if ((fragment->sequence & ESDM__SEQUENCE_PENDING) == 0 || fragment->pack == NULL)
            continue;
        size_t k = count; /* neighbours lie in the same pack */
        while (k > 0 && names[k - 1] != fragment->pack)
            k--;
        if (k > 0)
            continue;
        if (count == capacity) {
            capacity = capacity == 0 ? 8 : 2 * capacity;
            const esdm__pack_name **grown = realloc(names, capacity * sizeof *grown);
            if (grown == NULL) {
                free(names);
                return esdm__error_nomem(err, capacity * sizeof *names, "a read");
            }
            names = grown;
        }
        names[count++] = fragment->pack;
    }
    esdm_status status = ESDM_OK;
    if (count > 0)
        status = esdm__pack_set_make_named_readable(packs, names, count, ret_moved, err);
    free(names);
    return status;
}

/* ---- plan --------------------------------------------------------------------------------- */

/* What it loads stays until the plan is made: *ret_planning, when it loads something.
 * @param near no plan either that is better made of halves */
static esdm_status
plan(esdm_dataset *dataset, esdm__dataset_io *io, const esdm__box *hull, bool near,
     esdm__plan *ret_plan, bool *ret_too_many, bool *ret_planning, esdm_error *err)
{
    const size_t most = ret_too_many != NULL ? PLAN_FRAGMENTS : SIZE_MAX;
    for (;;) {
        uint64_t *missing = NULL;
        size_t nmissing = 0;
        (void) pthread_mutex_lock(&io->lock);
        bool known = io->directory_loaded;
        esdm_status status = ESDM_OK;
        if (known)
            status = esdm__index_missing(io->index, hull, &missing, &nmissing, err);
        if ((!known || nmissing > 0) && !*ret_planning) {
            io->planning++;
            *ret_planning = true;
        }
        if (!known) { /* forgotten: another thread commits, refreshes or needs memory */
            (void) pthread_mutex_unlock(&io->lock);
            esdm_status loaded = esdm__dataset_load_directory(dataset, io, err);
            if (loaded != ESDM_OK)
                return loaded;
            continue;
        }
        bool too_many = false;
        if (status == ESDM_OK && nmissing == 0 && near)
            too_many = esdm__index_wants_halves(io->index, hull);
        if (status == ESDM_OK && nmissing == 0 && !too_many)
            status = esdm__index_resolve_most(io->index, hull, most, ret_plan, &too_many, err);
        else if (status == ESDM_OK && nmissing > 0 &&
                 ret_too_many != NULL) /* before their pages are loaded */
            too_many = esdm__index_count(io->index, hull, most + 1) > most;
        if (too_many)
            *ret_too_many = true;
        if (nmissing == 0)
            esdm__dataset_trim_index(dataset, io);
        (void) pthread_mutex_unlock(&io->lock);
        if (status == ESDM_OK && nmissing > 0 && !too_many)
            status = esdm__dataset_load_pages(dataset, io, missing, nmissing, NULL, err);
        free(missing);
        if (status != ESDM_OK || nmissing == 0 || too_many)
            return status;
    }
}

static esdm_status
make_plan(esdm_dataset *dataset, esdm__dataset_io *io, const esdm__box *hull, bool near,
          esdm__plan *ret_plan, bool *ret_too_many, esdm_error *err)
{
    bool planning = false;
    esdm_status status = plan(dataset, io, hull, near, ret_plan, ret_too_many, &planning, err);
    if (planning) {
        (void) pthread_mutex_lock(&io->lock);
        io->planning--;
        (void) pthread_mutex_unlock(&io->lock);
        esdm__container_trim_indexes(dataset->group->container, TRIMMED_AT_ONCE);
    }
    return status;
}

esdm_status
esdm__read_plan(esdm_dataset *dataset, esdm__dataset_io *io, const esdm__box *hull,
                esdm__plan *ret_plan, bool *ret_too_many, esdm_error *err)
{
    return make_plan(dataset, io, hull, false, ret_plan, ret_too_many, err);
}

/* ---- fill values -------------------------------------------------------------------------- */

/* All elements of the caller's memory become copies of one value in its form. */
static void
spread(const esdm__transfer *t, const void *value)
{
    static const int64_t same[ESDM_MAX_RANK];
    const esdm__memory *memory = &t->memory;
    esdm__copy_bytes_nd(t->space->rank, t->space->size,
                        esdm__elements_bytes(t->elements, memory->form), value, same, memory->data,
                        memory->stride);
}

static esdm_status
fill_numbers(const esdm__transfer *t, esdm_error *err)
{
    const esdm__elements *e = t->elements;
    esdm_type form = t->memory.form;
    const void *fill = esdm_dataset_fill(t->dataset, NULL);
    uint64_t value[2]; /* room for every atomic type */
    uint64_t misfits = 0;
    if (esdm_type_size(form) == 0) { /* the type's own elements, packed as they lie or not */
        spread(t, fill);
        return ESDM_OK;
    }
    esdm_status status =
        esdm_convert_as(e->conversion, false, e->type, fill, form, value, 1, &misfits, err);
    if (status != ESDM_OK)
        return status;
    esdm__transfer_count(t, misfits);
    spread(t, value);
    return ESDM_OK;
}

/* ---- texts, and types that hold some or arrays --------------------------------------------- */

/* What visiting the caller's elements needs. */
typedef struct visitor {
    const esdm__elements *elements;
    const void *fill; /* one element */
} visitor;

static esdm_status
fill_empty_text(void *user, void *element, esdm_error *err)
{
    const visitor *v = user;
    const char *const *fill = v->fill;
    char **text = element;
    if (*text == esdm__text_null || (*text == NULL && *fill == NULL)) {
        *text = NULL;
        return ESDM_OK;
    }
    if (*text != NULL)
        return ESDM_OK;
    *text = strdup(*fill);
    return *text != NULL ? ESDM_OK : esdm__error_nomem(err, strlen(*fill) + 1, "a text");
}

/* On failure elements that were not reached hold nothing. */
static esdm_status
fill_element(void *user, void *element, esdm_error *err)
{
    const visitor *v = user;
    return esdm__values_copy(v->elements->outer, 1, v->fill, element, err);
}

static esdm_status
clear_element(void *user, void *element, esdm_error *err)
{
    const visitor *v = user;
    (void) err;
    if (v->elements->type == ESDM_TYPE_STRING && *(char **) element == esdm__text_null)
        *(char **) element = NULL;
    esdm__values_clear(v->elements->outer, 1, element);
    return ESDM_OK;
}

static esdm_status
visit_elements(const esdm__transfer *t, const void *fill, esdm__element_fn visit, esdm_error *err)
{
    visitor v = {t->elements, fill};
    return esdm__elements_visit(t->elements, t->space->rank, t->space->size, &t->memory, visit, &v,
                                err);
}

/* Where the plan leaves holes. Texts are looked through when all is read: a text that is NULL then
 * is a hole (stored NULLs are esdm__text_null until then). Other types get copies of their fill
 * value, which are freed where data is found. */
static esdm_status
fill_holes(const esdm__transfer *t, esdm_error *err)
{
    bool is_default;
    const void *fill = esdm_dataset_fill(t->dataset, &is_default);
    if (!esdm__elements_vary(t->elements))
        return fill_numbers(t, err);
    if (t->elements->type == ESDM_TYPE_STRING || is_default) /* the default is there: zeros */
        return ESDM_OK;
    return visit_elements(t, fill, fill_element, err);
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
read_layers(const esdm__transfer *t, const esdm__plan *plan, esdm_error *err)
{
    esdm_status status = esdm__read_dense(t, plan->pieces, plan->ndense, err);
    for (size_t i = plan->ndense; i < plan->npieces && status == ESDM_OK;) {
        size_t end = layer_end(plan, i);
        status = esdm__read_bands(t, plan->pieces + i, end - i, err);
        i = end;
    }
    return status;
}

/* Values that strided fragments hide must not count as out of range, nor a fill value that is in
 * the gaps of a strided selection only, nor may it lie where a value leaves the memory as it was:
 * everything is put together in the engine's form, then converted once. */
static esdm_status
read_converted(const esdm__transfer *t, const esdm__plan *plan, esdm_error *err)
{
    const esdm__elements *e = t->elements;
    const esdm_dataspace *space = t->space;
    int64_t dense[ESDM_MAX_RANK];
    size_t bytes = (size_t) esdm_dataspace_elements(space) * e->bytes;
    uint8_t *copy = malloc(bytes);
    if (copy == NULL)
        return esdm__error_nomem(err, bytes, "the conversion of strided data");
    esdm__dense_strides(space->rank, space->size, dense);
    esdm__transfer whole = *t;
    whole.memory = (esdm__memory){e->type, copy, dense};
    esdm_status status = ESDM_OK;
    if (!plan->covered)
        status = fill_numbers(&whole, err);
    if (status == ESDM_OK)
        status = read_layers(&whole, plan, err);
    if (status == ESDM_OK)
        esdm__elements_copy(e, space->rank, space->size, &whole.memory, &t->memory,
                            t->out_of_range);
    free(copy);
    return status;
}

/* Whether the plan cannot tell if a fill value that does not fit is read (it looks at the hull), or
 * holes must not be filled before the data are there. */
static bool
may_misfit(const esdm__transfer *t, const esdm__plan *plan)
{
    const esdm__elements *e = t->elements;
    esdm_type form = t->memory.form;
    uint64_t value[2] = {0};
    uint64_t misfits = 0;
    if (!plan->covered && esdm__conversion_keeps(e->conversion, e->type, form))
        return true;
    return t->space->has_stride && !plan->covered &&
           esdm_convert_as(e->conversion, false, e->type, esdm_dataset_fill(t->dataset, NULL), form,
                           value, 1, &misfits, NULL) == ESDM_OK &&
           misfits > 0;
}

/* Where a selection is to be cut in two, before anything of it is read. */
typedef struct cutting {
    bool wanted;
    uint32_t axis;
    uint64_t low; /* elements of the first part along the axis */
} cutting;

/* In halves along the slowest axis. */
static void
want_halves(const esdm_dataspace *space, cutting *ret_cut)
{
    uint32_t axis = 0;
    while (axis < space->rank && space->size[axis] == 1)
        axis++;
    *ret_cut = (cutting){true, axis, space->size[axis] / 2};
}

static esdm_status
read_by(const esdm__transfer *t, const esdm__plan *plan, cutting *ret_cut, esdm_error *err)
{
    esdm_type form = t->memory.form;
    bool convert = form != t->elements->type && esdm_type_size(form) > 0 &&
                   (plan->npieces > plan->ndense || may_misfit(t, plan));
    if (convert && esdm_dataspace_elements(t->space) > CONVERT_ELEMENTS) {
        want_halves(t->space, ret_cut);
        return ESDM_OK;
    }
    if (convert)
        return read_converted(t, plan, err);
    esdm_status status = plan->covered ? ESDM_OK : fill_holes(t, err);
    return status == ESDM_OK ? read_layers(t, plan, err) : status;
}

static esdm_status read_committed(const esdm__transfer *t, esdm_error *err);

/* What cannot be read there is read as ever: that tells why, if it is in both. */
static bool
read_second(const esdm__transfer *t, esdm_dataset *second)
{
    esdm_error ignored;
    uint64_t misfits = 0;
    esdm__transfer other = *t;
    if (esdm__dataset_io_get(second, &other.io, &ignored) != ESDM_OK)
        return false;
    other.dataset = second;
    other.out_of_range = &misfits;
    esdm_status status = read_committed(&other, &ignored);
    esdm__dataset_io_put(second);
    if (status == ESDM_OK)
        esdm__transfer_count(t, misfits);
    return status == ESDM_OK;
}

/* One plan at a time: the request meets a bounded number of fragments. */
static esdm_status
read_once(const esdm__transfer *t, const esdm__box *hull, cutting *ret_cut, esdm_error *err)
{
    esdm__plan plan = {0};
    esdm__second_shape second;
    bool too_many = false;
    bool divisible = esdm_dataspace_elements(t->space) > 1;
    /* Targets that wait for a network want many requests of one plan at once. */
    bool near = divisible && !atomic_load(&t->io->second) &&
                t->dataset->group->container->session->ahead == NULL;
    bool moved = true;
    *ret_cut = (cutting){.wanted = false};
    esdm_status status = ESDM_OK;
    for (int pass = 0; pass < PASSES && status == ESDM_OK && moved; pass++) {
        moved = false;
        esdm__plan_clear(&plan);
        status = make_plan(t->dataset, t->io, hull, near, &plan, divisible ? &too_many : NULL, err);
        if (status == ESDM_OK && !too_many)
            status = open_pending(t->dataset, &plan, &moved, err);
    }
    if (status != ESDM_OK || too_many) {
        esdm__plan_clear(&plan);
        if (too_many)
            want_halves(t->space, ret_cut);
        return status;
    }
    esdm__second_shape_choose(t, hull, &plan, &second);
    if (second.low > 0)
        *ret_cut = (cutting){true, second.axis, second.low};
    else if (second.dataset == NULL || !read_second(t, second.dataset))
        status = read_by(t, &plan, ret_cut, err);
    esdm__plan_clear(&plan);
    return status == ESDM_OK ? ESDM_OK : esdm__dataset_prefix(t->dataset, status, err);
}

/* Fragments may be stored elsewhere while they are read, and be gone from where the plan says: then
 * once more. */
static esdm_status
read_planned(const esdm__transfer *t, const esdm__box *hull, cutting *ret_cut, esdm_error *err)
{
    for (;;) {
        uint64_t misfits = 0;
        esdm__transfer once = *t;
        once.out_of_range = &misfits;
        esdm_status status = read_once(&once, hull, ret_cut, err);
        if (status == ESDM_OK)
            esdm__transfer_count(t, misfits);
        if (status == ESDM_OK || !esdm__dataset_was_moved(t->dataset, t->io, status))
            return status;
    }
}

/* The selection in two parts. */
static void
divide(const esdm_dataspace *space, const cutting *at, esdm_dataspace *ret_low,
       esdm_dataspace *ret_high)
{
    uint32_t axis = at->axis;
    *ret_low = *space;
    *ret_high = *space;
    ret_low->size[axis] = at->low;
    ret_high->size[axis] = space->size[axis] - at->low;
    ret_high->offset[axis] += at->low * (space->has_stride ? space->stride[axis] : 1);
}

static esdm_status
read_committed(const esdm__transfer *t, esdm_error *err)
{
    esdm__box hull;
    cutting at = {.wanted = false};
    esdm__box_of_space(&hull, t->space);
    esdm_status done = read_planned(t, &hull, &at, err);
    if (!at.wanted || done != ESDM_OK)
        return done;

    esdm_dataspace low;
    esdm_dataspace high;
    esdm__transfer part = *t;
    divide(t->space, &at, &low, &high);
    part.space = &low;
    esdm_status status = read_committed(&part, err);
    if (status != ESDM_OK)
        return status;
    int64_t skip = (int64_t) at.low * t->memory.stride[at.axis];
    part.space = &high;
    part.memory.data = (uint8_t *) t->memory.data +
                       skip * (int64_t) esdm__elements_bytes(t->elements, t->memory.form);
    return read_committed(&part, err);
}

/* All elements hold nothing first, so that all can be freed after a failure. */
static esdm_status
read_varying(const esdm__transfer *t, esdm_error *err)
{
    static char *const none = NULL;
    const esdm__elements *e = t->elements;
    spread(t, e->outer.user != NULL ? e->outer.user->zero : &none);
    esdm_status status = read_committed(t, err);
    if (status == ESDM_OK && e->type == ESDM_TYPE_STRING)
        status = visit_elements(t, esdm_dataset_fill(t->dataset, NULL), fill_empty_text, err);
    if (status != ESDM_OK)
        (void) visit_elements(t, NULL, clear_element, NULL);
    return status;
}

static esdm_status
read_elements(const esdm__transfer *t, esdm_error *err)
{
    bool done = false;
    esdm__box hull;
    esdm__box_of_space(&hull, t->space);
    esdm_status status = settle_writes(t, &hull, &done, err);
    if (status == ESDM_OK && !done)
        status = esdm__dataset_load_directory(t->dataset, t->io, err);
    if (status != ESDM_OK || done)
        return status;
    if (esdm__can_ask_ahead(t->dataset) && !atomic_load(&t->io->second))
        esdm__read_note_step(t->dataset, t->io, t->space);
    return esdm__elements_vary(t->elements) ? read_varying(t, err) : read_committed(t, err);
}

static esdm_status
read_stored(esdm_dataset *dataset, const esdm_dataspace *space, esdm_type memory_type, void *buffer,
            uint64_t *out_of_range, esdm_error *err)
{
    esdm__dataset_io *io = NULL;
    int64_t stride[ESDM_MAX_RANK];
    esdm_status status = esdm__dataset_io_get(dataset, &io, err);
    if (status != ESDM_OK)
        return status;
    esdm__space_memory_strides(space, stride);
    const esdm__transfer t = {
        .dataset = dataset,
        .io = io,
        .elements = &io->elements,
        .space = space,
        .memory = {esdm__elements_form(&io->elements, memory_type), buffer, stride},
        .out_of_range = out_of_range};
    esdm__readers *readers = dataset->group->container->session->readers;
    bool counts = esdm__access_is_coded(dataset, io) && esdm__readers_count(readers, dataset);
    double began_s = counts ? esdm__seconds_now() : 0;
    status = read_elements(&t, err);
    if (counts && status == ESDM_OK) {
        uint64_t record;
        uint64_t snapshot;
        esdm__container_position(dataset->group->container, &record, &snapshot);
        esdm__readers_note(readers, dataset, record, space, esdm__seconds_now() - began_s);
    }
    esdm__dataset_io_put(dataset);
    return status;
}

static esdm_status
read_selection(esdm_dataset *dataset, const esdm_dataspace *space, esdm_type memory_type,
               void *buffer, uint64_t *ret_out_of_range, esdm_error *err)
{
    uint64_t out_of_range = 0;
    esdm_status status = esdm__space_check(dataset, space, false, err);
    const esdm__provider *provider = dataset->group->container->provider;
    if (status == ESDM_OK && provider != NULL && esdm_dataspace_elements(space) > 0) {
        status = provider->read(dataset, space, memory_type, buffer, &out_of_range, err);
    } else if (status == ESDM_OK && esdm_dataspace_elements(space) > 0) {
        status = read_stored(dataset, space, memory_type, buffer, &out_of_range, err);
    }
    if (status == ESDM_OK && ret_out_of_range != NULL)
        *ret_out_of_range = out_of_range;
    return status;
}

esdm_status
esdm__io_read(esdm_dataset *dataset, const esdm_dataspace *space, esdm_type memory_type,
              void *buffer, uint64_t *ret_out_of_range, esdm_error *err)
{
    esdm__span span;
    esdm__span_begin(&span, dataset->group->container->session->monitor);
    esdm_status status = read_selection(dataset, space, memory_type, buffer, ret_out_of_range, err);
    if (esdm__span_is_observed(&span))
        esdm__dataset_observed(
            dataset, &span,
            (esdm__span_facts){.kind = ESDM__SPAN_READ,
                               .bytes =
                                   esdm_dataspace_elements(space) * esdm_type_size(dataset->type),
                               .status = status,
                               .detail = esdm__selection_detail(dataset, space, memory_type)});
    return status;
}
