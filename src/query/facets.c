/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Facets: how many of the containers that a query finds have each value of some attributes. The
 * store counts where it can, else what is found is gone through.
 */

#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/error.h"
#include "base/hidden_names.h"
#include "query/query.h"

typedef struct tally {
    char *value; /* owned */
    uint64_t count;
    uint64_t container; /* that was counted last */
} tally;

/* Values of one attribute: open addressing, at most three quarters full. */
typedef struct tally_table {
    tally *items;    /* owned */
    size_t capacity; /* a power of two */
    size_t count;
} tally_table;

typedef struct counting {
    tally_table *tables; /* of each name; owned */
    size_t nnames;
    uint64_t container; /* serial number of the one that is looked at */
    char *last;         /* its name; owned */
    bool nomem;
} counting;

static tally *
slot_of(const tally_table *t, const char *value)
{
    size_t i = (size_t) esdm__checksum(value, strlen(value)) & (t->capacity - 1);
    while (t->items[i].value != NULL && strcmp(t->items[i].value, value) != 0)
        i = (i + 1) & (t->capacity - 1);
    return &t->items[i];
}

static bool
grow(tally_table *t)
{
    tally_table larger = {.capacity = t->capacity > 0 ? 2 * t->capacity : 64, .count = t->count};
    if (4 * (t->count + 1) <= 3 * t->capacity)
        return true;
    larger.items = calloc(larger.capacity, sizeof *larger.items);
    if (larger.items == NULL)
        return false;
    for (size_t i = 0; i < t->capacity; i++) {
        if (t->items[i].value != NULL)
            *slot_of(&larger, t->items[i].value) = t->items[i];
    }
    free(t->items);
    *t = larger;
    return true;
}

static tally *
tally_of(counting *c, size_t name, const char *value)
{
    tally_table *t = &c->tables[name];
    if (!grow(t)) {
        c->nomem = true;
        return NULL;
    }
    tally *one = slot_of(t, value);
    if (one->value == NULL) {
        one->value = strdup(value);
        c->nomem |= one->value == NULL;
        t->count += one->value != NULL;
    }
    return one->value != NULL ? one : NULL;
}

static void
clear_tables(counting *c)
{
    for (size_t k = 0; c->tables != NULL && k < c->nnames; k++) {
        for (size_t i = 0; i < c->tables[k].capacity; i++)
            free(c->tables[k].items[i].value);
        free(c->tables[k].items);
        c->tables[k] = (tally_table){0};
    }
}

static bool
add_counts(size_t name, const char *value, uint64_t containers, void *user)
{
    counting *c = user;
    tally *one = tally_of(c, name, value);
    if (one != NULL)
        one->count += containers;
    return !c->nomem;
}

/* A container counts once for each value that it, or what is found in it, has. */
static bool
add_row(const char *container, const char *dataset, const esdm__query_value *values, void *user)
{
    counting *c = user;
    (void) dataset;
    if (esdm__name_is_hidden(container))
        return true;
    if (c->last == NULL || strcmp(c->last, container) != 0) { /* they come by name */
        free(c->last);
        c->last = strdup(container);
        c->nomem |= c->last == NULL;
        c->container++;
    }
    for (size_t i = 0; i < c->nnames && !c->nomem; i++) {
        tally *one = values[i].text != NULL ? tally_of(c, i, values[i].text) : NULL;
        if (one != NULL && one->container != c->container) {
            one->container = c->container;
            one->count++;
        }
    }
    return !c->nomem;
}

/* The most frequent first. */
static int
compare(const void *a, const void *b)
{
    const tally *x = *(tally *const *) a, *y = *(tally *const *) b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return strcmp(x->value, y->value);
}

static esdm_status
tell_name(const counting *c, size_t name, esdm_meta_facet_visitor visit, void *user, bool *ret_more,
          esdm_error *err)
{
    const tally_table *t = &c->tables[name];
    size_t count = 0;
    tally **sorted = malloc((t->count + 1) * sizeof *sorted);
    if (sorted == NULL)
        return esdm__error_nomem(err, t->count * sizeof *sorted, "facets");
    for (size_t i = 0; i < t->capacity; i++) {
        if (t->items[i].value != NULL)
            sorted[count++] = &t->items[i];
    }
    if (count > 1)
        qsort(sorted, count, sizeof *sorted, compare);
    for (size_t i = 0; i < count && *ret_more; i++)
        *ret_more = visit(name, sorted[i]->value, sorted[i]->count, user);
    free(sorted);
    return ESDM_OK;
}

/* What is found, gone through. */
typedef struct going {
    const esdm_meta_plugin *meta;
    void *store;
    const esdm__query *query;
    const char *const *names;
    counting *c;
} going;

static esdm_status
go_through(void *user, esdm_error *err)
{
    const going *g = user;
    return esdm__query_rows(g->meta, g->store, g->query, g->names, g->c->nnames, add_row, g->c,
                            err);
}

static void
forget_counts(void *user)
{
    counting *c = ((going *) user)->c;
    clear_tables(c);
    free(c->last);
    c->last = NULL;
}

static esdm_status
count_all(const esdm_meta_plugin *meta, void *store, const esdm__query *query,
          const char *const *names, size_t nnames, counting *c, esdm_error *err)
{
    esdm_error why = {0};
    esdm_meta_expression e;
    esdm_meta_node *nodes = NULL;
    esdm_status status = esdm__query_expression(query, &e, &nodes, &why);
    if (status == ESDM_OK)
        status = nodes != NULL && meta->facets != NULL
                     ? meta->facets(store, &e, names, nnames, add_counts, c, &why)
                     : ESDM_ENOTSUP;
    free(nodes);
    if (status == ESDM_ENOTSUP) {
        going g = {meta, store, query, names, c};
        forget_counts(&g);
        status = esdm__query_of_one_state(meta, store, go_through, forget_counts, &g, &why);
    }
    if (status != ESDM_OK && err != NULL)
        *err = why;
    if (status == ESDM_OK && c->nomem)
        status = esdm__error_nomem(err, nnames * sizeof *c->tables, "facets");
    return status;
}

esdm_status
esdm__query_facets(const esdm_meta_plugin *meta, void *store, const esdm__query *query,
                   const char *const *names, size_t nnames, esdm_meta_facet_visitor visit,
                   void *user, esdm_error *err)
{
    bool more = true;
    counting c = {.tables = calloc(nnames + 1, sizeof *c.tables), .nnames = nnames};
    if (c.tables == NULL)
        return esdm__error_nomem(err, nnames * sizeof *c.tables, "facets");
    esdm_status status = count_all(meta, store, query, names, nnames, &c, err);
    for (size_t i = 0; i < nnames && more && status == ESDM_OK; i++)
        status = tell_name(&c, i, visit, user, &more, err);
    clear_tables(&c);
    free(c.tables);
    free(c.last);
    return status;
}
