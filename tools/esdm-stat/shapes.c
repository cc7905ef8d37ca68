/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What a container has in a second shape. */

#include "esdm/shapes.h"
#include "esdm-stat.h"

typedef struct text_of {
    GString *text;
    uint64_t newest; /* snapshot that is shown */
} text_of;

static bool
add_text(const esdm_shape_info *info, void *user)
{
    text_of *t = user;
    g_autofree char *shape = stat_shape_text(info->chunk, info->rank);
    g_autofree char *path = tool_printable(info->variable);
    g_string_append_printf(t->text, "  %s: chunks %s, ", path, shape);
    if (info->snapshot == 0)
        g_string_append(t->text, "not whole yet: esdm-compact goes on\n");
    else
        g_string_append_printf(
            t->text, "up to snapshot %" G_GUINT64_FORMAT "%s\n", (guint64) info->snapshot,
            info->snapshot < t->newest ? ": esdm-compact adds what is newer" : "");
    return true;
}

esdm_status
stat_shapes_text(const esdm_container *container, char **ret_text, esdm_error *err)
{
    uint64_t bytes = 0;
    text_of t = {g_string_new(NULL), esdm_container_snapshot(container)};
    esdm_status status = esdm_shapes_visit(container, add_text, &t, &bytes, err);
    if (status == ESDM_OK && t.text->len > 0) {
        g_autofree char *stored = tool_bytes(bytes);
        g_autofree char *head = g_strdup_printf("second shape, stored %s:\n", stored);
        g_string_prepend(t.text, head);
    }
    *ret_text = g_string_free(t.text, status != ESDM_OK);
    return status;
}

static bool
add_json(const esdm_shape_info *info, void *user)
{
    json_t *one = json_object();
    json_t *chunk = json_array();
    for (uint32_t d = 0; d < info->rank; d++)
        tool_json_append(chunk, tool_json_u64(info->chunk[d]));
    tool_json_set(one, "variable", tool_json_text(info->variable));
    tool_json_set(one, "chunk", chunk);
    tool_json_set(one, "snapshot", tool_json_u64(info->snapshot));
    tool_json_append(user, one);
    return true;
}

esdm_status
stat_shapes_json(const esdm_container *container, json_t *object, esdm_error *err)
{
    uint64_t bytes = 0;
    json_t *list = json_array();
    esdm_status status = esdm_shapes_visit(container, add_json, list, &bytes, err);
    if (status == ESDM_OK && json_array_size(list) > 0) {
        json_t *second = json_object();
        tool_json_set(second, "stored_bytes", tool_json_u64(bytes));
        tool_json_set(second, "variables", json_incref(list));
        tool_json_set(object, "second_shape", second);
    }
    json_decref(list);
    return status;
}
