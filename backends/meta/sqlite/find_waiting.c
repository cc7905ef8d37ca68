/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Containers that wait to be entered into the index of attributes: their lists, in temp.pending.
 * They stay for the next question. After a commit of anybody only the lists that are new are read:
 * which ones wait, and which snapshot each has its list from, tells one look at their rows.
 */

#include <stdlib.h>

#include "base/error.h"
#include "find.h"
#include "store.h"

/* Each question is for some names, of many containers. */
static const char pending_table[] =
    "PRAGMA temp_store = MEMORY;"
    "CREATE TEMP TABLE IF NOT EXISTS pending("
    " container INTEGER NOT NULL, dataset INTEGER NOT NULL, name TEXT NOT NULL,"
    " entry INTEGER NOT NULL, path TEXT, value, text TEXT,"
    " PRIMARY KEY(name, container, dataset, entry)) WITHOUT ROWID;"
    "DELETE FROM temp.pending;";

/* A container that waits. */
struct sqlite__waiting {
    uint64_t container;
    uint64_t document_at; /* the snapshot of its list, of which there never is another one */
};

#define WAITING_FIRST 64

/* Each list that goes is looked for in the whole table: where more of them go than these, and than
 * one of so many that are kept, all are read anew. */
#define GOING_FEW  8
#define GOING_PART 32

void
sqlite__waiting_clear(sqlite__link *link)
{
    free(link->kept.waiting);
    link->kept.waiting = NULL;
    link->kept.nwaiting = 0;
}

/* @param ret_waiting owned, in the order of their numbers. */
static esdm_status
list_waiting(sqlite__link *link, uint64_t indexed, sqlite__waiting **ret_waiting, size_t *ret_count,
             esdm_error *err)
{
    sqlite3_stmt *rows = NULL;
    bool row = false;
    size_t room = 0;
    esdm_status status = sqlite__prepare(link, SQLITE__ATTRIBUTE_WAITING, &rows, err, "i", indexed);
    if (status == ESDM_OK)
        status = sqlite__step(link, rows, &row, err);
    while (status == ESDM_OK && row) {
        if (*ret_count == room) {
            room = room == 0 ? WAITING_FIRST : 2 * room;
            sqlite__waiting *more = realloc(*ret_waiting, room * sizeof *more);
            if (more == NULL) {
                (void) sqlite3_reset(rows);
                return esdm__error_nomem(err, room * sizeof *more, "a query");
            }
            *ret_waiting = more;
        }
        (*ret_waiting)[(*ret_count)++] =
            (sqlite__waiting){sqlite__u64(rows, 0), sqlite__u64(rows, 1)};
        status = sqlite__step(link, rows, &row, err);
    }
    return status;
}

static esdm_status
drop(sqlite__link *link, uint64_t container, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(link->db, "DELETE FROM temp.pending WHERE container = ?1", -1,
                                  &statement, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_bind_int64(statement, 1, (sqlite3_int64) container);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    (void) sqlite3_finalize(statement);
    return code == SQLITE_DONE ? ESDM_OK : sqlite__error(link, code, err);
}

static esdm_status
load(sqlite__link *link, sqlite3_stmt *insert, uint64_t container, esdm_error *err)
{
    sqlite3_stmt *list = NULL;
    bool row = false;
    esdm_status status = sqlite__prepare(link, SQLITE__ATTRIBUTE_LIST, &list, err, "i", container);
    if (status == ESDM_OK)
        status = sqlite__step(link, list, &row, err);
    if (status != ESDM_OK || !row)
        return status;
    const void *attributes = sqlite3_column_blob(list, 0);
    if (attributes != NULL)
        status = sqlite__attributes_insert(link, insert, container, attributes,
                                           (size_t) sqlite3_column_bytes(list, 0), NULL, err);
    (void) sqlite3_reset(list);
    return status;
}

/* Whether too many of the lists in temp.pending go, or are other ones now. */
static bool
many_go(const sqlite__kept *kept, const sqlite__waiting *now, size_t count)
{
    size_t going = 0;
    for (size_t i = 0, k = 0; i < kept->nwaiting; i++) {
        const sqlite__waiting *was = &kept->waiting[i];
        while (k < count && now[k].container < was->container)
            k++;
        going += k == count || now[k].container != was->container ||
                 now[k].document_at != was->document_at;
    }
    return going > GOING_FEW && going > kept->nwaiting / GOING_PART;
}

/* Makes temp.pending, which has the lists of those that are kept, the one of those that wait now.
 */
static esdm_status
follow(sqlite__link *link, const sqlite__waiting *now, size_t count, esdm_error *err)
{
    sqlite3_stmt *insert = NULL;
    const sqlite__waiting *was = link->kept.waiting;
    const size_t nwas = link->kept.nwaiting;
    esdm_status status = ESDM_OK;
    int code = sqlite3_prepare_v2(
        link->db,
        "INSERT INTO temp.pending(container, dataset, name, entry, path, value, text) "
        "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        -1, &insert, NULL);
    if (code != SQLITE_OK)
        return sqlite__error(link, code, err);
    for (size_t i = 0, k = 0; (i < nwas || k < count) && status == ESDM_OK;) {
        bool gone = i < nwas && (k == count || was[i].container < now[k].container);
        bool both = i < nwas && k < count && was[i].container == now[k].container;
        bool same = both && was[i].document_at == now[k].document_at;
        if (gone || (both && !same))
            status = drop(link, was[i].container, err);
        if (status == ESDM_OK && !gone && !same)
            status = load(link, insert, now[k].container, err);
        i += gone || both;
        k += !gone;
    }
    (void) sqlite3_finalize(insert);
    return status;
}

/* @param kept is_there: what is in the table is what it says. */
static esdm_status
bring(sqlite__link *link, sqlite__kept *kept, uint64_t indexed, bool is_there, esdm_error *err)
{
    sqlite__waiting *now = NULL;
    size_t count = 0;
    esdm_status status = list_waiting(link, indexed, &now, &count, err);
    if (status == ESDM_OK && (!is_there || indexed != kept->indexed || many_go(kept, now, count))) {
        sqlite__waiting_clear(link);
        status = sqlite__exec(link, pending_table, err);
    }
    if (status == ESDM_OK)
        status = follow(link, now, count, err);
    if (status != ESDM_OK) {
        free(now);
        return status;
    }
    sqlite__waiting_clear(link);
    kept->waiting = now;
    kept->nwaiting = count;
    kept->any = count > 0;
    kept->indexed = indexed;
    return ESDM_OK;
}

esdm_status
sqlite__find_keep_pending(sqlite__link *link, esdm_error *err)
{
    sqlite__kept *kept = &link->kept;
    int64_t version = 0;
    uint64_t indexed = 0;
    bool is_there = kept->is_there;
    esdm_status status = sqlite__query_number(link, "PRAGMA data_version", &version, err);
    if (status == ESDM_OK && is_there && kept->version == version &&
        kept->changes == sqlite3_total_changes(link->db))
        return ESDM_OK;
    kept->is_there = false;
    kept->serial++;
    if (status == ESDM_OK)
        status = sqlite__attributes_indexed(link, &indexed, err);
    if (status == ESDM_OK)
        status = bring(link, kept, indexed, is_there, err);
    if (status != ESDM_OK)
        return status;
    kept->version = version;
    kept->changes = sqlite3_total_changes(link->db);
    kept->is_there = true;
    return ESDM_OK;
}
