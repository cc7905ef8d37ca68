/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* esdm-tune --learn: what records of runs tell of the speed of calls. */
#include "learn/learn.h"

#include <math.h>
#include <stdio.h>

#include "esdm-tune/esdm-tune.h"

#define FOLDS      8
#define ROWS_LEAST 40
#define ROWS_MOST  50000
#define RULES_MOST 16
/* Calls that were made again, to tell of them. */
#define AGAIN_LEAST 30
/* A model that is not better than the mean by that says nothing. */
#define WORTH 0.9
/* Numbers that differ by less, as a share of them, are the same but for rounding. */
#define SAME 1e-9

static const double pieces[] = {1 << 10, 4 << 10, 64 << 10};

typedef struct rules {
    json_t *list;
    guint count;
    const learn_table *table;
} rules;

static void
take_rule(const char *text, const learn_node *leaf, void *user)
{
    rules *r = user;
    json_t *object = json_object();
    tool_json_set(object, "rule", tool_json_text(text));
    tool_json_set(object, "value", json_real(leaf->value));
    tool_json_set(object, "deviation", json_real(leaf->deviation));
    tool_json_set(object, "rows", tool_json_u64(leaf->rows));
    tool_json_append(r->list, object);
}

static void
print_rule(const char *text, const learn_node *leaf, void *user)
{
    rules *r = user;
    if (r->count++ < RULES_MOST)
        (void) printf("  %10.4g %s  %5.1f %%  %s\n", leaf->value, r->table->target,
                      100 * (double) leaf->rows / (double) r->table->rows, text);
}

/* Whether all records are as fast: what is left is rounding, and no share of it means anything. */
static bool
is_constant(const learn_table *t)
{
    double low = INFINITY;
    double high = -INFINITY;
    for (gsize i = 0; i < t->rows; i++) {
        low = fmin(low, t->y[i]);
        high = fmax(high, t->y[i]);
    }
    return high - low <= SAME * fmax(fabs(low), fabs(high));
}

/* What nobody can predict: how far calls are apart that are alike. */
static void
print_again(const learn_table *t, const learn_errors *e)
{
    if (e->agains < AGAIN_LEAST)
        return;
    (void) printf(
        "%" G_GSIZE_FORMAT
        " calls had been made before, of the same place and size and with the same share "
        "in memory. Their speeds differ so much that no model of these can err by less "
        "than %.4g %s on the mean; the best one errs by %.4g there, the mean by %.4g: %.1f "
        "times better than the mean is the most that is possible there.\n",
        e->agains, e->least_again, t->target, e->again[e->best], e->again[LEARN_MEAN],
        e->again[LEARN_MEAN] / e->least_again);
}

static void
print_errors(const learn_table *t, const learn_errors *e)
{
    (void) printf("%" G_GSIZE_FORMAT " records. Predicted from the others (%u %s), in %s:\n",
                  t->rows, e->folds, t->runs >= e->folds ? "parts, runs" : "parts", t->target);
    (void) printf("  %-22s  %10s  %10s  %13s  %s\n", "model", "mean error", "median",
                  "of the mean's", "off by a factor of");
    for (learn_kind kind = 0; kind < LEARN_KINDS; kind++) {
        if (isnan(e->mean[kind]))
            continue;
        (void) printf("  %-22s  %10.4g  %10.4g", learn_kind_name(kind), e->mean[kind],
                      e->median[kind]);
        (void) printf("  %13.2f", e->mean[kind] / e->mean[LEARN_MEAN]);
        (void) printf(isnan(e->factor[kind]) ? "\n" : "  %.2f\n", e->factor[kind]);
    }
    print_again(t, e);
    if (t->left_out > 0)
        (void) printf("Left out: %" G_GSIZE_FORMAT
                      " reads, of which it was not asked whether memory had their data.\n",
                      t->left_out);
}

static void
print_sieves(const learn_table *t, const learn_node *tree)
{
    const learn_feature size = {.sizes = true};
    for (gsize i = 0; i < G_N_ELEMENTS(pieces); i++) {
        double limit = learn_sieve_limit(t, tree, pieces[i]);
        g_autofree char *piece = learn_number_text(&size, pieces[i]);
        g_autofree char *hole = learn_number_text(&size, limit);
        if (!isnan(limit))
            (void) printf("Between pieces of %s, holes up to %s: one read that spans both is "
                          "faster than two.\n",
                          piece, hole);
    }
}

static void
print_all(const learn_table *t, const learn_errors *e, const learn_node *tree)
{
    rules r = {.table = t};
    if (is_constant(t)) {
        (void) printf("%" G_GSIZE_FORMAT
                      " records, and all of them have %.4g %s: the mean predicts "
                      "them, and there is nothing to learn. Record calls of other sizes and "
                      "patterns.\n",
                      t->rows, t->y[0], t->target);
        return;
    }
    print_errors(t, e);
    if (!(e->mean[e->best] < WORTH * e->mean[LEARN_MEAN])) {
        (void) printf(
            "\nNothing that is known before a call tells how fast it will be: no rule would "
            "help. Where the calls that were recorded are much alike, record others, of "
            "other sizes and several processes; where they are not, something else "
            "decides, as other users of the storage. Record longer, at another time, "
            "or compare settings by runs: esdm-tune without --learn.\n");
        return;
    }
    (void) printf("\nRules of the tree; their mean, and how many records have it:\n");
    learn_tree_rules(tree, t, print_rule, &r);
    if (r.count > RULES_MOST)
        (void) printf("  and %u more (--json)\n", r.count - RULES_MOST);
    print_sieves(t, tree);
}

static void
print_json(const learn_table *t, const learn_errors *e, const learn_node *tree)
{
    json_t *root = json_object();
    json_t *errors = json_object();
    json_t *factors = json_object();
    json_t *sieves = json_array();
    rules r = {.list = json_array()};
    for (learn_kind kind = 0; kind < LEARN_KINDS; kind++)
        if (!isnan(e->mean[kind]))
            tool_json_set(errors, learn_kind_name(kind), json_real(e->mean[kind]));
    for (learn_kind kind = 0; kind < LEARN_KINDS; kind++)
        if (!isnan(e->factor[kind]))
            tool_json_set(factors, learn_kind_name(kind), json_real(e->factor[kind]));
    if (!is_constant(t))
        learn_tree_rules(tree, t, take_rule, &r);
    for (gsize i = 0; i < G_N_ELEMENTS(pieces); i++) {
        double limit = learn_sieve_limit(t, tree, pieces[i]);
        if (!isnan(limit))
            tool_json_append(sieves, json_pack("{s:f,s:f}", "piece", pieces[i], "hole", limit));
    }
    tool_json_set(root, "records", tool_json_u64(t->rows));
    tool_json_set(root, "left_out", tool_json_u64(t->left_out));
    tool_json_set(root, "target", tool_json_text(t->target));
    tool_json_set(root, "folds", json_integer(e->folds));
    tool_json_set(root, "mean_errors", errors);
    tool_json_set(root, "factors", factors);
    if (e->agains >= AGAIN_LEAST)
        tool_json_set(root, "again",
                      json_pack("{s:I,s:f,s:f,s:f}", "records", (json_int_t) e->agains,
                                "least_error", e->least_again, "error", e->again[e->best],
                                "mean_error", e->again[LEARN_MEAN]));
    tool_json_set(root, "best", tool_json_text(learn_kind_name(e->best)));
    tool_json_set(root, "depth", json_integer(e->depth));
    tool_json_set(root, "rules", r.list);
    tool_json_set(root, "sieve", sieves);
    tool_json_print(root);
}

tool_exit
tune_learn(char **paths)
{
    learn_table table = {.features = 0};
    tool_exit result = TOOL_OK;
    for (char **path = paths; *path != NULL && result == TOOL_OK; path++) {
        if (g_str_has_suffix(*path, ".csv"))
            result = paths[1] == NULL ? learn_load_csv(&table, *path)
                                      : tool_usage("--learn: one table of numbers at a time");
        else
            result = learn_load_records(&table, *path);
    }
    if (result != TOOL_OK)
        return result;
    learn_end_records(&table);
    if (table.rows < ROWS_LEAST) {
        tool_error("there %s %" G_GSIZE_FORMAT " %s of reads and writes; it takes %d to learn "
                   "from them: record longer, or several runs in one database",
                   table.rows == 1 ? "is" : "are", table.rows,
                   table.rows == 1 ? "record" : "records", ROWS_LEAST);
        return TOOL_FAILED;
    }
    learn_thin(&table, ROWS_MOST);
    learn_errors errors = learn_validate(&table, FOLDS);
    learn_node *tree = learn_tree_of_all(&table, errors.depth);
    if (tool.json)
        print_json(&table, &errors, tree);
    else
        print_all(&table, &errors, tree);
    learn_tree_free(tree);
    return TOOL_OK;
}
