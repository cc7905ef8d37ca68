/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TESTS_CONFORMANCE_DATA_H
#define ESDM_TESTS_CONFORMANCE_DATA_H

/** @file Shared by the suites of data targets. */

#include "conformance/places.h"

#define PACK "aabbccddeeff00112233445566778899-1-"

/** A made and open target. */
typedef struct fixture {
    place place;
    void *target;
} fixture;

const esdm_data_plugin *data_plugin(void);
/** Makes and opens / closes, removes and deletes. */
int data_setup(void **state);
int data_teardown(void **state);

/** The byte that belongs at a position of the test pattern of a pack. */
uint8_t data_byte(uint64_t pack, uint64_t position);
void data_fill(uint8_t *to, uint64_t pack, uint64_t position, size_t bytes);
/** Writes `bytes` of the pattern as one sealed pack. */
void data_make_pack(void *target, const char *name, uint64_t pack, size_t bytes);
/** Reads the range and compares it with the pattern. */
void data_check_pack(void *target, const char *name, uint64_t pack, uint64_t position,
                     size_t bytes);

#define WITH_PLACE(test) cmocka_unit_test_setup_teardown(test, data_setup, data_teardown)

/* The groups. */
extern const struct CMUnitTest data_place_tests[];
extern const size_t data_place_count;
extern const struct CMUnitTest data_pack_tests[];
extern const size_t data_pack_count;
extern const struct CMUnitTest data_full_tests[];
extern const size_t data_full_count;
extern const struct CMUnitTest data_stress_tests[];
extern const size_t data_stress_count;

#endif
