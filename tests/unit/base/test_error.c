/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Messages of errors that are put together and cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* As long as a path of the Data Reference Syntax. */
static const char path[] =
    "/archive/CMIP6/CMIP/CMCC/CMCC-CM2-SR5/historical/r1i1p1f1/Amon/ta/gn/v20200616/"
    "ta_Amon_CMCC-CM2-SR5_historical_r1i1p1f1_gn_195001-197412.nc";

static bool
ends_with(const char *text, const char *end)
{
    return strlen(text) >= strlen(end) && strcmp(text + strlen(text) - strlen(end), end) == 0;
}

static void
test_error__the_end_of_a_long_message_stays(void **state)
{
    (void) state;
    esdm_error err = {0};
    assert_int_equal(esdm__error_set_errno(&err, ENOENT, "file '%s', which it refers to", path),
                     ESDM_ENOENT);
    for (int i = 0; i < 4; i++)
        assert_int_equal(esdm__error_prefix(&err, ESDM_ENOENT, "layer %d reads '%s'", i, path),
                         ESDM_ENOENT);
    assert_int_equal(err.os_errno, ENOENT);
    assert_int_equal(strncmp(err.message, "layer 3 reads '/archive", 23), 0);
    assert_non_null(strstr(err.message, " [...] "));
    assert_true(ends_with(err.message, "_195001-197412.nc', which it refers to: No such file or "
                                       "directory"));
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
}

static void
test_error__of_one_call_the_end_stays_too(void **state)
{
    (void) state;
    esdm_error err = {0};
    assert_int_equal(esdm__error_set(&err, ESDM_EINVAL,
                                     "'%s' and '%s' and '%s' and '%s' differ; add &frequency=mon",
                                     path, path, path, path),
                     ESDM_EINVAL);
    assert_true(ends_with(err.message, "differ; add &frequency=mon"));
    assert_int_equal(strncmp(err.message, "'/archive", 9), 0);
}

static void
test_error__characters_are_not_cut(void **state)
{
    (void) state;
    for (size_t shift = 0; shift < 4; shift++) {
        char text[1024] = "aaa";
        text[shift] = '\0';
        for (int i = 0; i < 300; i++)
            (void) strcat(text, "\xe2\x82\xac");
        esdm_error err = {0};
        assert_int_equal(esdm__error_set(&err, ESDM_EINVAL, "%s", text), ESDM_EINVAL);
        char *gap = strstr(err.message, " [...] ");
        assert_non_null(gap);
        assert_int_equal((size_t) (gap - err.message - (ptrdiff_t) shift) % 3, 0);
        assert_int_equal(strlen(gap + 7) % 3, 0);
    }
}

static void
test_error__a_short_message_is_whole(void **state)
{
    (void) state;
    esdm_error err = {0};
    assert_int_equal(esdm__error_set(&err, ESDM_EIO, "%0499d", 7), ESDM_EIO);
    assert_int_equal(strlen(err.message), 499);
    assert_null(strstr(err.message, "[...]"));
    assert_int_equal(esdm__error_set(&err, ESDM_EIO, "b"), ESDM_EIO);
    assert_int_equal(esdm__error_prefix(&err, ESDM_EIO, "a"), ESDM_EIO);
    assert_string_equal(err.message, "a: b");
}

static void
test_error__what_was_told_is_not_told_twice(void **state)
{
    (void) state;
    esdm_error err = {0};
    assert_int_equal(esdm__error_set(&err, ESDM_EIO, "container 'a', dataset '/t': damaged"),
                     ESDM_EIO);
    assert_int_equal(esdm__error_prefix(&err, ESDM_EIO, "container '%s', dataset '%s'", "a", "/t"),
                     ESDM_EIO);
    assert_string_equal(err.message, "container 'a', dataset '/t': damaged");
    assert_int_equal(esdm__error_prefix(&err, ESDM_EIO, "container '%s'", "a"), ESDM_EIO);
    assert_string_equal(err.message, "container 'a', dataset '/t': damaged");
    assert_int_equal(esdm__error_prefix(&err, ESDM_EIO, "cont"), ESDM_EIO);
    assert_string_equal(err.message, "cont: container 'a', dataset '/t': damaged");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error__the_end_of_a_long_message_stays),
        cmocka_unit_test(test_error__of_one_call_the_end_stays_too),
        cmocka_unit_test(test_error__characters_are_not_cut),
        cmocka_unit_test(test_error__a_short_message_is_whole),
        cmocka_unit_test(test_error__what_was_told_is_not_told_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
