/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Columns, order and facets of what was found. */

#include <stdio.h>
#include <string.h>

#include "esdm-find/find.h"

/* With --without: rows that are asked for at first beside twice the limit, how many times more each
 * time, and when all are. */
#define LEFT_OUT_LEAST  64
#define LEFT_OUT_GROWTH 8
#define LEFT_OUT_MOST   65536

typedef struct table_value {
    char *text; /* NULL: the object has no such attribute */
    double number;
    bool has_number;
} table_value;

typedef struct table_row {
    char *container, *dataset;
    table_value *values; /* of the columns */
} table_row;

typedef struct table {
    GPtrArray *rows;
    char **names; /* borrowed: columns */
    guint ncolumns;
    GHashTable *seen; /* containers, with -c */
    bool containers_only;
    const find_options *options;
    bool left_out; /* something was found that --without names */
    guint enough;  /* rows; what comes behind them is neither shown nor counted */
    guint64 came;  /* rows, with those that are left out */
} table;

static table_row *
row_free(table_row *row, guint count)
{
    for (guint i = 0; i < count; i++)
        g_free(row->values[i].text);
    g_free(row->values);
    g_free(row->container);
    g_free(row->dataset);
    g_free(row);
    return NULL;
}

static bool
visit_row(const esdm_match *match, const esdm_find_value *values, void *user)
{
    table *t = user;
    t->came++;
    if (find_is_left_out(t->options, match->container)) {
        t->left_out = true;
        return true;
    }
    if (t->containers_only && !g_hash_table_add(t->seen, g_strdup(match->container)))
        return true;
    table_row *row = g_new0(table_row, 1);
    row->container = g_strdup(match->container);
    row->dataset = t->containers_only ? NULL : g_strdup(match->dataset);
    row->values = g_new0(table_value, t->ncolumns + 1);
    for (guint i = 0; i < t->ncolumns; i++)
        row->values[i] =
            (table_value){g_strdup(values[i].text), values[i].number, values[i].has_number};
    g_ptr_array_add(t->rows, row);
    return t->rows->len < t->enough;
}

static void
print_row(const table *t, const table_row *row, bool zero)
{
    g_autofree char *name = row->dataset != NULL
                                ? g_strdup_printf("%s:%s", row->container, row->dataset)
                                : g_strdup(row->container);
    g_autofree char *shown = zero ? g_strdup(name) : tool_printable(name);
    (void) fputs(shown, stdout);
    for (guint i = 0; i < t->ncolumns; i++) {
        g_autofree char *value =
            tool_printable(row->values[i].text != NULL ? row->values[i].text : "-");
        /* A row is a line, and tabs part its columns. */
        (void) printf("\t%s", g_strdelimit(value, "\n\t", ' '));
    }
    (void) putchar(zero ? '\0' : '\n');
}

static json_t *
row_json(const table *t, const table_row *row)
{
    json_t *object = json_object();
    tool_json_set(object, "container", tool_json_text(row->container));
    tool_json_set(object, "dataset",
                  row->dataset != NULL ? tool_json_text(row->dataset) : json_null());
    json_t *values = json_object();
    for (guint i = 0; i < t->ncolumns; i++) {
        const table_value *v = &row->values[i];
        tool_json_set(values, t->names[i],
                      v->text == NULL ? json_null()
                      : v->has_number ? json_real(v->number)
                                      : tool_json_text(v->text));
    }
    if (t->ncolumns > 0)
        tool_json_set(object, "values", values);
    else
        json_decref(values);
    return object;
}

static void
show_table(const table *t, const char *expression, const find_options *options)
{
    json_t *matches = json_array();
    guint count = t->rows->len;
    bool more = options->limit > 0 && options->limit < (gint64) count;
    if (more)
        count = (guint) options->limit;
    for (guint i = 0; i < count && !ferror(stdout); i++) {
        const table_row *row = g_ptr_array_index(t->rows, i);
        if (tool.json)
            tool_json_append(matches, row_json(t, row));
        else
            print_row(t, row, options->zero);
    }
    if (!tool.json) {
        json_decref(matches);
        return;
    }
    json_t *root = json_object();
    tool_json_set(root, "expression", tool_json_text(expression));
    tool_json_set(root, "found", more ? json_null() : json_integer(t->rows->len));
    tool_json_set(root, "more", json_boolean(more));
    tool_json_set(root, "matches", matches);
    tool_json_print(root);
}

static char **
names_of(const char *list)
{
    return g_strsplit(list != NULL ? list : "", ",", -1);
}

static void
drop_rows(table *t)
{
    for (guint i = 0; i < t->rows->len; i++)
        row_free(g_ptr_array_index(t->rows, i), t->ncolumns);
    g_ptr_array_set_size(t->rows, 0);
    g_hash_table_remove_all(t->seen);
    t->came = 0;
}

/* The first rows that are not left out: how many are in front of them only the answer tells, so
 * more are asked for until there are enough. */
static esdm_status
ask_until_enough(esdm_session *session, const char *expression, table *t, esdm_find_order *order,
                 esdm_error *err)
{
    bool all = t->enough == G_MAXUINT, some = t->options->without != NULL;
    guint64 most = some ? LEFT_OUT_LEAST + 2 * (guint64) t->enough : t->enough;
    for (;; most *= LEFT_OUT_GROWTH) {
        order->limit = all || (some && most > LEFT_OUT_MOST) ? 0 : most;
        esdm_status status = esdm_find_sorted(session, expression, (const char *const *) t->names,
                                              t->ncolumns, order, visit_row, t, err);
        if (status != ESDM_OK || order->limit == 0 || t->rows->len >= t->enough ||
            t->came < order->limit)
            return status;
        drop_rows(t);
    }
}

/* Sorted by keys, or by names where there is none. */
static tool_exit
ask(esdm_session *session, const char *expression, table *t, esdm_find_order *order)
{
    esdm_error err = {0};
    esdm_status status = ask_until_enough(session, expression, t, order, &err);
    if (status == ESDM_EINVAL)
        return tool_usage("%s", err.message);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    if (t->rows->len == 0 && !t->left_out)
        find_tell_why(session, expression);
    return t->rows->len > 0 ? TOOL_OK : TOOL_NOT_FOUND;
}

static void
end(table *t)
{
    drop_rows(t);
    g_ptr_array_unref(t->rows);
    g_hash_table_unref(t->seen);
}

tool_exit
find_table(esdm_session *session, const char *expression, const find_options *options)
{
    g_auto(GStrv) columns = names_of(options->columns);
    g_auto(GStrv) keys = names_of(options->sort);
    g_autofree const char **names = g_new0(const char *, g_strv_length(keys) + 1);
    g_autofree bool *descending = g_new0(bool, g_strv_length(keys) + 1);
    table t = {.rows = g_ptr_array_new(),
               .names = columns,
               .ncolumns = g_strv_length(columns),
               .seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
               .containers_only = options->containers_only,
               .options = options,
               .enough = G_MAXUINT};
    for (guint i = 0; keys[i] != NULL; i++) {
        descending[i] = keys[i][0] == '-';
        names[i] = keys[i] + descending[i];
    }
    /* One more tells JSON whether there are more. */
    if (options->limit > 0)
        t.enough = (guint) MIN(options->limit, G_MAXUINT - 2) + (tool.json ? 1 : 0);
    esdm_find_order order = {.keys = names,
                             .descending = descending,
                             .nkeys = g_strv_length(keys),
                             .containers = options->containers_only};
    tool_exit result = ask(session, expression, &t, &order);
    if (result != TOOL_USAGE && result != TOOL_FAILED)
        show_table(&t, expression, options);
    end(&t);
    return result;
}

/* ---- facets ------------------------------------------------------------------------------- */

static bool
note_any(const esdm_match *match, void *user)
{
    (void) match;
    *(unsigned long *) user = 1;
    return false;
}

typedef struct facet_list {
    json_t *facets; /* with --json: an object for each name */
    const char **names;
    size_t shown;        /* of which the head was printed, from 1 */
    guint limit, values; /* 0: none; of this name so far */
    bool any;            /* something was shown */
} facet_list;

static void
show_heads(facet_list *list, size_t until)
{
    while (list->shown < until) {
        g_autofree char *printable = tool_printable(list->names[list->shown]);
        if (tool.json)
            tool_json_set(list->facets, list->names[list->shown], json_object());
        else
            (void) printf("%s\n", printable);
        list->shown++;
        list->values = 0;
    }
}

static bool
show_value(size_t name, const char *text, uint64_t containers, void *user)
{
    facet_list *list = user;
    list->any = true;
    show_heads(list, name + 1);
    if (list->limit > 0 && list->values++ >= list->limit)
        return true;
    g_autofree char *value = tool_printable(text);
    if (tool.json)
        tool_json_set(json_object_get(list->facets, list->names[name]), text,
                      tool_json_u64(containers));
    else
        (void) printf("%10" G_GUINT64_FORMAT "  %s\n", (guint64) containers, value);
    return !ferror(stdout);
}

tool_exit
find_facets(esdm_session *session, const char *expression, const find_options *options)
{
    g_auto(GStrv) names = names_of(options->facets);
    size_t nnames = g_strv_length(names);
    unsigned long any = 0;
    esdm_error err = {0};
    facet_list list = {
        .facets = json_object(), .names = (const char **) names, .limit = (guint) options->limit};
    esdm_status status = find_count_values(
        session, expression, options, (const char *const *) names, nnames, show_value, &list, &err);
    if (status != ESDM_OK) {
        json_decref(list.facets);
        return status == ESDM_EINVAL ? tool_usage("%s", err.message) : tool_fail(status, &err);
    }
    show_heads(&list, nnames);
    if (tool.json) {
        json_t *root = json_object();
        tool_json_set(root, "expression", tool_json_text(expression));
        tool_json_set(root, "facets", list.facets);
        tool_json_print(root);
    } else {
        json_decref(list.facets);
    }
    if (list.any)
        return TOOL_OK;
    status = esdm_find(session, expression, note_any, &any, &err);
    if (status == ESDM_OK && any == 0)
        find_tell_why(session, expression);
    return status == ESDM_OK && any == 0 ? TOOL_NOT_FOUND : TOOL_OK;
}
