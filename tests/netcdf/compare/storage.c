/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Chunks, caches and filters: settings, what is chosen by default, what is refused. */
#include "compare.h"

#include <netcdf_filter.h>

/* netcdf_par.h needs MPI; the function is in every libnetcdf. */
extern int nc_var_par_access(int ncid, int varid, int par_access);

static void
note_storage(int ncid, int v)
{
    int kind = -1;
    size_t chunks[5] = {0};
    CALL(nc_inq_var_chunking(ncid, v, &kind, chunks));
    note("kind %d", kind);
    note_sizes("chunks", chunks, 5);
    int shuffle = -1;
    int deflate = -1;
    int level = -1;
    CALL(nc_inq_var_deflate(ncid, v, &shuffle, &deflate, &level));
    note("shuffle %d deflate %d level %d", shuffle, deflate, deflate > 0 ? level : -1);
    int fletcher32 = -1;
    CALL(nc_inq_var_fletcher32(ncid, v, &fletcher32));
    note("fletcher32 %d", fletcher32);
    size_t count = 99;
    unsigned ids[10] = {0};
    unsigned params[10] = {0};
    CALL(nc_inq_var_filter_ids(ncid, v, &count, ids));
    note("filters %zu %u %u %u", count, ids[0], ids[1], ids[2]);
    count = 99;
    CALL(nc_inq_var_filter_info(ncid, v, 1, &count, params));
    note("deflate %zu %u", count, params[0]);
    CALL(nc_inq_var_filter_info(ncid, v, 2, NULL, NULL));
    CALL(nc_inq_var_filter_info(ncid, v, 3, NULL, NULL));
    CALL(nc_inq_var_filter_info(ncid, v, 32015, &count, NULL));
    int endian = -1;
    CALL(nc_inq_var_endian(ncid, v, &endian));
    note("endian %d", endian);
    int mask = -1;
    int pixels = -1;
    CALL(nc_inq_var_szip(ncid, v, &mask, &pixels));
    note("szip %d %d", mask, pixels);
}

static void
settings(const world *w)
{
    int ncid = create(w);
    int d[3] = {-1, -1, -1};
    int v[6] = {-1, -1, -1, -1, -1, -1};
    CALL(nc_def_dim(ncid, "t", NC_UNLIMITED, &d[0]));
    CALL(nc_def_dim(ncid, "y", 20, &d[1]));
    CALL(nc_def_dim(ncid, "x", 30, &d[2]));
    CALL(nc_def_var(ncid, "v0", NC_FLOAT, 3, d, &v[0]));
    CALL(nc_def_var(ncid, "v1", NC_FLOAT, 2, d + 1, &v[1]));
    CALL(nc_def_var(ncid, "v2", NC_INT, 2, d + 1, &v[2]));
    CALL(nc_def_var(ncid, "v3", NC_SHORT, 1, d + 1, &v[3]));
    CALL(nc_def_var(ncid, "v4", NC_CHAR, 1, d + 1, &v[4]));
    CALL(nc_def_var(ncid, "v5", NC_DOUBLE, 0, NULL, &v[5]));
    for (int i = 0; i < 6; i++)
        note_storage(ncid, v[i]);
    CALL(nc_def_var_chunking(ncid, v[0], NC_CHUNKED, (size_t[]){1, 10, 15}));
    CALL(nc_def_var_chunking(ncid, v[0], NC_CONTIGUOUS, NULL));
    CALL(nc_def_var_chunking(ncid, v[0], NC_CHUNKED, (size_t[]){1, 40, 15}));
    CALL(nc_def_var_chunking(ncid, v[0], NC_CHUNKED, (size_t[]){1000000000, 20, 30}));
    CALL(nc_def_var_chunking(ncid, 9, NC_CHUNKED, (size_t[]){1, 40, 15}));
    CALL(nc_def_var_chunking(ncid, v[1], NC_CHUNKED, NULL));
    CALL(nc_def_var_chunking(ncid, v[2], NC_CONTIGUOUS, NULL));
    CALL(nc_def_var_chunking(ncid, v[3], NC_COMPACT, NULL));
    CALL(nc_def_var_chunking(ncid, v[5], NC_CHUNKED, NULL));
    CALL(nc_def_var_deflate(ncid, v[0], 1, 1, 4));
    CALL(nc_def_var_deflate(ncid, v[1], 0, 1, 9));
    CALL(nc_def_var_deflate(ncid, v[2], 1, 0, 0));
    CALL(nc_def_var_deflate(ncid, v[4], 0, 0, 0));
    CALL(nc_def_var_deflate(ncid, v[5], 0, 1, 1));
    CALL(nc_def_var_fletcher32(ncid, v[0], NC_FLETCHER32));
    CALL(nc_def_var_fletcher32(ncid, v[5], NC_FLETCHER32));
    CALL(nc_def_var_endian(ncid, v[0], NC_ENDIAN_BIG));
    CALL(nc_def_var_endian(ncid, v[1], NC_ENDIAN_LITTLE));
    CALL(nc_def_var_endian(ncid, v[2], NC_ENDIAN_NATIVE));
    CALL(nc_def_var_endian(ncid, v[4], NC_ENDIAN_LITTLE));
    for (int i = 0; i < 6; i++)
        note_storage(ncid, v[i]);
    CALL(nc_enddef(ncid));
    CALL(nc_def_var_chunking(ncid, v[0], NC_CHUNKED, (size_t[]){1, 10, 15}));
    CALL(nc_def_var_deflate(ncid, v[0], 1, 1, 4));
    CALL(nc_def_var_endian(ncid, v[0], NC_ENDIAN_BIG));
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    for (int i = 0; i < 6; i++)
        note_storage(ncid, v[i]);
    CALL(nc_def_var_chunking(ncid, v[0], NC_CHUNKED, (size_t[]){1, 10, 15}));
    CALL(nc_close(ncid));
}

static void
default_chunks(const world *w)
{
    int ncid = create(w);
    static const size_t lengths[] = {1, 3, 180, 360, 1000, 10000, 100000, 3000000};
    int d[8];
    int t = -1;
    int m = -1;
    CALL(nc_def_dim(ncid, "t", NC_UNLIMITED, &t));
    if (w->format == NC_FORMAT_NETCDF4)
        CALL(nc_def_dim(ncid, "m", NC_UNLIMITED, &m));
    for (int i = 0; i < 8; i++) {
        char name[] = "dA";
        name[1] = (char) ('A' + i);
        CALL(nc_def_dim(ncid, name, lengths[i], &d[i]));
    }
    int number = 0;
    for (nc_type type = NC_BYTE; type <= NC_DOUBLE; type++) {
        for (int i = 0; i < 8; i++) {
            int shapes[][3] = {{t, d[i], d[(i + 1) % 8]},
                               {t, d[i], -1},
                               {t, -1, -1},
                               {t, m, -1},
                               {t, m, d[i]},
                               {d[i], d[i], t}};
            int ranks[] = {3, 2, 1, 2, 3, 3};
            for (int s = 0; s < 6; s++) {
                if (m < 0 && (s == 3 || s == 4))
                    continue;
                char name[] = "vAAA";
                name[1] = (char) ('A' + number / 26 / 26);
                name[2] = (char) ('A' + number / 26 % 26);
                name[3] = (char) ('A' + number % 26);
                number++;
                int v = -1;
                CALL(nc_def_var(ncid, name, type, ranks[s], shapes[s], &v));
                size_t chunks[3] = {0};
                int kind = -1;
                CALL(nc_inq_var_chunking(ncid, v, &kind, chunks));
                note("type %d length %zu shape %d", type, lengths[i], s);
                note_sizes("chunks", chunks, 3);
            }
        }
    }
    CALL(nc_abort(ncid));
}

static void
caches_and_filters(const world *w)
{
    int ncid = create(w);
    int x = -1;
    int v = -1;
    CALL(nc_def_dim(ncid, "x", 20, &x));
    CALL(nc_def_var(ncid, "v", NC_FLOAT, 1, &x, &v));
    size_t bytes = 0;
    size_t slots = 0;
    float preemption = 0;
    CALL(nc_get_var_chunk_cache(ncid, v, &bytes, &slots, &preemption));
    note("%zu %zu %g", bytes, slots, (double) preemption);
    CALL(nc_set_var_chunk_cache(ncid, v, 1000, 10, 0.5f));
    CALL(nc_set_var_chunk_cache(ncid, v, 1000, 10, 1.5f));
    CALL(nc_set_var_chunk_cache(ncid, 7, 1000, 10, 0.5f));
    CALL(nc_get_var_chunk_cache(ncid, v, &bytes, &slots, &preemption));
    note("%zu %zu %g", bytes, slots, (double) preemption);
    CALL(nc_def_var_filter(ncid, v, 1, 1, (unsigned[]){3}));
    CALL(nc_def_var_filter(ncid, v, 2, 0, NULL));
    CALL(nc_def_var_filter(ncid, v, 3, 0, NULL));
    CALL(nc_def_var_filter(ncid, v, 54321, 0, NULL));
    CALL(nc_def_var_filter(ncid, 7, 1, 1, (unsigned[]){3}));
    CALL(nc_inq_filter_avail(ncid, 1));
    CALL(nc_inq_filter_avail(ncid, 54321));
    CALL(nc_var_par_access(ncid, v, 0));
    int mode = -1;
    int digits = -1;
    CALL(nc_inq_var_quantize(ncid, v, &mode, &digits));
    CALL(nc_def_var_quantize(ncid, v, NC_NOQUANTIZE, 0));
    CALL(nc_def_var_quantize(ncid, v, 99, 3));
    CALL(nc_def_var_quantize(ncid, v, NC_QUANTIZE_BITGROOM, 99));
    note_storage(ncid, v);
    CALL(nc_close(ncid));
}

/* More elements than any file has bytes: only chunks that are written are there. */
static void
huge(const world *w)
{
    int ncid = create(w);
    int d[4] = {-1, -1, -1, -1};
    int v[3] = {-1, -1, -1};
    CALL(nc_def_dim(ncid, "few", 16, &d[0]));
    CALL(nc_def_dim(ncid, "y", 846930886, &d[1]));
    CALL(nc_def_dim(ncid, "x", 1681692777, &d[2]));
    CALL(nc_def_dim(ncid, "many", 1804289383, &d[3]));
    CALL(nc_def_var(ncid, "u", NC_FLOAT, 3, d + 1, &v[0]));
    CALL(nc_def_var_chunking(ncid, v[0], NC_CHUNKED, NULL));
    note_storage(ncid, v[0]);
    CALL(nc_def_var(ncid, "v", NC_FLOAT, 3, d, &v[1]));
    CALL(nc_def_var_chunking(ncid, v[1], NC_CHUNKED, (size_t[]){1, 10, 10}));
    CALL(nc_enddef(ncid));
    float number = 7;
    static const size_t at[3] = {15, 846930885, 1681692776};
    CALL(nc_put_var1_float(ncid, v[1], at, &number));
    number = 0;
    CALL(nc_get_var1_float(ncid, v[1], at, &number));
    note("%g", (double) number);
    CALL(nc_get_var1_float(ncid, v[1], (size_t[]){5, 5, 5}, &number));
    note("%g", (double) number);
    if (w->format == NC_FORMAT_NETCDF4)
        CALL(nc_redef(ncid));
    CALL(nc_def_var(ncid, "w", NC_FLOAT, 3, d + 1, &v[2])); /* contiguous */
    CALL(nc_enddef(ncid));
    (void) nc_abort(ncid);
}

const scenario scenarios_storage[] = {{"storage", "settings", IN_ALL, settings},
                                      {"storage", "default_chunks", IN_HDF5, default_chunks},
                                      {"storage", "caches_and_filters", IN_ALL, caches_and_filters},
                                      {"storage", "huge", IN_HDF5, huge},
                                      {0}};
