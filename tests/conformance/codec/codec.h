/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TESTS_CONFORMANCE_CODEC_H
#define ESDM_TESTS_CONFORMANCE_CODEC_H

/** @file What the files of the codec suite share. */

#include "conformance/places.h"

/** The codec under test. */
static inline const esdm_codec_plugin *
codec(void)
{
    return (const esdm_codec_plugin *) place_current;
}

static inline uint64_t
next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* shaped.c */
void test_codec__shapes_round_trip(void **state);
void test_codec__shaped_hostile_input_stays_in_bounds(void **state);
void test_codec__lossy_keeps_every_bound(void **state);
void test_codec__lossy_special_values_keep_their_bits(void **state);
void test_codec__equal_input_gives_equal_bytes(void **state);
void test_codec__what_shrinks_is_shrunk(void **state);
/* fpzip.c */
void test_codec__fpzip_refuses_what_compilers_differ_in(void **state);

#endif
