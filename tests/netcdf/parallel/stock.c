/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * A model that writes with stock netCDF in parallel: 20 steps of a field whose rows ranks share, in
 * collective calls; 4 steps of another one, independently. A third one has an unlimited dimension
 * and no steps. Knows nothing of ESDM.
 *
 *     nc_stock FILE nc4|cdf5
 */
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 20, ALONE = 4, ROWS = 16, COLUMNS = 500 };

static void
nc(int status)
{
    if (status == NC_NOERR)
        return;
    (void) fprintf(stderr, "%s\n", nc_strerror(status));
    (void) MPI_Abort(MPI_COMM_WORLD, 1);
}

int
main(int argc, char **argv)
{
    static float values[ROWS][COLUMNS];
    int rank;
    int ranks;
    int ncid;
    int dims[3];
    int together;
    int alone;
    int records;
    (void) MPI_Init(&argc, &argv);
    (void) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    (void) MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int format = argc == 3 && strcmp(argv[2], "cdf5") == 0 ? NC_64BIT_DATA : NC_NETCDF4;
    if (argc != 3)
        (void) MPI_Abort(MPI_COMM_WORLD, 2);
    nc(nc_create_par(argv[1], format | NC_CLOBBER, MPI_COMM_WORLD, MPI_INFO_NULL, &ncid));
    nc(nc_def_dim(ncid, "time", STEPS, &dims[0]));
    nc(nc_def_dim(ncid, "lat", (size_t) (ROWS * ranks), &dims[1]));
    nc(nc_def_dim(ncid, "lon", COLUMNS, &dims[2]));
    nc(nc_def_var(ncid, "together", NC_FLOAT, 3, dims, &together));
    nc(nc_def_var(ncid, "alone", NC_FLOAT, 3, dims, &alone));
    nc(nc_def_dim(ncid, "record", NC_UNLIMITED, &dims[0]));
    nc(nc_def_var(ncid, "records", NC_FLOAT, 3, dims, &records));
    nc(nc_enddef(ncid));
    const size_t count[] = {1, ROWS, COLUMNS};
    nc(nc_var_par_access(ncid, together, NC_COLLECTIVE));
    for (size_t step = 0; step < STEPS; step++)
        nc(nc_put_vara_float(ncid, together, (size_t[]){step, (size_t) (rank * ROWS), 0}, count,
                             &values[0][0]));
    nc(nc_var_par_access(ncid, alone, NC_INDEPENDENT));
    for (size_t step = 0; step < ALONE; step++)
        nc(nc_put_vara_float(ncid, alone, (size_t[]){step, (size_t) (rank * ROWS), 0}, count,
                             &values[0][0]));
    nc(nc_close(ncid));
    (void) MPI_Finalize();
    return 0;
}
