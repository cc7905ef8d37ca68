/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Fuzzes heads and blocks of fragments: as they are, and with the checksums put right. */

#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "codec/blob.h"
#include "plugin/registry.h"

#define RAW_MAX (16u << 20) /* what a fuzz run may decode into */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is stored of a block in the layers that are used; NULL: it is not there. Owned. */
static uint8_t *
gather(const esdm__blob_view *view, uint32_t b, const uint8_t *payload, size_t payload_bytes,
       uint64_t stored_bytes)
{
    size_t at = 0;
    uint8_t *stored = stored_bytes <= payload_bytes ? malloc((size_t) stored_bytes) : NULL;
    for (uint32_t layer = 0; layer < view->use && stored != NULL; layer++) {
        uint64_t offset, bytes;
        esdm__blob_range(view, layer, b, 1, &offset, &bytes);
        if (offset > payload_bytes || bytes > payload_bytes - offset) {
            free(stored);
            return NULL;
        }
        memcpy(stored + at, payload + offset, (size_t) bytes);
        at += (size_t) bytes;
    }
    return stored;
}

/* Decodes each block alone, from memory that ends where it ends. */
static void
decode_blocks(const esdm__blob_view *view, const uint8_t *payload, size_t payload_bytes)
{
    for (uint32_t b = 0; b < view->blocks && b < 64; b++) {
        uint64_t bytes = esdm__blob_stored_bytes(view, b, 1);
        uint64_t raw_bytes = esdm__blob_raw_bytes(view, b, 1);
        if (raw_bytes > RAW_MAX)
            return;
        uint8_t *stored = gather(view, b, payload, payload_bytes, bytes);
        uint8_t *raw = stored != NULL ? malloc((size_t) raw_bytes) : NULL;
        if (raw != NULL)
            (void) !esdm__blob_decode(view, b, 1, stored, (size_t) bytes, raw, (size_t) raw_bytes,
                                      NULL);
        free(stored);
        free(raw);
    }
}

static void
parse(const uint8_t *head, size_t head_bytes, const uint8_t *payload, size_t payload_bytes)
{
    esdm__blob_view view;
    if (esdm__blob_parse(head, head_bytes, esdm__plugin_codec_by_id, &view, NULL) == ESDM_OK) {
        for (view.use = 1; view.use <= view.layers; view.use++)
            decode_blocks(&view, payload, payload_bytes);
    }
}

/* Rewrites the checksums, so that the code behind them is reached. */
static void
seal(uint8_t *head, size_t head_bytes, const uint8_t *payload, size_t payload_bytes)
{
    size_t offset = 0;
    uint16_t second = 0;
    if (head[8] >= 3)
        memcpy(&second, head + 24, sizeof second);
    for (size_t at = ESDM__BLOB_HEADER_BYTES + second % 512;
         at + ESDM__BLOB_ENTRY_BYTES <= head_bytes; at += ESDM__BLOB_ENTRY_BYTES) {
        uint32_t bytes;
        memcpy(&bytes, head + at, sizeof bytes);
        if (bytes > payload_bytes - offset)
            break;
        uint64_t checksum = esdm__checksum(payload + offset, bytes);
        memcpy(head + at + 8, &checksum, sizeof checksum);
        offset += bytes;
    }
    uint64_t checksum =
        esdm__checksum(head + ESDM__BLOB_HEADER_BYTES, head_bytes - ESDM__BLOB_HEADER_BYTES);
    memcpy(head, "ESDMFRAG", 8);
    memcpy(head + 56, &checksum, sizeof checksum);
    checksum = esdm__checksum(head, ESDM__BLOB_HEADER_BYTES);
    memcpy(head + 56, &checksum, sizeof checksum);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 + ESDM__BLOB_HEADER_BYTES) {
        parse(data, size, NULL, 0);
        return 0;
    }
    /* First byte: how many blocks the head has. */
    size_t head_bytes = ESDM__BLOB_HEADER_BYTES + (size_t) (data[0] % 16) * ESDM__BLOB_ENTRY_BYTES;
    data++;
    size--;
    if (data[8] >= 3) { /* versions from 3 on have a second header */
        uint16_t second;
        memcpy(&second, data + 24, sizeof second);
        head_bytes += second % 512;
    }
    head_bytes = head_bytes < size ? head_bytes : size;
    parse(data, head_bytes, data + head_bytes, size - head_bytes);

    uint8_t *head = malloc(head_bytes);
    if (head == NULL)
        return 0;
    memcpy(head, data, head_bytes);
    seal(head, head_bytes, data + head_bytes, size - head_bytes);
    parse(head, head_bytes, data + head_bytes, size - head_bytes);
    free(head);
    return 0;
}
