/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Messages between processes of a replay that share a container, in the memory that they share: an
 * esdm_comm of the same number of ranks as the program's. Records of ranks that do not fit together
 * (one waits for what no other one does) end the replay instead of holding it up.
 */
#include "esdm-replay/esdm-replay.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#define PIECE_BYTES 65536u
#define LOOK_MS     100
#define STUCK_LOOKS 100 /* in which no process has gone on */

typedef enum call { BROADCAST = 1, MAXIMUM, SUMS, GATHER } call;

/* What a rank says of the call of all in which it is. */
typedef struct place {
    guint32 call;
    guint32 root;
    guint64 bytes;
    /* A letter to this rank: */
    int wants; /* 1 + the rank from which it receives; 0: it does not */
    int full;  /* the piece is there */
    guint64 letter_bytes;
    char letter[PIECE_BYTES];
    char piece[PIECE_BYTES];
} place;

struct replay_meeting {
    pthread_mutex_t lock; /* guards all members */
    pthread_cond_t changed;
    replay_shared *shared;
    int size;
    int arrived;
    int gone; /* ranks that have done all they were to do */
    guint64 round;
    place places[];
};

typedef struct meeting_comm {
    esdm_comm base; /* first: cast back */
    replay_meeting *meeting;
} meeting_comm;

static replay_meeting *
meeting_of(const esdm_comm *comm)
{
    return ((const meeting_comm *) comm)->meeting;
}

gsize
replay_meeting_bytes(guint ranks)
{
    return sizeof(replay_meeting) + ranks * sizeof(place);
}

void
replay_meeting_init(replay_meeting *m, guint ranks, replay_shared *shared)
{
    pthread_mutexattr_t lock;
    pthread_condattr_t condition;
    m->shared = shared;
    m->size = (int) ranks;
    (void) pthread_mutexattr_init(&lock);
    (void) pthread_mutexattr_setpshared(&lock, PTHREAD_PROCESS_SHARED);
    (void) pthread_mutexattr_setrobust(&lock, PTHREAD_MUTEX_ROBUST);
    (void) pthread_mutex_init(&m->lock, &lock);
    (void) pthread_mutexattr_destroy(&lock);
    (void) pthread_condattr_init(&condition);
    (void) pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
    (void) pthread_condattr_setclock(&condition, CLOCK_MONOTONIC);
    (void) pthread_cond_init(&m->changed, &condition);
    (void) pthread_condattr_destroy(&condition);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static esdm_status
unfit(esdm_error *err, const char *how)
{
    return tool_error_set(err, ESDM_EIO, "the records of the ranks do not fit together: %s", how);
}

static bool
take(replay_meeting *m)
{
    int code = pthread_mutex_lock(&m->lock);
    if (code == EOWNERDEAD)
        (void) pthread_mutex_consistent(&m->lock);
    return code != ENOTRECOVERABLE;
}

static void
say(replay_meeting *m)
{
    (void) __atomic_fetch_add(&m->shared->steps, 1, __ATOMIC_SEQ_CST);
    (void) pthread_cond_broadcast(&m->changed);
}

/* With the lock held; once. @param looks counts those in which no process has gone on. */
static esdm_status
wait_some(replay_meeting *m, bool all, guint *looks, guint64 *seen, esdm_error *err)
{
    struct timespec until;
    (void) clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_MS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (pthread_cond_timedwait(&m->changed, &m->lock, &until) == EOWNERDEAD)
        (void) pthread_mutex_consistent(&m->lock);
    guint64 steps = __atomic_load_n(&m->shared->steps, __ATOMIC_SEQ_CST);
    *looks = steps == *seen ? *looks + 1 : 0;
    *seen = steps;
    if (__atomic_load_n(&m->shared->stop, __ATOMIC_SEQ_CST) != 0 || replay_stopped())
        return tool_error_set(err, ESDM_EIO, "another process has ended");
    if (all && m->gone > 0)
        return unfit(err, "one has ended while others still work together");
    return *looks > STUCK_LOOKS && replay_all_wait(m->shared)
               ? unfit(err, "each waits for another one")
               : ESDM_OK;
}

/* With the lock held, until all are here. */
static esdm_status
meet(replay_meeting *m, esdm_error *err)
{
    guint64 round = m->round;
    guint64 seen = 0;
    guint looks = 0;
    esdm_status st = ESDM_OK;
    if (++m->arrived == m->size) {
        m->arrived = 0;
        m->round++;
        say(m);
        return ESDM_OK;
    }
    replay_wait_begin(m->shared);
    while (m->round == round && st == ESDM_OK)
        st = wait_some(m, true, &looks, &seen, err);
    replay_wait_end(m->shared);
    return m->round != round ? ESDM_OK : st; /* the last one may have gone since */
}

/* ---- calls of all ---------------------------------------------------------------------------- */

/* What a call does with the pieces of all ranks. */
typedef void (*piece_visitor)(const esdm_comm *comm, gsize done, gsize bytes, void *user);

static esdm_status
check_same(const replay_meeting *m, const place *mine, esdm_error *err)
{
    for (int i = 0; i < m->size; i++) {
        const place *p = &m->places[i];
        if (p->call != mine->call || p->root != mine->root || p->bytes != mine->bytes)
            return unfit(err, "they do different things together");
    }
    return ESDM_OK;
}

/* Each rank shows `bytes` bytes, piece by piece. @param data NULL: nothing of its own. */
static esdm_status
show(esdm_comm *comm, call what, int root, const void *data, gsize bytes, piece_visitor visit,
     void *user, esdm_error *err)
{
    replay_meeting *m = meeting_of(comm);
    place *mine = &m->places[comm->rank];
    esdm_status st = ESDM_OK;
    gsize done = 0;
    if (!take(m))
        return tool_error_set(err, ESDM_EIO, "another process was killed");
    do {
        gsize some = MIN(bytes - done, PIECE_BYTES);
        mine->call = what;
        mine->root = (guint32) root;
        mine->bytes = bytes;
        if (data != NULL && some > 0)
            memcpy(mine->piece, (const char *) data + done, some);
        st = meet(m, err);
        if (st == ESDM_OK)
            st = check_same(m, mine, err);
        if (st == ESDM_OK && some > 0)
            visit(comm, done, some, user);
        if (st == ESDM_OK)
            st = meet(m, err);
        done += some;
    } while (st == ESDM_OK && done < bytes);
    (void) pthread_mutex_unlock(&m->lock);
    return st;
}

typedef struct broadcast_to {
    char *data;
    int root;
} broadcast_to;

static void
copy_root(const esdm_comm *comm, gsize done, gsize bytes, void *user)
{
    const broadcast_to *to = user;
    if (comm->rank != to->root)
        memcpy(to->data + done, meeting_of(comm)->places[to->root].piece, bytes);
}

static esdm_status
broadcast(esdm_comm *comm, void *data, size_t bytes, int root, esdm_error *err)
{
    broadcast_to to = {data, root};
    return show(comm, BROADCAST, root, comm->rank == root ? data : NULL, bytes, copy_root, &to,
                err);
}

static guint64
number_at(const place *p, gsize i)
{
    guint64 number;
    memcpy(&number, p->piece + i * sizeof number, sizeof number);
    return number;
}

static void
find_maximum(const esdm_comm *comm, gsize done, gsize bytes, void *user)
{
    const replay_meeting *m = meeting_of(comm);
    guint64 *values = (guint64 *) user + done / sizeof(guint64);
    for (gsize i = 0; i < bytes / sizeof(guint64); i++) {
        for (int rank = 0; rank < m->size; rank++)
            values[i] = MAX(values[i], number_at(&m->places[rank], i));
    }
}

static esdm_status
maximum(esdm_comm *comm, uint64_t *values, size_t count, esdm_error *err)
{
    return show(comm, MAXIMUM, 0, values, count * sizeof *values, find_maximum, values, err);
}

typedef struct sums_to {
    uint64_t *lower;
    uint64_t *all;
} sums_to;

static void
add_up(const esdm_comm *comm, gsize done, gsize bytes, void *user)
{
    const replay_meeting *m = meeting_of(comm);
    const sums_to *to = user;
    for (gsize i = 0; i < bytes / sizeof(guint64); i++) {
        gsize at = done / sizeof(guint64) + i;
        to->lower[at] = to->all[at] = 0;
        for (int rank = 0; rank < m->size; rank++) {
            to->lower[at] += rank < comm->rank ? number_at(&m->places[rank], i) : 0;
            to->all[at] += number_at(&m->places[rank], i);
        }
    }
}

static esdm_status
sums(esdm_comm *comm, const uint64_t *values, size_t count, uint64_t *ret_lower, uint64_t *ret_all,
     esdm_error *err)
{
    sums_to to = {ret_lower, ret_all};
    return show(comm, SUMS, 0, values, count * sizeof *values, add_up, &to, err);
}

typedef struct gather_to {
    char *all;
    gsize bytes; /* of each rank */
} gather_to;

static void
copy_all(const esdm_comm *comm, gsize done, gsize bytes, void *user)
{
    const replay_meeting *m = meeting_of(comm);
    const gather_to *to = user;
    for (int rank = 0; rank < m->size; rank++)
        memcpy(to->all + (gsize) rank * to->bytes + done, m->places[rank].piece, bytes);
}

static esdm_status
gather(esdm_comm *comm, const void *data, size_t bytes, void *ret_all, esdm_error *err)
{
    gather_to to = {ret_all, bytes};
    return show(comm, GATHER, 0, data, bytes, copy_all, &to, err);
}

/* ---- letters --------------------------------------------------------------------------------- */

static esdm_status
send(esdm_comm *comm, const void *data, size_t bytes, int to, esdm_error *err)
{
    replay_meeting *m = meeting_of(comm);
    place *box = &m->places[to];
    guint64 seen = 0;
    guint looks = 0;
    esdm_status st = ESDM_OK;
    gsize done = 0;
    if (!take(m))
        return tool_error_set(err, ESDM_EIO, "another process was killed");
    replay_wait_begin(m->shared);
    do {
        gsize some = MIN(bytes - done, PIECE_BYTES);
        while (st == ESDM_OK && (box->wants != comm->rank + 1 || box->full != 0))
            st = wait_some(m, false, &looks, &seen, err);
        if (st == ESDM_OK) {
            if (some > 0)
                memcpy(box->letter, (const char *) data + done, some);
            box->letter_bytes = bytes;
            box->full = 1;
            say(m);
        }
        done += some;
    } while (st == ESDM_OK && done < bytes);
    replay_wait_end(m->shared);
    (void) pthread_mutex_unlock(&m->lock);
    return st;
}

static esdm_status
receive(esdm_comm *comm, void *data, size_t bytes, int from, esdm_error *err)
{
    replay_meeting *m = meeting_of(comm);
    place *box = &m->places[comm->rank];
    guint64 seen = 0;
    guint looks = 0;
    esdm_status st = ESDM_OK;
    gsize done = 0;
    if (!take(m))
        return tool_error_set(err, ESDM_EIO, "another process was killed");
    replay_wait_begin(m->shared);
    box->wants = from + 1;
    say(m);
    do {
        gsize some = MIN(bytes - done, PIECE_BYTES);
        while (st == ESDM_OK && box->full == 0)
            st = wait_some(m, false, &looks, &seen, err);
        if (st == ESDM_OK && box->letter_bytes != bytes)
            st = unfit(err, "a message has another length");
        if (st == ESDM_OK) {
            if (some > 0)
                memcpy((char *) data + done, box->letter, some);
            box->full = 0;
            done += some;
            if (done == bytes)
                box->wants = 0;
            say(m);
        }
    } while (st == ESDM_OK && done < bytes);
    box->wants = 0;
    replay_wait_end(m->shared);
    (void) pthread_mutex_unlock(&m->lock);
    return st;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void
release(esdm_comm *comm)
{
    g_free(comm);
}

static const esdm_comm_ops ops = {.broadcast = broadcast,
                                  .maximum = maximum,
                                  .sums = sums,
                                  .gather = gather,
                                  .send = send,
                                  .receive = receive,
                                  .release = release};

esdm_comm *
replay_meeting_comm(replay_meeting *m, guint rank)
{
    meeting_comm *comm = g_new0(meeting_comm, 1);
    comm->base = (esdm_comm){.ops = &ops, .rank = (int) rank, .size = m->size, .references = 1};
    comm->meeting = m;
    return &comm->base;
}

void
replay_meeting_leave(replay_meeting *m)
{
    if (!take(m))
        return;
    m->gone++;
    say(m);
    (void) pthread_mutex_unlock(&m->lock);
}
