/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* How well models predict what they were not fitted to. */
#include "learn/learn.h"

#include <math.h>
#include <stdlib.h>

#define LEAST_SHARE 400 /* a leaf has the 400th part of the rows at least */
#define LEAST_ROWS  5
static const guint depths[] = {1, 2, 4, 6, 8};

const char *
learn_kind_name(learn_kind kind)
{
    static const char *const names[] = {"the mean", "linear", "squares of logarithms", "tree",
                                        "many trees"};
    return kind < LEARN_KINDS ? names[kind] : "?";
}

static gsize
least_of(const learn_rows *r)
{
    return MAX(r->count / LEAST_SHARE, LEAST_ROWS);
}

/* All rows in an order that does not depend on theirs. */
static gsize *
shuffled(gsize count)
{
    gsize *list = g_new(gsize, count + 1);
    for (gsize i = 0; i < count; i++)
        list[i] = i;
    for (gsize i = count; i > 1; i--) {
        gsize k = (gsize) (tool_unit(tool_scramble(i)) * (double) i);
        gsize row = list[i - 1];
        list[i - 1] = list[k];
        list[k] = row;
    }
    return list;
}

/* Rows of the list without, and with only, those of one fold. */
static void
split_rows(const learn_table *t, const gsize *order, guint fold, guint folds, learn_rows *ret_fit,
           learn_rows *ret_held)
{
    gsize count = t->rows;
    *ret_fit = (learn_rows){t, g_new(gsize, count + 1), 0};
    *ret_held = (learn_rows){t, g_new(gsize, count + 1), 0};
    for (gsize i = 0; i < count; i++) {
        learn_rows *to = i % folds == fold ? ret_held : ret_fit;
        to->list[to->count++] = order[i];
    }
}

static const double *
x_of(const learn_rows *r, gsize i)
{
    return r->table->x + r->list[i] * r->table->features;
}

static double
y_of(const learn_rows *r, gsize i)
{
    return r->table->y[r->list[i]];
}

static double
squares_left(const learn_node *tree, const learn_rows *held)
{
    double sum = 0;
    for (gsize i = 0; i < held->count; i++)
        sum += pow(learn_tree_value(tree, x_of(held, i)) - y_of(held, i), 2);
    return sum;
}

guint
learn_choose_depth(const learn_rows *rows)
{
    gsize n = rows->count / 4;
    const learn_rows held = {rows->table, rows->list, n};
    const learn_rows fit = {rows->table, rows->list + n, rows->count - n};
    double best = INFINITY;
    guint depth = depths[0];
    for (gsize i = 0; i < G_N_ELEMENTS(depths); i++) {
        learn_node *tree = learn_tree(&fit, depths[i], least_of(&fit));
        double left = squares_left(tree, &held);
        learn_tree_free(tree);
        if (left < best * 0.98) { /* a deeper one must be worth being read */
            best = left;
            depth = depths[i];
        }
    }
    return depth;
}

learn_node *
learn_tree_of_all(const learn_table *table, guint depth)
{
    g_autofree gsize *order = shuffled(table->rows);
    const learn_rows rows = {table, order, table->rows};
    return learn_tree(&rows, depth, least_of(&rows));
}

/* ---- validation ----------------------------------------------------------------------------- */

static double
mean_of(const learn_rows *r)
{
    double sum = 0;
    for (gsize i = 0; i < r->count; i++)
        sum += y_of(r, i);
    return r->count > 0 ? sum / (double) r->count : 0;
}

static void
add_errors(const learn_rows *fit, const learn_rows *held, GArray *errors[LEARN_KINDS])
{
    double mean = mean_of(fit);
    learn_linear *line = learn_linear_fit(fit, false);
    learn_linear *squares = learn_linear_fit(fit, true);
    learn_node *tree = learn_tree(fit, learn_choose_depth(fit), least_of(fit));
    learn_trees *trees = learn_trees_fit(fit);
    for (gsize i = 0; i < held->count; i++) {
        const double *x = x_of(held, i);
        double y = y_of(held, i);
        const double wrong[LEARN_KINDS] = {
            fabs(mean - y), fabs(learn_linear_value(line, x) - y),
            squares != NULL ? fabs(learn_linear_value(squares, x) - y) : NAN,
            fabs(learn_tree_value(tree, x) - y), fabs(learn_trees_value(trees, x) - y)};
        for (guint kind = 0; kind < LEARN_KINDS; kind++)
            g_array_append_val(errors[kind], wrong[kind]);
    }
    learn_linear_free(line);
    learn_linear_free(squares);
    learn_tree_free(tree);
    learn_trees_free(trees);
}

static void
sum_errors(GArray *list, double *ret_mean, double *ret_median)
{
    double sum = 0;
    for (guint i = 0; i < list->len; i++)
        sum += g_array_index(list, double, i);
    *ret_mean = list->len > 0 ? sum / list->len : NAN;
    *ret_median = NAN;
    if (list->len == 0 || isnan(*ret_mean))
        return;
    g_array_sort(list, tool_by_number);
    *ret_median = g_array_index(list, double, list->len / 2);
}

learn_errors
learn_validate(const learn_table *table, guint folds)
{
    learn_errors e = {.folds = folds, .rows = table->rows};
    GArray *errors[LEARN_KINDS];
    g_autofree gsize *order = shuffled(table->rows);
    const learn_rows all = {table, order, table->rows};
    for (guint kind = 0; kind < LEARN_KINDS; kind++)
        errors[kind] = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint fold = 0; fold < folds; fold++) {
        learn_rows fit;
        learn_rows held;
        split_rows(table, order, fold, folds, &fit, &held);
        add_errors(&fit, &held, errors);
        g_free(fit.list);
        g_free(held.list);
    }
    for (guint kind = 0; kind < LEARN_KINDS; kind++) {
        sum_errors(errors[kind], &e.mean[kind], &e.median[kind]);
        g_array_free(errors[kind], TRUE);
        if (e.mean[kind] < e.mean[e.best])
            e.best = kind;
    }
    e.depth = learn_choose_depth(&all);
    return e;
}

/* ---- holes ---------------------------------------------------------------------------------- */

static guint
feature_named(const learn_table *table, const char *name)
{
    guint f = 0;
    while (f < table->features && !g_str_equal(table->feature[f].name, name))
        f++;
    return f;
}

/* Seconds, times 1e6, of a read of that size behind that hole. */
static double
time_of(const learn_table *table, const learn_node *tree, double bytes, double hole)
{
    double x[LEARN_FEATURES] = {0};
    x[feature_named(table, "bytes")] = bytes;
    x[feature_named(table, "hole")] = hole;
    guint since = feature_named(table, LEARN_SINCE);
    if (since < table->features) /* nobody touched it */
        x[since] = INFINITY;
    return bytes / learn_tree_value(tree, x);
}

double
learn_sieve_limit(const learn_table *table, const learn_node *tree, double piece)
{
    guint bytes = feature_named(table, "bytes");
    guint hole = feature_named(table, "hole");
    double limit = NAN;
    double most[2] = {0, 0};
    if (bytes == table->features || hole == table->features)
        return NAN;
    for (gsize i = 0; i < table->rows; i++) {
        most[0] = fmax(most[0], table->x[i * table->features + bytes]);
        most[1] = fmax(most[1], table->x[i * table->features + hole]);
    }
    for (double h = 1024; h <= most[1] && 2 * piece + h <= most[0]; h *= 2) {
        if (time_of(table, tree, 2 * piece + h, h) < 2 * time_of(table, tree, piece, h))
            limit = h;
        else
            break;
    }
    return limit;
}
