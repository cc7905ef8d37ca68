/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The empty dataset that each container of fake_core.c is. */

#include "fake_core.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "router/boundary.h"

static int
accept(int ncid)
{
    (void) ncid;
    return NC_NOERR;
}

static int
enddef(int ncid, size_t a, size_t b, size_t c, size_t d)
{
    (void) ncid, (void) a, (void) b, (void) c, (void) d;
    return NC_NOERR;
}

static int
inq(int ncid, int *ndims, int *nvars, int *natts, int *unlimdim)
{
    (void) ncid;
    int *counts[] = {ndims, nvars, natts};
    for (int i = 0; i < 3; i++) {
        if (counts[i]) {
            *counts[i] = 0;
        }
    }
    if (unlimdim) {
        *unlimdim = -1;
    }
    return NC_NOERR;
}

static int
inq_format(int ncid, int *format)
{
    (void) ncid;
    if (format) {
        *format = NC_FORMAT_NETCDF4;
    }
    return NC_NOERR;
}

static int
inq_format_extended(int ncid, int *format, int *mode)
{
    (void) ncid;
    if (format) {
        *format = NC_FORMATX_UDF0;
    }
    if (mode) {
        *mode = NC_NETCDF4;
    }
    return NC_NOERR;
}

static int
none(int ncid, int *count, int *ids)
{
    (void) ncid, (void) ids;
    if (count) {
        *count = 0;
    }
    return NC_NOERR;
}

static int
inq_dimids(int ncid, int *count, int *ids, int parents)
{
    (void) parents;
    return none(ncid, count, ids);
}

static int
inq_unlimdim(int ncid, int *id)
{
    (void) ncid;
    *id = -1;
    return NC_NOERR;
}

static int
inq_grpname(int ncid, char *name)
{
    (void) ncid;
    memcpy(name, "/", 2);
    return NC_NOERR;
}

static int
inq_grpname_full(int ncid, size_t *length, char *name)
{
    (void) ncid;
    if (length) {
        *length = 1;
    }
    if (name) {
        memcpy(name, "/", 2);
    }
    return NC_NOERR;
}

static int
set_fill(int ncid, int mode, int *old)
{
    (void) ncid, (void) mode;
    if (old) {
        *old = NC_FILL;
    }
    return NC_NOERR;
}

/* One pretended variable: 2-d, float for varid 0, NC_STRING for varid 1. */
static int
inq_var_all(int ncid, int varid, char *name, nc_type *type, int *ndims, int *dimids, int *natts,
            int *shuffle, int *deflate, int *level, int *fletcher, int *contiguous, size_t *chunks,
            int *no_fill, void *fill, int *endianness, unsigned int *id, size_t *nparams,
            unsigned int *params)
{
    (void) ncid, (void) name, (void) dimids, (void) natts, (void) shuffle, (void) deflate;
    (void) level, (void) fletcher, (void) no_fill, (void) fill, (void) endianness, (void) id;
    (void) nparams, (void) params;
    if (type) {
        *type = varid == 0 ? NC_FLOAT : NC_STRING;
    }
    if (ndims) {
        *ndims = 2;
    }
    if (contiguous) {
        *contiguous = NC_CHUNKED;
    }
    if (chunks) {
        chunks[0] = 7;
        chunks[1] = 9;
    }
    return NC_NOERR;
}

static int
def_var_chunking(int ncid, int varid, int storage, const size_t *chunks)
{
    (void) ncid;
    fake_record("chunking %d %d %zu %zu", varid, storage, chunks ? chunks[0] : 0,
                chunks ? chunks[1] : 0);
    return NC_NOERR;
}

static size_t cache_bytes = 4 << 20;
static size_t cache_slots = 100;
static float cache_part = 0.5F;

static int
set_cache(int ncid, int varid, size_t bytes, size_t count, float preemption)
{
    (void) ncid, (void) varid;
    cache_bytes = bytes;
    cache_slots = count;
    cache_part = preemption;
    return NC_NOERR;
}

static int
get_cache(int ncid, int varid, size_t *bytes, size_t *count, float *preemption)
{
    (void) ncid, (void) varid;
    *bytes = cache_bytes;
    *count = cache_slots;
    *preemption = cache_part;
    return NC_NOERR;
}

static int
def_var_filter(int ncid, int varid, unsigned int id, size_t nparams, const unsigned int *params)
{
    (void) ncid, (void) varid, (void) nparams, (void) params;
    fake_record("filter %u", id);
    return NC_NOERR;
}

static int
refuse(void)
{
    return NC_EPERM;
}

void
fake_table_fill(NC_Dispatch *table)
{
    int (*const refuse_pointer)(void) = refuse;
    char *first = (char *) &table->create;
    for (char *at = first; at < (char *) (table + 1); at += sizeof(void *)) {
        memcpy(at, &refuse_pointer, sizeof(void *));
    }
    table->model = ESDMNC_FORMATX;
    table->dispatch_version = NC_DISPATCH_VERSION;
    table->redef = accept;
    table->_enddef = enddef;
    table->sync = accept;
    table->set_fill = set_fill;
    table->inq = inq;
    table->inq_format = inq_format;
    table->inq_format_extended = inq_format_extended;
    table->inq_unlimdim = inq_unlimdim;
    table->inq_unlimdims = none;
    table->inq_grps = none;
    table->inq_typeids = none;
    table->inq_varids = none;
    table->inq_dimids = inq_dimids;
    table->inq_grpname = inq_grpname;
    table->inq_grpname_full = inq_grpname_full;
    table->inq_var_all = inq_var_all;
    table->def_var_chunking = def_var_chunking;
    table->set_var_chunk_cache = set_cache;
    table->get_var_chunk_cache = get_cache;
    table->def_var_filter = def_var_filter;
}
