/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Items that are kept once and have numbers. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/numbered.h"

#define ITEMS 5000u

static void
test_numbered__equal_items_have_one_number_and_others_their_own(void **state)
{
    esdm__numbered n = {0};
    (void) state;
    for (int round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < ITEMS; i++) {
            const uint64_t item[2] = {i * 4096, i % 7};
            uint32_t number = UINT32_MAX;
            assert_true(esdm__numbered_add(&n, item, sizeof item, &number));
            assert_int_equal(number, i);
            assert_int_equal(n.count, round == 0 ? i + 1 : ITEMS);
        }
    }
    const uint64_t(*items)[2] = n.items;
    for (uint64_t i = 0; i < ITEMS; i++) {
        assert_int_equal(items[i][0], i * 4096);
        assert_int_equal(items[i][1], i % 7);
    }
    assert_int_equal(n.bytes, ITEMS * sizeof *items);
    assert_true(n.slots > ITEMS);
    esdm__numbered_clear(&n);
    assert_null(n.items);
    esdm__numbered_clear(&n);
}

static void
test_numbered__slots_of_all_hashes_are_there(void **state)
{
    (void) state;
    for (size_t slots = 1; slots < 3000; slots += 77) {
        assert_int_equal(esdm__slot_of_hash(0, slots), 0);
        assert_int_equal(esdm__slot_of_hash(UINT64_MAX, slots), slots - 1);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbered__equal_items_have_one_number_and_others_their_own),
        cmocka_unit_test(test_numbered__slots_of_all_hashes_are_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
