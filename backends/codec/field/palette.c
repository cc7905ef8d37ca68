/* SPDX-License-Identifier: LGPL-3.0-or-later */

/*
 * Palettes: where single-precision values repeat much (they were packed once, or measured in
 * steps), a code is the number of a value among all that occur, in their order.
 */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "encode.h"

#define PROBES      8192
#define RADIX_BITS  11u
#define RADIX       (1u << RADIX_BITS)
#define REPETITIONS 6 /* a palette has at most one value for so many points */

/* Sorts by the upper half; `spare` has as much room. Three rounds: the result is in `spare`. */
static void
sort_pairs(uint64_t *pairs, uint64_t *spare, size_t count)
{
    for (uint32_t shift = 32; shift < 64; shift += RADIX_BITS) {
        size_t starts[RADIX] = {0};
        for (size_t i = 0; i < count; i++)
            starts[pairs[i] >> shift & (RADIX - 1)]++;
        size_t sum = 0;
        for (size_t k = 0; k < RADIX; k++) {
            size_t here = starts[k];
            starts[k] = sum;
            sum += here;
        }
        for (size_t i = 0; i < count; i++)
            spare[starts[pairs[i] >> shift & (RADIX - 1)]++] = pairs[i];
        uint64_t *swap = pairs;
        pairs = spare;
        spare = swap;
    }
}

/* Pairs of each step-th point that is not masked: its place in the order of floats, its number. */
static size_t
make_pairs(const field__job *job, size_t step, uint64_t *pairs)
{
    size_t count = 0;
    for (size_t i = 0; i < job->block->elements; i += step) {
        int64_t ordered;
        if (job->mask[i])
            continue;
        field__load_ordered(job->kind, job->raw, i, 1, &ordered);
        pairs[count++] = (uint64_t) ((uint32_t) ordered ^ UINT32_C(0x80000000)) << 32 | i;
    }
    return count;
}

static size_t
count_distinct(const uint64_t *sorted, size_t count)
{
    size_t distinct = count > 0;
    for (size_t i = 1; i < count; i++)
        distinct += sorted[i] >> 32 != sorted[i - 1] >> 32;
    return distinct;
}

/* From how often points of a sample are equal (the birthday problem). */
static bool
seems_worth(const field__job *job, uint64_t *pairs, uint64_t *spare)
{
    size_t n = job->block->elements;
    size_t count = make_pairs(job, n / PROBES + 1, pairs);
    sort_pairs(pairs, spare, count);
    size_t equal = count - count_distinct(spare, count);
    return (double) equal * 2 * (double) (n - job->masked) >
           (double) count * (double) count * REPETITIONS;
}

static void
take_values(field__map *map, const uint64_t *sorted, size_t count, uint32_t *ranks)
{
    size_t rank = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t value = (uint32_t) (sorted[i] >> 32);
        if (i == 0 || value != (uint32_t) (sorted[i - 1] >> 32))
            map->palette[rank++] = value;
        ranks[(uint32_t) sorted[i]] = (uint32_t) rank - 1;
    }
}

esdm_status
field__palette_make(const field__job *job, field__map *map, uint32_t **ret_ranks, esdm_error *err)
{
    size_t n = job->block->elements;
    *ret_ranks = NULL;
    if (job->kind != FIELD__FLOAT32 || n < 2 * PROBES || n > UINT32_MAX || job->masked == n)
        return ESDM_OK;
    uint64_t *pairs = malloc(n * sizeof *pairs);
    uint64_t *spare = malloc(n * sizeof *spare);
    esdm_status st = ESDM_OK;
    if (pairs == NULL || spare == NULL) {
        st = esdm__error_nomem(err, n * 16, "the values of a block in order");
    } else if (seems_worth(job, pairs, spare)) {
        size_t count = make_pairs(job, 1, pairs);
        sort_pairs(pairs, spare, count);
        size_t distinct = count_distinct(spare, count);
        if (distinct <= n / REPETITIONS) {
            map->palette = malloc(distinct * sizeof *map->palette);
            *ret_ranks = calloc(n, sizeof **ret_ranks);
            if (map->palette == NULL || *ret_ranks == NULL) {
                st = esdm__error_nomem(err, n * sizeof **ret_ranks, "a palette");
            } else {
                map->kind = FIELD__MAP_PALETTE;
                map->palette_count = distinct;
                take_values(map, spare, count, *ret_ranks);
            }
        }
    }
    free(pairs);
    free(spare);
    return st;
}

esdm_status
field__palette_put(const field__map *map, esdm__buffer *out, esdm_error *err)
{
    size_t bytes = map->palette_count * sizeof(uint32_t);
    uint32_t *steps = malloc(bytes);
    if (steps == NULL)
        return esdm__error_nomem(err, bytes, "a palette");
    for (size_t i = 0; i < map->palette_count; i++)
        steps[i] = map->palette[i] - (i > 0 ? map->palette[i - 1] : 0);
    esdm__buffer_put_varint(out, map->palette_count);
    esdm_status st = field__bytes_encode(steps, bytes, sizeof *steps, out, err);
    free(steps);
    return st;
}

esdm_status
field__palette_get(field__map *map, size_t elements, esdm__cursor *in, esdm_error *err)
{
    uint64_t count = esdm__cursor_varint(in);
    if (count == 0 || count > elements || map->type != FIELD__FLOAT32)
        return esdm__error_set(err, ESDM_ECORRUPT, "field: a palette is damaged");
    size_t bytes = (size_t) count * sizeof *map->palette;
    map->palette = malloc(bytes);
    if (map->palette == NULL)
        return esdm__error_nomem(err, bytes, "a palette");
    map->palette_count = (size_t) count;
    esdm_status st = field__bytes_decode(map->palette, bytes, sizeof *map->palette, in, err);
    for (size_t i = 1; i < count && st == ESDM_OK; i++)
        map->palette[i] += map->palette[i - 1];
    return st;
}
