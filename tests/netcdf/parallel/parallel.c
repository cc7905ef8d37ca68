/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What the scenarios share. */

#include "parallel.h"

#include <stdlib.h>
#include <string.h>

int my_rank;
int rank_count;

bool
on_stock(const world *w)
{
    return strncmp(w->path, "esdm:", 5) != 0;
}

void
meet(void)
{
    (void) MPI_Barrier(MPI_COMM_WORLD);
}

/* Whether all ranks have succeeded. */
static bool
all_well(int rc)
{
    int failed = rc != NC_NOERR;
    (void) MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (failed)
        note("gives up");
    return !failed;
}

bool
par_create(const world *w, int *ret_ncid)
{
    *ret_ncid = -1;
    return all_well(CALL(nc_create_par(w->path, w->mode, MPI_COMM_WORLD, MPI_INFO_NULL, ret_ncid)));
}

bool
par_open(const char *path, int mode, int *ret_ncid)
{
    *ret_ncid = -1;
    return all_well(CALL(nc_open_par(path, mode, MPI_COMM_WORLD, MPI_INFO_NULL, ret_ncid)));
}

void
par_note(const char *path)
{
    int ncid = -1;
    if (!par_open(path, NC_NOWRITE, &ncid))
        return;
    note_file(ncid);
    CALL(nc_close(ncid));
}

bool
par_make(const world *w, int *ret_ncid, int *ret_record, int *ret_fixed)
{
    int d[3] = {-1, -1, -1};
    if (!par_create(w, ret_ncid))
        return false;
    CALL(nc_def_dim(*ret_ncid, "t", NC_UNLIMITED, &d[0]));
    CALL(nc_def_dim(*ret_ncid, "y", (size_t) ROWS * (size_t) rank_count, &d[1]));
    CALL(nc_def_dim(*ret_ncid, "x", COLUMNS, &d[2]));
    CALL(nc_def_var(*ret_ncid, "r", NC_INT, 3, d, ret_record));
    CALL(nc_def_var(*ret_ncid, "f", NC_INT, 2, d + 1, ret_fixed));
    return all_well(CALL(nc_enddef(*ret_ncid)));
}

void
numbers(int step, int *ret)
{
    for (int i = 0; i < ROWS * COLUMNS; i++)
        ret[i] = 10000 * step + 100 * my_rank + i;
}

int
put_record(int ncid, int varid, size_t t)
{
    int data[ROWS * COLUMNS];
    numbers((int) t, data);
    return CALL(nc_put_vara_int(ncid, varid, (size_t[]){t, (size_t) (ROWS * my_rank), 0},
                                (size_t[]){1, ROWS, COLUMNS}, data));
}

int
put_rows(int ncid, int varid, int step)
{
    int data[ROWS * COLUMNS];
    numbers(step, data);
    return CALL(nc_put_vara_int(ncid, varid, (size_t[]){(size_t) (ROWS * my_rank), 0},
                                (size_t[]){ROWS, COLUMNS}, data));
}

static void
note_box(int ncid, int varid, const size_t *count, size_t elements)
{
    int *data = calloc(elements, sizeof *data);
    if (data == NULL)
        return;
    if (CALL(nc_get_vara_int(ncid, varid, (size_t[]){0, 0, 0}, count, data)) == NC_NOERR)
        note_bytes("values", data, elements * sizeof *data);
    free(data);
}

void
note_rows(int ncid, int varid)
{
    size_t rows = (size_t) (ROWS * rank_count);
    note_box(ncid, varid, (size_t[]){rows, COLUMNS}, rows * COLUMNS);
}

void
note_records(int ncid, int varid, size_t steps)
{
    size_t rows = (size_t) (ROWS * rank_count);
    note_box(ncid, varid, (size_t[]){steps, rows, COLUMNS}, steps * rows * COLUMNS);
}
