/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What a variable can be told: fill value, chunks, filters, byte order, cache. */

#include "../compare.h"

#include "fuzz.h"

#include <netcdf_filter.h>
#include <string.h>

static void
make_setting(generator *g, op *o)
{
    o->varid = pick_var(g);
    o->null = one_in(g, 4);
    o->data = pick(g, 1000);
    for (int i = 0; i < ARGUMENTS; i++)
        o->argument[i] = (int) pick(g, 12) - (one_in(g, 10) ? 4 : 0);
    for (int i = 0; i < RANK; i++)
        o->count[i] = one_in(g, 15) ? (size_t) pick(g, 3) * 1000000000u : 1 + pick(g, 5);
}

/* A value of any type, the same bytes on both sides. */
static void
make_value(context *c, void *value, char **string)
{
    nc_type type = NC_NAT;
    static char text[] = "fill";
    (void) nc_inq_vartype(c->ncid, c->op->varid, &type);
    memset(value, 0, 8);
    if (type == NC_STRING) {
        *string = text;
        memcpy(value, string, sizeof *string);
    } else if (type == NC_FLOAT) {
        memcpy(value, &(float){(float) (c->op->data % 200) / 4}, sizeof(float));
    } else if (type == NC_DOUBLE) {
        memcpy(value, &(double){(double) (c->op->data % 200) / 4}, sizeof(double));
    } else {
        memcpy(value, &(long long){(long long) (c->op->data % 120)}, sizeof(long long));
    }
}

static int
call_def_var_fill(context *c)
{
    unsigned char value[8];
    char *string = NULL;
    int nofill = c->op->argument[0] > 9;
    make_value(c, value, &string);
    if (c->handle->kept && !is_netcdf3(c->state) && left_out("netcdf4-late-fill-value"))
        return skip(c);
    say(c, "nc_def_var_fill($, %d, %d, %s%d)", c->op->varid, nofill, c->op->null ? "NULL" : "&",
        (int) c->op->data);
    int rc = nc_def_var_fill(c->ncid, c->op->varid, nofill, c->op->null ? NULL : value);
    if (rc == NC_NOERR && nofill && c->handle->open)
        c->state->files[c->handle->file].loose_data = true;
    return rc;
}

static int
call_inq_var_fill(context *c)
{
    unsigned char value[512] = {0}; /* netCDF-3 writes all values of the attribute */
    size_t bytes = 0;
    int nofill = -1;
    nc_type type = NC_NAT;
    (void) nc_inq_vartype(c->ncid, c->op->varid, &type);
    say(c, "nc_inq_var_fill($, %d, &nofill, value)", c->op->varid);
    int rc = nc_inq_var_fill(c->ncid, c->op->varid, &nofill, value);
    if (rc != NC_NOERR)
        return rc;
    out_int(c, nofill != 0);
    if (type != NC_STRING) {
        (void) nc_inq_type(c->ncid, type, NULL, &bytes);
        out_bytes(c, value, bytes);
        return rc;
    }
    char *string;
    memcpy(&string, value, sizeof string);
    out_text(c, string == NULL ? "(null)" : string);
    return string == NULL ? rc : nc_free_string(1, &string);
}

static int
call_def_var_chunking(context *c)
{
    static const int kinds[] = {NC_CHUNKED, NC_CHUNKED, NC_CHUNKED, NC_CONTIGUOUS, NC_COMPACT, 9};
    int storage = kinds[(unsigned) c->op->argument[0] % 6];
    const size_t *shape = c->op->null ? NULL : c->op->count;
    say(c, "nc_def_var_chunking($, %d, %d, %s(size_t[]){%zu, %zu, %zu, %zu})", c->op->varid,
        storage, c->op->null ? "NULL, not " : "", c->op->count[0], c->op->count[1], c->op->count[2],
        c->op->count[3]);
    return nc_def_var_chunking(c->ncid, c->op->varid, storage, shape);
}

static int
call_inq_var_chunking(context *c)
{
    int storage = -1;
    size_t shape[NC_MAX_VAR_DIMS] = {0};
    say(c, "nc_inq_var_chunking($, %d, &storage, shape)", c->op->varid);
    int rc = nc_inq_var_chunking(c->ncid, c->op->varid, &storage, shape);
    if (rc != NC_NOERR)
        return rc;
    out_int(c, storage);
    if (storage == NC_CHUNKED)
        out_bytes(c, shape, RANK * sizeof shape[0]);
    return rc;
}

static int
call_def_var_deflate(context *c)
{
    const int *a = c->op->argument;
    say(c, "nc_def_var_deflate($, %d, %d, %d, %d)", c->op->varid, a[0] & 1, a[1] & 1, a[2]);
    return nc_def_var_deflate(c->ncid, c->op->varid, a[0] & 1, a[1] & 1, a[2]);
}

static int
call_inq_var_deflate(context *c)
{
    int n[3] = {-1, -1, -1};
    say(c, "nc_inq_var_deflate($, %d, &shuffle, &deflate, &level)", c->op->varid);
    int rc = nc_inq_var_deflate(c->ncid, c->op->varid, n, n + 1, n + 2);
    if (rc == NC_NOERR) {
        n[2] = n[1] == 0 ? 0 : n[2];
        out_bytes(c, n, sizeof n);
    }
    return rc;
}

static int
call_def_var_fletcher32(context *c)
{
    say(c, "nc_def_var_fletcher32($, %d, %d)", c->op->varid, c->op->argument[0] & 1);
    return nc_def_var_fletcher32(c->ncid, c->op->varid, c->op->argument[0] & 1);
}

static int
call_inq_var_fletcher32(context *c)
{
    int n = -1;
    say(c, "nc_inq_var_fletcher32($, %d, &n)", c->op->varid);
    int rc = nc_inq_var_fletcher32(c->ncid, c->op->varid, &n);
    if (rc == NC_NOERR)
        out_int(c, n);
    return rc;
}

static int
call_def_var_endian(context *c)
{
    int endian = c->op->argument[0] % 5 - (c->op->argument[0] < 0);
    say(c, "nc_def_var_endian($, %d, %d)", c->op->varid, endian);
    return nc_def_var_endian(c->ncid, c->op->varid, endian);
}

static int
call_inq_var_endian(context *c)
{
    int n = -1;
    say(c, "nc_inq_var_endian($, %d, &n)", c->op->varid);
    int rc = nc_inq_var_endian(c->ncid, c->op->varid, &n);
    if (rc == NC_NOERR)
        out_int(c, n);
    return rc;
}

static int
call_set_var_chunk_cache(context *c)
{
    float preemption = (float) c->op->argument[0] / 8;
    say(c, "nc_set_var_chunk_cache($, %d, 100000, %d, %g)", c->op->varid, c->op->argument[1],
        (double) preemption);
    return nc_set_var_chunk_cache(c->ncid, c->op->varid, 100000, (size_t) (c->op->data + 1),
                                  preemption);
}

static int
call_get_var_chunk_cache(context *c)
{
    size_t n[2] = {0, 0};
    float preemption = 0;
    say(c, "nc_get_var_chunk_cache($, %d, &bytes, &slots, &preemption)", c->op->varid);
    int rc = nc_get_var_chunk_cache(c->ncid, c->op->varid, n, n + 1, &preemption);
    if (rc == NC_NOERR) {
        out_bytes(c, n, sizeof n);
        out_bytes(c, &preemption, sizeof preemption);
    }
    return rc;
}

const kind kinds_settings[] = {
    {"def_var_fill", 6, false, make_setting, call_def_var_fill},
    {"inq_var_fill", 2, false, make_setting, call_inq_var_fill},
    {"def_var_chunking", 0, true, make_setting, call_def_var_chunking},
    {"inq_var_chunking", 2, true, make_setting, call_inq_var_chunking},
    {"def_var_deflate", 0, true, make_setting, call_def_var_deflate},
    {"inq_var_deflate", 1, true, make_setting, call_inq_var_deflate},
    {"def_var_fletcher32", 0, true, make_setting, call_def_var_fletcher32},
    {"inq_var_fletcher32", 1, true, make_setting, call_inq_var_fletcher32},
    {"def_var_endian", 0, true, make_setting, call_def_var_endian},
    {"inq_var_endian", 1, true, make_setting, call_inq_var_endian},
    {"set_var_chunk_cache", 1, true, make_setting, call_set_var_chunk_cache},
    {"get_var_chunk_cache", 0, true, make_setting, call_get_var_chunk_cache},
    {0}};
