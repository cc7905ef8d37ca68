/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Queries over attributes: choosing where to begin, running them, and counting by values. */

#include <stdlib.h>

#include "base/error.h"
#include "base/meta_checks.h"
#include "base/meta_tree.h"
#include "find.h"

typedef postgres__find_query query;

/* Objects that are counted at first for each condition, how much more each time, and when it does
 * not matter any more. */
#define COUNT_FIRST  UINT64_C(256)
#define COUNT_GROWTH 64u
#define COUNT_LAST   (UINT64_C(1) << 32)
/* Objects of a sample that say how many there are. */
#define SAMPLE_LEAST 3

/* ---- running it ----------------------------------------------------------------------------- */

static esdm_status
ask(postgres__store *store, query *q, PGresult **ret_result, esdm_error *err)
{
    if (q->sql.failed)
        return esdm__error_nomem(err, q->sql.bytes, "a query");
    esdm_status status = postgres__enter(store, err);
    if (status != ESDM_OK)
        return status;
    status = postgres__query(store, (const char *) q->sql.data, &q->params, ret_result, err);
    postgres__leave(store);
    return status;
}

/* What many objects meet is seen in a sample: the index would have to be read to the end for it. */
static esdm_status
look_at_sample(postgres__store *store, query *q, bool extents, esdm_error *err)
{
    PGresult *result = NULL;
    postgres__find_put_sample(q, extents);
    esdm_status status = ask(store, q, &result, err);
    for (size_t k = 0; k < 2 * q->nconditions && status == ESDM_OK; k++) {
        uint64_t seen = postgres__u64(result, 0, (int) k + 1);
        if (seen >= SAMPLE_LEAST)
            q->counts[k] = seen * postgres__u64(result, 0, 0);
    }
    PQclear(result);
    return status;
}

static esdm_status
look_at_samples(postgres__store *store, query *q, esdm_error *err)
{
    bool has[2] = {false, false};
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < q->nconditions; i++) {
        q->counts[2 * i] = q->counts[2 * i + 1] = POSTGRES__COUNT_UNKNOWN;
        has[postgres__find_is_extent(&q->conditions[i])] |= q->holds[i];
    }
    for (int extents = 0; extents < 2 && status == ESDM_OK; extents++) {
        if (has[extents])
            status = look_at_sample(store, q, extents != 0, err);
    }
    return status;
}

/* What the index says of those that are not known, up to a limit. */
static esdm_status
count_up_to(postgres__store *store, query *q, uint64_t limit, uint64_t *sums, bool *ret_more,
            esdm_error *err)
{
    PGresult *result = NULL;
    postgres__find_put_counts(q, limit);
    esdm_status status = ask(store, q, &result, err);
    *ret_more = false;
    for (size_t i = 0; i < q->nconditions && status == ESDM_OK; i++) {
        sums[i] = 0;
        for (size_t k = 2 * i; k < 2 * i + 2; k++) {
            bool unknown = q->counts[k] == POSTGRES__COUNT_UNKNOWN;
            uint64_t count = unknown ? postgres__u64(result, 0, (int) k) : q->counts[k];
            if (unknown && count < limit)
                q->counts[k] = count;
            *ret_more |= unknown && count >= limit;
            sums[i] += count;
        }
    }
    PQclear(result);
    return status;
}

static esdm_status
count_all(postgres__store *store, query *q, uint64_t *sums, esdm_error *err)
{
    q->counts = calloc(2 * q->nconditions, sizeof *q->counts);
    if (q->counts == NULL)
        return esdm__error_nomem(err, q->nconditions * sizeof *q->counts, "a query");
    esdm_status status = look_at_samples(store, q, err);
    bool more = true;
    for (uint64_t limit = COUNT_FIRST; limit < COUNT_LAST && more; limit *= COUNT_GROWTH) {
        if (status == ESDM_OK)
            status = count_up_to(store, q, limit, sums, &more, err);
        (void) esdm__tree_cover(&q->expression, sums, NULL, &q->nstarts, &q->least);
        more &= status == ESDM_OK && q->least >= limit;
    }
    return status;
}

/* Conditions by which to begin: those that the fewest objects can meet. */
static esdm_status
choose_starts(postgres__store *store, query *q, esdm_error *err)
{
    uint64_t *sums = calloc(q->nconditions, sizeof *sums);
    if (sums == NULL)
        return esdm__error_nomem(err, q->nconditions * sizeof *sums, "a query");
    esdm_status status =
        esdm__tree_has_choice(&q->expression) ? count_all(store, q, sums, err) : ESDM_OK;
    q->covered =
        esdm__tree_starts(&q->expression, q->holds, sums, q->starts, &q->nstarts, &q->least);
    free(sums);
    return status;
}

static esdm_status
bind_all(postgres__store *store, query *q, esdm_error *err)
{
    esdm_status status = esdm__tree_prepare(&q->expression, &q->nodes, q->holds, err);
    if (status == ESDM_OK && q->nodes != NULL && q->nconditions == 1) { /* it stands for itself */
        q->expression.nodes = q->nodes + 1;
        q->expression.nnodes = 1;
    }
    for (size_t i = 0; i < q->nconditions && status == ESDM_OK; i++) {
        postgres__find_bind(q, i);
        if (postgres__find_is_extent(&q->conditions[i]))
            status = postgres__need_extents(store, err);
    }
    return status;
}

static void
end_query(query *q)
{
    if (q == NULL)
        return;
    esdm__buffer_clear(&q->sql);
    postgres__params_clear(&q->params);
    free(q->nodes);
    free(q->holds);
    free(q->starts);
    free(q->counts);
    free(q->bound);
    free(q);
}

/* Binds the conditions, and chooses where to begin. @param ret_query owned, end_query(). */
static esdm_status
begin_query(postgres__store *store, const esdm_meta_expression *expression, query **ret_query,
            esdm_error *err)
{
    size_t count = expression->nconditions;
    *ret_query = NULL;
    esdm_status status = esdm__check_expression(expression, err);
    if (status != ESDM_OK)
        return status;
    query *q = calloc(1, sizeof *q);
    if (q == NULL)
        return esdm__error_nomem(err, sizeof *q, "a query");
    *ret_query = q;
    q->conditions = expression->conditions;
    q->nconditions = count;
    q->expression = *expression;
    q->holds = calloc(count, sizeof *q->holds);
    q->starts = calloc(count, sizeof *q->starts);
    q->bound = calloc(count, sizeof *q->bound);
    esdm__buffer_init(&q->sql);
    if (q->holds == NULL || q->starts == NULL || q->bound == NULL)
        return esdm__error_nomem(err, count * sizeof *q->bound, "a query");
    status = bind_all(store, q, err);
    return status == ESDM_OK ? choose_starts(store, q, err) : status;
}

esdm_status
postgres__find_expression(void *self, const esdm_meta_expression *expression,
                          esdm_meta_match_visitor visit, void *user, esdm_error *err)
{
    postgres__store *store = self;
    PGresult *result = NULL;
    query *q = NULL;
    esdm_status status = begin_query(store, expression, &q, err);
    if (status == ESDM_OK) {
        postgres__find_put_query(q);
        postgres__find_end_text(q);
        status = ask(store, q, &result, err);
    }
    end_query(q);
    for (int row = 0; status == ESDM_OK && row < PQntuples(result); row++) {
        const char *path = PQgetisnull(result, row, 1) ? NULL : postgres__text(result, row, 1);
        if (!visit(postgres__text(result, row, 0), path, user))
            break;
    }
    PQclear(result);
    return status;
}

esdm_status
postgres__find(void *self, const esdm_meta_condition *conditions, size_t nconditions,
               esdm_meta_match_visitor visit, void *user, esdm_error *err)
{
    const esdm_meta_expression all = {.conditions = conditions, .nconditions = nconditions};
    return postgres__find_expression(self, &all, visit, user, err);
}

/* Rows: 0, NULL, how many datasets are found; number of the name, value (NULL: several), count. */
static void
put_facets(query *q, const char *const *names, size_t nnames)
{
    postgres__array_begin(&q->params, POSTGRES__TEXTS);
    for (size_t i = 0; i < nnames; i++) {
        esdm__buffer text;
        esdm__buffer_init(&text);
        postgres__put_text(&text, names[i]);
        q->params.memory.failed |= text.failed;
        postgres__array_bytes(&q->params, text.data, text.failed ? 0 : text.bytes);
        esdm__buffer_clear(&text);
    }
    postgres__array_end(&q->params);
    postgres__find_put_query(q);
    esdm__buffer found = q->sql;
    esdm__buffer_init(&q->sql);
    postgres__find_put(q, "WITH m AS MATERIALIZED (");
    esdm__buffer_put(&q->sql, found.data, found.bytes);
    postgres__find_put_pattern(
        q,
        ") SELECT 0::bigint, NULL::text, count(*) FROM m WHERE m.dataset <> 0 UNION ALL "
        "SELECT n.i, x.v, count(*) FROM m JOIN {S}.container k ON k.container = m.container "
        "AND k.name NOT LIKE '/%' JOIN {S}.object o ON o.container = m.container "
        "AND o.dataset = 0 CROSS JOIN unnest(#::text[]) WITH ORDINALITY AS n(name, i) "
        "CROSS JOIN LATERAL (SELECT CASE WHEN jsonb_array_length(y.a) = 1 "
        "THEN y.a->>0 END AS v FROM (SELECT coalesce(o.attributes->'s'->n.name, "
        "o.attributes->'f'->n.name) AS a) AS y WHERE y.a IS NOT NULL) AS x "
        "WHERE m.dataset = 0 GROUP BY 1, 2",
        "", q->params.count);
    q->sql.failed |= found.failed;
    esdm__buffer_clear(&found);
    postgres__find_end_text(q);
}

esdm_status
postgres__facets(void *self, const esdm_meta_expression *expression, const char *const *names,
                 size_t nnames, esdm_meta_facet_visitor visit, void *user, esdm_error *err)
{
    postgres__store *store = self;
    PGresult *result = NULL;
    query *q = NULL;
    esdm_status status = begin_query(store, expression, &q, err);
    if (status == ESDM_OK) {
        q->numbers = true;
        put_facets(q, names, nnames);
        status = ask(store, q, &result, err);
    }
    end_query(q);
    bool uneven = false;
    for (int row = 0; status == ESDM_OK && row < PQntuples(result); row++)
        uneven |= PQgetisnull(result, row, 1) && postgres__u64(result, row, 2) > 0;
    if (uneven)
        status =
            esdm__error_set(err, ESDM_ENOTSUP, "datasets, or several values, are to be counted");
    for (int row = 0; status == ESDM_OK && row < PQntuples(result); row++) {
        char *value = PQgetvalue(result, row, 1);
        if (PQgetisnull(result, row, 1))
            continue;
        postgres__restore_text(value);
        if (!visit((size_t) postgres__u64(result, row, 0) - 1, value, postgres__u64(result, row, 2),
                   user))
            break;
    }
    PQclear(result);
    return status;
}
