/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Large blocks of mode archive in parts (parts.h): ways to code them race on a few parts. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/scratch.h"
#include "encode.h"

#define SAMPLES_PART 12000 /* that weights of a part are fitted to */

/* One part in so many is coded in all ways first, of a few parts each second one; of ways that are
 * close, twice as many. */
#define STRIDE 4u
#define FEW    8u
#define CLOSE  1.03

/* The mask of a part and the elements under it; *ret_all: there are no others. */
static esdm_status
put_part_specials(const field__job *job, const field__parts *parts, const field__part *part,
                  const field__volume *volume, esdm__buffer *out, bool *ret_all, esdm_error *err)
{
    size_t size = field__kind_bytes(job->kind);
    size_t nx = (size_t) part->axes.nx;
    *ret_all = false;
    if (volume->mask == NULL) {
        esdm__buffer_put_u8(out, 0);
        return ESDM_OK;
    }
    uint8_t *elements = esdm__scratch_new(volume->elements * size);
    if (elements == NULL)
        return esdm__error_nomem(err, volume->elements * size, "special values");
    uint8_t *end = elements;
    for (size_t r = 0; r < volume->rows; r++) {
        const uint8_t *raw = (const uint8_t *) job->raw;
        end = field__gather(volume->mask + r * nx, nx, raw + field__part_row(parts, part, r) * size,
                            size, end);
    }
    size_t bytes = (size_t) (end - elements);
    bool one = field__all_same(elements, bytes, size);
    *ret_all = bytes == volume->elements * size;
    esdm__buffer_put_u8(out, FIELD__FLAG_MASK | (one ? FIELD__FLAG_ONE : 0));
    esdm_status st =
        field__put_specials(volume->mask, &part->axes, elements, bytes, size, one, out, err);
    esdm__scratch_free(elements);
    return st;
}

/* A way to code all parts. */
typedef struct way {
    field__coding coding;
    const field__map *map;
    const field__volume *volume;
    esdm__buffer *parts; /* owned: what is coded of each; empty: nothing yet */
    bool out;            /* it lost, or does not do */
    bool never;          /* it never does */
} way;

static esdm_status
code_part(const field__job *job, const field__parts *parts, const way *w, size_t i, esdm_error *err)
{
    field__part part = field__parts_at(parts, i);
    esdm__buffer *out = &w->parts[i];
    field__volume volume;
    bool all = false;
    esdm_status st =
        field__part_cut(parts, &part, w->volume, job->masked > 0 ? job->mask : NULL, &volume, err);
    if (st != ESDM_OK)
        return st;
    st = put_part_specials(job, parts, &part, &volume, out, &all, err);
    if (st == ESDM_OK && !all)
        st = field__put_codes(&w->coding, &volume, out, err);
    if (st == ESDM_OK && w->coding.coder == FIELD__CODER_LEVELS)
        field__part_paste(parts, &part, &volume, w->volume);
    field__volume_clear(&volume);
    if (st == ESDM_OK && out->failed)
        st = esdm__error_nomem(err, out->bytes, "an encoded block");
    return st;
}

/* One part in `stride`, the first of which is in the middle of as many. */
static esdm_status
code_some(const field__job *job, const field__parts *parts, const way *w, size_t stride,
          esdm_error *err)
{
    esdm_status st = ESDM_OK;
    for (size_t i = stride / 2; i < parts->count && st == ESDM_OK; i += stride) {
        if (w->parts[i].bytes == 0)
            st = code_part(job, parts, w, i, err);
    }
    return st;
}

static size_t
bytes_of(const field__parts *parts, const way *w, size_t stride)
{
    size_t bytes = 0;
    for (size_t i = stride / 2; i < parts->count; i += stride)
        bytes += w->parts[i].bytes;
    return bytes;
}

/* The way with the fewest bytes of one part in `stride`; those that are not close to it are out. */
static way *
leader(const field__parts *parts, way *ways, size_t count, size_t stride, size_t *ret_left)
{
    way *best = NULL;
    for (size_t k = 0; k < count; k++) {
        if (!ways[k].out &&
            (best == NULL || bytes_of(parts, &ways[k], stride) < bytes_of(parts, best, stride)))
            best = &ways[k];
    }
    *ret_left = 0;
    for (size_t k = 0; k < count && best != NULL; k++) {
        ways[k].out = ways[k].out || (double) bytes_of(parts, &ways[k], stride) >
                                         CLOSE * (double) bytes_of(parts, best, stride);
        *ret_left += !ways[k].out;
    }
    return best;
}

/* Codes a few parts in all ways that are left, and all in the shortest. */
static esdm_status
race(const field__job *job, const field__parts *parts, way *ways, size_t count, way **ret_winner,
     esdm_error *err)
{
    const size_t first = parts->count < FEW ? STRIDE / 2 : STRIDE;
    esdm_status st = ESDM_OK;
    size_t left = 0;
    for (size_t k = 0; k < count; k++)
        left += !ways[k].out;
    for (size_t stride = first; stride >= first / 2 && left > 1; stride /= 2) {
        for (size_t k = 0; k < count && st == ESDM_OK; k++) {
            if (!ways[k].out)
                st = code_some(job, parts, &ways[k], stride, err);
        }
        if (st != ESDM_OK)
            return st;
        *ret_winner = leader(parts, ways, count, stride, &left);
    }
    for (size_t k = 0; k < count && left == 1; k++) {
        if (!ways[k].out)
            *ret_winner = &ways[k];
    }
    return code_some(job, parts, *ret_winner, 1, err);
}

static esdm_status
put_parts(const field__job *job, const field__parts *parts, const way *w, esdm__buffer *out,
          esdm_error *err)
{
    const size_t start = out->bytes;
    const bool nudged = w->map->nudged != 0;
    const uint8_t flags =
        (w->volume->wide ? FIELD__FLAG_WIDE : 0) | (nudged ? FIELD__FLAG_PARTS : 0);
    field__put_head(job, w->coding.coder, flags, out);
    if (!out->failed)
        out->data[start] = nudged ? FIELD__VERSION_NUDGED : FIELD__VERSION_PARTS;
    field__map_put(w->map, out);
    esdm_status st =
        w->map->kind == FIELD__MAP_PALETTE ? field__palette_put(w->map, out, err) : ESDM_OK;
    field__parts_put(parts, out);
    for (size_t i = 0; i < parts->count; i++)
        esdm__buffer_put_varint(out, w->parts[i].bytes);
    for (size_t i = 0; i < parts->count && st == ESDM_OK; i++)
        esdm__buffer_put(out, w->parts[i].data, w->parts[i].bytes);
    return st;
}

static esdm_status
race_and_put(field__job *job, const field__parts *parts, field__map *refined, way *ways,
             size_t count, esdm__buffer *out, esdm_error *err)
{
    way *winner = NULL;
    esdm_status st = race(job, parts, ways, count, &winner, err);
    if (st == ESDM_OK && winner->coding.coder == FIELD__CODER_LEVELS &&
        !field__levels_do(job, refined, winner->volume)) {
        for (size_t k = 0; k < count; k++)
            ways[k].out = ways[k].never || &ways[k] == winner;
        st = race(job, parts, ways, count, &winner, err);
    }
    if (st == ESDM_OK)
        st = put_parts(job, parts, winner, out, err);
    return st;
}

esdm_status
field__parts_encode(field__job *job, const field__parts *parts, const field__map *map,
                    field__map *refined, const field__plan *plan, const field__volume *volume,
                    esdm__buffer *out, esdm_error *err)
{
    field__volume fine = {0};
    const bool levels = plan->coder == FIELD__CODER_LEVELS;
    const bool differences = field__suits_lorenzo(volume);
    way ways[] = {
        {.coding = {FIELD__CODER_ROWS, NULL, SAMPLES_PART},
         .map = map,
         .volume = volume,
         .out = levels && !plan->close},
        {.coding = {FIELD__CODER_LORENZO, NULL, 0},
         .map = map,
         .volume = volume,
         .out = !differences,
         .never = !differences},
        {.coding = {FIELD__CODER_LEVELS, &plan->levels, SAMPLES_PART},
         .map = refined,
         .volume = &fine,
         .out = !levels,
         .never = !levels},
    };
    const size_t count = sizeof ways / sizeof ways[0];
    esdm_status st = levels ? field__map_refined_codes(job, refined, &fine, err) : ESDM_OK;
    esdm__buffer *buffers = calloc(count * parts->count, sizeof *buffers);
    if (st == ESDM_OK && buffers == NULL)
        st = esdm__error_nomem(err, count * parts->count * sizeof *buffers, "parts of a block");
    for (size_t i = 0; i < count * parts->count && buffers != NULL; i++)
        esdm__buffer_init(&buffers[i]);
    for (size_t k = 0; k < count; k++)
        ways[k].parts = buffers + k * parts->count;
    if (st == ESDM_OK)
        st = race_and_put(job, parts, refined, ways, count, out, err);
    for (size_t i = 0; i < count * parts->count && buffers != NULL; i++)
        esdm__buffer_clear(&buffers[i]);
    free(buffers);
    field__volume_clear(&fine);
    return st;
}
