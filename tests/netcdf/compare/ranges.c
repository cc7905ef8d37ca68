/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Values that do not fit into the type they are converted to, written and read; NaN. */
#include "compare.h"

#include <math.h>
#include <string.h>

enum { N = 16 };
static const double values[N] = {
    0,     1.6,   -1.6,   127,          128,           -129,         255,  256,
    32768, 65535, -32769, 2147483648.0, -2147483649.0, 8589934592.0, 1e19, 1e39};

#define PUT_GET(type, suffix)                                                                      \
    static void put_##suffix(int ncid, int v)                                                      \
    {                                                                                              \
        for (size_t i = 0; i < N; i++) {                                                           \
            double d = values[i];                                                                  \
            if (d < -9e18 || d > 9e18)                                                             \
                d = 7;                                                                             \
            type value = (type) (long long) d;                                                     \
            CALL(nc_put_var1_##suffix(ncid, v, &i, &value));                                       \
        }                                                                                          \
    }                                                                                              \
    static void get_##suffix(int ncid, int v)                                                      \
    {                                                                                              \
        type got[N];                                                                               \
        for (size_t i = 0; i < N; i++)                                                             \
            if (CALL(nc_get_var1_##suffix(ncid, v, &i, got)) == NC_NOERR)                          \
                note_bytes(#suffix, got, sizeof got[0]);                                           \
        if (CALL(nc_get_var_##suffix(ncid, v, got)) == NC_NOERR)                                   \
            note_bytes(#suffix, got, sizeof got);                                                  \
    }

PUT_GET(signed char, schar)
PUT_GET(unsigned char, uchar)
PUT_GET(short, short)
PUT_GET(unsigned short, ushort)
PUT_GET(int, int)
PUT_GET(unsigned, uint)
PUT_GET(long, long)
PUT_GET(long long, longlong)
PUT_GET(unsigned long long, ulonglong)
PUT_GET(float, float)
PUT_GET(double, double)

static void (*const putters[])(int, int) = {put_schar,     put_uchar, put_short, put_ushort,
                                            put_int,       put_uint,  put_long,  put_longlong,
                                            put_ulonglong, put_float, put_double};
static void (*const getters[])(int, int) = {get_schar,     get_uchar, get_short, get_ushort,
                                            get_int,       get_uint,  get_long,  get_longlong,
                                            get_ulonglong, get_float, get_double};

static int
define(const world *w, int *ret_vars, nc_type *ret_last)
{
    int ncid = create(w);
    int x = -1;
    *ret_last =
        w->format == NC_FORMAT_64BIT_DATA || w->format == NC_FORMAT_NETCDF4 ? NC_UINT64 : NC_DOUBLE;
    CALL(nc_def_dim(ncid, "x", N, &x));
    for (nc_type type = NC_BYTE; type <= *ret_last; type++) {
        char name[] = "vA";
        name[1] = (char) ('A' + type);
        CALL(nc_def_var(ncid, name, type, 1, &x, &ret_vars[type]));
    }
    CALL(nc_enddef(ncid));
    return ncid;
}

/* Values beyond the range of the file's type come out as the compiler at hand converts them: only
 * the codes of such writes are compared, and the values of those that fit. */
static void
writes(const world *w)
{
    int v[NC_UINT64 + 1];
    nc_type last;
    int ncid = define(w, v, &last);
    for (nc_type type = NC_BYTE; type <= last; type++) {
        for (size_t p = 0; p < sizeof putters / sizeof putters[0]; p++)
            putters[p](ncid, v[type]);
        for (size_t i = 0; i < N; i++)
            CALL(nc_put_var1_double(ncid, v[type], &i, values + i));
        CALL(nc_put_var_double(ncid, v[type], values));
    }
    CALL(nc_close(ncid));
}

static void
reads(const world *w)
{
    int v[NC_UINT64 + 1];
    nc_type last;
    int ncid = define(w, v, &last);
    for (nc_type type = NC_BYTE; type <= last; type++) {
        if (type == NC_CHAR)
            continue;
        double limit[] = {0,     127, 0,     32767,        2147483647.0, 3e38,
                          1e300, 255, 65535, 4294967295.0, 9e18,         1.8e19};
        /* Floating point above 2^63 to and from unsigned numbers: ESDM does as netCDF-4, which
         * differs from netCDF-3. */
        double most = fmin(limit[type], 9e18);
        for (size_t i = 0; i < N; i++) {
            double value = fabs(values[i]) < most ? values[i] : 5;
            if (value < 0 && (type >= NC_UBYTE && type != NC_INT64))
                value = -value;
            CALL(nc_put_var1_double(ncid, v[type], &i, &value));
        }
        for (size_t g = 0; g < sizeof getters / sizeof getters[0]; g++)
            getters[g](ncid, v[type]);
    }
    CALL(nc_close(ncid));
}

static void
not_numbers(const world *w)
{
    int v[NC_UINT64 + 1];
    nc_type last;
    int ncid = define(w, v, &last);
    const double odd[] = {NAN, INFINITY, -INFINITY, -0.0, 1e-320};
    for (size_t i = 0; i < 5; i++) {
        CALL(nc_put_var1_double(ncid, v[NC_DOUBLE], &i, odd + i));
        CALL(nc_put_var1_double(ncid, v[NC_FLOAT], &i, odd + i));
        CALL(nc_put_var1_double(ncid, v[NC_INT], &i, odd + i));
        float f = 3;
        double d = 3;
        if (CALL(nc_get_var1_float(ncid, v[NC_DOUBLE], &i, &f)) == NC_NOERR)
            note("%g", (double) f);
        CALL(nc_get_var1_float(ncid, v[NC_FLOAT], &i, &f));
        note("%g", (double) f);
        CALL(nc_get_var1_double(ncid, v[NC_FLOAT], &i, &d));
        note("%g", d);
        CALL(nc_get_var1_double(ncid, v[NC_DOUBLE], &i, &d));
        note("%g", d);
        int n = 3;
        CALL(nc_get_var1_int(ncid, v[NC_FLOAT], &i, &n));
        CALL(nc_get_var1_int(ncid, v[NC_DOUBLE], &i, &n));
    }
    CALL(nc_close(ncid));
}

static void
all_moved_before_the_error(const world *w)
{
    int v[NC_UINT64 + 1];
    nc_type last;
    int ncid = define(w, v, &last);
    const int data[N] = {1, 2, 3, 100000, 5, 6, -100000, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    CALL(nc_put_var_int(ncid, v[NC_SHORT], data));
    short got[N] = {0};
    CALL(nc_get_var_short(ncid, v[NC_SHORT], got));
    for (int i = 0; i < N; i++)
        note("%d", i == 3 || i == 6 ? 0 : got[i]);
    CALL(nc_put_var_int(ncid, v[NC_INT], data));
    signed char small[N] = {0};
    CALL(nc_get_var_schar(ncid, v[NC_INT], small));
    for (int i = 0; i < N; i++)
        note("%d", i == 3 || i == 6 ? 0 : small[i]);
    CALL(nc_close(ncid));
}

enum { ROWS = 3, COLUMNS = 4, ROOM = 2 * ROWS * COLUMNS };

/* Reads of all shapes into memory that holds something. What does not fit, be it written or the
 * fill value, leaves that there. */
#define KEEP(type, suffix)                                                                         \
    static void keep_##suffix(int ncid, int v)                                                     \
    {                                                                                              \
        const size_t origin[] = {0, 0}, all[] = {ROWS, COLUMNS}, some[] = {2, 2};                  \
        const ptrdiff_t stride[] = {2, 2}, turned[] = {2, 2 * ROWS}, back[] = {-COLUMNS, -1};      \
        type got[ROOM];                                                                            \
        memset(got, 77, sizeof got);                                                               \
        CALL(nc_get_vara_##suffix(ncid, v, origin, all, got));                                     \
        note_bytes("vara", got, sizeof got);                                                       \
        memset(got, 77, sizeof got);                                                               \
        CALL(nc_get_vars_##suffix(ncid, v, origin, some, stride, got));                            \
        note_bytes("vars", got, sizeof got);                                                       \
        memset(got, 77, sizeof got);                                                               \
        CALL(nc_get_varm_##suffix(ncid, v, origin, all, NULL, turned, got));                       \
        note_bytes("varm", got, sizeof got);                                                       \
        memset(got, 77, sizeof got);                                                               \
        CALL(nc_get_varm_##suffix(ncid, v, origin, all, NULL, back, got + ROWS * COLUMNS - 1));    \
        note_bytes("varm backwards", got, sizeof got);                                             \
    }

KEEP(signed char, schar)
KEEP(unsigned char, uchar)
KEEP(short, short)
KEEP(unsigned short, ushort)
KEEP(int, int)
KEEP(unsigned, uint)
KEEP(long, long)
KEEP(long long, longlong)
KEEP(unsigned long long, ulonglong)

static void (*const keepers[])(int, int) = {keep_schar,  keep_uchar,    keep_short,
                                            keep_ushort, keep_int,      keep_uint,
                                            keep_long,   keep_longlong, keep_ulonglong};

static void
kept(const world *w)
{
    const double data[] = {1, -1e30, 200, 3e9, 70000, 1e19};
    const size_t at[][2] = {{0, 1}, {0, 3}, {2, 0}};
    const size_t count[] = {1, 1};
    const size_t two[] = {1, 2};
    const float five = 5;
    int ncid = create(w);
    int d[2] = {-1, -1};
    int v[3] = {-1, -1, -1};
    CALL(nc_def_dim(ncid, "y", ROWS, &d[0]));
    CALL(nc_def_dim(ncid, "x", COLUMNS, &d[1]));
    CALL(nc_def_var(ncid, "double", NC_DOUBLE, 2, d, &v[0]));
    CALL(nc_def_var(ncid, "float", NC_FLOAT, 2, d, &v[1]));
    CALL(nc_def_var(ncid, "filled", NC_FLOAT, 2, d, &v[2]));
    CALL(nc_put_att_float(ncid, v[2], _FillValue, NC_FLOAT, 1, &five));
    CALL(nc_enddef(ncid));
    for (int i = 0; i < 3; i++) {
        for (int g = 0; g < 3; g++) /* nothing is written */
            keepers[3 * g](ncid, v[i]);
        CALL(nc_put_vara_double(ncid, v[i], at[0], two, data));
        CALL(nc_put_vara_double(ncid, v[i], at[1], count, data + 2));
        CALL(nc_put_vara_double(ncid, v[i], at[2], two, data + 3));
        for (size_t g = 0; g < sizeof keepers / sizeof keepers[0]; g++)
            keepers[g](ncid, v[i]);
        const ptrdiff_t stride[] = {2, 3};
        const size_t corners[] = {2, 2};
        CALL(nc_put_vars_double(ncid, v[i], (size_t[]){0, 0}, corners, stride, data + 2));
        for (size_t g = 0; g < sizeof keepers / sizeof keepers[0]; g++)
            keepers[g](ncid, v[i]);
    }
    CALL(nc_close(ncid));
}

const scenario scenarios_ranges[] = {
    {"ranges", "writes", IN_ALL, writes},
    {"ranges", "reads", IN_ALL, reads},
    {"ranges", "not_numbers", IN_ALL, not_numbers},
    {"ranges", "all_moved_before_the_error", IN_ALL, all_moved_before_the_error},
    {"ranges", "kept", IN_CDF, kept},
    {0}};
