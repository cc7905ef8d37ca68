/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Everything here is counted the same way on every machine: field__log2() and plain arithmetic. */
#include "tables.h"

#include <string.h>

#include "exponent.h"

#define SUM         (1u << FIELD__SUM_BITS)
#define TABLE_BITS  10.0 /* of a token that occurs, in a stored table, about */
#define WANTED_MOST 12u  /* tables; more are made where merging them gains nothing */

/* ---- which levels share ------------------------------------------------------------------- */

/* Bits of tokens coded by their own frequencies, and of the table. */
static double
cost_of(const uint32_t *counts)
{
    double bits = 0;
    double sum = 0;
    double used = 0;
    for (size_t i = 0; i < FIELD__TOKENS; i++) {
        double n = counts[i];
        if (n > 0) {
            bits -= n * field__log2(n);
            sum += n;
            used++;
        }
    }
    return sum > 0 ? bits + sum * field__log2(sum) + TABLE_BITS * used : 0;
}

/* Levels that occur, neighbours merged step by step. */
typedef struct groups {
    uint32_t count;
    uint32_t first[FIELD__LEVELS]; /* level */
    double cost[FIELD__LEVELS];
    double gain[FIELD__LEVELS]; /* what merging with the next one costs */
    field__counts counts[FIELD__LEVELS];
} groups;

static double
merged_cost(const groups *g, uint32_t i)
{
    field__counts both;
    for (size_t k = 0; k < FIELD__TOKENS; k++)
        both[k] = g->counts[i][k] + g->counts[i + 1][k];
    return cost_of(both) - g->cost[i] - g->cost[i + 1];
}

static void
groups_init(groups *g, const field__counts *counts)
{
    g->count = 0;
    for (uint32_t level = 0; level < FIELD__LEVELS; level++) {
        uint32_t any = 0;
        for (size_t k = 0; k < FIELD__TOKENS; k++)
            any |= counts[level][k];
        if (any == 0)
            continue;
        memcpy(g->counts[g->count], counts[level], sizeof(field__counts));
        g->first[g->count] = level;
        g->cost[g->count] = cost_of(counts[level]);
        g->count++;
    }
    for (uint32_t i = 0; i + 1 < g->count; i++)
        g->gain[i] = merged_cost(g, i);
}

static void
merge(groups *g, uint32_t i)
{
    for (size_t k = 0; k < FIELD__TOKENS; k++)
        g->counts[i][k] += g->counts[i + 1][k];
    g->cost[i] = cost_of(g->counts[i]);
    uint32_t behind = g->count - i - 2;
    memmove(g->counts[i + 1], g->counts[i + 2], behind * sizeof(field__counts));
    memmove(&g->cost[i + 1], &g->cost[i + 2], behind * sizeof g->cost[0]);
    memmove(&g->first[i + 1], &g->first[i + 2], behind * sizeof g->first[0]);
    memmove(&g->gain[i + 1], &g->gain[i + 2], behind * sizeof g->gain[0]);
    g->count--;
    if (i > 0)
        g->gain[i - 1] = merged_cost(g, i - 1);
    if (i + 1 < g->count)
        g->gain[i] = merged_cost(g, i);
}

static void
merge_all(groups *g)
{
    while (g->count > 1) {
        uint32_t best = 0;
        for (uint32_t i = 1; i + 1 < g->count; i++)
            best = g->gain[i] < g->gain[best] ? i : best;
        if (g->count <= WANTED_MOST && g->gain[best] > 0)
            return;
        merge(g, best);
    }
}

/* ---- frequencies -------------------------------------------------------------------------- */

/* Of a sum of SUM, at least 1 for each token that occurs. */
static void
normalise(const uint32_t *counts, uint16_t *ret)
{
    double sum = 0;
    size_t top = 0;
    int32_t given = 0;
    for (size_t i = 0; i < FIELD__TOKENS; i++) {
        sum += counts[i];
        top = counts[i] > counts[top] ? i : top;
    }
    for (size_t i = 0; i < FIELD__TOKENS; i++) {
        uint32_t share = sum > 0 ? (uint32_t) (counts[i] * (double) SUM / sum + 0.5) : 0;
        share = counts[i] > 0 && share == 0 ? 1 : share;
        ret[i] = (uint16_t) share;
        given += (int32_t) share;
    }
    if (given < (int32_t) SUM)
        ret[top] = (uint16_t) (ret[top] + SUM - (uint32_t) given);
    for (; given > (int32_t) SUM; given--) { /* what costs least: n log(f / (f - 1)), about */
        size_t best = FIELD__TOKENS;
        double least = 0;
        for (size_t i = 0; i < FIELD__TOKENS; i++) {
            double cost = ret[i] > 1 ? counts[i] / (2.0 * ret[i] - 1) : 0;
            if (ret[i] > 1 && (best == FIELD__TOKENS || cost < least)) {
                best = i;
                least = cost;
            }
        }
        ret[best]--;
    }
}

void
field__tables_make(const field__counts *counts, field__tables *ret)
{
    groups g;
    groups_init(&g, counts);
    memset(ret, 0, sizeof *ret);
    if (g.count == 0) { /* nothing is coded */
        ret->count = 1;
        ret->frequency[0][0] = SUM;
        return;
    }
    merge_all(&g);
    ret->count = g.count;
    for (uint32_t level = 0, c = 0; level < FIELD__LEVELS; level++) {
        while (c + 1 < g.count && g.first[c + 1] <= level)
            c++;
        ret->table[level] = (uint8_t) c;
    }
    for (uint32_t c = 0; c < g.count; c++)
        normalise(g.counts[c], ret->frequency[c]);
}

/* ---- stored form -------------------------------------------------------------------------- */

void
field__tables_put(const field__tables *tables, esdm__buffer *out)
{
    esdm__buffer_put_u8(out, (uint8_t) tables->count);
    for (uint32_t c = 0, level = 0; c < tables->count; c++) {
        uint32_t from = level;
        while (level < FIELD__LEVELS && tables->table[level] == c)
            level++;
        esdm__buffer_put_u8(out, (uint8_t) (level - from));
        uint32_t last = FIELD__TOKENS - 1;
        while (last > 0 && tables->frequency[c][last] == 0)
            last--;
        esdm__buffer_put_u8(out, (uint8_t) last);
        for (uint32_t i = 0; i <= last; i++)
            esdm__buffer_put_varint(out, tables->frequency[c][i]);
    }
}

bool
field__tables_get(field__tables *tables, esdm__cursor *in)
{
    memset(tables, 0, sizeof *tables);
    tables->count = esdm__cursor_u8(in);
    if (in->failed || tables->count == 0 || tables->count > FIELD__TABLES_MOST)
        return false;
    uint32_t level = 0;
    for (uint32_t c = 0; c < tables->count; c++) {
        uint32_t levels = esdm__cursor_u8(in);
        uint32_t last = esdm__cursor_u8(in);
        uint64_t sum = 0;
        if (in->failed || levels > FIELD__LEVELS - level || last >= FIELD__TOKENS)
            return false;
        memset(&tables->table[level], (int) c, levels);
        level += levels;
        for (uint32_t i = 0; i <= last; i++) {
            uint64_t f = esdm__cursor_varint(in);
            if (f > SUM)
                return false;
            tables->frequency[c][i] = (uint16_t) f;
            sum += f;
        }
        if (in->failed || sum != SUM)
            return false;
    }
    return level == FIELD__LEVELS;
}

/* ---- tables ------------------------------------------------------------------------------- */

/* Division by a frequency as a multiplication: exact for states below 2^31. */
static field__token_code
code_of(uint32_t start, uint32_t f)
{
    if (f < 2)
        return (field__token_code){.reciprocal = UINT32_MAX, .rest = (start + SUM - 1) | f << 12};
    uint32_t shift = 0;
    while (f > UINT32_C(1) << shift)
        shift++;
    return (field__token_code){.reciprocal =
                                   (uint32_t) (((UINT64_C(1) << (shift + 31)) + f - 1) / f),
                               .rest = start | f << 12 | (shift - 1) << 24};
}

void
field__tables_codes(const field__tables *tables, field__token_code codes[FIELD__SYMBOLS_OF_ROWS])
{
    for (uint32_t level = 0; level < FIELD__LEVELS; level++) {
        uint32_t c = tables->table[level];
        uint32_t start = 0;
        field__token_code *of_level = codes + FIELD__SYMBOL(level, 0);
        if (level > 0 && tables->table[level - 1] == c) {
            memcpy(of_level, of_level - FIELD__TOKENS, FIELD__TOKENS * sizeof *codes);
            continue;
        }
        for (uint32_t i = 0; i < FIELD__TOKENS; i++) {
            uint32_t f = tables->frequency[c][i];
            of_level[i] = f > 0 ? code_of(start, f) : (field__token_code){0};
            start += f;
        }
    }
}

void
field__tables_slots(const field__tables *tables, uint32_t *slots)
{
    for (uint32_t c = 0; c < tables->count; c++) {
        for (uint32_t i = 0; i < FIELD__TOKENS; i++) {
            uint32_t f = tables->frequency[c][i];
            for (uint32_t k = 0; k < f; k++)
                *slots++ = i | f << 8 | k << 20;
        }
    }
}
