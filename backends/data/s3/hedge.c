/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "hedge.h"

#include <stddef.h>
#include <string.h>

#define LEAST_KNOWN    16u
#define LEAST_BOUND_MS 10u
#define TIMES_MEDIAN   3u
/* Bounds change slowly: they are made anew with every eighth GET. */
#define BOUND_EVERY 8u
#define COST        100u /* of a second request */
#define EARNED      5u   /* by a GET */
/* What was earned in quiet times is kept for so many, which is also what memory there is for. */
#define AT_ONCE_MOST 4u
#define LATE_MOST    4 /* of the last 32 */
#define REFUSED_MS   30000u

static size_t
size_class(uint64_t bytes)
{
    size_t class = 0;
    for (uint64_t most = UINT64_C(64) << 10; bytes > most && class + 1 < S3__HEDGE_SIZES; class ++)
        most *= 16;
    return class;
}

void
s3__hedge_begin(s3__hedges *hedges)
{
    hedges->credit += EARNED;
    if (hedges->credit > AT_ONCE_MOST * COST)
        hedges->credit = AT_ONCE_MOST * COST;
}

uint32_t
s3__hedge_bound_ms(const s3__hedge_bounds *bounds, uint64_t bytes)
{
    return bounds->ms[size_class(bytes)];
}

static uint32_t
bound_of(const s3__first_bytes *known)
{
    uint32_t sorted[S3__HEDGE_KEPT] = {0};
    size_t count = known->count < S3__HEDGE_KEPT ? known->count : S3__HEDGE_KEPT;
    for (size_t i = 0; i < count; i++) {
        uint32_t ms = known->ms[i];
        size_t at = i;
        for (; at > 0 && sorted[at - 1] > ms; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = ms;
    }
    uint32_t often = sorted[count * 95 / 100];
    uint32_t bound = sorted[count / 2] * TIMES_MEDIAN;
    bound = bound > often ? bound : often;
    return bound > LEAST_BOUND_MS ? bound : LEAST_BOUND_MS;
}

void
s3__hedge_note(s3__hedges *hedges, uint64_t bytes, uint64_t ms)
{
    size_t class = size_class(bytes);
    s3__first_bytes *known = &hedges->sizes[class];
    known->ms[known->count % S3__HEDGE_KEPT] = ms < 1000000 ? (uint32_t) ms : 1000000;
    known->count++;
    if (known->count == 2 * S3__HEDGE_KEPT) /* the ring goes on at the same place */
        known->count = S3__HEDGE_KEPT;
    if (known->count >= LEAST_KNOWN && known->count % BOUND_EVERY == 0)
        hedges->bounds.ms[class] = bound_of(known);
}

void
s3__hedge_count(s3__hedges *hedges, bool late)
{
    hedges->late = hedges->late << 1 | (late ? 1u : 0u);
}

void
s3__hedge_refused(s3__hedges *hedges, uint64_t now_ms)
{
    hedges->not_until_ms = now_ms + REFUSED_MS;
}

bool
s3__hedge_take(s3__hedges *hedges, uint64_t now_ms)
{
    if (hedges->credit < COST || hedges->under_way >= AT_ONCE_MOST ||
        now_ms < hedges->not_until_ms || __builtin_popcount(hedges->late) > LATE_MOST)
        return false;
    hedges->credit -= COST;
    hedges->under_way++;
    hedges->sent++;
    return true;
}

void
s3__hedge_end(s3__hedges *hedges, bool won)
{
    hedges->under_way--;
    hedges->won += won ? 1u : 0u;
}
