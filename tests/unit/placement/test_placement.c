/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* In which order targets are asked to take a fragment. */
#include "placement/placement.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define MIB (1024.0 * 1024.0)

/* 300 MiB/s and 100 MiB/s, whatever the concurrency; a store that answers at once but is slow. */
static const esdm__perf fast = {1e-3, 1 / (300 * MIB), 1e-4, 1 / (300 * MIB), NULL};
static const esdm__perf slow = {1e-3, 1 / (100 * MIB), 1e-4, 1 / (100 * MIB), NULL};
static const esdm__perf near = {1e-5, 1 / (10 * MIB), 1e-5, 1 / (10 * MIB), NULL};
/* Far away: takes long to answer, but many streams at once. */
static const esdm__perf far = {5e-2, 1 / (50 * MIB), 1e-4, 1 / (1000 * MIB), NULL};

static size_t
first_of(const esdm__place_target *targets, size_t count, const esdm__place_request *request)
{
    esdm__place_choice order[8];
    assert_true(count <= 8);
    assert_true(esdm__placement_order(targets, count, request, order) > 0);
    return order[0].target;
}

static void
test_placement__large_goes_to_bandwidth_and_tiny_to_latency(void **state)
{
    (void) state;
    const esdm__place_target t[] = {{.write = &near, .allowed = true},
                                    {.write = &fast, .allowed = true},
                                    {.write = &far, .allowed = true}};
    assert_int_equal(first_of(t, 3, &(esdm__place_request){.bytes = 2000}), 0);
    assert_int_equal(first_of(t, 3, &(esdm__place_request){.bytes = 4 << 20}), 1);
}

static void
test_placement__a_queue_drives_to_the_next_target(void **state)
{
    (void) state;
    esdm__place_target t[] = {{.write = &fast, .allowed = true}, {.write = &slow, .allowed = true}};
    const esdm__place_request request = {.bytes = 4 << 20};
    size_t taken[2] = {0, 0};
    for (int i = 0; i < 40; i++) {
        size_t k = first_of(t, 2, &request);
        taken[k]++;
        t[k].queued_bytes += request.bytes;
        t[k].queued_requests++;
    }
    assert_in_range(taken[0], 29, 31); /* three to one */
    assert_int_equal(taken[0] + taken[1], 40);
}

/* Writes with `streams` at once through the placement, on a clock; returns the seconds. */
static double
simulate(size_t streams, size_t fragments, bool last_is_alone)
{
    esdm__place_target t[] = {{.write = &fast, .allowed = true}, {.write = &slow, .allowed = true}};
    const double rate[2] = {300 * MIB, 100 * MIB};
    double left[8] = {0}; /* bytes that each stream has to go */
    size_t on[8] = {0};
    bool busy[8] = {false};
    uint64_t bytes = 4 << 20;
    double now = 0;
    size_t started = 0;
    size_t done = 0;
    while (done < fragments) {
        for (size_t s = 0; s < streams; s++) {
            if (busy[s] || started == fragments)
                continue;
            started++;
            uint64_t behind = last_is_alone ? (fragments - started) * bytes : 0;
            on[s] = first_of(t, 2, &(esdm__place_request){.bytes = bytes, .behind = behind});
            left[s] = (double) bytes;
            busy[s] = true;
            t[on[s]].queued_bytes += bytes;
            t[on[s]].queued_requests++;
        }
        double step = 1e30; /* to the next end of a request; targets share their bandwidth */
        for (size_t s = 0; s < streams; s++) {
            double each = rate[on[s]] / t[on[s]].queued_requests;
            if (busy[s] && left[s] / each < step)
                step = left[s] / each;
        }
        now += step;
        double drained[8];
        for (size_t s = 0; s < streams; s++)
            drained[s] = busy[s] ? step * rate[on[s]] / t[on[s]].queued_requests : 0;
        for (size_t s = 0; s < streams; s++) {
            left[s] -= drained[s];
            if (!busy[s] || left[s] > 1)
                continue;
            busy[s] = false;
            done++;
            t[on[s]].queued_bytes -= bytes;
            t[on[s]].queued_requests--;
        }
    }
    return now;
}

static void
test_placement__even_two_streams_use_all_targets(void **state)
{
    (void) state;
    double ideal = 64 * 4 / 400.0;
    for (size_t streams = 2; streams <= 8; streams++) {
        double seconds = simulate(streams, 64, true);
        if (seconds > ideal * 1.1)
            fail_msg("%zu streams: %g s instead of %g s", streams, seconds, ideal);
    }
}

static void
test_placement__a_slow_target_gets_nothing_that_would_end_last(void **state)
{
    (void) state;
    const esdm__place_target t[] = {{.write = &fast, .allowed = true},
                                    {.write = &slow, .allowed = true}};
    esdm__place_choice order[2];
    /* One more behind: the fast one does both before the slow one does one. */
    const esdm__place_request two = {.bytes = 4 << 20, .behind = 4 << 20};
    assert_int_equal(esdm__placement_order(t, 2, &two, order), 2);
    assert_int_equal(order[0].target, 0);
    assert_int_equal(order[1].why, ESDM__PLACE_LATER);
    assert_true(order[1].completion_s > order[0].completion_s);
}

static void
test_placement__without_a_model_targets_take_turns(void **state)
{
    (void) state;
    esdm__place_target t[] = {{.allowed = true}, {.allowed = true}, {.allowed = true}};
    for (uint64_t turn = 0; turn < 7; turn++)
        assert_int_equal(first_of(t, 3, &(esdm__place_request){.bytes = 9, .turn = turn}),
                         turn % 3);
    t[1].failed = true;
    esdm__place_choice order[3];
    assert_int_equal(
        esdm__placement_order(t, 3, &(esdm__place_request){.bytes = 9, .turn = 1}, order), 3);
    assert_int_equal(order[0].target, 2);
    assert_int_equal(order[2].target, 1);
    assert_int_equal(order[2].why, ESDM__PLACE_FAILED);
}

static void
test_placement__equal_targets_share(void **state)
{
    (void) state;
    const esdm__place_target t[] = {{.write = &fast, .allowed = true},
                                    {.write = &fast, .allowed = true}};
    for (uint64_t turn = 0; turn < 4; turn++)
        assert_int_equal(first_of(t, 2, &(esdm__place_request){.bytes = 9, .turn = turn}),
                         turn % 2);
}

static void
test_placement__equal_inputs_give_equal_orders(void **state)
{
    (void) state;
    const esdm__place_target t[] = {{.write = &far, .allowed = true, .queued_bytes = 7 << 20},
                                    {.write = &slow, .allowed = true, .queued_requests = 3},
                                    {.write = NULL, .allowed = true},
                                    {.write = &near, .allowed = false},
                                    {.write = &fast, .allowed = true, .failed = true}};
    const esdm__place_request request = {.bytes = 1 << 20, .behind = 30 << 20, .turn = 5};
    esdm__place_choice a[5];
    esdm__place_choice b[5];
    memset(a, 0, sizeof a);
    memset(b, 0, sizeof b);
    assert_int_equal(esdm__placement_order(t, 5, &request, a), 4);
    assert_int_equal(esdm__placement_order(t, 5, &request, b), 4);
    assert_memory_equal(a, b, sizeof a);
    assert_int_equal(a[2].why, ESDM__PLACE_UNMEASURED);
    assert_int_equal(a[3].why, ESDM__PLACE_FAILED);
    assert_int_equal(a[4].why, ESDM__PLACE_FORBIDDEN);
}

static void
test_placement__cost_keeps_to_the_cheapest_that_works(void **state)
{
    (void) state;
    esdm__place_target t[] = {{.write = &fast, .allowed = true, .cost = 9},
                              {.write = &slow, .allowed = true, .cost = 1}};
    const esdm__place_request request = {
        .bytes = 4 << 20, .behind = 1 << 30, .prefer = ESDM__PREFER_COST};
    assert_int_equal(first_of(t, 2, &request), 1);
    t[1].failed = true;
    assert_int_equal(first_of(t, 2, &request), 0);
    t[1].failed = false;
    t[0].write = t[1].write = NULL; /* costs count without a model, too */
    assert_int_equal(first_of(t, 2, &request), 1);
}

static void
test_placement__nothing_allowed(void **state)
{
    (void) state;
    const esdm__place_target t = {.write = &fast};
    esdm__place_choice order;
    assert_int_equal(esdm__placement_order(&t, 1, &(esdm__place_request){.bytes = 1}, &order), 0);
    assert_int_equal(order.why, ESDM__PLACE_FORBIDDEN);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_placement__large_goes_to_bandwidth_and_tiny_to_latency),
        cmocka_unit_test(test_placement__a_queue_drives_to_the_next_target),
        cmocka_unit_test(test_placement__even_two_streams_use_all_targets),
        cmocka_unit_test(test_placement__a_slow_target_gets_nothing_that_would_end_last),
        cmocka_unit_test(test_placement__without_a_model_targets_take_turns),
        cmocka_unit_test(test_placement__equal_targets_share),
        cmocka_unit_test(test_placement__equal_inputs_give_equal_orders),
        cmocka_unit_test(test_placement__cost_keeps_to_the_cheapest_that_works),
        cmocka_unit_test(test_placement__nothing_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
