/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_META_TREE_H
#define ESDM_BASE_META_TREE_H

/** @file Expressions of queries, for metadata stores that write them as SQL. Pure functions. */

#include "esdm/sys/meta_store.h"

/** Whether something is so of an expression whose comparisons say so. */
typedef bool (*esdm__tree_test)(size_t condition, bool holds, void *user);
/** ALL needs all, ANY some; with `either`: both some. */
bool esdm__tree_is(const esdm_meta_expression *e, size_t node, bool either, esdm__tree_test test,
                   void *user);

/** How often a comparison may be met that was not counted to the end. */
#define ESDM__TREE_MANY (UINT64_MAX - 1)

/**
 * Comparisons that find all that can meet the expression: of what must hold together the part that
 * the fewest meet, and all of what are alternatives.
 * @param counts of each comparison.
 * @param ret_conditions room for all of them; may be NULL. @param ret_sum of their counts.
 * @return false: there are none, as what must fail alone decides somewhere.
 */
bool esdm__tree_cover(const esdm_meta_expression *e, const uint64_t *counts, size_t *ret_conditions,
                      size_t *ret_count, uint64_t *ret_sum);
/** Whether the counts matter to that. */
bool esdm__tree_has_choice(const esdm_meta_expression *e);
/** Whether all comparisons are to hold, or fail, together; with `any`: are alternatives that hold.
 */
bool esdm__tree_is_flat(const esdm_meta_expression *e, bool any);

/** The attribute of which nothing is asked but that containers have some value of it, as by "exists
 *  :NAME"; borrowed. NULL: it is another question. */
const char *esdm__tree_attribute_of_all(const esdm_meta_expression *e);

/**
 * An expression that is a list of comparisons gets nodes: all of them are to hold.
 * @param ret_nodes owned; NULL when it has nodes already.
 * @param ret_holds of each comparison: set where it is to hold somewhere.
 */
esdm_status esdm__tree_prepare(esdm_meta_expression *e, esdm_meta_node **ret_nodes, bool *ret_holds,
                               esdm_error *err);
/** esdm__tree_cover(); where there is none, all that are to hold, by what datasets are found. */
bool esdm__tree_starts(const esdm_meta_expression *e, const bool *holds, const uint64_t *counts,
                       size_t *ret_conditions, size_t *ret_count, uint64_t *ret_sum);

/** Writes comparison `condition`, in brackets where it needs them. */
typedef void (*esdm__tree_leaf)(size_t condition, bool holds, void *user);
typedef struct esdm__tree_writer {
    void (*put)(const char *text, void *user);
    esdm__tree_leaf leaf;
    void *user;
} esdm__tree_writer;

/** The expression below a node as SQL. Alternatives stand in brackets of two each, as parsers have
 *  a bound on how long a chain of them is. */
void esdm__tree_put(const esdm_meta_expression *e, size_t node, const esdm__tree_writer *writer);
/**
 * The same, and some comparison of an alternative that holds is met in another, stronger way.
 * @param own writes that. @param has of comparisons that can be.
 */
void esdm__tree_put_own(const esdm_meta_expression *e, size_t node, const esdm__tree_writer *writer,
                        const esdm__tree_writer *own, esdm__tree_test has);

#endif
