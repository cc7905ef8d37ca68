/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Checksums of rows. SQLite has none: a bit that changes in its file may give another length, an
 * older snapshot or a page too few without an error. Rows of `container`, `snapshot` and `page`
 * carry one in the column `sum`, which statements.c fills and compares by SQL
 * functions that each connection has:
 *
 *   seal(keys, value, …)               the checksum of a row
 *   intact(keys, sum, value, …)        whether it is the one of these values; 1 for the sum 'none',
 *                                      which rows have in a store from before there were checksums
 *   sealed(table, keys, sum, value, …) 1, or the error SQLITE__CORRUPT_ROW
 *
 * The lower half of the checksum is that of the first `keys` values alone, unless there are 0:
 * given no more values than these, it alone is compared. So a search can rely on the keys of rows
 * beside what it looks for, and damage in their other values is no concern of it.
 *
 * Two more functions are here: newer_ESDM_needed(), and passed_by(name), whether queries pass the
 * name of a container by.
 */

#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "base/checksum.h"
#include "base/hidden_names.h"
#include "sql.h"

/* More than the columns of any table with what precedes them. */
#define VALUES_MAX 20

/* Type and value; of texts and blobs their checksum. */
#define VALUE_BYTES 9

#define KEY_HALF UINT64_C(0xffffffff)

/* XXH3 of the values with their types. */
static uint64_t
row_sum(int keys, int count, sqlite3_value **values)
{
    uint8_t all[VALUES_MAX * VALUE_BYTES];
    for (int i = 0; i < count; i++) {
        int type = sqlite3_value_type(values[i]);
        uint64_t value = 0;
        if (type == SQLITE_INTEGER) {
            value = (uint64_t) sqlite3_value_int64(values[i]);
        } else if (type != SQLITE_NULL) {
            const void *data = sqlite3_value_blob(values[i]);
            size_t bytes = (size_t) sqlite3_value_bytes(values[i]);
            value = esdm__checksum(data != NULL ? data : "", data != NULL ? bytes : 0);
        }
        value = htole64(value);
        all[i * VALUE_BYTES] = (uint8_t) type;
        memcpy(all + i * VALUE_BYTES + 1, &value, sizeof value);
    }
    uint64_t sum = esdm__checksum(all, (size_t) count * VALUE_BYTES);
    if (keys == 0)
        return sum;
    return (sum & ~KEY_HALF) | (esdm__checksum(all, (size_t) keys * VALUE_BYTES) & KEY_HALF);
}

/* `values` begin with the number of keys and the sum. */
static bool
is_intact(int count, sqlite3_value **values)
{
    int keys = sqlite3_value_int(values[0]);
    if (sqlite3_value_type(values[1]) == SQLITE_TEXT) {
        const char *text = (const char *) sqlite3_value_text(values[1]);
        return text != NULL && strcmp(text, "none") == 0;
    }
    if (sqlite3_value_type(values[1]) != SQLITE_INTEGER)
        return false;
    uint64_t differing =
        (uint64_t) sqlite3_value_int64(values[1]) ^ row_sum(keys, count - 2, values + 2);
    return (keys == count - 2 ? differing & KEY_HALF : differing) == 0;
}

static bool
has_values(sqlite3_context *context, int count, int least)
{
    if (count >= least && count <= VALUES_MAX)
        return true;
    sqlite3_result_error_code(context, SQLITE_MISUSE);
    return false;
}

static void
seal(sqlite3_context *context, int count, sqlite3_value **values)
{
    if (has_values(context, count, 2))
        sqlite3_result_int64(
            context, (int64_t) row_sum(sqlite3_value_int(values[0]), count - 1, values + 1));
}

static void
intact(sqlite3_context *context, int count, sqlite3_value **values)
{
    if (has_values(context, count, 3))
        sqlite3_result_int(context, is_intact(count, values));
}

static void
sealed(sqlite3_context *context, int count, sqlite3_value **values)
{
    char text[96];
    if (!has_values(context, count, 4))
        return;
    if (is_intact(count - 1, values + 1)) {
        sqlite3_result_int(context, 1);
        return;
    }
    (void) snprintf(text, sizeof text, "a row of the table '%.20s' does not match its checksum",
                    (const char *) sqlite3_value_text(values[0]));
    sqlite3_result_error(context, text, -1);
    sqlite3_result_error_code(context, SQLITE__CORRUPT_ROW);
}

static void
passed_by(sqlite3_context *context, int count, sqlite3_value **values)
{
    const char *name = count == 1 ? (const char *) sqlite3_value_text(values[0]) : NULL;
    sqlite3_result_int(context, name != NULL && esdm__name_is_hidden(name));
}

/* What triggers call that older versions must not pass (schema.c). */
static void
newer_needed(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void) count, (void) values;
    sqlite3_result_int(context, 1);
}

int
sqlite__sums_register(sqlite3 *db)
{
    static const struct {
        const char *name;
        void (*call)(sqlite3_context *, int, sqlite3_value **);
    } functions[] = {
        {"seal", seal}, {"intact", intact}, {"sealed", sealed}, {"passed_by", passed_by}};
    int code = SQLITE_OK;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0] && code == SQLITE_OK; i++)
        code = sqlite3_create_function_v2(db, functions[i].name, -1,
                                          SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY,
                                          NULL, functions[i].call, NULL, NULL, NULL);
    if (code == SQLITE_OK)
        code =
            sqlite3_create_function_v2(db, "newer_ESDM_needed", 0, SQLITE_UTF8 | SQLITE_INNOCUOUS,
                                       NULL, newer_needed, NULL, NULL, NULL);
    return code;
}
