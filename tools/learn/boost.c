/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Trees one after the other, each for what those before it leave (gradient boosting; Friedman 2001,
 * "LAD TreeBoost"): splits part those of which too much was predicted from those of which it was
 * too little, a leaf adds the median of what is left. So absolute errors get smaller, and calls
 * that somebody interrupted count no more than others. Numbers of features are sorted once, into
 * bins.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learn/learn.h"

#define BINS    64u
#define DEPTH   7u
#define LEAST   10u /* rows of a leaf */
#define RATE    0.1 /* of a leaf's median that is added */
#define PARTS   2u  /* a tree sees one row of so many */
#define SAMPLES 4096u

typedef struct boost {
    const learn_rows *rows;
    guint8 *bins;                        /* rows × features */
    double limits[LEARN_FEATURES][BINS]; /* bin k: at least limits[k - 1], less than limits[k] */
    guint count[LEARN_FEATURES];         /* of bins */
    double *left;                        /* of each row: what is not predicted yet */
    double *numbers;                     /* room */
    guint32 *list;                       /* rows of the tree; those of a node lie together */
} boost;

static double
x_of(const boost *b, gsize i, guint feature)
{
    return b->rows->table->x[b->rows->list[i] * b->rows->table->features + feature];
}

static double
median_of(double *numbers, gsize count)
{
    if (count == 0)
        return 0;
    qsort(numbers, count, sizeof *numbers, tool_by_number);
    return (numbers[(count - 1) / 2] + numbers[count / 2]) / 2;
}

/* Limits are numbers that some have, as many between two of them as may be. */
static void
set_limits(boost *b, guint feature)
{
    double samples[SAMPLES];
    gsize n = MIN(b->rows->count, SAMPLES);
    guint bins = 1;
    for (gsize i = 0; i < n; i++)
        samples[i] = x_of(b, (gsize) ((double) i * (double) b->rows->count / (double) n), feature);
    qsort(samples, n, sizeof *samples, tool_by_number);
    for (guint k = 1; k < BINS; k++) {
        double limit = samples[n * k / BINS];
        if (limit > samples[0] && (bins == 1 || limit > b->limits[feature][bins - 2]))
            b->limits[feature][bins++ - 1] = limit;
    }
    b->count[feature] = bins;
}

static guint8
bin_of(const boost *b, guint feature, double x)
{
    guint low = 0;
    guint high = b->count[feature] - 1;
    while (low < high) {
        guint middle = (low + high) / 2;
        if (x < b->limits[feature][middle])
            high = middle;
        else
            low = middle + 1;
    }
    return (guint8) low;
}

/* ---- a tree ---------------------------------------------------------------------------------- */

static gint32
sign_of(const boost *b, guint32 row)
{
    return (b->left[row] > 0) - (b->left[row] < 0);
}

/* Rows of a node, by bins of each feature. */
typedef struct histogram {
    gint32 signs[LEARN_FEATURES][BINS]; /* their sum */
    guint32 rows[LEARN_FEATURES][BINS];
} histogram;

static void
count_bins(const boost *b, const guint32 *list, gsize count, histogram *ret)
{
    const guint features = b->rows->table->features;
    memset(ret, 0, sizeof *ret);
    for (gsize i = 0; i < count; i++) {
        const guint8 *bins = b->bins + (gsize) list[i] * features;
        gint32 sign = sign_of(b, list[i]);
        for (guint f = 0; f < features; f++) {
            ret->signs[f][bins[f]] += sign;
            ret->rows[f][bins[f]]++;
        }
    }
}

/* The split of one feature after which signs differ most; its bin goes right. */
static double
best_bin(const gint32 *signs, const guint32 *rows, guint bins, guint *ret_bin)
{
    double right = 0;
    double left = 0;
    double best = -1;
    gsize count = 0;
    gsize seen = 0;
    for (guint k = 0; k < bins; k++) {
        right += signs[k];
        count += rows[k];
    }
    for (guint k = 1; k < bins; k++) {
        left += signs[k - 1];
        right -= signs[k - 1];
        seen += rows[k - 1];
        if (seen < LEAST || count - seen < LEAST || rows[k - 1] == 0)
            continue;
        double gain = left * left / (double) seen + right * right / (double) (count - seen);
        if (gain > best) {
            best = gain;
            *ret_bin = k;
        }
    }
    return best;
}

/* @return false: no split parts signs. */
static bool
best_split(const boost *b, const guint32 *list, gsize count, guint *ret_feature, guint *ret_bin)
{
    histogram h;
    double sum = 0;
    count_bins(b, list, count, &h);
    for (guint k = 0; k < b->count[0]; k++)
        sum += h.signs[0][k];
    double best = sum * sum / (double) MAX(count, 1) + 1e-9;
    bool found = false;
    for (guint f = 0; f < b->rows->table->features; f++) {
        guint bin = 0;
        double gain = best_bin(h.signs[f], h.rows[f], b->count[f], &bin);
        if (gain <= best)
            continue;
        best = gain;
        *ret_feature = f;
        *ret_bin = bin;
        found = true;
    }
    return found;
}

static learn_node *
leaf_of(boost *b, const guint32 *list, gsize count)
{
    learn_node *node = g_new0(learn_node, 1);
    for (gsize i = 0; i < count; i++)
        b->numbers[i] = b->left[list[i]];
    node->value = RATE * median_of(b->numbers, count);
    node->rows = count;
    return node;
}

static learn_node *
grow(boost *b, guint32 *list, gsize count, guint depth)
{
    guint feature = 0;
    guint at = 0;
    gsize n = 0;
    if (depth == 0 || count < 2 * LEAST || !best_split(b, list, count, &feature, &at))
        return leaf_of(b, list, count);
    for (gsize i = 0; i < count; i++) {
        guint32 row = list[i];
        if (b->bins[(gsize) row * b->rows->table->features + feature] >= at)
            continue;
        list[i] = list[n];
        list[n++] = row;
    }
    learn_node *node = g_new0(learn_node, 1);
    node->feature = feature;
    node->split = b->limits[feature][at - 1];
    node->rows = count;
    node->left = grow(b, list, n, depth - 1);
    node->right = grow(b, list + n, count - n, depth - 1);
    return node;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void
begin(boost *b, learn_boosted *model)
{
    const learn_table *table = b->rows->table;
    for (gsize i = 0; i < b->rows->count; i++)
        b->numbers[i] = table->y[b->rows->list[i]];
    model->base = median_of(b->numbers, b->rows->count);
    model->low = b->rows->count > 0 ? b->numbers[0] : 0;
    model->high = b->rows->count > 0 ? b->numbers[b->rows->count - 1] : 0;
    for (guint f = 0; f < table->features; f++) {
        set_limits(b, f);
        for (gsize i = 0; i < b->rows->count; i++)
            b->bins[i * table->features + f] = bin_of(b, f, x_of(b, i, f));
    }
    for (gsize i = 0; i < b->rows->count; i++)
        b->left[i] = table->y[b->rows->list[i]] - model->base;
}

learn_boosted *
learn_boosted_fit(const learn_rows *rows)
{
    const learn_table *table = rows->table;
    learn_boosted *model = g_new0(learn_boosted, 1);
    boost *b = g_new0(boost, 1);
    b->rows = rows;
    b->bins = g_new(guint8, rows->count * table->features + 1);
    b->left = g_new(double, rows->count + 1);
    b->numbers = g_new(double, rows->count + 1);
    b->list = g_new(guint32, rows->count + 1);
    begin(b, model);
    for (; model->count < LEARN_BOOSTED_TREES; model->count++) {
        gsize count = 0;
        for (gsize i = 0; i < rows->count; i++)
            if (tool_scramble(((guint64) model->count << 32) + i + 1) % PARTS == 0)
                b->list[count++] = (guint32) i;
        learn_node *tree = grow(b, b->list, count, DEPTH);
        for (gsize i = 0; i < rows->count; i++)
            b->left[i] -= learn_tree_value(tree, table->x + rows->list[i] * table->features);
        model->tree[model->count] = tree;
    }
    g_free(b->bins);
    g_free(b->left);
    g_free(b->numbers);
    g_free(b->list);
    g_free(b);
    return model;
}

double
learn_boosted_value(const learn_boosted *model, const double *x)
{
    double sum = model->base;
    for (guint i = 0; i < model->count; i++)
        sum += learn_tree_value(model->tree[i], x);
    return CLAMP(sum, model->low, model->high);
}

void
learn_boosted_free(learn_boosted *model)
{
    for (guint i = 0; i < model->count; i++)
        learn_tree_free(model->tree[i]);
    g_free(model);
}
