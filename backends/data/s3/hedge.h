/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_S3_HEDGE_H
#define ESDM_BACKEND_S3_HEDGE_H

/**
 * @file
 * When a GET that waits for its first byte is asked for a second time: learned from what the GETs
 * of this process have waited for theirs. Pure; the caller locks.
 *
 * A GET is late when it waits longer than max(3 times the median, 95th percentile, 10 ms) of the
 * last 64 of about its size, of which 16 must be known. Second requests are at most one in 20, and
 * there are none while the server refuses requests, or when more than 4 of the last 32 GETs were
 * late: then it is slow, and more requests would make it slower.
 */

#include <stdbool.h>
#include <stdint.h>

enum { S3__HEDGE_SIZES = 4, S3__HEDGE_KEPT = 64 };

/** Of GETs of about one size. */
typedef struct s3__first_bytes {
    uint32_t ms[S3__HEDGE_KEPT]; /* a ring */
    uint32_t count;              /* of them, as long as the ring is not full */
} s3__first_bytes;

/** Milliseconds that a GET may wait for its first byte, by size; 0: not known yet. */
typedef struct s3__hedge_bounds {
    uint32_t ms[S3__HEDGE_SIZES];
} s3__hedge_bounds;

/** Zeroed: nothing is known. */
typedef struct s3__hedges {
    s3__first_bytes sizes[S3__HEDGE_SIZES];
    s3__hedge_bounds bounds;
    uint32_t late;         /* a bit for each of the last 32 GETs */
    uint32_t credit;       /* hundredths of a second request */
    uint32_t under_way;    /* second requests */
    uint64_t not_until_ms; /* the server refused something */
    uint64_t sent;         /* second requests, all so far */
    uint64_t won;          /* of these, those whose answer was used */
} s3__hedges;

/** A GET begins. */
void s3__hedge_begin(s3__hedges *hedges);
/** Of a GET of so many bytes. */
uint32_t s3__hedge_bound_ms(const s3__hedge_bounds *bounds, uint64_t bytes);
/** A GET of so many bytes has waited so long, or longer, when somebody else's answer was taken. */
void s3__hedge_note(s3__hedges *hedges, uint64_t bytes, uint64_t ms);
/** One more GET was late, or was not. Once for each. */
void s3__hedge_count(s3__hedges *hedges, bool late);
/** The server asks for fewer requests, or fails. */
void s3__hedge_refused(s3__hedges *hedges, uint64_t now_ms);
/** Whether a second request may be sent; it counts as sent then. */
bool s3__hedge_take(s3__hedges *hedges, uint64_t now_ms);
/** One has ended. */
void s3__hedge_end(s3__hedges *hedges, bool won);

#endif
