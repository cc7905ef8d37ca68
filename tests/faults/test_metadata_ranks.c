/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Ranks with a metadata store that takes a writer for dead: what one of them has lost all are
 * told, before the commit or after it. And what commits of ranks ask of the store. */

#include "faulty_site.h"

#include <pthread.h>

#include "integration/ranks/thread_comm.h"

enum { RANKS = 2, COLUMNS = 3000, ROWS = 40 };

static esdm_dataset *
find(esdm_container *container)
{
    return esdm_group_dataset_find(esdm_container_root(container), "a");
}

/* Far more than what lies in index pages, by this rank alone: the other one has no packs. */
static void
write_rows(esdm_container *container, int rank, int32_t value)
{
    esdm_dataspace space;
    int32_t *data = malloc(sizeof *data * ROWS * COLUMNS);
    check(data != NULL);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        data[i] = value + i;
    ok(esdm_dataspace_init(&space, 2, (uint64_t[]){(uint64_t) rank * ROWS, 0},
                           (uint64_t[]){ROWS, COLUMNS}, ERR));
    ok(esdm_write(find(container), &space, ESDM_TYPE_INT32, data, NULL, ERR));
    free(data);
}

static void
arm(esdm_comm *comm, esdm_faulty_meta_op op, uint64_t nth, esdm_faulty_meta_action action)
{
    thread_comm_meet(comm);
    if (comm->rank == 0)
        arm_meta(op, nth, 1, action);
    thread_comm_meet(comm);
}

static void
lose_packs(esdm_comm *comm)
{
    thread_comm_meet(comm);
    if (comm->rank == 0)
        remove_packs("burst");
    thread_comm_meet(comm);
}

static esdm_container *
make(esdm_session *session, esdm_comm *comm)
{
    esdm_container *container;
    esdm_dimension *dims[2];
    esdm_dataset *dataset;
    ok(esdm_container_create_collective(session, comm, "ranks", ESDM_CREATE_REPLACE, &container,
                                        ERR));
    esdm_group *root = esdm_container_root(container);
    ok(esdm_dimension_create(root, "row", RANKS * ROWS, &dims[0], ERR));
    ok(esdm_dimension_create(root, "column", COLUMNS, &dims[1], ERR));
    ok(esdm_dataset_create(root, "a", ESDM_TYPE_INT32, 2, dims, &dataset, ERR));
    return container;
}

/* `who` alone writes, so that the store is asked once before the commit and once after it. */
static void
lose_before(esdm_session *session, esdm_comm *comm, int who)
{
    esdm_container *container = make(session, comm);
    ok(esdm_container_commit(container, NULL, ERR));
    if (comm->rank == who)
        write_rows(container, who, 1);
    lose_packs(comm);
    arm(comm, ESDM_FAULTY_CHECK, 1, ESDM_FAULTY_META_LIE);
    fails(esdm_container_commit(container, NULL, ERR), ESDM_EIO, "was removed while");
    esdm_container_discard(container);
}

static void
lose_after(esdm_session *session, esdm_comm *comm, int who)
{
    esdm_container *container = make(session, comm);
    if (comm->rank == who)
        write_rows(container, who, 1);
    lose_packs(comm);
    arm(comm, ESDM_FAULTY_CHECK, 2, ESDM_FAULTY_META_LIE);
    fails(esdm_container_commit(container, NULL, ERR), ESDM_EIO, "it took place, but");
    ok(esdm_container_close(container, ERR));
}

/* Nobody knows at first; later somebody does, though there is nothing to commit. */
static void
lose_unheard(esdm_session *session, esdm_comm *comm, int who)
{
    esdm_container *container = make(session, comm);
    if (comm->rank == who)
        write_rows(container, who, 1);
    lose_packs(comm);
    arm(comm, ESDM_FAULTY_CHECK, 2, ESDM_FAULTY_META_FAIL);
    ok(esdm_container_commit(container, NULL, ERR));
    arm(comm, ESDM_FAULTY_CHECK, 1, ESDM_FAULTY_META_LIE);
    fails(esdm_container_commit(container, NULL, ERR), ESDM_EIO, "to which it refers");
    ok(esdm_container_close(container, ERR));
}

/* The writer may have seemed dead, and all is there. */
static void
lose_nothing(esdm_session *session, esdm_comm *comm, int who)
{
    esdm_container *container = make(session, comm);
    for (int i = 1; i < 3; i++) {
        if (comm->rank == who)
            write_rows(container, who, i);
        arm(comm, ESDM_FAULTY_CHECK, (uint64_t) i, ESDM_FAULTY_META_LIE);
        ok(esdm_container_commit(container, NULL, ERR));
    }
    ok(esdm_container_close(container, ERR));
}

static void
expect_rows(esdm_container *container, int32_t value)
{
    esdm_dataspace space;
    int32_t data[COLUMNS];
    for (uint64_t rank = 0; rank < RANKS; rank++) {
        ok(esdm_dataspace_init(&space, 2, (uint64_t[]){rank * ROWS, 0}, (uint64_t[]){1, COLUMNS},
                               ERR));
        ok(esdm_read(find(container), &space, ESDM_TYPE_INT32, data, NULL, ERR));
        for (int i = 0; i < COLUMNS; i++)
            check(data[i] == value + i);
    }
}

/* Rank 0's pin is that of all who write: it asks for one a commit, and what all read is there. */
static void
pin_once(esdm_session *session, esdm_comm *comm)
{
    enum { COMMITS = 12 }; /* more than the history keeps */
    thread_comm_meet(comm);
    uint64_t before = count_meta(ESDM_FAULTY_PIN);
    thread_comm_meet(comm);
    esdm_container *container = make(session, comm);
    for (int i = 1; i <= COMMITS; i++) {
        write_rows(container, comm->rank, i);
        ok(esdm_container_commit(container, NULL, ERR));
        expect_rows(container, i);
    }
    ok(esdm_container_close(container, ERR));
    ok(esdm_container_open_collective(session, comm, "ranks", ESDM_OPEN_WRITE, 0, &container, ERR));
    expect_rows(container, COMMITS);
    write_rows(container, comm->rank, 99);
    ok(esdm_container_commit(container, NULL, ERR));
    expect_rows(container, 99);
    ok(esdm_container_close(container, ERR));
    thread_comm_meet(comm);
    check(count_meta(ESDM_FAULTY_PIN) - before == COMMITS + 1);
    thread_comm_meet(comm);
}

static void *
rank_main(void *user)
{
    esdm_comm *comm = user;
    esdm_session *session = open_here();
    for (int who = 0; who < RANKS; who++) {
        lose_before(session, comm, who);
        lose_after(session, comm, who);
        lose_unheard(session, comm, who);
        lose_nothing(session, comm, who);
    }
    pin_once(session, comm);
    esdm_session_close(session);
    esdm_comm_unref(comm);
    return NULL;
}

int
main(void)
{
    pthread_t threads[RANKS];
    describe_site();
    struct thread_world *world = thread_world_new(RANKS);
    for (int i = 0; i < RANKS; i++)
        check(pthread_create(&threads[i], NULL, rank_main, thread_comm_new(world, i)) == 0);
    for (int i = 0; i < RANKS; i++)
        check(pthread_join(threads[i], NULL) == 0);
    thread_world_free(world);
    return 0;
}
