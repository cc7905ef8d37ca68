/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Open comparisons: which names of extents they are about, one for each unit that the data have.
 * They become alternatives of comparisons with numbers in these units.
 */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "query/query.h"

/* Names that one comparison may be about. */
#define NAMES_MOST 512

typedef struct resolving {
    esdm__query *query;
    const esdm__query_open *open;
    size_t node; /* alternatives so far */
    size_t names;
    bool any, misfit;
    char unit[80]; /* of the data, which does not fit */
    char *list[NAMES_MOST];
    esdm_error *err;
} resolving;

static bool
note_name(const char *name, void *user)
{
    resolving *r = user;
    char *copy = strdup(name);
    if (copy == NULL || r->names == NAMES_MOST) {
        free(copy);
        return false;
    }
    r->list[r->names++] = copy;
    return true;
}

static esdm_status
add_node(esdm__query *query, esdm__query_node node, size_t *ret, esdm_error *err)
{
    esdm__query_node *more = realloc(query->nodes, (query->nnodes + 1) * sizeof *more);
    if (more == NULL)
        return esdm__error_nomem(err, sizeof *more, "a query");
    query->nodes = more;
    query->nodes[query->nnodes] = node;
    *ret = query->nnodes++;
    return ESDM_OK;
}

static esdm_status
add_comparison(resolving *r, const char *name, esdm_meta_operator op, double number, size_t *ret)
{
    esdm__query *query = r->query;
    size_t count = query->nconditions;
    if (count == ESDM__QUERY_TERMS_MAX)
        return esdm__error_set(r->err, ESDM_EINVAL, "query: more than %d comparisons; ask in parts",
                               ESDM__QUERY_TERMS_MAX);
    esdm_meta_condition *more = realloc(query->conditions, (count + 1) * sizeof *more);
    if (more != NULL)
        query->conditions = more;
    esdm__regex **regexes = realloc(query->regexes, (count + 1) * sizeof *regexes);
    if (regexes != NULL)
        query->regexes = regexes;
    size_t *columns = realloc(query->columns, (count + 1) * sizeof *columns);
    if (columns != NULL)
        query->columns = columns;
    if (more == NULL || regexes == NULL || columns == NULL)
        return esdm__error_nomem(r->err, sizeof *more, "a query");
    query->conditions[count] = (esdm_meta_condition){.variable = r->open->variable,
                                                     .attribute = name,
                                                     .op = op,
                                                     .is_number = true,
                                                     .number = number};
    query->regexes[count] = NULL;
    query->columns[count] = r->open->name_column;
    query->nconditions++;
    return add_node(query, (esdm__query_node){ESDM__QUERY_COMPARISON, count, 0}, ret, r->err);
}

/* Keeps a name for as long as the query. */
static esdm_status
keep_name(resolving *r, char *name)
{
    char **more = realloc(r->query->names, (r->query->nnames + 1) * sizeof *more);
    if (more == NULL)
        return esdm__error_nomem(r->err, sizeof *more, "a query");
    r->query->names = more;
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
            status =
                add_node(r->query, (esdm__query_node){ESDM__QUERY_AND, node, right}, &node, r->err);
    }
    if (status == ESDM_OK && r->any)
        status =
            add_node(r->query, (esdm__query_node){ESDM__QUERY_OR, r->node, node}, &node, r->err);
    r->node = node;
    r->any = true;
    return status;
}

static esdm_status
resolve_open(const esdm_meta_plugin *meta, void *store, esdm__query *query, size_t node,
             esdm_error *err)
{
    esdm__query_open *open = &query->opens[query->nodes[node].left];
    resolving *r = calloc(1, sizeof *r);
    size_t used = 0;
    if (r == NULL)
        return esdm__error_nomem(err, sizeof *r, "a query");
    *r = (resolving){.query = query, .open = open, .err = err};
    esdm_status status = meta->extent_names(store, open->prefix, note_name, r, err);
    open->found = r->names > 0;
    for (; used < r->names && status == ESDM_OK; used++) {
        status = keep_name(r, r->list[used]);
        if (status != ESDM_OK)
            break;
        status = add_alternative(r, r->list[used]);
    }
    for (size_t i = used; i < r->names; i++)
        free(r->list[i]);
    if (status == ESDM_OK && !r->any && r->misfit)
        status =
            esdm__error_set(err, ESDM_EINVAL,
                            "query, column %zu: '%.80s' cannot be compared with '%.80s', which "
                            "%.80s is in",
                            open->column, open->unit, r->unit, open->said);
    if (status == ESDM_OK && r->any)
        query->nodes[node] = query->nodes[r->node];
    else if (status == ESDM_OK)
        query->nodes[node].kind = ESDM__QUERY_NEVER;
    free(r);
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
