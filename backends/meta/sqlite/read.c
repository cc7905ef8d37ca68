/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Reading containers, snapshots and pages. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
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
    bool row = false;
    esdm_status status = sqlite__begin_read(store, err);
    if (status != ESDM_OK)
        return status;
    status = sqlite__prepare(&store->reader, SQLITE__CONTAINER_FIND, &statement, err, "t", name);
    if (status == ESDM_OK)
        status = sqlite__step(&store->reader, statement, &row, err);
    if (row) {
        sqlite__read_record(statement, ret_record);
        (void) sqlite3_reset(statement);
    }
    sqlite__end_read(store);
    return status == ESDM_OK && !row ? no_container(name, err) : status;
}

esdm_status
sqlite__read_rows(sqlite__store *store, sqlite__statement_id id, const char *text,
                  sqlite__row_visitor visit, void *user, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    esdm_status status = sqlite__begin_read(store, err);
    if (status != ESDM_OK)
        return status;
    status = text != NULL ? sqlite__prepare(&store->reader, id, &statement, err, "t", text)
                          : sqlite__prepare(&store->reader, id, &statement, err, "");
    if (status == ESDM_OK)
        status = sqlite__step(&store->reader, statement, &row, err);
    while (status == ESDM_OK && row && visit(statement, user))
        status = sqlite__step(&store->reader, statement, &row, err);
    if (row)
        (void) sqlite3_reset(statement);
    sqlite__end_read(store);
    return status;
}

typedef struct container_visit {
    esdm_meta_container_visitor visit;
    void *user;
} container_visit;

static bool
visit_container(sqlite3_stmt *row, void *user)
{
    const container_visit *asked = user;
    esdm_meta_container record;
    sqlite__read_record(row, &record);
    return asked->visit(sqlite__text(row, 10), &record, asked->user);
}

esdm_status
sqlite__container_list(void *self, const char *prefix, esdm_meta_container_visitor visit,
                       void *user, esdm_error *err)
{
    container_visit asked = {visit, user};
    bool all = prefix == NULL || prefix[0] == '\0';
    return sqlite__read_rows(self, all ? SQLITE__CONTAINER_LIST_ALL : SQLITE__CONTAINER_LIST,
                             all ? NULL : prefix, visit_container, &asked, err);
}

/* ---- snapshots ------------------------------------------------------------------------------ */

static esdm_status
read_snapshot(const sqlite__store *store, sqlite3_stmt *statement, const char *name,
              uint64_t known_container, uint64_t known_structure, esdm_meta_snapshot *snapshot,
              esdm_error *err)
{
    size_t bytes = 0;
    void *document = NULL;
    sqlite__read_record(statement, &snapshot->record);
    if (sqlite3_column_type(statement, 10) == SQLITE_NULL)
        return esdm__error_set(err, ESDM_ENOENT,
                               "container '%.300s' has no such snapshot, or not any more", name);
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

/* One look, unpinned. Nothing is owned by the caller after a failure. */
static esdm_status
load_snapshot(sqlite__store *store, const char *name, uint64_t snapshot, uint64_t known_container,
              uint64_t known_structure, esdm_meta_snapshot *ret_snapshot, esdm_error *err)
{
    esdm_meta_snapshot loaded = {0};
    sqlite3_stmt *statement = NULL;
    bool row = false;
    esdm_status status = sqlite__begin_read(store, err);
    if (status != ESDM_OK)
        return status;
    status = sqlite__prepare(&store->reader, SQLITE__SNAPSHOT_OPEN, &statement, err, "tiii", name,
                             snapshot, known_container, known_structure);
    if (status == ESDM_OK)
        status = sqlite__step(&store->reader, statement, &row, err);
    if (row) {
        status =
            read_snapshot(store, statement, name, known_container, known_structure, &loaded, err);
        (void) sqlite3_reset(statement);
    } else if (status == ESDM_OK) {
        status = no_container(name, err);
    }
    sqlite__end_read(store);
    if (status != ESDM_OK) {
        free(loaded.document);
        free(loaded.lengths);
        return status;
    }
    *ret_snapshot = loaded;
    return ESDM_OK;
}

static esdm_status
snapshot_exists(sqlite__store *store, uint64_t key, bool *ret_exists, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    esdm_status status = sqlite__begin_read(store, err);
    if (status != ESDM_OK)
        return status;
    status = sqlite__prepare(&store->reader, SQLITE__SNAPSHOT_EXISTS, &statement, err, "i", key);
    if (status == ESDM_OK)
        status = sqlite__step(&store->reader, statement, &row, err);
    if (row)
        (void) sqlite3_reset(statement);
    sqlite__end_read(store);
    *ret_exists = row;
    return status;
}

/* Pins, then looks again: who deletes holds the byte until the deletion can be seen. */
static esdm_status
pin_existing(sqlite__store *store, uint64_t key, bool *ret_exists, esdm_error *err)
{
    *ret_exists = false;
    esdm_status status = sqlite__pins_add(&store->pins, key, err);
    if (status != ESDM_OK)
        return status;
    status = snapshot_exists(store, key, ret_exists, err);
    if (!*ret_exists)
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
    if (store->pid == getpid()) /* a forked child shares the locks: they are its parent's */
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
        sqlite__read_rows(self, SQLITE__SNAPSHOT_LIST, name, visit_snapshot, &asked, err);
    /* The newest snapshot always stays, so a container has at least one. */
    return status == ESDM_OK && !asked.any ? no_container(name, err) : status;
}

/* ---- pages ---------------------------------------------------------------------------------- */

static esdm_status
visit_pages(sqlite__link *link, sqlite3_stmt *statement, esdm_meta_page_visitor visit, void *user,
            esdm_error *err)
{
    bool row = false;
    uint64_t box[2 * ESDM_MAX_RANK];
    esdm_status status = sqlite__step(link, statement, &row, err);
    while (status == ESDM_OK && row) {
        esdm_meta_page page = {
            .page = sqlite__u64(statement, 0),
            .dataset = (uint32_t) sqlite__u64(statement, 1),
            .records = (uint32_t) sqlite__u64(statement, 2),
            .added = sqlite__u64(statement, 3),
            .level = (uint32_t) sqlite__u64(statement, 4),
            .absolute = sqlite__u64(statement, 5) != 0,
            .raw_bytes = sqlite__u64(statement, 6),
            .stored_bytes = sqlite__u64(statement, 7),
            .box = box,
        };
        status =
            sqlite__box_decode(sqlite3_column_blob(statement, 8),
                               (size_t) sqlite3_column_bytes(statement, 8), &page.rank, box, err);
        if (status != ESDM_OK || !visit(&page, user))
            break;
        status = sqlite__step(link, statement, &row, err);
    }
    if (row)
        (void) sqlite3_reset(statement);
    return status;
}

esdm_status
sqlite__page_list(void *self, uint64_t container, uint64_t snapshot, uint32_t dataset,
                  esdm_meta_page_visitor visit, void *user, esdm_error *err)
{
    sqlite__store *store = self;
    sqlite3_stmt *statement = NULL;
    bool exists = false;
    esdm_status status = ESDM_OK;
    bool every = snapshot == ESDM_META_EVERY_SNAPSHOT;
    if (every)
        exists = container <= SQLITE__CONTAINER_MAX;
    else if (container <= SQLITE__CONTAINER_MAX && snapshot <= SQLITE__LOW_MAX)
        status = snapshot_exists(store, sqlite__key(container, snapshot), &exists, err);
    if (status != ESDM_OK)
        return status;
    if (!exists)
        return esdm__error_set(err, ESDM_ENOENT, "record %llu has no snapshot %llu",
                               (unsigned long long) container, (unsigned long long) snapshot);
    status = sqlite__begin_read(store, err);
    if (status != ESDM_OK)
        return status;
    if (every)
        status = sqlite__prepare(&store->reader, SQLITE__PAGE_LIST_KEPT, &statement, err, "ii",
                                 container, (uint64_t) dataset);
    else if (dataset == 0)
        status = sqlite__prepare(&store->reader, SQLITE__PAGE_LIST_ALL, &statement, err, "ii",
                                 container, snapshot);
    else
        status = sqlite__prepare(&store->reader, SQLITE__PAGE_LIST, &statement, err, "iii",
                                 container, snapshot, (uint64_t) dataset);
    if (status == ESDM_OK)
        status = visit_pages(&store->reader, statement, visit, user, err);
    sqlite__end_read(store);
    return status;
}

esdm_status
sqlite__page_load(void *self, uint64_t page, void **ret_data, size_t *ret_bytes, esdm_error *err)
{
    sqlite__store *store = self;
    void *data = NULL;
    size_t bytes = 0;
    esdm_status status = sqlite__begin_read(store, err);
    if (status != ESDM_OK)
        return status;
    status = sqlite__value(&store->reader, SQLITE__PAGE_LOAD, &data, &bytes, err, "i", page);
    sqlite__end_read(store);
    if (status == ESDM_OK && data == NULL)
        status = esdm__error_set(err, ESDM_ENOENT, "metadata store '%.200s' has no index page %llu",
                                 store->file, (unsigned long long) page);
    if (status == ESDM_OK) {
        *ret_data = data;
        *ret_bytes = bytes;
    }
    return status;
}
