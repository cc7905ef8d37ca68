/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Writes of one rank that fail for a while, as on a disk that is full: all ranks are told at the
 * commit, that rank writes again what failed, and the next commit has everything of all ranks. */

#include "faulty_site.h"

#include <pthread.h>

#include "integration/ranks/thread_comm.h"

enum { RANKS = 4, ROWS = 400, COLUMNS = 1000, HALF = COLUMNS / 2 };

static esdm_dataset *
find(esdm_container *container)
{
    return esdm_group_dataset_find(esdm_container_root(container), "v");
}

static esdm_container *
make(esdm_session *session, esdm_comm *comm, const char *name)
{
    esdm_container *container;
    esdm_dimension *dims[2];
    esdm_dataset *dataset;
    ok(esdm_container_create_collective(session, comm, name, ESDM_CREATE_NEW, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    ok(esdm_dimension_create(root, "row", RANKS * ROWS, &dims[0], ERR));
    ok(esdm_dimension_create(root, "column", COLUMNS, &dims[1], ERR));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_INT32, 2, dims, &dataset, ERR));
    ok(esdm_container_commit(container, NULL, ERR));
    return container;
}

/* `rows` rows of this value and the next one, in columns from `column` on. */
static esdm_status
put(esdm_container *container, bool collective, uint64_t row, uint64_t rows, uint64_t column,
    int32_t value)
{
    esdm_dataspace space;
    size_t n = (size_t) (rows * (COLUMNS - column));
    int32_t *data = malloc(n * sizeof *data);
    check(data != NULL);
    for (size_t i = 0; i < n; i++)
        data[i] = value + (int32_t) (i % 2); /* equal values would take no pack */
    ok(esdm_dataspace_init(&space, 2, (uint64_t[]){row, column},
                           (uint64_t[]){rows, COLUMNS - column}, ERR));
    esdm_status status =
        collective
            ? esdm_write_collective(find(container), &space, ESDM_TYPE_INT32, data, NULL, ERR)
            : esdm_write(find(container), &space, ESDM_TYPE_INT32, data, NULL, ERR);
    free(data);
    return status;
}

static void
expect(esdm_session *session, esdm_comm *comm, const char *name, uint64_t row, uint64_t columns,
       int32_t value)
{
    esdm_container *container;
    esdm_dataspace space;
    int32_t data[COLUMNS];
    ok(esdm_container_open_collective(session, comm, name, ESDM_OPEN_READ, 0, &container, ERR));
    ok(esdm_dataspace_init(&space, 2, (uint64_t[]){row, 0}, (uint64_t[]){1, columns}, ERR));
    ok(esdm_read(find(container), &space, ESDM_TYPE_INT32, data, NULL, ERR));
    for (size_t i = 0; i < columns; i++)
        if (data[i] != value + (int32_t) (i % 2))
            die("rank %d, row %d, column %zu: %d", comm->rank, (int) row, i, (int) data[i]);
    ok(esdm_container_close(container, ERR));
}

static void
arm(esdm_comm *comm, esdm_faulty_op op)
{
    thread_comm_meet(comm);
    if (comm->rank == 0)
        arm_data(op, 1, 1, ESDM_FAULTY_FAIL, ESDM_ENOSPC);
    thread_comm_meet(comm);
}

static uint64_t
first_row(const esdm_comm *comm)
{
    return (uint64_t) comm->rank * ROWS;
}

static void
test_ranks__a_large_write_is_repeated(esdm_session *session, esdm_comm *comm, int who)
{
    const char *name = who == 0 ? "first" : "last";
    esdm_container *container = make(session, comm, name);
    arm(comm, ESDM_FAULTY_APPEND);
    if (comm->rank == who)
        fails(put(container, false, first_row(comm), ROWS, 0, comm->rank), ESDM_ENOSPC, "/v");
    thread_comm_meet(comm);
    if (comm->rank != who)
        ok(put(container, false, first_row(comm), ROWS, 0, comm->rank));
    fails(esdm_container_commit(container, NULL, ERR), ESDM_ENOSPC, "was not repeated");
    if (comm->rank == who)
        ok(put(container, false, first_row(comm), ROWS, 0, comm->rank));
    ok(esdm_container_commit(container, NULL, ERR));
    ok(esdm_container_close(container, ERR));
    expect(session, comm, name, first_row(comm) + ROWS - 1, COLUMNS, comm->rank);
}

static void
test_ranks__gathered_ones_stay(esdm_session *session, esdm_comm *comm)
{
    esdm_container *container = make(session, comm, "gathered");
    for (uint64_t row = 0; row < 5; row++)
        ok(put(container, false, first_row(comm) + row, 1, 0, comm->rank));
    arm(comm, ESDM_FAULTY_APPEND);
    fails(esdm_container_commit(container, NULL, ERR), ESDM_ENOSPC, "nothing is committed");
    ok(esdm_container_commit(container, NULL, ERR));
    ok(esdm_container_close(container, ERR));
    expect(session, comm, "gathered", first_row(comm) + 4, COLUMNS, comm->rank);
}

/* A collective write that meets what other ranks wrote makes all of them store what they gathered,
 * so that it stays the older one. What that fails for is written again. */
static void
test_ranks__what_a_cut_cannot_store_is_written_again(esdm_session *session, esdm_comm *comm)
{
    esdm_container *container = make(session, comm, "cut");
    uint64_t next = (first_row(comm) + ROWS) % (RANKS * ROWS);
    for (uint64_t row = 0; row < 5; row++)
        ok(put(container, false, first_row(comm) + row, 1, 0, comm->rank));
    arm(comm, ESDM_FAULTY_APPEND);
    ok(put(container, true, next, 1, HALF, 100));
    fails(esdm_container_commit(container, NULL, ERR), ESDM_ENOSPC, "was not repeated");
    for (uint64_t row = 0; row < 5; row++)
        ok(put(container, false, first_row(comm) + row, 1, 0, comm->rank));
    ok(esdm_container_commit(container, NULL, ERR));
    ok(esdm_container_close(container, ERR));
    for (uint64_t row = 0; row < 5; row++)
        expect(session, comm, "cut", first_row(comm) + row, HALF, comm->rank);

    container = make(session, comm, "given up");
    for (uint64_t row = 0; row < 5; row++)
        ok(put(container, false, first_row(comm) + row, 1, 0, comm->rank));
    arm(comm, ESDM_FAULTY_APPEND);
    ok(put(container, true, next, 1, HALF, 100));
    fails(esdm_container_commit(container, NULL, ERR), ESDM_ENOSPC, "was not repeated");
    (void) esdm_container_give_up_failed(container);
    ok(esdm_container_commit(container, NULL, ERR));
    ok(esdm_container_close(container, ERR));
}

/* Which rank's packs are concerned is chance. */
static void
test_ranks__what_could_not_be_flushed_is_written_again(esdm_session *session, esdm_comm *comm)
{
    esdm_container *container = make(session, comm, "flushed");
    ok(put(container, false, first_row(comm), ROWS, 0, comm->rank));
    ok(put(container, true, first_row(comm), 1, 0, 50 + comm->rank));
    arm(comm, ESDM_FAULTY_SYNC);
    fails(esdm_container_commit(container, NULL, ERR), ESDM_ENOSPC, "was not repeated");
    ok(put(container, false, first_row(comm), ROWS, 0, 100 + comm->rank));
    ok(esdm_container_commit(container, NULL, ERR));
    ok(esdm_container_close(container, ERR));
    expect(session, comm, "flushed", first_row(comm), COLUMNS, 100 + comm->rank);
    expect(session, comm, "flushed", first_row(comm) + ROWS - 1, COLUMNS, 100 + comm->rank);
}

static void *
rank_main(void *user)
{
    esdm_comm *comm = user;
    esdm_session *session = open_here();
    for (int who = 0; who < RANKS; who += RANKS - 1)
        test_ranks__a_large_write_is_repeated(session, comm, who);
    test_ranks__gathered_ones_stay(session, comm);
    test_ranks__what_a_cut_cannot_store_is_written_again(session, comm);
    test_ranks__what_could_not_be_flushed_is_written_again(session, comm);
    esdm_session_close(session);
    esdm_comm_unref(comm);
    return NULL;
}

int
main(void)
{
    pthread_t threads[RANKS];
    describe_site();
    use_disk_alone();
    use_durability_system();
    struct thread_world *world = thread_world_new(RANKS);
    for (int i = 0; i < RANKS; i++)
        check(pthread_create(&threads[i], NULL, rank_main, thread_comm_new(world, i)) == 0);
    for (int i = 0; i < RANKS; i++)
        check(pthread_join(threads[i], NULL) == 0);
    thread_world_free(world);
    return 0;
}
