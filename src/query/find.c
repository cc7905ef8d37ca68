/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Answers of queries. A store answers them at once, from its index. Where it cannot (regular
 * expressions, a store that takes lists of comparisons alone) terms are asked one after the other;
 * of what a term finds is taken away what meets one of the comparisons that must fail, too.
 */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/meta_checks.h"
#include "query/query.h"

typedef struct found {
    char *container;     /* owned; the dataset's text follows it */
    const char *dataset; /* NULL: the container */
    bool taken_away;
} found;

typedef struct found_list {
    found *items;
    size_t count, capacity;
    bool nomem;
} found_list;

typedef struct search {
    const esdm_meta_plugin *meta;
    void *store;
    const esdm__query *query;
    esdm_error *err;
} search;

/* ---- lists ---------------------------------------------------------------------------------- */

static void
clear_list(found_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].container);
    free(list->items);
    *list = (found_list){0};
}

static bool
reserve(found_list *list, size_t more)
{
    if (list->count + more <= list->capacity)
        return true;
    size_t capacity = 2 * list->capacity + more + 16;
    found *items = realloc(list->items, capacity * sizeof *items);
    if (items == NULL)
        return false;
    list->items = items;
    list->capacity = capacity;
    return true;
}

static bool
add_match(const char *container, const char *dataset, void *user)
{
    found_list *list = user;
    size_t bytes = strlen(container) + 1;
    size_t more = dataset != NULL ? strlen(dataset) + 1 : 0;
    char *text = malloc(bytes + more);
    list->nomem = text == NULL || !reserve(list, 1);
    if (list->nomem) {
        free(text);
        return false;
    }
    memcpy(text, container, bytes);
    if (dataset != NULL)
        memcpy(text + bytes, dataset, more);
    list->items[list->count++] =
        (found){.container = text, .dataset = dataset != NULL ? text + bytes : NULL};
    return true;
}

static bool
add_container(const char *name, const esdm_meta_container *record, void *user)
{
    (void) record;
    return add_match(name, NULL, user);
}

static int
compare_found(const void *a, const void *b)
{
    const found *x = a, *y = b;
    int order = strcmp(x->container, y->container);
    if (order != 0 || x->dataset == y->dataset)
        return order;
    if (x->dataset == NULL || y->dataset == NULL)
        return x->dataset == NULL ? -1 : 1;
    return strcmp(x->dataset, y->dataset);
}

/* Sorted, each once. */
static void
sort_list(found_list *list)
{
    size_t kept = 0;
    if (list->count > 1)
        qsort(list->items, list->count, sizeof *list->items, compare_found);
    for (size_t i = 0; i < list->count; i++) {
        if (kept > 0 && compare_found(&list->items[kept - 1], &list->items[i]) == 0)
            free(list->items[i].container);
        else
            list->items[kept++] = list->items[i];
    }
    list->count = kept;
}

/* Both are sorted. */
static void
take_away(found_list *from, const found_list *what)
{
    for (size_t i = 0, j = 0; i < from->count && j < what->count;) {
        int order = compare_found(&from->items[i], &what->items[j]);
        if (order == 0)
            from->items[i].taken_away = true;
        i += order <= 0;
        j += order >= 0;
    }
}

static void
drop_taken(found_list *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].taken_away)
            free(list->items[i].container);
        else
            list->items[kept++] = list->items[i];
    }
    list->count = kept;
}

/* ---- regular expressions -------------------------------------------------------------------- */

/* Takes away what does not match. */
static esdm_status
match_list(const search *s, found_list *list, size_t condition)
{
    esdm__query_object *objects = calloc(list->count + 1, sizeof *objects);
    if (objects == NULL)
        return esdm__error_nomem(s->err, list->count * sizeof *objects, "the answer to a query");
    for (size_t i = 0; i < list->count; i++)
        objects[i] = (esdm__query_object){list->items[i].container, list->items[i].dataset, false};
    esdm_status status =
        esdm__query_match(s->meta, s->store, &s->query->conditions[condition],
                          s->query->regexes[condition], objects, list->count, s->err);
    for (size_t i = 0; i < list->count; i++)
        list->items[i].taken_away = !objects[i].matches;
    free(objects);
    drop_taken(list);
    return status;
}

/* ---- terms ---------------------------------------------------------------------------------- */

/* What meets the first `holds` comparisons of the term, and the one `also` (SIZE_MAX: none). */
static esdm_status
ask(const search *s, const esdm__query_term *term, size_t also, found_list *ret)
{
    esdm_meta_condition conditions[ESDM__CONDITIONS_MAX];
    size_t numbers[ESDM__CONDITIONS_MAX];
    size_t count = term->holds;
    if (count > 0)
        memcpy(numbers, term->conditions, count * sizeof *numbers);
    if (also != SIZE_MAX)
        numbers[count++] = also;
    for (size_t i = 0; i < count; i++)
        conditions[i] = s->query->conditions[numbers[i]];
    esdm_status status;
    if (count > 0)
        status = s->meta->find(s->store, conditions, count, add_match, ret, s->err);
    else
        status = s->meta->container_list(s->store, NULL, add_container, ret, s->err);
    if (status == ESDM_OK && ret->nomem)
        status = esdm__error_nomem(s->err, ret->capacity, "the answer to a query");
    if (status == ESDM_OK)
        sort_list(ret);
    for (size_t i = 0; i < count && status == ESDM_OK; i++) {
        if (s->query->regexes[numbers[i]] != NULL)
            status = match_list(s, ret, numbers[i]);
    }
    return status;
}

static esdm_status
ask_term(const search *s, const esdm__query_term *term, found_list *all)
{
    found_list list = {0};
    esdm_status status = ask(s, term, SIZE_MAX, &list);
    for (size_t i = 0; i < term->fails && status == ESDM_OK && list.count > 0; i++) {
        found_list meets = {0};
        status = ask(s, term, term->conditions[term->holds + i], &meets);
        if (status == ESDM_OK)
            take_away(&list, &meets);
        clear_list(&meets);
        drop_taken(&list);
    }
    if (status == ESDM_OK && list.count > 0 && !reserve(all, list.count))
        status =
            esdm__error_nomem(s->err, list.count * sizeof *list.items, "the answer to a query");
    if (status == ESDM_OK && list.count > 0) {
        memcpy(all->items + all->count, list.items, list.count * sizeof *list.items);
        all->count += list.count;
        list.count = 0;
    }
    clear_list(&list);
    return status;
}

/* Whether all comparisons must hold, each once. */
static bool
is_plain(const esdm_meta_expression *e)
{
    size_t holds = 0;
    for (size_t i = 0; i < e->nnodes; i++) {
        if (e->nodes[i].kind != ESDM_META_ALL && e->nodes[i].kind != ESDM_META_HOLDS)
            return false;
        holds += e->nodes[i].kind == ESDM_META_HOLDS;
    }
    return holds == e->nconditions && holds <= ESDM__CONDITIONS_MAX;
}

/* One question to the store. ESDM_ENOTSUP: it takes no such questions. */
static esdm_status
ask_at_once(const search *s, esdm_meta_match_visitor visit, void *user, esdm_error *err)
{
    esdm_meta_expression e = {0};
    esdm_meta_node *nodes = NULL;
    esdm_status status = esdm__query_expression(s->query, &e, &nodes, err);
    if (status == ESDM_OK && nodes == NULL)
        return ESDM_ENOTSUP;
    bool limited = e.most_ms > 0 && s->meta->find_expression != NULL;
    if (status == ESDM_OK && is_plain(&e) && !limited)
        status = s->meta->find(s->store, e.conditions, e.nconditions, visit, user, err);
    else if (status == ESDM_OK && s->meta->find_expression != NULL)
        status = s->meta->find_expression(s->store, &e, visit, user, err);
    else if (status == ESDM_OK)
        status = ESDM_ENOTSUP;
    free(nodes);
    return status;
}

typedef struct asking {
    search s;
    found_list all;
} asking;

/* One question for each term. */
static esdm_status
ask_all(void *user, esdm_error *err)
{
    asking *a = user;
    esdm__query_terms terms = {0};
    a->s.err = err;
    esdm_status status = esdm__query_terms_make(a->s.query, &terms, err);
    for (size_t i = 0; i < terms.count && status == ESDM_OK; i++)
        status = ask_term(&a->s, &terms.items[i], &a->all);
    esdm__query_terms_clear(&terms);
    return status;
}

static void
forget_found(void *user)
{
    clear_list(&((asking *) user)->all);
}

/* @param one the questions see one state of the store. */
static esdm_status
find(const esdm_meta_plugin *meta, void *store, const esdm__query *query, bool one,
     esdm_meta_match_visitor visit, void *user, esdm_error *err)
{
    asking a = {.s = {.meta = meta, .store = store, .query = query, .err = err}};
    esdm_error why = {0};
    esdm_status status = ask_at_once(&a.s, visit, user, &why);
    if (status != ESDM_ENOTSUP) {
        if (status != ESDM_OK && err != NULL)
            *err = why;
        return status;
    }
    status = one ? esdm__query_of_one_state(meta, store, ask_all, forget_found, &a, err)
                 : ask_all(&a, err);
    if (status == ESDM_OK)
        sort_list(&a.all);
    for (size_t i = 0; i < a.all.count && status == ESDM_OK; i++) {
        if (!visit(a.all.items[i].container, a.all.items[i].dataset, user))
            break;
    }
    clear_list(&a.all);
    return status;
}

esdm_status
esdm__query_find(const esdm_meta_plugin *meta, void *store, const esdm__query *query,
                 esdm_meta_match_visitor visit, void *user, esdm_error *err)
{
    return find(meta, store, query, true, visit, user, err);
}

esdm_status
esdm__query_find_here(const esdm_meta_plugin *meta, void *store, const esdm__query *query,
                      esdm_meta_match_visitor visit, void *user, esdm_error *err)
{
    return find(meta, store, query, false, visit, user, err);
}

esdm_status
esdm__query_find_among(const esdm_meta_plugin *meta, void *store, const esdm__query *query,
                       const uint64_t *containers, size_t ncontainers,
                       esdm_meta_match_visitor visit, void *user, esdm_error *err)
{
    esdm_meta_expression e = {0};
    esdm_meta_node *nodes = NULL;
    esdm_status status = esdm__query_expression(query, &e, &nodes, err);
    if (status == ESDM_OK && (nodes == NULL || meta->find_among == NULL))
        status = esdm__error_set(err, ESDM_ENOTSUP, "the store looks at all containers");
    if (status == ESDM_OK)
        status = meta->find_among(store, &e, containers, ncontainers, visit, user, err);
    free(nodes);
    return status;
}

esdm_status
esdm__query_estimate(const esdm_meta_plugin *meta, void *store, const esdm__query *query,
                     uint64_t *ret_containers, esdm_error *err)
{
    esdm_meta_expression e = {0};
    esdm_meta_node *nodes = NULL;
    *ret_containers = 0;
    esdm_status status = esdm__query_expression(query, &e, &nodes, err);
    if (status == ESDM_OK && (nodes == NULL || meta->find_estimate == NULL))
        status = esdm__error_set(err, ESDM_ENOTSUP, "the store looks at all containers");
    if (status == ESDM_OK)
        status = meta->find_estimate(store, &e, ret_containers, err);
    free(nodes);
    return status;
}
