/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Which objects of an answer have a value that a regular expression
 * matches. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "query/query.h"

/* Containers whose values are asked for at once. */
#define BATCH 512

/* An object of the batch. */
typedef struct seen {
    bool own, own_matches;
} seen;

typedef struct matching {
    const esdm_meta_condition *condition;
    const esdm__regex *regex;
    const esdm__query_object *objects; /* of the batch; borrowed */
    const char *names[BATCH];          /* of containers; borrowed */
    size_t first[BATCH + 1];           /* object of each, and the end */
    bool global[BATCH];                /* a value of the container itself matches */
    size_t ncontainers, nobjects;
    bool datasets; /* some object is one */
    seen *seen;    /* of each object; owned */
    esdm_status status;
    esdm_error *err;
} matching;

static bool
match_value(size_t container, const esdm_meta_attribute *attribute, void *user)
{
    matching *m = user;
    bool matches = false;
    const char *path = attribute->dataset == 0 ? NULL : attribute->dataset_path;
    if (attribute->text != NULL)
        m->status = esdm__regex_matches(m->regex, attribute->text, &matches, m->err);
    if (m->status != ESDM_OK)
        return false;
    if (path == NULL)
        m->global[container] |= matches;
    for (size_t i = m->first[container]; i < m->first[container + 1]; i++) {
        const char *dataset = m->objects[i].dataset;
        bool own = path == NULL ? dataset == NULL : dataset != NULL && strcmp(path, dataset) == 0;
        m->seen[i].own |= own;
        m->seen[i].own_matches |= own && matches;
    }
    return true;
}

/* Objects of as many containers as go together. */
static void
begin_batch(matching *m, const esdm__query_object *objects, size_t count)
{
    m->objects = objects;
    m->ncontainers = 0;
    m->datasets = false;
    for (m->nobjects = 0; m->nobjects < count; m->nobjects++) {
        const esdm__query_object *one = &objects[m->nobjects];
        size_t n = m->ncontainers;
        if (n == 0 || strcmp(one->container, m->names[n - 1]) != 0) {
            if (n == BATCH)
                break;
            m->first[n] = m->nobjects;
            m->global[n] = false;
            m->names[m->ncontainers++] = one->container;
        }
        m->datasets |= one->dataset != NULL;
    }
    m->first[m->ncontainers] = m->nobjects;
    memset(m->seen, 0, m->nobjects * sizeof *m->seen);
}

static void
tell_batch(const matching *m, esdm__query_object *objects)
{
    bool containers = m->condition->variable != NULL && m->condition->variable[0] == '\0';
    for (size_t n = 0; n < m->ncontainers; n++) {
        for (size_t i = m->first[n]; i < m->first[n + 1]; i++)
            objects[i].matches =
                containers || !m->seen[i].own ? m->global[n] : m->seen[i].own_matches;
    }
}

esdm_status
esdm__query_match(const esdm_meta_plugin *meta, void *store, const esdm_meta_condition *condition,
                  const esdm__regex *regex, esdm__query_object *objects, size_t count,
                  esdm_error *err)
{
    matching *m = calloc(1, sizeof *m);
    seen *all = calloc(count + 1, sizeof *all);
    esdm_status status = ESDM_OK;
    if (m == NULL || all == NULL)
        status = esdm__error_nomem(err, count * sizeof *all, "the answer to a query");
    else
        *m = (matching){.condition = condition, .regex = regex, .seen = all, .err = err};
    for (size_t at = 0; at < count && status == ESDM_OK; at += m->nobjects) {
        begin_batch(m, objects + at, count - at);
        status = esdm__query_values(meta, store, m->names, m->ncontainers, &condition->attribute, 1,
                                    m->datasets, match_value, m, err);
        if (status == ESDM_OK)
            status = m->status;
        if (status == ESDM_OK)
            tell_batch(m, objects + at);
    }
    free(all);
    free(m);
    return status;
}
