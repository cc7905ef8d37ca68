/* SPDX-License-Identifier: LGPL-3.0-or-later */

/*
 * An encoded block: version u8 (1; 2 with coder PACK and no differences; 3 with coder LORENZO or a
 * map of PIECES; 4 in parts; 5 with coder GROUPS; 6 with coder LEVELS and a map whose first
 * elements are nudged: flag 8 says whether it is in parts), kind u8 (values.h), coder u8, flags u8;
 * then, unless the coder is BYTES, axes b, z, y, x (varints), the map, the mask and its elements
 * when flagged, and what the coder stores.
 *
 * In parts (parts.h): behind the map the extent of a full part along b, z, y, x (varints), the
 * bytes of each part (varints), and the parts: flags u8, mask and elements when flagged, and, but
 * where all is masked, what the coder stores of a block like that.
 */

#include "encode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/scratch.h"

#define SAMPLES_BALANCED 20000
#define SAMPLES_ARCHIVE  50000

void
field__put_head(const field__job *job, field__coder coder, uint8_t flags, esdm__buffer *out)
{
    esdm__buffer_put_u8(out, FIELD__VERSION);
    esdm__buffer_put_u8(out, (uint8_t) job->kind);
    esdm__buffer_put_u8(out, (uint8_t) coder);
    esdm__buffer_put_u8(out, flags);
    if (coder != FIELD__CODER_BYTES) {
        esdm__buffer_put_varint(out, job->axes.nb);
        esdm__buffer_put_varint(out, job->axes.nz);
        esdm__buffer_put_varint(out, job->axes.ny);
        esdm__buffer_put_varint(out, job->axes.nx);
    }
}

/* Copies n elements where the mask is, one after the other; returns where they end. */
uint8_t *
field__gather(const uint8_t *mask, size_t n, const uint8_t *raw, size_t size, uint8_t *to)
{
    for (size_t i = 0; i < n; i++) {
        const uint8_t *next = memchr(mask + i, mask[i] ? 0 : 1, n - i);
        size_t end = next != NULL ? (size_t) (next - mask) : n;
        if (mask[i]) {
            memcpy(to, raw + i * size, (end - i) * size);
            to += (end - i) * size;
        }
        i = end - 1;
    }
    return to;
}

bool
field__all_same(const uint8_t *elements, size_t bytes, size_t size)
{
    return bytes <= size || memcmp(elements, elements + size, bytes - size) == 0;
}

/* The mask, and the elements under it. */
esdm_status
field__put_specials(const uint8_t *mask, const field__axes *axes, const uint8_t *elements,
                    size_t bytes, size_t size, bool one, esdm__buffer *out, esdm_error *err)
{
    esdm_status st = field__mask_encode(mask, axes, out, err);
    if (st == ESDM_OK && one)
        esdm__buffer_put(out, elements, size);
    else if (st == ESDM_OK)
        st = field__bytes_encode(elements, bytes, size, out, err);
    return st;
}

/* Undoes what a map did. */
static esdm_status
split_again(field__job *job, field__volume *volume, esdm_error *err)
{
    field__volume_clear(volume);
    free(job->mask);
    job->mask = NULL;
    return field__split(job, err);
}

/* Lossless codes: those of a palette, of a grid (which the map may be already) or of patterns. */
static esdm_status
make_exact_codes(field__job *job, field__map *map, field__volume *volume, bool *ret_good,
                 esdm_error *err)
{
    uint32_t *ranks = NULL;
    esdm_status st = ESDM_OK;
    *ret_good = true;
    if (job->effort != ESDM_EFFORT_FAST && map->kind == FIELD__MAP_ORDERED)
        st = field__palette_make(job, map, &ranks, err);
    if (st == ESDM_OK && ranks != NULL) {
        st = field__palette_apply(job, map, ranks, volume, err);
    } else if (st == ESDM_OK) {
        if (map->kind == FIELD__MAP_ORDERED)
            field__mask_zeros(job);
        if (job->masked < job->block->elements)
            st = field__map_apply(job, map, volume, ret_good, err);
    }
    free(ranks);
    return st;
}

/* By how much bounds are tightened: first as coarse as they allow; finer where the sum asks for it,
 * of which mostly a little does: the errors of a few numbers that are nearly half-way are to be
 * turned. */
static const double tightnesses[] = {1, 1 - 0x1p-9, 1 - 0x1p-6, 0.9, 0.5};
#define TIGHTNESSES (sizeof tightnesses / sizeof tightnesses[0])

/* Whether levels left the numbers on fine steps before, and not on those of the bound: to round
 * them once more would take them too far from what they were first. */
static bool
was_refined(field__job *job, field__map *ret_fine)
{
    bool sum = job->accuracy != NULL && job->accuracy->sum_bound < INFINITY;
    bool found = false;
    if (job->accuracy == NULL || job->effort != ESDM_EFFORT_ARCHIVE || !field__is_float(job->kind))
        return false;
    for (size_t i = 0; i < (sum ? TIGHTNESSES : 1) && !found; i++) {
        field__map map;
        job->tighter = tightnesses[i];
        field__map_choose(job, &map);
        found = !field__map_fits(job, &map) &&
                (field__is_log_alone(&map)
                     ? field__find_fine_log_steps(job, ret_fine)
                     : map.kind == FIELD__MAP_GRID &&
                           field__find_fine_steps(job, field__linear_bound(job), ret_fine));
        field__map_clear(&map);
    }
    job->tighter = 1;
    return found;
}

/* The codes of those, exactly; *ret_good is false where they are not all there. */
static esdm_status
make_refined_codes(field__job *job, field__map *map, field__volume *volume, bool *ret_good,
                   esdm_error *err)
{
    const esdm_codec_accuracy *accuracy = job->accuracy;
    *ret_good = false;
    if (!was_refined(job, map))
        return ESDM_OK;
    job->accuracy = NULL;
    job->refined = true;
    esdm_status st = field__map_apply(job, map, volume, ret_good, err);
    if (st != ESDM_OK || *ret_good)
        return st;
    job->accuracy = accuracy;
    job->refined = false;
    return split_again(job, volume, err);
}

/* How much finer than the bounds to begin: numbers that were rounded with finer steps before, so
 * that they keep a sum, keep their bits. `TIGHTNESSES`: they were not rounded. */
static size_t
former_tightness(field__job *job)
{
    if (job->accuracy == NULL || !(job->accuracy->sum_bound < INFINITY))
        return TIGHTNESSES;
    const field__probes *p = field__probes_of(job);
    for (size_t i = 0; i < TIGHTNESSES; i++) {
        field__map map;
        job->tighter = tightnesses[i];
        field__map_choose(job, &map);
        bool decimals = map.kind == FIELD__MAP_GRID && map.divisor > 1 && map.multiplier == 1;
        bool fits = !decimals &&
                    (map.kind == FIELD__MAP_GRID || map.kind == FIELD__MAP_LOG ||
                     map.kind == FIELD__MAP_PIECES) &&
                    field__nearly_fits(p, &map);
        field__map_clear(&map);
        if (fits)
            return i;
    }
    return TIGHTNESSES;
}

/* Codes and their map; *ret_coder is NONE when there is no point to code. */
static esdm_status
make_codes(field__job *job, field__map *map, field__volume *volume, field__coder *ret_coder,
           esdm_error *err)
{
    memset(volume, 0, sizeof *volume);
    *ret_coder = FIELD__CODER_NONE;
    *map = (field__map){.kind = FIELD__MAP_ORDERED, .type = job->kind};
    if (job->masked == job->block->elements)
        return ESDM_OK;
    bool good = false;
    esdm_status st = make_refined_codes(job, map, volume, &good, err);
    if (st != ESDM_OK || good || job->masked == job->block->elements) {
        *ret_coder = job->masked < job->block->elements ? FIELD__CODER_ROWS : FIELD__CODER_NONE;
        return st;
    }
    const size_t former = former_tightness(job);
    const size_t first = former < TIGHTNESSES ? former : 0;
    const double room = field__neutral_tightness(job);
    for (size_t i = first; i < TIGHTNESSES && st == ESDM_OK && !good; i++) {
        if (i > first && (job->accuracy == NULL || !(job->accuracy->sum_bound < INFINITY)))
            break;
        job->tighter = tightnesses[i] * room;
        if (i > first)
            st = split_again(job, volume, err);
        if (st != ESDM_OK || job->masked == job->block->elements)
            return st;
        field__map_clear(map);
        field__map_choose(job, map);
        if (job->accuracy != NULL && !(job->accuracy->sum_bound < INFINITY) &&
            (map->kind == FIELD__MAP_LOG || map->kind == FIELD__MAP_PIECES ||
             (map->kind == FIELD__MAP_GRID &&
              field__zeros_have_edges(job, map->multiplier / map->divisor))))
            field__mask_zeros(job);
        st = map->kind == FIELD__MAP_ORDERED ? make_exact_codes(job, map, volume, &good, err)
                                             : field__map_apply(job, map, volume, &good, err);
        if (good && st == ESDM_OK && i == former && map->kind != FIELD__MAP_ORDERED)
            field__sum_keep_again(job, map, volume);
        if (good && st == ESDM_OK)
            field__neutral_move(job, map, volume);
        good = good && st == ESDM_OK && field__sum_keep(job, map, volume);
    }
    if (room < 1) /* levels need none: nudge.c */
        job->tighter = 1;
    if (st == ESDM_OK && !good) {
        /* The map does not suit these values: all are kept exactly. */
        job->accuracy = NULL;
        st = split_again(job, volume, err);
        field__map_clear(map);
        *map = (field__map){.kind = FIELD__MAP_ORDERED, .type = job->kind};
        if (st == ESDM_OK)
            st = make_exact_codes(job, map, volume, &good, err);
    }
    if (job->masked < job->block->elements)
        *ret_coder = FIELD__CODER_ROWS;
    return st;
}

/* Elements under the mask: where they are all the same and stored once, *ret_one is set and they
 * are not copied. */
static esdm_status
take_specials(const field__job *job, field__coder coder, uint8_t **ret_elements,
              const uint8_t **ret_one, esdm_error *err)
{
    size_t n = job->block->elements;
    size_t size = field__kind_bytes(job->kind);
    bool may_be_one = coder == FIELD__CODER_LORENZO || coder == FIELD__CODER_GROUPS;
    *ret_one = NULL;
    if (may_be_one && size == 4 && ((uintptr_t) job->raw & 3) == 0) {
        const uint32_t *patterns = job->raw;
        const uint32_t *first = patterns + ((const uint8_t *) memchr(job->mask, 1, n) - job->mask);
        if (field__kernels_best()->count_others(patterns, job->mask, n, *first) == 0) {
            *ret_one = (const uint8_t *) first;
            return ESDM_OK;
        }
    }
    *ret_elements = esdm__scratch_new(job->masked * size);
    if (*ret_elements == NULL)
        return esdm__error_nomem(err, job->masked * size, "special values");
    (void) field__gather(job->mask, n, job->raw, size, *ret_elements);
    if (may_be_one && field__all_same(*ret_elements, job->masked * size, size))
        *ret_one = *ret_elements;
    return ESDM_OK;
}

static esdm_status
put_block(const field__job *job, const field__map *map, field__coder coder, bool wide,
          esdm__buffer *out, esdm_error *err)
{
    uint8_t *elements = NULL;
    const uint8_t *one = NULL;
    size_t start = out->bytes;
    size_t size = field__kind_bytes(job->kind);
    uint8_t flags = (job->masked > 0 ? FIELD__FLAG_MASK : 0) | (wide ? FIELD__FLAG_WIDE : 0);
    esdm_status st = job->masked > 0 ? take_specials(job, coder, &elements, &one, err) : ESDM_OK;
    if (st != ESDM_OK)
        return st;
    if (one != NULL)
        flags |= FIELD__FLAG_ONE;
    field__put_head(job, coder, flags, out);
    if (!out->failed && map->nudged != 0)
        out->data[start] = FIELD__VERSION_NUDGED;
    else if (!out->failed && coder == FIELD__CODER_GROUPS)
        out->data[start] = FIELD__VERSION_GROUPS;
    else if (!out->failed && (coder == FIELD__CODER_LORENZO || map->kind == FIELD__MAP_PIECES))
        out->data[start] = FIELD__VERSION_LORENZO;
    field__map_put(map, out);
    if (map->kind == FIELD__MAP_PALETTE)
        st = field__palette_put(map, out, err);
    if (st == ESDM_OK && job->masked > 0)
        st = field__put_specials(job->mask, &job->axes, one != NULL ? one : elements,
                                 job->masked * size, size, one != NULL, out, err);
    esdm__scratch_free(elements);
    return st;
}

esdm_status
field__put_codes(const field__coding *c, const field__volume *volume, esdm__buffer *out,
                 esdm_error *err)
{
    size_t head;
    if (c->coder == FIELD__CODER_LORENZO)
        return field__lorenzo_encode(volume, out, err);
    if (c->coder == FIELD__CODER_GROUPS)
        return field__groups_encode(volume, out, err);
    return c->coder == FIELD__CODER_ROWS
               ? field__rows_encode(volume, c->samples, out, &head, err)
               : field__levels_encode(volume, c->levels, c->samples, out, &head, err);
}

static esdm_status
encode_with(field__job *job, const field__map *map, const field__coding *c, field__volume *volume,
            esdm__buffer *out, esdm_error *err)
{
    esdm_status st = put_block(job, map, c->coder, volume->wide, out, err);
    volume->mask = job->masked > 0 ? job->mask : NULL;
    if (st == ESDM_OK)
        st = field__put_codes(c, volume, out, err);
    volume->mask = NULL;
    return st;
}

/* Groups; patterns of floats as bytes, which repeat more than bits do. */
static esdm_status
encode_pack(field__job *job, const field__map *map, field__volume *volume, esdm__buffer *out,
            esdm_error *err)
{
    size_t start = out->bytes;
    uint32_t axes = 0;
    if (map->kind != FIELD__MAP_ORDERED)
        return encode_with(job, map, &(field__coding){.coder = FIELD__CODER_GROUPS}, volume, out,
                           err);
    esdm_status st = put_block(job, map, FIELD__CODER_PACK, false, out, err);
    volume->mask = job->masked > 0 ? job->mask : NULL;
    if (volume->mask != NULL)
        field__volume_fill_masked(volume);
    volume->mask = NULL;
    if (st == ESDM_OK)
        st = field__pack_encode(volume, out, &axes, err);
    if (st == ESDM_OK && !out->failed && axes == 0 && out->data[start] == FIELD__VERSION)
        out->data[start] = FIELD__VERSION_PLAIN;
    return st;
}

static esdm_status
encode_lorenzo(field__job *job, const field__map *map, field__volume *volume, esdm__buffer *out,
               esdm_error *err)
{
    return encode_with(job, map, &(field__coding){.coder = FIELD__CODER_LORENZO}, volume, out, err);
}

static esdm_status
encode_rows(field__job *job, const field__map *map, field__volume *volume, esdm__buffer *out,
            esdm_error *err)
{
    size_t samples = job->effort == ESDM_EFFORT_FAST      ? 0
                     : job->effort == ESDM_EFFORT_ARCHIVE ? SAMPLES_ARCHIVE
                                                          : SAMPLES_BALANCED;
    return encode_with(job, map, &(field__coding){.coder = FIELD__CODER_ROWS, .samples = samples},
                       volume, out, err);
}

bool
field__levels_do(const field__job *job, field__map *refined, const field__volume *volume)
{
    field__nudge(job, refined, volume);
    for (int i = 0; i < 2; i++) {
        if (field__map_holds(job, refined, volume) && field__fine_steps_show(job, refined, volume))
            return true;
        if (refined->nudged == 0)
            break;
        refined->nudged = 0;
    }
    return false;
}

/* Levels; *ret_good is false when a point would miss its bound, or be rounded once more when it is
 * written again. */
static esdm_status
encode_levels(field__job *job, field__map *refined, const field__levels *levels, esdm__buffer *out,
              bool *ret_good, esdm_error *err)
{
    const field__coding c = {
        .coder = FIELD__CODER_LEVELS, .levels = levels, .samples = SAMPLES_ARCHIVE};
    field__volume volume = {0};
    esdm__buffer codes;
    esdm__buffer_init(&codes);
    *ret_good = false;
    esdm_status st = field__map_refined_codes(job, refined, &volume, err);
    volume.mask = job->masked > 0 ? job->mask : NULL;
    if (st == ESDM_OK)
        st = field__put_codes(&c, &volume, &codes, err);
    volume.mask = NULL;
    if (st == ESDM_OK && codes.failed)
        st = esdm__error_nomem(err, codes.bytes, "an encoded block");
    *ret_good = st == ESDM_OK && field__levels_do(job, refined, &volume);
    if (*ret_good)
        st = put_block(job, refined, FIELD__CODER_LEVELS, volume.wide, out, err);
    if (*ret_good && st == ESDM_OK)
        esdm__buffer_put(out, codes.data, codes.bytes);
    esdm__buffer_clear(&codes);
    field__volume_clear(&volume);
    return st;
}

typedef esdm_status (*volume_encoder)(field__job *job, const field__map *map, field__volume *volume,
                                      esdm__buffer *out, esdm_error *err);

/* Another way of coding in place of what was put since `start`, where that is shorter. */
static esdm_status
encode_shorter(volume_encoder encode, field__job *job, const field__map *map, field__volume *volume,
               size_t start, esdm__buffer *out, esdm_error *err)
{
    esdm__buffer other;
    esdm__buffer_init(&other);
    esdm_status st = encode(job, map, volume, &other, err);
    if (st == ESDM_OK && !other.failed && other.bytes < out->bytes - start) {
        out->bytes = start;
        esdm__buffer_put(out, other.data, other.bytes);
    }
    esdm__buffer_clear(&other);
    return st;
}

bool
field__suits_lorenzo(const field__volume *volume)
{
    return !volume->wide && volume->elements >= FIELD__LORENZO_LEAST;
}

/* Archive: whether levels are tried, and with what. */
static esdm_status
plan_levels(field__job *job, field__map *map, field__map *refined, field__plan *plan,
            esdm_error *err)
{
    uint32_t width;
    *plan = (field__plan){.coder = FIELD__CODER_ROWS, .close = true};
    if (field__map_fits(job, map) || !field__map_refine(job, map, refined, &width))
        return ESDM_OK;
    return field__plan_make(job, map, refined, width, plan, err);
}

/* Archive: what is shortest. */
static esdm_status
encode_shortest(field__job *job, field__map *map, field__volume *volume, esdm__buffer *out,
                esdm_error *err)
{
    field__map refined = {0};
    field__parts parts;
    field__plan plan;
    bool done = false;
    size_t start = out->bytes;
    esdm_status st = plan_levels(job, map, &refined, &plan, err);
    if (st == ESDM_OK && field__parts_choose(&job->axes, &parts))
        return field__parts_encode(job, &parts, map, &refined, &plan, volume, out, err);
    if (st == ESDM_OK && plan.coder == FIELD__CODER_LEVELS)
        st = encode_levels(job, &refined, &plan.levels, out, &done, err);
    if (st == ESDM_OK && done && plan.close)
        st = encode_shorter(encode_rows, job, map, volume, start, out, err);
    else if (st == ESDM_OK && !done)
        st = encode_rows(job, map, volume, out, err);
    if (st == ESDM_OK && field__suits_lorenzo(volume)) /* no larger than with effort balanced */
        st = encode_shorter(encode_lorenzo, job, map, volume, start, out, err);
    return st;
}

static esdm_status
encode_codes(field__job *job, esdm__buffer *out, esdm_error *err)
{
    field__map map = {0};
    field__volume volume;
    field__coder coder;
    esdm_status st = make_codes(job, &map, &volume, &coder, err);
    if (st == ESDM_OK && coder == FIELD__CODER_NONE)
        st = put_block(job, &map, coder, false, out, err);
    else if (st == ESDM_OK && job->effort == ESDM_EFFORT_ARCHIVE)
        st = encode_shortest(job, &map, &volume, out, err);
    else if (st == ESDM_OK && job->effort == ESDM_EFFORT_FAST && !volume.wide)
        st = encode_pack(job, &map, &volume, out, err);
    else if (st == ESDM_OK && job->effort != ESDM_EFFORT_FAST && field__suits_lorenzo(&volume))
        st = encode_lorenzo(job, &map, &volume, out, err);
    else if (st == ESDM_OK)
        st = encode_rows(job, &map, &volume, out, err);
    field__volume_clear(&volume);
    field__map_clear(&map);
    return st;
}

/* Without a look at special values; *ret_done is false where that does not do. */
static esdm_status
encode_fast(field__job *job, esdm__buffer *out, bool *ret_done, esdm_error *err)
{
    field__map map;
    field__volume volume = {0};
    esdm_status st = field__fast_codes(job, &map, &volume, ret_done, err);
    if (st == ESDM_OK && *ret_done)
        st = encode_pack(job, &map, &volume, out, err);
    field__volume_clear(&volume);
    return st;
}

/* The elements as bytes, in place of what was appended since `start` where that is longer. */
static esdm_status
encode_bytes(const field__job *job, size_t start, bool always, esdm__buffer *out, esdm_error *err)
{
    size_t size = field__kind_bytes(job->kind);
    esdm__buffer bytes;
    esdm__buffer_init(&bytes);
    field__put_head(job, FIELD__CODER_BYTES, 0, &bytes);
    esdm_status st = field__bytes_encode(job->raw, job->block->elements * size, size, &bytes, err);
    if (st == ESDM_OK && (always || bytes.bytes < out->bytes - start)) {
        out->bytes = start;
        esdm__buffer_put(out, bytes.data, bytes.bytes);
    }
    esdm__buffer_clear(&bytes);
    return st;
}

esdm_status
field__encode_once(const field__block *block, const esdm_codec_accuracy *accuracy,
                   esdm_codec_effort effort, const void *raw, esdm__buffer *out, esdm_error *err)
{
    esdm_status st = ESDM_OK;
    field__taken taken = {.masked = SIZE_MAX};
    field__job job = {.block = block,
                      .accuracy = accuracy,
                      .effort = effort,
                      .kind = field__kind_of(block->type),
                      .raw = raw,
                      .axes = field__axes_of(block),
                      .tighter = 1,
                      .taken = &taken};
    size_t start = out->bytes;
    size_t raw_bytes = block->elements * field__kind_bytes(job.kind);
    bool number = field__is_number(block->type);
    bool done = false;
    if (number && effort == ESDM_EFFORT_FAST)
        st = encode_fast(&job, out, &done, err);
    if (st == ESDM_OK && number && !done) {
        st = field__split(&job, err);
        if (st == ESDM_OK)
            st = encode_codes(&job, out, err);
        free(job.mask);
    }
    bool raw_wins = !number || out->bytes - start >= raw_bytes;
    if (st == ESDM_OK && !out->failed && (raw_wins || (effort == ESDM_EFFORT_ARCHIVE && !accuracy)))
        st = encode_bytes(&job, start, raw_wins, out, err);
    if (st == ESDM_OK && out->failed)
        st = esdm__error_nomem(err, raw_bytes, "an encoded block");
    return st;
}
