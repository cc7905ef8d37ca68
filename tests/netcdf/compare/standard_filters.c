/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The functions for filters that have a name of their own, and those about all filters. */

#include "compare.h"

#include <netcdf_filter.h>

static void
note_named(int ncid, int v)
{
    int found = -1;
    int level = -1;
    CALL(nc_inq_var_bzip2(ncid, v, &found, &level));
    note("bzip2 %d %d", found, level);
    CALL(nc_inq_var_bzip2(ncid, v, NULL, NULL));
    found = level = -1;
    CALL(nc_inq_var_zstandard(ncid, v, &found, &level));
    note("zstandard %d %d", found, level);
    CALL(nc_inq_var_zstandard(ncid, v, NULL, NULL));
    unsigned parameters[4] = {99, 99, 99, 99};
    found = -1;
    CALL(nc_inq_var_blosc(ncid, v, &found, parameters, parameters + 1, parameters + 2,
                          parameters + 3));
    note("blosc %d %u %u %u %u", found, parameters[0], parameters[1], parameters[2], parameters[3]);
    CALL(nc_inq_var_blosc(ncid, v, NULL, NULL, NULL, NULL, NULL));
    int mask = -1;
    int pixels = -1;
    CALL(nc_inq_var_szip(ncid, v, &mask, &pixels));
    note("szip %d %d", mask, pixels);
}

static void
note_all(int ncid, int v)
{
    size_t count = 99;
    unsigned ids[10] = {0};
    CALL(nc_inq_var_filter_ids(ncid, v, &count, NULL));
    CALL(nc_inq_var_filter_ids(ncid, v, &count, ids));
    note("%zu filters, %u %u", count, ids[0], ids[1]);
    for (unsigned id = 0; id <= 4; id++) {
        unsigned parameters[10] = {0};
        count = 99;
        CALL(nc_inq_var_filter_info(ncid, v, id, &count, NULL));
        CALL(nc_inq_var_filter_info(ncid, v, id, NULL, parameters));
        note("%zu parameters, %u %u", count, parameters[0], parameters[1]);
    }
}

static void
named(const world *w)
{
    int ncid = create(w);
    int x = -1;
    int v[8];
    static const unsigned available[] = {0, 1, 2, 3, 4, 307, 32001, 32015, 54321};
    CALL(nc_def_dim(ncid, "x", 2000, &x));
    for (int i = 0; i < 8; i++) {
        const char name[] = {(char) ('a' + i), '\0'};
        v[i] = -1;
        CALL(nc_def_var(ncid, name, i == 7 ? NC_STRING : NC_INT, i == 6 ? 0 : 1, &x, &v[i]));
    }
    for (int i = -1; i < 8; i++)
        note_named(ncid, i < 0 ? 99 : v[i]);
    CALL(nc_def_var_bzip2(ncid, v[0], 5));
    CALL(nc_def_var_zstandard(ncid, v[1], 3));
    CALL(nc_def_var_blosc(ncid, v[2], BLOSC_LZ4, 5, 0, BLOSC_SHUFFLE));
    CALL(nc_def_var_szip(ncid, v[3], 32, 16));
    CALL(nc_def_var_deflate(ncid, v[4], 1, 1, 4));
    CALL(nc_def_var_bzip2(ncid, v[5], 99));
    CALL(nc_def_var_zstandard(ncid, v[5], 99));
    CALL(nc_def_var_blosc(ncid, v[5], 99, 99, 0, 99));
    CALL(nc_def_var_bzip2(ncid, 99, 5));
    CALL(nc_def_var_zstandard(ncid, 99, 3));
    CALL(nc_def_var_blosc(ncid, 99, BLOSC_LZ4, 5, 0, BLOSC_SHUFFLE));
    CALL(nc_def_var_deflate(ncid, v[6], 1, 1, 4)); /* a scalar */
    CALL(nc_def_var_zstandard(ncid, v[6], 3));
    for (size_t i = 0; i < sizeof available / sizeof available[0]; i++)
        CALL(nc_inq_filter_avail(ncid, available[i]));
    CALL(nc_enddef(ncid));
    CALL(nc_def_var_bzip2(ncid, v[5], 5));
    CALL(nc_def_var_zstandard(ncid, v[5], 3));
    CALL(nc_def_var_blosc(ncid, v[5], BLOSC_LZ4, 5, 0, BLOSC_SHUFFLE));
    for (int again = 0; again < 2; again++) {
        for (int i = -1; i < 8; i++) {
            note_named(ncid, i < 0 ? 99 : v[i]);
            note_all(ncid, i < 0 ? 99 : v[i]);
        }
        CALL(nc_close(ncid));
        ncid = reopen(w, NC_WRITE);
    }
    CALL(nc_def_var_bzip2(ncid, v[5], 5));
    CALL(nc_close(ncid));
}

const scenario scenarios_standard_filters[] = {{"standard_filters", "named", IN_ALL, named}, {0}};
