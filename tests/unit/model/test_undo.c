/* SPDX-License-Identifier: LGPL-3.0-or-later */
/** @file Going back to a mark: the document is what it was, and names are found again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "esdm/usertypes.h"
#include "model/accuracy.h"
#include "model/undo.h"

#define OK(call) assert_int_equal((call), ESDM_OK)

static void
state_accuracy(esdm_dataset *dataset, const char *text)
{
    esdm_accuracy accuracy;
    esdm_accuracy_init(&accuracy);
    OK(esdm_accuracy_parse(&accuracy, text, NULL, NULL));
    OK(esdm__dataset_put_accuracy(dataset, &accuracy, NULL, NULL));
}

/* Two dimensions, two datasets, a group, a type, attributes and hints. */
static int
set_up(void **state)
{
    esdm_container *container = esdm__container_new("test/undo.nc");
    if (container == NULL)
        return -1;
    esdm_group *root = esdm_container_root(container);
    esdm_group *group;
    esdm_dimension *d[2];
    esdm_dataset *dataset;
    esdm_type type;
    const int32_t number = 42;
    OK(esdm_group_create(root, "group", &group, NULL));
    OK(esdm_dimension_create(root, "x", 10, &d[0], NULL));
    OK(esdm_dimension_create(group, "t", ESDM_UNLIMITED, &d[1], NULL));
    OK(esdm_opaque_create(root, "bytes", 3, &type, NULL));
    OK(esdm_dataset_create(root, "a", ESDM_TYPE_INT32, 1, d, &dataset, NULL));
    OK(esdm_dataset_set_fill(dataset, &number, NULL));
    OK(esdm_dataset_set_chunk(dataset, (const uint64_t[]){5}, NULL));
    OK(esdm_dataset_set_hint(dataset, "key", "value", NULL));
    state_accuracy(dataset, "absolute_tolerance=3; mode=fast");
    OK(esdm_attribute_set(esdm_dataset_attributes(dataset), "first", ESDM_TYPE_INT32, 1, &number,
                          NULL));
    OK(esdm_attribute_set(esdm_dataset_attributes(dataset), "second", ESDM_TYPE_STRING, 1,
                          (const char *const[]){"text"}, NULL));
    OK(esdm_dataset_create(group, "b", type, 2, d, &dataset, NULL));
    OK(esdm_attribute_set(esdm_group_attributes(root), "bytes", type, 2, "abcdef", NULL));
    OK(esdm_container_set_hint(container, "format", "old", NULL));
    container->structure_dirty = false;
    *state = container;
    return 0;
}

static int
tear_down(void **state)
{
    esdm__container_free(*state);
    return 0;
}

static char *
document(const esdm_container *container)
{
    char *text = NULL;
    size_t bytes = 0;
    OK(esdm__document_write(container, &text, &bytes, NULL));
    return text;
}

/* Every kind of change. */
static void
change_all(esdm_container *container)
{
    esdm_group *root = esdm_container_root(container);
    esdm_group *group = esdm_group_find(root, "group");
    esdm_dataset *a = esdm_group_dataset_find(root, "a");
    esdm_attributes *atts = esdm_dataset_attributes(a);
    esdm_group *other;
    esdm_dimension *d;
    esdm_dataset *dataset;
    esdm_type type;
    const int32_t number = 7;
    OK(esdm_dataset_rename(a, "renamed", NULL));
    OK(esdm_dataset_rename(a, "again", NULL));
    OK(esdm_group_rename(group, "a", NULL)); /* whose name is free now */
    OK(esdm_dimension_rename(esdm_group_dimension_find(root, "x"), "y", NULL));
    OK(esdm_dimension_create(root, "x", 3, &d, NULL));
    OK(esdm_enum_create(group, "kind", ESDM_TYPE_INT32, &type, NULL));
    OK(esdm_enum_add(container, type, "one", &number, NULL));
    OK(esdm_group_create(group, "deep", &other, NULL));
    OK(esdm_dataset_create(other, "group", type, 1, &d, &dataset, NULL));
    OK(esdm_dataset_rename(dataset, "new", NULL));
    OK(esdm_attribute_set(esdm_dataset_attributes(dataset), "n", type, 1, &number, NULL));
    OK(esdm_attribute_set(atts, "kind", type, 1, &number, NULL));
    OK(esdm_attribute_set(atts, "first", ESDM_TYPE_CHAR, 3, "abc", NULL));
    OK(esdm_attribute_rename(atts, "second", "third", NULL));
    OK(esdm_attribute_remove(esdm_group_attributes(root), "bytes", NULL));
    OK(esdm_dataset_set_fill(a, &number, NULL));
    OK(esdm_dataset_set_fill(a, NULL, NULL));
    OK(esdm_dataset_set_chunk(a, NULL, NULL));
    OK(esdm_dataset_set_hint(a, "key", NULL, NULL));
    OK(esdm_dataset_set_hint(a, "other", "x", NULL));
    OK(esdm__dataset_set_codec_text(a, "none", NULL));
    state_accuracy(a, "absolute_tolerance=5; mode=archive");
    OK(esdm_container_set_hint(container, "format", "new", NULL));
    OK(esdm_dataset_create(root, "group", ESDM_TYPE_INT8, 0, NULL, &dataset, NULL));
}

static void
test_revert__everything_is_as_at_the_mark(void **state)
{
    esdm_container *container = *state;
    esdm_group *root = esdm_container_root(container);
    esdm_dataset *a = esdm_group_dataset_find(root, "a");
    char *before = document(container);
    esdm_container_mark(container);
    for (int again = 0; again < 3; again++) {
        change_all(container);
        char *changed = document(container);
        assert_string_not_equal(before, changed);
        free(changed);
        assert_true(container->structure_dirty);
        esdm__undo_revert(container);
        char *after = document(container);
        assert_string_equal(before, after);
        free(after);
        assert_false(container->structure_dirty);
        assert_ptr_equal(esdm_group_dataset_find(root, "a"), a);
        assert_non_null(esdm_group_find(root, "group"));
        assert_null(esdm_group_dataset_find(root, "group"));
        assert_non_null(esdm_group_dimension_find(root, "x"));
        assert_null(esdm_group_dimension_find(root, "y"));
        assert_true(esdm_attribute_find(esdm_dataset_attributes(a), "second", NULL, NULL));
        assert_false(esdm_attribute_find(esdm_dataset_attributes(a), "third", NULL, NULL));
        assert_int_equal(*(const int32_t *) esdm_dataset_fill(a, NULL), 42);
    }
    free(before);
}

static void
test_revert__goes_to_the_newest_mark(void **state)
{
    esdm_container *container = *state;
    esdm_container_mark(container);
    change_all(container);
    char *before = document(container);
    esdm_container_mark(container);
    esdm_dataset *a = esdm_group_dataset_find(esdm_container_root(container), "again");
    OK(esdm_dataset_rename(a, "a2", NULL));
    OK(esdm_attribute_remove(esdm_dataset_attributes(a), "kind", NULL));
    esdm__undo_revert(container);
    assert_true(container->structure_dirty); /* as it was at the mark */
    char *after = document(container);
    assert_string_equal(before, after);
    free(before);
    free(after);
}

static void
test_revert__without_a_mark_nothing_happens(void **state)
{
    esdm_container *container = *state;
    change_all(container);
    char *before = document(container);
    esdm__undo_revert(container);
    esdm_container_mark(container);
    esdm__undo_forget(container);
    OK(esdm_container_set_hint(container, "format", "newest", NULL));
    esdm__undo_revert(container);
    assert_string_equal(esdm_container_hint(container, "format"), "newest");
    OK(esdm_container_set_hint(container, "format", "new", NULL));
    char *after = document(container);
    assert_string_equal(before, after);
    free(before);
    free(after);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_revert__everything_is_as_at_the_mark, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_revert__goes_to_the_newest_mark, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_revert__without_a_mark_nothing_happens, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
