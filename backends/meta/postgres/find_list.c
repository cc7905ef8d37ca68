/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Patterns, answered from the values of which counts are kept (views.sql): those that match
 * are few, and the index has the containers of each. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "find.h"

typedef postgres__find_query query;
typedef postgres__find_bound bound;

/* More values are no better than looking at each container that has the attribute. */
#define VALUES_MOST 256
/* Each is a question of its own. */
#define PATTERNS_MOST 8
/* Answers that are asked for with lists, while others commit values that match. */
#define ANSWERS_MOST 3

/* Of one attribute and one pattern: whether all values are kept, how many match, and paths to them.
 * A value that no container has any more does no harm. */
static const char values_question[] =
    "WITH v AS MATERIALIZED (SELECT f.part FROM {S}.facet f WHERE f.name = $1 AND (f.n > 0 OR "
    "f.part = '*') UNION SELECT p.part FROM {S}.facet_delta x CROSS JOIN LATERAL "
    "{S}.facet_parts(ARRAY[$1::text], x.attributes) AS p WHERE p.name = $1 AND x.n > 0), "
    "m AS MATERIALIZED (SELECT substr(v.part, 2) AS t FROM v WHERE v.part LIKE '=%' "
    "AND substr(v.part, 2) COLLATE \"C\" ~ $2), "
    "k AS MATERIALIZED (SELECT n.part FROM {S}.view_node n WHERE n.parent = -1) "
    "SELECT EXISTS(SELECT FROM k WHERE k.part = 'facets') "
    "AND NOT EXISTS(SELECT FROM v WHERE v.part = '+' OR v.part = '*') "
    "AND (EXISTS(SELECT FROM k WHERE k.part = 'every') OR EXISTS(SELECT FROM {S}.facet f "
    "WHERE f.name = $1 AND f.part = '' AND md5(f.part) = md5(''))), "
    "(SELECT count(*) FROM m), "
    "(SELECT '$.\"s\".' || to_json($1)::text || '[*] ? (' || string_agg('@ == ' || "
    "to_json(m.t)::text, ' || ' ORDER BY m.t) || ')' FROM m), "
    "(SELECT '$.\"f\".' || to_json($1)::text || '[*] ? (' || string_agg('@ == ' || "
    "to_json(m.t)::text, ' || ' ORDER BY m.t) || ')' FROM m WHERE m.t ~ '^[-+.0-9iInN]')";

/* Whether it is a pattern of an attribute that may be listed. */
static bool
is_pattern(const query *q, size_t i)
{
    const esdm_meta_condition *c = &q->conditions[i];
    return q->holds[i] && c->op == ESDM_META_GLOB && c->text != NULL && strcmp(c->text, "*") != 0 &&
           !postgres__find_is_extent(c) && q->bound[i].variable == 0 && c->attribute[0] != '@';
}

/* Datasets are not counted: none may have the attribute, where the question is about them, too. */
static esdm_status
has_datasets(postgres__store *store, query *q, size_t i, bool *ret_has, esdm_error *err)
{
    PGresult *result = NULL;
    *ret_has = false;
    if (postgres__find_is_for_container(&q->conditions[i]))
        return ESDM_OK;
    if (q->counts != NULL && q->counts[2 * i + 1] != POSTGRES__COUNT_UNKNOWN) {
        *ret_has = q->counts[2 * i + 1] > 0; /* a sample saw some */
        return ESDM_OK;
    }
    postgres__find_put_dataset_has(q, i, q->counts != NULL);
    esdm_status status = postgres__find_ask(store, q, &result, err);
    *ret_has = status == ESDM_OK && postgres__bool(result, 0, 0);
    PQclear(result);
    return status;
}

static int
keep_path(query *q, const PGresult *row, int column)
{
    if (PQgetisnull(row, 0, column))
        return 0;
    postgres__put_string(&q->params, postgres__text(row, 0, column));
    return q->params.count;
}

/* The same parameter in another list. */
static void
copy_param(const query *q, int number, postgres__params *to)
{
    size_t offset = q->params.offsets[number - 1];
    size_t length = (size_t) q->params.lengths[number - 1];
    // Not strndup(): sanitizers refuse it where the text does not end with 0.
    char *text = malloc(length + 1);
    if (text != NULL) {
        memcpy(text, (const char *) q->params.memory.data + offset, length);
        text[length] = '\0';
    }
    to->memory.failed |= text == NULL;
    postgres__put_string(to, text != NULL ? text : "");
    free(text);
}

/* @param ret_row owned, PQclear(). */
static esdm_status
values_of(postgres__store *store, const query *q, size_t i, PGresult **ret_row, esdm_error *err)
{
    postgres__params params = {0};
    if (q->params.memory.failed)
        return esdm__error_nomem(err, q->params.memory.bytes, "a query");
    copy_param(q, q->bound[i].attribute, &params);
    copy_param(q, q->bound[i].text, &params);
    esdm_status status = postgres__enter(store, err);
    if (status == ESDM_OK) {
        status = postgres__query(store, values_question, &params, ret_row, err);
        postgres__leave(store);
    }
    postgres__params_clear(&params);
    return status;
}

static bool
can_be_listed(const PGresult *row)
{
    return postgres__bool(row, 0, 0) && postgres__u64(row, 0, 1) <= VALUES_MOST;
}

static esdm_status
list_one(postgres__store *store, query *q, size_t i, esdm_error *err)
{
    PGresult *row = NULL;
    esdm_status status = values_of(store, q, i, &row, err);
    if (status == ESDM_OK && can_be_listed(row)) {
        q->bound[i].listed = true;
        q->bound[i].values = keep_path(q, row, 2);
        q->bound[i].value_forms = keep_path(q, row, 3);
    }
    PQclear(row);
    return status;
}

static bool
is_param(const query *q, int number, const PGresult *row, int column)
{
    if (number == 0 || PQgetisnull(row, 0, column))
        return number == 0 && PQgetisnull(row, 0, column);
    size_t bytes = (size_t) PQgetlength(row, 0, column);
    return (size_t) q->params.lengths[number - 1] == bytes &&
           memcmp(q->params.memory.data + q->params.offsets[number - 1], PQgetvalue(row, 0, column),
                  bytes) == 0;
}

/* Lists the values of condition i anew. @param ret_changed they are others. */
static esdm_status
list_again(postgres__store *store, query *q, size_t i, bool *ret_changed, esdm_error *err)
{
    PGresult *row = NULL;
    bound *b = &q->bound[i];
    esdm_status status = values_of(store, q, i, &row, err);
    *ret_changed = false;
    if (status == ESDM_OK) {
        *ret_changed = !can_be_listed(row) || !is_param(q, b->values, row, 2) ||
                       !is_param(q, b->value_forms, row, 3);
        if (*ret_changed) {
            b->listed = can_be_listed(row) && q->params.count + 8 <= POSTGRES__PARAMS;
            b->values = b->listed ? keep_path(q, row, 2) : 0;
            b->value_forms = b->listed ? keep_path(q, row, 3) : 0;
        }
    }
    PQclear(row);
    return status;
}

/* What was committed after the values were listed may have one that is not among them, although it
 * had one of them before: no answer may miss it. */
static esdm_status
list_all_again(postgres__store *store, query *q, bool last, bool *ret_changed, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    *ret_changed = false;
    for (size_t i = 0; i < q->nconditions && status == ESDM_OK; i++) {
        bool changed = false;
        if (!q->bound[i].listed)
            continue;
        status = list_again(store, q, i, &changed, err);
        q->bound[i].listed = q->bound[i].listed && !(changed && last);
        *ret_changed |= changed;
    }
    return status;
}

esdm_status
postgres__find_answer(postgres__store *store, query *q, postgres__find_writer write,
                      const void *user, PGresult **ret_result, esdm_error *err)
{
    bool again = true;
    esdm_status status = ESDM_OK;
    for (int answers = 1; again && status == ESDM_OK; answers++) {
        PQclear(*ret_result);
        *ret_result = NULL;
        write(q, user);
        status = postgres__find_ask(store, q, ret_result, err);
        if (status == ESDM_OK)
            status = list_all_again(store, q, answers >= ANSWERS_MOST, &again, err);
    }
    return status;
}

esdm_status
postgres__find_list_values(postgres__store *store, query *q, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    if (!store->has_facets || !q->has_paths)
        return ESDM_OK;
    for (size_t i = 0, n = 0; i < q->nconditions && n < PATTERNS_MOST && status == ESDM_OK; i++) {
        if (!is_pattern(q, i) || q->bound[i].text == 0 || q->params.count + 8 > POSTGRES__PARAMS)
            continue;
        status = list_one(store, q, i, err);
        n++;
    }
    return status;
}

esdm_status
postgres__find_confirm_lists(postgres__store *store, query *q, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < q->nconditions && status == ESDM_OK; i++) {
        bound *b = &q->bound[i];
        bool datasets = false;
        if (!b->listed)
            continue;
        status = has_datasets(store, q, i, &datasets, err);
        b->listed = !datasets;
        if (q->counts == NULL)
            continue;
        if (datasets)
            q->counts[2 * i] = POSTGRES__COUNT_UNKNOWN;
        else if (b->values + b->value_forms == 0)
            q->counts[2 * i] = 0;
        if (!datasets)
            q->counts[2 * i + 1] = 0;
    }
    return status;
}
