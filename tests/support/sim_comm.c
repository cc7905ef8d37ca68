/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "support/sim_comm.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

typedef enum call { NO_CALL, BROADCAST, MAXIMUM, SUMS, GATHER } call;

/* What a rank waits in: a call of all, a letter that is not taken, or one that has not come. */
typedef struct rank_state {
    esdm_comm base; /* first: cast back */
    esdm_comm_nodes nodes;
    sim_world *world;
    ucontext_t context;
    sim_counts counts;
    double since; /* when its own code went on */
    call waits;
    void *data;
    const void *input;
    void *more;
    size_t bytes; /* or a number of values */
    int root;
    const void *letter; /* NULL: none */
    int letter_to;
    int awaited; /* -1: none */
    bool done;
} rank_state;

struct sim_world {
    int size;
    int node_ranks;
    size_t stack_bytes;
    char *stacks;
    int *members; /* 0, 1, 2, … */
    int *leaders;
    rank_state *ranks;
    ucontext_t scheduler;
    int *ready; /* a ring */
    size_t first;
    size_t nready;
    int arrived; /* ranks in a call of all */
    int running;
    void (*function)(esdm_comm *comm, void *user);
    void *user;
};

static void
need(bool truth, const char *what)
{
    if (truth)
        return;
    fprintf(stderr, "simulated ranks: %s\n", what);
    abort();
}

static double
now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

static rank_state *
state_of(esdm_comm *comm)
{
    return (rank_state *) comm;
}

static void
make_ready(sim_world *w, int rank)
{
    need(w->nready < (size_t) w->size, "a rank is ready twice");
    w->ready[(w->first + w->nready++) % (size_t) w->size] = rank;
}

static rank_state *
enter(esdm_comm *comm)
{
    rank_state *r = state_of(comm);
    r->counts.cpu_s += now_s() - r->since;
    return r;
}

static esdm_status
leave(rank_state *r)
{
    r->since = now_s();
    return ESDM_OK;
}

static void
wait_here(rank_state *r)
{
    need(swapcontext(&r->context, &r->world->scheduler) == 0, "swapcontext");
}

/* ---- calls of all ranks ------------------------------------------------------------------- */

static void
finish_maximum(sim_world *w, size_t count)
{
    uint64_t *most = calloc(count + 1, sizeof *most);
    need(most != NULL, "no memory");
    for (int i = 0; i < w->size; i++) {
        const uint64_t *values = w->ranks[i].data;
        for (size_t k = 0; k < count; k++)
            most[k] = values[k] > most[k] ? values[k] : most[k];
    }
    for (int i = 0; i < w->size; i++)
        memcpy(w->ranks[i].data, most, count * sizeof *most);
    free(most);
}

static void
finish_sums(sim_world *w, size_t count)
{
    uint64_t *sum = calloc(count + 1, sizeof *sum);
    need(sum != NULL, "no memory");
    for (int i = 0; i < w->size; i++) {
        const uint64_t *values = w->ranks[i].input;
        memcpy(w->ranks[i].data, sum, count * sizeof *sum);
        for (size_t k = 0; k < count; k++)
            sum[k] += values[k];
    }
    for (int i = 0; i < w->size; i++)
        memcpy(w->ranks[i].more, sum, count * sizeof *sum);
    free(sum);
}

static void
finish(sim_world *w)
{
    const rank_state *last = &w->ranks[0];
    uint64_t depth = 0;
    uint64_t levels = 0;
    for (int i = 0; i < w->size; i++) {
        rank_state *r = &w->ranks[i];
        need(r->waits == last->waits, "ranks are in different calls");
        need(last->waits == SUMS || r->bytes == last->bytes, "ranks give different lengths");
        depth = r->counts.depth > depth ? r->counts.depth : depth;
        if (last->waits == BROADCAST && i != last->root)
            memcpy(r->data, w->ranks[last->root].data, last->bytes);
        for (int k = 0; last->waits == GATHER && k < w->size; k++)
            memcpy((char *) r->data + (size_t) k * last->bytes, w->ranks[k].input, last->bytes);
    }
    if (last->waits == MAXIMUM)
        finish_maximum(w, last->bytes);
    if (last->waits == SUMS)
        finish_sums(w, last->bytes);
    while (1 << levels < w->size)
        levels++;
    w->arrived = 0;
    for (int i = 0; i < w->size; i++) {
        w->ranks[i].waits = NO_CALL;
        w->ranks[i].counts.depth = depth + levels;
        make_ready(w, i);
    }
}

static esdm_status
call_all(rank_state *r, call which, size_t moved)
{
    sim_world *w = r->world;
    r->waits = which;
    r->counts.collectives++;
    r->counts.collective_bytes += moved;
    if (++w->arrived == w->size)
        finish(w);
    wait_here(r);
    return leave(r);
}

static esdm_status
broadcast(esdm_comm *comm, void *data, size_t bytes, int root, esdm_error *err)
{
    (void) err;
    rank_state *r = enter(comm);
    r->data = data;
    r->bytes = bytes;
    r->root = root;
    return call_all(r, BROADCAST, bytes);
}

static esdm_status
maximum(esdm_comm *comm, uint64_t *values, size_t count, esdm_error *err)
{
    (void) err;
    rank_state *r = enter(comm);
    r->data = values;
    r->bytes = count;
    return call_all(r, MAXIMUM, count * sizeof *values);
}

static esdm_status
sums(esdm_comm *comm, const uint64_t *values, size_t count, uint64_t *ret_lower, uint64_t *ret_all,
     esdm_error *err)
{
    (void) err;
    rank_state *r = enter(comm);
    r->input = values;
    r->data = ret_lower;
    r->more = ret_all;
    r->bytes = count;
    return call_all(r, SUMS, count * sizeof *values);
}

static esdm_status
gather(esdm_comm *comm, const void *data, size_t bytes, void *ret_all, esdm_error *err)
{
    (void) err;
    rank_state *r = enter(comm);
    r->input = data;
    r->data = ret_all;
    r->bytes = bytes;
    return call_all(r, GATHER, bytes * (size_t) comm->size);
}

/* ---- messages ----------------------------------------------------------------------------- */

static void
deliver(rank_state *from, rank_state *to)
{
    uint64_t depth = from->counts.depth > to->counts.depth ? from->counts.depth : to->counts.depth;
    need(from->bytes == to->bytes, "a message has another length than was asked for");
    memcpy(to->data, from->letter, from->bytes);
    from->letter = NULL;
    to->awaited = -1;
    from->counts.sent++;
    from->counts.sent_bytes += from->bytes;
    to->counts.received++;
    to->counts.received_bytes += from->bytes;
    from->counts.depth = to->counts.depth = depth + 1;
}

static esdm_status
send_bytes(esdm_comm *comm, const void *data, size_t bytes, int to, esdm_error *err)
{
    (void) err;
    rank_state *r = enter(comm);
    rank_state *other = &r->world->ranks[to];
    r->letter = data;
    r->letter_to = to;
    r->bytes = bytes;
    if (other->awaited == comm->rank) {
        deliver(r, other);
        make_ready(r->world, to);
    } else {
        wait_here(r);
    }
    return leave(r);
}

static esdm_status
receive_bytes(esdm_comm *comm, void *data, size_t bytes, int from, esdm_error *err)
{
    (void) err;
    rank_state *r = enter(comm);
    rank_state *other = &r->world->ranks[from];
    r->data = data;
    r->bytes = bytes;
    if (other->letter != NULL && other->letter_to == comm->rank) {
        deliver(other, r);
        make_ready(r->world, from);
    } else {
        r->awaited = from;
        wait_here(r);
    }
    return leave(r);
}

static void
release(esdm_comm *comm)
{
    (void) comm; /* part of the world */
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

int
sim_many(void)
{
    const char *size = getenv("ESDM_TEST_SIZE");
    return size != NULL && strcmp(size, "quick") == 0 ? 20000 : 100000;
}

/* ---- the world ---------------------------------------------------------------------------- */

sim_world *
sim_world_new(int size, int node_ranks, size_t stack_bytes)
{
    size_t count = (size_t) size;
    sim_world *w = calloc(1, sizeof *w);
    need(w != NULL, "no memory");
    w->size = size;
    w->node_ranks = node_ranks;
    w->stack_bytes = stack_bytes;
    w->stacks = mmap(NULL, count * stack_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    w->ranks = calloc(count, sizeof *w->ranks);
    w->ready = malloc(count * sizeof *w->ready);
    w->members = malloc(count * sizeof *w->members);
    w->leaders = malloc(count * sizeof *w->leaders);
    need(w->stacks != MAP_FAILED && w->ranks != NULL && w->ready != NULL && w->members != NULL &&
             w->leaders != NULL,
         "no memory");
    for (int i = 0; i < size; i++) {
        w->members[i] = i;
        w->leaders[i] = i * node_ranks;
    }
    return w;
}

void
sim_world_free(sim_world *w)
{
    munmap(w->stacks, (size_t) w->size * w->stack_bytes);
    free(w->ranks);
    free(w->ready);
    free(w->members);
    free(w->leaders);
    free(w);
}

static void
rank_main(unsigned high, unsigned low)
{
    sim_world *w = (sim_world *) ((uintptr_t) high << 32 | (uintptr_t) low);
    rank_state *r = &w->ranks[w->running];
    r->since = now_s();
    w->function(&r->base, w->user);
    r->counts.cpu_s += now_s() - r->since;
    r->done = true;
    wait_here(r);
}

static void
prepare(sim_world *w, int rank)
{
    rank_state *r = &w->ranks[rank];
    *r = (rank_state){.world = w, .awaited = -1};
    r->base = (esdm_comm){.ops = &ops, .rank = rank, .size = w->size, .references = 1};
    if (w->node_ranks > 0) {
        int first = rank - rank % w->node_ranks;
        int left = w->size - first;
        r->nodes = (esdm_comm_nodes){
            .here = w->members + first,
            .nhere = (size_t) (left < w->node_ranks ? left : w->node_ranks),
            .leaders = w->leaders,
            .nleaders = (size_t) ((w->size + w->node_ranks - 1) / w->node_ranks),
        };
        r->base.nodes = &r->nodes;
    }
    need(getcontext(&r->context) == 0, "getcontext");
    r->context.uc_stack.ss_sp = w->stacks + (size_t) rank * w->stack_bytes;
    r->context.uc_stack.ss_size = w->stack_bytes;
    uintptr_t address = (uintptr_t) w;
    makecontext(&r->context, (void (*)(void)) rank_main, 2, (unsigned) (address >> 32),
                (unsigned) address);
    make_ready(w, rank);
}

void
sim_run(sim_world *w, void (*function)(esdm_comm *comm, void *user), void *user)
{
    int done = 0;
    w->function = function;
    w->user = user;
    w->first = w->nready = 0;
    for (int i = 0; i < w->size; i++)
        prepare(w, i);
    while (w->nready > 0) {
        w->running = w->ready[w->first];
        w->first = (w->first + 1) % (size_t) w->size;
        w->nready--;
        need(swapcontext(&w->scheduler, &w->ranks[w->running].context) == 0, "swapcontext");
        done += w->ranks[w->running].done;
    }
    need(done == w->size, "the ranks wait for each other for ever");
}

const sim_counts *
sim_counts_of(const sim_world *w, int rank)
{
    return &w->ranks[rank].counts;
}

double
sim_cpu_s(esdm_comm *comm)
{
    const rank_state *r = state_of(comm);
    return r->counts.cpu_s + now_s() - r->since;
}

static uint64_t
larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

sim_counts
sim_most(const sim_world *w)
{
    sim_counts most = {0};
    for (int i = 0; i < w->size; i++) {
        const sim_counts *c = &w->ranks[i].counts;
        most.sent = larger(most.sent, c->sent);
        most.received = larger(most.received, c->received);
        most.sent_bytes = larger(most.sent_bytes, c->sent_bytes);
        most.received_bytes = larger(most.received_bytes, c->received_bytes);
        most.collectives = larger(most.collectives, c->collectives);
        most.collective_bytes = larger(most.collective_bytes, c->collective_bytes);
        most.depth = larger(most.depth, c->depth);
        most.cpu_s = c->cpu_s > most.cpu_s ? c->cpu_s : most.cpu_s;
    }
    return most;
}
