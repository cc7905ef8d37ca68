/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "codec/outline.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "codec/blob_bytes.h"
#include "codec/raw_blocks.h"

/* Blocks of a group, at most: 4 KiB each, as they are written. */
#define GROUP_BLOCKS 64u

bool
esdm__outline_is_raw(const uint8_t *head)
{
    return head[10] == 0;
}

uint32_t
esdm__outline_group(const esdm__blocks *blocks)
{
    uint64_t count = ESDM__OUTLINE_GROUP_BYTES / blocks->block_bytes;
    return count < 2 ? 1 : count < GROUP_BLOCKS ? (uint32_t) count : GROUP_BLOCKS;
}

void
esdm__outline_widen(const esdm__blocks *blocks, uint32_t *first, uint32_t *end)
{
    const uint32_t group = esdm__outline_group(blocks);
    uint64_t last = ((uint64_t) *end + group - 1) / group * group;
    *first -= *first % group;
    *end = last < blocks->blocks ? (uint32_t) last : blocks->blocks;
}

static uint64_t
group_count(const esdm__blocks *blocks)
{
    uint32_t group = esdm__outline_group(blocks);
    return ((uint64_t) blocks->blocks + group - 1) / group;
}

bool
esdm__outline_fits(const esdm__blocks *blocks, uint32_t outline_bytes)
{
    return outline_bytes > 0 && outline_bytes == group_count(blocks) * sizeof(uint64_t);
}

uint32_t
esdm__outline_bytes(const uint8_t *head, uint32_t head_bytes, uint64_t stored_bytes)
{
    esdm__blocks blocks;
    uint64_t bytes = head_bytes;
    if (head_bytes < ESDM__BLOB_HEADER_BYTES || stored_bytes < head_bytes)
        return 0;
    if (esdm__outline_is_raw(head)) {
        if (esdm__raw_blocks_init(get_u64(head + 32), head_bytes, &blocks, NULL) != ESDM_OK)
            return 0;
        bytes = group_count(&blocks) * sizeof(uint64_t);
    }
    return bytes <= ESDM__OUTLINE_MOST && bytes <= stored_bytes / ESDM__OUTLINE_SHARE
               ? (uint32_t) bytes
               : 0;
}

void
esdm__outline_make(const uint8_t *head, uint32_t head_bytes, uint8_t *ret_outline)
{
    esdm__blocks blocks;
    if (!esdm__outline_is_raw(head)) {
        memcpy(ret_outline, head, head_bytes);
        return;
    }
    if (esdm__raw_blocks_init(get_u64(head + 32), head_bytes, &blocks, NULL) != ESDM_OK)
        return;
    uint32_t group = esdm__outline_group(&blocks);
    for (uint32_t first = 0; first < blocks.blocks; first += group) {
        uint32_t count = blocks.blocks - first < group ? blocks.blocks - first : group;
        const uint8_t *entries =
            head + ESDM__BLOB_HEADER_BYTES + (size_t) first * ESDM__BLOB_ENTRY_BYTES;
        put_u64(ret_outline, esdm__checksum(entries, (size_t) count * ESDM__BLOB_ENTRY_BYTES));
        ret_outline += sizeof(uint64_t);
    }
}

/* The sum over the table entries that blocks have which hold these data. */
static uint64_t
sum_of(const esdm__blocks *blocks, uint32_t first, uint32_t count, const uint8_t *data)
{
    uint8_t entries[GROUP_BLOCKS * ESDM__BLOB_ENTRY_BYTES];
    uint64_t base = esdm__blocks_start(blocks, first);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *entry = entries + (size_t) i * ESDM__BLOB_ENTRY_BYTES;
        uint64_t from = esdm__blocks_start(blocks, first + i);
        uint64_t bytes = esdm__blocks_start(blocks, first + i + 1) - from;
        put_u32(entry, (uint32_t) bytes);
        put_u32(entry + 4, ESDM__BLOB_FLAG_RAW);
        put_u64(entry + 8, esdm__checksum(data + (from - base), (size_t) bytes));
    }
    return esdm__checksum(entries, (size_t) count * ESDM__BLOB_ENTRY_BYTES);
}

esdm_status
esdm__outline_verify(const esdm__blocks *blocks, uint32_t first, uint32_t count,
                     const uint8_t *outline, const void *data, esdm_error *err)
{
    uint32_t group = esdm__outline_group(blocks);
    uint64_t base = esdm__blocks_start(blocks, first);
    for (uint32_t at = first; at < first + count; at += group) {
        uint32_t n = first + count - at < group ? first + count - at : group;
        const uint8_t *from = (const uint8_t *) data + (esdm__blocks_start(blocks, at) - base);
        if (sum_of(blocks, at, n, from) !=
            get_u64(outline + (size_t) (at / group) * sizeof(uint64_t)))
            return esdm__error_set(err, ESDM_ECORRUPT,
                                   "checksum mismatch in blocks %" PRIu32 " to %" PRIu32
                                   " of %" PRIu32,
                                   at, at + n - 1, blocks->blocks);
    }
    return ESDM_OK;
}
