/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Queries over attributes: choosing where to begin, running them, and counting by values. */

#include <stdlib.h>

#include "base/error.h"
#include "base/meta_checks.h"
#include "find.h"

typedef postgres__find_query query;

/* Objects that are counted at first for each condition, how much more each time, and when it does
 * not matter any more. */
#define COUNT_FIRST  UINT64_C(256)
#define COUNT_GROWTH 64u
#define COUNT_LAST   (UINT64_C(1) << 32)

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

static esdm_status
choose_start(postgres__store *store, query *q, size_t *ret_start, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    *ret_start = 0;
    for (uint64_t limit = COUNT_FIRST; limit < COUNT_LAST; limit *= COUNT_GROWTH) {
        uint64_t least = limit;
        PGresult *result = NULL;
        postgres__find_put_counts(q, limit);
        status = ask(store, q, &result, err);
        for (size_t i = 0; i < q->nconditions && status == ESDM_OK; i++) {
            uint64_t count = postgres__u64(result, 0, (int) i);
            if (count < least) {
                least = count;
                *ret_start = i;
            }
        }
        PQclear(result);
        if (status != ESDM_OK || least < limit)
            break;
    }
    return status;
}

/* Binds the conditions, and chooses where to begin. @param ret_query owned, end_query(). */
static esdm_status
begin_query(postgres__store *store, const esdm_meta_condition *conditions, size_t nconditions,
            query **ret_query, size_t *ret_start, esdm_error *err)
{
    *ret_start = 0;
    esdm_status status = esdm__check_conditions(conditions, nconditions, err);
    query *q = status == ESDM_OK ? calloc(1, sizeof *q) : NULL;
    *ret_query = q;
    if (status != ESDM_OK)
        return status;
    if (q == NULL)
        return esdm__error_nomem(err, sizeof *q, "a query");
    q->conditions = conditions;
    q->nconditions = nconditions;
    esdm__buffer_init(&q->sql);
    for (size_t i = 0; i < nconditions; i++) {
        postgres__find_bind(q, i);
        if (postgres__find_is_extent(&conditions[i]) && status == ESDM_OK)
            status = postgres__need_extents(store, err);
    }
    if (nconditions > 1 && status == ESDM_OK)
        status = choose_start(store, q, ret_start, err);
    return status;
}

static void
end_query(query *q)
{
    if (q == NULL)
        return;
    esdm__buffer_clear(&q->sql);
    postgres__params_clear(&q->params);
    free(q);
}

esdm_status
postgres__find(void *self, const esdm_meta_condition *conditions, size_t nconditions,
               esdm_meta_match_visitor visit, void *user, esdm_error *err)
{
    postgres__store *store = self;
    PGresult *result = NULL;
    query *q = NULL;
    size_t start = 0;
    esdm_status status = begin_query(store, conditions, nconditions, &q, &start, err);
    if (status == ESDM_OK) {
        postgres__find_put_query(q, start);
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

/* Rows: 0, NULL, how many datasets are found; number of the name, value (NULL: several), count. */
static void
put_facets(query *q, size_t start, const char *const *names, size_t nnames)
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
    postgres__find_put_query(q, start);
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
postgres__facets(void *self, const esdm_meta_condition *conditions, size_t nconditions,
                 const char *const *names, size_t nnames, esdm_meta_facet_visitor visit, void *user,
                 esdm_error *err)
{
    postgres__store *store = self;
    PGresult *result = NULL;
    query *q = NULL;
    size_t start = 0;
    esdm_status status = begin_query(store, conditions, nconditions, &q, &start, err);
    if (status == ESDM_OK) {
        q->numbers = true;
        put_facets(q, start, names, nnames);
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
