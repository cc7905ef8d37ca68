/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What ranks do with containers that they share, on any number of them: each value is checked, no
 * stock netCDF is needed. many.py starts it. */
#include "checks.h"

#include <netcdf.h>
#include <netcdf_par.h>
#include <stdio.h>

enum { ROWS = 3, COLUMNS = 700 }; /* rows of a rank; they fill more than an index page holds */
static int data[ROWS][COLUMNS];

static const int formats[] = {0, NC_64BIT_OFFSET, NC_64BIT_DATA, NC_NETCDF4,
                              NC_NETCDF4 | NC_CLASSIC_MODEL};
enum { FORMATS = sizeof formats / sizeof formats[0] };

static int
value_at(int step, size_t row, int column)
{
    return 1000000 * step + 1000 * (int) row + column;
}

static int
put(int ncid, int varid, int step, size_t first, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (int c = 0; c < COLUMNS; c++)
            data[i][c] = value_at(step, first + i, c);
    return nc_put_vara_int(ncid, varid, (size_t[]){first, 0}, (size_t[]){count, COLUMNS},
                           &data[0][0]);
}

static size_t
first_row(int of_rank)
{
    return (size_t) ROWS * (size_t) of_rank;
}

static int
put_own(int ncid, int varid, int step)
{
    return put(ncid, varid, step, first_row(rank), ROWS);
}

static void
check_rows(int ncid, int varid, int step, int of_rank)
{
    size_t first = first_row(of_rank);
    OK(nc_get_vara_int(ncid, varid, (size_t[]){first, 0}, (size_t[]){ROWS, COLUMNS}, &data[0][0]));
    for (size_t i = 0; i < ROWS; i++)
        for (int c = 0; c < COLUMNS; c++)
            CHECK(data[i][c] == value_at(step, first + i, c));
}

static void
check_length(int ncid, size_t length)
{
    size_t found = 0;
    OK(nc_inq_dimlen(ncid, 0, &found));
    CHECK(found == length);
}

static int
open_for_reading(const char *path)
{
    int ncid = -1;
    OK(nc_open_par(path, NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &ncid));
    return ncid;
}

/* ---- collective and independent ------------------------------------------------------------- */

static int
make_rows(const char *path, int mode, int *ret_var)
{
    int d[2];
    int ncid = create(path, mode);
    OK(nc_def_dim(ncid, "y", first_row(size), &d[0]));
    OK(nc_def_dim(ncid, "x", COLUMNS, &d[1]));
    OK(nc_def_var(ncid, "f", NC_INT, 2, d, ret_var));
    return ncid;
}

/* All at once, then each rank as often as it likes; everybody reads what the others wrote. */
static void
rows(int mode)
{
    int v;
    int ncid = make_rows("esdm:many/rows", mode, &v);
    OK(nc_enddef(ncid));
    OK(nc_var_par_access(ncid, v, NC_COLLECTIVE));
    OK(put_own(ncid, v, 1));
    for (int r = 0; r < size; r++)
        check_rows(ncid, v, 1, (rank + r) % size);
    OK(nc_var_par_access(ncid, v, NC_INDEPENDENT));
    for (int step = 2; step < 2 + rank % 4; step++)
        OK(put_own(ncid, v, step));
    check_rows(ncid, v, 1 + rank % 4, rank);
    OK(nc_sync(ncid));
    for (int r = rank % 3; r < size; r += 3)
        check_rows(ncid, v, 1 + r % 4, r);
    OK(nc_close(ncid));
    ncid = open_for_reading("esdm:many/rows");
    for (int r = 0; r < size; r++)
        check_rows(ncid, v, 1 + r % 4, r);
    OK(nc_close(ncid));
}

/* ---- filters -------------------------------------------------------------------------------- */

/* Stock netCDF refuses all of this. Chunks lie across the borders of ranks. */
static void
compressed(int mode)
{
    int v;
    int ncid = make_rows("esdm:many/compressed", mode, &v);
    OK(nc_def_var_chunking(ncid, v, NC_CHUNKED, (size_t[]){2, COLUMNS}));
    OK(nc_def_var_deflate(ncid, v, 1, 1, 4));
    OK(nc_enddef(ncid));
    OK(nc_var_par_access(ncid, v, NC_INDEPENDENT));
    if (rank % 3 == 0)
        for (size_t i = ROWS; i-- > 0;)
            OK(put(ncid, v, 1, first_row(rank) + i, 1));
    else if (rank % 3 == 1)
        OK(put_own(ncid, v, 1));
    OK(nc_sync(ncid));
    if (rank % 3 == 2) /* the last ones, with a commit between */
        OK(put_own(ncid, v, 1));
    check_rows(ncid, v, 1, rank);
    OK(nc_close(ncid));
    ncid = open_for_reading("esdm:many/compressed");
    int deflate = 0;
    OK(nc_inq_var_deflate(ncid, v, NULL, &deflate, NULL));
    CHECK(deflate == 1);
    for (int r = 0; r < size; r++)
        check_rows(ncid, v, 1, r);
    OK(nc_close(ncid));
}

/* ---- unlimited dimensions ------------------------------------------------------------------- */

/* Every rank puts records of its own behind the others'. */
static void
records(int mode)
{
    int v;
    int d[2];
    bool classic = (mode & NC_NETCDF4) == 0;
    int ncid = create("esdm:many/records", mode);
    OK(nc_def_dim(ncid, "t", NC_UNLIMITED, &d[0]));
    OK(nc_def_dim(ncid, "x", COLUMNS, &d[1]));
    OK(nc_def_var(ncid, "r", NC_INT, 2, d, &v));
    OK(nc_enddef(ncid));
    check_length(ncid, 0);
    OK(nc_var_par_access(ncid, v, NC_COLLECTIVE));
    OK(put_own(ncid, v, 1));
    check_length(ncid, first_row(size));
    for (int r = 0; r < size; r++)
        check_rows(ncid, v, 1, r);
    OK(nc_var_par_access(ncid, v, NC_INDEPENDENT));
    GIVES(put(ncid, v, 1, first_row(size + rank), ROWS), classic ? NC_NOERR : NC_ECANTEXTEND);
    int together = classic ? 2 * size : size;
    OK(nc_sync(ncid));
    check_length(ncid, first_row(together));
    OK(nc_close(ncid));
    ncid = open_for_reading("esdm:many/records");
    check_length(ncid, first_row(together));
    for (int r = 0; r < together; r++)
        check_rows(ncid, v, 1, r);
    OK(nc_close(ncid));
}

/* ---- other communicators -------------------------------------------------------------------- */

static void
path_of_group(int group, char *ret, size_t bytes)
{
    (void) snprintf(ret, bytes, "esdm:many/group-%d", group);
}

/* The ranks of a group, in the reverse order, write a container; each its rows, by the rank in the
 * world. */
static void
make_on(MPI_Comm comm, const char *path, int mode)
{
    int d[2];
    int v;
    int ncid = -1;
    OK(nc_create_par(path, mode, comm, MPI_INFO_NULL, &ncid));
    OK(nc_def_dim(ncid, "y", first_row(size), &d[0]));
    OK(nc_def_dim(ncid, "x", COLUMNS, &d[1]));
    OK(nc_def_var(ncid, "f", NC_INT, 2, d, &v));
    OK(nc_enddef(ncid));
    OK(nc_var_par_access(ncid, v, NC_COLLECTIVE));
    OK(put_own(ncid, v, 5));
    OK(nc_close(ncid));
}

/* Groups work at the same time, without the last rank; then all look at all. */
static void
groups(int mode)
{
    enum { GROUPS = 3 };
    char path[100];
    MPI_Comm comm;
    bool idle = size > 1 && rank == size - 1;
    MPI_Comm_split(MPI_COMM_WORLD, idle ? MPI_UNDEFINED : rank % GROUPS, -rank, &comm);
    if (!idle) {
        path_of_group(rank % GROUPS, path, sizeof path);
        make_on(comm, path, mode);
        MPI_Comm_free(&comm);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    int busy = size > 1 ? size - 1 : size;
    for (int g = 0; g < GROUPS && g < busy; g++) {
        path_of_group(g, path, sizeof path);
        int ncid = open_for_reading(path);
        for (int r = g; r < busy; r += GROUPS)
            check_rows(ncid, 0, 5, r);
        OK(nc_close(ncid));
    }
}

int
main(int argc, char **argv)
{
    checks_start(&argc, &argv);
    for (int i = 1; i < argc; i++) /* files that it is to make, and no more */
        make_on(MPI_COMM_WORLD, argv[i], NC_NETCDF4);
    for (int i = 0; i < FORMATS && argc < 2; i++) {
        rows(formats[i]);
        records(formats[i]);
        groups(formats[i]);
        if ((formats[i] & NC_NETCDF4) != 0)
            compressed(formats[i]);
    }
    if (rank == 0)
        printf("%d ranks: good\n", size);
    MPI_Finalize();
    return 0;
}
