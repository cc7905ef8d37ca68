/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * The index of attributes.
 *
 * Entering an attribute touches one page of the index for nearly every attribute, at places all
 * over the file: for a container with 60 attributes that would cost ten times the rest of its
 * commit. So a commit keeps the list of a new container beside its document, and every
 * SQLITE__PENDING_MAX containers one commit enters all of them at once. Containers with numbers
 * above store.indexed are pending; queries read their lists (find.c).
 */

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "store.h"
#include "views.h"

static const char *
take_text(esdm__cursor *cursor)
{
    uint64_t bytes = esdm__cursor_varint(cursor);
    if (bytes == 0)
        return NULL;
    const uint8_t *text = bytes > SIZE_MAX ? NULL : esdm__cursor_take(cursor, (size_t) bytes);
    if (text == NULL || text[bytes - 1] != '\0') {
        cursor->failed = true;
        return NULL;
    }
    return (const char *) text;
}

esdm_status
sqlite__attributes_visit(const sqlite__link *link, uint64_t container, const void *attributes,
                         size_t bytes, esdm_meta_attribute_visitor visit, void *user,
                         esdm_error *err)
{
    esdm__cursor cursor;
    const char *path = NULL;
    esdm__cursor_init(&cursor, attributes, bytes);
    while (esdm__cursor_left(&cursor) > 0) {
        esdm_meta_attribute attribute = {0};
        uint64_t dataset = esdm__cursor_varint(&cursor);
        const char *own_path = take_text(&cursor);
        if (own_path != NULL || dataset == 0)
            path = own_path;
        attribute.dataset = (uint32_t) dataset;
        attribute.dataset_path = path;
        attribute.name = take_text(&cursor);
        attribute.text = take_text(&cursor);
        attribute.has_number = esdm__cursor_u8(&cursor) != 0;
        uint64_t bits = attribute.has_number ? esdm__cursor_u64(&cursor) : 0;
        memcpy(&attribute.number, &bits, sizeof bits);
        if (cursor.failed || attribute.name == NULL || dataset > UINT32_MAX)
            return esdm__error_set(err, ESDM_ECORRUPT,
                                   "metadata store '%.200s': damaged attributes of record %llu",
                                   link->label, (unsigned long long) container);
        if (!visit(&attribute, user))
            break;
    }
    return ESDM_OK;
}

/* Names of attributes of datasets that were noted within a transaction: containers that are entered
 * together mostly have the same ones. */
#define NOTED_MOST 32

struct sqlite__noted {
    char *names[NOTED_MOST]; /* owned */
    size_t count;
};

static void
noted_clear(sqlite__noted *noted)
{
    for (size_t i = 0; i < noted->count; i++)
        free(noted->names[i]);
    noted->count = 0;
}

typedef struct insertion {
    sqlite__noted *noted; /* NULL: names are not noted */
    sqlite__link *link;
    sqlite3_stmt *statement; /* of one row; NULL: the index */
    uint64_t container;
    uint64_t entry;                                     /* of the next one to insert */
    esdm_meta_attribute waiting[SQLITE__TOGETHER_MOST]; /* their texts lie in the list */
    size_t nwaiting;
    esdm_status status;
    esdm_error *err;
} insertion;

static bool
is_noted(const sqlite__noted *noted, const char *name)
{
    for (size_t i = 0; i < noted->count; i++) {
        if (strcmp(noted->names[i], name) == 0)
            return true;
    }
    return false;
}

/* Queries need not look among datasets for names that are not noted (find.c). */
static esdm_status
note_name(insertion *to, const char *name)
{
    sqlite__noted *noted = to->noted;
    if (noted->count < NOTED_MOST && (noted->names[noted->count] = strdup(name)) != NULL)
        noted->count++; /* else it is noted once more */
    return sqlite__run(to->link, SQLITE__DATASET_NAME_ADD, to->err, "t", name);
}

static esdm_status
bind_row(const insertion *to, sqlite3_stmt *statement, int at, const esdm_meta_attribute *attribute,
         uint64_t entry)
{
    const char *text = attribute->text;
    int code = sqlite3_bind_int64(statement, at, (sqlite3_int64) to->container);
    if (code == SQLITE_OK)
        code = sqlite3_bind_int64(statement, at + 1, attribute->dataset);
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(statement, at + 2, attribute->name, -1, SQLITE_STATIC);
    if (code == SQLITE_OK)
        code = sqlite3_bind_int64(statement, at + 3, (sqlite3_int64) entry);
    if (code == SQLITE_OK) /* NULL is accepted */
        code = sqlite3_bind_text(statement, at + 4, attribute->dataset_path, -1, SQLITE_STATIC);
    if (code == SQLITE_OK && attribute->has_number)
        code = sqlite3_bind_double(statement, at + 5, attribute->number);
    else if (code == SQLITE_OK)
        code = sqlite3_bind_text(statement, at + 5, text, -1, SQLITE_STATIC);
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(statement, at + 6, attribute->has_number ? text : NULL, -1,
                                 SQLITE_STATIC);
    return code == SQLITE_OK ? ESDM_OK : sqlite__error(to->link, code, to->err);
}

static esdm_status
insert_waiting(insertion *to)
{
    esdm_status status = ESDM_OK;
    for (size_t i = 0, n = 0; i < to->nwaiting && status == ESDM_OK; i += n) {
        sqlite3_stmt *statement = to->statement;
        bool row = false;
        n = 1;
        if (statement == NULL) {
            sqlite__statement_id id =
                sqlite__rows_statement(SQLITE__ATTRIBUTE_INSERT, to->nwaiting - i, &n);
            status = sqlite__prepare(to->link, id, &statement, to->err, "");
        }
        for (size_t k = 0; k < n && status == ESDM_OK; k++)
            status = bind_row(to, statement, (int) (7 * k) + 1, &to->waiting[i + k], to->entry++);
        if (status == ESDM_OK)
            status = sqlite__step(to->link, statement, &row, to->err);
    }
    to->nwaiting = 0;
    return status;
}

static bool
insert_entry(const esdm_meta_attribute *attribute, void *user)
{
    insertion *to = user;
    if (attribute->dataset != 0 && to->noted != NULL && !is_noted(to->noted, attribute->name))
        to->status = note_name(to, attribute->name);
    if (to->status == ESDM_OK && to->nwaiting == SQLITE__TOGETHER_MOST)
        to->status = insert_waiting(to);
    if (to->status != ESDM_OK)
        return false;
    to->waiting[to->nwaiting++] = *attribute;
    return true;
}

esdm_status
sqlite__attributes_insert(sqlite__link *link, sqlite3_stmt *statement, uint64_t container,
                          const void *attributes, size_t bytes, sqlite__noted *noted,
                          esdm_error *err)
{
    insertion to = {
        .noted = noted, .link = link, .statement = statement, .container = container, .err = err};
    esdm_status status =
        sqlite__attributes_visit(link, container, attributes, bytes, insert_entry, &to, err);
    if (to.status == ESDM_OK && status == ESDM_OK)
        to.status = insert_waiting(&to);
    return to.status != ESDM_OK ? to.status : status;
}

esdm_status
sqlite__attributes_indexed(sqlite__link *link, uint64_t *ret_container, esdm_error *err)
{
    bool row = false;
    sqlite3_stmt *statement = NULL;
    esdm_status status = sqlite__prepare(link, SQLITE__INDEXED_GET, &statement, err, "");
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    if (status != ESDM_OK)
        return status;
    if (!row)
        return sqlite__error(link, SQLITE_CORRUPT, err);
    *ret_container = sqlite__u64(statement, 0);
    (void) sqlite3_reset(statement);
    return ESDM_OK;
}

/* @param views NULL: nobody can say its name. */
static esdm_status
enter(sqlite__link *link, sqlite__views *views, sqlite__noted *noted, uint64_t container,
      const void *attributes, size_t bytes, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    if (attributes != NULL)
        status = sqlite__attributes_insert(link, NULL, container, attributes, bytes, noted, err);
    if (status == ESDM_OK && views != NULL)
        status = sqlite__views_enter(link, views, container, attributes, bytes, err);
    return status;
}

/* Enters all pending containers. */
static esdm_status
enter_pending(sqlite__link *link, uint64_t indexed, uint64_t last, esdm_error *err)
{
    sqlite3_stmt *pending = NULL;
    sqlite__noted noted = {.count = 0};
    sqlite__views views;
    bool row = false;
    esdm_status status = sqlite__views_load(link, &views, err);
    if (status == ESDM_OK)
        status = sqlite__cache_enlarge(link, err);
    if (status == ESDM_OK)
        status = sqlite__prepare(link, SQLITE__ATTRIBUTE_PENDING, &pending, err, "i", indexed);
    if (status == ESDM_OK)
        status = sqlite__step(link, pending, &row, err);
    while (status == ESDM_OK && row) {
        bool own = sqlite3_column_int(pending, 2) != 0;
        status =
            enter(link, own ? NULL : &views, &noted, sqlite__u64(pending, 0),
                  sqlite3_column_blob(pending, 1), (size_t) sqlite3_column_bytes(pending, 1), err);
        if (status == ESDM_OK)
            status = sqlite__step(link, pending, &row, err);
    }
    if (row)
        (void) sqlite3_reset(pending);
    noted_clear(&noted);
    sqlite__views_clear(&views);
    return status == ESDM_OK ? sqlite__run(link, SQLITE__INDEXED_SET, err, "i", last) : status;
}

esdm_status
sqlite__attributes_changed(sqlite__link *link, uint64_t container, bool created,
                           const void *attributes, size_t bytes, esdm_error *err)
{
    uint64_t indexed = 0;
    if (created && container % SQLITE__PENDING_MAX != 0)
        return ESDM_OK;
    esdm_status status = sqlite__attributes_indexed(link, &indexed, err);
    if (status != ESDM_OK)
        return status;
    if (created)
        return enter_pending(link, indexed, container, err);
    if (container > indexed)
        return ESDM_OK;
    sqlite__noted noted = {.count = 0};
    sqlite__views views;
    status = sqlite__views_load(link, &views, err);
    if (status == ESDM_OK)
        status = sqlite__views_leave(link, &views, container, err);
    if (status == ESDM_OK)
        status = sqlite__run(link, SQLITE__ATTRIBUTE_DELETE, err, "i", container);
    if (status == ESDM_OK)
        status = enter(link, &views, &noted, container, attributes, bytes, err);
    noted_clear(&noted);
    sqlite__views_clear(&views);
    return status;
}
