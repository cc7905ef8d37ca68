/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Attributes: all types, conversions, renaming and order, copies, reserved names. */
#include "compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void
put_all_types(int ncid, int varid)
{
    CALL(nc_put_att_text(ncid, varid, "text", 5, "hello"));
    CALL(nc_put_att_text(ncid, varid, "empty", 0, ""));
    CALL(nc_put_att_text(ncid, varid, "nul", 3, "a\0b"));
    CALL(nc_put_att_schar(ncid, varid, "byte", NC_BYTE, 2, (signed char[]){-1, 127}));
    CALL(nc_put_att_short(ncid, varid, "short", NC_SHORT, 2, (short[]){-300, 300}));
    CALL(nc_put_att_int(ncid, varid, "int", NC_INT, 1, (int[]){70000}));
    CALL(nc_put_att_float(ncid, varid, "float", NC_FLOAT, 2, (float[]){1.5f, 1e30f}));
    CALL(nc_put_att_double(ncid, varid, "double", NC_DOUBLE, 2, (double[]){0.1, -1e300}));
    CALL(nc_put_att_uchar(ncid, varid, "ubyte", NC_UBYTE, 1, (unsigned char[]){200}));
    CALL(nc_put_att_ushort(ncid, varid, "ushort", NC_USHORT, 1, (unsigned short[]){65000}));
    CALL(nc_put_att_uint(ncid, varid, "uint", NC_UINT, 1, (unsigned[]){4000000000u}));
    CALL(nc_put_att_longlong(ncid, varid, "int64", NC_INT64, 1, (long long[]){-5000000000}));
    CALL(nc_put_att_ulonglong(ncid, varid, "uint64", NC_UINT64, 1,
                              (unsigned long long[]){18000000000000000000u}));
    CALL(nc_put_att_string(ncid, varid, "string", 2, (const char *[]){"eins", "zw\xc3\xb6lf"}));
    CALL(nc_put_att_string(ncid, varid, "no_string", 0, NULL));
    CALL(nc_put_att_int(ncid, varid, "no_int", NC_INT, 0, NULL));
}

static void
all_types(const world *w)
{
    int ncid = create(w);
    int v = -1;
    CALL(nc_def_var(ncid, "v", NC_INT, 0, NULL, &v));
    put_all_types(ncid, NC_GLOBAL);
    put_all_types(ncid, v);
    CALL(nc_enddef(ncid));
    note_file(ncid);
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_file(ncid);
    CALL(nc_close(ncid));
}

static void
conversions(const world *w)
{
    int ncid = create(w);
    double values[] = {0, 127, 128, 255, 256, -1, -129, 40000, -40000, 3e9, -3e9, 5e18, 1e19, 1e39};
    size_t count = sizeof values / sizeof values[0];
    for (nc_type type = NC_BYTE; type <= NC_STRING; type++) {
        char name[20] = "aA";
        name[1] = (char) ('A' + type);
        for (size_t i = 0; i < count; i++)
            CALL(nc_put_att_double(ncid, NC_GLOBAL, name, type, 1, values + i));
        CALL(nc_put_att_double(ncid, NC_GLOBAL, name, type, count, values));
        CALL(nc_put_att_int(ncid, NC_GLOBAL, name, type, 2, (int[]){-7, 100000}));
        CALL(nc_put_att_text(ncid, NC_GLOBAL, name, 3, "abc"));
        signed char b[20] = {0};
        unsigned char u[20] = {0};
        short s[20] = {0};
        float f[20] = {0};
        double d[20] = {0};
        CALL(nc_put_att_double(ncid, NC_GLOBAL, name, type, 3, (double[]){1, -2, 300}));
        CALL(nc_get_att_schar(ncid, NC_GLOBAL, name, b));
        CALL(nc_get_att_uchar(ncid, NC_GLOBAL, name, u));
        CALL(nc_get_att_short(ncid, NC_GLOBAL, name, s));
        CALL(nc_get_att_float(ncid, NC_GLOBAL, name, f));
        CALL(nc_get_att_double(ncid, NC_GLOBAL, name, d));
        char text[40] = "";
        CALL(nc_get_att_text(ncid, NC_GLOBAL, name, text));
        note("%s", text);
        note_bytes("b", b, 1); /* what does not fit has no defined value */
        note_bytes("u", u, 1);
        note_bytes("s", s, 4);
        note_doubles("d", d, 1);
    }
    CALL(nc_put_att_schar(ncid, NC_GLOBAL, "sb", NC_BYTE, 1, (signed char[]){-5}));
    unsigned char u = 0;
    CALL(nc_get_att_uchar(ncid, NC_GLOBAL, "sb", &u));
    note("%d", u);
    CALL(nc_put_att_uchar(ncid, NC_GLOBAL, "ub", NC_BYTE, 1, (unsigned char[]){250}));
    CALL(nc_get_att_uchar(ncid, NC_GLOBAL, "ub", &u));
    note("%d", u);
    CALL(nc_put_att_double(ncid, NC_GLOBAL, "nan", NC_INT, 1, (double[]){NAN}));
    CALL(nc_put_att_double(ncid, NC_GLOBAL, "inf", NC_FLOAT, 1, (double[]){INFINITY}));
    CALL(nc_close(ncid));
}

static void
errors(const world *w)
{
    int ncid = create(w);
    int v = -1;
    CALL(nc_def_var(ncid, "v", NC_INT, 0, NULL, &v));
    int one = 1;
    CALL(nc_put_att_int(ncid, 5, "a", NC_INT, 1, &one));
    CALL(nc_put_att_int(ncid, -2, "a", NC_INT, 1, &one));
    CALL(nc_put_att_int(ncid, v, "b/d", NC_INT, 1, &one));
    CALL(nc_put_att_int(ncid, v, "", NC_INT, 1, &one));
    CALL(nc_put_att_int(ncid, v, NULL, NC_INT, 1, &one));
    CALL(nc_put_att_int(ncid, v, "a", NC_NAT, 1, &one));
    CALL(nc_put_att_int(ncid, v, "a", NC_CHAR, 1, &one));
    CALL(nc_put_att_int(ncid, v, "a", NC_INT, 1, NULL));
    CALL(nc_put_att_int(ncid, v, "a", NC_INT, (size_t) 1 << 33, &one));
    CALL(nc_put_att_int(ncid, v, "a", NC_INT, 1, &one));
    nc_type type = 0;
    size_t length = 0;
    int id = -1;
    char name[NC_MAX_NAME + 1] = "";
    CALL(nc_inq_att(ncid, v, "none", &type, &length));
    CALL(nc_inq_att(ncid, 7, "none", &type, &length));
    CALL(nc_inq_att(ncid, v, "a", NULL, NULL));
    CALL(nc_inq_attid(ncid, v, "none", &id));
    CALL(nc_inq_attid(ncid, v, "a", NULL));
    CALL(nc_inq_attname(ncid, v, 5, name));
    CALL(nc_inq_attname(ncid, v, -1, name));
    CALL(nc_inq_attname(ncid, 9, 0, name));
    CALL(nc_get_att_int(ncid, v, "none", &one));
    CALL(nc_get_att_text(ncid, v, "a", name));
    CALL(nc_del_att(ncid, v, "none"));
    CALL(nc_del_att(ncid, 9, "none"));
    CALL(nc_enddef(ncid));
    CALL(nc_put_att_int(ncid, v, "a", NC_INT, 1, (int[]){5}));
    CALL(nc_put_att_short(ncid, v, "a", NC_SHORT, 1, (short[]){6}));
    CALL(nc_put_att_int(ncid, v, "a", NC_INT, 2, (int[]){5, 6}));
    CALL(nc_put_att_int(ncid, v, "new", NC_INT, 1, (int[]){5}));
    if (w->format != NC_FORMAT_NETCDF4) /* which forgets to delete it */
        CALL(nc_del_att(ncid, v, "a"));
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    CALL(nc_put_att_int(ncid, v, "a", NC_INT, 1, (int[]){5}));
    CALL(nc_put_att_int(ncid, 5, "a", NC_INT, 1, (int[]){5}));
    CALL(nc_del_att(ncid, v, "a"));
    CALL(nc_rename_att(ncid, v, "a", "b"));
    note_file(ncid);
    CALL(nc_close(ncid));
}

static void
unknown_types(const world *w)
{
    int ncid = create(w);
    int one = 1;
    CALL(nc_put_att_int(ncid, NC_GLOBAL, "a", 77, 1, &one));
    CALL(nc_put_att_int(ncid, NC_GLOBAL, "c", 13, 1, &one));
    CALL(nc_abort(ncid));
}

static void
renaming_and_order(const world *w)
{
    int ncid = create(w);
    int v = -1;
    CALL(nc_def_var(ncid, "v", NC_INT, 0, NULL, &v));
    CALL(nc_put_att_text(ncid, v, "first", 1, "1"));
    CALL(nc_put_att_text(ncid, v, "second", 1, "2"));
    CALL(nc_put_att_text(ncid, v, "third", 1, "3"));
    CALL(nc_put_att_text(ncid, v, "second", 3, "two"));
    CALL(nc_rename_att(ncid, v, "first", "uno"));
    CALL(nc_rename_att(ncid, v, "third", "second"));
    CALL(nc_rename_att(ncid, v, "nobody", "tres"));
    CALL(nc_rename_att(ncid, v, "nobody", "second"));
    CALL(nc_rename_att(ncid, v, "third", "th/ird"));
    CALL(nc_rename_att(ncid, 4, "third", "x"));
    note_file(ncid);
    CALL(nc_del_att(ncid, v, "second"));
    note_file(ncid);
    CALL(nc_put_att_text(ncid, v, "second", 1, "2"));
    CALL(nc_enddef(ncid));
    if (w->format != NC_FORMAT_NETCDF4 && w->format != NC_FORMAT_NETCDF4_CLASSIC) {
        /* netCDF-4 moves what is renamed now to the end */
        CALL(nc_rename_att(ncid, v, "third", "tres"));
        CALL(nc_rename_att(ncid, v, "uno", "a_longer_name"));
    }
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_file(ncid);
    CALL(nc_close(ncid));
}

static void
copying(const world *w)
{
    int ncid = create(w);
    int v = -1;
    int u = -1;
    CALL(nc_def_var(ncid, "v", NC_FLOAT, 0, NULL, &v));
    CALL(nc_def_var(ncid, "u", NC_FLOAT, 0, NULL, &u));
    CALL(nc_put_att_text(ncid, v, "units", 5, "m s-1"));
    CALL(nc_put_att_float(ncid, v, "_FillValue", NC_FLOAT, 1, (float[]){-9}));
    CALL(nc_copy_att(ncid, v, "units", ncid, u));
    CALL(nc_copy_att(ncid, v, "_FillValue", ncid, u));
    CALL(nc_copy_att(ncid, v, "units", ncid, NC_GLOBAL));
    CALL(nc_copy_att(ncid, v, "nothing", ncid, u));
    int other = -1;
    CALL(nc_create(w->other, w->mode, &other));
    CALL(nc_copy_att(ncid, v, "units", other, NC_GLOBAL));
    note_file(other);
    CALL(nc_close(other));
    note_file(ncid);
    CALL(nc_close(ncid));
}

static void
reserved(const world *w)
{
    int ncid = create(w);
    int v = -1;
    int x = -1;
    CALL(nc_def_dim(ncid, "x", 2, &x));
    CALL(nc_def_var(ncid, "v", NC_FLOAT, 1, &x, &v));
    static const char *const names[] = {"_NCProperties",
                                        "_IsNetcdf4",
                                        "_SuperblockVersion",
                                        "_Netcdf4Coordinates",
                                        "_nc3_strict",
                                        "CLASS",
                                        "NAME",
                                        "DIMENSION_LIST",
                                        "_Format",
                                        "_Encoding",
                                        "_Netcdf4Dimid",
                                        "REFERENCE_LIST"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        note("%s", names[i]);
        CALL(nc_put_att_text(ncid, NC_GLOBAL, names[i], 1, "x"));
        CALL(nc_put_att_text(ncid, v, names[i], 1, "x"));
    }
    CALL(nc_enddef(ncid));
    int value = -1;
    CALL(nc_get_att_int(ncid, NC_GLOBAL, "_IsNetcdf4", &value));
    note("%d", value);
    CALL(nc_get_att_int(ncid, NC_GLOBAL, "_SuperblockVersion", &value));
    note("%d", value);
    nc_type type = 0;
    size_t length = 0;
    CALL(nc_inq_att(ncid, NC_GLOBAL, "_IsNetcdf4", &type, &length));
    note("%d %zu", type, length);
    CALL(nc_inq_att(ncid, v, "_IsNetcdf4", &type, &length));
    CALL(nc_inq_att(ncid, NC_GLOBAL, "_NCProperties", &type, NULL));
    note("%d", type);
    note_file(ncid);
    CALL(nc_close(ncid));
}

const scenario scenarios_atts[] = {{"atts", "all_types", IN_ALL, all_types},
                                   {"atts", "conversions", IN_ALL, conversions},
                                   {"atts", "errors", IN_ALL, errors},
                                   {"atts", "unknown_types", IN_ALL, unknown_types},
                                   {"atts", "renaming_and_order", IN_ALL, renaming_and_order},
                                   {"atts", "copying", IN_ALL, copying},
                                   {"atts", "reserved", IN_ALL, reserved},
                                   {0}};
