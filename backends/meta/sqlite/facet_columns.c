/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Values of an attribute, of all containers of the index, in memory: which one each container has.
 * Going through the part of the index that has an attribute takes a tenth of a second for a million
 * containers; whoever counts facets asks again, of other containers. They are kept as long as
 * nobody commits anything, as what waits to be entered is (find.c): nothing tells what a commit has
 * changed.
 */

#include "facet_columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "find.h"

/* More values are not kept, nor more bytes of all columns together. */
#define TEXTS_MOST ((size_t) SQLITE__COLUMN_MANY - 1)
#define BYTES_MOST ((size_t) 64 << 20)

/* @param type SQLite's. */
static bool
has_one_text(int type, double number)
{
    if (type == SQLITE_NULL || !(number > -1e9 && number < 1e9))
        return false;
    return (double) (int64_t) number == number;
}

bool
sqlite__has_one_text(sqlite3_stmt *row)
{
    return has_one_text(sqlite3_column_type(row, 0), sqlite3_column_double(row, 0));
}

static void
forget(sqlite__column *column)
{
    for (size_t i = 0; i < column->ntexts; i++)
        free(column->texts[i]);
    free(column->texts);
    free(column->codes);
    column->texts = NULL;
    column->codes = NULL;
    column->ntexts = column->ncodes = 0;
}

void
sqlite__columns_clear(sqlite__link *link)
{
    for (size_t i = 0; link->columns != NULL && i < link->columns->count; i++) {
        forget(&link->columns->items[i]);
        free(link->columns->items[i].name);
    }
    free(link->columns);
    link->columns = NULL;
}

/* ---- making one ----------------------------------------------------------------------------- */

/* SQLite gives the entries to a function, note_value(): to fetch each of them as a row of a result
 * takes half as long again. */
typedef struct sqlite__making {
    sqlite__column *column;
    const char *name;
    size_t bytes;     /* that it may still take */
    size_t text_size; /* of the last one, without its NUL */
    double number;    /* that the last text stands for */
    bool is_number;
    bool fits;          /* false: it is not kept */
    esdm_status status; /* of looking for the text of a number */
    esdm_error *err;
} making;

static void
add_text(making *m, const void *text, size_t bytes)
{
    sqlite__column *c = m->column;
    size_t needed = bytes + 1 + 2 * sizeof *c->texts;
    m->fits = c->ntexts < TEXTS_MOST && needed <= m->bytes &&
              esdm__array_grow(&c->texts, c->ntexts, sizeof *c->texts);
    char *copy = m->fits ? malloc(bytes + 1) : NULL;
    m->fits = copy != NULL;
    if (!m->fits)
        return;
    if (bytes > 0) /* else the blob is NULL */
        memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    c->texts[c->ntexts++] = copy;
    m->text_size = bytes;
    m->bytes -= needed;
}

/* How the container's list writes the number: SQLite may write it otherwise. */
static esdm_status
add_number(making *m, sqlite__link *link, uint64_t container, double number, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false, found = false;
    esdm_status status =
        sqlite__prepare(link, SQLITE__VALUES_GLOBAL, &statement, err, "it", container, m->name);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    while (status == ESDM_OK && row && !found) {
        double value = sqlite3_column_double(statement, 2);
        found = sqlite3_column_type(statement, 2) != SQLITE_TEXT && value == number &&
                !signbit(value) == !signbit(number);
        int column = sqlite3_column_type(statement, 3) == SQLITE_NULL ? 2 : 3;
        const char *text = found ? sqlite__text(statement, column) : NULL;
        if (found)
            add_text(m, text, strlen(text));
        else
            status = sqlite__step(link, statement, &row, err);
    }
    if (row)
        (void) sqlite3_reset(statement);
    m->fits &= found;
    m->is_number = true;
    m->number = number;
    return status;
}

/* Whether the entry has the value of the one before it. */
static bool
is_same(const making *m, sqlite3_value *value)
{
    const sqlite__column *c = m->column;
    if (c->ntexts == 0)
        return false;
    if (sqlite3_value_type(value) != SQLITE_TEXT) {
        double number = sqlite3_value_double(value);
        return m->is_number && number == m->number && !signbit(number) == !signbit(m->number);
    }
    /* Asking for a text would copy it, to put a NUL behind. */
    const void *text = sqlite3_value_blob(value);
    size_t bytes = (size_t) sqlite3_value_bytes(value);
    return !m->is_number && bytes == m->text_size &&
           (bytes == 0 || memcmp(text, c->texts[c->ntexts - 1], bytes) == 0);
}

static void
add_entry(making *m, sqlite__link *link, sqlite3_value *value, uint64_t container)
{
    sqlite__column *c = m->column;
    int type = sqlite3_value_type(value);
    m->fits = container < c->ncodes &&
              (type == SQLITE_TEXT || has_one_text(type, sqlite3_value_double(value)));
    if (m->fits && !is_same(m, value)) {
        if (type == SQLITE_TEXT) {
            add_text(m, sqlite3_value_blob(value), (size_t) sqlite3_value_bytes(value));
            m->is_number = false;
        } else {
            m->status = add_number(m, link, container, sqlite3_value_double(value), m->err);
        }
    }
    if (m->status == ESDM_OK && m->fits)
        c->codes[container] = c->codes[container] == 0 ? (uint16_t) c->ntexts : SQLITE__COLUMN_MANY;
}

/* note_value(value, container, dataset) */
static void
note_value(sqlite3_context *context, int count, sqlite3_value **values)
{
    sqlite__link *link = sqlite3_user_data(context);
    making *m = link->columns != NULL ? link->columns->making : NULL;
    if (m != NULL && count == 3 && sqlite3_value_int64(values[2]) == 0)
        add_entry(m, link, values[0], (uint64_t) sqlite3_value_int64(values[1]));
    if (m == NULL || m->status != ESDM_OK || !m->fits)
        sqlite3_result_error_code(context, SQLITE_ABORT); /* the rest is of no use */
}

static void
noted(sqlite3_context *context)
{
    sqlite3_result_null(context);
}

int
sqlite__columns_register(sqlite__link *link)
{
    return sqlite3_create_function_v2(link->db, "note_value", 3, SQLITE_UTF8 | SQLITE_DIRECTONLY,
                                      link, NULL, note_value, noted, NULL);
}

static esdm_status
note_all(making *m, sqlite__link *link, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    esdm_status status = sqlite__prepare(link, SQLITE__FACET_NOTE, &statement, err, "t", m->name);
    if (status != ESDM_OK)
        return status;
    link->columns->making = m;
    int code = sqlite3_step(statement);
    link->columns->making = NULL;
    (void) sqlite3_reset(statement);
    if (m->status != ESDM_OK || !m->fits)
        return m->status;
    return code == SQLITE_ROW || code == SQLITE_DONE ? ESDM_OK : sqlite__error(link, code, err);
}

static esdm_status
make(sqlite__link *link, sqlite__column *column, uint64_t last, size_t bytes, size_t *ret_left,
     esdm_error *err)
{
    making m = {.column = column, .name = column->name, .bytes = bytes, .err = err};
    m.fits = last < bytes / sizeof *column->codes;
    column->ncodes = m.fits ? (size_t) last + 1 : 0;
    column->codes = m.fits ? calloc(column->ncodes, sizeof *column->codes) : NULL;
    m.fits = column->codes != NULL;
    *ret_left = bytes;
    if (!m.fits)
        return ESDM_OK;
    m.bytes -= last * sizeof *column->codes;
    esdm_status status = note_all(&m, link, err);
    if (status == ESDM_OK && m.fits)
        *ret_left = m.bytes;
    else
        forget(column);
    return status;
}

/* ---- which are kept ------------------------------------------------------------------------- */

/* Those of this state of the store. NULL: no memory. */
static sqlite__columns *
current(sqlite__link *link)
{
    if (link->columns != NULL && link->columns->serial != link->kept.serial)
        sqlite__columns_clear(link);
    if (link->columns == NULL) {
        link->columns = calloc(1, sizeof *link->columns);
        if (link->columns != NULL) {
            link->columns->serial = link->kept.serial;
            link->columns->left = BYTES_MOST;
        }
    }
    return link->columns;
}

esdm_status
sqlite__column_get(sqlite__link *link, const char *name, uint64_t last, bool may_make,
                   const sqlite__column **ret_column, esdm_error *err)
{
    sqlite__columns *all = current(link);
    *ret_column = NULL;
    for (size_t i = 0; all != NULL && i < all->count; i++) {
        if (strcmp(all->items[i].name, name) == 0) {
            *ret_column = all->items[i].codes != NULL ? &all->items[i] : NULL;
            return ESDM_OK;
        }
    }
    if (all == NULL || !may_make || all->count == SQLITE__COLUMNS_MOST)
        return ESDM_OK;
    sqlite__column *column = &all->items[all->count];
    *column = (sqlite__column){.name = strdup(name)};
    if (column->name == NULL)
        return ESDM_OK;
    all->count++; /* one that is not kept is not tried again */
    esdm_status status = make(link, column, last, all->left, &all->left, err);
    if (status != ESDM_OK) {
        all->count--;
        free(column->name);
    }
    *ret_column = status == ESDM_OK && column->codes != NULL ? column : NULL;
    return status;
}
