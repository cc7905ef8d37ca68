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

static void
name_features(learn_table *t, char **names, guint count)
{
    t->features = count;
    for (guint i = 0; i < t->features; i++) {
        const char *name = g_intern_string(g_strstrip(names[i]));
        bool sizes = g_str_equal(name, "bytes") || g_str_equal(name, "hole");
        t->feature[i] = (learn_feature){.name = name,
                                        .sizes = sizes,
                                        .less = g_intern_string(g_strconcat(name, " < %s", NULL)),
                                        .more = g_intern_string(g_strconcat(name, " >= %s", NULL))};
    }
}

static tool_exit
read_head(learn_table *t, const char *path, char **names)
{
    guint count = g_strv_length(names);
    if (count < 2 || count - 1 > LEARN_FEATURES)
        return bad_line(path, 1, "expected the names of 1 to 16 columns, and of what is predicted");
    name_features(t, names, count - 1);
    t->target = g_intern_string(g_strstrip(names[count - 1]));
    return TOOL_OK;
}

static tool_exit
read_numbers(const char *path, guint line, char **fields, guint count, double *numbers)
{
    if (g_strv_length(fields) != count)
        return bad_line(path, line, "it has another number of columns than the first one");
    for (guint i = 0; i < count; i++) {
        char *end = NULL;
        numbers[i] = g_ascii_strtod(g_strstrip(fields[i]), &end);
        if (end == fields[i] || *end != '\0' || !isfinite(numbers[i]))
            return bad_line(path, line, "expected numbers");
    }
    return TOOL_OK;
}

static tool_exit
read_line(learn_table *t, const char *path, guint line, char **fields)
{
    double numbers[LEARN_FEATURES + 1];
    tool_exit result = read_numbers(path, line, fields, t->features + 1, numbers);
    if (result == TOOL_OK)
        learn_add(t, numbers, numbers[t->features], NAN);
    return result;
}

/* Lines with fields, the first of them the head. @param ret_lines NULL-terminated, owned. */
static tool_exit
read_lines(const char *path, char ***ret_lines)
{
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    if (!g_file_get_contents(path, &text, NULL, &error)) {
        tool_error("%s", error->message);
        return TOOL_NOT_FOUND;
    }
    *ret_lines = g_strsplit(text, "\n", -1);
    return TOOL_OK;
}

tool_exit
learn_load_csv(learn_table *t, const char *path)
{
    g_auto(GStrv) lines = NULL;
    tool_exit result = read_lines(path, &lines);
    for (guint i = 0; result == TOOL_OK && lines[i] != NULL; i++) {
        g_auto(GStrv) fields = g_strsplit(lines[i], ",", -1);
        if (*g_strstrip(lines[i]) == '\0')
            continue;
        result = t->features == 0 ? read_head(t, path, fields) : read_line(t, path, i + 1, fields);
    }
    return result;
}

static tool_exit
read_choices(learn_choices *c, const char *path, char **names)
{
    guint count = g_strv_length(names);
    if (count <= c->choices || count - c->choices > LEARN_FEATURES)
        return bad_line(path, 1, "expected the names of 1 to 16 columns, and of so many ways");
    guint features = count - c->choices;
    name_features(&c->table, names, features);
    for (guint k = 0; k < c->choices; k++)
        c->name[k] = g_intern_string(g_strstrip(names[features + k]));
    return TOOL_OK;
}

static tool_exit
read_case(learn_choices *c, const char *path, guint line, char **fields)
{
    double numbers[LEARN_FEATURES + LEARN_CHOICES_MOST];
    double best = INFINITY;
    const double *took = numbers + c->table.features;
    tool_exit result = read_numbers(path, line, fields, c->table.features + c->choices, numbers);
    for (guint k = 0; k < c->choices && result == TOOL_OK; k++) {
        if (!(took[k] > 0))
            result = bad_line(path, line, "what a way took has to be more than 0");
        best = fmin(best, took[k]);
    }
    if (result != TOOL_OK)
        return result;
    gsize row = c->table.rows;
    learn_add(&c->table, numbers, best, NAN);
    c->share = g_renew(double, c->share, (row + 1) * c->choices);
    for (guint k = 0; k < c->choices; k++)
        c->share[row * c->choices + k] = best / took[k];
    return TOOL_OK;
}

tool_exit
learn_load_choices(learn_choices *ret, const char *path, guint choices)
{
    g_auto(GStrv) lines = NULL;
    tool_exit result = read_lines(path, &lines);
    *ret = (learn_choices){.choices = choices};
    for (guint i = 0; result == TOOL_OK && lines[i] != NULL; i++) {
        g_auto(GStrv) fields = g_strsplit(lines[i], ",", -1);
        if (*g_strstrip(lines[i]) == '\0')
            continue;
        result = ret->table.features == 0 ? read_choices(ret, path, fields)
                                          : read_case(ret, path, i + 1, fields);
    }
    return result;
}
