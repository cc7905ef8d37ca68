/* SPDX-License-Identifier: LGPL-3.0-or-later */

/*
 * PIECES: steps for a relative bound without logarithms. The values from 2^e to 2^(e+1) are cut
 * into 16 equal pieces, piece j into as many equal steps as it needs for half a step to be at most
 * `relative` of its smallest value: 0.03 bits a value more than steps that grow. A code is a step's
 * number, and stands for the middle of the step, in single precision; so encoding is integer
 * arithmetic on the pattern, and decoding a look-up.
 *
 * Stored: relative (double), the smallest exponent (varint). The tables are made from these.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "map.h"

#define RELATIVE_LEAST 1e-5 /* below, steps are too many for 32 bits */
#define RELATIVE_MOST  0.5

/* NULL: without memory, or the numbers make no sense. Doubles without contraction. */
static field__pieces *
pieces_new(double relative, uint64_t exponent)
{
    if (!(relative >= RELATIVE_LEAST) || !(relative <= RELATIVE_MOST) || exponent < 1 ||
        exponent > 254)
        return NULL;
    uint32_t steps[16];
    uint32_t total = 0;
    for (uint32_t j = 0; j < 16; j++) {
        double least = 1 + j / 16.0;
        steps[j] = (uint32_t) ceil(1 / (32 * relative * least));
        total += steps[j];
    }
    field__pieces *p = malloc(sizeof *p + total * sizeof p->middle[0]);
    if (p == NULL)
        return NULL;
    p->relative = relative;
    p->exponent = (uint32_t) exponent;
    p->total = total;
    p->reciprocal = (uint32_t) ((UINT64_C(1) << 32) / total + 1);
    uint32_t at = 0;
    for (uint32_t j = 0; j < 16; j++) {
        p->steps[j] = steps[j];
        p->first[j] = at;
        for (uint32_t k = 0; k < steps[j]; k++)
            p->middle[at++] = (float) (1 + j / 16.0 + (k + 0.5) / (16.0 * steps[j]));
    }
    return p;
}

bool
field__pieces_make(field__map *map, double relative, double smallest)
{
    int exponent;
    double rounded = (relative - 0x1p-24) * (1 - 1e-9); /* values are rounded to the type */
    if (map->type != FIELD__FLOAT32 || !(smallest < INFINITY))
        return false;
    (void) frexp(smallest, &exponent);
    exponent += 126; /* smallest is 0.5 to 1 times 2^exponent; biased by 127 */
    rounded = rounded < RELATIVE_MOST ? rounded : RELATIVE_MOST;
    field__pieces *pieces = pieces_new(rounded, exponent < 1 ? 1 : (uint64_t) exponent);
    if (pieces == NULL)
        return false;
    *map = (field__map){.kind = FIELD__MAP_PIECES, .type = FIELD__FLOAT32, .pieces = pieces};
    return true;
}

void
field__pieces_put(const field__map *map, esdm__buffer *out)
{
    uint64_t bits;
    memcpy(&bits, &map->pieces->relative, sizeof bits);
    esdm__buffer_put_u64(out, bits);
    esdm__buffer_put_varint(out, map->pieces->exponent);
}

bool
field__pieces_get(field__map *map, esdm__cursor *in)
{
    double relative;
    uint64_t bits = esdm__cursor_u64(in);
    uint64_t exponent = esdm__cursor_varint(in);
    memcpy(&relative, &bits, sizeof relative);
    map->pieces = in->failed || map->type != FIELD__FLOAT32 ? NULL : pieces_new(relative, exponent);
    return map->pieces != NULL;
}

void
field__pieces_codes(const field__map *map, const double *values, size_t count, int64_t *codes)
{
    for (size_t i = 0; i < count; i++) {
        float value = (float) values[i];
        uint32_t pattern;
        uint8_t mask = 0;
        int32_t code;
        memcpy(&pattern, &value, sizeof pattern);
        field__kernels_best()->piece_codes(map->pieces, &pattern, 1, 0, &mask, &code);
        codes[i] = mask || !(fabs(values[i]) < INFINITY) ? INT64_MIN : code;
    }
}

void
field__pieces_values(const field__map *map, const int64_t *codes, size_t count, double *values)
{
    for (size_t i = 0; i < count; i++) {
        int32_t code = (int32_t) codes[i];
        float value;
        uint32_t pattern;
        field__kernels_best()->piece_values(map->pieces, &code, 1, 0, &pattern);
        memcpy(&value, &pattern, sizeof value);
        values[i] = codes[i] == code ? (double) value : (double) NAN;
    }
}
