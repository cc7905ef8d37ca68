/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What writers note of ranges that they change, and enter into the trees: all of it,
 * whichever version made the store, at little cost. */
#include "trees_support.h"

/* Of a new container a table that is made for each attribute would take most of the commit, and so
 * would be a trigger for each, or a journal of each statement. */
static void
test_extent_notes__cost_new_containers_no_tables(void **state)
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
test_extent_notes__get_many_extents_together(void **state)
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
test_extent_notes__have_clones(void **state)
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
test_extent_notes__of_a_newer_format_are_left_alone(void **state)
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
test_extent_notes__enter_what_older_versions_note(void **state)
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
test_extent_notes__are_kept_in_few_steps(void **state)
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
        cmocka_unit_test_setup_teardown(test_extent_notes__cost_new_containers_no_tables, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_extent_notes__get_many_extents_together, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_extent_notes__have_clones, setup, teardown),
        cmocka_unit_test_setup_teardown(test_extent_notes__of_a_newer_format_are_left_alone, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_extent_notes__enter_what_older_versions_note, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_extent_notes__are_kept_in_few_steps, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
