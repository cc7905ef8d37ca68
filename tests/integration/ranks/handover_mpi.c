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
#include "mpi_parts.h"

#include <signal.h>

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

int
main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    int who = argc > 2 ? atoi(argv[2]) : 0;
    if (strcmp(mode, "verify") == 0 && argc > 2) {
        verify("steps", argv[2]);
        return 0;
    }
    if (strcmp(mode, "full") == 0)
        keep_faults_of(who);
    join();
    if (strcmp(mode, "steps") == 0)
        write_steps();
    else if (strcmp(mode, "behind") == 0)
        write_held("steps");
    else if (strcmp(mode, "killed") == 0)
        end_by_kill(who);
    else if (strcmp(mode, "full") == 0)
        fill_up(who);
    else
        die("what is '%s'?", mode);
    leave();
    return 0;
}
