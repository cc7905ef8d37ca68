/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Atomic types, and the refusal of user-defined ones. */

#include "internal.h"

#include "calls.h"

#include <string.h>

static const char *const type_names[NC_STRING + 1] = {NULL,    "byte",   "char",  "short",  "int",
                                                      "float", "double", "ubyte", "ushort", "uint",
                                                      "int64", "uint64", "string"};

nc_type
esdmnc_memory_type(const esdmnc_file *file, nc_type file_type, nc_type memory_type)
{
    /* CDF-1 and CDF-2 read and write NC_BYTE as unsigned char without range errors; the classic
     * model of netCDF-4 does so in both directions. */
    if (file_type == memory_type || file->format == NC_FORMAT_NETCDF4 ||
        file->format == NC_FORMAT_64BIT_DATA)
        return memory_type;
    bool bytes = (file_type == NC_BYTE && memory_type == NC_UBYTE) ||
                 (file_type == NC_UBYTE && memory_type == NC_BYTE);
    return bytes ? file_type : memory_type;
}

bool
esdmnc_rejects_infinity(const esdmnc_file *file, nc_type file_type, nc_type memory_type)
{
    return file_type == NC_DOUBLE && memory_type == NC_FLOAT && esdmnc_is_nc3(file);
}

int
esdmnc_inq_type(esdmnc_id id, nc_type type, char *ret_name, size_t *ret_bytes)
{
    esdmnc_file *file;
    esdmnc_group *group;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    if (!esdmnc_type_is_atomic(type))
        return NC_EBADTYPE;
    if (ret_name != NULL)
        esdmnc_name_copy(type_names[type], ret_name);
    if (ret_bytes != NULL)
        *ret_bytes = esdm_type_size(type);
    return NC_NOERR;
}

int
esdmnc_inq_typeid(esdmnc_id id, const char *name, nc_type *ret_type)
{
    esdmnc_file *file;
    esdmnc_group *group;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    if (name == NULL)
        return NC_EINVAL;
    nc_type last = esdmnc_is_nc3(file) ? NC_DOUBLE : NC_STRING;
    for (nc_type type = NC_BYTE; type <= last; type++) {
        if (strcmp(type_names[type], name) == 0) {
            if (ret_type != NULL)
                *ret_type = type;
            return NC_NOERR;
        }
    }
    return esdmnc_is_nc3(file) ? NC_ENOTNC4 : NC_EBADTYPE;
}

int
esdmnc_inq_typeids(esdmnc_id id, int *ret_count, int *ret_types)
{
    (void) ret_types;
    esdmnc_file *file;
    esdmnc_group *group;
    int rc = esdmnc_find(id, &file, &group);
    if (rc == NC_NOERR && ret_count != NULL)
        *ret_count = 0;
    return rc;
}

int
esdmnc_inq_type_equal(esdmnc_id id, nc_type type, int ncid2, nc_type type2, int *ret_equal)
{
    (void) ncid2; /* atomic types are the same in every file */
    esdmnc_file *file;
    esdmnc_group *group;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR || ret_equal == NULL)
        return rc;
    if (type <= NC_NAT || type2 <= NC_NAT)
        return NC_EINVAL;
    bool atomic = esdmnc_type_is_atomic(type);
    if (atomic != esdmnc_type_is_atomic(type2)) {
        *ret_equal = 0;
        return NC_NOERR;
    }
    if (!atomic)
        return NC_EBADTYPE;
    *ret_equal = type == type2;
    return NC_NOERR;
}

/* ---- user-defined types: none can be defined, so none exists --------------------------------- */

static int
refuse(esdmnc_id id)
{
    esdmnc_file *file;
    esdmnc_group *group;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    return file->format == NC_FORMAT_NETCDF4_CLASSIC ? NC_ESTRICTNC3 : NC_ENOTNC4;
}

/* An inquiry about a type that does not exist. */
static int
unknown_type(esdmnc_id id)
{
    esdmnc_file *file;
    esdmnc_group *group;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    return esdmnc_is_nc3(file) ? NC_ENOTNC4 : NC_EBADTYPE;
}

int
esdmnc_inq_user_type(esdmnc_id id, nc_type type, char *n, size_t *s, nc_type *b, size_t *f, int *c)
{
    (void) type, (void) n, (void) s, (void) b, (void) f, (void) c;
    return unknown_type(id);
}

int
esdmnc_def_compound(esdmnc_id id, size_t bytes, const char *name, nc_type *ret_type)
{
    (void) bytes, (void) name, (void) ret_type;
    return refuse(id);
}

int
esdmnc_insert_compound(esdmnc_id id, nc_type type, const char *name, size_t offset, nc_type field)
{
    (void) type, (void) name, (void) offset, (void) field;
    return unknown_type(id);
}

int
esdmnc_insert_array_compound(esdmnc_id id, nc_type type, const char *name, size_t offset,
                             nc_type field, int rank, const int *shape)
{
    (void) type, (void) name, (void) offset, (void) field, (void) rank, (void) shape;
    return unknown_type(id);
}

int
esdmnc_inq_compound_field(esdmnc_id id, nc_type type, int i, char *n, size_t *o, nc_type *f, int *d,
                          int *s)
{
    (void) type, (void) i, (void) n, (void) o, (void) f, (void) d, (void) s;
    return unknown_type(id);
}

int
esdmnc_inq_compound_fieldindex(esdmnc_id id, nc_type type, const char *name, int *ret_index)
{
    (void) type, (void) name, (void) ret_index;
    return unknown_type(id);
}

int
esdmnc_def_vlen(esdmnc_id id, const char *name, nc_type base, nc_type *ret_type)
{
    (void) name, (void) base, (void) ret_type;
    return refuse(id);
}

int
esdmnc_put_vlen_element(esdmnc_id id, int type, void *element, size_t length, const void *data)
{
    (void) type, (void) element, (void) length, (void) data;
    return unknown_type(id);
}

int
esdmnc_get_vlen_element(esdmnc_id id, int type, const void *element, size_t *length, void *data)
{
    (void) type, (void) element, (void) length, (void) data;
    return unknown_type(id);
}

int
esdmnc_def_enum(esdmnc_id id, nc_type base, const char *name, nc_type *ret_type)
{
    (void) base, (void) name, (void) ret_type;
    return refuse(id);
}

int
esdmnc_insert_enum(esdmnc_id id, nc_type type, const char *name, const void *value)
{
    (void) type, (void) name, (void) value;
    return unknown_type(id);
}

int
esdmnc_inq_enum_member(esdmnc_id id, nc_type type, int i, char *ret_name, void *ret_value)
{
    (void) type, (void) i, (void) ret_name, (void) ret_value;
    return unknown_type(id);
}

int
esdmnc_inq_enum_ident(esdmnc_id id, nc_type type, long long value, char *ret_name)
{
    (void) type, (void) value, (void) ret_name;
    return unknown_type(id);
}

int
esdmnc_def_opaque(esdmnc_id id, size_t bytes, const char *name, nc_type *ret_type)
{
    (void) bytes, (void) name, (void) ret_type;
    return refuse(id);
}
