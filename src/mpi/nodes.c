/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "nodes.h"

#include <stdlib.h>
#include <string.h>

void
mpi_nodes_unref(mpi_nodes *nodes)
{
    if (nodes != NULL && --nodes->references == 0)
        free(nodes);
}

/* Whether all ranks of a communicator say so. */
static int
all_say(int mine, MPI_Comm comm)
{
    int all = 0;
    if (MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm) != MPI_SUCCESS)
        return 0;
    return all;
}

/* The numbers of the ranks of a part, rising; owned. NULL: something failed, on all of them. */
static int *
members_of(MPI_Comm part, int rank, int *ret_count)
{
    int count = 0;
    int *members = NULL;
    if (MPI_Comm_size(part, &count) == MPI_SUCCESS)
        members = malloc((size_t) count * sizeof *members);
    if (!all_say(members != NULL, part) ||
        MPI_Allgather(&rank, 1, MPI_INT, members, 1, MPI_INT, part) != MPI_SUCCESS) {
        free(members);
        return NULL;
    }
    *ret_count = count;
    return members;
}

/* The lowest ranks of all nodes, known on these ranks alone. */
static int *
find_leaders(MPI_Comm messages, bool leads, int rank, int *ret_count)
{
    MPI_Comm leaders = MPI_COMM_NULL;
    int *list = NULL;
    if (MPI_Comm_split(messages, leads ? 0 : MPI_UNDEFINED, rank, &leaders) == MPI_SUCCESS &&
        leaders != MPI_COMM_NULL) {
        list = members_of(leaders, rank, ret_count);
        (void) MPI_Comm_free(&leaders);
    }
    return list;
}

static mpi_nodes *
find(MPI_Comm messages)
{
    MPI_Comm here = MPI_COMM_NULL;
    int rank = 0;
    int nhere = 0;
    int nleaders = 0;
    (void) MPI_Comm_rank(messages, &rank);
    int split = MPI_Comm_split_type(messages, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &here);
    if (!all_say(split == MPI_SUCCESS, messages)) {
        if (here != MPI_COMM_NULL)
            (void) MPI_Comm_free(&here);
        return NULL;
    }
    int *members = members_of(here, rank, &nhere);
    int *leaders = find_leaders(messages, members != NULL && members[0] == rank, rank, &nleaders);
    int sent = MPI_Bcast(&nleaders, 1, MPI_INT, 0, here);
    mpi_nodes *nodes = malloc(sizeof *nodes + (size_t) (nhere + nleaders) * sizeof(int));
    if (all_say(nodes != NULL && members != NULL && sent == MPI_SUCCESS && nleaders > 0,
                messages)) {
        nodes->references = 1;
        nodes->lists = (esdm_comm_nodes){.here = nodes->ranks,
                                         .nhere = (size_t) nhere,
                                         .leaders = nodes->ranks + nhere,
                                         .nleaders = (size_t) nleaders};
        memcpy(nodes->ranks, members, (size_t) nhere * sizeof(int));
        if (leaders != NULL)
            memcpy(nodes->ranks + nhere, leaders, (size_t) nleaders * sizeof(int));
        sent = MPI_Bcast(nodes->ranks + nhere, nleaders, MPI_INT, 0, here);
    } else {
        free(nodes);
        nodes = NULL;
    }
    if (!all_say(nodes != NULL && sent == MPI_SUCCESS, messages)) {
        free(nodes);
        nodes = NULL;
    }
    (void) MPI_Comm_free(&here);
    free(members);
    free(leaders);
    return nodes;
}

/* ---- the communicator remembers ----------------------------------------------------------- */

static int
forget(MPI_Comm comm, int key, void *attribute, void *state)
{
    (void) comm, (void) key, (void) state;
    mpi_nodes_unref(attribute);
    return MPI_SUCCESS;
}

mpi_nodes *
mpi_nodes_of(MPI_Comm communicator, MPI_Comm messages)
{
    static int key = MPI_KEYVAL_INVALID;
    mpi_nodes *nodes = NULL;
    int known = 0;
    int ready = key != MPI_KEYVAL_INVALID ||
                MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key, NULL) == MPI_SUCCESS;
    if (ready && MPI_Comm_get_attr(communicator, key, &nodes, &known) != MPI_SUCCESS)
        known = 0;
    if (known) { /* on all ranks */
        nodes->references++;
        return nodes;
    }
    nodes = find(messages);
    if (nodes == NULL)
        return NULL;
    bool kept = ready && MPI_Comm_set_attr(communicator, key, nodes) == MPI_SUCCESS;
    nodes->references += kept;
    if (!all_say(kept, messages) && kept)
        (void) MPI_Comm_delete_attr(communicator, key);
    return nodes;
}
