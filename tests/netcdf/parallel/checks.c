/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "checks.h"

#include <netcdf.h>
#include <netcdf_par.h>
#include <stdio.h>

int rank;
int size;

void
checks_start(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

void
check_holds(bool holds, const char *text, const char *file, int line)
{
    if (holds)
        return;
    fprintf(stderr, "rank %d: %s:%d: %s does not hold\n", rank, file, line, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

void
check_gives(int rc, int code, const char *text, const char *file, int line)
{
    if (rc == code)
        return;
    fprintf(stderr, "rank %d: %s:%d: %s gives %d (%s), not %d\n", rank, file, line, text, rc,
            nc_strerror(rc), code);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

int
create(const char *path, int mode)
{
    int ncid = -1;
    OK(nc_create_par(path, mode, MPI_COMM_WORLD, MPI_INFO_NULL, &ncid));
    return ncid;
}

int
create_steps(const char *path, size_t rows, size_t columns, int *ret_var)
{
    int d[3];
    int ncid = create(path, NC_NETCDF4);
    OK(nc_def_dim(ncid, "t", NC_UNLIMITED, &d[0]));
    OK(nc_def_dim(ncid, "y", rows * (size_t) size, &d[1]));
    OK(nc_def_dim(ncid, "x", columns, &d[2]));
    OK(nc_def_var(ncid, "v", NC_INT, 3, d, ret_var));
    OK(nc_enddef(ncid));
    OK(nc_var_par_access(ncid, *ret_var, NC_COLLECTIVE));
    return ncid;
}
