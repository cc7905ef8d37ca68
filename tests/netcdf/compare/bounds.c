/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Every kind of access at, before and beyond the ends of dimensions: return codes alone. */

#include "compare.h"

#include <stdint.h>

enum { RECORDS = 3, LENGTH = 4 };

/* A record variable of 3 records and a fixed one, both 4 wide. */
static int
make(const world *w)
{
    int ncid = create(w);
    int d[2] = {-1, -1};
    int values[RECORDS * LENGTH] = {0};
    CALL(nc_def_dim(ncid, "t", NC_UNLIMITED, &d[0]));
    CALL(nc_def_dim(ncid, "x", LENGTH, &d[1]));
    CALL(nc_def_var(ncid, "r", NC_INT, 2, d, NULL));
    CALL(nc_def_var(ncid, "f", NC_INT, 2, (int[]){d[1], d[1]}, NULL));
    CALL(nc_enddef(ncid));
    CALL(nc_put_vara_int(ncid, 0, (size_t[]){0, 0}, (size_t[]){RECORDS, LENGTH}, values));
    return ncid;
}

static int
get(int ncid, int v, int kind, const size_t *start, const size_t *count, const ptrdiff_t *stride)
{
    static int values[100];
    switch (kind) {
    case 0:
        return nc_get_vara_int(ncid, v, start, count, values);
    case 1:
        return nc_get_vars_int(ncid, v, start, count, stride, values);
    case 2:
        return nc_get_varm_int(ncid, v, start, count, stride, (ptrdiff_t[]){9, 1}, values);
    default:
        return nc_get_var1_int(ncid, v, start, values);
    }
}

static int
put(int ncid, int v, int kind, const size_t *start, const size_t *count, const ptrdiff_t *stride)
{
    static const int values[100];
    switch (kind) {
    case 0:
        return nc_put_vara_int(ncid, v, start, count, values);
    case 1:
        return nc_put_vars_int(ncid, v, start, count, stride, values);
    case 2:
        return nc_put_varm_int(ncid, v, start, count, stride, (ptrdiff_t[]){9, 1}, values);
    default:
        return nc_put_var1_int(ncid, v, start, values);
    }
}

static void
note_records(int ncid)
{
    size_t records = 99;
    (void) nc_inq_dimlen(ncid, 0, &records);
    note("records %zu", records);
}

/* All selections of one axis, with the other one at rest. */
static void
walk(int ncid, int axis, bool writing)
{
    static const ptrdiff_t strides[] = {1, 2, 3, 0, -1};
    for (int v = 0; v < 2; v++) {
        for (int kind = 0; kind < 4; kind++) {
            for (size_t s = 0; s <= LENGTH + 1; s++) {
                for (size_t c = 0; c <= LENGTH + 1; c++) {
                    for (size_t i = 0; i < sizeof strides / sizeof strides[0]; i++) {
                        size_t start[2] = {0, 0};
                        size_t count[2] = {1, 1};
                        ptrdiff_t stride[2] = {1, 1};
                        start[axis] = s;
                        count[axis] = c;
                        stride[axis] = strides[i];
                        int rc = writing ? put(ncid, v, kind, start, count, stride)
                                         : get(ncid, v, kind, start, count, stride);
                        note("%s var %d kind %d axis %d start %zu count %zu stride %td -> %d",
                             writing ? "put" : "get", v, kind, axis, s, c, strides[i], rc);
                    }
                }
            }
        }
    }
}

static void
reading(const world *w)
{
    int ncid = make(w);
    walk(ncid, 0, false);
    walk(ncid, 1, false);
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    walk(ncid, 0, false);
    walk(ncid, 1, false);
    CALL(nc_close(ncid));
}

static void
writing(const world *w)
{
    int ncid = make(w);
    walk(ncid, 1, true);
    note_records(ncid);
    walk(ncid, 0, true);
    note_records(ncid);
    CALL(nc_close(ncid));
}

/* Both axes at once, so that the order of the checks shows. */
static void
order(const world *w)
{
    static const size_t starts[] = {0, 2, 3, 4, 5};
    static const size_t counts[] = {0, 1, 2, 5};
    int ncid = make(w);
    CALL(nc_close(ncid));
    for (int mode = 0; mode < 2; mode++) {
        ncid = reopen(w, mode == 0 ? NC_NOWRITE : NC_WRITE);
        for (unsigned i = 0; i < 2 * 4 * 5 * 5 * 4 * 4 * 3 * 3; i++) {
            unsigned n = i;
            int v = (int) (n % 2);
            n /= 2;
            int kind = (int) (n % 4);
            n /= 4;
            size_t start[2] = {starts[n % 5], starts[n / 5 % 5]};
            n /= 25;
            size_t count[2] = {counts[n % 4], counts[n / 4 % 4]};
            n /= 16;
            ptrdiff_t stride[2] = {(ptrdiff_t) (n % 3), (ptrdiff_t) (n / 3)};
            note("get var %d kind %d start %zu %zu count %zu %zu stride %td %td -> %d", v, kind,
                 start[0], start[1], count[0], count[1], stride[0], stride[1],
                 get(ncid, v, kind, start, count, stride));
        }
        CALL(nc_close(ncid));
    }
}

/* In define mode, and without the right to write. What netCDF-4 says then comes from HDF5. */
static void
refused(const world *w)
{
    int ncid = make(w);
    CALL(nc_redef(ncid));
    walk(ncid, 1, false);
    if (w->format != NC_FORMAT_NETCDF4)
        walk(ncid, 1, true);
    CALL(nc_get_vara_int(ncid, 9, (size_t[]){0, 0}, (size_t[]){1, 1}, NULL));
    CALL(nc_get_vars_int(ncid, 9, (size_t[]){0, 0}, (size_t[]){1, 1}, (ptrdiff_t[]){1, 1}, NULL));
    CALL(nc_put_vara_text(ncid, 0, (size_t[]){0, 0}, (size_t[]){1, 1}, "a"));
    CALL(nc_put_vars_text(ncid, 0, (size_t[]){0, 0}, (size_t[]){1, 1}, (ptrdiff_t[]){1, 1}, "a"));
    CALL(nc_close(ncid));
    if (w->format == NC_FORMAT_NETCDF4 || w->format == NC_FORMAT_NETCDF4_CLASSIC)
        return;
    ncid = reopen(w, NC_NOWRITE);
    walk(ncid, 0, true);
    walk(ncid, 1, true);
    CALL(nc_put_vara_int(ncid, 9, (size_t[]){0, 0}, (size_t[]){1, 1}, NULL));
    CALL(nc_put_vars_int(ncid, 9, (size_t[]){0, 0}, (size_t[]){1, 1}, (ptrdiff_t[]){1, 1}, NULL));
    CALL(nc_close(ncid));
}

static void
huge(const world *w)
{
    int ncid = make(w);
    static const size_t large[] = {UINT32_MAX, (size_t) UINT32_MAX + 1, INT64_MAX, (size_t) 1 << 63,
                                   SIZE_MAX};
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
        for (int v = 0; v < 2; v++) {
            for (int axis = 0; axis < 2; axis++) {
                for (int kind = 0; kind < 4; kind++) {
                    size_t start[2] = {0, 0};
                    size_t count[2] = {1, 1};
                    ptrdiff_t stride[2] = {1, 1};
                    start[axis] = large[i];
                    note("%zu %d %d %d: start get -> %d", i, v, axis, kind,
                         get(ncid, v, kind, start, count, stride));
                    if (v == 1 || axis == 1)
                        note("put -> %d", put(ncid, v, kind, start, count, stride));
                    start[axis] = 0;
                    if (kind == 3 || large[i] > INT64_MAX)
                        continue;
                    count[axis] = large[i];
                    note("count get -> %d", get(ncid, v, kind, start, count, stride));
                    if (v == 1 || axis == 1)
                        note("put -> %d", put(ncid, v, kind, start, count, stride));
                    count[axis] = 2;
                    stride[axis] = (ptrdiff_t) large[i];
                    note("stride get -> %d", get(ncid, v, kind, start, count, stride));
                    if (v == 1 || axis == 1)
                        note("put -> %d", put(ncid, v, kind, start, count, stride));
                }
            }
        }
    }
    note_records(ncid);
    CALL(nc_close(ncid));
}

const scenario scenarios_bounds[] = {
    {"bounds", "reading", IN_ALL, reading}, {"bounds", "writing", IN_ALL, writing},
    {"bounds", "order", IN_ALL, order},     {"bounds", "refused", IN_ALL, refused},
    {"bounds", "huge", IN_ALL, huge},       {0}};
