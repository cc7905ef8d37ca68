/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Where the variables of a CDF-1 file would begin: the format keeps that in 31 bits, and refuses
 * what would begin beyond. Sizes follow the specification of the format: numbers and texts fill
 * multiples of 4 bytes.
 */

#include "internal.h"

#include <string.h>

#define NUMBER ((uint64_t) 4) /* bytes of a count, a type, an offset */

/* Sizes add up without overflow: there is no room in memory for that many names. */
static uint64_t
padded(uint64_t bytes)
{
    return (bytes + 3) & ~(uint64_t) 3;
}

static uint64_t
name_bytes(const char *name)
{
    return NUMBER + padded(strlen(name));
}

static uint64_t
attributes_bytes(const esdm_attributes *attributes)
{
    uint64_t bytes = 2 * NUMBER;
    esdm_attribute attribute;
    for (size_t i = 0; esdm_attribute_at(attributes, i, &attribute); i++)
        bytes += name_bytes(attribute.name) + 2 * NUMBER +
                 padded(attribute.count * esdm_type_size(attribute.type));
    return bytes;
}

static uint64_t
header_bytes(const esdmnc_group *group)
{
    uint64_t bytes = 2 * NUMBER; /* magic, records */
    bytes += 2 * NUMBER;
    for (size_t i = 0; i < esdm_group_dimension_count(group->group); i++)
        bytes += name_bytes(esdm_dimension_name(esdm_group_dimension_at(group->group, i))) + NUMBER;
    bytes += attributes_bytes(esdm_group_attributes(group->group));
    bytes += 2 * NUMBER;
    for (size_t i = 0; i < group->count; i++) {
        const esdmnc_var *var = group->vars[i];
        bytes += name_bytes(esdm_dataset_name(var->dataset)) + NUMBER + var->rank * NUMBER;
        bytes += attributes_bytes(esdm_dataset_attributes(var->dataset));
        bytes += 3 * NUMBER; /* type, size, begin */
    }
    return bytes;
}

/* Where a part begins behind `end`: where it did before, or else at the next multiple of `align`
 * that leaves `free` bytes; UINT64_MAX when there is none. */
static uint64_t
begin_behind(uint64_t before, uint64_t end, uint64_t free, uint64_t align)
{
    uint64_t begin;
    if (align == 0 || align == NC_ALIGN_CHUNK)
        align = 1; /* of the buffer in use, which is far below the limit */
    if (__builtin_add_overflow(end, free, &begin))
        return UINT64_MAX;
    if (before >= begin && before % align == 0)
        return before;
    return __builtin_add_overflow(begin, align - 1, &begin) ? UINT64_MAX : begin / align * align;
}

/* Variables of one kind, one behind the other. */
static int
place(const esdmnc_group *group, bool records, uint64_t *begin)
{
    for (size_t i = 0; i < group->count; i++) {
        const esdmnc_var *var = group->vars[i];
        if (esdmnc_classic_is_record(var) != records)
            continue;
        if (*begin > INT32_MAX)
            return NC_EVARSIZE;
        if (__builtin_add_overflow(*begin, esdmnc_classic_bytes(var), begin))
            *begin = UINT64_MAX;
    }
    return NC_NOERR;
}

int
esdmnc_classic_layout(esdmnc_file *file, const esdmnc_padding *padding)
{
    const esdmnc_group *group = file->groups[0];
    if (group->count == 0)
        return NC_NOERR;
    uint64_t first = begin_behind(file->variables_begin, header_bytes(group), padding->header_free,
                                  padding->variable_align);
    uint64_t end = first;
    int rc = place(group, false, &end);
    if (rc != NC_NOERR)
        return rc;
    /* netCDF keeps this one even when it refuses it. */
    file->records_begin =
        begin_behind(file->records_begin, end, padding->variable_free, padding->record_align);
    end = file->records_begin;
    rc = place(group, true, &end);
    if (rc == NC_NOERR)
        file->variables_begin = first;
    return rc;
}
