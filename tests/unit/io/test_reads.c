/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What readers' habits make of the next container: the cut they want, in what they cost, until they
 * change or get slower. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/session/reads.h"

/* 1000 steps of 90 x 180: fragments of maps, both, and series. */
static const uint64_t maps[] = {4, 90, 180};
static const uint64_t both[] = {32, 12, 90};
static const uint64_t series[] = {32, 6, 180};
static const uint64_t *const cells[ESDM__CUTS] = {maps, both, series};

static void
read_point(esdm__reads *reads, bool adapted, double seconds)
{
    const esdm_dataspace point = {.rank = 3, .offset = {0, 5, 7}, .size = {1000, 1, 1}};
    esdm__reads_add(reads, &point, 4, cells, adapted, seconds);
}

static void
read_map(esdm__reads *reads, uint64_t step)
{
    const esdm_dataspace map = {.rank = 3, .offset = {step, 0, 0}, .size = {1, 90, 180}};
    esdm__reads_add(reads, &map, 4, cells, false, 0.001);
}

static void
test_reads__a_cut_is_one_of_its_readers(void **state)
{
    (void) state;
    char why[400];
    esdm__reads now = {0};
    json_t *fact = esdm__reads_fact("run/a#.nc");
    for (int i = 0; i < 5; i++)
        read_point(&now, false, 0.01);
    assert_true(esdm__reads_best(&now) != 0);
    assert_true(now.cost[2] * 4 < now.cost[0]);
    assert_int_equal(esdm__reads_choose(fact, "/tas", 3, why, sizeof why), 0);
    esdm__reads_merge(fact, "/tas", 3, &now);
    assert_true(esdm__reads_choose(fact, "/tas", 3, why, sizeof why) != 0);
    assert_non_null(strstr(why, "time series"));
    assert_non_null(strstr(why, "run/a#.nc"));
    assert_int_equal(esdm__reads_choose(fact, "/tas", 2, NULL, 0), 0);
    assert_int_equal(esdm__reads_choose(fact, "/pr", 3, NULL, 0), 0);

    /* It stays through its text, which is of this name alone. */
    char *text = json_dumps(fact, 0);
    json_t *again = esdm__reads_parse(text, "run/a#.nc");
    assert_true(json_equal(fact, again));
    assert_null(esdm__reads_parse(text, "run/b#.nc"));
    assert_null(esdm__reads_parse("{\"format\":1,\"pattern\":\"x\"}", "x"));
    assert_null(esdm__reads_parse("[", "x"));
    assert_null(esdm__reads_parse(NULL, "x"));
    assert_true(esdm__reads_seen(text) > 1000000);
    json_decref(again);
    free(text);

    /* Readers of maps take over. */
    for (int run = 0; run < 4; run++) {
        esdm__reads other = {0};
        for (uint64_t t = 0; t < 200; t++)
            read_map(&other, t);
        esdm__reads_merge(fact, "/tas", 3, &other);
    }
    assert_int_equal(esdm__reads_choose(fact, "/tas", 3, NULL, 0), 0);
    json_decref(fact);
}

static void
test_reads__maps_want_nothing_else(void **state)
{
    (void) state;
    esdm__reads now = {0};
    for (uint64_t t = 0; t < 100; t++)
        read_map(&now, t);
    assert_int_equal(esdm__reads_best(&now), 0);
}

static void
test_reads__what_got_slower_is_stopped(void **state)
{
    (void) state;
    json_t *fact = esdm__reads_fact("a#.nc");
    esdm__reads usual = {0};
    esdm__reads slow = {0};
    esdm__reads fast = {0};
    for (int i = 0; i < 3000; i++)
        read_point(&usual, false, 0.001);
    for (int i = 0; i < 3000; i++)
        read_point(&fast, true, 0.0002);
    for (int i = 0; i < 30000; i++)
        read_point(&slow, true, 0.002);
    esdm__reads_merge(fact, "/tas", 3, &usual);
    esdm__reads_merge(fact, "/tas", 3, &fast);
    assert_false(esdm__reads_stopped(fact, "/tas"));
    assert_true(esdm__reads_gain(fact, "/tas", &fast) > 2);
    assert_true(esdm__reads_choose(fact, "/tas", 3, NULL, 0) != 0);
    esdm__reads_merge(fact, "/tas", 3, &slow);
    assert_true(esdm__reads_gain(fact, "/tas", &slow) < 0);
    assert_true(esdm__reads_stopped(fact, "/tas"));
    assert_int_equal(esdm__reads_choose(fact, "/tas", 3, NULL, 0), 0);
    json_decref(fact);
}

static void
test_reads__numbers_in_names_are_one(void **state)
{
    (void) state;
    static const char *const names[][2] = {{"a.nc", "a.nc"},
                                           {"run/out_2001-12.nc", "run/out_#-#.nc"},
                                           {"7", "#"},
                                           {"a1b22c333", "a#b#c#"}};
    char name[ESDM__READS_NAME_BYTES];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *pattern = esdm__reads_pattern(names[i][0]);
        assert_string_equal(pattern, names[i][1]);
        esdm__reads_name(pattern, name);
        assert_int_equal(strlen(name), strlen(ESDM__READS_PREFIX) + 16);
        free(pattern);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads__a_cut_is_one_of_its_readers),
        cmocka_unit_test(test_reads__maps_want_nothing_else),
        cmocka_unit_test(test_reads__what_got_slower_is_stopped),
        cmocka_unit_test(test_reads__numbers_in_names_are_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
