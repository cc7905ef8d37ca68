/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* All types, groups, strings and user-defined types. */

#include "parallel.h"

#include <stdio.h>
#include <string.h>

static void
atomic_types(const world *w)
{
    static const nc_type types[] = {NC_BYTE,  NC_CHAR, NC_SHORT,  NC_INT,   NC_FLOAT, NC_DOUBLE,
                                    NC_UBYTE, NC_UINT, NC_USHORT, NC_INT64, NC_UINT64};
    enum { TYPES = sizeof types / sizeof types[0] };
    int count = w->format == NC_FORMAT_NETCDF4 || w->format == NC_FORMAT_64BIT_DATA ? TYPES : 6;
    int ncid = -1;
    int dim = -1;
    int v[TYPES];
    if (!par_create(w, &ncid))
        return;
    CALL(nc_def_dim(ncid, "x", (size_t) rank_count, &dim));
    for (int i = 0; i < count; i++) {
        char name[8];
        snprintf(name, sizeof name, "v%d", i);
        v[i] = -1;
        CALL(nc_def_var(ncid, name, types[i], 1, &dim, &v[i]));
    }
    CALL(nc_enddef(ncid));
    for (int i = 0; i < count; i++) {
        if (types[i] == NC_CHAR)
            CALL(nc_put_var1_text(ncid, v[i], (size_t[]){(size_t) my_rank}, "abcdefgh"));
        else
            CALL(nc_put_var1_double(ncid, v[i], (size_t[]){(size_t) my_rank},
                                    &(double){(7 * my_rank + i) % 100}));
    }
    CALL(nc_close(ncid));
    par_note(w->path);
}

static void
attributes(const world *w)
{
    int ncid, r, f;
    if (!par_make(w, &ncid, &r, &f))
        return;
    CALL(nc_redef(ncid));
    CALL(nc_put_att_text(ncid, NC_GLOBAL, "title", 5, "title"));
    CALL(nc_put_att_text(ncid, NC_GLOBAL, "empty", 0, ""));
    CALL(nc_put_att_double(ncid, f, "range", NC_DOUBLE, 2, (double[]){0, 1e10}));
    CALL(nc_put_att_short(ncid, f, "flags", NC_SHORT, 3, (short[]){1, 2, 3}));
    CALL(nc_put_att_float(ncid, r, "scale", NC_FLOAT, 1, (float[]){0.5F}));
    CALL(nc_enddef(ncid));
    CALL(nc_put_att_text(ncid, NC_GLOBAL, "title", 5, "other")); /* no longer than before */
    put_rows(ncid, f, 1);
    CALL(nc_close(ncid));
    par_note(w->path);
}

static void
string_attributes(const world *w)
{
    int ncid = -1;
    if (!par_create(w, &ncid))
        return;
    CALL(nc_put_att_string(ncid, NC_GLOBAL, "s", 2, (const char *[]){"one", "zwei"}));
    CALL(nc_put_att_uint(ncid, NC_GLOBAL, "u", NC_UINT, 1, (unsigned[]){4000000000U}));
    CALL(nc_close(ncid));
    par_note(w->path);
}

static void
groups(const world *w)
{
    int ncid = -1;
    int g[2] = {-1, -1};
    int d[2] = {-1, -1};
    int v[2] = {-1, -1};
    if (!par_create(w, &ncid))
        return;
    CALL(nc_def_dim(ncid, "y", (size_t) ROWS * (size_t) rank_count, &d[0]));
    CALL(nc_def_grp(ncid, "a", &g[0]));
    CALL(nc_def_grp(g[0], "b", &g[1]));
    CALL(nc_def_dim(g[0], "x", COLUMNS, &d[1]));
    CALL(nc_def_var(g[0], "v", NC_INT, 2, d, &v[0]));
    CALL(nc_def_var(g[1], "v", NC_INT, 2, d, &v[1]));
    CALL(nc_put_att_text(g[1], v[1], "units", 1, "m"));
    CALL(nc_enddef(ncid));
    CALL(nc_var_par_access(g[1], v[1], NC_COLLECTIVE));
    put_rows(g[0], v[0], 1);
    put_rows(g[1], v[1], 2);
    note_rows(g[1], v[1]);
    CALL(nc_close(ncid));
    par_note(w->path);
}

/* ---- user-defined types --------------------------------------------------------------------- */

typedef struct point {
    int id;
    double where[2];
    char tag[3];
} point;

static void
compounds(const world *w)
{
    int ncid = -1;
    int dim = -1;
    int varid = -1;
    nc_type type = 0;
    if (!par_create(w, &ncid))
        return;
    CALL(nc_def_dim(ncid, "x", (size_t) (2 * rank_count), &dim));
    CALL(nc_def_compound(ncid, sizeof(point), "point", &type));
    CALL(nc_insert_compound(ncid, type, "id", NC_COMPOUND_OFFSET(point, id), NC_INT));
    CALL(nc_insert_array_compound(ncid, type, "where", NC_COMPOUND_OFFSET(point, where), NC_DOUBLE,
                                  1, (int[]){2}));
    CALL(nc_insert_array_compound(ncid, type, "tag", NC_COMPOUND_OFFSET(point, tag), NC_CHAR, 1,
                                  (int[]){3}));
    CALL(nc_def_var(ncid, "p", type, 1, &dim, &varid));
    CALL(nc_enddef(ncid));
    point p[2] = {{.id = my_rank, .where = {my_rank, 0.5}, .tag = "ab"},
                  {.id = -my_rank, .where = {1e9, my_rank}, .tag = "c"}};
    CALL(nc_put_vara(ncid, varid, (size_t[]){(size_t) (2 * my_rank)}, (size_t[]){2}, p));
    CALL(nc_close(ncid));
    if (!par_open(w->path, NC_NOWRITE, &ncid))
        return;
    for (size_t i = 0; i < (size_t) (2 * rank_count); i++) {
        point got = {0};
        CALL(nc_get_var1(ncid, varid, &i, &got));
        note("%d %g %g %.3s", got.id, got.where[0], got.where[1], got.tag);
    }
    CALL(nc_close(ncid));
}

static void
enums_and_opaques(const world *w)
{
    int ncid = -1;
    int dim = -1;
    int v[2] = {-1, -1};
    nc_type types[2] = {0, 0};
    if (!par_create(w, &ncid))
        return;
    CALL(nc_def_dim(ncid, "x", (size_t) rank_count, &dim));
    CALL(nc_def_enum(ncid, NC_SHORT, "level", &types[0]));
    for (short i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof name, "level%d", i);
        CALL(nc_insert_enum(ncid, types[0], name, &i));
    }
    CALL(nc_def_opaque(ncid, 5, "blob", &types[1]));
    CALL(nc_def_var(ncid, "e", types[0], 1, &dim, &v[0]));
    CALL(nc_def_var(ncid, "o", types[1], 1, &dim, &v[1]));
    CALL(nc_enddef(ncid));
    size_t at = (size_t) my_rank;
    short level = (short) my_rank;
    char blob[5] = {(char) my_rank, 1, 2, 3, 4};
    CALL(nc_put_var1(ncid, v[0], &at, &level));
    CALL(nc_put_var1(ncid, v[1], &at, blob));
    CALL(nc_close(ncid));
    if (!par_open(w->path, NC_NOWRITE, &ncid))
        return;
    for (size_t i = 0; i < (size_t) rank_count; i++) {
        CALL(nc_get_var1(ncid, v[0], &i, &level));
        CALL(nc_get_var1(ncid, v[1], &i, blob));
        note("level %d", level);
        note_bytes("blob", blob, sizeof blob);
    }
    CALL(nc_close(ncid));
}

/* HDF5 cannot write strings and arrays in parallel: one process makes the file to compare with. */

static void
write_texts(const world *w, int ncid, int varid, int rank)
{
    char a[40];
    char b[40];
    (void) w;
    snprintf(a, sizeof a, "text of rank %d", rank);
    snprintf(b, sizeof b, "%.*s", rank % 30, "0123456789012345678901234567890");
    const char *texts[2] = {a, b};
    if (nc_put_vara_string(ncid, varid, (size_t[]){(size_t) (2 * rank)}, (size_t[]){2}, texts) !=
        NC_NOERR)
        note("rank %d fails", rank);
}

static void
write_lists(const world *w, int ncid, int varid, int rank)
{
    int numbers_of[5] = {rank, 1, 2, 3, 4};
    nc_vlen_t lists[2] = {{.len = (size_t) (rank % 6), .p = numbers_of},
                          {.len = 1, .p = numbers_of}};
    if (lists[0].len > 5)
        lists[0].len = 5;
    (void) w;
    if (nc_put_vara(ncid, varid, (size_t[]){(size_t) (2 * rank)}, (size_t[]){2}, lists) != NC_NOERR)
        note("rank %d fails", rank);
}

typedef void (*writer)(const world *w, int ncid, int varid, int rank);

/* Two elements a rank, of strings, or of arrays of ints. */
static int
make_variable(const world *w, bool strings, writer write)
{
    int ncid = -1;
    int dim = -1;
    int varid = -1;
    nc_type type = NC_STRING;
    bool alone = on_stock(w);
    int rc = NC_NOERR;
    if (alone && my_rank == 0)
        rc = nc_create(w->path, w->mode, &ncid);
    else if (!alone)
        rc = nc_create_par(w->path, w->mode, MPI_COMM_WORLD, MPI_INFO_NULL, &ncid);
    if (!alone || my_rank == 0) {
        if (rc == NC_NOERR && !strings)
            rc = nc_def_vlen(ncid, "list", NC_INT, &type);
        if (rc == NC_NOERR)
            rc = nc_def_dim(ncid, "x", (size_t) (2 * rank_count), &dim);
        if (rc == NC_NOERR)
            rc = nc_def_var(ncid, "v", type, 1, &dim, &varid);
        if (rc == NC_NOERR)
            rc = nc_enddef(ncid);
        for (int rank = 0; rank < rank_count && rc == NC_NOERR; rank++)
            if (alone || rank == my_rank)
                write(w, ncid, varid, rank);
        if (rc == NC_NOERR)
            rc = nc_close(ncid);
    }
    meet();
    return rc;
}

static void
strings(const world *w)
{
    note("made %d", make_variable(w, true, write_texts));
    par_note(w->path);
}

static void
arrays(const world *w)
{
    note("made %d", make_variable(w, false, write_lists));
    int ncid = -1;
    if (!par_open(w->path, NC_NOWRITE, &ncid))
        return;
    for (size_t i = 0; i < (size_t) (2 * rank_count); i++) {
        nc_vlen_t list = {0};
        CALL(nc_get_var1(ncid, 0, &i, &list));
        note_ints("list", list.p, list.len);
        CALL(nc_free_vlen(&list));
    }
    CALL(nc_close(ncid));
}

const scenario scenarios_par_types[] = {
    {"par_types", "atomic_types", IN_ALL, atomic_types},
    {"par_types", "attributes", IN_ALL, attributes},
    {"par_types", "string_attributes", IN_NC4, string_attributes},
    {"par_types", "groups", IN_NC4, groups},
    {"par_types", "compounds", IN_NC4, compounds},
    {"par_types", "enums_and_opaques", IN_NC4, enums_and_opaques},
    {"par_types", "strings", IN_NC4, strings},
    {"par_types", "arrays", IN_NC4, arrays},
    {NULL, NULL, 0, NULL}};
