/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nc_reclaim_data(), nc_copy_data() and their like in netcdf_aux.h: libnetcdf walks values with its
 * own structures of types, which our ncids do not have.
 *
 * Values of atomic types are told by the type alone, whatever the ncid: these are served for all,
 * without looking for the caller. libnetcdf itself calls these functions, partly without leaving a
 * return address.
 */
#include "router/overrides.h"

#include <netcdf_aux.h>
#include <stdlib.h>

static size_t
atomic_size(nc_type type)
{
    static const unsigned char sizes[] = {0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8, sizeof(char *)};
    return type > 0 && type <= NC_STRING ? sizes[type] : 0;
}

static int
check_values(int ncid, nc_type xtype, const void *memory, size_t count)
{
    return ncid < 0 || xtype <= 0 || (!memory && count > 0) ? NC_EINVAL : NC_NOERR;
}

/* ---- freeing --------------------------------------------------------------------------------- */

/** Frees what hangs below. @param library of a user-defined type. */
static int
reclaim(const esdmnc__library *library, int ncid, nc_type xtype, void *memory, size_t count)
{
    int status = check_values(ncid, xtype, memory, count);
    if (status != NC_NOERR || count == 0) {
        return status;
    }
    if (library) {
        return esdmnc__core_if_loaded()->values_reclaim(library->api.instance, ncid, xtype, memory,
                                                        count);
    }
    for (size_t i = 0; xtype == NC_STRING && i < count; i++) {
        free(((char **) memory)[i]);
    }
    return NC_NOERR;
}

ESDMNC_EXPORT int
nc_reclaim_data(int ncid, nc_type xtype, void *memory, size_t count)
{
    esdmnc__library *library = NULL;
    if (atomic_size(xtype) == 0) {
        library = CALLER();
        if (!owns(library, ncid)) {
            return CALL_REAL(library, nc_reclaim_data, ncid, xtype, memory, count);
        }
    }
    return reclaim(library, ncid, xtype, memory, count);
}

static int
reclaim_all(const esdmnc__library *library, int ncid, nc_type xtype, void *memory, size_t count)
{
    int status = reclaim(library, ncid, xtype, memory, count);
    if (status == NC_NOERR) {
        free(memory);
    }
    return status;
}

ESDMNC_EXPORT int
nc_reclaim_data_all(int ncid, nc_type xtype, void *memory, size_t count)
{
    esdmnc__library *library = NULL;
    if (atomic_size(xtype) == 0) {
        library = CALLER();
        if (!owns(library, ncid)) {
            return CALL_REAL(library, nc_reclaim_data_all, ncid, xtype, memory, count);
        }
    }
    return reclaim_all(library, ncid, xtype, memory, count);
}

/* The names of before 4.9.0. libnetcdf's own call the two above, without asking us where it binds
 * its own symbols. */
ESDMNC_EXPORT int
ncaux_reclaim_data(int ncid, int xtype, void *memory, size_t count)
{
    esdmnc__library *library = CALLER();
    if (!owns(library, ncid)) {
        return CALL_REAL(library, ncaux_reclaim_data, ncid, xtype, memory, count);
    }
    return reclaim(library, ncid, xtype, memory, count);
}

ESDMNC_EXPORT int
ncaux_reclaim_data_all(int ncid, int xtype, void *memory, size_t count)
{
    esdmnc__library *library = CALLER();
    if (!owns(library, ncid)) {
        return CALL_REAL(library, ncaux_reclaim_data_all, ncid, xtype, memory, count);
    }
    return reclaim_all(library, ncid, xtype, memory, count);
}

/* ---- alignment ------------------------------------------------------------------------------- */

/* As libnetcdf has it: that of a compound's first member when it is no atomic type; 0 for all
 * others and for enums. */
static int
type_alignment(const esdmnc__library *library, int ncid, nc_type xtype, size_t *ret_bytes)
{
    int klass = 0;
    nc_type member = NC_NAT;
    int status = NC_NOERR;
    while (status == NC_NOERR && atomic_size(xtype) == 0) {
        status = CALL_REAL(library, nc_inq_user_type, ncid, xtype, NULL, NULL, NULL, NULL, &klass);
        if (status != NC_NOERR || klass == NC_ENUM) {
            *ret_bytes = 0;
            return status;
        }
        if (klass != NC_COMPOUND) {
            return CALL_REAL(library, ncaux_class_alignment, klass, ret_bytes);
        }
        status = CALL_REAL(library, nc_inq_compound_field, ncid, xtype, 0, NULL, NULL, &member,
                           NULL, NULL);
        xtype = member;
    }
    *ret_bytes = 0;
    return status;
}

ESDMNC_EXPORT int
ncaux_type_alignment(int xtype, int ncid, size_t *alignp)
{
    esdmnc__library *library = CALLER();
    if (atomic_size(xtype) > 0 || !owns(library, ncid)) {
        return CALL_REAL(library, ncaux_type_alignment, xtype, ncid, alignp);
    }
    size_t bytes = 0;
    int status = type_alignment(library, ncid, xtype, &bytes);
    if (status == NC_NOERR && alignp) {
        *alignp = bytes;
    }
    return status;
}

/* ---- copying --------------------------------------------------------------------------------- */

static int
copy_strings(char *const *from, size_t count, char **to)
{
    for (size_t i = 0; i < count; i++) {
        to[i] = from[i] ? strdup(from[i]) : NULL;
        if (from[i] && !to[i]) {
            while (i > 0) {
                free(to[--i]);
            }
            return NC_ENOMEM;
        }
    }
    return NC_NOERR;
}

static int
copy_values(const esdmnc__library *library, int ncid, nc_type xtype, const void *memory,
            size_t count, void *copy)
{
    if (count == 0 || !copy) {
        return NC_NOERR;
    }
    if (xtype == NC_STRING) {
        return copy_strings(memory, count, copy);
    }
    if (library) {
        return esdmnc__core_if_loaded()->values_copy(library->api.instance, ncid, xtype, memory,
                                                     count, copy);
    }
    memcpy(copy, memory, atomic_size(xtype) * count);
    return NC_NOERR;
}

ESDMNC_EXPORT int
nc_copy_data(int ncid, nc_type xtype, const void *memory, size_t count, void *copy)
{
    esdmnc__library *library = NULL;
    if (atomic_size(xtype) == 0) {
        library = CALLER();
        if (!owns(library, ncid)) {
            return CALL_REAL(library, nc_copy_data, ncid, xtype, memory, count, copy);
        }
    }
    int status = check_values(ncid, xtype, memory, count);
    return status == NC_NOERR ? copy_values(library, ncid, xtype, memory, count, copy) : status;
}

static int
element_size(const esdmnc__library *library, int ncid, nc_type xtype, size_t *ret_bytes)
{
    int fixed;
    *ret_bytes = atomic_size(xtype);
    return !library ? NC_NOERR
                    : esdmnc__core_if_loaded()->values_size(library->api.instance, ncid, xtype,
                                                            ret_bytes, &fixed);
}

ESDMNC_EXPORT int
nc_copy_data_all(int ncid, nc_type xtype, const void *memory, size_t count, void **copyp)
{
    esdmnc__library *library = NULL;
    size_t bytes = 0;
    if (atomic_size(xtype) == 0) {
        library = CALLER();
        if (!owns(library, ncid)) {
            return CALL_REAL(library, nc_copy_data_all, ncid, xtype, memory, count, copyp);
        }
    }
    int status = check_values(ncid, xtype, memory, count);
    if (status == NC_NOERR) {
        status = element_size(library, ncid, xtype, &bytes);
    }
    if (status != NC_NOERR || !copyp) {
        return status;
    }
    void *copy = count > 0 ? calloc(count, bytes) : NULL;
    if (count > 0 && !copy) {
        return NC_ENOMEM;
    }
    status = copy_values(library, ncid, xtype, memory, count, copy);
    if (status == NC_NOERR) {
        *copyp = copy;
    } else {
        free(copy);
    }
    return status;
}
