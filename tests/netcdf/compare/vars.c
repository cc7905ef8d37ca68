/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Variables: types, coordinates, scalars, strings, renaming, limits of sizes, and their errors. */
#include "compare.h"

#include <string.h>

static void
types(const world *w)
{
    int ncid = create(w);
    int x = -1;
    CALL(nc_def_dim(ncid, "x", 2, &x));
    for (nc_type type = 0; type <= 13; type++) {
        char name[20] = "vA";
        name[1] = (char) ('A' + type);
        int id = -7;
        CALL(nc_def_var(ncid, name, type, 1, &x, &id));
        note("type %d id %d", type, id);
    }
    CALL(nc_def_var(ncid, "u", 32, 1, &x, NULL));
    CALL(nc_def_var(ncid, "n", -1, 1, &x, NULL));
    CALL(nc_enddef(ncid));
    note_file(ncid);
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_file(ncid);
    CALL(nc_close(ncid));
}

static void
errors(const world *w)
{
    int ncid = create(w);
    int d[3] = {-1, -1, -1};
    int id = -1;
    CALL(nc_def_dim(ncid, "x", 2, &d[0]));
    CALL(nc_def_dim(ncid, "t", NC_UNLIMITED, &d[1]));
    CALL(nc_def_var(ncid, "v", NC_INT, 1, d, &id));
    CALL(nc_def_var(ncid, "v", NC_INT, 1, d, &id));
    CALL(nc_def_var(ncid, "v", 0, 1, d, &id));
    CALL(nc_def_var(ncid, "b/d", 0, 1, d, &id));
    CALL(nc_def_var(ncid, "w", NC_INT, 1, (int[]){5}, &id));
    CALL(nc_def_var(ncid, "w", NC_INT, 1, (int[]){-1}, &id));
    CALL(nc_def_var(ncid, "w", NC_INT, -1, d, &id));
    CALL(nc_def_var(ncid, "s", NC_INT, 0, NULL, &id));
    CALL(nc_def_var(ncid, "n", NC_INT, 0, NULL, NULL));
    CALL(nc_def_var(ncid, "rec", NC_INT, 2, (int[]){1, 0}, &id));
    CALL(nc_def_var(ncid, "bad_rec", NC_INT, 2, (int[]){0, 1}, &id));
    CALL(nc_def_var(ncid, "twice", NC_INT, 2, (int[]){0, 0}, &id));
    CALL(nc_inq_varid(ncid, "s", &id));
    note("%d", id);
    CALL(nc_inq_varid(ncid, "none", &id));
    CALL(nc_inq_varname(ncid, 77, (char[NC_MAX_NAME + 1]){0}));
    CALL(nc_inq_varname(ncid, -1, (char[NC_MAX_NAME + 1]){0}));
    CALL(nc_inq_varname(ncid, -2, (char[NC_MAX_NAME + 1]){0}));
    int n = -1;
    CALL(nc_inq_varnatts(ncid, NC_GLOBAL, &n));
    CALL(nc_inq_varndims(ncid, 1, &n));
    note("%d", n);
    CALL(nc_enddef(ncid));
    CALL(nc_def_var(ncid, "late", NC_INT, 0, NULL, &id));
    CALL(nc_def_var(ncid, "late/", NC_INT, 0, NULL, &id));
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    CALL(nc_def_var(ncid, "late", NC_INT, 0, NULL, &id));
    CALL(nc_rename_var(ncid, 0, "x0"));
    note_file(ncid);
    CALL(nc_close(ncid));
}

static void
renaming(const world *w)
{
    int ncid = create(w);
    int x = -1;
    int v = -1;
    CALL(nc_def_dim(ncid, "x", 2, &x));
    CALL(nc_def_var(ncid, "var", NC_INT, 1, &x, &v));
    CALL(nc_def_var(ncid, "two", NC_DOUBLE, 1, &x, NULL));
    CALL(nc_rename_var(ncid, v, "longer_name"));
    CALL(nc_rename_var(ncid, v, "two"));
    CALL(nc_rename_var(ncid, v, "longer_name"));
    CALL(nc_rename_var(ncid, 8, "three"));
    CALL(nc_rename_var(ncid, 8, "two"));
    CALL(nc_rename_var(ncid, NC_GLOBAL, "three"));
    CALL(nc_rename_var(ncid, v, "a/b"));
    CALL(nc_enddef(ncid));
    CALL(nc_put_var_int(ncid, v, (int[]){4, 5}));
    CALL(nc_rename_var(ncid, v, "short"));
    CALL(nc_rename_var(ncid, v, "a_very_much_longer_name"));
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_WRITE);
    note_file(ncid);
    CALL(nc_rename_var(ncid, 1, "x"));
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_file(ncid);
    int id = -1;
    CALL(nc_inq_varid(ncid, "x", &id));
    note("%d", id);
    CALL(nc_close(ncid));
}

static void
coordinates(const world *w)
{
    int ncid = create(w);
    int d[2] = {-1, -1};
    int lat = -1;
    CALL(nc_def_dim(ncid, "lat", 2, &d[0]));
    CALL(nc_def_dim(ncid, "lon", 3, &d[1]));
    CALL(nc_def_var(ncid, "v", NC_FLOAT, 2, d, NULL));
    CALL(nc_def_var(ncid, "lat", NC_DOUBLE, 1, d, &lat));
    CALL(nc_def_var(ncid, "lon", NC_DOUBLE, 2, d, NULL));
    CALL(nc_put_att_text(ncid, lat, "units", 7, "degrees"));
    CALL(nc_enddef(ncid));
    CALL(nc_put_var_double(ncid, lat, (double[]){10, 20}));
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_WRITE);
    note_file(ncid);
    CALL(nc_redef(ncid));
    CALL(nc_rename_dim(ncid, 0, "y"));
    if (w->format != NC_FORMAT_NETCDF4 && w->format != NC_FORMAT_NETCDF4_CLASSIC)
        CALL(nc_rename_var(ncid, lat, "y")); /* netCDF-4 mixes the varids up */
    CALL(nc_enddef(ncid));
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_file(ncid);
    CALL(nc_close(ncid));
}

static void
scalars_and_text(const world *w)
{
    int ncid = create(w);
    int d = -1;
    int s = -1;
    int c = -1;
    int t = -1;
    CALL(nc_def_dim(ncid, "n", 10, &d));
    CALL(nc_def_var(ncid, "s", NC_DOUBLE, 0, NULL, &s));
    CALL(nc_def_var(ncid, "c", NC_CHAR, 0, NULL, &c));
    CALL(nc_def_var(ncid, "t", NC_CHAR, 1, &d, &t));
    CALL(nc_enddef(ncid));
    CALL(nc_put_var_double(ncid, s, (double[]){3.25}));
    CALL(nc_put_var_text(ncid, c, "Q"));
    CALL(nc_put_vara_text(ncid, t, (size_t[]){0}, (size_t[]){5}, "hello"));
    CALL(nc_put_var1_text(ncid, t, (size_t[]){7}, "!"));
    double value = 0;
    CALL(nc_get_var_double(ncid, s, &value));
    CALL(nc_get_var1_double(ncid, s, NULL, &value));
    CALL(nc_get_var1_double(ncid, s, (size_t[]){5}, &value));
    CALL(nc_get_vara_double(ncid, s, (size_t[]){5}, (size_t[]){5}, &value));
    note("%g", value);
    CALL(nc_put_var_int(ncid, c, (int[]){65}));
    CALL(nc_get_var_double(ncid, t, &value));
    CALL(nc_put_var_text(ncid, s, "x"));
    note_file(ncid);
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_file(ncid);
    CALL(nc_close(ncid));
}

static void
strings(const world *w)
{
    int ncid = create(w);
    int d[2] = {-1, -1};
    int v = -1;
    int s = -1;
    CALL(nc_def_dim(ncid, "t", NC_UNLIMITED, &d[0]));
    CALL(nc_def_dim(ncid, "n", 2, &d[1]));
    CALL(nc_def_var(ncid, "v", NC_STRING, 2, d, &v));
    CALL(nc_def_var(ncid, "s", NC_STRING, 0, NULL, &s));
    CALL(nc_enddef(ncid));
    const char *texts[] = {"one", "", "drei \xc3\xa4", "a rather long text that needs more room"};
    CALL(nc_put_vara_string(ncid, v, (size_t[]){0, 0}, (size_t[]){2, 2}, texts));
    CALL(nc_put_vara_string(ncid, v, (size_t[]){2, 0}, (size_t[]){2, 2}, texts));
    CALL(nc_put_var_string(ncid, s, texts + 3));
    char *got[8] = {0};
    CALL(nc_get_vars_string(ncid, v, (size_t[]){0, 1}, (size_t[]){2, 1}, (ptrdiff_t[]){2, 1}, got));
    note("'%s' '%s'", got[0], got[1]);
    CALL(nc_free_string(2, got));
    CALL(nc_put_var_text(ncid, s, "x"));
    CALL(nc_get_var_text(ncid, s, (char[10]){0}));
    CALL(nc_put_var_int(ncid, s, (int[]){1}));
    CALL(nc_get_var_int(ncid, s, (int[]){1}));
    note_file(ncid);
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_file(ncid);
    CALL(nc_close(ncid));
}

static void
size_limits(const world *w)
{
    int ncid = create(w);
    int d[2] = {-1, -1};
    CALL(nc_def_dim(ncid, "big", 1500000000, &d[0]));
    CALL(nc_def_dim(ncid, "t", NC_UNLIMITED, &d[1]));
    CALL(nc_def_var(ncid, "first", NC_INT, 1, d, NULL));
    CALL(nc_def_var(ncid, "second", NC_INT, 0, NULL, NULL));
    CALL(nc_set_fill(ncid, NC_NOFILL, NULL));
    CALL(nc_enddef(ncid));
    CALL(nc_abort(ncid));
    ncid = create(w);
    CALL(nc_def_dim(ncid, "big", 700000000, &d[0]));
    CALL(nc_def_dim(ncid, "t", NC_UNLIMITED, &d[1]));
    CALL(nc_def_var(ncid, "first", NC_BYTE, 1, d, NULL));
    CALL(nc_def_var(ncid, "last", NC_INT, 1, d, NULL));
    CALL(nc_set_fill(ncid, NC_NOFILL, NULL));
    CALL(nc_enddef(ncid));
    CALL(nc_abort(ncid));
}

const scenario scenarios_vars[] = {{"vars", "types", IN_ALL, types},
                                   {"vars", "errors", IN_ALL, errors},
                                   {"vars", "renaming", IN_ALL, renaming},
                                   {"vars", "coordinates", IN_ALL, coordinates},
                                   {"vars", "scalars_and_text", IN_ALL, scalars_and_text},
                                   {"vars", "strings", IN_NC4, strings},
                                   {"vars", "size_limits", IN_CDF, size_limits},
                                   {0}};
