/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What the first containers in the order of an attribute cost, in steps of SQLite's machine
 *  and by its plans, and that none is missed. */

#include "store_support.h"

static const char catalogue[] =
    "BEGIN;"
    "INSERT INTO container SELECT value, printf('run%d', value), 'u', 1, 1, 1, 1, 1, 1, 0, 0, 0, 2,"
    " NULL FROM generate;"
    "INSERT INTO attribute SELECT value, 0, 'day', 1, NULL, printf('day %05d', value * 7919 % "
    "20000), NULL FROM generate;"
    "INSERT INTO attribute SELECT value, 0, 'size', 2, NULL, value * 7919 % 20000, NULL FROM "
    "generate;"
    "INSERT INTO attribute SELECT value, 0, 'project', 3, NULL, 'CMIP6', NULL FROM generate;"
    "INSERT INTO attribute SELECT value, 0, 'table', 4, NULL, printf('t%d', value % 4), NULL FROM "
    "generate;"
    /* Several values: "a, A" comes behind all that begin with "a+". */
    "INSERT INTO attribute SELECT value, 0, 'list', 5, NULL, 'a', NULL FROM generate WHERE value = "
    "77;"
    "INSERT INTO attribute SELECT value, 0, 'list', 6, NULL, 'A', NULL FROM generate WHERE value = "
    "77;"
    "INSERT INTO attribute SELECT value, 0, 'list', 5, NULL, 'a+' || value, NULL FROM generate "
    "WHERE value <> 77;"
    "UPDATE store SET value = 1000000 WHERE key = 'indexed';"
    "COMMIT;";

static int
setup(void **state)
{
    *state = store_with(catalogue);
    return 0;
}

/* The first containers, at most as many as there is room for; how many came in all. */
typedef struct came {
    uint64_t numbers[8];
    size_t count;
} came;

static bool
note(uint64_t container, void *user)
{
    came *c = user;
    if (c->count < sizeof c->numbers / sizeof *c->numbers)
        c->numbers[c->count] = container;
    c->count++;
    return true;
}

static void
walk(fixture *f, const char *attribute, bool descending, size_t most, esdm_meta_position *at,
     came *ret)
{
    esdm_error err = {0};
    *ret = (came){.count = 0};
    f->steps = 0;
    sqlite3_progress_handler(f->store->reader.db, 1, count_step, &f->steps);
    esdm_status status =
        sqlite__ordered(f->store, attribute, descending, most, at, note, ret, &err);
    sqlite3_progress_handler(f->store->reader.db, 0, NULL, NULL);
    if (status != ESDM_OK)
        fail_msg("%s", err.message);
}

/* The connection is opened by the first question. */
static void
connect(fixture *f)
{
    esdm_meta_position at = {0};
    came c;
    walk(f, "none", false, 1, &at, &c);
    assert_int_equal(c.count, 0);
    assert_int_equal(at.at, ESDM_META_AT_END);
    free(at.text);
}

static void
test_ordered__the_first_cost_what_they_are(void **state)
{
    fixture *f = *state;
    connect(f);
    static const struct {
        const char *attribute;
        bool descending;
    } walks[] = {{"day", false}, {"day", true}, {"size", false}};
    for (size_t i = 0; i < sizeof walks / sizeof walks[0]; i++) {
        esdm_meta_position at = {0};
        came c;
        for (uint64_t turn = 0; turn < 3; turn++) { /* in order, and none twice */
            walk(f, walks[i].attribute, walks[i].descending, 4, &at, &c);
            assert_int_equal(c.count, 4);
            for (uint64_t k = 0; k < 4; k++) {
                uint64_t rank = turn * 4 + k;
                assert_int_equal(c.numbers[k] * 7919 % CONTAINERS,
                                 walks[i].descending ? CONTAINERS - 1 - rank : rank);
            }
            if (f->steps == 0 || f->steps > 2000)
                fail_msg("%s took %llu steps", walks[i].attribute, (unsigned long long) f->steps);
        }
        free(at.text);
    }
}

static void
test_ordered__a_value_comes_as_a_whole(void **state)
{
    fixture *f = *state;
    esdm_meta_position at = {0};
    came c;
    connect(f);
    for (int value = 0; value < 4; value++) {
        walk(f, "table", false, 1, &at, &c);
        assert_int_equal(c.count, CONTAINERS / 4);
        assert_true(at.one_value);
        assert_int_equal(at.at, value < 3 ? ESDM_META_AT_TEXT : ESDM_META_AT_END);
    }
    free(at.text);
}

static void
test_ordered__downwards_a_list_comes_with_what_is_behind_it(void **state)
{
    fixture *f = *state;
    esdm_meta_position at = {0};
    came c;
    connect(f);
    walk(f, "list", true, 1, &at, &c);
    assert_int_equal(c.numbers[0], 77);
    assert_int_equal(c.numbers[1], 9999);
    assert_int_equal(c.count, 2);
    free(at.text);
}

static void
test_find_among__costs_what_it_is_asked(void **state)
{
    fixture *f = *state;
    esdm_error err = {0};
    const esdm_meta_condition project = {
        .attribute = "project", .op = ESDM_META_EQ, .text = "CMIP6"};
    const esdm_meta_condition table = {.attribute = "table", .op = ESDM_META_EQ, .text = "t1"};
    const esdm_meta_condition both[] = {project, table};
    const uint64_t numbers[] = {1, 2, 5, 19997, 30000};
    connect(f);
    for (size_t n = 1; n <= 2; n++) {
        const esdm_meta_expression e = {.conditions = both, .nconditions = n};
        size_t found = 0;
        uint64_t estimate = 0;
        f->steps = 0;
        sqlite3_progress_handler(f->store->reader.db, 1, count_step, &f->steps);
        esdm_status status =
            sqlite__find_among(f->store, &e, numbers, 5, count_match, &found, &err);
        sqlite3_progress_handler(f->store->reader.db, 0, NULL, NULL);
        assert_int_equal(status, ESDM_OK);
        assert_int_equal(found, n == 1 ? 4 : 3);
        if (f->steps == 0 || f->steps > 2000)
            fail_msg("%zu conditions took %llu steps", n, (unsigned long long) f->steps);
        assert_int_equal(sqlite__find_estimate(f->store, &e, &estimate, &err), ESDM_OK);
        assert_true(n == 1 ? estimate >= 16384 : estimate == CONTAINERS / 4);
    }
}

/* Looks at the plan of each statement that runs. */
static int
see_plan(unsigned event, void *user, void *statement, void *text)
{
    fixture *f = user;
    sqlite3_stmt *plan = NULL;
    (void) event, (void) text;
    const char *sql = sqlite3_sql(statement);
    if (strstr(sql, "main.attribute") == NULL)
        return 0;
    char *explain = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sql);
    assert_int_equal(sqlite3_prepare_v2(f->store->reader.db, explain, -1, &plan, NULL), SQLITE_OK);
    while (sqlite3_step(plan) == SQLITE_ROW) {
        const char *line = (const char *) sqlite3_column_text(plan, 3);
        bool table = strstr(line, "SCAN a") != NULL || strstr(line, "SCAN main") != NULL ||
                     strstr(line, "SCAN attribute") != NULL;
        if (table || (strstr(sql, "ORDER BY value") != NULL && strstr(line, "TEMP B-TREE") != NULL))
            fail_msg("'%s': %s", sql, line);
        f->plans++;
    }
    (void) sqlite3_finalize(plan);
    sqlite3_free(explain);
    return 0;
}

static void
test_ordered__no_plan_goes_through_a_table(void **state)
{
    fixture *f = *state;
    connect(f);
    for (int descending = 0; descending < 2; descending++) {
        esdm_meta_position at = {0};
        came c;
        f->plans = 0;
        (void) sqlite3_trace_v2(f->store->reader.db, SQLITE_TRACE_STMT, see_plan, f);
        for (int turn = 0; turn < 2; turn++)
            walk(f, "day", descending, 4, &at, &c);
        (void) sqlite3_trace_v2(f->store->reader.db, 0, NULL, NULL);
        assert_true(f->plans >= 2);
        free(at.text);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ordered__the_first_cost_what_they_are),
        cmocka_unit_test(test_ordered__a_value_comes_as_a_whole),
        cmocka_unit_test(test_ordered__downwards_a_list_comes_with_what_is_behind_it),
        cmocka_unit_test(test_find_among__costs_what_it_is_asked),
        cmocka_unit_test(test_ordered__no_plan_goes_through_a_table),
    };
    return cmocka_run_group_tests_name("ordered", tests, setup, teardown);
}
