/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_SQLITE_FIND_H
#define ESDM_BACKEND_SQLITE_FIND_H

/** @file Queries over attributes as SQL. One thread at a time. */

#include "base/buffer.h"
#include "esdm/sys/meta_store.h"
#include "sql.h"

/** Parameters of condition i: ?6i+1 attribute, +2 number, +3 text, +4 "/variable", +5 and +6 the
 *  range of values in which a text can be found. */
enum {
    SQLITE__FIND_ATTRIBUTE = 1,
    SQLITE__FIND_NUMBER,
    SQLITE__FIND_TEXT,
    SQLITE__FIND_VARIABLE,
    SQLITE__FIND_FROM,
    SQLITE__FIND_TO,
    SQLITE__FIND_PARAMETERS = 6
};

/** The range of values in which a condition on a text looks beside the text itself. */
typedef struct sqlite__find_range {
    enum {
        SQLITE__FIND_NO_RANGE,
        SQLITE__FIND_NUMBERS, /* equality: numbers that may be written as the text */
        SQLITE__FIND_TEXTS    /* a pattern: texts that begin as it does */
    } kind;
    double from, to;
    char *texts[2];   /* owned */
    bool no_datasets; /* none of the index has such an attribute */
} sqlite__find_range;

typedef struct sqlite__query {
    esdm__buffer sql;
    bool numbers;      /* of containers and datasets are asked for, not names and paths */
    const char *table; /* that the part being written reads */
    const esdm_meta_condition *conditions;
    size_t nconditions;
    sqlite__find_range *ranges; /* of each condition; owned */
} sqlite__query;

esdm_status sqlite__query_init(sqlite__query *q, const esdm_meta_condition *conditions,
                               size_t nconditions, esdm_error *err);
void sqlite__query_clear(sqlite__query *q);
/** Text that counts entries of the index at which condition i has to look, up to the limit
 *  ?1 + parameters of all conditions. */
void sqlite__query_put_count(sqlite__query *q, size_t i);
/** Text of the query itself. @param start condition by which candidates are found. */
void sqlite__query_put(sqlite__query *q, size_t start, bool with_pending);

/** A row of what was found: name and path, NULL for containers, or the numbers of both. */
typedef bool (*sqlite__row_visitor)(sqlite3_stmt *row, void *user);
/** Visits what meets all conditions, in order. Within a transaction that is rolled back: containers
 *  that wait to be entered are in temp.pending until then. */
esdm_status sqlite__find_rows(sqlite__link *link, const esdm_meta_condition *conditions,
                              size_t nconditions, bool numbers, sqlite__row_visitor visit,
                              void *user, esdm_error *err);

static inline bool
sqlite__names_variable(const esdm_meta_condition *condition)
{
    return condition->variable != NULL && condition->variable[0] != '\0';
}

#endif
