/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_SEAL_H
#define ESDM_BASE_SEAL_H

/**
 * @file
 * The head that codecs of foreign libraries put before their bytes:
 *
 *     0  version = 1   u8         2  reserved = 0  u16
 *     1  variant       u8         4  bytes, head and all, modulo 2^32  u32
 *     8  checksum of the values that must come out  u64
 *
 * Such libraries do not notice damage, and may compute otherwise on another machine: with the
 * checksum that is an error, not wrong data. Pure functions.
 */

#include "esdm/status.h"

#include <stddef.h>
#include <stdint.h>

#define ESDM__SEAL_BYTES 16u

/** Writes the head for what `values` are. @param encoded_bytes with the head. */
void esdm__seal_write(uint8_t head[ESDM__SEAL_BYTES], uint8_t variant, size_t encoded_bytes,
                      const void *values, size_t bytes);
/** ESDM_ECORRUPT when there is no head or bytes are missing, ESDM_ENOTSUP for a newer version;
 * `codec` is for the message. */
esdm_status esdm__seal_read(const char *codec, const void *encoded, size_t encoded_bytes,
                            uint8_t *ret_variant, esdm_error *err);
/** ESDM_ECORRUPT unless `values` are what the head was written for. */
esdm_status esdm__seal_check(const char *codec, const void *encoded, const void *values,
                             size_t bytes, esdm_error *err);

#endif
