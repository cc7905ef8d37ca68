/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* A message that fails on one rank while a commit of all ends: nobody waits for ever, all are told,
 * and what took place is there. */

#include "faulty_site.h"

#include <pthread.h>

#include "integration/ranks/thread_comm.h"

#ifdef __SANITIZE_THREAD__
/* A commit holds the lock of every dataset, and TSan's deadlock detector ends the process at 64. */
ESDM_API const char *__tsan_default_options(void);
const char *
__tsan_default_options(void)
{
    return "detect_deadlocks=0";
}
#endif

/* Of so many ranks, rank 9's pages go through rank 8. */
enum { FEW_RANKS = 3, RANKS_MAX = 10 };
enum { COLUMNS = 3000, ROWS = 40, SECONDS = 300 };

static int ranks = FEW_RANKS;

/* Datasets of which each has an index page, so many that a rank sends several batches of them. */
enum { MANY = 3000 };

/* ---- messages that fail ------------------------------------------------------------------- */

typedef enum op { BROADCAST, MAXIMUM, GATHER, SEND, RECEIVE, OPS } op;

/* The message gets through to the others; this rank is told that it did not. */
typedef struct failing_comm {
    esdm_comm base; /* first: cast back */
    esdm_comm *inner;
    uint64_t calls[OPS];
    uint64_t failing[OPS]; /* the call that fails; 0: none */
    uint64_t more[OPS];    /* calls that fail after that one */
} failing_comm;

static esdm_status
end_of(esdm_comm *comm, op which, esdm_status status, esdm_error *err)
{
    failing_comm *f = (failing_comm *) comm;
    check(status == ESDM_OK);
    uint64_t call = ++f->calls[which];
    uint64_t failing = f->failing[which];
    if (failing == 0 || call < failing || call > failing + f->more[which])
        return ESDM_OK;
    if (err != NULL) {
        *err = (esdm_error){.status = ESDM_EIO};
        snprintf(err->message, sizeof err->message, "the network is down");
    }
    return ESDM_EIO;
}

static esdm_comm *
inner_of(esdm_comm *comm)
{
    return ((failing_comm *) comm)->inner;
}

static esdm_status
broadcast(esdm_comm *comm, void *data, size_t bytes, int root, esdm_error *err)
{
    esdm_comm *inner = inner_of(comm);
    void *copy = malloc(bytes + 1);
    check(copy != NULL);
    memcpy(copy, data, bytes);
    esdm_status status = inner->ops->broadcast(inner, copy, bytes, root, err);
    status = end_of(comm, BROADCAST, status, err);
    if (status == ESDM_OK)
        memcpy(data, copy, bytes);
    free(copy);
    return status;
}

static esdm_status
maximum(esdm_comm *comm, uint64_t *values, size_t count, esdm_error *err)
{
    esdm_comm *inner = inner_of(comm);
    esdm_status status = inner->ops->maximum(inner, values, count, err);
    status = end_of(comm, MAXIMUM, status, err);
    if (status != ESDM_OK)
        memset(values, 0, count * sizeof *values);
    return status;
}

static esdm_status
sums(esdm_comm *comm, const uint64_t *values, size_t count, uint64_t *ret_lower, uint64_t *ret_all,
     esdm_error *err)
{
    esdm_comm *inner = inner_of(comm);
    return inner->ops->sums(inner, values, count, ret_lower, ret_all, err);
}

static esdm_status
gather(esdm_comm *comm, const void *data, size_t bytes, void *ret_all, esdm_error *err)
{
    esdm_comm *inner = inner_of(comm);
    return end_of(comm, GATHER, inner->ops->gather(inner, data, bytes, ret_all, err), err);
}

static esdm_status
send_bytes(esdm_comm *comm, const void *data, size_t bytes, int to, esdm_error *err)
{
    esdm_comm *inner = inner_of(comm);
    return end_of(comm, SEND, inner->ops->send(inner, data, bytes, to, err), err);
}

static esdm_status
receive_bytes(esdm_comm *comm, void *data, size_t bytes, int from, esdm_error *err)
{
    esdm_comm *inner = inner_of(comm);
    return end_of(comm, RECEIVE, inner->ops->receive(inner, data, bytes, from, err), err);
}

static void
release(esdm_comm *comm)
{
    esdm_comm_unref(inner_of(comm));
    free(comm);
}

static const esdm_comm_ops ops = {
    .broadcast = broadcast,
    .maximum = maximum,
    .sums = sums,
    .gather = gather,
    .send = send_bytes,
    .receive = receive_bytes,
    .release = release,
};

static esdm_comm *
failing_comm_new(esdm_comm *inner)
{
    failing_comm *f = calloc(1, sizeof *f);
    check(f != NULL);
    f->base = (esdm_comm){.ops = &ops, .rank = inner->rank, .size = inner->size, .references = 1};
    f->inner = inner;
    return &f->base;
}

/* ---- commits ------------------------------------------------------------------------------ */

static esdm_dataset *
find(esdm_container *container, const char *name)
{
    return esdm_group_dataset_find(esdm_container_root(container), name);
}

static void
write_rows(esdm_container *container, int rank, int32_t value)
{
    static const char *const names[] = {"a", "b"}; /* on either target */
    esdm_dataspace space;
    int32_t *data = malloc(sizeof *data * ROWS * COLUMNS);
    check(data != NULL);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        data[i] = value;
    ok(esdm_dataspace_init(&space, 2, (uint64_t[]){(uint64_t) rank * ROWS, 0},
                           (uint64_t[]){ROWS, COLUMNS}, ERR));
    for (int i = 0; i < 2; i++)
        ok(esdm_write(find(container, names[i]), &space, ESDM_TYPE_INT32, data, NULL, ERR));
    free(data);
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
    ok(esdm_dimension_create(root, "row", (uint64_t) ranks * ROWS, &dims[0], ERR));
    ok(esdm_dimension_create(root, "column", COLUMNS, &dims[1], ERR));
    ok(esdm_dataset_create(root, "a", ESDM_TYPE_INT32, 2, dims, &dataset, ERR));
    ok(esdm_dataset_create(root, "b", ESDM_TYPE_INT32, 2, dims, &dataset, ERR));
    return container;
}

/* All rows of the newest snapshot, as another process would read them. */
static void
expect_all(esdm_session *session, int32_t value)
{
    esdm_container *container;
    esdm_dataspace space;
    size_t count = (size_t) ranks * ROWS * COLUMNS;
    int32_t *data = malloc(count * sizeof *data);
    check(data != NULL);
    ok(esdm_container_open(session, "ranks", ESDM_OPEN_READ, 0, &container, ERR));
    ok(esdm_dataspace_init(&space, 2, (uint64_t[]){0, 0},
                           (uint64_t[]){(uint64_t) ranks * ROWS, COLUMNS}, ERR));
    for (int k = 0; k < 2; k++) {
        ok(esdm_read(find(container, k == 0 ? "a" : "b"), &space, ESDM_TYPE_INT32, data, NULL,
                     ERR));
        for (size_t i = 0; i < count; i++)
            check(data[i] == value);
    }
    ok(esdm_container_close(container, ERR));
    free(data);
}

/* Nothing collective is begun any more, so that nobody waits for one that does not come. */
static void
expect_parted(esdm_container *container)
{
    esdm_dataspace space;
    int32_t value = 0;
    ok(esdm_dataspace_init(&space, 2, (uint64_t[]){0, 0}, (uint64_t[]){1, 1}, ERR));
    fails(esdm_container_commit(container, NULL, ERR), ESDM_EIO, "open it again");
    fails(esdm_container_align(container, ERR), ESDM_EIO, "open it again");
    fails(esdm_container_refresh(container, ERR), ESDM_EIO, "open it again");
    fails(esdm_write_collective(find(container, "a"), &space, ESDM_TYPE_INT32, &value, NULL, ERR),
          ESDM_EIO, "open it again");
    fails(esdm_read_collective(find(container, "a"), &space, ESDM_TYPE_INT32, &value, NULL, ERR),
          ESDM_EIO, "open it again");
    fails(esdm_container_close(container, ERR), ESDM_EIO, "open it again");
}

/* What the second of two commits needs of a kind of message on rank `who`; that of the first may
 * be otherwise, as it has the structure. */
static uint64_t
count_calls(esdm_session *session, esdm_comm *comm, op which)
{
    failing_comm *f = (failing_comm *) comm;
    esdm_container *container = make(session, comm);
    write_rows(container, comm->rank, 1);
    ok(esdm_container_commit(container, NULL, ERR));
    write_rows(container, comm->rank, 2);
    uint64_t before = f->calls[which];
    ok(esdm_container_commit(container, NULL, ERR));
    uint64_t count = f->calls[which] - before;
    ok(esdm_container_close(container, ERR));
    return count;
}

/* The last message of that kind fails on rank `who`. */
static void
fail_message(esdm_session *session, esdm_comm *comm, op which, int who)
{
    failing_comm *f = (failing_comm *) comm;
    char rank[24];
    uint64_t count = count_calls(session, comm, which);
    esdm_container *container = make(session, comm);
    write_rows(container, comm->rank, 1);
    ok(esdm_container_commit(container, NULL, ERR));
    write_rows(container, comm->rank, 2);
    f->failing[which] = comm->rank == who ? f->calls[which] + count : 0;
    fails(esdm_container_commit(container, NULL, ERR), ESDM_EIO, "the network is down");
    snprintf(rank, sizeof rank, "rank %d: ", who);
    check(strstr(ERR->message, rank) != NULL);
    f->failing[which] = 0;
    expect_parted(container);
    thread_comm_meet(inner_of(comm));
    expect_all(session, 2);
    thread_comm_meet(inner_of(comm));
}

/* Rank `who` has not got the nth message with pages: nothing is published, and can be later. */
static void
fail_pages(esdm_session *session, esdm_comm *comm, int who, int nth)
{
    failing_comm *f = (failing_comm *) comm;
    esdm_container *container = make(session, comm);
    write_rows(container, comm->rank, 1);
    ok(esdm_container_commit(container, NULL, ERR));
    write_rows(container, comm->rank, 2);
    f->failing[RECEIVE] = comm->rank == who ? f->calls[RECEIVE] + (uint64_t) nth : 0;
    fails(esdm_container_commit(container, NULL, ERR), ESDM_EIO, "the network is down");
    f->failing[RECEIVE] = 0;
    thread_comm_meet(inner_of(comm));
    expect_all(session, 1);
    thread_comm_meet(inner_of(comm));
    ok(esdm_container_close(container, ERR));
    expect_all(session, 2);
    thread_comm_meet(inner_of(comm));
}

/* The very last one, and the one before: the commit is over on all ranks. One that misses both
 * answers does not know of the others. */
static void
fail_last(esdm_session *session, esdm_comm *comm, int who, uint64_t misses)
{
    failing_comm *f = (failing_comm *) comm;
    uint64_t count = count_calls(session, comm, MAXIMUM);
    esdm_container *container = make(session, comm);
    write_rows(container, comm->rank, 1);
    ok(esdm_container_commit(container, NULL, ERR));
    write_rows(container, comm->rank, 2);
    f->failing[MAXIMUM] = comm->rank == who ? f->calls[MAXIMUM] + count - 1 : 0;
    f->more[MAXIMUM] = misses - 1;
    if (comm->rank == who && misses > 1)
        fails(esdm_container_commit(container, NULL, ERR), ESDM_EIO, "the network is down");
    else
        ok(esdm_container_commit(container, NULL, ERR));
    f->failing[MAXIMUM] = 0;
    write_rows(container, comm->rank, 3); /* and all go on */
    ok(esdm_container_commit(container, NULL, ERR));
    ok(esdm_container_close(container, ERR));
    expect_all(session, 3);
    thread_comm_meet(inner_of(comm));
}

/* One does not hear of the result, and one misses answers about that: of two, or of one of two. */
static void
fail_both(esdm_session *session, esdm_comm *comm, int unheard, int who)
{
    failing_comm *f = (failing_comm *) comm;
    uint64_t broadcasts = count_calls(session, comm, BROADCAST);
    uint64_t maxima = count_calls(session, comm, MAXIMUM);
    esdm_container *container = make(session, comm);
    write_rows(container, comm->rank, 1);
    ok(esdm_container_commit(container, NULL, ERR));
    write_rows(container, comm->rank, 2);
    f->failing[BROADCAST] = comm->rank == unheard ? f->calls[BROADCAST] + broadcasts : 0;
    f->failing[MAXIMUM] = comm->rank == who ? f->calls[MAXIMUM] + maxima - 1 : 0;
    f->more[MAXIMUM] = unheard == who;
    fails(esdm_container_commit(container, NULL, ERR), ESDM_EIO, "the network is down");
    f->failing[BROADCAST] = f->failing[MAXIMUM] = 0;
    expect_parted(container);
    thread_comm_meet(inner_of(comm));
    expect_all(session, 2);
    thread_comm_meet(inner_of(comm));
}

/* ---- several batches ---------------------------------------------------------------------- */

static void
write_many(esdm_container *container, int rank, int32_t value)
{
    esdm_dataspace space;
    char name[16];
    ok(esdm_dataspace_init(&space, 2, (uint64_t[]){(uint64_t) rank, 0}, (uint64_t[]){1, 1}, ERR));
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "v%d", i);
        ok(esdm_write(find(container, name), &space, ESDM_TYPE_INT32, &value, NULL, ERR));
    }
}

static void
expect_many(esdm_session *session, int32_t value)
{
    esdm_container *container;
    esdm_dataspace space;
    char name[16];
    int32_t data[RANKS_MAX];
    ok(esdm_container_open(session, "ranks", ESDM_OPEN_READ, 0, &container, ERR));
    ok(esdm_dataspace_init(&space, 2, (uint64_t[]){0, 0}, (uint64_t[]){(uint64_t) ranks, 1}, ERR));
    for (int i = 0; i < MANY; i += MANY / 10 - 1) {
        snprintf(name, sizeof name, "v%d", i);
        ok(esdm_read(find(container, name), &space, ESDM_TYPE_INT32, data, NULL, ERR));
        for (int r = 0; r < ranks; r++)
            check(data[r] == value);
    }
    ok(esdm_container_close(container, ERR));
}

/* A message in the middle of the pages of rank 1 fails: on that rank, which goes on, or on rank 0,
 * which takes what follows all the same. */
static void
fail_batch(esdm_session *session, esdm_comm *comm, op which, uint64_t nth)
{
    failing_comm *f = (failing_comm *) comm;
    int who = which == SEND ? 1 : 0;
    esdm_container *container = make(session, comm);
    esdm_group *root = esdm_container_root(container);
    esdm_dimension *dims[2] = {esdm_group_dimension_find(root, "row"),
                               esdm_group_dimension_find(root, "column")};
    for (int i = 0; i < MANY; i++) {
        esdm_dataset *dataset;
        char name[16];
        snprintf(name, sizeof name, "v%d", i);
        ok(esdm_dataset_create(root, name, ESDM_TYPE_INT32, 2, dims, &dataset, ERR));
    }
    write_many(container, comm->rank, 1);
    uint64_t before = f->calls[SEND];
    ok(esdm_container_commit(container, NULL, ERR));
    /* a batch of head and four parts, one of head and parts: */
    check(comm->rank == 0 || f->calls[SEND] - before >= 7);
    write_many(container, comm->rank, 2);
    f->failing[which] = comm->rank == who ? f->calls[which] + nth : 0;
    fails(esdm_container_commit(container, NULL, ERR), ESDM_EIO, "the network is down");
    f->failing[which] = 0;
    if (which == SEND)
        expect_parted(container);
    thread_comm_meet(inner_of(comm));
    expect_many(session, which == SEND ? 2 : 1);
    thread_comm_meet(inner_of(comm));
    if (which == RECEIVE) {
        ok(esdm_container_close(container, ERR));
        expect_many(session, 2);
        thread_comm_meet(inner_of(comm));
    }
}

/* ---- pages that are sent twice ------------------------------------------------------------ */

/* A commit that another writer's comes before. Then rank 0 publishes again if it was about to merge
 * pages, else all fail. */
static esdm_status
commit_late(esdm_container *container, esdm_comm *comm)
{
    thread_comm_meet(inner_of(comm));
    if (comm->rank == 0)
        arm_meta(ESDM_FAULTY_COMMIT, 1, 1, ESDM_FAULTY_META_REFUSE);
    thread_comm_meet(inner_of(comm));
    return esdm_container_commit(container, NULL, ERR);
}

/* The same commits as often as it takes until pages are sent twice. The next time a rank misses
 * the answers after the first time. */
static void
fail_again(esdm_session *session, esdm_comm *comm, int who)
{
    failing_comm *f = (failing_comm *) comm;
    int commits = 0;
    uint64_t maxima = 0;
    for (int round = 0; round < 2; round++) {
        esdm_container *container = make(session, comm);
        esdm_status status = ESDM_ECONFLICT;
        int commit = 0;
        while (status == ESDM_ECONFLICT && commit < 100) {
            write_rows(container, comm->rank, ++commit);
            uint64_t before = f->calls[MAXIMUM];
            if (commit == commits && comm->rank == who) {
                f->failing[MAXIMUM] = before + maxima - 3;
                f->more[MAXIMUM] = 1;
            }
            status = commit_late(container, comm);
            if (status == ESDM_ECONFLICT)
                ok(esdm_container_commit(container, NULL, ERR));
            if (round == 0)
                maxima = f->calls[MAXIMUM] - before;
        }
        f->failing[MAXIMUM] = 0;
        check(status == (round == 0 ? ESDM_OK : ESDM_EIO));
        check(round == 0 || commit == commits);
        if (round > 0)
            expect_parted(container);
        else
            ok(esdm_container_close(container, ERR));
        thread_comm_meet(inner_of(comm));
        expect_all(session, commit);
        thread_comm_meet(inner_of(comm));
        commits = commit;
    }
}

/* Rank 0 cannot publish and one does not hear of that. */
static void
fail_refusal(esdm_session *session, esdm_comm *comm, int who)
{
    failing_comm *f = (failing_comm *) comm;
    uint64_t count = count_calls(session, comm, BROADCAST);
    esdm_container *container = make(session, comm);
    write_rows(container, comm->rank, 1);
    ok(esdm_container_commit(container, NULL, ERR));
    write_rows(container, comm->rank, 2);
    thread_comm_meet(inner_of(comm));
    if (comm->rank == 0)
        arm_meta(ESDM_FAULTY_COMMIT, 1, 1, ESDM_FAULTY_META_FAIL);
    thread_comm_meet(inner_of(comm));
    f->failing[BROADCAST] = comm->rank == who ? f->calls[BROADCAST] + count : 0;
    fails(esdm_container_commit(container, NULL, ERR), ESDM_EIO, "");
    f->failing[BROADCAST] = 0;
    expect_parted(container);
    thread_comm_meet(inner_of(comm));
    expect_all(session, 1);
    thread_comm_meet(inner_of(comm));
}

/* Of the three batches a sanitizer, which is slow, sees one, another one with each commit. */
static bool
is_drawn(uint64_t nth)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    const char *seed = getenv("ESDM_TEST_SEED");
    return strtoull(seed != NULL ? seed : "1", NULL, 10) % 3 == nth - 1;
#else
    return nth > 0;
#endif
}

static void *
rank_main(void *user)
{
    esdm_comm *comm = failing_comm_new(user);
    esdm_session *session = open_here();
    for (int who = 0; who < ranks; who++) {
        fail_message(session, comm, BROADCAST, who);
        if (who > 0) {
            fail_message(session, comm, SEND, who);
            fail_pages(session, comm, 0, who);
        }
        fail_last(session, comm, who, 1);
        fail_last(session, comm, who, 2);
        fail_both(session, comm, who, (who + 1) % ranks);
        fail_both(session, comm, who, who);
        fail_refusal(session, comm, who);
        fail_again(session, comm, who);
    }
    for (uint64_t nth = 1; nth <= 3; nth++)
        if (is_drawn(nth))
            fail_batch(session, comm, SEND, nth);
    fail_batch(session, comm, RECEIVE, 2);
    esdm_session_close(session);
    esdm_comm_unref(comm);
    return NULL;
}

/* Pages that come by way of another rank: it does not hear of them, or is not heard. */
static void *
rank_below(void *user)
{
    esdm_comm *comm = failing_comm_new(user);
    esdm_session *session = open_here();
    fail_message(session, comm, SEND, 9);
    fail_message(session, comm, SEND, 8);
    fail_pages(session, comm, 8, 1);
    fail_pages(session, comm, 0, 8);
    fail_last(session, comm, 9, 2);
    fail_refusal(session, comm, 9);
    fail_again(session, comm, 9);
    esdm_session_close(session);
    esdm_comm_unref(comm);
    return NULL;
}

static void
run(int count, void *(*rank_function)(void *user))
{
    pthread_t threads[RANKS_MAX];
    ranks = count;
    struct thread_world *world = thread_world_new(count);
    for (int i = 0; i < count; i++)
        check(pthread_create(&threads[i], NULL, rank_function, thread_comm_new(world, i)) == 0);
    for (int i = 0; i < count; i++)
        check(pthread_join(threads[i], NULL) == 0);
    thread_world_free(world);
}

int
main(void)
{
    (void) alarm(SECONDS); /* ranks that wait for ever */
    describe_site();
    run(FEW_RANKS, rank_main);
    run(RANKS_MAX, rank_below);
    return 0;
}
