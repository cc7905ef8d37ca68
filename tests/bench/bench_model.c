/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * A program that writes or reads as models do, through libnetcdf: monitor.py runs it with and
 * without observers.
 *
 *     bench_model write PATH [STEPS]    a record of each of 20 variables for each step
 *     bench_model read PATH [STEPS]     the same again, and their mean
 *
 * A record has 96 x 192 values. Prints nothing; exit status 0: all went well.
 */

#include <math.h>
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VARIABLES = 20, LAT = 96, LON = 192, STEPS = 120 };

static float field[LAT * LON];

static void
nc(int rc)
{
    if (rc == NC_NOERR)
        return;
    fprintf(stderr, "%s\n", nc_strerror(rc));
    exit(1);
}

/* Smooth, and other at each step. */
static void
step_field(int step, int variable)
{
    float phase = (float) step * 0.05f + (float) variable;
    for (int i = 0; i < LAT; i++) {
        float row = sinf(phase + (float) i * 0.03f);
        for (int j = 0; j < LON; j++)
            field[i * LON + j] =
                280.0f + 20.0f * row + (float) ((i * 7 + j * 3 + step) % 11) * 0.01f;
    }
}

static void
write_all(const char *path, int steps)
{
    int ncid, dims[3], vars[VARIABLES];
    const size_t count[] = {1, LAT, LON};
    nc(nc_create(path, NC_NETCDF4 | NC_CLOBBER, &ncid));
    nc(nc_def_dim(ncid, "time", NC_UNLIMITED, &dims[0]));
    nc(nc_def_dim(ncid, "lat", LAT, &dims[1]));
    nc(nc_def_dim(ncid, "lon", LON, &dims[2]));
    for (int v = 0; v < VARIABLES; v++) {
        char name[16];
        snprintf(name, sizeof name, "v%d", v);
        nc(nc_def_var(ncid, name, NC_FLOAT, 3, dims, &vars[v]));
    }
    nc(nc_enddef(ncid));
    for (int t = 0; t < steps; t++) {
        for (int v = 0; v < VARIABLES; v++) {
            const size_t start[] = {(size_t) t, 0, 0};
            step_field(t, v);
            nc(nc_put_vara_float(ncid, vars[v], start, count, field));
        }
    }
    nc(nc_close(ncid));
}

static void
read_all(const char *path, int steps)
{
    int ncid;
    double sum = 0;
    const size_t count[] = {1, LAT, LON};
    nc(nc_open(path, NC_NOWRITE, &ncid));
    for (int t = 0; t < steps; t++) {
        for (int v = 0; v < VARIABLES; v++) {
            const size_t start[] = {(size_t) t, 0, 0};
            nc(nc_get_vara_float(ncid, v, start, count, field));
            for (int i = 0; i < LAT * LON; i++)
                sum += (double) field[i];
        }
    }
    nc(nc_close(ncid));
    double mean = sum / ((double) steps * VARIABLES * LAT * LON);
    if (!(mean > 250 && mean < 310)) {
        fprintf(stderr, "the mean is %g\n", mean);
        exit(1);
    }
}

int
main(int argc, char **argv)
{
    int steps = argc > 3 ? atoi(argv[3]) : STEPS;
    if (argc < 3 || steps < 1)
        return 2;
    if (strcmp(argv[1], "write") == 0)
        write_all(argv[2], steps);
    else
        read_all(argv[2], steps);
    return 0;
}
