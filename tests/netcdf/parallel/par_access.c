/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Independent and collective access, and dimensions that ranks make longer. */

#include "parallel.h"

#include <stdlib.h>
#include <string.h>

static void
independent_rows(const world *w)
{
    int ncid, r, f;
    if (!par_make(w, &ncid, &r, &f))
        return;
    put_rows(ncid, f, 1);
    int mine[ROWS * COLUMNS] = {0};
    CALL(nc_get_vara_int(ncid, f, (size_t[]){(size_t) (ROWS * my_rank), 0},
                         (size_t[]){ROWS, COLUMNS}, mine));
    note_bytes("own rows", mine, sizeof mine);
    CALL(nc_sync(ncid));
    meet();
    note_rows(ncid, f);
    CALL(nc_close(ncid));
    par_note(w->path);
}

static void
collective_rows(const world *w)
{
    int ncid, r, f;
    if (!par_make(w, &ncid, &r, &f))
        return;
    CALL(nc_var_par_access(ncid, f, NC_COLLECTIVE));
    put_rows(ncid, f, 1);
    note_rows(ncid, f);
    /* Odd ranks have nothing to write. */
    int data[ROWS * COLUMNS];
    numbers(2, data);
    CALL(nc_put_vara_int(ncid, f, (size_t[]){(size_t) (ROWS * my_rank), 0},
                         (size_t[]){my_rank % 2 == 0 ? ROWS : 0, COLUMNS}, data));
    note_rows(ncid, f);
    int got[ROWS * COLUMNS] = {0};
    CALL(
        nc_get_vara_int(ncid, f, (size_t[]){0, 0}, (size_t[]){my_rank == 0 ? 1 : 0, COLUMNS}, got));
    note_bytes("one reads", got, sizeof got);
    CALL(nc_close(ncid));
    par_note(w->path);
}

static void
strides_and_maps(const world *w)
{
    int ncid, r, f;
    if (!par_make(w, &ncid, &r, &f))
        return;
    CALL(nc_var_par_access(ncid, f, NC_COLLECTIVE));
    put_rows(ncid, f, 1);
    int data[ROWS * COLUMNS];
    numbers(3, data);
    /* Each rank takes every rank_count-th row, so that the selections interleave. */
    CALL(nc_put_vars_int(ncid, f, (size_t[]){(size_t) my_rank, 1}, (size_t[]){ROWS, 2},
                         (ptrdiff_t[]){rank_count, 2}, data));
    note_rows(ncid, f);
    CALL(nc_put_varm_int(ncid, f, (size_t[]){(size_t) my_rank, 0}, (size_t[]){ROWS, 2},
                         (ptrdiff_t[]){rank_count, 4}, (ptrdiff_t[]){1, ROWS}, data));
    note_rows(ncid, f);
    CALL(nc_var_par_access(ncid, f, NC_INDEPENDENT));
    int got[ROWS * COLUMNS] = {0};
    CALL(nc_get_vars_int(ncid, f, (size_t[]){(size_t) my_rank, 0}, (size_t[]){ROWS, 3},
                         (ptrdiff_t[]){rank_count, 2}, got));
    note_bytes("vars", got, sizeof got);
    CALL(nc_get_varm_int(ncid, f, (size_t[]){(size_t) my_rank, 0}, (size_t[]){ROWS, 2},
                         (ptrdiff_t[]){rank_count, 2}, (ptrdiff_t[]){1, ROWS}, got));
    note_bytes("varm", got, sizeof got);
    CALL(nc_get_var1_int(ncid, f, (size_t[]){(size_t) my_rank, 2}, got));
    note_ints("var1", got, 1);
    CALL(nc_close(ncid));
    par_note(w->path);
}

static void
switching(const world *w)
{
    int ncid, r, f;
    if (!par_make(w, &ncid, &r, &f))
        return;
    CALL(nc_var_par_access(ncid, f, NC_INDEPENDENT));
    CALL(nc_var_par_access(ncid, f, NC_COLLECTIVE));
    CALL(nc_var_par_access(ncid, f, NC_COLLECTIVE));
    CALL(nc_var_par_access(ncid, f, 2));
    CALL(nc_var_par_access(ncid, f, -1));
    if (w->format == NC_FORMAT_NETCDF4 || w->format == NC_FORMAT_NETCDF4_CLASSIC)
        CALL(nc_var_par_access(ncid + 1, f, NC_COLLECTIVE)); /* PnetCDF does not look */
    put_rows(ncid, f, 1);
    CALL(nc_var_par_access(ncid, f, NC_INDEPENDENT));
    if (my_rank == 0)
        put_rows(ncid, f, 2);
    CALL(nc_close(ncid));
    CALL(nc_var_par_access(ncid, f, NC_INDEPENDENT));
    par_note(w->path);
}

static void
switching_without_variable(const world *w)
{
    int ncid, r, f;
    if (!par_make(w, &ncid, &r, &f))
        return;
    CALL(nc_var_par_access(ncid, NC_GLOBAL, NC_COLLECTIVE));
    CALL(nc_var_par_access(ncid, 2, NC_COLLECTIVE));
    CALL(nc_var_par_access(ncid, -2, NC_INDEPENDENT));
    CALL(nc_close(ncid));
}

/* A file of one process has no access modes. */
static void
switching_in_serial(const world *w)
{
    int ncid = -1;
    int varid = -1;
    if (my_rank == 0) {
        CALL(nc_create(w->path, w->mode, &ncid));
        CALL(nc_def_var(ncid, "v", NC_INT, 0, NULL, &varid));
        CALL(nc_enddef(ncid));
        CALL(nc_var_par_access(ncid, varid, NC_COLLECTIVE));
        CALL(nc_close(ncid));
    }
    note("done");
}

/* ---- unlimited dimensions ------------------------------------------------------------------- */

static void
note_length(int ncid, int dimid)
{
    size_t length = 99;
    CALL(nc_inq_dimlen(ncid, dimid, &length));
    note("length %zu", length);
}

static void
records_in_turn(const world *w)
{
    int ncid, r, f;
    if (!par_make(w, &ncid, &r, &f))
        return;
    put_rows(ncid, f, 9);
    CALL(nc_var_par_access(ncid, r, NC_COLLECTIVE));
    note_length(ncid, 0);
    for (size_t t = 0; t < 4; t++) {
        put_record(ncid, r, t);
        note_length(ncid, 0);
    }
    note_records(ncid, r, 4);
    CALL(nc_sync(ncid));
    note_length(ncid, 0);
    CALL(nc_close(ncid));
    par_note(w->path);
}

/* Each rank writes whole records of its own: the highest one decides the length. */
static void
records_of_ranks(const world *w)
{
    int ncid, r, f;
    if (!par_make(w, &ncid, &r, &f))
        return;
    put_rows(ncid, f, 9);
    CALL(nc_var_par_access(ncid, r, NC_COLLECTIVE));
    size_t rows = (size_t) (ROWS * rank_count);
    int *data = calloc(2 * rows, COLUMNS * sizeof *data);
    for (size_t i = 0; data != NULL && i < 2 * rows * COLUMNS; i++)
        data[i] = 1000 * my_rank + (int) i;
    CALL(nc_put_vara_int(ncid, r, (size_t[]){(size_t) my_rank, 0, 0}, (size_t[]){1, rows, COLUMNS},
                         data));
    note_length(ncid, 0);
    note_records(ncid, r, (size_t) rank_count);
    CALL(nc_put_vara_int(ncid, r, (size_t[]){(size_t) (rank_count + 2 * my_rank), 0, 0},
                         (size_t[]){my_rank % 2 == 0 ? 2 : 0, rows, COLUMNS}, data));
    note_length(ncid, 0);
    free(data);
    CALL(nc_close(ncid));
    int again = -1;
    if (par_open(w->path, NC_NOWRITE, &again)) {
        note_length(again, 0);
        note_records(again, r, (size_t) rank_count);
        CALL(nc_close(again));
    }
}

/* In netCDF-4 an independent write cannot make a dimension longer; within its length it can write.
 */
static void
records_independently(const world *w)
{
    int ncid, r, f;
    if (!par_make(w, &ncid, &r, &f))
        return;
    put_record(ncid, r, 0);
    CALL(nc_var_par_access(ncid, r, NC_COLLECTIVE));
    put_record(ncid, r, 0);
    put_record(ncid, r, 1);
    CALL(nc_var_par_access(ncid, r, NC_INDEPENDENT));
    if (my_rank == rank_count - 1)
        put_record(ncid, r, 1);
    put_record(ncid, r, 2);
    note_length(ncid, 0);
    CALL(nc_sync(ncid));
    note_length(ncid, 0);
    CALL(nc_close(ncid));
    par_note(w->path);
}

/* PnetCDF: ranks append by themselves, and agree on the length at nc_sync(). */
static void
classic_records_independently(const world *w)
{
    int ncid, r, f;
    if (!par_make(w, &ncid, &r, &f))
        return;
    put_rows(ncid, f, 9);
    for (size_t t = 0; t < (size_t) rank_count; t++)
        put_record(ncid, r, t);
    note_length(ncid, 0);
    CALL(nc_sync(ncid));
    meet();
    note_length(ncid, 0);
    note_records(ncid, r, (size_t) rank_count);
    CALL(nc_close(ncid));
    par_note(w->path);
}

static void
records_past_the_end(const world *w)
{
    int ncid, r, f;
    if (!par_make(w, &ncid, &r, &f))
        return;
    put_rows(ncid, f, 9);
    CALL(nc_var_par_access(ncid, r, NC_COLLECTIVE));
    put_record(ncid, r, 0);
    put_record(ncid, r, 1);
    CALL(nc_var_par_access(ncid, r, NC_INDEPENDENT));
    int got[2 * COLUMNS] = {0};
    CALL(nc_get_vara_int(ncid, r, (size_t[]){2, 0, 0}, (size_t[]){1, 1, COLUMNS}, got));
    CALL(nc_get_vara_int(ncid, r, (size_t[]){1, 0, 0}, (size_t[]){2, 1, COLUMNS}, got));
    CALL(nc_get_vara_int(ncid, r, (size_t[]){3, 0, 0}, (size_t[]){1, 1, COLUMNS}, got));
    CALL(nc_get_vara_int(ncid, r, (size_t[]){1, 0, 0}, (size_t[]){1, 1, COLUMNS + 1}, got));
    CALL(nc_put_vara_int(ncid, r, (size_t[]){1, 0, 0}, (size_t[]){1, 1, COLUMNS + 1}, got));
    CALL(nc_put_vara_int(ncid, f, (size_t[]){(size_t) (ROWS * rank_count), 0}, (size_t[]){1, 1},
                         got));
    CALL(nc_close(ncid));
    par_note(w->path);
}

static void
several_unlimited(const world *w)
{
    int ncid = -1;
    int d[2] = {-1, -1};
    int v[2] = {-1, -1};
    if (!par_create(w, &ncid))
        return;
    CALL(nc_def_dim(ncid, "a", NC_UNLIMITED, &d[0]));
    CALL(nc_def_dim(ncid, "b", NC_UNLIMITED, &d[1]));
    CALL(nc_def_var(ncid, "v", NC_INT, 2, d, &v[0]));
    CALL(nc_def_var(ncid, "w", NC_INT, 1, &d[1], &v[1]));
    CALL(nc_enddef(ncid));
    CALL(nc_var_par_access(ncid, v[0], NC_COLLECTIVE));
    CALL(nc_var_par_access(ncid, v[1], NC_COLLECTIVE));
    int data[8] = {1, 2, 3, 4, 5, 6, 7, my_rank};
    CALL(nc_put_vara_int(ncid, v[0], (size_t[]){(size_t) my_rank, 0}, (size_t[]){1, 4}, data));
    note_length(ncid, d[0]);
    note_length(ncid, d[1]);
    CALL(nc_put_vara_int(ncid, v[1], (size_t[]){(size_t) (2 * my_rank)}, (size_t[]){2}, data + 6));
    note_length(ncid, d[1]);
    CALL(nc_close(ncid));
    par_note(w->path);
}

/* ---- values --------------------------------------------------------------------------------- */

static void
conversions(const world *w)
{
    int ncid = -1;
    int dim = -1;
    int v[3] = {-1, -1, -1};
    static const nc_type types[] = {NC_BYTE, NC_FLOAT, NC_DOUBLE};
    static const char *const names[] = {"byte", "float", "double"};
    if (!par_create(w, &ncid))
        return;
    CALL(nc_def_dim(ncid, "x", (size_t) (3 * rank_count), &dim));
    for (int i = 0; i < 3; i++)
        CALL(nc_def_var(ncid, names[i], types[i], 1, &dim, &v[i]));
    CALL(nc_enddef(ncid));
    size_t start = (size_t) (3 * my_rank);
    /* PnetCDF stores the fill value in place of what does not fit. */
    bool fitting = (w->format != NC_FORMAT_NETCDF4 && w->format != NC_FORMAT_NETCDF4_CLASSIC) &&
                   left_out("pnetcdf-out-of-range");
    double values[3] = {my_rank, my_rank == 1 && !fitting ? 200.0 : -5.5,
                        my_rank == 2 && !fitting ? 1e300 : 0.25};
    for (int access = 0; access < 2; access++) {
        for (int i = 0; i < 3; i++) {
            CALL(nc_var_par_access(ncid, v[i], access == 0 ? NC_INDEPENDENT : NC_COLLECTIVE));
            CALL(nc_put_vara_double(ncid, v[i], &start, (size_t[]){3}, values));
            int got[3] = {0};
            CALL(nc_get_vara_int(ncid, v[i], &start, (size_t[]){2}, got));
            note_ints("as int", got, 2);
        }
    }
    CALL(nc_close(ncid));
    par_note(w->path);
}

/* Many small writes, each rank in an order of its own. */
static void
elements(const world *w)
{
    int ncid, r, f;
    if (!par_make(w, &ncid, &r, &f))
        return;
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        int at = (i * 7 + my_rank) % (ROWS * COLUMNS);
        int value = 100 * my_rank + at;
        CALL(nc_put_var1_int(
            ncid, f, (size_t[]){(size_t) (ROWS * my_rank + at / COLUMNS), (size_t) (at % COLUMNS)},
            &value));
    }
    CALL(nc_sync(ncid));
    meet();
    note_rows(ncid, f);
    CALL(nc_close(ncid));
    par_note(w->path);
}

static void
scalars(const world *w)
{
    int ncid = -1;
    int varid = -1;
    int value = 0;
    if (!par_create(w, &ncid))
        return;
    CALL(nc_def_var(ncid, "s", NC_INT, 0, NULL, &varid));
    CALL(nc_enddef(ncid));
    if (my_rank == rank_count - 1)
        CALL(nc_put_var_int(ncid, varid, &(int){41}));
    CALL(nc_sync(ncid));
    meet();
    CALL(nc_get_var_int(ncid, varid, &value));
    note("value %d", value);
    meet();
    CALL(nc_var_par_access(ncid, varid, NC_COLLECTIVE));
    CALL(nc_put_var_int(ncid, varid, &(int){42}));
    CALL(nc_get_var_int(ncid, varid, &value));
    note("value %d", value);
    CALL(nc_close(ncid));
    par_note(w->path);
}

const scenario scenarios_par_access[] = {
    {"par_access", "independent_rows", IN_ALL, independent_rows},
    {"par_access", "collective_rows", IN_ALL, collective_rows},
    {"par_access", "strides_and_maps", IN_ALL, strides_and_maps},
    {"par_access", "switching", IN_ALL, switching},
    {"par_access", "switching_without_variable", IN_ALL, switching_without_variable},
    {"par_access", "switching_in_serial", IN_ALL, switching_in_serial},
    {"par_access", "records_in_turn", IN_ALL, records_in_turn},
    {"par_access", "records_of_ranks", IN_ALL, records_of_ranks},
    {"par_access", "records_independently", IN_HDF5, records_independently},
    {"par_access", "classic_records_independently", IN_CDF, classic_records_independently},
    {"par_access", "records_past_the_end", IN_ALL, records_past_the_end},
    {"par_access", "several_unlimited", IN_NC4, several_unlimited},
    {"par_access", "conversions", IN_ALL, conversions},
    {"par_access", "elements", IN_ALL, elements},
    {"par_access", "scalars", IN_ALL, scalars},
    {NULL, NULL, 0, NULL}};
