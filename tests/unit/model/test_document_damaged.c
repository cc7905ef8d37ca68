/* SPDX-License-Identifier: LGPL-3.0-or-later */
/** @file The container document: hostile texts, damage, newer formats. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/container.h"
#include "random.h"

#define HEAD   "{\"format\":1,\"next_dataset\":9,"
#define ROOT   "\"groups\":[{\"name\":\"\"}],"
#define NODIMS "\"dimensions\":[],"
#define NODATA "\"datasets\":[]}"
#define T      "\"dimensions\":[{\"name\":\"t\",\"length\":3}],"

/* Attributes of the root; one dataset. */
#define ATTRIBUTE(text) HEAD "\"groups\":[{\"name\":\"\",\"attributes\":[" text "]}]," NODIMS NODATA
#define DATASET(text)   HEAD ROOT T "\"datasets\":[" text "]}"

static const struct {
    const char *text;
    const char *message;
} hostile[] = {
    /* syntax */
    {"", "container document: byte 0: expected a value"},
    {"{", "byte 1: expected a string"},
    {"{\"a\"", "byte 4: expected ':'"},
    {"{\"a\":1", "expected ',' or a closing bracket"},
    {"{\"a\":1]", "expected ',' or a closing bracket"},
    {"{\"a\":1,}", "expected a string"},
    {"[1,]", "expected a value"},
    {"[1 2]", "expected ',' or a closing bracket"},
    {"{} x", "byte 3: text behind the document"},
    {"[01]", "expected ','"},
    {"[-]", "expected a digit"},
    {"[1.]", "expected a digit behind the point"},
    {"[1e]", "expected a digit in the exponent"},
    {"[nul]", "expected a value"},
    {"[\"a", "the text ends within a string"},
    {"[\"\n\"]", "control character in a string"},
    {"[\"\\x\"]", "invalid escape"},
    {"[\"\\u12\"]", "invalid escape"},
    {"[\"\\ud800\"]", "invalid escape"},
    {"[\"\\udc00\"]", "invalid escape"},
    {"[\"\\ud800\\u0041\"]", "invalid escape"},
    {"[\"\xFF\"]", "not valid UTF-8"},
    {"[[[[[[[[[[[[", "nested too deeply"},
    /* document */
    {"[]", "top level: expected an object, found an array"},
    {"7", "top level: expected an object, found a number"},
    {"{}", "top level: member 'format' is missing"},
    {"{\"format\":0}", "format: unknown format 0"},
    {"{\"format\":\"1\"}", "format: expected a whole number"},
    {"{\"format\":-1}", "format: expected a whole number"},
    {"{\"format\":1}", "top level: member 'next_dataset' is missing"},
    {"{\"format\":5,\"next_dataset\":9," ROOT NODIMS NODATA, "member 'checksum' is missing"},
    {"{\"format\":5,\"next_dataset\":9," ROOT NODIMS "\"checksum\":\"0123456789abcdef\"," NODATA,
     "its checksum is wrong: the document is damaged"},
    {"{\"format\":1,\"format\":1}", "top level: member 'format' is there twice"},
    {"{\"format\":1,\"colour\":1}", "top level: unknown member 'colour'"},
    {"{\"format\":1,\"next_dataset\":0," ROOT NODIMS NODATA, "next_dataset must not be 0"},
    {"{\"format\":1,\"next_dataset\":4294967296," ROOT NODIMS NODATA,
     "next_dataset: expected a whole number from 0 to 4294967295"},
    {HEAD "\"hints\":{\"a\":1}," ROOT NODIMS NODATA, "hints: expected a string, found a number"},
    {HEAD "\"hints\":{\"a\":\"1\",\"a\":\"2\"}," ROOT NODIMS NODATA, "hint 'a' is there twice"},
    {HEAD "\"hints\":{\"\":\"1\"}," ROOT NODIMS NODATA, "must not be empty"},
    {HEAD "\"hints\":{\"a\":\"\\u0000\"}," ROOT NODIMS NODATA, "must not contain NUL"},
    /* groups */
    {HEAD "\"groups\":[]," NODIMS NODATA, "groups: the root group is missing"},
    {HEAD "\"groups\":{}," NODIMS NODATA, "groups: expected an array, found an object"},
    {HEAD "\"groups\":[{\"name\":\"r\"}]," NODIMS NODATA, "groups[0]: the root group has no name"},
    {HEAD "\"groups\":[{\"name\":\"\"},{\"name\":\"\"}]," NODIMS NODATA, "must not be empty"},
    {HEAD "\"groups\":[{\"name\":\"\"},{\"name\":\"a\",\"group\":1}]," NODIMS NODATA,
     "groups[1].group: there is no group 1 before it"},
    {HEAD "\"groups\":[{\"name\":\"\"},{\"name\":\"a\"},{\"name\":\"a\"}]," NODIMS NODATA,
     "groups[2]: group '/' already has a group named 'a'"},
    {HEAD "\"groups\":[{\"name\":\"\"},{\"name\":\"a/b\"}]," NODIMS NODATA, "contains '/'"},
    {HEAD "\"groups\":[{\"name\":\"\"},{\"name\":\"a\\u0000\"}]," NODIMS NODATA,
     "groups[1].name: a text of this kind must not contain NUL"},
    /* dimensions */
    {HEAD ROOT "\"dimensions\":[{\"name\":\"t\"}]," NODATA,
     "dimensions[0]: expected either 'length' or 'unlimited'"},
    {HEAD ROOT "\"dimensions\":[{\"name\":\"t\",\"length\":1,\"unlimited\":true}]," NODATA,
     "expected either 'length' or 'unlimited'"},
    {HEAD ROOT "\"dimensions\":[{\"name\":\"t\",\"unlimited\":false}]," NODATA,
     "dimensions[0].unlimited: expected true, found false"},
    {HEAD ROOT "\"dimensions\":[{\"name\":\"t\",\"length\":-1}]," NODATA,
     "dimensions[0].length: expected a whole number"},
    {HEAD ROOT "\"dimensions\":[{\"name\":\"t\",\"length\":1.0}]," NODATA,
     "expected a whole number"},
    {HEAD ROOT "\"dimensions\":[{\"name\":\"t\",\"length\":\"18446744073709551615\"}]," NODATA,
     "expected a whole number from 0 to 18446744073709551614"},
    {HEAD ROOT "\"dimensions\":[{\"name\":\"t\",\"length\":99999999999999999999}]," NODATA,
     "expected a whole number"},
    {HEAD ROOT "\"dimensions\":[{\"name\":\"t\",\"group\":\"0\",\"length\":1}]," NODATA,
     "dimensions[0].group: expected a whole number"},
    /* datasets */
    {DATASET("{}"), "datasets[0]: member 'name' is missing"},
    {DATASET("{\"name\":\"v\",\"id\":0,\"type\":\"int8\",\"dimensions\":[]}"),
     "datasets[0].id: 0 is not between 0 and next_dataset 9"},
    {DATASET("{\"name\":\"v\",\"id\":9,\"type\":\"int8\",\"dimensions\":[]}"),
     "datasets[0].id: 9 is not between 0 and next_dataset 9"},
    {DATASET("{\"name\":\"v\",\"id\":3,\"type\":\"int8\",\"dimensions\":[]},"
             "{\"name\":\"w\",\"id\":3,\"type\":\"int8\",\"dimensions\":[]}"),
     "datasets[1].id: 3 is not between 3 and next_dataset 9"},
    {DATASET("{\"name\":\"v\",\"id\":1,\"type\":\"int128\",\"dimensions\":[]}"),
     "datasets[0].type: unknown type 'int128'"},
    {DATASET("{\"name\":\"v\",\"id\":1,\"type\":3,\"dimensions\":[]}"),
     "datasets[0].type: there is no type 3 before it"},
    {DATASET("{\"name\":\"v\",\"id\":1,\"type\":\"int8\",\"dimensions\":[0,1]}"),
     "datasets[0].dimensions[1]: there is no dimension 1"},
    {DATASET("{\"name\":\"v\",\"id\":1,\"type\":\"int8\",\"dimensions\":[0,0,0,0,0,0,0,0,0,0,0,0,0,"
             "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}"),
     "datasets[0].dimensions: rank 33 exceeds 32"},
    {DATASET("{\"name\":\"v\",\"id\":1,\"type\":\"int8\",\"dimensions\":[0],\"chunk\":[]}"),
     "datasets[0].chunk: expected 1 sizes"},
    {DATASET("{\"name\":\"v\",\"id\":1,\"type\":\"int8\",\"dimensions\":[0],\"chunk\":[0]}"),
     "datasets[0].chunk[0]: a chunk size must not be 0"},
    {DATASET("{\"name\":\"v\",\"id\":1,\"type\":\"int8\",\"dimensions\":[],\"fill\":128}"),
     "datasets[0].fill: value 0 is not of type int8"},
    {DATASET("{\"name\":\"v\",\"id\":1,\"type\":\"char\",\"dimensions\":[],\"fill\":\"ab\"}"),
     "datasets[0].fill: expected one value of type char"},
    {DATASET("{\"name\":\"v\",\"id\":1,\"type\":\"string\",\"dimensions\":[],\"fill\":null}"),
     "datasets[0].fill: NULL needs format 3"},
    {DATASET("{\"name\":\"v\",\"id\":1,\"type\":\"int8\",\"dimensions\":[],\"codec\":7}"),
     "datasets[0].codec: expected a string, found a number"},
    {HEAD "\"groups\":[{\"name\":\"\"},{\"name\":\"a\"}],"
          "\"dimensions\":[{\"name\":\"t\",\"group\":1,\"length\":3}],"
          "\"datasets\":[{\"name\":\"v\",\"id\":1,\"type\":\"int8\",\"dimensions\":[0]}]}",
     "datasets[0].dimensions: dimension 0 (t) is not of this group or of one above it, which needs "
     "format 3"},
    /* attributes */
    {ATTRIBUTE("7"), "groups[0].attributes[0]: expected an array, found a number"},
    {ATTRIBUTE("[\"a\"]"), "groups[0].attributes[0]: expected a name and a type"},
    {ATTRIBUTE("[1,\"int8\"]"), "groups[0].attributes[0]: expected a string, found a number"},
    {ATTRIBUTE("[\"a\",\"int8\",1],[\"a\",\"int8\",1]"),
     "groups[0].attributes[1]: there is already an attribute named 'a'"},
    {ATTRIBUTE("[\"a\",\"none\"]"), "unknown type 'none'"},
    {ATTRIBUTE("[\"a\",\"char\"]"), "expected one text, found 0 values"},
    {ATTRIBUTE("[\"a\",\"char\",\"x\",\"y\"]"), "expected one text, found 2 values"},
    {ATTRIBUTE("[\"a\",\"char\",null]"), "expected a string, found null"},
    {ATTRIBUTE("[\"a\",\"char\",{\"base63\":\"\"}]"), "expected a text or {\"base64\""},
    {ATTRIBUTE("[\"a\",\"char\",{}]"), "expected a text or {\"base64\""},
    {ATTRIBUTE("[\"a\",\"char\",{\"base64\":\"abc\"}]"), "invalid base64"},
    {ATTRIBUTE("[\"a\",\"char\",{\"base64\":\"ab=c\"}]"), "invalid base64"},
    {ATTRIBUTE("[\"a\",\"char\",{\"base64\":\"/x==\"}]"), "invalid base64"},
    {ATTRIBUTE("[\"a\",\"char\",{\"base64\":\"====\"}]"), "invalid base64"},
    {ATTRIBUTE("[\"a\",\"string\",1]"), "expected a string, found a number"},
    {ATTRIBUTE("[\"a\",\"string\",\"\\u0000\"]"), "must not contain NUL"},
    {ATTRIBUTE("[\"a\",\"string\",{\"base64\":\"AA==\"}]"), "must not contain NUL"},
    {ATTRIBUTE("[\"a\",\"uint8\",-1]"), "value 0 is not of type uint8"},
    {ATTRIBUTE("[\"a\",\"uint8\",1,256]"), "value 1 is not of type uint8"},
    {ATTRIBUTE("[\"a\",\"int16\",1e2]"), "value 0 is not of type int16"},
    {ATTRIBUTE("[\"a\",\"int32\",\"1\"]"), "value 0 is not of type int32"},
    {ATTRIBUTE("[\"a\",\"int64\",9223372036854775808]"), "value 0 is not of type int64"},
    {ATTRIBUTE("[\"a\",\"uint64\",\"18446744073709551616\"]"), "value 0 is not of type uint64"},
    {ATTRIBUTE("[\"a\",\"uint64\",\"\"]"), "value 0 is not of type uint64"},
    {ATTRIBUTE("[\"a\",\"float32\",1e39]"), "value 0 is not of type float32"},
    {ATTRIBUTE("[\"a\",\"float64\",1e999]"), "value 0 is not of type float64"},
    {ATTRIBUTE("[\"a\",\"float64\",\"0x7ff\"]"), "value 0 is not of type float64"},
    {ATTRIBUTE("[\"a\",\"float32\",\"0x7FC00000\"]"), "value 0 is not of type float32"},
    {ATTRIBUTE("[\"a\",\"float32\",\"NaN\"]"), "value 0 is not of type float32"},
    {ATTRIBUTE("[\"a\",\"float32\",true]"), "value 0 is not of type float32"},
    {ATTRIBUTE("[\"a\",\"float32\",[1]]"), "value 0 is not of type float32"},
};

static void
test_document__hostile_texts_are_refused_with_their_path(void **state)
{
    (void) state;
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        esdm_container *container = esdm__container_new("a.nc");
        esdm_error err = {.message = ""};
        size_t bytes = strlen(hostile[i].text);
        char *text = malloc(bytes + 1); /* exact, so that a read past the end is seen */
        assert_non_null(text);
        memcpy(text, hostile[i].text, bytes);
        text = realloc(text, bytes > 0 ? bytes : 1);
        esdm_status st = esdm__document_read(text, bytes, container, &err);
        if (st != ESDM_ECORRUPT || strstr(err.message, hostile[i].message) == NULL)
            fail_msg("%s\ngives status %d: %s\nwanted: %s", hostile[i].text, (int) st, err.message,
                     hostile[i].message);
        assert_non_null(strstr(err.message, "container document: "));
        esdm__container_free(container);
        free(text);
    }
}

static void
test_document__newer_formats_are_not_supported(void **state)
{
    static const char text[] = "{\"new\":[],\"format\":6}";
    esdm_container *container = esdm__container_new("a.nc");
    esdm_error err;
    (void) state;
    assert_int_equal(esdm__document_read(text, sizeof text - 1, container, &err), ESDM_ENOTSUP);
    assert_string_equal(err.message, "container document: format 6 is newer than 5, which this "
                                     "version of ESDM reads; use a newer one");
    esdm__container_free(container);
}

static void
set(esdm_container *container, const char *name, esdm_type type, uint64_t count, const void *values)
{
    assert_int_equal(esdm_attribute_set(esdm_group_attributes(esdm_container_root(container)), name,
                                        type, count, values, NULL),
                     ESDM_OK);
}

/* Every prefix and every single changed byte of a real document ends in a clear status. */
static void
test_document__damage_never_crashes(void **state)
{
    static const char *const strings[] = {"a", NULL, "caf\xE9"};
    static const double numbers[] = {1.5, NAN, 1e300};
    esdm_container *container = esdm__container_new("a.nc");
    esdm_dimension *dimension;
    esdm_dataset *dataset;
    random_source source = {8};
    char *text;
    size_t bytes;
    (void) state;
    set(container, "s", ESDM_TYPE_STRING, 3, strings);
    set(container, "n", ESDM_TYPE_FLOAT64, 3, numbers);
    set(container, "t", ESDM_TYPE_CHAR, 6, "\"x\\y\"z");
    esdm_group *root = esdm_container_root(container);
    assert_int_equal(esdm_dimension_create(root, "d", 5, &dimension, NULL), ESDM_OK);
    assert_int_equal(esdm_dataset_create(root, "v", ESDM_TYPE_INT32, 1, &dimension, &dataset, NULL),
                     ESDM_OK);
    assert_int_equal(esdm__document_write(container, &text, &bytes, NULL), ESDM_OK);
    esdm__container_free(container);

    for (size_t i = 0; i < bytes; i++) {
        char *damaged = malloc(bytes);
        assert_non_null(damaged);
        memcpy(damaged, text, bytes);
        container = esdm__container_new("a.nc");
        assert_int_equal(esdm__document_read(damaged, i, container, NULL), ESDM_ECORRUPT);
        esdm__container_free(container);
        for (int k = 0; k < 20; k++) {
            damaged[i] = (char) random_next(&source);
            container = esdm__container_new("a.nc");
            esdm_status st = esdm__document_read(damaged, bytes, container, NULL);
            /* The format may have become a newer one. */
            assert_true(st == ESDM_ECORRUPT || st == ESDM_ENOTSUP || damaged[i] == text[i]);
            esdm__container_free(container);
        }
        free(damaged);
    }
    free(text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_document__hostile_texts_are_refused_with_their_path),
        cmocka_unit_test(test_document__newer_formats_are_not_supported),
        cmocka_unit_test(test_document__damage_never_crashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
