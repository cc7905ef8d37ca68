/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Looks libpq up. A program that uses it has the same one; connections share nothing. */
#include "monitor/libpq.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

static esdm__libpq found;
static bool is_there;

static const struct {
    const char *name;
    size_t at;
} functions[] = {
    {"PQconnectStartParams", offsetof(esdm__libpq, connect_start)},
    {"PQconnectPoll", offsetof(esdm__libpq, connect_poll)},
    {"PQstatus", offsetof(esdm__libpq, status)},
    {"PQsocket", offsetof(esdm__libpq, socket)},
    {"PQerrorMessage", offsetof(esdm__libpq, error_message)},
    {"PQsetnonblocking", offsetof(esdm__libpq, set_nonblocking)},
    {"PQsendQuery", offsetof(esdm__libpq, send_query)},
    {"PQsendQueryParams", offsetof(esdm__libpq, send_query_params)},
    {"PQsetSingleRowMode", offsetof(esdm__libpq, set_single_row)},
    {"PQflush", offsetof(esdm__libpq, flush)},
    {"PQconsumeInput", offsetof(esdm__libpq, consume_input)},
    {"PQisBusy", offsetof(esdm__libpq, is_busy)},
    {"PQgetResult", offsetof(esdm__libpq, get_result)},
    {"PQresultStatus", offsetof(esdm__libpq, result_status)},
    {"PQresultErrorMessage", offsetof(esdm__libpq, result_message)},
    {"PQntuples", offsetof(esdm__libpq, rows)},
    {"PQgetvalue", offsetof(esdm__libpq, value)},
    {"PQgetisnull", offsetof(esdm__libpq, is_null)},
    {"PQclear", offsetof(esdm__libpq, clear)},
    {"PQfinish", offsetof(esdm__libpq, finish)},
};

/*
 * Without RTLD_DEEPBIND, as all that ESDM loads. With it libpq and what it needs would call libc's
 * malloc() and free() in a program that has its own, and free with one what libc made with the
 * other; sanitizers refuse it. A program with a function of libpq's or libssl's name in it gets
 * that one called; it is the program's to have none, as it would be if it was linked with libpq.
 */
static void
look_up(void)
{
    void *library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
    is_there = library != NULL;
    for (size_t i = 0; i < sizeof functions / sizeof *functions && is_there; i++) {
        void *function = dlsym(library, functions[i].name);
        memcpy((char *) &found + functions[i].at, &function, sizeof function);
        is_there = function != NULL;
    }
}

const esdm__libpq *
esdm__libpq_find(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void) pthread_once(&once, look_up);
    return is_there ? &found : NULL;
}
