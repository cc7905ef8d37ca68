/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Matches of a query in the order of attributes, and the first of them.
 *
 * Where a few of many are asked for, the store goes through the values of the first key in their
 * order, and the query is asked of the containers that have them, some at a time: until enough was
 * found that comes before all that is left. Where few containers can be found at all, or it takes
 * too long, all that is found is sorted.
 */

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/hidden_names.h"
#include "query/query.h"

/* More rows than that are sorted as a whole. */
#define LIMIT_MOST 65536
/* So few containers are looked at all. */
#define FEW 1024
/* What the store's estimate says at least where it did not count to the end. */
#define MANY        16384
#define BUDGET_MANY 262144
#define AT_A_TIME   64
#define GROWTH      2
/* A store may hand out several times what was asked for at first. */
#define SHARES    16
#define ROWS_KEPT 64

typedef struct sorted_row {
    char *container; /* owned; the dataset's text follows it */
    const char *dataset;
    esdm__query_value *values; /* owned, and their texts with them: columns, then keys */
} sorted_row;

typedef struct number_list {
    uint64_t *items; /* owned */
    size_t count;
    uint64_t most; /* 0: as many as come */
    bool over;     /* more came */
    bool nomem;
} number_list;

typedef struct sorting {
    const esdm_meta_plugin *meta;
    void *store;
    const esdm__query *query;
    const char **names; /* columns, then keys; owned */
    size_t ncolumns, nnames;
    const esdm__query_order *order;
    sorted_row *rows; /* owned */
    size_t count;
    bool nomem;
    enum { ALL, PLACED, MISSING } taken; /* rows of which the first key is, or is not, there */
    char *last;                          /* container that was seen last; owned */
    size_t wanted;                       /* rows that end the question by their number; 0: none */
    const esdm_meta_position *place;     /* how far they may come, of `wanted`; NULL: anywhere */
} sorting;

/* ---- order ---------------------------------------------------------------------------------- */

static int
compare_values(const esdm__query_value *a, const esdm__query_value *b, bool descending)
{
    if (a->text == NULL || b->text == NULL)
        return (a->text == NULL) - (b->text == NULL);
    int order;
    if (a->has_number && b->has_number)
        order = (a->number > b->number) - (a->number < b->number);
    else if (a->has_number != b->has_number)
        order = a->has_number ? -1 : 1;
    else
        order = strcmp(a->text, b->text);
    return descending ? -order : order;
}

static int
compare_rows(const sorting *s, const sorted_row *a, const sorted_row *b)
{
    for (size_t i = 0; i < s->order->nkeys; i++) {
        int order = compare_values(&a->values[s->ncolumns + i], &b->values[s->ncolumns + i],
                                   s->order->descending[i]);
        if (order != 0)
            return order;
    }
    int order = strcmp(a->container, b->container);
    if (order != 0 || a->dataset == b->dataset)
        return order;
    if (a->dataset == NULL || b->dataset == NULL)
        return a->dataset == NULL ? -1 : 1;
    return strcmp(a->dataset, b->dataset);
}

/* Keeps the order of what is alike. @param room for as many rows. */
static void
merge_sort(const sorting *s, sorted_row *rows, size_t count, sorted_row *room)
{
    if (count < 2)
        return;
    size_t half = count / 2, i = 0, j = half;
    merge_sort(s, rows, half, room);
    merge_sort(s, rows + half, count - half, room);
    for (size_t k = 0; k < count; k++) {
        bool left = j == count || (i < half && compare_rows(s, &rows[i], &rows[j]) <= 0);
        room[k] = rows[left ? i++ : j++];
    }
    memcpy(rows, room, count * sizeof *rows);
}

static void
free_row(const sorting *s, sorted_row *row)
{
    for (size_t i = 0; row->values != NULL && i < s->nnames; i++)
        free((char *) row->values[i].text);
    free(row->values);
    free(row->container);
}

static void
drop_rows(sorting *s, size_t kept)
{
    for (size_t i = kept; i < s->count; i++)
        free_row(s, &s->rows[i]);
    s->count = kept < s->count ? kept : s->count;
}

/* Sorts, and drops what comes behind the limit. */
static bool
sort_rows(sorting *s)
{
    sorted_row *room = malloc((s->count + 1) * sizeof *room);
    if (room == NULL)
        return false;
    merge_sort(s, s->rows, s->count, room);
    free(room);
    if (s->order->limit > 0 && s->count > s->order->limit)
        drop_rows(s, (size_t) s->order->limit);
    return true;
}

/* How a row's first key compares with a place. */
static int
compare_place(const sorting *s, const sorted_row *row, const esdm_meta_position *place)
{
    const esdm__query_value at = {.text = place->text != NULL ? place->text : "",
                                  .number = place->number,
                                  .has_number = place->at == ESDM_META_AT_NUMBER};
    if (place->at == ESDM_META_AT_END)
        return -1;
    return compare_values(&row->values[s->ncolumns], &at, s->order->descending[0]);
}

/* ---- rows ----------------------------------------------------------------------------------- */

static bool
copy_row(sorting *s, const char *container, const char *dataset, const esdm__query_value *values)
{
    size_t bytes = strlen(container) + 1, more = dataset != NULL ? strlen(dataset) + 1 : 0;
    sorted_row row = {.container = malloc(bytes + more),
                      .values = calloc(s->nnames + 1, sizeof *row.values)};
    bool fits = row.container != NULL && row.values != NULL;
    for (size_t i = 0; i < s->nnames && fits; i++) {
        row.values[i] = values[i];
        row.values[i].text = values[i].text != NULL ? strdup(values[i].text) : NULL;
        fits = values[i].text == NULL || row.values[i].text != NULL;
        if (!fits)
            memset(&row.values[i], 0, (s->nnames - i) * sizeof *row.values);
    }
    fits = fits && esdm__array_grow(&s->rows, s->count, sizeof *s->rows);
    if (!fits) {
        free_row(s, &row);
        return false;
    }
    memcpy(row.container, container, bytes);
    if (dataset != NULL)
        memcpy(row.container + bytes, dataset, more);
    row.dataset = dataset != NULL ? row.container + bytes : NULL;
    s->rows[s->count++] = row;
    return true;
}

/* Before each question: it begins with any container. */
static void
forget_last(sorting *s)
{
    free(s->last);
    s->last = NULL;
}

/* Of a container, its first match alone where that is asked for. */
static bool
is_taken(sorting *s, const char *container, const esdm__query_value *values)
{
    if (esdm__name_is_hidden(container))
        return false;
    if (s->order->containers) {
        if (s->last != NULL && strcmp(s->last, container) == 0)
            return false;
        free(s->last);
        s->last = strdup(container);
        s->nomem |= s->last == NULL;
    }
    bool missing = s->order->nkeys == 0 || values[s->ncolumns].text == NULL;
    return s->taken == ALL || missing == (s->taken == MISSING);
}

static bool
take_row(const char *container, const char *dataset, const esdm__query_value *values, void *user)
{
    sorting *s = user;
    if (!is_taken(s, container, values))
        return !s->nomem;
    s->nomem |= !copy_row(s, container, dataset, values);
    if (s->nomem)
        return false;
    if (s->wanted > 0 &&
        (s->place == NULL || compare_place(s, &s->rows[s->count - 1], s->place) <= 0) &&
        --s->wanted == 0)
        return false;
    if (s->order->limit > 0 && s->order->limit <= LIMIT_MOST &&
        s->count >= 2 * s->order->limit + ROWS_KEPT)
        s->nomem |= !sort_rows(s);
    return !s->nomem;
}

static esdm_status
take_all(sorting *s, esdm_error *err)
{
    drop_rows(s, 0);
    forget_last(s);
    s->taken = ALL;
    s->place = NULL;
    s->wanted = s->order->nkeys == 0 ? (size_t) s->order->limit : 0; /* they come by names */
    return esdm__query_rows(s->meta, s->store, s->query, s->names, s->nnames, take_row, s, err);
}

/* ---- by the index --------------------------------------------------------------------------- */

static bool
note_number(uint64_t container, void *user)
{
    number_list *list = user;
    list->over |= list->most > 0 && list->count >= list->most;
    if (list->over)
        return false;
    list->nomem |= !esdm__array_grow(&list->items, list->count, sizeof *list->items);
    if (!list->nomem)
        list->items[list->count++] = container;
    return !list->nomem;
}

static int
compare_numbers(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;
    return x < y ? -1 : x > y;
}

/* Sorts what came, takes out what `seen` has, and adds the rest to that. */
static bool
only_new(number_list *came, number_list *seen)
{
    size_t kept = 0, before = 0;
    if (came->count > 1)
        qsort(came->items, came->count, sizeof *came->items, compare_numbers);
    for (size_t i = 0; i < came->count; i++) {
        uint64_t number = came->items[i];
        while (before < seen->count && seen->items[before] < number)
            before++;
        bool known = (before < seen->count && seen->items[before] == number) ||
                     (kept > 0 && came->items[kept - 1] == number);
        if (!known)
            came->items[kept++] = number;
    }
    came->count = kept;
    for (size_t i = 0; i < kept; i++)
        (void) note_number(came->items[i], seen);
    if (kept > 0 && !seen->nomem)
        qsort(seen->items, seen->count, sizeof *seen->items, compare_numbers);
    return !seen->nomem;
}

/* Where all that came has one value, upwards, names decide: no more rows are read than are wanted.
 * Downwards several values of one row can come before it. At the end nothing tells the value. */
static void
want_some(sorting *s, const esdm_meta_position *place)
{
    size_t before = 0; /* others that have this value may come behind what comes now */
    s->wanted = 0;
    if (!place->one_value || place->at == ESDM_META_AT_END || s->order->nkeys > 1 ||
        s->order->descending[0])
        return;
    for (size_t i = 0; i < s->count; i++)
        before += compare_place(s, &s->rows[i], place) < 0;
    s->place = place;
    s->wanted = before < s->order->limit ? (size_t) s->order->limit - before : 1;
}

/* Rows without the first key, by their names unless there are more keys. */
static esdm_status
take_missing(sorting *s, esdm_error *err)
{
    forget_last(s);
    s->taken = MISSING;
    s->place = NULL;
    s->wanted = s->order->nkeys == 1 ? (size_t) s->order->limit - s->count : 0;
    return esdm__query_rows(s->meta, s->store, s->query, s->names, s->nnames, take_row, s, err);
}

/* @param ret_done false: it takes too long. */
static esdm_status
take_ordered(sorting *s, uint64_t budget, bool *ret_done, esdm_error *err)
{
    number_list came = {0}, seen = {0};
    esdm_meta_position place = {0};
    esdm_status status = ESDM_OK;
    size_t most = 4 * (size_t) s->order->limit;
    most = most > budget / SHARES ? (size_t) (budget / SHARES) : most;
    s->taken = PLACED;
    *ret_done = false;
    for (most = most < AT_A_TIME ? AT_A_TIME : most;
         status == ESDM_OK && !*ret_done && seen.count <= budget; most *= GROWTH) {
        came = (number_list){.items = came.items, .most = budget};
        forget_last(s);
        status = s->meta->ordered(s->store, s->order->keys[0], s->order->descending[0], most,
                                  &place, note_number, &came, err);
        if (status == ESDM_OK && (came.nomem || !only_new(&came, &seen)))
            status = esdm__error_nomem(err, came.count * sizeof *came.items, "an answer");
        if (status != ESDM_OK || came.over)
            break;
        want_some(s, &place);
        status = esdm__query_rows_among(s->meta, s->store, s->query, came.items, came.count,
                                        s->names, s->nnames, take_row, s, err);
        s->nomem |= status == ESDM_OK && !sort_rows(s);
        bool enough = s->count == s->order->limit &&
                      compare_place(s, &s->rows[s->order->limit - 1], &place) <= 0;
        *ret_done = status == ESDM_OK && (enough || place.at == ESDM_META_AT_END);
    }
    if (status == ESDM_OK && *ret_done && s->count < s->order->limit)
        status = take_missing(s, err);
    free(place.text);
    free(came.items);
    free(seen.items);
    return status;
}

static esdm_status
take(sorting *s, esdm_error *err)
{
    const esdm__query_order *o = s->order;
    uint64_t containers = 0;
    esdm_error why = {0};
    esdm_status status = ESDM_OK;
    bool done = false;
    /* A question that may take a time is one question. */
    if (o->nkeys == 0 || o->limit == 0 || o->limit > LIMIT_MOST || s->meta->ordered == NULL ||
        s->query->most_ms > 0)
        return take_all(s, err);
    status = esdm__query_estimate(s->meta, s->store, s->query, &containers, &why);
    if (status == ESDM_OK && containers > FEW && containers > o->limit)
        status = take_ordered(s, containers < MANY ? 2 * containers : BUDGET_MANY, &done, &why);
    if (status == ESDM_ENOTSUP || (status == ESDM_OK && !done))
        return take_all(s, err);
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

static esdm_status
note_names(sorting *s, const char *const *columns, esdm_error *err)
{
    s->nnames = s->ncolumns + s->order->nkeys;
    s->names = calloc(s->nnames + 1, sizeof *s->names);
    if (s->names == NULL)
        return esdm__error_nomem(err, s->nnames * sizeof *s->names, "an answer");
    for (size_t i = 0; i < s->nnames; i++)
        s->names[i] = i < s->ncolumns ? columns[i] : s->order->keys[i - s->ncolumns];
    return ESDM_OK;
}

static esdm_status
take_anew(void *user, esdm_error *err)
{
    return take(user, err);
}

static void
forget_rows(void *user)
{
    drop_rows(user, 0);
}

/* Whether they come as they are to be: by names alone. */
static bool
are_sorted(const sorting *s)
{
    if (s->order->nkeys > 0 || s->order->limit > 0)
        return false;
    for (size_t i = 1; i < s->count; i++) {
        if (compare_rows(s, &s->rows[i - 1], &s->rows[i]) > 0)
            return false;
    }
    return true;
}

esdm_status
esdm__query_sorted(const esdm_meta_plugin *meta, void *store, const esdm__query *query,
                   const char *const *columns, size_t ncolumns, const esdm__query_order *order,
                   esdm__query_row_visitor visit, void *user, esdm_error *err)
{
    sorting s = {
        .meta = meta, .store = store, .query = query, .ncolumns = ncolumns, .order = order};
    esdm_status status = note_names(&s, columns, err);
    if (status == ESDM_OK)
        status = esdm__query_of_one_state(meta, store, take_anew, forget_rows, &s, err);
    if (status == ESDM_OK && (s.nomem || (!are_sorted(&s) && !sort_rows(&s))))
        status = esdm__error_nomem(err, s.count * sizeof *s.rows, "an answer");
    for (size_t i = 0; i < s.count && status == ESDM_OK; i++) {
        if (!visit(s.rows[i].container, s.rows[i].dataset, s.rows[i].values, user))
            break;
    }
    drop_rows(&s, 0);
    free(s.rows);
    free(s.names);
    free(s.last);
    return status;
}
