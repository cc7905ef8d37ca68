/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Programs of any MPI, without ESDM: what fails ends all ranks. */
#ifndef ESDM_TESTS_MPI_NEEDS_H
#define ESDM_TESTS_MPI_NEEDS_H

#include <mpi.h>
#include <stdio.h>

static inline void
need(int result, const char *what)
{
    if (result == MPI_SUCCESS)
        return;
    (void) fprintf(stderr, "%s failed\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

#define DO(call) need(call, #call)

static inline void
need_true(int good, const char *what)
{
    need(good ? MPI_SUCCESS : MPI_ERR_OTHER, what);
}

/** MPI_Init(), and which rank of how many this is. */
static inline void
mpi_begin(int *argc, char ***argv, int *ret_rank, int *ret_ranks)
{
    DO(MPI_Init(argc, argv));
    DO(MPI_Comm_rank(MPI_COMM_WORLD, ret_rank));
    DO(MPI_Comm_size(MPI_COMM_WORLD, ret_ranks));
}

#endif
