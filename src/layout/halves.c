/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Whether a request is better cut in two before it is planned. */

#include "layout/index.h"

/* Fragments whose plan (1.1 KiB each) the processor's caches hold: some 2 MiB. */
#define NEAR_FRAGMENTS ((size_t) 2048)
/* Of so many one may be in both halves. */
#define IN_BOTH_SHARE 64u

bool
esdm__index_wants_halves(esdm__index *index, const esdm__box *box)
{
    esdm__box half;
    uint32_t axis = 0;
    while (axis < box->rank && box->n[axis] == 1)
        axis++;
    if (axis == box->rank || esdm__box_elements(box) <= NEAR_FRAGMENTS ||
        esdm__index_count(index, box, NEAR_FRAGMENTS + 1) <= NEAR_FRAGMENTS)
        return false;
    size_t count = esdm__index_count(index, box, SIZE_MAX);
    size_t most = count + count / IN_BOTH_SHARE;
    esdm__box_copy(&half, box);
    half.n[axis] = box->n[axis] / 2;
    size_t low = esdm__index_count(index, &half, most + 1);
    half.lo[axis] += half.n[axis];
    half.n[axis] = box->n[axis] - half.n[axis];
    return low <= most && esdm__index_count(index, &half, most + 1) <= most - low;
}
