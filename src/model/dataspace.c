/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Dataspaces: offset, size, strides, and whether they can be right. */

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "model/copy.h"

/* Elements are addressed by signed 64-bit strides, so that their number must fit one too. */
static esdm_status
check_sizes(uint32_t rank, const uint64_t *offset, const uint64_t *size, esdm_error *err)
{
    uint64_t elements = 1;
    bool empty = false;
    bool too_many = false;

    for (uint32_t i = 0; i < rank; i++) {
        uint64_t lo = offset != NULL ? offset[i] : 0;
        uint64_t end;
        if (!esdm__add_u64(lo, size[i], &end))
            return esdm__error_set(err, ESDM_EINVAL,
                                   "dataspace: offset %" PRIu64 " + size %" PRIu64
                                   " of axis %" PRIu32 " exceeds 64 bits",
                                   lo, size[i], i);
        if (size[i] == 0)
            empty = true;
        else if (!esdm__mul_u64(elements, size[i], &elements))
            too_many = true;
    }
    if (!empty && (too_many || elements > INT64_MAX))
        return esdm__error_set(err, ESDM_EINVAL,
                               "dataspace: the number of elements exceeds 2^63-1");
    return ESDM_OK;
}

esdm_status
esdm_dataspace_init(esdm_dataspace *space, uint32_t rank, const uint64_t *offset,
                    const uint64_t *size, esdm_error *err)
{
    if (space == NULL || (rank > 0 && size == NULL))
        return esdm__error_set(err, ESDM_EINVAL, "dataspace: space and size must not be NULL");
    if (rank > ESDM_MAX_RANK)
        return esdm__error_set(err, ESDM_EINVAL, "dataspace: rank %" PRIu32 " exceeds %d", rank,
                               ESDM_MAX_RANK);
    esdm_status st = check_sizes(rank, offset, size, err);
    if (st != ESDM_OK)
        return st;

    space->rank = rank;
    space->has_stride = false;
    space->has_memory_stride = false;
    for (uint32_t i = 0; i < rank; i++) {
        space->offset[i] = offset != NULL ? offset[i] : 0;
        space->size[i] = size[i];
        space->stride[i] = 1;
    }
    esdm__dense_strides(rank, size, space->memory_stride);
    return ESDM_OK;
}

esdm_status
esdm_dataspace_set_stride(esdm_dataspace *space, const uint64_t *stride, esdm_error *err)
{
    bool has_stride = false;

    if (space == NULL || (space->rank > 0 && stride == NULL))
        return esdm__error_set(err, ESDM_EINVAL, "dataspace: space and stride must not be NULL");
    for (uint32_t i = 0; i < space->rank; i++) {
        uint64_t steps = space->size[i] > 0 ? space->size[i] - 1 : 0;
        uint64_t end;
        if (stride[i] == 0)
            return esdm__error_set(
                err, ESDM_EINVAL, "dataspace: the stride of axis %" PRIu32 " is 0, must be ≥ 1", i);
        if (!esdm__mul_u64(steps, stride[i], &end) || !esdm__add_u64(end, 1, &end) ||
            !esdm__add_u64(end, space->offset[i], &end))
            return esdm__error_set(err, ESDM_EINVAL,
                                   "dataspace: stride %" PRIu64 " of axis %" PRIu32
                                   " makes the extent exceed 64 bits",
                                   stride[i], i);
        /* A step that is never taken does not count: it would cost the dense paths. */
        has_stride = has_stride || (stride[i] != 1 && steps > 0);
    }
    for (uint32_t i = 0; i < space->rank; i++)
        space->stride[i] = stride[i];
    space->has_stride = has_stride;
    return ESDM_OK;
}

/* Whether every element's distance from the first one, in bytes of any type, fits int64. */
static bool
memory_extent_fits(const esdm_dataspace *space, const int64_t *stride)
{
    uint64_t extent = 0;
    for (uint32_t i = 0; i < space->rank; i++) {
        uint64_t steps = space->size[i] > 0 ? space->size[i] - 1 : 0;
        uint64_t magnitude = stride[i] < 0 ? 0 - (uint64_t) stride[i] : (uint64_t) stride[i];
        uint64_t part;
        if (!esdm__mul_u64(steps, magnitude, &part) || !esdm__add_u64(extent, part, &extent))
            return false;
    }
    return extent <= INT64_MAX / 8;
}

esdm_status
esdm_dataspace_set_memory_stride(esdm_dataspace *space, const int64_t *stride, esdm_error *err)
{
    if (space == NULL || (space->rank > 0 && stride == NULL))
        return esdm__error_set(err, ESDM_EINVAL,
                               "dataspace: space and memory stride must not be NULL");
    if (!memory_extent_fits(space, stride))
        return esdm__error_set(err, ESDM_EINVAL,
                               "dataspace: the memory strides reach past 2^63-1 bytes");
    space->has_memory_stride = !esdm__strides_are_dense(space->rank, space->size, stride);
    for (uint32_t i = 0; i < space->rank; i++)
        space->memory_stride[i] = stride[i];
    return ESDM_OK;
}

uint64_t
esdm_dataspace_elements(const esdm_dataspace *space)
{
    if (space == NULL)
        return 0;
    uint64_t elements = 1;
    for (uint32_t i = 0; i < space->rank; i++) {
        if (space->size[i] == 0)
            return 0;
        elements *= space->size[i];
    }
    return elements;
}

void
esdm__dense_strides(uint32_t rank, const uint64_t *n, int64_t *ret_stride)
{
    uint64_t stride = 1; /* unsigned: an empty array's product may wrap, and is then not used */
    for (uint32_t i = rank; i-- > 0;) {
        ret_stride[i] = (int64_t) stride;
        stride *= n[i];
    }
}

bool
esdm__strides_are_dense(uint32_t rank, const uint64_t *n, const int64_t *stride)
{
    uint64_t expected = 1;
    bool dense = true;
    for (uint32_t i = rank; i-- > 0;) {
        if (n[i] == 0)
            return true;
        if (n[i] != 1 && stride[i] != (int64_t) expected)
            dense = false;
        expected *= n[i];
    }
    return dense;
}

void
esdm__space_memory_strides(const esdm_dataspace *space, int64_t *ret_stride)
{
    if (space->has_memory_stride) {
        for (uint32_t i = 0; i < space->rank; i++)
            ret_stride[i] = space->memory_stride[i];
    } else {
        esdm__dense_strides(space->rank, space->size, ret_stride);
    }
}
