/* SPDX-License-Identifier: LGPL-3.0-or-later */
/** @file Groups, dimensions, datasets and their properties. */
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/container.h"

static int
set_up(void **state)
{
    esdm_container *container = esdm__container_new("test/structure.nc");
    *state = container;
    return container == NULL;
}

static int
tear_down(void **state)
{
    esdm__container_free(*state);
    return 0;
}

static esdm_dimension *
new_dimension(esdm_group *group, const char *name, uint64_t length)
{
    esdm_dimension *dimension = NULL;
    assert_int_equal(esdm_dimension_create(group, name, length, &dimension, NULL), ESDM_OK);
    return dimension;
}

static esdm_group *
new_group(esdm_group *parent, const char *name)
{
    esdm_group *group = NULL;
    assert_int_equal(esdm_group_create(parent, name, &group, NULL), ESDM_OK);
    return group;
}

static esdm_dataset *
new_dataset(esdm_group *group, const char *name, esdm_type type, uint32_t rank,
            esdm_dimension *const *dimensions)
{
    esdm_dataset *dataset = NULL;
    assert_int_equal(esdm_dataset_create(group, name, type, rank, dimensions, &dataset, NULL),
                     ESDM_OK);
    return dataset;
}

/* Forgets that something was changed; returns whether it was. */
static bool
take_dirty(esdm_container *container)
{
    bool dirty = container->structure_dirty;
    container->structure_dirty = false;
    return dirty;
}

/* ---- groups -------------------------------------------------------------------------------- */

static void
test_group__children_are_found_by_name_index_and_id(void **state)
{
    esdm_container *container = *state;
    esdm_group *root = esdm_container_root(container);
    esdm_group *a = new_group(root, "a");
    esdm_group *b = new_group(a, "b");
    esdm_group *c = new_group(root, "c");

    assert_string_equal(esdm_group_name(root), "");
    assert_null(esdm_group_parent(root));
    assert_int_equal(esdm_group_count(root), 2);
    assert_ptr_equal(esdm_group_at(root, 1), c);
    assert_null(esdm_group_at(root, 2));
    assert_ptr_equal(esdm_group_find(root, "a"), a);
    assert_null(esdm_group_find(root, "b"));
    assert_null(esdm_group_find(root, NULL));
    assert_ptr_equal(esdm_group_parent(b), a);
    assert_int_equal(esdm_group_id(c), 3);
    assert_int_equal(esdm_container_group_count(container), 4);
    assert_ptr_equal(esdm_container_group(container, 2), b);
    assert_null(esdm_container_group(container, 4));
    assert_ptr_equal(esdm_group_container(b), container);
}

static void
test_group__groups_and_datasets_share_names_and_dimensions_do_not(void **state)
{
    esdm_group *root = esdm_container_root(*state);
    esdm_group *group = (esdm_group *) &root;
    esdm_dataset *dataset = (esdm_dataset *) &root;
    esdm_dimension *dimension = (esdm_dimension *) &root;
    esdm_error err;

    (void) new_group(root, "x");
    (void) new_dataset(root, "y", ESDM_TYPE_INT8, 0, NULL);
    (void) new_dimension(root, "x", 3);
    assert_int_equal(esdm_dataset_create(root, "x", ESDM_TYPE_INT8, 0, NULL, &dataset, &err),
                     ESDM_EEXIST);
    assert_string_equal(err.message, "group '/' already has a group named 'x'");
    assert_int_equal(esdm_group_create(root, "y", &group, &err), ESDM_EEXIST);
    assert_string_equal(err.message, "group '/' already has a dataset named 'y'");
    assert_int_equal(esdm_dimension_create(root, "x", 4, &dimension, &err), ESDM_EEXIST);
    assert_int_equal(esdm_group_create(root, "a/b", &group, &err), ESDM_EINVAL);
    assert_int_equal(esdm_group_create(root, NULL, &group, &err), ESDM_EINVAL);
    assert_ptr_equal(group, &root);
    assert_ptr_equal(dataset, &root);
    assert_ptr_equal(dimension, &root);
    assert_null(esdm_group_find(root, "y"));
    assert_null(esdm_group_dataset_find(root, "x"));
}

static void
test_group__rename_moves_the_name(void **state)
{
    esdm_container *container = *state;
    esdm_group *root = esdm_container_root(container);
    esdm_group *a = new_group(root, "a");
    esdm_dataset *b = new_dataset(root, "b", ESDM_TYPE_CHAR, 0, NULL);
    esdm_error err;

    (void) take_dirty(container);
    assert_int_equal(esdm_group_rename(a, "b", &err), ESDM_EEXIST);
    assert_int_equal(esdm_group_rename(a, "", &err), ESDM_EINVAL);
    assert_int_equal(esdm_group_rename(a, NULL, &err), ESDM_EINVAL);
    assert_int_equal(esdm_group_rename(root, "r", &err), ESDM_EINVAL);
    assert_int_equal(esdm_group_rename(a, "a", &err), ESDM_OK);
    assert_false(take_dirty(container));
    assert_int_equal(esdm_group_rename(a, "c", &err), ESDM_OK);
    assert_true(take_dirty(container));
    assert_int_equal(esdm_dataset_rename(b, "a", &err), ESDM_OK);
    assert_ptr_equal(esdm_group_find(root, "c"), a);
    assert_null(esdm_group_find(root, "a"));
    assert_ptr_equal(esdm_group_dataset_find(root, "a"), b);
    assert_int_equal(esdm_dataset_id(b), 1);
}

static void
test_group__nesting_is_limited(void **state)
{
    esdm_group *group = esdm_container_root(*state);
    esdm_group *too_deep;
    esdm_error err;
    for (int i = 0; i < ESDM__GROUP_DEPTH_MAX; i++)
        group = new_group(group, "g");
    assert_int_equal(esdm_group_create(group, "g", &too_deep, &err), ESDM_EINVAL);
    assert_non_null(strstr(err.message, "nested deeper than 256"));
}

/* ---- dimensions ---------------------------------------------------------------------------- */

static void
test_dimension__limited_and_unlimited(void **state)
{
    esdm_container *container = *state;
    esdm_group *root = esdm_container_root(container);
    esdm_dimension *time = new_dimension(root, "time", ESDM_UNLIMITED);
    esdm_dimension *lat = new_dimension(root, "lat", 180);
    esdm_dimension *none = new_dimension(root, "none", 0);

    assert_true(esdm_dimension_is_unlimited(time));
    assert_int_equal(esdm_dimension_length(time), 0);
    assert_false(esdm_dimension_is_unlimited(lat));
    assert_int_equal(esdm_dimension_length(lat), 180);
    assert_false(esdm_dimension_is_unlimited(none));
    assert_int_equal(esdm_dimension_id(none), 2);
    assert_ptr_equal(esdm_dimension_group(lat), root);
    assert_ptr_equal(esdm_group_dimension_find(root, "lat"), lat);
    assert_null(esdm_group_dimension_find(root, "lon"));
    assert_int_equal(esdm_group_dimension_count(root), 3);
    assert_ptr_equal(esdm_group_dimension_at(root, 0), time);
    assert_null(esdm_group_dimension_at(root, 3));
    assert_int_equal(esdm_container_dimension_count(container), 3);
    assert_ptr_equal(esdm_container_dimension(container, 1), lat);
    assert_null(esdm_container_dimension(container, 3));
}

static void
test_dimension__extend_grows_unlimited_ones_only(void **state)
{
    esdm_container *container = *state;
    esdm_group *root = esdm_container_root(container);
    esdm_dimension *time = new_dimension(root, "time", ESDM_UNLIMITED);
    esdm_dimension *lat = new_dimension(root, "lat", 180);
    esdm_error err;

    (void) take_dirty(container);
    assert_int_equal(esdm_dimension_extend(time, 0, &err), ESDM_OK);
    assert_false(container->lengths_dirty);
    assert_int_equal(esdm_dimension_extend(time, 12, &err), ESDM_OK);
    assert_true(container->lengths_dirty);
    assert_int_equal(esdm_dimension_extend(time, 5, &err), ESDM_OK);
    assert_int_equal(esdm_dimension_length(time), 12);
    assert_int_equal(esdm_dimension_extend(lat, 181, &err), ESDM_EINVAL);
    assert_non_null(strstr(err.message, "'lat' has the fixed length 180"));
    assert_int_equal(esdm_dimension_extend(time, UINT64_MAX, &err), ESDM_EINVAL);
    assert_false(take_dirty(container));
    assert_true(esdm__dimension_grow(time, 13));
    assert_false(esdm__dimension_grow(time, 13));
}

static void *
grow_many_times(void *argument)
{
    esdm_dimension *dimension = argument;
    uintptr_t grown = 0;
    for (uint64_t length = 1; length <= 20000; length++)
        grown += esdm__dimension_grow(dimension, length);
    return (void *) grown;
}

static void
test_dimension__threads_grow_to_the_largest_length(void **state)
{
    esdm_dimension *time = new_dimension(esdm_container_root(*state), "time", ESDM_UNLIMITED);
    pthread_t threads[4];
    uintptr_t grown = 0;
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, grow_many_times, time), 0);
    for (size_t i = 0; i < 4; i++) {
        void *part;
        assert_int_equal(pthread_join(threads[i], &part), 0);
        grown += (uintptr_t) part;
    }
    assert_int_equal(esdm_dimension_length(time), 20000);
    assert_int_equal(grown, 20000); /* each length was reached once, whoever did it */
}

static void
test_dimension__rename_moves_the_name(void **state)
{
    esdm_group *root = esdm_container_root(*state);
    esdm_dimension *a = new_dimension(root, "a", 1);
    esdm_dimension *b = new_dimension(root, "b", 2);
    esdm_error err;
    assert_int_equal(esdm_dimension_rename(b, "a", &err), ESDM_EEXIST);
    assert_string_equal(esdm_dimension_name(b), "b");
    assert_int_equal(esdm_dimension_rename(b, "c", &err), ESDM_OK);
    assert_int_equal(esdm_dimension_rename(a, "b", &err), ESDM_OK);
    assert_ptr_equal(esdm_group_dimension_find(root, "b"), a);
    assert_ptr_equal(esdm_group_dimension_find(root, "c"), b);
    assert_null(esdm_group_dimension_find(root, "a"));
}

/* ---- datasets ------------------------------------------------------------------------------ */

static void
test_dataset__uses_dimensions_of_its_container(void **state)
{
    esdm_container *container = *state;
    esdm_group *root = esdm_container_root(container);
    esdm_group *a = new_group(root, "a");
    esdm_group *b = new_group(root, "b");
    esdm_dimension *dimensions[3] = {new_dimension(root, "t", ESDM_UNLIMITED),
                                     new_dimension(a, "y", 4), new_dimension(a, "x", 5)};
    esdm_dimension *square[2] = {dimensions[1], dimensions[1]};
    esdm_dataset *dataset = new_dataset(a, "v", ESDM_TYPE_FLOAT32, 3, dimensions);
    esdm_dataset *refused = NULL;
    esdm_error err;

    assert_int_equal(esdm_dataset_rank(dataset), 3);
    assert_ptr_equal(esdm_dataset_dimension(dataset, 2), dimensions[2]);
    assert_null(esdm_dataset_dimension(dataset, 3));
    assert_int_equal(esdm_dataset_type(dataset), ESDM_TYPE_FLOAT32);
    assert_ptr_equal(esdm_dataset_group(dataset), a);
    assert_string_equal(esdm_dataset_name(dataset), "v");
    (void) new_dataset(a, "square", ESDM_TYPE_FLOAT32, 2, square);
    esdm_container *other = esdm__container_new("other.nc");
    esdm_dimension *foreign = new_dimension(esdm_container_root(other), "z", 3);
    assert_int_equal(esdm_dataset_create(b, "v", ESDM_TYPE_INT32, 1, &foreign, &refused, &err),
                     ESDM_EINVAL);
    assert_string_equal(err.message, "dataset 'v': dimension 0 (z) is not of this container");
    esdm__container_free(other);
    (void) new_dataset(b, "elsewhere", ESDM_TYPE_INT32, 3, dimensions); /* of a sister group */
    assert_null(refused);
    char *path = esdm__dataset_path(dataset);
    assert_string_equal(path, "/a/v");
    free(path);
    path = esdm__dataset_path(new_dataset(new_group(b, "deep"), "w", ESDM_TYPE_INT8, 0, NULL));
    assert_string_equal(path, "/b/deep/w");
    free(path);
    path = esdm__dataset_path(new_dataset(root, "s", ESDM_TYPE_INT8, 0, NULL));
    assert_string_equal(path, "/s");
    free(path);
}

static void
test_dataset__ids_rise_and_indices_count_per_group(void **state)
{
    esdm_container *container = *state;
    esdm_group *root = esdm_container_root(container);
    esdm_group *a = new_group(root, "a");
    esdm_dataset *first = new_dataset(root, "p", ESDM_TYPE_INT8, 0, NULL);
    esdm_dataset *second = new_dataset(a, "p", ESDM_TYPE_INT8, 0, NULL);
    esdm_dataset *third = new_dataset(root, "q", ESDM_TYPE_INT8, 0, NULL);
    assert_int_equal(esdm_dataset_id(first), 1);
    assert_int_equal(esdm_dataset_id(second), 2);
    assert_int_equal(esdm_dataset_id(third), 3);
    assert_int_equal(esdm_dataset_index(second), 0);
    assert_int_equal(esdm_dataset_index(third), 1);
    assert_int_equal(esdm_group_dataset_count(root), 2);
    assert_ptr_equal(esdm_group_dataset_at(root, 1), third);
    assert_null(esdm_group_dataset_at(root, 2));

    container->next_dataset_id = UINT32_MAX;
    esdm_dataset *refused;
    assert_int_equal(esdm_dataset_create(root, "r", ESDM_TYPE_INT8, 0, NULL, &refused, NULL),
                     ESDM_EINVAL);
}

static void
test_dataset__wrong_arguments_are_refused(void **state)
{
    esdm_container *container = *state;
    esdm_group *root = esdm_container_root(container);
    esdm_dimension *one = new_dimension(root, "one", 1);
    esdm_dimension *many[ESDM_MAX_RANK + 1];
    esdm_dataset *dataset;
    esdm_error err;
    for (size_t i = 0; i <= ESDM_MAX_RANK; i++)
        many[i] = one;
    (void) take_dirty(container);
    assert_int_equal(esdm_dataset_create(root, "v", 99, 0, NULL, &dataset, &err), ESDM_EINVAL);
    assert_string_equal(err.message, "dataset 'v': unknown type 99");
    assert_int_equal(esdm_dataset_create(root, "v", 4, ESDM_MAX_RANK + 1, many, &dataset, &err),
                     ESDM_EINVAL);
    assert_int_equal(esdm_dataset_create(root, "v", 4, 1, NULL, &dataset, &err), ESDM_EINVAL);
    many[0] = NULL;
    assert_int_equal(esdm_dataset_create(root, "v", 4, 1, many, &dataset, &err), ESDM_EINVAL);
    assert_false(take_dirty(container));
    assert_int_equal(esdm_group_dataset_count(root), 0);
}

static void
test_dataset__product_of_lengths_may_exceed_64_bits(void **state)
{
    esdm_group *root = esdm_container_root(*state);
    esdm_dimension *huge = new_dimension(root, "huge", UINT64_MAX - 1);
    esdm_dimension *zero = new_dimension(root, "zero", 0);
    esdm_dimension *time = new_dimension(root, "time", ESDM_UNLIMITED);
    esdm_dimension *dimensions[4] = {time, huge, huge, zero};
    (void) new_dataset(root, "empty", ESDM_TYPE_INT64, 4, dimensions);
    (void) new_dataset(root, "large", ESDM_TYPE_INT64, 3, dimensions);
}

static void
test_dataset__fill_goes_back_to_the_default(void **state)
{
    esdm_container *container = *state;
    esdm_group *root = esdm_container_root(container);
    esdm_dataset *dataset = new_dataset(root, "v", ESDM_TYPE_FLOAT32, 0, NULL);
    const float value = -999.0f;
    bool is_default;

    assert_ptr_equal(esdm_dataset_fill(dataset, &is_default),
                     esdm_type_default_fill(ESDM_TYPE_FLOAT32));
    assert_true(is_default);
    assert_int_equal(esdm_dataset_set_fill(dataset, &value, NULL), ESDM_OK);
    (void) take_dirty(container);
    assert_int_equal(esdm_dataset_set_fill(dataset, &value, NULL), ESDM_OK);
    assert_false(take_dirty(container));
    assert_true(*(const float *) esdm_dataset_fill(dataset, &is_default) == value);
    assert_false(is_default);
    assert_int_equal(esdm_dataset_set_fill(dataset, NULL, NULL), ESDM_OK);
    assert_true(take_dirty(container));
    (void) esdm_dataset_fill(dataset, &is_default);
    assert_true(is_default);
}

static void
test_dataset__fill_cannot_change_once_there_is_data(void **state)
{
    esdm_group *root = esdm_container_root(*state);
    esdm_dataset *dataset = new_dataset(root, "v", ESDM_TYPE_INT32, 0, NULL);
    const int32_t value = 5;
    esdm_error err;
    assert_false(esdm_dataset_has_data(dataset));
    atomic_store(&dataset->has_data, true);
    assert_true(esdm_dataset_has_data(dataset));
    assert_int_equal(esdm_dataset_set_fill(dataset, &value, &err), ESDM_EINVAL);
    assert_string_equal(err.message, "dataset 'v' has data: its fill value cannot change any more");
    assert_null(dataset->stated->fill);
}

static void
test_dataset__string_fill_is_copied(void **state)
{
    esdm_group *root = esdm_container_root(*state);
    esdm_dataset *dataset = new_dataset(root, "v", ESDM_TYPE_STRING, 0, NULL);
    char text[] = "missing";
    const char *value = text;
    assert_string_equal(*(char *const *) esdm_dataset_fill(dataset, NULL), "");
    assert_int_equal(esdm_dataset_set_fill(dataset, &value, NULL), ESDM_OK);
    text[0] = 'M';
    assert_string_equal(*(char *const *) esdm_dataset_fill(dataset, NULL), "missing");
    value = NULL;
    assert_int_equal(esdm_dataset_set_fill(dataset, &value, NULL), ESDM_OK);
    assert_null(*(char *const *) esdm_dataset_fill(dataset, NULL));
}

static void
test_dataset__chunk_codec_and_hints_are_kept(void **state)
{
    esdm_container *container = *state;
    esdm_group *root = esdm_container_root(container);
    esdm_dimension *dimensions[2] = {new_dimension(root, "y", 4), new_dimension(root, "x", 5)};
    esdm_dataset *dataset = new_dataset(root, "v", ESDM_TYPE_INT32, 2, dimensions);
    const uint64_t shape[2] = {2, 5};
    const uint64_t wrong[2] = {2, 0};
    esdm_error err;

    assert_null(esdm_dataset_chunk(dataset));
    assert_int_equal(esdm_dataset_set_chunk(dataset, shape, &err), ESDM_OK);
    assert_int_equal(esdm_dataset_set_chunk(dataset, wrong, &err), ESDM_EINVAL);
    assert_non_null(strstr(err.message, "axis 1 is 0"));
    assert_memory_equal(esdm_dataset_chunk(dataset), shape, sizeof shape);
    assert_int_equal(esdm_dataset_set_chunk(dataset, NULL, &err), ESDM_OK);
    assert_null(esdm_dataset_chunk(dataset));

    assert_null(esdm_dataset_codec(dataset));
    assert_int_equal(esdm__dataset_set_codec_text(dataset, "lz4", &err), ESDM_OK);
    assert_string_equal(esdm_dataset_codec(dataset), "lz4");
    assert_int_equal(esdm__dataset_set_codec_text(dataset, NULL, &err), ESDM_OK);
    assert_null(esdm_dataset_codec(dataset));

    assert_null(esdm_dataset_hint(dataset, "k"));
    assert_int_equal(esdm_dataset_set_hint(dataset, "k", "v", &err), ESDM_OK);
    (void) take_dirty(container);
    assert_int_equal(esdm_dataset_set_hint(dataset, "k", "v", &err), ESDM_OK);
    assert_int_equal(esdm_dataset_set_hint(dataset, "other", NULL, &err), ESDM_OK);
    assert_false(take_dirty(container));
    assert_int_equal(esdm_dataset_set_hint(dataset, "k", "w", &err), ESDM_OK);
    assert_true(take_dirty(container));
    assert_string_equal(esdm_dataset_hint(dataset, "k"), "w");
    assert_int_equal(esdm_dataset_set_hint(dataset, "k", NULL, &err), ESDM_OK);
    assert_null(esdm_dataset_hint(dataset, "k"));
    assert_int_equal(esdm_dataset_set_hint(dataset, "", "v", &err), ESDM_EINVAL);
    assert_int_equal(esdm_container_set_hint(container, "a", "1", &err), ESDM_OK);
    assert_string_equal(esdm_container_hint(container, "a"), "1");
}

/* ---- container ----------------------------------------------------------------------------- */

static void
test_container__reading_handles_refuse_every_change(void **state)
{
    esdm_container *container = *state;
    esdm_group *root = esdm_container_root(container);
    esdm_group *group = new_group(root, "g");
    esdm_dimension *dimension = new_dimension(root, "t", ESDM_UNLIMITED);
    esdm_dataset *dataset = new_dataset(root, "v", ESDM_TYPE_INT8, 0, NULL);
    esdm_attributes *list = esdm_dataset_attributes(dataset);
    const uint64_t chunk = 1;
    void *ret = NULL;
    esdm_error err;
    (void) take_dirty(container);
    container->writable = false;

    assert_int_equal(esdm_group_create(root, "h", (esdm_group **) &ret, &err), ESDM_EACCES);
    assert_string_equal(err.message, "container 'test/structure.nc' is open for reading only; open "
                                     "it for writing");
    assert_int_equal(esdm_dimension_create(root, "h", 1, (esdm_dimension **) &ret, &err),
                     ESDM_EACCES);
    assert_int_equal(esdm_dataset_create(root, "h", 1, 0, NULL, (esdm_dataset **) &ret, &err),
                     ESDM_EACCES);
    assert_int_equal(esdm_group_rename(group, "h", &err), ESDM_EACCES);
    assert_int_equal(esdm_dimension_rename(dimension, "h", &err), ESDM_EACCES);
    assert_int_equal(esdm_dimension_extend(dimension, 3, &err), ESDM_EACCES);
    assert_int_equal(esdm_dataset_rename(dataset, "h", &err), ESDM_EACCES);
    assert_int_equal(esdm_dataset_set_fill(dataset, NULL, &err), ESDM_EACCES);
    assert_int_equal(esdm_dataset_set_chunk(dataset, &chunk, &err), ESDM_EACCES);
    assert_int_equal(esdm_dataset_set_hint(dataset, "k", "v", &err), ESDM_EACCES);
    assert_int_equal(esdm__dataset_set_codec_text(dataset, "lz4", &err), ESDM_EACCES);
    assert_int_equal(esdm_container_set_hint(container, "k", "v", &err), ESDM_EACCES);
    assert_int_equal(esdm_attribute_set(list, "a", ESDM_TYPE_INT8, 0, NULL, &err), ESDM_EACCES);
    assert_int_equal(esdm_attribute_rename(list, "a", "b", &err), ESDM_EACCES);
    assert_int_equal(esdm_attribute_remove(list, "a", &err), ESDM_EACCES);
    assert_int_equal(esdm__container_touch(container, &err), ESDM_EACCES);
    assert_null(ret);
    assert_false(take_dirty(container));
    assert_false(container->lengths_dirty);
}

static void
test_container__tells_its_state(void **state)
{
    esdm_container *container = *state;
    assert_string_equal(esdm_container_name(container), "test/structure.nc");
    assert_int_equal(esdm_container_snapshot(container), 0);
    assert_true(esdm_container_is_writable(container));
    assert_null(esdm_container_session(container));
    assert_int_equal(esdm__container_touch(container, NULL), ESDM_OK);
    assert_true(take_dirty(container));
    esdm__container_free(NULL);
}

/* A quadratic algorithm would take minutes here. */
static void
test_container__many_objects_are_found_by_name(void **state)
{
    esdm_group *root = esdm_container_root(*state);
    char name[32];
    for (int i = 0; i < 50000; i++) {
        (void) snprintf(name, sizeof name, "object_%d", i);
        (void) new_dataset(root, name, ESDM_TYPE_INT8, 0, NULL);
        (void) new_dimension(root, name, 1);
    }
    for (int i = 0; i < 50000; i++) {
        (void) snprintf(name, sizeof name, "object_%d", i);
        assert_int_equal(esdm_dataset_index(esdm_group_dataset_find(root, name)), i);
        assert_int_equal(esdm_dimension_id(esdm_group_dimension_find(root, name)), i);
    }
}

/* What malloc() has given out; 0 under sanitizers. */
static size_t
allocated(void)
{
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* Its description, its places in lists and in the table of names, and what malloc() adds. */
static void
test_dataset__very_many_take_200_bytes_beside_their_names(void **state)
{
    enum { MANY = 100000, NAME_BYTES = 16 };
    esdm_group *root = esdm_container_root(*state);
    esdm_dimension *dims[4];
    for (int i = 0; i < 4; i++)
        dims[i] = new_dimension(root, (const char *[]){"t", "z", "y", "x"}[i], 10);
    size_t before = allocated();
    for (int i = 0; i < MANY; i++) {
        char name[NAME_BYTES + 1];
        (void) snprintf(name, sizeof name, "variable_%07d", i);
        (void) new_dataset(root, name, ESDM_TYPE_FLOAT32, 4, dims);
    }
    size_t each = (allocated() - before) / MANY;
    print_message("100,000 datasets of four dimensions: %zu bytes each, names of %d left out\n",
                  each > 0 ? each - NAME_BYTES : 0, (int) NAME_BYTES);
    assert_true(each <= 200 + NAME_BYTES);
    esdm_dataset *one = esdm_group_dataset_find(root, "variable_0077777");
    assert_string_equal(esdm_dataset_name(one), "variable_0077777");
    assert_ptr_equal(esdm_dataset_dimension(one, 3), dims[3]);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_group__children_are_found_by_name_index_and_id, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            test_group__groups_and_datasets_share_names_and_dimensions_do_not, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_group__rename_moves_the_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_group__nesting_is_limited, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_dimension__limited_and_unlimited, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_dimension__extend_grows_unlimited_ones_only, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_dimension__threads_grow_to_the_largest_length, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_dimension__rename_moves_the_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_dataset__uses_dimensions_of_its_container, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_dataset__ids_rise_and_indices_count_per_group, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_dataset__wrong_arguments_are_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_dataset__product_of_lengths_may_exceed_64_bits, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_dataset__fill_goes_back_to_the_default, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_dataset__fill_cannot_change_once_there_is_data, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_dataset__string_fill_is_copied, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_dataset__chunk_codec_and_hints_are_kept, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_container__reading_handles_refuse_every_change, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_container__tells_its_state, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_container__many_objects_are_found_by_name, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_dataset__very_many_take_200_bytes_beside_their_names,
                                        set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
