/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CODEC_BLOB_BYTES_H
#define ESDM_CODEC_BLOB_BYTES_H

/** @file What the writer and the reader of blobs share: numbers of the head, and its checksum. */

#include <string.h>

#include "base/checksum.h"
#include "codec/blob.h"

#define ESDM__BLOB_VERSION_PLAIN   1u
#define ESDM__BLOB_VERSION_NULLS   2u /* plain, with texts that are NULL */
#define ESDM__BLOB_VERSION_SHAPED  3u
#define ESDM__BLOB_VERSION_LAYERS  4u /* shaped, in layers */
#define ESDM__BLOB_FLAG_RAW        1u
#define ESDM__BLOB_CHECKSUM_OFFSET 56u
#define ESDM__BLOB_LENGTH_BYTES    4u /* of an intermediate result, before the block */
#define ESDM__BLOB_MAGIC           "ESDMFRAG"
/* The second header of version 3. */
#define ESDM__BLOB_SHAPE_BYTES    16u
#define ESDM__BLOB_ACCURACY_BYTES 88u
#define ESDM__BLOB_LAYERS_BYTES   (16u + (ESDM__BLOB_LAYERS_MAX - 1) * 8) /* of version 4 */
#define ESDM__BLOB_LOSSY          1u
#define ESDM__BLOB_LAYERED        2u

static inline void
put_u16(uint8_t *to, uint16_t value)
{
    memcpy(to, &value, sizeof value);
}

static inline void
put_u32(uint8_t *to, uint32_t value)
{
    memcpy(to, &value, sizeof value);
}

static inline void
put_u64(uint8_t *to, uint64_t value)
{
    memcpy(to, &value, sizeof value);
}

static inline uint16_t
get_u16(const uint8_t *from)
{
    uint16_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static inline uint32_t
get_u32(const uint8_t *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static inline uint64_t
get_u64(const uint8_t *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static inline void
put_f64(uint8_t *to, double value)
{
    memcpy(to, &value, sizeof value);
}

static inline double
get_f64(const uint8_t *from)
{
    double value;
    memcpy(&value, from, sizeof value);
    return value;
}

/* Of 64 bytes: the header with the checksum of the table in the place of its own. */
static inline uint64_t
head_checksum(const uint8_t *head, size_t head_bytes)
{
    uint8_t bytes[ESDM__BLOB_HEADER_BYTES];
    memcpy(bytes, head, ESDM__BLOB_CHECKSUM_OFFSET);
    put_u64(bytes + ESDM__BLOB_CHECKSUM_OFFSET,
            esdm__checksum(head + ESDM__BLOB_HEADER_BYTES, head_bytes - ESDM__BLOB_HEADER_BYTES));
    return esdm__checksum(bytes, sizeof bytes);
}

/** The second header but for layers (blob_encode.c). @param a NULL: no number is off. */
void esdm__blob_put_second(uint8_t *to, const esdm__blocks *blocks, const esdm__blob_accuracy *a);
/** What the sum of a block of `n` numbers may change by. */
double esdm__blob_sum_bound(const esdm__blob_numbers *numbers, const void *raw, size_t n);
/** The view of a head that this process has made, with its chain (blob.c). */
void esdm__blob_look(const void *head, size_t head_bytes, const esdm__chain *chain,
                     esdm__blob_view *ret_view);
/** Encodes in layers. *ret_done false: one layer is enough (blob_layers.c). */
esdm_status esdm__blob_encode_layers(const esdm__blob_numbers *numbers, esdm__blob *ret_blob,
                                     esdm__blob_accuracy *ret_accuracy, bool *ret_done,
                                     esdm_error *err);

#endif
