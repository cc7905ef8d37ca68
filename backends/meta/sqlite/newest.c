/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * What a connection has read last, for who asks again while nobody has committed anything. Programs
 * ask whether a file is there, look at its bytes, and open it: that is one container, asked for
 * three times. SQLite counts the states of the database that a connection has met; to meet the
 * present one, a statement has to read something.
 */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store.h"

/* Within a reading: which state of the database it sees. */
static bool
find_version(const sqlite__link *link, unsigned *ret_version)
{
    return sqlite3_file_control(link->db, "main", SQLITE_FCNTL_DATA_VERSION, ret_version) ==
           SQLITE_OK;
}

void
sqlite__newest_keep(sqlite__link *link, const char *name, const esdm_meta_snapshot *loaded,
                    bool snapshot)
{
    sqlite__newest *kept = &link->newest;
    size_t bytes = strlen(name) + 1;
    kept->is_there = bytes <= sizeof kept->name && find_version(link, &kept->version);
    if (!kept->is_there)
        return;
    memcpy(kept->name, name, bytes);
    kept->has_snapshot = snapshot && loaded->snapshot == loaded->record.snapshot &&
                         loaded->nlengths <= sizeof kept->lengths / sizeof *kept->lengths;
    kept->loaded = *loaded;
    kept->loaded.document = NULL;
    kept->loaded.document_bytes = 0;
    kept->loaded.lengths = NULL;
    if (kept->has_snapshot && loaded->nlengths > 0)
        memcpy(kept->lengths, loaded->lengths, loaded->nlengths * sizeof *kept->lengths);
}

esdm_status
sqlite__newest_is(sqlite__link *link, const char *name, bool *ret_is, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    unsigned version = 0;
    *ret_is = false;
    if (!link->newest.is_there || strcmp(name, link->newest.name) != 0)
        return ESDM_OK;
    esdm_status status = sqlite__prepare(link, SQLITE__FORMAT_GET, &statement, err, "");
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    if (row) {
        *ret_is = find_version(link, &version) && version == link->newest.version;
        (void) sqlite3_reset(statement);
    }
    return status;
}

esdm_status
sqlite__newest_load(sqlite__link *link, const char *name, uint64_t known_container,
                    uint64_t known_structure, esdm_meta_snapshot *ret_snapshot, bool *ret_found,
                    esdm_error *err)
{
    const sqlite__newest *kept = &link->newest;
    *ret_found = false;
    if (!kept->has_snapshot || known_container != kept->loaded.record.container ||
        known_structure != kept->loaded.structure)
        return ESDM_OK;
    esdm_status status = sqlite__newest_is(link, name, ret_found, err);
    if (status != ESDM_OK || !*ret_found)
        return status;
    *ret_snapshot = kept->loaded;
    if (kept->loaded.nlengths == 0)
        return ESDM_OK;
    size_t bytes = kept->loaded.nlengths * sizeof *kept->lengths;
    ret_snapshot->lengths = malloc(bytes);
    if (ret_snapshot->lengths == NULL)
        return esdm__error_nomem(err, bytes, "lengths");
    memcpy(ret_snapshot->lengths, kept->lengths, bytes);
    return ESDM_OK;
}
