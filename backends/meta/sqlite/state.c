/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Where the store stands in a migration. A store that is not active has an even format number,
 * which versions of ESDM that know nothing of this refuse, and `state` and `note` in the table
 * `store`. Each transaction that writes looks at the number: a newer one ends this version's
 * writing.
 */

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "store.h"

static esdm_status
read_format(sqlite__link *link, uint64_t *ret_format, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    esdm_status status = sqlite__prepare(link, SQLITE__FORMAT_GET, &statement, err, "");
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    if (!row)
        return status == ESDM_OK ? sqlite__error(link, SQLITE_CORRUPT, err) : status;
    *ret_format = sqlite__u64(statement, 0);
    (void) sqlite3_reset(statement);
    return ESDM_OK;
}

esdm_status
sqlite__read_state(sqlite__link *link, esdm_meta_state *ret_state,
                   char ret_note[ESDM_META_NOTE_BYTES], esdm_error *err)
{
    uint64_t format = 0;
    sqlite3_stmt *statement = NULL;
    bool row = false;
    if (ret_note != NULL)
        ret_note[0] = '\0';
    *ret_state = ESDM_META_ACTIVE;
    esdm_status status = read_format(link, &format, err);
    if (status == ESDM_OK && format > SQLITE__FORMAT_MIGRATION)
        return esdm__error_set(err, ESDM_EACCES,
                               "metadata store '%.200s' was upgraded to format %llu while this "
                               "program had it open, which knows those up to %d; use a newer ESDM",
                               link->label, (unsigned long long) format, SQLITE__FORMAT);
    if (status != ESDM_OK || !sqlite__is_migration(format))
        return status;
    status = sqlite__prepare(link, SQLITE__STATE_GET, &statement, err, "");
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    if (status == ESDM_OK && !row) /* it may have become active in between */
        status = read_format(link, &format, err);
    if (status == ESDM_OK && !row && sqlite__is_migration(format))
        status = sqlite__error(link, SQLITE_CORRUPT, err);
    if (!row)
        return status;
    *ret_state = (esdm_meta_state) sqlite__u64(statement, 0);
    if (ret_note != NULL)
        (void) snprintf(ret_note, ESDM_META_NOTE_BYTES, "%s", sqlite__text(statement, 1));
    (void) sqlite3_reset(statement);
    return ESDM_OK;
}

esdm_status
sqlite__check_state(sqlite__link *link, bool migrating, bool *ret_writes, esdm_error *err)
{
    esdm_meta_state state = ESDM_META_ACTIVE;
    char note[ESDM_META_NOTE_BYTES];
    esdm_status status = sqlite__read_state(link, &state, note, err);
    *ret_writes = status == ESDM_OK && (migrating || state == ESDM_META_ACTIVE);
    if (status != ESDM_OK || migrating || state == ESDM_META_ACTIVE || state == ESDM_META_LEAVING)
        return status;
    return esdm__error_set(err, ESDM_ENOTSUP, "metadata store '%.150s' %s", link->label, note);
}

esdm_status
sqlite__state(void *self, esdm_meta_state *ret_state, char ret_note[ESDM_META_NOTE_BYTES],
              esdm_error *err)
{
    sqlite__store *store = self;
    esdm_status status = sqlite__begin_read(store, err);
    if (status != ESDM_OK)
        return status;
    status = sqlite__read_state(&store->reader, ret_state, ret_note, err);
    sqlite__end_read(store);
    return status;
}

esdm_status
sqlite__set_state(void *self, esdm_meta_state state, const char *note, esdm_error *err)
{
    sqlite__store *store = self;
    esdm_status status = sqlite__begin_write(store, true, err);
    if (status != ESDM_OK)
        return status;
    char pragma[64];
    (void) snprintf(pragma, sizeof pragma, "PRAGMA user_version = %d",
                    state == ESDM_META_ACTIVE ? SQLITE__FORMAT : SQLITE__FORMAT_MIGRATION);
    /* Older versions that have the store open go by these: they are to find none. */
    status = state == ESDM_META_ACTIVE ? sqlite__run(&store->writer, SQLITE__STATE_FORGET, err, "")
                                       : sqlite__run(&store->writer, SQLITE__STATE_SET, err, "it",
                                                     (uint64_t) state, note);
    if (status == ESDM_OK)
        status = sqlite__exec(&store->writer, pragma, err);
    return sqlite__end_write(store, status, err);
}
