/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "model/box.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"

void
esdm__box_set(esdm__box *box, uint32_t rank, const uint64_t *lo, const uint64_t *n)
{
    box->rank = rank;
    for (uint32_t i = 0; i < rank; i++) {
        box->lo[i] = lo != NULL ? lo[i] : 0;
        box->n[i] = n[i];
    }
}

void
esdm__box_copy(esdm__box *to, const esdm__box *from)
{
    to->rank = from->rank;
    for (uint32_t i = 0; i < from->rank; i++) {
        to->lo[i] = from->lo[i];
        to->n[i] = from->n[i];
    }
}

void
esdm__box_of_space(esdm__box *box, const esdm_dataspace *space)
{
    box->rank = space->rank;
    for (uint32_t i = 0; i < space->rank; i++) {
        uint64_t size = space->size[i];
        box->lo[i] = space->offset[i];
        box->n[i] = space->has_stride && size > 0 ? (size - 1) * space->stride[i] + 1 : size;
    }
}

bool
esdm__box_is_empty(const esdm__box *box)
{
    for (uint32_t i = 0; i < box->rank; i++) {
        if (box->n[i] == 0)
            return true;
    }
    return false;
}

bool
esdm__box_equal(const esdm__box *a, const esdm__box *b)
{
    if (a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++) {
        if (a->lo[i] != b->lo[i] || a->n[i] != b->n[i])
            return false;
    }
    return true;
}

uint64_t
esdm__box_elements(const esdm__box *box)
{
    uint64_t elements = 1;
    bool saturated = false;
    for (uint32_t i = 0; i < box->rank; i++) {
        if (box->n[i] == 0)
            return 0;
        if (!esdm__mul_u64(elements, box->n[i], &elements))
            saturated = true;
    }
    return saturated ? UINT64_MAX : elements;
}

bool
esdm__box_meets(const esdm__box *a, const esdm__box *b)
{
    for (uint32_t i = 0; i < a->rank; i++) {
        /* Differences instead of sums; an empty side meets nothing. */
        bool apart = a->lo[i] >= b->lo[i] ? a->lo[i] - b->lo[i] >= b->n[i] || a->n[i] == 0
                                          : b->lo[i] - a->lo[i] >= a->n[i] || b->n[i] == 0;
        if (apart)
            return false;
    }
    return true;
}

bool
esdm__box_intersect(const esdm__box *a, const esdm__box *b, esdm__box *ret)
{
    if (!esdm__box_meets(a, b))
        return false;
    ret->rank = a->rank;
    for (uint32_t i = 0; i < a->rank; i++) {
        uint64_t a_end = a->lo[i] + a->n[i];
        uint64_t b_end = b->lo[i] + b->n[i];
        uint64_t lo = a->lo[i] > b->lo[i] ? a->lo[i] : b->lo[i];
        uint64_t end = a_end < b_end ? a_end : b_end;
        ret->lo[i] = lo;
        ret->n[i] = end - lo;
    }
    return true;
}

bool
esdm__box_contains(const esdm__box *outer, const esdm__box *inner)
{
    if (esdm__box_is_empty(inner))
        return true;
    for (uint32_t i = 0; i < outer->rank; i++) {
        if (inner->lo[i] < outer->lo[i] || inner->lo[i] + inner->n[i] > outer->lo[i] + outer->n[i])
            return false;
    }
    return true;
}

void
esdm__box_hull(esdm__box *box, const esdm__box *other)
{
    if (esdm__box_is_empty(other))
        return;
    if (esdm__box_is_empty(box)) {
        esdm__box_copy(box, other);
        return;
    }
    for (uint32_t i = 0; i < box->rank; i++) {
        uint64_t a_end = box->lo[i] + box->n[i];
        uint64_t b_end = other->lo[i] + other->n[i];
        uint64_t lo = box->lo[i] < other->lo[i] ? box->lo[i] : other->lo[i];
        box->lo[i] = lo;
        box->n[i] = (a_end > b_end ? a_end : b_end) - lo;
    }
}

size_t
esdm__box_subtract(const esdm__box *a, const esdm__box *b, esdm__box *ret)
{
    esdm__box rest; /* what of `a` is not yet split off; shrinks to the intersection */
    size_t count = 0;

    if (!esdm__box_meets(a, b)) {
        esdm__box_copy(&ret[0], a);
        return 1;
    }
    esdm__box_copy(&rest, a);
    for (uint32_t i = 0; i < a->rank; i++) {
        uint64_t a_end = rest.lo[i] + rest.n[i];
        uint64_t b_end = b->lo[i] + b->n[i];
        if (rest.lo[i] < b->lo[i]) {
            esdm__box_copy(&ret[count], &rest);
            ret[count++].n[i] = b->lo[i] - rest.lo[i];
            rest.lo[i] = b->lo[i];
        }
        if (a_end > b_end) {
            esdm__box_copy(&ret[count], &rest);
            ret[count].lo[i] = b_end;
            ret[count++].n[i] = a_end - b_end;
            a_end = b_end;
        }
        rest.n[i] = a_end - rest.lo[i];
    }
    return count;
}

char *
esdm__box_print(const esdm__box *box, char *text, size_t bytes)
{
    char part[48];
    size_t used = 0;

    if (bytes == 0)
        return text;
    text[0] = '\0';
    for (uint32_t i = 0; i <= box->rank; i++) {
        const char *before = i == 0 ? "[" : i < box->rank ? ", " : "";
        if (i < box->rank)
            (void) snprintf(part, sizeof part, "%s%" PRIu64 ":%" PRIu64, before, box->lo[i],
                            box->lo[i] + box->n[i]);
        else
            (void) snprintf(part, sizeof part, "%s]", before);
        size_t length = strlen(part);
        if (length > bytes - 1 - used)
            length = bytes - 1 - used;
        memcpy(text + used, part, length);
        used += length;
        text[used] = '\0';
    }
    return text;
}
