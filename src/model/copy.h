/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MODEL_COPY_H
#define ESDM_MODEL_COPY_H

/**
 * @file
 * Strided N-d copy between two memory layouts, with type conversion. Pure functions.
 */

#include "model/box.h"
#include "model/convert.h"

/** Whether esdm__convert accepts the pair: both numeric, or equal (text, strings). */
bool esdm__type_converts(esdm_type from, esdm_type to);
bool esdm__type_is_numeric(esdm_type type);
/** Type for a name of the container document; ESDM_TYPE_NONE if unknown. */
esdm_type esdm__type_from_name(const char *name);

/**
 * Copies an array of `n[0] × … × n[rank-1]` elements.
 *
 * Axes are coalesced first (dense neighbours merge), the innermost loop is a memcpy when both sides
 * are dense and no conversion is needed, and a typed loop otherwise: never a switch per element.
 * Strides are in elements of the respective type and may be 0 (source) or negative; the pointers
 * stand at element (0,…,0). Equal types copy bits (NaN payloads survive). Strings copy the
 * pointers: duplication is the caller's business.
 *
 * @param ret_out_of_range may be NULL; *incremented* by the values that do not fit (as
 * esdm_convert).
 */
void esdm__copy_nd(uint32_t rank, const uint64_t *n, esdm_type from, const void *source,
                   const int64_t *source_stride, esdm_type to, void *target,
                   const int64_t *target_stride, uint64_t *ret_out_of_range);

/** The same by the rules given; `storing` as in esdm__converter_find(). */
void esdm__copy_by_rules_nd(esdm_conversion rules, bool storing, uint32_t rank, const uint64_t *n,
                            esdm_type from, const void *source, const int64_t *source_stride,
                            esdm_type to, void *target, const int64_t *target_stride,
                            uint64_t *ret_out_of_range);

/** The same for elements of `element_bytes` bytes each (≥ 1), which are copied as they are. */
void esdm__copy_bytes_nd(uint32_t rank, const uint64_t *n, size_t element_bytes, const void *source,
                         const int64_t *source_stride, void *target, const int64_t *target_stride);

/** C-order strides in elements of a dense array of `rank` sizes. */
void esdm__dense_strides(uint32_t rank, const uint64_t *n, int64_t *ret_stride);

/** Whether the elements (n, stride) fill one dense C-order range of memory. */
bool esdm__strides_are_dense(uint32_t rank, const uint64_t *n, const int64_t *stride);

/** Memory strides of a space in elements: its own, or dense C order. */
void esdm__space_memory_strides(const esdm_dataspace *space, int64_t *ret_stride);

/** Fills a hyperslab in memory with one element (`value` of type `type`, no conversion). */
void esdm__fill_nd(uint32_t rank, const uint64_t *n, esdm_type type, const void *value,
                   void *target, const int64_t *target_stride);

#endif
