/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "journal/journal.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/own_process.h"
#include "base/thread.h"

/* A pack ends when it is so long, or when nothing was entered for so long: packs that nobody has
 * touched for an hour and that a backup covers are removed, also those of living programs. */
#define PACK_BYTES   (UINT64_C(16) << 20)
#define PACK_IDLE_S  1800
#define SYNC_EVERY_S 1
/* What may wait for a target over a network, and how long somebody waits for that. */
#define QUEUE_BYTES ((size_t) 64 << 20)
#define WAIT_MS     30000u

struct esdm__journal {
    esdm__journal_host host;
    pid_t process; /* a forked child has no part in it */
    char writer[ESDM__UUID_BYTES];
    pthread_mutex_t lock; /* guards all that follows */
    pthread_cond_t changed;
    size_t at; /* target that is used, or the next one to be tried */
    bool opened;
    esdm__journal_target target; /* when `opened` */
    void *pack;                  /* NULL: none is open */
    uint64_t pack_bytes;
    time_t used;   /* when something was last entered */
    time_t synced; /* when that was last flushed */
    bool unsynced;
    unsigned next_pack;
    atomic_bool failed; /* something could not be entered */
    /* Targets over a network: */
    esdm__buffer queue;
    bool storing;    /* the thread has something under way */
    uint64_t stored; /* how often it was done */
    bool stuck;      /* somebody has waited in vain since then: nobody else does */
    bool ends;
    bool threaded;
    pthread_t thread;
};

static time_t
seconds_now(void)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

esdm__journal *
esdm__journal_new(const esdm__journal_host *host)
{
    esdm__journal *journal = calloc(1, sizeof *journal);
    if (journal == NULL)
        return NULL;
    journal->host = *host;
    if (journal->host.queue_bytes == 0)
        journal->host.queue_bytes = QUEUE_BYTES;
    if (journal->host.wait_ms == 0)
        journal->host.wait_ms = WAIT_MS;
    journal->process = esdm__own_pid();
    esdm__uuid_new(journal->writer);
    esdm__buffer_init(&journal->queue);
    (void) pthread_mutex_init(&journal->lock, NULL);
    pthread_condattr_t clock;
    (void) pthread_condattr_init(&clock);
    (void) pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void) pthread_cond_init(&journal->changed, &clock);
    (void) pthread_condattr_destroy(&clock);
    return journal;
}

/* ---- packs ---------------------------------------------------------------------------------- */

static bool
is_read_unsealed(const esdm__journal *j)
{
    return (j->target.plugin->flags & ESDM_DATA_READ_UNSEALED) != 0;
}

/* Whether the target is reached over a network: nobody waits for it, not even to be opened. */
static bool
is_remote(const esdm__journal *j)
{
    return j->at < j->host.ntargets && j->host.plugin(j->host.user, j->at)->concurrency > 0;
}

static esdm_status
open_target(esdm__journal *j)
{
    esdm_status status = ESDM_ENOENT;
    while (!j->opened && j->at < j->host.ntargets) {
        status = j->host.open(j->host.user, j->at, &j->target, NULL);
        j->opened = status == ESDM_OK;
        j->at += !j->opened;
    }
    return j->opened ? ESDM_OK : status;
}

static void
sync_pack(esdm__journal *j)
{
    time_t now = seconds_now();
    if (j->host.durable && j->pack != NULL && now - j->synced >= SYNC_EVERY_S) {
        (void) !j->target.plugin->pack_sync(j->pack, NULL);
        j->synced = now;
        j->unsynced = false;
    }
}

static esdm_status
end_pack(esdm__journal *j)
{
    void *pack = j->pack;
    const esdm_data_plugin *plugin = j->target.plugin;
    if (pack == NULL)
        return ESDM_OK;
    j->pack = NULL;
    if (j->host.durable && j->unsynced && is_read_unsealed(j))
        (void) !plugin->pack_sync(pack, NULL);
    esdm_status status = plugin->pack_seal(pack, NULL);
    if (status != ESDM_OK && plugin->pack_recall != NULL)
        (void) !plugin->pack_discard(pack, NULL);
    return status;
}

static esdm_status
begin_pack(esdm__journal *j)
{
    char name[ESDM__SITE_PACK_NAME];
    (void) snprintf(name, sizeof name, ESDM__JOURNAL_PACKS "-%.16s-%x", j->writer, j->next_pack++);
    j->pack_bytes = 0;
    return j->target.plugin->pack_create(j->target.handle, name, &j->pack, NULL);
}

static esdm_status
append(esdm__journal *j, const esdm__buffer *records)
{
    const esdm_iov iov = {records->data, records->bytes};
    uint64_t position;
    esdm_status status = ESDM_OK;
    time_t now = seconds_now();
    if (j->pack != NULL && (j->pack_bytes >= PACK_BYTES || now - j->used >= PACK_IDLE_S))
        (void) !end_pack(j);
    if (j->pack == NULL)
        status = begin_pack(j);
    if (status == ESDM_OK)
        status = j->target.plugin->pack_append(j->pack, &iov, 1, &position, NULL);
    if (status == ESDM_OK && !is_read_unsealed(j))
        status = end_pack(j);
    if (status != ESDM_OK)
        return status;
    j->pack_bytes += records->bytes;
    j->used = now;
    j->unsynced = true;
    sync_pack(j);
    return ESDM_OK;
}

/* Under the lock; tries one target after the other. false: none took it. */
static bool
store(esdm__journal *j, const esdm__buffer *records)
{
    while (open_target(j) == ESDM_OK) {
        if (append(j, records) == ESDM_OK)
            return true;
        (void) !end_pack(j);
        j->opened = false;
        j->at++;
    }
    atomic_store(&j->failed, true);
    j->at = 0; /* perhaps another time */
    return false;
}

/* ---- the thread ----------------------------------------------------------------------------- */

static void *
work(void *argument)
{
    esdm__journal *j = argument;
    (void) pthread_mutex_lock(&j->lock);
    for (;;) {
        if (j->queue.bytes == 0 && j->ends)
            break;
        if (j->queue.bytes == 0) {
            (void) pthread_cond_wait(&j->changed, &j->lock);
            continue;
        }
        esdm__buffer records = j->queue;
        esdm__buffer_init(&j->queue);
        j->storing = true;
        /* Others only add to the queue meanwhile: everything else belongs to this thread. */
        (void) pthread_mutex_unlock(&j->lock);
        (void) store(j, &records);
        esdm__buffer_clear(&records);
        (void) pthread_mutex_lock(&j->lock);
        j->storing = false;
        j->stored++;
        j->stuck = false;
        (void) pthread_cond_broadcast(&j->changed);
    }
    (void) pthread_mutex_unlock(&j->lock);
    return NULL;
}

/* Under the lock, which it gives up meanwhile: waits until the thread has done something, or for
 * the time that anybody waits. false: in vain. */
static bool
wait_for_thread(esdm__journal *j)
{
    const struct timespec until =
        esdm__deadline(CLOCK_MONOTONIC, j->host.wait_ms * UINT64_C(1000000));
    uint64_t seen = j->stored;
    int failure = 0;
    while (seen == j->stored && !j->stuck && failure == 0)
        failure = pthread_cond_timedwait(&j->changed, &j->lock, &until);
    if (seen == j->stored)
        j->stuck = true;
    return seen != j->stored;
}

static bool
has_room(const esdm__journal *j, size_t bytes)
{
    return j->queue.bytes == 0 ||
           (bytes <= j->host.queue_bytes && j->queue.bytes <= j->host.queue_bytes - bytes);
}

/* Under the lock. */
static void
enqueue(esdm__journal *j, const esdm__buffer *records, bool wait)
{
    if (!j->threaded)
        j->threaded = pthread_create(&j->thread, NULL, work, j) == 0;
    if (!j->threaded) {
        (void) store(j, records);
        return;
    }
    while (wait && !has_room(j, records->bytes) && wait_for_thread(j))
        ;
    if (!has_room(j, records->bytes)) { /* as if the program had been killed before it noted it */
        atomic_store(&j->failed, true);
        return;
    }
    esdm__buffer_put(&j->queue, records->data, records->bytes);
    if (j->queue.failed) {
        atomic_store(&j->failed, true);
        esdm__buffer_clear(&j->queue);
        esdm__buffer_init(&j->queue);
    }
    (void) pthread_cond_broadcast(&j->changed);
}

/* ---- what others call ----------------------------------------------------------------------- */

void
esdm__journal_enter(esdm__journal *journal, esdm__buffer *records, bool wait)
{
    esdm__journal *j = journal;
    if (j->process == esdm__own_pid()) {
        (void) pthread_mutex_lock(&j->lock);
        if (records->failed)
            atomic_store(&j->failed, true);
        else if (j->threaded || is_remote(j))
            enqueue(j, records, wait);
        else
            (void) store(j, records);
        (void) pthread_mutex_unlock(&j->lock);
    }
    esdm__buffer_clear(records);
}

bool
esdm__journal_lacks(const esdm__journal *journal)
{
    return atomic_load(&journal->failed);
}

void
esdm__journal_lack(esdm__journal *journal)
{
    atomic_store(&journal->failed, true);
}

bool
esdm__journal_settle(esdm__journal *journal)
{
    esdm__journal *j = journal;
    if (j->process != esdm__own_pid())
        return true;
    (void) pthread_mutex_lock(&j->lock);
    bool busy = j->threaded && (j->queue.bytes > 0 || j->storing);
    while (busy && wait_for_thread(j))
        busy = j->queue.bytes > 0 || j->storing;
    bool whole = !atomic_exchange(&j->failed, false) && !busy;
    (void) pthread_mutex_unlock(&j->lock);
    return whole;
}

void
esdm__journal_free(esdm__journal *journal)
{
    esdm__journal *j = journal;
    if (j == NULL)
        return;
    if (j->process == esdm__own_pid()) {
        (void) pthread_mutex_lock(&j->lock);
        while (j->threaded && j->queue.bytes > 0 && wait_for_thread(j))
            ;
        esdm__buffer_clear(&j->queue); /* what is under way ends by the target's own timeout */
        esdm__buffer_init(&j->queue);
        j->ends = true;
        (void) pthread_cond_broadcast(&j->changed);
        (void) pthread_mutex_unlock(&j->lock);
        if (j->threaded)
            (void) pthread_join(j->thread, NULL);
        (void) !end_pack(j);
        (void) pthread_cond_destroy(&j->changed);
        (void) pthread_mutex_destroy(&j->lock);
    }
    esdm__buffer_clear(&j->queue);
    free(j);
}
