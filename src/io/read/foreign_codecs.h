/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_READ_FOREIGN_CODECS_H
#define ESDM_IO_READ_FOREIGN_CODECS_H

/** @file What filters of foreign files are made of. Pure functions, safe on hostile input. */

#include <stddef.h>
#include <stdint.h>

#include "esdm/status.h"

/** Decodes with one of ESDM's codecs, all of the bytes to all of the room. */
esdm_status esdm__filter_decode(const char *codec, uint32_t element_bytes, const uint8_t *from,
                                size_t from_bytes, uint8_t *to, size_t to_bytes, esdm_error *err);

/** The number of 4 bytes, the least one first. */
static inline uint32_t
esdm__little_u32(const uint8_t *at)
{
    return (uint32_t) at[0] | (uint32_t) at[1] << 8 | (uint32_t) at[2] << 16 |
           (uint32_t) at[3] << 24;
}

/** A buffer of Blosc 1 (io/read/foreign_blosc.c). */
esdm_status esdm__blosc_decode(const uint8_t *data, size_t bytes, uint8_t *raw, size_t raw_bytes,
                               esdm_error *err);
/** What its header tells; 0: it is damaged, or empty. */
size_t esdm__blosc_raw_bytes(const uint8_t *data, size_t bytes);

/** What a frame of zstd tells (io/read/foreign_codecs.c); 0: nothing. */
size_t esdm__zstd_raw_bytes(const uint8_t *data, size_t bytes);
/** A message of GRIB 2 with one of the fields of another, counted from 0 (io/read/foreign_grib.c).
 *  @param ret_message owned, esdm__scratch_free(). */
esdm_status esdm__grib_field(const uint8_t *message, size_t bytes, uint32_t field,
                             uint8_t **ret_message, size_t *ret_bytes, esdm_error *err);
/** CRC-32C, as Zarr has it behind a chunk. */
uint32_t esdm__crc32c(const uint8_t *data, size_t bytes);

/** What numcodecs' filter "delta" works on: parameters of the filter. */
typedef struct esdm__delta {
    uint32_t element_bytes; /* 1, 2, 4 or 8 */
    uint32_t is_float;      /* of 4 or 8 bytes */
    uint32_t big_endian;
} esdm__delta;

/** Sums differences up in place; ESDM_ECORRUPT: the bytes are no elements. */
esdm_status esdm__delta_undo(const esdm__delta *delta, uint8_t *data, size_t bytes,
                             esdm_error *err);

#endif
