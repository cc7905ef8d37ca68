/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Types and values as text and JSON. */

#include "esdm-stat/esdm-stat.h"

#include <string.h>

/* ---- values as in CDL ----------------------------------------------------------------------- */

static void
append_quoted(GString *out, const char *text, uint64_t bytes)
{
    g_string_append_c(out, '"');
    for (uint64_t i = 0; i < bytes; i++) {
        unsigned char byte = (unsigned char) text[i];
        if (byte == '"' || byte == '\\')
            g_string_append_printf(out, "\\%c", byte);
        else if (byte == '\n')
            g_string_append(out, "\\n");
        else if (byte == '\t')
            g_string_append(out, "\\t");
        else if (byte < 0x20 || byte == 0x7f)
            g_string_append_printf(out, "\\x%02x", byte);
        else
            g_string_append_c(out, (char) byte);
    }
    g_string_append_c(out, '"');
}

#define ELEMENT(c_type) (((const c_type *) values)[index])

/* The shortest text that reads back to the same value. */
static void
append_double(GString *out, double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    for (int digits = 15; digits <= 17; digits++) {
        (void) g_snprintf(text, sizeof text, "%.*g", digits, value);
        if (g_ascii_strtod(text, NULL) == value)
            break;
    }
    g_string_append(out, text);
}

static void
append_float(GString *out, float value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    for (int digits = 6; digits <= 9; digits++) {
        (void) g_snprintf(text, sizeof text, "%.*g", digits, (double) value);
        if ((float) g_ascii_strtod(text, NULL) == value)
            break;
    }
    g_string_append_printf(out, "%sf", text);
}

static void
append_value(GString *out, esdm_type type, const void *values, uint64_t index)
{
    const char *text;
    switch (type) {
    case ESDM_TYPE_INT8:
        g_string_append_printf(out, "%db", ELEMENT(int8_t));
        break;
    case ESDM_TYPE_INT16:
        g_string_append_printf(out, "%ds", ELEMENT(int16_t));
        break;
    case ESDM_TYPE_INT32:
        g_string_append_printf(out, "%d", ELEMENT(int32_t));
        break;
    case ESDM_TYPE_FLOAT32:
        append_float(out, ELEMENT(float));
        break;
    case ESDM_TYPE_FLOAT64:
        append_double(out, ELEMENT(double));
        break;
    case ESDM_TYPE_UINT8:
        g_string_append_printf(out, "%uub", ELEMENT(uint8_t));
        break;
    case ESDM_TYPE_UINT16:
        g_string_append_printf(out, "%uus", ELEMENT(uint16_t));
        break;
    case ESDM_TYPE_UINT32:
        g_string_append_printf(out, "%uu", ELEMENT(uint32_t));
        break;
    case ESDM_TYPE_INT64:
        g_string_append_printf(out, "%" G_GINT64_FORMAT "ll", (gint64) ELEMENT(int64_t));
        break;
    case ESDM_TYPE_UINT64:
        g_string_append_printf(out, "%" G_GUINT64_FORMAT "ull", (guint64) ELEMENT(uint64_t));
        break;
    case ESDM_TYPE_STRING:
        text = ELEMENT(char *);
        if (text == NULL)
            g_string_append(out, "NIL");
        else
            append_quoted(out, text, strlen(text));
        break;
    case ESDM_TYPE_CHAR: /* within a compound or an array */
        append_quoted(out, &ELEMENT(char), 1);
        break;
    default:
        g_string_append(out, "?");
        break;
    }
}

const char *
stat_type_name(const esdm_container *container, esdm_type type)
{
    esdm_type_info info;
    return esdm_type_inquire(container, type, &info) ? info.name : "?";
}

/* The name of an enumeration's value; NULL when it has none. */
static const char *
enum_name(const esdm_container *container, esdm_type type, const esdm_type_info *info,
          const void *value)
{
    esdm_enum_member member;
    for (uint32_t i = 0; esdm_enum_member_at(container, type, i, &member); i++) {
        if (memcmp(member.value, value, info->bytes) == 0)
            return member.name;
    }
    return NULL;
}

static void append_any(GString *out, const esdm_container *container, esdm_type type,
                       const char *value);

/* "{1, 2}" */
static void
append_list(GString *out, const esdm_container *container, esdm_type type, uint64_t count,
            const char *values)
{
    size_t bytes = esdm_container_type_size(container, type);
    g_string_append_c(out, '{');
    for (uint64_t i = 0; i < count; i++) {
        g_string_append(out, i > 0 ? ", " : "");
        append_any(out, container, type, values + i * bytes);
    }
    g_string_append_c(out, '}');
}

static uint64_t
member_elements(const esdm_compound_member *member)
{
    uint64_t elements = 1;
    for (uint32_t i = 0; i < member->rank; i++)
        elements *= member->shape[i];
    return elements;
}

static void
append_compound(GString *out, const esdm_container *container, esdm_type type, const char *value)
{
    esdm_compound_member member;
    g_string_append_c(out, '{');
    for (uint32_t i = 0; esdm_compound_member_at(container, type, i, &member); i++) {
        g_string_append(out, i > 0 ? ", " : "");
        if (member.rank == 0)
            append_any(out, container, member.type, value + member.offset);
        else
            append_list(out, container, member.type, member_elements(&member),
                        value + member.offset);
    }
    g_string_append_c(out, '}');
}

static void
append_opaque(GString *out, const char *value, size_t bytes)
{
    g_string_append(out, "0X");
    for (size_t i = 0; i < bytes; i++)
        g_string_append_printf(out, "%02X", (unsigned char) value[i]);
}

static void
append_any(GString *out, const esdm_container *container, esdm_type type, const char *value)
{
    esdm_type_info info;
    esdm_vlen vlen;
    const char *name;
    (void) esdm_type_inquire(container, type, &info);
    switch (info.kind) {
    case ESDM_CLASS_COMPOUND:
        append_compound(out, container, type, value);
        break;
    case ESDM_CLASS_ENUM:
        name = enum_name(container, type, &info, value);
        if (name != NULL)
            g_string_append(out, name);
        else
            append_value(out, info.base, value, 0);
        break;
    case ESDM_CLASS_OPAQUE:
        append_opaque(out, value, info.bytes);
        break;
    case ESDM_CLASS_VLEN:
        memcpy(&vlen, value, sizeof vlen);
        append_list(out, container, info.base, vlen.count, vlen.values);
        break;
    default:
        append_value(out, type, value, 0);
        break;
    }
}

char *
stat_values_text(const esdm_container *container, esdm_type type, uint64_t count,
                 const void *values)
{
    GString *out = g_string_new(NULL);
    size_t bytes = esdm_container_type_size(container, type);
    if (type == ESDM_TYPE_CHAR) {
        append_quoted(out, values, count);
        return g_string_free(out, FALSE);
    }
    for (uint64_t i = 0; i < count; i++) {
        g_string_append(out, i > 0 ? ", " : "");
        append_any(out, container, type, (const char *) values + i * bytes);
    }
    return g_string_free(out, FALSE);
}

/* ---- types ---------------------------------------------------------------------------------- */

static const char *const kinds[] = {[ESDM_CLASS_ATOMIC] = "atomic",
                                    [ESDM_CLASS_COMPOUND] = "compound",
                                    [ESDM_CLASS_ENUM] = "enum",
                                    [ESDM_CLASS_OPAQUE] = "opaque",
                                    [ESDM_CLASS_VLEN] = "vlen"};

char *
stat_type_text(const esdm_container *container, esdm_type type)
{
    GString *out = g_string_new(NULL);
    esdm_type_info info;
    esdm_compound_member field;
    esdm_enum_member member;
    (void) esdm_type_inquire(container, type, &info);
    g_string_append_printf(out, "%s %s", kinds[info.kind], info.name);
    if (info.base != ESDM_TYPE_NONE)
        g_string_append_printf(out, " of %s", stat_type_name(container, info.base));
    if (info.kind == ESDM_CLASS_OPAQUE)
        g_string_append_printf(out, ", %zu bytes", info.bytes);
    for (uint32_t i = 0; esdm_compound_member_at(container, type, i, &field); i++) {
        g_string_append_printf(out, "%s%s %s", i > 0 ? ", " : ": ",
                               stat_type_name(container, field.type), field.name);
        for (uint32_t axis = 0; axis < field.rank; axis++)
            g_string_append_printf(out, "[%u]", field.shape[axis]);
    }
    for (uint32_t i = 0; esdm_enum_member_at(container, type, i, &member); i++) {
        g_string_append_printf(out, "%s%s = ", i > 0 ? ", " : ": ", member.name);
        append_value(out, info.base, member.value, 0);
    }
    return g_string_free(out, FALSE);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static json_t *
atomic_json(esdm_type type, const void *value)
{
    json_t *list = tool_json_values(type, 1, value);
    if (type == ESDM_TYPE_CHAR)
        return list;
    json_t *element = json_incref(json_array_get(list, 0));
    json_decref(list);
    return element;
}

static json_t *any_json(const esdm_container *container, esdm_type type, const char *value);

static json_t *
list_json(const esdm_container *container, esdm_type type, uint64_t count, const char *values)
{
    size_t bytes = esdm_container_type_size(container, type);
    json_t *list = json_array();
    for (uint64_t i = 0; i < count; i++)
        tool_json_append(list, any_json(container, type, values + i * bytes));
    return list;
}

static json_t *
compound_json(const esdm_container *container, esdm_type type, const char *value)
{
    esdm_compound_member m;
    json_t *object = json_object();
    for (uint32_t i = 0; esdm_compound_member_at(container, type, i, &m); i++) {
        const char *at = value + m.offset;
        tool_json_set(object, m.name,
                      m.rank == 0 ? any_json(container, m.type, at)
                                  : list_json(container, m.type, member_elements(&m), at));
    }
    return object;
}

/* Names of an enumeration's values; opaque bytes as in CDL. */
static json_t *
any_json(const esdm_container *container, esdm_type type, const char *value)
{
    esdm_type_info info;
    esdm_vlen vlen;
    (void) esdm_type_inquire(container, type, &info);
    if (info.kind == ESDM_CLASS_COMPOUND)
        return compound_json(container, type, value);
    if (info.kind == ESDM_CLASS_ENUM) {
        const char *name = enum_name(container, type, &info, value);
        return name != NULL ? tool_json_text(name) : atomic_json(info.base, value);
    }
    if (info.kind == ESDM_CLASS_OPAQUE) {
        g_autoptr(GString) text = g_string_new(NULL);
        append_opaque(text, value, info.bytes);
        return tool_json_text(text->str);
    }
    if (info.kind == ESDM_CLASS_VLEN) {
        memcpy(&vlen, value, sizeof vlen);
        return list_json(container, info.base, vlen.count, vlen.values);
    }
    return atomic_json(type, value);
}

json_t *
stat_values_json(const esdm_container *container, esdm_type type, uint64_t count,
                 const void *values)
{
    return esdm_type_size(type) > 0 ? tool_json_values(type, count, values)
                                    : list_json(container, type, count, values);
}

static json_t *
members_json(const esdm_container *container, esdm_type type, const esdm_type_info *info)
{
    json_t *list = json_array();
    esdm_compound_member field;
    esdm_enum_member member;
    for (uint32_t i = 0; esdm_compound_member_at(container, type, i, &field); i++) {
        json_t *object = json_object(), *shape = json_array();
        tool_json_set(object, "name", tool_json_text(field.name));
        tool_json_set(object, "type", tool_json_text(stat_type_name(container, field.type)));
        for (uint32_t axis = 0; axis < field.rank; axis++)
            tool_json_append(shape, tool_json_u64(field.shape[axis]));
        tool_json_set(object, "shape", shape);
        tool_json_append(list, object);
    }
    for (uint32_t i = 0; esdm_enum_member_at(container, type, i, &member); i++) {
        json_t *object = json_object();
        tool_json_set(object, "name", tool_json_text(member.name));
        tool_json_set(object, "value", atomic_json(info->base, member.value));
        tool_json_append(list, object);
    }
    return list;
}

json_t *
stat_types_json(const esdm_group *group)
{
    const esdm_container *container = esdm_group_container(group);
    json_t *list = json_array();
    for (size_t i = 0; i < esdm_group_type_count(group); i++) {
        esdm_type type = esdm_group_type_at(group, i);
        esdm_type_info info;
        json_t *object = json_object();
        (void) esdm_type_inquire(container, type, &info);
        tool_json_set(object, "name", tool_json_text(info.name));
        tool_json_set(object, "class", tool_json_text(kinds[info.kind]));
        if (info.base != ESDM_TYPE_NONE)
            tool_json_set(object, "base", tool_json_text(stat_type_name(container, info.base)));
        if (info.kind == ESDM_CLASS_OPAQUE)
            tool_json_set(object, "bytes", tool_json_u64(info.bytes));
        if (info.members > 0)
            tool_json_set(object, "members", members_json(container, type, &info));
        tool_json_append(list, object);
    }
    return list;
}
