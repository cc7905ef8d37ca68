/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Names of containers, branches and objects; UTF-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "esdm/container.h"
#include "model/names.h"
#include "random.h"

/* ---- container names ----------------------------------------------------------------------- */

static void
assert_normal(const char *name, const char *expected)
{
    char buffer[ESDM_CONTAINER_NAME_MAX + 1];
    assert_int_equal(esdm__name_normalise(name, buffer, NULL), ESDM_OK);
    assert_string_equal(buffer, expected);
}

static void
assert_refused(const char *name, const char *reason)
{
    char buffer[ESDM_CONTAINER_NAME_MAX + 1] = "before";
    esdm_error err;
    assert_int_equal(esdm__name_normalise(name, buffer, &err), ESDM_EINVAL);
    assert_non_null(strstr(err.message, reason));
    assert_string_equal(buffer, "before");
}

static void
test_names__containers_lose_scheme_and_extra_slashes(void **state)
{
    (void) state;
    assert_normal("experiment/run1.nc", "experiment/run1.nc");
    assert_normal("esdm://experiment/run1.nc", "experiment/run1.nc");
    assert_normal("esdm:///a//b/", "a/b");
    assert_normal("ESDM://a/b", "a/b");
    assert_normal("/run 1 \xC3\xA4.nc", "run 1 \xC3\xA4.nc");
    assert_normal("...", "...");
    assert_normal(".hidden/..x", ".hidden/..x");
}

static void
test_names__containers_refuse_bad_names(void **state)
{
    (void) state;
    assert_refused(NULL, "NULL");
    assert_refused("", "empty");
    assert_refused("esdm://", "empty");
    assert_refused("//", "empty");
    assert_refused("a/../b", "'..'");
    assert_refused("a/./b", "'.'");
    assert_refused("..", "'..'");
    assert_refused("a\nb", "control character");
    assert_refused("a\x7F", "control character");
    assert_refused("a\xC2\x85", "control character");
    assert_refused("a\xFF", "UTF-8");
}

static void
test_names__containers_have_a_longest_name(void **state)
{
    char name[ESDM_CONTAINER_NAME_MAX + 2];
    char buffer[ESDM_CONTAINER_NAME_MAX + 1];
    (void) state;
    memset(name, 'x', sizeof name);
    name[255] = '\0';
    assert_normal(name, name);
    name[255] = 'x';
    name[256] = '\0';
    assert_refused(name, "more than 255");
    memset(name, 'x', sizeof name);
    for (size_t i = 255; i < ESDM_CONTAINER_NAME_MAX; i += 256)
        name[i] = '/';
    name[ESDM_CONTAINER_NAME_MAX - 1] = 'y'; /* four components of 255 and less, 1024 bytes */
    name[ESDM_CONTAINER_NAME_MAX - 2] = '/';
    name[ESDM_CONTAINER_NAME_MAX] = '\0';
    assert_int_equal(esdm__name_normalise(name, buffer, NULL), ESDM_OK);
    assert_int_equal(strlen(buffer), ESDM_CONTAINER_NAME_MAX);
    name[ESDM_CONTAINER_NAME_MAX] = 'z';
    name[ESDM_CONTAINER_NAME_MAX + 1] = '\0';
    assert_refused(name, "longer than 1024");
}

/* ---- object names -------------------------------------------------------------------------- */

static void
test_names__objects_follow_the_rules(void **state)
{
    char longest[ESDM_NAME_MAX + 2];
    esdm_error err;
    (void) state;
    memset(longest, 'n', sizeof longest);
    longest[ESDM_NAME_MAX] = '\0';
    assert_int_equal(esdm__name_check(longest, "dataset", &err), ESDM_OK);
    longest[ESDM_NAME_MAX] = 'n';
    longest[ESDM_NAME_MAX + 1] = '\0';
    assert_int_equal(esdm__name_check(longest, "dataset", &err), ESDM_EINVAL);
    assert_non_null(strstr(err.message, "257 bytes"));
    assert_int_equal(esdm__name_check("", "dimension", &err), ESDM_EINVAL);
    assert_string_equal(err.message, "the name of a dimension must not be empty");
    assert_int_equal(esdm__name_check(NULL, "group", &err), ESDM_EINVAL);
    assert_int_equal(esdm__name_check("a/b", "group", &err), ESDM_EINVAL);
    assert_string_equal(err.message, "group name 'a/b' contains '/'");
    assert_int_equal(esdm__name_check("\xC0\x80", "group", &err), ESDM_EINVAL);
    assert_int_equal(esdm__name_check("a b\t\xE2\x82\xAC", "attribute", &err), ESDM_OK);
}

static void
test_names__utf8_is_checked_strictly(void **state)
{
    static const char *const good[] = {"",
                                       "a",
                                       "\xC2\x80",
                                       "\xED\x9F\xBF",
                                       "\xEE\x80\x80",
                                       "\xF0\x90\x80\x80",
                                       "\xF4\x8F\xBF\xBF"};
    static const char *const bad[] = {"\x80",
                                      "\xC1\xBF",
                                      "\xC2",
                                      "\xE0\x9F\xBF",
                                      "\xED\xA0\x80",
                                      "\xF0\x8F\xBF\xBF",
                                      "\xF4\x90\x80\x80",
                                      "\xF5\x80\x80\x80",
                                      "\xE2\x82",
                                      "\xE2\x28\xA1",
                                      "a\xFFz"};
    (void) state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(esdm__utf8_is_valid(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(esdm__utf8_is_valid(bad[i], strlen(bad[i])));
}

/* ---- table --------------------------------------------------------------------------------- */

enum { KEYS = 300 };
static char keys[KEYS][8];

static const char *
key_of(const void *owner, uint32_t value)
{
    (void) owner;
    return keys[value];
}

/* Few different hashes, so that runs of collisions wrap around and are torn by removals. */
static uint32_t
weak_hash(uint32_t key)
{
    return (key % 7) * 0x28000001u;
}

static void
test_names__table_agrees_with_a_set(void **state)
{
    random_source source = {77};
    esdm__names names = {0};
    bool present[KEYS] = {false};
    (void) state;
    for (uint32_t i = 0; i < KEYS; i++)
        (void) snprintf(keys[i], sizeof keys[i], "k%u", (unsigned) i);
    for (int round = 0; round < 20000; round++) {
        uint32_t key = (uint32_t) random_below(&source, KEYS);
        uint32_t found;
        bool is_there = esdm__names_find(&names, keys[key], weak_hash(key), key_of, NULL, &found);
        assert_int_equal(is_there, present[key]);
        if (is_there) {
            assert_int_equal(found, key);
            esdm__names_remove(&names, weak_hash(key), key);
        } else {
            assert_true(esdm__names_reserve(&names));
            esdm__names_add(&names, weak_hash(key), key);
        }
        present[key] = !is_there;
    }
    esdm__names_clear(&names);
    assert_null(names.slots);
}

/* Containers of 100,000 variables have one: 8 bytes for a place. */
static void
test_names__table_has_few_free_places(void **state)
{
    esdm__names names = {0};
    (void) state;
    for (uint32_t i = 0; i < 100000; i++) {
        assert_true(esdm__names_reserve(&names));
        esdm__names_add(&names, i * 2654435761u, i);
        assert_in_range(names.capacity, i + 1, 2 * (uint64_t) i + 4);
    }
    assert_in_range(names.capacity, 100000, 150000);
    esdm__names_clear(&names);
}

static void
test_branch__is_split_from_the_name_of_its_container(void **state)
{
    (void) state;
    static const char *const none[] = {"a.nc",         "a.nc@branch:", "@branch:x",
                                       "a@branch:x@3", "a@tag:x",      "a@branch:b?digest"};
    size_t bytes = 7;
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_null(esdm__name_branch(none[i], &bytes));
    assert_int_equal(bytes, 7);
    assert_string_equal(esdm__name_branch("exp/a.nc@branch:fix/units", &bytes), "fix/units");
    assert_int_equal(bytes, strlen("exp/a.nc"));
    assert_string_equal(esdm__name_branch("a@branch:b", NULL), "b");
}

static void
test_branch__names_are_checked(void **state)
{
    (void) state;
    static const char *const wrong[] = {"",   "a b",  "a@b",  "a:b",  "a?b", "/a",
                                        "a/", "a//b", "a/..", "a\nb", "\xff"};
    esdm_error err = {0};
    char longest[ESDM_BRANCH_MAX + 2];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(esdm__branch_check(wrong[i], &err), ESDM_EINVAL);
        assert_non_null(strstr(err.message, "cannot be the name of a branch"));
    }
    memset(longest, 'x', sizeof longest - 1);
    longest[ESDM_BRANCH_MAX + 1] = '\0';
    assert_int_equal(esdm__branch_check(longest, &err), ESDM_EINVAL);
    longest[ESDM_BRANCH_MAX] = '\0';
    assert_int_equal(esdm__branch_check(longest, &err), ESDM_OK);
    assert_int_equal(esdm__branch_check("fix/Einheiten-\xc3\xbc", &err), ESDM_OK);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_branch__is_split_from_the_name_of_its_container),
        cmocka_unit_test(test_branch__names_are_checked),
        cmocka_unit_test(test_names__containers_lose_scheme_and_extra_slashes),
        cmocka_unit_test(test_names__containers_refuse_bad_names),
        cmocka_unit_test(test_names__containers_have_a_longest_name),
        cmocka_unit_test(test_names__objects_follow_the_rules),
        cmocka_unit_test(test_names__utf8_is_checked_strictly),
        cmocka_unit_test(test_names__table_agrees_with_a_set),
        cmocka_unit_test(test_names__table_has_few_free_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
