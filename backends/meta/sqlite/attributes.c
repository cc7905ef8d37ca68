/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * The index of attributes.
 *
 * Entering an attribute touches one page of the index for nearly every attribute, at places all
 * over the file: for a container with 60 attributes that would cost ten times the rest of its
 * commit. So a commit keeps the list of a new container beside its document, and now and then one
 * commit enters all of them at once: every 64 containers, in a large catalogue more, up to 1,024,
 * as long as their lists are short.
 * Containers with numbers above store.indexed are pending; queries read their lists
 * (find_waiting.c). What older versions commit in between they enter every 64.
 */

#include <math.h>
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
/* Entries for which there is room at first, and that are entered at once: some containers have
 * very many. */
#define GATHERED_FIRST 4096
#define GATHERED_MOST  131072

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

typedef struct entry {
    uint64_t container;
    uint64_t number;               /* within the container's list */
    esdm_meta_attribute attribute; /* texts lie in the list */
} entry;

typedef struct insertion {
    sqlite__noted *noted; /* NULL: names are not noted */
    sqlite__link *link;
    sqlite3_stmt *statement; /* of one row; NULL: the index */
    uint64_t container;
    uint64_t number;                      /* of the next one to insert */
    entry waiting[SQLITE__TOGETHER_MOST]; /* until one statement takes them */
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
note_name(sqlite__link *link, sqlite__noted *noted, const char *name, esdm_error *err)
{
    if (noted->count < NOTED_MOST && (noted->names[noted->count] = strdup(name)) != NULL)
        noted->count++; /* else it is noted once more */
    return sqlite__run(link, SQLITE__DATASET_NAME_ADD, err, "t", name);
}

static esdm_status
bind_row(const sqlite__link *link, sqlite3_stmt *statement, int at, const entry *row,
         esdm_error *err)
{
    const esdm_meta_attribute *attribute = &row->attribute;
    const char *text = attribute->text;
    int code = sqlite3_bind_int64(statement, at, (sqlite3_int64) row->container);
    if (code == SQLITE_OK)
        code = sqlite3_bind_int64(statement, at + 1, attribute->dataset);
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(statement, at + 2, attribute->name, -1, SQLITE_STATIC);
    if (code == SQLITE_OK)
        code = sqlite3_bind_int64(statement, at + 3, (sqlite3_int64) row->number);
    if (code == SQLITE_OK) /* NULL is accepted */
        code = sqlite3_bind_text(statement, at + 4, attribute->dataset_path, -1, SQLITE_STATIC);
    if (code == SQLITE_OK && attribute->has_number)
        code = sqlite3_bind_double(statement, at + 5, attribute->number);
    else if (code == SQLITE_OK)
        code = sqlite3_bind_text(statement, at + 5, text, -1, SQLITE_STATIC);
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(statement, at + 6, attribute->has_number ? text : NULL, -1,
                                 SQLITE_STATIC);
    return code == SQLITE_OK ? ESDM_OK : sqlite__error(link, code, err);
}

/* @param one takes one row; NULL: the index, by statements that take several. */
static esdm_status
insert_rows(sqlite__link *link, sqlite3_stmt *one, const entry *rows, size_t nrows, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t i = 0, n = 0; i < nrows && status == ESDM_OK; i += n) {
        sqlite3_stmt *statement = one;
        bool row = false;
        n = 1;
        if (statement == NULL) {
            sqlite__statement_id id =
                sqlite__rows_statement(SQLITE__ATTRIBUTE_INSERT, nrows - i, &n);
            status = sqlite__prepare(link, id, &statement, err, "");
        }
        for (size_t k = 0; k < n && status == ESDM_OK; k++)
            status = bind_row(link, statement, (int) (7 * k) + 1, &rows[i + k], err);
        if (status == ESDM_OK)
            status = sqlite__step(link, statement, &row, err);
    }
    return status;
}

static esdm_status
insert_waiting(insertion *to)
{
    size_t count = to->nwaiting;
    to->nwaiting = 0;
    return insert_rows(to->link, to->statement, to->waiting, count, to->err);
}

static bool
insert_entry(const esdm_meta_attribute *attribute, void *user)
{
    insertion *to = user;
    if (attribute->dataset != 0 && to->noted != NULL && !is_noted(to->noted, attribute->name))
        to->status = note_name(to->link, to->noted, attribute->name, to->err);
    if (to->status == ESDM_OK && to->nwaiting == SQLITE__TOGETHER_MOST)
        to->status = insert_waiting(to);
    if (to->status != ESDM_OK)
        return false;
    to->waiting[to->nwaiting++] = (entry){to->container, to->number++, *attribute};
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

/* ---- many containers ------------------------------------------------------------------------- */

/* Entries of all containers that are entered together. In the order of the index they go from one
 * of its pages to the next: in the order of the lists each would look for a page that lies
 * elsewhere, in memory that no cache of the processor has. */
typedef struct gathered {
    sqlite__noted noted;
    sqlite__link *link;
    uint64_t container;
    uint64_t number;
    entry *entries; /* owned */
    size_t count, room;
    void **lists; /* owned, and each; the texts of the entries lie there */
    size_t nlists;
    esdm_status status;
    esdm_error *err;
} gathered;

static void
gathered_clear(gathered *all)
{
    noted_clear(&all->noted);
    for (size_t i = 0; i < all->nlists; i++)
        free(all->lists[i]);
    free(all->lists);
    free(all->entries);
}

static bool
gather_entry(const esdm_meta_attribute *attribute, void *user)
{
    gathered *all = user;
    if (attribute->dataset != 0 && !is_noted(&all->noted, attribute->name))
        all->status = note_name(all->link, &all->noted, attribute->name, all->err);
    if (all->status == ESDM_OK && all->count == all->room) {
        size_t room = all->room == 0 ? GATHERED_FIRST : 2 * all->room;
        entry *more = realloc(all->entries, room * sizeof *more);
        if (more == NULL)
            all->status = esdm__error_nomem(all->err, room * sizeof *more, "attributes");
        else {
            all->entries = more;
            all->room = room;
        }
    }
    if (all->status != ESDM_OK)
        return false;
    all->entries[all->count++] = (entry){all->container, all->number++, *attribute};
    return true;
}

/* @param list of the container; it is copied. */
static esdm_status
gather(gathered *all, uint64_t container, const void *list, size_t bytes, esdm_error *err)
{
    void **lists = realloc(all->lists, (all->nlists + 1) * sizeof *lists);
    if (lists == NULL)
        return esdm__error_nomem(err, bytes, "attributes");
    all->lists = lists;
    void *own = lists[all->nlists] = malloc(bytes > 0 ? bytes : 1);
    if (own == NULL)
        return esdm__error_nomem(err, bytes, "attributes");
    all->nlists++;
    memcpy(own, list, bytes);
    all->container = container;
    all->number = 0;
    esdm_status status =
        sqlite__attributes_visit(all->link, container, own, bytes, gather_entry, all, err);
    return all->status != ESDM_OK ? all->status : status;
}

/* A value that is no number is NULL to SQLite. */
static bool
is_null(const esdm_meta_attribute *attribute)
{
    return attribute->has_number ? isnan(attribute->number) : attribute->text == NULL;
}

/* What is NULL in the index before numbers, these before texts, as SQLite has them. */
static int
compare_values(const esdm_meta_attribute *a, const esdm_meta_attribute *b)
{
    bool nulls[2] = {is_null(a), is_null(b)};
    if (nulls[0] || nulls[1])
        return nulls[1] - nulls[0];
    if (a->has_number != b->has_number)
        return a->has_number ? -1 : 1;
    if (!a->has_number)
        return strcmp(a->text, b->text);
    return (a->number > b->number) - (a->number < b->number);
}

static int
compare_entries(const void *left, const void *right)
{
    const entry *a = left, *b = right;
    int order = strcmp(a->attribute.name, b->attribute.name);
    if (order == 0)
        order = compare_values(&a->attribute, &b->attribute);
    if (order == 0)
        order = (a->container > b->container) - (a->container < b->container);
    return order != 0 ? order : (a->number > b->number) - (a->number < b->number);
}

static esdm_status
insert_gathered(gathered *all, esdm_error *err)
{
    qsort(all->entries, all->count, sizeof *all->entries, compare_entries);
    esdm_status status = insert_rows(all->link, NULL, all->entries, all->count, err);
    while (all->nlists > 0)
        free(all->lists[--all->nlists]);
    all->count = 0;
    return status;
}

/* Enters all pending containers. */
static esdm_status
enter_pending(sqlite__link *link, uint64_t indexed, uint64_t last, esdm_error *err)
{
    sqlite3_stmt *pending = NULL;
    gathered all = {.link = link, .err = err};
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
        uint64_t container = sqlite__u64(pending, 0);
        const void *list = sqlite3_column_blob(pending, 1);
        size_t bytes = (size_t) sqlite3_column_bytes(pending, 1);
        bool own = sqlite3_column_int(pending, 2) != 0; /* nobody can say its name */
        if (list != NULL)
            status = gather(&all, container, list, bytes, err);
        if (status == ESDM_OK && all.count >= GATHERED_MOST)
            status = insert_gathered(&all, err);
        if (status == ESDM_OK && !own)
            status = sqlite__views_enter(link, &views, container, list, bytes, err);
        if (status == ESDM_OK)
            status = sqlite__step(link, pending, &row, err);
    }
    if (row)
        (void) sqlite3_reset(pending);
    if (status == ESDM_OK && all.count > 0)
        status = insert_gathered(&all, err);
    gathered_clear(&all);
    sqlite__views_clear(&views);
    return status == ESDM_OK ? sqlite__run(link, SQLITE__INDEXED_SET, err, "i", last) : status;
}

/* How many containers are entered together where there are so many, a power of two. Each entry goes
 * to one of the pages where its value ends, and these grow with the catalogue until each value has
 * pages of its own: then only more entries at once have pages in common. */
static uint64_t
count_together(uint64_t containers)
{
    uint64_t together = SQLITE__PENDING_MIN;
    while (together < SQLITE__PENDING_MAX && 2 * together * SQLITE__CONTAINERS_EACH <= containers)
        together *= 2;
    return together;
}

/* Whether a commit enters all that wait. */
static esdm_status
is_time(sqlite__link *link, uint64_t indexed, uint64_t container, uint64_t together, bool *ret_now,
        esdm_error *err)
{
    sqlite3_stmt *sum = NULL;
    bool row = false;
    *ret_now = container % together == 0;
    if (*ret_now)
        return ESDM_OK;
    esdm_status status =
        sqlite__prepare(link, SQLITE__ATTRIBUTE_WAITING_BYTES, &sum, err, "i", indexed);
    if (status == ESDM_OK)
        status = sqlite__step(link, sum, &row, err);
    if (status != ESDM_OK || !row)
        return status;
    *ret_now = sqlite3_column_double(sum, 0) > SQLITE__PENDING_BYTES;
    (void) sqlite3_reset(sum);
    return ESDM_OK;
}

esdm_status
sqlite__attributes_changed(sqlite__link *link, uint64_t container, bool created,
                           const void *attributes, size_t bytes, esdm_error *err)
{
    uint64_t indexed = 0;
    uint64_t together = count_together(container);
    esdm_status status = created ? sqlite__writer_fit(link, (uint32_t) together, err) : ESDM_OK;
    if (status == ESDM_OK && created && container % SQLITE__PENDING_MIN != 0)
        return ESDM_OK;
    if (status == ESDM_OK)
        status = sqlite__attributes_indexed(link, &indexed, err);
    if (status != ESDM_OK)
        return status;
    if (created) {
        bool now = false;
        status = is_time(link, indexed, container, together, &now, err);
        return status == ESDM_OK && now ? enter_pending(link, indexed, container, err) : status;
    }
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
