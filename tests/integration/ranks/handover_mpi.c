/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Ranks over MPI of which some store for the others ("ranks": {"io": N}); handover.py starts it,
 * with the site in $ESDM_CONFIG.
 *
 *     handover_mpi steps        collective and independent puts, reads of what is not committed,
 *                               revert, a handle that is given up; all is there after commits
 *     handover_mpi behind       nothing is stored when all puts have returned ($THROTTLED_HOLD,
 *                               $THROTTLED_APPENDS), and all after the commit
 *     handover_mpi killed N     rank N is killed before the second commit
 *     handover_mpi full N       rank N cannot store for a while ($ESDM_FAULTY)
 *     handover_mpi verify N     one process: the first N steps are there, and no more
 */
#include "esdm/mpi.h"
#include "ranks.h"

#include <signal.h>

enum { STEPS = 4, PART_ROWS = 256, PART_COLUMNS = 1024 }; /* 1 MiB of a rank and step */

static int rank;
static int size;
static esdm_session *session;
static esdm_comm *comm;
static int32_t part[PART_ROWS * PART_COLUMNS];

static void
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

static void
leave(void)
{
    esdm_comm_unref(comm);
    esdm_session_close(session);
    MPI_Finalize();
}

static esdm_container *
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

static int32_t
value_of(uint64_t step, int of_rank, size_t i)
{
    return (int32_t) ((size_t) of_rank * 1000003 + (size_t) step * 7919 + i * 31);
}

static esdm_dataspace
part_of(uint64_t step, uint64_t of_rank)
{
    return box3(step, PART_ROWS * of_rank, 0, 1, PART_ROWS, PART_COLUMNS);
}

static esdm_status
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

static void
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

static void
expect_steps(esdm_container *c, uint64_t steps)
{
    uint64_t parts = esdm_dimension_length(find_dimension(c, "y")) / PART_ROWS;
    check(esdm_dimension_length(find_dimension(c, "time")) == steps);
    for (uint64_t step = 0; step < steps; step++) {
        for (uint64_t k = 0; k < parts; k++)
            expect_part(c, step, (int) k, false);
    }
}

static void
write_steps(void)
{
    esdm_container *c = make("steps");
    for (uint64_t step = 0; step < STEPS / 2; step++)
        ok(put_part(c, step, step % 2 == 0));
    expect_part(c, 0, rank, false);             /* its own, not committed */
    expect_part(c, 1, (rank + 1) % size, true); /* another one's */
    ok(esdm_container_commit(c, NULL, ERR));
    expect_steps(c, STEPS / 2);
    esdm_container_mark(c);
    ok(esdm_attribute_set(esdm_group_attributes(esdm_container_root(c)), "a", ESDM_TYPE_INT32, 1,
                          &(int32_t){1}, ERR));
    esdm_container_revert(c);
    ok(esdm_container_close(c, ERR));

    ok(esdm_container_open_collective(session, comm, "steps", ESDM_OPEN_WRITE, 0, &c, ERR));
    for (uint64_t step = STEPS / 2; step < STEPS; step++)
        ok(put_part(c, step, step % 2 == 0));
    expect_part(c, STEPS - 1, rank, false);
    ok(esdm_container_close(c, ERR));

    c = make("given up");
    ok(put_part(c, 0, false));
    esdm_container_discard(c);
    ok(esdm_container_open_collective(session, comm, "steps", ESDM_OPEN_READ, 0, &c, ERR));
    expect_steps(c, STEPS);
    ok(esdm_container_close(c, ERR));
}

static void
let_go(void)
{
    FILE *f = fopen(getenv("THROTTLED_HOLD"), "w");
    check(f != NULL && fclose(f) == 0);
}

static bool
nothing_was_appended(void)
{
    FILE *f = fopen(getenv("THROTTLED_APPENDS"), "r");
    bool nothing = f == NULL || getc(f) == EOF;
    if (f != NULL)
        fclose(f);
    return nothing;
}

static void
write_behind(void)
{
    esdm_container *c = make("steps");
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

static void
end_by_kill(int who)
{
    esdm_container *c = make("steps");
    ok(put_part(c, 0, true));
    ok(esdm_container_commit(c, NULL, ERR));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == who)
        raise(SIGKILL);
    for (uint64_t step = 1; step < 1000; step++)
        (void) !put_part(c, step, false);
    (void) !esdm_container_commit(c, NULL, ERR);
}

/* Who hands over is told at its put, and writes again. */
static void
fill_up(int who)
{
    char words[64];
    esdm_container *c = make("steps");
    snprintf(words, sizeof words, "rank %d, which stores for this one", who);
    for (uint64_t step = 0; step < STEPS; step++) {
        for (int failures = 0; put_part(c, step, false) != ESDM_OK; failures++) {
            check(failures < 8 && test_error.status == ESDM_ENOSPC);
            check(rank == who || strstr(test_error.message, words) != NULL);
        }
    }
    ok(esdm_container_commit(c, NULL, ERR));
    expect_steps(c, STEPS);
    ok(esdm_container_close(c, ERR));
}

static void
verify(const char *steps)
{
    esdm_container *c;
    esdm_session *own = open_session();
    ok(esdm_container_open(own, "steps", ESDM_OPEN_READ, 0, &c, ERR));
    expect_steps(c, strtoull(steps, NULL, 10));
    ok(esdm_container_close(c, ERR));
    esdm_session_close(own);
}

int
main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    int who = argc > 2 ? atoi(argv[2]) : 0;
    if (strcmp(mode, "verify") == 0 && argc > 2) {
        verify(argv[2]);
        return 0;
    }
    if (strcmp(mode, "full") == 0) { /* before the plug-in is loaded */
        const char *mine = getenv("OMPI_COMM_WORLD_RANK");
        mine = mine != NULL ? mine : getenv("PMI_RANK");
        check(mine != NULL);
        if (atoi(mine) != who)
            unsetenv("ESDM_FAULTY");
    }
    join();
    if (strcmp(mode, "steps") == 0)
        write_steps();
    else if (strcmp(mode, "behind") == 0)
        write_behind();
    else if (strcmp(mode, "killed") == 0)
        end_by_kill(who);
    else if (strcmp(mode, "full") == 0)
        fill_up(who);
    else
        die("what is '%s'?", mode);
    leave();
    return 0;
}
