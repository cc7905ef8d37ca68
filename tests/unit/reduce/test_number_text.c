/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Numbers as text have the characters that printf() gives them. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "esdm-reduce/number_text.h"

static void
expect_same(double value)
{
    char wanted[64];
    char text[NUMBER_TEXT_BYTES];
    int bytes = snprintf(wanted, sizeof wanted, "%.10g", value);
    size_t got = number_text(value, text);
    if (got != (size_t) bytes || memcmp(text, wanted, got) != 0)
        fail_msg("%a is '%.*s', not '%s'", value, (int) got, text, wanted);
}

static uint64_t
next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void
test_number_text__is_what_printf_gives(void **state)
{
    (void) state;
    static const double values[] = {0,
                                    1,
                                    10,
                                    0.1,
                                    1e-4,
                                    9.9999999999e-5,
                                    1e-5,
                                    1e10,
                                    9999999999.5,
                                    9999999999.4,
                                    999999999.95,
                                    0.5,
                                    1.5,
                                    2.5,
                                    1234567890.5,
                                    123456789.05,
                                    12345678.905,
                                    0.00012345678905,
                                    DBL_MAX,
                                    DBL_MIN,
                                    INFINITY,
                                    273.15,
                                    101325,
                                    1e9,
                                    999999999.99999,
                                    1e-4 * 3};
    uint64_t random = 88172645463325252;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        for (int k = 0; k < 3; k++) { /* and those beside it */
            double beside = k == 0 ? values[i] : nextafter(values[i], k == 1 ? 0 : INFINITY);
            expect_same(beside);
            expect_same(-beside);
        }
    }
    for (int i = 0; i < 1000000; i++) {
        uint64_t bits = next(&random);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (i % 8 == 0 && !isnan(value))
            expect_same(value);
        expect_same((double) (int64_t) bits / 4294967296.0);          /* to 2^31 */
        expect_same((double) (float) ((double) (bits >> 40) * 1e-5)); /* of float32 */
        expect_same((double) (bits % 20000000001) * 0.5 / 1e4);       /* in the middle, about */
        expect_same(pow(10, (double) (bits % 14000) / 1000 - 4) * (double) (bits >> 32) * 0x1p-32);
    }
}

static void
test_whole_text__is_what_printf_gives(void **state)
{
    (void) state;
    uint64_t random = 88172645463325252;
    for (int i = 0; i < 200000; i++) {
        char wanted[64];
        char text[NUMBER_TEXT_BYTES];
        uint64_t number = i < 100000 ? (uint64_t) i : next(&random) >> i % 64;
        int bytes = snprintf(wanted, sizeof wanted, "%llu", (unsigned long long) number);
        size_t got = whole_text(number, text);
        if (got != (size_t) bytes || memcmp(text, wanted, got) != 0)
            fail_msg("%s is '%.*s'", wanted, (int) got, text);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_number_text__is_what_printf_gives),
                                       cmocka_unit_test(test_whole_text__is_what_printf_gives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
