/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Reading containers, snapshots and pages. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own_process.h"
#include "store.h"

/* A snapshot can be deleted between finding and pinning it, once for every commit. */
#define PIN_ATTEMPTS 1000

void
sqlite__read_record(sqlite3_stmt *statement, esdm_meta_container *ret_record)
{
    esdm_meta_container record = {
        .container = sqlite__u64(statement, 0),
        .snapshot = sqlite__u64(statement, 2),
        .structure = sqlite__u64(statement, 3),
        .created_ns = sqlite__u64(statement, 4),
        .modified_ns = sqlite__u64(statement, 5),
        .raw_bytes = sqlite__u64(statement, 6),
        .stored_bytes = sqlite__u64(statement, 7),
        .fragments = sqlite__u64(statement, 8),
        .datasets = (uint32_t) sqlite__u64(statement, 9),
    };
    const char *uuid = sqlite__text(statement, 1);
    memcpy(record.uuid, uuid, strnlen(uuid, ESDM_META_UUID_BYTES - 1));
    *ret_record = record;
}

static esdm_status
no_container(const char *name, esdm_error *err)
{
    return esdm__error_set(err, ESDM_ENOENT, "there is no container '%.300s'", name);
}

esdm_status
sqlite__container_find(void *self, const char *name, esdm_meta_container *ret_record,
                       esdm_error *err)
{
    sqlite__store *store = self;
    sqlite3_stmt *statement = NULL;
    sqlite__link *link = &store->reader;
    esdm_meta_snapshot found = {0};
    bool row = false, again = false;
    esdm_status status = sqlite__begin_read(store, err);
    if (status != ESDM_OK)
        return status;
    bool absent = sqlite__absent_is(link, name);
    if (!absent)
        status = sqlite__newest_is(link, name, &again, err);
    if (again)
        *ret_record = link->newest.loaded.record;
    if (status == ESDM_OK && !again && !absent) {
        sqlite__newest_begin(link);
        status = sqlite__prepare(link, SQLITE__CONTAINER_FIND, &statement, err, "t", name);
        if (status == ESDM_OK)
            status = sqlite__step(link, statement, &row, err);
        if (status == ESDM_OK && !row)
            sqlite__absent_keep(link, name);
    }
    if (row) {
        sqlite__read_record(statement, &found.record);
        sqlite__newest_keep(link, name, &found, false);
        (void) sqlite3_reset(statement);
        *ret_record = found.record;
    }
    sqlite__end_read(store);
    return status == ESDM_OK && !row && !again ? no_container(name, err) : status;
}

static esdm_status
read_rows(sqlite__link *link, sqlite__statement_id id, const char *text, sqlite__row_visitor visit,
          sqlite__rows_check check, void *user, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    esdm_status status = sqlite__prepare(link, id, &statement, err, text != NULL ? "t" : "", text);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    while (status == ESDM_OK && row && visit(statement, user))
        status = sqlite__step(link, statement, &row, err);
    if (row)
        (void) sqlite3_reset(statement);
    else if (status == ESDM_OK && check != NULL)
        status = check(link, user, err);
    return status;
}

esdm_status
sqlite__read_rows(sqlite__store *store, sqlite__statement_id id, const char *text,
                  sqlite__row_visitor visit, sqlite__rows_check check, void *user, esdm_error *err)
{
    esdm_status status = sqlite__begin_read(store, err);
    if (status != ESDM_OK)
        return status;
    sqlite__link *link = &store->reader;
    sqlite__newest_begin(link);
    if (check == NULL) {
        status = read_rows(link, id, text, visit, NULL, user, err);
    } else if ((status = sqlite__begin_question(store, err)) == ESDM_OK) {
        status = read_rows(link, id, text, visit, check, user, err);
        sqlite__end_question(store, status);
    }
    sqlite__end_read(store);
    return status;
}

esdm_status
sqlite__check_count(sqlite__link *link, sqlite__statement_id id, const char *text, uint64_t rows,
                    esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    uint64_t count = 0;
    esdm_status status = sqlite__prepare(link, id, &statement, err, text != NULL ? "t" : "", text);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    if (row) {
        count = sqlite__u64(statement, 0);
        (void) sqlite3_reset(statement);
    }
    if (status == ESDM_OK && count != rows)
        status =
            esdm__error_set(err, ESDM_ECORRUPT,
                            "metadata store '%.200s': the database is damaged: %llu containers "
                            "are listed, and its index has %llu; " SQLITE__REMEDY,
                            link->label, (unsigned long long) rows, (unsigned long long) count);
    return status;
}

typedef struct container_visit {
    esdm_meta_container_visitor visit;
    void *user;
    const char *prefix; /* NULL: none */
    uint64_t rows;
    bool below; /* there are some below the prefix */
} container_visit;

static bool
visit_container(sqlite3_stmt *row, void *user)
{
    container_visit *asked = user;
    esdm_meta_container record;
    sqlite__read_record(row, &record);
    const char *name = sqlite__text(row, 10);
    asked->rows++;
    asked->below = asked->below || asked->prefix == NULL || strcmp(name, asked->prefix) != 0;
    return asked->visit(name, &record, asked->user);
}

/* Whoever lists is not to take a part for all. Looking whether anything is below a name, as each
 * new container does, costs no count. */
static esdm_status
check_containers(sqlite__link *link, void *user, esdm_error *err)
{
    const container_visit *asked = user;
    if (asked->prefix != NULL && asked->rows == 0)
        sqlite__absent_keep(link, asked->prefix);
    if (asked->prefix != NULL && !asked->below)
        return ESDM_OK;
    return sqlite__check_count(
        link, asked->prefix != NULL ? SQLITE__CONTAINER_COUNT : SQLITE__CONTAINER_COUNT_ALL,
        asked->prefix, asked->rows, err);
}

esdm_status
sqlite__container_list(void *self, const char *prefix, esdm_meta_container_visitor visit,
                       void *user, esdm_error *err)
{
    bool all = prefix == NULL || prefix[0] == '\0';
    container_visit asked = {.visit = visit, .user = user, .prefix = all ? NULL : prefix};
    if (!all && sqlite__absent_below(self, prefix))
        return ESDM_OK;
    return sqlite__read_rows(self, all ? SQLITE__CONTAINER_LIST_ALL : SQLITE__CONTAINER_LIST,
                             asked.prefix, visit_container, check_containers, &asked, err);
}

/* ---- snapshots ------------------------------------------------------------------------------ */

static esdm_status
read_snapshot(const sqlite__store *store, sqlite3_stmt *statement, const char *name, uint64_t asked,
              uint64_t known_container, uint64_t known_structure, esdm_meta_snapshot *snapshot,
              esdm_error *err)
{
    size_t bytes = 0;
    void *document = NULL;
    sqlite__read_record(statement, &snapshot->record);
    if (sqlite3_column_type(statement, 10) == SQLITE_NULL && asked != 0)
        return esdm__error_set(err, ESDM_ENOENT,
                               "container '%.300s' has no such snapshot, or not any more", name);
    if (sqlite3_column_type(statement, 10) == SQLITE_NULL)
        return esdm__error_set(err, ESDM_ECORRUPT,
                               "metadata store '%.200s': container '%.200s' has lost its newest "
                               "snapshot",
                               store->file, name);
    snapshot->snapshot = sqlite__u64(statement, 10) & SQLITE__LOW_MAX;
    snapshot->structure = sqlite__u64(statement, 11);
    esdm_status status = sqlite__lengths_decode(sqlite3_column_blob(statement, 12),
                                                (size_t) sqlite3_column_bytes(statement, 12),
                                                &snapshot->lengths, &snapshot->nlengths, err);
    if (status == ESDM_OK)
        status = sqlite__copy(statement, 13, &document, &bytes, err);
    snapshot->document = document;
    snapshot->document_bytes = bytes;
    bool known =
        snapshot->record.container == known_container && snapshot->structure == known_structure;
    if (status == ESDM_OK && document == NULL && !known)
        status = esdm__error_set(err, ESDM_ECORRUPT,
                                 "metadata store '%.200s': container '%.200s' has lost its "
                                 "structure",
                                 store->file, name);
    return status;
}

/* A document larger than this fills the cache with pages that are not read again. */
#define CACHED_MOST ((size_t) 512 << 10)

/* Gives back what SQLite keeps of a large document that was read. */
static void
forget_pages(const sqlite__link *link, const esdm_meta_snapshot *loaded)
{
    if (loaded->document_bytes > CACHED_MOST)
        (void) sqlite3_db_release_memory(link->db);
}

/* One look, unpinned. Nothing is owned by the caller after a failure. */
static esdm_status
load_snapshot(sqlite__store *store, const char *name, uint64_t snapshot, uint64_t known_container,
              uint64_t known_structure, esdm_meta_snapshot *ret_snapshot, esdm_error *err)
{
    esdm_meta_snapshot loaded = {0};
    sqlite3_stmt *statement = NULL;
    sqlite__link *link = NULL;
    bool row = false;
    bool has_tags = false; /* the table */
    bool again = false;
    esdm_status status = sqlite__begin_opening(store, &link, err);
    if (status != ESDM_OK)
        return status;
    if (snapshot == 0)
        status = sqlite__newest_load(link, name, known_container, known_structure, ret_snapshot,
                                     &again, err);
    if (status != ESDM_OK || again) {
        sqlite__end_opening(store, link);
        return status;
    }
    sqlite__newest_begin(link);
    status = sqlite__schema_has_tables_of_5(link, &has_tags, err);
    if (status == ESDM_OK)
        status = sqlite__prepare(
            link, has_tags ? SQLITE__SNAPSHOT_OPEN_TAGS : SQLITE__SNAPSHOT_OPEN, &statement, err,
            "tiii", name, snapshot, known_container, known_structure);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    if (row) {
        status = read_snapshot(store, statement, name, snapshot, known_container, known_structure,
                               &loaded, err);
        loaded.untagged = !has_tags || sqlite3_column_int(statement, 16) == 0;
        if (status == ESDM_OK && snapshot == 0)
            sqlite__newest_keep(link, name, &loaded, true);
        (void) sqlite3_reset(statement);
        forget_pages(link, &loaded);
    } else if (status == ESDM_OK) {
        status = no_container(name, err);
    }
    sqlite__end_opening(store, link);
    if (status != ESDM_OK) {
        free(loaded.document);
        free(loaded.lengths);
        return status;
    }
    *ret_snapshot = loaded;
    return ESDM_OK;
}

/* Within a reading. *ret_statement is left at its row, so that what is read until it is reset is of
 * the same state, and the database is locked once for all of it; NULL: there is no such snapshot.
 */
static esdm_status
find_snapshot(sqlite__link *link, uint64_t key, sqlite3_stmt **ret_statement, esdm_error *err)
{
    bool row = false;
    *ret_statement = NULL;
    sqlite3_stmt *statement = NULL;
    esdm_status status = sqlite__prepare(link, SQLITE__SNAPSHOT_EXISTS, &statement, err, "i", key);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    if (row)
        *ret_statement = statement;
    return status;
}

static esdm_status
snapshot_exists(sqlite__store *store, uint64_t key, bool *ret_exists, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    sqlite__link *link = NULL;
    esdm_status status = sqlite__begin_opening(store, &link, err);
    if (status != ESDM_OK)
        return status;
    *ret_exists = sqlite__newest_has(link, key >> 32, key & SQLITE__LOW_MAX);
    if (!*ret_exists) {
        status = find_snapshot(link, key, &statement, err);
        *ret_exists = statement != NULL;
    }
    (void) sqlite3_reset(statement); /* NULL is accepted */
    sqlite__end_opening(store, link);
    return status;
}

/* Pins, then looks again: who deletes holds the byte until the deletion can be seen. What somebody
 * has looked at so while it was pinned has stayed. To see that nobody has committed since it was
 * loaded is such a look. */
static esdm_status
pin_existing(sqlite__store *store, uint64_t key, bool *ret_exists, esdm_error *err)
{
    bool there = false;
    *ret_exists = false;
    esdm_status status = sqlite__pins_add(&store->pins, key, &there, err);
    if (status != ESDM_OK)
        return status;
    if (there) {
        *ret_exists = true;
        return ESDM_OK;
    }
    status = snapshot_exists(store, key, ret_exists, err);
    if (*ret_exists)
        sqlite__pins_seen(&store->pins, key);
    else
        sqlite__pins_drop(&store->pins, key);
    return status;
}

esdm_status
sqlite__snapshot_open(void *self, const char *name, uint64_t snapshot, uint64_t known_container,
                      uint64_t known_structure, esdm_meta_snapshot *ret_snapshot, esdm_error *err)
{
    sqlite__store *store = self;
    if (snapshot > SQLITE__LOW_MAX)
        return esdm__error_set(err, ESDM_ENOENT, "container '%.300s' has no snapshot %llu", name,
                               (unsigned long long) snapshot);
    for (int attempt = 0; attempt < PIN_ATTEMPTS; attempt++) {
        esdm_meta_snapshot loaded;
        bool exists = false;
        esdm_status status =
            load_snapshot(store, name, snapshot, known_container, known_structure, &loaded, err);
        if (status != ESDM_OK)
            return status;
        status = pin_existing(store, sqlite__key(loaded.record.container, loaded.snapshot), &exists,
                              err);
        if (status == ESDM_OK && exists) {
            *ret_snapshot = loaded;
            return ESDM_OK;
        }
        free(loaded.document);
        free(loaded.lengths);
        if (status != ESDM_OK)
            return status;
    }
    return esdm__error_set(err, ESDM_ETIMEDOUT,
                           "container '%.300s' changes faster than it can be opened", name);
}

esdm_status
sqlite__pin(void *self, uint64_t container, uint64_t snapshot, esdm_error *err)
{
    sqlite__store *store = self;
    bool exists = false;
    if (container == 0 || container > SQLITE__CONTAINER_MAX || snapshot > SQLITE__LOW_MAX)
        return esdm__error_set(err, ESDM_EINVAL, "record %llu has no snapshot %llu",
                               (unsigned long long) container, (unsigned long long) snapshot);
    esdm_status status = pin_existing(store, sqlite__key(container, snapshot), &exists, err);
    if (status == ESDM_OK && !exists)
        status = esdm__error_set(err, ESDM_ENOENT, "snapshot %llu of record %llu is gone",
                                 (unsigned long long) snapshot, (unsigned long long) container);
    return status;
}

void
sqlite__unpin(void *self, uint64_t container, uint64_t snapshot)
{
    sqlite__store *store = self;
    if (store->pid == esdm__own_pid()) /* a forked child shares the locks: they are its parent's */
        sqlite__pins_drop(&store->pins, sqlite__key(container, snapshot));
}

typedef struct snapshot_visit {
    esdm_meta_snapshot_visitor visit;
    void *user;
    bool any;
} snapshot_visit;

static bool
visit_snapshot(sqlite3_stmt *row, void *user)
{
    snapshot_visit *asked = user;
    asked->any = true;
    return asked->visit(sqlite__u64(row, 0), sqlite__u64(row, 1), sqlite__u64(row, 2),
                        sqlite__text(row, 3), sqlite__text(row, 4), asked->user);
}

esdm_status
sqlite__snapshot_list(void *self, const char *name, esdm_meta_snapshot_visitor visit, void *user,
                      esdm_error *err)
{
    snapshot_visit asked = {visit, user, false};
    esdm_status status =
        sqlite__read_rows(self, SQLITE__SNAPSHOT_LIST, name, visit_snapshot, NULL, &asked, err);
    /* The newest snapshot always stays, so a container has at least one. */
    return status == ESDM_OK && !asked.any ? no_container(name, err) : status;
}

/* ---- pages ---------------------------------------------------------------------------------- */

/* A changed key, or a pointer to another row's cell, leads a search astray or ends a scan too
 * early. Then one of the two rows on either side of what was found is damaged, or not in order. */
#define ROWS_BESIDE 2

typedef struct page_scan {
    uint64_t container;
    uint64_t dataset; /* 0: all */
    uint64_t snapshot;
    uint64_t last[3]; /* key of the row before: container, dataset, page */
    bool any;
} page_scan;

/* Rows come in rising order, or in falling one. */
static esdm_status
check_order(const sqlite__link *link, page_scan *scan, sqlite3_stmt *row, bool falling,
            esdm_error *err)
{
    const uint64_t key[3] = {sqlite__u64(row, 9), sqlite__u64(row, 1), sqlite__u64(row, 0)};
    size_t i = 0;
    while (i < 2 && key[i] == scan->last[i])
        i++;
    bool right = falling ? key[i] < scan->last[i] : key[i] > scan->last[i];
    if (scan->any && !right)
        return sqlite__error(link, SQLITE_CORRUPT, err);
    memcpy(scan->last, key, sizeof key);
    scan->any = true;
    return ESDM_OK;
}

static esdm_status
check_rows_before(sqlite__link *link, page_scan *scan, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    esdm_status status = sqlite__prepare(link, SQLITE__PAGE_BEFORE, &statement, err, "ii",
                                         scan->container, scan->dataset);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    while (status == ESDM_OK && row) {
        status = check_order(link, scan, statement, true, err);
        if (status == ESDM_OK)
            status = sqlite__step(link, statement, &row, err);
    }
    if (row)
        (void) sqlite3_reset(statement);
    scan->any = false;
    return status;
}

static bool
is_asked_for(const page_scan *scan)
{
    return scan->last[0] == scan->container &&
           (scan->dataset == 0 || scan->last[1] == scan->dataset);
}

/* Passes the row on if it is visible. *ret_more: whether more are wanted. */
static esdm_status
visit_page(sqlite3_stmt *row, esdm_meta_page_visitor visit, void *user, bool *ret_more,
           esdm_error *err)
{
    uint64_t box[2 * ESDM_MAX_RANK];
    esdm_meta_page page = {
        .page = sqlite__u64(row, 0),
        .dataset = (uint32_t) sqlite__u64(row, 1),
        .records = (uint32_t) sqlite__u64(row, 2),
        .added = sqlite__u64(row, 3),
        .level = (uint32_t) sqlite__u64(row, 4),
        .absolute = sqlite__u64(row, 5) != 0,
        .raw_bytes = sqlite__u64(row, 6),
        .stored_bytes = sqlite__u64(row, 7),
        .box = box,
    };
    bool visible = sqlite__u64(row, 10) != 0;
    esdm_status status = sqlite__box_decode(
        sqlite3_column_blob(row, 8), (size_t) sqlite3_column_bytes(row, 8), &page.rank, box, err);
    *ret_more = status == ESDM_OK && (!visible || visit(&page, user));
    return status;
}

static esdm_status
visit_pages(sqlite__link *link, page_scan *scan, sqlite3_stmt *statement,
            esdm_meta_page_visitor visit, void *user, esdm_error *err)
{
    bool row = false;
    bool more = true;
    int beside = 0;
    esdm_status status = sqlite__step(link, statement, &row, err);
    while (status == ESDM_OK && row) {
        status = check_order(link, scan, statement, false, err);
        if (status == ESDM_OK && is_asked_for(scan))
            status = visit_page(statement, visit, user, &more, err);
        else
            beside++;
        if (status != ESDM_OK || !more || beside == ROWS_BESIDE)
            break;
        status = sqlite__step(link, statement, &row, err);
    }
    if (row)
        (void) sqlite3_reset(statement);
    return status;
}

static esdm_status
list_pages(sqlite__link *link, page_scan *scan, esdm_meta_page_visitor visit, void *user,
           esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    esdm_status status = check_rows_before(link, scan, err);
    if (status != ESDM_OK)
        return status;
    if (scan->snapshot == ESDM_META_EVERY_SNAPSHOT)
        status = sqlite__prepare(link, SQLITE__PAGE_LIST_KEPT, &statement, err, "ii",
                                 scan->container, scan->dataset);
    else if (scan->dataset == 0)
        status = sqlite__prepare(link, SQLITE__PAGE_LIST_ALL, &statement, err, "ii",
                                 scan->container, scan->snapshot);
    else
        status = sqlite__prepare(link, SQLITE__PAGE_LIST, &statement, err, "iii", scan->container,
                                 scan->snapshot, scan->dataset);
    return status == ESDM_OK ? visit_pages(link, scan, statement, visit, user, err) : status;
}

esdm_status
sqlite__visit_kept_pages(sqlite__link *link, uint64_t container, uint32_t dataset,
                         esdm_meta_page_visitor visit, void *user, esdm_error *err)
{
    page_scan scan = {
        .container = container, .dataset = dataset, .snapshot = ESDM_META_EVERY_SNAPSHOT};
    return list_pages(link, &scan, visit, user, err);
}

esdm_status
sqlite__visit_snapshot_pages(sqlite__link *link, uint64_t container, uint64_t snapshot,
                             esdm_meta_page_visitor visit, void *user, esdm_error *err)
{
    page_scan scan = {.container = container, .snapshot = snapshot};
    return list_pages(link, &scan, visit, user, err);
}

/* Within a reading. */
static esdm_status
list_pages_of(sqlite__link *link, page_scan *scan, esdm_meta_page_visitor visit, void *user,
              esdm_error *err)
{
    sqlite3_stmt *found = NULL;
    bool every = scan->snapshot == ESDM_META_EVERY_SNAPSHOT;
    bool possible = scan->container <= SQLITE__CONTAINER_MAX;
    esdm_status status = ESDM_OK;
    if (!every && possible && scan->snapshot <= SQLITE__LOW_MAX)
        status = find_snapshot(link, sqlite__key(scan->container, scan->snapshot), &found, err);
    if (status == ESDM_OK && found == NULL && !(every && possible))
        status = esdm__error_set(err, ESDM_ENOENT, "record %llu has no snapshot %llu",
                                 (unsigned long long) scan->container,
                                 (unsigned long long) scan->snapshot);
    if (status == ESDM_OK)
        status = list_pages(link, scan, visit, user, err);
    (void) sqlite3_reset(found);
    return status;
}

esdm_status
sqlite__page_list(void *self, uint64_t container, uint64_t snapshot, uint32_t dataset,
                  esdm_meta_page_visitor visit, void *user, esdm_error *err)
{
    sqlite__store *store = self;
    sqlite__link *link = NULL;
    page_scan scan = {.container = container, .dataset = dataset, .snapshot = snapshot};
    esdm_status status = sqlite__begin_opening(store, &link, err);
    if (status != ESDM_OK)
        return status;
    status = list_pages_of(link, &scan, visit, user, err);
    sqlite__end_opening(store, link);
    return status;
}

esdm_status
sqlite__page_load(void *self, uint64_t page, void **ret_data, size_t *ret_bytes, esdm_error *err)
{
    sqlite__store *store = self;
    sqlite__link *link = NULL;
    void *data = NULL;
    size_t bytes = 0;
    esdm_status status = sqlite__begin_opening(store, &link, err);
    if (status != ESDM_OK)
        return status;
    status = sqlite__ahead_load(link, page, &data, &bytes, err);
    sqlite__end_opening(store, link);
    if (status == ESDM_OK && data == NULL)
        status = esdm__error_set(err, ESDM_ENOENT, "metadata store '%.200s' has no index page %llu",
                                 store->file, (unsigned long long) page);
    if (status == ESDM_OK) {
        *ret_data = data;
        *ret_bytes = bytes;
    }
    return status;
}
