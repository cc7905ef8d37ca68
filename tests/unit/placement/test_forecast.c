/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What the model foretells of writes. */
#include "placement/forecast.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define MIB (1024.0 * 1024.0)

static const esdm__perf fast = {1e-3, 1 / (300 * MIB), 1e-4, 1 / (300 * MIB), NULL};
static const esdm__perf slow = {1e-3, 1 / (100 * MIB), 1e-4, 1 / (100 * MIB), NULL};

static void
test_forecast__large_writes_take_what_all_targets_give(void **state)
{
    (void) state;
    const esdm__place_target t[] = {{.write = &fast, .allowed = true},
                                    {.write = &slow, .allowed = true}};
    for (uint32_t streams = 2; streams <= 16; streams *= 2) {
        esdm__forecast_share shares[2] = {{0}};
        const esdm__forecast_write write = {
            .count = 2560, .bytes = 4 << 20, .streams = streams, .batch = 64};
        double seconds = esdm__forecast(t, 2, &write, shares);
        assert_true(fabs(seconds / (2560 * 4 / 400.0) - 1) < 0.12);
        assert_int_equal(shares[0].fragments + shares[1].fragments, 2560);
        assert_true(fabs((double) shares[0].bytes / (double) shares[1].bytes - 3) < 0.4);
    }
}

static void
test_forecast__one_stream_is_as_fast_as_the_fastest(void **state)
{
    (void) state;
    const esdm__place_target t[] = {{.write = &slow, .allowed = true},
                                    {.write = &fast, .allowed = true}};
    esdm__forecast_share shares[2] = {{0}};
    const esdm__forecast_write write = {.count = 10, .bytes = 4 << 20, .streams = 1, .batch = 1};
    double seconds = esdm__forecast(t, 2, &write, shares);
    assert_true(fabs(seconds - 10 * esdm__perf_seconds(&fast, 4 * MIB, 1)) < 1e-9);
    assert_int_equal(shares[1].fragments, 10);
}

static void
test_forecast__without_a_model_shares_are_known_and_seconds_are_not(void **state)
{
    (void) state;
    const esdm__place_target t[] = {{.allowed = true}, {.allowed = true}};
    esdm__forecast_share shares[2] = {{0}};
    const esdm__forecast_write write = {.count = 10, .bytes = 4 << 20, .streams = 4, .batch = 64};
    assert_true(esdm__forecast(t, 2, &write, shares) == 0);
    assert_int_equal(shares[0].fragments, 5);
    assert_int_equal(shares[1].bytes, 20 << 20);
    const esdm__forecast_write none = {.count = 0, .bytes = 1, .streams = 1, .batch = 1};
    assert_true(esdm__forecast(t, 2, &none, shares) == 0);
}

static void
test_forecast__copies_are_stored_and_take_their_time(void **state)
{
    (void) state;
    const esdm__place_target t[] = {{.write = &fast, .allowed = true},
                                    {.write = &slow, .allowed = true},
                                    {.write = &fast, .allowed = false}};
    esdm__forecast_write write = {.count = 10, .bytes = 4 << 20, .streams = 1, .batch = 1};
    for (uint32_t copies = 1; copies <= 3; copies++) { /* of three there is no third place */
        esdm__forecast_share shares[3] = {{0}};
        write.copies = copies;
        double seconds = esdm__forecast(t, 3, &write, shares);
        double each = esdm__perf_seconds(&fast, 4 * MIB, 1) +
                      (copies > 1 ? esdm__perf_seconds(&slow, 4 * MIB, 1) : 0);
        assert_true(fabs(seconds - 10 * each) < 1e-9);
        assert_int_equal(shares[0].fragments, 10);
        assert_int_equal(shares[1].bytes, copies > 1 ? 40 << 20 : 0);
        assert_int_equal(shares[2].fragments, 0);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forecast__large_writes_take_what_all_targets_give),
        cmocka_unit_test(test_forecast__one_stream_is_as_fast_as_the_fastest),
        cmocka_unit_test(test_forecast__copies_are_stored_and_take_their_time),
        cmocka_unit_test(test_forecast__without_a_model_shares_are_known_and_seconds_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
