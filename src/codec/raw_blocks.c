/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "codec/raw_blocks.h"

#include <inttypes.h>
#include <string.h>

#include "base/checksum.h"
#include "base/error.h"
#include "codec/blob_bytes.h"

esdm_status
esdm__raw_blocks_init(uint64_t raw_bytes, uint32_t head_bytes, esdm__blocks *ret_blocks,
                      esdm_error *err)
{
    uint32_t table = head_bytes - ESDM__BLOB_HEADER_BYTES;
    if (head_bytes < ESDM__BLOB_HEADER_BYTES + ESDM__BLOB_ENTRY_BYTES ||
        table % ESDM__BLOB_ENTRY_BYTES != 0 || raw_bytes == 0)
        return esdm__error_set(err, ESDM_ECORRUPT, "a head of %" PRIu32 " bytes is impossible",
                               head_bytes);
    uint32_t count = table / ESDM__BLOB_ENTRY_BYTES;
    if (count == 1) {
        esdm__blocks_plain(raw_bytes, 1, 63, ret_blocks);
        return ESDM_OK;
    }
    for (uint32_t log2 = 6; log2 < 40; log2++) {
        if ((raw_bytes - 1) >> log2 == count - 1) { /* for count ≥ 2 at most one size fits */
            esdm__blocks_plain(raw_bytes, count, log2, ret_blocks);
            return ESDM_OK;
        }
    }
    return esdm__error_set(err, ESDM_ECORRUPT,
                           "%" PRIu64 " raw bytes do not make %" PRIu32 " blocks", raw_bytes,
                           count);
}

esdm_status
esdm__raw_blocks_verify(const esdm__blocks *blocks, uint32_t first, uint32_t count,
                        const uint8_t *entries, const void *data, esdm_error *err)
{
    uint64_t base = esdm__blocks_start(blocks, first);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t from = esdm__blocks_start(blocks, first + i);
        uint64_t bytes = esdm__blocks_start(blocks, first + i + 1) - from;
        const uint8_t *entry = entries + (size_t) i * ESDM__BLOB_ENTRY_BYTES;
        uint32_t stored;
        uint32_t flags;
        uint64_t checksum;
        memcpy(&stored, entry, sizeof stored);
        memcpy(&flags, entry + 4, sizeof flags);
        memcpy(&checksum, entry + 8, sizeof checksum);
        const uint8_t *block = (const uint8_t *) data + (from - base);
        if (stored != bytes || flags != ESDM__BLOB_FLAG_RAW ||
            esdm__checksum(block, (size_t) bytes) != checksum)
            return esdm__error_set(err, ESDM_ECORRUPT,
                                   "checksum mismatch in block %" PRIu32 " of %" PRIu32, first + i,
                                   blocks->blocks);
    }
    return ESDM_OK;
}
