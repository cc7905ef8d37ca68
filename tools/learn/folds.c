/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* How well models predict what they were not fitted to. */
#include "learn/learn.h"

#include <math.h>
#include <stdlib.h>

#define LEAST_SHARE 400 /* a leaf has the 400th part of the rows at least */
#define LEAST_ROWS  5
#define RUNS_APART  4 /* runs from which parts are runs */
static const guint depths[] = {1, 2, 4, 6, 8};

const char *
learn_kind_name(learn_kind kind)
{
    static const char *const names[] = {"the mean", "linear",     "squares of logarithms",
                                        "tree",     "many trees", "boosted trees"};
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

/* Parts that tell nothing of each other: runs, or stretches of time; a table of numbers knows
 * neither. @param at of the row in the shuffled order. */
static guint
fold_of(const learn_table *t, gsize at, gsize row, guint folds)
{
    if (t->runs >= RUNS_APART)
        return (t->run[row] - 1) % folds;
    return (guint) (t->runs > 0 ? row * folds / t->rows : at % folds);
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
        learn_rows *to = fold_of(t, i, order[i], folds) == fold ? ret_held : ret_fit;
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

/* Sums of what models err by, and of what they could not know. */
typedef struct wrongs {
    GArray *list[LEARN_KINDS];
    double factor[LEARN_KINDS];
    double again[LEARN_KINDS];
    double apart; /* |y - y of the call before that was alike|/2 */
    gsize agains;
} wrongs;

static void
add_wrongs(wrongs *w, const double *predicted, double y, double again)
{
    bool repeated = !isnan(again);
    for (guint kind = 0; kind < LEARN_KINDS; kind++) {
        double wrong = fabs(predicted[kind] - y);
        g_array_append_val(w->list[kind], wrong);
        w->factor[kind] += predicted[kind] > 0 && y > 0 ? fabs(log(predicted[kind] / y)) : NAN;
        w->again[kind] += repeated ? wrong : 0;
    }
    w->apart += repeated ? fabs(y - again) / 2 : 0;
    w->agains += repeated;
}

static void
add_errors(const learn_rows *fit, const learn_rows *held, wrongs *w)
{
    double mean = mean_of(fit);
    learn_linear *line = learn_linear_fit(fit, false);
    learn_linear *squares = learn_linear_fit(fit, true);
    learn_node *tree = learn_tree(fit, learn_choose_depth(fit), least_of(fit));
    learn_trees *trees = learn_trees_fit(fit);
    learn_boosted *boosted = learn_boosted_fit(fit);
    for (gsize i = 0; i < held->count; i++) {
        const double *x = x_of(held, i);
        const double predicted[LEARN_KINDS] = {mean,
                                               learn_linear_value(line, x),
                                               squares != NULL ? learn_linear_value(squares, x)
                                                               : NAN,
                                               learn_tree_value(tree, x),
                                               learn_trees_value(trees, x),
                                               learn_boosted_value(boosted, x)};
        add_wrongs(w, predicted, y_of(held, i), held->table->again[held->list[i]]);
    }
    learn_linear_free(line);
    learn_linear_free(squares);
    learn_tree_free(tree);
    learn_trees_free(trees);
    learn_boosted_free(boosted);
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
    learn_errors e = {.rows = table->rows};
    wrongs w = {.agains = 0};
    g_autofree gsize *order = shuffled(table->rows);
    const learn_rows all = {table, order, table->rows};
    for (guint kind = 0; kind < LEARN_KINDS; kind++)
        w.list[kind] = g_array_new(FALSE, FALSE, sizeof(double));
    e.folds = table->runs >= RUNS_APART ? MIN(folds, table->runs) : folds;
    for (guint fold = 0; fold < e.folds; fold++) {
        learn_rows fit;
        learn_rows held;
        split_rows(table, order, fold, e.folds, &fit, &held);
        if (fit.count > 0 && held.count > 0)
            add_errors(&fit, &held, &w);
        g_free(fit.list);
        g_free(held.list);
    }
    for (guint kind = 0; kind < LEARN_KINDS; kind++) {
        sum_errors(w.list[kind], &e.mean[kind], &e.median[kind]);
        e.factor[kind] = exp(w.factor[kind] / (double) w.list[kind]->len);
        e.again[kind] = w.agains > 0 ? w.again[kind] / (double) w.agains : NAN;
        g_array_free(w.list[kind], TRUE);
        if (e.mean[kind] < e.mean[e.best])
            e.best = kind;
    }
    e.least_again = w.agains > 0 ? w.apart / (double) w.agains : NAN;
    e.agains = w.agains;
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
