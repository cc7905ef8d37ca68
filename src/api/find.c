/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Questions to the catalogue. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arguments.h"
#include "base/error.h"
#include "esdm/float_env.h"
#include "io/session/former.h"
#include "io/session/session.h"
#include "query/query.h"
#include "virtual/virtual.h"

typedef struct match_visitor {
    esdm_match_visitor visit;
    void *user;
} match_visitor;

static bool
visit_match(const char *container, const char *dataset_path, void *user)
{
    const match_visitor *v = user;
    if (esdm__name_is_hidden(container))
        return true;
    const esdm_match match = {.container = container, .dataset = dataset_path};
    return v->visit(&match, v->user);
}

/* Whether it asks for times, boxes, levels or values. */
static bool
asks_for_extents(const esdm__query *query)
{
    bool asks = query->nopens > 0;
    for (size_t i = 0; i < query->nconditions && !asks; i++)
        asks = esdm_meta_is_extent(query->conditions[i].attribute);
    return asks;
}

/* Parses an expression, and asks the store what it is about. */
static esdm_status
ask(esdm_session *session, const char *expression, esdm__query *ret_query, esdm_error *err)
{
    esdm_status status = esdm__query_parse(expression, ret_query, err);
    if (status != ESDM_OK)
        return status;
    if (asks_for_extents(ret_query))
        (void) esdm__virtual_follow(session);
    ret_query->most_ms = atomic_load(&session->find_most_ms);
    status = esdm__query_resolve(session->meta, session->store, ret_query, err);
    if (status != ESDM_OK)
        esdm__query_clear(ret_query);
    return status;
}

esdm_status
esdm_find_limit(esdm_session *session, uint32_t most_ms, esdm_error *err)
{
    ESDM__NEED(err, session);
    atomic_store(&session->find_most_ms, most_ms);
    return ESDM_OK;
}

esdm_status
esdm_find(esdm_session *session, const char *expression, esdm_match_visitor visit, void *user,
          esdm_error *err)
{
    ESDM_FLOAT_ENV_OWN;
    ESDM__NEED(err, session);
    ESDM__NEED(err, expression);
    ESDM__NEED(err, visit);
    esdm__query query = {0};
    esdm_status status = ask(session, expression, &query, err);
    if (status != ESDM_OK)
        return status;
    match_visitor v = {visit, user};
    status = esdm__query_find(session->meta, session->store, &query, visit_match, &v, err);
    esdm__query_clear(&query);
    return status;
}

typedef struct name_visitor {
    esdm_find_name_visitor visit;
    void *user;
    bool nomem;
} name_visitor;

static bool
visit_unknown(const esdm_meta_condition *condition, size_t column, void *user)
{
    name_visitor *v = user;
    (void) column;
    const char *variable = condition->variable != NULL ? condition->variable : "";
    size_t bytes = strlen(variable) + strlen(condition->attribute) + 2;
    char *name = malloc(bytes);
    v->nomem = name == NULL;
    if (v->nomem)
        return false;
    (void) snprintf(name, bytes, "%s%s%s", variable, condition->variable != NULL ? ":" : "",
                    condition->attribute);
    bool more = v->visit(name, v->user);
    free(name);
    return more;
}

esdm_status
esdm_find_unknown(esdm_session *session, const char *expression, esdm_find_name_visitor visit,
                  void *user, esdm_error *err)
{
    ESDM__NEED(err, session);
    ESDM__NEED(err, expression);
    ESDM__NEED(err, visit);
    esdm__query query = {0};
    esdm_status status = ask(session, expression, &query, err);
    if (status != ESDM_OK)
        return status;
    name_visitor v = {.visit = visit, .user = user};
    status = esdm__query_unknown(session->meta, session->store, &query, visit_unknown, &v, err);
    if (status == ESDM_OK && v.nomem)
        status = esdm__error_nomem(err, strlen(expression), "a name");
    esdm__query_clear(&query);
    return status;
}

typedef struct row_visitor {
    esdm_find_row_visitor visit;
    void *user;
    esdm_find_value *values;
    size_t ncolumns;
} row_visitor;

static bool
visit_row(const char *container, const char *dataset, const esdm__query_value *values, void *user)
{
    const row_visitor *v = user;
    if (esdm__name_is_hidden(container))
        return true;
    const esdm_match match = {.container = container, .dataset = dataset};
    for (size_t i = 0; i < v->ncolumns; i++)
        v->values[i] = (esdm_find_value){values[i].text, values[i].number, values[i].has_number};
    return v->visit(&match, v->values, v->user);
}

static esdm_status
ask_rows(esdm_session *session, const char *expression, const char *const *columns, size_t ncolumns,
         const esdm__query_order *order, esdm_find_row_visitor visit, void *user, esdm_error *err)
{
    esdm__query query = {0};
    esdm_status status = ask(session, expression, &query, err);
    if (status != ESDM_OK)
        return status;
    row_visitor v = {visit, user, calloc(ncolumns + 1, sizeof *v.values), ncolumns};
    if (v.values == NULL)
        status = esdm__error_nomem(err, ncolumns, "an answer");
    else
        status = esdm__query_sorted(session->meta, session->store, &query, columns, ncolumns, order,
                                    visit_row, &v, err);
    free(v.values);
    esdm__query_clear(&query);
    return status;
}

esdm_status
esdm_find_rows(esdm_session *session, const char *expression, const char *const *columns,
               size_t ncolumns, esdm_find_row_visitor visit, void *user, esdm_error *err)
{
    ESDM_FLOAT_ENV_OWN;
    ESDM__NEED(err, session);
    ESDM__NEED(err, expression);
    ESDM__NEED(err, visit);
    ESDM__NEED_ALL(err, columns, ncolumns);
    const esdm__query_order by_name = {0};
    return ask_rows(session, expression, columns, ncolumns, &by_name, visit, user, err);
}

esdm_status
esdm_find_sorted(esdm_session *session, const char *expression, const char *const *columns,
                 size_t ncolumns, const esdm_find_order *order, esdm_find_row_visitor visit,
                 void *user, esdm_error *err)
{
    ESDM_FLOAT_ENV_OWN;
    ESDM__NEED(err, session);
    ESDM__NEED(err, expression);
    ESDM__NEED(err, order);
    ESDM__NEED(err, visit);
    ESDM__NEED_ALL(err, columns, ncolumns);
    ESDM__NEED_ALL(err, order->keys, order->nkeys);
    bool *upwards = calloc(order->nkeys + 1, sizeof *upwards);
    if (upwards == NULL)
        return esdm__error_nomem(err, order->nkeys, "an order");
    const esdm__query_order o = {.keys = order->keys,
                                 .descending =
                                     order->descending != NULL ? order->descending : upwards,
                                 .nkeys = order->nkeys,
                                 .limit = order->limit,
                                 .containers = order->containers};
    esdm_status status = ask_rows(session, expression, columns, ncolumns, &o, visit, user, err);
    free(upwards);
    return status;
}

esdm_status
esdm_find_facets(esdm_session *session, const char *expression, const char *const *names,
                 size_t nnames, esdm_facet_visitor visit, void *user, esdm_error *err)
{
    ESDM_FLOAT_ENV_OWN;
    ESDM__NEED(err, session);
    ESDM__NEED(err, expression);
    ESDM__NEED(err, names);
    ESDM__NEED(err, visit);
    ESDM__NEED_ALL(err, names, nnames);
    esdm__query query = {0};
    esdm_status status = ask(session, expression, &query, err);
    if (status != ESDM_OK)
        return status;
    status =
        esdm__query_facets(session->meta, session->store, &query, names, nnames, visit, user, err);
    esdm__query_clear(&query);
    return status;
}

esdm_status
esdm_find_explain(esdm_session *session, const char *expression, esdm_find_name_visitor visit,
                  void *user, esdm_error *err)
{
    ESDM__NEED(err, session);
    ESDM__NEED(err, expression);
    ESDM__NEED(err, visit);
    esdm__query query = {0};
    esdm_status status = ask(session, expression, &query, err);
    if (status != ESDM_OK)
        return status;
    status = esdm__query_explain(session->meta, session->store, &query, visit, user, err);
    esdm__query_clear(&query);
    return status;
}
