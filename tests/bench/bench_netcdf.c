/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The tasks through libnetcdf. FORMAT: contiguous, chunked, deflate, cdf5. For ESDM the same
 * program runs under esdm-run with a path of esdm://; FORMAT is then "plain", or NAME=VALUE for an
 * attribute of the variable that states an accuracy. */

#include <netcdf.h>

#include "bench.h"

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

static void
define_layout(const bench *b, int ncid, int var)
{
    static const size_t one_step[] = {1, LEVELS, LAT, LON};
    int old;
    if (strcmp(b->format, "contiguous") == 0)
        nc(nc_def_var_chunking(ncid, var, NC_CONTIGUOUS, NULL));
    else if (strcmp(b->format, "chunked") == 0 || strcmp(b->format, "deflate") == 0)
        nc(nc_def_var_chunking(ncid, var, NC_CHUNKED, one_step));
    if (strcmp(b->format, "deflate") == 0)
        nc(nc_def_var_deflate(ncid, var, 1, 1, 1));
    const char *value = strchr(b->format, '=');
    if (value != NULL) {
        char name[NC_MAX_NAME + 1];
        snprintf(name, sizeof name, "%.*s", (int) (value - b->format), b->format);
        nc(nc_put_att_text(ncid, var, name, strlen(value + 1), value + 1));
    }
    nc(nc_set_fill(ncid, NC_NOFILL, &old));
}

static void
write_variable(const bench *b)
{
    float *buffer = touched(STEP_ELEMS * sizeof *buffer);
    const size_t count[] = {1, LEVELS, LAT, LON};
    double total = 0;
    int ncid;
    int dims[4];
    int var;
    double t = now();
    nc(nc_create(b->path, create_mode(b), &ncid));
    nc(nc_def_dim(ncid, "time", b->steps, &dims[0]));
    nc(nc_def_dim(ncid, "level", LEVELS, &dims[1]));
    nc(nc_def_dim(ncid, "lat", LAT, &dims[2]));
    nc(nc_def_dim(ncid, "lon", LON, &dims[3]));
    nc(nc_def_var(ncid, "ta", NC_FLOAT, 4, dims, &var));
    define_layout(b, ncid, var);
    nc(nc_enddef(ncid));
    total += now() - t;
    for (size_t step = 0; step < b->steps; step++) {
        fill_step(step, buffer);
        t = now();
        nc(nc_put_vara_float(ncid, var, (const size_t[]){step, 0, 0, 0}, count, buffer));
        total += now() - t;
    }
    t = now();
    nc(nc_close(ncid));
    report(b, total + now() - t);
    free(buffer);
}

static void
read_variable(const bench *b)
{
    float *buffer = touched(b->steps * STEP_ELEMS * sizeof *buffer);
    int ncid;
    int var;
    double t = now();
    nc(nc_open(b->path, NC_NOWRITE, &ncid));
    nc(nc_inq_varid(ncid, "ta", &var));
    nc(nc_get_var_float(ncid, var, buffer));
    nc(nc_close(ncid));
    report(b, now() - t);
    for (size_t step = 0; step < b->steps; step++)
        verify_step(b, step, buffer + step * STEP_ELEMS);
    free(buffer);
}

static void
read_steps(const bench *b)
{
    float *buffer = touched(STEP_ELEMS * sizeof *buffer);
    const size_t count[] = {1, LEVELS, LAT, LON};
    double total = 0;
    int ncid;
    int var;
    double t = now();
    nc(nc_open(b->path, NC_NOWRITE, &ncid));
    nc(nc_inq_varid(ncid, "ta", &var));
    total += now() - t;
    for (size_t step = 0; step < b->steps; step++) {
        t = now();
        nc(nc_get_vara_float(ncid, var, (const size_t[]){step, 0, 0, 0}, count, buffer));
        total += now() - t;
        verify_step(b, step, buffer);
    }
    t = now();
    nc(nc_close(ncid));
    report(b, total + now() - t);
    free(buffer);
}

/* All steps of a point, or of all latitudes at one level and one longitude. */
static void
read_lines(const bench *b, size_t lats)
{
    float *series = touched(b->steps * lats * sizeof *series);
    const size_t count[] = {b->steps, 1, lats, 1};
    double total = 0;
    int ncid;
    int var;
    nc(nc_open(b->path, NC_NOWRITE, &ncid));
    nc(nc_inq_varid(ncid, "ta", &var));
    for (size_t i = 0; i < POINTS; i++) {
        size_t k = point_index(i);
        size_t lat = lats > 1 ? 0 : k / LON % LAT;
        const size_t start[] = {0, k / (LAT * LON), lat, k % LON};
        double t = now();
        nc(nc_get_vara_float(ncid, var, start, count, series));
        total += now() - t;
        k = (start[1] * LAT + lat) * LON + start[3];
        for (size_t at = 0; at < b->steps * lats; at++)
            if (!is_within(series[at], field_value(at / lats, k + at % lats * LON),
                           tolerance_of(b)))
                fail(b->task, "wrong value");
    }
    nc(nc_close(ncid));
    report(b, total / POINTS);
    free(series);
}

static void
read_points(const bench *b)
{
    read_lines(b, 1);
}

static void
read_columns(const bench *b)
{
    read_lines(b, LAT);
}

static void
create_small(const bench *b)
{
    char path[4096];
    double value[10] = {0};
    double t = now();
    for (size_t i = 0; i < b->count; i++) {
        int ncid;
        int dim;
        int var;
        snprintf(path, sizeof path, "%s-%zu.nc", b->path, i);
        value[0] = (double) i;
        nc(nc_create(path, create_mode(b), &ncid));
        nc(nc_def_dim(ncid, "x", 10, &dim));
        nc(nc_def_var(ncid, "v", NC_DOUBLE, 1, &dim, &var));
        nc(nc_put_att_text(ncid, var, "units", 1, "K"));
        nc(nc_enddef(ncid));
        nc(nc_put_var_double(ncid, var, value));
        nc(nc_close(ncid));
    }
    report(b, now() - t);
}

static void
open_small(const bench *b)
{
    char path[4096];
    double t = now();
    for (size_t i = 0; i < b->count; i++) {
        int ncid;
        int var;
        snprintf(path, sizeof path, "%s-%zu.nc", b->path, i);
        nc(nc_open(path, NC_NOWRITE, &ncid));
        nc(nc_inq_varid(ncid, "v", &var));
        nc(nc_close(ncid));
    }
    report(b, now() - t);
}

static void
append_records(const bench *b)
{
    int ncid;
    int dim;
    int var;
    int old;
    double t = now();
    nc(nc_create(b->path, create_mode(b), &ncid));
    nc(nc_def_dim(ncid, "time", NC_UNLIMITED, &dim));
    nc(nc_def_var(ncid, "v", NC_DOUBLE, 1, &dim, &var));
    nc(nc_set_fill(ncid, NC_NOFILL, &old));
    nc(nc_enddef(ncid));
    for (size_t i = 0; i < b->count; i++) {
        double value = (double) i;
        nc(nc_put_var1_double(ncid, var, &i, &value));
    }
    nc(nc_close(ncid));
    report(b, now() - t);
}

static void
read_records(const bench *b)
{
    double *values = touched(b->count * sizeof *values);
    int ncid;
    int var;
    double t = now();
    nc(nc_open(b->path, NC_NOWRITE, &ncid));
    nc(nc_inq_varid(ncid, "v", &var));
    nc(nc_get_var_double(ncid, var, values));
    nc(nc_close(ncid));
    report(b, now() - t);
    for (size_t i = 0; i < b->count; i++)
        if (values[i] != (double) i)
            fail("record", "wrong value");
    free(values);
}

int
main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(const bench *b);
    } tasks[] = {
        {"write", write_variable},  {"read", read_variable},     {"read-steps", read_steps},
        {"point", read_points},     {"create", create_small},    {"open", open_small},
        {"append", append_records}, {"read-back", read_records}, {"column", read_columns}};
    bench b = parse_arguments(argc, argv);
    init_field();
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
        if (strcmp(tasks[i].name, b.task) == 0) {
            tasks[i].run(&b);
            return 0;
        }
    }
    fail(b.task, "no such task");
}
