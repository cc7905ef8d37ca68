/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/read/locate.h"

#include "model/copy.h"

/* The part of an axis: selected are offset + i * step, stored are origin + j * stride. */
typedef struct axis {
    uint64_t count;
    uint64_t first;  /* i of the first common element */
    uint64_t i_step; /* from one common element to the next */
    uint64_t j_first;
    uint64_t j_step;
} axis;

/* Greatest common divisor g of a and b, and x with a * x = g modulo b. */
static uint64_t
inverse(uint64_t a, uint64_t b, uint64_t *ret_x)
{
    __int128 r0 = a;
    __int128 r1 = b;
    __int128 x0 = 1;
    __int128 x1 = 0;
    while (r1 != 0) {
        __int128 q = r0 / r1;
        __int128 r = r0 - q * r1;
        __int128 x = x0 - q * x1;
        r0 = r1;
        r1 = r;
        x0 = x1;
        x1 = x;
    }
    x0 %= b;
    *ret_x = (uint64_t) (x0 < 0 ? x0 + b : x0);
    return (uint64_t) r0;
}

/* Moves `first` to where the selection meets the stride, and sets the steps. false: never. */
static bool
align(uint64_t offset, uint64_t step, uint64_t origin, uint64_t stride, axis *a)
{
    uint64_t x;
    uint64_t common = inverse(step, stride, &x);
    uint64_t period = stride / common;
    uint64_t behind = (origin % stride + stride - offset % stride) % stride;
    if (behind % common != 0)
        return false;
    uint64_t i = (uint64_t) ((unsigned __int128) (behind / common) * x % period);
    uint64_t from = a->first % period;
    a->first += i >= from ? i - from : i + (period - from);
    a->i_step = period;
    a->j_step = step / common;
    return true;
}

static bool
locate_axis(const esdm_dataspace *space, const esdm__piece *piece, uint32_t d, axis *a)
{
    const esdm__fragment *fragment = piece->fragment;
    uint64_t stride = fragment->strided ? fragment->stride[d] : 1;
    uint64_t step = space->has_stride ? space->stride[d] : 1;
    uint64_t offset = space->offset[d];
    uint64_t begin = piece->part.lo[d];
    uint64_t last = begin + piece->part.n[d] - 1;
    if (last < offset)
        return false;
    uint64_t end = (last - offset) / step + 1; /* one past the last i inside */
    end = end < space->size[d] ? end : space->size[d];
    *a = (axis){.i_step = 1, .j_step = step};
    a->first = begin > offset ? (begin - offset - 1) / step + 1 : 0;
    if (stride > 1 && !align(offset, step, fragment->box.lo[d], stride, a))
        return false;
    if (a->first >= end)
        return false;
    a->count = (end - 1 - a->first) / a->i_step + 1;
    a->j_first = (offset + a->first * step - fragment->box.lo[d]) / stride;
    return true;
}

bool
esdm__locate(const esdm_dataspace *space, const int64_t *memory_stride, const esdm__piece *piece,
             esdm__location *ret)
{
    uint64_t counts[ESDM_MAX_RANK];
    int64_t dense[ESDM_MAX_RANK];
    esdm__fragment_counts(piece->fragment, counts);
    esdm__dense_strides(space->rank, counts, dense);
    ret->rank = space->rank;
    ret->source_first = 0;
    ret->target_first = 0;
    for (uint32_t d = 0; d < space->rank; d++) {
        axis a;
        if (!locate_axis(space, piece, d, &a))
            return false;
        ret->count[d] = a.count;
        ret->source_first += a.j_first * (uint64_t) dense[d];
        ret->source_stride[d] = (int64_t) a.j_step * dense[d];
        ret->target_first += (int64_t) a.first * memory_stride[d];
        ret->target_stride[d] = (int64_t) a.i_step * memory_stride[d];
    }
    return true;
}
