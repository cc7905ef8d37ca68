/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* nc_def_var_quantize(): the bits that are written, for every mode and number of digits. What was
 * written is read in the type of the variable alone: netCDF-C rounds again when it converts, in the
 * other type, and writes past the end of integers. */

#include "compare.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 400 };

/* splitmix64: the same numbers everywhere. */
static uint64_t
next_bits(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static const double special[] = {
    0.0,    -0.0,    1.0,      -1.0,      0.5,           10.0,     100.0,    0.001,   1e20,
    -1e-20, FLT_MAX, -FLT_MAX, FLT_MIN,   1e-40,         -1e-44,   1e300,    DBL_MAX, DBL_MIN,
    5e-324, -1e-310, INFINITY, -INFINITY, NC_FILL_FLOAT, 9.999999, 99.99999, 1024.0,  1023.9999};
enum { SPECIALS = sizeof special / sizeof special[0] };

/* Special values, each at an even and an odd place; ordinary ones; any bits at all. */
static void
make_values(float *floats, double *doubles)
{
    uint64_t state = 7;
    traps_off();
    for (int i = 0; i < COUNT; i++) {
        uint64_t bits = next_bits(&state);
        uint32_t half = (uint32_t) (bits >> 16);
        if (i < 4 * SPECIALS) {
            doubles[i] = special[i / 2 % SPECIALS] * (i < 2 * SPECIALS ? 1 : 1.0000001);
            floats[i] = (float) doubles[i];
        } else if (i < COUNT - 150) {
            doubles[i] = (double) (bits % 2000000) / 977.0 - 500;
            floats[i] = (float) doubles[i];
        } else {
            memcpy(&doubles[i], &bits, sizeof bits);
            memcpy(&floats[i], &half, sizeof half);
        }
    }
    traps_on();
}

static int
most_digits(nc_type type, int mode)
{
    if (mode == NC_QUANTIZE_BITROUND)
        return type == NC_FLOAT ? NC_QUANTIZE_MAX_FLOAT_NSB : NC_QUANTIZE_MAX_DOUBLE_NSB;
    return type == NC_FLOAT ? NC_QUANTIZE_MAX_FLOAT_NSD : NC_QUANTIZE_MAX_DOUBLE_NSD;
}

static void
note_floats(int ncid, int v)
{
    float floats[COUNT] = {0};
    CALL(nc_get_var_float(ncid, v, floats));
    note_bytes("float", floats, sizeof floats);
}

static void
note_doubles_of(int ncid, int v)
{
    double doubles[COUNT] = {0};
    CALL(nc_get_var_double(ncid, v, doubles));
    note_bytes("double", doubles, sizeof doubles);
}

static void
every_mode_and_digit(const world *w)
{
    static float floats[COUNT];
    static double doubles[COUNT];
    int ncid = create(w);
    int x = -1;
    int vars = 0;
    make_values(floats, doubles);
    CALL(nc_def_dim(ncid, "x", COUNT, &x));
    for (nc_type type = NC_FLOAT; type <= NC_DOUBLE; type++)
        for (int mode = NC_QUANTIZE_BITGROOM; mode <= NC_QUANTIZE_BITROUND; mode++)
            for (int digits = 1; digits <= most_digits(type, mode); digits++) {
                char name[20];
                int v = -1;
                snprintf(name, sizeof name, "v%d", vars++);
                CALL(nc_def_var(ncid, name, type, 1, &x, &v));
                CALL(nc_def_var_quantize(ncid, v, mode, digits));
            }
    CALL(nc_enddef(ncid));
    for (int v = 0; v < vars; v++) {
        nc_type type = NC_NAT;
        CALL(nc_inq_vartype(ncid, v, &type));
        if (type == NC_FLOAT) {
            CALL(nc_put_var_float(ncid, v, floats));
            note_floats(ncid, v);
        } else {
            CALL(nc_put_var_double(ncid, v, doubles));
            note_doubles_of(ncid, v);
        }
    }
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_file(ncid);
    CALL(nc_close(ncid));
}

/* Values that only netCDF-C ≥ 4.10.1 leaves alone. */
static void
not_a_number(const world *w)
{
    static const uint32_t bits[] = {0x7fc00000, 0x7fc00000, 0x7fc12345, 0x7fc12345,
                                    0x7fffffff, 0x7fffffff, 0xffffffff, 0xffffffff,
                                    0x7f800001, 0x7f800001, 0xff8fffff, 0xff8fffff};
    enum { N = sizeof bits / sizeof bits[0] };
    int ncid = create(w);
    int x = -1;
    CALL(nc_def_dim(ncid, "x", N, &x));
    float floats[N];
    double doubles[N];
    memcpy(floats, bits, sizeof bits);
    traps_off();
    for (int i = 0; i < N; i++)
        doubles[i] = (double) floats[i];
    traps_on();
    for (int v = 0; v < 12; v++) {
        char name[] = "vA";
        name[1] = (char) ('A' + v);
        int id = -1;
        bool is_float = v % 2 == 0;
        CALL(nc_def_var(ncid, name, is_float ? NC_FLOAT : NC_DOUBLE, 1, &x, &id));
        CALL(nc_def_var_quantize(ncid, id, 1 + v / 2 % 3, 4));
        float missing = NAN;
        if (v >= 6 && is_float)
            CALL(nc_put_att_float(ncid, id, "_FillValue", NC_FLOAT, 1, &missing));
        if (is_float)
            CALL(nc_put_var_float(ncid, id, floats));
        else
            CALL(nc_put_var_double(ncid, id, doubles));
        float got[N];
        double wide[N];
        if (is_float && CALL(nc_get_var_float(ncid, id, got)) == NC_NOERR)
            note_bytes("got", got, sizeof got);
        if (!is_float && CALL(nc_get_var_double(ncid, id, wide)) == NC_NOERR)
            note_bytes("got", wide, sizeof wide);
    }
    CALL(nc_close(ncid));
}

#define FROM(TYPE, SUFFIX)                                                                         \
    do {                                                                                           \
        TYPE values[COUNT];                                                                        \
        for (int i = 0; i < COUNT; i++)                                                            \
            values[i] = (TYPE) (i * 37 % 120);                                                     \
        CALL(nc_put_var_##SUFFIX(ncid, v, values));                                                \
        if (type == NC_FLOAT)                                                                      \
            note_floats(ncid, v);                                                                  \
        else                                                                                       \
            note_doubles_of(ncid, v);                                                              \
    } while (0)

static void
memory_types(const world *w)
{
    int ncid = create(w);
    int x = -1;
    CALL(nc_def_dim(ncid, "x", COUNT, &x));
    for (int mode = NC_QUANTIZE_BITGROOM; mode <= NC_QUANTIZE_BITROUND; mode++)
        for (nc_type type = NC_FLOAT; type <= NC_DOUBLE; type++) {
            char name[] = "vAA";
            name[1] = (char) ('A' + mode);
            name[2] = (char) ('A' + type);
            int v = -1;
            CALL(nc_def_var(ncid, name, type, 1, &x, &v));
            CALL(nc_def_var_quantize(ncid, v, mode, 3));
            FROM(signed char, schar);
            FROM(unsigned char, uchar);
            FROM(short, short);
            FROM(unsigned short, ushort);
            FROM(int, int);
            FROM(unsigned, uint);
            FROM(long long, longlong);
            FROM(unsigned long long, ulonglong);
            FROM(float, float);
            FROM(double, double);
            double huge[COUNT];
            for (int i = 0; i < COUNT; i++)
                huge[i] = i == 3 ? 1e300 : 1.23456789 * i;
            CALL(nc_put_var_double(ncid, v, huge));
            CALL(nc_put_var_text(ncid, v, "x"));
        }
    CALL(nc_close(ncid));
}

/* netCDF-C rounds call by call: what is at an even place in one may be at an odd one in another. */
static void
kinds_of_access(const world *w)
{
    enum { T = 4, Y = 5, X = 7 };
    int ncid = create(w);
    int d[3] = {-1, -1, -1};
    CALL(nc_def_dim(ncid, "t", NC_UNLIMITED, &d[0]));
    CALL(nc_def_dim(ncid, "y", Y, &d[1]));
    CALL(nc_def_dim(ncid, "x", X, &d[2]));
    double values[T * Y * X];
    for (int i = 0; i < T * Y * X; i++)
        values[i] = 1.2345678901234 * i;
    for (int mode = NC_QUANTIZE_BITGROOM; mode <= NC_QUANTIZE_BITROUND; mode++) {
        char name[] = "vA";
        name[1] = (char) ('A' + mode);
        int v = -1;
        CALL(nc_def_var(ncid, name, mode == 2 ? NC_DOUBLE : NC_FLOAT, 3, d, &v));
        CALL(nc_def_var_quantize(ncid, v, mode, 4));
        CALL(nc_def_var_deflate(ncid, v, 1, 1, 1));
        CALL(nc_put_vara_double(ncid, v, (size_t[]){0, 0, 0}, (size_t[]){T, Y, X}, values));
        note_file(ncid);
        CALL(nc_put_vara_double(ncid, v, (size_t[]){1, 1, 1}, (size_t[]){2, 3, 3}, values));
        note_file(ncid);
        CALL(nc_put_vars_double(ncid, v, (size_t[]){0, 0, 0}, (size_t[]){2, 3, 4},
                                (ptrdiff_t[]){2, 2, 2}, values + 11));
        note_file(ncid);
        CALL(nc_put_varm_double(ncid, v, (size_t[]){1, 0, 0}, (size_t[]){2, Y, X},
                                (ptrdiff_t[]){1, 1, 1}, (ptrdiff_t[]){1, 2, 2 * Y}, values));
        note_file(ncid);
        CALL(nc_put_varm_double(ncid, v, (size_t[]){1, 0, 0}, (size_t[]){2, 3, 3},
                                (ptrdiff_t[]){2, 2, 1}, (ptrdiff_t[]){3, 6, 1}, values + 5));
        note_file(ncid);
        CALL(nc_put_varm_double(ncid, v, (size_t[]){0, 0, 0}, (size_t[]){2, 3, 3},
                                (ptrdiff_t[]){1, 2, 1}, NULL, values + 9));
        note_file(ncid);
        CALL(nc_put_var1_double(ncid, v, (size_t[]){5, 2, 3}, values + 17));
        note_file(ncid);
    }
    int s = -1;
    CALL(nc_def_var(ncid, "scalar", NC_FLOAT, 0, NULL, &s));
    CALL(nc_def_var_quantize(ncid, s, NC_QUANTIZE_BITGROOM, 2));
    CALL(nc_put_var_double(ncid, s, values + 3));
    CALL(nc_put_varm_double(ncid, s, NULL, NULL, NULL, NULL, values + 3));
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_WRITE); /* the attribute says that it goes on */
    CALL(nc_put_vara_double(ncid, 0, (size_t[]){2, 0, 0}, (size_t[]){1, Y, X}, values + 40));
    note_file(ncid);
    CALL(nc_close(ncid));
}

static void
fill_values(const world *w)
{
    float values[9] = {1.23456f, 99.75f, 1.23456f, -99.99f, 99.75f, 1.23456f, 2, 3, 99.75f};
    int ncid = create(w);
    int x = -1;
    CALL(nc_def_dim(ncid, "x", 9, &x));
    for (int mode = NC_QUANTIZE_BITGROOM; mode <= NC_QUANTIZE_BITROUND; mode++)
        for (int how = 0; how < 3; how++) {
            char name[] = "vAA";
            name[1] = (char) ('A' + mode);
            name[2] = (char) ('A' + how);
            int v = -1;
            CALL(nc_def_var(ncid, name, NC_FLOAT, 1, &x, &v));
            CALL(nc_def_var_quantize(ncid, v, mode, 2));
            float missing = how == 0 ? 99.75f : 1.23456f;
            if (how == 0)
                CALL(nc_put_att_float(ncid, v, "_FillValue", NC_FLOAT, 1, &missing));
            else if (how == 1)
                CALL(nc_def_var_fill(ncid, v, NC_FILL, &missing));
            else
                CALL(nc_def_var_fill(ncid, v, NC_NOFILL, NULL));
            CALL(nc_put_vara_float(ncid, v, (size_t[]){0}, (size_t[]){9}, values));
            float got[9] = {0};
            CALL(nc_get_var_float(ncid, v, got));
            note_bytes("got", got, sizeof got);
        }
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_WRITE);
    for (int v = 0; v < 9; v++)
        CALL(nc_put_vara_float(ncid, v, (size_t[]){1}, (size_t[]){8}, values));
    note_file(ncid);
    CALL(nc_close(ncid));
}

static void
note_quantize(int ncid, int v)
{
    int mode = -9;
    int digits = -9;
    CALL(nc_inq_var_quantize(ncid, v, &mode, &digits));
    note("mode %d digits %d", mode, digits);
    CALL(nc_inq_var_quantize(ncid, v, NULL, &digits));
    CALL(nc_inq_var_quantize(ncid, v, &mode, NULL));
}

static void
settings(const world *w)
{
    int ncid = create(w);
    int x = -1;
    int v[4] = {-1, -1, -1, -1};
    CALL(nc_def_dim(ncid, "x", 3, &x));
    CALL(nc_def_var(ncid, "f", NC_FLOAT, 1, &x, &v[0]));
    CALL(nc_def_var(ncid, "d", NC_DOUBLE, 1, &x, &v[1]));
    CALL(nc_def_var(ncid, "i", NC_INT, 1, &x, &v[2]));
    for (int i = 0; i < 3; i++)
        for (int mode = -1; mode < 6; mode++)
            for (int digits = -1; digits < 55; digits += digits < 25 ? 1 : 9) {
                CALL(nc_def_var_quantize(ncid, v[i], mode, digits));
                note_quantize(ncid, v[i]);
            }
    CALL(nc_def_var_quantize(ncid, 7, NC_QUANTIZE_BITGROOM, 3));
    CALL(nc_def_var_quantize(ncid, -1, NC_QUANTIZE_BITGROOM, 3));
    CALL(nc_def_var_quantize(-1, 0, NC_QUANTIZE_BITGROOM, 3));
    note_quantize(ncid, 7);
    note_quantize(ncid, -1);
    CALL(nc_def_var_quantize(ncid, v[0], NC_QUANTIZE_BITGROOM, 3));
    CALL(nc_def_var_quantize(ncid, v[0], NC_NOQUANTIZE, 7));
    note_quantize(ncid, v[0]);
    CALL(nc_def_var_quantize(ncid, v[1], NC_QUANTIZE_GRANULARBR, 3));
    CALL(nc_put_att_text(ncid, v[1], "units", 1, "m"));
    note_file(ncid);
    CALL(nc_enddef(ncid));
    note_file(ncid);
    CALL(nc_def_var_quantize(ncid, v[0], NC_QUANTIZE_BITGROOM, 3));
    note_quantize(ncid, v[1]);
    CALL(nc_enddef(ncid));
    CALL(nc_redef(ncid));
    CALL(nc_def_var_quantize(ncid, v[0], NC_QUANTIZE_BITGROOM, 3));
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_quantize(ncid, v[0]);
    note_quantize(ncid, v[1]);
    CALL(nc_def_var_quantize(ncid, v[0], NC_QUANTIZE_BITGROOM, 3));
    note_file(ncid);
    CALL(nc_close(ncid));
}

/* Whoever writes the attribute has the variable rounded, from the next session on. */
static void
attributes_by_hand(const world *w)
{
    static const char *const names[] = {"_QuantizeBitGroomNumberOfSignificantDigits",
                                        "_QuantizeGranularBitRoundNumberOfSignificantDigits",
                                        "_QuantizeBitRoundNumberOfSignificantBits"};
    float values[5] = {1.23456f, 2.34567f, 3.45678f, 4.56789f, 5.67891f};
    int ncid = create(w);
    int x = -1;
    CALL(nc_def_dim(ncid, "x", 5, &x));
    for (int i = 0; i < 6; i++) {
        char name[] = "vA";
        name[1] = (char) ('A' + i);
        int v = -1;
        CALL(nc_def_var(ncid, name, i == 5 ? NC_INT : NC_FLOAT, 1, &x, &v));
        for (int n = i % 3; n < 3; n++)
            CALL(nc_put_att_int(ncid, v, names[n], i == 4 ? NC_SHORT : NC_INT, 1, (int[]){n + 1}));
        CALL(nc_put_var_float(ncid, v, values));
        note_quantize(ncid, v);
    }
    note_file(ncid);
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_WRITE);
    for (int v = 0; v < 5; v++) {
        note_quantize(ncid, v);
        CALL(nc_put_var_float(ncid, v, values));
    }
    note_quantize(ncid, 5);
    note_file(ncid);
    CALL(nc_del_att(ncid, 0, names[0]));
    note_quantize(ncid, 0);
    CALL(nc_put_var_float(ncid, 0, values));
    note_file(ncid);
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_WRITE);
    for (int v = 0; v < 6; v++)
        note_quantize(ncid, v);
    CALL(nc_close(ncid));
}

const scenario scenarios_quantize[] = {
    {"quantize", "every_mode_and_digit", IN_NC4, every_mode_and_digit},
    {"quantize", "not_a_number", IN_NC4, not_a_number},
    {"quantize", "memory_types", IN_NC4, memory_types},
    {"quantize", "kinds_of_access", IN_NC4, kinds_of_access},
    {"quantize", "fill_values", IN_NC4, fill_values},
    {"quantize", "settings", IN_NC4 | IN_CDF, settings},
    {"quantize", "attributes_by_hand", IN_HDF5, attributes_by_hand},
    {0}};
