/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Axes that lie side by side in memory are joined. */
#include "base/axes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void
test_axes__slow_ones_are_joined(void **state)
{
    (void) state;
    const uint64_t shape[] = {2, 3, 5, 7};
    size_t length[3];
    assert_int_equal(esdm__axes_join(4, shape, 210, 3, length), 3);
    assert_int_equal(length[0], 7);
    assert_int_equal(length[1], 5);
    assert_int_equal(length[2], 6);
    assert_int_equal(esdm__axes_join(4, shape, 210, 1, length), 1);
    assert_int_equal(length[0], 210);
}

static void
test_axes__single_elements_do_not_count(void **state)
{
    (void) state;
    const uint64_t shape[] = {1, 4, 1, 1, 5, 1};
    size_t length[3];
    assert_int_equal(esdm__axes_join(6, shape, 20, 3, length), 2);
    assert_int_equal(length[0], 5);
    assert_int_equal(length[1], 4);
    assert_int_equal(esdm__axes_join(1, shape, 1, 3, length), 1);
    assert_int_equal(length[0], 1);
}

static void
test_axes__a_wrong_shape_still_gives_all_elements(void **state)
{
    (void) state;
    const uint64_t shape[] = {4, 0, 3};
    size_t length[3];
    assert_int_equal(esdm__axes_join(3, shape, 9, 3, length), 2);
    assert_int_equal(length[0], 3);
    assert_int_equal(length[1], 3);
    assert_int_equal(esdm__axes_join(3, shape, 10, 3, length), 1);
    assert_int_equal(length[0], 10);
    assert_int_equal(esdm__axes_join(0, NULL, 10, 3, length), 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_axes__slow_ones_are_joined),
        cmocka_unit_test(test_axes__single_elements_do_not_count),
        cmocka_unit_test(test_axes__a_wrong_shape_still_gives_all_elements),
    };
    return cmocka_run_group_tests_name("base.axes", tests, NULL, NULL);
}
