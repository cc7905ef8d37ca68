/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Containers that wait to be entered into the index of attributes: in a large catalogue up
 * to 1,023, and questions that see each of them as it is, whoever committed last. */

#include <math.h>

#include "store_support.h"

#define ABOVE      601000 /* numbers of containers that are made */
#define ENTERED_AT 601088 /* the next one that 1,024 divides; 601,024 is one that 64 divides */
#define MOST       96
#define LETTERS    5

typedef struct model {
    fixture *f;
    uint64_t last;
    int letters[MOST]; /* of each container; -1: it was removed */
    uint64_t structures[MOST];
} model;

static int
setup_numbered(void **state)
{
    char sql[600];
    (void) snprintf(sql, sizeof sql,
                    "BEGIN; INSERT INTO container VALUES(%d, NULL, '', 1, 1, 1, 1, 1, 1, 0, 0, 0, "
                    "0, 'none'); UPDATE store SET value = %d WHERE key = 'indexed'; COMMIT;",
                    ABOVE, ABOVE);
    *state = store_with(sql);
    return 0;
}

static const char *
name_of(uint64_t i)
{
    static char name[24];
    (void) snprintf(name, sizeof name, "run%llu", (unsigned long long) i);
    return name;
}

/* Makes container i, or gives it another letter. */
static void
put(model *m, uint64_t i, int letter)
{
    char text[2] = {(char) ('a' + letter), '\0'}, uuid[40];
    bool is_new = i == m->last;
    esdm_error err = {0};
    esdm_meta_committed done = {0};
    const esdm_meta_attribute list[] = {
        {.name = "letter", .text = text},
        {.name = "rank", .text = "1.5", .number = (double) i, .has_number = true},
        {.dataset = 1, .dataset_path = "/t", .name = "units", .text = letter % 2 == 0 ? "K" : "m"},
        {.dataset = 1, .dataset_path = "/t", .name = "letter", .text = "z"},
    };
    (void) snprintf(uuid, sizeof uuid, "%032llx", (unsigned long long) i + 1);
    const esdm_meta_commit what = {.kind = is_new ? ESDM_META_CREATE : ESDM_META_UPDATE,
                                   .name = name_of(i),
                                   .uuid = uuid,
                                   .container = ABOVE + 1 + i,
                                   .structure = is_new ? 0 : m->structures[i],
                                   .document = "{}",
                                   .document_bytes = 2,
                                   .datasets = 1,
                                   .attributes = list,
                                   .nattributes = sizeof list / sizeof *list,
                                   .history = 1};
    if (sqlite__commit(m->f->store, &what, &done, &err) != ESDM_OK)
        fail_msg("%s", err.message);
    assert_int_equal(done.container, ABOVE + 1 + i);
    m->letters[i] = letter;
    m->structures[i] = done.structure;
    m->last += is_new;
}

static void
take_away(model *m, uint64_t i)
{
    uint64_t container = 0;
    assert_int_equal(sqlite__container_remove(m->f->store, name_of(i), &container, NULL), ESDM_OK);
    m->letters[i] = -1;
}

static size_t
count(const model *m, const esdm_meta_condition *conditions, size_t nconditions)
{
    size_t found = 0;
    esdm_error err = {0};
    if (sqlite__find(m->f->store, conditions, nconditions, count_match, &found, &err) != ESDM_OK)
        fail_msg("%s", err.message);
    return found;
}

/* All answers are those of the model. */
static void
check(const model *m)
{
    size_t warm = 0, warm_first = 0, there = 0;
    for (int letter = 0; letter < LETTERS; letter++) {
        char text[2] = {(char) ('a' + letter), '\0'};
        size_t expected = 0;
        const esdm_meta_condition is = {
            .variable = "", .attribute = "letter", .op = ESDM_META_EQ, .text = text};
        for (uint64_t i = 0; i < m->last; i++)
            expected += m->letters[i] == letter;
        assert_int_equal(count(m, &is, 1), expected);
    }
    for (uint64_t i = 0; i < m->last; i++) {
        there += m->letters[i] >= 0;
        warm += m->letters[i] >= 0 && m->letters[i] % 2 == 0;
        warm_first += m->letters[i] == 0;
    }
    const esdm_meta_condition units = {.attribute = "units", .op = ESDM_META_EQ, .text = "K"};
    const esdm_meta_condition inherits[] = {
        units, {.attribute = "rank", .op = ESDM_META_GE, .is_number = true, .text = "0"}};
    const esdm_meta_condition both[] = {
        units, {.variable = "", .attribute = "letter", .op = ESDM_META_EQ, .text = "a"}};
    const esdm_meta_condition all = {
        .attribute = "rank", .op = ESDM_META_GE, .is_number = true, .text = "0"};
    assert_int_equal(count(m, &units, 1), warm);
    assert_int_equal(count(m, inherits, 2), warm);
    assert_int_equal(count(m, both, 2), warm_first);
    assert_int_equal(count(m, &all, 1), there);
}

static int64_t
number(const model *m, const char *sql)
{
    int64_t result = -1;
    assert_int_equal(sqlite__query_number(&m->f->store->writer, sql, &result, NULL), ESDM_OK);
    return result;
}

static void
test_waiting__are_found_as_they_are(void **state)
{
    model m = {.f = *state};
    while (ABOVE + m.last < ENTERED_AT - 1) {
        put(&m, m.last, (int) (m.last % LETTERS));
        if (m.last % 7 == 0)
            put(&m, m.last / 2, (int) (m.last % LETTERS));
        if (m.last % 11 == 0)
            take_away(&m, m.last / 3 + 1);
        if (m.last % 3 == 0) /* else several commits are followed at once */
            check(&m);
    }
    check(&m);
    /* As the catalogue is large they wait for the 1,024th, not for the 64th. */
    assert_int_equal(number(&m, "SELECT value FROM store WHERE key = 'indexed'"), ABOVE);
    assert_int_equal(number(&m, "SELECT count(*) FROM attribute"), 0);
    put(&m, m.last, 0);
    assert_int_equal(number(&m, "SELECT value FROM store WHERE key = 'indexed'"), ENTERED_AT);
    assert_true(number(&m, "SELECT count(*) FROM attribute") > 4 * 64);
    check(&m);
    put(&m, m.last, 1);
    put(&m, 3, 2); /* which was entered */
    check(&m);
}

/* Of what waits still, lists are not read again. */
static void
test_waiting__are_read_once(void **state)
{
    model m = {.f = *state};
    uint64_t steps[2] = {0};
    const esdm_meta_condition is = {
        .variable = "", .attribute = "letter", .op = ESDM_META_EQ, .text = "a"};
    while (m.last < 60)
        put(&m, m.last, 0);
    assert_int_equal(sqlite__begin_read(m.f->store, NULL), ESDM_OK);
    sqlite__end_read(m.f->store);
    for (int i = 0; i < 2; i++) {
        sqlite3_progress_handler(m.f->store->reader.db, 1, count_step, &steps[i]);
        assert_int_equal(count(&m, &is, 1), m.last);
        sqlite3_progress_handler(m.f->store->reader.db, 0, NULL, NULL);
        put(&m, m.last, 0);
    }
    assert_in_range(steps[1], 1, steps[0] / 2);
}

static uint64_t
count_steps(const model *m)
{
    uint64_t steps = 0;
    const esdm_meta_condition is = {
        .variable = "", .attribute = "letter", .op = ESDM_META_EQ, .text = "a"};
    sqlite3_progress_handler(m->f->store->reader.db, 1, count_step, &steps);
    (void) count(m, &is, 1);
    sqlite3_progress_handler(m->f->store->reader.db, 0, NULL, NULL);
    return steps;
}

/* Where most of them changed, the question after that is no more work than a first one. */
static void
test_waiting__many_changed_are_read_anew(void **state)
{
    model m = {.f = *state};
    while (m.last < 60)
        put(&m, m.last, 0);
    assert_int_equal(sqlite__begin_read(m.f->store, NULL), ESDM_OK);
    sqlite__end_read(m.f->store);
    uint64_t first = count_steps(&m);
    for (uint64_t i = 0; i < 50; i++)
        put(&m, i, 1);
    assert_in_range(count_steps(&m), 1, first + first / 2);
    check(&m);
}

#define LONG_ENTRIES 1000

/* Long lists do not wait for the 1,024th container; short ones do (are_found_as_they_are). */
static void
test_waiting__long_lists_are_entered_earlier(void **state)
{
    fixture *f = *state;
    model m = {.f = f};
    static char texts[LONG_ENTRIES][40];
    static esdm_meta_attribute list[LONG_ENTRIES];
    for (int i = 0; i < LONG_ENTRIES; i++) {
        (void) snprintf(texts[i], sizeof texts[i], "a text of about thirty bytes %d", i);
        list[i] = (esdm_meta_attribute){.name = "comment", .text = texts[i]};
        if (i % 9 == 0) /* NULL in the index */
            list[i] = (esdm_meta_attribute){
                .name = "comment", .text = "nan", .number = NAN, .has_number = true};
        else if (i % 3 == 0)
            list[i] = (esdm_meta_attribute){
                .name = "comment", .text = "1", .number = 1e3 - i, .has_number = true};
    }
    for (uint64_t number_of = ABOVE + 1; number_of <= ABOVE + 152; number_of++) {
        char uuid[40];
        esdm_error err = {0};
        esdm_meta_committed done = {0};
        (void) snprintf(uuid, sizeof uuid, "%032llx", (unsigned long long) number_of);
        const esdm_meta_commit what = {.kind = ESDM_META_CREATE,
                                       .name = name_of(number_of),
                                       .uuid = uuid,
                                       .document = "{}",
                                       .document_bytes = 2,
                                       .datasets = 1,
                                       .attributes = list,
                                       .nattributes = LONG_ENTRIES,
                                       .history = 1};
        if (sqlite__commit(f->store, &what, &done, &err) != ESDM_OK)
            fail_msg("%s", err.message);
        assert_int_equal(done.container, number_of);
        int64_t indexed = number(&m, "SELECT value FROM store WHERE key = 'indexed'");
        /* At 601,024 only 24 of them wait, which is less. */
        assert_int_equal(indexed, number_of < ENTERED_AT        ? ABOVE
                                  : number_of < ENTERED_AT + 64 ? ENTERED_AT
                                                                : ENTERED_AT + 64);
    }
    assert_int_equal(number(&m, "SELECT count(*) FROM attribute"), 152 * LONG_ENTRIES);
    const esdm_meta_condition one = {
        .variable = "", .attribute = "comment", .op = ESDM_META_EQ, .text = texts[1]};
    assert_int_equal(count(&m, &one, 1), 152);
}

/* A limited question that is interrupted while lists are read ends the held state: that is told. */
static int
interrupt(void *user)
{
    return --*(int64_t *) user < 0;
}

static void
test_waiting__interrupted_state_is_lost(void **state)
{
    model m = {.f = *state};
    size_t found = 0;
    const esdm_meta_condition is = {
        .variable = "", .attribute = "letter", .op = ESDM_META_EQ, .text = "a"};
    while (m.last < 60)
        put(&m, m.last, 0);
    assert_int_equal(sqlite__hold(m.f->store, NULL), ESDM_OK);
    for (int64_t most = 10; most < 10000 && sqlite3_get_autocommit(m.f->store->reader.db) == 0;
         most += 10) {
        int64_t left = most;
        sqlite3_progress_handler(m.f->store->reader.db, 1, interrupt, &left);
        (void) !sqlite__find(m.f->store, &is, 1, count_match, &found, NULL);
        sqlite3_progress_handler(m.f->store->reader.db, 0, NULL, NULL);
    }
    assert_int_not_equal(sqlite3_get_autocommit(m.f->store->reader.db), 0);
    assert_false(sqlite__release(m.f->store));
    assert_int_equal(sqlite__hold(m.f->store, NULL), ESDM_OK);
    check(&m);
    assert_true(sqlite__release(m.f->store));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_waiting__are_found_as_they_are, setup_numbered,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_waiting__are_read_once, setup_numbered, teardown),
        cmocka_unit_test_setup_teardown(test_waiting__many_changed_are_read_anew, setup_numbered,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_waiting__long_lists_are_entered_earlier,
                                        setup_numbered, teardown),
        cmocka_unit_test_setup_teardown(test_waiting__interrupted_state_is_lost, setup_numbered,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
