/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Dimensions: lengths and limits, several unlimited ones, renaming, growth. */
#include "compare.h"

static void
define_and_ask(const world *w)
{
    int ncid = create(w);
    int a = -1;
    int b = -1;
    int u = -1;
    CALL(nc_def_dim(ncid, "a", 3, &a));
    CALL(nc_def_dim(ncid, "u", NC_UNLIMITED, &u));
    CALL(nc_def_dim(ncid, "b", 1000000, &b));
    CALL(nc_def_dim(ncid, "a", 4, NULL));
    CALL(nc_def_dim(ncid, "c", 1, NULL));
    note("%d %d %d", a, b, u);
    int id = -1;
    CALL(nc_inq_dimid(ncid, "b", &id));
    CALL(nc_inq_dimid(ncid, "nobody", &id));
    CALL(nc_inq_dimid(ncid, "b", NULL));
    char name[NC_MAX_NAME + 1] = "";
    size_t length = 77;
    CALL(nc_inq_dim(ncid, 2, name, &length));
    note("%s %zu %d", name, length, id);
    CALL(nc_inq_dim(ncid, 99, name, &length));
    CALL(nc_inq_dim(ncid, -1, name, &length));
    CALL(nc_inq_dim(ncid, 0, NULL, NULL));
    CALL(nc_inq_dimlen(ncid, u, &length));
    CALL(nc_inq_dimname(ncid, u, name));
    note("%s %zu", name, length);
    int unlimited = -5;
    CALL(nc_inq_unlimdim(ncid, &unlimited));
    note("%d", unlimited);
    CALL(nc_enddef(ncid));
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_file(ncid);
    CALL(nc_def_dim(ncid, "d", 1, NULL));
    CALL(nc_rename_dim(ncid, 0, "z"));
    CALL(nc_close(ncid));
}

static void
several_unlimited(const world *w)
{
    int ncid = create(w);
    int u[3] = {-1, -1, -1};
    CALL(nc_def_dim(ncid, "u0", NC_UNLIMITED, &u[0]));
    CALL(nc_def_dim(ncid, "u1", NC_UNLIMITED, &u[1]));
    CALL(nc_def_dim(ncid, "u0", NC_UNLIMITED, &u[1]));
    CALL(nc_def_dim(ncid, "x", 2, &u[2]));
    note_ints("u", u, 3);
    int count = -1;
    int ids[10];
    CALL(nc_inq_unlimdims(ncid, &count, NULL));
    CALL(nc_inq_unlimdims(ncid, NULL, ids));
    note_ints("ids", ids, (size_t) count);
    CALL(nc_close(ncid));
}

static void
lengths_and_limits(const world *w)
{
    int ncid = create(w);
    CALL(nc_def_dim(ncid, "i31", (size_t) 2147483644, NULL));
    CALL(nc_def_dim(ncid, "i31a", (size_t) 2147483645, NULL));
    CALL(nc_def_dim(ncid, "i31b", (size_t) 2147483648, NULL));
    CALL(nc_def_dim(ncid, "i32", (size_t) 4294967292, NULL));
    CALL(nc_def_dim(ncid, "i32a", (size_t) 4294967293, NULL));
    CALL(nc_def_dim(ncid, "i32b", (size_t) 4294967296, NULL));
    CALL(nc_def_dim(ncid, "i40", (size_t) 1 << 40, NULL));
    CALL(nc_abort(ncid));
}

static void
renaming(const world *w)
{
    int ncid = create(w);
    int id = -1;
    CALL(nc_def_dim(ncid, "lat", 3, &id));
    CALL(nc_def_dim(ncid, "lon", 4, NULL));
    CALL(nc_rename_dim(ncid, id, "latitude"));
    CALL(nc_rename_dim(ncid, id, "lon"));
    CALL(nc_rename_dim(ncid, 55, "lon"));
    CALL(nc_rename_dim(ncid, 55, "other"));
    CALL(nc_rename_dim(ncid, id, "bad/name"));
    CALL(nc_enddef(ncid));
    CALL(nc_rename_dim(ncid, id, "la"));
    CALL(nc_rename_dim(ncid, id, "latitudes_are_longer"));
    CALL(nc_rename_dim(ncid, 1, "lo"));
    char name[NC_MAX_NAME + 1] = "";
    CALL(nc_inq_dimname(ncid, id, name));
    note("%s", name);
    CALL(nc_inq_dimid(ncid, "la", &id));
    CALL(nc_inq_dimid(ncid, "lat", &id));
    CALL(nc_def_dim(ncid, "late", 3, &id));
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_WRITE);
    note_file(ncid);
    CALL(nc_def_dim(ncid, "later", 3, &id));
    CALL(nc_redef(ncid));
    CALL(nc_def_dim(ncid, "later", 3, &id));
    CALL(nc_enddef(ncid));
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_file(ncid);
    CALL(nc_close(ncid));
}

static void
growth(const world *w)
{
    int ncid = create(w);
    int dims[2] = {-1, -1};
    int v = -1;
    int x = -1;
    CALL(nc_def_dim(ncid, "t", NC_UNLIMITED, &dims[0]));
    CALL(nc_def_dim(ncid, "x", 3, &dims[1]));
    CALL(nc_def_var(ncid, "v", NC_INT, 2, dims, &v));
    CALL(nc_def_var(ncid, "other", NC_SHORT, 1, dims, &x));
    CALL(nc_enddef(ncid));
    int data[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    size_t length = 99;
    CALL(nc_put_vara_int(ncid, v, (size_t[]){0, 0}, (size_t[]){1, 3}, data));
    CALL(nc_inq_dimlen(ncid, dims[0], &length));
    note("%zu", length);
    CALL(nc_put_vara_int(ncid, v, (size_t[]){3, 1}, (size_t[]){2, 2}, data));
    CALL(nc_inq_dimlen(ncid, dims[0], &length));
    note("%zu", length);
    CALL(nc_put_vara_int(ncid, v, (size_t[]){9, 1}, (size_t[]){0, 2}, data));
    CALL(nc_inq_dimlen(ncid, dims[0], &length));
    note("%zu", length);
    short values[10] = {0};
    CALL(nc_get_var_short(ncid, x, values));
    for (int i = 0; i < 10; i++)
        note("%d", values[i]);
    CALL(nc_sync(ncid));
    CALL(nc_inq_dimlen(ncid, dims[0], &length));
    note("%zu", length);
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_WRITE);
    note_file(ncid);
    CALL(nc_put_var1_int(ncid, v, (size_t[]){7, 0}, data));
    note_file(ncid);
    CALL(nc_close(ncid));
}

const scenario scenarios_dims[] = {{"dims", "define_and_ask", IN_ALL, define_and_ask},
                                   {"dims", "several_unlimited", IN_ALL, several_unlimited},
                                   {"dims", "lengths_and_limits", IN_ALL, lengths_and_limits},
                                   {"dims", "renaming", IN_ALL, renaming},
                                   {"dims", "growth", IN_ALL, growth},
                                   {0}};
