/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The checks of requests for data: one way for each combination of format and kind of access. */

#include "request.h"

#include <limits.h>

/* netCDF takes no stride and, in netCDF-3, no record number beyond. */
#define STRIDE_MAX ((uint64_t) INT32_MAX)
#define RECORD_MAX ((uint64_t) UINT32_MAX)

static inline uint64_t
current_length(const esdmnc_axis *axis)
{
    return axis->unlimited ? esdm_dimension_length(axis->dimension) : axis->length;
}

static inline bool
is_empty(const esdmnc_request *r)
{
    for (uint32_t i = 0; i < r->var->rank; i++)
        if (r->count[i] == 0)
            return true;
    return false;
}

static inline uint64_t
stride_of(const esdmnc_request *r, uint32_t i)
{
    return r->stride == NULL ? 1 : (uint64_t) r->stride[i];
}

/* ---- the box that is moved ------------------------------------------------------------------ */

static int
set_memory_stride(esdmnc_request *r)
{
    int64_t map[ESDM_MAX_RANK];
    int64_t dense = 1;
    esdm_error err;
    for (uint32_t i = r->space->rank; i-- > 0;) {
        map[i] = r->map == NULL ? dense : r->map[i];
        dense *= (int64_t) r->count[i];
    }
    return esdm_dataspace_set_memory_stride(r->space, map, &err) == ESDM_OK ? NC_NOERR : NC_EINVAL;
}

/* `size`: elements along each axis, not more than asked for. */
static int
set_space(esdmnc_request *r, const uint64_t *size)
{
    esdm_error err;
    uint64_t start[ESDM_MAX_RANK];
    uint64_t stride[ESDM_MAX_RANK];
    start[0] = 0; /* of a scalar */
    bool strided = false;
    bool cut = false;
    uint32_t rank = r->var->rank;
    for (uint32_t i = 0; i < rank; i++) {
        start[i] = r->start[i];
        stride[i] = stride_of(r, i);
        strided |= stride[i] != 1;
        cut |= size[i] != r->count[i];
    }
    if (esdm_dataspace_init(r->space, rank, start, size, &err) != ESDM_OK)
        return NC_EEDGE;
    if (strided && esdm_dataspace_set_stride(r->space, stride, &err) != ESDM_OK)
        return NC_ESTRIDE;
    return (r->map == NULL && !cut) || rank == 0 ? NC_NOERR : set_memory_stride(r);
}

static int
set_whole_space(esdmnc_request *r)
{
    uint64_t size[ESDM_MAX_RANK];
    for (uint32_t i = 0; i < r->var->rank; i++)
        size[i] = r->count[i];
    return set_space(r, size);
}

/* ---- types ---------------------------------------------------------------------------------- */

static int
check_char(esdmnc_request *r)
{
    if (r->memory_type == NC_NAT)
        r->memory_type = r->var->type;
    return (r->var->type == NC_CHAR) != (r->memory_type == NC_CHAR) ? NC_ECHAR : NC_NOERR;
}

/* Whether there is a conversion at all. */
static bool
convertible(const esdmnc_request *r)
{
    if (r->var->type == r->memory_type)
        return true;
    return esdmnc_type_is_number(r->var->type) && esdmnc_type_is_number(r->memory_type);
}

/* ---- netCDF-3 ------------------------------------------------------------------------------- */

static int
find_var(esdmnc_request *r, const esdmnc_group *group, int varid, int otherwise)
{
    if (varid < 0 || (size_t) varid >= group->count)
        return otherwise;
    r->var = group->vars[varid];
    return NC_NOERR;
}

static int
check_mode_nc3(const esdmnc_request *r)
{
    if (r->writing && !r->file->writable)
        return NC_EPERM;
    return atomic_load_explicit(&r->file->indef, memory_order_relaxed) ? NC_EINDEFINE : NC_NOERR;
}

static bool
has_records(const esdmnc_var *var)
{
    return var->rank > 0 && var->axes[0].unlimited;
}

/* Starts beyond the end come first, then the ends, records last. */
static int
check_bounds_nc3(const esdmnc_request *r)
{
    const esdmnc_var *var = r->var;
    uint32_t first = has_records(var) ? 1 : 0;
    uint64_t records = first == 1 ? current_length(&var->axes[0]) : 0;
    bool frozen = first == 1 && !r->file->writable;
    if (first == 1 && (r->start[0] > RECORD_MAX || (frozen && r->start[0] > records)))
        return NC_EINVALCOORDS;
    for (uint32_t i = first; i < var->rank; i++)
        if (r->start[i] > var->axes[i].length)
            return NC_EINVALCOORDS;
    if (frozen && r->start[0] == records && r->count[0] > 0)
        return NC_EINVALCOORDS;
    for (uint32_t i = first; i < var->rank; i++) {
        uint64_t length = var->axes[i].length;
        if (r->start[i] == length && r->count[i] > 0)
            return NC_EINVALCOORDS;
        if (r->count[i] > length || r->start[i] + r->count[i] > length)
            return NC_EEDGE;
    }
    if (first == 1 && !r->writing && r->start[0] + r->count[0] > records)
        return NC_EEDGE;
    return NC_NOERR;
}

static int
check_vara_nc3(esdmnc_request *r, const esdmnc_group *group, int varid)
{
    int rc = check_mode_nc3(r);
    if (rc == NC_NOERR)
        rc = find_var(r, group, varid, varid == NC_GLOBAL ? NC_EGLOBAL : NC_ENOTVAR);
    if (rc == NC_NOERR)
        rc = check_char(r);
    if (rc == NC_NOERR)
        rc = check_bounds_nc3(r);
    if (rc != NC_NOERR)
        return rc;
    r->nothing = is_empty(r);
    r->extends = r->writing && has_records(r->var);
    if (!convertible(r)) {
        r->nothing = true;
        r->late = NC_EBADTYPE;
    }
    return set_whole_space(r);
}

/* ---- element by element --------------------------------------------------------------------- */

/* Steps of an axis that lie below `limit`. */
static uint64_t
steps_inside(const esdmnc_request *r, uint32_t i, uint64_t limit)
{
    if (r->start[i] >= limit)
        return 0;
    uint64_t steps = (limit - r->start[i] - 1) / stride_of(r, i) + 1;
    return steps < r->count[i] ? steps : r->count[i];
}

/* Cuts off what lies outside. The last element decides what the call gives. */
static int
cut_to_inside(esdmnc_request *r)
{
    const esdmnc_var *var = r->var;
    uint64_t size[ESDM_MAX_RANK];
    bool nc3 = esdmnc_is_nc3(r->file);
    for (uint32_t i = 0; i < var->rank; i++) {
        const esdmnc_axis *axis = &var->axes[i];
        uint64_t limit = axis->unlimited && r->writing ? UINT64_MAX : current_length(axis);
        size[i] = steps_inside(r, i, limit);
        r->nothing |= size[i] == 0;
        if (size[i] == r->count[i])
            continue;
        bool record = nc3 && axis->unlimited && r->file->writable;
        if (!record || r->late == NC_NOERR)
            r->late = record ? NC_EEDGE : NC_EINVALCOORDS;
    }
    if (!convertible(r)) {
        r->late = r->late == NC_NOERR ? NC_EBADTYPE : r->late;
        r->extends = r->writing && !r->nothing;
        r->nothing = true;
    }
    return set_space(r, size);
}

/* What every element is asked for in its turn, and then all of them together. */
static int
check_elements(esdmnc_request *r)
{
    int rc = esdmnc_is_nc3(r->file) ? check_mode_nc3(r) : esdmnc_need_data(r->file);
    if (rc == NC_NOERR)
        rc = cut_to_inside(r);
    if (rc != NC_NOERR || !r->writing || r->file->writable)
        return rc;
    r->nothing = true;
    return r->late == NC_NOERR ? NC_EHDFERR : NC_NOERR;
}

/* Whether an axis is one whose length netCDF does not look at beforehand. */
static bool
is_record_axis(const esdmnc_request *r, const esdm_group *group, uint32_t i)
{
    const esdmnc_axis *axis = &r->var->axes[i];
    if (i > 0 || !axis->unlimited)
        return false;
    if (esdmnc_is_nc3(r->file))
        return true;
    /* The first unlimited dimension of the group, as nc_inq_unlimdim() tells it. */
    for (size_t d = 0; d < esdm_group_dimension_count(group); d++) {
        const esdm_dimension *dimension = esdm_group_dimension_at(group, d);
        if (esdm_dimension_is_unlimited(dimension))
            return dimension == axis->dimension;
    }
    return false;
}

static int
check_axis(const esdmnc_request *r, uint32_t i)
{
    uint64_t length = current_length(&r->var->axes[i]);
    if (r->start[i] > length || (r->start[i] == length && r->count[i] > 0))
        return NC_EINVALCOORDS;
    return r->start[i] + r->count[i] > length ? NC_EEDGE : NC_NOERR;
}

static bool
has_unit_strides(const esdmnc_request *r)
{
    for (uint32_t i = 0; i < r->var->rank; i++)
        if (r->stride[i] != 1)
            return false;
    return true;
}

static int
check_vars_nc3(esdmnc_request *r, const esdmnc_group *group, int varid)
{
    int rc = find_var(r, group, varid, NC_ENOTVAR);
    if (rc == NC_NOERR)
        rc = check_char(r);
    if (rc != NC_NOERR)
        return rc;
    if (r->var->rank == 0)
        return check_vara_nc3(r, group, varid);
    for (uint32_t i = 0; i < r->var->rank; i++) {
        if (!r->writing || !r->var->axes[i].unlimited)
            rc = check_axis(r, i);
        if (rc != NC_NOERR)
            return rc;
        if (r->stride[i] <= 0 || (uint64_t) r->stride[i] >= STRIDE_MAX)
            return NC_ESTRIDE;
    }
    bool dense = has_unit_strides(r);
    r->nothing = is_empty(r);
    if (r->nothing && !(dense && r->writing))
        return NC_NOERR;
    return dense ? check_vara_nc3(r, group, varid) : check_elements(r);
}

/* ---- mapped --------------------------------------------------------------------------------- */

static int check_vars_nc4(esdmnc_request *r, const esdmnc_group *group, int varid);

static int
check_vara(esdmnc_request *r, const esdmnc_group *group, int varid)
{
    r->stride = NULL;
    return esdmnc_is_nc3(r->file) ? check_vara_nc3(r, group, varid)
                                  : check_vars_nc4(r, group, varid);
}

/* Reading looks at the axes from the last to the first, writing the other way. */
static int
check_axes(const esdmnc_request *r, const esdm_group *group)
{
    uint32_t rank = r->var->rank;
    int rc = NC_NOERR;
    for (uint32_t i = 0; i < rank && rc == NC_NOERR; i++) {
        uint32_t axis = r->writing ? i : rank - 1 - i;
        if (!r->writing || !is_record_axis(r, group, axis))
            rc = check_axis(r, axis);
    }
    return rc;
}

static int
check_varm(esdmnc_request *r, const esdmnc_group *group, int varid)
{
    int rc = find_var(r, group, varid, NC_ENOTVAR);
    if (rc == NC_NOERR && r->var->type >= NC_FIRSTUSERTYPEID)
        rc = NC_EMAPTYPE;
    if (rc == NC_NOERR)
        rc = check_char(r);
    if (rc != NC_NOERR)
        return rc;
    if (r->var->rank == 0)
        return check_vara(r, group, varid);
    for (uint32_t i = 0; i < r->var->rank; i++)
        if (r->stride[i] == 0 || (uint64_t) r->stride[i] >= STRIDE_MAX)
            return NC_ESTRIDE;
    if (r->map == NULL && has_unit_strides(r))
        return check_vara(r, group, varid);
    rc = check_axes(r, group->group);
    if (rc != NC_NOERR)
        return rc;
    r->nothing = is_empty(r);
    return r->nothing ? NC_NOERR : check_elements(r);
}

/* ---- netCDF-4 ------------------------------------------------------------------------------- */

/* The last index of an axis; UINT64_MAX when it has no number. */
static uint64_t
last_index(const esdmnc_request *r, uint32_t i)
{
    uint64_t last;
    if (r->count[i] == 0)
        return r->start[i];
    if (__builtin_mul_overflow(r->count[i] - 1, stride_of(r, i), &last) ||
        __builtin_add_overflow(last, r->start[i], &last))
        return UINT64_MAX;
    return last;
}

static int
check_bounds_nc4(esdmnc_request *r)
{
    const esdmnc_var *var = r->var;
    bool empty = is_empty(r);
    for (uint32_t i = 0; i < var->rank; i++) {
        const esdmnc_axis *axis = &var->axes[i];
        uint64_t last = last_index(r, i);
        if (axis->unlimited && r->writing) {
            if (r->start[i] > INT64_MAX)
                return NC_EINVALCOORDS;
            if (last > INT64_MAX - 1)
                return NC_EEDGE;
            continue;
        }
        uint64_t length = current_length(axis);
        if (r->start[i] > length || (r->start[i] == length && r->count[i] > 0))
            return NC_EINVALCOORDS;
        if (last >= length && (r->writing ? !empty : r->count[i] > 0))
            return NC_EEDGE;
    }
    r->nothing = empty;
    return NC_NOERR;
}

static bool
would_extend(const esdmnc_request *r)
{
    for (uint32_t i = 0; i < r->var->rank; i++)
        if (r->var->axes[i].unlimited && last_index(r, i) >= current_length(&r->var->axes[i]))
            return true;
    return false;
}

static int
check_vars_nc4(esdmnc_request *r, const esdmnc_group *group, int varid)
{
    int rc = find_var(r, group, varid, NC_ENOTVAR);
    if (rc != NC_NOERR)
        return rc;
    if (r->memory_type >= NC_FIRSTUSERTYPEID)
        r->memory_type = NC_NAT;
    rc = check_char(r);
    if (rc == NC_NOERR)
        rc = esdmnc_need_data(r->file);
    for (uint32_t i = 0; i < r->var->rank && rc == NC_NOERR && r->stride != NULL; i++)
        rc = r->stride[i] <= 0 ? NC_ESTRIDE : NC_NOERR;
    if (rc == NC_NOERR)
        rc = check_bounds_nc4(r);
    if (rc != NC_NOERR)
        return rc;
    /* A file that is read refuses to grow before types are looked at, and data only then. */
    bool frozen = r->writing && !r->file->writable;
    if (frozen && !r->nothing && would_extend(r))
        return NC_EHDFERR;
    if (!convertible(r)) {
        r->extends = r->writing && !r->nothing && !frozen;
        r->nothing = true;
        r->late = NC_EBADTYPE;
    } else if (frozen) {
        return NC_EHDFERR;
    }
    return set_whole_space(r);
}

int
esdmnc_request_check(esdmnc_id id, int varid, esdmnc_request *r)
{
    esdmnc_group *group;
    int rc = esdmnc_find(id, &r->file, &group);
    if (rc != NC_NOERR)
        return rc;
    r->nothing = false;
    r->extends = false;
    r->late = NC_NOERR;
    if (r->mapped)
        return check_varm(r, group, varid);
    if (!esdmnc_is_nc3(r->file))
        return check_vars_nc4(r, group, varid);
    return r->stride != NULL ? check_vars_nc3(r, group, varid) : check_vara_nc3(r, group, varid);
}
