/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Views: what lies below a place, found by comparisons of attributes. Values that a component tells
 * exactly are asked for; the rest is compared afterwards.
 */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hidden_names.h"
#include "io/session/former.h"
#include "query/query.h"
#include "query/view.h"

/* A component and how many containers are there. */
typedef struct esdm__view_part {
    char *component;
    uint64_t containers;
} esdm__view_part;

/* ---- the question ------------------------------------------------------------------------- */

typedef struct asking {
    const esdm__view_path *path;
    esdm__query query;
    char *values[ESDM__VIEW_LEVELS_MOST]; /* owned */
    esdm_error *err;
} asking;

static esdm_status
add_condition(asking *a, const char *attribute, esdm_meta_operator op, const char *text)
{
    esdm_meta_condition *condition = NULL;
    size_t node = 0;
    esdm_status status = esdm__query_append_condition(&a->query, 1, &condition, a->err);
    if (status != ESDM_OK)
        return status;
    *condition =
        (esdm_meta_condition){.variable = "", .attribute = attribute, .op = op, .text = text};
    size_t last = a->query.nconditions - 1;
    status = esdm__query_append_node(&a->query, (esdm__query_node){ESDM__QUERY_COMPARISON, last, 0},
                                     &node, a->err);
    if (status == ESDM_OK && last > 0)
        status = esdm__query_append_node(
            &a->query, (esdm__query_node){ESDM__QUERY_AND, a->query.root, node}, &node, a->err);
    a->query.root = node;
    return status;
}

/* A value that one element of an attribute may have: what is joined is compared later. */
static const char *
value_at(asking *a, size_t level)
{
    const esdm__view_path *path = a->path;
    if (level < path->depth && esdm__view_value(path->components[level], &a->values[level]) &&
        a->values[level] != NULL && a->values[level][0] != '\0' &&
        strstr(a->values[level], ", ") == NULL)
        return a->values[level];
    return path->view->levels[level].value;
}

static esdm_status
make_question(asking *a)
{
    const esdm__site_view *view = a->path->view;
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < view->nlevels && status == ESDM_OK; i++) {
        const char *value = value_at(a, i);
        if (value != NULL)
            status = add_condition(a, view->levels[i].attribute, ESDM_META_EQ, value);
    }
    if (status == ESDM_OK && a->query.nconditions == 0)
        status = add_condition(a, view->levels[0].attribute, ESDM_META_GLOB, "*");
    a->query.resolved = status == ESDM_OK;
    return status;
}

/* ---- answers ------------------------------------------------------------------------------ */

typedef struct visiting {
    const esdm__view_path *path;
    esdm__buffer one; /* a component */
    bool nomem;
    bool (*visit)(const char *container, const char *component, void *user);
    void *user;
} visiting;

/* The component of a container at a level. NULL: out of memory. */
static const char *
component_of(visiting *v, const esdm__query_value *value)
{
    v->one.bytes = 0;
    esdm__view_component(value->text, &v->one);
    v->nomem |= v->one.failed;
    return v->one.failed ? NULL : (const char *) v->one.data;
}

/* Whether a container lies at or below the place, and what comes next there. */
static bool
visit_row(const char *container, const char *dataset, const esdm__query_value *values, void *user)
{
    visiting *v = user;
    const esdm__site_view *view = v->path->view;
    const char *component = "";
    if (dataset != NULL || esdm__name_is_hidden(container) || values[0].text == NULL ||
        values[view->nlevels].text != NULL)
        return true;
    for (size_t i = 0; i < view->nlevels; i++) {
        const char *must = view->levels[i].value;
        if (must != NULL && (values[i].text == NULL || strcmp(values[i].text, must) != 0))
            return true;
    }
    for (size_t i = 0; i < v->path->depth; i++) {
        component = component_of(v, &values[i]);
        if (component == NULL)
            return false;
        if (strcmp(component, v->path->components[i]) != 0)
            return true;
    }
    if (v->path->depth < view->nlevels)
        component = component_of(v, &values[v->path->depth]);
    return component != NULL && v->visit(container, component, v->user);
}

static esdm_status
visit_members(const esdm_meta_plugin *meta, void *store, visiting *v, esdm_error *err)
{
    const char *columns[ESDM__VIEW_LEVELS_MOST + 1];
    const esdm__site_view *view = v->path->view;
    const esdm__query_order by_name = {0};
    asking a = {.path = v->path, .err = err};
    for (size_t i = 0; i < view->nlevels; i++)
        columns[i] = view->levels[i].attribute;
    columns[view->nlevels] = ESDM__SAVED_ATTRIBUTE;
    esdm__buffer_init(&v->one);
    esdm_status status = make_question(&a);
    if (status == ESDM_OK)
        status = esdm__query_sorted(meta, store, &a.query, columns, view->nlevels + 1, &by_name,
                                    visit_row, v, err);
    if (status == ESDM_OK && v->nomem)
        status = esdm__error_nomem(err, v->one.bytes, "a level of a view");
    for (size_t i = 0; i < view->nlevels; i++)
        free(a.values[i]);
    esdm__query_clear(&a.query);
    esdm__buffer_clear(&v->one);
    return status;
}

typedef struct level {
    char **components; /* owned, each too; one for each container */
    size_t count;
    bool nomem;
} level;

static bool
note_component(const char *container, const char *component, void *user)
{
    level *l = user;
    (void) container;
    char *copy = strdup(component);
    l->nomem = copy == NULL || !esdm__array_grow(&l->components, l->count, sizeof copy);
    if (l->nomem)
        free(copy);
    else
        l->components[l->count++] = copy;
    return !l->nomem;
}

static int
by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

static void
tell_level(const level *l, esdm__view_visitor visit, void *user)
{
    for (size_t i = 0, end = 0; i < l->count; i = end) {
        for (end = i + 1; end < l->count; end++) {
            if (strcmp(l->components[i], l->components[end]) != 0)
                break;
        }
        if (!visit(l->components[i], end - i, user))
            break;
    }
}

/* ---- counts that the store keeps ---------------------------------------------------------- */

typedef struct kept_level {
    esdm__view_part *parts; /* owned, their components too */
    size_t count;
    bool nomem;
} kept_level;

static bool
note_value(const char *value, uint64_t containers, void *user)
{
    kept_level *l = user;
    esdm__buffer text;
    esdm__buffer_init(&text);
    esdm__view_component(value, &text);
    l->nomem = text.failed || !esdm__array_grow(&l->parts, l->count, sizeof *l->parts);
    if (l->nomem) {
        esdm__buffer_clear(&text);
        return false;
    }
    size_t bytes = 0;
    l->parts[l->count++] =
        (esdm__view_part){(char *) esdm__buffer_steal(&text, &bytes), containers};
    return true;
}

static int
by_component(const void *a, const void *b)
{
    return strcmp(((const esdm__view_part *) a)->component,
                  ((const esdm__view_part *) b)->component);
}

/* A value may have been told several times. */
static void
tell_kept(const kept_level *l, esdm__view_visitor visit, void *user)
{
    for (size_t i = 0, end = 0; i < l->count; i = end) {
        uint64_t containers = 0;
        for (end = i; end < l->count && strcmp(l->parts[i].component, l->parts[end].component) == 0;
             end++)
            containers += l->parts[end].containers;
        if (!visit(l->parts[i].component, containers, user))
            break;
    }
}

/* ESDM_ENOENT: the store keeps no counts of the view; ESDM_ENOTSUP: the place cannot be asked for.
 */
static esdm_status
list_kept(const esdm_meta_plugin *meta, void *store, const esdm__view_path *path,
          esdm__view_visitor visit, void *user, esdm_error *err)
{
    esdm__view_shape shape;
    kept_level l = {0};
    char *values[ESDM__VIEW_LEVELS_MOST] = {0};
    esdm_status status = meta->view_level != NULL ? ESDM_OK : ESDM_ENOTSUP;
    for (size_t i = 0; i < path->depth && status == ESDM_OK; i++) {
        if (!esdm__view_value(path->components[i], &values[i]))
            status = ESDM_ENOTSUP;
    }
    esdm__site_view_describe(path->view, &shape);
    if (status == ESDM_OK)
        status = meta->view_level(store, &shape.view, (const char *const *) values, path->depth,
                                  note_value, &l, err);
    if (status == ESDM_OK && l.nomem)
        status = esdm__error_nomem(err, l.count * sizeof *l.parts, "a level of a view");
    if (l.count > 1)
        qsort(l.parts, l.count, sizeof *l.parts, by_component);
    if (status == ESDM_OK)
        tell_kept(&l, visit, user);
    for (size_t i = 0; i < l.count; i++)
        free(l.parts[i].component);
    free(l.parts);
    for (size_t i = 0; i < path->depth; i++)
        free(values[i]);
    return status;
}

static esdm_status
list_found(const esdm_meta_plugin *meta, void *store, const esdm__view_path *path,
           esdm__view_visitor visit, void *user, esdm_error *err)
{
    level l = {0};
    visiting v = {.path = path, .visit = note_component, .user = &l};
    esdm_status status = visit_members(meta, store, &v, err);
    if (status == ESDM_OK && l.nomem)
        status = esdm__error_nomem(err, l.count * sizeof *l.components, "a level of a view");
    if (l.count > 1)
        qsort(l.components, l.count, sizeof *l.components, by_bytes);
    if (status == ESDM_OK)
        tell_level(&l, visit, user);
    for (size_t i = 0; i < l.count; i++)
        free(l.components[i]);
    free(l.components);
    return status;
}

esdm_status
esdm__view_level_list(const esdm_meta_plugin *meta, void *store, const esdm__view_path *path,
                      esdm__view_visitor visit, void *user, esdm_error *err)
{
    esdm_error why = {0};
    esdm_status status = list_kept(meta, store, path, visit, user, &why);
    if (status == ESDM_ENOENT || status == ESDM_ENOTSUP)
        return list_found(meta, store, path, visit, user, err);
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

typedef struct naming {
    esdm_meta_name_visitor visit;
    void *user;
} naming;

static bool
visit_name(const char *container, const char *component, void *user)
{
    const naming *n = user;
    (void) component;
    return n->visit(container, n->user);
}

esdm_status
esdm__view_containers(const esdm_meta_plugin *meta, void *store, const esdm__view_path *path,
                      esdm_meta_name_visitor visit, void *user, esdm_error *err)
{
    naming n = {visit, user};
    visiting v = {.path = path, .visit = visit_name, .user = &n};
    return visit_members(meta, store, &v, err);
}
