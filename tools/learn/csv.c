/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Tables of numbers that people bring themselves. */
#include "learn/learn.h"

#include <math.h>
#include <string.h>

static tool_exit
bad_line(const char *path, guint line, const char *what)
{
    tool_error("%s: line %u: %s", path, line, what);
    return TOOL_FAILED;
}

static tool_exit
read_head(learn_table *t, const char *path, char **names)
{
    guint count = g_strv_length(names);
    if (count < 2 || count - 1 > LEARN_FEATURES)
        return bad_line(path, 1, "expected the names of 1 to 16 columns, and of what is predicted");
    t->features = count - 1;
    for (guint i = 0; i < t->features; i++) {
        const char *name = g_intern_string(g_strstrip(names[i]));
        bool sizes = g_str_equal(name, "bytes") || g_str_equal(name, "hole");
        t->feature[i] = (learn_feature){.name = name,
                                        .sizes = sizes,
                                        .less = g_intern_string(g_strconcat(name, " < %s", NULL)),
                                        .more = g_intern_string(g_strconcat(name, " >= %s", NULL))};
    }
    t->target = g_intern_string(g_strstrip(names[count - 1]));
    return TOOL_OK;
}

static tool_exit
read_line(learn_table *t, const char *path, guint line, char **fields)
{
    double numbers[LEARN_FEATURES + 1];
    if (g_strv_length(fields) != t->features + 1)
        return bad_line(path, line, "it has another number of columns than the first one");
    for (guint i = 0; i <= t->features; i++) {
        char *end = NULL;
        numbers[i] = g_ascii_strtod(g_strstrip(fields[i]), &end);
        if (end == fields[i] || *end != '\0' || !isfinite(numbers[i]))
            return bad_line(path, line, "expected numbers");
    }
    learn_add(t, numbers, numbers[t->features], NAN);
    return TOOL_OK;
}

tool_exit
learn_load_csv(learn_table *t, const char *path)
{
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    if (!g_file_get_contents(path, &text, NULL, &error)) {
        tool_error("%s", error->message);
        return TOOL_NOT_FOUND;
    }
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    tool_exit result = TOOL_OK;
    for (guint i = 0; lines[i] != NULL && result == TOOL_OK; i++) {
        g_auto(GStrv) fields = g_strsplit(lines[i], ",", -1);
        if (*g_strstrip(lines[i]) == '\0')
            continue;
        result = t->features == 0 ? read_head(t, path, fields) : read_line(t, path, i + 1, fields);
    }
    return result;
}
