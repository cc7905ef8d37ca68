/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TESTS_MODEL_RANDOM_H
#define ESDM_TESTS_MODEL_RANDOM_H

/** @file Repeatable random numbers (xorshift64) for property tests. */

#include <stdint.h>

typedef struct random_source {
    uint64_t state; /* not 0 */
} random_source;

static inline uint64_t
random_next(random_source *source)
{
    source->state ^= source->state << 13;
    source->state ^= source->state >> 7;
    source->state ^= source->state << 17;
    return source->state;
}

/** 0 … bound-1 */
static inline uint64_t
random_below(random_source *source, uint64_t bound)
{
    return random_next(source) % bound;
}

#endif
