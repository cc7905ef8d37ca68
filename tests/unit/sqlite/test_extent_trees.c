/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The trees over times and boxes: what questions cost with them, and that they never lack
 *  what was changed, by whomever. */
#include <math.h>

#include "trees_support.h"

/* What "time overlaps 40.5 and box overlaps WEST,41,WEST,41" asks. */
static void
ask(fixture *f, double west)
{
    const esdm_meta_condition c[] = {
        NUMBER("@time_min", LT, 40.5),      NUMBER("@time_max", GE, 40.5),
        NUMBER("@lat_min", LE, 41),         NUMBER("@lat_max", GE, 41),
        NUMBER("@lon_min", LE, west),       NUMBER("@lon_max", GE, west),
        NUMBER("@lon_max", GE, west + 360),
    };
    const esdm_meta_node nodes[] = {
        {ESDM_META_ALL, 0, 10},  {ESDM_META_HOLDS, 0, 1}, {ESDM_META_HOLDS, 1, 1},
        {ESDM_META_HOLDS, 2, 1}, {ESDM_META_HOLDS, 3, 1}, {ESDM_META_ANY, 0, 5},
        {ESDM_META_ALL, 0, 3},   {ESDM_META_HOLDS, 4, 1}, {ESDM_META_HOLDS, 5, 1},
        {ESDM_META_HOLDS, 6, 1},
    };
    const esdm_meta_expression e = {c, 7, nodes, 10, 0};
    esdm_error err = {0};
    for (int turn = 0; turn < 2; turn++) { /* the first one opens the connection */
        if (turn == 1)
            sqlite3_progress_handler(f->store->reader.db, 1, count_step, &f->steps);
        f->steps = f->found = 0;
        if (sqlite__find_expression(f->store, &e, count_match, &f->found, &err) != ESDM_OK)
            fail_msg("%s", err.message);
    }
    sqlite3_progress_handler(f->store->reader.db, 0, NULL, NULL);
}

static size_t
count_of(int west)
{
    size_t count = 0;
    for (int n = 1; n <= CONTAINERS; n++) {
        int t = n % 97, lat = n % 90, lon = n % 170;
        count += t >= 39 && t <= 40 && lat >= 40 && lat <= 41 && lon >= west - 1 && lon <= west;
    }
    return count;
}

static void
test_extent_trees__find_what_the_index_finds(void **state)
{
    fixture *f = *state;
    size_t before[170];
    uint64_t steps = 0;
    for (int west = 1; west < 170; west += 24) {
        ask(f, west);
        assert_int_equal(f->found, count_of(west));
        before[west] = f->found;
        steps = west == 73 ? f->steps : steps;
    }
    assert_int_equal(sqlite__view_set(f->store, NULL, 0, false, NULL), ESDM_OK);
    for (int west = 1; west < 170; west += 24) {
        ask(f, west);
        assert_int_equal(f->found, before[west]);
        if (west == 73) /* what is there before and after it is frequent */
            assert_true(f->steps < 60000 && f->steps < steps / 3);
    }
}

/* Another program knows nothing of the trees. */
static void
test_extent_trees__lack_nothing_that_others_changed(void **state)
{
    fixture *f = *state;
    const esdm_meta_extent more[] = {
        {.name = "@time_min", .has_number = true, .number = 40},
        {.name = "@time_max", .has_number = true, .number = 41},
    };
    const double west = 169.5; /* of n % 170 = 169 alone */
    esdm_error err = {0};
    assert_int_equal(sqlite__view_set(f->store, NULL, 0, false, NULL), ESDM_OK);
    ask(f, west);
    size_t found = f->found;
    change(f, "UPDATE attribute SET value = 40 WHERE container BETWEEN 1000 AND 1169 "
              "AND name IN ('@time_min', '@lat_min');"
              "UPDATE attribute SET value = 41 WHERE container BETWEEN 1000 AND 1169 "
              "AND name IN ('@time_max', '@lat_max');");
    ask(f, west);
    assert_int_equal(f->found, found + 1);
    /* What waits is entered by those that know: 170, some with each commit. */
    sqlite__link *link = &f->store->writer;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(sqlite__begin_write(f->store, false, &err), ESDM_OK);
        assert_int_equal(sqlite__extents_put(link, 7, more, 2, SQLITE__EXTENTS_SOME, &err),
                         ESDM_OK);
        assert_int_equal(sqlite__end_write(f->store, ESDM_OK, &err), ESDM_OK);
    }
    int64_t waiting = 0;
    assert_int_equal(
        sqlite__query_number(link, "SELECT count(*) FROM extent_changed", &waiting, &err), ESDM_OK);
    assert_true(waiting < 32);
    ask(f, west);
    assert_int_equal(f->found, found + 1);
    /* What is gone leaves no rows. */
    change(f, "DELETE FROM attribute WHERE container BETWEEN 1000 AND 1169;"
              "DELETE FROM container WHERE container BETWEEN 1000 AND 1169;");
    for (int i = 0; i < 20; i++) {
        assert_int_equal(sqlite__begin_write(f->store, false, &err), ESDM_OK);
        assert_int_equal(sqlite__trees_keep(link, &err), ESDM_OK);
        assert_int_equal(sqlite__end_write(f->store, ESDM_OK, &err), ESDM_OK);
    }
    ask(f, west);
    assert_int_equal(f->found, found);
    int64_t rows = 0;
    assert_int_equal(sqlite__query_number(link,
                                          "SELECT count(*) + (SELECT count(*) FROM extent_changed) "
                                          "FROM extent_box",
                                          &rows, &err),
                     ESDM_OK);
    assert_in_range(rows, CONTAINERS - 170, CONTAINERS - 170 + 64);
}

/* The trees have 32-bit numbers. */
static void
test_extent_trees__lack_no_number_that_they_cannot_hold(void **state)
{
    fixture *f = *state;
    static const double ranges[][2] = {
        {1e39, 1e40},   {-1e40, -1e39},   {-1e300, 1e300}, {0, 1e-46},     {-1e-46, 0},
        {1e-46, 1e-45}, {-1e-45, -1e-46}, {4e38, 4e38},    {2e-45, 3e-45}, {1.2e-38, 1.2e-38}};
    enum { RANGES = sizeof ranges / sizeof *ranges };
    size_t before[RANGES][2];
    char sql[400];
    for (int i = 0; i < RANGES; i++) {
        (void) snprintf(
            sql, sizeof sql,
            "INSERT INTO container SELECT %d, 'far%d', uuid, 1, 1, 1, 1, 1, 1, 0, 0, 0, 2,"
            " NULL FROM container WHERE container = 1;"
            "INSERT INTO attribute VALUES(%d, 0, '@time_min', 0, NULL, %.17g, NULL),"
            "(%d, 0, '@time_max', 0, NULL, %.17g, NULL)",
            CONTAINERS + 1 + i, i, CONTAINERS + 1 + i, ranges[i][0], CONTAINERS + 1 + i,
            ranges[i][1]);
        change(f, sql);
    }
    for (int i = 0; i < RANGES; i++) {
        before[i][0] = count_times(f, fmax(ranges[i][0], 90), ranges[i][1]);
        before[i][1] = count_times(f, ranges[i][0], fmin(ranges[i][1], 5));
    }
    assert_int_equal(sqlite__view_set(f->store, NULL, 0, false, NULL), ESDM_OK);
    for (int i = 0; i < RANGES; i++) {
        assert_int_equal(count_times(f, fmax(ranges[i][0], 90), ranges[i][1]), before[i][0]);
        assert_int_equal(count_times(f, ranges[i][0], fmin(ranges[i][1], 5)), before[i][1]);
    }
}

/* Where containers are removed and none is made, no commit enters what waits. */
static void
test_extent_trees__forget_what_is_removed(void **state)
{
    fixture *f = *state;
    esdm_error err = {0};
    int64_t waiting = 0;
    assert_int_equal(sqlite__view_set(f->store, NULL, 0, false, NULL), ESDM_OK);
    change(f, "UPDATE container SET name = NULL, sum = 'none' WHERE container <= 100");
    for (uint64_t n = 1; n <= 100; n++) {
        if (sqlite__forget(f->store, n, &err) != ESDM_OK)
            fail_msg("%s", err.message);
    }
    assert_int_equal(sqlite__query_number(&f->store->writer, "SELECT count(*) FROM extent_changed",
                                          &waiting, &err),
                     ESDM_OK);
    assert_true(waiting < 32);
}

/* What a statement that is prepared reads. */
typedef struct seen {
    int trees; /* the tree over times */
    int sets;
} seen;

static int
see(void *user, int action, const char *table, const char *column, const char *db, const char *by)
{
    seen *s = user;
    (void) column, (void) db, (void) by;
    s->trees += action == SQLITE_READ && strcmp(table, "extent_time") == 0;
    s->sets += action == SQLITE_READ && strcmp(table, "json_each") == 0;
    return SQLITE_OK;
}

/* Also where lists that all containers are in are met in two attempts. */
static void
test_extent_trees__are_searched_once(void **state)
{
    fixture *f = *state;
    seen once = {0}, all = {0};
    enum { LISTS = 8 };
    const esdm_meta_condition same = {
        .attribute = "@time_max", .op = ESDM_META_GE, .is_number = true, .number = 0};
    esdm_meta_condition c[LISTS + 2] = {same, NUMBER("@time_min", GE, 0)};
    char names[LISTS][16], sql[300];
    esdm_error err = {0};
    for (int k = 0; k < LISTS; k++) {
        (void) snprintf(names[k], sizeof names[k], "same%d", k);
        (void) snprintf(sql, sizeof sql,
                        "INSERT INTO attribute SELECT container, 0, '%s', 0, NULL, 'x', NULL "
                        "FROM container",
                        names[k]);
        change(f, sql);
        c[k + 2] = (esdm_meta_condition){.attribute = names[k], .op = ESDM_META_EQ, .text = "x"};
    }
    assert_int_equal(sqlite__view_set(f->store, NULL, 0, false, NULL), ESDM_OK);
    assert_int_equal(sqlite__find(f->store, c, 2, count_match, &f->found, &err), ESDM_OK);
    /* How often one search is seen. */
    (void) sqlite3_set_authorizer(f->store->reader.db, see, &once);
    assert_int_equal(sqlite__find(f->store, c, 2, count_match, &f->found, &err), ESDM_OK);
    (void) sqlite3_set_authorizer(f->store->reader.db, see, &all);
    f->found = 0;
    assert_int_equal(sqlite__find(f->store, c, LISTS + 2, count_match, &f->found, &err), ESDM_OK);
    (void) sqlite3_set_authorizer(f->store->reader.db, NULL, NULL);
    assert_int_equal(f->found, CONTAINERS);
    assert_int_not_equal(once.trees, 0);
    assert_int_equal(all.trees, once.trees);
}

/* An SQLite without R*Trees reads what others made, and commits; those that have them find it. */
static void
test_extent_trees__are_not_needed(void **state)
{
    fixture *f = *state;
    const esdm_meta_extent more[] = {
        {.name = "@time_min", .has_number = true, .number = 40},
        {.name = "@time_max", .has_number = true, .number = 41},
        {.name = "@lat_min", .has_number = true, .number = 40},
        {.name = "@lat_max", .has_number = true, .number = 42},
    };
    esdm_error err = {0};
    assert_int_equal(sqlite__view_set(f->store, NULL, 0, false, NULL), ESDM_OK);
    ask(f, 73);
    size_t found = f->found;
    for (int turn = 0; turn < 2; turn++) { /* connections of their own, without and with */
        void *store = NULL;
        sqlite__close(f->store);
        assert_int_equal(sqlite__open(&f->config, false, &store, &err), ESDM_OK);
        f->store = store;
        assert_int_equal(sqlite__begin_write(f->store, false, &err), ESDM_OK);
        assert_int_equal(sqlite__end_write(f->store, ESDM_OK, &err), ESDM_OK);
        assert_int_equal(sqlite__begin_read(f->store, &err), ESDM_OK);
        sqlite__end_read(f->store);
        static const char *const others[] = {"json_each", NULL};
        if (turn == 0) {
            (void) sqlite3_drop_modules(f->store->reader.db, (const char **) others);
            (void) sqlite3_drop_modules(f->store->writer.db, (const char **) others);
        }
        for (uint64_t n = 0; n < 50 && turn == 0; n++) { /* containers 73, 243, ... */
            assert_int_equal(sqlite__begin_write(f->store, false, &err), ESDM_OK);
            esdm_status status = sqlite__extents_put(&f->store->writer, 73 + 170 * n, more, 4,
                                                     SQLITE__EXTENTS_SOME, &err);
            if (sqlite__end_write(f->store, status, &err) != ESDM_OK)
                fail_msg("%s", err.message);
        }
        ask(f, 73);
        assert_in_range(f->found, found + 40, found + 50);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_extent_trees__find_what_the_index_finds, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_extent_trees__are_not_needed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_extent_trees__lack_nothing_that_others_changed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_extent_trees__lack_no_number_that_they_cannot_hold,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_extent_trees__forget_what_is_removed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_extent_trees__are_searched_once, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
