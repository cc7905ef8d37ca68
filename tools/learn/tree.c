/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Regression trees. */
#include "learn/learn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A split has to take that share of the squares away. */
#define LEAST_GAIN 1e-4

void
learn_add(learn_table *t, const double *x, double y, double again)
{
    if ((t->rows & (t->rows - 1)) == 0) { /* 0, 1, 2, 4, …: full */
        gsize room = t->rows == 0 ? 1 : t->rows * 2;
        t->x = g_renew(double, t->x, room * t->features);
        t->y = g_renew(double, t->y, room);
        t->run = g_renew(guint, t->run, room);
        t->again = g_renew(double, t->again, room);
    }
    memcpy(t->x + t->rows * t->features, x, t->features * sizeof *x);
    t->run[t->rows] = t->runs;
    t->again[t->rows] = again;
    t->y[t->rows++] = y;
}

void
learn_move(learn_table *t, gsize to, gsize from)
{
    memmove(t->x + to * t->features, t->x + from * t->features, t->features * sizeof *t->x);
    t->y[to] = t->y[from];
    t->run[to] = t->run[from];
    t->again[to] = t->again[from];
}

void
learn_thin(learn_table *t, gsize most)
{
    if (t->rows <= most)
        return;
    for (gsize i = 0; i < most; i++) {
        gsize from = (gsize) ((double) i * (double) t->rows / (double) most);
        learn_move(t, i, from);
    }
    /* learn_add() reckons with room for powers of two: no rows come after this. */
    t->rows = most;
}

static double
x_of(const learn_rows *r, gsize i, guint feature)
{
    return r->table->x[r->list[i] * r->table->features + feature];
}

static double
y_of(const learn_rows *r, gsize i)
{
    return r->table->y[r->list[i]];
}

static void
sums_of(const learn_rows *r, double *ret_mean, double *ret_squares)
{
    double mean = 0;
    double squares = 0;
    for (gsize i = 0; i < r->count; i++)
        mean += y_of(r, i) / (double) r->count;
    for (gsize i = 0; i < r->count; i++)
        squares += pow(y_of(r, i) - mean, 2);
    *ret_mean = mean;
    *ret_squares = squares;
}

/* ---- splits --------------------------------------------------------------------------------- */

typedef struct pair {
    double x, y;
} pair;

static int
by_x(const void *a, const void *b)
{
    const pair *p = a;
    const pair *q = b;
    return p->x < q->x ? -1 : p->x > q->x;
}

/* Between two numbers; of positive ones in the middle of their logarithms, as sizes are. */
static double
between(double a, double b)
{
    double middle = a > 0 ? sqrt(a) * sqrt(b) : (a + b) / 2;
    return middle > a && middle <= b ? middle : b;
}

/* The split of one feature that leaves the least. */
static double
best_split(const learn_rows *r, guint feature, gsize least, pair *pairs, double *ret_split)
{
    double right = 0;
    double left = 0;
    double best = -1; /* sum²/n of both sides: what goes away, but for a constant */
    for (gsize i = 0; i < r->count; i++) {
        pairs[i] = (pair){x_of(r, i, feature), y_of(r, i)};
        right += pairs[i].y;
    }
    qsort(pairs, r->count, sizeof *pairs, by_x);
    for (gsize i = 1; i < r->count; i++) {
        left += pairs[i - 1].y;
        right -= pairs[i - 1].y;
        if (i < least || r->count - i < least || pairs[i].x <= pairs[i - 1].x)
            continue;
        double gain = left * left / (double) i + right * right / (double) (r->count - i);
        if (gain > best) {
            best = gain;
            *ret_split = between(pairs[i - 1].x, pairs[i].x);
        }
    }
    return best;
}

/* Moves rows below the split to the front; how many. */
static gsize
part(const learn_rows *r, guint feature, double split)
{
    gsize n = 0;
    for (gsize i = 0; i < r->count; i++) {
        if (!(x_of(r, i, feature) < split))
            continue;
        gsize row = r->list[i];
        r->list[i] = r->list[n];
        r->list[n++] = row;
    }
    return n;
}

static learn_node *
grow(const learn_rows *r, guint depth, gsize least, double enough, pair *pairs)
{
    learn_node *node = g_new0(learn_node, 1);
    double squares;
    double best = -1;
    sums_of(r, &node->value, &squares);
    node->rows = r->count;
    node->deviation = r->count > 0 ? sqrt(squares / (double) r->count) : 0;
    for (guint f = 0; depth > 0 && f < r->table->features; f++) {
        double split = 0;
        double gain = best_split(r, f, least, pairs, &split);
        if (gain > best) {
            best = gain;
            node->feature = f;
            node->split = split;
        }
    }
    double gain = best - node->value * node->value * (double) r->count;
    if (best < 0 || !(gain > enough))
        return node;
    gsize n = part(r, node->feature, node->split);
    const learn_rows left = {r->table, r->list, n};
    const learn_rows right = {r->table, r->list + n, r->count - n};
    if (n == 0 || n == r->count)
        return node;
    node->left = grow(&left, depth - 1, least, enough, pairs);
    node->right = grow(&right, depth - 1, least, enough, pairs);
    return node;
}

learn_node *
learn_tree(const learn_rows *rows, guint depth, gsize least)
{
    double mean;
    double squares;
    g_autofree gsize *list = g_memdup2(rows->list, rows->count * sizeof *list);
    g_autofree pair *pairs = g_new(pair, rows->count + 1);
    const learn_rows own = {rows->table, list, rows->count};
    sums_of(&own, &mean, &squares);
    return grow(&own, depth, MAX(least, 1), squares * LEAST_GAIN, pairs);
}

double
learn_tree_value(const learn_node *tree, const double *x)
{
    while (tree->right != NULL)
        tree = x[tree->feature] < tree->split ? tree->left : tree->right;
    return tree->value;
}

void
learn_tree_free(learn_node *tree)
{
    if (tree == NULL)
        return;
    learn_tree_free(tree->left);
    learn_tree_free(tree->right);
    g_free(tree);
}

/* ---- many trees ----------------------------------------------------------------------------- */

#define TREES_DEPTH 14
#define TREES_LEAST 3    /* rows of a leaf */
#define TREES_ROWS  4000 /* of each tree at most: what more would tell is not worth its time */

learn_trees *
learn_trees_fit(const learn_rows *rows)
{
    learn_trees *trees = g_new0(learn_trees, 1);
    gsize count = MIN(rows->count, TREES_ROWS);
    g_autofree gsize *list = g_new(gsize, count + 1);
    for (; trees->count < LEARN_TREES_MOST; trees->count++) {
        for (gsize i = 0; i < count; i++) {
            guint64 number = tool_scramble(((guint64) trees->count << 32) + i + 1);
            list[i] = rows->list[(gsize) (tool_unit(number) * (double) rows->count)];
        }
        const learn_rows own = {rows->table, list, count};
        trees->tree[trees->count] = learn_tree(&own, TREES_DEPTH, TREES_LEAST);
    }
    return trees;
}

double
learn_trees_value(const learn_trees *trees, const double *x)
{
    double sum = 0;
    for (guint i = 0; i < trees->count; i++)
        sum += learn_tree_value(trees->tree[i], x);
    return sum / trees->count;
}

void
learn_trees_free(learn_trees *trees)
{
    for (guint i = 0; i < trees->count; i++)
        learn_tree_free(trees->tree[i]);
    g_free(trees);
}

/* ---- rules ---------------------------------------------------------------------------------- */

typedef struct leaf_text {
    const learn_node *leaf;
    char *text;
} leaf_text;

/* What is known of each feature on the way to a leaf. */
typedef struct bounds {
    double low[LEARN_FEATURES];
    double high[LEARN_FEATURES];
} bounds;

char *
learn_number_text(const learn_feature *feature, double number)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    guint unit = 0;
    if (feature->counts)
        return g_strdup_printf("%.0f", ceil(number));
    if (!feature->sizes)
        return g_strdup_printf("%.3g", number);
    while (fabs(number) >= 1024 && unit + 1 < G_N_ELEMENTS(units)) {
        number /= 1024;
        unit++;
    }
    return g_strdup_printf("%.3g %s", number, units[unit]);
}

static void
add_phrase(GString *text, const char *format, const learn_feature *feature, double number)
{
    g_autofree char *value = learn_number_text(feature, number);
    g_auto(GStrv) parts = g_strsplit(format, "%s", 2);
    g_string_append_printf(text, "%s%s", text->len > 0 ? ", " : "", parts[0]);
    if (parts[0] != NULL && parts[1] != NULL)
        g_string_append_printf(text, "%s%s", value, parts[1]);
}

static char *
text_of(const learn_table *table, const bounds *b)
{
    GString *text = g_string_new(NULL);
    for (guint f = 0; f < table->features; f++) {
        const learn_feature *feature = &table->feature[f];
        if (b->low[f] > -INFINITY)
            add_phrase(text, feature->more, feature, b->low[f]);
        if (b->high[f] < INFINITY && !(feature->binary && b->low[f] > -INFINITY))
            add_phrase(text, feature->less, feature, b->high[f]);
    }
    if (text->len == 0)
        g_string_append(text, "all");
    return g_string_free(text, FALSE);
}

static void
collect(const learn_node *node, const learn_table *table, bounds *b, GArray *leaves)
{
    if (node->right == NULL) {
        const leaf_text one = {node, text_of(table, b)};
        g_array_append_val(leaves, one);
        return;
    }
    double low = b->low[node->feature];
    double high = b->high[node->feature];
    b->high[node->feature] = fmin(high, node->split);
    collect(node->left, table, b, leaves);
    b->high[node->feature] = high;
    b->low[node->feature] = fmax(low, node->split);
    collect(node->right, table, b, leaves);
    b->low[node->feature] = low;
}

static gint
by_rows(gconstpointer a, gconstpointer b)
{
    const leaf_text *x = a;
    const leaf_text *y = b;
    return x->leaf->rows > y->leaf->rows ? -1 : x->leaf->rows < y->leaf->rows;
}

void
learn_tree_rules(const learn_node *tree, const learn_table *table, learn_rule rule, void *user)
{
    bounds b;
    g_autoptr(GArray) leaves = g_array_new(FALSE, FALSE, sizeof(leaf_text));
    for (guint f = 0; f < LEARN_FEATURES; f++) {
        b.low[f] = -INFINITY;
        b.high[f] = INFINITY;
    }
    collect(tree, table, &b, leaves);
    g_array_sort(leaves, by_rows);
    for (guint i = 0; i < leaves->len; i++) {
        leaf_text *one = &g_array_index(leaves, leaf_text, i);
        rule(one->text, one->leaf, user);
        g_free(one->text);
    }
}
