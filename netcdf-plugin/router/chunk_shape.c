/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * $ESDM_NC_CHUNK_STEPS: records in a chunk of variables of plain netCDF-4 files that have an
 * unlimited dimension, where the program states no chunks. netCDF makes a chunk of each record, so
 * that a series at one place reads and decompresses all of them. The shape is stated as soon as the
 * variable is defined: what a program states itself comes later and counts.
 */
#include "router/overrides.h"

#include <stdlib.h>

/* Of a chunk: large enough for compression and disks, small enough to read for one place. */
#define CHUNK_BYTES ((size_t) 1 << 20)
/* What is shorter is not halved: chunks would reach far over its end, and more of them than find
 * room in the cache would hold a record. */
#define LEAST_HALVED 16
/* netCDF's own cache of a variable, where it does not tell. */
#define CACHE_BYTES ((size_t) 4 << 20)

/* <netcdf_par.h> needs an MPI (see parallel.c). */
#define INDEPENDENT 0
ESDMNC_EXPORT int nc_var_par_access(int ncid, int varid, int access);

/** 0: none, as with 1 it is netCDF's own. esdm-run has made it a number. */
static size_t
stated_steps(void)
{
    const char *text = secure_getenv("ESDM_NC_CHUNK_STEPS");
    char *end = NULL;
    unsigned long steps = text && text[0] != '-' ? strtoul(text, &end, 10) : 0;
    return end && end != text && *end == '\0' && steps > 1 && steps <= INT_MAX ? steps : 0;
}

static size_t
bytes_of(nc_type type)
{
    static const size_t bytes[] = {0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8};
    return type >= NC_BYTE && type <= NC_UINT64 ? bytes[type] : 0; /* texts and types of users: 0 */
}

/** netCDF-4 in a file of HDF5 that one process writes: all ranks store a compressed chunk together,
 *  and one that many records share makes them wait for each other. The mode of a file does not
 * tell: only files of ranks take an access, and this one is what a new variable has. */
static bool
is_plain_netcdf4(const esdmnc__library *library, int ncid, int varid)
{
    int format = 0;
    if (CALL_REAL(library, nc_inq_format_extended, ncid, &format, NULL) != NC_NOERR ||
        format != NC_FORMATX_NC_HDF5) {
        return false;
    }
    int status = CALL_REAL(library, nc_var_par_access, ncid, varid, INDEPENDENT);
    return status == NC_ENOPAR || status == NC_ENOTBUILT;
}

/** The first dimension alone is unlimited; the lengths of the others. */
static bool
is_of_records(const esdmnc__library *library, int ncid, int ndims, const int *dimids,
              size_t *ret_lengths)
{
    for (int i = 0; i < ndims; i++) {
        int group = ncid; /* the dimension may be of one above */
        int unlimited[NC_MAX_DIMS];
        int count = 0;
        bool found = false;
        do {
            if (CALL_REAL(library, nc_inq_unlimdims, group, &count, NULL) == NC_NOERR &&
                count <= NC_MAX_DIMS &&
                CALL_REAL(library, nc_inq_unlimdims, group, &count, unlimited) == NC_NOERR) {
                for (int k = 0; k < count; k++) {
                    found = found || unlimited[k] == dimids[i];
                }
            }
        } while (!found && CALL_REAL(library, nc_inq_grp_parent, group, &group) == NC_NOERR);
        if (found != (i == 0) ||
            CALL_REAL(library, nc_inq_dimlen, ncid, dimids[i], &ret_lengths[i]) != NC_NOERR ||
            (i > 0 && ret_lengths[i] == 0)) {
            return false;
        }
    }
    return true;
}

/** Writing record by record needs all chunks that a record meets in memory until they are full,
 * else each record would read and store them again. */
static size_t
steps_in_cache(const esdmnc__library *library, size_t record_bytes)
{
    size_t bytes = 0;
    size_t slots = 0;
    float preemption = 0;
    if (!library || !library->api.get_chunk_cache ||
        library->api.get_chunk_cache(&bytes, &slots, &preemption) != NC_NOERR) {
        bytes = CACHE_BYTES;
    }
    return (bytes - bytes / 4) / record_bytes; /* edges of chunks take some room, too */
}

/** Halves the longest of the other dimensions until a chunk is small enough. */
static void
fit(int ndims, size_t bytes, size_t *shape)
{
    while (bytes > CHUNK_BYTES) {
        int longest = 1;
        for (int i = 2; i < ndims; i++) {
            longest = shape[i] > shape[longest] ? i : longest;
        }
        if (shape[longest] < LEAST_HALVED) {
            return;
        }
        bytes -= bytes / shape[longest] * (shape[longest] / 2);
        shape[longest] -= shape[longest] / 2;
    }
}

static void
give_shape(const esdmnc__library *library, size_t steps, int ncid, nc_type type, int ndims,
           const int *dimids, int varid)
{
    size_t shape[NC_MAX_VAR_DIMS];
    size_t bytes = bytes_of(type);
    if (bytes == 0 || ndims < 2 || ndims > NC_MAX_VAR_DIMS ||
        !is_plain_netcdf4(library, ncid, varid) ||
        !is_of_records(library, ncid, ndims, dimids, shape)) {
        return;
    }
    for (int i = 1; i < ndims; i++) {
        if (shape[i] > SIZE_MAX / 2 / bytes) {
            return;
        }
        bytes *= shape[i];
    }
    size_t most = steps_in_cache(library, bytes);
    shape[0] = steps < most ? steps : most;
    if (shape[0] < 2) {
        return; /* a record is larger than the cache */
    }
    fit(ndims, bytes * shape[0], shape);
    int status = CALL_REAL(library, nc_def_var_chunking, ncid, varid, NC_CHUNKED, shape);
    esdmnc_debug("variable %d of a plain file: %zu records of %zu bytes in a chunk: status %d",
                 varid, shape[0], bytes, status);
}

ESDMNC_EXPORT int
nc_def_var(int ncid, const char *name, nc_type xtype, int ndims, const int *dimidsp, int *varidp)
{
    esdmnc__library *library = CALLER();
    int varid = -1;
    size_t steps = stated_steps();
    if (steps == 0 || owns(library, ncid)) {
        return CALL_REAL(library, nc_def_var, ncid, name, xtype, ndims, dimidsp, varidp);
    }
    int status = CALL_REAL(library, nc_def_var, ncid, name, xtype, ndims, dimidsp, &varid);
    if (status == NC_NOERR && varidp) {
        *varidp = varid;
    }
    if (status == NC_NOERR && dimidsp) {
        give_shape(library, steps, ncid, xtype, ndims, dimidsp, varid);
    }
    return status;
}
