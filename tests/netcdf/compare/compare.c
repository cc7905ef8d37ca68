/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What a file says about itself. */

#include "compare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const compared_format compared_formats[FORMAT_COUNT] = {
    {IN_CLASSIC, 0, NC_FORMAT_CLASSIC, "classic"},
    {IN_CDF2, NC_64BIT_OFFSET, NC_FORMAT_64BIT_OFFSET, "cdf2"},
    {IN_CDF5, NC_64BIT_DATA, NC_FORMAT_64BIT_DATA, "cdf5"},
    {IN_NC4, NC_NETCDF4, NC_FORMAT_NETCDF4, "nc4"},
    {IN_NC4C, NC_NETCDF4 | NC_CLASSIC_MODEL, NC_FORMAT_NETCDF4_CLASSIC, "nc4classic"},
};

static bool with_data = true;
static bool with_att_order = true;

void
note_parts(bool data, bool att_order)
{
    with_data = data;
    with_att_order = att_order;
}

/* What is within them. */
static void
free_values(int ncid, nc_type type, void *values, size_t count)
{
    if (type >= NC_STRING)
        (void) nc_reclaim_data(ncid, type, values, count);
}

bool
is_unlimited(int ncid, int dimid)
{
    int ids[NC_MAX_DIMS];
    int count = 0;
    for (int group = ncid; nc_inq_unlimdims(group, &count, ids) == NC_NOERR;) {
        for (int i = 0; i < count; i++)
            if (ids[i] == dimid)
                return true;
        if (nc_inq_grp_parent(group, &group) != NC_NOERR)
            break;
    }
    return false;
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

typedef char att_name[NC_MAX_NAME + 1];

/* The names in their order, or sorted; owned by the caller. */
static att_name *
list_atts(int ncid, int varid, int count)
{
    att_name *names = calloc((size_t) count + 1, sizeof *names);
    assert_non_null(names);
    for (int i = 0; i < count; i++)
        CALL(nc_inq_attname(ncid, varid, i, names[i]));
    if (!with_att_order)
        qsort(names, (size_t) count, sizeof *names, compare_names);
    return names;
}

static void
note_atts(int ncid, int varid, int count)
{
    att_name *names = list_atts(ncid, varid, count);
    for (int i = 0; i < count; i++) {
        const char *name = names[i];
        nc_type type = NC_NAT;
        size_t length = 0;
        int id = -1;
        CALL(nc_inq_att(ncid, varid, name, &type, &length));
        CALL(nc_inq_attid(ncid, varid, name, &id));
        note("att %d '%s' type %d length %zu id %d", varid, name, type, length,
             with_att_order ? id : -1);
        void *values = calloc(length + 1, sizeof(double) + value_bytes(ncid, type));
        assert_non_null(values);
        if (CALL(nc_get_att(ncid, varid, name, values)) == NC_NOERR) {
            values_note(ncid, "value", type, values, length);
            free_values(ncid, type, values, length);
        }
        free(values);
    }
    free(names);
}

enum { DATA_MAX = 100000 };

/* netCDF-4 mixes data and fill values when it reads past what was written of a variable, unless its
 * one unlimited dimension is the first. Element by element it is right. */
bool
reads_past_extents(int ncid, int rank, const int *dimids)
{
    for (int i = 1; i < rank; i++)
        if (is_unlimited(ncid, dimids[i]))
            return left_out("netcdf4-past-the-extent");
    return false;
}

static void
note_elements(int ncid, int varid, nc_type type, int rank, const int *dimids)
{
    size_t index[NC_MAX_VAR_DIMS] = {0};
    size_t lengths[NC_MAX_VAR_DIMS] = {0};
    for (int i = 0; i < rank; i++) {
        (void) nc_inq_dimlen(ncid, dimids[i], &lengths[i]);
        if (lengths[i] == 0)
            return;
    }
    for (int axis = rank; axis >= 0;) {
        void *value = calloc(1, sizeof(double) + value_bytes(ncid, type));
        assert_non_null(value);
        if (CALL(nc_get_var1(ncid, varid, index, value)) == NC_NOERR) {
            values_note(ncid, "element", type, value, 1);
            free_values(ncid, type, value, 1);
        }
        free(value);
        for (axis = rank - 1; axis >= 0 && ++index[axis] == lengths[axis]; axis--)
            index[axis] = 0;
    }
}

static void
note_data(int ncid, int varid, nc_type type, int rank, const int *dimids)
{
    size_t count = 1;
    for (int i = 0; i < rank; i++) {
        size_t length = 0;
        CALL(nc_inq_dimlen(ncid, dimids[i], &length));
        if (length >= DATA_MAX || (count *= length) >= DATA_MAX)
            return; /* too much to compare */
    }
    if (reads_past_extents(ncid, rank, dimids)) {
        if (type < NC_STRING) /* others are an HDF5 error then */
            note_elements(ncid, varid, type, rank, dimids);
        return;
    }
    void *values = calloc(count + 1, sizeof(double) + value_bytes(ncid, type));
    assert_non_null(values);
    if (CALL(nc_get_var(ncid, varid, values)) == NC_NOERR) {
        values_note(ncid, "data", type, values, count);
        free_values(ncid, type, values, count);
    }
    free(values);
}

static void
note_var(int ncid, int varid)
{
    char name[NC_MAX_NAME + 1] = "?";
    nc_type type = NC_NAT;
    int rank = 0;
    int dimids[NC_MAX_VAR_DIMS] = {0};
    int atts = 0;
    CALL(nc_inq_var(ncid, varid, name, &type, &rank, dimids, &atts));
    note("var %d '%s' type %d rank %d atts %d", varid, name, type, rank, atts);
    note_ints("dimid", dimids, (size_t) rank);
    int nofill = -1;
    double fill[64] = {0}; /* netCDF-3 writes all values of the attribute */
    int rc = CALL(nc_inq_var_fill(ncid, varid, &nofill, fill));
    note("nofill %d", nofill != 0);
    if (rc == NC_NOERR && !nofill) {
        values_note(ncid, "fill", type, fill, 1);
        free_values(ncid, type, fill, 1);
    }
    int kind = -1;
    size_t chunks[NC_MAX_VAR_DIMS] = {0};
    CALL(nc_inq_var_chunking(ncid, varid, &kind, chunks));
    note("storage %d", kind);
    if (kind == NC_CHUNKED)
        note_sizes("chunk", chunks, (size_t) rank);
    int shuffle = -1;
    int deflate = -1;
    int level = -1;
    CALL(nc_inq_var_deflate(ncid, varid, &shuffle, &deflate, &level));
    note("shuffle %d deflate %d level %d", shuffle, deflate, deflate > 0 ? level : -1);
    int fletcher32 = -1;
    CALL(nc_inq_var_fletcher32(ncid, varid, &fletcher32));
    int endian = -1;
    CALL(nc_inq_var_endian(ncid, varid, &endian));
    note("fletcher32 %d endian %d", fletcher32, endian);
    note_atts(ncid, varid, atts);
    if (!nofill && with_data) /* else what nobody wrote has no defined value */
        note_data(ncid, varid, type, rank, dimids);
}

static int
compare_ints(const void *a, const void *b)
{
    return *(const int *) a - *(const int *) b;
}

static void
note_group(int ncid)
{
    char name[NC_MAX_NAME + 1] = "?";
    CALL(nc_inq_grpname(ncid, name));
    int dims = -1;
    int vars = -1;
    int atts = -1;
    int unlimited = -2;
    CALL(nc_inq(ncid, &dims, &vars, &atts, &unlimited));
    int ids[100];
    int several = 0;
    CALL(nc_inq_unlimdims(ncid, &several, ids));
    /* Their order in a netCDF-4 file that was opened again is HDF5's. */
    if (several > 1 && left_out("netcdf4-order-of-unlimited")) {
        qsort(ids, (size_t) several, sizeof ids[0], compare_ints);
        unlimited = ids[0];
    }
    note("group '%s' dims %d vars %d atts %d unlimited %d", name, dims, vars, atts, unlimited);
    note_ints("unlimited", ids, (size_t) several);
    int dimids[100];
    CALL(nc_inq_dimids(ncid, &dims, dimids, 0));
    for (int i = 0; i < dims; i++) {
        size_t length = 0;
        CALL(nc_inq_dim(ncid, dimids[i], name, &length));
        note("dim %d '%s' length %zu", dimids[i], name, length);
    }
    int count = 0;
    note_atts(ncid, NC_GLOBAL, atts);
    for (int v = 0; v < vars; v++)
        note_var(ncid, v);
    int groups[100];
    CALL(nc_inq_grps(ncid, &count, groups));
    note("%d groups", count);
    for (int i = 0; i < count; i++)
        note_group(groups[i]);
}

void
note_file(int ncid)
{
    int format = 0;
    CALL(nc_inq_format(ncid, &format));
    note("format %d", format);
    note_group(ncid);
}

int
create(const world *w)
{
    int ncid = -1;
    assert_int_equal(CALL(nc_create(w->path, w->mode, &ncid)), NC_NOERR);
    return ncid;
}

int
reopen(const world *w, int mode)
{
    int ncid = -1;
    assert_int_equal(CALL(nc_open(w->path, mode, &ncid)), NC_NOERR);
    return ncid;
}
