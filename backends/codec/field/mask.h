/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef FIELD_MASK_H
#define FIELD_MASK_H

/** @file Points that are not coded: where they are, and their elements as they are. */

#include "volume.h"

/** Appends the mask, one byte of 0 or 1 per element. Similar rows and planes cost little. */
esdm_status field__mask_encode(const uint8_t *mask, const field__axes *axes, esdm__buffer *out,
                               esdm_error *err);
/** Reads a mask into `mask` (one byte per element). */
esdm_status field__mask_decode(uint8_t *mask, const field__axes *axes, esdm__cursor *in,
                               esdm_error *err);

/** Appends bytes of elements of that size, compressed (shuffle and zstd). */
esdm_status field__bytes_encode(const void *raw, size_t raw_bytes, size_t element_bytes,
                                esdm__buffer *out, esdm_error *err);
esdm_status field__bytes_decode(void *raw, size_t raw_bytes, size_t element_bytes, esdm__cursor *in,
                                esdm_error *err);
/** The same of elements of one byte, which are not copied where they are stored as they are:
 *  *ret_bytes is `room` (of raw_bytes) or lies in what `in` reads. */
esdm_status field__bytes_view(uint8_t *room, size_t raw_bytes, esdm__cursor *in,
                              const uint8_t **ret_bytes, esdm_error *err);

#endif
