/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* From a selection of the whole to selections of members. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/session/pool.h"
#include "model/copy.h"
#include "virtual/parts.h"

/* Numbers of a member that become those of the whole at once. */
#define MAP_ELEMENTS (UINT64_C(1) << 20)

const esdm__joined *
esdm__joined_of(const esdm__virtual *whole, const esdm_dataset *dataset)
{
    const esdm_container *container = dataset->group->container;
    size_t i = 0;
    while (container->datasets.items[i] != dataset)
        i++;
    return &whole->datasets[i];
}

/* ---- one member --------------------------------------------------------------------------- */

typedef struct part {
    const esdm__map *map;
    const esdm__meaning *whole;
    const char *member; /* its name */
    esdm_dataset *from;
    esdm_type memory_type;
    esdm_conversion rules;
} part;

static esdm_status
read_mapped_once(const part *p, const esdm_dataspace *space, void *buffer, uint64_t *out_of_range,
                 esdm_error *err)
{
    uint64_t count = esdm_dataspace_elements(space);
    int64_t dense[ESDM_MAX_RANK];
    int64_t stride[ESDM_MAX_RANK];
    size_t at = 0;
    esdm_dataspace plain = *space;
    plain.has_memory_stride = false;
    double *values = malloc((size_t) (count + 1) * sizeof *values);
    if (values == NULL)
        return esdm__error_nomem(err, (size_t) count * sizeof *values, "a read");
    esdm_status status = esdm__io_read(p->from, &plain, ESDM_TYPE_FLOAT64, values, NULL, err);
    if (status == ESDM_OK && !esdm__map_apply(p->map, p->whole, values, (size_t) count, &at))
        status = esdm__error_set(
            err, ESDM_EINVAL,
            p->map->times ? "'%s', variable '%s': %.17g (element %zu of the selection) is no date "
                            "in the calendar of the joined container"
                          : "'%s', variable '%s': the value %.17g (element %zu of the selection) "
                            "is the fill value of the joined container",
            p->member, p->from->name, values[at], at);
    if (status == ESDM_OK) {
        esdm__dense_strides(space->rank, space->size, dense);
        esdm__space_memory_strides(space, stride);
        esdm__copy_by_rules_nd(p->rules, false, space->rank, space->size, ESDM_TYPE_FLOAT64, values,
                               dense, p->memory_type, buffer, stride, out_of_range);
    }
    free(values);
    return status;
}

/* In pieces of bounded size, halved along the slowest axis that can be. */
static esdm_status
read_mapped(const part *p, const esdm_dataspace *space, uint8_t *buffer, uint64_t *out_of_range,
            esdm_error *err)
{
    uint32_t axis = 0;
    while (axis < space->rank && space->size[axis] == 1)
        axis++;
    if (axis == space->rank || esdm_dataspace_elements(space) <= MAP_ELEMENTS)
        return read_mapped_once(p, space, buffer, out_of_range, err);
    esdm_dataspace low = *space;
    esdm__space_memory_strides(space, low.memory_stride);
    low.has_memory_stride = true;
    esdm_dataspace high = low;
    low.size[axis] = space->size[axis] / 2;
    high.size[axis] -= low.size[axis];
    high.offset[axis] += low.size[axis] * (space->has_stride ? space->stride[axis] : 1);
    esdm_status status = read_mapped(p, &low, buffer, out_of_range, err);
    int64_t bytes = (int64_t) esdm_type_size(p->memory_type);
    if (status == ESDM_OK)
        status = read_mapped(p, &high,
                             buffer + (int64_t) low.size[axis] * low.memory_stride[axis] * bytes,
                             out_of_range, err);
    return status;
}

static size_t
bytes_in_memory(esdm_type type)
{
    return type == ESDM_TYPE_STRING ? sizeof(char *) : esdm_type_size(type);
}

esdm_status
esdm__virtual_read_member(esdm__virtual *whole, const esdm_dataset *dataset, size_t member,
                          const esdm_dataspace *space, esdm_type memory_type, void *buffer,
                          uint64_t *ret_out_of_range, esdm_error *err)
{
    const esdm__joined *joined = esdm__joined_of(whole, dataset);
    esdm_container *container = NULL;
    uint64_t out_of_range = 0;
    esdm_status status = esdm__member_use(&whole->members, member, &container, err);
    if (status != ESDM_OK)
        return status;
    int64_t first = 0;
    esdm_dataspace there;
    part p = {.map = joined->maps != NULL ? joined->maps[joined->which[member]] : NULL,
              .whole = &joined->whole,
              .member = whole->members.items[member].name,
              .from = esdm__member_same(container, dataset),
              .memory_type = memory_type,
              .rules = dataset->group->container->conversion};
    if (p.from == NULL)
        status = esdm__error_set(err, ESDM_ENOENT, "'%s' has no variable '%s' any more", p.member,
                                 dataset->name);
    else
        status = esdm__member_turn(dataset, p.from, whole->axis.name, whole->flips[member], space,
                                   &there, &first, err);
    uint8_t *to = (uint8_t *) buffer + first * (int64_t) bytes_in_memory(memory_type);
    if (status == ESDM_OK && p.map == NULL)
        status = esdm__io_read(p.from, &there, memory_type, to, &out_of_range, err);
    else if (status == ESDM_OK)
        status = read_mapped(&p, &there, to, &out_of_range, err);
    esdm__member_release(&whole->members, member);
    *ret_out_of_range += out_of_range;
    return status;
}

/* ---- all of them -------------------------------------------------------------------------- */

/* After a failure all texts of the selection are freed; those that were not reached are NULL. */
static void
free_texts(const esdm_dataspace *space, const int64_t *stride, void *buffer)
{
    uint64_t count = esdm_dataspace_elements(space);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t rest = i;
        char **text = buffer;
        for (uint32_t d = space->rank; d-- > 0; rest /= space->size[d])
            text += (int64_t) (rest % space->size[d]) * stride[d];
        free(*text);
        *text = NULL;
    }
}

/* One call. */
typedef struct reading {
    esdm__virtual *whole;
    const esdm_dataset *dataset;
    const esdm__joined *joined;
    esdm_type memory_type;
    _Atomic uint64_t *out_of_range;
} reading;

static esdm_status read_runs(const reading *r, const esdm__axis *along, uint32_t axis,
                             const esdm_dataspace *space, uint8_t *buffer, esdm_error *err);

/* @param axis that the elements of the run were taken along. */
static esdm_status
read_run(const reading *r, const esdm__axis *along, const esdm__run *run, uint32_t axis,
         const esdm_dataspace *piece, uint8_t *to, esdm_error *err)
{
    esdm_status status;
    uint64_t misfits = 0;
    bool crosses = along == &r->whole->axis && r->joined->cross >= 0;
    if (run->member == ESDM__NO_MEMBER)
        status =
            esdm__filled_read(r->whole, r->dataset, axis, piece, r->memory_type, to, &misfits, err);
    else if (crosses)
        return read_runs(r, &r->whole->crossed[run->member], (uint32_t) r->joined->cross, piece, to,
                         err);
    else
        status = esdm__virtual_read_member(r->whole, r->dataset, run->member, piece, r->memory_type,
                                           to, &misfits, err);
    atomic_fetch_add(r->out_of_range, misfits);
    return status;
}

/* A selection that is cut along one axis. */
typedef struct cut {
    const reading *r;
    const esdm__axis *along;
    uint32_t axis;
    uint64_t step;
    const esdm_dataspace *space; /* with memory strides */
    uint8_t *buffer;
    uint64_t *begins; /* owned; of the pieces, in elements of the selection, and the end */
    size_t count;
} cut;

/* Where the run ends that has element `done` of the selection. */
static uint64_t
end_of_piece(const cut *c, uint64_t done)
{
    uint64_t at = c->space->offset[c->axis] + done * c->step;
    const esdm__run *run = esdm__axis_run(c->along, at);
    uint64_t left = (run->start + run->count - at - 1) / c->step + 1;
    uint64_t all = c->space->size[c->axis];
    return left < all - done ? done + left : all;
}

static esdm_status
read_piece(void *context, size_t i, esdm_error *err)
{
    const cut *c = context;
    uint64_t done = c->begins[i];
    uint64_t at = c->space->offset[c->axis] + done * c->step;
    const esdm__run *run = esdm__axis_run(c->along, at);
    esdm_dataspace piece = *c->space;
    piece.size[c->axis] = c->begins[i + 1] - done;
    piece.offset[c->axis] = run->first + (at - run->start);
    int64_t elements = (int64_t) done * piece.memory_stride[c->axis];
    return read_run(c->r, c->along, run, c->axis, &piece,
                    c->buffer + elements * (int64_t) bytes_in_memory(c->r->memory_type), err);
}

/* Members are opened and read by several threads. */
static esdm_status
read_runs(const reading *r, const esdm__axis *along, uint32_t axis, const esdm_dataspace *space,
          uint8_t *buffer, esdm_error *err)
{
    esdm_dataspace whole = *space;
    cut c = {.r = r,
             .along = along,
             .axis = axis,
             .step = space->has_stride ? space->stride[axis] : 1,
             .space = &whole,
             .buffer = buffer};
    esdm__space_memory_strides(space, whole.memory_stride);
    whole.has_memory_stride = true;
    for (uint64_t done = 0; done < space->size[axis]; done = end_of_piece(&c, done))
        c.count++;
    c.begins = malloc((c.count + 1) * sizeof *c.begins);
    if (c.begins == NULL)
        return esdm__error_nomem(err, c.count * sizeof *c.begins, "a read");
    c.begins[0] = 0;
    for (size_t i = 0; i < c.count; i++)
        c.begins[i + 1] = end_of_piece(&c, c.begins[i]);
    esdm_status status = c.count == 1 ? read_piece(&c, 0, err)
                                      : esdm__pool_run(r->whole->members.session->pool, c.count,
                                                       read_piece, &c, err);
    free(c.begins);
    return status;
}

/* A coordinate that is no member's. */
static esdm_status
read_own(const esdm_dataset *dataset, const void *values, const esdm_dataspace *space,
         esdm_type memory_type, void *buffer, uint64_t *ret_out_of_range, esdm_error *err)
{
    int64_t stride[ESDM_MAX_RANK];
    const int64_t step[] = {space->has_stride ? (int64_t) space->stride[0] : 1};
    esdm__space_memory_strides(space, stride);
    if (dataset->type != ESDM_TYPE_STRING) {
        const uint8_t *from =
            (const uint8_t *) values + space->offset[0] * esdm_type_size(dataset->type);
        esdm__copy_by_rules_nd(dataset->group->container->conversion, false, 1, space->size,
                               dataset->type, from, step, memory_type, buffer, stride,
                               ret_out_of_range);
        return ESDM_OK;
    }
    char **to = buffer;
    for (uint64_t i = 0; i < space->size[0]; i++) {
        const char *text =
            ((const char *const *) values)[space->offset[0] + i * (uint64_t) step[0]];
        to[(int64_t) i * stride[0]] = strdup(text);
        if (to[(int64_t) i * stride[0]] == NULL) {
            while (i-- > 0)
                free(to[(int64_t) i * stride[0]]);
            return esdm__error_nomem(err, strlen(text), "a text");
        }
    }
    return ESDM_OK;
}

esdm_status
esdm__virtual_read(esdm_dataset *dataset, const esdm_dataspace *space, esdm_type memory_type,
                   void *buffer, uint64_t *ret_out_of_range, esdm_error *err)
{
    esdm__virtual *whole = dataset->group->container->provided;
    const esdm__joined *joined = esdm__joined_of(whole, dataset);
    int64_t stride[ESDM_MAX_RANK];
    if (joined->values != NULL)
        return read_own(dataset, joined->values, space, memory_type, buffer, ret_out_of_range, err);
    if (joined->axis < 0 && joined->cross < 0)
        return esdm__virtual_read_member(whole, dataset, joined->source, space, memory_type, buffer,
                                         ret_out_of_range, err);
    bool texts = memory_type == ESDM_TYPE_STRING;
    esdm__space_memory_strides(space, stride);
    if (texts) {
        static const int64_t same[ESDM_MAX_RANK];
        static char *const none = NULL;
        esdm__copy_bytes_nd(space->rank, space->size, sizeof none, &none, same, buffer, stride);
    }
    _Atomic uint64_t misfits = 0;
    const reading r = {whole, dataset, joined, memory_type, &misfits};
    bool along = joined->axis >= 0;
    esdm_status status =
        read_runs(&r, along ? &whole->axis : &whole->cross,
                  (uint32_t) (along ? joined->axis : joined->cross), space, buffer, err);
    *ret_out_of_range += misfits;
    if (status != ESDM_OK && texts)
        free_texts(space, stride, buffer);
    return status;
}
