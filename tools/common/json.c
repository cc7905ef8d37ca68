/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file JSON output of tools. */

#include "common/common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* GLib ends the process when memory runs out; for a tool the same is right with Jansson. */
static void
check(bool good)
{
    if (!good) {
        tool_error("out of memory for JSON");
        exit(TOOL_FAILED);
    }
}

void
tool_json_set(json_t *object, const char *key, json_t *value)
{
    check(value != NULL && json_object_set_new(object, key, value) == 0);
}

void
tool_json_append(json_t *array, json_t *value)
{
    check(value != NULL && json_array_append_new(array, value) == 0);
}

json_t *
tool_json_text(const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    json_t *value = json_string(valid);
    check(value != NULL);
    return value;
}

json_t *
tool_json_u64(uint64_t number)
{
    json_t *value;
    if (number <= INT64_MAX) {
        value = json_integer((json_int_t) number);
    } else {
        g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT, (guint64) number);
        value = json_string(text);
    }
    check(value != NULL);
    return value;
}

void
tool_json_print(json_t *root)
{
    check(root != NULL);
    if (json_dumpf(root, stdout, JSON_INDENT(2)) != 0)
        (void) fflush(stdout); /* tool_finish() reports it */
    (void) fputc('\n', stdout);
    json_decref(root);
}

void
tool_json_print_list(const char *key, json_t *list)
{
    if (!tool.json) {
        json_decref(list);
        return;
    }
    json_t *root = json_object();
    tool_json_set(root, key, list);
    tool_json_print(root);
}

/* JSON has no NaN and no infinity: they become texts, as in the container document. */
static json_t *
real_value(double number)
{
    if (isnan(number))
        return json_string("NaN");
    if (isinf(number))
        return json_string(number > 0 ? "Infinity" : "-Infinity");
    return json_real(number);
}

#define ELEMENT(c_type, index) (((const c_type *) values)[index])

static json_t *
element_value(esdm_type type, const void *values, uint64_t index)
{
    switch (type) {
    case ESDM_TYPE_INT8:
        return json_integer(ELEMENT(int8_t, index));
    case ESDM_TYPE_INT16:
        return json_integer(ELEMENT(int16_t, index));
    case ESDM_TYPE_INT32:
        return json_integer(ELEMENT(int32_t, index));
    case ESDM_TYPE_FLOAT32: {
        /* The shortest text that reads back to the same float. */
        char text[G_ASCII_DTOSTR_BUF_SIZE];
        (void) g_ascii_formatd(text, sizeof text, "%.9g", (double) ELEMENT(float, index));
        return real_value(isfinite(ELEMENT(float, index)) ? g_ascii_strtod(text, NULL)
                                                          : (double) ELEMENT(float, index));
    }
    case ESDM_TYPE_FLOAT64:
        return real_value(ELEMENT(double, index));
    case ESDM_TYPE_UINT8:
        return json_integer(ELEMENT(uint8_t, index));
    case ESDM_TYPE_UINT16:
        return json_integer(ELEMENT(uint16_t, index));
    case ESDM_TYPE_UINT32:
        return json_integer(ELEMENT(uint32_t, index));
    case ESDM_TYPE_INT64:
        return json_integer(ELEMENT(int64_t, index));
    case ESDM_TYPE_UINT64:
        return tool_json_u64(ELEMENT(uint64_t, index));
    case ESDM_TYPE_STRING:
        return ELEMENT(char *, index) != NULL ? tool_json_text(ELEMENT(char *, index))
                                              : json_null();
    default:
        return json_null();
    }
}

json_t *
tool_json_values(esdm_type type, uint64_t count, const void *values)
{
    if (type == ESDM_TYPE_CHAR) {
        g_autofree char *text = g_strndup(count > 0 ? values : "", count);
        return tool_json_text(text);
    }
    json_t *list = json_array();
    check(list != NULL);
    for (uint64_t i = 0; i < count; i++)
        tool_json_append(list, element_value(type, values, i));
    return list;
}
