/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "layout/fragmenter.h"

#include <string.h>

#include "base/checked.h"

/* Rows of a piece are not made shorter than this for the sake of its shape. */
#define ROW_BYTES 1024u

static uint64_t
multiply(uint64_t a, uint64_t b)
{
    uint64_t product = UINT64_MAX;
    (void) esdm__mul_u64(a, b, &product);
    return product;
}

static uint64_t
divide_up(uint64_t a, uint64_t b)
{
    /* Chunks are not empty. NOLINTNEXTLINE(clang-analyzer-core.DivideZero) */
    return a / b + (a % b != 0);
}

static uint64_t
least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Whole in the fastest dimensions, a part of one, and single indices of the slower ones. */
static void
cut_contiguous(esdm__cutter *cutter, const esdm__layout *layout)
{
    const esdm__box *box = &cutter->box;
    uint64_t bytes = layout->element_bytes > 0 ? layout->element_bytes : 1;
    bool whole = true;
    for (uint32_t d = box->rank; d-- > 0;) {
        cutter->origin[d] = box->lo[d];
        cutter->cell[d] = 1;
        if (!whole)
            continue;
        uint64_t most = layout->preferred_bytes / bytes;
        if (most >= box->n[d]) {
            cutter->cell[d] = box->n[d];
            bytes = multiply(bytes, box->n[d]);
            continue;
        }
        whole = false;
        uint64_t pieces = divide_up(box->n[d], most > 0 ? most : 1);
        cutter->cell[d] = divide_up(box->n[d], pieces); /* equal in size */
    }
}

/* Splits dimension `d` into twice as many pieces, equal in size. False: they are single indices. */
static bool
halve(esdm__cutter *cutter, uint32_t d)
{
    uint64_t pieces = divide_up(cutter->box.n[d], cutter->cell[d]);
    if (cutter->cell[d] <= 1)
        return false;
    cutter->cell[d] = divide_up(cutter->box.n[d], multiply(2, pieces));
    return true;
}

static uint64_t
box_bytes(const esdm__cutter *cutter, const esdm__layout *layout)
{
    uint64_t bytes = layout->element_bytes > 0 ? layout->element_bytes : 1;
    for (uint32_t d = 0; d < cutter->box.rank; d++)
        bytes = multiply(bytes, cutter->cell[d]);
    return bytes;
}

static void
begin_whole(esdm__cutter *cutter)
{
    for (uint32_t d = 0; d < cutter->box.rank; d++) {
        cutter->origin[d] = cutter->box.lo[d];
        cutter->cell[d] = cutter->box.n[d];
    }
}

/* Whether dimension `d` may become half as long without rows that get too short to be worth it. */
static bool
keeps_rows(const esdm__cutter *cutter, const esdm__layout *layout, uint32_t d)
{
    uint64_t element = layout->element_bytes > 0 ? layout->element_bytes : 1;
    return d + 1 < cutter->box.rank || multiply(cutter->cell[d] / 2, element) >= ROW_BYTES;
}

/* The longest dimension is halved until a piece is small enough. */
static void
cut_equalized(esdm__cutter *cutter, const esdm__layout *layout)
{
    begin_whole(cutter);
    while (box_bytes(cutter, layout) > layout->preferred_bytes) {
        uint32_t longest = cutter->box.rank;
        for (uint32_t d = 0; d < cutter->box.rank; d++) {
            if (cutter->cell[d] > 1 && keeps_rows(cutter, layout, d) &&
                (longest == cutter->box.rank || cutter->cell[d] > cutter->cell[longest]))
                longest = d;
        }
        if (longest == cutter->box.rank)
            longest--; /* short rows after all */
        if (!halve(cutter, longest))
            break;
    }
}

/* The fastest dimension is halved first, then the next one, and the slowest at last. */
static void
cut_series(esdm__cutter *cutter, const esdm__layout *layout)
{
    begin_whole(cutter);
    uint32_t rank = cutter->box.rank;
    for (uint32_t round = 0; round < 2; round++) { /* short rows come last */
        for (uint32_t d = rank; d-- > (round == 0 ? 1u : 0u);) {
            while (box_bytes(cutter, layout) > layout->preferred_bytes &&
                   (round == 1 || keeps_rows(cutter, layout, d)) && halve(cutter, d))
                ;
        }
    }
}

/* Of the largest piece: what lies outside the box is not stored. At least 1. */
static uint64_t
cell_bytes(const esdm__cutter *cutter, const esdm__layout *layout)
{
    uint64_t bytes = layout->element_bytes;
    for (uint32_t d = 0; d < cutter->box.rank; d++)
        bytes = multiply(bytes, least(cutter->cell[d], cutter->box.n[d]));
    return bytes > 0 ? bytes : 1;
}

/* Groups whole chunks, along the fastest dimensions first, until a cell has the minimum. */
static void
cut_chunks(esdm__cutter *cutter, const esdm__layout *layout)
{
    const esdm__box *box = &cutter->box;
    for (uint32_t d = 0; d < box->rank; d++) {
        cutter->cell[d] = layout->chunk[d] > 0 ? layout->chunk[d] : 1;
        cutter->origin[d] = box->lo[d] - box->lo[d] % cutter->cell[d];
    }
    for (uint32_t d = box->rank; d-- > 0;) {
        uint64_t bytes = cell_bytes(cutter, layout);
        uint64_t chunk = cutter->cell[d];
        uint64_t last = box->lo[d] + (box->n[d] - 1);
        uint64_t chunks = last / chunk - box->lo[d] / chunk + 1;
        uint64_t group =
            least(divide_up(layout->minimum_bytes, bytes), layout->preferred_bytes / bytes);
        if (bytes >= layout->minimum_bytes || group < 2 || chunks < 2)
            continue;
        group = divide_up(chunks, divide_up(chunks, least(group, chunks)));
        cutter->cell[d] = multiply(chunk, group);
    }
}

static uint64_t
count_cells(const esdm__cutter *cutter)
{
    const esdm__box *box = &cutter->box;
    uint64_t count = 1;
    for (uint32_t d = 0; d < box->rank; d++) {
        uint64_t first = (box->lo[d] - cutter->origin[d]) / cutter->cell[d];
        uint64_t last = (box->lo[d] + (box->n[d] - 1) - cutter->origin[d]) / cutter->cell[d];
        count = multiply(count, last - first + 1);
    }
    return count;
}

/* Few large cells become more of them. Only where the box is in one cell along the dimension: parts
 * of one chunk then begin where it begins, and no part reaches into another one. */
static void
cut_parts(esdm__cutter *cutter, const esdm__layout *layout)
{
    const esdm__box *box = &cutter->box;
    uint64_t cells = layout->parts > 1 ? count_cells(cutter) : UINT64_MAX;
    uint64_t most = cells < layout->parts ? cell_bytes(cutter, layout) / layout->part_bytes : 0;
    uint32_t d = 0;
    while (d < box->rank && (box->n[d] == 1 || cutter->cell[d] == 1))
        d++;
    if (most < 2 || d == box->rank || box->lo[d] - cutter->origin[d] + box->n[d] > cutter->cell[d])
        return;
    uint64_t parts = least(least(divide_up(layout->parts, cells), most), box->n[d]);
    cutter->origin[d] = box->lo[d];
    cutter->cell[d] = divide_up(box->n[d], parts);
}

void
esdm__cutter_init(esdm__cutter *cutter, const esdm__layout *layout, const esdm__box *box)
{
    memset(cutter, 0, sizeof *cutter);
    esdm__box_copy(&cutter->box, box);
    memcpy(cutter->next, box->lo, box->rank * sizeof *box->lo);
    cutter->done = esdm__box_is_empty(box);
    if (cutter->done)
        return;
    if (layout->chunk != NULL) {
        cut_chunks(cutter, layout);
        cut_parts(cutter, layout);
    } else if (layout->cut == ESDM__CUT_EQUALIZED) {
        cut_equalized(cutter, layout);
    } else if (layout->cut == ESDM__CUT_SERIES) {
        cut_series(cutter, layout);
    } else {
        cut_contiguous(cutter, layout);
    }
}

/* Upper corner, exclusive, of the cell that holds index `at`, inside the box. */
static uint64_t
cell_end(const esdm__cutter *cutter, uint32_t d, uint64_t at)
{
    uint64_t cell = cutter->cell[d];
    uint64_t left = cell - (at - cutter->origin[d]) % cell;
    uint64_t end = cutter->box.lo[d] + cutter->box.n[d];
    return end - at <= left ? end : at + left;
}

bool
esdm__cutter_next(esdm__cutter *cutter, esdm__box *ret_fragment)
{
    const esdm__box *box = &cutter->box;
    if (cutter->done)
        return false;
    ret_fragment->rank = box->rank;
    for (uint32_t d = 0; d < box->rank; d++) {
        ret_fragment->lo[d] = cutter->next[d];
        ret_fragment->n[d] = cell_end(cutter, d, cutter->next[d]) - cutter->next[d];
    }
    cutter->done = true;
    for (uint32_t d = box->rank; d-- > 0;) {
        cutter->next[d] += ret_fragment->n[d];
        if (cutter->next[d] < box->lo[d] + box->n[d]) {
            cutter->done = false;
            break;
        }
        cutter->next[d] = box->lo[d];
    }
    return true;
}

uint64_t
esdm__cutter_count(const esdm__layout *layout, const esdm__box *box)
{
    esdm__cutter cutter;
    esdm__cutter_init(&cutter, layout, box);
    if (cutter.done)
        return 0;
    return count_cells(&cutter);
}
