/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_LEARN_H
#define ESDM_TOOLS_LEARN_H

/**
 * @file
 * Learning from records of I/O: numbers that are known before a call (its features), and the number
 * that is to be predicted from them. Deterministic. One thread; what is made stays until the end,
 * unless said.
 */

#include "common/common.h"

#define LEARN_FEATURES 16u
/** The feature that says how many bytes ago the same was touched. */
#define LEARN_SINCE      "since"
#define LEARN_TREES_MOST 24u

/** What a feature says of a call, for rules in words. */
typedef struct learn_feature {
    const char *name; /* "bytes" */
    bool sizes;       /* numbers are bytes */
    bool binary;      /* 0 or 1 */
    bool counts;      /* whole numbers */
    const char *less; /* "of less than %s"; with `binary` of 0 */
    const char *more; /* "of %s or more"; with `binary` of 1 */
} learn_feature;

typedef struct learn_table {
    guint features;
    learn_feature feature[LEARN_FEATURES];
    const char *target; /* "MB/s" */
    gsize rows;
    gsize left_out; /* reads of which it is not known whether memory had them, beside others */
    guint runs; /* that were loaded; rows of one are in order of time. 0: of a table of numbers */
    double *x;  /* rows × features */
    double *y;
    guint *run;    /* of each row, from 1 */
    double *again; /* y of the call before of the same place, size and share in memory; NAN: none */
} learn_table;

/** Rows of a table, by their numbers. */
typedef struct learn_rows {
    const learn_table *table;
    gsize *list;
    gsize count;
} learn_rows;

/** Adds a row of the run `table->runs`. @param x of all features. @param again as there. */
void learn_add(learn_table *table, const double *x, double y, double again);
/** Copies a row of the table to the place of another one. */
void learn_move(learn_table *table, gsize to, gsize from);
/** Keeps at most so many rows, evenly chosen. */
void learn_thin(learn_table *table, gsize most);

/* ---- tree (tree.c) -------------------------------------------------------------------------- */

typedef struct learn_node {
    guint feature;
    double split; /* less goes left */
    struct learn_node *left;
    struct learn_node *right; /* NULL: a leaf */
    double value;             /* mean of y */
    double deviation;
    gsize rows;
} learn_node;

/**
 * A regression tree (CART; Breiman et al. 1984): each split is the one that leaves the least sum of
 * squares.
 * @param depth most splits on the way to a leaf. @param least rows of a leaf. */
learn_node *learn_tree(const learn_rows *rows, guint depth, gsize least);
double learn_tree_value(const learn_node *tree, const double *x);
void learn_tree_free(learn_node *tree);
/** Calls `rule` for each leaf with a text of what leads to it, those with most rows first. */
typedef void (*learn_rule)(const char *text, const learn_node *leaf, void *user);
void learn_tree_rules(const learn_node *tree, const learn_table *table, learn_rule rule,
                      void *user);

/** Trees of different rows, whose mean predicts what no split of one tree says (bagging; Breiman
 *  1996). They have no rules. */
typedef struct learn_trees {
    guint count;
    learn_node *tree[LEARN_TREES_MOST];
} learn_trees;
learn_trees *learn_trees_fit(const learn_rows *rows);
double learn_trees_value(const learn_trees *trees, const double *x);
void learn_trees_free(learn_trees *trees);

/** Trees one after the other, each for what those before it leave, by absolute errors (boost.c). */
#define LEARN_BOOSTED_TREES 150u
typedef struct learn_boosted {
    double base;
    double low, high; /* of y: nothing beyond is predicted */
    guint count;
    learn_node *tree[LEARN_BOOSTED_TREES]; /* their values are added */
} learn_boosted;
learn_boosted *learn_boosted_fit(const learn_rows *rows);
double learn_boosted_value(const learn_boosted *model, const double *x);
void learn_boosted_free(learn_boosted *model);

/* ---- linear (linear.c) ---------------------------------------------------------------------- */

/** Least squares, with a little weight on small coefficients (ridge). */
typedef struct learn_linear {
    guint terms;
    guint features;
    bool squares;     /* of logarithms of features, and their products; of the logarithm of y */
    double low, high; /* of y: nothing beyond is predicted */
    double *coefficients;
} learn_linear;

/** @param squares polynomials of degree two of logarithms; else y is linear in the features. NULL:
 *  y is not positive, so that it has no logarithm. */
learn_linear *learn_linear_fit(const learn_rows *rows, bool squares);
double learn_linear_value(const learn_linear *linear, const double *x);
void learn_linear_free(learn_linear *linear);

/* ---- models that compete (folds.c) ---------------------------------------------------------- */

typedef enum learn_kind {
    LEARN_MEAN,
    LEARN_LINEAR,
    LEARN_SQUARES,
    LEARN_TREE,
    LEARN_TREES,
    LEARN_BOOSTED,
    LEARN_KINDS
} learn_kind;
/** "the mean", "linear", "squares of logarithms", "tree", "many trees", "boosted trees" */
const char *learn_kind_name(learn_kind kind);

typedef struct learn_errors {
    double mean[LEARN_KINDS];   /* |predicted - seen|; NAN: there is no such model of the data */
    double median[LEARN_KINDS]; /* the same */
    double factor[LEARN_KINDS]; /* by which it is off, the geometric mean; NAN: not positive */
    double again[LEARN_KINDS];  /* as `mean`, of calls that were made again */
    double least_again;         /* what any model errs by at least that does not tell these apart */
    gsize agains;
    guint folds;
    gsize rows;
    guint depth; /* of the tree */
    learn_kind best;
} learn_errors;

/** Fits to all parts but one, predicts that, and so on in turn (k-fold cross-validation). Parts are
 *  runs, where there are four at least, else stretches of time: neighbours in time are alike, and
 *  would tell of each other. The depth of the tree is chosen in each fold by the rows that it is
 *  fitted to. */
learn_errors learn_validate(const learn_table *table, guint folds);
/** A tree of that depth over all rows. */
learn_node *learn_tree_of_all(const learn_table *table, guint depth);
/** The depth that a part of the rows, which the others predict, speaks for. */
guint learn_choose_depth(const learn_rows *rows);

/* ---- which way (choice.c) ------------------------------------------------------------------- */

#define LEARN_CHOICES_MOST 32u

/** Cases, and what each way to do them reaches of the best one. */
typedef struct learn_choices {
    learn_table table; /* y is not used */
    guint choices;
    const char *name[LEARN_CHOICES_MOST];
    double *share; /* rows × choices: the time of the best way, of the way's; 1: it is the best */
} learn_choices;

/** Means over cases of what is reached of the best way. */
typedef struct learn_reached {
    double arithmetic, harmonic;
} learn_reached;

/** A tree whose leaves' `value` is the number of the way to take. learn_tree_free(). */
learn_node *learn_choice_tree(const learn_choices *c, guint depth);
/** What is reached in parts (stretches of rows) that were not learned from: by a tree, by the one
 *  way that is best for the others. @param ret_always by each way, for all; room for `choices`. */
void learn_validate_choices(const learn_choices *c, guint folds, guint depth,
                            learn_reached *ret_tree, learn_reached *ret_single,
                            learn_reached *ret_always);
/** A file of comma-separated numbers with a head; the last `choices` columns are what each way
 *  took, positive. */
tool_exit learn_load_choices(learn_choices *ret, const char *path, guint choices);

/* ---- records (records.c, csv.c) ------------------------------------------------------------- */

/** Adds the calls of a folder of esdm-run --records, or of a file of JSON Lines of "monitor". */
tool_exit learn_load_records(learn_table *table, const char *path);
/** When all runs are loaded: leaves out reads of which it is not known whether memory had them,
 * where it is of others. */
void learn_end_records(learn_table *table);
/** A file of comma-separated numbers with a head; the last column is what is predicted. */
tool_exit learn_load_csv(learn_table *table, const char *path);

/** The text of a number of a feature. Owned. */
char *learn_number_text(const learn_feature *feature, double number);

/** From what hole between two pieces on two reads are faster than one that spans both: bytes; NAN:
 *  the records do not tell. @param piece bytes of each. */
double learn_sieve_limit(const learn_table *table, const learn_node *tree, double piece);

#endif
