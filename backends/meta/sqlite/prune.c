/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Deleting old snapshots and garbage. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/ids.h"
#include "store.h"

/* A writer pins what it has just committed; until then its snapshot must not go, and on a busy
 * machine it may wait for its turn. Young snapshots stay, up to a number. */
#define GRACE_NS        UINT64_C(500000000)
#define GRACE_SNAPSHOTS 4096

/* Looking at many snapshots costs time: with more than so many, it is done less often. */
#define MANY_SNAPSHOTS 1024
#define MANY_EVERY     128

typedef enum fate { KEPT, VICTIM, PRUNED } fate;

typedef struct old_snapshot {
    uint64_t snapshot;
    uint64_t document_at;
    fate fate;
} old_snapshot;

typedef struct old_page {
    uint64_t dataset;
    uint64_t page;
    uint64_t added;
    uint64_t removed;
} old_page;

/* Growable array for rows that are read before something is deleted. */
typedef struct rows {
    void *items;
    size_t count;
    size_t capacity;
} rows;

static void *
add_row(rows *all, size_t item_bytes)
{
    if (all->count == all->capacity) {
        size_t capacity = all->capacity == 0 ? 64 : all->capacity * 2;
        void *grown = realloc(all->items, capacity * item_bytes);
        if (grown == NULL)
            return NULL;
        all->items = grown;
        all->capacity = capacity;
    }
    return (char *) all->items + item_bytes * all->count++;
}

static esdm_status
no_memory(const rows *all, esdm_error *err)
{
    return esdm__error_nomem(err, all->capacity * 2 * sizeof(old_snapshot), "old snapshots");
}

/* Reads all snapshots of a record and says which ones the history does not need; as few as tell
 * that there are none. */
static esdm_status
scan_snapshots(sqlite__link *link, uint64_t container, uint64_t head, uint32_t history,
               uint64_t now_ns, rows *ret_all, size_t *ret_victims, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    uint64_t keep = history > 0 ? history : 1;
    esdm_status status = sqlite__prepare(link, SQLITE__SNAPSHOT_SCAN, &statement, err, "ii",
                                         sqlite__key(container, 1), sqlite__key(container, head));
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    while (status == ESDM_OK && row) {
        uint64_t number = sqlite__u64(statement, 0);
        uint64_t age_ns = now_ns - sqlite__u64(statement, 2);
        uint64_t later = head - number;
        bool old_enough = later >= keep && (age_ns > GRACE_NS || later >= GRACE_SNAPSHOTS);
        bool too_many = ret_all->count == 0 && later > MANY_SNAPSHOTS && head % MANY_EVERY != 0;
        /* Those after one that is too young are younger. */
        if (too_many || (!old_enough && *ret_victims == 0)) {
            (void) sqlite3_reset(statement);
            return ESDM_OK;
        }
        /* What a damaged row says is no reason to delete anything, nor to refuse a commit. */
        if (sqlite__u64(statement, 4) == 0) {
            (void) sqlite3_reset(statement);
            *ret_victims = 0;
            return ESDM_OK;
        }
        old_snapshot *old = add_row(ret_all, sizeof *old);
        if (old == NULL) {
            (void) sqlite3_reset(statement);
            return no_memory(ret_all, err);
        }
        *old = (old_snapshot){.snapshot = number, .document_at = sqlite__u64(statement, 1)};
        if (sqlite__u64(statement, 3) != 0)
            old->fate = PRUNED;
        else if (old_enough)
            old->fate = VICTIM;
        *ret_victims += old->fate == VICTIM;
        status = sqlite__step(link, statement, &row, err);
    }
    return status;
}

/* Snapshots that have names are kept; all are when a name may be missing. */
static esdm_status
spare_tagged(sqlite__link *link, uint64_t container, const rows *all, size_t *victims,
             esdm_error *err)
{
    uint64_t *tagged = NULL;
    size_t ntagged = 0;
    bool whole = false;
    esdm_status status = sqlite__tagged(link, container, &tagged, &ntagged, &whole, err);
    old_snapshot *old = all->items;
    size_t at = 0;
    for (size_t i = 0; i < all->count && status == ESDM_OK; i++) {
        while (at < ntagged && tagged[at] < old[i].snapshot)
            at++;
        if (old[i].fate != VICTIM || (whole && (at == ntagged || tagged[at] != old[i].snapshot)))
            continue;
        old[i].fate = KEPT;
        --*victims;
    }
    free(tagged);
    return status;
}

/* Takes the bytes of all victims; those that are pinned are kept. */
static void
spare_pinned(sqlite__store *store, uint64_t container, old_snapshot *all, size_t count)
{
    uint64_t first = 0;
    uint64_t last = 0;
    bool taken = false;
    for (size_t i = 0; i < count; i++) {
        if (all[i].fate != VICTIM)
            continue;
        first = first == 0 ? all[i].snapshot : first;
        last = all[i].snapshot;
    }
    /* Mostly nobody reads old snapshots, and one lock is enough. When locks do not work at all,
     * nothing is deleted. */
    (void) !sqlite__pins_take(&store->pins, sqlite__key(container, first), last - first + 1, &taken,
                              NULL);
    for (size_t i = 0; i < count && !taken; i++) {
        bool mine = false;
        if (all[i].fate != VICTIM)
            continue;
        (void) !sqlite__pins_take(&store->pins, sqlite__key(container, all[i].snapshot), 1, &mine,
                                  NULL);
        if (!mine)
            all[i].fate = KEPT;
    }
}

/* Whether a kept snapshot uses the document that `holder` holds. */
static bool
holds_document(const old_snapshot *all, size_t count, uint64_t holder)
{
    for (size_t i = 0; i < count; i++) {
        if (all[i].fate == KEPT && all[i].document_at == holder)
            return true;
    }
    return false;
}

static esdm_status
delete_snapshots(sqlite__link *link, uint64_t container, const old_snapshot *all, size_t count,
                 esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < count && status == ESDM_OK; i++) {
        bool needed = all[i].fate != KEPT && all[i].document_at == all[i].snapshot &&
                      holds_document(all, count, all[i].snapshot);
        uint64_t key = sqlite__key(container, all[i].snapshot);
        if (all[i].fate != KEPT && !needed)
            status = sqlite__run(link, SQLITE__SNAPSHOT_DELETE, err, "i", key);
        else if (all[i].fate == VICTIM)
            status = sqlite__run(link, SQLITE__SNAPSHOT_PRUNE, err, "i", key);
    }
    return status;
}

/* The snapshots are sorted, and few of those that are kept no more lie among the others. */
static bool
is_visible(const old_page *page, const old_snapshot *all, size_t count)
{
    size_t from = 0;
    size_t to = count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (all[middle].snapshot < page->added)
            from = middle + 1;
        else
            to = middle;
    }
    for (; from < count && all[from].snapshot < page->removed; from++) {
        if (all[from].fate == KEPT)
            return true;
    }
    return false;
}

static esdm_status
delete_pages(sqlite__link *link, uint64_t container, const old_snapshot *all, size_t count,
             esdm_error *err)
{
    rows pages = {0};
    sqlite3_stmt *statement = NULL;
    bool row = false;
    esdm_status status =
        sqlite__prepare(link, SQLITE__PAGE_RETIRED, &statement, err, "i", container);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    while (status == ESDM_OK && row) {
        old_page *page = add_row(&pages, sizeof *page);
        if (page == NULL) {
            (void) sqlite3_reset(statement);
            status = no_memory(&pages, err);
            break;
        }
        *page = (old_page){.dataset = sqlite__u64(statement, 0),
                           .page = sqlite__u64(statement, 1),
                           .added = sqlite__u64(statement, 2),
                           .removed = sqlite__u64(statement, 3)};
        status = sqlite__step(link, statement, &row, err);
    }
    const old_page *page = pages.items;
    for (size_t i = 0; i < pages.count && status == ESDM_OK; i++) {
        if (is_visible(&page[i], all, count))
            continue;
        status = sqlite__run(link, SQLITE__PAGE_DELETE, err, "iii", container, page[i].dataset,
                             page[i].page);
        if (status == ESDM_OK)
            status = sqlite__run(link, SQLITE__PAGE_DATA_DELETE, err, "i", page[i].page);
    }
    free(pages.items);
    return status;
}

esdm_status
sqlite__prune(sqlite__store *store, uint64_t container, uint64_t head, uint32_t history,
              uint64_t now_ns, esdm_error *err)
{
    rows all = {0};
    size_t victims = 0;
    sqlite__link *link = &store->writer;
    esdm_status status =
        scan_snapshots(link, container, head, history, now_ns, &all, &victims, err);
    if (status == ESDM_OK && victims > 0)
        status = spare_tagged(link, container, &all, &victims, err);
    if (status == ESDM_OK && victims > 0) {
        spare_pinned(store, container, all.items, all.count);
        status = delete_snapshots(link, container, all.items, all.count, err);
        if (status == ESDM_OK)
            status = delete_pages(link, container, all.items, all.count, err);
    }
    free(all.items);
    return status;
}

esdm_status
sqlite__prune_record(void *self, uint64_t container, uint32_t history, esdm_error *err)
{
    sqlite__store *store = self;
    sqlite3_stmt *statement = NULL;
    bool row = false;
    uint64_t head = 0;
    if (container == 0 || container > SQLITE__CONTAINER_MAX)
        return ESDM_OK;
    /* Packs that nothing refers to then are removed next: it must not be undone by a power cut. */
    esdm_status status = sqlite__begin_write(store, true, err);
    if (status != ESDM_OK)
        return status;
    status =
        sqlite__prepare(&store->writer, SQLITE__CONTAINER_STATE, &statement, err, "i", container);
    if (status == ESDM_OK)
        status = sqlite__step(&store->writer, statement, &row, err);
    if (row) {
        head = sqlite__u64(statement, 1);
        (void) sqlite3_reset(statement);
    }
    if (status == ESDM_OK && row)
        status = sqlite__prune(store, container, head, history, esdm__now_ns() + GRACE_NS + 1, err);
    return sqlite__end_write(store, status, err);
}

/* ---- garbage -------------------------------------------------------------------------------- */

typedef struct garbage_record {
    uint64_t container;
    char uuid[ESDM_META_UUID_BYTES];
} garbage_record;

static esdm_status
list_garbage(sqlite__store *store, rows *ret_all, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    esdm_status status = sqlite__begin_read(store, err);
    if (status != ESDM_OK)
        return status;
    status = sqlite__prepare(&store->reader, SQLITE__GARBAGE_LIST, &statement, err, "");
    if (status == ESDM_OK)
        status = sqlite__step(&store->reader, statement, &row, err);
    while (status == ESDM_OK && row) {
        bool named = sqlite3_column_type(statement, 2) != SQLITE_NULL;
        garbage_record *record = named ? NULL : add_row(ret_all, sizeof *record);
        if (record == NULL) {
            status = named ? sqlite__error(&store->reader, SQLITE_CORRUPT, err)
                           : no_memory(ret_all, err);
            (void) sqlite3_reset(statement);
            break;
        }
        const char *uuid = sqlite__text(statement, 1);
        *record = (garbage_record){.container = sqlite__u64(statement, 0)};
        memcpy(record->uuid, uuid, strnlen(uuid, sizeof record->uuid - 1));
        status = sqlite__step(&store->reader, statement, &row, err);
    }
    sqlite__end_read(store);
    return status;
}

esdm_status
sqlite__garbage(void *self, esdm_meta_garbage_visitor visit, void *user, esdm_error *err)
{
    sqlite__store *store = self;
    rows all = {0};
    if (!store->writable)
        return esdm__error_set(err, ESDM_EACCES, "metadata store '%.200s' is open for reading only",
                               store->file);
    esdm_status status = list_garbage(store, &all, err);
    const garbage_record *record = all.items;
    for (size_t i = 0; i < all.count && status == ESDM_OK; i++) {
        bool pinned = true;
        (void) pthread_mutex_lock(&store->write_mutex);
        status = sqlite__pins_probe(&store->pins, sqlite__key(record[i].container, 0),
                                    SQLITE__LOW_MAX + 1, &pinned, err);
        (void) pthread_mutex_unlock(&store->write_mutex);
        if (status == ESDM_OK && !pinned && !visit(record[i].container, record[i].uuid, user))
            break;
    }
    free(all.items);
    return status;
}

static esdm_status
check_garbage(sqlite__link *link, uint64_t container, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    bool garbage = false;
    esdm_status status =
        sqlite__prepare(link, SQLITE__GARBAGE_STATE, &statement, err, "i", container);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    if (row) {
        garbage = sqlite__u64(statement, 0) != 0;
        (void) sqlite3_reset(statement);
    }
    if (status == ESDM_OK && !garbage)
        status = esdm__error_set(err, ESDM_ECONFLICT, "record %llu is not garbage",
                                 (unsigned long long) container);
    return status;
}

static esdm_status
delete_record(sqlite__link *link, uint64_t container, esdm_error *err)
{
    uint64_t first = sqlite__key(container, 0);
    uint64_t last = sqlite__key(container, SQLITE__LOW_MAX);
    esdm_status status = sqlite__run(link, SQLITE__SNAPSHOT_DELETE_ALL, err, "ii", first, last);
    if (status == ESDM_OK)
        status = sqlite__run(link, SQLITE__PAGE_DATA_DELETE_ALL, err, "ii", first, last);
    if (status == ESDM_OK)
        status = sqlite__run(link, SQLITE__PAGE_DELETE_ALL, err, "i", container);
    if (status == ESDM_OK)
        status = sqlite__run(link, SQLITE__ATTRIBUTE_DELETE, err, "i", container);
    if (status == ESDM_OK)
        status = sqlite__run(link, SQLITE__EXTENT_DELETE, err, "i", container);
    if (status == ESDM_OK)
        status = sqlite__run(link, SQLITE__FACT_FORGET, err, "i", container);
    if (status == ESDM_OK)
        status = sqlite__run(link, SQLITE__SHARED_DELETE, err, "i", container);
    if (status == ESDM_OK)
        status = sqlite__run(link, SQLITE__TAG_DELETE, err, "i", container);
    if (status == ESDM_OK)
        status = sqlite__run(link, SQLITE__CONTAINER_TOMBSTONE, err, "i", container);
    if (status == ESDM_OK)
        status = sqlite__trees_note_deleted(link, container, err);
    if (status == ESDM_OK)
        status = sqlite__run(link, SQLITE__CONTAINER_DELETE, err, "i", container);
    if (status == ESDM_OK) /* else nobody does where containers are removed and none is made */
        status = sqlite__trees_keep(link, err);
    return status;
}

esdm_status
sqlite__forget(void *self, uint64_t container, esdm_error *err)
{
    sqlite__store *store = self;
    bool taken = false;
    if (container == 0 || container > SQLITE__CONTAINER_MAX)
        return esdm__error_set(err, ESDM_ECONFLICT, "record %llu is not garbage",
                               (unsigned long long) container);
    esdm_status status = sqlite__begin_write(store, false, err);
    if (status != ESDM_OK)
        return status;
    status = check_garbage(&store->writer, container, err);
    if (status == ESDM_OK)
        status = sqlite__pins_take(&store->pins, sqlite__key(container, 0), SQLITE__LOW_MAX + 1,
                                   &taken, err);
    if (status == ESDM_OK && !taken)
        status = esdm__error_set(err, ESDM_ECONFLICT, "record %llu is in use by a reader",
                                 (unsigned long long) container);
    if (status == ESDM_OK)
        status = delete_record(&store->writer, container, err);
    return sqlite__end_write(store, status, err);
}
