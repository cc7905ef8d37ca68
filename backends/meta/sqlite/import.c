/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Containers from and for another store. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/meta_checks.h"
#include "store.h"

/* ---- out ------------------------------------------------------------------------------------ */

esdm_status
sqlite__attributes(void *self, uint64_t container, esdm_meta_attribute_visitor visit, void *user,
                   esdm_error *err)
{
    sqlite__store *store = self;
    sqlite3_stmt *statement = NULL;
    void *list = NULL;
    size_t bytes = 0;
    bool row = false;
    esdm_status status = sqlite__begin_read(store, err);
    if (status != ESDM_OK)
        return status;
    status =
        sqlite__prepare(&store->reader, SQLITE__ATTRIBUTE_LIST, &statement, err, "i", container);
    if (status == ESDM_OK)
        status = sqlite__step(&store->reader, statement, &row, err);
    if (row) {
        status = sqlite__copy(statement, 0, &list, &bytes, err);
        (void) sqlite3_reset(statement);
    }
    sqlite__end_read(store);
    if (status == ESDM_OK && !row)
        status = esdm__error_set(err, ESDM_ENOENT, "there is no record %llu",
                                 (unsigned long long) container);
    if (status == ESDM_OK && list != NULL)
        status = sqlite__attributes_visit(&store->reader, container, list, bytes, visit, user, err);
    free(list);
    return status;
}

/* ---- in ------------------------------------------------------------------------------------- */

static esdm_status
check_import(const esdm_meta_import *import, esdm_error *err)
{
    if (import->nsnapshots == 0 || import->snapshots[0].document == NULL ||
        import->snapshots[import->nsnapshots - 1].snapshot != import->record.snapshot ||
        import->record.snapshot > SQLITE__LOW_MAX || import->npages >= SQLITE__LOW_MAX)
        return esdm__error_set(err, ESDM_EINVAL, "import of container '%.200s': no whole record",
                               import->name);
    return ESDM_OK;
}

/* Number of the snapshot that has the document of the newest one. */
static uint64_t
last_document(const esdm_meta_import *import)
{
    size_t i = import->nsnapshots - 1;
    while (i > 0 && import->snapshots[i].document == NULL)
        i--;
    return import->snapshots[i].snapshot;
}

static esdm_status
insert_container(sqlite__link *link, const esdm_meta_import *import, uint64_t *ret_container,
                 esdm_error *err)
{
    const esdm_meta_container *record = &import->record;
    sqlite3_stmt *statement = NULL;
    bool taken = false;
    esdm_status status =
        sqlite__prepare(link, SQLITE__CONTAINER_ID, &statement, err, "t", import->name);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &taken, err);
    if (taken)
        (void) sqlite3_reset(statement);
    if (taken)
        return esdm__error_set(err, ESDM_EEXIST, "container '%.300s' exists", import->name);
    if (status == ESDM_OK)
        status = sqlite__run(link, SQLITE__CONTAINER_IMPORT, err, "ttiiiiiiiiii", import->name,
                             record->uuid, record->snapshot, record->structure,
                             last_document(import), import->npages + 1, record->created_ns,
                             record->modified_ns, record->raw_bytes, record->stored_bytes,
                             record->fragments, (uint64_t) record->datasets);
    *ret_container = (uint64_t) sqlite3_last_insert_rowid(link->db);
    if (status == ESDM_OK && *ret_container > SQLITE__CONTAINER_MAX)
        status = esdm__error_set(err, ESDM_ENOTSUP,
                                 "metadata store '%.200s' has used up its 2^31 container numbers",
                                 link->label);
    return status;
}

static esdm_status
insert_snapshot(sqlite__link *link, uint64_t container, const esdm_meta_import_snapshot *one,
                uint64_t document_at, const void *attributes, size_t attributes_bytes,
                esdm_error *err)
{
    void *lengths = NULL;
    size_t lengths_bytes = 0;
    esdm_status status =
        sqlite__lengths_merge(NULL, 0, one->lengths, one->nlengths, &lengths, &lengths_bytes, err);
    if (status == ESDM_OK)
        status = sqlite__run(
            link, SQLITE__SNAPSHOT_INSERT, err, "iiiiittbbb", sqlite__key(container, one->snapshot),
            one->parent, one->structure, document_at, one->time_ns, one->writer, one->message,
            lengths, lengths_bytes, (const void *) one->document,
            one->document != NULL ? one->document_bytes : 0, attributes, attributes_bytes);
    free(lengths);
    return status;
}

static esdm_status
insert_snapshots(sqlite__link *link, uint64_t container, const esdm_meta_import *import,
                 esdm_error *err)
{
    void *attributes = NULL;
    size_t bytes = 0;
    uint64_t document_at = 0;
    uint64_t last = last_document(import);
    esdm_status status = sqlite__attributes_encode(import->attributes, import->nattributes,
                                                   &attributes, &bytes, err);
    for (size_t i = 0; i < import->nsnapshots && status == ESDM_OK; i++) {
        const esdm_meta_import_snapshot *one = &import->snapshots[i];
        bool head = one->snapshot == last;
        if (one->document != NULL)
            document_at = one->snapshot;
        status = insert_snapshot(link, container, one, document_at, head ? attributes : NULL,
                                 head ? bytes : 0, err);
    }
    if (status == ESDM_OK)
        status = sqlite__attributes_changed(link, container, true, attributes, bytes, err);
    free(attributes);
    return status;
}

static esdm_status
insert_page(sqlite__link *link, uint64_t container, uint64_t number,
            const esdm_meta_import_page *from, esdm_error *err)
{
    const esdm_meta_new_page *page = &from->page;
    void *box = NULL;
    size_t box_bytes = 0;
    esdm_status status = sqlite__box_encode(page->rank, page->box, &box, &box_bytes, err);
    if (status != ESDM_OK)
        return status;
    status = sqlite__run(link, SQLITE__PAGE_IMPORT, err, "iiiiiiiiiib", container,
                         (uint64_t) page->dataset, number, (uint64_t) page->records,
                         (uint64_t) page->level, (uint64_t) page->absolute, from->added,
                         from->removed, page->raw_bytes, page->stored_bytes, box, box_bytes);
    free(box);
    if (status == ESDM_OK)
        status =
            sqlite__run(link, SQLITE__PAGE_DATA_INSERT, err, "iib", number,
                        (uint64_t) page->dataset, page->bytes > 0 ? page->data : "", page->bytes);
    return status;
}

esdm_status
sqlite__import(void *self, const esdm_meta_import *import, esdm_error *err)
{
    sqlite__store *store = self;
    sqlite__link *link = &store->writer;
    uint64_t container = 0;
    esdm_status status = check_import(import, err);
    if (status == ESDM_OK)
        status = esdm__check_extents(import->extents, import->nextents, err);
    if (status == ESDM_OK)
        status = sqlite__begin_write(store, true, err);
    if (status != ESDM_OK)
        return status;
    status = insert_container(link, import, &container, err);
    if (status == ESDM_OK)
        status = insert_snapshots(link, container, import, err);
    if (status == ESDM_OK)
        status = sqlite__extents_put(link, container, import->extents, import->nextents,
                                     SQLITE__EXTENTS_FIRST, err);
    for (uint64_t i = 0; i < import->npages && status == ESDM_OK; i++) {
        esdm_meta_import_page page;
        status = import->next_page(import->user, &page, err);
        if (status == ESDM_OK)
            status = insert_page(link, container, sqlite__key(container, i + 1), &page, err);
    }
    const char *const *uuids = NULL;
    size_t nuuids = 0;
    if (status == ESDM_OK && import->shares != NULL)
        import->shares(import->user, &uuids, &nuuids);
    if (status == ESDM_OK && (nuuids > 0 || import->ntags > 0))
        status = sqlite__schema_guard(link, err);
    for (size_t k = 0; k < nuuids && status == ESDM_OK; k++)
        status = sqlite__run(link, SQLITE__SHARED_INSERT, err, "ti", uuids[k], container);
    for (size_t k = 0; k < import->ntags && status == ESDM_OK; k++)
        status = sqlite__tag_insert(link, container, &import->tags[k], err);
    return sqlite__end_write(store, status, err);
}
