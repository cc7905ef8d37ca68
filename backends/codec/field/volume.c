/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "volume.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/scratch.h"

#define ROW_LEAST 16 /* shorter rows are joined: room around them would be most of the memory */

field__axes
field__axes_of(const field__block *block)
{
    uint64_t sizes[64] = {1};
    uint32_t rank = 0;
    for (uint32_t i = 0; i < block->rank && i < 64; i++) {
        if (block->shape[i] != 1)
            sizes[rank++] = block->shape[i];
    }
    if (block->rank == 0) {
        sizes[0] = block->elements;
        rank = 1;
    }
    while (rank > 1 && (rank > 4 || sizes[rank - 1] < ROW_LEAST)) {
        if (sizes[rank - 1] < ROW_LEAST) {
            sizes[rank - 2] *= sizes[rank - 1];
        } else {
            sizes[0] *= sizes[1];
            memmove(&sizes[1], &sizes[2], (rank - 2) * sizeof sizes[0]);
        }
        rank--;
    }
    field__axes axes = {1, 1, 1, 1};
    uint64_t *to[4] = {&axes.nx, &axes.ny, &axes.nz, &axes.nb};
    for (uint32_t i = 0; i < rank; i++)
        *to[i] = sizes[rank - 1 - i];
    return axes;
}

bool
field__axes_valid(const field__axes *axes, size_t elements)
{
    uint64_t product = axes->nx;
    return axes->nx > 0 && axes->ny > 0 && axes->nz > 0 && axes->nb > 0 &&
           esdm__mul_u64(product, axes->ny, &product) &&
           esdm__mul_u64(product, axes->nz, &product) &&
           esdm__mul_u64(product, axes->nb, &product) && product == elements &&
           (axes->nx >= ROW_LEAST || axes->nx == elements);
}

esdm_status
field__volume_init(field__volume *volume, const field__axes *axes, bool wide, esdm_error *err)
{
    memset(volume, 0, sizeof *volume);
    volume->axes = *axes;
    volume->rows = (size_t) (axes->nb * axes->nz * axes->ny);
    volume->elements = volume->rows * (size_t) axes->nx;
    volume->stride = (size_t) axes->nx + 2 * FIELD__PAD;
    volume->wide = wide;
    size_t bytes;
    if (!esdm__mul_size(volume->rows, volume->stride, &bytes) ||
        !esdm__mul_size(bytes, wide ? 8 : 4, &bytes))
        return esdm__error_nomem(err, SIZE_MAX, "codes of a block");
    volume->codes = esdm__scratch_new(bytes);
    return volume->codes != NULL ? ESDM_OK : esdm__error_nomem(err, bytes, "codes of a block");
}

void
field__volume_clear(field__volume *volume)
{
    esdm__scratch_free(volume->codes);
    esdm__scratch_free(volume->mask);
    memset(volume, 0, sizeof *volume);
}

static const void *
row_at(const field__volume *volume, size_t row)
{
    return volume->wide ? (const void *) field__row64(volume, row)
                        : (const void *) field__row32(volume, row);
}

uint32_t
field__volume_lines(const field__volume *volume, size_t row, const void *lines[FIELD__LINES])
{
    size_t ny = (size_t) volume->axes.ny;
    size_t nz = (size_t) volume->axes.nz;
    size_t y = row % ny;
    size_t z = row / ny % nz;
    size_t b = row / ny / nz;
    size_t south = y + 1 < ny ? 1 : 0;
    uint32_t class = 0;
    memset(lines, 0, FIELD__LINES * sizeof lines[0]);
    if (y > 0) {
        class |= FIELD__HAS_Y;
        lines[FIELD__N] = row_at(volume, row - 1);
        lines[FIELD__NN] = row_at(volume, row - (y > 1 ? 2 : 1));
    }
    if (z > 0) {
        size_t before = row - ny;
        class |= FIELD__HAS_Z;
        lines[FIELD__Z] = row_at(volume, before);
        lines[FIELD__ZN] = row_at(volume, before - (y > 0 ? 1 : 0));
        lines[FIELD__ZS] = row_at(volume, before + south);
        lines[FIELD__ZZ] = row_at(volume, before - (z > 1 ? ny : 0));
    }
    if (b > 0) {
        size_t before = row - ny * nz;
        class |= FIELD__HAS_B;
        lines[FIELD__B] = row_at(volume, before);
        lines[FIELD__BN] = row_at(volume, before - (y > 0 ? 1 : 0));
        lines[FIELD__BS] = row_at(volume, before + south);
        lines[FIELD__BZ] = row_at(volume, before - (z > 0 ? ny : 0));
    }
    return class;
}

void
field__volume_open_row(const field__volume *volume, uint32_t class,
                       const void *const lines[FIELD__LINES], size_t row)
{
    const void *from = class & FIELD__HAS_Y   ? lines[FIELD__N]
                       : class & FIELD__HAS_Z ? lines[FIELD__Z]
                       : class & FIELD__HAS_B ? lines[FIELD__B]
                                              : NULL;
    if (volume->wide) {
        int64_t value = from != NULL ? *(const int64_t *) from : 0;
        for (int i = 1; i <= FIELD__PAD; i++)
            field__row64(volume, row)[-i] = value;
    } else {
        int32_t value = from != NULL ? *(const int32_t *) from : 0;
        for (int i = 1; i <= FIELD__PAD; i++)
            field__row32(volume, row)[-i] = value;
    }
}

void
field__volume_close_row(const field__volume *volume, size_t row)
{
    size_t nx = (size_t) volume->axes.nx;
    if (volume->wide) {
        int64_t *q = field__row64(volume, row);
        for (size_t i = 0; i < FIELD__PAD; i++) {
            q[-1 - (ptrdiff_t) i] = q[0];
            q[nx + i] = q[nx - 1];
        }
    } else {
        int32_t *q = field__row32(volume, row);
        for (size_t i = 0; i < FIELD__PAD; i++) {
            q[-1 - (ptrdiff_t) i] = q[0];
            q[nx + i] = q[nx - 1];
        }
    }
}

void
field__volume_fill_masked(const field__volume *volume)
{
    size_t nx = (size_t) volume->axes.nx;
    for (size_t row = 0; row < volume->rows; row++) {
        const void *lines[FIELD__LINES];
        uint32_t class = field__volume_lines(volume, row, lines);
        field__volume_open_row(volume, class, lines, row);
        const uint8_t *mask = volume->mask != NULL ? volume->mask + row * nx : NULL;
        for (size_t x = 0; mask != NULL && x < nx; x++) {
            if (mask[x] && volume->wide)
                field__row64(volume, row)[x] = field__row64(volume, row)[(ptrdiff_t) x - 1];
            else if (mask[x])
                field__row32(volume, row)[x] = field__row32(volume, row)[(ptrdiff_t) x - 1];
        }
        field__volume_close_row(volume, row);
    }
}
