/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Queries that have a name. */

#include <stdio.h>
#include <string.h>

#include "esdm-find/find.h"

tool_exit
find_save(const char *name, const char *expression)
{
    esdm_session *session = NULL;
    esdm_error err = {0};
    tool_exit result = tool_session(false, &session);
    if (result != TOOL_OK)
        return result;
    esdm_status status = esdm_find_save(session, name, expression, &err);
    if (status == ESDM_EINVAL)
        result = tool_usage("%s", err.message);
    else if (status != ESDM_OK)
        result = tool_fail(status, &err);
    esdm_session_close(session);
    return tool_finish(result);
}

static bool
show_saved(const char *name, const char *expression, void *user)
{
    if (tool.json) {
        tool_json_set(user, name, tool_json_text(expression));
    } else {
        g_autofree char *printable = tool_printable(expression);
        (void) printf("%s:\t%s\n", name, printable);
    }
    return !ferror(stdout);
}

tool_exit
find_list_saved(void)
{
    esdm_session *session = NULL;
    esdm_error err = {0};
    tool_exit result = tool_session(true, &session);
    if (result != TOOL_OK)
        return result;
    json_t *root = json_object();
    esdm_status status = esdm_find_saved_list(session, show_saved, root, &err);
    if (status != ESDM_OK)
        result = tool_fail(status, &err);
    if (tool.json && status == ESDM_OK)
        tool_json_print(root);
    else
        json_decref(root);
    esdm_session_close(session);
    return tool_finish(result);
}

tool_exit
find_expression(esdm_session *session, char **arguments, char **ret_expression)
{
    g_autoptr(GPtrArray) parts = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; arguments[i] != NULL; i++) {
        size_t bytes = strlen(arguments[i]);
        char *expression = NULL;
        esdm_error err = {0};
        if (esdm_view_is_said(session, tool_container(arguments[i]))) {
            esdm_status status =
                esdm_view_expression(session, tool_container(arguments[i]), &expression, &err);
            if (status != ESDM_OK)
                return tool_fail(status, &err);
            g_ptr_array_add(parts, g_strdup(expression));
            free(expression);
            continue;
        }
        if (bytes < 2 || arguments[i][bytes - 1] != ':') {
            g_ptr_array_add(parts, g_strdup(arguments[i]));
            continue;
        }
        g_autofree char *name = g_strndup(arguments[i], bytes - 1);
        esdm_status status = esdm_find_saved(session, name, &expression, &err);
        if (status == ESDM_EINVAL)
            return tool_usage("%s", err.message);
        if (status != ESDM_OK)
            return tool_fail(status, &err);
        g_ptr_array_add(parts, g_strdup(expression));
        free(expression);
    }
    bool several = parts->len > 1;
    g_ptr_array_add(parts, NULL);
    g_autofree char *joined = g_strjoinv(") and (", (char **) parts->pdata);
    *ret_expression = several ? g_strdup_printf("(%s)", joined) : g_steal_pointer(&joined);
    return TOOL_OK;
}
