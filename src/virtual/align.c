/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* A dataset of one member as another one has it: by path, with its axes in that one's order. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/copy.h"
#include "virtual/parts.h"

static esdm_group *
same_group(esdm_container *member, const esdm_group *group)
{
    if (group->parent == NULL)
        return esdm_container_root(member);
    esdm_group *parent = same_group(member, group->parent);
    return parent != NULL ? esdm_group_find(parent, group->name) : NULL;
}

esdm_dataset *
esdm__member_same(esdm_container *member, const esdm_dataset *dataset)
{
    esdm_group *group = same_group(member, dataset->group);
    return group != NULL ? esdm_group_dataset_find(group, dataset->name) : NULL;
}

static bool
in_same_order(const esdm_dataset *x, const esdm_dataset *y)
{
    bool same = x->rank == y->rank;
    for (uint32_t i = 0; same && i < x->rank; i++)
        same = strcmp(x->dimensions[i]->name, y->dimensions[i]->name) == 0;
    return same;
}

/* Axis of that name, if it has one alone. */
static int
only_axis(const esdm_dataset *dataset, const char *name)
{
    int found = esdm__dataset_axis(dataset, name);
    for (uint32_t i = 0; found >= 0 && i < dataset->rank; i++)
        if (i != (uint32_t) found && strcmp(dataset->dimensions[i]->name, name) == 0)
            return -1;
    return found;
}

bool
esdm__member_axes(const esdm_dataset *x, const esdm_dataset *y, const char *axis,
                  uint32_t *ret_axes)
{
    bool lacks =
        axis != NULL && y->rank + 1 == x->rank && only_axis(x, axis) >= 0 && only_axis(y, axis) < 0;
    if (in_same_order(x, y)) {
        for (uint32_t i = 0; i < y->rank; i++)
            ret_axes[i] = i;
        return true;
    }
    if (x->rank != y->rank && !lacks)
        return false;
    for (uint32_t i = 0; i < y->rank; i++) {
        int at = only_axis(x, y->dimensions[i]->name);
        if (at < 0 || only_axis(y, y->dimensions[i]->name) < 0)
            return false;
        ret_axes[i] = (uint32_t) at;
    }
    return true;
}

static bool
is_flipped(const esdm_dataset *x, uint32_t axis, uint64_t flips)
{
    const esdm_container *container = x->group->container;
    for (size_t d = 0; d < container->dimensions.count && d < ESDM__DIMENSIONS_MOST; d++)
        if (container->dimensions.items[d] == x->dimensions[axis])
            return (flips >> d & 1u) != 0;
    return false;
}

/* @param ret_first where the first element of the selection in `y` goes, in elements. */
static void
turn(const esdm_dataset *x, const esdm_dataset *y, const uint32_t *axes, uint64_t flips,
     const esdm_dataspace *space, esdm_dataspace *ret, int64_t *ret_first)
{
    int64_t memory[ESDM_MAX_RANK];
    *ret = (esdm_dataspace){.rank = y->rank, .has_stride = true, .has_memory_stride = true};
    *ret_first = 0;
    esdm__space_memory_strides(space, memory);
    for (uint32_t i = 0; i < y->rank; i++) {
        uint32_t a = axes[i];
        ret->offset[i] = space->offset[a];
        ret->size[i] = space->size[a];
        ret->stride[i] = space->has_stride ? space->stride[a] : 1;
        ret->memory_stride[i] = memory[a];
        if (flips == 0 || space->size[a] == 0 || !is_flipped(x, a, flips))
            continue;
        uint64_t length = esdm_dimension_length(y->dimensions[i]);
        uint64_t last = space->offset[a] + (space->size[a] - 1) * ret->stride[i];
        ret->offset[i] = length - 1 - last;
        ret->memory_stride[i] = -memory[a];
        *ret_first += (int64_t) (space->size[a] - 1) * memory[a];
    }
}

esdm_status
esdm__member_turn(const esdm_dataset *x, const esdm_dataset *y, const char *axis, uint64_t flips,
                  const esdm_dataspace *space, esdm_dataspace *ret, int64_t *ret_first,
                  esdm_error *err)
{
    uint32_t axes[ESDM_MAX_RANK];
    if (!esdm__member_axes(x, y, axis, axes))
        return esdm__error_set(err, ESDM_ECONFLICT, "variable '%s' has other dimensions now",
                               x->name);
    if (flips == 0 && in_same_order(x, y)) {
        *ret = *space;
        *ret_first = 0;
        return ESDM_OK;
    }
    turn(x, y, axes, flips, space, ret, ret_first);
    return ESDM_OK;
}

esdm_status
esdm__member_read(const esdm_dataset *x, esdm_dataset *y, const char *axis, uint64_t flips,
                  const esdm_dataspace *space, esdm_type memory_type, void *buffer,
                  uint64_t *ret_out_of_range, esdm_error *err)
{
    esdm_dataspace there;
    int64_t first = 0;
    int64_t bytes = memory_type == ESDM_TYPE_STRING ? (int64_t) sizeof(char *)
                                                    : (int64_t) esdm_type_size(memory_type);
    esdm_status status = esdm__member_turn(x, y, axis, flips, space, &there, &first, err);
    if (status != ESDM_OK)
        return status;
    return esdm__io_read(y, &there, memory_type, (uint8_t *) buffer + first * bytes,
                         ret_out_of_range, err);
}
