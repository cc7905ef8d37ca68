/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The trees over times and boxes: what questions cost with them, and that they never lack
 *  what was changed, by whomever. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "find.h"
#include "store.h"

/* Container n: times n % 97 to that + 2, latitudes n % 90, longitudes n % 170, each to that + 1. */
#define CONTAINERS 20000
static const char catalogue[] =
    "BEGIN;"
    "INSERT INTO container SELECT value, printf('run%d', value), 'u', 1, 1, 1, 1, 1, 1, 0, 0, 0, 2,"
    " NULL FROM generate;"
    "INSERT INTO attribute SELECT value, 0, '@time_min', 0, NULL, value % 97, NULL FROM generate;"
    "INSERT INTO attribute SELECT value, 0, '@time_max', 0, NULL, value % 97 + 2, NULL"
    " FROM generate;"
    "INSERT INTO attribute SELECT value, 0, '@lat_min', 0, NULL, value % 90, NULL FROM generate;"
    "INSERT INTO attribute SELECT value, 0, '@lat_max', 0, NULL, value % 90 + 1, NULL"
    " FROM generate;"
    "INSERT INTO attribute SELECT value, 0, '@lon_min', 0, NULL, value % 170, NULL FROM generate;"
    "INSERT INTO attribute SELECT value, 0, '@lon_max', 0, NULL, value % 170 + 1, NULL"
    " FROM generate;"
    "UPDATE store SET value = 1000000 WHERE key = 'indexed';"
    "COMMIT;";

typedef struct fixture {
    char directory[64];
    char json[128];
    esdm_plugin_config config;
    sqlite__store *store;
    uint64_t steps;
    size_t found;
} fixture;

static void
change(const fixture *f, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(f->store->file, &db), SQLITE_OK);
    int code = sqlite3_exec(db, sql, NULL, NULL, NULL);
    if (code != SQLITE_OK)
        fail_msg("%s: %s", sqlite3_errmsg(db), sql);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int
setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    esdm_error err = {0};
    char generate[200];
    void *store = NULL;
    (void) snprintf(f->directory, sizeof f->directory, "/tmp/esdm-trees.XXXXXX");
    if (mkdtemp(f->directory) == NULL)
        return -1;
    (void) snprintf(f->json, sizeof f->json, "{\"directory\": \"%s/meta\"}", f->directory);
    f->config = (esdm_plugin_config){.name = "metadata",
                                     .json = f->json,
                                     .path = "metadata",
                                     .site_id = "0123456789abcdef0123456789abcdef"};
    assert_int_equal(sqlite__make(&f->config, false, NULL, NULL, &err), ESDM_OK);
    assert_int_equal(sqlite__open(&f->config, false, &store, &err), ESDM_OK);
    f->store = store;
    (void) snprintf(generate, sizeof generate,
                    "CREATE TABLE generate AS WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL "
                    "SELECT value + 1 FROM n WHERE value < %d) SELECT value FROM n;",
                    CONTAINERS);
    change(f, generate);
    change(f, catalogue);
    change(f, "DROP TABLE generate");
    *state = f;
    return 0;
}

static int
teardown(void **state)
{
    fixture *f = *state;
    char command[100];
    sqlite__close(f->store);
    (void) snprintf(command, sizeof command, "rm -rf %s", f->directory);
    int status = system(command);
    free(f);
    return status;
}

static int
count_step(void *user)
{
    ++*(uint64_t *) user;
    return 0;
}

static bool
count_match(const char *container, const char *path, void *user)
{
    (void) container, (void) path;
    ++*(size_t *) user;
    return true;
}

#define NUMBER(key, sign, value)                                                                   \
    {                                                                                              \
        .attribute = (key), .op = ESDM_META_##sign, .is_number = true, .number = (value)           \
    }

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

/* What is asked of times alone: @time_min <= low, @time_max >= high. */
static size_t
count_times(fixture *f, double low, double high)
{
    const esdm_meta_condition c[] = {NUMBER("@time_min", LE, low), NUMBER("@time_max", GE, high)};
    esdm_error err = {0};
    size_t found = 0;
    if (sqlite__find(f->store, c, 2, count_match, &found, &err) != ESDM_OK)
        fail_msg("%s", err.message);
    return found;
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

/* Of a new container a table that is made for each attribute would take most of the commit, and so
 * would be a trigger for each, or a journal of each statement. */
static void
test_extent_trees__cost_new_containers_no_tables(void **state)
{
    fixture *f = *state;
    static const sqlite__statement_id ids[] = {
        SQLITE__ATTRIBUTE_INSERT, SQLITE__ATTRIBUTE_INSERT_16, SQLITE__EXTENT_INSERT,
        SQLITE__EXTENT_INSERT_16, SQLITE__EXTENT_SET,          SQLITE__EXTENT_LOWER};
    assert_int_equal(sqlite__view_set(f->store, NULL, 0, false, NULL), ESDM_OK);
    sqlite3 *db = f->store->writer.db;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        char text[1000];
        sqlite3_stmt *explained = NULL;
        (void) snprintf(text, sizeof text, "EXPLAIN %s", sqlite__texts[ids[i]]);
        assert_int_equal(sqlite3_prepare_v2(db, text, -1, &explained, NULL), SQLITE_OK);
        while (sqlite3_step(explained) == SQLITE_ROW) {
            const char *does = (const char *) sqlite3_column_text(explained, 1);
            if (strcmp(does, "OpenEphemeral") == 0)
                fail_msg("a table is made: %s", text);
            if (strcmp(does, "Program") == 0)
                fail_msg("a trigger runs: %s", text);
        }
        assert_int_equal(sqlite3_finalize(explained), SQLITE_OK);
    }
}

/* A statement takes up to 16; of one that comes again the last or the outermost value counts. */
static void
test_extent_trees__get_many_extents_together(void **state)
{
    fixture *f = *state;
    enum { LEVELS = 16 };
    esdm_meta_extent some[LEVELS + 5];
    char names[LEVELS][20];
    size_t n = 0;
    esdm_error err = {0};
    int64_t rows = 0;
    for (; n < LEVELS; n++) {
        (void) snprintf(names[n], sizeof names[n], "@level%02zu", n);
        some[n] =
            (esdm_meta_extent){.name = names[n], .has_number = true, .number = 1.5 + (double) n};
    }
    some[n++] = (esdm_meta_extent){.name = "@time_max", .has_number = true, .number = 700};
    some[n++] = (esdm_meta_extent){.name = "@time_min", .has_number = true, .number = 600};
    some[n++] = (esdm_meta_extent){.name = "@word", .text = "sea"};
    some[n++] = (esdm_meta_extent){
        .name = "@time_min", .has_number = true, .number = 610, .how = ESDM_META_EXTENT_LOWER};
    some[n++] = (esdm_meta_extent){.name = "@level00", .has_number = true, .number = 7};
    assert_int_equal(sqlite__view_set(f->store, NULL, 0, false, NULL), ESDM_OK);
    for (size_t take = 1; take <= n; take++) {
        const uint64_t container = CONTAINERS + take;
        char sql[1000];
        assert_int_equal(sqlite__begin_write(f->store, false, &err), ESDM_OK);
        esdm_status status = sqlite__extents_put(&f->store->writer, container, some, take,
                                                 SQLITE__EXTENTS_FIRST, &err);
        if (sqlite__end_write(f->store, status, &err) != ESDM_OK)
            fail_msg("%s", err.message);
        (void) snprintf(sql, sizeof sql,
                        "SELECT count(*) * 1000 + total(value) FROM attribute "
                        "WHERE container = %d AND dataset = 0 AND entry = 0 AND path IS NULL",
                        (int) container);
        double sum = 0; /* a text counts as 0 */
        for (size_t i = 0; i < take && i < LEVELS; i++)
            sum += i == 0 && take == n ? 7 : some[i].number;
        sum += take > LEVELS ? 700 : 0;
        sum += take > LEVELS + 1 ? 600 : 0;
        sum += 1000.0 * (double) (take < LEVELS + 3 ? take : LEVELS + 3);
        assert_int_equal(sqlite__query_number(&f->store->writer, sql, &rows, &err), ESDM_OK);
        assert_int_equal(rows, (int64_t) sum);
    }
    /* Those with times are noted, or entered. */
    assert_int_equal(sqlite__query_number(&f->store->writer,
                                          "SELECT count(*) FROM extent_changed WHERE container > "
                                          "20000",
                                          &rows, &err),
                     ESDM_OK);
    assert_int_equal(rows, n - LEVELS);
}

/* Clones and what is removed are noted by the version that does it: no trigger is run for it. */
static void
test_extent_trees__have_clones(void **state)
{
    fixture *f = *state;
    const esdm_meta_extent two[] = {{.name = "@time_min", .has_number = true, .number = 500},
                                    {.name = "@time_max", .has_number = true, .number = 502}};
    const esdm_meta_commit commit = {.kind = ESDM_META_CREATE,
                                     .name = "first",
                                     .uuid = "0123456789abcdef0123456789abcdef",
                                     .document = "{}",
                                     .document_bytes = 2,
                                     .history = 1,
                                     .extents = two,
                                     .nextents = 2};
    esdm_error err = {0};
    esdm_meta_committed first = {0}, copy = {0};
    uint64_t removed = 0;
    int64_t noted = 0;
    assert_int_equal(sqlite__view_set(f->store, NULL, 0, false, NULL), ESDM_OK);
    if (sqlite__commit(f->store, &commit, &first, &err) != ESDM_OK)
        fail_msg("%s", err.message);
    const esdm_meta_clone clone = {.container = first.container,
                                   .from = "first",
                                   .name = "second",
                                   .uuid = "1123456789abcdef0123456789abcdef"};
    if (sqlite__clone(f->store, &clone, &copy, &err) != ESDM_OK)
        fail_msg("%s", err.message);
    assert_int_equal(count_times(f, 501, 501), 2);
    sqlite__link *link = &f->store->writer;
    assert_int_equal(
        sqlite__query_number(link, "SELECT count(*) FROM extent_changed", &noted, &err), ESDM_OK);
    assert_int_equal(noted, 2);
    change(f, "DELETE FROM extent_changed");
    assert_int_equal(sqlite__container_remove(f->store, "first", &removed, &err), ESDM_OK);
    if (sqlite__forget(f->store, removed, &err) != ESDM_OK)
        fail_msg("%s", err.message);
    assert_int_equal(
        sqlite__query_number(link, "SELECT sum(container) FROM extent_changed", &noted, &err),
        ESDM_OK);
    assert_int_equal(noted, first.container);
}

/* What has a store open does not write to it any more when a newer version has upgraded it: no
 * trigger would keep it out. */
static void
test_extent_trees__of_a_newer_format_are_left_alone(void **state)
{
    fixture *f = *state;
    esdm_error err = {0};
    assert_int_equal(sqlite__begin_write(f->store, false, &err), ESDM_OK);
    assert_int_equal(sqlite__end_write(f->store, ESDM_OK, &err), ESDM_OK);
    change(f, "PRAGMA user_version = 7");
    assert_int_equal(sqlite__begin_write(f->store, false, &err), ESDM_EACCES);
    assert_non_null(strstr(err.message, "was upgraded to format 7"));
}

static size_t
put_ranges(fixture *f, uint64_t first, uint64_t last)
{
    const esdm_meta_extent two[] = {
        {.name = "@time_min", .has_number = true, .number = 500},
        {.name = "@time_max", .has_number = true, .number = 501},
        {.name = "@time_max", .has_number = true, .number = 502}, /* the last one counts */
    };
    esdm_error err = {0};
    for (uint64_t n = first; n < last; n++) {
        assert_int_equal(sqlite__begin_write(f->store, false, &err), ESDM_OK);
        esdm_status status =
            sqlite__extents_put(&f->store->writer, n, two, 3, SQLITE__EXTENTS_FIRST, &err);
        if (sqlite__end_write(f->store, status, &err) != ESDM_OK)
            fail_msg("%s", err.message);
    }
    return count_times(f, 501.5, 501.5);
}

/* Made by an older version, with triggers that noted the same: what it notes is entered. */
static void
test_extent_trees__enter_what_older_versions_note(void **state)
{
    fixture *f = *state;
    const uint64_t first = CONTAINERS + 1, last = CONTAINERS + 101;
    esdm_error err = {0};
    int64_t count = 0;
    assert_int_equal(sqlite__view_set(f->store, NULL, 0, false, NULL), ESDM_OK);
    change(f, "DROP TRIGGER extent_range_inserted; DROP TRIGGER extent_range_updated;"
              "CREATE TRIGGER extent_inserted AFTER INSERT ON attribute "
              "WHEN NEW.name IN ('@time_min', '@time_max', '@lat_min') BEGIN "
              "INSERT INTO extent_changed SELECT NEW.container WHERE NOT EXISTS "
              "(SELECT 1 FROM extent_changed WHERE container = NEW.container); END;"
              "CREATE TRIGGER extent_updated AFTER UPDATE ON attribute "
              "WHEN NEW.name IN ('@time_min', '@time_max', '@lat_min') BEGIN "
              "INSERT INTO extent_changed SELECT NEW.container WHERE NOT EXISTS "
              "(SELECT 1 FROM extent_changed WHERE container = NEW.container); END;");
    for (uint64_t n = first; n < last; n++) {
        char sql[400];
        (void) snprintf(sql, sizeof sql,
                        "INSERT INTO container SELECT %d, 'new%d', uuid, 1, 1, 1, 1, 1, 1, 0, 0, "
                        "0, 2, NULL FROM container WHERE container = 1;"
                        "INSERT INTO attribute SELECT %d, 0, '@time_max', 0, NULL, 3, NULL "
                        "WHERE %d",
                        (int) n, (int) n, (int) n, n == last - 1);
        change(f, sql);
    }
    assert_int_equal(put_ranges(f, first, first + 50), 50);
    assert_int_equal(put_ranges(f, first + 50, last - 1), 99);
    assert_int_equal(sqlite__query_number(&f->store->writer, "SELECT count(*) FROM extent_changed",
                                          &count, &err),
                     ESDM_OK);
    assert_true(count < 32);
    assert_int_equal(sqlite__query_number(&f->store->writer,
                                          "SELECT count(*) FROM extent_time WHERE low = 500 AND "
                                          "high = 502",
                                          &count, &err),
                     ESDM_OK);
    assert_in_range(count, 68, 99);
    assert_int_equal(sqlite__query_number(&f->store->writer,
                                          "SELECT count(*) FROM (SELECT container, low = 3 AND "
                                          "high = 3 AS fits FROM extent_time UNION ALL SELECT "
                                          "container, 1 FROM extent_changed) "
                                          "WHERE container = 20100 AND fits",
                                          &count, &err),
                     ESDM_OK);
    assert_int_equal(count, 1);
}

/* Whatever the catalogue has. */
static void
test_extent_trees__are_kept_in_few_steps(void **state)
{
    fixture *f = *state;
    const uint64_t first = CONTAINERS + 1, last = CONTAINERS + 65;
    uint64_t steps = 0;
    assert_int_equal(sqlite__view_set(f->store, NULL, 0, false, NULL), ESDM_OK);
    sqlite3_progress_handler(f->store->writer.db, 1, count_step, &steps);
    (void) put_ranges(f, first, last);
    sqlite3_progress_handler(f->store->writer.db, 0, NULL, NULL);
    assert_in_range(steps, 1000, 800 * (last - first));
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
        cmocka_unit_test_setup_teardown(test_extent_trees__cost_new_containers_no_tables, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_extent_trees__enter_what_older_versions_note, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_extent_trees__get_many_extents_together, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_extent_trees__have_clones, setup, teardown),
        cmocka_unit_test_setup_teardown(test_extent_trees__of_a_newer_format_are_left_alone, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_extent_trees__are_kept_in_few_steps, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
