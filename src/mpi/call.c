/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* For those who load this library at run time and know no MPI types: the NetCDF plug-in. */
#include <stdlib.h>
#include <string.h>

#include "esdm/mpi.h"

/* How the communicator is given: as MPI_Comm, as Fortran's INTEGER, or in libnetcdf's structure. */
enum { HANDLE = 0, FORTRAN = 1, IN_STRUCTURE = 2 };

ESDM_API esdm_status esdm_mpi_comm_of_call(int kind, intptr_t value, esdm_comm **ret_comm,
                                           esdm_error *err);
ESDM_API int esdm_mpi_at_finalize(void (*function)(void));

/** @param value an MPI_Comm (a pointer or an int), an INTEGER, or the address of a structure that
 *  begins with an MPI_Comm. Else as esdm_mpi_comm_new(). */
esdm_status
esdm_mpi_comm_of_call(int kind, intptr_t value, esdm_comm **ret_comm, esdm_error *err)
{
    MPI_Comm communicator = MPI_COMM_NULL;
    int number = (int) value;
    if (kind == FORTRAN)
        communicator = MPI_Comm_f2c((MPI_Fint) value);
    else if (kind == HANDLE && sizeof communicator == sizeof number)
        memcpy(&communicator, &number, sizeof number);
    else if (kind == HANDLE)
        memcpy(&communicator, &value, sizeof communicator);
    else if (value != 0)
        memcpy(&communicator, (const void *) value, sizeof communicator);
    return esdm_mpi_comm_new(communicator, ret_comm, err);
}

static void (*at_finalize)(void);

static int
run_at_finalize(MPI_Comm comm, int keyval, void *attribute, void *state)
{
    (void) comm, (void) keyval, (void) attribute, (void) state;
    at_finalize();
    return MPI_SUCCESS;
}

/** Lets a function run as MPI_Finalize() begins, when messages can still be sent; the first one
 *  that is given. 0 on success. */
int
esdm_mpi_at_finalize(void (*function)(void))
{
    int key = MPI_KEYVAL_INVALID;
    if (at_finalize != NULL)
        return 0;
    /* Attributes of MPI_COMM_SELF are deleted first of all. */
    if (MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, run_at_finalize, &key, NULL) != MPI_SUCCESS)
        return -1;
    at_finalize = function;
    return MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL) == MPI_SUCCESS ? 0 : -1;
}
