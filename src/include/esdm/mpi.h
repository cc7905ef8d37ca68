/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MPI_H
#define ESDM_MPI_H

/**
 * @file
 * Containers shared by the ranks of an MPI communicator; esdm/comm.h tells what that means.
 *
 *     mpicc program.c $(pkg-config --cflags --libs esdm-mpi-openmpi)      or esdm-mpi-mpich
 *
 * There is one library for each MPI, since their communicators are of different types; this header
 * serves all. The wrong one answers every call with ESDM_EINVAL. It is not part of esdm/esdm.h. MPI
 * must be initialised (MPI_THREAD_FUNNELED is enough: ESDM's own threads send no messages).
 * Containers have to be closed before MPI_Finalize().
 */

#include <mpi.h>

#include "esdm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Collective. Makes an esdm_comm of a duplicate of an intra-communicator.
 *
 * @param ret_comm owned; esdm_comm_unref(), collective as well, before MPI_Finalize().
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_mpi_comm_new(MPI_Comm communicator, esdm_comm **ret_comm,
                                                       esdm_error *err);

/** esdm_container_create_collective() on an MPI communicator, of which it uses a duplicate. */
ESDM_API ESDM_MUST_CHECK esdm_status
esdm_mpi_container_create(esdm_session *session, MPI_Comm communicator, const char *name,
                          esdm_create_mode mode, esdm_container **ret_container, esdm_error *err);

/** esdm_container_open_collective() on an MPI communicator, of which it uses a duplicate. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_mpi_container_open(
    esdm_session *session, MPI_Comm communicator, const char *name, esdm_open_mode mode,
    uint64_t snapshot, esdm_container **ret_container, esdm_error *err);

#ifdef __cplusplus
}
#endif
#endif
