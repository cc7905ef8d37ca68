/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Reading containers, snapshots and pages. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "postgres.h"

/* Longest name of a container with its NUL, and more. */
#define NAME_BYTES 4096

/* Containers of a listing that are fetched at once: few at first, for who needs few. */
#define FIRST_BATCH 200
#define LATER_BATCH 5000

void
postgres__read_record(const PGresult *result, int row, int column, esdm_meta_container *ret_record)
{
    esdm_meta_container record = {
        .container = postgres__u64(result, row, column),
        .snapshot = postgres__u64(result, row, column + 2),
        .structure = postgres__u64(result, row, column + 3),
        .created_ns = postgres__u64(result, row, column + 4),
        .modified_ns = postgres__u64(result, row, column + 5),
        .raw_bytes = postgres__u64(result, row, column + 6),
        .stored_bytes = postgres__u64(result, row, column + 7),
        .fragments = postgres__u64(result, row, column + 8),
        .datasets = (uint32_t) postgres__u64(result, row, column + 9),
    };
    const char *uuid = postgres__text(result, row, column + 1);
    memcpy(record.uuid, uuid, strnlen(uuid, sizeof record.uuid - 1));
    *ret_record = record;
}

esdm_status
postgres__no_container(const char *name, esdm_error *err)
{
    return esdm__error_set(err, ESDM_ENOENT, "there is no container '%.300s'", name);
}

esdm_status
postgres__container_find(void *self, const char *name, esdm_meta_container *ret_record,
                         esdm_error *err)
{
    postgres__store *store = self;
    postgres__params params = {0};
    PGresult *result = NULL;
    postgres__put_string(&params, name);
    esdm_status status = postgres__ask(store, POSTGRES__CONTAINER_FIND, &params, &result, err);
    if (status == ESDM_OK && PQntuples(result) == 0)
        status = postgres__no_container(name, err);
    else if (status == ESDM_OK)
        postgres__read_record(result, 0, 0, ret_record);
    PQclear(result);
    return status;
}

/* ---- listing -------------------------------------------------------------------------------- */

static esdm_status
list_batch(postgres__store *store, const char *prefix, const char *after, int limit,
           PGresult **ret_result, esdm_error *err)
{
    postgres__params params = {0};
    bool all = prefix == NULL || prefix[0] == '\0';
    postgres__put_string(&params, after);
    postgres__put_int(&params, (uint64_t) limit);
    if (!all)
        postgres__put_string(&params, prefix);
    return postgres__ask(store, all ? POSTGRES__CONTAINER_LIST_ALL : POSTGRES__CONTAINER_LIST,
                         &params, ret_result, err);
}

/* Batch after batch, so that neither memory nor a lost connection matters: each goes on after the
 * last name of the one before. */
esdm_status
postgres__container_list(void *self, const char *prefix, esdm_meta_container_visitor visit,
                         void *user, esdm_error *err)
{
    postgres__store *store = self;
    char after[NAME_BYTES] = "";
    int limit = FIRST_BATCH;
    int rows = limit;
    bool go_on = true;
    while (go_on && rows == limit) {
        PGresult *result = NULL;
        limit = after[0] == '\0' ? FIRST_BATCH : LATER_BATCH;
        esdm_status status = list_batch(store, prefix, after, limit, &result, err);
        if (status != ESDM_OK)
            return status;
        rows = PQntuples(result);
        for (int row = 0; row < rows && go_on; row++) {
            esdm_meta_container record;
            const char *name = postgres__text(result, row, 10);
            postgres__read_record(result, row, 0, &record);
            go_on = visit(name, &record, user);
            if (row == rows - 1)
                (void) snprintf(after, sizeof after, "%s", name);
        }
        PQclear(result);
    }
    return ESDM_OK;
}

/* ---- snapshots ------------------------------------------------------------------------------ */

static esdm_status
copy_value(const PGresult *result, int row, int column, void **ret_data, size_t *ret_bytes,
           esdm_error *err)
{
    size_t bytes = (size_t) PQgetlength(result, row, column);
    char *copy = malloc(bytes + 1);
    if (copy == NULL)
        return esdm__error_nomem(err, bytes + 1, "a value of the metadata store");
    memcpy(copy, PQgetvalue(result, row, column), bytes);
    copy[bytes] = '\0';
    *ret_data = copy;
    *ret_bytes = bytes;
    return ESDM_OK;
}

/* From the row of open_snapshot(). Nothing is owned by the caller after a failure. */
static esdm_status
read_snapshot(const postgres__store *store, const PGresult *result, const char *name,
              uint64_t known_container, uint64_t known_structure, esdm_meta_snapshot *ret_snapshot,
              esdm_error *err)
{
    esdm_meta_snapshot loaded = {0};
    void *document = NULL;
    esdm_status status = ESDM_OK;
    postgres__read_record(result, 0, 0, &loaded.record);
    loaded.snapshot = postgres__u64(result, 0, 10);
    loaded.structure = postgres__u64(result, 0, 11);
    bool known = loaded.record.container == known_container && loaded.structure == known_structure;
    if (!PQgetisnull(result, 0, 14))
        status = copy_value(result, 0, 14, &document, &loaded.document_bytes, err);
    else if (!known)
        status = esdm__error_set(err, ESDM_ECORRUPT,
                                 "metadata store '%.200s': container '%.200s' has lost its "
                                 "structure",
                                 store->config->label, name);
    loaded.document = document;
    if (status == ESDM_OK)
        status =
            postgres__read_lengths(postgres__text(result, 0, 12), postgres__text(result, 0, 13),
                                   &loaded.lengths, &loaded.nlengths, err);
    if (status != ESDM_OK)
        free(document);
    else
        *ret_snapshot = loaded;
    return status;
}

/* Under the mutex: what the server has pinned belongs to the caller, or is given up. */
static esdm_status
take_snapshot(postgres__store *store, const PGresult *result, const char *name,
              uint64_t known_container, uint64_t known_structure, esdm_meta_snapshot *ret_snapshot,
              esdm_error *err)
{
    if (PQntuples(result) == 0)
        return postgres__no_container(name, err);
    if (PQgetisnull(result, 0, 10))
        return esdm__error_set(err, ESDM_ENOENT,
                               "container '%.300s' has no such snapshot, or not any more", name);
    uint64_t container = postgres__u64(result, 0, 0);
    uint64_t snapshot = postgres__u64(result, 0, 10);
    esdm_status status =
        read_snapshot(store, result, name, known_container, known_structure, ret_snapshot, err);
    if (status != ESDM_OK) {
        postgres__pins_float(store, container, snapshot);
        postgres__pins_sink(store);
        return status;
    }
    postgres__forget_doubts(store, container, name);
    status = postgres__pins_adopt(store, container, snapshot, err);
    if (status != ESDM_OK) {
        free(ret_snapshot->document);
        free(ret_snapshot->lengths);
    }
    return status;
}

esdm_status
postgres__snapshot_open(void *self, const char *name, uint64_t snapshot, uint64_t known_container,
                        uint64_t known_structure, esdm_meta_snapshot *ret_snapshot, esdm_error *err)
{
    postgres__store *store = self;
    postgres__params params = {0};
    PGresult *result = NULL;
    esdm_meta_snapshot loaded = {0};
    if (snapshot > POSTGRES__LOW_MAX)
        return esdm__error_set(err, ESDM_ENOENT, "container '%.300s' has no snapshot %llu", name,
                               (unsigned long long) snapshot);
    esdm_status status = postgres__enter(store, err);
    if (status != ESDM_OK)
        return status;
    postgres__put_string(&params, name);
    postgres__put_int(&params, snapshot);
    postgres__put_int(&params, known_container);
    postgres__put_int(&params, known_structure);
    status = postgres__run(store, POSTGRES__SNAPSHOT_OPEN, &params, &result, err);
    if (status == ESDM_OK)
        status = take_snapshot(store, result, name, known_container, known_structure, &loaded, err);
    postgres__leave(store);
    postgres__params_clear(&params);
    PQclear(result);
    if (status == ESDM_OK)
        *ret_snapshot = loaded;
    return status;
}

esdm_status
postgres__snapshot_list(void *self, const char *name, esdm_meta_snapshot_visitor visit, void *user,
                        esdm_error *err)
{
    postgres__store *store = self;
    postgres__params params = {0};
    PGresult *result = NULL;
    postgres__put_string(&params, name);
    esdm_status status = postgres__ask(store, POSTGRES__SNAPSHOT_LIST, &params, &result, err);
    if (status != ESDM_OK)
        return status;
    /* The newest snapshot always stays, so a container has at least one. */
    if (PQntuples(result) == 0)
        status = postgres__no_container(name, err);
    for (int row = 0; row < PQntuples(result); row++) {
        char *writer = PQgetvalue(result, row, 3);
        char *message = PQgetvalue(result, row, 4);
        postgres__restore_text(writer);
        postgres__restore_text(message);
        if (!visit(postgres__u64(result, row, 0), postgres__u64(result, row, 1),
                   postgres__u64(result, row, 2), writer, message, user))
            break;
    }
    PQclear(result);
    return status;
}

esdm_status
postgres__snapshot_at(void *self, const char *name, uint64_t time_ns, uint64_t *ret_snapshot,
                      esdm_error *err)
{
    postgres__params params = {0};
    PGresult *result = NULL;
    postgres__put_string(&params, name);
    postgres__put_int(&params, time_ns);
    esdm_status status = postgres__ask(self, POSTGRES__SNAPSHOT_AT, &params, &result, err);
    if (status != ESDM_OK)
        return status;
    if (PQntuples(result) > 0)
        *ret_snapshot = postgres__u64(result, 0, 0);
    else
        status = esdm__error_set(err, ESDM_ENOENT,
                                 "container '%.300s' is not there, or was not at that time", name);
    PQclear(result);
    return status;
}

/* ---- pages ---------------------------------------------------------------------------------- */

/* 2 * rank numbers of 8 bytes, little-endian. */
static esdm_status
read_box(const PGresult *result, int row, int column, uint32_t *ret_rank, uint64_t *ret_box,
         esdm_error *err)
{
    size_t bytes = (size_t) PQgetlength(result, row, column);
    esdm__cursor cursor;
    esdm__cursor_init(&cursor, PQgetvalue(result, row, column), bytes);
    if (bytes % 16 != 0 || bytes / 16 > ESDM_MAX_RANK)
        return esdm__error_set(err, ESDM_ECORRUPT, "metadata store: damaged box of a page");
    for (size_t i = 0; i < bytes / 8; i++)
        ret_box[i] = esdm__cursor_u64(&cursor);
    *ret_rank = (uint32_t) (bytes / 16);
    return ESDM_OK;
}

esdm_status
postgres__visit_pages(const PGresult *result, esdm_meta_page_visitor visit, void *user,
                      esdm_error *err)
{
    uint64_t box[2 * ESDM_MAX_RANK];
    for (int row = 0; row < PQntuples(result); row++) {
        if (PQgetisnull(result, row, 0))
            return ESDM_OK; /* a snapshot without pages */
        esdm_meta_page page = {
            .page = postgres__u64(result, row, 0),
            .dataset = (uint32_t) postgres__u64(result, row, 1),
            .records = (uint32_t) postgres__u64(result, row, 2),
            .added = postgres__u64(result, row, 3),
            .level = (uint32_t) postgres__u64(result, row, 4),
            .absolute = postgres__bool(result, row, 5),
            .raw_bytes = postgres__u64(result, row, 6),
            .stored_bytes = postgres__u64(result, row, 7),
            .box = box,
        };
        esdm_status status = read_box(result, row, 8, &page.rank, box, err);
        if (status != ESDM_OK)
            return status;
        if (!visit(&page, user))
            break;
    }
    return ESDM_OK;
}

esdm_status
postgres__page_list(void *self, uint64_t container, uint64_t snapshot, uint32_t dataset,
                    esdm_meta_page_visitor visit, void *user, esdm_error *err)
{
    postgres__store *store = self;
    postgres__params params = {0};
    PGresult *result = NULL;
    bool every = snapshot == ESDM_META_EVERY_SNAPSHOT;
    if (container > POSTGRES__CONTAINER_MAX || (snapshot > POSTGRES__LOW_MAX && !every))
        return esdm__error_set(err, ESDM_ENOENT, "record %llu has no snapshot %llu",
                               (unsigned long long) container, (unsigned long long) snapshot);
    postgres__put_int(&params, container);
    if (!every)
        postgres__put_int(&params, snapshot);
    if (every || dataset != 0)
        postgres__put_int(&params, dataset);
    postgres__statement id = every          ? POSTGRES__PAGE_LIST_KEPT
                             : dataset != 0 ? POSTGRES__PAGE_LIST
                                            : POSTGRES__PAGE_LIST_ALL;
    esdm_status status = postgres__ask(store, id, &params, &result, err);
    if (status == ESDM_OK && PQntuples(result) == 0 && !every)
        status = esdm__error_set(err, ESDM_ENOENT, "record %llu has no snapshot %llu",
                                 (unsigned long long) container, (unsigned long long) snapshot);
    if (status == ESDM_OK)
        status = postgres__visit_pages(result, visit, user, err);
    PQclear(result);
    return status;
}

esdm_status
postgres__page_load(void *self, uint64_t page, void **ret_data, size_t *ret_bytes, esdm_error *err)
{
    postgres__store *store = self;
    postgres__params params = {0};
    PGresult *result = NULL;
    void *data = NULL;
    size_t bytes = 0;
    postgres__put_int(&params, page);
    esdm_status status = postgres__ask(store, POSTGRES__PAGE_LOAD, &params, &result, err);
    if (status == ESDM_OK && PQntuples(result) == 0)
        status = esdm__error_set(err, ESDM_ENOENT, "metadata store '%.200s' has no index page %llu",
                                 store->config->label, (unsigned long long) page);
    else if (status == ESDM_OK)
        status = copy_value(result, 0, 0, &data, &bytes, err);
    PQclear(result);
    if (status != ESDM_OK)
        return status;
    *ret_data = data;
    *ret_bytes = bytes;
    return ESDM_OK;
}
