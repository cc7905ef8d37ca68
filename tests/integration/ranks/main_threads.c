/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Threads as ranks, each with a session of its own: main_threads [RANKS [SCENARIO]]. */
#include <pthread.h>

#include "ranks.h"
#include "thread_comm.h"

enum { RANKS_MAX = 64 };

static const char *only;

static void *
rank_main(void *user)
{
    esdm_comm *comm = user;
    rank_state r = {.comm = comm, .rank = comm->rank, .size = comm->size};
    r.session = open_session();
    run_scenarios(&r, only);
    esdm_session_close(r.session);
    esdm_comm_unref(comm);
    return NULL;
}

int
main(int argc, char **argv)
{
    pthread_t threads[RANKS_MAX];
    int size = argc > 1 ? atoi(argv[1]) : 4;
    only = argc > 2 ? argv[2] : NULL;
    check(size >= 1 && size <= RANKS_MAX);
    make_site();
    struct thread_world *world = thread_world_new(size);
    for (int i = 0; i < size; i++)
        check(pthread_create(&threads[i], NULL, rank_main, thread_comm_new(world, i)) == 0);
    for (int i = 0; i < size; i++)
        check(pthread_join(threads[i], NULL) == 0);
    thread_world_free(world);
    return 0;
}
