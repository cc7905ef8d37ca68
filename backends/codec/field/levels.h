/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef FIELD_LEVELS_H
#define FIELD_LEVELS_H

/**
 * @file
 * Coder "levels": planes in order or every second one between two others, each from coarse to
 * fine. A point is predicted from
 * points on both sides of it, from the rows before, and from the plane and the volume before, by
 * weights fitted with least squares; the error is rounded to a multiple of a width that may be
 * smaller on coarse levels, and later predictions use what the decoder has.
 */

#include "predict.h"

#define FIELD__LEVELS_MAX 16

/** How the levels of a block are coded. Stored. */
typedef struct field__levels {
    uint32_t width;  /**< odd; of the finest level, in codes */
    uint32_t growth; /**< widths fall by 4 / growth a level: 4, 5, 6, … */
    uint32_t narrow; /**< but not below 4 / narrow of the finest level's */
    uint32_t depth;  /**< 0: planes in order; else each 2^depth-th first, then those between */
} field__levels;

/**
 * Codes the volume (32 bits, |code| <= FIELD__LEVEL_CODE_MAX); its codes become those that the
 * decoder will have, at most width / 2 off. Masked ones become anything.
 * @param samples points that weights are fitted to, about.
 * @param ret_head bytes of the result that do not grow with the volume.
 */
esdm_status field__levels_encode(const field__volume *volume, const field__levels *levels,
                                 size_t samples, esdm__buffer *out, size_t *ret_head,
                                 esdm_error *err);
/** One volume or two of the same axes, which are decoded side by side. */
esdm_status field__levels_decode(const field__volume *const volumes[2], esdm__cursor *const ins[2],
                                 size_t count, esdm_error *err);

#endif
