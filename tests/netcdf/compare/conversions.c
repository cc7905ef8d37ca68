/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Every pair of a type in the file and one in memory, with values around the limits of both. Values
 * that do not fit are defined by nobody; then the code alone is compared, but where netCDF-3 reads
 * floating-point numbers as integers: it leaves the memory as it was.
 */

#include "compare.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const double reals[] = {0,
                               1,
                               -1,
                               127,
                               128,
                               -128,
                               -129,
                               255,
                               256,
                               32767,
                               32768,
                               -32768,
                               -32769,
                               65535,
                               65536,
                               0x1p31 - 1,
                               0x1p31,
                               -0x1p31,
                               -0x1p31 - 1,
                               2147483520,
                               0x1p32 - 1,
                               0x1p32,
                               4294967040,
                               0x1p63 - 1024,
                               0x1p63,
                               -0x1p63,
                               -0x1p63 - 2048,
                               9223373136366403584.0,
                               0x1p64 - 2048,
                               0x1p64,
                               1.9e19,
                               1e30,
                               -1e30,
                               FLT_MAX,
                               3.5e38,
                               -3.5e38,
                               DBL_MAX,
                               0.5,
                               -0.5,
                               127.5,
                               255.5,
                               -0.999,
                               65535.5,
                               0x1p31 - 0.5,
                               0x1p32 - 0.5,
                               NAN,
                               INFINITY,
                               -INFINITY};
static const int64_t integers[] = {0,
                                   1,
                                   -1,
                                   127,
                                   128,
                                   -128,
                                   -129,
                                   255,
                                   256,
                                   32767,
                                   32768,
                                   -32768,
                                   -32769,
                                   65535,
                                   65536,
                                   INT32_MAX,
                                   (int64_t) INT32_MAX + 1,
                                   INT32_MIN,
                                   (int64_t) INT32_MIN - 1,
                                   UINT32_MAX,
                                   (int64_t) UINT32_MAX + 1,
                                   INT64_MAX,
                                   INT64_MIN,
                                   INT64_MAX - 1,
                                   16777217,
                                   9007199254740993,
                                   -9007199254740993};
enum { REALS = sizeof reals / sizeof reals[0], INTEGERS = sizeof integers / sizeof integers[0] };

typedef union element {
    signed char i8;
    short i16;
    int i32;
    long long i64;
    unsigned char u8;
    unsigned short u16;
    unsigned int u32;
    unsigned long long u64;
    float f32;
    double f64;
} element;

static bool
is_real(nc_type type)
{
    return type == NC_FLOAT || type == NC_DOUBLE;
}

static int
value_count(nc_type type)
{
    return is_real(type) ? REALS : INTEGERS;
}

static element
value_of(nc_type type, int i)
{
    element e = {.u64 = 0};
    traps_off();
    switch (type) {
    case NC_FLOAT:
        e.f32 = (float) reals[i];
        break;
    case NC_DOUBLE:
        e.f64 = reals[i];
        break;
    default: /* the low bytes come first */
        e.i64 = integers[i];
        break;
    }
    traps_on();
    return e;
}

static int
put_var(int ncid, int v, nc_type type, const size_t *at, const element *e)
{
    switch (type) {
    case NC_BYTE:
        return nc_put_var1_schar(ncid, v, at, &e->i8);
    case NC_SHORT:
        return nc_put_var1_short(ncid, v, at, &e->i16);
    case NC_INT:
        return nc_put_var1_int(ncid, v, at, &e->i32);
    case NC_FLOAT:
        return nc_put_var1_float(ncid, v, at, &e->f32);
    case NC_DOUBLE:
        return nc_put_var1_double(ncid, v, at, &e->f64);
    case NC_UBYTE:
        return nc_put_var1_uchar(ncid, v, at, &e->u8);
    case NC_USHORT:
        return nc_put_var1_ushort(ncid, v, at, &e->u16);
    case NC_UINT:
        return nc_put_var1_uint(ncid, v, at, &e->u32);
    case NC_INT64:
        return nc_put_var1_longlong(ncid, v, at, &e->i64);
    default:
        return nc_put_var1_ulonglong(ncid, v, at, &e->u64);
    }
}

static int
get_var(int ncid, int v, nc_type type, const size_t *at, element *e)
{
    switch (type) {
    case NC_BYTE:
        return nc_get_var1_schar(ncid, v, at, &e->i8);
    case NC_SHORT:
        return nc_get_var1_short(ncid, v, at, &e->i16);
    case NC_INT:
        return nc_get_var1_int(ncid, v, at, &e->i32);
    case NC_FLOAT:
        return nc_get_var1_float(ncid, v, at, &e->f32);
    case NC_DOUBLE:
        return nc_get_var1_double(ncid, v, at, &e->f64);
    case NC_UBYTE:
        return nc_get_var1_uchar(ncid, v, at, &e->u8);
    case NC_USHORT:
        return nc_get_var1_ushort(ncid, v, at, &e->u16);
    case NC_UINT:
        return nc_get_var1_uint(ncid, v, at, &e->u32);
    case NC_INT64:
        return nc_get_var1_longlong(ncid, v, at, &e->i64);
    default:
        return nc_get_var1_ulonglong(ncid, v, at, &e->u64);
    }
}

static int
put_att(int ncid, nc_type file, nc_type memory, const element *e)
{
    switch (memory) {
    case NC_BYTE:
        return nc_put_att_schar(ncid, NC_GLOBAL, "a", file, 1, &e->i8);
    case NC_SHORT:
        return nc_put_att_short(ncid, NC_GLOBAL, "a", file, 1, &e->i16);
    case NC_INT:
        return nc_put_att_int(ncid, NC_GLOBAL, "a", file, 1, &e->i32);
    case NC_FLOAT:
        return nc_put_att_float(ncid, NC_GLOBAL, "a", file, 1, &e->f32);
    case NC_DOUBLE:
        return nc_put_att_double(ncid, NC_GLOBAL, "a", file, 1, &e->f64);
    case NC_UBYTE:
        return nc_put_att_uchar(ncid, NC_GLOBAL, "a", file, 1, &e->u8);
    case NC_USHORT:
        return nc_put_att_ushort(ncid, NC_GLOBAL, "a", file, 1, &e->u16);
    case NC_UINT:
        return nc_put_att_uint(ncid, NC_GLOBAL, "a", file, 1, &e->u32);
    case NC_INT64:
        return nc_put_att_longlong(ncid, NC_GLOBAL, "a", file, 1, &e->i64);
    default:
        return nc_put_att_ulonglong(ncid, NC_GLOBAL, "a", file, 1, &e->u64);
    }
}

static int
get_att(int ncid, nc_type memory, element *e)
{
    switch (memory) {
    case NC_BYTE:
        return nc_get_att_schar(ncid, NC_GLOBAL, "a", &e->i8);
    case NC_SHORT:
        return nc_get_att_short(ncid, NC_GLOBAL, "a", &e->i16);
    case NC_INT:
        return nc_get_att_int(ncid, NC_GLOBAL, "a", &e->i32);
    case NC_FLOAT:
        return nc_get_att_float(ncid, NC_GLOBAL, "a", &e->f32);
    case NC_DOUBLE:
        return nc_get_att_double(ncid, NC_GLOBAL, "a", &e->f64);
    case NC_UBYTE:
        return nc_get_att_uchar(ncid, NC_GLOBAL, "a", &e->u8);
    case NC_USHORT:
        return nc_get_att_ushort(ncid, NC_GLOBAL, "a", &e->u16);
    case NC_UINT:
        return nc_get_att_uint(ncid, NC_GLOBAL, "a", &e->u32);
    case NC_INT64:
        return nc_get_att_longlong(ncid, NC_GLOBAL, "a", &e->i64);
    default:
        return nc_get_att_ulonglong(ncid, NC_GLOBAL, "a", &e->u64);
    }
}

/* From 2^63 on netCDF-4 converts floating-point numbers to a wrong uint64. */
static bool
is_known_wrong(const world *w, nc_type from, nc_type to, double value)
{
    return (w->format == NC_FORMAT_NETCDF4 || w->format == NC_FORMAT_NETCDF4_CLASSIC) &&
           is_real(from) && to == NC_UINT64 && isgreaterequal(value, 0x1p63);
}

static void
note_result(const char *what, nc_type from, nc_type to, int i, int put, int get, const element *e,
            bool value_counts)
{
    char bits[20] = "";
    if (value_counts)
        (void) snprintf(bits, sizeof bits, "%llx", e->u64);
    note("%s %d to %d, value %d -> %d %d %s", what, from, to, i, put, get, bits);
}

static nc_type
last_type(const world *w)
{
    return w->format == NC_FORMAT_NETCDF4 || w->format == NC_FORMAT_64BIT_DATA ? NC_UINT64
                                                                               : NC_DOUBLE;
}

static void
variables(const world *w)
{
    int ncid = create(w);
    int d = -1;
    int v[NC_UINT64 + 1];
    CALL(nc_def_dim(ncid, "x", 2, &d));
    for (nc_type type = NC_BYTE; type <= last_type(w); type++) {
        char name[20];
        (void) snprintf(name, sizeof name, "v%d", type);
        CALL(nc_def_var(ncid, name, type, 1, &d, &v[type]));
    }
    CALL(nc_enddef(ncid));
    size_t at = 1;
    for (int n = 0; n < (NC_UINT64 + 1) * (NC_UINT64 + 1); n++) {
        nc_type file = n % (NC_UINT64 + 1);
        nc_type memory = n / (NC_UINT64 + 1);
        if (file < NC_BYTE || memory < NC_BYTE || file == NC_CHAR || memory == NC_CHAR ||
            file > last_type(w))
            continue;
        for (int i = 0; i < value_count(memory); i++) {
            element e = value_of(memory, i);
            element got = {.u64 = 0};
            int put = put_var(ncid, v[file], memory, &at, &e);
            int get = get_var(ncid, v[file], file, &at, &got);
            bool wrong = is_real(memory) && is_known_wrong(w, memory, file, reals[i]);
            note_result("put", memory, file, i, put, get, &got, put == NC_NOERR && !wrong);
        }
        for (int i = 0; i < value_count(file); i++) {
            element e = value_of(file, i);
            element got = {.u64 = 0};
            int put = put_var(ncid, v[file], file, &at, &e);
            int get = get_var(ncid, v[file], memory, &at, &got);
            bool wrong = is_real(file) && is_known_wrong(w, file, memory, reals[i]);
            note_result("get", file, memory, i, put, get, &got, get == NC_NOERR && !wrong);
        }
    }
    CALL(nc_close(ncid));
}

static void
attributes(const world *w)
{
    int ncid = create(w);
    for (int n = 0; n < (NC_UINT64 + 1) * (NC_UINT64 + 1); n++) {
        nc_type file = n % (NC_UINT64 + 1);
        nc_type memory = n / (NC_UINT64 + 1);
        if (file < NC_BYTE || memory < NC_BYTE || file == NC_CHAR || memory == NC_CHAR ||
            file > last_type(w))
            continue;
        for (int i = 0; i < value_count(memory); i++) {
            element e = value_of(memory, i);
            element got = {.u64 = 0};
            int put = put_att(ncid, file, memory, &e);
            int get = get_att(ncid, file, &got);
            bool wrong = is_real(memory) && is_known_wrong(w, memory, file, reals[i]);
            note_result("put", memory, file, i, put, get, &got, put == NC_NOERR && !wrong);
        }
        for (int i = 0; i < value_count(file); i++) {
            element e = value_of(file, i);
            element got = {.u64 = 0};
            int put = put_att(ncid, file, file, &e);
            int get = get_att(ncid, memory, &got);
            bool wrong = is_real(file) && is_known_wrong(w, file, memory, reals[i]);
            note_result("get", file, memory, i, put, get, &got, get == NC_NOERR && !wrong);
        }
    }
    CALL(nc_close(ncid));
}

static void
kept(const world *w)
{
    const nc_type files[] = {NC_FLOAT, NC_DOUBLE};
    const size_t at = 0;
    for (int n = 0; n < 2 * (NC_UINT64 + 1); n++) {
        nc_type file = files[n % 2];
        nc_type memory = n / 2;
        if (memory < NC_BYTE || memory == NC_CHAR || is_real(memory))
            continue;
        int ncid = create(w);
        int v = -1;
        CALL(nc_def_var(ncid, "v", file, 0, NULL, &v));
        for (int i = 0; i < REALS; i++) {
            element e = value_of(file, i);
            element of_var = {.u64 = 77};
            element of_att = {.u64 = 77};
            int put = put_att(ncid, file, file, &e);
            int get = get_att(ncid, memory, &of_att);
            note_result("attribute", file, memory, i, put, get, &of_att, true);
            CALL(nc_enddef(ncid));
            put = put_var(ncid, v, file, &at, &e);
            get = get_var(ncid, v, memory, &at, &of_var);
            note_result("variable", file, memory, i, put, get, &of_var, true);
            CALL(nc_redef(ncid));
        }
        CALL(nc_close(ncid));
    }
}

const scenario scenarios_conversions[] = {{"conversions", "variables", IN_ALL, variables},
                                          {"conversions", "attributes", IN_ALL, attributes},
                                          {"conversions", "kept", IN_CDF, kept},
                                          {0}};
