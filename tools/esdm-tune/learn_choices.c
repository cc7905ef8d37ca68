/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* esdm-tune --learn --choices: a small tree that tells which of several ways to take. */
#include <math.h>
#include <stdio.h>

#include "esdm-tune/esdm-tune.h"
#include "learn/learn.h"

#define FOLDS       8
#define CASES_LEAST 40

typedef struct telling {
    const learn_choices *choices;
    json_t *list; /* NULL: printed */
} telling;

static void
tell_rule(const char *text, const learn_node *leaf, void *user)
{
    const telling *t = user;
    const char *name = t->choices->name[(guint) leaf->value];
    if (t->list != NULL)
        tool_json_append(t->list, json_pack("{s:s,s:s,s:I}", "rule", text, "choice", name, "cases",
                                            (json_int_t) leaf->rows));
    else
        (void) printf("  %-16s %5.1f %%  %s\n", name,
                      100 * (double) leaf->rows / (double) t->choices->table.rows, text);
}

static json_t *
reached_json(const learn_reached *r)
{
    return json_pack("{s:f,s:f}", "arithmetic", r->arithmetic, "harmonic", r->harmonic);
}

static void
print_reached(const char *what, const learn_reached *r)
{
    (void) printf("  %-30s  %10.3f  %10.3f\n", what, r->arithmetic, r->harmonic);
}

static void
tell_text(const learn_choices *c, guint depth, const learn_node *tree, const learn_reached *by_tree,
          const learn_reached *single, const learn_reached *always)
{
    telling t = {.choices = c};
    (void) printf("%" G_GSIZE_FORMAT " cases, %u ways. What is reached of the best way of each "
                  "case, chosen from other cases (%d parts):\n  %-30s  %10s  %10s\n",
                  c->table.rows, c->choices, FOLDS, "", "mean", "harmonic");
    g_autofree char *name = g_strdup_printf("tree of depth %u", depth);
    print_reached(name, by_tree);
    print_reached("the one best way for all", single);
    for (guint k = 0; k < c->choices; k++) {
        g_autofree char *way = g_strconcat("always ", c->name[k], NULL);
        print_reached(way, &always[k]);
    }
    if (by_tree->arithmetic <= single->arithmetic) {
        (void) printf("\nNothing that is known before tells which way is the best one: take one "
                      "for all.\n");
        return;
    }
    (void) printf("\nWhich way, how many cases have it, and when:\n");
    learn_tree_rules(tree, &c->table, tell_rule, &t);
}

static void
tell_json(const learn_choices *c, guint depth, const learn_node *tree, const learn_reached *by_tree,
          const learn_reached *single, const learn_reached *always)
{
    telling t = {.choices = c, .list = json_array()};
    json_t *root = json_object();
    json_t *each = json_object();
    learn_tree_rules(tree, &c->table, tell_rule, &t);
    for (guint k = 0; k < c->choices; k++)
        tool_json_set(each, c->name[k], reached_json(&always[k]));
    tool_json_set(root, "cases", tool_json_u64(c->table.rows));
    tool_json_set(root, "folds", json_integer(FOLDS));
    tool_json_set(root, "depth", json_integer(depth));
    tool_json_set(root, "tree", reached_json(by_tree));
    tool_json_set(root, "one_for_all", reached_json(single));
    tool_json_set(root, "always", each);
    tool_json_set(root, "rules", t.list);
    tool_json_print(root);
}

tool_exit
tune_learn_choices(const char *path, guint choices, guint depth)
{
    learn_choices c;
    tool_exit result = learn_load_choices(&c, path, choices);
    if (result != TOOL_OK)
        return result;
    if (c.table.rows < CASES_LEAST) {
        tool_error("%s: there are %" G_GSIZE_FORMAT " cases; it takes %d to learn from them", path,
                   c.table.rows, CASES_LEAST);
        return TOOL_FAILED;
    }
    learn_reached by_tree;
    learn_reached single;
    learn_reached always[LEARN_CHOICES_MOST];
    learn_validate_choices(&c, FOLDS, depth, &by_tree, &single, always);
    learn_node *tree = learn_choice_tree(&c, depth);
    if (tool.json)
        tell_json(&c, depth, tree, &by_tree, &single, always);
    else
        tell_text(&c, depth, tree, &by_tree, &single, always);
    learn_tree_free(tree);
    return TOOL_OK;
}
