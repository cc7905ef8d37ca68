/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Filters, chunks, fill values. */

#include "parallel.h"

#include <netcdf_filter.h>
#include <stdlib.h>

/* A fixed variable of ROWS rows a rank, in define mode. */
static bool
begin(const world *w, nc_type type, int *ret_ncid, int *ret_varid)
{
    int d[2] = {-1, -1};
    if (!par_create(w, ret_ncid))
        return false;
    CALL(nc_def_dim(*ret_ncid, "y", (size_t) ROWS * (size_t) rank_count, &d[0]));
    CALL(nc_def_dim(*ret_ncid, "x", COLUMNS, &d[1]));
    CALL(nc_def_var(*ret_ncid, "f", type, 2, d, ret_varid));
    return true;
}

/* Stock netCDF writes such a variable collectively, so all ranks write as often. */
static void
write_filtered(int ncid, int varid)
{
    CALL(nc_enddef(ncid));
    put_rows(ncid, varid, 1);
    CALL(nc_var_par_access(ncid, varid, NC_INDEPENDENT));
    put_rows(ncid, varid, 2);
    CALL(nc_var_par_access(ncid, varid, NC_COLLECTIVE));
    put_rows(ncid, varid, 3);
    note_rows(ncid, varid);
    CALL(nc_close(ncid));
}

static void
deflated(const world *w)
{
    int ncid, varid;
    if (!begin(w, NC_INT, &ncid, &varid))
        return;
    CALL(nc_def_var_chunking(ncid, varid, NC_CHUNKED, (size_t[]){ROWS, COLUMNS}));
    CALL(nc_def_var_deflate(ncid, varid, 1, 1, 4));
    write_filtered(ncid, varid);
    par_note(w->path);
}

static void
checksummed(const world *w)
{
    int ncid, varid;
    if (!begin(w, NC_INT, &ncid, &varid))
        return;
    CALL(nc_def_var_fletcher32(ncid, varid, 1));
    write_filtered(ncid, varid);
    par_note(w->path);
}

static void
shuffled(const world *w)
{
    int ncid, varid;
    if (!begin(w, NC_INT, &ncid, &varid))
        return;
    CALL(nc_def_var_deflate(ncid, varid, 1, 0, 0));
    write_filtered(ncid, varid);
    par_note(w->path);
}

static void
szip(const world *w)
{
    int ncid, varid;
    if (!begin(w, NC_INT, &ncid, &varid))
        return;
    CALL(nc_def_var_chunking(ncid, varid, NC_CHUNKED, (size_t[]){ROWS, COLUMNS}));
    CALL(nc_def_var_szip(ncid, varid, 32, 8));
    write_filtered(ncid, varid);
    par_note(w->path);
}

/* Where this HDF5 has no plug-in for it both refuse. */
static void
zstd(const world *w)
{
    int ncid, varid;
    if (!begin(w, NC_INT, &ncid, &varid))
        return;
    CALL(nc_def_var_chunking(ncid, varid, NC_CHUNKED, (size_t[]){ROWS, COLUMNS}));
    CALL(nc_def_var_filter(ncid, varid, 32015, 1, (unsigned[]){3}));
    write_filtered(ncid, varid);
    par_note(w->path);
}

/* Chunks that several ranks write to. */
static void
shared_chunks(const world *w)
{
    int ncid, varid;
    if (!begin(w, NC_INT, &ncid, &varid))
        return;
    CALL(nc_def_var_chunking(ncid, varid, NC_CHUNKED, (size_t[]){2, 3}));
    CALL(nc_def_var_deflate(ncid, varid, 0, 1, 1));
    CALL(nc_enddef(ncid));
    for (int step = 0; step < 3; step++)
        put_rows(ncid, varid, step);
    note_rows(ncid, varid);
    CALL(nc_close(ncid));
    par_note(w->path);
}

static void
compressed_records(const world *w)
{
    int ncid = -1;
    int d[3] = {-1, -1, -1};
    int varid = -1;
    if (!par_create(w, &ncid))
        return;
    CALL(nc_def_dim(ncid, "t", NC_UNLIMITED, &d[0]));
    CALL(nc_def_dim(ncid, "y", (size_t) ROWS * (size_t) rank_count, &d[1]));
    CALL(nc_def_dim(ncid, "x", COLUMNS, &d[2]));
    CALL(nc_def_var(ncid, "r", NC_INT, 3, d, &varid));
    CALL(nc_def_var_chunking(ncid, varid, NC_CHUNKED, (size_t[]){1, ROWS, COLUMNS}));
    CALL(nc_def_var_deflate(ncid, varid, 1, 1, 1));
    CALL(nc_enddef(ncid));
    for (size_t t = 0; t < 3; t++)
        put_record(ncid, varid, t);
    note_records(ncid, varid, 3);
    CALL(nc_close(ncid));
    par_note(w->path);
}

static void
chunks_and_caches(const world *w)
{
    int ncid, varid;
    if (!begin(w, NC_SHORT, &ncid, &varid))
        return;
    CALL(nc_def_var_chunking(ncid, varid, NC_CHUNKED, (size_t[]){2, COLUMNS}));
    CALL(nc_def_var_endian(ncid, varid, NC_ENDIAN_BIG));
    size_t bytes = 0;
    size_t slots = 0;
    float preemption = 0;
    CALL(nc_set_var_chunk_cache(ncid, varid, 100000, 97, 0.5F));
    CALL(nc_get_var_chunk_cache(ncid, varid, &bytes, &slots, &preemption));
    note("cache %zu %zu %g", bytes, slots, (double) preemption);
    CALL(nc_enddef(ncid));
    put_rows(ncid, varid, 0);
    CALL(nc_close(ncid));
    par_note(w->path);
}

/* ---- fill values ---------------------------------------------------------------------------- */

/* Only some ranks write. */
static void
partly_written(int ncid, int varid)
{
    CALL(nc_enddef(ncid));
    if (my_rank % 2 == 0)
        put_rows(ncid, varid, 1);
    CALL(nc_sync(ncid));
    meet();
    note_rows(ncid, varid);
    CALL(nc_close(ncid));
}

static void
default_fill(const world *w)
{
    int ncid, varid;
    if (!begin(w, NC_INT, &ncid, &varid))
        return;
    CALL(nc_def_var_fill(ncid, varid, NC_FILL, NULL));
    partly_written(ncid, varid);
    par_note(w->path);
}

static void
own_fill(const world *w)
{
    int ncid, varid;
    if (!begin(w, NC_INT, &ncid, &varid))
        return;
    CALL(nc_def_var_fill(ncid, varid, NC_FILL, &(int){-7}));
    partly_written(ncid, varid);
    par_note(w->path);
}

static void
fill_attribute(const world *w)
{
    int ncid, varid;
    int old = -1;
    if (!begin(w, NC_INT, &ncid, &varid))
        return;
    CALL(nc_set_fill(ncid, NC_FILL, &old));
    note("old %d", old);
    CALL(nc_put_att_int(ncid, varid, "_FillValue", NC_INT, 1, &(int){-8}));
    partly_written(ncid, varid);
    par_note(w->path);
}

static void
no_fill(const world *w)
{
    int ncid, varid;
    int off = -1;
    int old = -1;
    int value = 0;
    if (!begin(w, NC_INT, &ncid, &varid))
        return;
    CALL(nc_set_fill(ncid, NC_NOFILL, &old));
    note("old %d", old);
    CALL(nc_def_var_fill(ncid, varid, NC_NOFILL, NULL));
    CALL(nc_inq_var_fill(ncid, varid, &off, &value));
    note("off %d", off != 0);
    CALL(nc_enddef(ncid));
    put_rows(ncid, varid, 1);
    CALL(nc_sync(ncid));
    meet();
    note_rows(ncid, varid);
    CALL(nc_close(ncid));
}

/* Records that lie between those that were written. */
static void
filled_records(const world *w)
{
    int ncid, r, f;
    if (!par_make(w, &ncid, &r, &f))
        return;
    CALL(nc_var_par_access(ncid, r, NC_COLLECTIVE));
    put_record(ncid, r, 3);
    note_records(ncid, r, 4);
    CALL(nc_close(ncid));
    par_note(w->path);
}

/* ---- quantisation --------------------------------------------------------------------------- */

static void
quantized(const world *w)
{
    int ncid, varid;
    if (!begin(w, NC_FLOAT, &ncid, &varid))
        return;
    CALL(nc_def_var_quantize(ncid, varid, NC_QUANTIZE_BITGROOM, 3));
    CALL(nc_enddef(ncid));
    float data[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        data[i] = 1.2345678F * (float) (i + 1 + 100 * my_rank);
    CALL(nc_put_vara_float(ncid, varid, (size_t[]){(size_t) (ROWS * my_rank), 0},
                           (size_t[]){ROWS, COLUMNS}, data));
    CALL(nc_close(ncid));
    par_note(w->path);
}

const scenario scenarios_par_settings[] = {
    {"par_settings", "deflated", IN_HDF5, deflated},
    {"par_settings", "checksummed", IN_HDF5, checksummed},
    {"par_settings", "shuffled", IN_HDF5, shuffled},
    {"par_settings", "szip", IN_HDF5, szip},
    {"par_settings", "zstd", IN_HDF5, zstd},
    {"par_settings", "shared_chunks", IN_HDF5, shared_chunks},
    {"par_settings", "compressed_records", IN_HDF5, compressed_records},
    {"par_settings", "chunks_and_caches", IN_HDF5, chunks_and_caches},
    {"par_settings", "default_fill", IN_ALL, default_fill},
    {"par_settings", "own_fill", IN_ALL, own_fill},
    {"par_settings", "fill_attribute", IN_ALL, fill_attribute},
    {"par_settings", "no_fill", IN_ALL, no_fill},
    {"par_settings", "filled_records", IN_HDF5, filled_records},
    {"par_settings", "quantized", IN_NC4, quantized},
    {NULL, NULL, 0, NULL}};
