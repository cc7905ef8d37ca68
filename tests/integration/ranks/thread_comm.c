/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "thread_comm.h"

#include <pthread.h>

#include "../testing.h"

enum { RANKS_MAX = 64 };

/* Where the ranks meet. */
struct thread_world {
    int size;
    pthread_barrier_t barrier;
    const void *slots[RANKS_MAX];
    pthread_mutex_t lock; /* guards letters */
    pthread_cond_t moved;
    const void *letters[RANKS_MAX][RANKS_MAX]; /* from, to; NULL: none */
    size_t letter_bytes[RANKS_MAX][RANKS_MAX];
};

typedef struct thread_world world;

typedef struct thread_comm {
    esdm_comm base;
    world *w;
} thread_comm;

static world *
world_of(const esdm_comm *comm)
{
    return ((const thread_comm *) comm)->w;
}

static void
wait_all(const esdm_comm *comm)
{
    (void) pthread_barrier_wait(&world_of(comm)->barrier);
}

static esdm_status
broadcast(esdm_comm *comm, void *data, size_t bytes, int root, esdm_error *err)
{
    world *w = world_of(comm);
    (void) err;
    if (comm->rank == root)
        w->slots[root] = data;
    wait_all(comm);
    if (comm->rank != root && bytes > 0)
        memcpy(data, w->slots[root], bytes);
    wait_all(comm);
    return ESDM_OK;
}

static esdm_status
sums(esdm_comm *comm, const uint64_t *values, size_t count, uint64_t *ret_lower, uint64_t *ret_all,
     esdm_error *err)
{
    world *w = world_of(comm);
    (void) err;
    w->slots[comm->rank] = values;
    wait_all(comm);
    for (size_t i = 0; i < count; i++) {
        ret_lower[i] = ret_all[i] = 0;
        for (int r = 0; r < comm->size; r++) {
            uint64_t value = ((const uint64_t *) w->slots[r])[i];
            ret_lower[i] += r < comm->rank ? value : 0;
            ret_all[i] += value;
        }
    }
    wait_all(comm);
    return ESDM_OK;
}

static esdm_status
gather(esdm_comm *comm, const void *data, size_t bytes, void *ret_all, esdm_error *err)
{
    world *w = world_of(comm);
    (void) err;
    w->slots[comm->rank] = data;
    wait_all(comm);
    for (int r = 0; r < comm->size; r++)
        memcpy((char *) ret_all + (size_t) r * bytes, w->slots[r], bytes);
    wait_all(comm);
    return ESDM_OK;
}

static esdm_status
maximum(esdm_comm *comm, uint64_t *values, size_t count, esdm_error *err)
{
    uint64_t *all = malloc((size_t) comm->size * count * sizeof *all + 1);
    check(all != NULL);
    esdm_status status = gather(comm, values, count * sizeof *values, all, err);
    for (size_t i = 0; i < (size_t) comm->size * count; i++)
        values[i % count] = all[i] > values[i % count] ? all[i] : values[i % count];
    free(all);
    return status;
}

static esdm_status
send_bytes(esdm_comm *comm, const void *data, size_t bytes, int to, esdm_error *err)
{
    world *w = world_of(comm);
    (void) err;
    pthread_mutex_lock(&w->lock);
    w->letters[comm->rank][to] = data;
    w->letter_bytes[comm->rank][to] = bytes;
    pthread_cond_broadcast(&w->moved);
    while (w->letters[comm->rank][to] != NULL)
        pthread_cond_wait(&w->moved, &w->lock);
    pthread_mutex_unlock(&w->lock);
    return ESDM_OK;
}

static esdm_status
receive_bytes(esdm_comm *comm, void *data, size_t bytes, int from, esdm_error *err)
{
    world *w = world_of(comm);
    (void) err;
    pthread_mutex_lock(&w->lock);
    while (w->letters[from][comm->rank] == NULL)
        pthread_cond_wait(&w->moved, &w->lock);
    check(w->letter_bytes[from][comm->rank] == bytes);
    memcpy(data, w->letters[from][comm->rank], bytes);
    w->letters[from][comm->rank] = NULL;
    pthread_cond_broadcast(&w->moved);
    pthread_mutex_unlock(&w->lock);
    return ESDM_OK;
}

static void
release(esdm_comm *comm)
{
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

struct thread_world *
thread_world_new(int size)
{
    world *w = calloc(1, sizeof *w);
    check(w != NULL && size >= 1 && size <= RANKS_MAX);
    w->size = size;
    pthread_barrier_init(&w->barrier, NULL, (unsigned) size);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->moved, NULL);
    return w;
}

void
thread_world_free(struct thread_world *w)
{
    pthread_barrier_destroy(&w->barrier);
    pthread_cond_destroy(&w->moved);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

esdm_comm *
thread_comm_new(struct thread_world *w, int rank)
{
    thread_comm *comm = calloc(1, sizeof *comm);
    check(comm != NULL && rank >= 0 && rank < w->size);
    comm->base = (esdm_comm){.ops = &ops, .rank = rank, .size = w->size, .references = 1};
    comm->w = w;
    return &comm->base;
}

void
thread_comm_meet(esdm_comm *comm)
{
    wait_all(comm);
}
