/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CODEC_LAYER_LOOPS_H
#define ESDM_CODEC_LAYER_LOOPS_H

/** @file Loops of codec/layers.c over the numbers of a block, of each type. Pure. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Numbers that are wanted: multiples of a step, or patterns without their last bits. */
typedef struct esdm__layer_grid {
    uint32_t kind;    /* esdm__layer_kind */
    uint32_t dropped; /* of ESDM__LAYER_BITS */
    double step;      /* of ESDM__LAYER_GRID */
} esdm__layer_grid;

/** Whether the type has loops, and elements of that size. */
bool esdm__layer_has_type(int32_t type, uint32_t element_bytes);
/** What leads from known numbers to those of a grid. @return false: some difference is too large.
 */
bool esdm__layer_codes(int32_t type, const esdm__layer_grid *grid, const void *raw,
                       const void *known, size_t n, int64_t *codes);
/** Whether floats, as far as they are finite and not huge, are multiples of a step, rounded, and
 * the type has finer numbers than that. */
bool esdm__layer_lies_on(int32_t type, double step, const void *values, size_t n);
/** Numbers of the grid points of known numbers; codec/layer_model.h. */
void esdm__layer_numbers(int32_t type, const esdm__layer_grid *grid, const void *known, size_t n,
                         int64_t *numbers);
/** Follows codes, which may be any. */
void esdm__layer_apply(int32_t type, const esdm__layer_grid *grid, const int64_t *codes,
                       void *known, size_t n);
/** The largest absolute value. */
uint64_t esdm__layer_largest(const int64_t *codes, size_t n);
/** Codes of 8 bytes become some of `width` bytes, in the same memory; and back. */
void esdm__layer_narrow(int64_t *codes, size_t n, uint32_t width);
void esdm__layer_widen(int64_t *codes, size_t n, uint32_t width);

#endif
