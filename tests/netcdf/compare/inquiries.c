/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Functions that ask for one thing each, and those that work on attributes of one memory type. */

#include "compare.h"

#include <netcdf_filter.h>
#include <string.h>

static int
make(const world *w)
{
    int ncid = create(w);
    int d[2] = {-1, -1};
    int v = -1;
    CALL(nc_def_dim(ncid, "t", NC_UNLIMITED, &d[0]));
    CALL(nc_def_dim(ncid, "x", 3, &d[1]));
    CALL(nc_def_var(ncid, "v", NC_INT, 2, d, &v));
    CALL(nc_def_var(ncid, "s", NC_DOUBLE, 0, NULL, NULL));
    CALL(nc_put_att_text(ncid, NC_GLOBAL, "title", 5, "hello"));
    CALL(nc_put_att_int(ncid, v, "range", NC_SHORT, 2, (int[]){-3, 30}));
    return ncid;
}

static void
ask(int ncid)
{
    int n = -1;
    nc_type type = -1;
    size_t length = 99;
    int dims[4] = {-1, -1, -1, -1};
    char name[NC_MAX_NAME + 1] = "";
    CALL(nc_inq_ndims(ncid, &n));
    note("%d", n);
    CALL(nc_inq_nvars(ncid, &n));
    note("%d", n);
    CALL(nc_inq_natts(ncid, &n));
    note("%d", n);
    CALL(nc_inq_varname(ncid, 0, name));
    note("%s", name);
    CALL(nc_inq_vartype(ncid, 0, &type));
    CALL(nc_inq_varndims(ncid, 0, &n));
    CALL(nc_inq_vardimid(ncid, 0, dims));
    note_ints("dims", dims, 4);
    note("type %d rank %d", type, n);
    CALL(nc_inq_varnatts(ncid, 0, &n));
    CALL(nc_inq_atttype(ncid, 0, "range", &type));
    CALL(nc_inq_attlen(ncid, 0, "range", &length));
    note("atts %d type %d length %zu", n, type, length);
    CALL(nc_inq_atttype(ncid, 0, "none", &type));
    CALL(nc_inq_attlen(ncid, 7, "range", &length));
    CALL(nc_inq_base_pe(ncid, &n));
    CALL(nc_set_base_pe(ncid, 0));
    unsigned filter = 9;
    size_t count = 9;
    CALL(nc_inq_var_filter(ncid, 0, &filter, &count, NULL));
    note("filter %u %zu", filter, count);
}

static void
one_thing_each(const world *w)
{
    int ncid = make(w);
    ask(ncid);
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    ask(ncid);
    CALL(nc_close(ncid));
    ask(ncid);
}

/* The attribute functions of one memory type, with every external type. */
#define ATTRIBUTES(type, suffix)                                                                   \
    static void attributes_##suffix(int ncid)                                                      \
    {                                                                                              \
        for (nc_type t = NC_BYTE; t <= NC_STRING; t++) {                                           \
            type data[3] = {(type) 10, (type) 100, (type) 64};                                     \
            type got[3];                                                                           \
            memset(got, 0x22, sizeof got);                                                         \
            CALL(nc_put_att_##suffix(ncid, NC_GLOBAL, "a", t, 3, data));                           \
            if (CALL(nc_get_att_##suffix(ncid, NC_GLOBAL, "a", got)) == NC_NOERR)                  \
                note_bytes(#suffix, got, sizeof got);                                              \
        }                                                                                          \
    }

ATTRIBUTES(signed char, schar)
ATTRIBUTES(unsigned char, uchar)
ATTRIBUTES(unsigned char, ubyte)
ATTRIBUTES(short, short)
ATTRIBUTES(unsigned short, ushort)
ATTRIBUTES(int, int)
ATTRIBUTES(unsigned, uint)
ATTRIBUTES(long, long)
ATTRIBUTES(long long, longlong)
ATTRIBUTES(unsigned long long, ulonglong)
ATTRIBUTES(float, float)
ATTRIBUTES(double, double)

static void
attributes(const world *w)
{
    static void (*const all[])(int) = {attributes_schar,     attributes_uchar,  attributes_ubyte,
                                       attributes_short,     attributes_ushort, attributes_int,
                                       attributes_uint,      attributes_long,   attributes_longlong,
                                       attributes_ulonglong, attributes_float,  attributes_double};
    int ncid = create(w);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        all[i](ncid);
    const char *texts[2] = {"one", "zwei"};
    char *got[2] = {NULL, NULL};
    CALL(nc_put_att_string(ncid, NC_GLOBAL, "s", 2, texts));
    if (CALL(nc_get_att_string(ncid, NC_GLOBAL, "s", got)) == NC_NOERR) {
        note("'%s' '%s'", got[0], got[1]);
        CALL(nc_free_string(2, got));
    }
    CALL(nc_put_att(ncid, NC_GLOBAL, "u", NC_FLOAT, 2, (float[]){1, 2}));
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_file(ncid);
    CALL(nc_close(ncid));
}

/* Values in memory. */
static void
memory(const world *w)
{
    int ncid = create(w);
    int from[3] = {1, 2, 3};
    int to[3] = {0, 0, 0};
    void *copy = NULL;
    char *texts[2] = {NULL, NULL};
    CALL(nc_copy_data(ncid, NC_INT, from, 3, to));
    note_ints("copy", to, 3);
    CALL(nc_copy_data_all(ncid, NC_INT, from, 3, &copy));
    CALL(nc_reclaim_data_all(ncid, NC_INT, copy, 3));
    CALL(nc_copy_data(ncid, NC_STRING, (const char *[]){"a", "bc"}, 2, texts));
    note("'%s' '%s'", texts[0], texts[1]);
    CALL(nc_reclaim_data(ncid, NC_STRING, texts, 2));
    CALL(nc_show_metadata(ncid)); /* of libnetcdf built with logging */
    CALL(nc_close(ncid));
    CALL(nc_show_metadata(ncid));
}

const scenario scenarios_inquiries[] = {{"inquiries", "one_thing_each", IN_ALL, one_thing_each},
                                        {"inquiries", "attributes", IN_ALL, attributes},
                                        {"inquiries", "memory", IN_ALL, memory},
                                        {0}};
