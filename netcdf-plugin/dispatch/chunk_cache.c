/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The chunk cache of netCDF-4: ESDM's own is sized by the site, the numbers are kept to be told. */

#include "storage.h"

#include "calls.h"

/* netCDF-4's defaults, in case this libnetcdf cannot be asked. */
#define CACHE_BYTES      16777216
#define CACHE_SLOTS      4133
#define CACHE_PREEMPTION 0.75f
/* When a chunk does not fit into the default cache, that many do; but no more bytes. */
#define CHUNKS_IN_CACHE 10
#define MOST_BYTES      67108864
/* HDF5's defaults, which variables that are not chunked have when a file was opened. */
#define HDF5_CACHE_BYTES 1048576
#define HDF5_CACHE_SLOTS 521

void
esdmnc_cache_global(const esdmnc_file *file, esdmnc_cache *ret)
{
    const esdmnc_library *library = esdmnc_library_get(file->instance);
    *ret = (esdmnc_cache){CACHE_BYTES, CACHE_SLOTS, CACHE_PREEMPTION};
    if (library != NULL && library->get_chunk_cache != NULL)
        (void) library->get_chunk_cache(&ret->bytes, &ret->slots, &ret->preemption);
}

/* As it is at the definition of a variable and when a file was opened. */
static void
start(const esdmnc_file *file, esdmnc_var *var)
{
    if (var->has_cache)
        return;
    var->has_cache = true;
    if (!var->stored)
        esdmnc_cache_global(file, &var->cache);
    else if (esdmnc_storage_kind(file, var) == NC_CHUNKED)
        var->cache = file->cache;
    else
        var->cache = (esdmnc_cache){HDF5_CACHE_BYTES, HDF5_CACHE_SLOTS, CACHE_PREEMPTION};
    esdmnc_cache_adjust(file, var);
}

void
esdmnc_cache_adjust(const esdmnc_file *file, esdmnc_var *var)
{
    start(file, var);
    if (var->cache.bytes != CACHE_BYTES || esdmnc_storage_kind(file, var) != NC_CHUNKED)
        return;
    size_t shape[ESDM_MAX_RANK];
    size_t bytes = var->bytes;
    esdmnc_chunks_get(var, shape);
    for (uint32_t i = 0; i < var->rank; i++)
        bytes *= shape[i];
    if (bytes > CACHE_BYTES)
        var->cache.bytes =
            bytes > MOST_BYTES / CHUNKS_IN_CACHE ? MOST_BYTES : bytes * CHUNKS_IN_CACHE;
}

static int
find(esdmnc_id id, int varid, esdmnc_file **ret_file, esdmnc_var **ret_var)
{
    esdmnc_group *group;
    int rc = esdmnc_find(id, ret_file, &group);
    if (rc == NC_NOERR && esdmnc_is_nc3(*ret_file))
        rc = NC_ENOTNC4;
    return rc == NC_NOERR ? esdmnc_find_var(id, varid, ret_file, &group, ret_var) : rc;
}

int
esdmnc_set_var_chunk_cache(esdmnc_id id, int varid, size_t bytes, size_t slots, float preemption)
{
    esdmnc_file *file;
    esdmnc_var *var = NULL;
    int rc = find(id, varid, &file, &var);
    if ((rc == NC_NOERR || rc == NC_ENOTVAR) && (preemption < 0 || preemption > 1))
        rc = NC_EINVAL;
    if (rc != NC_NOERR)
        return rc;
    var->has_cache = true;
    var->cache = (esdmnc_cache){bytes, slots, preemption};
    return NC_NOERR;
}

int
esdmnc_get_var_chunk_cache(esdmnc_id id, int varid, size_t *ret_bytes, size_t *ret_slots,
                           float *ret_preemption)
{
    esdmnc_file *file;
    esdmnc_var *var;
    int rc = find(id, varid, &file, &var);
    if (rc != NC_NOERR)
        return rc;
    start(file, var);
    if (ret_bytes != NULL)
        *ret_bytes = var->cache.bytes;
    if (ret_slots != NULL)
        *ret_slots = var->cache.slots;
    if (ret_preemption != NULL)
        *ret_preemption = var->cache.preemption;
    return NC_NOERR;
}
