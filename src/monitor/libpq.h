/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MONITOR_LIBPQ_H
#define ESDM_MONITOR_LIBPQ_H

/** @file The functions of libpq that the monitor uses, looked up when a database is wanted: ESDM
 *  is not linked with libpq, and works where there is none. Their types are as in libpq-fe.h, whose
 *  numbers are part of its ABI. */

#include <stdbool.h>

typedef struct pg_conn esdm__pg_conn;
typedef struct pg_result esdm__pg_result;

enum {
    ESDM__PG_CONNECTION_OK = 0,
    ESDM__PG_CONNECTION_BAD = 1,
    ESDM__PG_POLLING_FAILED = 0,
    ESDM__PG_POLLING_READING = 1,
    ESDM__PG_POLLING_WRITING = 2,
    ESDM__PG_POLLING_OK = 3,
    ESDM__PG_COMMAND_OK = 1,
    ESDM__PG_TUPLES_OK = 2,
    ESDM__PG_SINGLE_TUPLE = 9
};

typedef struct esdm__libpq {
    esdm__pg_conn *(*connect_start)(const char *const *keywords, const char *const *values,
                                    int expand);
    int (*connect_poll)(esdm__pg_conn *conn);
    int (*status)(const esdm__pg_conn *conn);
    int (*socket)(const esdm__pg_conn *conn);
    const char *(*error_message)(const esdm__pg_conn *conn);
    int (*set_nonblocking)(esdm__pg_conn *conn, int on);
    int (*send_query)(esdm__pg_conn *conn, const char *query);
    int (*send_query_params)(esdm__pg_conn *conn, const char *query, int count,
                             const unsigned *types, const char *const *values, const int *lengths,
                             const int *formats, int result_format);
    int (*set_single_row)(esdm__pg_conn *conn);
    int (*flush)(esdm__pg_conn *conn);
    int (*consume_input)(esdm__pg_conn *conn);
    int (*is_busy)(esdm__pg_conn *conn);
    esdm__pg_result *(*get_result)(esdm__pg_conn *conn);
    int (*result_status)(const esdm__pg_result *result);
    const char *(*result_message)(const esdm__pg_result *result);
    int (*rows)(const esdm__pg_result *result);
    const char *(*value)(const esdm__pg_result *result, int row, int column);
    int (*is_null)(const esdm__pg_result *result, int row, int column);
    void (*clear)(esdm__pg_result *result);
    void (*finish)(esdm__pg_conn *conn);
} esdm__libpq;

/** NULL: there is no libpq here. */
const esdm__libpq *esdm__libpq_find(void);

#endif
