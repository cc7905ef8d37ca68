/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef FIELD_MODES_H
#define FIELD_MODES_H

/**
 * @file
 * Differences of rows to neighbours, as the coders "lorenzo" and "groups" take them, and what
 * masked points stand for meanwhile. Codes have 32 bits.
 *
 * Differences are taken along the row, and along y (mode 2), along z or b (3), or along both (4);
 * what an edge lacks is left out. A masked point has the code of the point before it along y, else
 * z, else b, else 0, and nothing is stored for it.
 */

#include "volume.h"

enum { FIELD__MODE_X = 1, FIELD__MODE_Y, FIELD__MODE_Z, FIELD__MODE_YZ, FIELD__MODES };

/** Rows that the codes of row r are taken the difference to; NULL: there is none. */
typedef struct field__near {
    const int32_t *n, *z, *zn;
} field__near;

field__near field__modes_near(const field__volume *v, uint32_t mode, size_t r);

/** The nearest row before, of all of field__volume_lines(); NULL: there is none. */
const void *field__modes_nearest(uint32_t class, const void *const all[FIELD__LINES]);

/** The row that masked points of row r have the codes of; NULL: they are 0. */
const int32_t *field__modes_filling(const field__volume *v, size_t r);

/** Gives masked points the codes that the decoder gives them. */
void field__modes_fill(const field__volume *v);

/** The mask of a row; NULL: nothing is masked there. */
const uint8_t *field__modes_mask(const field__volume *v, size_t r);

/** Folded differences of the first `count` points of a row. */
void field__modes_differences(const field__volume *v, uint32_t mode, size_t r, size_t count,
                              uint32_t *out);

/**
 * The mode whose differences take the fewest bits in some rows, where each has as many as the
 * largest of `group`, which is a power of two.
 * @param folded scratch: a row and `group` more.
 */
uint32_t field__modes_choose(const field__volume *v, size_t group, uint32_t *folded);

#endif
