/* SPDX-License-Identifier: LGPL-3.0-or-later */

/*
 * LOG: code k > 0 stands for |x| = finest * 2 k below the edge, and for
 * edge * 2^((k - n) * growth) * centre beyond it, where n = round(edge / (2 * finest)), or 1
 * without `finest`; from m = the code of cap on for cap + (k - m) * 2 * widest. Negative codes
 * stand for negative values, 0 for zero.
 */

#include "map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exponent.h"
#include "kernels.h"

#define CHUNK 256

/* The first codes of the two upper parts. */
typedef struct parts {
    double edge, cap;
} parts;

static parts
parts_of(const field__map *map)
{
    parts p = {.edge = 1, .cap = INFINITY};
    if (map->finest > 0)
        p.edge = floor(map->edge / (2 * map->finest) + 0.5);
    if (map->cap < INFINITY)
        p.cap = p.edge + floor(field__log2(map->cap / map->edge) / map->growth + 0.5);
    return p;
}

static double
size_of(const field__map *map, const parts *p, double code)
{
    if (code < p->edge)
        return 2 * map->finest * code;
    if (code < p->cap)
        return map->edge * field__exp2((code - p->edge) * map->growth) * map->centre;
    return map->cap + (code - p->cap) * (2 * map->widest);
}

static double
code_of(const field__map *map, const parts *p, double size)
{
    if (size < map->edge)
        return map->finest > 0 ? floor(size / (2 * map->finest) + 0.5) : 0;
    if (size < map->cap)
        return p->edge + floor(field__log2(size / map->edge) / map->growth + 0.5);
    return p->cap + floor((size - map->cap) / (2 * map->widest) + 0.5);
}

void
field__map_values(const field__map *map, const int64_t *codes, size_t count, double *values)
{
    const field__kernels *kernels = field__kernels_best();
    if (map->kind == FIELD__MAP_PIECES) {
        field__pieces_values(map, codes, count, values);
        return;
    }
    if (map->kind == FIELD__MAP_GRID) {
        kernels->grid_values(codes, count, map->base, map->multiplier, map->divisor, values);
    } else {
        parts p = parts_of(map);
        for (size_t i = 0; i < count; i++) {
            double size = size_of(map, &p, fabs((double) codes[i]));
            values[i] = codes[i] == 0 ? 0 : codes[i] < 0 ? -size : size;
        }
    }
    if (map->type == FIELD__FLOAT32)
        kernels->round_single(values, count);
    for (size_t i = 0; i < count && !field__is_float(map->type); i++)
        values[i] = field__rounded(map->type, values[i]);
}

size_t
field__map_nudge(const field__map *map, field__map *ret_half)
{
    *ret_half = *map;
    ret_half->multiplier = map->multiplier / 2;
    ret_half->growth = map->growth / 2;
    ret_half->origin = 0;
    ret_half->nudged = 0;
    return (size_t) (map->nudged < 0 ? 0 - (uint64_t) map->nudged : (uint64_t) map->nudged);
}

int64_t
field__map_nudged_code(const field__map *map, int64_t code)
{
    const uint64_t more = map->nudged < 0 ? UINT64_MAX : 1;
    if (map->kind == FIELD__MAP_GRID)
        return (int64_t) (2 * (uint64_t) code + more);
    if (code == 0)
        return 0;
    /* The first logarithmic step has code 1. */
    return (int64_t) (2 * (uint64_t) code + more + (code > 0 ? UINT64_MAX : 1));
}

void
field__map_values_at(const field__map *map, const int64_t *codes, size_t first, size_t count,
                     double *values)
{
    field__map half;
    size_t end = field__map_nudge(map, &half);
    size_t nudged = first >= end ? 0 : end - first < count ? end - first : count;
    for (size_t done = 0; done < nudged; done += CHUNK) {
        int64_t twice[CHUNK];
        size_t n = nudged - done < CHUNK ? nudged - done : CHUNK;
        for (size_t i = 0; i < n; i++)
            twice[i] = field__map_nudged_code(map, codes[done + i]);
        field__map_values(&half, twice, n, values + done);
    }
    field__map_values(map, codes + nudged, count - nudged, values + nudged);
}

void
field__map_codes(const field__map *map, const double *values, size_t count, int64_t *codes)
{
    if (map->kind == FIELD__MAP_GRID) {
        field__kernels_best()->grid_codes(values, count, map->base, map->multiplier, map->divisor,
                                          codes);
        return;
    }
    if (map->kind == FIELD__MAP_PIECES) {
        field__pieces_codes(map, values, count, codes);
        return;
    }
    parts p = parts_of(map);
    for (size_t i = 0; i < count; i++) {
        double code = code_of(map, &p, fabs(values[i]));
        code = values[i] < 0 ? -code : code;
        codes[i] = fabs(code) <= FIELD__CODE_MAX ? (int64_t) code : INT64_MIN;
    }
}

/* Codes of a palette become ordered integers. */
static void
look_up(const field__map *map, int64_t *codes, size_t count)
{
    int64_t last = (int64_t) map->palette_count - 1;
    for (size_t i = 0; i < count; i++) {
        int64_t code = codes[i] < 0 ? 0 : codes[i] < last ? codes[i] : last;
        codes[i] = (int32_t) (map->palette[code] ^ UINT32_C(0x80000000));
    }
}

void
field__map_clear(field__map *map)
{
    free(map->palette);
    map->palette = NULL;
    map->palette_count = 0;
    free(map->pieces);
    map->pieces = NULL;
}

void
field__map_decode(const field__map *map, const int64_t *codes, size_t first, size_t count,
                  void *raw)
{
    for (size_t done = 0; done < count; done += CHUNK) {
        int64_t shifted[CHUNK];
        double values[CHUNK];
        size_t n = count - done < CHUNK ? count - done : CHUNK;
        for (size_t i = 0; i < n; i++)
            shifted[i] = (int64_t) ((uint64_t) codes[done + i] + (uint64_t) map->origin);
        if (map->kind == FIELD__MAP_PALETTE)
            look_up(map, shifted, n);
        if (map->kind == FIELD__MAP_ORDERED || map->kind == FIELD__MAP_PALETTE) {
            field__store_ordered(map->type, shifted, first + done, n, raw);
            continue;
        }
        field__map_values(map, shifted, n, values);
        for (size_t i = 0; i < n && !field__is_float(map->type); i++)
            values[i] = values[i] == values[i] ? values[i] : 0;
        field__store(map->type, values, first + done, n, raw);
    }
}

static void
put_double(esdm__buffer *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    esdm__buffer_put_u64(out, bits);
}

static double
get_double(esdm__cursor *in)
{
    uint64_t bits = esdm__cursor_u64(in);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void
field__map_put(const field__map *map, esdm__buffer *out)
{
    esdm__buffer_put_u8(out, (uint8_t) map->kind);
    esdm__buffer_put_svarint(out, map->origin);
    if (map->kind == FIELD__MAP_GRID) {
        put_double(out, map->base);
        put_double(out, map->multiplier);
        put_double(out, map->divisor);
    } else if (map->kind == FIELD__MAP_LOG) {
        put_double(out, map->edge);
        put_double(out, map->finest);
        put_double(out, map->growth);
        put_double(out, map->centre);
        put_double(out, map->cap);
        put_double(out, map->widest);
    } else if (map->kind == FIELD__MAP_PIECES) {
        field__pieces_put(map, out);
    }
    if (map->nudged != 0) /* the block has format 6 */
        esdm__buffer_put_svarint(out, map->nudged);
}

bool
field__map_get(field__map *map, field__kind type, esdm__cursor *in)
{
    memset(map, 0, sizeof *map);
    uint8_t kind = esdm__cursor_u8(in);
    if (kind >= FIELD__MAP_KINDS)
        return false;
    map->kind = (field__map_kind) kind;
    map->type = type;
    map->origin = esdm__cursor_svarint(in);
    if (kind == FIELD__MAP_GRID) {
        map->base = get_double(in);
        map->multiplier = get_double(in);
        map->divisor = get_double(in);
    } else if (kind == FIELD__MAP_LOG) {
        map->edge = get_double(in);
        map->finest = get_double(in);
        map->growth = get_double(in);
        map->centre = get_double(in);
        map->cap = get_double(in);
        map->widest = get_double(in);
    } else if (kind == FIELD__MAP_PIECES && !field__pieces_get(map, in)) {
        return false;
    }
    return !in->failed;
}
