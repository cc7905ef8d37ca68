/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file
 * Calls that go through memory or the file in an odd order, and many of them; through libnetcdf, as
 * bench_netcdf.c does.
 *
 *     mapped-write   nc_put_varm of a variable whose slowest dimension lies fastest in memory
 *     mapped-read    nc_get_varm of it
 *     strided-read   nc_get_vars of it: every second column and row, and every third of both
 *     strided-write  nc_put_vars of every second column and row, four times for the whole variable
 *     gathered-read  nc_get_var of what strided-write wrote
 *     put-var1       `count` nc_put_var1 calls
 *     get-var1       `count` nc_get_var1 calls
 *     many-create    2,000 variables with 10 attributes each
 *     many-open      opens that and asks for every variable and attribute
 *     parts-write    `count` records of 1 KiB, each a chunk put by a call, none beside the last one
 *     parts-column   the first value of each of them in one call; with open and close
 */

#include <netcdf.h>

#include "bench.h"

enum { STEPS = 60, ROWS = 180, COLUMNS = 360, ELEMS = STEPS * ROWS * COLUMNS };
enum { VARIABLES = 2000, ATTRIBUTES = 10 };
enum { PART = 256, PARTS_APART = 7919 /* a prime, which `count` is no multiple of */ };

static void
nc(int rc)
{
    if (rc != NC_NOERR)
        fail("netCDF", nc_strerror(rc));
}

static int
create_mode(const bench *b)
{
    return NC_CLOBBER | (strcmp(b->format, "cdf5") == 0 ? NC_64BIT_DATA : NC_NETCDF4);
}

static int
create_field(const bench *b, int *ret_var)
{
    int ncid;
    int dims[3];
    int old;
    nc(nc_create(b->path, create_mode(b), &ncid));
    nc(nc_def_dim(ncid, "time", STEPS, &dims[0]));
    nc(nc_def_dim(ncid, "lat", ROWS, &dims[1]));
    nc(nc_def_dim(ncid, "lon", COLUMNS, &dims[2]));
    nc(nc_def_var(ncid, "tas", NC_FLOAT, 3, dims, ret_var));
    nc(nc_set_fill(ncid, NC_NOFILL, &old));
    nc(nc_enddef(ncid));
    return ncid;
}

static int
open_field(const bench *b, int *ret_var)
{
    int ncid;
    nc(nc_open(b->path, NC_NOWRITE, &ncid));
    nc(nc_inq_varid(ncid, "tas", ret_var));
    return ncid;
}

/* Exact in a float. */
static float
value_at(size_t step, size_t row, size_t column)
{
    return (float) ((step * ROWS + row) * COLUMNS + column);
}

static const size_t whole[] = {STEPS, ROWS, COLUMNS};
static const size_t origin[] = {0, 0, 0};
static const ptrdiff_t steps_fastest[] = {1, (ptrdiff_t) COLUMNS *STEPS, STEPS};

static size_t
mapped_index(size_t step, size_t row, size_t column)
{
    return (row * COLUMNS + column) * STEPS + step;
}

static void
mapped_write(const bench *b)
{
    float *buffer = touched(ELEMS * sizeof *buffer);
    for (size_t s = 0; s < STEPS; s++)
        for (size_t r = 0; r < ROWS; r++)
            for (size_t c = 0; c < COLUMNS; c++)
                buffer[mapped_index(s, r, c)] = value_at(s, r, c);
    int var;
    double t = now();
    int ncid = create_field(b, &var);
    nc(nc_put_varm_float(ncid, var, origin, whole, NULL, steps_fastest, buffer));
    nc(nc_close(ncid));
    report(b, now() - t);
    free(buffer);
}

static void
mapped_read(const bench *b)
{
    float *buffer = touched(ELEMS * sizeof *buffer);
    int var;
    double t = now();
    int ncid = open_field(b, &var);
    nc(nc_get_varm_float(ncid, var, origin, whole, NULL, steps_fastest, buffer));
    nc(nc_close(ncid));
    report(b, now() - t);
    for (size_t s = 0; s < STEPS; s++)
        for (size_t r = 0; r < ROWS; r++)
            for (size_t c = 0; c < COLUMNS; c++)
                if (buffer[mapped_index(s, r, c)] != value_at(s, r, c))
                    fail("mapped-read", "wrong value");
    free(buffer);
}

static double
read_every(int ncid, int var, size_t every, float *buffer)
{
    const ptrdiff_t stride[] = {1, (ptrdiff_t) every, (ptrdiff_t) every};
    const size_t count[] = {STEPS, ROWS / every, COLUMNS / every};
    double t = now();
    nc(nc_get_vars_float(ncid, var, origin, count, stride, buffer));
    t = now() - t;
    for (size_t s = 0; s < STEPS; s++)
        for (size_t r = 0; r < count[1]; r++)
            for (size_t c = 0; c < count[2]; c++)
                if (*buffer++ != value_at(s, r * every, c * every))
                    fail("strided-read", "wrong value");
    return t;
}

static void
strided_read(const bench *b)
{
    float *buffer = touched(ELEMS * sizeof *buffer);
    int var;
    double t = now();
    int ncid = open_field(b, &var);
    t = now() - t;
    t += read_every(ncid, var, 2, buffer);
    t += read_every(ncid, var, 3, buffer);
    nc(nc_close(ncid));
    report(b, t);
    free(buffer);
}

static void
strided_write(const bench *b)
{
    static const size_t count[] = {STEPS, ROWS / 2, COLUMNS / 2};
    static const ptrdiff_t stride[] = {1, 2, 2};
    float *buffer = touched(ELEMS / 4 * sizeof *buffer);
    int var;
    double t = now();
    int ncid = create_field(b, &var);
    double total = now() - t;
    for (size_t quarter = 0; quarter < 4; quarter++) {
        const size_t start[] = {0, quarter / 2, quarter % 2};
        float *p = buffer;
        for (size_t s = 0; s < STEPS; s++)
            for (size_t r = 0; r < count[1]; r++)
                for (size_t c = 0; c < count[2]; c++)
                    *p++ = value_at(s, start[1] + r * 2, start[2] + c * 2);
        t = now();
        nc(nc_put_vars_float(ncid, var, start, count, stride, buffer));
        total += now() - t;
    }
    t = now();
    nc(nc_close(ncid));
    report(b, total + now() - t);
    free(buffer);
}

static void
gathered_read(const bench *b)
{
    float *buffer = touched(ELEMS * sizeof *buffer);
    int var;
    double t = now();
    int ncid = open_field(b, &var);
    nc(nc_get_var_float(ncid, var, buffer));
    nc(nc_close(ncid));
    report(b, now() - t);
    for (size_t i = 0; i < ELEMS; i++)
        if (buffer[i] != (float) i)
            fail("gathered-read", "wrong value");
    free(buffer);
}

static void
put_var1(const bench *b)
{
    int var;
    double t = now();
    int ncid = create_field(b, &var);
    for (size_t i = 0; i < b->count; i++) {
        const size_t index[] = {i / (ROWS * COLUMNS), i / COLUMNS % ROWS, i % COLUMNS};
        float value = (float) i;
        nc(nc_put_var1_float(ncid, var, index, &value));
    }
    nc(nc_close(ncid));
    report(b, now() - t);
}

static void
get_var1(const bench *b)
{
    int var;
    double t = now();
    int ncid = open_field(b, &var);
    for (size_t i = 0; i < b->count; i++) {
        const size_t index[] = {i / (ROWS * COLUMNS), i / COLUMNS % ROWS, i % COLUMNS};
        float value;
        nc(nc_get_var1_float(ncid, var, index, &value));
        if (value != (float) i)
            fail("get-var1", "wrong value");
    }
    nc(nc_close(ncid));
    report(b, now() - t);
}

static void
many_create(const bench *b)
{
    char name[NC_MAX_NAME + 1];
    int ncid;
    int dim;
    double t = now();
    nc(nc_create(b->path, create_mode(b), &ncid));
    nc(nc_def_dim(ncid, "x", 10, &dim));
    for (int v = 0; v < VARIABLES; v++) {
        int var;
        snprintf(name, sizeof name, "variable_%d", v);
        nc(nc_def_var(ncid, name, NC_FLOAT, 1, &dim, &var));
        for (int a = 0; a < ATTRIBUTES; a++) {
            snprintf(name, sizeof name, "attribute_%d", a);
            nc(nc_put_att_text(ncid, var, name, 12, "some content"));
        }
    }
    nc(nc_close(ncid));
    report(b, now() - t);
}

static void
many_open(const bench *b)
{
    char name[NC_MAX_NAME + 1];
    char value[64];
    int ncid;
    int count;
    double t = now();
    nc(nc_open(b->path, NC_NOWRITE, &ncid));
    nc(nc_inq_nvars(ncid, &count));
    if (count != VARIABLES)
        fail("many-open", "variables are missing");
    for (int v = 0; v < count; v++) {
        int attributes;
        nc(nc_inq_var(ncid, v, name, NULL, NULL, NULL, &attributes));
        for (int a = 0; a < attributes; a++) {
            nc(nc_inq_attname(ncid, v, a, name));
            nc(nc_get_att_text(ncid, v, name, value));
        }
    }
    nc(nc_close(ncid));
    report(b, now() - t);
}

static void
parts_write(const bench *b)
{
    static const size_t chunk[] = {1, PART};
    static const size_t count[] = {1, PART};
    float buffer[PART];
    int ncid;
    int dims[2];
    int var;
    int old;
    double t = now();
    nc(nc_create(b->path, create_mode(b), &ncid));
    nc(nc_def_dim(ncid, "time", b->count, &dims[0]));
    nc(nc_def_dim(ncid, "cell", PART, &dims[1]));
    nc(nc_def_var(ncid, "tas", NC_FLOAT, 2, dims, &var));
    if (strcmp(b->format, "cdf5") != 0)
        nc(nc_def_var_chunking(ncid, var, NC_CHUNKED, chunk));
    nc(nc_set_fill(ncid, NC_NOFILL, &old));
    nc(nc_enddef(ncid));
    for (size_t i = 0; i < b->count; i++) {
        const size_t start[] = {i * PARTS_APART % b->count, 0};
        for (size_t k = 0; k < PART; k++)
            buffer[k] = (float) (start[0] + k);
        nc(nc_put_vara_float(ncid, var, start, count, buffer));
    }
    nc(nc_close(ncid));
    report(b, now() - t);
}

static void
parts_column(const bench *b)
{
    const size_t count[] = {b->count, 1};
    float *buffer = touched(b->count * sizeof *buffer);
    int var;
    double t = now();
    int ncid = open_field(b, &var);
    nc(nc_get_vara_float(ncid, var, origin, count, buffer));
    nc(nc_close(ncid));
    report(b, now() - t);
    for (size_t i = 0; i < b->count; i++)
        if (buffer[i] != (float) i)
            fail("parts-column", "wrong value");
    free(buffer);
}

int
main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(const bench *b);
    } tasks[] = {{"mapped-write", mapped_write},   {"mapped-read", mapped_read},
                 {"strided-read", strided_read},   {"strided-write", strided_write},
                 {"gathered-read", gathered_read}, {"put-var1", put_var1},
                 {"get-var1", get_var1},           {"many-create", many_create},
                 {"many-open", many_open},         {"parts-write", parts_write},
                 {"parts-column", parts_column}};
    bench b = parse_arguments(argc, argv);
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
        if (strcmp(tasks[i].name, b.task) == 0) {
            tasks[i].run(&b);
            return 0;
        }
    }
    fail(b.task, "no such task");
}
