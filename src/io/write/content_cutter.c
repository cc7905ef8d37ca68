/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/write/content_cutter.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Bytes that decide of a cut. */
#define WINDOW 64u
/* Bytes of a row: of the slowest axis, and of another one or of a single element. */
#define ROW       (ESDM__CONTENT_BYTES / 16)
#define SMALL_ROW (ESDM__CONTENT_BYTES / 64)
/* Of slower axes: how many lists there are at most, and bytes of each at least. */
#define LISTS     64u
#define LONG_LIST (4 * ESDM__CONTENT_BYTES)

/* Vigna's splitmix64, https://prng.di.unimi.it/splitmix64.c (public domain): the n-th number. */
static uint64_t
number(uint64_t n)
{
    uint64_t z = (n + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Bytes of all indices of the axes from `first` on. */
static uint64_t
bytes_from(const esdm__transfer *transfer, const esdm__box *box, uint32_t first)
{
    uint64_t bytes = transfer->elements->bytes;
    for (uint32_t d = first; d < box->rank; d++)
        bytes *= box->n[d];
    return bytes;
}

/* Along which axis. false: as without it. */
static bool
find_axis(const esdm__transfer *transfer, const esdm__box *box, uint32_t *ret_axis)
{
    uint64_t lists = 1;
    if (box->rank == 0)
        return false;
    *ret_axis = 0;
    if (bytes_from(transfer, box, 1) <= (box->rank == 1 ? SMALL_ROW : ROW))
        return true;
    for (uint32_t a = 1; a < box->rank; a++) {
        lists *= box->n[a - 1];
        *ret_axis = a;
        if (lists > LISTS)
            return false;
        if (bytes_from(transfer, box, a + 1) <= SMALL_ROW)
            return bytes_from(transfer, box, a) >= LONG_LIST;
    }
    return false;
}

bool
esdm__content_can_cut(const esdm__transfer *transfer, const esdm__box *box)
{
    uint32_t axis;
    return !esdm__elements_vary(transfer->elements) && esdm__box_elements(box) > 0 &&
           find_axis(transfer, box, &axis);
}

esdm_status
esdm__content_cutter_init(esdm__content_cutter *cutter, const esdm__transfer *transfer,
                          const esdm__box *box, esdm_error *err)
{
    unsigned bits = 0;
    memset(cutter, 0, sizeof *cutter);
    (void) find_axis(transfer, box, &cutter->axis);
    cutter->row = bytes_from(transfer, box, cutter->axis + 1);
    uint64_t average = ESDM__CONTENT_BYTES / cutter->row;
    while (UINT64_C(2) << bits <= average)
        bits++;
    cutter->transfer = transfer;
    cutter->box = box;
    cutter->least = average / 4;
    cutter->most = average * 4;
    cutter->mask = ~(UINT64_MAX >> bits);
    for (unsigned i = 0; i < 256; i++)
        cutter->gear[i] = number(i);
    cutter->copy = malloc(cutter->most * cutter->row);
    return cutter->copy != NULL ? ESDM_OK
                                : esdm__error_nomem(err, cutter->most * cutter->row, "a write");
}

/* Whether the caller's memory has rows as they are stored. */
static bool
is_dense(const esdm__content_cutter *cutter, uint64_t count)
{
    const esdm__memory *source = &cutter->transfer->memory;
    const esdm__box *box = cutter->box;
    int64_t stride = 1;
    if (source->form != cutter->transfer->elements->type)
        return false;
    for (uint32_t d = box->rank; d-- > cutter->axis;) {
        uint64_t n = d == cutter->axis ? count : box->n[d];
        if (n > 1 && source->stride[d] != stride)
            return false;
        stride *= (int64_t) n;
    }
    return true;
}

/* Rows from `next` on, as they are stored: the caller's memory where it has them so. */
static const uint8_t *
rows_at(const esdm__content_cutter *cutter, uint64_t count)
{
    const esdm__elements *e = cutter->transfer->elements;
    const esdm__box *box = cutter->box;
    esdm__memory source = cutter->transfer->memory;
    uint32_t rank = box->rank - cutter->axis;
    uint64_t n[ESDM_MAX_RANK];
    int64_t dense[ESDM_MAX_RANK];
    int64_t at = (int64_t) cutter->next * source.stride[cutter->axis];
    uint64_t ignored = 0; /* counted when they are stored */
    for (uint32_t d = 0; d < cutter->axis; d++)
        at += (int64_t) cutter->list[d] * source.stride[d];
    source.data = (uint8_t *) source.data + at * (int64_t) esdm__elements_bytes(e, source.form);
    if (is_dense(cutter, count))
        return source.data;
    int64_t stride = 1;
    for (uint32_t d = rank; d-- > 0;) {
        n[d] = d == 0 ? count : box->n[cutter->axis + d];
        dense[d] = stride;
        stride *= (int64_t) n[d];
    }
    source.stride += cutter->axis;
    const esdm__memory copy = {e->type, cutter->copy, dense};
    esdm__elements_copy(e, rank, n, &source, &copy, &ignored);
    return cutter->copy;
}

/* Rows of the first piece. Of long rows only the last bytes decide. */
static uint64_t
first_piece(const esdm__content_cutter *cutter, const uint8_t *data, uint64_t count)
{
    uint64_t row = cutter->row;
    uint64_t hash = 0;
    if (count <= cutter->least)
        return count;
    uint64_t i = cutter->least * row - WINDOW;
    while (i < count * row) {
        hash = (hash << 1) + cutter->gear[data[i++]];
        if (i % row != 0 || i < cutter->least * row)
            continue;
        if ((hash & cutter->mask) == 0)
            return i / row;
        if (row > WINDOW) /* shifts push out what came before */
            i += row - WINDOW;
    }
    return count;
}

/* The next list. */
static void
next_list(esdm__content_cutter *cutter)
{
    cutter->next = 0;
    for (uint32_t d = cutter->axis; d-- > 0;) {
        if (++cutter->list[d] < cutter->box->n[d])
            return;
        cutter->list[d] = 0;
    }
    cutter->done = true;
}

bool
esdm__content_cutter_next(esdm__content_cutter *cutter, esdm__box *ret_fragment)
{
    if (cutter->done)
        return false;
    uint64_t left = cutter->box->n[cutter->axis] - cutter->next;
    uint64_t count = left < cutter->most ? left : cutter->most;
    esdm__box_copy(ret_fragment, cutter->box);
    for (uint32_t d = 0; d < cutter->axis; d++) {
        ret_fragment->lo[d] += cutter->list[d];
        ret_fragment->n[d] = 1;
    }
    ret_fragment->lo[cutter->axis] += cutter->next;
    ret_fragment->n[cutter->axis] = first_piece(cutter, rows_at(cutter, count), count);
    cutter->next += ret_fragment->n[cutter->axis];
    if (cutter->next == cutter->box->n[cutter->axis])
        next_list(cutter);
    return true;
}

void
esdm__content_cutter_clear(esdm__content_cutter *cutter)
{
    free(cutter->copy);
    cutter->copy = NULL;
}
