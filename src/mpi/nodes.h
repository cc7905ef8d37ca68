/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MPI_NODES_H
#define ESDM_MPI_NODES_H

/** @file Which ranks of a communicator share a node. One thread at a time. */

#include "esdm/mpi.h"

/** Counts references. */
typedef struct mpi_nodes {
    unsigned references;
    esdm_comm_nodes lists; /* of `ranks` */
    int ranks[];
} mpi_nodes;

/**
 * Collective. Found once for a communicator, whose attribute it becomes.
 *
 * @param communicator the program's. @param messages a duplicate of it, which returns errors.
 * @return a reference for the caller; NULL on all ranks when something failed on one: then ranks go
 *         by their numbers.
 */
mpi_nodes *mpi_nodes_of(MPI_Comm communicator, MPI_Comm messages);
/** NULL is accepted. */
void mpi_nodes_unref(mpi_nodes *nodes);

#endif
