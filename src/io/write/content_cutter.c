/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/write/content_cutter.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Bytes that decide of a cut. */
#define WINDOW 64u

/* Vigna's splitmix64, https://prng.di.unimi.it/splitmix64.c (public domain): the n-th number. */
static uint64_t
number(uint64_t n)
{
    uint64_t z = (n + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

bool
esdm__content_can_cut(const esdm__transfer *transfer, const esdm__box *box)
{
    return box->rank == 1 && !esdm__elements_vary(transfer->elements) &&
           transfer->elements->bytes <= ESDM__CONTENT_BYTES / 64;
}

esdm_status
esdm__content_cutter_init(esdm__content_cutter *cutter, const esdm__transfer *transfer,
                          const esdm__box *box, esdm_error *err)
{
    uint64_t each = transfer->elements->bytes;
    uint64_t average = ESDM__CONTENT_BYTES / each;
    unsigned bits = 0;
    memset(cutter, 0, sizeof *cutter);
    while (UINT64_C(2) << bits <= average)
        bits++;
    cutter->transfer = transfer;
    cutter->box = box;
    cutter->least = average / 4;
    cutter->most = average * 4;
    cutter->mask = ~(UINT64_MAX >> bits);
    for (unsigned i = 0; i < 256; i++)
        cutter->gear[i] = number(i);
    cutter->copy = malloc(cutter->most * each);
    return cutter->copy != NULL ? ESDM_OK : esdm__error_nomem(err, cutter->most * each, "a write");
}

/* Elements from `next` on, as they are stored: the caller's memory where it has them so. */
static const uint8_t *
elements_at(const esdm__content_cutter *cutter, uint64_t count)
{
    static const int64_t one = 1;
    const esdm__elements *e = cutter->transfer->elements;
    esdm__memory source = cutter->transfer->memory;
    int64_t at = (int64_t) cutter->next * source.stride[0];
    uint64_t ignored = 0; /* counted when they are stored */
    source.data = (uint8_t *) source.data + at * (int64_t) esdm__elements_bytes(e, source.form);
    if (source.form == e->type && (source.stride[0] == 1 || count == 1))
        return source.data;
    const esdm__memory copy = {e->type, cutter->copy, &one};
    esdm__elements_copy(e, 1, &count, &source, &copy, &ignored);
    return cutter->copy;
}

/* Elements of the first piece. */
static uint64_t
first_piece(const esdm__content_cutter *cutter, const uint8_t *data, uint64_t count)
{
    uint64_t each = cutter->transfer->elements->bytes;
    uint64_t hash = 0;
    if (count <= cutter->least)
        return count;
    for (uint64_t i = cutter->least * each - WINDOW; i < count * each; i++) {
        hash = (hash << 1) + cutter->gear[data[i]];
        if ((hash & cutter->mask) == 0 && (i + 1) % each == 0 && i + 1 >= cutter->least * each)
            return (i + 1) / each;
    }
    return count;
}

bool
esdm__content_cutter_next(esdm__content_cutter *cutter, esdm__box *ret_fragment)
{
    uint64_t left = cutter->box->n[0] - cutter->next;
    uint64_t count = left < cutter->most ? left : cutter->most;
    if (left == 0)
        return false;
    esdm__box_copy(ret_fragment, cutter->box);
    ret_fragment->lo[0] += cutter->next;
    ret_fragment->n[0] = first_piece(cutter, elements_at(cutter, count), count);
    cutter->next += ret_fragment->n[0];
    return true;
}

void
esdm__content_cutter_clear(esdm__content_cutter *cutter)
{
    free(cutter->copy);
    cutter->copy = NULL;
}
