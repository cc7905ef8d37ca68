/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "layout/strided.h"

#include <stdlib.h>

#include "base/divisor.h"

/* Distance of the elements from multiples of the stride. */
static uint64_t
phase(const esdm__strided *s, uint32_t d)
{
    return s->origin[d] % s->stride[d];
}

static int
order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int
compare_places(uint32_t rank, const esdm__strided *a, const esdm__strided *b)
{
    int result = 0;
    for (uint32_t d = 0; d < 2 * rank && result == 0; d++)
        result = order(a->bounds[d], b->bounds[d]);
    for (uint32_t d = 0; d < rank && result == 0; d++) {
        result = order(a->stride[d], b->stride[d]);
        if (result == 0)
            result = order(phase(a, d), phase(b, d));
    }
    return result;
}

/* The same places together, newest first. */
static int
by_place_and_age(const void *x, const void *y, void *user)
{
    const esdm__strided *a = x;
    const esdm__strided *b = y;
    int result = compare_places(*(const uint32_t *) user, a, b);
    if (result == 0)
        result = order(b->sequence, a->sequence);
    return result != 0 ? result : order(b->item, a->item);
}

void
esdm__strided_hide_repeats(uint32_t rank, esdm__strided *items, size_t count, uint8_t *hidden)
{
    qsort_r(items, count, sizeof *items, by_place_and_age, &rank);
    for (size_t i = 1; i < count; i++) {
        if (compare_places(rank, &items[i - 1], &items[i]) == 0)
            hidden[items[i].item] = 1;
    }
}

static uint64_t
stride_of(const esdm__fragment *fragment, uint32_t d)
{
    return fragment->strided ? fragment->stride[d] : 1;
}

bool
esdm__strided_meet(const esdm__piece *a, const esdm__piece *b)
{
    if (!esdm__box_meets(&a->part, &b->part))
        return false;
    for (uint32_t d = 0; d < a->part.rank; d++) {
        uint64_t common =
            esdm__common_divisor(stride_of(a->fragment, d), stride_of(b->fragment, d));
        if (a->fragment->box.lo[d] % common != b->fragment->box.lo[d] % common)
            return false;
    }
    return true;
}

uint64_t
esdm__strided_elements(const esdm__piece *piece)
{
    esdm__box counts = {.rank = piece->part.rank};
    for (uint32_t d = 0; d < counts.rank; d++) {
        uint64_t stride = stride_of(piece->fragment, d);
        uint64_t from = piece->part.lo[d] - piece->fragment->box.lo[d];
        uint64_t end = from + piece->part.n[d];
        /* Multiples of the stride in [from, end). */
        counts.n[d] = (end - 1) / stride - (from == 0 ? 0 : (from - 1) / stride) + (from == 0);
    }
    return esdm__box_elements(&counts);
}
