/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_FIELD_TAPS_H
#define ESDM_FIELD_TAPS_H

/** @file Which neighbours predict the points of a row of levels (levels.c), and by which weights.
 */

#include "levels.h"

typedef enum field__pass { PASS_GRID, PASS_Y, PASS_X } field__pass;

/* Of a row: rows on both sides, a plane before, one after as well, the volume before. */
enum { HAS_SIDES = 1, HAS_PLANE = 2, HAS_AFTER = 4, HAS_VOLUME = 8, LEVEL_CLASSES = 16 };

enum { PLANE_OWN, PLANE_BEFORE, PLANE_AFTER, PLANE_BEFORE3, PLANE_AFTER3, PLANE_VOLUME };

/* Where a tap lies: steps of rows (dy, by the spacing) and elements (dx, by the pass's unit). */
typedef struct field__level_tap {
    uint8_t needs; /* HAS_* */
    int8_t plane;  /* PLANE_* */
    int8_t dy, dx;
} field__level_tap;

/* Weights of one kind of row; the sum of all and `west` is 1 << FIELD__WEIGHT_BITS. */
typedef struct field__level_weights {
    bool fitted;
    uint32_t taps;
    field__level_tap tap[FIELD__LEVEL_TAPS];
    int32_t weight[FIELD__LEVEL_TAPS];
    int32_t west;
} field__level_weights;

/** The taps that a row of the class, flags HAS_*, has in the pass; all weights 0. */
void field__taps_init(field__level_weights *weights, field__pass p, uint32_t class);
/** The same with weights of cubic interpolation. */
void field__taps_default(field__level_weights *weights, field__pass p, uint32_t class);

#endif
