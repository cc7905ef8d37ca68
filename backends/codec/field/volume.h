/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef FIELD_VOLUME_H
#define FIELD_VOLUME_H

/** @file Codes of a block on at most four axes b, z, y, x (x fastest), in rows with room around. */

#include "field.h"
#include "kernels.h"

typedef struct field__axes {
    uint64_t nb, nz, ny, nx;
} field__axes;

typedef struct field__volume {
    field__axes axes;
    size_t elements;
    size_t rows;   /**< nb * nz * ny */
    size_t stride; /**< elements from row to row: nx + 2 * FIELD__PAD */
    bool wide;     /**< codes are int64_t, else int32_t */
    void *codes;   /**< owned; rows * stride elements */
    uint8_t *mask; /**< base/scratch.h, or NULL; one byte per element (no padding), 1: not coded */
} field__volume;

/** The axes to treat a block of that shape by: axes of one element dropped, short ones joined. */
field__axes field__axes_of(const field__block *block);
/** Their product is `elements`, and no row needs more room than it is worth. */
bool field__axes_valid(const field__axes *axes, size_t elements);

/** Allocates codes, not initialised. ESDM_ENOMEM. */
esdm_status field__volume_init(field__volume *volume, const field__axes *axes, bool wide,
                               esdm_error *err);
void field__volume_clear(field__volume *volume); /* a zeroed one is accepted */

static inline int32_t *
field__row32(const field__volume *volume, size_t row)
{
    return (int32_t *) volume->codes + row * volume->stride + FIELD__PAD;
}

static inline int64_t *
field__row64(const field__volume *volume, size_t row)
{
    return (int64_t *) volume->codes + row * volume->stride + FIELD__PAD;
}

/** The class of a row and the rows around it that it has. */
uint32_t field__volume_lines(const field__volume *volume, size_t row,
                             const void *lines[FIELD__LINES]);
/** Sets what lies before a row to the first element of the nearest row before it, or 0. */
void field__volume_open_row(const field__volume *volume, uint32_t class,
                            const void *const lines[FIELD__LINES], size_t row);
/** Sets what lies around a complete row to its ends. */
void field__volume_close_row(const field__volume *volume, size_t row);
/** Gives masked points the value of their neighbour, as the decoder does. */
void field__volume_fill_masked(const field__volume *volume);

#endif
