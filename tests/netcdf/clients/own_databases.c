/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * A program that has a SQLite and a libpq of its own linked into itself, of other versions, and
 * exports them, as programs with plug-ins do. Who takes these functions for those of the system's
 * libraries ends it. Writes and reads a variable of FILE with stock libnetcdf.
 *
 *     own_databases FILE
 */
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>

#define OWN(name)                                                                                  \
    void name(void);                                                                               \
    void name(void)                                                                                \
    {                                                                                              \
        (void) fprintf(stderr, "clash: %s of the program was called\n", #name);                    \
        abort();                                                                                   \
    }

OWN(sqlite3_initialize)
OWN(sqlite3_open_v2)
OWN(sqlite3_prepare_v2)
OWN(sqlite3_prepare_v3)
OWN(sqlite3_step)
OWN(sqlite3_exec)
OWN(sqlite3_finalize)
OWN(sqlite3_close_v2)
OWN(sqlite3_malloc64)
OWN(sqlite3_free)
OWN(PQconnectStart)
OWN(PQconnectStartParams)
OWN(PQconnectPoll)
OWN(PQstatus)
OWN(PQsocket)
OWN(PQclear)
OWN(PQfinish)
OWN(PQgetResult)
OWN(PQconsumeInput)
OWN(PQisBusy)
OWN(PQmakeEmptyPGresult)
OWN(PQerrorMessage)
OWN(PQresultStatus)
OWN(initPQExpBuffer)
OWN(appendPQExpBuffer)

static void
nc(int status)
{
    if (status == NC_NOERR)
        return;
    (void) fprintf(stderr, "%s\n", nc_strerror(status));
    exit(1);
}

int
main(int argc, char **argv)
{
    float values[1000];
    float seen[1000];
    int id, dimension, variable;
    if (argc != 2)
        return 2;
    for (int i = 0; i < 1000; i++)
        values[i] = (float) i;
    nc(nc_create(argv[1], NC_CLOBBER | NC_NETCDF4, &id));
    nc(nc_def_dim(id, "x", 1000, &dimension));
    nc(nc_def_var(id, "v", NC_FLOAT, 1, &dimension, &variable));
    nc(nc_enddef(id));
    nc(nc_put_var_float(id, variable, values));
    nc(nc_close(id));
    nc(nc_open(argv[1], NC_NOWRITE, &id));
    nc(nc_get_var_float(id, variable, seen));
    nc(nc_close(id));
    for (int i = 0; i < 1000; i++) {
        if (seen[i] != values[i])
            return 1;
    }
    return puts("good") == EOF;
}
