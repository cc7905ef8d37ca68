/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * netCDF-4's storage settings of a variable. They are kept as hints and reported back; what ESDM
 * does with them: a stated chunk shape becomes the fragment shape, deflate of any level asks for a
 * lossless chain, fletcher32 and endianness change nothing (every fragment is checksummed).
 */

#include "internal.h"

#include "calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* HDF5's filter numbers; the three that have a meaning of their own in netCDF. */
enum { FILTER_DEFLATE = 1, FILTER_SHUFFLE = 2, FILTER_FLETCHER32 = 3 };

/* Default of netCDF-4's chunk cache, in case this libnetcdf cannot be asked. */
#define CACHE_BYTES      16777216
#define CACHE_SLOTS      4133
#define CACHE_PREEMPTION 0.75f

/* HDF5's limit for data that lie in the object header. */
#define COMPACT_MAX_BYTES 65536

static bool
has_unlimited(const esdmnc_var *var)
{
    for (uint32_t i = 0; i < var->rank; i++)
        if (var->axes[i].unlimited)
            return true;
    return false;
}

static bool
has_filter(const esdmnc_storage *storage)
{
    return storage->shuffle != 0 || storage->level != 0 || storage->fletcher32 != 0;
}

void
esdmnc_storage_get(const esdmnc_file *file, const esdmnc_var *var, esdmnc_storage *ret)
{
    *ret = (esdmnc_storage){.endian = NC_ENDIAN_NATIVE, .kind = NC_CONTIGUOUS};
    if (esdmnc_is_nc3(file)) {
        ret->nofill = var->nofill;
        return;
    }
    if (var->stored && !esdmnc_type_is_text(var->type))
        ret->endian = NC_ENDIAN_LITTLE;
    const char *deflate = esdm_dataset_hint(var->dataset, ESDMNC_HINT_DEFLATE);
    if (deflate != NULL && deflate[0] != '\0' && deflate[1] == ' ') {
        ret->shuffle = deflate[0] == '1';
        ret->level = deflate[2] >= '0' && deflate[2] <= '9' ? deflate[2] - '0' : 0;
    }
    ret->fletcher32 = esdm_dataset_hint(var->dataset, ESDMNC_HINT_CHECK) != NULL;
    ret->nofill = esdm_dataset_hint(var->dataset, ESDMNC_HINT_NOFILL) != NULL;
    const char *endian = esdm_dataset_hint(var->dataset, ESDMNC_HINT_ENDIAN);
    if (endian != NULL)
        ret->endian = strcmp(endian, "big") == 0 ? NC_ENDIAN_BIG : NC_ENDIAN_LITTLE;
    const char *kind = esdm_dataset_hint(var->dataset, ESDMNC_HINT_STORAGE);
    bool chunked = has_unlimited(var) || has_filter(ret) ||
                   (kind == NULL && esdm_dataset_chunk(var->dataset) != NULL) ||
                   (kind != NULL && strcmp(kind, "chunked") == 0);
    if (chunked)
        ret->kind = NC_CHUNKED;
    else
        ret->kind = kind != NULL && strcmp(kind, "compact") == 0 ? NC_COMPACT : NC_CONTIGUOUS;
}

int
esdmnc_set_hint(const esdmnc_file *file, esdmnc_var *var, const char *key, const char *value)
{
    esdm_error err;
    if (esdm_dataset_set_hint(var->dataset, key, value, &err) != ESDM_OK)
        return esdmnc_error(&err, "set storage in", file->name);
    return NC_NOERR;
}

/* What all settings below need: a variable of a netCDF-4 format that define mode has not been left
 * with. */
static int
find_changeable(esdmnc_id id, int varid, esdmnc_file **ret_file, esdmnc_var **ret_var)
{
    esdmnc_group *group;
    int rc = esdmnc_find(id, ret_file, &group);
    if (rc != NC_NOERR)
        return rc;
    if (esdmnc_is_nc3(*ret_file))
        return NC_ENOTNC4;
    if (!(*ret_file)->writable)
        return NC_EPERM;
    rc = esdmnc_find_var(id, varid, ret_file, &group, ret_var);
    if (rc != NC_NOERR)
        return rc;
    return (*ret_var)->created ? NC_ELATEDEF : NC_NOERR;
}

/* Writes the hint from both values and asks for a lossless chain when there is a level. */
static int
set_deflate(const esdmnc_file *file, esdmnc_var *var, int shuffle, int level)
{
    char text[8];
    snprintf(text, sizeof text, "%d %d", shuffle != 0, level % 10);
    int rc = esdmnc_set_hint(file, var, ESDMNC_HINT_DEFLATE, text);
    if (rc != NC_NOERR || level == 0)
        return rc;
    esdm_error err;
    esdm_status st = esdm_dataset_set_codec(var->dataset, "lz4", &err);
    if (st == ESDM_ENOENT)
        return NC_NOERR; /* built without it: the site's own chain serves */
    return st == ESDM_OK ? NC_NOERR : esdmnc_error(&err, "set compression in", file->name);
}

int
esdmnc_def_var_deflate(esdmnc_id id, int varid, int shuffle, int deflate, int level)
{
    esdmnc_file *file;
    esdmnc_var *var;
    int rc = find_changeable(id, varid, &file, &var);
    if (rc != NC_NOERR)
        return rc;
    bool with_level = deflate != 0 && level != 0;
    if (var->rank == 0 && (shuffle != 0 || with_level))
        return NC_EINVAL;
    if (with_level && (level < NC_MIN_DEFLATE_LEVEL || level > NC_MAX_DEFLATE_LEVEL))
        return NC_EINVAL;
    if (shuffle == 0 && !with_level)
        return NC_NOERR;
    esdmnc_storage storage;
    esdmnc_storage_get(file, var, &storage);
    return set_deflate(file, var, shuffle || storage.shuffle, with_level ? level : storage.level);
}

int
esdmnc_def_var_fletcher32(esdmnc_id id, int varid, int fletcher32)
{
    esdmnc_file *file;
    esdmnc_var *var;
    int rc = find_changeable(id, varid, &file, &var);
    if (rc != NC_NOERR || fletcher32 == 0)
        return rc;
    if (var->rank == 0)
        return NC_EINVAL;
    return esdmnc_set_hint(file, var, ESDMNC_HINT_CHECK, "1");
}

static int
set_chunk(const esdmnc_file *file, esdmnc_var *var, const size_t *shape)
{
    uint64_t esdm_shape[ESDM_MAX_RANK];
    int rc = esdmnc_chunks_check(var, shape);
    if (rc != NC_NOERR)
        return rc;
    for (uint32_t i = 0; i < var->rank; i++) {
        if (shape[i] == 0 && i > 0)
            return NC_EBADCHUNK;
        esdm_shape[i] = shape[i];
    }
    /* A first length of 0 asks netCDF-4 for its default shape. */
    esdm_error err;
    if (esdm_dataset_set_chunk(var->dataset, shape[0] == 0 ? NULL : esdm_shape, &err) != ESDM_OK)
        return esdmnc_error(&err, "set chunks in", file->name);
    return NC_NOERR;
}

static int
check_unchunked(const esdmnc_file *file, const esdmnc_var *var, int kind)
{
    esdmnc_storage storage;
    esdmnc_storage_get(file, var, &storage);
    if (has_filter(&storage) || has_unlimited(var))
        return NC_EINVAL;
    if (kind != NC_COMPACT)
        return NC_NOERR;
    uint64_t bytes = esdm_type_size(var->type);
    for (uint32_t i = 0; i < var->rank; i++)
        if (__builtin_mul_overflow(bytes, var->axes[i].length, &bytes))
            return NC_EVARSIZE;
    return bytes > COMPACT_MAX_BYTES ? NC_EVARSIZE : NC_NOERR;
}

int
esdmnc_def_var_chunking(esdmnc_id id, int varid, int kind, const size_t *shape)
{
    esdmnc_file *file;
    esdmnc_var *var;
    int rc = find_changeable(id, varid, &file, &var);
    if (rc != NC_NOERR)
        return rc;
    switch (kind) {
    case NC_CHUNKED:
        if (var->rank == 0)
            return NC_EINVAL;
        if (shape != NULL && (rc = set_chunk(file, var, shape)) != NC_NOERR)
            return rc;
        return esdmnc_set_hint(file, var, ESDMNC_HINT_STORAGE, "chunked");
    case NC_CONTIGUOUS:
    case NC_COMPACT:
        if ((rc = check_unchunked(file, var, kind)) != NC_NOERR)
            return rc;
        return esdmnc_set_hint(file, var, ESDMNC_HINT_STORAGE,
                               kind == NC_COMPACT ? "compact" : "contiguous");
    default:
        return NC_EINVAL;
    }
}

int
esdmnc_def_var_endian(esdmnc_id id, int varid, int endian)
{
    esdmnc_file *file;
    esdmnc_var *var;
    int rc = find_changeable(id, varid, &file, &var);
    if (rc != NC_NOERR)
        return rc;
    if (esdmnc_type_is_text(var->type) || endian < NC_ENDIAN_NATIVE || endian > NC_ENDIAN_BIG)
        return NC_EINVAL;
    static const char *const values[] = {NULL, "little", "big"};
    return esdmnc_set_hint(file, var, ESDMNC_HINT_ENDIAN, values[endian]);
}

int
esdmnc_def_var_filter(esdmnc_id id, int varid, unsigned filter, size_t count,
                      const unsigned *params)
{
    esdmnc_file *file;
    esdmnc_var *var;
    int rc = find_changeable(id, varid, &file, &var);
    if (rc != NC_NOERR)
        return rc;
    if (var->rank == 0)
        return NC_EINVAL;
    esdmnc_storage storage;
    esdmnc_storage_get(file, var, &storage);
    switch (filter) {
    case FILTER_DEFLATE:
        if (count != 1 || params == NULL)
            return NC_EFILTER;
        if (params[0] > NC_MAX_DEFLATE_LEVEL)
            return NC_EINVAL;
        return set_deflate(file, var, storage.shuffle, (int) params[0]);
    case FILTER_SHUFFLE:
        return set_deflate(file, var, 1, storage.level);
    case FILTER_FLETCHER32:
        return esdmnc_set_hint(file, var, ESDMNC_HINT_CHECK, "1");
    default:
        return NC_ENOFILTER;
    }
}

int
esdmnc_inq_var_filter_ids(esdmnc_id id, int varid, size_t *ret_count, unsigned *ret_filters)
{
    esdmnc_file *file;
    esdmnc_group *group;
    esdmnc_var *var;
    int rc = esdmnc_find_var(id, varid, &file, &group, &var);
    if (rc != NC_NOERR)
        return rc;
    esdmnc_storage storage;
    esdmnc_storage_get(file, var, &storage);
    unsigned filters[3];
    size_t count = 0;
    if (storage.fletcher32)
        filters[count++] = FILTER_FLETCHER32;
    if (storage.shuffle)
        filters[count++] = FILTER_SHUFFLE;
    if (storage.level > 0)
        filters[count++] = FILTER_DEFLATE;
    if (ret_filters != NULL)
        memcpy(ret_filters, filters, count * sizeof filters[0]);
    if (ret_count != NULL)
        *ret_count = count;
    return NC_NOERR;
}

int
esdmnc_inq_var_filter_info(esdmnc_id id, int varid, unsigned filter, size_t *ret_count,
                           unsigned *ret_params)
{
    esdmnc_file *file;
    esdmnc_group *group;
    esdmnc_var *var;
    int rc = esdmnc_find_var(id, varid, &file, &group, &var);
    if (rc != NC_NOERR)
        return rc;
    esdmnc_storage storage;
    esdmnc_storage_get(file, var, &storage);
    bool is_deflate = filter == FILTER_DEFLATE && storage.level > 0;
    bool is_other = (filter == FILTER_SHUFFLE && storage.shuffle) ||
                    (filter == FILTER_FLETCHER32 && storage.fletcher32);
    if (!is_deflate && !is_other)
        return NC_ENOFILTER;
    if (ret_count != NULL)
        *ret_count = is_deflate ? 1 : 0;
    if (is_deflate && ret_params != NULL)
        ret_params[0] = (unsigned) storage.level;
    return NC_NOERR;
}

int
esdmnc_inq_filter_avail(esdmnc_id id, unsigned filter)
{
    esdmnc_file *file;
    esdmnc_group *group;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    if (esdmnc_is_nc3(file))
        return NC_ENOFILTER;
    return filter >= FILTER_DEFLATE && filter <= FILTER_FLETCHER32 ? NC_NOERR : NC_ENOFILTER;
}

/* Only "none" can be set: lossy storage is asked for by other means. */
int
esdmnc_def_var_quantize(esdmnc_id id, int varid, int mode, int digits)
{
    esdmnc_file *file;
    esdmnc_var *var;
    int rc = find_changeable(id, varid, &file, &var);
    if (rc != NC_NOERR)
        return rc;
    if (mode == NC_NOQUANTIZE)
        return NC_NOERR;
    bool is_float = var->type == NC_FLOAT;
    int most = mode == NC_QUANTIZE_BITROUND
                   ? (is_float ? NC_QUANTIZE_MAX_FLOAT_NSB : NC_QUANTIZE_MAX_DOUBLE_NSB)
                   : (is_float ? NC_QUANTIZE_MAX_FLOAT_NSD : NC_QUANTIZE_MAX_DOUBLE_NSD);
    if (mode < NC_NOQUANTIZE || mode > NC_QUANTIZE_BITROUND ||
        (!is_float && var->type != NC_DOUBLE) || digits <= 0 || digits > most)
        return NC_EINVAL;
    return NC_EFILTER;
}

int
esdmnc_inq_var_quantize(esdmnc_id id, int varid, int *ret_mode, int *ret_digits)
{
    esdmnc_file *file;
    esdmnc_group *group;
    esdmnc_var *var;
    int rc = esdmnc_find_var(id, varid, &file, &group, &var);
    if (rc != NC_NOERR)
        return rc;
    if (esdmnc_is_nc3(file))
        return NC_ENOTNC4;
    if (ret_mode != NULL)
        *ret_mode = NC_NOQUANTIZE;
    if (ret_digits != NULL)
        *ret_digits = 0;
    return NC_NOERR;
}

/* ---- the chunk cache: ESDM's own is sized by the site; the numbers are kept to be told --------
 */

int
esdmnc_set_var_chunk_cache(esdmnc_id id, int varid, size_t bytes, size_t slots, float preemption)
{
    esdmnc_file *file;
    esdmnc_group *group;
    esdmnc_var *var;
    int rc = esdmnc_find(id, &file, &group);
    if (rc == NC_NOERR && esdmnc_is_nc3(file))
        rc = NC_ENOTNC4;
    if (rc == NC_NOERR && (preemption < 0 || preemption > 1))
        rc = NC_EINVAL;
    if (rc == NC_NOERR)
        rc = esdmnc_find_var(id, varid, &file, &group, &var);
    if (rc != NC_NOERR)
        return rc;
    var->has_cache = true;
    var->cache_bytes = bytes;
    var->cache_slots = slots;
    var->cache_preemption = preemption;
    return NC_NOERR;
}

int
esdmnc_get_var_chunk_cache(esdmnc_id id, int varid, size_t *ret_bytes, size_t *ret_slots,
                           float *ret_preemption)
{
    esdmnc_file *file;
    esdmnc_group *group;
    esdmnc_var *var;
    int rc = esdmnc_find(id, &file, &group);
    if (rc == NC_NOERR && esdmnc_is_nc3(file))
        rc = NC_ENOTNC4;
    if (rc == NC_NOERR)
        rc = esdmnc_find_var(id, varid, &file, &group, &var);
    if (rc != NC_NOERR)
        return rc;
    size_t bytes = CACHE_BYTES;
    size_t slots = CACHE_SLOTS;
    float preemption = CACHE_PREEMPTION;
    const esdmnc_library *library = esdmnc_library_get(esdmnc_id_instance(id));
    if (var->has_cache) {
        bytes = var->cache_bytes;
        slots = var->cache_slots;
        preemption = var->cache_preemption;
    } else if (library != NULL && library->get_chunk_cache != NULL) {
        (void) library->get_chunk_cache(&bytes, &slots, &preemption);
    }
    if (ret_bytes != NULL)
        *ret_bytes = bytes;
    if (ret_slots != NULL)
        *ret_slots = slots;
    if (ret_preemption != NULL)
        *ret_preemption = preemption;
    return NC_NOERR;
}

int
esdmnc_var_par_access(esdmnc_id id, int varid, int access)
{
    (void) varid, (void) access;
    esdmnc_file *file;
    esdmnc_group *group;
    int rc = esdmnc_find(id, &file, &group);
    return rc == NC_NOERR ? NC_ENOPAR : rc;
}
