/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Writes like a model that makes a small classic file for each day, and computes in between.
 *
 *     bench_days PREFIX COUNT TENTHS
 *
 * makes COUNT files PREFIX00000.nc … of 11 KiB, and computes for about TENTHS tenths of a
 * millisecond before each.
 */
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAT = 36, LON = 72 };

static volatile double computed;

static void
nc(int status)
{
    if (status == NC_NOERR)
        return;
    fprintf(stderr, "bench_days: %s\n", nc_strerror(status));
    exit(1);
}

/* About 0.1 ms for each tenth on a processor of 2023. */
static void
compute(long tenths, int day)
{
    double sum = day;
    for (long i = 0; i < tenths * 60000; i++)
        sum = sum * 0.999999 + 1e-3;
    computed = sum;
}

static void
put_text(int ncid, int var, const char *name, const char *text)
{
    nc(nc_put_att_text(ncid, var, name, strlen(text), text));
}

static int
define(int ncid, const char *name, nc_type type, int rank, const int *dims, const char *units)
{
    int var;
    nc(nc_def_var(ncid, name, type, rank, dims, &var));
    put_text(ncid, var, "units", units);
    return var;
}

static void
write_day(const char *path, int day)
{
    static float field[LAT][LON];
    static double lat[LAT], lon[LON];
    static const size_t first[3] = {0}, whole[] = {1, LAT, LON};
    double time = day;
    int ncid, dims[3];
    for (unsigned i = 0; i < LAT * LON; i++) /* digits that no codec finds a pattern in */
        field[i / LON][i % LON] =
            280 + 1e-6f * (float) ((i * 2654435761u + (unsigned) day * 40503u) >> 8);
    for (int i = 0; i < LAT; i++)
        lat[i] = -90 + 180.0 * i / LAT;
    for (int i = 0; i < LON; i++)
        lon[i] = 360.0 * i / LON;
    nc(nc_create(path, NC_CLOBBER, &ncid));
    nc(nc_def_dim(ncid, "time", NC_UNLIMITED, &dims[0]));
    nc(nc_def_dim(ncid, "lat", LAT, &dims[1]));
    nc(nc_def_dim(ncid, "lon", LON, &dims[2]));
    int times = define(ncid, "time", NC_DOUBLE, 1, &dims[0], "days since 2000-01-01");
    int lats = define(ncid, "lat", NC_DOUBLE, 1, &dims[1], "degrees_north");
    int lons = define(ncid, "lon", NC_DOUBLE, 1, &dims[2], "degrees_east");
    int tas = define(ncid, "tas", NC_FLOAT, 3, dims, "K");
    put_text(ncid, times, "standard_name", "time");
    put_text(ncid, lats, "standard_name", "latitude");
    put_text(ncid, lons, "standard_name", "longitude");
    put_text(ncid, tas, "long_name", "air temperature");
    put_text(ncid, NC_GLOBAL, "title", "a small file");
    put_text(ncid, NC_GLOBAL, "Conventions", "CF-1.8");
    nc(nc_enddef(ncid));
    nc(nc_put_var_double(ncid, lats, lat));
    nc(nc_put_var_double(ncid, lons, lon));
    nc(nc_put_vara_double(ncid, times, first, whole, &time));
    nc(nc_put_vara_float(ncid, tas, first, whole, &field[0][0]));
    nc(nc_close(ncid));
}

int
main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: bench_days PREFIX COUNT TENTHS\n");
        return 2;
    }
    for (int day = 0; day < atoi(argv[2]); day++) {
        char path[4096];
        (void) snprintf(path, sizeof path, "%s%05d.nc", argv[1], day);
        compute(atol(argv[3]), day);
        write_day(path, day);
    }
    return 0;
}
