/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Selections in their order, as loops: what goes in comes out, also through JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/session/loops.h"

enum { RANK = 3, MOST = 4000 };

static esdm_dataspace reads[MOST];
static size_t nreads;

static void
read_box(esdm__loops *loops, uint64_t t, uint64_t level, uint64_t size, uint64_t stride)
{
    esdm_dataspace *space = &reads[nreads++];
    *space = (esdm_dataspace){.rank = RANK,
                              .offset = {t, level, 0},
                              .size = {1, size, 10},
                              .stride = {1, stride, 1},
                              .has_stride = stride != 1};
    esdm__loops_add(loops, space);
}

static void
check(const esdm__loops *loops)
{
    esdm__loops_at at = {0};
    esdm_dataspace space;
    for (size_t i = 0; i < loops->reads; i++) {
        assert_true(esdm__loops_get(loops, &at, &space));
        assert_true(esdm__same_selection(&space, &reads[i]));
        esdm__loops_next(loops, &at);
    }
    assert_false(esdm__loops_get(loops, &at, &space));
    json_t *json = esdm__loops_json(loops);
    esdm__loops again;
    assert_true(esdm__loops_parse(json, RANK, &again));
    again.cut = loops->cut;
    assert_true(esdm__loops_equal(loops, &again));
    assert_int_equal(again.reads, loops->reads);
    assert_false(esdm__loops_parse(json, RANK + 1, &(esdm__loops){0}));
    json_decref(json);
    esdm__loops_clear(&again);
    assert_true(esdm__loops_copy(loops, &again));
    assert_true(esdm__loops_equal(loops, &again));
    esdm__loops_clear(&again);
}

static void
test_loops__one_loop_is_one_entry(void **state)
{
    (void) state;
    esdm__loops loops = {.rank = RANK};
    nreads = 0;
    for (uint64_t t = 0; t < 1000; t++)
        read_box(&loops, 2 * t, 0, 5, 1);
    esdm__loops_end(&loops);
    assert_int_equal(loops.count, 1);
    assert_int_equal(loops.loop[0].count[0], 1000);
    check(&loops);
    esdm__loops_clear(&loops);
}

static void
test_loops__a_loop_in_a_loop_is_one_entry(void **state)
{
    (void) state;
    esdm__loops loops = {.rank = RANK};
    nreads = 0;
    for (uint64_t t = 50; t > 10; t--) {
        for (uint64_t level = 0; level < 12; level++)
            read_box(&loops, t, 30 * level, 4, 3);
    }
    esdm__loops_end(&loops);
    assert_int_equal(loops.count, 1);
    assert_int_equal(loops.loop[0].count[1], 40);
    check(&loops);
    esdm__loops_clear(&loops);
}

static void
test_loops__what_ends_in_the_middle_stays_in_order(void **state)
{
    (void) state;
    for (unsigned left = 1; left < 30; left++) {
        esdm__loops loops = {.rank = RANK};
        nreads = 0;
        for (unsigned i = 0; i < left; i++)
            read_box(&loops, i / 7, i % 7, 1, 1);
        read_box(&loops, 3, 3, 1, 1);
        read_box(&loops, 3, 3, 1, 1);
        read_box(&loops, 3, 3, 2, 1);
        esdm__loops_end(&loops);
        assert_false(loops.cut);
        assert_int_equal(loops.reads, nreads);
        check(&loops);
        esdm__loops_clear(&loops);
    }
}

static void
test_loops__what_has_no_order_is_bounded(void **state)
{
    (void) state;
    esdm__loops loops = {.rank = RANK};
    nreads = 0;
    for (uint64_t i = 0; i < MOST; i++)
        read_box(&loops, i * i * 7 % 1009, i * i * i % 503, 1 + i % 3, 1);
    esdm__loops_end(&loops);
    assert_true(loops.cut);
    assert_true(loops.count <= ESDM__LOOPS_MOST);
    check(&loops);
    esdm__loops_clear(&loops);
}

static void
test_loops__hostile_texts_are_none(void **state)
{
    (void) state;
    static const char *const texts[] = {
        "{}",
        "[1]",
        "[{}]",
        "[{\"offset\":[0,0],\"size\":[1,1],\"stride\":[1,1],\"delta\":[0,0],\"count\":0,"
        "\"outer_delta\":[0,0],\"outer_count\":1}]",
        "[{\"offset\":[0,-1],\"size\":[1,1],\"stride\":[1,1],\"delta\":[0,0],\"count\":1,"
        "\"outer_delta\":[0,0],\"outer_count\":1}]",
        "[{\"offset\":[0,0],\"size\":[1,0],\"stride\":[1,1],\"delta\":[0,0],\"count\":1,"
        "\"outer_delta\":[0,0],\"outer_count\":1}]",
        "[{\"offset\":[0,0],\"size\":[1,1],\"stride\":[1,\"a\"],\"delta\":[0,0],\"count\":1,"
        "\"outer_delta\":[0,0],\"outer_count\":1}]"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        json_t *json = json_loads(texts[i], 0, NULL);
        esdm__loops loops;
        assert_non_null(json);
        assert_false(esdm__loops_parse(json, 2, &loops));
        assert_int_equal(loops.count, 0);
        json_decref(json);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loops__one_loop_is_one_entry),
        cmocka_unit_test(test_loops__a_loop_in_a_loop_is_one_entry),
        cmocka_unit_test(test_loops__what_ends_in_the_middle_stays_in_order),
        cmocka_unit_test(test_loops__what_has_no_order_is_bounded),
        cmocka_unit_test(test_loops__hostile_texts_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
