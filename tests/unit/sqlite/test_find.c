/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What questions to a large catalogue without statistics cost, in steps of SQLite's machine,
 *  which depend on no clock. */

#include "store_support.h"

/* 20,000 containers: one of each `tracking`, ten of each `model`, all of `project`; two variables
 * each, of 4 units, and one has a number. */
static const char catalogue[] =
    "BEGIN;"
    "INSERT INTO container SELECT value, printf('run%d', value), 'u', 1, 1, 1, 1, 1, 1, 0, 0, 0, 2,"
    " NULL FROM generate;"
    "INSERT INTO attribute SELECT value, 0, 'tracking', 1, NULL, printf('id-%d', value), NULL"
    " FROM generate;"
    "INSERT INTO attribute SELECT value, 0, 'model', 2, NULL, printf('model-%d', value / 10), NULL"
    " FROM generate;"
    "INSERT INTO attribute SELECT value, 0, 'project', 3, NULL, 'CMIP6', NULL FROM generate;"
    /* Frequent values: spread, and together. */
    "INSERT INTO attribute SELECT value, 0, 'seventh', 7, NULL, printf('s%d', value % 7), NULL"
    " FROM generate;"
    "INSERT INTO attribute SELECT value, 0, 'eleventh', 8, NULL, value % 11, value % 11"
    " FROM generate;"
    "INSERT INTO attribute SELECT value, 0, 'block', 9, NULL, printf('b%d', value / 4000), NULL"
    " FROM generate;"
    "INSERT INTO attribute SELECT value, 0, 'half', 10, NULL, printf('h%d', value / 10000), NULL"
    " FROM generate;"
    "INSERT INTO attribute SELECT value, 1, 'units', 4, '/tas', 'K', NULL FROM generate;"
    "INSERT INTO attribute SELECT value, 1, 'level', 5, '/tas', value + 0.5, printf('%g', value + "
    "0.5) FROM generate;"
    "INSERT INTO attribute SELECT value, 2, 'units', 6, '/pr', printf('%d mm', value % 3), NULL"
    " FROM generate;"
    "INSERT INTO attribute SELECT value, 0, '@time_min', 0, NULL, value, NULL FROM generate;"
    "INSERT INTO attribute SELECT value, 0, '@time_max', 0, NULL, value + 10, NULL FROM generate;"
    "INSERT INTO attribute SELECT value, 0, '@grid', 0, NULL, 'regular', NULL FROM generate;"
    "INSERT INTO attribute SELECT value, 0, '@max:tas' || char(9) || 'K', 0, NULL, value, NULL"
    " FROM generate;"
    "INSERT INTO store VALUES('name:units', 1), ('name:level', 1);"
    "UPDATE store SET value = 1000000 WHERE key = 'indexed';"
    "COMMIT;";

static int
setup(void **state)
{
    *state = store_with(catalogue);
    return 0;
}

/* Asks, and holds the answer and its price. */
static void
ask(fixture *f, const esdm_meta_condition *conditions, size_t count, size_t found, uint64_t steps)
{
    esdm_error err = {0};
    f->steps = 0;
    f->found = 0;
    /* The connection is opened by the first question. */
    esdm_status status = sqlite__find(f->store, conditions, count, count_match, &f->found, &err);
    assert_int_equal(status, ESDM_OK);
    sqlite3_progress_handler(f->store->reader.db, 1, count_step, &f->steps);
    f->found = 0;
    status = sqlite__find(f->store, conditions, count, count_match, &f->found, &err);
    sqlite3_progress_handler(f->store->reader.db, 0, NULL, NULL);
    if (status != ESDM_OK)
        fail_msg("%s", err.message);
    assert_int_equal(f->found, found);
    if (f->steps == 0 || f->steps > steps)
        fail_msg("'%s' took %llu steps, more than %llu", conditions[0].attribute,
                 (unsigned long long) f->steps, (unsigned long long) steps);
}

#define TEXT(key, sign, value)                                                                     \
    {                                                                                              \
        .attribute = (key), .op = ESDM_META_##sign, .text = (value)                                \
    }

static void
test_find__one_text_costs_what_it_finds(void **state)
{
    const esdm_meta_condition one = TEXT("tracking", EQ, "id-777");
    ask(*state, &one, 1, 1, 1000);
    const esdm_meta_condition none = TEXT("tracking", EQ, "id-0");
    ask(*state, &none, 1, 0, 1000);
    const esdm_meta_condition beginning = TEXT("tracking", GLOB, "id-777*");
    ask(*state, &beginning, 1, 11, 2000);
    const esdm_meta_condition number = TEXT("level", EQ, "777.5");
    ask(*state, &number, 1, 1, 1000);
    const esdm_meta_condition less = TEXT("tracking", LE, "id-10");
    ask(*state, &less, 1, 2, 1000);
}

static void
test_find__the_most_selective_condition_comes_first(void **state)
{
    const esdm_meta_condition lists[][2] = {
        {TEXT("tracking", EQ, "id-777"), TEXT("project", EQ, "CMIP6")},
        {TEXT("project", EQ, "CMIP6"), TEXT("tracking", EQ, "id-777")},
        {TEXT("project", GLOB, "*"), TEXT("tracking", EQ, "id-777")},
        {TEXT("project", NE, "CMIP5"), TEXT("tracking", EQ, "id-777")},
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        ask(*state, lists[i], 2, 1, 20000);
    /* A variable's own and what it has from its container. */
    const esdm_meta_condition inherited[][2] = {
        {TEXT("units", EQ, "K"), TEXT("model", EQ, "model-77")},
        {TEXT("model", EQ, "model-77"), TEXT("units", EQ, "K")},
        {TEXT("units", GLOB, "K*"), TEXT("model", EQ, "model-77")},
    };
    for (size_t i = 0; i < sizeof inherited / sizeof inherited[0]; i++)
        ask(*state, inherited[i], 2, 10, 20000);
    const esdm_meta_condition three[] = {TEXT("project", EQ, "CMIP6"), TEXT("units", EQ, "K"),
                                         TEXT("level", EQ, "777.5")};
    ask(*state, three, 3, 1, 20000);
    const esdm_meta_condition never[] = {TEXT("project", EQ, "CMIP6"), TEXT("units", EQ, "degF")};
    ask(*state, never, 2, 0, 3000);
}

#define NUMBER(key, sign, value)                                                                   \
    {                                                                                              \
        .attribute = (key), .op = ESDM_META_##sign, .is_number = true, .number = (value)           \
    }

/* Extents are searched as numbers in their order; names of them one after the other. */
static void
test_find__ranges_cost_what_they_find(void **state)
{
    fixture *f = *state;
    const esdm_meta_condition value = NUMBER("@max:tas\tK", GT, 19990);
    ask(f, &value, 1, 10, 2000);
    const esdm_meta_condition early[] = {NUMBER("@time_min", LT, 5), NUMBER("@time_max", GE, 12)};
    ask(f, early, 2, 3, 5000);
    const esdm_meta_condition late[] = {NUMBER("@time_min", LT, 30000),
                                        NUMBER("@time_max", GE, 20005)};
    ask(f, late, 2, 6, 5000);
    const esdm_meta_condition mixed[] = {TEXT("@grid", EQ, "regular"), TEXT("project", EQ, "CMIP6"),
                                         TEXT("tracking", EQ, "id-777")};
    ask(f, mixed, 3, 1, 20000);
    const esdm_meta_condition dataset[] = {TEXT("@grid", EQ, "regular"), TEXT("units", EQ, "K"),
                                           TEXT("model", EQ, "model-77")};
    ask(f, dataset, 3, 10, 30000);
}

static bool
count_name(const char *name, void *user)
{
    (void) name;
    ++*(size_t *) user;
    return true;
}

static bool
count_value(size_t container, const esdm_meta_attribute *attribute, void *user)
{
    (void) container, (void) attribute;
    ++*(size_t *) user;
    return true;
}

static void
test_find__names_and_values_cost_what_they_tell(void **state)
{
    static const char *const containers[] = {"run7", "run9999", "nowhere"};
    static const char *const names[] = {"model", "units"};
    fixture *f = *state;
    esdm_error err = {0};
    size_t count = 0;
    f->steps = 0;
    sqlite3_progress_handler(f->store->reader.db, 1, count_step, &f->steps);
    assert_int_equal(sqlite__extent_names(f->store, "@", count_name, &count, &err), ESDM_OK);
    assert_int_equal(count, 4);
    assert_true(f->steps > 0 && f->steps < 500);
    f->steps = count = 0;
    assert_int_equal(
        sqlite__values(f->store, containers, 3, names, 2, true, count_value, &count, &err),
        ESDM_OK);
    assert_int_equal(count, 6); /* a model and two units each */
    assert_true(f->steps > 0 && f->steps < 1500);
    count = 0;
    assert_int_equal(
        sqlite__values(f->store, containers, 3, names, 2, false, count_value, &count, &err),
        ESDM_OK);
    assert_int_equal(count, 2);
    sqlite3_progress_handler(f->store->reader.db, 0, NULL, NULL);
}

/* What somebody has learned of the tables (ANALYZE), or learned long ago, changes nothing. */
static void
test_find__statistics_change_nothing(void **state)
{
    fixture *f = *state;
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(f->store->file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "ANALYZE; UPDATE sqlite_stat1 SET stat = '120000 1 1 1 1' "
                                  "WHERE idx = 'attribute_value';",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    (void) sqlite3_close(db);
    sqlite__close(f->store);
    void *store = NULL;
    esdm_error err = {0};
    assert_int_equal(sqlite__open(&f->config, false, &store, &err), ESDM_OK);
    f->store = store;
    test_find__one_text_costs_what_it_finds(state);
    test_find__the_most_selective_condition_comes_first(state);
}

/* ---- plans -------------------------------------------------------------------------------- */

/* Words that stand for what a query itself has made: lists of candidates, and single rows. */
static bool
is_scanned_by_right(const char *detail)
{
    static const char *const own[] = {"o", "s", "CONSTANT ROW", "(subquery", "c USING COVERING",
                                      "up"};
    const char *what = detail + strlen("SCAN ");
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (strncmp(what, own[i], strlen(own[i])) == 0 && (strlen(own[i]) > 1 || what[1] == '\0'))
            return true;
    }
    return false;
}

static void
check_plan(fixture *f, const char *sql, const char *what)
{
    char *text = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sql);
    sqlite3_stmt *statement = NULL;
    bool any = false;
    assert_non_null(text);
    if (sqlite3_prepare_v2(f->store->reader.db, text, -1, &statement, NULL) != SQLITE_OK)
        fail_msg("%s: %s: %s", what, sqlite3_errmsg(f->store->reader.db), text);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        const char *detail = (const char *) sqlite3_column_text(statement, 3);
        any |= strstr(detail, "USING") != NULL;
        if (strncmp(detail, "SCAN ", 5) == 0 && !is_scanned_by_right(detail))
            fail_msg("%s: %s in the plan of %s", what, detail, text);
    }
    if (!any)
        fail_msg("%s: no index is used by %s", what, text);
    (void) sqlite3_finalize(statement);
    sqlite3_free(text);
}

static void
test_find__no_operator_goes_through_a_table(void **state)
{
    fixture *f = *state;
    static const char *const names[] = {"model", "level", "@time_min"};
    static const char *const variables[] = {NULL, "", "tas"};
    static const esdm_meta_operator operators[] = {ESDM_META_EQ,  ESDM_META_NE, ESDM_META_LT,
                                                   ESDM_META_LE,  ESDM_META_GT, ESDM_META_GE,
                                                   ESDM_META_GLOB};
    for (size_t i = 0; i < 7u * 3 * 3 * 2 * 2; i++) {
        char what[100];
        sqlite__query q;
        esdm_error err = {0};
        size_t count = 1 + i % 2, rest = i / 4;
        bool number = i / 2 % 2 != 0;
        esdm_meta_condition two[2] = {
            {.attribute = names[rest % 3],
             .variable = variables[rest / 3 % 3],
             .op = operators[rest / 9],
             .is_number = number,
             .number = 7,
             .text = number ? "7" : "m*"},
            {.attribute = "project", .op = ESDM_META_EQ, .text = "CMIP6"}};
        (void) snprintf(what, sizeof what, "%s:%s, operator %d, %s, %zu",
                        two[0].variable != NULL ? two[0].variable : "*", two[0].attribute,
                        (int) two[0].op, number ? "number" : "text", count);
        assert_int_equal(
            sqlite__query_init(&q, &(esdm_meta_expression){two, count, NULL, 0, 0}, &err), ESDM_OK);
        for (size_t start = 0; start < count; start++) {
            q.covered = true;
            q.starts[0] = start;
            q.nstarts = 1;
            sqlite__query_put(&q, false);
            bool datasets_alone = two[0].attribute[0] == '@' && two[0].variable != NULL &&
                                  two[0].variable[0] != '\0' && count == 1;
            if (!datasets_alone) /* nothing is found by these alone */
                check_plan(f, (const char *) q.sql.data, what);
        }
        for (size_t k = 0; k < count; k++) {
            sqlite__query_put_count(&q, k);
            check_plan(f, (const char *) q.sql.data, what);
        }
        sqlite__query_clear(&q);
    }
    assert_int_equal(sqlite__view_set(f->store, NULL, 0, false, NULL), ESDM_OK);
    check_plan(f, sqlite__texts[SQLITE__FACET], "facets");
    check_plan(f, sqlite__texts[SQLITE__HIDDEN_NAMED], "names that are passed by");
    check_plan(f, sqlite__texts[SQLITE__VIEW_LEVEL], "a level of a view");
    check_plan(f, sqlite__texts[SQLITE__VIEW_FIND], "a place of a view");
}

/* The plan of a tree of comparisons that `kinds` says: "&" all of what follows, "|" any, "." the
 * next comparison, "!" not the next one; ")" ends a part. */
static void
check_tree(fixture *f, const esdm_meta_condition *conditions, size_t count, const char *kinds,
           bool all_containers)
{
    esdm_meta_node nodes[32] = {{0}};
    size_t open[8], depth = 0, n = 0, condition = 0;
    uint64_t counts[16], sum = 0;
    esdm_error err = {0};
    sqlite__query q;
    for (const char *k = kinds; *k != '\0'; k++) {
        if (*k == ')') {
            depth--;
            nodes[open[depth]].size = (uint32_t) (n - open[depth]);
            continue;
        }
        bool leaf = *k == '.' || *k == '!';
        nodes[n] = (esdm_meta_node){.kind = *k == '&'   ? ESDM_META_ALL
                                            : *k == '|' ? ESDM_META_ANY
                                            : *k == '.' ? ESDM_META_HOLDS
                                                        : ESDM_META_FAILS,
                                    .condition = leaf ? (uint32_t) condition : 0,
                                    .size = 1};
        condition += leaf;
        if (!leaf)
            open[depth++] = n;
        n++;
    }
    const esdm_meta_expression e = {conditions, count, nodes, n, 0};
    assert_int_equal(condition, count);
    for (int turn = 0; turn < 2; turn++) {
        assert_int_equal(sqlite__query_init(&q, &e, &err), ESDM_OK);
        for (size_t i = 0; i < count; i++)
            counts[i] = turn == 0 ? i : count - i;
        sqlite__query_begin(&q, counts, &sum);
        assert_int_equal(q.covered, !all_containers);
        sqlite__query_put(&q, false);
        if (!all_containers)
            check_plan(f, (const char *) q.sql.data, kinds);
        sqlite__query_clear(&q);
    }
    f->found = 0;
    f->steps = 0;
    assert_int_equal(sqlite__find_expression(f->store, &e, count_match, &f->found, &err), ESDM_OK);
    sqlite3_progress_handler(f->store->reader.db, 1, count_step, &f->steps);
    f->found = 0;
    assert_int_equal(sqlite__find_expression(f->store, &e, count_match, &f->found, &err), ESDM_OK);
    sqlite3_progress_handler(f->store->reader.db, 0, NULL, NULL);
}

/* How many of the containers in a range are n modulo 7 and m modulo 11; -1: any. */
static size_t
count_of(int from, int to, int n, int m)
{
    size_t count = 0;
    for (int i = from; i <= to && i <= CONTAINERS; i++)
        count += (n < 0 || i % 7 == n) && (m < 0 || i % 11 == m);
    return count;
}

/* Of frequent values, what lies between those that meet is not looked at. */
static void
test_find__frequent_values_meet(void **state)
{
    fixture *f = *state;
    const esdm_meta_condition none[] = {TEXT("block", EQ, "b3"), TEXT("half", EQ, "h0"),
                                        TEXT("project", EQ, "CMIP6")};
    check_tree(f, none, 3, "&...)", false);
    assert_int_equal(f->found, 0);
    assert_true(f->steps < 60000); /* 300,000 when one was looked at after the other */
    const esdm_meta_condition both[] = {TEXT("seventh", EQ, "s3"), NUMBER("eleventh", EQ, 5)};
    check_tree(f, both, 2, "&..)", false);
    assert_int_equal(f->found, count_of(1, CONTAINERS, 3, 5));
    /* Alternatives, and what must fail. */
    const esdm_meta_condition some[] = {TEXT("seventh", EQ, "s3"), TEXT("seventh", EQ, "s4"),
                                        TEXT("block", EQ, "b2"), NUMBER("eleventh", EQ, 5)};
    check_tree(f, some, 4, "&|..).!)", false);
    assert_int_equal(f->found, count_of(8000, 11999, 3, -1) - count_of(8000, 11999, 3, 5) +
                                   count_of(8000, 11999, 4, -1) - count_of(8000, 11999, 4, 5));
    /* A value that datasets have, and one that they have from their container. */
    const esdm_meta_condition own[] = {TEXT("units", EQ, "K"), TEXT("block", EQ, "b2"),
                                       TEXT("seventh", EQ, "s3")};
    check_tree(f, own, 3, "&...)", false);
    assert_int_equal(f->found, count_of(8000, 11999, 3, -1));
    /* Something else is rarer than what is met together. */
    const esdm_meta_condition rare[] = {TEXT("project", EQ, "CMIP6"), TEXT("half", EQ, "h0"),
                                        TEXT("tracking", GLOB, "id-5*")};
    check_tree(f, rare, 3, "&...)", false);
    assert_int_equal(f->found, 1111);
}

/* Alternatives and what must fail cost what they find, in one statement. */
static void
test_find__expressions_cost_what_they_find(void **state)
{
    fixture *f = *state;
    const esdm_meta_condition c[] = {TEXT("tracking", EQ, "id-777"), TEXT("tracking", EQ, "id-9"),
                                     TEXT("project", EQ, "CMIP6"),   TEXT("model", EQ, "model-77"),
                                     TEXT("units", EQ, "K"),         TEXT("units", EQ, "1 mm")};
    check_tree(f, c, 2, "|..)", false);
    assert_int_equal(f->found, 2);
    assert_true(f->steps < 2000);
    check_tree(f, c, 3, "&|..).)", false);
    assert_int_equal(f->found, 2);
    assert_true(f->steps < 10000);
    check_tree(f, c, 6, "&|..)&.|.|..))))", false);
    assert_int_equal(f->found, 3); /* one that is of the model, and variables with the unit */
    assert_true(f->steps < 60000); /* 300,000 when one was looked at after the other */
    const esdm_meta_condition not_those[] = {TEXT("model", EQ, "model-77"),
                                             TEXT("tracking", EQ, "id-777"),
                                             TEXT("project", EQ, "CMIP5")};
    check_tree(f, not_those, 3, "&.!!)", false);
    assert_int_equal(f->found, 9);
    assert_true(f->steps < 10000);
    const esdm_meta_condition ranges[] = {NUMBER("@time_min", LT, 5), NUMBER("@time_max", GE, 12),
                                          NUMBER("@time_max", GE, 20008),
                                          TEXT("project", EQ, "CMIP6"), TEXT("units", EQ, "K")};
    check_tree(f, ranges, 5, "&|&..).)|..))", false);
    assert_int_equal(f->found, 6 + 6); /* and their variables */
    assert_true(f->steps < 60000);     /* 300,000 when one was looked at after the other */
    check_tree(f, ranges, 2, "|.!)", true);
}

/* What a tree finds is too much: what was asked is asked of each container, also alone. */
static void
test_find__one_range_is_asked_of_what_a_tree_found(void **state)
{
    (void) state;
    const esdm_meta_condition one = NUMBER("@time_min", LT, 5);
    sqlite__query q;
    assert_int_equal(sqlite__query_init(&q, &(esdm_meta_expression){&one, 1, NULL, 0, 0}, NULL),
                     ESDM_OK);
    q.covered = q.narrowed = true;
    esdm__buffer_put(&q.met, "[3,7]", 6);
    sqlite__query_put(&q, false);
    assert_non_null(strstr((const char *) q.sql.data, "json_each"));
    assert_non_null(strstr((const char *) q.sql.data, "EXISTS"));
    sqlite__query_clear(&q);
}

/* Whether sets are taken is a question to the connection, not one of each query. */
static int
see_set(void *user, int action, const char *table, const char *column, const char *db,
        const char *by)
{
    (void) column, (void) db, (void) by;
    *(int *) user += action == SQLITE_READ && strcmp(table, "json_each") == 0;
    return SQLITE_OK;
}

static void
test_find__functions_are_looked_for_once(void **state)
{
    fixture *f = *state;
    const esdm_meta_condition c[] = {TEXT("project", GLOB, "C*"), TEXT("half", GLOB, "h*")};
    esdm_error err = {0};
    int sets = 0;
    assert_int_equal(sqlite__find(f->store, c, 2, count_match, &f->found, &err), ESDM_OK);
    (void) sqlite3_set_authorizer(f->store->reader.db, see_set, &sets);
    assert_int_equal(sqlite__find(f->store, c, 2, count_match, &f->found, &err), ESDM_OK);
    (void) sqlite3_set_authorizer(f->store->reader.db, NULL, NULL);
    assert_int_equal(sets, 0);
}

/* Containers that are entered together touch up to 3,000 pages of a large index: pages that do not
 * fit are written one by one, and read again. */
static void
test_find__entering_keeps_its_pages(void **state)
{
    fixture *f = *state;
    int spilled = -1, most = 0;
    assert_int_equal(sqlite__begin_write(f->store, false, NULL), ESDM_OK);
    sqlite3 *db = f->store->writer.db;
    assert_int_equal(
        sqlite__attributes_changed(&f->store->writer, UINT64_C(64) << 20, true, NULL, 0, NULL),
        ESDM_OK); /* enters what waits */
    for (int i = 1; i <= 1100; i++) {
        char row[200];
        (void) snprintf(row, sizeof row,
                        "INSERT INTO attribute VALUES(%d, 0, 'a', 0, NULL, hex(zeroblob(1700)), "
                        "NULL)",
                        i);
        assert_int_equal(sqlite3_exec(db, row, NULL, NULL, NULL), SQLITE_OK);
    }
    assert_int_equal(sqlite3_db_status(db, SQLITE_DBSTATUS_CACHE_SPILL, &spilled, &most, 0),
                     SQLITE_OK);
    assert_int_equal(spilled, 0);
    assert_int_equal(sqlite__end_write(f->store, ESDM_ECONFLICT, NULL), ESDM_ECONFLICT);
    int bytes = 0;
    assert_int_equal(sqlite3_db_status(db, SQLITE_DBSTATUS_CACHE_USED, &bytes, &most, 0),
                     SQLITE_OK);
    assert_true(bytes < 9 << 20); /* what was more is given back */
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find__one_text_costs_what_it_finds),
        cmocka_unit_test(test_find__the_most_selective_condition_comes_first),
        cmocka_unit_test(test_find__ranges_cost_what_they_find),
        cmocka_unit_test(test_find__names_and_values_cost_what_they_tell),
        cmocka_unit_test(test_find__no_operator_goes_through_a_table),
        cmocka_unit_test(test_find__frequent_values_meet),
        cmocka_unit_test(test_find__expressions_cost_what_they_find),
        cmocka_unit_test(test_find__one_range_is_asked_of_what_a_tree_found),
        cmocka_unit_test(test_find__functions_are_looked_for_once),
        cmocka_unit_test(test_find__statistics_change_nothing),
        cmocka_unit_test(test_find__entering_keeps_its_pages),
    };
    return cmocka_run_group_tests_name("find", tests, setup, teardown);
}
