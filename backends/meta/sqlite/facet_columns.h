/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_SQLITE_FACET_COLUMNS_H
#define ESDM_BACKEND_SQLITE_FACET_COLUMNS_H

/** @file Values of attributes, of all containers of the index, in memory. One thread at a time. */

#include "sql.h"

/** Of a container that has several values. */
#define SQLITE__COLUMN_MANY UINT16_MAX
/** So many attributes are kept. */
#define SQLITE__COLUMNS_MOST 12

typedef struct sqlite__column {
    char *name;      /* owned */
    uint16_t *codes; /* of each container: 0: it has none, else 1 + the place of its text, or
                        SQLITE__COLUMN_MANY; owned; NULL: it is not kept */
    size_t ncodes;
    char **texts; /* owned; two may be equal, one of which is a number's */
    size_t ntexts;
} sqlite__column;

typedef struct sqlite__columns {
    uint64_t serial; /* of sqlite__kept: that state of the store */
    size_t left;     /* bytes that more may take */
    sqlite__column items[SQLITE__COLUMNS_MOST];
    size_t count;
    struct sqlite__making *making; /* while one is made; borrowed */
} sqlite__columns;

/**
 * The values of an attribute, within a question and after sqlite__find_keep_pending().
 * @param last number of the last container. @param may_make else only what is there.
 * @param ret_column borrowed until the next call; NULL: not kept, as there are too many values, or
 *        numbers whose text the values do not say.
 */
esdm_status sqlite__column_get(sqlite__link *link, const char *name, uint64_t last, bool may_make,
                               const sqlite__column **ret_column, esdm_error *err);

/** Whether the value in column 0 is a number whose text says no type: 1e10 is "10000000000" of an
 *  integer and "1e+10" of a float. NaN is no number of SQLite's. 0 and -0 are equal, and have their
 *  own texts. */
bool sqlite__has_one_text(sqlite3_stmt *row);

#endif
