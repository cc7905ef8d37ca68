/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "layout/claims.h"

#include <stdlib.h>
#include <string.h>

#include "layout/bounds.h"

/* Groups of so many claims are compared pair by pair. */
#define SMALL_GROUP 12u
/* Lower edges from which the place of a cut is chosen. */
#define SAMPLES 33u

/* ---- neighbours --------------------------------------------------------------------------- */

/* Whether b continues a along one axis; a becomes both. */
static bool
join(uint32_t rank, uint64_t *a, const uint64_t *b)
{
    uint32_t axis = rank;
    for (uint32_t d = 0; d < rank; d++) {
        if (a[d] == b[d] && a[rank + d] == b[rank + d])
            continue;
        if (axis != rank || a[rank + d] != b[d])
            return false;
        axis = d;
    }
    if (axis == rank)
        return false;
    a[rank + axis] = b[rank + axis];
    return true;
}

size_t
esdm__claims_join(uint32_t rank, uint64_t *claims, size_t count)
{
    size_t numbers = esdm__claim_numbers(rank);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        memmove(claims + kept * numbers, claims + i * numbers, numbers * sizeof *claims);
        kept++;
        while (kept > 1 &&
               join(rank, claims + (kept - 2) * numbers + 1, claims + (kept - 1) * numbers + 1))
            kept--;
    }
    return kept;
}

/* ---- meeting ------------------------------------------------------------------------------ */

typedef struct search {
    uint32_t rank;
    size_t numbers;
    uint64_t tests; /* that may still be made, of claims against each other or a cut */
} search;

static bool
pair_meets(search *s, const uint64_t *a, const uint64_t *b)
{
    if (a[0] >> 2 == b[0] >> 2 || !(((a[0] & ESDM__CLAIM_WANTS) != 0 && (b[0] & ESDM__CLAIM_HAS)) ||
                                    ((b[0] & ESDM__CLAIM_WANTS) != 0 && (a[0] & ESDM__CLAIM_HAS))))
        return false;
    return esdm__bounds_meet(s->rank, a + 1, b + 1);
}

static bool
all_pairs(search *s, const uint64_t *claims, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (s->tests < i)
            return true;
        s->tests -= i;
        for (size_t k = 0; k < i; k++) {
            if (pair_meets(s, claims + i * s->numbers, claims + k * s->numbers))
                return true;
        }
    }
    return false;
}

static int
by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *) a;
    uint64_t y = *(const uint64_t *) b;
    return (x > y) - (x < y);
}

/* A lower edge on the axis with about half of the claims below. */
static uint64_t
middle_edge(const search *s, const uint64_t *claims, size_t count, uint32_t axis)
{
    uint64_t edges[SAMPLES];
    size_t samples = count < SAMPLES ? count : SAMPLES;
    for (size_t i = 0; i < samples; i++)
        edges[i] = claims[i * count / samples * s->numbers + 1 + axis];
    qsort(edges, samples, sizeof *edges, by_number);
    size_t at = samples / 2;
    while (at + 1 < samples && edges[at] == edges[0]) /* a cut there has nothing below */
        at++;
    return edges[at];
}

typedef struct cut {
    uint32_t axis;
    uint64_t edge;
    size_t below;  /* claims that end before the edge */
    size_t across; /* claims on both sides */
} cut;

/* The cut after which the larger side is smallest. Its `axis` is the rank when none helps. */
static cut
choose_cut(const search *s, const uint64_t *claims, size_t count)
{
    cut best = {.axis = s->rank};
    size_t least = count - count / 8;
    for (uint32_t d = 0; d < s->rank; d++) {
        cut c = {.axis = d, .edge = middle_edge(s, claims, count, d)};
        for (size_t i = 0; i < count; i++) {
            const uint64_t *bounds = claims + i * s->numbers + 1;
            c.below += bounds[s->rank + d] <= c.edge;
            c.across += bounds[d] < c.edge && bounds[s->rank + d] > c.edge;
        }
        size_t left = c.below + c.across;
        size_t right = count - c.below;
        size_t larger = left > right ? left : right;
        if (larger < least) {
            least = larger;
            best = c;
        }
    }
    return best;
}

static void
swap(const search *s, uint64_t *claims, size_t i, size_t k)
{
    uint64_t kept[1 + 2 * ESDM_MAX_RANK];
    if (i == k)
        return;
    memcpy(kept, claims + i * s->numbers, s->numbers * sizeof *kept);
    memcpy(claims + i * s->numbers, claims + k * s->numbers, s->numbers * sizeof *kept);
    memcpy(claims + k * s->numbers, kept, s->numbers * sizeof *kept);
}

/* Orders the claims: those below the edge, those across it, those above. */
static void
partition(const search *s, uint64_t *claims, size_t count, const cut *c)
{
    size_t below = 0;
    size_t i = 0;
    size_t above = count;
    while (i < above) {
        const uint64_t *bounds = claims + i * s->numbers + 1;
        if (bounds[s->rank + c->axis] <= c->edge)
            swap(s, claims, i++, below++);
        else if (bounds[c->axis] >= c->edge)
            swap(s, claims, i, --above);
        else
            i++;
    }
}

static bool meets(search *s, uint64_t *claims, size_t count);

/* What lies across belongs to both sides, each of which may change the order of its claims. */
static bool
sides_meet(search *s, uint64_t *claims, size_t count, const cut *c)
{
    uint64_t *across = claims + c->below * s->numbers;
    size_t bytes = c->across * s->numbers * sizeof *across;
    uint64_t *kept = NULL;
    partition(s, claims, count, c);
    if (c->across > 0) {
        kept = malloc(bytes);
        if (kept == NULL)
            return true;
        memcpy(kept, across, bytes);
    }
    bool found = meets(s, claims, c->below + c->across);
    if (kept != NULL)
        memcpy(across, kept, bytes);
    free(kept);
    return found || meets(s, across, count - c->below);
}

/* The depth is logarithmic: each side has 7/8 of the claims at most. */
static bool
meets(search *s, uint64_t *claims, size_t count)
{
    uint64_t kinds = 0;
    for (size_t i = 0; i < count; i++)
        kinds |= claims[i * s->numbers] & (ESDM__CLAIM_WANTS | ESDM__CLAIM_HAS);
    if (kinds != (ESDM__CLAIM_WANTS | ESDM__CLAIM_HAS))
        return false;
    if (count <= SMALL_GROUP)
        return all_pairs(s, claims, count);
    if (s->tests < count)
        return true;
    s->tests -= count; /* what lies across counts on both sides, so the sum has to be bounded */
    cut c = choose_cut(s, claims, count);
    return c.axis < s->rank ? sides_meet(s, claims, count, &c) : all_pairs(s, claims, count);
}

bool
esdm__claims_meet(uint32_t rank, uint64_t *claims, size_t count, uint64_t tests)
{
    search s = {.rank = rank, .numbers = esdm__claim_numbers(rank), .tests = tests};
    return meets(&s, claims, count);
}
