/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Matches of a query with attributes of them: the store is asked for those of many
 * containers at once. */

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "query/query.h"

/* Containers whose attributes are asked for at once. */
#define BATCH 512

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
    const esdm_meta_plugin *meta;
    void *store;
    const char *const *columns;
    size_t ncolumns;
    const char **asked; /* the columns, each once; owned */
    size_t nasked;
    const row *rows; /* of the batch, those of a container together */
    size_t nrows;
    const char *names[BATCH]; /* of containers; borrowed */
    size_t first[BATCH + 1];  /* row of each, and the end */
    size_t nnames;
    bool datasets; /* some row is one */
    cell *cells;   /* nrows * ncolumns */
    esdm__query_value *values;
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

/* ---- values --------------------------------------------------------------------------------- */

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

/* An attribute of a container of the batch. */
static bool
read_value(size_t container, const esdm_meta_attribute *attribute, void *user)
{
    reading *r = user;
    const char *path = attribute->dataset == 0 ? NULL : attribute->dataset_path;
    for (size_t k = 0; k < r->ncolumns; k++) {
        if (strcmp(attribute->name, r->columns[k]) != 0)
            continue;
        for (size_t i = r->first[container]; i < r->first[container + 1]; i++) {
            const char *dataset = r->rows[i].dataset;
            bool own =
                path == NULL ? dataset == NULL : dataset != NULL && strcmp(path, dataset) == 0;
            if (own || path == NULL)
                put_value(&r->cells[i * r->ncolumns + k], own, attribute);
        }
    }
    return true;
}

/* Of a store that answers for one container at a time. */
typedef struct reading_one {
    const char *const *names;
    size_t nnames;
    bool datasets;
    size_t container;
    esdm_meta_value_visitor visit;
    void *user;
} reading_one;

static bool
pass_attribute(const esdm_meta_attribute *attribute, void *user)
{
    const reading_one *one = user;
    bool asked = attribute->dataset == 0 || one->datasets;
    for (size_t i = 0; asked && i < one->nnames; i++)
        if (strcmp(one->names[i], attribute->name) == 0)
            return one->visit(one->container, attribute, one->user);
    return true;
}

esdm_status
esdm__query_values(const esdm_meta_plugin *meta, void *store, const char *const *containers,
                   size_t ncontainers, const char *const *names, size_t nnames, bool datasets,
                   esdm_meta_value_visitor visit, void *user, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    if (meta->values != NULL)
        return meta->values(store, containers, ncontainers, names, nnames, datasets, visit, user,
                            err);
    for (size_t i = 0; i < ncontainers && status == ESDM_OK; i++) {
        esdm_meta_container record;
        reading_one one = {names, nnames, datasets, i, visit, user};
        esdm_error why = {0};
        status = meta->container_find(store, containers[i], &record, &why);
        if (status == ESDM_OK)
            status = meta->attributes(store, record.container, pass_attribute, &one, &why);
        if (status == ESDM_ENOENT) /* it was removed meanwhile */
            status = ESDM_OK;
        if (status != ESDM_OK && err != NULL)
            *err = why;
    }
    return status;
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

/* ---- batches -------------------------------------------------------------------------------- */

/* Rows from `rows` on, of as many containers as go together. */
static esdm_status
begin_batch(reading *r, const row *rows, size_t count, esdm_error *err)
{
    r->rows = rows;
    r->nnames = 0;
    r->datasets = false;
    for (r->nrows = 0; r->nrows < count; r->nrows++) {
        const row *one = &rows[r->nrows];
        if (r->nnames == 0 || strcmp(one->container, r->names[r->nnames - 1]) != 0) {
            if (r->nnames == BATCH)
                break;
            r->first[r->nnames] = r->nrows;
            r->names[r->nnames++] = one->container;
        }
        r->datasets |= one->dataset != NULL;
    }
    r->first[r->nnames] = r->nrows;
    r->cells = calloc(r->nrows * r->ncolumns + 1, sizeof *r->cells);
    r->values = calloc(r->ncolumns + 1, sizeof *r->values);
    if (r->cells == NULL || r->values == NULL)
        return esdm__error_nomem(err, r->nrows * r->ncolumns * sizeof *r->cells, "an answer");
    for (size_t i = 0; i < r->nrows * r->ncolumns; i++) {
        esdm__buffer_init(&r->cells[i].own);
        esdm__buffer_init(&r->cells[i].global);
    }
    return ESDM_OK;
}

static void
end_batch(reading *r)
{
    for (size_t i = 0; r->cells != NULL && i < r->nrows * r->ncolumns; i++) {
        esdm__buffer_clear(&r->cells[i].own);
        esdm__buffer_clear(&r->cells[i].global);
    }
    free(r->cells);
    free(r->values);
    r->cells = NULL;
    r->values = NULL;
}

static esdm_status
show_batch(reading *r, esdm__query_row_visitor visit, void *user, bool *ret_more, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    if (r->ncolumns > 0)
        status = esdm__query_values(r->meta, r->store, r->names, r->nnames, r->asked, r->nasked,
                                    r->datasets, read_value, r, err);
    for (size_t i = 0; i < r->nrows && *ret_more && status == ESDM_OK; i++) {
        bool fits = true;
        for (size_t k = 0; k < r->ncolumns; k++)
            fits &= end_cell(&r->cells[i * r->ncolumns + k], &r->values[k]);
        if (fits)
            *ret_more = visit(r->rows[i].container, r->rows[i].dataset, r->values, user);
        else
            status = esdm__error_nomem(err, r->ncolumns, "a row of an answer");
    }
    return status;
}

/* What is shown and sorted by is asked for once. */
static esdm_status
note_columns(reading *r, esdm_error *err)
{
    r->asked = calloc(r->ncolumns + 1, sizeof *r->asked);
    if (r->asked == NULL)
        return esdm__error_nomem(err, r->ncolumns * sizeof *r->asked, "an answer");
    for (size_t i = 0; i < r->ncolumns; i++) {
        bool before = false;
        for (size_t k = 0; k < r->nasked && !before; k++)
            before = strcmp(r->asked[k], r->columns[i]) == 0;
        if (!before)
            r->asked[r->nasked++] = r->columns[i];
    }
    return ESDM_OK;
}

/* Asks for the values of what was found, and shows it. @param list is cleared. */
static esdm_status
show_rows(reading *r, row_list *list, esdm__query_row_visitor visit, void *user, esdm_status status,
          esdm_error *err)
{
    bool more = true;
    if (status == ESDM_OK && list->nomem)
        status = esdm__error_nomem(err, list->count * sizeof *list->items, "an answer");
    for (size_t at = 0; at < list->count && more && status == ESDM_OK; at += r->nrows) {
        status = begin_batch(r, list->items + at, list->count - at, err);
        if (status == ESDM_OK)
            status = show_batch(r, visit, user, &more, err);
        end_batch(r);
    }
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].container);
    free(list->items);
    return status;
}

/* @param containers NULL: what is found anywhere. */
static esdm_status
ask_rows(const esdm_meta_plugin *meta, void *store, const esdm__query *query,
         const uint64_t *containers, size_t ncontainers, const char *const *columns,
         size_t ncolumns, esdm__query_row_visitor visit, void *user, esdm_error *err)
{
    row_list list = {0};
    reading *r = calloc(1, sizeof *r);
    if (r == NULL)
        return esdm__error_nomem(err, sizeof *r, "an answer");
    *r = (reading){.meta = meta, .store = store, .columns = columns, .ncolumns = ncolumns};
    esdm_status status = note_columns(r, err);
    if (status == ESDM_OK)
        status = containers == NULL ? esdm__query_find_here(meta, store, query, add_row, &list, err)
                                    : esdm__query_find_among(meta, store, query, containers,
                                                             ncontainers, add_row, &list, err);
    status = show_rows(r, &list, visit, user, status, err);
    free(r->asked);
    free(r);
    return status;
}

esdm_status
esdm__query_rows(const esdm_meta_plugin *meta, void *store, const esdm__query *query,
                 const char *const *columns, size_t ncolumns, esdm__query_row_visitor visit,
                 void *user, esdm_error *err)
{
    return ask_rows(meta, store, query, NULL, 0, columns, ncolumns, visit, user, err);
}

esdm_status
esdm__query_rows_among(const esdm_meta_plugin *meta, void *store, const esdm__query *query,
                       const uint64_t *containers, size_t ncontainers, const char *const *columns,
                       size_t ncolumns, esdm__query_row_visitor visit, void *user, esdm_error *err)
{
    if (ncontainers == 0)
        return ESDM_OK;
    return ask_rows(meta, store, query, containers, ncontainers, columns, ncolumns, visit, user,
                    err);
}
