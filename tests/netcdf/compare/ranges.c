/* SPDX-License-Identifier: LGPL-3.0-or-later */
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

const scenario scenarios_ranges[] = {
    {"ranges", "writes", IN_ALL, writes},
    {"ranges", "reads", IN_ALL, reads},
    {"ranges", "not_numbers", IN_ALL, not_numbers},
    {"ranges", "all_moved_before_the_error", IN_ALL, all_moved_before_the_error},
    {0}};
