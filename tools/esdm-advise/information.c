/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Mutual information of the bits of neighbouring numbers. */

#include "esdm-advise/propose.h"

#include <math.h>
#include <string.h>

#define CONFIDENCE 0.99
#define SIGN       1u

static uint32_t
exponent_bits(uint32_t bits)
{
    return bits == 32 ? 8 : 11;
}

static uint64_t
bits_at(const void *values, uint32_t bits, uint64_t i)
{
    uint32_t narrow;
    uint64_t wide;
    if (bits == 32) {
        memcpy(&narrow, (const char *) values + i * sizeof narrow, sizeof narrow);
        return narrow;
    }
    memcpy(&wide, (const char *) values + i * sizeof wide, sizeof wide);
    return wide;
}

void
propose_pairs_add(propose_pairs *pairs, const void *values, const uint8_t *is_data, uint64_t count,
                  uint64_t row)
{
    const uint32_t bits = pairs->bits;
    for (uint64_t i = 1; i < count; i++) {
        if (i % row == 0 || !is_data[i] || !is_data[i - 1])
            continue;
        uint64_t one = bits_at(values, bits, i - 1), other = bits_at(values, bits, i);
        for (uint32_t b = 0; b < bits; b++)
            pairs->of[bits - 1 - b][one >> b & 1][other >> b & 1]++;
        pairs->count++;
    }
}

/* p log2(p / q), 0 where p is. */
static double
term(double p, double q)
{
    return p > 0 ? p * log2(p / q) : 0;
}

static double
mutual(const propose_pairs *pairs, uint32_t bit)
{
    double p[2][2], first[2] = {0}, second[2] = {0}, sum = 0;
    for (int a = 0; a < 2; a++) {
        for (int b = 0; b < 2; b++) {
            p[a][b] = (double) pairs->of[bit][a][b] / (double) pairs->count;
            first[a] += p[a][b];
            second[b] += p[a][b];
        }
    }
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 2; b++)
            sum += term(p[a][b], first[a] * second[b]);
    return sum;
}

/* What is left of a bit of entropy when a fair coin was tossed so often, at the edge of its
 * confidence interval. */
static double
chance_of(double tosses)
{
    double p = fmin(0.5 + advise_quantile(CONFIDENCE) / (2 * sqrt(tosses)), 1);
    return 1 + term(p, 1) + term(1 - p, 1);
}

void
propose_information_of(const propose_pairs *pairs, double share, propose_information *ret)
{
    *ret = (propose_information){0};
    if (pairs->count == 0)
        return;
    ret->chance = chance_of((double) pairs->count);
    for (uint32_t i = 0; i < pairs->bits; i++) {
        double bits = mutual(pairs, i);
        ret->of[i] = bits > ret->chance ? bits : 0;
        ret->total += ret->of[i];
    }
    double sum = 0;
    uint32_t needed = 0;
    while (needed < pairs->bits && sum < share * ret->total)
        sum += ret->of[needed++];
    uint32_t head = SIGN + exponent_bits(pairs->bits);
    ret->kept = needed > head ? needed - head : 0;
}
