/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Linked to the libesdm-mpi of another MPI than its own: told, before a handle is touched. */
#include <stdio.h>
#include <string.h>

#include "esdm/mpi.h"

int
main(int argc, char **argv)
{
    esdm_error err = {0};
    esdm_comm *comm = NULL;
    MPI_Init(&argc, &argv);
    esdm_status status = esdm_mpi_comm_new(MPI_COMM_WORLD, &comm, &err);
    MPI_Finalize();
    if (status == ESDM_EINVAL && comm == NULL && strstr(err.message, "is made for") != NULL)
        return 0;
    printf("%d: %s\n", (int) status, err.message);
    return 1;
}
