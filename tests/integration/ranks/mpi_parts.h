/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_INTEGRATION_RANKS_MPI_PARTS_H
#define TESTS_INTEGRATION_RANKS_MPI_PARTS_H

/**
 * @file
 * Ranks over MPI that put parts of steps into a dataset "v", with values that tell step and rank.
 */

#include "esdm/mpi.h"
#include "ranks.h"

enum { STEPS = 4, PART_ROWS = 256, PART_COLUMNS = 1024 }; /* 1 MiB of a rank and step */

static int rank;
static int size;
static esdm_session *session;
static esdm_comm *comm;
static int32_t part[PART_ROWS * PART_COLUMNS];

static inline void
join(void)
{
    /* As most models do: ESDM's threads call no MPI. */
    int provided;
    check(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) == MPI_SUCCESS);
    ok(esdm_mpi_comm_new(MPI_COMM_WORLD, &comm, ERR));
    rank = comm->rank;
    size = comm->size;
    ok(esdm_session_open_collective(NULL, comm, NULL, &session, ERR));
}

static inline void
leave(void)
{
    esdm_comm_unref(comm);
    esdm_session_close(session);
    MPI_Finalize();
}

static inline esdm_container *
make(const char *name)
{
    esdm_container *c;
    esdm_dimension *d[3];
    esdm_dataset *v;
    ok(esdm_container_create_collective(session, comm, name, ESDM_CREATE_REPLACE, &c, ERR));
    esdm_group *root = esdm_container_root(c);
    ok(esdm_dimension_create(root, "time", ESDM_UNLIMITED, &d[0], ERR));
    ok(esdm_dimension_create(root, "y", (uint64_t) PART_ROWS * (uint64_t) size, &d[1], ERR));
    ok(esdm_dimension_create(root, "x", PART_COLUMNS, &d[2], ERR));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_INT32, 3, d, &v, ERR));
    return c;
}

static inline int32_t
value_of(uint64_t step, int of_rank, size_t i)
{
    return (int32_t) ((size_t) of_rank * 1000003 + (size_t) step * 7919 + i * 31);
}

static inline esdm_dataspace
part_of(uint64_t step, uint64_t of_rank)
{
    return box3(step, PART_ROWS * of_rank, 0, 1, PART_ROWS, PART_COLUMNS);
}

static inline esdm_status
put_part(esdm_container *c, uint64_t step, bool collective)
{
    esdm_dataset *v = find(c, "v");
    esdm_dataspace space = part_of(step, (uint64_t) rank);
    for (size_t i = 0; i < PART_ROWS * PART_COLUMNS; i++)
        part[i] = value_of(step, rank, i);
    esdm_status status = collective
                             ? esdm_write_collective(v, &space, ESDM_TYPE_INT32, part, NULL, ERR)
                             : esdm_write(v, &space, ESDM_TYPE_INT32, part, NULL, ERR);
    memset(part, 0x55, sizeof part);
    return status;
}

static inline void
expect_part(esdm_container *c, uint64_t step, int of_rank, bool collective)
{
    esdm_dataspace space = part_of(step, (uint64_t) of_rank);
    if (collective)
        ok(esdm_read_collective(find(c, "v"), &space, ESDM_TYPE_INT32, part, NULL, ERR));
    else
        ok(esdm_read(find(c, "v"), &space, ESDM_TYPE_INT32, part, NULL, ERR));
    for (size_t i = 0; i < PART_ROWS * PART_COLUMNS; i++)
        check(part[i] == value_of(step, of_rank, i));
}

static inline void
expect_steps(esdm_container *c, uint64_t steps)
{
    uint64_t parts = esdm_dimension_length(find_dimension(c, "y")) / PART_ROWS;
    check(esdm_dimension_length(find_dimension(c, "time")) == steps);
    for (uint64_t step = 0; step < steps; step++) {
        for (uint64_t k = 0; k < parts; k++)
            expect_part(c, step, (int) k, false);
    }
}

static inline void
let_go(void)
{
    FILE *f = fopen(getenv("THROTTLED_HOLD"), "w");
    check(f != NULL && fclose(f) == 0);
}

static inline bool
nothing_was_appended(void)
{
    FILE *f = fopen(getenv("THROTTLED_APPENDS"), "r");
    bool nothing = f == NULL || getc(f) == EOF;
    if (f != NULL)
        fclose(f);
    return nothing;
}

/* Nothing is stored when all puts have returned ($THROTTLED_HOLD, $THROTTLED_APPENDS), and all
 * after the commit. */
static inline void
write_held(const char *name)
{
    esdm_container *c = make(name);
    for (uint64_t step = 0; step < STEPS; step++)
        ok(put_part(c, step, step % 2 == 0));
    MPI_Barrier(MPI_COMM_WORLD);
    check(nothing_was_appended());
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        let_go();
    ok(esdm_container_commit(c, NULL, ERR));
    expect_steps(c, STEPS);
    ok(esdm_container_close(c, ERR));
}

static inline void
verify(const char *name, const char *steps)
{
    esdm_container *c;
    esdm_session *own = open_session();
    ok(esdm_container_open(own, name, ESDM_OPEN_READ, 0, &c, ERR));
    expect_steps(c, strtoull(steps, NULL, 10));
    ok(esdm_container_close(c, ERR));
    esdm_session_close(own);
}

/* Before the plug-in is loaded: $ESDM_FAULTY is for one rank. */
static inline void
keep_faults_of(int who)
{
    const char *mine = getenv("OMPI_COMM_WORLD_RANK");
    mine = mine != NULL ? mine : getenv("PMI_RANK");
    check(mine != NULL);
    if (atoi(mine) != who)
        unsetenv("ESDM_FAULTY");
}

#endif
