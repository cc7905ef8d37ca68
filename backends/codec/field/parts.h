/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef FIELD_PARTS_H
#define FIELD_PARTS_H

/**
 * @file
 * Parts of a large block: boxes that are predicted and coded apart, so that one number takes the
 * decoding of one of them. Rows are whole but where a block has little else.
 */

#include "volume.h"

/** Elements of a part, about: some milliseconds of decoding. */
#define FIELD__PART_ELEMENTS (UINT64_C(1) << 18)
/** No block has more parts than one for so many elements, and one more. */
#define FIELD__PART_LEAST 16384u

typedef struct field__parts {
    field__axes whole;
    field__axes extent; /**< of a full part; those at the ends may be smaller */
    size_t count;
} field__parts;

/** A part: where its first point is, and its axes. */
typedef struct field__part {
    field__axes at;
    field__axes axes;
} field__part;

/** False where a block of these axes is no larger than a part. */
bool field__parts_choose(const field__axes *axes, field__parts *ret_parts);
void field__parts_put(const field__parts *parts, esdm__buffer *out);
/** False when they are not what field__parts_put() writes. */
bool field__parts_get(const field__axes *axes, esdm__cursor *in, field__parts *ret_parts);

/** Part i < count, in the order of their first points. */
field__part field__parts_at(const field__parts *parts, size_t i);
/** Elements of the block before row r of a part. */
size_t field__part_row(const field__parts *parts, const field__part *part, size_t r);
/** Sets marks[i] to 1 for each part i that has one of the elements from … to - 1. */
void field__parts_mark(const field__parts *parts, size_t from, size_t to, uint8_t *marks);

/** Codes and, where the block has one, the mask of a part; the mask is dropped where it is empty.
 *  ESDM_ENOMEM. */
esdm_status field__part_cut(const field__parts *parts, const field__part *part,
                            const field__volume *volume, const uint8_t *mask,
                            field__volume *ret_volume, esdm_error *err);
/** The part's codes back into the block's. */
void field__part_paste(const field__parts *parts, const field__part *part,
                       const field__volume *from, const field__volume *volume);

#endif
