/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Limits of the classic formats. A container has none of them; they are kept so that what was made
 * in a classic format can be copied to such a file.
 */

#include "internal.h"

#define CDF1_MAX ((uint64_t) INT32_MAX - 3) /* lengths are rounded up to 4 bytes */
#define CDF2_MAX ((uint64_t) UINT32_MAX - 3)
#define CDF5_MAX ((uint64_t) INT64_MAX - 3)

int
esdmnc_classic_type(const esdmnc_file *file, nc_type type)
{
    switch (file->format) {
    case NC_FORMAT_CLASSIC:
    case NC_FORMAT_64BIT_OFFSET:
        return type >= NC_BYTE && type <= NC_DOUBLE ? NC_NOERR : NC_EBADTYPE;
    case NC_FORMAT_64BIT_DATA:
        return type >= NC_BYTE && type <= NC_UINT64 ? NC_NOERR : NC_EBADTYPE;
    case NC_FORMAT_NETCDF4_CLASSIC:
        if (type > NC_DOUBLE)
            return NC_ESTRICTNC3;
        return type == NC_NAT ? NC_EBADTYPE : NC_NOERR;
    default:
        return type == NC_NAT ? NC_EBADTYPE : NC_NOERR; /* of others the file knows */
    }
}

static uint64_t
size_limit(const esdmnc_file *file)
{
    switch (file->format) {
    case NC_FORMAT_CLASSIC:
        return CDF1_MAX;
    case NC_FORMAT_64BIT_OFFSET:
        return CDF2_MAX;
    default:
        return CDF5_MAX;
    }
}

int
esdmnc_classic_length(const esdmnc_file *file, size_t length)
{
    if (file->format == NC_FORMAT_NETCDF4_CLASSIC)
        return length > UINT32_MAX ? NC_EDIMSIZE : NC_NOERR;
    if (file->format == NC_FORMAT_NETCDF4)
        return length > INT64_MAX ? NC_EDIMSIZE : NC_NOERR;
    uint64_t limit = file->format == NC_FORMAT_64BIT_DATA ? UINT64_MAX - 3 : size_limit(file);
    return length > limit ? NC_EDIMSIZE : NC_NOERR;
}

bool
esdmnc_classic_is_record(const esdmnc_var *var)
{
    return var->rank > 0 && var->axes[0].unlimited;
}

uint64_t
esdmnc_classic_bytes(const esdmnc_var *var)
{
    uint64_t bytes = var->bytes;
    for (uint32_t i = esdmnc_classic_is_record(var) ? 1 : 0; i < var->rank; i++)
        if (__builtin_mul_overflow(bytes, var->axes[i].length, &bytes))
            return UINT64_MAX;
    return bytes > UINT64_MAX - 3 ? UINT64_MAX : (bytes + 3) / 4 * 4;
}

/* Only the last variable of a kind may exceed the limit, and of the limited ones only when no
 * record variable follows. */
static int
check_kind(const esdmnc_group *group, bool records, uint64_t limit, bool last_may)
{
    const esdmnc_var *last = NULL;
    for (size_t i = 0; i < group->count; i++)
        if (esdmnc_classic_is_record(group->vars[i]) == records)
            last = group->vars[i];
    for (size_t i = 0; i < group->count; i++) {
        const esdmnc_var *var = group->vars[i];
        if (esdmnc_classic_is_record(var) != records || esdmnc_classic_bytes(var) <= limit)
            continue;
        if (var != last || !last_may)
            return NC_EVARSIZE;
    }
    return NC_NOERR;
}

int
esdmnc_classic_sizes(esdmnc_file *file, const esdmnc_padding *padding)
{
    if (!esdmnc_is_nc3(file) || file->group_count == 0)
        return NC_NOERR;
    const esdmnc_group *group = file->groups[0];
    uint64_t limit = size_limit(file);
    bool any_record = false;
    for (size_t i = 0; i < group->count && !any_record; i++)
        any_record = esdmnc_classic_is_record(group->vars[i]);
    int rc = check_kind(group, false, limit, !any_record);
    if (rc == NC_NOERR)
        rc = check_kind(group, true, limit, true);
    if (rc == NC_NOERR && file->format == NC_FORMAT_CLASSIC)
        rc = esdmnc_classic_layout(file, padding);
    return rc;
}
