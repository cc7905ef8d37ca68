/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Boxes with strides in files and in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/copy.h"
#include "random.h"

static void
test_dataspace__init_is_dense_c_order(void **state)
{
    const uint64_t size[3] = {2, 3, 4};
    esdm_dataspace space;
    (void) state;
    assert_int_equal(esdm_dataspace_init(&space, 3, NULL, size, NULL), ESDM_OK);
    assert_int_equal(esdm_dataspace_elements(&space), 24);
    assert_false(space.has_stride || space.has_memory_stride);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(space.offset[i], 0);
        assert_int_equal(space.stride[i], 1);
    }
    assert_int_equal(space.memory_stride[0], 12);
    assert_int_equal(space.memory_stride[2], 1);
    assert_int_equal(esdm_dataspace_init(&space, 0, NULL, NULL, NULL), ESDM_OK);
    assert_int_equal(esdm_dataspace_elements(&space), 1);
}

static void
test_dataspace__wrong_arguments_leave_the_space_untouched(void **state)
{
    const uint64_t offset[2] = {0, UINT64_MAX};
    const uint64_t one[2] = {1, 1};
    const uint64_t wide[2] = {UINT64_C(1) << 32, UINT64_C(1) << 31};
    const uint64_t hollow[2] = {UINT64_MAX, 0};
    esdm_dataspace space, before;
    esdm_error err;
    (void) state;
    memset(&space, 0x5A, sizeof space);
    before = space;
    assert_int_equal(esdm_dataspace_init(&space, ESDM_MAX_RANK + 1, NULL, one, &err), ESDM_EINVAL);
    assert_string_equal(err.message, "dataspace: rank 33 exceeds 32");
    assert_int_equal(esdm_dataspace_init(&space, 2, offset, one, &err), ESDM_EINVAL);
    assert_non_null(strstr(err.message, "of axis 1 exceeds 64 bits"));
    assert_int_equal(esdm_dataspace_init(&space, 2, NULL, wide, &err), ESDM_EINVAL);
    assert_int_equal(esdm_dataspace_init(&space, 2, NULL, NULL, &err), ESDM_EINVAL);
    assert_int_equal(esdm_dataspace_init(NULL, 0, NULL, NULL, &err), ESDM_EINVAL);
    assert_memory_equal(&space, &before, sizeof space);
    assert_int_equal(esdm_dataspace_init(&space, 2, NULL, hollow, &err), ESDM_OK);
    assert_int_equal(esdm_dataspace_elements(&space), 0);
}

static void
test_dataspace__strides_are_checked(void **state)
{
    const uint64_t size[2] = {3, 1};
    const uint64_t zero[2] = {1, 0};
    const uint64_t huge[2] = {UINT64_C(1) << 63, 1};
    const uint64_t unused[2] = {1, 7};
    const uint64_t good[2] = {4, 1};
    esdm_dataspace space;
    esdm_error err;
    (void) state;
    assert_int_equal(esdm_dataspace_init(&space, 2, NULL, size, NULL), ESDM_OK);
    assert_int_equal(esdm_dataspace_set_stride(&space, zero, &err), ESDM_EINVAL);
    assert_string_equal(err.message, "dataspace: the stride of axis 1 is 0, must be ≥ 1");
    assert_int_equal(esdm_dataspace_set_stride(&space, huge, &err), ESDM_EINVAL);
    assert_int_equal(space.stride[0], 1);
    assert_int_equal(esdm_dataspace_set_stride(&space, unused, &err), ESDM_OK);
    assert_false(space.has_stride);
    assert_int_equal(esdm_dataspace_set_stride(&space, good, &err), ESDM_OK);
    assert_true(space.has_stride);
}

static void
test_dataspace__memory_strides_that_are_dense_are_known(void **state)
{
    const uint64_t size[2] = {3, 5};
    const int64_t dense[2] = {5, 1};
    const int64_t transposed[2] = {1, 3};
    const int64_t huge[2] = {INT64_MIN, 1};
    int64_t got[2];
    esdm_dataspace space;
    esdm_error err;
    (void) state;
    assert_int_equal(esdm_dataspace_init(&space, 2, NULL, size, NULL), ESDM_OK);
    assert_int_equal(esdm_dataspace_set_memory_stride(&space, dense, &err), ESDM_OK);
    assert_false(space.has_memory_stride);
    assert_int_equal(esdm_dataspace_set_memory_stride(&space, transposed, &err), ESDM_OK);
    assert_true(space.has_memory_stride);
    esdm__space_memory_strides(&space, got);
    assert_int_equal(got[1], 3);
    assert_int_equal(esdm_dataspace_set_memory_stride(&space, huge, &err), ESDM_EINVAL);
    assert_int_equal(space.memory_stride[1], 3);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dataspace__init_is_dense_c_order),
        cmocka_unit_test(test_dataspace__wrong_arguments_leave_the_space_untouched),
        cmocka_unit_test(test_dataspace__strides_are_checked),
        cmocka_unit_test(test_dataspace__memory_strides_that_are_dense_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
