/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Values of any type in a program's memory: what the router's overrides ask for, and vlens. */

#include "internal.h"

#include "calls.h"

#include <string.h>

_Static_assert(sizeof(nc_vlen_t) == sizeof(esdm_vlen) &&
                   offsetof(nc_vlen_t, len) == offsetof(esdm_vlen, count) &&
                   offsetof(nc_vlen_t, p) == offsetof(esdm_vlen, values),
               "an array has the same form in memory");

/* ---- single arrays, for Fortran -------------------------------------------------------------- */

static int
find_enhanced(esdmnc_id id, esdmnc_file **ret_file)
{
    esdmnc_group *group;
    int rc = esdmnc_find(id, ret_file, &group);
    return rc == NC_NOERR && esdmnc_is_nc3(*ret_file) ? NC_ENOTNC4 : rc;
}

/* As in netCDF-4 the type does not matter here. */
int
esdmnc_put_vlen_element(esdmnc_id id, int type, void *element, size_t length, const void *data)
{
    esdmnc_file *file;
    nc_vlen_t vlen = {.len = length, .p = (void *) (uintptr_t) data};
    (void) type;
    int rc = find_enhanced(id, &file);
    if (rc == NC_NOERR)
        memcpy(element, &vlen, sizeof vlen);
    return rc;
}

/* netCDF-4 takes all elements for four bytes long; here those of arrays have their size. */
int
esdmnc_get_vlen_element(esdmnc_id id, int type, const void *element, size_t *ret_length,
                        void *ret_data)
{
    esdmnc_file *file;
    esdm_type_info info;
    nc_vlen_t vlen;
    size_t bytes = sizeof(int);
    int rc = find_enhanced(id, &file);
    if (rc != NC_NOERR)
        return rc;
    memcpy(&vlen, element, sizeof vlen);
    if (esdm_type_inquire(file->container, esdmnc_type_to_esdm(file, type), &info) &&
        info.kind == ESDM_CLASS_VLEN)
        bytes = esdm_container_type_size(file->container, info.base);
    *ret_length = vlen.len;
    if (vlen.len > 0)
        memcpy(ret_data, vlen.p, vlen.len * bytes);
    return NC_NOERR;
}

/* ---- what the router asks for ---------------------------------------------------------------- */

static int
find_values(int instance, int ncid, nc_type type, esdmnc_file **ret_file, esdm_type *ret_type)
{
    esdmnc_group *group;
    esdm_type_info info;
    int rc = esdmnc_find(esdmnc_id_make(instance, ncid), ret_file, &group);
    if (rc != NC_NOERR)
        return rc;
    *ret_type = esdmnc_type_to_esdm(*ret_file, type);
    return esdm_type_inquire((*ret_file)->container, *ret_type, &info) ? NC_NOERR : NC_EBADTYPE;
}

int
esdmnc_values_size(int instance, int ncid, nc_type type, size_t *ret_bytes, int *ret_is_fixed)
{
    esdmnc_file *file;
    esdm_type found;
    bool is_fixed = true;
    int rc = find_values(instance, ncid, type, &file, &found);
    if (rc == NC_NOERR)
        rc = esdmnc_type_is_fixed(file, type, &is_fixed);
    if (rc != NC_NOERR)
        return rc;
    *ret_bytes = esdm_container_type_size(file->container, found);
    *ret_is_fixed = is_fixed;
    return NC_NOERR;
}

int
esdmnc_values_reclaim(int instance, int ncid, nc_type type, void *memory, size_t count)
{
    esdmnc_file *file;
    esdm_type found;
    int rc = find_values(instance, ncid, type, &file, &found);
    if (rc == NC_NOERR)
        esdm_values_clear(file->container, found, count, memory);
    return rc;
}

int
esdmnc_values_copy(int instance, int ncid, nc_type type, const void *memory, size_t count,
                   void *copy)
{
    esdmnc_file *file;
    esdm_type found;
    esdm_error err;
    int rc = find_values(instance, ncid, type, &file, &found);
    if (rc != NC_NOERR)
        return rc;
    esdm_status st = esdm_values_copy(file->container, found, count, memory, copy, &err);
    return st == ESDM_OK ? NC_NOERR : esdmnc_error(&err, "copy values of", file->name);
}
