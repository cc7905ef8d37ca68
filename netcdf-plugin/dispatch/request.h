/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDMNC_REQUEST_H
#define ESDMNC_REQUEST_H

/**
 * @file
 * A request to read or write data, and its checks in netCDF's order.
 *
 * Stock netCDF serves strided requests of netCDF-3 formats, and mapped ones of all formats, element
 * by element: what lies inside is moved even when other elements lie outside, and the mode is
 * looked at only when there is an element. Here the part that lies inside is moved in one piece;
 * `late` is what the call gives afterwards.
 */

#include "internal.h"

typedef struct esdmnc_request {
    const size_t *start; /* of `rank` values each; NULL for scalars only */
    const size_t *count;
    const ptrdiff_t *stride; /* NULL: ones */
    const ptrdiff_t *map;    /* NULL: dense */
    bool mapped;             /* nc_put_varm() and nc_get_varm() */
    bool writing;
    nc_type memory_type;   /* NC_NAT: that of the variable */
    esdm_dataspace *space; /* the caller's; is set to what is to be moved */

    /* Set by the check: */
    esdmnc_file *file;
    esdmnc_var *var;
    bool nothing; /* there is nothing to move */
    bool extends; /* unlimited dimensions grow although nothing is written */
    int late;
} esdmnc_request;

/** NC_NOERR when `space`, `nothing`, `extends` and `late` are to be followed. */
int esdmnc_request_check(esdmnc_id id, int varid, esdmnc_request *r);

#endif
