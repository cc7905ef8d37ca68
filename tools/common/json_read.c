/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "common/json_read.h"

#include <string.h>

static json_t *
refuse(json_error_t *ret_problem, const char *why)
{
    if (ret_problem != NULL) {
        *ret_problem = (json_error_t){.line = -1, .column = -1};
        (void) g_strlcpy(ret_problem->text, why, sizeof ret_problem->text);
    }
    return NULL;
}

json_t *
tool_json_read(const char *text, gssize bytes, size_t flags, json_error_t *ret_problem)
{
    if (text == NULL)
        return refuse(ret_problem, "there is none");
    gsize length = bytes >= 0 ? (gsize) bytes : strlen(text);
    if (length > TOOL_JSON_MOST)
        return refuse(ret_problem, "it is too long");
    return json_loadb(text, length, JSON_REJECT_DUPLICATES | flags, ret_problem);
}

json_t *
tool_json_load(const char *path, json_error_t *ret_problem)
{
    g_autofree char *text = NULL;
    gsize bytes = 0;
    g_autoptr(GError) why = NULL;
    if (!g_file_get_contents(path, &text, &bytes, &why))
        return refuse(ret_problem, why->message);
    return tool_json_read(text, (gssize) bytes, 0, ret_problem);
}
