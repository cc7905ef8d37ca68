/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Open comparisons: which names of extents they are about, one for each unit that the data have.
 * They become alternatives of comparisons with numbers in these units.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
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

/* What people write, and the units that are meant; each is one of udunits. */
static const char *const units[][2] = {
    {"C", "degC"},
    {"F", "degF"},
    {"k", "K"},
    {"K", "K"},
    {"kelvin", "kelvin"},
    {"degC", "degC"},
    {"celsius", "celsius"},
    {"degF", "degF"},
    {"fahrenheit", "fahrenheit"},
    {"centigrade", "degC"},
    {"Pa", "Pa"},
    {"hPa", "hPa"},
    {"kPa", "kPa"},
    {"mbar", "mbar"},
    {"millibar", "millibar"},
    {"pascal", "Pa"},
    {"m", "m"},
    {"km", "km"},
    {"mm", "mm"},
    {"cm", "cm"},
    {"meter", "m"},
    {"metre", "m"},
    {"feet", "feet"},
    {"m/s", "m/s"},
    {"km/h", "km/h"},
    {"knot", "knot"},
    {"kmh", "km/h"},
    {"s", "s"},
    {"hours", "hours"},
    {"days", "days"},
    {"kg/m2/s", "kg m-2 s-1"},
    {"mm/day", "kg m-2 day-1"},
    {"percent", "percent"},
    {"g/kg", "g/kg"},
    {"kg", "kg"},
    {"W/m2", "W m-2"},
    {"degrees", "degrees"},
    {"degrees_north", "degrees_north"},
    {"degrees_east", "degrees_east"},
};
#define NUNITS (sizeof units / sizeof units[0])

/* The unit that was perhaps meant, of those that can be compared with `unit`; NULL: none is near.
 */
static const char *
nearest_unit(const char *said, const char *unit)
{
    const char *known[NUNITS + 1];
    size_t count = 0;
    double slope, offset;
    bool is_known;
    for (size_t i = 0; i < NUNITS; i++) {
        if (esdm__units_convert(units[i][1], unit, &is_known, &slope, &offset, NULL) != ESDM_OK)
            continue;
        if (strcasecmp(units[i][0], said) == 0 && strcmp(units[i][1], said) != 0)
            return units[i][1];
        known[count++] = units[i][0];
    }
    known[count] = NULL;
    const char *near = esdm__nearest_word(said, known);
    for (size_t i = 0; near != NULL && i < NUNITS; i++) {
        if (units[i][0] == near)
            return units[i][1];
    }
    return NULL;
}

/* @param unit that of the data. */
static esdm_status
refuse_unit(const esdm__query_open *open, const char *unit, bool known, esdm_error *err)
{
    const char *near = nearest_unit(open->unit, unit);
    char hint[80] = "";
    if (near != NULL)
        (void) snprintf(hint, sizeof hint, "; did you mean %s?", near);
    if (!known)
        return esdm__error_set(err, ESDM_EINVAL, "query, column %zu: '%.80s' is no unit%s",
                               open->column, open->unit, hint);
    return esdm__error_set(err, ESDM_EINVAL,
                           "query, column %zu: '%.80s' cannot be compared with '%.80s', which "
                           "%.80s is in%s",
                           open->column, open->unit, unit, open->said, hint);
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
            return refuse_unit(open, tab + 1, false, r->err);
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
        status = refuse_unit(open, r.unit, true, err);
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
