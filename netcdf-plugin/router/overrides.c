/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Public calls that reach into libnetcdf's own structures without asking the dispatch table. With
 * one of our ncids they would crash, so they are answered here; all others go on unchanged.
 */
#include "router/overrides.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEGABYTE           1048576
#define DEFAULT_PREEMPTION 0.75F
#define NOT_SERVED         (-10000) /* no NetCDF code */

/* Not in the public headers. */
ESDMNC_EXPORT int nc_def_var_chunking_ints(int ncid, int varid, int storage, int *chunksizesp);
ESDMNC_EXPORT int nc_inq_var_chunking_ints(int ncid, int varid, int *storagep, int *chunksizesp);
ESDMNC_EXPORT int nc_set_var_chunk_cache_ints(int ncid, int varid, int size, int nelems,
                                              int preemption);
ESDMNC_EXPORT int nc_get_var_chunk_cache_ints(int ncid, int varid, int *sizep, int *nelemsp,
                                              int *preemptionp);
ESDMNC_EXPORT int nc__testurl(const char *path, char **basenamep);

/* ---- chunks, as Fortran has them: ints ------------------------------------------------------- */

int
nc_def_var_chunking_ints(int ncid, int varid, int storage, int *chunksizesp)
{
    esdmnc__library *library = CALLER();
    if (!owns(library, ncid)) {
        return CALL_REAL(library, nc_def_var_chunking_ints, ncid, varid, storage, chunksizesp);
    }
    int ndims = 0;
    size_t sizes[NC_MAX_VAR_DIMS];
    int status = CALL_REAL(library, nc_inq_varndims, ncid, varid, &ndims);
    if (status != NC_NOERR) {
        return status;
    }
    for (int i = 0; chunksizesp && i < ndims; i++) {
        sizes[i] = (size_t) chunksizesp[i]; /* negative ones become too large */
    }
    return CALL_REAL(library, nc_def_var_chunking, ncid, varid, storage,
                     chunksizesp ? sizes : NULL);
}

int
nc_inq_var_chunking_ints(int ncid, int varid, int *storagep, int *chunksizesp)
{
    esdmnc__library *library = CALLER();
    if (!owns(library, ncid)) {
        return CALL_REAL(library, nc_inq_var_chunking_ints, ncid, varid, storagep, chunksizesp);
    }
    int ndims = 0;
    int storage = NC_CONTIGUOUS;
    size_t sizes[NC_MAX_VAR_DIMS] = {0};
    int status = CALL_REAL(library, nc_inq_varndims, ncid, varid, &ndims);
    if (status == NC_NOERR) {
        status = CALL_REAL(library, nc_inq_var_chunking, ncid, varid, &storage, sizes);
    }
    if (status != NC_NOERR) {
        return status;
    }
    for (int i = 0; chunksizesp && storage == NC_CHUNKED && i < ndims; i++) {
        if (sizes[i] > NC_MAX_INT) {
            status = NC_ERANGE; /* as libnetcdf: the rest is still filled in */
        }
        chunksizesp[i] = (int) sizes[i];
    }
    if (storagep) {
        *storagep = storage;
    }
    return status;
}

int
nc_set_var_chunk_cache_ints(int ncid, int varid, int size, int nelems, int preemption)
{
    esdmnc__library *library = CALLER();
    if (!owns(library, ncid)) {
        return CALL_REAL(library, nc_set_var_chunk_cache_ints, ncid, varid, size, nelems,
                         preemption);
    }
    /* Sizes come in MiB, preemption in percent. For negative ones libnetcdf takes HDF5's numbers
     * for "as in the file". */
    size_t bytes = size >= 0 ? (size_t) size * MEGABYTE : SIZE_MAX;
    size_t slots = nelems >= 0 ? (size_t) nelems : SIZE_MAX;
    float part = preemption >= 0 ? (float) (preemption / 100.0) : DEFAULT_PREEMPTION;
    return CALL_REAL(library, nc_set_var_chunk_cache, ncid, varid, bytes, slots, part);
}

int
nc_get_var_chunk_cache_ints(int ncid, int varid, int *sizep, int *nelemsp, int *preemptionp)
{
    esdmnc__library *library = CALLER();
    if (!owns(library, ncid)) {
        return CALL_REAL(library, nc_get_var_chunk_cache_ints, ncid, varid, sizep, nelemsp,
                         preemptionp);
    }
    size_t bytes = 0;
    size_t slots = 0;
    float part = 0;
    int status = CALL_REAL(library, nc_get_var_chunk_cache, ncid, varid, &bytes, &slots, &part);
    if (status != NC_NOERR) {
        return status;
    }
    if (sizep) {
        *sizep = (int) (bytes / MEGABYTE);
    }
    if (nelemsp) {
        *nelemsp = (int) slots;
    }
    if (preemptionp) {
        *preemptionp = (int) (part * 100);
    }
    return NC_NOERR;
}

/* ---- filters, deletion ----------------------------------------------------------------------- */

ESDMNC_EXPORT int
nc_def_var_filter(int ncid, int varid, unsigned int id, size_t nparams, const unsigned int *parms)
{
    esdmnc__library *library = CALLER();
    if (!owns(library, ncid)) {
        return CALL_REAL(library, nc_def_var_filter, ncid, varid, id, nparams, parms);
    }
    return library->table.def_var_filter(ncid, varid, id, nparams, parms);
}

/** NC_NOERR or an error when the path is ours, else NOT_SERVED. */
static int
delete_container(const char *path)
{
    if (!path || !esdmnc__path_is_ours(path, false)) {
        return NOT_SERVED;
    }
    const esdmnc__core *core = esdmnc__core_get();
    if (!core) {
        return NC_ENOTBUILT;
    }
    path += strspn(path, " \t\r\n");
    char container[ESDMNC_NAME_MAX + 1];
    int status = esdmnc_resolve(path, container, sizeof(container));
    if (status != NC_NOERR) {
        return status;
    }
    if (esdmnc__path_prefixed(path)) {
        return core->remove(container);
    }
    esdmnc__stub stub;
    status = esdmnc__stub_read(path, &stub);
    if (status == NC_NOERR && stub.is_original) {
        status = core->remove(container);
        status = status == ENOENT ? NC_NOERR : status; /* the stub goes all the same */
    }
    if (status == NC_NOERR && remove(path) != 0) {
        status = errno;
    }
    return status;
}

ESDMNC_EXPORT int
nc_delete(const char *path)
{
    esdmnc__library *library = CALLER();
    int status = delete_container(path);
    return status != NOT_SERVED ? status : CALL_REAL(library, nc_delete, path);
}

ESDMNC_EXPORT int
nc_delete_mp(const char *path, int basepe)
{
    esdmnc__library *library = CALLER();
    int status = delete_container(path);
    return status != NOT_SERVED ? status : CALL_REAL(library, nc_delete_mp, path, basepe);
}

/** Asked by ncdump. libnetcdf 4.9.0 crashes on URLs without a slash behind the host; and what looks
 *  like a URL gets DAP options appended. */
int
nc__testurl(const char *path, char **basenamep)
{
    esdmnc__library *library = CALLER();
    if (path && esdmnc__path_prefixed(path)) {
        return 0;
    }
    return CALL_REAL(library, nc__testurl, path, basenamep);
}
