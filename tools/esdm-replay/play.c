/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * One process of the replay. Calls are made in the recorded order. Where several threads made them,
 * as many make them again: a call begins when all have ended that had ended before it began.
 */
#include "esdm-replay/esdm-replay.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define WORKERS_MOST 64u
#define WAIT_US      100
#define STUCK_US     10000000 /* in which no process has gone on */

typedef struct player player;

typedef struct worker {
    player *player;
    pthread_t thread;
    bool runs; /* else the main one works in its place */
    void *buffer;
    guint64 room;
    /* Guarded by the player's lock: */
    const replay_operation *next; /* NULL: it has nothing to do */
    guint64 number;
} worker;

struct player {
    const replay_player *p;
    esdm_session *session;
    esdm_container **open; /* by number of the handle; NULL: it is not open */
    guint64 last_end_ns;   /* of the record, so far */
    pthread_mutex_t lock;  /* guards the workers' next, ends, finished */
    pthread_cond_t changed;
    bool ends;
    bool alone;       /* all calls were those of one thread */
    guint8 *finished; /* of each operation */
    worker workers[WORKERS_MOST];
    GHashTable *by_thread; /* worker */
};

static guint64
now_ns(void)
{
    return (guint64) g_get_monotonic_time() * 1000;
}

/* ---- failures -------------------------------------------------------------------------------- */

static void
fail(const player *w, const replay_operation *o, const char *why)
{
    int nobody = 0;
    replay_shared *shared = w->p->shared;
    if (!__atomic_compare_exchange_n(&shared->failed, &nobody, (int) w->p->number + 1, false,
                                     __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return; /* what failed first is told */
    g_autofree char *file = tool_printable(o != NULL ? o->handle->file->name : "");
    if (o != NULL)
        (void) g_snprintf(shared->why, sizeof shared->why, "%s of '%s%s%s': %s",
                          replay_kind_name(o->kind), file, o->dataset != NULL ? "', '" : "",
                          o->dataset != NULL ? o->dataset->path : "", why);
    else
        (void) g_snprintf(shared->why, sizeof shared->why, "%s", why);
    __atomic_store_n(&shared->stop, 1, __ATOMIC_SEQ_CST);
}

static bool
stopped(const player *w)
{
    return __atomic_load_n(&w->p->shared->stop, __ATOMIC_SEQ_CST) != 0 || replay_stopped();
}

/* ---- calls ----------------------------------------------------------------------------------- */

static esdm_status
open_shared(player *w, const replay_handle *h, const char *name, esdm_container **ret,
            esdm_error *err)
{
    esdm_comm *comm = replay_meeting_comm(w->p->meetings[h->meeting - 1], h->rank);
    esdm_status st =
        h->creates ? esdm_container_create_collective(w->session, comm, name, ESDM_CREATE_REPLACE,
                                                      ret, err)
                   : esdm_container_open_collective(w->session, comm, name,
                                                    h->writes ? ESDM_OPEN_WRITE : ESDM_OPEN_READ,
                                                    ESDM_SNAPSHOT_LATEST, ret, err);
    esdm_comm_unref(comm);
    return st == ESDM_OK && h->creates ? replay_define(*ret, h->datasets, false, err) : st;
}

static esdm_status
open_handle(player *w, const replay_handle *h, esdm_container **ret, esdm_error *err)
{
    g_autofree char *name = replay_name(w->p->options, h->file);
    esdm_open_mode mode = h->writes ? ESDM_OPEN_WRITE : ESDM_OPEN_READ;
    if (h->meeting > 0)
        return open_shared(w, h, name, ret, err);
    if (!h->creates)
        return esdm_container_open(w->session, name, mode, ESDM_SNAPSHOT_LATEST, ret, err);
    esdm_status st = esdm_container_create(w->session, name, ESDM_CREATE_REPLACE, ret, err);
    return st == ESDM_OK ? replay_define(*ret, h->datasets, false, err) : st;
}

static bool
make_room(worker *me, guint64 bytes)
{
    if (bytes <= me->room)
        return true;
    g_free(me->buffer);
    me->buffer = g_try_malloc(bytes);
    me->room = me->buffer != NULL ? bytes : 0;
    return me->buffer != NULL;
}

static void
free_texts(const replay_operation *o, char **texts)
{
    guint64 count = o->memory == ESDM_TYPE_STRING ? esdm_dataspace_elements(o->space) : 0;
    for (guint64 i = 0; i < count; i++)
        free(texts[i]);
}

/* The clock runs for the call alone, not while values are made. */
static esdm_status
transfer(worker *me, const replay_operation *o, guint64 *started, guint64 *ended, esdm_error *err)
{
    player *w = me->player;
    esdm_dataset *dataset = replay_find(w->open[o->handle->number], o->dataset->path);
    guint64 count = esdm_dataspace_elements(o->space);
    if (dataset == NULL)
        return tool_error_set(err, ESDM_ENOENT, "it is not there: the record lacks its definition");
    if (!make_room(me, MAX(count, 1) * esdm_type_size(o->memory)))
        return tool_error_set(err, ESDM_ENOMEM, "no memory for %" G_GUINT64_FORMAT " values",
                              count);
    if (o->kind == REPLAY_WRITE)
        replay_values_fill(w->p->values, o->dataset, o->memory, me->buffer, count,
                           o->space->rank > 0 ? o->space->offset[0] * 7919 : 0);
    else if (o->memory == ESDM_TYPE_STRING)
        memset(me->buffer, 0, (gsize) (count * sizeof(char *)));
    *started = now_ns();
    esdm_status st = o->kind == REPLAY_WRITE
                         ? esdm_write(dataset, o->space, o->memory, me->buffer, NULL, err)
                         : esdm_read(dataset, o->space, o->memory, me->buffer, NULL, err);
    *ended = now_ns();
    if (o->kind == REPLAY_READ)
        free_texts(o, me->buffer);
    return st;
}

static esdm_status
align(esdm_container *container, const replay_operation *o, esdm_error *err)
{
    if (o->dataset == NULL)
        return esdm_container_align(container, err);
    esdm_dataset *dataset = replay_find(container, o->dataset->path);
    if (dataset == NULL)
        return tool_error_set(err, ESDM_ENOENT, "it is not there: the record lacks its definition");
    return esdm_dataset_align(dataset, o->space, o->writing, err);
}

static esdm_status
call(worker *me, const replay_operation *o, guint64 *started, guint64 *ended, esdm_error *err)
{
    player *w = me->player;
    esdm_container **open = &w->open[o->handle->number];
    esdm_status st = ESDM_OK;
    bool opens = o->kind == REPLAY_OPEN || o->kind == REPLAY_CREATE;
    if (*open == NULL && !opens && o->kind != REPLAY_CLOSE)
        st = open_handle(w, o->handle, open, err); /* before the record begins */
    if (st != ESDM_OK)
        return st;
    if (o->kind == REPLAY_READ || o->kind == REPLAY_WRITE)
        return transfer(me, o, started, ended, err);
    *started = now_ns();
    if (opens && *open == NULL)
        st = open_handle(w, o->handle, open, err);
    else if (o->kind == REPLAY_ALIGN)
        st = align(*open, o, err);
    else if (o->kind == REPLAY_COMMIT)
        st = esdm_container_commit(*open, NULL, err);
    else if (o->kind == REPLAY_CLOSE && o->handle->commits && o->handle->writes)
        st = esdm_container_close(g_steal_pointer(open), err);
    else if (o->kind == REPLAY_CLOSE)
        esdm_container_discard(g_steal_pointer(open));
    *ended = now_ns();
    return st;
}

static void
perform(worker *me, const replay_operation *o, guint64 number)
{
    player *w = me->player;
    esdm_error err = {0};
    guint64 started = 0;
    guint64 ended = 0;
    esdm_status st = call(me, o, &started, &ended, &err);
    w->p->ns[number] = MAX(ended - started, 1);
    if (st != ESDM_OK)
        fail(w, o, err.message);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *
work(void *argument)
{
    worker *me = argument;
    player *w = me->player;
    (void) pthread_mutex_lock(&w->lock);
    for (;;) {
        while (me->next == NULL && !w->ends)
            (void) pthread_cond_wait(&w->changed, &w->lock);
        if (me->next == NULL)
            break;
        const replay_operation *o = me->next;
        guint64 number = me->number;
        (void) pthread_mutex_unlock(&w->lock);
        perform(me, o, number);
        (void) pthread_mutex_lock(&w->lock);
        me->next = NULL;
        (void) pthread_cond_broadcast(&w->changed);
    }
    (void) pthread_mutex_unlock(&w->lock);
    return NULL;
}

static worker *
worker_of(player *w, gint32 thread)
{
    worker *found = g_hash_table_lookup(w->by_thread, GINT_TO_POINTER(thread));
    if (found != NULL)
        return found;
    guint number = g_hash_table_size(w->by_thread) % WORKERS_MOST;
    found = &w->workers[number];
    found->player = w;
    if (!w->alone && !found->runs)
        found->runs = pthread_create(&found->thread, NULL, work, found) == 0;
    g_hash_table_insert(w->by_thread, GINT_TO_POINTER(thread), found);
    return found;
}

/* With the lock held: until what had ended before `time_ns` has ended here, and `me` is free. */
static void
wait_for_earlier(player *w, const worker *me, guint64 time_ns)
{
    for (guint i = 0; i < WORKERS_MOST; i++) {
        const worker *other = &w->workers[i];
        while (other->next != NULL &&
               (other == me || other->next->start_ns + other->next->ns <= time_ns))
            (void) pthread_cond_wait(&w->changed, &w->lock);
    }
}

/* How many operations from the first on have been done: others wait for that. */
static void
tell_done(player *w, guint64 reached)
{
    for (guint i = 0; i < WORKERS_MOST; i++) {
        if (w->workers[i].next != NULL)
            reached = MIN(reached, w->workers[i].number);
    }
    __atomic_store_n(&w->p->all[w->p->number].done, reached, __ATOMIC_SEQ_CST);
    (void) __atomic_fetch_add(&w->p->shared->steps, 1, __ATOMIC_SEQ_CST);
}

/* ---- order ----------------------------------------------------------------------------------- */

/* Records that were made up may let everybody wait for somebody. */
static bool
is_stuck(const replay_shared *shared, guint64 *seen, gint64 *since)
{
    guint64 steps = __atomic_load_n(&shared->steps, __ATOMIC_SEQ_CST);
    if (steps != *seen || *since == 0)
        *since = g_get_monotonic_time();
    *seen = steps;
    return g_get_monotonic_time() - *since > STUCK_US && replay_all_wait(shared);
}

static void
wait_for_processes(const player *w, const GArray *waits)
{
    guint64 seen = 0;
    gint64 since = 0;
    if (waits == NULL)
        return;
    replay_wait_begin(w->p->shared);
    for (guint i = 0; i < waits->len; i++) {
        const replay_wait *one = &g_array_index(waits, replay_wait, i);
        while (!stopped(w) &&
               __atomic_load_n(&w->p->all[one->process].done, __ATOMIC_SEQ_CST) < one->operations) {
            g_usleep(WAIT_US);
            if (is_stuck(w->p->shared, &seen, &since))
                fail(w, NULL,
                     "each process waits for another one: the records do not fit together");
        }
    }
    replay_wait_end(w->p->shared);
}

/* The pause that the program made here. */
static void
think(player *w, const replay_operation *o)
{
    guint64 pause = w->last_end_ns > 0 && o->start_ns > w->last_end_ns
                        ? (o->start_ns - w->last_end_ns) / 1000
                        : 0;
    w->last_end_ns = MAX(w->last_end_ns, o->start_ns + o->ns);
    if (!w->p->options->think)
        return;
    for (guint64 slept = 0; slept < pause && !stopped(w);) {
        guint64 some = MIN(pause - slept, 50000);
        g_usleep((gulong) some);
        slept += some;
    }
}

static void
play_all(player *w)
{
    const GArray *operations = w->p->process->operations;
    (void) pthread_mutex_lock(&w->lock);
    for (guint i = 0; i < operations->len && !stopped(w); i++) {
        const replay_operation *o = &g_array_index(operations, replay_operation, i);
        worker *me = worker_of(w, o->thread);
        wait_for_earlier(w, me, o->start_ns);
        tell_done(w, i);
        (void) pthread_mutex_unlock(&w->lock);
        think(w, o);
        wait_for_processes(w, o->waits);
        if (!me->runs)
            perform(me, o, i);
        (void) pthread_mutex_lock(&w->lock);
        if (me->runs) {
            me->number = i;
            me->next = o;
            (void) pthread_cond_broadcast(&w->changed);
        }
    }
    wait_for_earlier(w, NULL, G_MAXUINT64);
    w->ends = true;
    (void) pthread_cond_broadcast(&w->changed);
    (void) pthread_mutex_unlock(&w->lock);
    for (guint i = 0; i < WORKERS_MOST; i++) {
        if (w->workers[i].runs)
            (void) pthread_join(w->workers[i].thread, NULL);
    }
}

/* What the program left open, it did not commit. */
static void
close_all(player *w)
{
    for (guint i = 0; i < w->p->process->handles->len; i++)
        esdm_container_discard(w->open[i]);
    esdm_session_close(w->session);
}

static void
leave_meetings(const player *w)
{
    for (guint i = 0; i < w->p->process->handles->len; i++) {
        const replay_handle *h = w->p->process->handles->pdata[i];
        if (h->meeting > 0)
            replay_meeting_leave(w->p->meetings[h->meeting - 1]);
    }
}

static void
wait_for_start(const player *w)
{
    (void) __atomic_fetch_add(&w->p->shared->ready, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&w->p->shared->go, __ATOMIC_SEQ_CST) == 0 && !stopped(w))
        g_usleep(WAIT_US);
    wait_for_processes(w, w->p->process->waits);
}

static bool
has_one_thread(const replay_process *p)
{
    for (guint i = 1; i < p->operations->len; i++) {
        if (g_array_index(p->operations, replay_operation, i).thread !=
            g_array_index(p->operations, replay_operation, 0).thread)
            return false;
    }
    return true;
}

int
replay_play(const replay_player *p)
{
    player w = {.p = p, .by_thread = g_hash_table_new(g_direct_hash, g_direct_equal)};
    replay_progress *mine = &p->all[p->number];
    w.open = g_new0(esdm_container *, MAX(p->process->handles->len, 1));
    w.alone = has_one_thread(p->process);
    (void) pthread_mutex_init(&w.lock, NULL);
    (void) pthread_cond_init(&w.changed, NULL);
    if (tool_session(false, &w.session) != TOOL_OK) {
        fail(&w, NULL, "the site cannot be opened");
        return TOOL_FAILED;
    }
    wait_for_start(&w);
    mine->start_ns = now_ns();
    play_all(&w);
    mine->end_ns = now_ns();
    if (!stopped(&w))
        __atomic_store_n(&mine->done, p->process->operations->len, __ATOMIC_SEQ_CST);
    close_all(&w);
    leave_meetings(&w);
    (void) __atomic_fetch_sub(&p->shared->working, 1, __ATOMIC_SEQ_CST);
    return stopped(&w) ? TOOL_FAILED : TOOL_OK;
}
