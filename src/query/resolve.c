/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Open comparisons: which names of extents they are about, one for each unit that the data have.
 * They become alternatives of comparisons with numbers in these units.
 */

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "cf/units.h"
#include "query/query.h"

typedef struct resolving {
    esdm__query *query;
    const esdm__query_open *open;
    size_t node; /* alternatives so far */
    size_t names;
    bool any, misfit, nomem;
    char unit[80]; /* of the data, which does not fit */
    char **list;   /* owned */
    esdm_error *err;
} resolving;

static bool
note_name(const char *name, void *user)
{
    resolving *r = user;
    char *copy = strdup(name);
    if (copy == NULL || !esdm__array_grow(&r->list, r->names, sizeof copy)) {
        free(copy);
        r->nomem = true;
        return false;
    }
    r->list[r->names++] = copy;
    return true;
}

static esdm_status
add_comparison(resolving *r, const char *name, esdm_meta_operator op, double number, size_t *ret)
{
    esdm__query *query = r->query;
    esdm_meta_condition *condition;
    esdm_status status =
        esdm__query_append_condition(query, r->open->name_column, &condition, r->err);
    if (status != ESDM_OK)
        return status;
    *condition = (esdm_meta_condition){.variable = r->open->variable,
                                       .attribute = name,
                                       .op = op,
                                       .is_number = true,
                                       .number = number};
    return esdm__query_append_node(
        query, (esdm__query_node){ESDM__QUERY_COMPARISON, query->nconditions - 1, 0}, ret, r->err);
}

/* Keeps a name for as long as the query. */
static esdm_status
keep_name(resolving *r, char *name)
{
    if (!esdm__array_grow(&r->query->names, r->query->nnames, sizeof name))
        return esdm__error_nomem(r->err, sizeof name, "a query");
    r->query->names[r->query->nnames++] = name;
    return ESDM_OK;
}

/* The name of the other end of a range. */
static esdm_status
upper_name(resolving *r, const char *unit, const char **ret)
{
    size_t first = strlen(r->open->upper), bytes = strlen(unit) + 1;
    char *name = malloc(first + bytes);
    if (name == NULL)
        return esdm__error_nomem(r->err, first + bytes, "a query");
    memcpy(name, r->open->upper, first);
    memcpy(name + first, unit, bytes);
    esdm_status status = keep_name(r, name);
    if (status != ESDM_OK) {
        free(name);
        return status;
    }
    *ret = name;
    return ESDM_OK;
}

/* One name: its comparisons, in its unit. */
static esdm_status
add_alternative(resolving *r, const char *name)
{
    const esdm__query_open *open = r->open;
    const char *tab = strchr(open->prefix, '\t') != NULL ? strchr(name, '\t') : NULL;
    double slope = 1, offset = 0;
    size_t node = 0, right = 0;
    bool known = true;
    esdm_status status = ESDM_OK;
    if (tab != NULL && open->unit != NULL) {
        status = esdm__units_convert(open->unit, tab + 1, &known, &slope, &offset, r->err);
        if (status == ESDM_EINVAL && !known)
            return esdm__error_set(r->err, ESDM_EINVAL, "query, column %zu: '%.80s' is no unit",
                                   open->column, open->unit);
        if (status == ESDM_EINVAL) {
            r->misfit = true;
            strncpy(r->unit, tab + 1, sizeof r->unit - 1);
            return ESDM_OK;
        }
    }
    double number = open->number * slope + offset, to = open->to * slope + offset;
    if (status == ESDM_OK && open->upper == NULL) {
        status = add_comparison(r, name, open->op, number, &node);
    } else if (status == ESDM_OK) {
        const char *upper = NULL;
        status = upper_name(r, tab != NULL ? tab + 1 : "", &upper);
        if (status == ESDM_OK)
            status = add_comparison(r, name, ESDM_META_LE, number > to ? number : to, &node);
        if (status == ESDM_OK)
            status = add_comparison(r, upper, ESDM_META_GE, number > to ? to : number, &right);
        if (status == ESDM_OK)
            status = esdm__query_append_node(
                r->query, (esdm__query_node){ESDM__QUERY_AND, node, right}, &node, r->err);
    }
    if (status == ESDM_OK && r->any)
        status = esdm__query_append_node(
            r->query, (esdm__query_node){ESDM__QUERY_OR, r->node, node}, &node, r->err);
    r->node = node;
    r->any = true;
    return status;
}

static esdm_status
resolve_open(const esdm_meta_plugin *meta, void *store, esdm__query *query, size_t node,
             esdm_error *err)
{
    esdm__query_open *open = &query->opens[query->nodes[node].left];
    size_t used = 0;
    resolving r = {.query = query, .open = open, .err = err};
    esdm_status status = meta->extent_names(store, open->prefix, note_name, &r, err);
    if (status == ESDM_OK && r.nomem)
        status = esdm__error_nomem(err, r.names * sizeof *r.list, "a query");
    open->found = r.names > 0;
    for (; used < r.names && status == ESDM_OK; used++) {
        status = keep_name(&r, r.list[used]);
        if (status != ESDM_OK)
            break;
        status = add_alternative(&r, r.list[used]);
    }
    for (size_t i = used; i < r.names; i++)
        free(r.list[i]);
    free(r.list);
    if (status == ESDM_OK && !r.any && r.misfit)
        status =
            esdm__error_set(err, ESDM_EINVAL,
                            "query, column %zu: '%.80s' cannot be compared with '%.80s', which "
                            "%.80s is in",
                            open->column, open->unit, r.unit, open->said);
    if (status == ESDM_OK && r.any)
        query->nodes[node] = query->nodes[r.node];
    else if (status == ESDM_OK)
        query->nodes[node].kind = ESDM__QUERY_NEVER;
    return status;
}

static esdm_status
need_extents(const esdm_meta_plugin *meta, const esdm__query *query, esdm_error *err)
{
    bool asks = query->nopens > 0;
    for (size_t i = 0; i < query->nconditions; i++)
        asks |= esdm_meta_is_extent(query->conditions[i].attribute);
    if (!asks || meta->extent_names != NULL)
        return ESDM_OK;
    return esdm__error_set(err, ESDM_ENOTSUP,
                           "metadata store '%s' keeps no index of times, boxes and values",
                           meta->base.name);
}

esdm_status
esdm__query_resolve(const esdm_meta_plugin *meta, void *store, esdm__query *query, esdm_error *err)
{
    size_t count = query->nnodes;
    if (query->resolved)
        return ESDM_OK;
    esdm_status status = need_extents(meta, query, err);
    for (size_t i = 0; i < count && status == ESDM_OK; i++) {
        if (query->nodes[i].kind == ESDM__QUERY_OPEN)
            status = resolve_open(meta, store, query, i, err);
    }
    query->resolved = status == ESDM_OK;
    return status;
}
