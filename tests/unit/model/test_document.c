/* SPDX-License-Identifier: LGPL-3.0-or-later */
/** @file The container document: bit-exact round trips, the schema's example. */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "esdm/usertypes.h"
#include "model/accuracy.h"
#include "model/container.h"
#include "model/tape.h"
#include "random.h"

/* ---- helpers ------------------------------------------------------------------------------- */

/* A second container with the structure of the first, by way of the document. */
static esdm_container *
round_trip(const esdm_container *container)
{
    char *text, *again;
    size_t bytes, again_bytes;
    json_error_t json_err;
    esdm_error err;

    assert_int_equal(esdm__document_write(container, &text, &bytes, NULL), ESDM_OK);
    assert_int_equal(strlen(text), bytes);
    json_t *json = json_loadb(text, bytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &json_err);
    assert_non_null(json); /* a JSON parser of others reads it */
    json_decref(json);

    esdm_container *copy = esdm__container_new("copy.nc");
    assert_non_null(copy);
    err.message[0] = '\0';
    (void) esdm__document_read(text, bytes, copy, &err);
    assert_string_equal(err.message, "");
    assert_false(copy->structure_dirty);
    assert_int_equal(esdm__document_write(copy, &again, &again_bytes, NULL), ESDM_OK);
    assert_string_equal(again, text);
    free(again);
    free(text);
    return copy;
}

static void
set(esdm_container *container, const char *name, esdm_type type, uint64_t count, const void *values)
{
    assert_int_equal(esdm_attribute_set(esdm_group_attributes(esdm_container_root(container)), name,
                                        type, count, values, NULL),
                     ESDM_OK);
}

static esdm_attribute
get(esdm_container *container, const char *name)
{
    esdm_attribute attribute = {0};
    assert_true(esdm_attribute_find(esdm_group_attributes(esdm_container_root(container)), name,
                                    &attribute, NULL));
    return attribute;
}

/* ---- round trips --------------------------------------------------------------------------- */

static void
test_document__numbers_survive_bit_for_bit(void **state)
{
    static const int8_t i8[] = {INT8_MIN, -1, 0, INT8_MAX};
    static const uint8_t u8[] = {0, UINT8_MAX};
    static const int16_t i16[] = {INT16_MIN, 0, INT16_MAX};
    static const uint16_t u16[] = {0, UINT16_MAX};
    static const int32_t i32[] = {INT32_MIN, 0, INT32_MAX};
    static const uint32_t u32[] = {0, UINT32_MAX};
    static const int64_t i64[] = {INT64_MIN, -1, 0, INT64_MAX};
    static const uint64_t u64[] = {0, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX};
    static const uint32_t f32[] = {0x00000000, 0x80000000, 0x7F800000, 0xFF800000,
                                   0x7FC00000, 0xFFC01234, 0x7F800001, 0x00000001,
                                   0x007FFFFF, 0x7F7FFFFF, 0x3DCCCCCD, 0x3F800000};
    static const uint64_t f64[] = {0x0000000000000000, 0x8000000000000000, 0x7FF0000000000000,
                                   0xFFF0000000000000, 0x7FF8000000000000, 0xFFF8DEADBEEF0001,
                                   0x7FF0000000000001, 0x0000000000000001, 0x000FFFFFFFFFFFFF,
                                   0x7FEFFFFFFFFFFFFF, 0x3FB999999999999A, 0x4340000000000001};
    static const struct {
        const char *name;
        esdm_type type;
        uint64_t count;
        const void *values;
    } cases[] = {
        {"i8", ESDM_TYPE_INT8, 4, i8},        {"u8", ESDM_TYPE_UINT8, 2, u8},
        {"i16", ESDM_TYPE_INT16, 3, i16},     {"u16", ESDM_TYPE_UINT16, 2, u16},
        {"i32", ESDM_TYPE_INT32, 3, i32},     {"u32", ESDM_TYPE_UINT32, 2, u32},
        {"i64", ESDM_TYPE_INT64, 4, i64},     {"u64", ESDM_TYPE_UINT64, 4, u64},
        {"f32", ESDM_TYPE_FLOAT32, 12, f32},  {"f64", ESDM_TYPE_FLOAT64, 12, f64},
        {"none", ESDM_TYPE_FLOAT32, 0, NULL},
    };
    enum { CASES = sizeof cases / sizeof cases[0] };
    esdm_container *container = esdm__container_new("a.nc");
    (void) state;
    for (size_t i = 0; i < CASES; i++)
        set(container, cases[i].name, cases[i].type, cases[i].count, cases[i].values);
    esdm_container *copy = round_trip(container);
    for (size_t i = 0; i < CASES; i++) {
        esdm_attribute got = get(copy, cases[i].name);
        assert_int_equal(got.type, cases[i].type);
        assert_int_equal(got.count, cases[i].count);
        if (got.count > 0)
            assert_memory_equal(got.values, cases[i].values,
                                (size_t) got.count * esdm_type_size(got.type));
    }
    esdm__container_free(copy);
    esdm__container_free(container);
}

static void
test_document__random_floats_survive_bit_for_bit(void **state)
{
    enum { COUNT = 5000 };
    static uint32_t f32[COUNT];
    static uint64_t f64[COUNT];
    random_source source = {4711};
    (void) state;
    for (size_t i = 0; i < COUNT; i++) {
        f32[i] = (uint32_t) random_next(&source);
        f64[i] = random_next(&source);
    }
    esdm_container *container = esdm__container_new("a.nc");
    set(container, "f32", ESDM_TYPE_FLOAT32, COUNT, f32);
    set(container, "f64", ESDM_TYPE_FLOAT64, COUNT, f64);
    esdm_container *copy = round_trip(container);
    assert_memory_equal(get(copy, "f32").values, f32, sizeof f32);
    assert_memory_equal(get(copy, "f64").values, f64, sizeof f64);
    esdm__container_free(copy);
    esdm__container_free(container);
}

static void
test_document__texts_survive_byte_for_byte(void **state)
{
    static const char odd[] = "quote \" slash \\ / tab \t line \n bell \a nul \0 del \x7F \xC3\xA4 "
                              "\xF0\x9F\x8C\x8A";
    static const char latin[] = "caf\xE9";
    static const char *const strings[] = {
        "plain", NULL, "", "caf\xE9", "\xFF", "\xFF\xFE", "\xFF\xFE\xFD", "two\nlines"};
    char every[256];
    esdm_container *container = esdm__container_new("a.nc");
    (void) state;
    for (int i = 0; i < 256; i++)
        every[i] = (char) i;
    set(container, "odd", ESDM_TYPE_CHAR, sizeof odd, odd);
    set(container, "latin", ESDM_TYPE_CHAR, 4, latin);
    set(container, "empty", ESDM_TYPE_CHAR, 0, NULL);
    set(container, "strings", ESDM_TYPE_STRING, 8, strings);
    set(container, "no strings", ESDM_TYPE_STRING, 0, NULL);
    set(container, "name \"\\\x01\xE2\x82\xAC", ESDM_TYPE_CHAR, 1, "x");
    set(container, "every", ESDM_TYPE_CHAR, 256, every);
    set(container, "ascii", ESDM_TYPE_CHAR, 128, every);

    esdm_container *copy = round_trip(container);
    assert_int_equal(get(copy, "odd").count, sizeof odd);
    assert_memory_equal(get(copy, "odd").values, odd, sizeof odd);
    assert_memory_equal(get(copy, "latin").values, latin, 4);
    assert_int_equal(get(copy, "empty").count, 0);
    assert_int_equal(get(copy, "empty").type, ESDM_TYPE_CHAR);
    assert_int_equal(get(copy, "no strings").count, 0);
    assert_memory_equal(get(copy, "every").values, every, 256);
    assert_memory_equal(get(copy, "ascii").values, every, 128);
    assert_int_equal(get(copy, "name \"\\\x01\xE2\x82\xAC").count, 1);
    char *const *got = get(copy, "strings").values;
    for (size_t i = 0; i < 8; i++) {
        if (strings[i] == NULL)
            assert_null(got[i]);
        else
            assert_string_equal(got[i], strings[i]);
    }
    esdm__container_free(copy);
    esdm__container_free(container);
}

static void
test_document__structure_survives(void **state)
{
    static const uint64_t chunk[2] = {1, UINT64_MAX};
    static const float fill = NAN;
    static const char *const string_fill = "caf\xE9";
    esdm_container *container = esdm__container_new("a.nc");
    esdm_group *root = esdm_container_root(container);
    esdm_group *a, *b;
    esdm_dimension *d[3];
    esdm_dataset *v, *w, *c;
    (void) state;
    assert_int_equal(esdm_group_create(root, "a", &a, NULL), ESDM_OK);
    assert_int_equal(esdm_group_create(a, "b", &b, NULL), ESDM_OK);
    assert_int_equal(esdm_dimension_create(root, "t", ESDM_UNLIMITED, &d[0], NULL), ESDM_OK);
    assert_int_equal(esdm_dimension_create(a, "x", UINT64_MAX - 1, &d[1], NULL), ESDM_OK);
    assert_int_equal(esdm_dimension_create(b, "zero", 0, &d[2], NULL), ESDM_OK);
    assert_int_equal(esdm_dimension_extend(d[0], 17, NULL), ESDM_OK);
    d[1] = d[0];
    assert_int_equal(esdm_dataset_create(b, "v", ESDM_TYPE_FLOAT32, 2, d, &v, NULL), ESDM_OK);
    assert_int_equal(esdm_dataset_create(root, "w", ESDM_TYPE_STRING, 0, NULL, &w, NULL), ESDM_OK);
    assert_int_equal(esdm_dataset_create(a, "c", ESDM_TYPE_CHAR, 0, NULL, &c, NULL), ESDM_OK);
    v->id = 7; /* ids may have gaps, but rise */
    w->id = 9;
    c->id = 10;
    container->next_dataset_id = 100;
    assert_int_equal(esdm_dataset_set_chunk(v, chunk, NULL), ESDM_OK);
    assert_int_equal(esdm_dataset_set_fill(v, &fill, NULL), ESDM_OK);
    assert_int_equal(esdm_dataset_set_fill(w, &string_fill, NULL), ESDM_OK);
    assert_int_equal(esdm_dataset_set_fill(c, "\xE9", NULL), ESDM_OK);
    assert_int_equal(esdm__dataset_set_codec_text(v, "shuffle+lz4", NULL), ESDM_OK);
    assert_int_equal(esdm_dataset_set_hint(v, "k", "1", NULL), ESDM_OK);
    assert_int_equal(esdm_container_set_hint(container, "z", "2", NULL), ESDM_OK);
    assert_int_equal(esdm_container_set_hint(container, "a", "3", NULL), ESDM_OK);

    esdm_container *copy = round_trip(container);
    assert_int_equal(copy->next_dataset_id, 100);
    assert_int_equal(esdm_container_group_count(copy), 3);
    b = esdm_group_find(esdm_group_find(esdm_container_root(copy), "a"), "b");
    assert_int_equal(esdm_group_id(b), 2);
    esdm_dimension *t = esdm_container_dimension(copy, 0);
    assert_true(esdm_dimension_is_unlimited(t));
    assert_int_equal(esdm_dimension_length(t), 0); /* lengths are published apart */
    assert_true(esdm_dimension_length(esdm_container_dimension(copy, 1)) == UINT64_MAX - 1);
    assert_int_equal(esdm_dimension_length(esdm_group_dimension_find(b, "zero")), 0);
    v = esdm_group_dataset_find(b, "v");
    assert_int_equal(esdm_dataset_id(v), 7);
    assert_ptr_equal(esdm_dataset_dimension(v, 1), t);
    assert_memory_equal(esdm_dataset_chunk(v), chunk, sizeof chunk);
    assert_memory_equal(esdm_dataset_fill(v, NULL), &fill, sizeof fill);
    assert_string_equal(esdm_dataset_codec(v), "shuffle+lz4");
    assert_string_equal(esdm_dataset_hint(v, "k"), "1");
    assert_string_equal(esdm_container_hint(copy, "a"), "3");
    w = esdm_group_dataset_find(esdm_container_root(copy), "w");
    assert_string_equal(*(char *const *) esdm_dataset_fill(w, NULL), string_fill);
    c = esdm_group_dataset_find(esdm_group_find(esdm_container_root(copy), "a"), "c");
    assert_int_equal(*(const char *) esdm_dataset_fill(c, NULL), (char) 0xE9);
    esdm__container_free(copy);
    esdm__container_free(container);
}

static void
test_document__empty_containers_survive(void **state)
{
    esdm_container *container = esdm__container_new("a.nc");
    (void) state;
    esdm__container_free(round_trip(container));
    esdm__container_free(container);
}

/* Skipped silently where no locale with a decimal comma is installed. */
static void
test_document__decimal_commas_of_locales_do_not_matter(void **state)
{
    const double value = 0.5;
    (void) state;
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") == NULL)
        skip();
    esdm_container *container = esdm__container_new("a.nc");
    set(container, "half", ESDM_TYPE_FLOAT64, 1, &value);
    esdm_container *copy = round_trip(container);
    assert_true(*(const double *) get(copy, "half").values == value);
    assert_string_equal(localeconv()->decimal_point, ",");
    esdm__container_free(copy);
    esdm__container_free(container);
    (void) setlocale(LC_NUMERIC, "C");
}

/* ---- the schema's example ------------------------------------------------------------------- */

static void
test_document__the_examples_of_the_schema_are_read(void **state)
{
    esdm_error err = {.message = ""};
    (void) state;
    json_t *schema = json_load_file(ESDM_SOURCE_FOLDER "/schemas/container.schema.json", 0, NULL);
    assert_non_null(schema);
    json_t *example = json_array_get(json_object_get(schema, "examples"), 0);
    char *text = json_dumps(example, JSON_INDENT(2));
    assert_non_null(text);

    esdm_container *container = esdm__container_new("a.nc");
    (void) esdm__document_read(text, strlen(text), container, &err);
    assert_string_equal(err.message, "");
    esdm_group *ocean = esdm_group_find(esdm_container_root(container), "ocean");
    esdm_dataset *tos = esdm_group_dataset_find(esdm_group_find(ocean, "surface"), "tos");
    assert_int_equal(esdm_dataset_id(tos), 3);
    assert_int_equal(esdm_attribute_count(esdm_dataset_attributes(tos)), 5);
    esdm__container_free(round_trip(container));
    esdm__container_free(container);
    free(text);

    text = json_dumps(json_array_get(json_object_get(schema, "examples"), 2), JSON_INDENT(2));
    container = esdm__container_new("c.nc");
    (void) esdm__document_read(text, strlen(text), container, &err);
    assert_string_equal(err.message, "");
    esdm_dataset *names = esdm_group_dataset_find(esdm_container_root(container), "names");
    assert_null(*(char *const *) esdm_dataset_fill(names, NULL));
    esdm_container *copy = round_trip(container);
    names = esdm_group_dataset_find(esdm_container_root(copy), "names");
    assert_null(*(char *const *) esdm_dataset_fill(names, NULL));
    esdm__container_free(copy);
    esdm__container_free(container);
    free(text);

    text = json_dumps(json_array_get(json_object_get(schema, "examples"), 1), JSON_INDENT(2));
    container = esdm__container_new("b.nc");
    (void) esdm__document_read(text, strlen(text), container, &err);
    assert_string_equal(err.message, "");
    assert_int_equal(esdm_container_type_count(container), 4);
    esdm__container_free(round_trip(container));
    esdm__container_free(container);
    free(text);
    json_decref(schema);
}

/* The mode `fast` came after format 5: in the text stands what libraries of before understand. */
static void
test_document__a_newer_mode_is_stored_as_an_older_one_and_a_hint(void **state)
{
    static const char stored[] = "\"accuracy\":\"absolute_tolerance=3; mode=balanced\","
                                 "\"hints\":{\"a\":\"b\",\"esdm.mode\":\"fast\"}";
    static const char *const others[] = {"balanced", "archive", "energy"};
    esdm_container *container = esdm__container_new("a.nc");
    esdm_group *root = esdm_container_root(container);
    esdm_dataset *dataset;
    esdm_accuracy accuracy;
    char *text;
    size_t bytes;
    (void) state;
    assert_int_equal(esdm_dataset_create(root, "v", ESDM_TYPE_INT32, 0, NULL, &dataset, NULL), 0);
    assert_int_equal(esdm_dataset_set_hint(dataset, "esdm.mode", "of a user", NULL), ESDM_OK);
    assert_int_equal(esdm_dataset_set_hint(dataset, "a", "b", NULL), ESDM_OK);
    esdm_accuracy_init(&accuracy);
    assert_int_equal(esdm_accuracy_parse(&accuracy, "abs=3; mode=fast", NULL, NULL), ESDM_OK);
    assert_int_equal(esdm__dataset_put_accuracy(dataset, &accuracy, NULL, NULL), ESDM_OK);
    assert_int_equal(esdm__document_write(container, &text, &bytes, NULL), ESDM_OK);
    assert_non_null(strstr(text, stored));
    free(text);
    esdm_container *copy = round_trip(container);
    dataset = esdm_group_dataset_find(esdm_container_root(copy), "v");
    assert_true(esdm_dataset_accuracy(dataset, &accuracy));
    assert_int_equal(accuracy.mode, ESDM_MODE_FAST);
    assert_null(esdm_dataset_hint(dataset, "esdm.mode"));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(esdm_accuracy_set(&accuracy, "mode", others[i], NULL, NULL), ESDM_OK);
        assert_int_equal(esdm__dataset_put_accuracy(dataset, &accuracy, NULL, NULL), ESDM_OK);
        assert_int_equal(esdm__document_write(copy, &text, &bytes, NULL), ESDM_OK);
        assert_null(strstr(text, "esdm.mode"));
        free(text);
    }
    esdm__container_free(copy);
    esdm__container_free(container);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_document__numbers_survive_bit_for_bit),
        cmocka_unit_test(test_document__random_floats_survive_bit_for_bit),
        cmocka_unit_test(test_document__texts_survive_byte_for_byte),
        cmocka_unit_test(test_document__structure_survives),
        cmocka_unit_test(test_document__a_newer_mode_is_stored_as_an_older_one_and_a_hint),
        cmocka_unit_test(test_document__empty_containers_survive),
        cmocka_unit_test(test_document__decimal_commas_of_locales_do_not_matter),
        cmocka_unit_test(test_document__the_examples_of_the_schema_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
