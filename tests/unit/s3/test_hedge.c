/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* When a GET is asked for a second time. */
#include "hedge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define BYTES (UINT64_C(1) << 20)

/* GETs that wait `ms` each for their first byte. */
static void
answer(s3__hedges *hedges, unsigned count, uint64_t ms)
{
    for (unsigned i = 0; i < count; i++) {
        s3__hedge_begin(hedges);
        s3__hedge_note(hedges, BYTES, ms);
        s3__hedge_count(hedges, false);
    }
}

static uint32_t
bound(const s3__hedges *hedges)
{
    return s3__hedge_bound_ms(&hedges->bounds, BYTES);
}

static void
test_hedge__the_bound_needs_sixteen_of_about_the_size(void **state)
{
    (void) state;
    s3__hedges hedges = {0};
    answer(&hedges, 15, 30);
    assert_int_equal(bound(&hedges), 0);
    answer(&hedges, 1, 30);
    assert_int_equal(bound(&hedges), 90);
    assert_int_equal(s3__hedge_bound_ms(&hedges.bounds, 100), 0);
    assert_int_equal(s3__hedge_bound_ms(&hedges.bounds, 8 * BYTES), 0);
    assert_int_equal(s3__hedge_bound_ms(&hedges.bounds, UINT64_MAX), 0);
    assert_int_equal(s3__hedge_bound_ms(&hedges.bounds, 128 << 10), 90);
}

static void
test_hedge__the_bound_follows_what_servers_do(void **state)
{
    (void) state;
    s3__hedges hedges = {0};
    answer(&hedges, 64, 1);
    assert_int_equal(bound(&hedges), 10); /* never below */
    answer(&hedges, 64, 200);
    assert_int_equal(bound(&hedges), 600);
    answer(&hedges, 60, 20);
    answer(&hedges, 4, 500); /* one in 16 is no straggler */
    assert_int_equal(bound(&hedges), 500);
    answer(&hedges, 62, 20);
    answer(&hedges, 2, 500); /* one in 32 is */
    assert_int_equal(bound(&hedges), 60);
    answer(&hedges, 1000, UINT64_MAX);
    assert_int_equal(bound(&hedges), 3000000);
}

static void
test_hedge__one_in_twenty_at_most(void **state)
{
    (void) state;
    s3__hedges hedges = {0};
    unsigned sent = 0;
    for (unsigned i = 1; i <= 1000; i++) {
        answer(&hedges, 1, 20);
        if (s3__hedge_take(&hedges, 1)) {
            s3__hedge_end(&hedges, i % 2 == 0);
            sent++;
        }
        assert_true(sent <= i / 20);
    }
    assert_int_equal(sent, 50);
    assert_int_equal(hedges.sent, 50);
    assert_true(hedges.won <= 50);
    answer(&hedges, 1000, 20); /* quiet times are not saved up */
    for (sent = 0; s3__hedge_take(&hedges, 1); sent++)
        s3__hedge_end(&hedges, true);
    assert_int_equal(sent, 4);
}

static void
test_hedge__few_at_once(void **state)
{
    (void) state;
    s3__hedges hedges = {0};
    for (unsigned i = 0; i < 4; i++) {
        answer(&hedges, 80, 20);
        assert_true(s3__hedge_take(&hedges, 1));
    }
    answer(&hedges, 80, 20);
    assert_false(s3__hedge_take(&hedges, 1));
    s3__hedge_end(&hedges, false);
    assert_true(s3__hedge_take(&hedges, 1));
}

static void
test_hedge__none_while_the_server_is_slow_or_refuses(void **state)
{
    (void) state;
    s3__hedges hedges = {0};
    answer(&hedges, 100, 20);
    for (unsigned i = 0; i < 4; i++)
        s3__hedge_count(&hedges, true);
    assert_true(s3__hedge_take(&hedges, 1));
    s3__hedge_count(&hedges, true);
    assert_false(s3__hedge_take(&hedges, 1));
    answer(&hedges, 32, 20);
    assert_true(s3__hedge_take(&hedges, 1));
    s3__hedge_refused(&hedges, 1000);
    answer(&hedges, 100, 20);
    assert_false(s3__hedge_take(&hedges, 1001));
    assert_false(s3__hedge_take(&hedges, 30999));
    assert_true(s3__hedge_take(&hedges, 31000));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hedge__the_bound_needs_sixteen_of_about_the_size),
        cmocka_unit_test(test_hedge__the_bound_follows_what_servers_do),
        cmocka_unit_test(test_hedge__one_in_twenty_at_most),
        cmocka_unit_test(test_hedge__few_at_once),
        cmocka_unit_test(test_hedge__none_while_the_server_is_slow_or_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
