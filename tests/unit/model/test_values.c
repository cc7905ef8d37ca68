/* SPDX-License-Identifier: LGPL-3.0-or-later */
/** @file Values of user-defined types: copies, comparison and the stored form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/values.h"
#include "random.h"

#define OK(call) assert_int_equal((call), ESDM_OK)

/* Every class, with gaps in memory: an array of `inner` in `outer`, which holds a vlen of vlens. */
typedef struct inner {
    int8_t a;
    int32_t b;
    int16_t c;
} inner;
typedef struct outer {
    int8_t tag;
    inner in[3];
    char *text;
    esdm_vlen rows;
    unsigned char raw[5];
    uint16_t flag;
} outer;

typedef struct types {
    esdm_container *container;
    esdm__typeref inner, row, rows, outer, fixed, text;
} types;

static esdm__typeref
resolve(const types *t, esdm_type type)
{
    esdm__typeref ref = {0, NULL};
    OK(esdm__type_resolve(t->container, type, &ref, NULL));
    return ref;
}

#define ADD(type, kind, member, of, rank, shape)                                                   \
    OK(esdm_compound_add(c, (type), #member, offsetof(kind, member), (of), (rank), (shape), NULL))

static int
set_up(void **state)
{
    static types t;
    static const uint32_t three = 3;
    esdm_type in, row, rows, raw, flag, out;
    t.container = esdm__container_new("values.nc");
    esdm_container *c = t.container;
    esdm_group *root = esdm_container_root(c);
    OK(esdm_compound_create(root, "inner", sizeof(inner), &in, NULL));
    ADD(in, inner, a, ESDM_TYPE_INT8, 0, NULL);
    ADD(in, inner, b, ESDM_TYPE_INT32, 0, NULL);
    ADD(in, inner, c, ESDM_TYPE_INT16, 0, NULL);
    OK(esdm_vlen_create(root, "row", in, &row, NULL));
    OK(esdm_vlen_create(root, "rows", row, &rows, NULL));
    OK(esdm_opaque_create(root, "raw", 5, &raw, NULL));
    OK(esdm_enum_create(root, "flag", ESDM_TYPE_UINT16, &flag, NULL));
    OK(esdm_enum_add(c, flag, "on", &(uint16_t){1}, NULL));
    OK(esdm_compound_create(root, "outer", sizeof(outer), &out, NULL));
    ADD(out, outer, tag, ESDM_TYPE_INT8, 0, NULL);
    ADD(out, outer, in, in, 1, &three);
    ADD(out, outer, text, ESDM_TYPE_STRING, 0, NULL);
    ADD(out, outer, rows, rows, 0, NULL);
    ADD(out, outer, raw, raw, 0, NULL);
    ADD(out, outer, flag, flag, 0, NULL);
    t.inner = resolve(&t, in);
    t.row = resolve(&t, row);
    t.rows = resolve(&t, rows);
    t.outer = resolve(&t, out);
    t.text = resolve(&t, ESDM_TYPE_STRING);
    *state = &t;
    return 0;
}

static int
tear_down(void **state)
{
    esdm__container_free(((types *) *state)->container);
    return 0;
}

static void
fill_inner(random_source *source, inner *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (inner){.a = (int8_t) random_next(source),
                            .b = (int32_t) random_next(source),
                            .c = (int16_t) random_next(source)};
}

/* Zero to four rows of zero to four elements; empty ones are NULL. */
static esdm_vlen
make_rows(random_source *source)
{
    esdm_vlen rows = {random_next(source) % 5, NULL};
    if (rows.count == 0)
        return rows;
    esdm_vlen *row = calloc(rows.count, sizeof *row);
    for (size_t i = 0; i < rows.count; i++) {
        row[i].count = random_next(source) % 5;
        if (row[i].count == 0)
            continue;
        row[i].values = calloc(row[i].count, sizeof(inner));
        fill_inner(source, row[i].values, row[i].count);
    }
    rows.values = row;
    return rows;
}

static void
make_outer(random_source *source, outer *value)
{
    memset(value, 0xAB, sizeof *value); /* padding is never looked at */
    value->tag = (int8_t) random_next(source);
    fill_inner(source, value->in, 3);
    uint64_t length = random_next(source) % 300;
    value->text = NULL;
    if (length > 0) {
        value->text = malloc(length);
        memset(value->text, 'x', length);
        value->text[length - 1] = '\0';
    }
    value->rows = make_rows(source);
    memset(value->raw, (int) random_next(source), sizeof value->raw);
    value->flag = (uint16_t) random_next(source);
}

static void
test_values__the_stored_form_is_this(void **state)
{
    const types *t = *state;
    inner elements[] = {{1, 2, 3}};
    esdm_vlen row = {1, elements};
    outer value = {.tag = -1,
                   .in = {{1, 0x04030201, 2}, {3, 4, 5}, {6, 7, 8}},
                   .text = (char *) "ab",
                   .rows = {1, &row},
                   .raw = {1, 2, 3, 4, 5},
                   .flag = 0x1234};
    static const uint8_t wanted[] = {0xFF,                       /* tag */
                                     1,    1,   2,   3, 4, 2, 0, /* in[0]: packed, little-endian */
                                     3,    4,   0,   0, 0, 5, 0, 6, 7,
                                     0,    0,   0,   8, 0,             /* in[1], in[2] */
                                     3,    'a', 'b',                   /* length + 1 */
                                     1,    1,   1,   2, 0, 0, 0, 3, 0, /* a row of an element */
                                     1,    2,   3,   4, 5,             /* raw */
                                     0x34, 0x12};
    esdm__buffer out;
    esdm__buffer_init(&out);
    OK(esdm__values_encode(t->outer, 1, &value, &out, NULL));
    assert_int_equal(out.bytes, sizeof wanted);
    assert_memory_equal(out.data, wanted, sizeof wanted);
    assert_int_equal(esdm__values_stored_bytes(t->outer, 1, &value), sizeof wanted);
    value.text = NULL;
    out.bytes = 0;
    OK(esdm__values_encode(t->outer, 1, &value, &out, NULL));
    assert_int_equal(out.bytes, sizeof wanted - 2);
    assert_int_equal(out.data[22], 0);
    esdm__buffer_clear(&out);
}

static void
test_values__random_values_survive_copying_and_storing(void **state)
{
    enum { COUNT = 200 };
    const types *t = *state;
    random_source source = {42};
    static outer values[COUNT], copies[COUNT], read[COUNT];
    esdm__buffer out;
    esdm__cursor cursor;
    for (size_t i = 0; i < COUNT; i++)
        make_outer(&source, &values[i]);
    OK(esdm__values_copy(t->outer, COUNT, values, copies, NULL));
    assert_true(esdm__values_equal(t->outer, COUNT, values, copies));
    esdm__buffer_init(&out);
    OK(esdm__values_encode(t->outer, COUNT, values, &out, NULL));
    assert_int_equal(out.bytes, esdm__values_stored_bytes(t->outer, COUNT, values));
    esdm__cursor_init(&cursor, out.data, out.bytes);
    OK(esdm__values_decode(t->outer, COUNT, &cursor, read, NULL));
    assert_int_equal(esdm__cursor_left(&cursor), 0);
    assert_true(esdm__values_equal(t->outer, COUNT, values, read));

    read[COUNT - 1].flag ^= 1;
    assert_false(esdm__values_equal(t->outer, COUNT, values, read));
    copies[3].in[2].b ^= 1;
    assert_false(esdm__values_equal(t->outer, COUNT, values, copies));
    esdm__values_clear(t->outer, COUNT, values);
    esdm__values_clear(t->outer, COUNT, values); /* once more does nothing */
    assert_null(values[0].rows.values);
    esdm__values_clear(t->outer, COUNT, copies);
    esdm__values_clear(t->outer, COUNT, read);
    esdm__buffer_clear(&out);
}

static void
test_values__every_cut_is_noticed_and_nothing_leaks(void **state)
{
    const types *t = *state;
    random_source source = {7};
    outer values[2], read[2];
    esdm__buffer out;
    esdm_error err;
    make_outer(&source, &values[0]);
    make_outer(&source, &values[1]);
    esdm__buffer_init(&out);
    OK(esdm__values_encode(t->outer, 2, values, &out, NULL));
    for (size_t bytes = 0; bytes < out.bytes; bytes++) {
        esdm__cursor cursor;
        uint8_t *exact = malloc(bytes > 0 ? bytes : 1); /* sanitizers see a step too far */
        memcpy(exact, out.data, bytes);
        esdm__cursor_init(&cursor, exact, bytes);
        assert_int_equal(esdm__values_decode(t->outer, 2, &cursor, read, &err), ESDM_ECORRUPT);
        free(exact);
    }
    for (size_t i = 0; i < 20000; i++) { /* damage: any result, but no crash or leak */
        esdm__cursor cursor;
        size_t at = random_next(&source) % out.bytes;
        uint8_t before = out.data[at];
        out.data[at] = (uint8_t) random_next(&source);
        esdm__cursor_init(&cursor, out.data, out.bytes);
        if (esdm__values_decode(t->outer, 2, &cursor, read, NULL) == ESDM_OK)
            esdm__values_clear(t->outer, 2, read);
        out.data[at] = before;
    }
    esdm__values_clear(t->outer, 2, values);
    esdm__buffer_clear(&out);
}

static void
test_values__arrays_without_memory_are_refused(void **state)
{
    const types *t = *state;
    esdm_vlen row[3] = {{0, NULL}, {0, NULL}, {5, NULL}};
    inner element = {1, 2, 3};
    row[0] = (esdm_vlen){1, &element};
    esdm_vlen rows = {3, row};
    esdm_vlen copy;
    esdm__buffer out;
    void *value = NULL;
    esdm__buffer_init(&out);
    assert_int_equal(esdm__values_encode(t->rows, 1, &rows, &out, NULL), ESDM_EINVAL);
    assert_int_equal(esdm__values_copy(t->rows, 1, &rows, &copy, NULL), ESDM_EINVAL);
    assert_null(copy.values);
    assert_int_equal(esdm__value_new(t->rows, &rows, &value, NULL), ESDM_EINVAL);
    assert_null(value);
    esdm__buffer_clear(&out);
}

static void
test_values__fixed_elements_pack_and_unpack_with_strides(void **state)
{
    const types *t = *state;
    inner values[6], read[6];
    random_source source = {1};
    uint8_t stored[6 * 7];
    fill_inner(&source, values, 6);
    assert_false(t->inner.user->plain);
    assert_int_equal(t->inner.user->stored_bytes, 7);
    esdm__values_pack(t->inner, 3, values, 2 * (int64_t) sizeof(inner), stored);
    memset(read, 0, sizeof read);
    esdm__values_unpack(t->inner, 3, stored, &read[5], -(int64_t) sizeof(inner));
    assert_true(esdm__values_equal(t->inner, 1, &values[0], &read[5]));
    assert_true(esdm__values_equal(t->inner, 1, &values[2], &read[4]));
    assert_true(esdm__values_equal(t->inner, 1, &values[4], &read[3]));
}

static void
test_values__text_values_have_one_allocation(void **state)
{
    const types *t = *state;
    const char *text = "abc", *none = NULL;
    void *value = NULL;
    OK(esdm__value_new(t->text, &text, &value, NULL));
    assert_string_equal(*(char **) value, "abc");
    free(value);
    OK(esdm__value_new(t->text, &none, &value, NULL));
    assert_null(*(char **) value);
    esdm__value_free(t->text, value);
    esdm__value_free(t->text, NULL);
}

static void
test_values__public_calls_check_their_arguments(void **state)
{
    const types *t = *state;
    const char *texts[] = {"a", NULL, "c"};
    char *copy[3];
    OK(esdm_values_copy(t->container, ESDM_TYPE_STRING, 3, texts, copy, NULL));
    assert_string_equal(copy[2], "c");
    assert_null(copy[1]);
    assert_true(esdm_values_equal(t->container, ESDM_TYPE_STRING, 3, texts, copy));
    esdm_values_clear(t->container, ESDM_TYPE_STRING, 3, copy);
    assert_null(copy[0]);
    esdm_values_clear(t->container, 999, 3, copy);
    assert_int_equal(esdm_values_copy(t->container, 999, 3, texts, copy, NULL), ESDM_EINVAL);
    assert_int_equal(esdm_values_copy(t->container, ESDM_TYPE_INT8, 3, NULL, copy, NULL),
                     ESDM_EINVAL);
    OK(esdm_values_copy(t->container, ESDM_TYPE_INT8, 0, NULL, NULL, NULL));
    assert_false(esdm_values_equal(t->container, 999, 1, texts, copy));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_values__the_stored_form_is_this),
        TEST(test_values__random_values_survive_copying_and_storing),
        TEST(test_values__every_cut_is_noticed_and_nothing_leaks),
        TEST(test_values__arrays_without_memory_are_refused),
        TEST(test_values__fixed_elements_pack_and_unpack_with_strides),
        TEST(test_values__text_values_have_one_allocation),
        TEST(test_values__public_calls_check_their_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
