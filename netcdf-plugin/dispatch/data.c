/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Reading and writing of data. The checks have netCDF's order; the hyperslab, its strides and its
 * map go to ESDM in one call. Nothing here allocates.
 */

#include "internal.h"

#include "calls.h"

#include <limits.h>

/* A request as it came in. Any of the arrays may be NULL. */
typedef struct slab {
    const size_t *start;
    const size_t *count;
    const ptrdiff_t *stride;
    const ptrdiff_t *map;
    bool writing;
} slab;

static inline uint64_t
current_length(const esdmnc_axis *axis)
{
    return axis->unlimited ? esdm_dimension_length(axis->dimension) : axis->length;
}

/* The first index of an axis. Past the end only with a count of 0, or to append. */
static inline int
check_start(const esdmnc_axis *axis, uint64_t start, uint64_t count, bool writing)
{
    if (writing && axis->unlimited)
        return start > INT64_MAX ? NC_EINVALCOORDS : NC_NOERR;
    uint64_t length = current_length(axis);
    return start > length || (start == length && count > 0) ? NC_EINVALCOORDS : NC_NOERR;
}

/* The last index of an axis. */
static inline int
check_end(const esdmnc_axis *axis, uint64_t start, uint64_t count, uint64_t stride, bool writing)
{
    if (count == 0)
        return NC_NOERR;
    uint64_t last;
    if (__builtin_mul_overflow(count - 1, stride, &last) ||
        __builtin_add_overflow(last, start, &last) || last >= INT64_MAX)
        return NC_EEDGE;
    if (writing && axis->unlimited)
        return NC_NOERR;
    return last >= current_length(axis) ? NC_EEDGE : NC_NOERR;
}

static int
check_bounds(const esdmnc_var *var, const esdm_dataspace *space, bool writing, bool skip_ends)
{
    for (uint32_t i = 0; i < var->rank; i++) {
        int rc = check_start(&var->axes[i], space->offset[i], space->size[i], writing);
        if (rc == NC_NOERR && !skip_ends)
            rc = check_end(&var->axes[i], space->offset[i], space->size[i], space->stride[i],
                           writing);
        if (rc != NC_NOERR)
            return rc;
    }
    return NC_NOERR;
}

/* netCDF-3, without strides, looks for starts beyond the end first and at the records last, and
 * says NC_EEDGE for whatever lies beyond these. */
static int
check_bounds_nc3(const esdmnc_var *var, const esdm_dataspace *space, bool writing)
{
    for (uint32_t i = 0; i < var->rank; i++) {
        const esdmnc_axis *axis = &var->axes[i];
        uint64_t most = axis->unlimited ? INT64_MAX : axis->length;
        if (space->offset[i] > most)
            return NC_EINVALCOORDS;
    }
    for (uint32_t i = 0; i < var->rank; i++) {
        const esdmnc_axis *axis = &var->axes[i];
        if (axis->unlimited && !writing)
            continue;
        int rc = check_start(axis, space->offset[i], space->size[i], writing);
        if (rc == NC_NOERR)
            rc = check_end(axis, space->offset[i], space->size[i], 1, writing);
        if (rc != NC_NOERR)
            return rc;
    }
    if (writing || var->rank == 0 || !var->axes[0].unlimited)
        return NC_NOERR;
    if (space->offset[0] > current_length(&var->axes[0]))
        return NC_EEDGE;
    return check_end(&var->axes[0], space->offset[0], space->size[0], 1, false);
}

static int
check_strides(const esdmnc_var *var, const ptrdiff_t *stride)
{
    for (uint32_t i = 0; i < var->rank; i++)
        if (stride[i] <= 0)
            return NC_ESTRIDE;
    return NC_NOERR;
}

/* Fills the dataspace without checks. */
static void
take_over(const esdmnc_var *var, const slab *s, esdm_dataspace *space)
{
    space->rank = var->rank;
    for (uint32_t i = 0; i < var->rank; i++) {
        space->offset[i] = s->start == NULL ? 0 : s->start[i];
        space->stride[i] = s->stride == NULL ? 1 : (uint64_t) s->stride[i];
        if (s->count != NULL)
            space->size[i] = s->count[i];
        else
            space->size[i] = current_length(&var->axes[i]) - space->offset[i];
    }
}

/* Turns a checked request into a dataspace. */
static int
make_space(const slab *s, esdm_dataspace *space, esdm_error *err)
{
    uint64_t stride[ESDM_MAX_RANK];
    int64_t map[ESDM_MAX_RANK];
    uint32_t rank = space->rank;
    bool strided = false;
    for (uint32_t i = 0; i < rank; i++) {
        stride[i] = space->stride[i];
        strided |= stride[i] != 1;
    }
    uint64_t offset[ESDM_MAX_RANK];
    uint64_t size[ESDM_MAX_RANK];
    for (uint32_t i = 0; i < rank; i++) {
        offset[i] = space->offset[i];
        size[i] = space->size[i];
    }
    if (esdm_dataspace_init(space, rank, offset, size, err) != ESDM_OK)
        return NC_EEDGE;
    if (strided && esdm_dataspace_set_stride(space, stride, err) != ESDM_OK)
        return NC_ESTRIDE;
    if (s->map == NULL)
        return NC_NOERR;
    for (uint32_t i = 0; i < rank; i++)
        map[i] = s->map[i];
    return esdm_dataspace_set_memory_stride(space, map, err) == ESDM_OK ? NC_NOERR : NC_EINVAL;
}

static int
check_types(const esdmnc_var *var, nc_type *memory_type)
{
    if (*memory_type == NC_NAT || *memory_type >= NC_FIRSTUSERTYPEID)
        *memory_type = var->type;
    return (var->type == NC_CHAR) != (*memory_type == NC_CHAR) ? NC_ECHAR : NC_NOERR;
}

/* Finds the variable and checks what comes before any index is looked at. netCDF-3 asks for the
 * mode first, netCDF-4 for the types. */
static int
begin(esdmnc_id id, int varid, const slab *s, nc_type *memory_type, esdmnc_file **ret_file,
      esdmnc_var **ret_var)
{
    esdmnc_group *group;
    int rc = esdmnc_find(id, ret_file, &group);
    if (rc != NC_NOERR)
        return rc;
    esdmnc_file *file = *ret_file;
    bool nc3 = esdmnc_is_nc3(file);
    if (nc3) {
        if (s->writing && !file->writable)
            return NC_EPERM;
        if ((rc = esdmnc_need_data(file)) != NC_NOERR)
            return rc;
    }
    if (varid < 0 || (size_t) varid >= group->count)
        return nc3 && varid == NC_GLOBAL ? NC_EGLOBAL : NC_ENOTVAR;
    *ret_var = group->vars[varid];
    rc = check_types(*ret_var, memory_type);
    return rc != NC_NOERR || nc3 ? rc : esdmnc_need_data(file);
}

static int
prepare(esdmnc_file *file, esdmnc_var *var, const slab *s, nc_type *memory_type,
        esdm_dataspace *space, bool *ret_empty)
{
    esdm_error err;
    bool nc3 = esdmnc_is_nc3(file);
    int rc = s->stride == NULL ? NC_NOERR : check_strides(var, s->stride);
    if (rc != NC_NOERR && (!nc3 || s->map != NULL))
        return rc;
    take_over(var, s, space);
    bool empty = false;
    for (uint32_t i = 0; i < var->rank; i++)
        empty |= space->size[i] == 0;
    *ret_empty = empty;
    int bounds = nc3 && s->stride == NULL
                     ? check_bounds_nc3(var, space, s->writing)
                     : check_bounds(var, space, s->writing, s->writing && empty && !nc3);
    if (bounds != NC_NOERR || rc != NC_NOERR)
        return bounds != NC_NOERR ? bounds : rc;
    if ((var->type == NC_STRING) != (*memory_type == NC_STRING) ||
        !esdmnc_type_is_atomic(*memory_type))
        return NC_EBADTYPE;
    if (s->writing && !file->writable)
        return NC_EPERM;
    *memory_type = esdmnc_memory_type(file, var->type, *memory_type);
    return empty ? NC_NOERR : make_space(s, space, &err);
}

/* netCDF-3 appends records even when a request has no elements. */
static int
append_nothing(const esdmnc_file *file, esdmnc_var *var, const slab *s)
{
    if (!esdmnc_is_nc3(file) || var->rank == 0 || !var->axes[0].unlimited || s->start == NULL ||
        s->count == NULL || s->stride != NULL)
        return NC_NOERR;
    esdm_error err;
    uint64_t records;
    if (__builtin_add_overflow(s->start[0], s->count[0], &records))
        return NC_EEDGE;
    if (esdm_dimension_extend(var->axes[0].dimension, records, &err) != ESDM_OK)
        return esdmnc_error(&err, "append records to", file->name);
    return NC_NOERR;
}

static int
put(esdmnc_id id, int varid, const slab *s, const void *data, nc_type memory_type)
{
    esdmnc_file *file;
    esdmnc_var *var;
    esdm_dataspace space;
    bool empty;
    int rc = begin(id, varid, s, &memory_type, &file, &var);
    if (rc == NC_NOERR)
        rc = prepare(file, var, s, &memory_type, &space, &empty);
    if (rc != NC_NOERR)
        return rc;
    if (!atomic_load_explicit(&var->written, memory_order_relaxed))
        atomic_store_explicit(&var->written, true, memory_order_relaxed);
    if (empty)
        return append_nothing(file, var, s);
    if (data == NULL)
        return NC_EINVAL;
    esdm_error err;
    uint64_t out_of_range = 0;
    if (esdm_write(var->dataset, &space, memory_type, data, &out_of_range, &err) != ESDM_OK)
        return esdmnc_error(&err, "write", file->name);
    return out_of_range > 0 ? NC_ERANGE : NC_NOERR;
}

static int
get(esdmnc_id id, int varid, const slab *s, void *data, nc_type memory_type)
{
    esdmnc_file *file;
    esdmnc_var *var;
    esdm_dataspace space;
    bool empty;
    int rc = begin(id, varid, s, &memory_type, &file, &var);
    if (rc == NC_NOERR)
        rc = prepare(file, var, s, &memory_type, &space, &empty);
    if (rc != NC_NOERR || empty)
        return rc;
    if (data == NULL)
        return NC_EINVAL;
    esdm_error err;
    uint64_t out_of_range = 0;
    if (esdm_read(var->dataset, &space, memory_type, data, &out_of_range, &err) != ESDM_OK)
        return esdmnc_error(&err, "read", file->name);
    return out_of_range > 0 ? NC_ERANGE : NC_NOERR;
}

int
esdmnc_put_vara(esdmnc_id id, int varid, const size_t *start, const size_t *count, const void *data,
                nc_type memory_type)
{
    slab s = {.start = start, .count = count, .writing = true};
    return put(id, varid, &s, data, memory_type);
}

int
esdmnc_get_vara(esdmnc_id id, int varid, const size_t *start, const size_t *count, void *data,
                nc_type memory_type)
{
    slab s = {.start = start, .count = count};
    return get(id, varid, &s, data, memory_type);
}

int
esdmnc_put_vars(esdmnc_id id, int varid, const size_t *start, const size_t *count,
                const ptrdiff_t *stride, const void *data, nc_type memory_type)
{
    slab s = {.start = start, .count = count, .stride = stride, .writing = true};
    return put(id, varid, &s, data, memory_type);
}

int
esdmnc_get_vars(esdmnc_id id, int varid, const size_t *start, const size_t *count,
                const ptrdiff_t *stride, void *data, nc_type memory_type)
{
    slab s = {.start = start, .count = count, .stride = stride};
    return get(id, varid, &s, data, memory_type);
}

int
esdmnc_put_varm(esdmnc_id id, int varid, const size_t *start, const size_t *count,
                const ptrdiff_t *stride, const ptrdiff_t *map, const void *data,
                nc_type memory_type)
{
    slab s = {.start = start, .count = count, .stride = stride, .map = map, .writing = true};
    return put(id, varid, &s, data, memory_type);
}

int
esdmnc_get_varm(esdmnc_id id, int varid, const size_t *start, const size_t *count,
                const ptrdiff_t *stride, const ptrdiff_t *map, void *data, nc_type memory_type)
{
    slab s = {.start = start, .count = count, .stride = stride, .map = map};
    return get(id, varid, &s, data, memory_type);
}
