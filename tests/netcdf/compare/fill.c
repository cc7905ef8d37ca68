/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "compare.h"

#include <stdlib.h>

static void
values_and_errors(const world *w)
{
    int ncid = create(w);
    int x = -1;
    int v = -1;
    int u = -1;
    CALL(nc_def_dim(ncid, "x", 3, &x));
    CALL(nc_def_var(ncid, "v", NC_INT, 1, &x, &v));
    CALL(nc_def_var(ncid, "u", NC_FLOAT, 1, &x, &u));
    CALL(nc_put_att_int(ncid, v, "_FillValue", NC_SHORT, 1, (int[]){-1}));
    CALL(nc_put_att_int(ncid, v, "_FillValue", NC_INT, 2, (int[]){-1, -2}));
    CALL(nc_put_att_int(ncid, v, "_FillValue", NC_INT, 0, NULL));
    CALL(nc_put_att_text(ncid, v, "_FillValue", 1, "x"));
    CALL(nc_put_att_int(ncid, v, "_FillValue", NC_INT, 1, (int[]){-99}));
    CALL(nc_put_att_double(ncid, u, "_FillValue", NC_FLOAT, 1, (double[]){1e20}));
    CALL(nc_put_att_int(ncid, NC_GLOBAL, "_FillValue", NC_INT, 2, (int[]){-1, -2}));
    CALL(nc_enddef(ncid));
    note_file(ncid);
    CALL(nc_put_var1_int(ncid, v, (size_t[]){1}, (int[]){5}));
    note_file(ncid);
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_file(ncid);
    CALL(nc_close(ncid));
}

static void
def_var_fill(const world *w)
{
    int ncid = create(w);
    int x = -1;
    int v = -1;
    int u = -1;
    CALL(nc_def_dim(ncid, "x", 3, &x));
    CALL(nc_def_var(ncid, "v", NC_DOUBLE, 1, &x, &v));
    CALL(nc_def_var(ncid, "u", NC_DOUBLE, 1, &x, &u));
    CALL(nc_def_var_fill(ncid, v, 0, (double[]){7.5}));
    CALL(nc_def_var_fill(ncid, v, 0, (double[]){8.5}));
    CALL(nc_def_var_fill(ncid, 9, 0, (double[]){8.5}));
    CALL(nc_def_var_fill(ncid, u, 1, NULL));
    note_file(ncid);
    CALL(nc_def_var_fill(ncid, u, 0, NULL));
    CALL(nc_def_var_fill(ncid, v, 1, NULL));
    CALL(nc_def_var_fill(ncid, v, 0, (double[]){9.5}));
    CALL(nc_enddef(ncid));
    CALL(nc_def_var_fill(ncid, v, 0, (double[]){8.5}));
    note_file(ncid);
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_WRITE);
    note_file(ncid);
    CALL(nc_def_var_fill(ncid, v, 0, (double[]){8.5}));
    CALL(nc_redef(ncid));
    CALL(nc_def_var_fill(ncid, v, 1, NULL));
    CALL(nc_close(ncid));
}

static void
late(const world *w)
{
    int ncid = create(w);
    int x = -1;
    int v = -1;
    int u = -1;
    CALL(nc_def_dim(ncid, "x", 3, &x));
    CALL(nc_def_var(ncid, "v", NC_INT, 1, &x, &v));
    CALL(nc_def_var(ncid, "u", NC_INT, 1, &x, &u));
    CALL(nc_enddef(ncid));
    CALL(nc_put_var_int(ncid, v, (int[]){1, 2, 3}));
    CALL(nc_redef(ncid));
    CALL(nc_put_att_int(ncid, v, "_FillValue", NC_INT, 1, (int[]){-99}));
    CALL(nc_enddef(ncid));
    int got[3] = {0};
    CALL(nc_get_var_int(ncid, v, got));
    note_ints("v", got, 3);
    CALL(nc_close(ncid));
}

static void
modes(const world *w)
{
    int ncid = create(w);
    int old = -1;
    CALL(nc_set_fill(ncid, NC_NOFILL, &old));
    note("%d", old);
    int x = -1;
    int v = -1;
    CALL(nc_def_dim(ncid, "x", 3, &x));
    CALL(nc_def_var(ncid, "v", NC_INT, 1, &x, &v));
    CALL(nc_set_fill(ncid, NC_FILL, &old));
    note("%d", old);
    CALL(nc_def_var(ncid, "u", NC_INT, 1, &x, NULL));
    CALL(nc_set_fill(ncid, 77, &old));
    CALL(nc_set_fill(ncid, NC_FILL, NULL));
    int nofill = -1;
    int value = 0;
    CALL(nc_inq_var_fill(ncid, v, &nofill, &value));
    note("%d %d", nofill != 0, value);
    CALL(nc_inq_var_fill(ncid, 1, &nofill, &value));
    note("%d %d", nofill != 0, value);
    CALL(nc_inq_var_fill(ncid, 1, NULL, &value));
    CALL(nc_inq_var_fill(ncid, 1, &nofill, NULL));
    CALL(nc_inq_var_fill(ncid, 5, &nofill, NULL));
    CALL(nc_enddef(ncid));
    CALL(nc_set_fill(ncid, NC_NOFILL, &old));
    note("%d", old);
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    CALL(nc_set_fill(ncid, NC_NOFILL, &old));
    CALL(nc_close(ncid));
}

static void
strings(const world *w)
{
    int ncid = create(w);
    int x = -1;
    int v = -1;
    int u = -1;
    CALL(nc_def_dim(ncid, "x", 2, &x));
    CALL(nc_def_var(ncid, "v", NC_STRING, 1, &x, &v));
    CALL(nc_def_var(ncid, "u", NC_STRING, 1, &x, &u));
    const char *fill = "missing";
    CALL(nc_def_var_fill(ncid, v, 1, NULL));
    CALL(nc_put_att_string(ncid, v, "_FillValue", 1, &fill));
    CALL(nc_enddef(ncid));
    const char *text = "there";
    CALL(nc_put_var1_string(ncid, v, (size_t[]){1}, &text));
    note_file(ncid);
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_file(ncid);
    CALL(nc_close(ncid));
}

const scenario scenarios_fill[] = {{"fill", "values_and_errors", IN_ALL, values_and_errors},
                                   {"fill", "def_var_fill", IN_ALL, def_var_fill},
                                   {"fill", "late", IN_ALL, late},
                                   {"fill", "modes", IN_ALL, modes},
                                   {"fill", "strings", IN_NC4, strings},
                                   {0}};
