/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Ranks over MPI that go on while their data are stored ("writes": "background"); behind.py starts
 * it, with the site in $ESDM_CONFIG.
 *
 *     behind_mpi steps      nothing is stored when all puts have returned ($THROTTLED_HOLD,
 *                           $THROTTLED_APPENDS); all is there after the commit
 *     behind_mpi killed     a rank is killed then, before the commit
 *     behind_mpi verify N   one process: the first N steps are there, and no more
 *     behind_mpi repaired   the last rank cannot store for a while ($ESDM_FAULTY)
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
make(void)
{
    esdm_container *c;
    esdm_dimension *d[3];
    esdm_dataset *v;
    ok(esdm_container_create_collective(session, comm, "behind", ESDM_CREATE_REPLACE, &c, ERR));
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

static void
put_step(esdm_container *c, uint64_t step)
{
    esdm_dataset *v = find(c, "v");
    esdm_dataspace space =
        box3(step, (uint64_t) PART_ROWS * (uint64_t) rank, 0, 1, PART_ROWS, PART_COLUMNS);
    for (size_t i = 0; i < PART_ROWS * PART_COLUMNS; i++)
        part[i] = value_of(step, rank, i);
    if (step % 2 == 0)
        ok(esdm_write_collective(v, &space, ESDM_TYPE_INT32, part, NULL, ERR));
    else
        ok(esdm_write(v, &space, ESDM_TYPE_INT32, part, NULL, ERR));
    memset(part, 0x55, sizeof part);
}

/* One handle, all parts. */
static void
expect_steps(esdm_container *c, uint64_t steps)
{
    uint64_t parts = esdm_dimension_length(find_dimension(c, "y")) / PART_ROWS;
    check(esdm_dimension_length(find_dimension(c, "time")) == steps);
    for (uint64_t step = 0; step < steps; step++) {
        for (uint64_t k = 0; k < parts; k++) {
            esdm_dataspace space = box3(step, PART_ROWS * k, 0, 1, PART_ROWS, PART_COLUMNS);
            ok(esdm_read(find(c, "v"), &space, ESDM_TYPE_INT32, part, NULL, ERR));
            for (size_t i = 0; i < PART_ROWS * PART_COLUMNS; i++)
                check(part[i] == value_of(step, (int) k, i));
        }
    }
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
write_steps(void)
{
    esdm_container *c = make();
    for (uint64_t step = 0; step < STEPS; step++)
        put_step(c, step);
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
end_by_kill(void)
{
    esdm_container *c = make();
    if (rank == 0)
        let_go();
    put_step(c, 0);
    ok(esdm_container_commit(c, NULL, ERR));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        check(unlink(getenv("THROTTLED_HOLD")) == 0);
        puts("1");
        fflush(stdout);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (uint64_t step = 1; step < STEPS; step++)
        put_step(c, step);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size / 2)
        raise(SIGKILL);
    if (esdm_container_commit(c, NULL, ERR) == ESDM_OK && rank == 0)
        puts("2");
}

static void
repair(void)
{
    char who[32];
    esdm_container *c = make();
    snprintf(who, sizeof who, "rank %d", size - 1);
    for (uint64_t step = 0; step < STEPS; step++)
        put_step(c, step); /* no put fails */
    int failures = 0;
    esdm_status status;
    while ((status = esdm_container_commit(c, NULL, ERR)) != ESDM_OK) {
        check(status == ESDM_ENOSPC && strstr(test_error.message, who) != NULL);
        check(strstr(test_error.message, "nothing is committed") != NULL);
        failures++;
    }
    check(failures >= 1 && failures <= 2); /* of two appends */
    check(esdm_container_snapshot(c) == 1);
    expect_steps(c, STEPS); /* nothing was put again */
    ok(esdm_container_close(c, ERR));
}

static void
verify(const char *steps)
{
    esdm_container *c;
    esdm_session *own = open_session();
    ok(esdm_container_open(own, "behind", ESDM_OPEN_READ, 0, &c, ERR));
    expect_steps(c, strtoull(steps, NULL, 10));
    ok(esdm_container_close(c, ERR));
    esdm_session_close(own);
}

int
main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    if (strcmp(mode, "verify") == 0 && argc > 2) {
        verify(argv[2]);
        return 0;
    }
    if (strcmp(mode, "repaired") == 0) { /* before the plug-in is loaded */
        const char *last = getenv("OMPI_COMM_WORLD_RANK");
        last = last != NULL ? last : getenv("PMI_RANK");
        check(last != NULL);
        if (atoi(last) != atoi(getenv("BEHIND_FAULTY_RANK")))
            unsetenv("ESDM_FAULTY");
    }
    join();
    if (strcmp(mode, "steps") == 0)
        write_steps();
    else if (strcmp(mode, "killed") == 0)
        end_by_kill();
    else if (strcmp(mode, "repaired") == 0)
        repair();
    else
        die("what is '%s'?", mode);
    leave();
    return 0;
}
