/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Containers in the order of the values of an attribute, from the index (name, value): numbers
 * before texts, as SQLite has them.
 *
 * Several values of one object are one text, which begins with the first of them: "a, b". Upwards
 * it comes behind the entry of that one, and behind all numbers. Downwards it may come before it;
 * so with a text come the entries of those that such a text could begin with: "a" with "a+b", as
 * '+' comes before ','. Where numbers follow each other there is no such rule: objects with several
 * of them are looked for beforehand. So are containers that wait to be entered, and values that are
 * no numbers (NaN).
 */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/meta_checks.h"
#include "find.h"
#include "store.h"

typedef struct walk {
    sqlite__link *link;
    const char *attribute;
    bool descending;
    sqlite3_stmt *beginnings; /* entries of one text; owned, NULL: not needed yet */
    size_t visited;
    esdm_meta_number_visitor visit;
    void *user;
    bool more;
    /* The value whose entries are being visited. */
    esdm_meta_position *at;
    size_t text_bytes; /* of at->text, without its NUL */
    size_t values;     /* that were visited in this call */
} walk;

static void
visit(walk *w, uint64_t container)
{
    w->visited++;
    w->more = w->more && w->visit(container, w->user);
}

/* Runs a statement over ?1, the attribute, and perhaps ?2; visits the containers in its first
 * column. */
static esdm_status
visit_all(walk *w, const char *sql, const uint64_t *number, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    int code = sqlite3_prepare_v2(w->link->db, sql, -1, &statement, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(statement, 1, w->attribute, -1, SQLITE_STATIC);
    if (code == SQLITE_OK && number != NULL)
        code = sqlite3_bind_int64(statement, 2, (sqlite3_int64) *number);
    esdm_status status = code == SQLITE_OK ? ESDM_OK : sqlite__error(w->link, code, err);
    if (status == ESDM_OK)
        status = sqlite__step(w->link, statement, &row, err);
    while (status == ESDM_OK && row && w->more) {
        visit(w, sqlite__u64(statement, 0));
        status = sqlite__step(w->link, statement, &row, err);
    }
    (void) sqlite3_finalize(statement);
    return status;
}

/* What has no place of its own in the order. */
static esdm_status
visit_unplaced(walk *w, esdm_error *err)
{
    uint64_t indexed = 0;
    esdm_status status = sqlite__attributes_indexed(w->link, &indexed, err);
    if (status == ESDM_OK)
        status = visit_all(w,
                           "SELECT container FROM main.container WHERE container > ?2 "
                           "AND ?1 IS NOT NULL",
                           &indexed, err);
    if (status == ESDM_OK)
        status = visit_all(w,
                           "SELECT container FROM main.attribute INDEXED BY attribute_value "
                           "WHERE name = ?1 AND value IS NULL",
                           NULL, err);
    if (status == ESDM_OK && w->descending)
        status = visit_all(w,
                           "SELECT container FROM main.attribute INDEXED BY attribute_value "
                           "WHERE name = ?1 AND value < '' GROUP BY container, dataset "
                           "HAVING count(*) > 1",
                           NULL, err);
    /* A list of numbers has it as a text, which is not where the list is. */
    if (status == ESDM_OK && w->descending)
        status = visit_all(w,
                           "SELECT container FROM main.attribute INDEXED BY attribute_value "
                           "WHERE name = ?1 AND value = '-nan'",
                           NULL, err);
    return status;
}

/* ---- values --------------------------------------------------------------------------------- */

/* Entries of the texts that the one at hand begins with, where ',' would come behind it. */
static esdm_status
visit_beginnings(walk *w, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t bytes = 0; bytes < w->text_bytes && status == ESDM_OK; bytes++) {
        bool row = false;
        int code = SQLITE_OK;
        if ((unsigned char) w->at->text[bytes] > ',')
            continue;
        if (w->beginnings == NULL)
            code = sqlite3_prepare_v2(
                w->link->db,
                "SELECT container FROM main.attribute INDEXED BY attribute_value "
                "WHERE name = ?1 AND value = ?2",
                -1, &w->beginnings, NULL);
        if (code == SQLITE_OK)
            code = sqlite3_bind_text(w->beginnings, 1, w->attribute, -1, SQLITE_STATIC);
        if (code == SQLITE_OK)
            code = sqlite3_bind_text(w->beginnings, 2, w->at->text, (int) bytes, SQLITE_STATIC);
        status = code == SQLITE_OK ? sqlite__step(w->link, w->beginnings, &row, err)
                                   : sqlite__error(w->link, code, err);
        while (status == ESDM_OK && row && w->more) {
            visit(w, sqlite__u64(w->beginnings, 0));
            status = sqlite__step(w->link, w->beginnings, &row, err);
        }
        (void) sqlite3_reset(w->beginnings);
    }
    return status;
}

static bool
is_at(const walk *w, sqlite3_stmt *row)
{
    bool text = sqlite3_column_type(row, 0) == SQLITE_TEXT;
    if (w->values == 0 || text != (w->at->at == ESDM_META_AT_TEXT))
        return false;
    if (!text)
        return sqlite3_column_double(row, 0) == w->at->number;
    /* Asking for a text would copy it, to put a NUL behind. */
    const void *bytes = sqlite3_column_blob(row, 0);
    size_t count = (size_t) sqlite3_column_bytes(row, 0);
    return count == w->text_bytes && (count == 0 || memcmp(bytes, w->at->text, count) == 0);
}

/* Goes on to the value of a row. */
static esdm_status
go_to(walk *w, sqlite3_stmt *row, esdm_error *err)
{
    w->values++;
    if (sqlite3_column_type(row, 0) != SQLITE_TEXT) {
        w->at->at = ESDM_META_AT_NUMBER;
        w->at->number = sqlite3_column_double(row, 0);
        return ESDM_OK;
    }
    size_t bytes = (size_t) sqlite3_column_bytes(row, 0);
    char *text = malloc(bytes + 1);
    if (text == NULL)
        return esdm__error_nomem(err, bytes, "a value");
    if (bytes > 0) /* else the blob is NULL */
        memcpy(text, sqlite3_column_blob(row, 0), bytes);
    text[bytes] = '\0';
    free(w->at->text);
    w->at->text = text;
    w->text_bytes = bytes;
    w->at->at = ESDM_META_AT_TEXT;
    return w->descending ? visit_beginnings(w, err) : ESDM_OK;
}

/* Entries behind the position; NULL is before all, and never greater nor less. */
static esdm_status
open_entries(walk *w, sqlite3_stmt **ret, esdm_error *err)
{
    static const char *const texts[] = {
        "SELECT value, container FROM main.attribute INDEXED BY attribute_value "
        "WHERE name = ?1 AND value > ?2 ORDER BY value",
        "SELECT value, container FROM main.attribute INDEXED BY attribute_value "
        "WHERE name = ?1 AND value < ?2 ORDER BY value DESC",
        "SELECT value, container FROM main.attribute INDEXED BY attribute_value "
        "WHERE name = ?1 AND value IS NOT NULL ORDER BY value",
        "SELECT value, container FROM main.attribute INDEXED BY attribute_value "
        "WHERE name = ?1 AND value IS NOT NULL ORDER BY value DESC"};
    bool begin = w->at->at == ESDM_META_AT_BEGIN;
    int code = sqlite3_prepare_v2(w->link->db, texts[2 * begin + w->descending], -1, ret, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(*ret, 1, w->attribute, -1, SQLITE_STATIC);
    if (code == SQLITE_OK && w->at->at == ESDM_META_AT_NUMBER)
        code = sqlite3_bind_double(*ret, 2, w->at->number);
    else if (code == SQLITE_OK && w->at->at == ESDM_META_AT_TEXT)
        code = sqlite3_bind_text(*ret, 2, w->at->text, -1, SQLITE_TRANSIENT);
    return code == SQLITE_OK ? ESDM_OK : sqlite__error(w->link, code, err);
}

static esdm_status
visit_values(walk *w, size_t most, esdm_error *err)
{
    sqlite3_stmt *entries = NULL;
    bool row = false, full = false;
    esdm_status status = open_entries(w, &entries, err);
    if (status == ESDM_OK)
        status = sqlite__step(w->link, entries, &row, err);
    while (status == ESDM_OK && row && w->more) {
        bool same = is_at(w, entries);
        full = !same && w->values > 0 && w->visited >= most;
        if (full)
            break;
        if (!same)
            status = go_to(w, entries, err);
        visit(w, sqlite__u64(entries, 1));
        if (status == ESDM_OK)
            status = sqlite__step(w->link, entries, &row, err);
    }
    (void) sqlite3_finalize(entries);
    if (status == ESDM_OK && !full && w->more)
        w->at->at = ESDM_META_AT_END;
    return status;
}

esdm_status
sqlite__ordered(void *self, const char *attribute, bool descending, size_t most,
                esdm_meta_position *position, esdm_meta_number_visitor visitor, void *user,
                esdm_error *err)
{
    sqlite__store *store = self;
    walk w = {.link = &store->reader,
              .attribute = attribute,
              .descending = descending,
              .visit = visitor,
              .user = user,
              .more = true,
              .at = position};
    if (position->at == ESDM_META_AT_END)
        return ESDM_OK;
    if (esdm_meta_is_extent(attribute) || !sqlite__takes_sets(w.link))
        return esdm__error_set(err, ESDM_ENOTSUP, "'%.200s' is in no order", attribute);
    esdm_status status = sqlite__begin_read(store, err);
    if (status != ESDM_OK)
        return status;
    bool begin = position->at == ESDM_META_AT_BEGIN;
    status = sqlite__begin_question(store, err);
    if (status == ESDM_OK) {
        if (begin)
            status = visit_unplaced(&w, err);
        size_t unplaced = w.visited;
        if (status == ESDM_OK)
            status = visit_values(&w, most, err);
        position->one_value = unplaced == 0 && w.values == 1;
        (void) sqlite3_finalize(w.beginnings);
        sqlite__end_question(store, status);
    }
    sqlite__end_read(store);
    return status;
}

/* ---- among them ----------------------------------------------------------------------------- */

typedef struct among {
    const uint64_t *containers;
    size_t ncontainers;
    sqlite__matching matching;
} among;

static esdm_status
ask_among(sqlite__link *link, const esdm_meta_expression *expression, void *user, esdm_error *err)
{
    among *a = user;
    return sqlite__find_rows_among(link, expression, a->containers, a->ncontainers,
                                   sqlite__visit_match, &a->matching, err);
}

esdm_status
sqlite__find_among(void *self, const esdm_meta_expression *expression, const uint64_t *containers,
                   size_t ncontainers, esdm_meta_match_visitor visitor, void *user, esdm_error *err)
{
    among a = {containers, ncontainers, {visitor, user}};
    return ncontainers > 0 ? sqlite__ask(self, expression, ask_among, &a, err) : ESDM_OK;
}

static esdm_status
ask_count(sqlite__link *link, const esdm_meta_expression *expression, void *user, esdm_error *err)
{
    return sqlite__find_count(link, expression, user, err);
}

esdm_status
sqlite__find_estimate(void *self, const esdm_meta_expression *expression, uint64_t *ret_containers,
                      esdm_error *err)
{
    *ret_containers = 0;
    return sqlite__ask(self, expression, ask_count, ret_containers, err);
}
