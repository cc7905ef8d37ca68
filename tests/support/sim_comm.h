/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_SUPPORT_SIM_COMM_H
#define TESTS_SUPPORT_SIM_COMM_H

/**
 * @file
 * Very many ranks in one thread: each has a stack of its own and runs until it waits for a message.
 * So 100,000 ranks can be run, and what each of them does can be counted. Without real data: no
 * sessions, a function on an esdm_comm.
 */

#include <stddef.h>
#include <stdint.h>

#include "esdm/comm.h"

/** What one rank has done, or the most that any has. */
typedef struct sim_counts {
    uint64_t sent; /* messages from rank to rank */
    uint64_t received;
    uint64_t sent_bytes;
    uint64_t received_bytes;
    uint64_t collectives;      /* calls that all ranks make together */
    uint64_t collective_bytes; /* of this rank in them */
    uint64_t depth;            /* messages that had to follow each other; one of all counts as many
                                  as its tree is deep */
    double cpu_s;              /* of the rank's own code, without that of the messages */
} sim_counts;

typedef struct sim_world sim_world;

/** Very many ranks: 100,000, with $ESDM_TEST_SIZE "quick" 20,000. */
int sim_many(void);

/** @param node_ranks ranks a node; 0: nodes are not known. @param stack_bytes of each rank; only
 *  what is touched needs memory. */
sim_world *sim_world_new(int size, int node_ranks, size_t stack_bytes);
void sim_world_free(sim_world *world);
/** Runs a function as every rank, until all have returned; ends the program when they wait for each
 *  other for ever. Counts begin anew. The comm lives until the next run. */
void sim_run(sim_world *world, void (*function)(esdm_comm *comm, void *user), void *user);
/** Of the last run. */
const sim_counts *sim_counts_of(const sim_world *world, int rank);
/** CPU that the calling rank has used so far. */
double sim_cpu_s(esdm_comm *comm);
/** The largest of each number. */
sim_counts sim_most(const sim_world *world);

#endif
