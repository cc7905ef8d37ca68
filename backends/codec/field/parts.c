/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "parts.h"

#include <string.h>

#include "base/error.h"
#include "base/scratch.h"

/* Sizes below which parts lose more by their edges than they are worth. */
#define LEAST_ROWS    12u
#define LEAST_PLANES  12u
#define LEAST_VOLUMES 4u
#define LEAST_COLUMNS 4096u

static uint64_t
pieces_of(uint64_t size, uint64_t extent)
{
    return size / extent + (size % extent != 0);
}

/* Divides an axis into at most `wanted` equal ranges; returns how many are still wanted. */
static uint64_t
divide(uint64_t size, uint64_t least, uint64_t wanted, uint64_t *ret_extent)
{
    uint64_t most = size / least > 1 ? size / least : 1;
    *ret_extent = pieces_of(size, wanted < most ? wanted : most);
    return pieces_of(wanted, pieces_of(size, *ret_extent));
}

static bool
count_parts(field__parts *parts)
{
    const field__axes *w = &parts->whole;
    const field__axes *e = &parts->extent;
    uint64_t count = pieces_of(w->nb, e->nb) * pieces_of(w->nz, e->nz);
    uint64_t elements = w->nb * w->nz * w->ny * w->nx;
    uint64_t most = elements / FIELD__PART_LEAST + 1;
    if (count > most)
        return false;
    count *= pieces_of(w->ny, e->ny);
    if (count > most)
        return false;
    count *= pieces_of(w->nx, e->nx);
    parts->count = (size_t) count;
    return count <= most;
}

bool
field__parts_choose(const field__axes *axes, field__parts *ret_parts)
{
    uint64_t elements = axes->nb * axes->nz * axes->ny * axes->nx;
    uint64_t wanted = pieces_of(elements, FIELD__PART_ELEMENTS);
    *ret_parts = (field__parts){.whole = *axes, .extent = *axes};
    if (elements <= FIELD__PART_ELEMENTS + FIELD__PART_ELEMENTS / 2)
        return false;
    wanted = divide(axes->ny, LEAST_ROWS, wanted, &ret_parts->extent.ny);
    wanted = divide(axes->nz, LEAST_PLANES, wanted, &ret_parts->extent.nz);
    wanted = divide(axes->nb, LEAST_VOLUMES, wanted, &ret_parts->extent.nb);
    (void) divide(axes->nx, LEAST_COLUMNS, wanted, &ret_parts->extent.nx);
    return count_parts(ret_parts) && ret_parts->count > 1;
}

void
field__parts_put(const field__parts *parts, esdm__buffer *out)
{
    esdm__buffer_put_varint(out, parts->extent.nb);
    esdm__buffer_put_varint(out, parts->extent.nz);
    esdm__buffer_put_varint(out, parts->extent.ny);
    esdm__buffer_put_varint(out, parts->extent.nx);
}

bool
field__parts_get(const field__axes *axes, esdm__cursor *in, field__parts *ret_parts)
{
    field__axes *e = &ret_parts->extent;
    ret_parts->whole = *axes;
    e->nb = esdm__cursor_varint(in);
    e->nz = esdm__cursor_varint(in);
    e->ny = esdm__cursor_varint(in);
    e->nx = esdm__cursor_varint(in);
    return !in->failed && e->nb >= 1 && e->nb <= axes->nb && e->nz >= 1 && e->nz <= axes->nz &&
           e->ny >= 1 && e->ny <= axes->ny && e->nx >= 1 && e->nx <= axes->nx &&
           count_parts(ret_parts);
}

static uint64_t
least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

field__part
field__parts_at(const field__parts *parts, size_t i)
{
    const field__axes *w = &parts->whole;
    const field__axes *e = &parts->extent;
    field__part part;
    uint64_t rest = i;
    part.at.nx = rest % pieces_of(w->nx, e->nx) * e->nx;
    rest /= pieces_of(w->nx, e->nx);
    part.at.ny = rest % pieces_of(w->ny, e->ny) * e->ny;
    rest /= pieces_of(w->ny, e->ny);
    part.at.nz = rest % pieces_of(w->nz, e->nz) * e->nz;
    part.at.nb = rest / pieces_of(w->nz, e->nz) * e->nb;
    part.axes.nx = least_of(e->nx, w->nx - part.at.nx);
    part.axes.ny = least_of(e->ny, w->ny - part.at.ny);
    part.axes.nz = least_of(e->nz, w->nz - part.at.nz);
    part.axes.nb = least_of(e->nb, w->nb - part.at.nb);
    return part;
}

/* Its number among the rows of the block. */
static size_t
row_of(const field__parts *parts, const field__part *part, size_t r)
{
    uint64_t y = part->at.ny + r % part->axes.ny;
    uint64_t z = part->at.nz + r / part->axes.ny % part->axes.nz;
    uint64_t b = part->at.nb + r / part->axes.ny / part->axes.nz;
    return (size_t) ((b * parts->whole.nz + z) * parts->whole.ny + y);
}

size_t
field__part_row(const field__parts *parts, const field__part *part, size_t r)
{
    return row_of(parts, part, r) * (size_t) parts->whole.nx + (size_t) part->at.nx;
}

void
field__parts_mark(const field__parts *parts, size_t from, size_t to, uint8_t *marks)
{
    const field__axes *w = &parts->whole;
    const field__axes *e = &parts->extent;
    uint64_t across = pieces_of(w->nx, e->nx);
    for (uint64_t at = from; at < to;) {
        uint64_t row = at / w->nx;
        uint64_t end = least_of((row + 1) * w->nx, to);
        uint64_t y = row % w->ny;
        uint64_t z = row / w->ny % w->nz;
        uint64_t b = row / w->ny / w->nz;
        uint64_t part =
            ((b / e->nb * pieces_of(w->nz, e->nz) + z / e->nz) * pieces_of(w->ny, e->ny) +
             y / e->ny) *
            across;
        for (uint64_t x = at % w->nx / e->nx; x <= (end - 1) % w->nx / e->nx; x++)
            marks[part + x] = 1;
        at = end;
    }
}

static void *
codes_of(const field__volume *volume, size_t row, size_t x)
{
    return volume->wide ? (void *) (field__row64(volume, row) + x)
                        : (void *) (field__row32(volume, row) + x);
}

esdm_status
field__part_cut(const field__parts *parts, const field__part *part, const field__volume *volume,
                const uint8_t *mask, field__volume *ret_volume, esdm_error *err)
{
    esdm_status st = field__volume_init(ret_volume, &part->axes, volume->wide, err);
    size_t nx = (size_t) part->axes.nx;
    size_t bytes = nx * (volume->wide ? 8 : 4);
    bool masked = false;
    if (st == ESDM_OK && mask != NULL) {
        ret_volume->mask = esdm__scratch_new(ret_volume->elements);
        if (ret_volume->mask == NULL) {
            field__volume_clear(ret_volume);
            return esdm__error_nomem(err, ret_volume->elements, "a mask");
        }
    }
    for (size_t r = 0; st == ESDM_OK && r < ret_volume->rows; r++) {
        memcpy(codes_of(ret_volume, r, 0),
               codes_of(volume, row_of(parts, part, r), (size_t) part->at.nx), bytes);
        if (mask == NULL)
            continue;
        const uint8_t *from = mask + field__part_row(parts, part, r);
        masked = masked || memchr(from, 1, nx) != NULL;
        memcpy(ret_volume->mask + r * nx, from, nx);
    }
    if (st == ESDM_OK && !masked) {
        esdm__scratch_free(ret_volume->mask);
        ret_volume->mask = NULL;
    }
    return st;
}

void
field__part_paste(const field__parts *parts, const field__part *part, const field__volume *from,
                  const field__volume *volume)
{
    size_t bytes = (size_t) part->axes.nx * (volume->wide ? 8 : 4);
    for (size_t r = 0; r < from->rows; r++)
        memcpy(codes_of(volume, row_of(parts, part, r), (size_t) part->at.nx), codes_of(from, r, 0),
               bytes);
}
