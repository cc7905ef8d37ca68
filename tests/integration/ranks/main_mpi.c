/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Ranks over MPI, at the site of $ESDM_CONFIG; mpi.py starts it.
 *
 *     ranks_mpi scenarios [NAME]   all scenarios, and those that need MPI
 *     ranks_mpi lost               the last rank cannot store its data ($ESDM_FAULTY_RANK)
 *     ranks_mpi killed SECONDS     commits steps until it is killed; says which ones, on rank 0
 *     ranks_mpi ends N             all ranks are killed as soon as they have committed N steps
 *     ranks_mpi late N             rank 0 closes a container, tells it by a line, waits for one;
 * then the others read it. N ranks count as those of a node ranks_mpi verify STEP        one
 * process: every step up to the last one is whole, STEP is there
 */
#include "esdm/mpi.h"
#include "ranks.h"

#include <signal.h>
#include <time.h>

static rank_state
join(MPI_Comm communicator)
{
    rank_state r;
    ok(esdm_mpi_comm_new(communicator, &r.comm, ERR));
    r.rank = r.comm->rank;
    r.size = r.comm->size;
    r.session = open_session();
    return r;
}

static void
leave(rank_state *r)
{
    esdm_comm_unref(r->comm);
    esdm_session_close(r->session);
}

static void
write_own_rows(rank_state *r, esdm_container *c, uint64_t t, int32_t value)
{
    put(find(c, "v"), box3(t, (uint64_t) ROWS * (uint64_t) r->rank, 0, 1, ROWS, COLUMNS), value,
        t % 2 == 0);
}

/* ---- scenarios that need MPI ---------------------------------------------------------------- */

static void
containers_are_made_on_communicators(rank_state *r)
{
    esdm_container *c;
    esdm_dimension *d;
    esdm_dataset *v;
    ok(esdm_mpi_container_create(r->session, MPI_COMM_WORLD, "mpi/c", ESDM_CREATE_REPLACE, &c,
                                 ERR));
    esdm_group *root = esdm_container_root(c);
    ok(esdm_dimension_create(root, "d", (uint64_t) r->size, &d, ERR));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_INT32, 1, &d, &v, ERR));
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, 1, (uint64_t[]){(uint64_t) r->rank}, (uint64_t[]){1}, ERR));
    ok(esdm_write(v, &space, ESDM_TYPE_INT32, &r->rank, NULL, ERR));
    ok(esdm_container_close(c, ERR));
    ok(esdm_mpi_container_open(r->session, MPI_COMM_WORLD, "mpi/c", ESDM_OPEN_READ, 0, &c, ERR));
    for (uint64_t i = 0; i < (uint64_t) r->size; i++) {
        int32_t value = -1;
        ok(esdm_dataspace_init(&space, 1, &i, (uint64_t[]){1}, ERR));
        ok(esdm_read(find(c, "v"), &space, ESDM_TYPE_INT32, &value, NULL, ERR));
        check(value == (int32_t) i);
    }
    ok(esdm_container_close(c, ERR));
    fails(esdm_mpi_container_open(r->session, MPI_COMM_NULL, "mpi/c", ESDM_OPEN_READ, 0, &c, ERR),
          ESDM_EINVAL, "MPI_COMM_NULL");
    fails(
        esdm_mpi_container_open(r->session, MPI_COMM_WORLD, "mpi/none", ESDM_OPEN_READ, 0, &c, ERR),
        ESDM_ENOENT, "mpi/none");
}

/* MPICH takes the largest of unsigned numbers for signed ones. All processes of a test share a
 * node.
 */
static void
ranks_know_large_numbers_and_their_node(rank_state *r)
{
    uint64_t numbers[3] = {~(uint64_t) r->rank, (uint64_t) r->rank, (uint64_t) r->rank << 62};
    ok(r->comm->ops->maximum(r->comm, numbers, 3, ERR));
    check(numbers[0] == UINT64_MAX && numbers[1] == (uint64_t) r->size - 1);
    check(numbers[2] == (uint64_t) (r->size > 3 ? 3 : r->size - 1) << 62);
    for (int turn = 0; turn < 2; turn++) {
        esdm_comm *comm = NULL;
        ok(esdm_mpi_comm_new(MPI_COMM_WORLD, &comm, ERR));
        check(comm->nodes != NULL && comm->nodes->nhere == (size_t) r->size);
        check(comm->nodes->here[r->rank] == r->rank);
        check(comm->nodes->nleaders == 1 && comm->nodes->leaders[0] == 0);
        esdm_comm_unref(comm);
    }
}

/* Halves of the ranks write two containers at once; meanwhile all write a third one. */
static void
sub_communicators_work_at_once(rank_state *r)
{
    MPI_Comm half;
    char name[32];
    MPI_Comm_split(MPI_COMM_WORLD, r->rank % 2, -r->rank, &half);
    rank_state h = join(half); /* in the reverse order */
    snprintf(name, sizeof name, "mpi/half%d", r->rank % 2);
    esdm_container *all = create(r, "mpi/all", ESDM_CREATE_REPLACE);
    esdm_container *c = create(&h, name, ESDM_CREATE_REPLACE);
    for (uint64_t t = 0; t < 6; t++) {
        write_own_rows(&h, c, t, h.rank);
        if (t % 3 == (uint64_t) r->rank % 2) /* at other times than the other half */
            ok(esdm_container_commit(c, NULL, ERR));
        write_own_rows(r, all, t, r->rank);
    }
    ok(esdm_container_close(c, ERR));
    ok(esdm_container_close(all, ERR));
    c = open_all(&h, name, ESDM_OPEN_READ);
    for (uint64_t rank = 0; rank < (uint64_t) h.size; rank++)
        expect(find(c, "v"), box3(0, rank * ROWS, 0, 6, ROWS, COLUMNS), (int32_t) rank, true);
    ok(esdm_container_close(c, ERR));
    leave(&h);
    MPI_Comm_free(&half);
    all = open_all(r, "mpi/all", ESDM_OPEN_READ);
    for (uint64_t rank = 0; rank < (uint64_t) r->size; rank++)
        expect(find(all, "v"), box3(0, rank * ROWS, 0, 6, ROWS, COLUMNS), (int32_t) rank, true);
    ok(esdm_container_close(all, ERR));
}

/* The user's communicator may go before the container does. */
static void
containers_outlive_the_communicator(rank_state *r)
{
    MPI_Comm mine;
    esdm_container *c;
    MPI_Comm_dup(MPI_COMM_WORLD, &mine);
    ok(esdm_mpi_container_open(r->session, mine, "mpi/all", ESDM_OPEN_WRITE, 0, &c, ERR));
    MPI_Comm_free(&mine);
    write_own_rows(r, c, 6, 6);
    ok(esdm_container_close(c, ERR));
}

static const named_scenario mpi_scenarios[] = {
    {"mpi.containers_are_made_on_communicators", containers_are_made_on_communicators},
    {"mpi.numbers", ranks_know_large_numbers_and_their_node},
    {"mpi.sub_communicators_work_at_once", sub_communicators_work_at_once},
    {"mpi.containers_outlive_the_communicator", containers_outlive_the_communicator},
    {NULL, NULL},
};

static void
run_all(const char *only)
{
    rank_state r = join(MPI_COMM_WORLD);
    run_scenarios(&r, only);
    for (const named_scenario *s = mpi_scenarios; s->name != NULL; s++) {
        if (only != NULL && strncmp(s->name, only, strlen(only)) != 0)
            continue;
        if (r.rank == 0)
            puts(s->name);
        s->run(&r);
        meet(&r);
    }
    leave(&r);
}

/* ---- a rank that cannot store its data ------------------------------------------------------ */

static void
lose_data(void)
{
    int rank;
    int size;
    static int32_t field[512][1024]; /* 2 MiB: goes to a pack at once */
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 512; i++) /* equal values would take no pack */
        field[i][i] = 1;
    if (rank == size - 1)
        setenv("ESDM_FAULTY", "append:2+0:fail:ENOSPC", 1);
    rank_state r = join(MPI_COMM_WORLD);
    esdm_container *c;
    esdm_dimension *d[3];
    esdm_dataset *v;
    ok(esdm_container_create_collective(r.session, r.comm, "lost", ESDM_CREATE_REPLACE, &c, ERR));
    esdm_group *root = esdm_container_root(c);
    ok(esdm_dimension_create(root, "time", ESDM_UNLIMITED, &d[0], ERR));
    ok(esdm_dimension_create(root, "y", 512 * (uint64_t) size, &d[1], ERR));
    ok(esdm_dimension_create(root, "x", 1024, &d[2], ERR));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_INT32, 3, d, &v, ERR));
    for (uint64_t t = 0; t < 3; t++) {
        esdm_dataspace space = box3(t, 512 * (uint64_t) rank, 0, 1, 512, 1024);
        if (t > 0 && rank == size - 1)
            fails(esdm_write_collective(v, &space, ESDM_TYPE_INT32, field, NULL, ERR), ESDM_ENOSPC,
                  "");
        else
            ok(esdm_write_collective(v, &space, ESDM_TYPE_INT32, field, NULL, ERR));
        if (t == 0)
            ok(esdm_container_commit(c, NULL, ERR));
    }
    char who[32];
    snprintf(who, sizeof who, "rank %d", size - 1);
    fails(esdm_container_commit(c, NULL, ERR), ESDM_ENOSPC, size > 1 ? who : "");
    fails(esdm_container_close(c, ERR), ESDM_ENOSPC, "nothing is committed");
    ok(esdm_container_open(r.session, "lost", ESDM_OPEN_READ, 0, &c, ERR));
    check(esdm_container_snapshot(c) == 1);
    check(esdm_dimension_length(find_dimension(c, "time")) == 1);
    ok(esdm_container_close(c, ERR));
    leave(&r);
}

/* ---- a rank that closes first ------------------------------------------------------------- */

/* Tells the comm of nodes that are not there. */
static void
pretend_nodes(esdm_comm *comm, int ranks)
{
    enum { RANKS_MOST = 64 };
    static int here[RANKS_MOST];
    static int leaders[RANKS_MOST];
    static esdm_comm_nodes nodes;
    check(ranks > 0 && comm->size <= RANKS_MOST);
    int first = comm->rank / ranks * ranks;
    nodes = (esdm_comm_nodes){.here = here, .leaders = leaders};
    for (int i = first; i < first + ranks && i < comm->size; i++)
        here[nodes.nhere++] = i;
    for (int i = 0; i < comm->size; i += ranks)
        leaders[nodes.nleaders++] = i;
    comm->nodes = &nodes;
}

static void
read_late(int node_ranks)
{
    static int32_t field[512][1024];
    char line[16];
    rank_state r = {0};
    esdm_container *c;
    esdm_dimension *d[2];
    esdm_dataset *v;
    ok(esdm_mpi_comm_new(MPI_COMM_WORLD, &r.comm, ERR));
    pretend_nodes(r.comm, node_ranks);
    ok(esdm_session_open_collective(NULL, r.comm, NULL, &r.session, ERR));
    ok(esdm_container_create_collective(r.session, r.comm, "late", ESDM_CREATE_REPLACE, &c, ERR));
    esdm_group *root = esdm_container_root(c);
    ok(esdm_dimension_create(root, "y", 512 * (uint64_t) r.comm->size, &d[0], ERR));
    ok(esdm_dimension_create(root, "x", 1024, &d[1], ERR));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_INT32, 2, d, &v, ERR));
    esdm_dataspace space;
    const uint64_t size[2] = {512, 1024};
    const uint64_t first[2] = {512 * (uint64_t) r.comm->rank, 0};
    ok(esdm_dataspace_init(&space, 2, first, size, ERR));
    for (int i = 0; i < 512; i++)
        field[i][i] = 1 + r.comm->rank;
    ok(esdm_write(v, &space, ESDM_TYPE_INT32, field, NULL, ERR));
    ok(esdm_container_close(c, ERR));
    ok(esdm_container_open_collective(r.session, r.comm, "late", ESDM_OPEN_READ, 0, &c, ERR));
    if (r.comm->rank == 0) {
        ok(esdm_container_close(c, ERR));
        puts("ready");
        fflush(stdout);
        check(fgets(line, sizeof line, stdin) != NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (r.comm->rank != 0) {
        ok(esdm_read(find(c, "v"), &space, ESDM_TYPE_INT32, field, NULL, ERR));
        check(field[511][511] == 1 + r.comm->rank);
        ok(esdm_container_close(c, ERR));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    esdm_comm_unref(r.comm);
    esdm_session_close(r.session);
}

/* ---- ranks that are killed ------------------------------------------------------------------ */

static void
commit_until_killed(double seconds)
{
    rank_state r = join(MPI_COMM_WORLD);
    esdm_container *c = create(&r, "killed", ESDM_CREATE_REPLACE);
    double end = MPI_Wtime() + seconds;
    for (uint64_t t = 0;; t++) {
        write_own_rows(&r, c, t, (int32_t) t + 1);
        if (r.rank == r.size / 2 && MPI_Wtime() > end)
            raise(SIGKILL);
        ok(esdm_container_commit(c, NULL, ERR));
        if (r.rank == 0) {
            printf("%" PRIu64 "\n", t);
            fflush(stdout);
        }
    }
}

static void
end_after_commits(int64_t steps)
{
    rank_state r = join(MPI_COMM_WORLD);
    esdm_container *c = create(&r, "ends", ESDM_CREATE_REPLACE);
    for (int64_t t = 0; t < steps; t++) {
        write_own_rows(&r, c, (uint64_t) t, (int32_t) (1000 * t) + r.rank);
        ok(esdm_container_commit(c, NULL, ERR));
    }
    raise(SIGKILL);
}

static void
verify(const char *step)
{
    esdm_session *session = open_session();
    esdm_container *c;
    esdm_status status = esdm_container_open(session, "killed", ESDM_OPEN_READ, 0, &c, ERR);
    if (status == ESDM_ENOENT && strtoll(step, NULL, 10) < 0) {
        esdm_session_close(session);
        return; /* killed before the first commit */
    }
    ok(status);
    uint64_t steps = esdm_dimension_length(find_dimension(c, "time"));
    uint64_t rows = esdm_dimension_length(find_dimension(c, "y"));
    check((int64_t) steps > strtoll(step, NULL, 10));
    check(esdm_container_snapshot(c) == steps);
    for (uint64_t t = 0; t < steps; t++)
        expect(find(c, "v"), box3(t, 0, 0, 1, rows, COLUMNS), (int32_t) t + 1, false);
    ok(esdm_container_close(c, ERR));
    ok(esdm_container_open(session, "killed", ESDM_OPEN_WRITE, 0, &c, ERR)); /* the next writer */
    put(find(c, "v"), box3(steps, 0, 0, 1, 1, 1), 1, false);
    ok(esdm_container_close(c, ERR));
    esdm_session_close(session);
}

int
main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    esdm_comm *comm;
    if (strcmp(mode, "verify") == 0 && argc > 2) {
        verify(argv[2]);
        return 0;
    }
    fails(esdm_mpi_comm_new(MPI_COMM_WORLD, &comm, ERR), ESDM_EINVAL, "not initialised");
    check(MPI_Init(&argc, &argv) == MPI_SUCCESS);
    if (strcmp(mode, "scenarios") == 0)
        run_all(argc > 2 ? argv[2] : NULL);
    else if (strcmp(mode, "lost") == 0)
        lose_data();
    else if (strcmp(mode, "late") == 0 && argc > 2)
        read_late(atoi(argv[2]));
    else if (strcmp(mode, "ends") == 0 && argc > 2)
        end_after_commits(atoi(argv[2]));
    else if (strcmp(mode, "killed") == 0 && argc > 2)
        commit_until_killed(atof(argv[2]));
    else
        die("usage: see the top of main_mpi.c");
    MPI_Finalize();
    fails(esdm_mpi_comm_new(MPI_COMM_WORLD, &comm, ERR), ESDM_EINVAL, "finalised");
    return 0;
}
