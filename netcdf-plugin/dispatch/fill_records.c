/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * netCDF-3 fills variables when define mode ends, and records when they are appended, with what
 * `_FillValue` says at that moment. A dataset has one fill value for all that nobody wrote: it
 * stays what it was when the variable was made, and records that are to hold another value are
 * written.
 */

#include "internal.h"

#include <string.h>

static bool
has_records(const esdmnc_var *var)
{
    return var->rank > 0 && var->axes[0].unlimited;
}

static uint64_t
record_count(const esdmnc_file *file)
{
    for (size_t i = 0; i < file->groups[0]->count; i++)
        if (has_records(file->groups[0]->vars[i]))
            return esdm_dimension_length(file->groups[0]->vars[i]->axes[0].dimension);
    return 0;
}

/* The attribute, when there is one. */
static bool
fill_attribute(const esdmnc_var *var, esdm_attribute *ret)
{
    return esdm_attribute_find(esdm_dataset_attributes(var->dataset), _FillValue, ret, NULL);
}

static bool
is_usable(const esdmnc_var *var, const esdm_attribute *attribute)
{
    return attribute->type == var->type && attribute->count == 1;
}

int
esdmnc_fill_check(const esdmnc_file *file)
{
    if (!esdmnc_is_nc3(file) || file->group_count == 0)
        return NC_NOERR;
    uint64_t records = record_count(file);
    const esdmnc_group *group = file->groups[0];
    for (size_t i = 0; i < group->count; i++) {
        const esdmnc_var *var = group->vars[i];
        esdm_attribute attribute;
        if ((var->created && !file->is_new) || var->nofill ||
            (has_records(var) && (file->is_new || records == 0)))
            continue;
        if (fill_attribute(var, &attribute) && !is_usable(var, &attribute))
            return NC_EBADTYPE;
    }
    return NC_NOERR;
}

int
esdmnc_fill_settle(const esdmnc_file *file)
{
    if (!esdmnc_is_nc3(file) || file->group_count == 0)
        return NC_NOERR;
    const esdmnc_group *group = file->groups[0];
    for (size_t i = 0; i < group->count; i++) {
        const esdmnc_var *var = group->vars[i];
        esdm_attribute attribute;
        esdm_error err;
        if (var->created && !file->is_new)
            continue;
        bool usable = fill_attribute(var, &attribute) && is_usable(var, &attribute);
        if (esdm_dataset_set_fill(var->dataset, usable ? attribute.values : NULL, &err) != ESDM_OK)
            return esdmnc_error(&err, "set fill value in", file->name);
    }
    return NC_NOERR;
}

/* How records are to be filled: the worst of all variables. */
static esdmnc_record_fill
look_at_attributes(const esdmnc_group *group)
{
    esdmnc_record_fill worst = ESDMNC_RECORDS_PLAIN;
    for (size_t i = 0; i < group->count; i++) {
        const esdmnc_var *var = group->vars[i];
        esdm_attribute attribute;
        const void *hole = esdm_dataset_fill(var->dataset, NULL);
        if (!has_records(var))
            continue;
        bool found = fill_attribute(var, &attribute);
        if (found && !is_usable(var, &attribute))
            return ESDMNC_RECORDS_BAD;
        const void *value = found ? attribute.values : esdm_type_default_fill(var->type);
        if (memcmp(value, hole, var->bytes) != 0)
            worst = ESDMNC_RECORDS_WRITTEN;
    }
    return worst;
}

/* One value into all elements of the new records. */
static int
fill_var(const esdmnc_file *file, const esdmnc_var *var, uint64_t from, uint64_t to)
{
    esdm_attribute attribute;
    esdm_error err;
    esdm_dataspace space;
    uint64_t offset[ESDM_MAX_RANK] = {from};
    uint64_t size[ESDM_MAX_RANK] = {to - from};
    int64_t step[ESDM_MAX_RANK] = {0};
    uint64_t out_of_range = 0;
    bool found = fill_attribute(var, &attribute);
    const void *value = found ? attribute.values : esdm_type_default_fill(var->type);
    if (memcmp(value, esdm_dataset_fill(var->dataset, NULL), var->bytes) == 0)
        return NC_NOERR;
    for (uint32_t i = 1; i < var->rank; i++)
        size[i] = var->axes[i].length;
    if (esdm_dataspace_init(&space, var->rank, offset, size, &err) != ESDM_OK ||
        esdm_dataspace_set_memory_stride(&space, step, &err) != ESDM_OK ||
        esdm_write(var->dataset, &space, var->type, value, &out_of_range, &err) != ESDM_OK)
        return esdmnc_error(&err, "fill records of", file->name);
    return NC_NOERR;
}

int
esdmnc_fill_records(esdmnc_file *file, uint64_t from, uint64_t to)
{
    const esdmnc_group *group = file->groups[0];
    int rc = NC_NOERR;
    if (file->fill_mode != NC_FILL)
        return NC_NOERR;
    esdmnc_record_fill how = file->record_fill;
    if (how == ESDMNC_RECORDS_UNKNOWN)
        file->record_fill = how = look_at_attributes(group);
    if (how == ESDMNC_RECORDS_BAD)
        return NC_EBADTYPE;
    if (how == ESDMNC_RECORDS_PLAIN)
        return NC_NOERR;
    for (size_t i = 0; i < group->count && rc == NC_NOERR; i++)
        if (has_records(group->vars[i]))
            rc = fill_var(file, group->vars[i], from, to);
    return rc;
}
