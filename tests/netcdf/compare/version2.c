/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The interface of netCDF version 2, and copying of variables. */

#include "compare.h"

#include <string.h>

static void
define(int ncid, int *ret_var, int *ret_rec)
{
    ncopts = 0; /* else errors end the program */
    int t = CALL(ncdimdef(ncid, "t", NC_UNLIMITED));
    int x = CALL(ncdimdef(ncid, "x", 4));
    *ret_var = CALL(ncvardef(ncid, "v", NC_INT, 1, &x));
    *ret_rec = CALL(ncvardef(ncid, "r", NC_SHORT, 2, (int[]){t, x}));
    /* Of record variables' starts stock's ncrecput() sets as many as there are record variables. */
    CALL(ncvardef(ncid, "s", NC_BYTE, 1, &t));
    CALL(ncattput(ncid, *ret_var, "units", NC_CHAR, 1, "m"));
    CALL(ncattput(ncid, NC_GLOBAL, "n", NC_DOUBLE, 2, (double[]){1, 2}));
    CALL(ncattcopy(ncid, *ret_var, "units", ncid, NC_GLOBAL));
    CALL(ncattrename(ncid, NC_GLOBAL, "units", "unit"));
    CALL(ncattdel(ncid, NC_GLOBAL, "unit"));
    CALL(ncattdel(ncid, NC_GLOBAL, "nobody"));
    CALL(ncdimrename(ncid, x, "xx"));
    CALL(ncvarrename(ncid, *ret_var, "vv"));
    CALL(ncsetfill(ncid, NC_FILL));
    CALL(ncendef(ncid));
}

static void
data(int ncid, int v, int r)
{
    int got[8] = {0};
    short records[8] = {0};
    long at = 2;
    CALL(ncvarput(ncid, v, (long[]){0}, (long[]){4}, (int[]){1, 2, 3, 4}));
    CALL(ncvarput1(ncid, v, &at, (int[]){33}));
    CALL(ncvarputs(ncid, v, (long[]){0}, (long[]){2}, (long[]){3}, (int[]){-1, -4}));
    CALL(ncvarputg(ncid, v, (long[]){1}, (long[]){1}, (long[]){1}, (long[]){4}, (int[]){-2}));
    CALL(ncvarget(ncid, v, (long[]){0}, (long[]){4}, got));
    note_ints("get", got, 4);
    CALL(ncvarget1(ncid, v, &at, got));
    CALL(ncvargets(ncid, v, (long[]){0}, (long[]){2}, (long[]){3}, got + 1));
    CALL(ncvargetg(ncid, v, (long[]){0}, (long[]){2}, (long[]){2}, (long[]){4}, got + 4));
    note_ints("got", got, 8);
    CALL(ncvarget(ncid, v, (long[]){3}, (long[]){4}, got));
    signed char byte = 0;
    void *in[2] = {(short[]){5, 6, 7, 8}, (signed char[]){9}};
    void *out[2] = {records, &byte};
    int count = -1;
    int ids[4] = {-1, -1, -1, -1};
    long sizes[4] = {-1, -1, -1, -1};
    CALL(ncrecput(ncid, 1, in));
    CALL(ncrecget(ncid, 1, out));
    CALL(ncrecinq(ncid, &count, ids, sizes));
    note("records %d %d %ld %d %ld: %d %d %d", count, ids[0], sizes[0], ids[1], sizes[1],
         records[0], records[3], byte);
    (void) r;
    CALL(ncsync(ncid));
}

static void
inquire(int ncid)
{
    char name[NC_MAX_NAME + 1] = "";
    long length = -1;
    nc_type type = -1;
    int n[4] = {-1, -1, -1, -1};
    CALL(ncinquire(ncid, n, n + 1, n + 2, n + 3));
    note_ints("inquire", n, 4);
    CALL(ncdimid(ncid, "xx"));
    CALL(ncdiminq(ncid, 1, name, &length));
    note("%s %ld", name, length);
    CALL(ncvarid(ncid, "vv"));
    CALL(ncvarinq(ncid, 0, name, &type, n, n + 1, n + 3));
    note("%s %d", name, type);
    CALL(ncattname(ncid, 0, 0, name));
    CALL(ncattinq(ncid, 0, "units", &type, n));
    CALL(ncattget(ncid, 0, "units", name));
    note("%d %d %c", type, n[0], name[0]);
}

static void
all_calls(const world *w)
{
    int v = -1;
    int r = -1;
    int options = ncopts;
    ncopts = 0;
    int ncid = -1;
    int before = -1;
    (void) nc_set_default_format(w->format, &before);
    ncid = nccreate(w->path, NC_CLOBBER);
    (void) nc_set_default_format(before, NULL);
    note_call(__FILE__, __LINE__, "nccreate(path)", ncid < 0);
    define(ncid, &v, &r);
    data(ncid, v, r);
    CALL(ncredef(ncid));
    CALL(ncabort(ncid));
    ncid = ncopen(w->path, NC_NOWRITE);
    note_call(__FILE__, __LINE__, "ncopen(path)", ncid < 0);
    inquire(ncid);
    CALL(ncclose(ncid));
    CALL(ncclose(ncid));
    ncopts = options;
}

static void
copies(const world *w)
{
    int v = -1;
    int r = -1;
    int to = -1;
    int ncid = create(w);
    define(ncid, &v, &r);
    CALL(nc_put_var_int(ncid, v, (int[]){1, 2, 3, 4}));
    CALL(nc_create(w->other, w->mode, &to));
    CALL(nc_def_dim(to, "xx", 4, NULL));
    CALL(nc_copy_var(ncid, v, to));
    CALL(nc_copy_var(ncid, v, to));
    CALL(nc_copy_var(ncid, 9, to));
    note_file(to);
    CALL(nc_close(to));
    CALL(nc_close(ncid));
}

const scenario scenarios_version2[] = {
    {"version2", "all_calls", IN_ALL, all_calls}, {"version2", "copies", IN_ALL, copies}, {0}};
