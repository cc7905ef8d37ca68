/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/scratch.h"
#include "modes.h"

#define GROUP       FIELD__GROUP_VALUES
#define GROUP_BYTES (GROUP * 4) /* at most */

/* Points that are coded. */
static size_t
count_coded(const field__volume *v)
{
    size_t masked = 0;
    for (size_t i = 0; v->mask != NULL && i < v->elements; i++)
        masked += v->mask[i] != 0;
    return v->elements - masked;
}

static size_t
group_count(size_t coded)
{
    return coded / GROUP + (coded % GROUP != 0);
}

/* A row, what waits before it, and room for a group. */
static uint32_t *
row_new(const field__volume *v, esdm_error *err)
{
    size_t bytes = ((size_t) v->axes.nx + 3 * GROUP) * sizeof(uint32_t);
    uint32_t *row = malloc(bytes);
    if (row == NULL)
        (void) esdm__error_nomem(err, bytes, "a row of differences");
    return row;
}

/* ---- encoding ----------------------------------------------------------------------------- */

/* Packs all rows; returns the end of the planes. */
static uint8_t *
pack_rows(const field__volume *v, uint32_t mode, uint32_t *waiting, uint8_t *widths, uint8_t *to)
{
    const field__kernels *kernels = field__kernels_best();
    size_t nx = (size_t) v->axes.nx;
    size_t have = 0;
    for (size_t r = 0; r < v->rows; r++) {
        const uint8_t *mask = field__modes_mask(v, r);
        field__modes_differences(v, mode, r, nx, waiting + have);
        have += mask != NULL ? kernels->leave_out(waiting + have, mask, nx) : nx;
        if (r + 1 == v->rows) {
            size_t rest = group_count(have) * GROUP - have;
            memset(waiting + have, 0, rest * sizeof *waiting);
            have += rest;
        }
        size_t groups = have / GROUP;
        to = kernels->pack_groups(waiting, groups, widths, to);
        widths += groups;
        have %= GROUP;
        memmove(waiting, waiting + groups * GROUP, have * sizeof *waiting);
    }
    return to;
}

/* Widths of four bits each, where all are small enough: returns how many bytes they take. */
static size_t
put_widths(uint8_t *widths, size_t groups, uint8_t *ret_bits)
{
    uint8_t any = 0;
    for (size_t i = 0; i < groups; i++)
        any |= widths[i];
    *ret_bits = any < 16 ? 4 : 8;
    if (any >= 16)
        return groups;
    for (size_t i = 0; i < groups; i += 2)
        widths[i / 2] = (uint8_t) (widths[i] | (i + 1 < groups ? widths[i + 1] << 4 : 0));
    return (groups + 1) / 2;
}

esdm_status
field__groups_encode(const field__volume *volume, esdm__buffer *out, esdm_error *err)
{
    uint32_t *waiting = row_new(volume, err);
    if (waiting == NULL)
        return ESDM_ENOMEM;
    if (volume->mask != NULL)
        field__modes_fill(volume);
    size_t groups = group_count(count_coded(volume));
    uint32_t mode = field__modes_choose(volume, GROUP, waiting);
    uint8_t *start = esdm__buffer_reserve(out, 2 + groups + groups * GROUP_BYTES);
    if (start == NULL) {
        free(waiting);
        return esdm__error_nomem(err, groups * GROUP_BYTES, "packed values");
    }
    uint8_t *widths = start + 2;
    uint8_t *planes = widths + groups;
    size_t bytes = (size_t) (pack_rows(volume, mode, waiting, widths, planes) - planes);
    start[0] = (uint8_t) mode;
    size_t widths_bytes = put_widths(widths, groups, &start[1]);
    memmove(widths + widths_bytes, planes, bytes);
    out->bytes += 2 + widths_bytes + bytes;
    free(waiting);
    return ESDM_OK;
}

/* ---- decoding ----------------------------------------------------------------------------- */

typedef struct decoder {
    const field__volume *volume;
    uint32_t mode;
    uint8_t *widths; /* owned; a byte for each group */
    const uint8_t *from;
    uint32_t *waiting, *spread; /* owned; rows */
} decoder;

/* The widths, and whether the planes are there. */
static bool
get_widths(decoder *d, size_t groups, esdm__cursor *in)
{
    uint8_t bits = esdm__cursor_u8(in);
    if (in->failed || (bits != 4 && bits != 8))
        return false;
    const uint8_t *from = esdm__cursor_take(in, bits == 8 ? groups : (groups + 1) / 2);
    uint64_t planes = 0;
    if (from == NULL)
        return false;
    for (size_t i = 0; i < groups; i++) {
        uint32_t width = bits == 8 ? from[i] : from[i / 2] >> 4 * (i % 2) & 15u;
        if (width > 32)
            return false;
        d->widths[i] = (uint8_t) width;
        planes += width;
    }
    if (planes > esdm__cursor_left(in) / 8)
        return false;
    d->from = esdm__cursor_take(in, (size_t) planes * 8);
    return d->from != NULL;
}

static void
decode_rows(decoder *d, field__row_sink sink, void *user)
{
    const field__kernels *kernels = field__kernels_best();
    const field__volume *v = d->volume;
    size_t nx = (size_t) v->axes.nx;
    const uint8_t *widths = d->widths;
    size_t have = 0;
    for (size_t r = 0; r < v->rows; r++) {
        const uint8_t *mask = field__modes_mask(v, r);
        field__near at = field__modes_near(v, d->mode, r);
        size_t count = nx;
        for (size_t x = 0; mask != NULL && x < nx; x++)
            count -= mask[x] != 0;
        size_t groups = count > have ? group_count(count - have) : 0;
        d->from = kernels->unpack_groups(d->from, widths, groups, d->waiting + have);
        widths += groups;
        have += groups * GROUP - count;
        if (mask == NULL) {
            kernels->restore_row(d->waiting, at.n, at.z, at.zn, nx, field__row32(v, r));
        } else {
            kernels->put_between(d->waiting, mask, nx, d->spread);
            kernels->restore_masked(d->spread, mask, field__modes_filling(v, r), at.n, at.z, at.zn,
                                    nx, field__row32(v, r));
        }
        memmove(d->waiting, d->waiting + count, have * sizeof *d->waiting);
        sink(user, v, r);
    }
}

esdm_status
field__groups_decode(const field__volume *volume, esdm__cursor *in, field__row_sink sink,
                     void *user, esdm_error *err)
{
    decoder d = {.volume = volume, .mode = esdm__cursor_u8(in)};
    size_t groups = group_count(count_coded(volume));
    esdm_status st = ESDM_OK;
    if (in->failed || volume->wide || d.mode < FIELD__MODE_X || d.mode >= FIELD__MODES ||
        esdm__cursor_left(in) < groups / 2)
        return esdm__error_set(err, ESDM_ECORRUPT, "field: bad parameters of packed values");
    d.widths = malloc(groups + 1);
    d.waiting = row_new(volume, err);
    d.spread = row_new(volume, err);
    if (d.widths == NULL || d.waiting == NULL || d.spread == NULL)
        st = esdm__error_nomem(err, groups, "packed values");
    else if (!get_widths(&d, groups, in))
        st = esdm__error_set(err, ESDM_ECORRUPT, "field: packed values are cut off");
    else
        decode_rows(&d, sink, user);
    free(d.widths);
    free(d.waiting);
    free(d.spread);
    return st;
}
