/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Elements that are marked, as few boxes. */

#include <stdlib.h>
#include <string.h>

#include "merge/merge.h"

void
esdm__boxes_add(esdm__boxes *boxes, const esdm__box *box)
{
    if (boxes->failed)
        return;
    if (boxes->count == boxes->capacity) {
        size_t capacity = boxes->capacity > 0 ? 2 * boxes->capacity : 16;
        esdm__box *grown = realloc(boxes->items, capacity * sizeof *grown);
        boxes->failed = grown == NULL;
        if (grown == NULL)
            return;
        boxes->items = grown;
        boxes->capacity = capacity;
    }
    esdm__box_copy(&boxes->items[boxes->count++], box);
}

void
esdm__boxes_clear(esdm__boxes *boxes)
{
    free(boxes->items);
    *boxes = (esdm__boxes){0};
}

/* ---- joining ------------------------------------------------------------------------------- */

/* By all axes but one, then by that one. */
static int
by_others(const void *a, const void *b, void *user)
{
    const esdm__box *x = a;
    const esdm__box *y = b;
    uint32_t axis = *(uint32_t *) user;
    for (uint32_t d = 0; d < x->rank; d++) {
        if (d == axis)
            continue;
        if (x->lo[d] != y->lo[d])
            return x->lo[d] < y->lo[d] ? -1 : 1;
        if (x->n[d] != y->n[d])
            return x->n[d] < y->n[d] ? -1 : 1;
    }
    return (x->lo[axis] > y->lo[axis]) - (x->lo[axis] < y->lo[axis]);
}

static bool
touch(const esdm__box *a, const esdm__box *b, uint32_t axis)
{
    for (uint32_t d = 0; d < a->rank; d++) {
        if (d != axis && (a->lo[d] != b->lo[d] || a->n[d] != b->n[d]))
            return false;
    }
    return a->lo[axis] + a->n[axis] == b->lo[axis];
}

void
esdm__boxes_join(esdm__boxes *boxes)
{
    if (boxes->count < 2)
        return;
    for (uint32_t axis = boxes->items[0].rank; axis-- > 0;) {
        size_t left = 0;
        qsort_r(boxes->items, boxes->count, sizeof *boxes->items, by_others, &axis);
        for (size_t i = 1; i < boxes->count; i++) {
            esdm__box *last = &boxes->items[left];
            if (touch(last, &boxes->items[i], axis))
                last->n[axis] += boxes->items[i].n[axis];
            else
                esdm__box_copy(&boxes->items[++left], &boxes->items[i]);
        }
        boxes->count = left + 1;
    }
}

/* ---- marks --------------------------------------------------------------------------------- */

/* Moves to the next row, along the slowest axes. */
static void
next_row(const esdm__box *box, uint64_t *at)
{
    for (uint32_t d = box->rank - 1; d-- > 0;) {
        if (++at[d] < box->n[d])
            return;
        at[d] = 0;
    }
}

void
esdm__boxes_of_marks(esdm__boxes *boxes, const esdm__box *box, const uint8_t *marks)
{
    esdm__boxes found = {0};
    uint64_t at[ESDM_MAX_RANK] = {0};
    uint64_t total = esdm__box_elements(box);
    uint64_t row = box->rank > 0 ? box->n[box->rank - 1] : 1;
    for (uint64_t first = 0; first < total; first += row) {
        for (uint64_t i = 0; i < row; i++) {
            uint64_t from = i;
            if (!marks[first + i])
                continue;
            while (i + 1 < row && marks[first + i + 1])
                i++;
            esdm__box one = {.rank = box->rank};
            for (uint32_t d = 0; d < box->rank; d++) {
                one.lo[d] = box->lo[d] + at[d];
                one.n[d] = 1;
            }
            if (box->rank > 0) {
                one.lo[box->rank - 1] = box->lo[box->rank - 1] + from;
                one.n[box->rank - 1] = i - from + 1;
            }
            esdm__boxes_add(&found, &one);
        }
        if (box->rank > 1)
            next_row(box, at);
    }
    esdm__boxes_join(&found);
    boxes->failed |= found.failed;
    for (size_t i = 0; i < found.count; i++)
        esdm__boxes_add(boxes, &found.items[i]);
    esdm__boxes_clear(&found);
}
