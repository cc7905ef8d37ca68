/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef FIELD_MAP_H
#define FIELD_MAP_H

/** @file Maps between values and codes. What a code stands for is exact on every machine. */

#include "field.h"
#include "kernels.h"
#include "values.h"

typedef enum field__map_kind {
    FIELD__MAP_ORDERED, /**< the ordered integer of the pattern (values.h): lossless */
    FIELD__MAP_GRID,    /**< (base + code * multiplier) / divisor */
    FIELD__MAP_LOG,     /**< steps that grow with the value, see map.c */
    FIELD__MAP_PALETTE, /**< the code-th of the values that occur (palette.c): lossless */
    FIELD__MAP_PIECES,  /**< single precision, a relative bound alone: pieces.c */
    FIELD__MAP_KINDS
} field__map_kind;

typedef struct field__map {
    field__map_kind kind;
    field__kind type;
    int64_t origin; /**< added to every code first */
    double base, multiplier, divisor;
    double edge;        /**< LOG: up to here steps of 2 * finest */
    double finest;      /**< LOG: half a step near zero; 0: zero is alone there */
    double growth;      /**< LOG: base-2 logarithm of a step's factor */
    double centre;      /**< LOG: factor from the middle of a step to its value */
    double cap, widest; /**< LOG: from cap on, steps are of 2 * widest again */
    uint32_t *palette;  /**< PALETTE: owned; patterns as unsigned integers in order */
    size_t palette_count;
    field__pieces *pieces; /**< PIECES: owned */
    /** GRID or LOG: so many elements of the block, its first ones, stand for half a step more (or
     * less, where it is negative) than their codes do otherwise. */
    int64_t nudged;
} field__map;

void field__map_clear(field__map *map);

/** Pieces for a relative bound and values from `smallest` on: false where they do not suit, or
 *  without memory. */
bool field__pieces_make(field__map *map, double relative, double smallest);

/** Adds origin and turns codes into elements first … first+count-1 of `raw`. */
void field__map_decode(const field__map *map, const int64_t *codes, size_t first, size_t count,
                       void *raw);
/** The values that codes stand for, rounded to the type; NAN where it has none. Not ORDERED. */
void field__map_values(const field__map *map, const int64_t *codes, size_t count, double *values);
/** The same of elements `first` … of the block, some of which may be nudged. */
void field__map_values_at(const field__map *map, const int64_t *codes, size_t first, size_t count,
                          double *values);
/** How many elements are nudged, and the map of their codes (field__map_nudged_code()): it has half
 *  the steps, and no origin. */
size_t field__map_nudge(const field__map *map, field__map *ret_half);
/** Of a code to which the origin has been added. */
int64_t field__map_nudged_code(const field__map *map, int64_t code);
/** Nearest codes of values, origin not subtracted; INT64_MIN where there is none. Not ORDERED. */
void field__map_codes(const field__map *map, const double *values, size_t count, int64_t *codes);

/* Of kind PIECES (pieces.c). */
void field__pieces_put(const field__map *map, esdm__buffer *out);
bool field__pieces_get(field__map *map, esdm__cursor *in);
void field__pieces_codes(const field__map *map, const double *values, size_t count, int64_t *codes);
void field__pieces_values(const field__map *map, const int64_t *codes, size_t count,
                          double *values);

void field__map_put(const field__map *map, esdm__buffer *out);
/** False when they are not what field__map_put writes. */
bool field__map_get(field__map *map, field__kind type, esdm__cursor *in);

#endif
