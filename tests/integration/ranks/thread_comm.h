/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_INTEGRATION_THREAD_COMM_H
#define TESTS_INTEGRATION_THREAD_COMM_H

/** @file Threads as ranks: messages between threads of one process. */

#include "esdm/comm.h"

struct thread_world;

/** At most 64 ranks. */
struct thread_world *thread_world_new(int size);
/** When all comms are gone. */
void thread_world_free(struct thread_world *world);
/** What one rank has: owned, esdm_comm_unref(). */
esdm_comm *thread_comm_new(struct thread_world *world, int rank);
/** All ranks have come here. */
void thread_comm_meet(esdm_comm *comm);

#endif
