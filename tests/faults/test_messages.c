/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* A message that fails on one rank while a commit of all ends: nobody waits for ever, all are told,
 * and what took place is there. */

#include "faulty_site.h"

#include <pthread.h>

#include "integration/ranks/thread_comm.h"

enum { RANKS = 3, COLUMNS = 3000, ROWS = 40, SECONDS = 300 };

/* ---- messages that fail ------------------------------------------------------------------- */

typedef enum op { BROADCAST, MAXIMUM, GATHER, SEND, RECEIVE, OPS } op;

/* The message gets through to the others; this rank is told that it did not. */
typedef struct failing_comm {
    esdm_comm base; /* first: cast back */
    esdm_comm *inner;
    uint64_t calls[OPS];
    uint64_t failing[OPS]; /* the call that fails; 0: none */
} failing_comm;

static esdm_status
end_of(esdm_comm *comm, op which, esdm_status status, esdm_error *err)
{
    failing_comm *f = (failing_comm *) comm;
    check(status == ESDM_OK);
    if (++f->calls[which] != f->failing[which])
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
    return end_of(comm, MAXIMUM, inner->ops->maximum(inner, values, count, err), err);
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
    ok(esdm_dimension_create(root, "row", RANKS * ROWS, &dims[0], ERR));
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
    size_t count = (size_t) RANKS * ROWS * COLUMNS;
    int32_t *data = malloc(count * sizeof *data);
    check(data != NULL);
    ok(esdm_container_open(session, "ranks", ESDM_OPEN_READ, 0, &container, ERR));
    ok(esdm_dataspace_init(&space, 2, (uint64_t[]){0, 0}, (uint64_t[]){RANKS * ROWS, COLUMNS},
                           ERR));
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
    char rank[16];
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

/* Rank 0 has not got the pages of rank `from`: nothing is published, and can be later. */
static void
fail_pages(esdm_session *session, esdm_comm *comm, int from)
{
    failing_comm *f = (failing_comm *) comm;
    esdm_container *container = make(session, comm);
    write_rows(container, comm->rank, 1);
    ok(esdm_container_commit(container, NULL, ERR));
    write_rows(container, comm->rank, 2);
    f->failing[RECEIVE] = comm->rank == 0 ? f->calls[RECEIVE] + (uint64_t) from : 0;
    fails(esdm_container_commit(container, NULL, ERR), ESDM_EIO, "the network is down");
    f->failing[RECEIVE] = 0;
    expect_all(session, 1);
    ok(esdm_container_close(container, ERR));
    expect_all(session, 2);
    thread_comm_meet(inner_of(comm));
}

/* The very last one: the commit is over on all ranks, one alone does not know of the others. */
static void
fail_last(esdm_session *session, esdm_comm *comm, int who)
{
    failing_comm *f = (failing_comm *) comm;
    uint64_t count = count_calls(session, comm, MAXIMUM);
    esdm_container *container = make(session, comm);
    write_rows(container, comm->rank, 1);
    ok(esdm_container_commit(container, NULL, ERR));
    write_rows(container, comm->rank, 2);
    f->failing[MAXIMUM] = comm->rank == who ? f->calls[MAXIMUM] + count : 0;
    if (comm->rank == who)
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

static void *
rank_main(void *user)
{
    esdm_comm *comm = failing_comm_new(user);
    esdm_session *session = open_here();
    for (int who = 0; who < RANKS; who++) {
        fail_message(session, comm, BROADCAST, who);
        if (who > 0) {
            fail_message(session, comm, SEND, who);
            fail_pages(session, comm, who);
        }
        fail_last(session, comm, who);
        fail_refusal(session, comm, who);
    }
    esdm_session_close(session);
    esdm_comm_unref(comm);
    return NULL;
}

int
main(void)
{
    pthread_t threads[RANKS];
    (void) alarm(SECONDS); /* ranks that wait for ever */
    describe_site();
    struct thread_world *world = thread_world_new(RANKS);
    for (int i = 0; i < RANKS; i++)
        check(pthread_create(&threads[i], NULL, rank_main, thread_comm_new(world, i)) == 0);
    for (int i = 0; i < RANKS; i++)
        check(pthread_join(threads[i], NULL) == 0);
    thread_world_free(world);
    return 0;
}
