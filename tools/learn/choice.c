/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Which of several ways to do something is the best one, by what is known before: a tree (CART) of
 * all ways at once. Each split is the one that leaves the least squares of what each way reaches of
 * the best one; a leaf takes the way that reaches most on the mean.
 */
#include "learn/learn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_GAIN 1e-4 /* of all squares, that a split has to take away */

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

/* Two leaves that take the same way are one. */
static learn_node *
joined(learn_node *node)
{
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
grow(const learn_choices *c, gsize *list, gsize count, guint depth, gsize least, double enough)
{
    learn_node *node = g_new0(learn_node, 1);
    double sums[LEARN_CHOICES_MOST];
    double best = -1;
    add_sums(c, list, count, sums);
    node->rows = count;
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
    gsize n = 0;
    for (gsize i = 0; i < count; i++) {
        if (!(x_of(c, list[i], node->feature) < node->split))
            continue;
        gsize row = list[i];
        list[i] = list[n];
        list[n++] = row;
    }
    if (n == 0 || n == count)
        return node;
    node->left = grow(c, list, n, depth - 1, least, enough);
    node->right = grow(c, list + n, count - n, depth - 1, least, enough);
    return joined(node);
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
    return grow(c, list, count, depth, least, all * LEAST_GAIN);
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
