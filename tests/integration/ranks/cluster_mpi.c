/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * A model on several nodes that keeps its data on their own disks; cluster.py starts it, with the
 * site in $ESDM_CONFIG.
 *
 *     cluster_mpi new N        makes the container, puts N steps and commits each
 *     cluster_mpi from K N     puts the steps from K to N or the last one that is there, whichever
 *                              is later, on as many ranks as there are now; commits each
 *     cluster_mpi read N       one process: the first N steps are right
 *     cluster_mpi verify N     one process: the first N steps are there, and no more
 *
 * Rank 0 prints how many steps are committed.
 */
#include "mpi_parts.h"

static uint64_t
steps_of(esdm_container *c)
{
    return esdm_dimension_length(find_dimension(c, "time"));
}

/* As many parts as ranks made the container; fewer ranks put several. */
static void
put_step(esdm_container *c, uint64_t step)
{
    esdm_dataset *v = find(c, "v");
    int parts = (int) (esdm_dimension_length(find_dimension(c, "y")) / PART_ROWS);
    for (int k = rank; k < parts; k += size) {
        esdm_dataspace space = part_of(step, (uint64_t) k);
        for (size_t i = 0; i < PART_ROWS * PART_COLUMNS; i++)
            part[i] = value_of(step, k, i);
        ok(esdm_write(v, &space, ESDM_TYPE_INT32, part, NULL, ERR));
    }
}

static void
write_steps(esdm_container *c, uint64_t first, uint64_t end)
{
    for (uint64_t step = first; step < end; step++) {
        put_step(c, step);
        ok(esdm_container_commit(c, NULL, ERR));
        if (rank == 0) {
            printf("%" PRIu64 "\n", step + 1);
            fflush(stdout);
        }
    }
    ok(esdm_container_close(c, ERR));
}

static void
go_on(uint64_t first, uint64_t end)
{
    esdm_container *c;
    ok(esdm_container_open_collective(session, comm, "model", ESDM_OPEN_WRITE, 0, &c, ERR));
    uint64_t there = steps_of(c);
    write_steps(c, first, there > end ? there : end);
}

static void
read_steps(uint64_t count)
{
    esdm_container *c;
    esdm_session *own = open_session();
    ok(esdm_container_open(own, "model", ESDM_OPEN_READ, 0, &c, ERR));
    check(steps_of(c) >= count);
    for (uint64_t step = 0; step < count; step++) {
        for (uint64_t k = 0; k < esdm_dimension_length(find_dimension(c, "y")) / PART_ROWS; k++)
            expect_part(c, step, (int) k, false);
    }
    ok(esdm_container_close(c, ERR));
    esdm_session_close(own);
}

int
main(int argc, char **argv)
{
    const char *mode = argc > 2 ? argv[1] : "";
    if (strcmp(mode, "verify") == 0)
        verify("model", argv[2]);
    else if (strcmp(mode, "read") == 0)
        read_steps(strtoull(argv[2], NULL, 10));
    else if (strcmp(mode, "new") == 0 || (strcmp(mode, "from") == 0 && argc > 3)) {
        join();
        if (mode[0] == 'n')
            write_steps(make("model"), 0, strtoull(argv[2], NULL, 10));
        else
            go_on(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
        leave();
    } else
        die("what is '%s'?", mode);
    return 0;
}
