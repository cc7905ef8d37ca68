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
#include "mpi_parts.h"

#include <signal.h>

static void
put_step(esdm_container *c, uint64_t step)
{
    ok(put_part(c, step, step % 2 == 0));
}

static void
end_by_kill(void)
{
    esdm_container *c = make("behind");
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
    esdm_container *c = make("behind");
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

int
main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    if (strcmp(mode, "verify") == 0 && argc > 2) {
        verify("behind", argv[2]);
        return 0;
    }
    if (strcmp(mode, "repaired") == 0)
        keep_faults_of(atoi(getenv("BEHIND_FAULTY_RANK")));
    join();
    if (strcmp(mode, "steps") == 0)
        write_held("behind");
    else if (strcmp(mode, "killed") == 0)
        end_by_kill();
    else if (strcmp(mode, "repaired") == 0)
        repair();
    else
        die("what is '%s'?", mode);
    leave();
    return 0;
}
