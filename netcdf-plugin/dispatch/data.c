/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Reading and writing of data: the hyperslab, its strides and its map go to ESDM in one call.
 * Nothing here allocates.
 */

#include "request.h"
#include "storage.h"

#include "calls.h"

/* Unlimited dimensions grow to the end of the request. */
static int
extend(const esdmnc_request *r)
{
    esdm_error err;
    for (uint32_t i = 0; i < r->var->rank; i++) {
        if (!r->var->axes[i].unlimited)
            continue;
        uint64_t steps = r->space->size[i] == 0 ? 0 : r->space->size[i] - 1;
        uint64_t end = r->space->offset[i] + steps * r->space->stride[i] + (r->space->size[i] > 0);
        if (esdm_dimension_extend(r->var->axes[i].dimension, end, &err) != ESDM_OK)
            return esdmnc_error(&err, "append records to", r->file->name);
    }
    return NC_NOERR;
}

/* netCDF-3 fills the records up to the request before it writes. */
static int
fill_records(esdmnc_request *r)
{
    const esdmnc_var *var = r->var;
    if (var->rank == 0 || !var->axes[0].unlimited || (r->nothing && !r->extends) ||
        esdmnc_comm(r->file) != NULL) /* where other ranks may have written by now */
        return NC_NOERR;
    uint64_t records = esdm_dimension_length(var->axes[0].dimension);
    uint64_t steps = r->space->size[0] == 0 ? 0 : r->space->size[0] - 1;
    uint64_t end = r->space->offset[0] + steps * r->space->stride[0] + (r->space->size[0] > 0);
    return end > records ? esdmnc_fill_records(r->file, records, end) : NC_NOERR;
}

/* ---- collective access ---------------------------------------------------------------------- */

/* What all ranks do before one of them writes. A rank whose request was refused takes part too. */
static int
meet_to_write(const esdmnc_request *r, int rc)
{
    esdm_error err;
    if (rc == NC_NOERR && r->nothing && r->extends)
        rc = extend(r);
    const esdm_dataspace *space = rc == NC_NOERR && !r->nothing ? r->space : NULL;
    if (esdm_dataset_align(r->var->dataset, space, true, &err) == ESDM_OK)
        return rc;
    return rc == NC_NOERR ? esdmnc_error_data(&err, "write", r->file->name) : rc;
}

/* netCDF-4 lets dimensions grow by collective writes only. */
static bool
grows(const esdmnc_request *r)
{
    for (uint32_t i = 0; i < r->var->rank && (!r->nothing || r->extends); i++) {
        uint64_t steps = r->space->size[i] == 0 ? 0 : r->space->size[i] - 1;
        if (r->var->axes[i].unlimited && r->space->size[i] > 0 &&
            r->space->offset[i] + steps * r->space->stride[i] >=
                esdm_dimension_length(r->var->axes[i].dimension))
            return true;
    }
    return false;
}

/* What is done before a write to a parallel file. */
static int
check_parallel(const esdmnc_request *r, int rc)
{
    if (esdmnc_is_collective(r->file, r->var))
        return meet_to_write(r, rc);
    if (rc == NC_NOERR && !esdmnc_is_nc3(r->file) && grows(r))
        return NC_ECANTEXTEND;
    return rc;
}

/* The selection as it was asked for, which may lie past the lengths that this rank knows. */
static bool
raw_space(const esdmnc_request *r, uint32_t rank, esdm_dataspace *space)
{
    uint64_t offset[ESDM_MAX_RANK];
    uint64_t size[ESDM_MAX_RANK];
    uint64_t stride[ESDM_MAX_RANK];
    if (rank > 0 && (r->start == NULL || r->count == NULL))
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        offset[i] = r->start[i];
        size[i] = r->count[i];
        stride[i] = r->stride != NULL && r->stride[i] > 0 ? (uint64_t) r->stride[i] : 1;
    }
    return esdm_dataspace_init(space, rank, offset, size, NULL) == ESDM_OK &&
           esdm_dataspace_set_stride(space, stride, NULL) == ESDM_OK;
}

/* What all ranks do before one of them reads: then they know all lengths and data. */
static int
meet_to_read(esdmnc_id id, int varid, const esdmnc_request *r)
{
    esdmnc_file *file;
    esdmnc_group *group;
    esdmnc_var *var;
    esdm_dataspace space;
    esdm_error err;
    if (esdmnc_find_var(id, varid, &file, &group, &var) != NC_NOERR ||
        !esdmnc_is_collective(file, var))
        return NC_NOERR;
    bool known = raw_space(r, var->rank, &space);
    if (esdm_dataset_align(var->dataset, known ? &space : NULL, false, &err) == ESDM_OK)
        return NC_NOERR;
    return esdmnc_error_data(&err, "read", file->name);
}

/* ---- the calls ------------------------------------------------------------------------------ */

/* A statement of accuracy that is in doubt needs the numbers, where they lie one after the other.
 */
static int
show_numbers(const esdmnc_request *r, nc_type memory_type, const void *data)
{
    return r->map == NULL ? esdmnc_doubt_written(r->file, r->var, memory_type, data,
                                                 esdm_dataspace_elements(r->space))
                          : NC_NOERR;
}

/* NOLINTBEGIN(clang-analyzer-core.StackAddressEscape): requests live as long as the call. */

/* Of the selection, as the variable's type has them; 0 for user-defined types. */
static uint64_t
selected_bytes(const esdmnc_request *r)
{
    return esdm_dataspace_elements(r->space) * esdm_type_size(esdm_dataset_type(r->var->dataset));
}

static int
put_data(const esdmnc_request *r, const void *data)
{
    esdm_error err;
    uint64_t out_of_range = 0;
    const esdm_dataspace *space = r->space;
    int rc = NC_NOERR;
    nc_type memory_type = esdmnc_memory_type(r->file, r->var->type, r->memory_type);
    if (atomic_load_explicit(&r->var->doubt, memory_order_relaxed) != NULL &&
        (rc = show_numbers(r, memory_type, data)) != NC_NOERR)
        return rc;
    if (esdmnc_quantized(r->file, r->var)) {
        bool piecewise = r->mapped && (space->has_stride || r->map != NULL);
        rc = esdmnc_put_quantized(r->file, r->var, r->space, piecewise, memory_type, data,
                                  &out_of_range);
        if (rc != NC_NOERR)
            return rc;
    } else if (esdm_write(r->var->dataset, r->space, esdmnc_type_to_esdm(r->file, memory_type),
                          data, &out_of_range, &err) != ESDM_OK) {
        return esdmnc_error_data(&err, "write", r->file->name);
    }
    if (r->late != NC_NOERR)
        return r->late;
    return out_of_range > 0 ? NC_ERANGE : NC_NOERR;
}

static int
put(esdmnc_id id, int varid, esdmnc_request *r, const void *data)
{
    esdm_dataspace space;
    r->space = &space;
    int rc = esdmnc_request_check(id, varid, r);
    if (r->var != NULL && esdmnc_comm(r->file) != NULL)
        rc = check_parallel(r, rc);
    if (rc != NC_NOERR || r->var == NULL)
        return rc;
    if (esdmnc_is_nc3(r->file) && (rc = fill_records(r)) != NC_NOERR)
        return rc;
    if (!atomic_load_explicit(&r->var->written, memory_order_relaxed))
        atomic_store_explicit(&r->var->written, true, memory_order_relaxed);
    if (r->nothing) {
        rc = r->extends ? extend(r) : NC_NOERR;
        return rc == NC_NOERR ? r->late : rc;
    }
    if (data == NULL)
        return NC_EINVAL;
    esdm_call call;
    esdm_call_begin(r->var->dataset, &call);
    rc = put_data(r, data);
    if (call.monitor != NULL)
        esdm_call_end(&call, true, selected_bytes(r), rc != NC_NOERR);
    return rc;
}
static int
get(esdmnc_id id, int varid, esdmnc_request *r, void *data)
{
    esdm_error err;
    esdm_dataspace space;
    uint64_t out_of_range = 0;
    r->space = &space;
    int rc = esdmnc_parallel_seen() ? meet_to_read(id, varid, r) : NC_NOERR;
    if (rc == NC_NOERR)
        rc = esdmnc_request_check(id, varid, r);
    if (rc != NC_NOERR || r->nothing)
        return rc == NC_NOERR ? r->late : rc;
    if (data == NULL)
        return NC_EINVAL;
    esdm_call call;
    esdm_call_begin(r->var->dataset, &call);
    esdm_type memory_type =
        esdmnc_type_to_esdm(r->file, esdmnc_memory_type(r->file, r->var->type, r->memory_type));
    bool failed =
        esdm_read(r->var->dataset, r->space, memory_type, data, &out_of_range, &err) != ESDM_OK;
    if (call.monitor != NULL)
        esdm_call_end(&call, false, selected_bytes(r), failed);
    if (failed)
        return esdmnc_error_read(&err, r->file->name);
    if (r->late != NC_NOERR)
        return r->late;
    return out_of_range > 0 ? NC_ERANGE : NC_NOERR;
}
/* NOLINTEND(clang-analyzer-core.StackAddressEscape) */

/* Where netCDF-3 would have nothing to fill before the next record. */
static bool
fills_nothing(const esdmnc_file *file)
{
    return !esdmnc_is_nc3(file) || file->fill_mode != NC_FILL ||
           atomic_load_explicit(&file->record_fill, memory_order_relaxed) == ESDMNC_RECORDS_PLAIN;
}

bool
esdmnc_put_next(esdmnc_id id, int varid, const size_t *start, const size_t *count, const void *data,
                nc_type memory_type)
{
    uint64_t offset[ESDM_MAX_RANK];
    uint64_t size[ESDM_MAX_RANK];
    const esdmnc_group *group;
    const esdmnc_file *file = esdmnc_find_current(id, &group);
    if (file == NULL || varid < 0 || (size_t) varid >= group->count || start == NULL ||
        count == NULL || data == NULL || esdmnc_parallel_seen() || !file->writable ||
        atomic_load_explicit(&file->indef, memory_order_relaxed) || !fills_nothing(file))
        return false;
    esdmnc_var *var = group->vars[varid];
    if ((memory_type != var->type && memory_type != NC_NAT) || !esdmnc_type_is_atomic(var->type) ||
        var->rank == 0 || !var->axes[0].unlimited || count[0] == 0 ||
        !atomic_load_explicit(&var->written, memory_order_relaxed) ||
        atomic_load_explicit(&var->doubt, memory_order_relaxed) != NULL ||
        esdmnc_may_be_quantized(var))
        return false;
    for (uint32_t i = 0; i < var->rank; i++) {
        const esdmnc_axis *axis = &var->axes[i];
        offset[i] = start[i];
        size[i] = count[i];
        if (i > 0 &&
            (axis->unlimited || count[i] > axis->length || start[i] > axis->length - count[i]))
            return false;
    }
    if (size[0] > UINT32_MAX || offset[0] > UINT32_MAX - size[0])
        return false;
    return esdm_write_next(var->dataset, var->rank, offset, size, var->type, data);
}

int
esdmnc_put_vara(esdmnc_id id, int varid, const size_t *start, const size_t *count, const void *data,
                nc_type memory_type)
{
    esdmnc_request r = {
        .start = start, .count = count, .writing = true, .memory_type = memory_type};
    return put(id, varid, &r, data);
}

int
esdmnc_get_vara(esdmnc_id id, int varid, const size_t *start, const size_t *count, void *data,
                nc_type memory_type)
{
    esdmnc_request r = {.start = start, .count = count, .memory_type = memory_type};
    return get(id, varid, &r, data);
}

int
esdmnc_put_vars(esdmnc_id id, int varid, const size_t *start, const size_t *count,
                const ptrdiff_t *stride, const void *data, nc_type memory_type)
{
    esdmnc_request r = {.start = start,
                        .count = count,
                        .stride = stride,
                        .writing = true,
                        .memory_type = memory_type};
    return put(id, varid, &r, data);
}

int
esdmnc_get_vars(esdmnc_id id, int varid, const size_t *start, const size_t *count,
                const ptrdiff_t *stride, void *data, nc_type memory_type)
{
    esdmnc_request r = {
        .start = start, .count = count, .stride = stride, .memory_type = memory_type};
    return get(id, varid, &r, data);
}

int
esdmnc_put_varm(esdmnc_id id, int varid, const size_t *start, const size_t *count,
                const ptrdiff_t *stride, const ptrdiff_t *map, const void *data,
                nc_type memory_type)
{
    esdmnc_request r = {.start = start,
                        .count = count,
                        .stride = stride,
                        .map = map,
                        .mapped = true,
                        .writing = true,
                        .memory_type = memory_type};
    return put(id, varid, &r, data);
}

int
esdmnc_get_varm(esdmnc_id id, int varid, const size_t *start, const size_t *count,
                const ptrdiff_t *stride, const ptrdiff_t *map, void *data, nc_type memory_type)
{
    esdmnc_request r = {.start = start,
                        .count = count,
                        .stride = stride,
                        .map = map,
                        .mapped = true,
                        .memory_type = memory_type};
    return get(id, varid, &r, data);
}
