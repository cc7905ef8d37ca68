/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The types, their names and fill values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/copy.h"

static void
test_type__names_go_there_and_back(void **state)
{
    (void) state;
    for (esdm_type type = ESDM_TYPE_INT8; type <= ESDM_TYPE_STRING; type++) {
        assert_non_null(esdm_type_name(type));
        assert_int_equal(esdm__type_from_name(esdm_type_name(type)), type);
        assert_true(esdm_type_size(type) > 0);
        assert_non_null(esdm_type_default_fill(type));
    }
    assert_string_equal(esdm_type_name(ESDM_TYPE_UINT16), "uint16");
    assert_int_equal(esdm__type_from_name("int7"), ESDM_TYPE_NONE);
}

static void
test_type__unknown_numbers_have_no_properties(void **state)
{
    static const esdm_type unknown[] = {-1, 0, 13, 64, INT32_MAX, INT32_MIN};
    (void) state;
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        assert_int_equal(esdm_type_size(unknown[i]), 0);
        assert_null(esdm_type_name(unknown[i]));
        assert_null(esdm_type_default_fill(unknown[i]));
        assert_false(esdm__type_converts(unknown[i], unknown[i]));
        assert_false(esdm__type_converts(ESDM_TYPE_INT32, unknown[i]));
    }
}

static void
test_type__fill_values_are_those_of_netcdf(void **state)
{
    (void) state;
    assert_int_equal(*(const int8_t *) esdm_type_default_fill(ESDM_TYPE_INT8), -127);
    assert_int_equal(*(const char *) esdm_type_default_fill(ESDM_TYPE_CHAR), 0);
    assert_int_equal(*(const int16_t *) esdm_type_default_fill(ESDM_TYPE_INT16), -32767);
    assert_int_equal(*(const int32_t *) esdm_type_default_fill(ESDM_TYPE_INT32), -2147483647);
    assert_true(*(const float *) esdm_type_default_fill(ESDM_TYPE_FLOAT32) == 0x1.ep+122f);
    assert_true(*(const double *) esdm_type_default_fill(ESDM_TYPE_FLOAT64) == 0x1.ep+122);
    assert_int_equal(*(const uint8_t *) esdm_type_default_fill(ESDM_TYPE_UINT8), 255);
    assert_int_equal(*(const uint16_t *) esdm_type_default_fill(ESDM_TYPE_UINT16), 65535);
    assert_int_equal(*(const uint32_t *) esdm_type_default_fill(ESDM_TYPE_UINT32), UINT32_MAX);
    assert_true(*(const int64_t *) esdm_type_default_fill(ESDM_TYPE_INT64) == INT64_MIN + 2);
    assert_true(*(const uint64_t *) esdm_type_default_fill(ESDM_TYPE_UINT64) == UINT64_MAX - 1);
    assert_string_equal(*(char *const *) esdm_type_default_fill(ESDM_TYPE_STRING), "");
}

static void
test_type__text_and_strings_convert_to_themselves_only(void **state)
{
    (void) state;
    assert_true(esdm__type_converts(ESDM_TYPE_CHAR, ESDM_TYPE_CHAR));
    assert_true(esdm__type_converts(ESDM_TYPE_STRING, ESDM_TYPE_STRING));
    assert_false(esdm__type_converts(ESDM_TYPE_CHAR, ESDM_TYPE_INT8));
    assert_false(esdm__type_converts(ESDM_TYPE_UINT8, ESDM_TYPE_CHAR));
    assert_false(esdm__type_converts(ESDM_TYPE_CHAR, ESDM_TYPE_STRING));
    assert_true(esdm__type_converts(ESDM_TYPE_FLOAT64, ESDM_TYPE_UINT8));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_type__names_go_there_and_back),
        cmocka_unit_test(test_type__unknown_numbers_have_no_properties),
        cmocka_unit_test(test_type__fill_values_are_those_of_netcdf),
        cmocka_unit_test(test_type__text_and_strings_convert_to_themselves_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
