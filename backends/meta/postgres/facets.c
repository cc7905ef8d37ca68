/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file How many of the containers that a query finds have each value of some attributes: from the
 *  counts that are kept of all (views.sql), or of what is found. */

#include <string.h>

#include "base/error.h"
#include "base/meta_checks.h"
#include "base/meta_tree.h"
#include "find.h"

typedef postgres__find_query query;

/* @param asked the attribute that containers are asked to have, before them, after an empty name;
 * NULL: neither. */
static void
put_names(postgres__params *params, const char *asked, const char *const *names, size_t nnames)
{
    postgres__array_begin(params, POSTGRES__TEXTS);
    for (size_t i = asked != NULL ? 0 : 2; i < nnames + 2; i++) {
        esdm__buffer text;
        esdm__buffer_init(&text);
        postgres__put_text(&text, i == 0 ? "" : i == 1 ? asked : names[i - 2]);
        params->memory.failed |= text.failed;
        postgres__array_bytes(params, text.data, text.failed ? 0 : text.bytes);
        esdm__buffer_clear(&text);
    }
    postgres__array_end(params);
}

/* ---- counts that are kept ------------------------------------------------------------------- */

/* Rows: place of the name, part, count; none of a name of which no counts are kept. These are of
 * hidden containers as well, which are taken away. */
static const char kept_question[] =
    "WITH h AS MATERIALIZED " POSTGRES__HIDDEN_OBJECTS " SELECT t.i, f.part, sum(f.n)::bigint "
    "FROM unnest($1::text[]) WITH ORDINALITY AS t(name, i) "
    "JOIN {S}.facet k ON k.name = t.name AND k.part = '' AND md5(k.part) = md5('') "
    "CROSS JOIN LATERAL (SELECT x.part, x.n FROM {S}.facet x WHERE x.name = t.name UNION ALL "
    "SELECT p.part, d.n FROM {S}.facet_delta d CROSS JOIN LATERAL "
    "{S}.facet_parts(ARRAY[t.name], d.attributes) AS p WHERE p.name = t.name UNION ALL "
    "SELECT p.part, -1 FROM h CROSS JOIN LATERAL "
    "{S}.facet_parts(ARRAY[t.name], h.attributes) AS p WHERE p.name = t.name) AS f "
    "WHERE EXISTS(SELECT FROM {S}.view_node v WHERE v.parent = -1) GROUP BY 1, 2";

/* Whether these rows answer: all names are counted, no container has several values, and those that
 * have the attribute asked for are all, unless its own values are counted. */
static bool
answers(const PGresult *rows, const char *asked, const char *const *names, size_t nnames)
{
    uint64_t all = 0, having = 0;
    size_t known = 0;
    bool own = true;
    for (int row = 0; row < PQntuples(rows); row++) {
        const char *part = postgres__text(rows, row, 1);
        uint64_t place = postgres__u64(rows, row, 0), n = postgres__u64(rows, row, 2);
        known += part[0] == '\0';
        all = place == 1 && part[0] == '\0' ? n : all;
        having = place == 2 && part[0] == '\0' ? n : having;
        if (place > 2 && part[0] == '+' && n > 0)
            return false;
    }
    for (size_t i = 0; i < nnames; i++)
        own &= strcmp(names[i], asked) == 0;
    return known == nnames + 2 && (own || all == having);
}

static esdm_status
ask_kept(postgres__store *store, const char *asked, const char *const *names, size_t nnames,
         PGresult **ret_rows, esdm_error *err)
{
    postgres__params params = {0};
    PGresult *there = NULL;
    esdm_status status = postgres__enter(store, err);
    if (status != ESDM_OK)
        return status;
    status = postgres__query(store,
                             "SELECT coalesce(has_table_privilege(to_regclass('{S}.facet_delta'), "
                             "'SELECT'), false)",
                             NULL, &there, err);
    put_names(&params, asked, names, nnames);
    if (status == ESDM_OK && postgres__bool(there, 0, 0))
        status = postgres__query(store, kept_question, &params, ret_rows, err);
    postgres__leave(store);
    postgres__params_clear(&params);
    PQclear(there);
    return status;
}

static void
tell_kept(PGresult *rows, esdm_meta_facet_visitor visit, void *user)
{
    bool more = true;
    for (int row = 0; row < PQntuples(rows) && more; row++) {
        char *part = PQgetvalue(rows, row, 1);
        uint64_t place = postgres__u64(rows, row, 0), n = postgres__u64(rows, row, 2);
        if (place <= 2 || part[0] != '=' || n == 0)
            continue;
        postgres__restore_text(part + 1);
        more = visit((size_t) place - 3, part + 1, n, user);
    }
}

/* ---- counts of what is found ---------------------------------------------------------------- */

/* Appends the query for a part of what is found to `sql`. */
static void
put_part(query *q, postgres__find_what what, esdm__buffer *sql)
{
    q->what = what;
    postgres__find_put_query(q);
    esdm__buffer_put(sql, q->sql.data, q->sql.bytes);
    sql->failed |= q->sql.failed;
    q->sql.bytes = 0;
}

/* @param names_parameter of the names. Rows: 0, NULL, whether some dataset is found; number of the
 * name, value (NULL: several), count. What finds datasets ends with the first: if there is any, the
 * caller has to ask otherwise. */
static void
put_facets(query *q, const void *names_parameter)
{
    esdm__buffer datasets, containers;
    esdm__buffer_init(&datasets);
    esdm__buffer_init(&containers);
    int parameter = *(const int *) names_parameter;
    put_part(q, POSTGRES__FIND_DATASETS, &datasets);
    put_part(q, POSTGRES__FIND_CONTAINERS, &containers);
    /* A list that is planned as a whole, in the index, and ended early all the same. */
    postgres__find_put(q, "SELECT 0::bigint, NULL::text, count(*) FROM (WITH d AS MATERIALIZED (");
    esdm__buffer_put(&q->sql, datasets.data, datasets.bytes);
    postgres__find_put(q,
                       ") SELECT FROM d LIMIT 1) AS x UNION ALL SELECT n.i, x.v, count(*) FROM (");
    esdm__buffer_put(&q->sql, containers.data, containers.bytes);
    postgres__find_put_pattern(
        q,
        ") AS m CROSS JOIN unnest(#::text[]) WITH ORDINALITY AS n(name, i) "
        "CROSS JOIN LATERAL (SELECT CASE WHEN jsonb_array_length(y.a) = 1 "
        "THEN y.a->>0 END AS v FROM (SELECT coalesce(m.attributes->'s'->n.name, "
        "m.attributes->'f'->n.name) AS a) AS y WHERE y.a IS NOT NULL) AS x "
        "WHERE NOT " POSTGRES__IS_HIDDEN("m.name") " GROUP BY 1, 2",
        "", parameter);
    q->sql.failed |= datasets.failed || containers.failed;
    esdm__buffer_clear(&datasets);
    esdm__buffer_clear(&containers);
    postgres__find_end_text(q);
}

static esdm_status
count_found(postgres__store *store, const esdm_meta_expression *expression,
            const char *const *names, size_t nnames, esdm_meta_facet_visitor visit, void *user,
            esdm_error *err)
{
    PGresult *result = NULL;
    query *q = NULL;
    esdm_status status = postgres__find_begin(store, expression, &q, err);
    if (status == ESDM_OK) {
        put_names(&q->params, NULL, names, nnames);
        int parameter = q->params.count;
        status = postgres__find_answer(store, q, put_facets, &parameter, &result, err);
    }
    postgres__find_end(q);
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

esdm_status
postgres__facets(void *self, const esdm_meta_expression *expression, const char *const *names,
                 size_t nnames, esdm_meta_facet_visitor visit, void *user, esdm_error *err)
{
    postgres__store *store = self;
    PGresult *rows = NULL;
    bool told = false;
    esdm_status status = esdm__check_expression(expression, err);
    const char *asked = status == ESDM_OK ? esdm__tree_attribute_of_all(expression) : NULL;
    if (asked != NULL)
        status = ask_kept(store, asked, names, nnames, &rows, err);
    if (status == ESDM_OK && rows != NULL && answers(rows, asked, names, nnames)) {
        tell_kept(rows, visit, user);
        told = true;
    }
    PQclear(rows);
    return status != ESDM_OK || told
               ? status
               : count_found(store, expression, names, nnames, visit, user, err);
}
