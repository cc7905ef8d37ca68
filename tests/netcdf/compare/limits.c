/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Lengths, sizes and counts at the limits of each format. Nothing is written but headers. */

#include "compare.h"

#include <stdint.h>
#include <stdio.h>

static void
lengths(const world *w)
{
    static const size_t candidates[] = {
        INT32_MAX - 4,  INT32_MAX - 3,  INT32_MAX - 2,  INT32_MAX,  (size_t) INT32_MAX + 1,
        UINT32_MAX - 4, UINT32_MAX - 3, UINT32_MAX - 2, UINT32_MAX, (size_t) UINT32_MAX + 1,
        INT64_MAX - 3,  INT64_MAX};
    static const size_t huge[] = {(size_t) 1 << 63, UINT64_MAX - 4, UINT64_MAX - 3, UINT64_MAX - 2,
                                  UINT64_MAX};
    /* HDF5 fails on the last ones when it writes them. */
    size_t count = sizeof candidates / sizeof candidates[0];
    int ncid = create(w);
    for (size_t i = 0; i < count - (w->format == NC_FORMAT_NETCDF4 ? 2 : 0); i++) {
        char name[20];
        snprintf(name, sizeof name, "d%zu", i);
        CALL(nc_def_dim(ncid, name, candidates[i], NULL));
    }
    bool nc3 = w->format != NC_FORMAT_NETCDF4 && w->format != NC_FORMAT_NETCDF4_CLASSIC;
    for (size_t i = 0; nc3 && i < sizeof huge / sizeof huge[0]; i++) {
        char name[20];
        snprintf(name, sizeof name, "h%zu", i);
        CALL(nc_def_dim(ncid, name, huge[i], NULL));
    }
    note_file(ncid);
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_file(ncid);
    CALL(nc_close(ncid));
}

/* Pairs of variables of 1-D sizes around the limits, in both orders, fixed and as records. */
static void
sizes(const world *w)
{
    static const size_t elements[] = {
        10,        268435455,  268435456,  536870910,        536870911,
        536870912, 1073741822, 1073741823, (size_t) 1 << 30, 4294967292u};
    enum { COUNT = sizeof elements / sizeof elements[0] };
    for (int i = 0; i < COUNT * COUNT * 4; i++) {
        int ncid = -1;
        int d[3] = {-1, -1, -1};
        size_t first = elements[i % COUNT];
        size_t second = elements[i / COUNT % COUNT];
        bool records[2] = {i / COUNT / COUNT % 2 == 1, i / COUNT / COUNT / 2 == 1};
        note("%zu %zu %d %d", first, second, records[0], records[1]);
        CALL(nc_create(w->path, w->mode | NC_CLOBBER, &ncid));
        CALL(nc_set_fill(ncid, NC_NOFILL, NULL));
        CALL(nc_def_dim(ncid, "t", NC_UNLIMITED, &d[0]));
        int rc = CALL(nc_def_dim(ncid, "a", first, &d[1]));
        rc |= CALL(nc_def_dim(ncid, "b", second, &d[2]));
        if (rc == NC_NOERR) {
            CALL(nc_def_var(ncid, "va", NC_INT, records[0] ? 2 : 1, records[0] ? d : d + 1, NULL));
            CALL(nc_def_var(ncid, "vb", NC_INT, records[1] ? 2 : 1,
                            records[1] ? (int[]){d[0], d[2]} : d + 2, NULL));
            CALL(nc_def_var(ncid, "vc", NC_INT, 0, NULL, NULL));
            CALL(nc_enddef(ncid));
        }
        CALL(nc_abort(ncid));
    }
}

/* CDF-1 refuses what would begin beyond 2 GiB, to the byte. */
static void
beginnings(const world *w)
{
    for (size_t i = 0; i < 400; i += 4) {
        int ncid = -1;
        int d[2] = {-1, -1};
        CALL(nc_create(w->path, w->mode | NC_CLOBBER, &ncid));
        CALL(nc_set_fill(ncid, NC_NOFILL, NULL));
        CALL(nc_def_dim(ncid, "a_dimension", INT32_MAX - 3 - i, &d[0]));
        CALL(nc_def_dim(ncid, "t", NC_UNLIMITED, &d[1]));
        CALL(nc_put_att_text(ncid, NC_GLOBAL, "title", 5, "bytes"));
        CALL(nc_def_var(ncid, "first", NC_BYTE, 1, d, NULL));
        CALL(nc_put_att_double(ncid, 0, "limits", NC_FLOAT, 3, (double[]){1, 2, 3}));
        CALL(nc_def_var(ncid, "second", NC_BYTE, i % 8 == 0 ? 0 : 1, d + 1, NULL));
        note("%zu", i);
        CALL(nc_enddef(ncid));
        CALL(nc_abort(ncid));
    }
    static const size_t paddings[][4] = {{2147483648u, 1, 1, 1},     {2147483500u, 1, 1, 1},
                                         {2147483600u, 4, 0, 4},     {0, 1, 2147483648u, 1},
                                         {0, 1, 2147483500u, 4},     {0, 1, 0, (size_t) 1 << 31},
                                         {0, (size_t) 1 << 32, 0, 4}};
    for (size_t i = 0; i < sizeof paddings / sizeof paddings[0]; i++) {
        int ncid = -1;
        int d[2] = {-1, -1};
        CALL(nc_create(w->path, w->mode | NC_CLOBBER, &ncid));
        CALL(nc_set_fill(ncid, NC_NOFILL, NULL));
        CALL(nc_def_dim(ncid, "x", 10, &d[0]));
        CALL(nc_def_dim(ncid, "t", NC_UNLIMITED, &d[1]));
        CALL(nc_def_var(ncid, "fixed", NC_INT, 1, d, NULL));
        CALL(nc_def_var(ncid, "record", NC_INT, 1, d + 1, NULL));
        note("padding %zu", i);
        CALL(nc__enddef(ncid, paddings[i][0], paddings[i][1], paddings[i][2], paddings[i][3]));
        CALL(nc_enddef(ncid));
        CALL(nc_abort(ncid));
    }
}

const scenario scenarios_limits[] = {{"limits", "lengths", IN_ALL, lengths},
                                     {"limits", "sizes", IN_CDF, sizes},
                                     {"limits", "beginnings", IN_CDF, beginnings},
                                     {0}};
