/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "modes.h"

#include <string.h>

#define PROBES 24    /* rows that the mode is chosen by */
#define PROBED 2048u /* values of each */

const void *
field__modes_nearest(uint32_t class, const void *const all[FIELD__LINES])
{
    return (class & FIELD__HAS_Y) != 0   ? all[FIELD__N]
           : (class & FIELD__HAS_Z) != 0 ? all[FIELD__Z]
           : (class & FIELD__HAS_B) != 0 ? all[FIELD__B]
                                         : NULL;
}

field__near
field__modes_near(const field__volume *v, uint32_t mode, size_t r)
{
    const void *all[FIELD__LINES];
    uint32_t class = field__volume_lines(v, r, all);
    bool has_z = (class & FIELD__HAS_Z) != 0;
    bool z = (class & (FIELD__HAS_Z | FIELD__HAS_B)) != 0 &&
             (mode == FIELD__MODE_Z || mode == FIELD__MODE_YZ);
    bool n = (class & FIELD__HAS_Y) != 0 &&
             (mode == FIELD__MODE_Y || mode == FIELD__MODE_YZ || (mode == FIELD__MODE_Z && !z));
    return (field__near){.n = n ? all[FIELD__N] : NULL,
                         .z = z ? all[has_z ? FIELD__Z : FIELD__B] : NULL,
                         .zn = z && n ? all[has_z ? FIELD__ZN : FIELD__BN] : NULL};
}

const int32_t *
field__modes_filling(const field__volume *v, size_t r)
{
    const void *all[FIELD__LINES];
    uint32_t class = field__volume_lines(v, r, all);
    return field__modes_nearest(class, all);
}

const uint8_t *
field__modes_mask(const field__volume *v, size_t r)
{
    size_t nx = (size_t) v->axes.nx;
    const uint8_t *mask = v->mask != NULL ? v->mask + r * nx : NULL;
    return mask != NULL && memchr(mask, 1, nx) != NULL ? mask : NULL;
}

void
field__modes_fill(const field__volume *v)
{
    size_t nx = (size_t) v->axes.nx;
    for (size_t r = 0; r < v->rows; r++) {
        const uint8_t *mask = field__modes_mask(v, r);
        if (mask == NULL)
            continue;
        field__kernels_best()->fill(field__modes_filling(v, r), mask, nx, field__row32(v, r));
    }
}

void
field__modes_differences(const field__volume *v, uint32_t mode, size_t r, size_t count,
                         uint32_t *out)
{
    field__near at = field__modes_near(v, mode, r);
    field__kernels_best()->difference_row(field__row32(v, r), at.n, at.z, at.zn, count, out);
}

/* Bits of the differences of some rows. */
static uint64_t
mode_cost(const field__volume *v, uint32_t mode, size_t group, uint32_t *folded)
{
    size_t nx = v->axes.nx < PROBED ? (size_t) v->axes.nx : PROBED;
    size_t step = v->rows / PROBES + 1;
    uint64_t bits = 0;
    for (size_t r = step / 2; r < v->rows; r += step) {
        field__modes_differences(v, mode, r, nx, folded);
        const uint8_t *mask = field__modes_mask(v, r);
        size_t count = mask != NULL ? field__kernels_best()->leave_out(folded, mask, nx) : nx;
        for (size_t first = 0; first < count; first += group) {
            uint32_t any = 1;
            for (size_t i = first; i < first + group && i < count; i++)
                any |= folded[i];
            bits += 32 - (uint32_t) __builtin_clz(any);
        }
    }
    return bits;
}

uint32_t
field__modes_choose(const field__volume *v, size_t group, uint32_t *folded)
{
    bool has_y = v->axes.ny > 1;
    bool has_z = v->axes.nz > 1 || v->axes.nb > 1;
    uint32_t best = FIELD__MODE_X;
    uint64_t least = mode_cost(v, FIELD__MODE_X, group, folded);
    for (uint32_t mode = FIELD__MODE_Y; mode < FIELD__MODES; mode++) {
        if ((!has_y && mode != FIELD__MODE_Z) || (!has_z && mode != FIELD__MODE_Y))
            continue;
        uint64_t cost = mode_cost(v, mode, group, folded);
        if (cost < least) {
            least = cost;
            best = mode;
        }
    }
    return best;
}
