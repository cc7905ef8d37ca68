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
call_def_var_szip(context *c)
{
    int mask = c->op->argument[0] % 2 == 0 ? 32 : 4;
    say(c, "nc_def_var_szip($, %d, %d, %d)", c->op->varid, mask, 2 * c->op->argument[1]);
    return nc_def_var_szip(c->ncid, c->op->varid, mask, 2 * c->op->argument[1]);
}

static int
call_def_var_filter(context *c)
{
    static const unsigned ids[] = {1, 2, 3, 4, 307, 32015};
    unsigned id = ids[(unsigned) c->op->argument[0] % 6];
    unsigned parameter = (unsigned) c->op->argument[1];
    say(c, "nc_def_var_filter($, %d, %u, 1, {%u})", c->op->varid, id, parameter);
    return nc_def_var_filter(c->ncid, c->op->varid, id, 1, &parameter);
}

static int
call_inq_var_filters(context *c)
{
    size_t count = 0;
    unsigned ids[20] = {0};
    unsigned parameters[40] = {0};
    say(c, "nc_inq_var_filter_ids($, %d, &count, ids)", c->op->varid);
    int rc = nc_inq_var_filter_ids(c->ncid, c->op->varid, &count, ids);
    if (rc != NC_NOERR)
        return rc;
    out_int(c, (long long) count);
    out_bytes(c, ids, sizeof ids);
    for (size_t i = 0; i < count && i < 20; i++) {
        size_t length = 0;
        out_int(c, nc_inq_var_filter_info(c->ncid, c->op->varid, ids[i], &length, parameters));
        out_bytes(c, parameters, length * sizeof parameters[0]);
    }
    return rc;
}

static int
call_def_var_quantize(context *c)
{
    const int *a = c->op->argument;
    if (c->side == STOCK && c->state->format == NC_FORMAT_NETCDF4_CLASSIC &&
        left_out("netcdf4-quantized-classic-model"))
        return skip(c);
    say(c, "nc_def_var_quantize($, %d, %d, %d)", c->op->varid, a[0] % 5, a[1]);
    return nc_def_var_quantize(c->ncid, c->op->varid, a[0] % 5, a[1]);
}

static int
call_inq_var_quantize(context *c)
{
    int n[2] = {-1, -1};
    say(c, "nc_inq_var_quantize($, %d, &mode, &digits)", c->op->varid);
    int rc = nc_inq_var_quantize(c->ncid, c->op->varid, n, n + 1);
    if (rc == NC_NOERR)
        out_bytes(c, n, sizeof n);
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

/* As its first call for a variable netCDF-4 would tell, and set, something else. */
static void
look_at_var(const context *c)
{
    if (!is_netcdf3(c->state) && left_out("netcdf4-settings-unseen"))
        (void) nc_inq_var_endian(c->ncid, c->op->varid, NULL);
}

static int
call_set_var_chunk_cache(context *c)
{
    float preemption = (float) c->op->argument[0] / 8;
    look_at_var(c);
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
    look_at_var(c);
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
    {"def_var_chunking", 4, true, make_setting, call_def_var_chunking},
    {"inq_var_chunking", 2, true, make_setting, call_inq_var_chunking},
    {"def_var_deflate", 3, true, make_setting, call_def_var_deflate},
    {"inq_var_deflate", 1, true, make_setting, call_inq_var_deflate},
    {"def_var_szip", 1, true, make_setting, call_def_var_szip},
    {"def_var_filter", 2, true, make_setting, call_def_var_filter},
    {"inq_var_filters", 2, true, make_setting, call_inq_var_filters},
    {"def_var_quantize", 2, true, make_setting, call_def_var_quantize},
    {"inq_var_quantize", 1, true, make_setting, call_inq_var_quantize},
    {"def_var_fletcher32", 2, true, make_setting, call_def_var_fletcher32},
    {"inq_var_fletcher32", 1, true, make_setting, call_inq_var_fletcher32},
    {"def_var_endian", 2, true, make_setting, call_def_var_endian},
    {"inq_var_endian", 1, true, make_setting, call_inq_var_endian},
    {"set_var_chunk_cache", 1, true, make_setting, call_set_var_chunk_cache},
    {"get_var_chunk_cache", 1, true, make_setting, call_get_var_chunk_cache},
    {0}};
