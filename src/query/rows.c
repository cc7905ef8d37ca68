/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Matches of a query with attributes of them. */

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "query/query.h"

typedef struct row {
    char *container; /* owned; the dataset's text follows it */
    const char *dataset;
} row;

typedef struct row_list {
    row *items;
    size_t count;
    bool nomem;
} row_list;

/* One column of a row: own values, and those of the container. */
typedef struct cell {
    esdm__buffer own, global; /* texts, joined */
    size_t nown, nglobal;
    double number[2]; /* the last number of each */
    bool has_number[2];
} cell;

typedef struct reading {
    const char *dataset; /* of the row; NULL: the container */
    const char *const *columns;
    size_t ncolumns;
    cell *cells;
} reading;

static bool
add_row(const char *container, const char *dataset, void *user)
{
    row_list *list = user;
    size_t bytes = strlen(container) + 1;
    size_t more = dataset != NULL ? strlen(dataset) + 1 : 0;
    char *text = malloc(bytes + more);
    list->nomem = text == NULL || !esdm__array_grow(&list->items, list->count, sizeof *list->items);
    if (list->nomem) {
        free(text);
        return false;
    }
    memcpy(text, container, bytes);
    if (dataset != NULL)
        memcpy(text + bytes, dataset, more);
    list->items[list->count++] = (row){text, dataset != NULL ? text + bytes : NULL};
    return true;
}

static void
put_value(cell *c, bool own, const esdm_meta_attribute *attribute)
{
    esdm__buffer *buffer = own ? &c->own : &c->global;
    size_t *count = own ? &c->nown : &c->nglobal;
    const char *text = attribute->text != NULL ? attribute->text : "";
    if ((*count)++ > 0)
        esdm__buffer_put(buffer, ", ", 2);
    esdm__buffer_put(buffer, text, strlen(text));
    c->number[own] = attribute->number;
    c->has_number[own] = attribute->has_number && *count == 1;
}

static bool
read_attribute(const esdm_meta_attribute *attribute, void *user)
{
    const reading *r = user;
    const char *path = attribute->dataset == 0 ? NULL : attribute->dataset_path;
    bool own =
        path == NULL ? r->dataset == NULL : r->dataset != NULL && strcmp(path, r->dataset) == 0;
    if (path != NULL && !own)
        return true;
    for (size_t i = 0; i < r->ncolumns; i++) {
        if (strcmp(attribute->name, r->columns[i]) == 0)
            put_value(&r->cells[i], own, attribute);
    }
    return true;
}

static bool
end_cell(cell *c, esdm__query_value *ret)
{
    bool own = c->nown > 0;
    esdm__buffer *buffer = own ? &c->own : &c->global;
    *ret = (esdm__query_value){0};
    if (c->nown + c->nglobal == 0)
        return true;
    esdm__buffer_put_u8(buffer, 0);
    if (buffer->failed)
        return false;
    *ret = (esdm__query_value){.text = (const char *) buffer->data,
                               .number = c->number[own],
                               .has_number = c->has_number[own]};
    return true;
}

/* One row's attributes, visited. */
static esdm_status
show_row(const esdm_meta_plugin *meta, void *store, uint64_t container, const row *shown,
         reading *r, esdm__query_value *values, esdm__query_row_visitor visit, void *user,
         bool *ret_more, esdm_error *err)
{
    bool fits = true;
    for (size_t i = 0; i < r->ncolumns; i++) {
        r->cells[i] = (cell){0};
        esdm__buffer_init(&r->cells[i].own);
        esdm__buffer_init(&r->cells[i].global);
    }
    r->dataset = shown->dataset;
    esdm_status status = meta->attributes(store, container, read_attribute, r, err);
    for (size_t i = 0; i < r->ncolumns; i++)
        fits &= end_cell(&r->cells[i], &values[i]);
    if (status == ESDM_OK && !fits)
        status = esdm__error_nomem(err, r->ncolumns, "a row of an answer");
    if (status == ESDM_OK)
        *ret_more = visit(shown->container, shown->dataset, values, user);
    for (size_t i = 0; i < r->ncolumns; i++) {
        esdm__buffer_clear(&r->cells[i].own);
        esdm__buffer_clear(&r->cells[i].global);
    }
    return status;
}

static esdm_status
show_rows(const esdm_meta_plugin *meta, void *store, const row_list *list, reading *r,
          esdm__query_value *values, esdm__query_row_visitor visit, void *user, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    esdm_meta_container record = {0};
    bool more = true;
    for (size_t i = 0; i < list->count && more && status == ESDM_OK; i++) {
        const row *shown = &list->items[i];
        if (i == 0 || strcmp(shown->container, list->items[i - 1].container) != 0)
            status = meta->container_find(store, shown->container, &record, err);
        if (status == ESDM_OK && record.container != 0)
            status =
                show_row(meta, store, record.container, shown, r, values, visit, user, &more, err);
        if (status == ESDM_ENOENT) { /* it was removed meanwhile */
            record.container = 0;
            status = ESDM_OK;
        }
    }
    return status;
}

esdm_status
esdm__query_rows(const esdm_meta_plugin *meta, void *store, const esdm__query *query,
                 const char *const *columns, size_t ncolumns, esdm__query_row_visitor visit,
                 void *user, esdm_error *err)
{
    row_list list = {0};
    reading r = {
        .columns = columns, .ncolumns = ncolumns, .cells = calloc(ncolumns + 1, sizeof *r.cells)};
    esdm__query_value *values = calloc(ncolumns + 1, sizeof *values);
    esdm_status status = ESDM_OK;
    if (r.cells == NULL || values == NULL)
        status = esdm__error_nomem(err, ncolumns * sizeof *r.cells, "an answer");
    if (status == ESDM_OK)
        status = esdm__query_find(meta, store, query, add_row, &list, err);
    if (status == ESDM_OK && list.nomem)
        status = esdm__error_nomem(err, list.count * sizeof *list.items, "an answer");
    if (status == ESDM_OK)
        status = show_rows(meta, store, &list, &r, values, visit, user, err);
    for (size_t i = 0; i < list.count; i++)
        free(list.items[i].container);
    free(list.items);
    free(r.cells);
    free(values);
    return status;
}
