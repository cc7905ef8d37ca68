/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Two ranks (threads) commit so many small variables that their index pages do not fit into one
 * record of the journal: large_commit CONTAINER VARIABLES. The site is the configured one. */
#include "integration/testing.h"

#include <pthread.h>

#include "thread_comm.h"

enum { RANKS = 2, WIDTH = 500 };

static const char *name;
static int variables;

static void *
rank_main(void *user)
{
    esdm_comm *comm = user;
    esdm_session *session;
    esdm_container *container;
    esdm_dimension *dim;
    esdm_dataspace space;
    uint32_t state = (uint32_t) comm->rank + 1;
    ok(esdm_session_open(NULL, &session, ERR));
    ok(esdm_container_create_collective(session, comm, name, ESDM_CREATE_NEW, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    ok(esdm_dimension_create(root, "x", RANKS * WIDTH, &dim, ERR));
    ok(esdm_dataspace_init(&space, 1, (uint64_t[]){(uint64_t) comm->rank * WIDTH},
                           (uint64_t[]){WIDTH}, ERR));
    for (int i = 0; i < variables; i++) {
        char variable[32];
        uint32_t values[WIDTH];
        esdm_dataset *dataset;
        for (int k = 0; k < WIDTH; k++)
            values[k] = state = state * 1664525u + 1013904223u; /* nothing to compress */
        snprintf(variable, sizeof variable, "v%d", i);
        ok(esdm_dataset_create(root, variable, ESDM_TYPE_UINT32, 1, &dim, &dataset, ERR));
        ok(esdm_write(dataset, &space, ESDM_TYPE_UINT32, values, NULL, ERR));
    }
    ok(esdm_container_commit(container, NULL, ERR));
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
    esdm_comm_unref(comm);
    return NULL;
}

int
main(int argc, char **argv)
{
    pthread_t threads[RANKS];
    check(argc == 3);
    name = argv[1];
    variables = atoi(argv[2]);
    struct thread_world *world = thread_world_new(RANKS);
    for (int i = 0; i < RANKS; i++)
        check(pthread_create(&threads[i], NULL, rank_main, thread_comm_new(world, i)) == 0);
    for (int i = 0; i < RANKS; i++)
        check(pthread_join(threads[i], NULL) == 0);
    thread_world_free(world);
    return 0;
}
