/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Which of several ways to do something is the best one, by what is known before: a tree (CART) of
 * all ways at once. Each split is first the one that leaves the least squares of what each way
 * reaches of the best one. Then each is moved to where those below it choose best, as they are, and
 * so on in turn (as in Carreira-Perpinan and Tavallali 2018): what is good to know of all ways is
 * not always what is good to ask to choose one.
 */
#include "learn/learn.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_GAIN 1e-4 /* of all squares, that a split has to take away */
#define ROUNDS     8    /* of moving splits */
#define FAR_WRONG  0.25 /* weight of the logarithm: what takes ten times as long counts for more */

static double
x_of(const learn_choices *c, gsize row, guint feature)
{
    return c->table.x[row * c->table.features + feature];
}

static const double *
shares_of(const learn_choices *c, gsize row)
{
    return c->share + row * c->choices;
}

/* What it is worth to take that way. */
static double
worth(const learn_choices *c, gsize row, double way)
{
    double share = shares_of(c, row)[(guint) way];
    return share + FAR_WRONG * log(MAX(share, DBL_MIN)); /* it may be too small for a number */
}

static void
add_sums(const learn_choices *c, const gsize *list, gsize count, double *sums)
{
    memset(sums, 0, LEARN_CHOICES_MOST * sizeof *sums);
    for (gsize i = 0; i < count; i++)
        for (guint k = 0; k < c->choices; k++)
            sums[k] += shares_of(c, list[i])[k];
}

static guint
largest(const double *numbers, guint count)
{
    guint best = 0;
    for (guint k = 1; k < count; k++)
        best = numbers[k] > numbers[best] ? k : best;
    return best;
}

/* What goes away of the squares, but for a constant. */
static double
squares(const learn_choices *c, const double *sums, gsize count)
{
    double sum = 0;
    for (guint k = 0; k < c->choices; k++)
        sum += sums[k] * sums[k] / (double) count;
    return sum;
}

/* ---- splits --------------------------------------------------------------------------------- */

typedef struct place {
    double x;
    gsize row;
} place;

static int
by_x(const void *a, const void *b)
{
    const place *p = a;
    const place *q = b;
    return p->x < q->x ? -1 : p->x > q->x ? 1 : p->row < q->row ? -1 : p->row > q->row;
}

static double
between(double a, double b)
{
    double middle = a > 0 ? sqrt(a) * sqrt(b) : (a + b) / 2;
    return middle > a && middle <= b ? middle : b;
}

static double
best_split(const learn_choices *c, const gsize *list, gsize count, guint feature, gsize least,
           double *ret_split)
{
    double left[LEARN_CHOICES_MOST] = {0};
    double right[LEARN_CHOICES_MOST];
    double best = -1;
    g_autofree place *places = g_new(place, count + 1);
    add_sums(c, list, count, right);
    for (gsize i = 0; i < count; i++)
        places[i] = (place){x_of(c, list[i], feature), list[i]};
    qsort(places, count, sizeof *places, by_x);
    for (gsize i = 1; i < count; i++) {
        for (guint k = 0; k < c->choices; k++) {
            left[k] += shares_of(c, places[i - 1].row)[k];
            right[k] -= shares_of(c, places[i - 1].row)[k];
        }
        if (i < least || count - i < least || places[i].x <= places[i - 1].x)
            continue;
        double gain = squares(c, left, i) + squares(c, right, count - i);
        if (gain > best) {
            best = gain;
            *ret_split = between(places[i - 1].x, places[i].x);
        }
    }
    return best;
}

/* Moves rows below the split to the front; how many. */
static gsize
part(const learn_choices *c, gsize *list, gsize count, const learn_node *node)
{
    gsize n = 0;
    for (gsize i = 0; i < count; i++) {
        if (!(x_of(c, list[i], node->feature) < node->split))
            continue;
        gsize row = list[i];
        list[i] = list[n];
        list[n++] = row;
    }
    return n;
}

static learn_node *
grow(const learn_choices *c, gsize *list, gsize count, guint depth, gsize least, double enough)
{
    learn_node *node = g_new0(learn_node, 1);
    double sums[LEARN_CHOICES_MOST];
    double best = -1;
    add_sums(c, list, count, sums);
    node->value = largest(sums, c->choices);
    for (guint f = 0; depth > 0 && f < c->table.features; f++) {
        double split = 0;
        double gain = best_split(c, list, count, f, least, &split);
        if (gain > best) {
            best = gain;
            node->feature = f;
            node->split = split;
        }
    }
    if (best < 0 || !(best - squares(c, sums, count) > enough))
        return node;
    gsize n = part(c, list, count, node);
    if (n == 0 || n == count)
        return node;
    node->left = grow(c, list, n, depth - 1, least, enough);
    node->right = grow(c, list + n, count - n, depth - 1, least, enough);
    return node;
}

/* ---- splits are moved ------------------------------------------------------------------------ */

static void
choose_way(const learn_choices *c, learn_node *leaf, const gsize *list, gsize count)
{
    double sums[LEARN_CHOICES_MOST] = {0};
    for (gsize i = 0; i < count; i++)
        for (guint k = 0; k < c->choices; k++)
            sums[k] += worth(c, list[i], k);
    leaf->value = largest(sums, c->choices);
}

/* Where to ask what, so that most is gained by going left where left is better. */
static void
move_split(const learn_choices *c, learn_node *node, const gsize *list, gsize count, gsize least)
{
    g_autofree place *places = g_new(place, count + 1);
    g_autofree double *gains = g_new(double, c->table.rows + 1); /* of going left; by row */
    double best = 0;
    for (gsize i = 0; i < count; i++) {
        const double *x = c->table.x + list[i] * c->table.features;
        gains[list[i]] = worth(c, list[i], learn_tree_value(node->left, x)) -
                         worth(c, list[i], learn_tree_value(node->right, x));
        best += x[node->feature] < node->split ? gains[list[i]] : 0;
    }
    best += 1e-9 * (double) count; /* it stays where nothing is gained */
    for (guint f = 0; f < c->table.features; f++) {
        double sum = 0;
        for (gsize i = 0; i < count; i++)
            places[i] = (place){x_of(c, list[i], f), list[i]};
        qsort(places, count, sizeof *places, by_x);
        for (gsize i = 1; i < count; i++) {
            sum += gains[places[i - 1].row];
            if (i < least || count - i < least || places[i].x <= places[i - 1].x || sum <= best)
                continue;
            best = sum;
            node->feature = f;
            node->split = between(places[i - 1].x, places[i].x);
        }
    }
}

/* From the root on: those below get other rows then. */
static void
improve(const learn_choices *c, learn_node *node, gsize *list, gsize count, gsize least)
{
    node->rows = count;
    if (node->right == NULL) {
        choose_way(c, node, list, count);
        return;
    }
    move_split(c, node, list, count, least);
    gsize n = part(c, list, count, node);
    improve(c, node->left, list, n, least);
    improve(c, node->right, list + n, count - n, least);
}

/* Two leaves that take the same way are one; so is a node of which one side has no rows. */
static learn_node *
joined(learn_node *node)
{
    if (node->right == NULL)
        return node;
    node->left = joined(node->left);
    node->right = joined(node->right);
    if (node->left->rows == 0 || node->right->rows == 0) {
        learn_node *kept = node->left->rows == 0 ? node->right : node->left;
        learn_tree_free(kept == node->left ? node->right : node->left);
        g_free(node);
        return kept;
    }
    bool leaves = node->left->right == NULL && node->right->right == NULL;
    if (!leaves || node->left->value != node->right->value)
        return node;
    node->value = node->left->value;
    learn_tree_free(node->left);
    learn_tree_free(node->right);
    node->left = node->right = NULL;
    return node;
}

static learn_node *
tree_of(const learn_choices *c, const gsize *rows, gsize count, guint depth)
{
    g_autofree gsize *list = g_memdup2(rows, count * sizeof *list);
    gsize least = MAX(count / 100, 5);
    double sums[LEARN_CHOICES_MOST];
    double all = 0;
    add_sums(c, list, count, sums);
    for (gsize i = 0; i < count; i++)
        for (guint k = 0; k < c->choices; k++)
            all += pow(shares_of(c, list[i])[k] - sums[k] / (double) count, 2);
    learn_node *tree = grow(c, list, count, depth, least, all * LEAST_GAIN);
    for (guint i = 0; i < ROUNDS; i++)
        improve(c, tree, list, count, least);
    return joined(tree);
}

learn_node *
learn_choice_tree(const learn_choices *c, guint depth)
{
    g_autofree gsize *list = g_new(gsize, c->table.rows + 1);
    for (gsize i = 0; i < c->table.rows; i++)
        list[i] = i;
    return tree_of(c, list, c->table.rows, depth);
}

/* ---- how well it chooses --------------------------------------------------------------------- */

static void
add_share(learn_reached *r, double share)
{
    r->arithmetic += share;
    r->harmonic += 1 / share;
}

static void
end_mean(learn_reached *r, gsize count)
{
    r->arithmetic /= (double) count;
    r->harmonic = (double) count / r->harmonic;
}

void
learn_validate_choices(const learn_choices *c, guint folds, guint depth, learn_reached *ret_tree,
                       learn_reached *ret_single, learn_reached *ret_always)
{
    gsize rows = c->table.rows;
    g_autofree gsize *fit = g_new(gsize, rows + 1);
    *ret_tree = *ret_single = (learn_reached){0, 0};
    memset(ret_always, 0, c->choices * sizeof *ret_always);
    for (guint fold = 0; fold < folds; fold++) {
        gsize count = 0;
        double sums[LEARN_CHOICES_MOST];
        for (gsize i = 0; i < rows; i++)
            if (i * folds / rows != fold)
                fit[count++] = i;
        learn_node *tree = tree_of(c, fit, count, depth);
        add_sums(c, fit, count, sums);
        for (gsize i = 0; i < rows; i++) {
            if (i * folds / rows != fold)
                continue;
            const double *share = shares_of(c, i);
            double way = learn_tree_value(tree, c->table.x + i * c->table.features);
            add_share(ret_tree, share[(guint) way]);
            add_share(ret_single, share[largest(sums, c->choices)]);
            for (guint k = 0; k < c->choices; k++)
                add_share(&ret_always[k], share[k]);
        }
        learn_tree_free(tree);
    }
    end_mean(ret_tree, rows);
    end_mean(ret_single, rows);
    for (guint k = 0; k < c->choices; k++)
        end_mean(&ret_always[k], rows);
}
