/* SPDX-License-Identifier: LGPL-3.0-or-later */
/** @file User-defined types: definition, checks, inquiry, and the container document. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/container.h"
#include "model/usertype.h"

static int
set_up(void **state)
{
    *state = esdm__container_new("test/types.nc");
    return *state == NULL;
}

static int
tear_down(void **state)
{
    esdm__container_free(*state);
    return 0;
}

#define OK(call) assert_int_equal((call), ESDM_OK)

static void
refused(esdm_status st, const esdm_error *err, const char *words)
{
    assert_int_equal(st, ESDM_EINVAL);
    if (strstr(err->message, words) == NULL)
        print_error("'%s' does not say '%s'\n", err->message, words);
    assert_non_null(strstr(err->message, words));
}

/* struct { int8_t a; double b; int16_t c[2][3]; } */
typedef struct sample {
    int8_t a;
    double b;
    int16_t c[2][3];
} sample;

static esdm_type
define_sample(esdm_group *group, const char *name)
{
    static const uint32_t shape[] = {2, 3};
    esdm_container *container = esdm_group_container(group);
    esdm_type type = 0;
    OK(esdm_compound_create(group, name, sizeof(sample), &type, NULL));
    OK(esdm_compound_add(container, type, "a", offsetof(sample, a), ESDM_TYPE_INT8, 0, NULL, NULL));
    OK(esdm_compound_add(container, type, "b", offsetof(sample, b), ESDM_TYPE_FLOAT64, 0, NULL,
                         NULL));
    OK(esdm_compound_add(container, type, "c", offsetof(sample, c), ESDM_TYPE_INT16, 2, shape,
                         NULL));
    return type;
}

static esdm_type
define_enum(esdm_group *group, const char *name)
{
    static const uint8_t values[] = {0, 200};
    esdm_container *container = esdm_group_container(group);
    esdm_type type = 0;
    OK(esdm_enum_create(group, name, ESDM_TYPE_UINT8, &type, NULL));
    OK(esdm_enum_add(container, type, "clear", &values[0], NULL));
    OK(esdm_enum_add(container, type, "cloudy", &values[1], NULL));
    return type;
}

/* ---- definition ---------------------------------------------------------------------------- */

static void
test_usertype__numbers_follow_the_order_of_definition(void **state)
{
    esdm_container *container = *state;
    esdm_group *root = esdm_container_root(container);
    esdm_group *child;
    esdm_type opaque, vlen;
    container->structure_dirty = false;
    OK(esdm_group_create(root, "g", &child, NULL));
    container->structure_dirty = false;
    assert_int_equal(define_sample(child, "s"), 64);
    assert_true(container->structure_dirty);
    OK(esdm_opaque_create(root, "raw", 11, &opaque, NULL));
    OK(esdm_vlen_create(child, "rows", 64, &vlen, NULL));
    assert_int_equal(opaque, 65);
    assert_int_equal(vlen, 66);
    assert_int_equal(esdm_container_type_count(container), 3);
    assert_int_equal(esdm_group_type_count(child), 2);
    assert_int_equal(esdm_group_type_at(child, 0), 64);
    assert_int_equal(esdm_group_type_at(child, 1), 66);
    assert_int_equal(esdm_group_type_at(child, 2), ESDM_TYPE_NONE);
    assert_int_equal(esdm_group_type_find(child, "rows"), 66);
    assert_int_equal(esdm_group_type_find(root, "rows"), ESDM_TYPE_NONE);
    assert_int_equal(esdm_group_type_find(root, "g"), ESDM_TYPE_NONE);
}

static void
test_usertype__names_are_shared_with_datasets_and_groups(void **state)
{
    esdm_group *root = esdm_container_root(*state);
    esdm_dataset *dataset;
    esdm_group *group;
    esdm_type type;
    esdm_error err;
    define_enum(root, "t");
    assert_int_equal(esdm_opaque_create(root, "t", 1, &type, &err), ESDM_EEXIST);
    assert_string_equal(err.message, "group '/' already has a type named 't'");
    assert_int_equal(esdm_group_create(root, "t", &group, &err), ESDM_EEXIST);
    assert_int_equal(esdm_dataset_create(root, "t", ESDM_TYPE_INT8, 0, NULL, &dataset, &err),
                     ESDM_EEXIST);
    OK(esdm_dataset_create(root, "v", 64, 0, NULL, &dataset, NULL));
    assert_int_equal(esdm_opaque_create(root, "v", 1, &type, &err), ESDM_EEXIST);
    assert_int_equal(esdm_dataset_rename(dataset, "t", &err), ESDM_EEXIST);
    OK(esdm_dataset_rename(dataset, "w", NULL));
    assert_ptr_equal(esdm_group_dataset_find(root, "w"), dataset);
    assert_int_equal(esdm_group_type_find(root, "t"), 64);
}

static void
test_usertype__inquiry_tells_what_was_defined(void **state)
{
    esdm_container *container = *state;
    esdm_group *root = esdm_container_root(container);
    esdm_type type = define_sample(root, "sample");
    esdm_type flags = define_enum(root, "flags");
    esdm_type_info info;
    esdm_compound_member member;
    esdm_enum_member item;
    assert_true(esdm_type_inquire(container, type, &info));
    assert_string_equal(info.name, "sample");
    assert_ptr_equal(info.group, root);
    assert_int_equal(info.kind, ESDM_CLASS_COMPOUND);
    assert_int_equal(info.bytes, sizeof(sample));
    assert_int_equal(info.members, 3);
    assert_int_equal(info.base, ESDM_TYPE_NONE);
    assert_false(info.is_complete);
    assert_true(esdm_compound_member_at(container, type, 2, &member));
    assert_string_equal(member.name, "c");
    assert_int_equal(member.offset, offsetof(sample, c));
    assert_int_equal(member.type, ESDM_TYPE_INT16);
    assert_int_equal(member.rank, 2);
    assert_int_equal(member.shape[1], 3);
    assert_false(esdm_compound_member_at(container, type, 3, &member));
    assert_false(esdm_compound_member_at(container, flags, 0, &member));
    assert_true(esdm_enum_member_at(container, flags, 1, &item));
    assert_string_equal(item.name, "cloudy");
    assert_int_equal(*(const uint8_t *) item.value, 200);
    assert_false(esdm_enum_member_at(container, flags, 2, &item));
    assert_true(esdm_type_inquire(container, ESDM_TYPE_STRING, &info));
    assert_int_equal(info.kind, ESDM_CLASS_ATOMIC);
    assert_false(esdm_type_inquire(container, 66, &info));
    assert_false(esdm_type_inquire(container, 13, &info));
    assert_int_equal(esdm_container_type_size(container, type), sizeof(sample));
    assert_int_equal(esdm_container_type_size(container, 66), 0);
}

static void
test_usertype__wrong_arguments_are_refused_at_once(void **state)
{
    esdm_container *container = *state;
    esdm_group *root = esdm_container_root(container);
    esdm_type type = 0;
    esdm_error err = {0};
    const int32_t value = 1;
    refused(esdm_compound_create(root, "x", 0, &type, &err), &err, "its size is 0 bytes");
    refused(esdm_opaque_create(root, "x", SIZE_MAX, &type, &err), &err, "its size is");
    refused(esdm_opaque_create(root, "a/b", 1, &type, &err), &err, "contains '/'");
    refused(esdm_enum_create(root, "x", ESDM_TYPE_STRING, &type, &err), &err, "is no integer");
    assert_int_equal(esdm_container_type_count(container), 0);
    OK(esdm_compound_create(root, "x", 8, &type, NULL));
    refused(esdm_compound_add(container, type, "a", 0, 77, 0, NULL, &err), &err,
            "there is no type 77");
    refused(esdm_compound_add(container, type, "a", 0, ESDM_TYPE_INT8, 1, NULL, &err), &err,
            "wrong shape");
    refused(esdm_compound_add(container, 70, "a", 0, ESDM_TYPE_INT8, 0, NULL, &err), &err,
            "type 70 is no compound");
    refused(esdm_enum_add(container, type, "a", &value, &err), &err, "is no enumeration");
    container->writable = false;
    assert_int_equal(esdm_compound_add(container, type, "a", 0, ESDM_TYPE_INT8, 0, NULL, &err),
                     ESDM_EACCES);
    assert_int_equal(esdm_opaque_create(root, "y", 1, &type, &err), ESDM_EACCES);
}

/* ---- completion ---------------------------------------------------------------------------- */

static esdm_type
new_compound(esdm_container *container, const char *name, size_t bytes)
{
    esdm_type type = 0;
    OK(esdm_compound_create(esdm_container_root(container), name, bytes, &type, NULL));
    return type;
}

static void
add(esdm_container *container, esdm_type type, const char *name, size_t offset, esdm_type member,
    uint32_t elements)
{
    OK(esdm_compound_add(container, type, name, offset, member, elements > 0 ? 1 : 0, &elements,
                         NULL));
}

static void
test_usertype__contradictions_are_found_when_it_is_completed(void **state)
{
    esdm_container *c = *state;
    esdm_group *root = esdm_container_root(c);
    esdm_error err = {0};
    esdm_type type = new_compound(c, "empty", 4);
    refused(esdm_type_complete(c, type, &err), &err, "compound type 'empty' has no members");
    type = new_compound(c, "twins", 8);
    add(c, type, "a", 0, ESDM_TYPE_INT32, 0);
    add(c, type, "a", 4, ESDM_TYPE_INT32, 0);
    refused(esdm_type_complete(c, type, &err), &err, "has two members named 'a'");
    type = new_compound(c, "crowded", 8);
    add(c, type, "b", 3, ESDM_TYPE_INT32, 0);
    add(c, type, "a", 0, ESDM_TYPE_INT8, 4);
    refused(esdm_type_complete(c, type, &err), &err, "members 'a' and 'b' of type 'crowded'");
    type = new_compound(c, "short", 8);
    add(c, type, "a", 5, ESDM_TYPE_INT32, 0);
    refused(esdm_type_complete(c, type, &err), &err, "lies beyond the 8 bytes");
    type = new_compound(c, "huge", 8);
    add(c, type, "a", 0, ESDM_TYPE_INT32, UINT32_MAX);
    refused(esdm_type_complete(c, type, &err), &err, "is 0 or too large");
    esdm_type later = new_compound(c, "earlier", 8);
    type = define_enum(root, "later");
    add(c, later, "a", 0, type, 0);
    refused(esdm_type_complete(c, later, &err), &err, "was not defined before it");
    OK(esdm_vlen_create(root, "v", 999, &type, NULL));
    refused(esdm_type_complete(c, type, &err), &err, "made of type 999");
    OK(esdm_enum_create(root, "e", ESDM_TYPE_FLOAT32, &type, NULL));
    refused(esdm_type_complete(c, type, &err), &err, "is no integer");
    OK(esdm_enum_create(root, "f", ESDM_TYPE_INT16, &type, NULL));
    refused(esdm_type_complete(c, type, &err), &err, "has no members");
    OK(esdm_enum_add(c, type, "x", &(int16_t){-5}, NULL));
    OK(esdm_enum_add(c, type, "y", &(int16_t){-5}, NULL));
    refused(esdm_type_complete(c, type, &err), &err, "have the same value");
    refused(esdm_type_complete(c, 1000, &err), &err, "there is no type 1000");
}

static void
test_usertype__use_completes_it_and_what_it_is_made_of(void **state)
{
    esdm_container *c = *state;
    esdm_group *root = esdm_container_root(c);
    esdm_attributes *attributes = esdm_group_attributes(root);
    esdm_type inner = define_sample(root, "inner");
    esdm_type outer = new_compound(c, "outer", 2 * sizeof(sample));
    sample values[2] = {0};
    esdm_error err = {0};
    add(c, outer, "in", 0, inner, 2);
    OK(esdm_attribute_set(attributes, "a", outer, 1, values, NULL));
    refused(esdm_compound_add(c, outer, "x", 0, ESDM_TYPE_INT8, 0, NULL, &err), &err, "in use");
    refused(esdm_compound_add(c, inner, "x", 0, ESDM_TYPE_INT8, 0, NULL, &err), &err, "in use");
    esdm_type empty = new_compound(c, "empty", 4);
    refused(esdm_attribute_set(attributes, "b", empty, 1, values, &err), &err,
            "attribute 'b': compound type 'empty' has no members");
}

static void
test_usertype__nesting_is_bounded(void **state)
{
    esdm_container *c = *state;
    esdm_group *root = esdm_container_root(c);
    esdm_error err = {0};
    esdm_type type = ESDM_TYPE_INT8;
    char name[20];
    for (int i = 0; i < 100; i++) {
        (void) snprintf(name, sizeof name, "t%d", i);
        OK(esdm_vlen_create(root, name, type, &type, NULL));
    }
    refused(esdm_type_complete(c, type, &err), &err, "nested deeper than 64");
    OK(esdm_type_complete(c, 64 + 63, NULL));
    refused(esdm_type_complete(c, 64 + 64, &err), &err, "nested deeper than 64");
}

static void
test_usertype__fixed_size_means_no_strings_and_arrays(void **state)
{
    esdm_container *c = *state;
    esdm_group *root = esdm_container_root(c);
    esdm_type fixed = define_sample(root, "fixed");
    esdm_type text = new_compound(c, "text", 16);
    esdm_type nested = new_compound(c, "nested", 16);
    esdm_type vlen;
    bool is_fixed;
    add(c, text, "a", 8, ESDM_TYPE_STRING, 0);
    add(c, nested, "t", 0, text, 1);
    OK(esdm_vlen_create(root, "v", ESDM_TYPE_INT8, &vlen, NULL));
    OK(esdm_type_is_fixed_size(c, fixed, &is_fixed, NULL));
    assert_true(is_fixed);
    OK(esdm_type_is_fixed_size(c, ESDM_TYPE_INT8, &is_fixed, NULL));
    assert_true(is_fixed);
    const esdm_type variable[] = {ESDM_TYPE_STRING, text, nested, vlen};
    for (size_t i = 0; i < 4; i++) {
        OK(esdm_type_is_fixed_size(c, variable[i], &is_fixed, NULL));
        assert_false(is_fixed);
    }
}

static void
test_usertype__equality_looks_at_structure_alone(void **state)
{
    esdm_container *c = *state;
    esdm_container *other = esdm__container_new("other.nc");
    esdm_group *root = esdm_container_root(c);
    esdm_group *other_root = esdm_container_root(other);
    esdm_type sample_type = define_sample(root, "a");
    esdm_type flags = define_enum(root, "flags");
    esdm_type v1, v2, o1, o2;
    define_enum(other_root, "x");
    esdm_type same = define_sample(other_root, "b");
    assert_true(esdm_type_equal(c, sample_type, other, same));
    assert_false(esdm_type_equal(c, sample_type, other, 64));
    assert_true(esdm_type_equal(c, flags, other, 64));
    OK(esdm_vlen_create(root, "v", sample_type, &v1, NULL));
    OK(esdm_vlen_create(other_root, "w", same, &v2, NULL));
    assert_true(esdm_type_equal(c, v1, other, v2));
    OK(esdm_opaque_create(root, "o1", 5, &o1, NULL));
    OK(esdm_opaque_create(root, "o2", 6, &o2, NULL));
    assert_false(esdm_type_equal(c, o1, c, o2));
    assert_true(esdm_type_equal(c, ESDM_TYPE_INT8, other, ESDM_TYPE_INT8));
    assert_false(esdm_type_equal(c, ESDM_TYPE_INT8, other, ESDM_TYPE_UINT8));
    assert_false(esdm_type_equal(c, ESDM_TYPE_INT8, other, same));
    assert_false(esdm_type_equal(c, 999, other, 999));
    esdm__container_free(other);
}

/* ---- the document -------------------------------------------------------------------------- */

static esdm_container *
round_trip(const esdm_container *container)
{
    char *text, *again;
    size_t bytes, again_bytes;
    esdm_error err = {0};
    OK(esdm__document_write(container, &text, &bytes, NULL));
    esdm_container *copy = esdm__container_new("copy.nc");
    (void) esdm__document_read(text, bytes, copy, &err);
    assert_string_equal(err.message, "");
    OK(esdm__document_write(copy, &again, &again_bytes, NULL));
    assert_string_equal(again, text);
    free(text);
    free(again);
    return copy;
}

static void
test_usertype__a_document_of_incomplete_types_is_refused(void **state)
{
    esdm_container *c = *state;
    char *text;
    size_t bytes;
    define_enum(esdm_container_root(c), "e");
    esdm_type empty = new_compound(c, "empty", 4);
    esdm_error err = {0};
    refused(esdm__document_write(c, &text, &bytes, &err), &err, "has no members");
    add(c, empty, "a", 0, ESDM_TYPE_INT32, 0);
    OK(esdm__document_write(c, &text, &bytes, NULL));
    free(text);
}

/* A packed compound with a string and an array, nested in another one in a group. */
#pragma pack(push, 1)
typedef struct packed {
    uint8_t a;
    char *text;
    esdm_vlen rows;
} packed;
#pragma pack(pop)
typedef struct natural {
    uint8_t a;
    char *text;
    esdm_vlen rows;
} natural;

static esdm_type
define_packed(esdm_container *c)
{
    esdm_group *root = esdm_container_root(c);
    esdm_type rows;
    OK(esdm_vlen_create(root, "rows", define_sample(root, "sample"), &rows, NULL));
    esdm_type type = new_compound(c, "packed", sizeof(packed));
    add(c, type, "a", offsetof(packed, a), ESDM_TYPE_UINT8, 0);
    add(c, type, "text", offsetof(packed, text), ESDM_TYPE_STRING, 0);
    add(c, type, "rows", offsetof(packed, rows), rows, 0);
    return type;
}

static void
test_usertype__types_and_values_survive_in_the_document(void **state)
{
    esdm_container *c = *state;
    esdm_group *root = esdm_container_root(c);
    esdm_type type = define_packed(c);
    sample two[2] = {{.a = 1, .b = 1.5, .c = {{1, 2, 3}, {4, 5, 6}}}, {.a = -1, .b = -0.0}};
    packed values[2] = {{7, (char *) "text", {2, two}}, {8, NULL, {0, NULL}}};
    esdm_dataset *dataset;
    esdm_group *group;
    OK(esdm_group_create(root, "g", &group, NULL));
    esdm_type flags = define_enum(group, "flags");
    OK(esdm_attribute_set(esdm_group_attributes(group), "p", type, 2, values, NULL));
    OK(esdm_attribute_set(esdm_group_attributes(group), "none", type, 0, NULL, NULL));
    OK(esdm_attribute_set(esdm_group_attributes(group), "f", flags, 2, "\0\310", NULL));
    OK(esdm_dataset_create(root, "v", type, 0, NULL, &dataset, NULL));
    OK(esdm_dataset_set_fill(dataset, &values[0], NULL));
    assert_int_equal(flags, 67);

    esdm_container *copy = round_trip(c);
    esdm_attribute got;
    assert_true(
        esdm_attribute_find(esdm_group_attributes(esdm_container_group(copy, 1)), "p", &got, NULL));
    assert_int_equal(got.type, type);
    assert_int_equal(got.count, 2);
    /* A container that is opened has the layout of C. */
    assert_int_equal(esdm_container_type_size(copy, type), sizeof(natural));
    const natural *read = got.values;
    assert_int_equal(read[0].a, 7);
    assert_string_equal(read[0].text, "text");
    assert_int_equal(read[0].rows.count, 2);
    assert_true(esdm_values_equal(copy, 64, 2, read[0].rows.values, two));
    assert_int_equal(read[1].a, 8);
    assert_null(read[1].text);
    assert_null(read[1].rows.values);
    bool is_default = true;
    const natural *fill =
        esdm_dataset_fill(esdm_group_dataset_find(esdm_container_root(copy), "v"), &is_default);
    assert_false(is_default);
    assert_string_equal(fill->text, "text");
    esdm__container_free(copy);
}

static void
test_usertype__same_values_change_nothing(void **state)
{
    esdm_container *c = *state;
    esdm_attributes *attributes = esdm_group_attributes(esdm_container_root(c));
    esdm_type type = define_packed(c);
    packed value = {7, (char *) "text", {0, NULL}};
    OK(esdm_attribute_set(attributes, "p", type, 1, &value, NULL));
    c->structure_dirty = false;
    OK(esdm_attribute_set(attributes, "p", type, 1, &value, NULL));
    assert_false(c->structure_dirty);
    value.text = NULL;
    OK(esdm_attribute_set(attributes, "p", type, 1, &value, NULL));
    assert_true(c->structure_dirty);
    OK(esdm_attribute_set(attributes, "p", ESDM_TYPE_INT8, 1, "x", NULL));
    OK(esdm_attribute_set(attributes, "p", type, 1, &value, NULL));
    OK(esdm_attribute_remove(attributes, "p", NULL));
}

static void
test_usertype__default_fill_values(void **state)
{
    esdm_container *c = *state;
    esdm_group *root = esdm_container_root(c);
    static const sample zero;
    esdm_dataset *v, *e;
    bool is_default = false;
    OK(esdm_dataset_create(root, "v", define_sample(root, "s"), 0, NULL, &v, NULL));
    OK(esdm_dataset_create(root, "e", define_enum(root, "flags"), 0, NULL, &e, NULL));
    assert_memory_equal(esdm_dataset_fill(v, &is_default), &zero, sizeof zero);
    assert_true(is_default);
    assert_int_equal(*(const uint8_t *) esdm_dataset_fill(e, NULL), 255);
    OK(esdm_dataset_set_fill(e, &(uint8_t){200}, NULL));
    assert_int_equal(*(const uint8_t *) esdm_dataset_fill(e, &is_default), 200);
    assert_false(is_default);
}

#define TYPES(types, rest)                                                                         \
    "{\"format\":2,\"next_dataset\":9,\"groups\":[{\"name\":\"\"}],\"types\":[" types              \
    "],\"dimensions\":[],\"datasets\":[" rest "]}"
#define ENUM  "{\"name\":\"e\",\"class\":\"enum\",\"base\":\"int8\",\"members\":[[\"a\",1]]}"
#define TEXTS "{\"name\":\"s\",\"class\":\"vlen\",\"base\":\"string\"}"
#define ATT(v)                                                                                     \
    "{\"name\":\"v\",\"id\":1,\"type\":\"int8\",\"dimensions\":[],\"attributes\":[" v "]}"
#define FILL(v) "{\"name\":\"v\",\"id\":1,\"type\":64,\"dimensions\":[],\"fill\":" v "}"

static const struct {
    const char *text;
    const char *words;
} hostile[] = {
    {"{\"format\":1,\"next_dataset\":9,\"groups\":[{\"name\":\"\"}],\"types\":[],\"dimensions\":[],"
     "\"datasets\":[]}",
     "types: format 1 has no types"},
    {TYPES("{}", ""), "types[0]: member 'name' is missing"},
    {TYPES("{\"name\":\"x\",\"class\":\"union\"}", ""), "types[0].class: expected compound"},
    {TYPES("{\"name\":\"x\",\"class\":\"vlen\"}", ""), "wrong members for a type of class vlen"},
    {TYPES("{\"name\":\"x\",\"class\":\"opaque\",\"bytes\":0}", ""), "its size is 0 bytes"},
    {TYPES("{\"name\":\"x\",\"class\":\"opaque\",\"bytes\":2000000000}", ""), "types[0].bytes"},
    {TYPES("{\"name\":\"x\",\"class\":\"vlen\",\"base\":64}", ""),
     "there is no type 64"}, /* itself */
    {TYPES("{\"name\":\"x\",\"class\":\"vlen\",\"base\":\"x\"}", ""), "unknown type 'x'"},
    {TYPES("{\"name\":\"x\",\"class\":\"enum\",\"base\":\"char\",\"members\":[]}", ""),
     "types[0].base: expected an integer type"},
    {TYPES("{\"name\":\"x\",\"class\":\"enum\",\"base\":\"int8\",\"members\":[]}", ""),
     "types[0]: enumeration 'x' has no members"},
    {TYPES("{\"name\":\"x\",\"class\":\"enum\",\"base\":\"int8\",\"members\":[[\"a\",300]]}", ""),
     "types[0].members[0]: value 0 is not of type int8"},
    {TYPES("{\"name\":\"x\",\"class\":\"compound\",\"members\":[]}", ""), "has no members"},
    {TYPES("{\"name\":\"x\",\"class\":\"compound\",\"members\":[[\"a\",\"int8\",0]]}", ""),
     "is 0 or too large"},
    {TYPES("{\"name\":\"x\",\"class\":\"compound\",\"members\":[[\"a\",\"int8\",4294967295]]}", ""),
     "has more than"},
    {TYPES("{\"name\":\"x\",\"class\":\"compound\",\"members\":[[\"a\",64]]}", ""),
     "made of type 64"},
    {TYPES(ENUM "," ENUM, ""), "already has a type named 'e'"},
    {TYPES(ENUM, "{\"name\":\"v\",\"id\":1,\"type\":65,\"dimensions\":[]}"), "there is no type 65"},
    {TYPES(ENUM, ATT("[\"a\",64,1]")), "expected the number of values and a text"},
    {TYPES(ENUM, ATT("[\"a\",64,0,\"\"]")), "expected at least one value"},
    {TYPES(ENUM, ATT("[\"a\",64,2,\"x\"]")), "2 values cannot lie in 1 stored bytes"},
    {TYPES(ENUM, ATT("[\"a\",64,\"18446744073709551615\",\"x\"]")), "cannot lie in 1"},
    {TYPES(ENUM, ATT("[\"a\",64,1,\"xy\"]")), "there are bytes behind the values"},
    {TYPES(TEXTS, ATT("[\"a\",64,1,{\"base64\":\"/w==\"}]")), "end in the middle"},
    {TYPES(TEXTS, ATT("[\"a\",64,1,{\"base64\":\"AgU=\"}]")), "end in the middle"},
    {TYPES(TEXTS, ATT("[\"a\",64,1,{\"base64\":\"AQIA\"}]")), "contains NUL"},
    {TYPES(TEXTS, FILL("{\"base64\":\"AgJB\"}")), "datasets[0]: stored values end"},
};

static void
test_usertype__hostile_documents_are_refused(void **state)
{
    (void) state;
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        esdm_container *container = esdm__container_new("x.nc");
        esdm_error err = {0};
        esdm_status st =
            esdm__document_read(hostile[i].text, strlen(hostile[i].text), container, &err);
        if (st != ESDM_ECORRUPT || strstr(err.message, hostile[i].words) == NULL)
            print_error("%s\n  gives %d '%s', not '%s'\n", hostile[i].text, (int) st, err.message,
                        hostile[i].words);
        assert_int_equal(st, ESDM_ECORRUPT);
        assert_non_null(strstr(err.message, hostile[i].words));
        esdm__container_free(container);
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_usertype__numbers_follow_the_order_of_definition),
        TEST(test_usertype__names_are_shared_with_datasets_and_groups),
        TEST(test_usertype__inquiry_tells_what_was_defined),
        TEST(test_usertype__wrong_arguments_are_refused_at_once),
        TEST(test_usertype__contradictions_are_found_when_it_is_completed),
        TEST(test_usertype__use_completes_it_and_what_it_is_made_of),
        TEST(test_usertype__nesting_is_bounded),
        TEST(test_usertype__fixed_size_means_no_strings_and_arrays),
        TEST(test_usertype__equality_looks_at_structure_alone),
        TEST(test_usertype__a_document_of_incomplete_types_is_refused),
        TEST(test_usertype__types_and_values_survive_in_the_document),
        TEST(test_usertype__same_values_change_nothing),
        TEST(test_usertype__default_fill_values),
        TEST(test_usertype__hostile_documents_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
