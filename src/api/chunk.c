/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Chunks that are kept elsewhere, encoded as fragments are. */

#include "esdm/chunk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arguments.h"
#include "base/error.h"
#include "codec/blob.h"
#include "codec/chain.h"
#include "plugin/registry.h"

static esdm_status
count_bytes(esdm_type type, uint32_t rank, const uint64_t *shape, size_t *ret_bytes,
            esdm_error *err)
{
    uint64_t bytes = esdm_type_size(type);
    if (bytes == 0 || type == ESDM_TYPE_STRING || rank > ESDM_MAX_RANK)
        return esdm__error_set(err, ESDM_EINVAL,
                               "a chunk has numbers or characters, and up to %d axes",
                               ESDM_MAX_RANK);
    for (uint32_t i = 0; i < rank; i++) {
        if (shape[i] == 0 || __builtin_mul_overflow(bytes, shape[i], &bytes))
            return esdm__error_set(err, ESDM_EINVAL, "axis %u of a chunk has %llu elements", i,
                                   (unsigned long long) shape[i]);
    }
    if (bytes > SIZE_MAX / 2)
        return esdm__error_set(err, ESDM_EINVAL, "a chunk is too large");
    *ret_bytes = (size_t) bytes;
    return ESDM_OK;
}

static esdm_status
join(const esdm__blob *blob, void **ret_bytes, size_t *ret_size, esdm_error *err)
{
    size_t size = blob->head_bytes + blob->payload_bytes;
    uint8_t *bytes = malloc(size);
    if (bytes == NULL)
        return esdm__error_set(err, ESDM_ENOMEM, "no memory for %zu bytes", size);
    memcpy(bytes, blob->head, blob->head_bytes);
    memcpy(bytes + blob->head_bytes, blob->payload, blob->payload_bytes);
    *ret_bytes = bytes;
    *ret_size = size;
    return ESDM_OK;
}

esdm_status
esdm_chunk_encode(const char *chain_text, esdm_type type, uint32_t rank, const uint64_t *shape,
                  const void *raw, void **ret_bytes, size_t *ret_size, esdm_error *err)
{
    ESDM__NEED(err, chain_text);
    ESDM__NEED(err, raw);
    ESDM__NEED(err, ret_bytes);
    ESDM__NEED(err, ret_size);
    if (rank > 0)
        ESDM__NEED(err, shape);
    esdm__chain chain = {.count = 0};
    esdm__blob blob = {.head = NULL};
    size_t bytes = 0;
    esdm_status st = count_bytes(type, rank, shape, &bytes, err);
    if (st == ESDM_OK)
        st = esdm__chain_parse_stored(chain_text, &chain, err);
    if (st == ESDM_OK)
        st = esdm__chain_check_writes(&chain, chain_text, err);
    if (st != ESDM_OK)
        return st;
    const esdm__blob_numbers numbers = {.chain = &chain,
                                        .type = type,
                                        .element_bytes = (uint32_t) esdm_type_size(type),
                                        .rank = rank,
                                        .shape = shape,
                                        .raw = raw,
                                        .conserved = INFINITY};
    st = esdm__blob_encode_numbers(&numbers, &blob, NULL, err);
    if (st == ESDM_OK)
        st = join(&blob, ret_bytes, ret_size, err);
    esdm__blob_clear(&blob);
    return st;
}

/* Where the head ends: the table does, which its header tells. */
static esdm_status
find_head(const uint8_t *bytes, size_t size, size_t *ret_head, esdm_error *err)
{
    uint64_t payload = 0;
    if (size < ESDM__BLOB_HEADER_BYTES)
        return esdm__error_set(err, ESDM_ECORRUPT, "a chunk of %zu bytes has no head", size);
    for (int i = 7; i >= 0; i--)
        payload = payload << 8 | bytes[40 + i]; /* payload_bytes: codec/blob.h */
    if (payload > size - ESDM__BLOB_HEADER_BYTES)
        return esdm__error_set(err, ESDM_ECORRUPT, "a chunk is cut off");
    *ret_head = size - (size_t) payload;
    return ESDM_OK;
}

esdm_status
esdm_chunk_decode(const void *bytes, size_t size, size_t most, void **ret_raw, size_t *ret_size,
                  esdm_error *err)
{
    ESDM__NEED(err, bytes);
    ESDM__NEED(err, ret_raw);
    ESDM__NEED(err, ret_size);
    esdm__blob_view view;
    size_t head = 0;
    esdm_status st = find_head(bytes, size, &head, err);
    if (st == ESDM_OK)
        st = esdm__blob_parse(bytes, head, esdm__plugin_codec_by_id, &view, err);
    if (st != ESDM_OK)
        return st;
    if (view.raw_bytes > most)
        return esdm__error_set(err, ESDM_ECORRUPT, "a chunk has %llu bytes, not %zu or fewer",
                               (unsigned long long) view.raw_bytes, most);
    void *raw = malloc((size_t) view.raw_bytes);
    if (raw == NULL)
        return esdm__error_set(err, ESDM_ENOMEM, "no memory for %llu bytes",
                               (unsigned long long) view.raw_bytes);
    st = esdm__blob_decode(&view, 0, view.blocks, (const uint8_t *) bytes + head,
                           (size_t) view.payload_bytes, raw, (size_t) view.raw_bytes, err);
    if (st != ESDM_OK) {
        free(raw);
        return st;
    }
    *ret_raw = raw;
    *ret_size = (size_t) view.raw_bytes;
    return ESDM_OK;
}
