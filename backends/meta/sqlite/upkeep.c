/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Care for packs: all records, living writers, pages whose fragments lie elsewhere. */

#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own_process.h"
#include "store.h"

typedef struct record_visit {
    esdm_meta_record_visitor visit;
    void *user;
    uint64_t last; /* number of the record before */
    uint64_t rows;
    bool falling; /* the numbers did not rise */
} record_visit;

static bool
visit_record(sqlite3_stmt *row, void *user)
{
    record_visit *asked = user;
    uint64_t container = sqlite__u64(row, 0);
    asked->rows++;
    asked->falling = asked->falling || container <= asked->last;
    asked->last = container;
    if (sqlite__text(row, 1)[0] == '\0') /* a tombstone */
        return true;
    bool garbage = sqlite3_column_type(row, 2) == SQLITE_NULL;
    return asked->visit(container, sqlite__text(row, 1), garbage ? NULL : sqlite__text(row, 2),
                        asked->user);
}

/* Packs of a record that is not listed would be taken for strays. */
static esdm_status
check_records(sqlite__link *link, void *user, esdm_error *err)
{
    const record_visit *asked = user;
    if (asked->falling)
        return sqlite__error(link, SQLITE_CORRUPT, err);
    return sqlite__check_count(link, SQLITE__RECORD_COUNT, NULL, asked->rows, err);
}

esdm_status
sqlite__record_list(void *self, esdm_meta_record_visitor visit, void *user, esdm_error *err)
{
    record_visit asked = {.visit = visit, .user = user};
    return sqlite__read_rows(self, SQLITE__RECORD_LIST, NULL, visit_record, check_records, &asked,
                             err);
}

/* ---- writers -------------------------------------------------------------------------------- */

/* A pin of record 0, which is none. Two writers may share it: then both count as alive as long as
 * one of them is. */
static uint64_t
writer_key(const char *writer)
{
    char digits[9] = "";
    for (size_t i = 0; i + 1 < sizeof digits && writer[i] != '\0'; i++)
        digits[i] = writer[i];
    uint64_t number = strtoull(digits, NULL, 16);
    return sqlite__key(0, number != 0 ? number : 1);
}

esdm_status
sqlite__writer_begin(void *self, const char *writer, esdm_error *err)
{
    sqlite__store *store = self;
    return sqlite__pins_add(&store->pins, writer_key(writer), NULL, err);
}

void
sqlite__writer_end(void *self, const char *writer)
{
    sqlite__store *store = self;
    if (store->pid == esdm__own_pid()) /* a forked child shares the locks: they are its parent's */
        sqlite__pins_drop(&store->pins, writer_key(writer));
}

esdm_status
sqlite__writer_lives(void *self, const char *writer, bool *ret_lives, esdm_error *err)
{
    sqlite__store *store = self;
    *ret_lives = true;
    if (!store->writable)
        return ESDM_OK;
    (void) pthread_mutex_lock(&store->write_mutex);
    esdm_status status = sqlite__pins_probe(&store->pins, writer_key(writer), 1, ret_lives, err);
    (void) pthread_mutex_unlock(&store->write_mutex);
    return status;
}

/* ---- pages ---------------------------------------------------------------------------------- */

/* First column of the row of a statement that gives one at most; *ret_row whether it did. */
static esdm_status
one_number(sqlite__link *link, sqlite__statement_id id, uint64_t parameter, uint64_t *ret_number,
           bool *ret_row, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    esdm_status status = sqlite__prepare(link, id, &statement, err, "i", parameter);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, ret_row, err);
    if (status == ESDM_OK && *ret_row) {
        *ret_number = sqlite__u64(statement, 0);
        (void) sqlite3_reset(statement);
    }
    return status;
}

static esdm_status
relocate_page(sqlite__link *link, uint64_t container, const esdm_meta_relocation *page,
              bool *ret_moved, esdm_error *err)
{
    uint64_t dataset = 0;
    uint64_t number = 0;
    bool row = false;
    esdm_status status = ESDM_OK;
    *ret_moved = false;
    if (page->page >> 32 == container)
        status = one_number(link, SQLITE__PAGE_DATASET, page->page, &dataset, &row, err);
    if (status != ESDM_OK || !row)
        return status;
    status = one_number(link, SQLITE__PAGE_NUMBER_NEXT, container, &number, &row, err);
    if (status == ESDM_OK && (!row || number > SQLITE__LOW_MAX))
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "record %llu has used up its index pages; copy the container",
                               (unsigned long long) container);
    number = sqlite__key(container, number);
    if (status == ESDM_OK)
        status = sqlite__run(link, SQLITE__PAGE_RENUMBER, err, "iiii", container, dataset,
                             page->page, number);
    if (status == ESDM_OK)
        status = sqlite__run(link, SQLITE__PAGE_DATA_REPLACE, err, "iib", page->page, number,
                             page->data, page->bytes);
    *ret_moved = status == ESDM_OK;
    return status;
}

esdm_status
sqlite__relocate(void *self, uint64_t container, esdm_meta_relocation *pages, size_t npages,
                 bool durable, esdm_error *err)
{
    sqlite__store *store = self;
    esdm_status status = sqlite__begin_write(store, durable, err);
    if (status != ESDM_OK)
        return status;
    for (size_t i = 0; i < npages && status == ESDM_OK; i++)
        status = relocate_page(&store->writer, container, &pages[i], &pages[i].moved, err);
    status = sqlite__end_write(store, status, err);
    for (size_t i = 0; i < npages && status != ESDM_OK; i++)
        pages[i].moved = false;
    return status;
}
