/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "base/seal.h"

#include "base/checksum.h"
#include "base/error.h"

#define VERSION 1u

void
esdm__seal_write(uint8_t head[ESDM__SEAL_BYTES], uint8_t variant, size_t encoded_bytes,
                 const void *values, size_t bytes)
{
    uint64_t sum = esdm__checksum(values, bytes);
    head[0] = VERSION;
    head[1] = variant;
    head[2] = head[3] = 0;
    for (size_t i = 0; i < 4; i++)
        head[4 + i] = (uint8_t) (encoded_bytes >> (8 * i));
    for (size_t i = 0; i < 8; i++)
        head[8 + i] = (uint8_t) (sum >> (8 * i));
}

esdm_status
esdm__seal_read(const char *codec, const void *encoded, size_t encoded_bytes, uint8_t *ret_variant,
                esdm_error *err)
{
    const uint8_t *head = encoded;
    if (encoded_bytes < ESDM__SEAL_BYTES || head[0] == 0)
        return esdm__error_set(err, ESDM_ECORRUPT, "%s: %zu bytes without a head", codec,
                               encoded_bytes);
    if (head[0] != VERSION || head[2] != 0 || head[3] != 0)
        return esdm__error_set(err, ESDM_ENOTSUP, "%s: version %u of its format is not known",
                               codec, (unsigned) head[0]);
    for (size_t i = 0; i < 4; i++) {
        if (head[4 + i] != (uint8_t) (encoded_bytes >> (8 * i)))
            return esdm__error_set(err, ESDM_ECORRUPT, "%s: %zu bytes are not all, or too many",
                                   codec, encoded_bytes);
    }
    *ret_variant = head[1];
    return ESDM_OK;
}

esdm_status
esdm__seal_check(const char *codec, const void *encoded, const void *values, size_t bytes,
                 esdm_error *err)
{
    const uint8_t *head = encoded;
    uint64_t sum = esdm__checksum(values, bytes);
    for (size_t i = 0; i < 8; i++) {
        if (head[8 + i] != (uint8_t) (sum >> (8 * i)))
            return esdm__error_set(err, ESDM_ECORRUPT,
                                   "%s: what was decoded is not what was encoded", codec);
    }
    return ESDM_OK;
}
