/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What lies in a folder. */

#include <string.h>

#include "common/common.h"

gint
tool_by_text(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

GPtrArray *
tool_folder_names(const char *folder, GError **error)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, error);
    if (dir == NULL)
        return NULL;
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    for (const char *name = g_dir_read_name(dir); name != NULL; name = g_dir_read_name(dir))
        g_ptr_array_add(names, g_strdup(name));
    g_ptr_array_sort(names, tool_by_text);
    return names;
}
