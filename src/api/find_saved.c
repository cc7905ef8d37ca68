/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Expressions that are kept under names: facts of the site. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/catalogue.h"
#include "base/arguments.h"
#include "base/error.h"
#include "io/session/session.h"
#include "query/query.h"

#define PREFIX         "query/"
#define NAME_MAX_BYTES 64

typedef char fact_name[sizeof PREFIX + NAME_MAX_BYTES];

static esdm_status
fact_of(const char *name, fact_name ret, esdm_error *err)
{
    size_t bytes = strlen(name);
    size_t good = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
    if (bytes == 0 || bytes > NAME_MAX_BYTES || good != bytes)
        return esdm__error_set(
            err, ESDM_EINVAL, "'%.80s' is no name of a query: 1 to %d letters, digits, '_' and '-'",
            name, NAME_MAX_BYTES);
    (void) snprintf(ret, sizeof(fact_name), PREFIX "%s", name);
    return ESDM_OK;
}

esdm_status
esdm_find_saved(esdm_session *session, const char *name, char **ret_expression, esdm_error *err)
{
    fact_name fact;
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    ESDM__NEED(err, ret_expression);
    esdm_status status = fact_of(name, fact, err);
    if (status == ESDM_OK)
        status = session->meta->fact_get(session->store, fact, ret_expression, err);
    if (status == ESDM_ENOENT)
        return esdm__error_set(
            err, status, "no query is saved as '%s'; esdm-find --list shows those that are", name);
    return status;
}

esdm_status
esdm_find_save(esdm_session *session, const char *name, const char *expression, esdm_error *err)
{
    fact_name fact;
    char *before = NULL;
    esdm__query query = {0};
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    esdm_status status = fact_of(name, fact, err);
    if (status == ESDM_OK && expression != NULL)
        status = esdm__query_parse(expression, &query, err);
    esdm__query_clear(&query);
    if (status == ESDM_OK && expression == NULL)
        status = esdm_find_saved(session, name, &before, err);
    free(before);
    if (status == ESDM_OK)
        status = esdm__need_writable(session, err);
    return status == ESDM_OK ? session->meta->fact_put(session->store, fact, expression, err)
                             : status;
}

typedef struct saved_visitor {
    esdm_find_saved_visitor visit;
    void *user;
} saved_visitor;

static bool
visit_fact(const char *name, const char *text, void *user)
{
    const saved_visitor *v = user;
    return v->visit(name + strlen(PREFIX), text, v->user);
}

esdm_status
esdm_find_saved_list(esdm_session *session, esdm_find_saved_visitor visit, void *user,
                     esdm_error *err)
{
    ESDM__NEED(err, session);
    ESDM__NEED(err, visit);
    saved_visitor v = {visit, user};
    return session->meta->fact_list(session->store, PREFIX, visit_fact, &v, err);
}
