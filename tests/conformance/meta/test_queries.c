/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Finding containers and datasets by attributes. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta.h"

#define TEXT(set, path, key, value)                                                                \
    {                                                                                              \
        .dataset = (set), .dataset_path = (path), .name = (key), .text = (value)                   \
    }
#define NUMBER(set, path, key, value, as_text)                                                     \
    {                                                                                              \
        .dataset = (set), .dataset_path = (path), .name = (key), .text = (as_text),                \
        .number = (value), .has_number = true                                                      \
    }

static const esdm_meta_attribute first[] = {
    TEXT(0, NULL, "institution", "MPI"),
    TEXT(0, NULL, "run", "0042"),
    TEXT(0, NULL, "comment", "it's \"100%\" [odd]"),
    NUMBER(0, NULL, "resolution", 1.0, "1"),
    TEXT(1, "/tas", "units", "K"),
    TEXT(1, "/tas", "standard_name", "air_temperature"),
    TEXT(2, "/ocean/tos", "units", "degC"),
    TEXT(2, "/ocean/tos", "institution", "AWI"),
    TEXT(3, "/pr", "units", "kg m-2 s-1"),
    NUMBER(3, "/pr", "missing", 1e20, NULL),
    NUMBER(3, "/pr", "bad", NAN, "nan"),
};
static const esdm_meta_attribute second[] = {
    TEXT(0, NULL, "institution", "DKRZ"),
    TEXT(1, "/tas", "units", "degC"),
};
static const esdm_meta_attribute third[] = {
    TEXT(1, "/tas", "units", "K"), NUMBER(1, "/tas", "level", -5.0, "-5"),
    NUMBER(1, "/tas", "level", 7.0, "7"), /* two entries of one attribute */
};

static uint64_t
create_with(const fixture *f, const char *name, const esdm_meta_attribute *attributes, size_t count)
{
    esdm_meta_commit commit = meta_new_commit(ESDM_META_CREATE);
    esdm_meta_committed committed = {0};
    commit.name = name;
    commit.attributes = attributes;
    commit.nattributes = count;
    assert_ok(meta()->commit(f->store, &commit, &committed, &place_error));
    return committed.container;
}

#define CREATE(f, name, list) create_with(f, name, list, sizeof(list) / sizeof((list)[0]))

typedef struct found {
    char text[1000];
    size_t stop_after;
    size_t count;
} found;

static bool
add_match(const char *container, const char *path, void *user)
{
    found *all = user;
    size_t used = strlen(all->text);
    (void) snprintf(all->text + used, sizeof all->text - used, "%s%s%s%s", used > 0 ? " " : "",
                    container, path != NULL ? ":" : "", path != NULL ? path : "");
    return ++all->count != all->stop_after;
}

static void
expect_found(const fixture *f, const esdm_meta_condition *conditions, size_t count,
             const char *expected)
{
    found all = {.text = ""};
    assert_ok(meta()->find(f->store, conditions, count, add_match, &all, &place_error));
    if (strcmp(all.text, expected) != 0)
        fail_msg("%s:%s: found '%s' instead of '%s'",
                 conditions[0].variable != NULL ? conditions[0].variable : "*",
                 conditions[0].attribute, all.text, expected);
}

static esdm_meta_condition
text_is(const char *variable, const char *attribute, esdm_meta_operator op, const char *text)
{
    return (esdm_meta_condition){
        .variable = variable, .attribute = attribute, .op = op, .text = text};
}

static esdm_meta_condition
number_is(const char *variable, const char *attribute, esdm_meta_operator op, double number,
          const char *text)
{
    return (esdm_meta_condition){.variable = variable,
                                 .attribute = attribute,
                                 .op = op,
                                 .is_number = true,
                                 .number = number,
                                 .text = text};
}

static void
expect_one(const fixture *f, esdm_meta_condition condition, const char *expected)
{
    expect_found(f, &condition, 1, expected);
}

static void
expect_two(const fixture *f, esdm_meta_condition a, esdm_meta_condition b, const char *expected)
{
    esdm_meta_condition both[2] = {a, b};
    esdm_meta_condition turned[2] = {b, a};
    expect_found(f, both, 2, expected);
    expect_found(f, turned, 2, expected);
}

static void
check_texts(const fixture *f)
{
    expect_one(f, text_is(NULL, "units", ESDM_META_EQ, "K"), "c1:/tas c3:/tas");
    expect_one(f, text_is(NULL, "units", ESDM_META_NE, "K"), "c1:/ocean/tos c1:/pr c2:/tas");
    expect_one(f, text_is(NULL, "units", ESDM_META_GT, "ZZ"), "c1:/ocean/tos c1:/pr c2:/tas");
    expect_one(f, text_is(NULL, "units", ESDM_META_GE, "kg m-2 s-1"), "c1:/pr");
    expect_one(f, text_is(NULL, "units", ESDM_META_LT, "L"), "c1:/tas c3:/tas");
    expect_one(f, text_is(NULL, "units", ESDM_META_LE, "K"), "c1:/tas c3:/tas");
    expect_one(f, text_is(NULL, "units", ESDM_META_GLOB, "*C"), "c1:/ocean/tos c2:/tas");
    expect_one(f, text_is(NULL, "Units", ESDM_META_EQ, "K"), "");
    expect_one(f, text_is(NULL, "institution", ESDM_META_EQ, "MPI"), "c1");
    expect_one(f, text_is(NULL, "institution", ESDM_META_GLOB, "*"), "c1 c1:/ocean/tos c2");
    expect_one(f, text_is(NULL, "comment", ESDM_META_EQ, "it's \"100%\" [odd]"), "c1");
    expect_one(f, text_is(NULL, "comment", ESDM_META_GLOB, "*[%]*"), "c1");
}

static void
check_numbers(const fixture *f)
{
    expect_one(f, number_is(NULL, "resolution", ESDM_META_EQ, 1, "1"), "c1");
    expect_one(f, number_is(NULL, "resolution", ESDM_META_NE, 1, "1"), "");
    expect_one(f, number_is(NULL, "resolution", ESDM_META_NE, 2, "2"), "c1");
    expect_one(f, number_is(NULL, "resolution", ESDM_META_LT, 1.5, "1.5"), "c1");
    expect_one(f, number_is(NULL, "resolution", ESDM_META_LT, 1, "1"), "");
    expect_one(f, number_is(NULL, "resolution", ESDM_META_LE, 1, "1"), "c1");
    expect_one(f, number_is(NULL, "resolution", ESDM_META_GT, 0.5, "0.5"), "c1");
    expect_one(f, number_is(NULL, "resolution", ESDM_META_GE, 1, "1.0"), "c1");
    expect_one(f, text_is(NULL, "resolution", ESDM_META_EQ, "1"), "c1");
    expect_one(f, text_is(NULL, "resolution", ESDM_META_GLOB, "[0-9]"), "c1");
    expect_one(f, number_is(NULL, "missing", ESDM_META_GT, 1e19, "1e19"), "c1:/pr");
    expect_one(f, number_is(NULL, "run", ESDM_META_EQ, 42, "0042"), "c1"); /* a text */
    expect_one(f, number_is(NULL, "run", ESDM_META_EQ, 42, "42"), "");
    expect_one(f, number_is(NULL, "run", ESDM_META_NE, 42, "0042"), "");
    expect_one(f, number_is(NULL, "run", ESDM_META_GT, 1, "1"), ""); /* texts are no numbers */
    expect_one(f, number_is(NULL, "institution", ESDM_META_GE, 0, "0"), "");
    expect_one(f, number_is(NULL, "level", ESDM_META_EQ, 7, "7"), "c3:/tas");
    expect_one(f, number_is(NULL, "level", ESDM_META_EQ, -5, "-5"), "c3:/tas");
    expect_one(f, number_is(NULL, "bad", ESDM_META_GT, 0, "0"), "");
}

static void
check_variables(const fixture *f)
{
    expect_one(f, text_is("tas", "units", ESDM_META_EQ, "K"), "c1:/tas c3:/tas");
    expect_one(f, text_is("tos", "units", ESDM_META_EQ, "degC"), "c1:/ocean/tos");
    expect_one(f, text_is("as", "units", ESDM_META_EQ, "K"), "");
    expect_one(f, text_is("", "institution", ESDM_META_GLOB, "*"), "c1 c2");
    expect_one(f, text_is("", "units", ESDM_META_EQ, "K"), "");
    /* A variable's condition is not met by inheritance alone: it must hold on something. */
    expect_one(f, text_is("tas", "institution", ESDM_META_EQ, "MPI"), "");
}

static void
check_conjunctions(const fixture *f)
{
    expect_two(f, text_is(NULL, "units", ESDM_META_EQ, "K"),
               text_is(NULL, "institution", ESDM_META_EQ, "MPI"), "c1:/tas");
    expect_two(f, text_is(NULL, "units", ESDM_META_EQ, "K"),
               text_is("", "institution", ESDM_META_EQ, "MPI"), "c1:/tas");
    expect_two(f, text_is(NULL, "units", ESDM_META_EQ, "degC"),
               text_is(NULL, "institution", ESDM_META_EQ, "AWI"), "c1:/ocean/tos");
    /* Its own attribute hides the container's. */
    expect_two(f, text_is(NULL, "units", ESDM_META_EQ, "degC"),
               text_is(NULL, "institution", ESDM_META_EQ, "MPI"), "");
    expect_two(f, text_is(NULL, "units", ESDM_META_EQ, "degC"),
               text_is("", "institution", ESDM_META_EQ, "MPI"), "c1:/ocean/tos");
    expect_two(f, text_is("tas", "units", ESDM_META_GLOB, "*"),
               text_is(NULL, "institution", ESDM_META_NE, "XX"), "c1:/tas c2:/tas");
    expect_two(f, text_is("tas", "units", ESDM_META_EQ, "K"),
               text_is("tas", "standard_name", ESDM_META_GLOB, "air*"), "c1:/tas");
    expect_two(f, text_is("tas", "units", ESDM_META_EQ, "K"),
               text_is("pr", "units", ESDM_META_GLOB, "kg*"), "");
    expect_two(f, text_is(NULL, "institution", ESDM_META_EQ, "MPI"),
               number_is(NULL, "resolution", ESDM_META_LT, 2, "2"), "c1");
    expect_two(f, text_is(NULL, "units", ESDM_META_EQ, "K"),
               text_is(NULL, "nothing", ESDM_META_GLOB, "*"), "");
}

static void
check_all(const fixture *f)
{
    check_texts(f);
    check_numbers(f);
    check_variables(f);
    check_conjunctions(f);
}

static void
create_three(const fixture *f)
{
    CREATE(f, "c1", first);
    CREATE(f, "c2", second);
    CREATE(f, "c3", third);
}

static void
test_query__answers_are_right(void **state)
{
    fixture *f = *state;
    expect_one(f, text_is(NULL, "units", ESDM_META_EQ, "K"), "");
    create_three(f);
    check_all(f);
}

/* Bytes that are no UTF-8, names and texts that mean something elsewhere, infinity. */
static void
test_query__odd_values_are_compared(void **state)
{
    static const esdm_meta_attribute odd[] = {
        TEXT(0, NULL, "latin", "Gro\xdfwetter \xff"),
        TEXT(0, NULL, "private", "\xf4\x8f\xbf\xbf"),
        TEXT(0, NULL, "a\"b\\c", "\"quoted\" \\ {\"s\": 1}\n\ttab\x01"),
        TEXT(0, NULL, "empty", ""),
        TEXT(0, NULL, "glob", "a.b|c(d)[e]{f}+^$#@~-]"),
        TEXT(0, NULL, "letters", "z\xc3\xa4h"),
        NUMBER(0, NULL, "huge", INFINITY, "inf"),
        NUMBER(0, NULL, "low", -INFINITY, "-inf"),
        NUMBER(0, NULL, "third", 1.0 / 3.0, "0.33333333333333331"),
        NUMBER(0, NULL, "tiny", 5e-324, "4.9406564584124654e-324"),
        TEXT(0, NULL, "$1", "%s"),
    };
    static const struct {
        const char *attribute, *text;
        esdm_meta_operator op;
        bool found;
    } cases[] = {
        {"latin", "Gro\xdfwetter \xff", ESDM_META_EQ, true},
        {"latin", "Gro\xdewetter \xff", ESDM_META_EQ, false},
        {"latin", "Gro\xdewetter \xff", ESDM_META_NE, true},
        {"latin", "Gro*", ESDM_META_GLOB, true},
        {"private", "\xf4\x8f\xbf\xbf", ESDM_META_EQ, true},
        {"private", "\xff", ESDM_META_EQ, false},
        {"a\"b\\c", "\"quoted\" \\ {\"s\": 1}\n\ttab\x01", ESDM_META_EQ, true},
        {"a\"b\\c", "\"quoted\"*1}?\ttab?", ESDM_META_GLOB, true},
        {"empty", "", ESDM_META_EQ, true},
        {"empty", "", ESDM_META_NE, false},
        {"empty", "*", ESDM_META_GLOB, true},
        {"empty", "?", ESDM_META_GLOB, false},
        {"glob", "a.b|c(d)[[]e]{f}+^$#@~-]", ESDM_META_GLOB, true},
        {"glob", "a?b|c(d)[^f]e[]]*", ESDM_META_GLOB, true},
        {"glob", "a.b[a-z]*", ESDM_META_GLOB, false},
        {"glob", "*[-]]", ESDM_META_GLOB, true},
        {"glob", "a.b*[z-a]*", ESDM_META_GLOB, false},
        {"glob", "*[", ESDM_META_GLOB, false},
        {"glob", "axb|c(d)[[]e]{f}+^$#@~-]", ESDM_META_GLOB, false},
        {"letters", "z?h", ESDM_META_GLOB, true},
        {"letters", "z[\xc3\xa4\xc3\xb6]h", ESDM_META_GLOB, true},
        {"letters", "Z*", ESDM_META_GLOB, false},
        {"huge", "inf", ESDM_META_EQ, true},
        {"$1", "%s", ESDM_META_EQ, true},
    };
    fixture *f = *state;
    CREATE(f, "odd", odd);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        esdm_meta_condition one = text_is(NULL, cases[i].attribute, cases[i].op, cases[i].text);
        expect_one(f, one, cases[i].found ? "odd" : "");
    }
    expect_one(f, number_is(NULL, "huge", ESDM_META_GT, 1e308, "1e308"), "odd");
    expect_one(f, number_is(NULL, "huge", ESDM_META_EQ, INFINITY, "inf"), "odd");
    expect_one(f, number_is(NULL, "low", ESDM_META_LT, -1e308, "-1e308"), "odd");
    expect_one(f, number_is(NULL, "low", ESDM_META_GE, 0, "0"), "");
    expect_one(f, number_is(NULL, "third", ESDM_META_EQ, 1.0 / 3.0, "1/3"), "odd");
    expect_one(f, number_is(NULL, "third", ESDM_META_GT, 1.0 / 3.0, "1/3"), "");
    expect_one(f, number_is(NULL, "tiny", ESDM_META_GT, 0, "0"), "odd");
}

static void
test_query__answers_stay_right_among_many(void **state)
{
    static const esdm_meta_attribute filler[] = {TEXT(0, NULL, "filler", "x"),
                                                 TEXT(1, "/tas", "filler", "y")};
    fixture *f = *state;
    create_three(f);
    for (int i = 0; i < 150; i++) {
        char name[32];
        (void) snprintf(name, sizeof name, "filler/%d", i);
        CREATE(f, name, filler);
        if (i % 50 == 0)
            check_all(f);
    }
    check_all(f);
    void *reader = meta_open(f, true);
    fixture second_handle = {.store = reader};
    check_all(&second_handle);
    meta()->close(reader);
}

static void
test_query__sees_changed_attributes(void **state)
{
    static const esdm_meta_attribute changed[] = {TEXT(0, NULL, "institution", "UHH"),
                                                  TEXT(1, "/tas", "units", "degF")};
    fixture *f = *state;
    create_three(f);
    for (int round = 0; round < 2; round++) {
        uint64_t container = CREATE(f, round == 0 ? "d0" : "d1", second);
        /* The first time it is new, the second time long known. */
        for (int i = 0; i < (round == 0 ? 0 : 100); i++) {
            char name[32];
            (void) snprintf(name, sizeof name, "filler/%d", i);
            meta_create(f->store, name);
        }
        esdm_meta_commit commit = meta_new_commit(ESDM_META_UPDATE);
        esdm_meta_committed committed;
        commit.container = container;
        commit.structure = 1;
        commit.document = "{\"changed\": 1}";
        commit.document_bytes = strlen(commit.document);
        commit.attributes = changed;
        commit.nattributes = 2;
        assert_ok(meta()->commit(f->store, &commit, &committed, &place_error));
        expect_one(f, text_is(NULL, "units", ESDM_META_EQ, "degF"),
                   round == 0 ? "d0:/tas" : "d0:/tas d1:/tas");
        expect_one(f, text_is("", "institution", ESDM_META_EQ, "DKRZ"), "c2");
    }
}

static void
test_query__removed_and_moved_containers(void **state)
{
    fixture *f = *state;
    uint64_t number = 0;
    create_three(f);
    assert_ok(meta()->container_remove(f->store, "c1", &number, &place_error));
    expect_one(f, text_is(NULL, "units", ESDM_META_EQ, "K"), "c3:/tas");
    assert_ok(meta()->forget(f->store, number, &place_error));
    assert_ok(meta()->container_move(f->store, "c3", "z/c3", false, NULL, &number, &place_error));
    expect_one(f, text_is(NULL, "units", ESDM_META_EQ, "K"), "z/c3:/tas");
}

static void
test_query__stops_and_refuses(void **state)
{
    fixture *f = *state;
    esdm_meta_condition many[100];
    found all = {.text = "", .stop_after = 1};
    create_three(f);
    for (size_t i = 0; i < 100; i++)
        many[i] = text_is(NULL, "units", ESDM_META_EQ, "K");
    assert_ok(meta()->find(f->store, many, 1, add_match, &all, &place_error));
    assert_string_equal(all.text, "c1:/tas");
    expect_found(f, many, 20, "c1:/tas c3:/tas");
    assert_status(meta()->find(f->store, many, 0, add_match, &all, &place_error), ESDM_EINVAL);
    assert_status(meta()->find(f->store, many, 100, add_match, &all, &place_error), ESDM_EINVAL);
    many[1].attribute = NULL;
    assert_status(meta()->find(f->store, many, 2, add_match, &all, &place_error), ESDM_EINVAL);
    many[1] = text_is(NULL, "units", ESDM_META_EQ, NULL);
    assert_status(meta()->find(f->store, many, 2, add_match, &all, &place_error), ESDM_EINVAL);
}

const struct CMUnitTest meta_query_tests[] = {
    WITH_STORE(test_query__answers_are_right),
    WITH_STORE(test_query__odd_values_are_compared),
    WITH_STORE(test_query__answers_stay_right_among_many),
    WITH_STORE(test_query__sees_changed_attributes),
    WITH_STORE(test_query__removed_and_moved_containers),
    WITH_STORE(test_query__stops_and_refuses),
};
const size_t meta_query_count = sizeof meta_query_tests / sizeof meta_query_tests[0];
