/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Nodes and comparisons of a query, appended one by one. */

#include "base/buffer.h"
#include "base/error.h"
#include "query/query.h"

esdm_status
esdm__query_append_node(esdm__query *query, esdm__query_node node, size_t *ret_node,
                        esdm_error *err)
{
    if (!esdm__array_grow(&query->nodes, query->nnodes, sizeof node))
        return esdm__error_nomem(err, sizeof node, "a query");
    query->nodes[query->nnodes] = node;
    *ret_node = query->nnodes++;
    return ESDM_OK;
}

esdm_status
esdm__query_append_condition(esdm__query *query, size_t column, esdm_meta_condition **ret,
                             esdm_error *err)
{
    size_t count = query->nconditions;
    if (count == ESDM__QUERY_TERMS_MAX)
        return esdm__error_set(err, ESDM_EINVAL,
                               "query, column %zu: more than %d comparisons; ask in parts", column,
                               ESDM__QUERY_TERMS_MAX);
    if (!esdm__array_grow(&query->conditions, count, sizeof *query->conditions) ||
        !esdm__array_grow(&query->regexes, count, sizeof *query->regexes) ||
        !esdm__array_grow(&query->columns, count, sizeof *query->columns))
        return esdm__error_nomem(err, sizeof *query->conditions, "a query");
    query->regexes[count] = NULL;
    query->columns[count] = column;
    *ret = &query->conditions[query->nconditions++];
    **ret = (esdm_meta_condition){0};
    return ESDM_OK;
}
