/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Kind of storage, endianness and fill mode of a variable. */

#include "storage.h"

#include "calls.h"

#include <string.h>

/* HDF5's limit for data that lie in the object header, and what it takes of that for itself. */
#define COMPACT_MOST_BYTES   65536
#define COMPACT_HEADER_BYTES 4

bool
esdmnc_has_unlimited(const esdmnc_var *var)
{
    for (uint32_t i = 0; i < var->rank; i++)
        if (var->axes[i].unlimited)
            return true;
    return false;
}

int
esdmnc_storage_kind(const esdmnc_file *file, const esdmnc_var *var)
{
    if (esdmnc_is_nc3(file))
        return NC_CONTIGUOUS;
    if (esdmnc_has_unlimited(var) || esdmnc_has_filters(var))
        return NC_CHUNKED;
    const char *kind = esdm_dataset_hint(var->dataset, ESDMNC_HINT_STORAGE);
    if (kind == NULL)
        return esdm_dataset_chunk(var->dataset) != NULL ? NC_CHUNKED : NC_CONTIGUOUS;
    if (strcmp(kind, "chunked") == 0)
        return NC_CHUNKED;
    return strcmp(kind, "compact") == 0 ? NC_COMPACT : NC_CONTIGUOUS;
}

int
esdmnc_storage_set_kind(const esdmnc_file *file, esdmnc_var *var, int kind)
{
    if (esdmnc_storage_kind(file, var) == kind)
        return NC_NOERR;
    const char *name = kind == NC_CHUNKED   ? "chunked"
                       : kind == NC_COMPACT ? "compact"
                                            : "contiguous";
    int rc = esdmnc_set_hint(file, var, ESDMNC_HINT_STORAGE, name);
    return rc == NC_NOERR ? esdmnc_chunks_apply(file, var) : rc;
}

int
esdmnc_endian(const esdmnc_file *file, const esdmnc_var *var)
{
    if (!var->stored || esdmnc_is_nc3(file))
        return var->endian;
    if (!esdmnc_type_is_number(var->type))
        return NC_ENDIAN_NATIVE;
    const char *endian = esdm_dataset_hint(var->dataset, ESDMNC_HINT_ENDIAN);
    return endian != NULL && strcmp(endian, "big") == 0 ? NC_ENDIAN_BIG : NC_ENDIAN_LITTLE;
}

bool
esdmnc_nofill(const esdmnc_file *file, const esdmnc_var *var)
{
    if (esdmnc_is_nc3(file))
        return var->nofill;
    return esdm_dataset_hint(var->dataset, ESDMNC_HINT_NOFILL) != NULL;
}

int
esdmnc_set_nofill(const esdmnc_file *file, esdmnc_var *var, bool nofill)
{
    if (!esdmnc_is_nc3(file))
        return esdmnc_set_hint(file, var, ESDMNC_HINT_NOFILL, nofill ? "1" : NULL);
    var->nofill = nofill;
    return NC_NOERR;
}

int
esdmnc_set_hint(const esdmnc_file *file, esdmnc_var *var, const char *key, const char *value)
{
    esdm_error err;
    if (esdm_dataset_set_hint(var->dataset, key, value, &err) != ESDM_OK)
        return esdmnc_error(&err, "set storage in", file->name);
    return NC_NOERR;
}

int
esdmnc_find_changeable(esdmnc_id id, int varid, esdmnc_file **ret_file, esdmnc_var **ret_var)
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

static uint64_t
variable_bytes(const esdmnc_var *var)
{
    uint64_t bytes = var->bytes;
    for (uint32_t i = 0; i < var->rank; i++)
        if (__builtin_mul_overflow(bytes, var->axes[i].length, &bytes))
            return UINT64_MAX;
    return bytes;
}

static int
set_chunked(const esdmnc_file *file, esdmnc_var *var, const size_t *shape)
{
    if (var->rank == 0)
        return NC_EINVAL;
    int rc = esdmnc_storage_set_kind(file, var, NC_CHUNKED);
    if (rc == NC_NOERR && shape != NULL)
        rc = esdmnc_chunks_check(var, shape);
    return rc == NC_NOERR && shape != NULL ? esdmnc_chunks_set(file, var, shape) : rc;
}

int
esdmnc_def_var_chunking(esdmnc_id id, int varid, int kind, const size_t *shape)
{
    esdmnc_file *file;
    esdmnc_var *var;
    int rc = esdmnc_find_changeable(id, varid, &file, &var);
    if (rc != NC_NOERR)
        return rc;
    if (kind != NC_CHUNKED && (esdmnc_has_filters(var) || esdmnc_has_unlimited(var)))
        return NC_EINVAL;
    switch (kind) {
    case NC_CHUNKED:
        rc = set_chunked(file, var, shape);
        break;
    case NC_COMPACT:
        rc = variable_bytes(var) > COMPACT_MOST_BYTES
                 ? NC_EVARSIZE
                 : esdmnc_storage_set_kind(file, var, NC_COMPACT);
        break;
    case NC_CONTIGUOUS:
        rc = esdmnc_storage_set_kind(file, var, NC_CONTIGUOUS);
        break;
    default:
        break; /* netCDF-C takes no notice */
    }
    if (rc == NC_NOERR)
        esdmnc_cache_adjust(file, var);
    return rc;
}

int
esdmnc_def_var_endian(esdmnc_id id, int varid, int endian)
{
    esdmnc_file *file;
    esdmnc_var *var;
    int rc = esdmnc_find_changeable(id, varid, &file, &var);
    if (rc != NC_NOERR)
        return rc;
    esdmnc_cache_adjust(file, var);
    if (esdmnc_type_is_text(var->type) || !esdmnc_type_is_atomic(var->type))
        return NC_EINVAL;
    const char *value = endian == NC_ENDIAN_LITTLE ? "little"
                        : endian == NC_ENDIAN_BIG  ? "big"
                                                   : NULL;
    rc = esdmnc_set_hint(file, var, ESDMNC_HINT_ENDIAN, value);
    if (rc == NC_NOERR)
        var->endian = endian; /* netCDF-C keeps any number until the file is closed */
    return rc;
}

int
esdmnc_storage_create(esdmnc_file *file, esdmnc_var *var)
{
    int rc = esdmnc_accuracy_settle(file, var);
    if (esdmnc_is_nc3(file) || rc != NC_NOERR)
        return rc;
    rc = esdmnc_chunks_create(file, var);
    if (rc == NC_NOERR)
        rc = esdmnc_filters_check(var);
    int kind = esdmnc_storage_kind(file, var);
    uint64_t bytes = variable_bytes(var);
    if (rc == NC_NOERR &&
        ((kind == NC_COMPACT && bytes > COMPACT_MOST_BYTES - COMPACT_HEADER_BYTES) ||
         (kind == NC_CONTIGUOUS && bytes == UINT64_MAX)))
        rc = NC_EHDFERR;
    return rc == NC_NOERR ? esdmnc_quantize_create(file, var) : rc;
}

/* As in netcdf_par.h, which needs MPI. */
enum { NC_INDEPENDENT_ACCESS = 0, NC_COLLECTIVE_ACCESS = 1 };

int
esdmnc_var_par_access(esdmnc_id id, int varid, int access)
{
    esdmnc_file *file;
    esdmnc_group *group;
    if (access != NC_INDEPENDENT_ACCESS && access != NC_COLLECTIVE_ACCESS)
        return NC_EINVAL;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    if (esdmnc_comm(file) == NULL)
        return NC_ENOPAR;
    if (esdmnc_is_nc3(file)) { /* all variables are switched together, as by PnetCDF */
        file->collective = access == NC_COLLECTIVE_ACCESS;
        return NC_NOERR;
    }
    if (varid < 0 || (size_t) varid >= group->count)
        return NC_ENOTVAR;
    group->vars[varid]->collective = access == NC_COLLECTIVE_ACCESS;
    return NC_NOERR;
}
