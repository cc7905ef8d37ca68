/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Lists of attributes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/container.h"
#include "random.h"

static int
set_up(void **state)
{
    esdm_container *container = esdm__container_new("attributes.nc");
    *state = container;
    return container == NULL;
}

static int
tear_down(void **state)
{
    esdm__container_free(*state);
    return 0;
}

static esdm_attributes *
list_of(void **state)
{
    return esdm_group_attributes(esdm_container_root(*state));
}

static void
set_int(esdm_attributes *list, const char *name, int32_t value)
{
    assert_int_equal(esdm_attribute_set(list, name, ESDM_TYPE_INT32, 1, &value, NULL), ESDM_OK);
}

static void
test_attribute__overwriting_keeps_the_position(void **state)
{
    esdm_attributes *list = list_of(state);
    esdm_attribute got;
    size_t index = 99;
    set_int(list, "a", 1);
    set_int(list, "b", 2);
    assert_int_equal(esdm_attribute_set(list, "a", ESDM_TYPE_CHAR, 5, "hello", NULL), ESDM_OK);
    assert_int_equal(esdm_attribute_count(list), 2);
    assert_true(esdm_attribute_find(list, "a", &got, &index));
    assert_int_equal(index, 0);
    assert_int_equal(got.type, ESDM_TYPE_CHAR);
    assert_int_equal(got.count, 5);
    assert_memory_equal(got.values, "hello", 5);
    assert_true(esdm_attribute_at(list, 1, &got));
    assert_string_equal(got.name, "b");
    assert_false(esdm_attribute_at(list, 2, &got));
    assert_false(esdm_attribute_find(list, "c", &got, NULL));
    assert_false(esdm_attribute_find(list, NULL, &got, NULL));
}

static void
test_attribute__values_are_copied(void **state)
{
    esdm_attributes *list = list_of(state);
    char one[] = "one";
    char *strings[3] = {one, NULL, one};
    esdm_attribute got;
    assert_int_equal(esdm_attribute_set(list, "s", ESDM_TYPE_STRING, 3, strings, NULL), ESDM_OK);
    one[0] = 'X';
    assert_true(esdm_attribute_find(list, "s", &got, NULL));
    char *const *values = got.values;
    assert_string_equal(values[0], "one");
    assert_null(values[1]);
    assert_string_equal(values[2], "one");
    /* from its own values */
    assert_int_equal(esdm_attribute_set(list, "s", ESDM_TYPE_STRING, 1, values + 2, NULL), ESDM_OK);
    assert_true(esdm_attribute_find(list, "s", &got, NULL));
    assert_string_equal(*(char *const *) got.values, "one");
}

static void
test_attribute__empty_ones_have_values_that_are_not_null(void **state)
{
    esdm_attributes *list = list_of(state);
    esdm_attribute got;
    assert_int_equal(esdm_attribute_set(list, "e", ESDM_TYPE_CHAR, 0, NULL, NULL), ESDM_OK);
    assert_int_equal(esdm_attribute_set(list, "f", ESDM_TYPE_FLOAT64, 0, NULL, NULL), ESDM_OK);
    assert_true(esdm_attribute_find(list, "f", &got, NULL));
    assert_int_equal(got.count, 0);
    assert_non_null(got.values);
}

static void
test_attribute__equal_values_change_nothing(void **state)
{
    static const char *const strings[2] = {"a", NULL};
    esdm_container *container = *state;
    esdm_attributes *list = list_of(state);
    set_int(list, "n", 7);
    assert_int_equal(esdm_attribute_set(list, "s", ESDM_TYPE_STRING, 2, strings, NULL), ESDM_OK);
    container->structure_dirty = false;
    set_int(list, "n", 7);
    assert_int_equal(esdm_attribute_set(list, "s", ESDM_TYPE_STRING, 2, strings, NULL), ESDM_OK);
    assert_false(container->structure_dirty);
    set_int(list, "n", 8);
    assert_true(container->structure_dirty);
}

static void
test_attribute__wrong_arguments_are_refused(void **state)
{
    esdm_attributes *list = list_of(state);
    const int32_t value = 1;
    esdm_error err;
    assert_int_equal(esdm_attribute_set(list, "", ESDM_TYPE_INT32, 1, &value, &err), ESDM_EINVAL);
    assert_int_equal(esdm_attribute_set(list, "a", 42, 1, &value, &err), ESDM_EINVAL);
    assert_string_equal(err.message, "attribute 'a': there is no type 42");
    assert_int_equal(esdm_attribute_set(list, "a", ESDM_TYPE_INT32, 1, NULL, &err), ESDM_EINVAL);
    assert_int_equal(esdm_attribute_set(list, "a", ESDM_TYPE_INT64, UINT64_MAX / 4, &value, &err),
                     ESDM_EINVAL);
    assert_int_equal(esdm_attribute_count(list), 0);
}

static void
test_attribute__rename_and_remove(void **state)
{
    esdm_attributes *list = list_of(state);
    esdm_attribute got;
    size_t index;
    esdm_error err;
    set_int(list, "a", 1);
    set_int(list, "b", 2);
    set_int(list, "c", 3);
    assert_int_equal(esdm_attribute_rename(list, "a", "b", &err), ESDM_EEXIST);
    assert_int_equal(esdm_attribute_rename(list, "x", "y", &err), ESDM_ENOENT);
    assert_string_equal(err.message, "there is no attribute named 'x'");
    assert_int_equal(esdm_attribute_rename(list, "a", "a/b", &err), ESDM_EINVAL);
    assert_int_equal(esdm_attribute_rename(list, "a", "a", &err), ESDM_OK);
    assert_int_equal(esdm_attribute_rename(list, "a", "z", &err), ESDM_OK);
    assert_false(esdm_attribute_find(list, "a", &got, NULL));
    assert_true(esdm_attribute_find(list, "z", &got, &index));
    assert_int_equal(index, 0);
    assert_int_equal(esdm_attribute_remove(list, "z", &err), ESDM_OK);
    assert_int_equal(esdm_attribute_remove(list, "z", &err), ESDM_ENOENT);
    assert_true(esdm_attribute_find(list, "c", &got, &index));
    assert_int_equal(index, 1);
    assert_int_equal(*(const int32_t *) got.values, 3);
}

/* Any order of changes leaves the list and its table in agreement. */
static void
test_attribute__lists_agree_with_a_model(void **state)
{
    enum { NAMES = 60 };
    esdm_attributes *list = list_of(state);
    random_source source = {31};
    int32_t model[NAMES];
    size_t count = 0;
    char name[16];
    for (int i = 0; i < NAMES; i++)
        model[i] = -1;
    for (int32_t round = 0; round < 5000; round++) {
        size_t i = (size_t) random_below(&source, NAMES);
        (void) snprintf(name, sizeof name, "n%zu", i);
        if (random_below(&source, 2) == 0) {
            count += model[i] < 0;
            model[i] = round;
            set_int(list, name, round);
        } else {
            assert_int_equal(esdm_attribute_remove(list, name, NULL),
                             model[i] < 0 ? ESDM_ENOENT : ESDM_OK);
            count -= model[i] >= 0;
            model[i] = -1;
        }
        i = (size_t) random_below(&source, NAMES);
        (void) snprintf(name, sizeof name, "n%zu", i);
        esdm_attribute got, same;
        size_t index;
        assert_int_equal(esdm_attribute_count(list), count);
        assert_int_equal(esdm_attribute_find(list, name, &got, &index), model[i] >= 0);
        if (model[i] >= 0) {
            assert_int_equal(*(const int32_t *) got.values, model[i]);
            assert_true(esdm_attribute_at(list, index, &same));
            assert_ptr_equal(same.values, got.values);
        }
    }
}

/* A quadratic algorithm would take minutes here. */
static void
test_attribute__long_lists_stay_fast(void **state)
{
    esdm_attributes *list = list_of(state);
    char name[32];
    for (int32_t i = 0; i < 100000; i++) {
        (void) snprintf(name, sizeof name, "attribute_%d", i);
        set_int(list, name, i);
    }
    for (size_t i = 0; i < 100000; i += 7) {
        size_t index;
        (void) snprintf(name, sizeof name, "attribute_%zu", i);
        assert_true(esdm_attribute_find(list, name, NULL, &index));
        assert_int_equal(index, i);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_attribute__overwriting_keeps_the_position, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_attribute__values_are_copied, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_attribute__empty_ones_have_values_that_are_not_null,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_attribute__equal_values_change_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_attribute__wrong_arguments_are_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_attribute__rename_and_remove, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_attribute__lists_agree_with_a_model, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_attribute__long_lists_stay_fast, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
