/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Every atomic type there and back bit for bit, conversion with range reporting, fill values,
 * attributes, groups, several unlimited dimensions, old snapshots. */

#include <float.h>
#include <math.h>

#include "testing.h"

static const esdm_type numeric[] = {ESDM_TYPE_INT8,    ESDM_TYPE_UINT8,  ESDM_TYPE_INT16,
                                    ESDM_TYPE_UINT16,  ESDM_TYPE_INT32,  ESDM_TYPE_UINT32,
                                    ESDM_TYPE_INT64,   ESDM_TYPE_UINT64, ESDM_TYPE_FLOAT32,
                                    ESDM_TYPE_FLOAT64, ESDM_TYPE_CHAR};
enum { NUMERIC = sizeof numeric / sizeof *numeric, LENGTH = 1000 };

static esdm_dataset *
dataset_of(esdm_container *container, const char *name)
{
    return esdm_group_dataset_find(esdm_container_root(container), name);
}

/* Random bytes cover NaN payloads, infinities, denormals and the largest integers. */
static void
random_bytes(esdm_type type, unsigned char *bytes)
{
    uint64_t random = (uint64_t) type;
    for (size_t i = 0; i < LENGTH * esdm_type_size(type); i++)
        bytes[i] = (unsigned char) next_random(&random);
}

static void
test_types__bits_survive(void)
{
    static unsigned char bytes[LENGTH * 8];
    static unsigned char back[LENGTH * 8];
    esdm_container *container;
    esdm_dimension *x;
    esdm_dataset *dataset;
    esdm_dataspace space;
    esdm_session *session = open_session();
    ok(esdm_dataspace_init(&space, 1, NULL, (uint64_t[]){LENGTH}, ERR));
    ok(esdm_container_create(session, "types", ESDM_CREATE_NEW, &container, ERR));
    ok(esdm_dimension_create(esdm_container_root(container), "x", LENGTH, &x, ERR));
    for (int i = 0; i < NUMERIC; i++) {
        random_bytes(numeric[i], bytes);
        ok(esdm_dataset_create(esdm_container_root(container), esdm_type_name(numeric[i]),
                               numeric[i], 1, &x, &dataset, ERR));
        ok(esdm_dataset_set_codec(dataset, i % 2 ? "lz4" : NULL, ERR));
        ok(esdm_write(dataset, &space, numeric[i], bytes, NULL, ERR));
        ok(esdm_attribute_set(esdm_dataset_attributes(dataset), "a", numeric[i], 7, bytes, ERR));
    }
    ok(esdm_container_close(container, ERR));
    ok(esdm_container_open(session, "types", ESDM_OPEN_READ, 0, &container, ERR));
    for (int i = 0; i < NUMERIC; i++) {
        esdm_attribute attribute;
        size_t size = esdm_type_size(numeric[i]);
        random_bytes(numeric[i], bytes);
        dataset = dataset_of(container, esdm_type_name(numeric[i]));
        check(esdm_dataset_type(dataset) == numeric[i]);
        ok(esdm_read(dataset, &space, numeric[i], back, NULL, ERR));
        check(memcmp(bytes, back, LENGTH * size) == 0);
        check(esdm_attribute_find(esdm_dataset_attributes(dataset), "a", &attribute, NULL));
        check(attribute.type == numeric[i] && attribute.count == 7);
        check(memcmp(attribute.values, bytes, 7 * size) == 0);
    }
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

static void
test_strings__survive(void)
{
    static char long_text[100001];
    const char *texts[4] = {"", "Grüße, 世界", long_text, NULL};
    char *back[6];
    esdm_container *container;
    esdm_dimension *x;
    esdm_dataset *dataset;
    esdm_dataspace space;
    esdm_attribute attribute;
    esdm_session *session = open_session();
    memset(long_text, 'x', sizeof long_text - 1);
    ok(esdm_container_create(session, "strings", ESDM_CREATE_NEW, &container, ERR));
    ok(esdm_dimension_create(esdm_container_root(container), "x", 6, &x, ERR));
    ok(esdm_dataset_create(esdm_container_root(container), "s", ESDM_TYPE_STRING, 1, &x, &dataset,
                           ERR));
    ok(esdm_dataset_set_fill(dataset, &(const char *){"nothing"}, ERR));
    ok(esdm_attribute_set(esdm_dataset_attributes(dataset), "list", ESDM_TYPE_STRING, 2, texts,
                          ERR));
    ok(esdm_dataspace_init(&space, 1, (uint64_t[]){1}, (uint64_t[]){4}, ERR));
    ok(esdm_write(dataset, &space, ESDM_TYPE_STRING, texts, NULL, ERR));
    ok(esdm_container_close(container, ERR));

    ok(esdm_container_open(session, "strings", ESDM_OPEN_READ, 0, &container, ERR));
    dataset = dataset_of(container, "s");
    ok(esdm_dataspace_init(&space, 1, NULL, (uint64_t[]){6}, ERR));
    ok(esdm_read(dataset, &space, ESDM_TYPE_STRING, back, NULL, ERR));
    const char *expected[6] = {"nothing", "", texts[1], long_text, NULL, "nothing"};
    for (int i = 0; i < 6; i++) {
        check(expected[i] == NULL ? back[i] == NULL : strcmp(back[i], expected[i]) == 0);
        free(back[i]);
    }
    check(esdm_attribute_find(esdm_dataset_attributes(dataset), "list", &attribute, NULL));
    check(attribute.type == ESDM_TYPE_STRING && attribute.count == 2);
    check(strcmp(((const char *const *) attribute.values)[1], texts[1]) == 0);
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

/* A text that is NULL is neither "" nor a hole, and a hole may read as NULL. */
static void
test_strings__null_is_a_value(void)
{
    static const char *const null = NULL;
    const char *texts[3] = {"a", NULL, ""};
    char *back[4];
    esdm_container *container;
    esdm_dimension *x;
    esdm_dataset *dataset;
    esdm_dataspace space;
    esdm_session *session = open_session();
    ok(esdm_container_create(session, "nulls", ESDM_CREATE_NEW, &container, ERR));
    ok(esdm_dimension_create(esdm_container_root(container), "x", 4, &x, ERR));
    ok(esdm_dataset_create(esdm_container_root(container), "plain", ESDM_TYPE_STRING, 1, &x,
                           &dataset, ERR));
    ok(esdm_dataset_create(esdm_container_root(container), "filled", ESDM_TYPE_STRING, 1, &x,
                           &dataset, ERR));
    ok(esdm_dataset_set_fill(dataset, &null, ERR));
    for (int committed = 0; committed < 2; committed++) {
        for (int i = 0; i < 2; i++) {
            dataset = dataset_of(container, i == 0 ? "plain" : "filled");
            bool is_default = true;
            const char *const *fill = esdm_dataset_fill(dataset, &is_default);
            check(is_default == (i == 0) && (i == 0 ? **fill == '\0' : *fill == NULL));
            ok(esdm_dataspace_init(&space, 1, NULL, (uint64_t[]){3}, ERR));
            if (committed == 0)
                ok(esdm_write(dataset, &space, ESDM_TYPE_STRING, texts, NULL, ERR));
            ok(esdm_dataspace_init(&space, 1, NULL, (uint64_t[]){4}, ERR));
            ok(esdm_read(dataset, &space, ESDM_TYPE_STRING, back, NULL, ERR));
            check(strcmp(back[0], "a") == 0 && back[1] == NULL && back[2][0] == '\0');
            check(i == 0 ? back[3][0] == '\0' : back[3] == NULL);
            for (int k = 0; k < 4; k++)
                free(back[k]);
        }
        ok(esdm_container_close(container, ERR));
        ok(esdm_container_open(session, "nulls", ESDM_OPEN_READ, 0, &container, ERR));
    }
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

static void
test_conversion__reports_values_out_of_range(void)
{
    double values[6] = {1.9, -1.9, 300, -129, 127, -128};
    double back[6];
    uint64_t out_of_range = 99;
    esdm_container *container;
    esdm_dimension *x;
    esdm_dataset *dataset;
    esdm_dataspace space;
    esdm_session *session = open_session();
    ok(esdm_dataspace_init(&space, 1, NULL, (uint64_t[]){6}, ERR));
    ok(esdm_container_create(session, "conversion", ESDM_CREATE_NEW, &container, ERR));
    ok(esdm_dimension_create(esdm_container_root(container), "x", 6, &x, ERR));
    ok(esdm_dataset_create(esdm_container_root(container), "v", ESDM_TYPE_INT8, 1, &x, &dataset,
                           ERR));
    ok(esdm_write(dataset, &space, ESDM_TYPE_FLOAT64, values, &out_of_range, ERR));
    check(out_of_range == 2);
    ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT64, back, &out_of_range, ERR));
    check(out_of_range == 0);
    check(back[0] == 1 && back[1] == -1 && back[4] == 127 && back[5] == -128);
    check(back[2] == (double) (int8_t) 44 && back[3] == 127); /* truncated as the C cast does */
    uint8_t bytes[6];
    ok(esdm_read(dataset, &space, ESDM_TYPE_UINT8, bytes, &out_of_range, ERR));
    check(out_of_range == 2 && bytes[0] == 1 && bytes[4] == 127);
    fails(esdm_read(dataset, &space, ESDM_TYPE_CHAR, bytes, NULL, ERR), ESDM_EINVAL, "v");
    esdm_container_discard(container);
    esdm_session_close(session);
}

/* A fill value in the gaps is not read. */
static void
test_conversion__looks_at_selected_elements_only(void)
{
    const uint16_t written[2] = {22, 11};
    int16_t back[3] = {0, 0, 0};
    uint64_t out_of_range = 99;
    esdm_container *container;
    esdm_dimension *x;
    esdm_dataset *dataset;
    esdm_dataspace space;
    esdm_session *session = open_session();
    ok(esdm_container_create(session, "gaps", ESDM_CREATE_NEW, &container, ERR));
    ok(esdm_dimension_create(esdm_container_root(container), "x", 8, &x, ERR));
    ok(esdm_dataset_create(esdm_container_root(container), "v", ESDM_TYPE_UINT16, 1, &x, &dataset,
                           ERR));
    for (int committed = 0; committed < 2; committed++) {
        ok(esdm_dataspace_init(&space, 1, (uint64_t[]){1}, (uint64_t[]){2}, ERR));
        ok(esdm_dataspace_set_stride(&space, (uint64_t[]){3}, ERR));
        ok(esdm_write(dataset, &space, ESDM_TYPE_UINT16, written, NULL, ERR));
        ok(esdm_read(dataset, &space, ESDM_TYPE_INT16, back, &out_of_range, ERR));
        check(out_of_range == 0 && back[0] == 22 && back[1] == 11);
        ok(esdm_dataspace_init(&space, 1, (uint64_t[]){1}, (uint64_t[]){3}, ERR));
        ok(esdm_dataspace_set_stride(&space, (uint64_t[]){3}, ERR));
        ok(esdm_read(dataset, &space, ESDM_TYPE_INT16, back, &out_of_range, ERR));
        check(out_of_range == 1 && back[0] == 22 && back[1] == 11);
        ok(esdm_container_commit(container, NULL, ERR));
    }
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

static void
test_fill__holes_of_several_unlimited_dimensions(void)
{
    float values[5 * 4];
    float value = 1;
    const float fill = -1e10F;
    esdm_container *container;
    esdm_dimension *dims[2];
    esdm_dataset *dataset;
    esdm_dataset *other;
    esdm_dataspace space;
    esdm_session *session = open_session();
    ok(esdm_container_create(session, "unlimited", ESDM_CREATE_NEW, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    ok(esdm_dimension_create(root, "t", ESDM_UNLIMITED, &dims[0], ERR));
    ok(esdm_dimension_create(root, "u", ESDM_UNLIMITED, &dims[1], ERR));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_FLOAT32, 2, dims, &dataset, ERR));
    ok(esdm_dataset_create(root, "other", ESDM_TYPE_FLOAT32, 1, dims, &other, ERR));
    ok(esdm_dataset_set_fill(dataset, &fill, ERR));
    for (uint64_t i = 0; i < 2; i++) {
        ok(esdm_dataspace_init(&space, 2, (uint64_t[]){i * 4, i * 3}, (uint64_t[]){1, 1}, ERR));
        ok(esdm_write(dataset, &space, ESDM_TYPE_FLOAT32, &value, NULL, ERR));
    }
    ok(esdm_container_close(container, ERR));
    ok(esdm_container_open(session, "unlimited", ESDM_OPEN_READ, 0, &container, ERR));
    dataset = dataset_of(container, "v");
    check(esdm_dimension_length(esdm_dataset_dimension(dataset, 0)) == 5);
    check(esdm_dimension_length(esdm_dataset_dimension(dataset, 1)) == 4);
    ok(esdm_dataspace_init(&space, 2, NULL, (uint64_t[]){5, 4}, ERR));
    ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT32, values, NULL, ERR));
    for (int i = 0; i < 20; i++)
        check(values[i] == (i == 0 || i == 19 ? 1 : fill));
    ok(esdm_dataspace_init(&space, 1, NULL, (uint64_t[]){5}, ERR));
    ok(esdm_read(dataset_of(container, "other"), &space, ESDM_TYPE_FLOAT32, values, NULL, ERR));
    for (int i = 0; i < 5; i++)
        check(memcmp(&values[i], esdm_type_default_fill(ESDM_TYPE_FLOAT32), sizeof(float)) == 0);
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

static void
test_groups__nest_and_share_dimensions(void)
{
    esdm_container *container;
    esdm_group *group;
    esdm_dimension *x;
    esdm_dataset *dataset;
    esdm_dataspace space;
    int64_t value = 0;
    esdm_session *session = open_session();
    ok(esdm_container_create(session, "groups", ESDM_CREATE_NEW, &container, ERR));
    group = esdm_container_root(container);
    ok(esdm_dimension_create(group, "x", 8, &x, ERR));
    for (uint64_t depth = 0; depth < 8; depth++) {
        ok(esdm_group_create(group, "sub", &group, ERR));
        ok(esdm_dataset_create(group, "v", ESDM_TYPE_INT64, 1, &x, &dataset, ERR));
        ok(esdm_dataspace_init(&space, 1, &depth, (uint64_t[]){1}, ERR));
        value = (int64_t) depth;
        ok(esdm_write(dataset, &space, ESDM_TYPE_INT64, &value, NULL, ERR));
    }
    ok(esdm_dataset_rename(dataset, "renamed", ERR));
    ok(esdm_container_close(container, ERR));
    ok(esdm_container_open(session, "groups", ESDM_OPEN_READ, 0, &container, ERR));
    check(esdm_container_group_count(container) == 9);
    group = esdm_container_root(container);
    for (uint64_t depth = 0; depth < 8; depth++) {
        group = esdm_group_find(group, "sub");
        check(group);
        dataset = esdm_group_dataset_find(group, depth == 7 ? "renamed" : "v");
        check(dataset &&
              esdm_dataset_dimension(dataset, 0) == esdm_container_dimension(container, 0));
        ok(esdm_dataspace_init(&space, 1, &depth, (uint64_t[]){1}, ERR));
        ok(esdm_read(dataset, &space, ESDM_TYPE_INT64, &value, NULL, ERR));
        check(value == (int64_t) depth);
    }
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

int
main(void)
{
    make_site();
    test_types__bits_survive();
    test_strings__survive();
    test_strings__null_is_a_value();
    test_conversion__reports_values_out_of_range();
    test_conversion__looks_at_selected_elements_only();
    test_fill__holes_of_several_unlimited_dimensions();
    test_groups__nest_and_share_dimensions();
    return 0;
}
