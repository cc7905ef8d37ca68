/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "base/meta_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

bool
esdm__tree_is(const esdm_meta_expression *e, size_t node, bool either, esdm__tree_test test,
              void *user)
{
    const esdm_meta_node *n = &e->nodes[node];
    if (n->kind == ESDM_META_HOLDS || n->kind == ESDM_META_FAILS)
        return test(n->condition, n->kind == ESDM_META_HOLDS, user);
    bool some = either || n->kind == ESDM_META_ANY;
    for (size_t at = node + 1; at < node + n->size; at += e->nodes[at].size) {
        if (esdm__tree_is(e, at, either, test, user) == some)
            return some;
    }
    return !some;
}

/* ---- where to begin ------------------------------------------------------------------------- */

static uint64_t
weigh(const esdm_meta_expression *e, size_t node, const uint64_t *counts)
{
    const esdm_meta_node *n = &e->nodes[node];
    if (n->kind == ESDM_META_HOLDS)
        return counts[n->condition];
    bool any = n->kind == ESDM_META_ANY;
    uint64_t sum = any ? 0 : UINT64_MAX;
    if (n->kind == ESDM_META_FAILS)
        return sum;
    for (size_t at = node + 1; at < node + n->size; at += e->nodes[at].size) {
        uint64_t one = weigh(e, at, counts);
        if (any && one == UINT64_MAX)
            return one;
        if (any)
            sum = sum < ESDM__TREE_MANY - one ? sum + one : ESDM__TREE_MANY;
        else if (one < sum)
            sum = one;
    }
    return sum;
}

static void
collect(const esdm_meta_expression *e, size_t node, const uint64_t *counts, size_t *conditions,
        size_t *count)
{
    const esdm_meta_node *n = &e->nodes[node];
    size_t best = 0;
    uint64_t least = UINT64_MAX;
    if (n->kind == ESDM_META_HOLDS)
        conditions[(*count)++] = n->condition;
    if (n->kind == ESDM_META_HOLDS || n->kind == ESDM_META_FAILS)
        return;
    for (size_t at = node + 1; at < node + n->size; at += e->nodes[at].size) {
        if (n->kind == ESDM_META_ANY) {
            collect(e, at, counts, conditions, count);
            continue;
        }
        uint64_t one = weigh(e, at, counts);
        if (one < least) {
            least = one;
            best = at;
        }
    }
    if (least < UINT64_MAX)
        collect(e, best, counts, conditions, count);
}

bool
esdm__tree_cover(const esdm_meta_expression *e, const uint64_t *counts, size_t *ret_conditions,
                 size_t *ret_count, uint64_t *ret_sum)
{
    *ret_sum = weigh(e, 0, counts);
    *ret_count = 0;
    if (*ret_sum == UINT64_MAX)
        return false;
    if (ret_conditions != NULL)
        collect(e, 0, counts, ret_conditions, ret_count);
    return true;
}

static bool
finds(size_t condition, bool holds, void *user)
{
    (void) condition, (void) user;
    return holds;
}

/* Whether what must hold beside each other is more than one thing that finds something. */
static bool
has_choice(const esdm_meta_expression *e, size_t node)
{
    const esdm_meta_node *n = &e->nodes[node];
    size_t finding = 0;
    for (size_t at = node + 1; at < node + n->size; at += e->nodes[at].size) {
        bool all = e->nodes[at].kind == ESDM_META_ALL;
        bool some = esdm__tree_is(e, at, all, finds, NULL);
        finding += some;
        if (has_choice(e, at) || (n->kind == ESDM_META_ALL && finding > 1))
            return true;
    }
    return false;
}

bool
esdm__tree_has_choice(const esdm_meta_expression *e)
{
    return has_choice(e, 0);
}

bool
esdm__tree_is_flat(const esdm_meta_expression *e, bool any)
{
    if (e->nnodes == 1)
        return e->nodes[0].kind == ESDM_META_HOLDS;
    if (e->nodes[0].kind != (any ? ESDM_META_ANY : ESDM_META_ALL))
        return false;
    for (size_t i = 1; i < e->nnodes; i++) {
        if (e->nodes[i].kind != ESDM_META_HOLDS && (any || e->nodes[i].kind != ESDM_META_FAILS))
            return false;
    }
    return true;
}

/* ---- text ----------------------------------------------------------------------------------- */

typedef void (*put_part)(size_t node, void *user);

/* Writes `count` parts that stand beside each other. @return the node behind them. */
static size_t
put_beside(const esdm_meta_expression *e, size_t node, size_t count, const char *joint,
           const esdm__tree_writer *writer, put_part part, void *user)
{
    if (count == 1) {
        part(node, user);
        return node + e->nodes[node].size;
    }
    writer->put("(", writer->user);
    node = put_beside(e, node, count / 2, joint, writer, part, user);
    writer->put(joint, writer->user);
    node = put_beside(e, node, count - count / 2, joint, writer, part, user);
    writer->put(")", writer->user);
    return node;
}

static size_t
count_parts(const esdm_meta_expression *e, size_t node)
{
    size_t count = 0;
    for (size_t at = node + 1; at < node + e->nodes[node].size; at += e->nodes[at].size)
        count++;
    return count;
}

/* A list of comparisons as nodes. */
static esdm_status
make_nodes(esdm_meta_expression *e, esdm_meta_node **ret_nodes, esdm_error *err)
{
    size_t count = e->nconditions + 1;
    esdm_meta_node *nodes = calloc(count, sizeof *nodes);
    if (nodes == NULL)
        return esdm__error_nomem(err, count * sizeof *nodes, "a query");
    nodes[0] = (esdm_meta_node){ESDM_META_ALL, 0, (uint32_t) count};
    for (size_t i = 1; i < count; i++)
        nodes[i] = (esdm_meta_node){ESDM_META_HOLDS, (uint32_t) i - 1, 1};
    e->nodes = nodes;
    e->nnodes = count;
    *ret_nodes = nodes;
    return ESDM_OK;
}

const char *
esdm__tree_attribute_of_all(const esdm_meta_expression *e)
{
    const esdm_meta_condition *c = e->conditions;
    bool one = e->nconditions == 1 && e->nnodes <= 2 &&
               (e->nnodes == 0 || e->nodes[e->nnodes - 1].kind == ESDM_META_HOLDS);
    bool any = one && c->op == ESDM_META_GLOB && !c->is_number && strcmp(c->text, "*") == 0 &&
               !esdm_meta_is_extent(c->attribute);
    return any && c->variable != NULL && c->variable[0] == '\0' ? c->attribute : NULL;
}

esdm_status
esdm__tree_prepare(esdm_meta_expression *e, esdm_meta_node **ret_nodes, bool *ret_holds,
                   esdm_error *err)
{
    *ret_nodes = NULL;
    esdm_status status = e->nnodes == 0 ? make_nodes(e, ret_nodes, err) : ESDM_OK;
    for (size_t i = 0; i < e->nnodes && status == ESDM_OK; i++) {
        if (e->nodes[i].kind == ESDM_META_HOLDS)
            ret_holds[e->nodes[i].condition] = true;
    }
    return status;
}

bool
esdm__tree_starts(const esdm_meta_expression *e, const bool *holds, const uint64_t *counts,
                  size_t *ret_conditions, size_t *ret_count, uint64_t *ret_sum)
{
    bool covered = esdm__tree_cover(e, counts, ret_conditions, ret_count, ret_sum);
    for (size_t i = 0; i < e->nconditions && !covered; i++) {
        if (holds[i])
            ret_conditions[(*ret_count)++] = i;
    }
    return covered;
}

typedef struct writing {
    const esdm_meta_expression *e;
    const esdm__tree_writer *writer, *own;
    esdm__tree_test has;
} writing;

static void
put_plain(size_t node, void *user)
{
    const writing *w = user;
    const esdm_meta_node *n = &w->e->nodes[node];
    bool any = n->kind == ESDM_META_ANY;
    size_t count = count_parts(w->e, node);
    if (n->kind == ESDM_META_HOLDS || n->kind == ESDM_META_FAILS)
        w->writer->leaf(n->condition, n->kind == ESDM_META_HOLDS, w->writer->user);
    else if (count == 0)
        w->writer->put(any ? "(1 = 0)" : "(1 = 1)", w->writer->user);
    else
        (void) put_beside(w->e, node + 1, count, any ? " OR " : " AND ", w->writer, put_plain,
                          user);
}

void
esdm__tree_put(const esdm_meta_expression *e, size_t node, const esdm__tree_writer *writer)
{
    put_plain(node, &(writing){.e = e, .writer = writer});
}

static void
put_own(size_t node, void *user)
{
    const writing *w = user;
    const esdm_meta_node *n = &w->e->nodes[node];
    if (!esdm__tree_is(w->e, node, true, w->has, w->own->user)) {
        w->writer->put("(1 = 0)", w->writer->user);
        return;
    }
    if (n->kind == ESDM_META_HOLDS) {
        w->own->leaf(n->condition, true, w->own->user);
        return;
    }
    size_t count = count_parts(w->e, node);
    bool all = n->kind == ESDM_META_ALL;
    w->writer->put("(", w->writer->user);
    (void) put_beside(w->e, node + 1, count, " OR ", w->writer, put_own, user);
    if (all) {
        w->writer->put(" AND ", w->writer->user);
        (void) put_beside(w->e, node + 1, count, " AND ", w->writer, put_plain, user);
    }
    w->writer->put(")", w->writer->user);
}

void
esdm__tree_put_own(const esdm_meta_expression *e, size_t node, const esdm__tree_writer *writer,
                   const esdm__tree_writer *own, esdm__tree_test has)
{
    put_own(node, &(writing){.e = e, .writer = writer, .own = own, .has = has});
}
