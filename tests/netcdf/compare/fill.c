/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Fill values: of each type, set late, strings, in records, in other memory types, without
 * filling. */
#include "compare.h"

#include <math.h>
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

#define FILL_FROM(TYPE, SUFFIX)                                                                    \
    do {                                                                                           \
        TYPE values[] = {(TYPE) 5, (TYPE) 100, (TYPE) 200, (TYPE) -3, (TYPE) 1e9};                 \
        for (int i = 0; i < 5; i++) {                                                              \
            int rc = CALL(nc_put_att_##SUFFIX(ncid, v, "_FillValue", type, 1, values + i));        \
            if (rc != NC_NOERR && rc != NC_ERANGE)                                                 \
                (void) nc_del_att(ncid, v, "_FillValue");                                          \
            note_fill(ncid, v);                                                                    \
        }                                                                                          \
    } while (0)

static void
note_fill(int ncid, int v)
{
    int nofill = -1;
    unsigned char value[8] = {0};
    CALL(nc_inq_var_fill(ncid, v, &nofill, value));
    note("nofill %d", nofill != 0);
    note_bytes("fill", value, sizeof value);
}

/* Every memory type into every type. */
static void
memory_types(const world *w)
{
    int ncid = create(w);
    int x = -1;
    nc_type last =
        w->format == NC_FORMAT_NETCDF4 || w->format == NC_FORMAT_64BIT_DATA ? NC_UINT64 : NC_DOUBLE;
    CALL(nc_def_dim(ncid, "x", 3, &x));
    for (nc_type type = NC_BYTE; type <= last; type++) {
        char name[] = "vA";
        name[1] = (char) ('A' + type);
        int v = -1;
        CALL(nc_def_var(ncid, name, type, 1, &x, &v));
        if (type == NC_CHAR) {
            CALL(nc_put_att_text(ncid, v, "_FillValue", 1, "z"));
            note_fill(ncid, v);
            continue;
        }
        if (type != NC_UINT) /* CDF-5 stores what lay in memory for negative numbers */
            FILL_FROM(signed char, schar);
        FILL_FROM(unsigned char, uchar);
        FILL_FROM(short, short);
        FILL_FROM(int, int);
        FILL_FROM(long, long);
        FILL_FROM(float, float);
        FILL_FROM(double, double);
        FILL_FROM(unsigned short, ushort);
        FILL_FROM(unsigned, uint);
        FILL_FROM(long long, longlong);
        FILL_FROM(unsigned long long, ulonglong);
        double nan = NAN;
        if (type == NC_FLOAT || type == NC_DOUBLE)
            CALL(nc_put_att_double(ncid, v, "_FillValue", type, 1, &nan));
    }
    CALL(nc_enddef(ncid));
    note_file(ncid);
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_file(ncid);
    for (int v = 0; v <= last - NC_BYTE; v++) {
        double doubles[3] = {0};
        short shorts[3] = {0};
        CALL(nc_get_var_double(ncid, v, doubles));
        note_doubles("double", doubles, 3);
        CALL(nc_get_var_short(ncid, v, shorts));
    }
    CALL(nc_close(ncid));
}

/* Ways around nc_put_att(). */
static void
copies_and_renames(const world *w)
{
    int ncid = create(w);
    int x = -1;
    int v[5] = {-1, -1, -1, -1, -1};
    CALL(nc_def_dim(ncid, "x", 3, &x));
    CALL(nc_def_var(ncid, "a", NC_INT, 1, &x, &v[0]));
    CALL(nc_def_var(ncid, "b", NC_INT, 1, &x, &v[1]));
    CALL(nc_def_var(ncid, "c", NC_INT, 1, &x, &v[2]));
    CALL(nc_def_var(ncid, "d", NC_INT, 1, &x, &v[3]));
    CALL(nc_def_var(ncid, "e", NC_INT, 1, &x, &v[4]));
    CALL(nc_put_att_int(ncid, v[0], "_FillValue", NC_INT, 1, (int[]){7}));
    CALL(nc_copy_att(ncid, v[0], "_FillValue", ncid, v[1]));
    CALL(nc_put_att_int(ncid, v[2], "other", NC_INT, 1, (int[]){8}));
    CALL(nc_rename_att(ncid, v[2], "other", "_FillValue"));
    CALL(nc_put_att_int(ncid, v[3], "_FillValue", NC_INT, 1, (int[]){9}));
    CALL(nc_rename_att(ncid, v[3], "_FillValue", "missing_value"));
    CALL(nc_def_var_fill(ncid, v[4], NC_FILL, (int[]){10}));
    CALL(nc_del_att(ncid, v[4], "_FillValue"));
    for (int i = 0; i < 5; i++)
        note_fill(ncid, v[i]);
    CALL(nc_copy_att(ncid, v[0], "_FillValue", ncid, NC_GLOBAL));
    CALL(nc_enddef(ncid));
    for (int i = 0; i < 5; i++) {
        CALL(nc_put_var1_int(ncid, v[i], (size_t[]){1}, (int[]){i}));
        note_fill(ncid, v[i]);
    }
    note_file(ncid);
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_file(ncid);
    CALL(nc_close(ncid));
}

/* Records that appear because another variable has them. */
static void
records(const world *w)
{
    int ncid = create(w);
    int d[2] = {-1, -1};
    int v[4] = {-1, -1, -1, -1};
    CALL(nc_def_dim(ncid, "t", NC_UNLIMITED, &d[0]));
    CALL(nc_def_dim(ncid, "x", 3, &d[1]));
    CALL(nc_def_var(ncid, "a", NC_SHORT, 2, d, &v[0]));
    CALL(nc_def_var(ncid, "b", NC_FLOAT, 2, d, &v[1]));
    CALL(nc_def_var(ncid, "c", NC_DOUBLE, 1, d, &v[2]));
    CALL(nc_def_var(ncid, "f", NC_CHAR, 2, d, &v[3]));
    CALL(nc_def_var_fill(ncid, v[1], NC_FILL, (float[]){-1.5f}));
    CALL(nc_put_att_text(ncid, v[3], "_FillValue", 1, "*"));
    CALL(nc_enddef(ncid));
    CALL(nc_put_vara_short(ncid, v[0], (size_t[]){0, 0}, (size_t[]){1, 3}, (short[]){1, 2, 3}));
    note_file(ncid);
    CALL(nc_put_var1_double(ncid, v[2], (size_t[]){2}, (double[]){2.5}));
    CALL(nc_put_var1_text(ncid, v[3], (size_t[]){1, 1}, "x"));
    note_file(ncid);
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_WRITE);
    CALL(nc_put_vara_short(ncid, v[0], (size_t[]){4, 1}, (size_t[]){1, 1}, (short[]){9}));
    note_file(ncid);
    CALL(nc_close(ncid));
}

/* NC_NOFILL: what was not written has no defined value; what was is there. */
static void
without_filling(const world *w)
{
    int ncid = create(w);
    int x = -1;
    int v[3] = {-1, -1, -1};
    int old = -1;
    int got[3] = {0};
    CALL(nc_def_dim(ncid, "x", 3, &x));
    CALL(nc_set_fill(ncid, NC_NOFILL, &old));
    CALL(nc_def_var(ncid, "a", NC_INT, 1, &x, &v[0]));
    CALL(nc_def_var(ncid, "b", NC_INT, 1, &x, &v[1]));
    CALL(nc_def_var_fill(ncid, v[1], NC_FILL, NULL));
    note_fill(ncid, v[0]);
    note_fill(ncid, v[1]);
    CALL(nc_set_fill(ncid, NC_FILL, &old));
    CALL(nc_def_var(ncid, "c", NC_INT, 1, &x, &v[2]));
    CALL(nc_def_var_fill(ncid, v[2], NC_NOFILL, (int[]){77}));
    CALL(nc_def_var_fill(ncid, v[2], 5, NULL));
    for (int i = 0; i < 3; i++)
        note_fill(ncid, v[i]);
    CALL(nc_enddef(ncid));
    for (int i = 0; i < 3; i++) {
        CALL(nc_put_var_int(ncid, v[i], (int[]){1, 2, 3}));
        CALL(nc_get_var_int(ncid, v[i], got));
        note_ints("got", got, 3);
    }
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_WRITE);
    for (int i = 0; i < 3; i++)
        note_fill(ncid, v[i]);
    CALL(nc_redef(ncid));
    CALL(nc_def_var(ncid, "later", NC_INT, 1, &x, NULL));
    note_fill(ncid, 3);
    CALL(nc_close(ncid));
}

/* The file's mode is for numbers and characters alone; user-defined types can be told. */
static void
modes_of_types(const world *w)
{
    int ncid = create(w);
    nc_type types[4] = {NC_STRING};
    int v[4];
    int x = -1;
    CALL(nc_def_dim(ncid, "x", 3, &x));
    CALL(nc_def_enum(ncid, NC_UBYTE, "e", &types[1]));
    CALL(nc_insert_enum(ncid, types[1], "A", (unsigned char[]){0}));
    CALL(nc_def_opaque(ncid, 3, "o", &types[2]));
    CALL(nc_def_compound(ncid, 4, "c", &types[3]));
    CALL(nc_insert_compound(ncid, types[3], "i", 0, NC_INT));
    CALL(nc_set_fill(ncid, NC_NOFILL, NULL));
    for (int i = 0; i < 4; i++)
        CALL(nc_def_var(ncid, (const char *[]){"s", "e1", "o1", "c1"}[i], types[i], 1, &x, &v[i]));
    CALL(nc_def_var(ncid, "told", types[1], 1, &x, &v[0]));
    CALL(nc_def_var_fill(ncid, v[0], 1, NULL));
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 5; i++) {
            int nofill = -1;
            CALL(nc_inq_var_fill(ncid, i, &nofill, NULL));
            note("nofill %d", nofill);
        }
        CALL(nc_close(ncid));
        ncid = reopen(w, NC_NOWRITE);
    }
    CALL(nc_close(ncid));
}

const scenario scenarios_fill[] = {{"fill", "values_and_errors", IN_ALL, values_and_errors},
                                   {"fill", "def_var_fill", IN_ALL, def_var_fill},
                                   {"fill", "late", IN_ALL, late},
                                   {"fill", "modes", IN_ALL, modes},
                                   {"fill", "strings", IN_NC4, strings},
                                   {"fill", "memory_types", IN_ALL, memory_types},
                                   {"fill", "copies_and_renames", IN_ALL, copies_and_renames},
                                   {"fill", "records", IN_ALL, records},
                                   {"fill", "without_filling", IN_ALL, without_filling},
                                   {"fill", "modes_of_types", IN_NC4, modes_of_types},
                                   {0}};
