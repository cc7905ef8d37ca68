/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/container/failed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Selections that are kept apart. */
#define MOST 256u

typedef struct esdm__failed_list {
    esdm_dataspace *selections; /* what is not whole; owned */
    size_t count;
    size_t capacity;
    esdm_error *why; /* of the first one; owned; NULL: there was no memory for it */
} failed_list;

/* There was no memory at all: none of it can be told apart. Never written to. */
static failed_list not_told_apart;

static bool
is_told_apart(const esdm__failed_writes *failed)
{
    return failed->list != NULL && failed->list != &not_told_apart;
}

void
esdm__failed_clear(esdm__failed_writes *failed)
{
    if (is_told_apart(failed)) {
        free(failed->list->selections);
        free(failed->list->why);
        free(failed->list);
    }
    failed->list = NULL;
}

size_t
esdm__failed_count(const esdm__failed_writes *failed)
{
    return is_told_apart(failed) ? failed->list->count : failed->list != NULL;
}

static void
set_box(esdm_dataspace *space, const esdm__box *box)
{
    (void) !esdm_dataspace_init(space, box->rank, box->lo, box->n, NULL);
}

/* The first selection becomes the hull of itself and another one. */
static void
swallow(failed_list *failed, const esdm_dataspace *space)
{
    esdm__box hull;
    esdm__box other;
    esdm__box_of_space(&hull, &failed->selections[0]);
    esdm__box_of_space(&other, space);
    for (uint32_t d = 0; d < hull.rank; d++) {
        uint64_t end = hull.lo[d] + hull.n[d];
        uint64_t other_end = other.lo[d] + other.n[d];
        hull.lo[d] = hull.lo[d] < other.lo[d] ? hull.lo[d] : other.lo[d];
        hull.n[d] = (end > other_end ? end : other_end) - hull.lo[d];
    }
    set_box(&failed->selections[0], &hull);
}

static void
keep_why(failed_list *failed, const esdm_error *why)
{
    if (failed->why == NULL)
        failed->why = malloc(sizeof *failed->why);
    if (failed->why != NULL)
        *failed->why = *why;
}

void
esdm__failed_note(esdm__failed_writes *failed, const esdm_dataspace *space, const esdm_error *why)
{
    static const size_t first = 4;
    if (failed->list == NULL) {
        failed->list = calloc(1, sizeof *failed->list);
        if (failed->list == NULL)
            failed->list = &not_told_apart;
        else
            keep_why(failed->list, why);
    }
    if (!is_told_apart(failed))
        return;
    failed_list *list = failed->list;
    if (list->count == list->capacity && list->count < MOST) {
        size_t capacity = list->capacity == 0 ? first : 2 * list->capacity;
        esdm_dataspace *grown = realloc(list->selections, capacity * sizeof *grown);
        if (grown != NULL) {
            list->selections = grown;
            list->capacity = capacity;
        }
    }
    if (list->count < list->capacity) {
        list->selections[list->count++] = *space;
    } else if (list->count > 0) {
        swallow(list, space);
    } else {
        esdm__failed_clear(failed);
        failed->list = &not_told_apart;
    }
}

static bool
is_same(const esdm_dataspace *a, const esdm_dataspace *b)
{
    for (uint32_t d = 0; d < a->rank; d++) {
        uint64_t step = a->has_stride ? a->stride[d] : 1;
        uint64_t other = b->has_stride ? b->stride[d] : 1;
        if (a->offset[d] != b->offset[d] || a->size[d] != b->size[d] ||
            (a->size[d] > 1 && step != other))
            return false;
    }
    return true;
}

/* The part of a box that `by` does not cover, when that is one box or nothing. *ret_empty: nothing.
 * false: the box stays as it is. */
static bool
cut(esdm__box *box, const esdm__box *by, bool *ret_empty)
{
    uint32_t open = 0; /* axes along which it sticks out */
    uint32_t axis = 0;
    for (uint32_t d = 0; d < box->rank; d++) {
        if (by->lo[d] <= box->lo[d] && by->lo[d] + by->n[d] >= box->lo[d] + box->n[d])
            continue;
        open++;
        axis = d;
    }
    *ret_empty = open == 0;
    if (open != 1)
        return open == 0;
    uint64_t end = box->lo[axis] + box->n[axis];
    uint64_t by_end = by->lo[axis] + by->n[axis];
    if (by->lo[axis] <= box->lo[axis] && by_end > box->lo[axis]) {
        box->n[axis] = end - by_end;
        box->lo[axis] = by_end;
    } else if (by_end >= end && by->lo[axis] < end) {
        box->n[axis] = by->lo[axis] - box->lo[axis];
    } else {
        return false;
    }
    return true;
}

void
esdm__failed_mend(esdm__failed_writes *failed, const esdm_dataspace *space)
{
    if (!is_told_apart(failed))
        return;
    failed_list *list = failed->list;
    esdm__box by;
    esdm__box_of_space(&by, space);
    size_t left = 0;
    for (size_t i = 0; i < list->count; i++) {
        esdm_dataspace *at = &list->selections[i];
        bool empty = is_same(at, space);
        esdm__box box;
        esdm__box_of_space(&box, at);
        if (!empty && !space->has_stride && cut(&box, &by, &empty) && !empty && !at->has_stride)
            set_box(at, &box);
        if (!empty)
            list->selections[left++] = *at;
    }
    list->count = left;
    if (left == 0)
        esdm__failed_clear(failed);
}

static void
print_numbers(const uint64_t *numbers, uint32_t count, char *text, size_t bytes)
{
    size_t at = 0;
    text[0] = '\0';
    for (uint32_t d = 0; d < count && at < bytes; d++)
        at += (size_t) snprintf(text + at, bytes - at, "%s%" PRIu64, d > 0 ? "," : "", numbers[d]);
}

esdm_status
esdm__failed_status(const esdm__failed_writes *failed, esdm_error *err)
{
    const failed_list *list = failed->list;
    if (list == NULL)
        return ESDM_OK;
    char place[80] = "";
    if (is_told_apart(failed)) {
        const esdm_dataspace *space = &list->selections[0];
        char lo[32];
        char n[32];
        print_numbers(space->offset, space->rank, lo, sizeof lo);
        print_numbers(space->size, space->rank, n, sizeof n);
        (void) snprintf(place, sizeof place, " of [%s] size [%s]", lo, n);
    }
    esdm_status status = ESDM_ENOMEM;
    if (list->why == NULL) {
        (void) esdm__error_nomem(err, sizeof *list->why, "a write");
    } else {
        status = list->why->status;
        if (err != NULL)
            *err = *list->why;
    }
    return esdm__error_prefix(
        err, status,
        "a write%s failed and was not repeated; write it again, or give it up "
        "with esdm_container_give_up_failed(). The reason was",
        place);
}
