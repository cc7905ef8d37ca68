/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What programs were seen to do: lines of files or of databases. */

#include "common/common.h"
#include "esdm/monitor.h"

static bool
add_line(void *context, const char *line)
{
    GString *text = context;
    g_string_append(text, line);
    g_string_append_c(text, '\n');
    return true;
}

char *
tool_records_text(const char *source, tool_exit *ret_exit)
{
    g_autoptr(GError) error = NULL;
    esdm_error err = {0};
    char *text = NULL;
    if (esdm_records_are_in_database(source)) {
        GString *lines = g_string_new(NULL);
        esdm_status status = esdm_records_read(source, add_line, lines, &err);
        if (status == ESDM_OK)
            return g_string_free(lines, FALSE);
        *ret_exit = tool_fail(status, &err);
        (void) g_string_free(lines, TRUE);
        return NULL;
    }
    if (g_file_get_contents(source, &text, NULL, &error))
        return text;
    tool_error("%s", error->message);
    *ret_exit = TOOL_NOT_FOUND;
    return NULL;
}
