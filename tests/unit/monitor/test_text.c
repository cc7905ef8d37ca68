/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Numbers as texts. */
#include "monitor/text.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void
check(uint64_t number)
{
    char put[32] = "", printed[32];
    char *end = esdm__put_number(put, number);
    *end = '\0';
    (void) snprintf(printed, sizeof printed, "%" PRIu64, number);
    assert_string_equal(put, printed);
    assert_int_equal(end - put, (int) esdm__digits_of(number));
}

/* Around each power of ten and of two, and the largest. */
static void
test_numbers__are_as_printf_writes_them(void **state)
{
    (void) state;
    uint64_t ten = 1;
    for (int digits = 1; digits <= 20; digits++, ten *= 10) {
        check(ten - 1);
        check(ten);
        check(ten + 1);
        check(ten * 3 + 7);
    }
    for (unsigned bit = 0; bit < 64; bit++)
        check(UINT64_C(1) << bit);
    for (uint64_t small = 0; small < 20000; small++)
        check(small);
    check(UINT64_MAX);
}

static void
test_signed__has_its_sign(void **state)
{
    (void) state;
    char put[32];
    *esdm__put_signed(put, INT64_MIN) = '\0';
    assert_string_equal(put, "-9223372036854775808");
    *esdm__put_signed(esdm__put_text(put, "rank "), -1) = '\0';
    assert_string_equal(put, "rank -1");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers__are_as_printf_writes_them),
        cmocka_unit_test(test_signed__has_its_sign),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
