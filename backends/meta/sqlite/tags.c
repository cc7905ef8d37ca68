/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Names of snapshots, which are kept as long as they have one, and their times. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/ids.h"
#include "base/meta_checks.h"
#include "store.h"

/* ---- reading -------------------------------------------------------------------------------- */

/* Within one reading. */
static esdm_status
visit_tags(sqlite__link *link, uint64_t container, esdm_meta_tag_visitor visit, void *user,
           esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    bool has_table = false;
    bool more = true;
    esdm_status status = sqlite__schema_has_tables_of_5(link, &has_table, err);
    if (status != ESDM_OK || !has_table)
        return status;
    status = sqlite__prepare(link, SQLITE__TAG_LIST, &statement, err, "i", container);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    while (status == ESDM_OK && row && more) {
        esdm_meta_tag tag = {.name = sqlite__text(statement, 0),
                             .snapshot = sqlite__u64(statement, 1),
                             .created_ns = sqlite__u64(statement, 2),
                             .author = sqlite__text(statement, 3)};
        more = visit(&tag, user);
        if (more)
            status = sqlite__step(link, statement, &row, err);
    }
    if (row)
        (void) sqlite3_reset(statement);
    return status;
}

esdm_status
sqlite__tag_list(void *self, uint64_t container, esdm_meta_tag_visitor visit, void *user,
                 esdm_error *err)
{
    sqlite__store *store = self;
    esdm_status status = sqlite__begin_read(store, err);
    if (status != ESDM_OK)
        return status;
    status = visit_tags(&store->reader, container, visit, user, err);
    sqlite__end_read(store);
    return status;
}

esdm_status
sqlite__tagged(sqlite__link *link, uint64_t container, uint64_t **ret_snapshots, size_t *ret_count,
               bool *ret_whole, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    bool whole = true;
    int64_t count = 0;
    size_t rows = 0;
    uint64_t *all = NULL;
    esdm_status status = sqlite__prepare(link, SQLITE__TAG_COUNT, &statement, err, "i", container);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    if (row) {
        count = sqlite3_column_int64(statement, 0);
        (void) sqlite3_reset(statement);
    }
    if (status == ESDM_OK && count > 0) {
        all = calloc((size_t) count, sizeof *all);
        if (all == NULL)
            return esdm__error_nomem(err, (size_t) count * sizeof *all, "names of snapshots");
    }
    if (status == ESDM_OK)
        status = sqlite__prepare(link, SQLITE__TAG_SCAN, &statement, err, "i", container);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    while (status == ESDM_OK && row) {
        whole = whole && rows < (size_t) count && sqlite__u64(statement, 1) != 0;
        if (rows < (size_t) count)
            all[rows] = sqlite__u64(statement, 0);
        rows++;
        status = sqlite__step(link, statement, &row, err);
    }
    if (status != ESDM_OK) {
        free(all);
        return status;
    }
    *ret_snapshots = all;
    *ret_count = rows < (size_t) count ? rows : (size_t) count;
    *ret_whole = whole && rows == (size_t) count;
    return ESDM_OK;
}

/* ---- changing ------------------------------------------------------------------------------- */

esdm_status
sqlite__tag_insert(sqlite__link *link, uint64_t container, const esdm_meta_tag *tag,
                   esdm_error *err)
{
    uint64_t created_ns = tag->created_ns != 0 ? tag->created_ns : esdm__now_ns();
    return sqlite__run(link, SQLITE__TAG_PUT, err, "itiit", container, tag->name, tag->snapshot,
                       created_ns, tag->author != NULL ? tag->author : "");
}

static esdm_status
has_row(sqlite__link *link, sqlite3_stmt *statement, esdm_status status, bool *ret_row,
        esdm_error *err)
{
    bool row = false;
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    if (row)
        (void) sqlite3_reset(statement);
    *ret_row = row;
    return status;
}

esdm_status
sqlite__is_sealed(sqlite__link *link, uint64_t container, bool *ret_sealed, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    esdm_status status = sqlite__prepare(link, SQLITE__TAG_GET, &statement, err, "it", container,
                                         ESDM_META_TAG_SEAL);
    return has_row(link, statement, status, ret_sealed, err);
}

/* Nobody has committed since the seal was made. */
static esdm_status
check_head(sqlite__link *link, uint64_t container, uint64_t snapshot, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool newer = false;
    esdm_status status = sqlite__prepare(link, SQLITE__SNAPSHOT_EXISTS, &statement, err, "i",
                                         sqlite__key(container, snapshot + 1));
    status = has_row(link, statement, status, &newer, err);
    if (status == ESDM_OK && newer)
        status = esdm__error_set(err, ESDM_ECONFLICT,
                                 "snapshot %llu is not the newest any more: somebody has written "
                                 "to the container",
                                 (unsigned long long) snapshot);
    return status;
}

static esdm_status
find_newer(sqlite__link *link, uint64_t container, const esdm_meta_tag *tag, bool *ret,
           esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    *ret = false;
    esdm_status status =
        sqlite__prepare(link, SQLITE__TAG_GET, &statement, err, "it", container, tag->name);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    if (row) {
        *ret = sqlite__u64(statement, 0) >= tag->snapshot;
        (void) sqlite3_reset(statement);
    }
    return status;
}

static esdm_status
set_tag(sqlite__link *link, uint64_t container, const esdm_meta_tag *tag, bool replace,
        esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool there = false;
    esdm_status status = sqlite__prepare(link, SQLITE__SNAPSHOT_EXISTS, &statement, err, "i",
                                         sqlite__key(container, tag->snapshot));
    status = has_row(link, statement, status, &there, err);
    if (status == ESDM_OK && !there)
        status =
            esdm__error_set(err, ESDM_ENOENT, "record %llu has no snapshot %llu",
                            (unsigned long long) container, (unsigned long long) tag->snapshot);
    if (status == ESDM_OK && !replace) {
        status =
            sqlite__prepare(link, SQLITE__TAG_GET, &statement, err, "it", container, tag->name);
        status = has_row(link, statement, status, &there, err);
        if (status == ESDM_OK && there)
            status = esdm__error_set(err, ESDM_EEXIST, "tag '%.200s' exists", tag->name);
    }
    if (status == ESDM_OK && replace && tag->only_newer) {
        status = find_newer(link, container, tag, &there, err);
        if (status != ESDM_OK || there)
            return status;
    }
    if (status == ESDM_OK && strcmp(tag->name, ESDM_META_TAG_SEAL) == 0)
        status = check_head(link, container, tag->snapshot, err);
    if (status == ESDM_OK)
        status = sqlite__schema_guard(link, err);
    return status == ESDM_OK ? sqlite__tag_insert(link, container, tag, err) : status;
}

esdm_status
sqlite__tag_committed(sqlite__link *link, uint64_t container, uint64_t snapshot,
                      const esdm_meta_tag *tag, esdm_error *err)
{
    if (tag == NULL)
        return ESDM_OK;
    esdm_meta_tag of = *tag;
    of.snapshot = snapshot;
    esdm_status status = esdm__check_tag(container, SQLITE__CONTAINER_MAX, &of, err);
    if (status == ESDM_OK)
        status = sqlite__schema_guard(link, err);
    return status == ESDM_OK ? sqlite__tag_insert(link, container, &of, err) : status;
}

esdm_status
sqlite__tag_set(void *self, uint64_t container, const esdm_meta_tag *tag, bool replace,
                esdm_error *err)
{
    sqlite__store *store = self;
    esdm_status status = esdm__check_tag(container, SQLITE__CONTAINER_MAX, tag, err);
    if (status == ESDM_OK)
        status = sqlite__begin_write(store, true, err);
    if (status != ESDM_OK)
        return status;
    return sqlite__end_write(store, set_tag(&store->writer, container, tag, replace, err), err);
}

esdm_status
sqlite__tag_remove(void *self, uint64_t container, const char *name, esdm_error *err)
{
    sqlite__store *store = self;
    esdm_status status = sqlite__begin_write(store, true, err);
    if (status != ESDM_OK)
        return status;
    status = sqlite__run(&store->writer, SQLITE__TAG_REMOVE, err, "it", container, name);
    if (status == ESDM_OK && sqlite3_changes(store->writer.db) == 0)
        status = esdm__error_set(err, ESDM_ENOENT, "there is no tag '%.200s'", name);
    return sqlite__end_write(store, status, err);
}

/* ---- times ---------------------------------------------------------------------------------- */

esdm_status
sqlite__snapshot_at(void *self, const char *name, uint64_t time_ns, uint64_t *ret_snapshot,
                    esdm_error *err)
{
    sqlite__store *store = self;
    sqlite3_stmt *statement = NULL;
    bool row = false;
    esdm_status status = sqlite__begin_read(store, err);
    if (status != ESDM_OK)
        return status;
    status =
        sqlite__prepare(&store->reader, SQLITE__SNAPSHOT_AT, &statement, err, "ti", name, time_ns);
    if (status == ESDM_OK)
        status = sqlite__step(&store->reader, statement, &row, err);
    if (row) {
        *ret_snapshot = sqlite__u64(statement, 0);
        (void) sqlite3_reset(statement);
    }
    sqlite__end_read(store);
    return status == ESDM_OK && !row ? esdm__error_set(err, ESDM_ENOENT,
                                                       "container '%.300s' is not there, or was "
                                                       "not at that time",
                                                       name)
                                     : status;
}
