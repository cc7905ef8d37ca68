/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file A query as one question to a store. */

#include <stdlib.h>

#include "base/buffer.h"
#include "base/error.h"
#include "query/query.h"

typedef struct making {
    const esdm__query *query;
    esdm_meta_node *nodes; /* owned */
    size_t count;
    bool too_deep;
    esdm_error *err;
} making;

static esdm_status
append(making *m, esdm_meta_node_kind kind, size_t condition)
{
    if (!esdm__array_grow(&m->nodes, m->count, sizeof *m->nodes))
        return esdm__error_nomem(m->err, sizeof *m->nodes, "a query");
    m->nodes[m->count++] = (esdm_meta_node){kind, (uint32_t) condition, 1};
    return ESDM_OK;
}

/* Appends a part. @param into how what stands around it joins it: alike, it needs no node. */
static esdm_status
put(making *m, size_t number, bool negated, esdm_meta_node_kind into, int depth)
{
    const esdm__query_node *node = &m->query->nodes[number];
    size_t at = m->count;
    if (node->kind == ESDM__QUERY_NOT)
        return put(m, node->left, !negated, into, depth);
    if (node->kind == ESDM__QUERY_COMPARISON)
        return append(m, negated ? ESDM_META_FAILS : ESDM_META_HOLDS, node->left);
    if (node->kind == ESDM__QUERY_NEVER)
        return append(m, negated ? ESDM_META_ALL : ESDM_META_ANY, 0);
    if (node->kind == ESDM__QUERY_OPEN)
        return esdm__error_set(m->err, ESDM_EINVAL, "query: comparison %zu was not looked up",
                               node->left + 1);
    bool any = (node->kind == ESDM__QUERY_OR) != negated;
    esdm_meta_node_kind kind = any ? ESDM_META_ANY : ESDM_META_ALL;
    esdm_status status = kind != into ? append(m, kind, 0) : ESDM_OK;
    depth += kind != into;
    m->too_deep |= depth > ESDM_META_EXPRESSION_DEPTH_MAX;
    if (status == ESDM_OK && !m->too_deep)
        status = put(m, node->left, negated, kind, depth);
    if (status == ESDM_OK && !m->too_deep)
        status = put(m, node->right, negated, kind, depth);
    if (status == ESDM_OK && kind != into)
        m->nodes[at].size = (uint32_t) (m->count - at);
    return status;
}

esdm_status
esdm__query_expression(const esdm__query *query, esdm_meta_expression *ret_expression,
                       esdm_meta_node **ret_nodes, esdm_error *err)
{
    making m = {.query = query, .err = err};
    *ret_nodes = NULL;
    if (query->nconditions > ESDM_META_EXPRESSION_CONDITIONS_MAX)
        return ESDM_OK;
    for (size_t i = 0; i < query->nconditions; i++) {
        if (query->regexes[i] != NULL)
            return ESDM_OK;
    }
    /* None of both: neither kind of node is like what stands around it. */
    esdm_status status = put(&m, query->root, false, ESDM_META_HOLDS, 0);
    if (status != ESDM_OK || m.too_deep || query->nconditions == 0) {
        free(m.nodes);
        return status;
    }
    *ret_nodes = m.nodes;
    *ret_expression = (esdm_meta_expression){.conditions = query->conditions,
                                             .nconditions = query->nconditions,
                                             .nodes = m.nodes,
                                             .nnodes = m.count,
                                             .most_ms = query->most_ms};
    return ESDM_OK;
}
