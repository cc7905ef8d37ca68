/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Ranks that write a container and read it, for connections.py, which counts their connections to
 * the metadata store:
 *
 *     nc_connections write      makes a container in several commits
 *     nc_connections append     opens it and writes more
 *     nc_connections read       reads what all have written
 *     nc_connections restart N FIRST
 *
 * The last one writes steps, and commits all but the last of N; then a line tells it, and one is
 * waited for, before the last one is committed. Ranks below FIRST write nothing; if
 * there are some, that fails.
 */
#include "checks.h"

#include <netcdf.h>
#include <netcdf_par.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 1024, COLUMNS = 512 }; /* of a rank and step: goes to a pack at once */

static int data[ROWS][COLUMNS];

static void
fill(int step, int of_rank)
{
    for (int i = 0; i < ROWS; i++)
        for (int c = 0; c < COLUMNS; c++)
            data[i][c] = 1000003 * step + 4099 * of_rank + COLUMNS * i + c;
}

static void
put_of(int ncid, int varid, int step, bool writes)
{
    fill(step, rank);
    OK(nc_put_vara_int(ncid, varid, (size_t[]){(size_t) step, (size_t) ROWS * (size_t) rank, 0},
                       (size_t[]){writes, ROWS, COLUMNS}, &data[0][0]));
}

static void
put(int ncid, int varid, int step)
{
    put_of(ncid, varid, step, true);
}

static void
check(int ncid, int varid, int step, int of_rank)
{
    static int wanted[ROWS][COLUMNS];
    fill(step, of_rank);
    memcpy(wanted, data, sizeof wanted);
    OK(nc_get_vara_int(ncid, varid, (size_t[]){(size_t) step, (size_t) ROWS * (size_t) of_rank, 0},
                       (size_t[]){1, ROWS, COLUMNS}, &data[0][0]));
    CHECK(memcmp(wanted, data, sizeof wanted) == 0);
}

static void
write_some(void)
{
    int v;
    int ncid = create_steps("esdm:connections", ROWS, COLUMNS, &v);
    put(ncid, v, 0);
    put(ncid, v, 1);
    OK(nc_sync(ncid));
    OK(nc_var_par_access(ncid, v, NC_INDEPENDENT));
    put(ncid, v, 1); /* again, by itself */
    OK(nc_close(ncid));
}

static void
append(void)
{
    int ncid = -1;
    OK(nc_open_par("esdm:connections", NC_WRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &ncid));
    OK(nc_var_par_access(ncid, 0, NC_COLLECTIVE));
    put(ncid, 0, 2);
    put(ncid, 0, 3);
    OK(nc_close(ncid));
}

static void
read_all(void)
{
    int ncid = -1;
    OK(nc_open_par("esdm:connections", NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &ncid));
    for (int step = 0; step < 4; step++)
        for (int r = 0; r < size; r++)
            check(ncid, 0, step, (rank + r) % size);
    OK(nc_close(ncid));
}

static void
wait_for_line(void)
{
    char line[16];
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        puts("ready");
        (void) fflush(stdout);
        CHECK(fgets(line, sizeof line, stdin) != NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void
restart(int steps, int first)
{
    int v;
    int ncid = create_steps("esdm:restart", ROWS, COLUMNS, &v);
    for (int step = 0; step < steps; step++) {
        put_of(ncid, v, step, rank >= first);
        if (step + 1 < steps)
            OK(nc_sync(ncid));
    }
    wait_for_line();
    if (first > 0) { /* all ranks live until rank 0 has told why */
        CHECK(nc_sync(ncid) != NC_NOERR);
        return;
    }
    OK(nc_sync(ncid));
    OK(nc_close(ncid));
    OK(nc_open_par("esdm:restart", NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &ncid));
    for (int step = 0; step < steps; step++)
        check(ncid, 0, step, (rank + 1) % size);
    OK(nc_close(ncid));
}

int
main(int argc, char **argv)
{
    checks_start(&argc, &argv);
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "write") == 0)
        write_some();
    else if (strcmp(what, "append") == 0)
        append();
    else if (strcmp(what, "read") == 0)
        read_all();
    else if (strcmp(what, "restart") == 0 && argc > 3)
        restart(atoi(argv[2]), atoi(argv[3]));
    else
        check_holds(false, "nothing to do: see the top", __FILE_NAME__, __LINE__);
    MPI_Finalize();
    return 0;
}
