/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Reading and writing: slabs, strides, holes, several records, overwriting, and their errors. */
#include "compare.h"

#include <string.h>

/* A record variable of 4 records and a fixed one, both 5 x 6, with 100*t + 10*y + x. */
static int
make(const world *w, int *ret_record, int *ret_fixed)
{
    int ncid = create(w);
    int d[3] = {-1, -1, -1};
    CALL(nc_def_dim(ncid, "t", NC_UNLIMITED, &d[0]));
    CALL(nc_def_dim(ncid, "y", 5, &d[1]));
    CALL(nc_def_dim(ncid, "x", 6, &d[2]));
    CALL(nc_def_var(ncid, "r", NC_INT, 3, d, ret_record));
    CALL(nc_def_var(ncid, "f", NC_SHORT, 2, d + 1, ret_fixed));
    CALL(nc_enddef(ncid));
    int data[120];
    for (int i = 0; i < 120; i++)
        data[i] = i / 30 * 100 + i / 6 % 5 * 10 + i % 6;
    CALL(nc_put_vara_int(ncid, *ret_record, (size_t[]){0, 0, 0}, (size_t[]){4, 5, 6}, data));
    CALL(nc_put_var_int(ncid, *ret_fixed, data));
    return ncid;
}

static void
slabs(const world *w)
{
    int r = -1;
    int f = -1;
    int ncid = make(w, &r, &f);
    int got[120];
    memset(got, 0x55, sizeof got);
    CALL(nc_get_vara_int(ncid, r, (size_t[]){1, 2, 3}, (size_t[]){2, 2, 2}, got));
    note_ints("vara", got, 10);
    CALL(nc_get_var1_int(ncid, r, (size_t[]){3, 4, 5}, got));
    note_ints("var1", got, 1);
    CALL(nc_get_vars_int(ncid, r, (size_t[]){0, 0, 1}, (size_t[]){2, 3, 2}, (ptrdiff_t[]){3, 2, 4},
                         got));
    note_ints("vars", got, 14);
    CALL(nc_get_varm_int(ncid, r, (size_t[]){0, 0, 0}, (size_t[]){2, 3, 2}, (ptrdiff_t[]){2, 1, 3},
                         (ptrdiff_t[]){1, 2, 6}, got));
    note_ints("varm", got, 14);
    CALL(nc_get_varm_int(ncid, r, (size_t[]){0, 0, 0}, (size_t[]){1, 3, 2}, NULL,
                         (ptrdiff_t[]){6, 1, 3}, got));
    note_ints("varm2", got, 8);
    CALL(nc_get_varm_int(ncid, f, (size_t[]){1, 1}, (size_t[]){2, 3}, NULL, NULL, got));
    note_ints("varm3", got, 8);
    CALL(nc_put_vars_int(ncid, f, (size_t[]){1, 1}, (size_t[]){2, 2}, (ptrdiff_t[]){2, 3},
                         (int[]){-1, -2, -3, -4}));
    CALL(nc_put_varm_int(ncid, f, (size_t[]){0, 0}, (size_t[]){2, 2}, (ptrdiff_t[]){4, 5},
                         (ptrdiff_t[]){1, 2}, (int[]){-11, -12, -13, -14}));
    CALL(nc_put_vars_int(ncid, r, (size_t[]){1, 0, 0}, (size_t[]){3, 1, 2}, (ptrdiff_t[]){2, 1, 5},
                         (int[]){1, 2, 3, 4, 5, 6}));
    note_file(ncid);
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_file(ncid);
    CALL(nc_close(ncid));
}

static void
read_errors(const world *w)
{
    int r = -1;
    int f = -1;
    int ncid = make(w, &r, &f);
    int got[400];
    CALL(nc_get_vara_int(ncid, 9, (size_t[]){0, 0}, (size_t[]){1, 1}, got));
    CALL(nc_get_vara_int(ncid, -1, (size_t[]){0, 0}, (size_t[]){1, 1}, got));
    CALL(nc_get_vara_int(ncid, f, (size_t[]){5, 0}, (size_t[]){1, 1}, got));
    CALL(nc_get_vara_int(ncid, f, (size_t[]){5, 0}, (size_t[]){0, 1}, got));
    CALL(nc_get_vara_int(ncid, f, (size_t[]){6, 0}, (size_t[]){0, 1}, got));
    CALL(nc_get_vara_int(ncid, f, (size_t[]){0, 6}, (size_t[]){0, 1}, got));
    CALL(nc_get_vara_int(ncid, f, (size_t[]){4, 0}, (size_t[]){2, 1}, got));
    CALL(nc_get_vara_int(ncid, f, (size_t[]){4, 0}, (size_t[]){0, 7}, got));
    CALL(nc_get_vara_int(ncid, f, (size_t[]){4, 3}, (size_t[]){1, 4}, got));
    CALL(nc_get_vara_int(ncid, r, (size_t[]){4, 0, 0}, (size_t[]){1, 1, 1}, got));
    CALL(nc_get_vara_int(ncid, r, (size_t[]){4, 0, 0}, (size_t[]){0, 1, 1}, got));
    CALL(nc_get_vara_int(ncid, r, (size_t[]){5, 0, 0}, (size_t[]){0, 1, 1}, got));
    CALL(nc_get_vara_int(ncid, r, (size_t[]){3, 0, 0}, (size_t[]){2, 1, 1}, got));
    CALL(nc_get_vara_int(ncid, f, (size_t[]){(size_t) -1, 0}, (size_t[]){1, 1}, got));
    CALL(nc_get_vara_short(ncid, f, (size_t[]){1, 0}, (size_t[]){(size_t) 1 << 62, 1},
                           (short *) got));
    CALL(nc_get_var1_int(ncid, f, (size_t[]){5, 6}, got));
    CALL(nc_get_vars_int(ncid, f, (size_t[]){0, 0}, (size_t[]){1, 1}, (ptrdiff_t[]){0, 1}, got));
    CALL(nc_get_vars_int(ncid, f, (size_t[]){0, 0}, (size_t[]){1, 1}, (ptrdiff_t[]){1, -1}, got));
    CALL(nc_get_vars_int(ncid, f, (size_t[]){0, 0}, (size_t[]){2, 1}, (ptrdiff_t[]){4, 1}, got));
    CALL(nc_get_vars_int(ncid, f, (size_t[]){9, 0}, (size_t[]){2, 1}, (ptrdiff_t[]){0, 1}, got));
    CALL(nc_get_vara_text(ncid, f, (size_t[]){0, 0}, (size_t[]){1, 1}, (char *) got));
    CALL(nc_get_vara_text(ncid, f, (size_t[]){9, 0}, (size_t[]){1, 1}, (char *) got));
    CALL(nc_get_vara_int(ncid, f, (size_t[]){0, 0}, NULL, got));
    CALL(nc_get_var_int(ncid, f, got));
    CALL(nc_close(ncid));
}

static void
write_errors(const world *w)
{
    int r = -1;
    int f = -1;
    int ncid = make(w, &r, &f);
    int data[120] = {0};
    CALL(nc_put_vara_int(ncid, 9, (size_t[]){0, 0}, (size_t[]){1, 1}, data));
    CALL(nc_put_vara_int(ncid, f, (size_t[]){5, 0}, (size_t[]){1, 1}, data));
    CALL(nc_put_vara_int(ncid, f, (size_t[]){5, 0}, (size_t[]){0, 1}, data));
    CALL(nc_put_vara_int(ncid, f, (size_t[]){6, 0}, (size_t[]){0, 1}, data));
    CALL(nc_put_vara_int(ncid, f, (size_t[]){4, 0}, (size_t[]){2, 1}, data));
    CALL(nc_put_vara_int(ncid, f, (size_t[]){4, 0}, (size_t[]){0, 7}, data));
    CALL(nc_put_vara_int(ncid, f, (size_t[]){4, 3}, (size_t[]){1, 4}, data));
    CALL(nc_put_vara_int(ncid, r, (size_t[]){0, 5, 0}, (size_t[]){1, 1, 1}, data));
    CALL(nc_put_vara_int(ncid, r, (size_t[]){0, 0, 0}, (size_t[]){1, 6, 1}, data));
    CALL(nc_put_vars_int(ncid, f, (size_t[]){0, 0}, (size_t[]){1, 1}, (ptrdiff_t[]){0, 1}, data));
    CALL(nc_put_vars_int(ncid, f, (size_t[]){0, 0}, (size_t[]){2, 1}, (ptrdiff_t[]){4, 1}, data));
    CALL(nc_put_vara_text(ncid, f, (size_t[]){0, 0}, (size_t[]){1, 1}, "x"));
    CALL(nc_put_vara_text(ncid, f, (size_t[]){9, 0}, (size_t[]){1, 1}, "x"));
    CALL(nc_put_var_int(ncid, r, data));
    CALL(nc_redef(ncid));
    CALL(nc_put_vara_int(ncid, f, (size_t[]){0, 0}, (size_t[]){1, 1}, data));
    CALL(nc_get_vara_int(ncid, f, (size_t[]){0, 0}, (size_t[]){1, 1}, data));
    CALL(nc_put_vara_int(ncid, 9, (size_t[]){0, 0}, (size_t[]){1, 1}, data));
    CALL(nc_put_vara_text(ncid, f, (size_t[]){0, 0}, (size_t[]){1, 1}, "x"));
    CALL(nc_enddef(ncid));
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    CALL(nc_put_vara_int(ncid, f, (size_t[]){9, 0}, (size_t[]){1, 1}, data));
    CALL(nc_put_vara_text(ncid, f, (size_t[]){0, 0}, (size_t[]){1, 1}, "x"));
    CALL(nc_put_vara_int(ncid, 9, (size_t[]){0, 0}, (size_t[]){1, 1}, data));
    CALL(nc_close(ncid));
}

static void
whole_and_holes(const world *w)
{
    int ncid = create(w);
    int d[2] = {-1, -1};
    int v[12];
    CALL(nc_def_dim(ncid, "t", NC_UNLIMITED, &d[0]));
    CALL(nc_def_dim(ncid, "x", 4, &d[1]));
    for (int type = NC_BYTE; type <= NC_DOUBLE; type++) {
        char name[] = "vA";
        name[1] = (char) ('A' + type);
        CALL(nc_def_var(ncid, name, type, 2, d, &v[type]));
        name[0] = 'f';
        CALL(nc_def_var(ncid, name, type, 1, d + 1, NULL));
    }
    CALL(nc_enddef(ncid));
    CALL(nc_put_var1_double(ncid, v[NC_DOUBLE], (size_t[]){2, 1}, (double[]){4.5}));
    CALL(nc_put_var1_text(ncid, v[NC_CHAR], (size_t[]){1, 1}, "c"));
    note_file(ncid);
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_WRITE);
    note_file(ncid);
    CALL(nc_put_vara_double(ncid, v[NC_BYTE], (size_t[]){1, 0}, (size_t[]){1, 4},
                            (double[]){1, 2, 3, 4}));
    note_file(ncid);
    CALL(nc_close(ncid));
}

static void
several_records(const world *w)
{
    int ncid = create(w);
    int d[2] = {-1, -1};
    int v = -1;
    int a = -1;
    CALL(nc_def_dim(ncid, "t", NC_UNLIMITED, &d[0]));
    CALL(nc_def_dim(ncid, "m", NC_UNLIMITED, &d[1]));
    CALL(nc_def_var(ncid, "v", NC_INT, 2, d, &v));
    CALL(nc_def_var(ncid, "a", NC_INT, 2, (int[]){d[1], d[0]}, &a));
    CALL(nc_put_vara_int(ncid, v, (size_t[]){0, 0}, (size_t[]){2, 3}, (int[]){1, 2, 3, 4, 5, 6}));
    CALL(nc_put_vara_int(ncid, a, (size_t[]){4, 1}, (size_t[]){1, 1}, (int[]){7}));
    int got[40];
    memset(got, 0, sizeof got);
    CALL(nc_get_vara_int(ncid, a, (size_t[]){0, 0}, (size_t[]){5, 2}, got));
    note_ints("a", got, 10);
    CALL(nc_get_vara_int(ncid, a, (size_t[]){0, 0}, (size_t[]){6, 2}, got));
    CALL(nc_get_vara_int(ncid, a, (size_t[]){5, 0}, (size_t[]){1, 1}, got));
    CALL(nc_get_vara_int(ncid, v, (size_t[]){0, 0}, (size_t[]){2, 3}, got));
    note_ints("v", got, 6);
    CALL(nc_close(ncid));
}

static void
overwriting(const world *w)
{
    int r = -1;
    int f = -1;
    int ncid = make(w, &r, &f);
    int data[30];
    for (int i = 0; i < 30; i++)
        data[i] = 1000 + i;
    CALL(nc_put_vara_int(ncid, f, (size_t[]){0, 0}, (size_t[]){3, 3}, data));
    CALL(nc_put_vara_int(ncid, f, (size_t[]){1, 1}, (size_t[]){3, 3}, data + 9));
    CALL(nc_put_vara_int(ncid, f, (size_t[]){1, 1}, (size_t[]){3, 3}, data + 10));
    note_file(ncid);
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_WRITE);
    CALL(nc_put_vara_int(ncid, f, (size_t[]){2, 2}, (size_t[]){2, 2}, data));
    CALL(nc_sync(ncid));
    CALL(nc_put_vara_int(ncid, f, (size_t[]){0, 5}, (size_t[]){5, 1}, data));
    note_file(ncid);
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_file(ncid);
    CALL(nc_close(ncid));
}

const scenario scenarios_data[] = {{"data", "slabs", IN_ALL, slabs},
                                   {"data", "read_errors", IN_ALL, read_errors},
                                   {"data", "write_errors", IN_ALL, write_errors},
                                   {"data", "whole_and_holes", IN_ALL, whole_and_holes},
                                   {"data", "several_records", IN_NC4, several_records},
                                   {"data", "overwriting", IN_ALL, overwriting},
                                   {0}};
