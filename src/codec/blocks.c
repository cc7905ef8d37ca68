/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "codec/blocks.h"

#include <string.h>

#include "base/checked.h"

void
esdm__blocks_plain(uint64_t raw_bytes, uint32_t blocks, uint32_t block_log2,
                   esdm__blocks *ret_blocks)
{
    *ret_blocks = (esdm__blocks){.raw_bytes = raw_bytes,
                                 .blocks = blocks,
                                 .block_log2 = blocks == 1 ? 63 : block_log2,
                                 .block_bytes = UINT64_C(1) << block_log2};
}

/* The product of the sizes from `axis` on and of the element; 0 when it does not fit. */
static uint64_t
bytes_from(uint32_t rank, const uint64_t *shape, uint32_t axis, uint32_t element_bytes)
{
    uint64_t bytes = element_bytes;
    for (uint32_t d = axis; d < rank; d++)
        if (!esdm__mul_u64(bytes, shape[d], &bytes))
            return 0;
    return bytes;
}

bool
esdm__blocks_cut(uint32_t rank, const uint64_t *shape, uint32_t element_bytes,
                 uint64_t target_bytes, esdm__blocks *ret_blocks)
{
    uint32_t axis = rank > 0 ? rank - 1 : 0;
    uint64_t inner = element_bytes;
    while (axis > 0 && inner * shape[axis] <= target_bytes)
        inner *= shape[axis--];
    uint64_t length = rank > 0 ? shape[axis] : 1;
    uint64_t most = target_bytes > inner ? target_bytes / inner : 1;
    uint64_t pieces = length / most + (length % most != 0);
    uint64_t extent = length / pieces + (length % pieces != 0);
    uint64_t raw_bytes = bytes_from(rank, shape, 0, element_bytes);
    return esdm__blocks_shaped(rank, shape, axis, extent, element_bytes, raw_bytes, ret_blocks);
}

bool
esdm__blocks_shaped(uint32_t rank, const uint64_t *shape, uint32_t axis, uint64_t extent,
                    uint32_t element_bytes, uint64_t raw_bytes, esdm__blocks *ret_blocks)
{
    if (rank > ESDM_MAX_RANK || (rank > 0 ? axis >= rank : axis > 0) || raw_bytes == 0 ||
        bytes_from(rank, shape, 0, element_bytes) != raw_bytes)
        return false;
    uint64_t length = rank > 0 ? shape[axis] : 1;
    if (extent == 0 || extent > length)
        return false;
    uint64_t inner = bytes_from(rank, shape, rank > 0 ? axis + 1 : 0, element_bytes);
    uint64_t per_group = length / extent + (length % extent != 0);
    uint64_t group = inner * length;
    uint64_t blocks;
    if (!esdm__mul_u64(raw_bytes / group, per_group, &blocks) || blocks > UINT32_MAX ||
        inner * extent > UINT64_C(1) << ESDM__BLOCK_LOG2_MAX)
        return false;
    *ret_blocks = (esdm__blocks){.raw_bytes = raw_bytes,
                                 .blocks = (uint32_t) blocks,
                                 .block_bytes = inner * extent,
                                 .group_bytes = group,
                                 .per_group = (uint32_t) per_group,
                                 .rank = rank,
                                 .axis = axis,
                                 .extent = extent};
    if (rank > 0)
        memcpy(ret_blocks->shape, shape, rank * sizeof *shape);
    return true;
}

uint64_t
esdm__blocks_start(const esdm__blocks *blocks, uint32_t b)
{
    if (b >= blocks->blocks)
        return blocks->raw_bytes;
    if (blocks->group_bytes == 0)
        return (uint64_t) b << blocks->block_log2;
    return b / blocks->per_group * blocks->group_bytes +
           b % blocks->per_group * blocks->block_bytes;
}

uint32_t
esdm__blocks_at(const esdm__blocks *blocks, uint64_t raw_offset)
{
    if (blocks->group_bytes == 0)
        return (uint32_t) (raw_offset >> blocks->block_log2);
    return (uint32_t) (raw_offset / blocks->group_bytes * blocks->per_group +
                       raw_offset % blocks->group_bytes / blocks->block_bytes);
}

void
esdm__blocks_shape(const esdm__blocks *blocks, uint32_t b, uint64_t *ret_shape)
{
    for (uint32_t d = 0; d < blocks->rank; d++)
        ret_shape[d] = d < blocks->axis ? 1 : blocks->shape[d];
    if (blocks->rank == 0)
        return;
    uint64_t first = b % blocks->per_group * blocks->extent;
    uint64_t left = blocks->shape[blocks->axis] - first;
    ret_shape[blocks->axis] = left < blocks->extent ? left : blocks->extent;
}
