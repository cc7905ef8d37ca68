/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file An expression as alternatives: "not" is moved to the comparisons, "and" into "or". */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/meta_checks.h"
#include "query/query.h"

void
esdm__query_terms_clear(esdm__query_terms *terms)
{
    for (size_t i = 0; i < terms->count; i++)
        free(terms->items[i].conditions);
    free(terms->items);
    *terms = (esdm__query_terms){0};
}

static esdm_status
single(size_t condition, bool negated, esdm__query_terms *ret, esdm_error *err)
{
    esdm__query_terms terms = {.items = calloc(1, sizeof *terms.items), .count = 1};
    size_t *conditions = malloc(sizeof *conditions);
    if (terms.items == NULL || conditions == NULL) {
        free(terms.items);
        free(conditions);
        return esdm__error_nomem(err, sizeof *conditions, "a query");
    }
    conditions[0] = condition;
    terms.items[0] =
        (esdm__query_term){.conditions = conditions, .holds = !negated, .fails = negated};
    *ret = terms;
    return ESDM_OK;
}

/* What nothing meets has no alternative; its opposite one that says nothing. */
static esdm_status
never(bool negated, esdm__query_terms *ret, esdm_error *err)
{
    *ret = (esdm__query_terms){.items = calloc(1, sizeof *ret->items), .count = negated ? 1 : 0};
    return ret->items != NULL ? ESDM_OK : esdm__error_nomem(err, sizeof *ret->items, "a query");
}

static esdm_status
too_many(esdm_error *err)
{
    return esdm__error_set(err, ESDM_EINVAL,
                           "the query has more than %d alternatives once its \"or\" are multiplied "
                           "out, or more than %d comparisons in one; ask in parts",
                           ESDM__QUERY_TERMS_MAX, ESDM__CONDITIONS_MAX);
}

/* Takes both lists; *a becomes the longer one. */
static esdm_status
join_either(esdm__query_terms *a, esdm__query_terms *b, esdm_error *err)
{
    if (a->count + b->count > ESDM__QUERY_TERMS_MAX)
        return too_many(err);
    esdm__query_term *items = realloc(a->items, (a->count + b->count + 1) * sizeof *items);
    if (items == NULL)
        return esdm__error_nomem(err, (a->count + b->count) * sizeof *items, "a query");
    memcpy(items + a->count, b->items, b->count * sizeof *items);
    a->items = items;
    a->count += b->count;
    free(b->items);
    *b = (esdm__query_terms){0};
    return ESDM_OK;
}

/* One that says nothing has no list. */
static size_t *
copy_numbers(size_t *to, const size_t *from, size_t first, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = from[first + i];
    return to + count;
}

/* What both terms say. */
static esdm_status
join_two(const esdm__query_term *a, const esdm__query_term *b, esdm__query_term *ret,
         esdm_error *err)
{
    size_t count = a->holds + a->fails + b->holds + b->fails;
    if (count > ESDM__CONDITIONS_MAX)
        return too_many(err);
    size_t *at = malloc((count + 1) * sizeof *at);
    if (at == NULL)
        return esdm__error_nomem(err, count * sizeof *at, "a query");
    *ret = (esdm__query_term){
        .conditions = at, .holds = a->holds + b->holds, .fails = a->fails + b->fails};
    at = copy_numbers(at, a->conditions, 0, a->holds);
    at = copy_numbers(at, b->conditions, 0, b->holds);
    at = copy_numbers(at, a->conditions, a->holds, a->fails);
    (void) copy_numbers(at, b->conditions, b->holds, b->fails);
    return ESDM_OK;
}

static esdm_status
join_all(const esdm__query_terms *a, const esdm__query_terms *b, esdm__query_terms *ret,
         esdm_error *err)
{
    if (a->count * b->count > ESDM__QUERY_TERMS_MAX)
        return too_many(err);
    esdm__query_terms terms = {.items = calloc(a->count * b->count + 1, sizeof *terms.items)};
    if (terms.items == NULL)
        return esdm__error_nomem(err, a->count * b->count * sizeof *terms.items, "a query");
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < a->count && status == ESDM_OK; i++) {
        for (size_t j = 0; j < b->count && status == ESDM_OK; j++) {
            status = join_two(&a->items[i], &b->items[j], &terms.items[terms.count], err);
            terms.count += status == ESDM_OK;
        }
    }
    if (status == ESDM_OK)
        *ret = terms;
    else
        esdm__query_terms_clear(&terms);
    return status;
}

/* The depth of an expression is limited where it is read. */
static esdm_status
terms_of(const esdm__query *query, size_t number, bool negated, esdm__query_terms *ret,
         esdm_error *err)
{
    const esdm__query_node *node = &query->nodes[number];
    if (node->kind == ESDM__QUERY_COMPARISON)
        return single(node->left, negated, ret, err);
    if (node->kind == ESDM__QUERY_NEVER)
        return never(negated, ret, err);
    if (node->kind == ESDM__QUERY_OPEN)
        return esdm__error_set(err, ESDM_EINVAL, "query: comparison %zu was not looked up",
                               node->left + 1);
    if (node->kind == ESDM__QUERY_NOT)
        return terms_of(query, node->left, !negated, ret, err);
    esdm__query_terms a = {0}, b = {0}, both = {0};
    esdm_status status = terms_of(query, node->left, negated, &a, err);
    if (status == ESDM_OK)
        status = terms_of(query, node->right, negated, &b, err);
    bool either = (node->kind == ESDM__QUERY_OR) != negated;
    if (status == ESDM_OK && either)
        status = join_either(&a, &b, err);
    else if (status == ESDM_OK)
        status = join_all(&a, &b, &both, err);
    if (status == ESDM_OK && either) {
        *ret = a;
        return ESDM_OK;
    }
    if (status == ESDM_OK)
        *ret = both;
    esdm__query_terms_clear(&a);
    esdm__query_terms_clear(&b);
    return status;
}

esdm_status
esdm__query_terms_make(const esdm__query *query, esdm__query_terms *ret_terms, esdm_error *err)
{
    return terms_of(query, query->root, false, ret_terms, err);
}
