/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Records that begin as a copy of another one and share its packs. */

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/ids.h"
#include "store.h"

/* ---- who shares ----------------------------------------------------------------------------- */

/* Pairs that are asked for: of a record, of a uuid, or all. */
typedef struct shared_scan {
    uint64_t container; /* 0: of any */
    const char *uuid;   /* NULL: any */
    esdm_meta_shared_visitor visit;
    void *user;
} shared_scan;

static esdm_status
prepare(sqlite__link *link, const shared_scan *scan, sqlite__statement_id of_uuid,
        sqlite__statement_id of_record, sqlite__statement_id of_all, sqlite3_stmt **ret_statement,
        esdm_error *err)
{
    if (scan->uuid != NULL)
        return sqlite__prepare(link, of_uuid, ret_statement, err, "t", scan->uuid);
    if (scan->container != 0)
        return sqlite__prepare(link, of_record, ret_statement, err, "i", scan->container);
    return sqlite__prepare(link, of_all, ret_statement, err, "");
}

static esdm_status
damaged(const sqlite__link *link, esdm_error *err)
{
    return esdm__error_set(err, ESDM_ECORRUPT,
                           "metadata store '%.200s': the database is damaged: which containers "
                           "share packs cannot be told; " SQLITE__REMEDY,
                           link->label);
}

/* Packs that a lost row names would be taken for nobody's. All rows are counted by another way than
 * they are listed. Of some, the two rows on either side are read, as of pages (read.c): one whose
 * key was changed is mostly there, and its checksum is wrong. */
static esdm_status
check_lost(sqlite__link *link, const shared_scan *scan, uint64_t listed, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    bool all = scan->container == 0 && scan->uuid == NULL;
    esdm_status status = prepare(link, scan, SQLITE__SHARED_BESIDE_UUID, SQLITE__SHARED_BESIDE,
                                 SQLITE__SHARED_COUNT, &statement, err);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    while (status == ESDM_OK && row) {
        if (all && sqlite__u64(statement, 0) != listed)
            status = damaged(link, err);
        else
            status = sqlite__step(link, statement, &row, err);
    }
    if (row)
        (void) sqlite3_reset(statement);
    return status;
}

/* Over this connection. */
static esdm_status
visit_shared(sqlite__link *link, const shared_scan *scan, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    bool more = true;
    uint64_t rows = 0;
    esdm_status status = prepare(link, scan, SQLITE__SHARED_LIST_UUID, SQLITE__SHARED_LIST_OF,
                                 SQLITE__SHARED_LIST, &statement, err);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    while (status == ESDM_OK && row && more) {
        rows++;
        more = scan->visit(sqlite__text(statement, 0), sqlite__u64(statement, 1), scan->user);
        if (more)
            status = sqlite__step(link, statement, &row, err);
    }
    if (row)
        (void) sqlite3_reset(statement);
    return status == ESDM_OK && more ? check_lost(link, scan, rows, err) : status;
}

/* Within one reading. An older store has no such rows. */
static esdm_status
read_shared(sqlite__link *link, const shared_scan *scan, esdm_error *err)
{
    bool has_table = false;
    esdm_status status = sqlite__schema_has_tables_of_5(link, &has_table, err);
    if (status != ESDM_OK || !has_table)
        return status;
    return visit_shared(link, scan, err);
}

static esdm_status
scan_shared(sqlite__store *store, const shared_scan *scan, esdm_error *err)
{
    esdm_status status = sqlite__begin_read(store, err);
    if (status != ESDM_OK)
        return status;
    status = sqlite__run(&store->reader, SQLITE__BEGIN, err, "");
    if (status == ESDM_OK) {
        status = read_shared(&store->reader, scan, err);
        (void) !sqlite__run(&store->reader, SQLITE__ROLLBACK, NULL, "");
    }
    sqlite__end_read(store);
    return status;
}

esdm_status
sqlite__shared_list(void *self, uint64_t container, esdm_meta_shared_visitor visit, void *user,
                    esdm_error *err)
{
    const shared_scan scan = {.container = container, .visit = visit, .user = user};
    return scan_shared(self, &scan, err);
}

esdm_status
sqlite__shared_of(void *self, const char *uuid, esdm_meta_shared_visitor visit, void *user,
                  esdm_error *err)
{
    const shared_scan scan = {.uuid = uuid, .visit = visit, .user = user};
    return scan_shared(self, &scan, err);
}

/* ---- clone ---------------------------------------------------------------------------------- */

typedef struct source_page {
    uint64_t dataset;
    uint64_t page;
} source_page;

typedef struct cloning {
    uint64_t container; /* of the old record */
    char uuid[ESDM_META_UUID_BYTES];
    uint64_t snapshot;
    uint64_t structure;
    uint64_t document_at;
    uint64_t datasets;
    bool newest;
    uint64_t raw_bytes; /* sums over the pages */
    uint64_t stored_bytes;
    uint64_t fragments;
    uint64_t head_sums[3]; /* what the old record says of its newest snapshot */
    void *attributes;      /* owned */
    size_t attributes_bytes;
    source_page *pages; /* owned */
    size_t npages;
    char (*uuids)[ESDM_META_UUID_BYTES]; /* owned: that the old record shares */
    size_t nuuids;
    bool failed; /* out of memory */
} cloning;

static bool
note_page(const esdm_meta_page *page, void *user)
{
    cloning *c = user;
    c->failed = !esdm__array_grow(&c->pages, c->npages, sizeof *c->pages);
    if (c->failed)
        return false;
    c->pages[c->npages++] = (source_page){page->dataset, page->page};
    c->raw_bytes += page->raw_bytes;
    c->stored_bytes += page->stored_bytes;
    c->fragments += page->records;
    return true;
}

static bool
note_shared(const char *uuid, uint64_t container, void *user)
{
    cloning *c = user;
    (void) container;
    c->failed = !esdm__array_grow(&c->uuids, c->nuuids, sizeof *c->uuids);
    if (c->failed)
        return false;
    memset(c->uuids[c->nuuids], 0, sizeof *c->uuids);
    memcpy(c->uuids[c->nuuids++], uuid, strnlen(uuid, sizeof *c->uuids - 1));
    return true;
}

static esdm_status
read_source(sqlite__link *link, const esdm_meta_clone *clone, cloning *c, esdm_error *err)
{
    sqlite3_stmt *row = NULL;
    bool found = false;
    esdm_status status = sqlite__prepare(link, SQLITE__CLONE_SOURCE, &row, err, "ii",
                                         clone->container, clone->snapshot);
    if (status == ESDM_OK)
        status = sqlite__step(link, row, &found, err);
    if (status != ESDM_OK)
        return status;
    if (!found)
        return esdm__error_set(err, ESDM_ECONFLICT,
                               "container '%.300s' was removed or replaced meanwhile", clone->from);
    const char *uuid = sqlite__text(row, 1);
    c->container = sqlite__u64(row, 0);
    memcpy(c->uuid, uuid, strnlen(uuid, sizeof c->uuid - 1));
    bool there = sqlite3_column_type(row, 2) != SQLITE_NULL;
    c->snapshot = sqlite__u64(row, 2);
    c->structure = sqlite__u64(row, 3);
    c->document_at = sqlite__u64(row, 4);
    c->datasets = sqlite__u64(row, 5);
    c->newest = c->snapshot == sqlite__u64(row, 6);
    for (int i = 0; i < 3; i++)
        c->head_sums[i] = sqlite__u64(row, 7 + i);
    status = sqlite__copy(row, 10, &c->attributes, &c->attributes_bytes, err);
    (void) sqlite3_reset(row);
    if (status == ESDM_OK && !there)
        status = esdm__error_set(err, ESDM_ENOENT, "container '%.300s' has no snapshot %llu",
                                 clone->from, (unsigned long long) clone->snapshot);
    return status;
}

/* A directory that lacks pages must not become another container's. */
static esdm_status
read_pages(sqlite__link *link, const esdm_meta_clone *clone, cloning *c, esdm_error *err)
{
    const shared_scan own = {.container = c->container, .visit = note_shared, .user = c};
    esdm_status status =
        sqlite__visit_snapshot_pages(link, c->container, c->snapshot, note_page, c, err);
    if (status == ESDM_OK && !c->failed)
        status = visit_shared(link, &own, err);
    if (status == ESDM_OK && c->failed)
        status = esdm__error_nomem(err, c->npages * sizeof *c->pages, "index pages");
    if (status == ESDM_OK && c->npages >= SQLITE__LOW_MAX)
        status = esdm__error_set(err, ESDM_ENOTSUP, "too many index pages");
    if (status == ESDM_OK && c->newest &&
        (c->raw_bytes != c->head_sums[0] || c->stored_bytes != c->head_sums[1] ||
         c->fragments != c->head_sums[2]))
        status = esdm__error_set(err, ESDM_ECORRUPT,
                                 "container '%.300s': its directory lists other index pages than "
                                 "were committed; esdm-fsck tells more",
                                 clone->from);
    return status;
}

static esdm_status
copy_pages(sqlite__link *link, const cloning *c, uint64_t container, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < c->npages && status == ESDM_OK; i++) {
        const source_page *page = &c->pages[i];
        uint64_t number = sqlite__key(container, i + 1);
        status = sqlite__run(link, SQLITE__CLONE_PAGE, err, "iiiii", c->container, page->dataset,
                             page->page, container, number);
        bool whole = status != ESDM_OK || sqlite3_changes(link->db) == 1;
        if (status == ESDM_OK)
            status = sqlite__run(link, SQLITE__CLONE_PAGE_DATA, err, "ii", page->page, number);
        whole = whole && (status != ESDM_OK || sqlite3_changes(link->db) == 1);
        if (!whole)
            return esdm__error_set(err, ESDM_ECORRUPT,
                                   "metadata store '%.200s' has no index page %llu", link->label,
                                   (unsigned long long) page->page);
    }
    return status;
}

static esdm_status
insert_shared(sqlite__link *link, const cloning *c, uint64_t container, esdm_error *err)
{
    esdm_status status = sqlite__run(link, SQLITE__SHARED_INSERT, err, "ti", c->uuid, container);
    for (size_t i = 0; i < c->nuuids && status == ESDM_OK; i++)
        status = sqlite__run(link, SQLITE__SHARED_INSERT, err, "ti", c->uuids[i], container);
    return status;
}

static esdm_status
insert_clone(sqlite__link *link, const esdm_meta_clone *clone, const cloning *c, uint64_t now_ns,
             uint64_t *ret_container, esdm_error *err)
{
    esdm_status status =
        sqlite__run(link, SQLITE__CONTAINER_IMPORT, err, "ttiiiiiiiiii", clone->name, clone->uuid,
                    c->snapshot, c->structure, c->snapshot, (uint64_t) c->npages + 1, now_ns,
                    now_ns, c->raw_bytes, c->stored_bytes, c->fragments, c->datasets);
    if (status != ESDM_OK)
        return status;
    uint64_t container = (uint64_t) sqlite3_last_insert_rowid(link->db);
    *ret_container = container;
    if (container > SQLITE__CONTAINER_MAX)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "metadata store '%.200s' has used up its 2^31 container numbers",
                               link->label);
    status = sqlite__run(
        link, SQLITE__CLONE_SNAPSHOT, err, "iiiitt", sqlite__key(c->container, c->snapshot),
        sqlite__key(container, c->snapshot), sqlite__key(c->container, c->document_at), now_ns,
        clone->writer != NULL ? clone->writer : "", clone->message != NULL ? clone->message : "");
    if (status == ESDM_OK && sqlite3_changes(link->db) != 1)
        status = sqlite__error(link, SQLITE_CORRUPT, err);
    if (status == ESDM_OK)
        status = copy_pages(link, c, container, err);
    if (status == ESDM_OK)
        status = insert_shared(link, c, container, err);
    if (status == ESDM_OK)
        status = sqlite__attributes_changed(link, container, true, c->attributes,
                                            c->attributes_bytes, err);
    if (status == ESDM_OK && c->newest)
        status = sqlite__run(link, SQLITE__CLONE_EXTENTS, err, "ii", c->container, container);
    if (status == ESDM_OK && c->newest && sqlite3_changes(link->db) > 0)
        status = sqlite__trees_note(link, container, err);
    return status;
}

esdm_status
sqlite__clone(void *self, const esdm_meta_clone *clone, esdm_meta_committed *ret_committed,
              esdm_error *err)
{
    sqlite__store *store = self;
    sqlite__link *link = &store->writer;
    cloning c = {.container = 0};
    uint64_t container = 0;
    uint64_t replaced = 0;
    uint64_t now_ns = esdm__now_ns();
    uint64_t former_ns = 0;
    if (clone->container > SQLITE__CONTAINER_MAX || clone->snapshot > SQLITE__LOW_MAX)
        return esdm__error_set(err, ESDM_ENOENT, "container '%.300s' has no snapshot %llu",
                               clone->from, (unsigned long long) clone->snapshot);
    esdm_status status = sqlite__begin_write(store, clone->durable, err);
    if (status != ESDM_OK)
        return status;
    status = read_source(link, clone, &c, err);
    if (status == ESDM_OK)
        status = read_pages(link, clone, &c, err);
    if (status == ESDM_OK)
        status =
            sqlite__free_name(link, clone->name, clone->replace, clone->keep_as, &replaced, err);
    if (status == ESDM_OK && replaced != 0)
        status = sqlite__last_change(link, replaced, &former_ns, err);
    if (now_ns <= former_ns) /* the clock of another node is ahead */
        now_ns = former_ns + 1;
    if (status == ESDM_OK)
        status = sqlite__schema_guard(link, err);
    if (status == ESDM_OK)
        status = insert_clone(link, clone, &c, now_ns, &container, err);
    status = sqlite__end_write(store, status, err);
    free(c.attributes);
    free(c.pages);
    free(c.uuids);
    if (status == ESDM_OK)
        *ret_committed = (esdm_meta_committed){.container = container,
                                               .snapshot = c.snapshot,
                                               .structure = c.structure,
                                               .time_ns = now_ns,
                                               .replaced = replaced,
                                               .first_page = sqlite__key(container, 1)};
    return status;
}

/* ---- more shares ---------------------------------------------------------------------------- */

static esdm_status
share(sqlite__link *link, uint64_t container, uint64_t other, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    uint64_t named = 0;
    esdm_status status =
        sqlite__prepare(link, SQLITE__SHARED_NAMED, &statement, err, "ii", container, other);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    if (row) {
        named = sqlite__u64(statement, 0);
        (void) sqlite3_reset(statement);
    }
    if (status == ESDM_OK && named != 2)
        return esdm__error_set(err, ESDM_ECONFLICT,
                               "record %llu or %llu was removed or replaced meanwhile",
                               (unsigned long long) container, (unsigned long long) other);
    if (status == ESDM_OK)
        status = sqlite__schema_guard(link, err);
    return status == ESDM_OK ? sqlite__run(link, SQLITE__SHARED_MORE, err, "ii", container, other)
                             : status;
}

/* Who commits has them pinned: they are there, whether they have a name or not. */
esdm_status
sqlite__share_all(sqlite__link *link, uint64_t container, const uint64_t *others, size_t count,
                  esdm_error *err)
{
    esdm_status status = count > 0 ? sqlite__schema_guard(link, err) : ESDM_OK;
    for (size_t i = 0; i < count && status == ESDM_OK; i++) {
        sqlite3_stmt *statement = NULL;
        bool row = false;
        uint64_t there = 0;
        if (others[i] == container)
            continue;
        if (others[i] <= SQLITE__CONTAINER_MAX)
            status = sqlite__prepare(link, SQLITE__SHARED_THERE, &statement, err, "i", others[i]);
        if (statement != NULL && status == ESDM_OK)
            status = sqlite__step(link, statement, &row, err);
        if (row) {
            there = sqlite__u64(statement, 0);
            (void) sqlite3_reset(statement);
        }
        if (status == ESDM_OK && there == 0)
            status = esdm__error_set(err, ESDM_ECONFLICT,
                                     "record %llu, to whose packs it refers, is not there any more",
                                     (unsigned long long) others[i]);
        if (status == ESDM_OK)
            status = sqlite__run(link, SQLITE__SHARED_MORE, err, "ii", container, others[i]);
    }
    return status;
}

esdm_status
sqlite__share(void *self, uint64_t container, uint64_t other, esdm_error *err)
{
    sqlite__store *store = self;
    if (container == other)
        return ESDM_OK;
    if (container > SQLITE__CONTAINER_MAX || other > SQLITE__CONTAINER_MAX)
        return esdm__error_set(err, ESDM_ECONFLICT, "there is no such record");
    esdm_status status = sqlite__begin_write(store, true, err);
    if (status != ESDM_OK)
        return status;
    status = share(&store->writer, container, other, err);
    return sqlite__end_write(store, status, err);
}
