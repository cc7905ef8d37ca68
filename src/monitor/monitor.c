/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "monitor/monitor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/plain_locale.h"
#include "base/thread.h"
#include "monitor/database.h"
#include "monitor/parts.h"
#include "monitor/rules.h"
#include "monitor/runs.h"
#include "monitor/usual.h"

#define BUFFER_BYTES (UINT64_C(4) << 20)
#define INTERVAL_MS  1000u
#define DRAIN_MS     50u  /* how often the thread looks for spans */
#define LAST_WAIT_S  2    /* how long the end of a session waits for the file */
#define GIVE_UP_S    1    /* and after it was told to give up */
#define AT_ONCE      4096 /* records between two looks at the clock */

static const char *const names[ESDM__SPAN_KINDS] = {[ESDM__SPAN_CALL_READ] = "netcdf-read",
                                                    [ESDM__SPAN_CALL_WRITE] = "netcdf-write",
                                                    [ESDM__SPAN_OPEN] = "open",
                                                    [ESDM__SPAN_CLOSE] = "close",
                                                    [ESDM__SPAN_ALIGN] = "align",
                                                    [ESDM__SPAN_READ] = "read",
                                                    [ESDM__SPAN_WRITE] = "write",
                                                    [ESDM__SPAN_ENCODE] = "encode",
                                                    [ESDM__SPAN_DECODE] = "decode",
                                                    [ESDM__SPAN_APPEND] = "append",
                                                    [ESDM__SPAN_FETCH] = "fetch",
                                                    [ESDM__SPAN_SYNC] = "sync",
                                                    [ESDM__SPAN_SEAL] = "seal",
                                                    [ESDM__SPAN_COMMIT] = "commit",
                                                    [ESDM__SPAN_CATALOG] = "catalog"};

/* Of the thread that runs. */
static _Thread_local struct {
    uint64_t current;
    int32_t id; /* 0: not asked yet */
    pid_t process;
} here;

const char *
esdm__span_name(esdm__span_kind kind)
{
    return kind < ESDM__SPAN_KINDS ? names[kind] : "?";
}

uint64_t
esdm__monitor_now_ns(void)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

/* ---- spans ----------------------------------------------------------------------------------- */

static int32_t
thread_id(const esdm__monitor *monitor)
{
    if (here.id == 0 || here.process != monitor->who.pid) {
        here.id = (int32_t) gettid();
        here.process = monitor->who.pid;
    }
    return here.id;
}

void
esdm__span_start(esdm__span *span)
{
    esdm__monitor *m = span->monitor;
    span->id = atomic_fetch_add_explicit(&m->next_id, 1, memory_order_relaxed);
    span->cause = here.current;
    here.current = span->id;
    span->start_ns = esdm__monitor_now_ns();
}

/* For rules. */
static void
note_request(esdm__monitor *m, const esdm__record *record)
{
    int request = esdm__request_index(record->kind);
    if (request < 0)
        return;
    esdm__objects_add_total(&m->objects, record, request);
    if (!esdm__monitor_traces(m))
        esdm__recent_put(m->recent, record);
}

void
esdm__span_stop(const esdm__span *span, const esdm__span_facts *facts)
{
    esdm__monitor *m = span->monitor;
    here.current = span->cause;
    const esdm__record record = {
        .id = span->id,
        .cause = span->cause,
        .start_ns = span->start_ns,
        .ns = esdm__monitor_now_ns() - span->start_ns,
        .bytes = facts->bytes,
        .stored_bytes = facts->stored_bytes,
        .object = facts->object,
        .pieces = facts->pieces > 0 ? facts->pieces : 1,
        .thread = thread_id(m),
        .kind = (int16_t) facts->kind,
        .status = (int16_t) facts->status,
        .detail = facts->detail,
    };
    esdm__objects_add(&m->objects, &record);
    if (m->recent != NULL)
        note_request(m, &record);
    if (m->kept != NULL)
        esdm__sofar_note(m, &record);
    esdm__monitor_put(m, &record);
}

void
esdm__monitor_put(esdm__monitor *m, const esdm__record *record)
{
    bool traces = esdm__monitor_traces(m);
    if (traces && esdm__ring_put(m->ring, record))
        return;
    free(record->detail);
    if (traces)
        (void) atomic_fetch_add_explicit(&m->dropped, 1, memory_order_relaxed);
}

bool
esdm__monitor_traces(const esdm__monitor *monitor)
{
    return monitor != NULL && atomic_load_explicit(&monitor->tracing, memory_order_acquire);
}

uint64_t
esdm__span_current(void)
{
    return here.current;
}

uint64_t
esdm__span_adopt(uint64_t cause)
{
    uint64_t before = here.current;
    here.current = cause;
    return before;
}

uint32_t
esdm__monitor_object(esdm__monitor *monitor, const char *container, const char *dataset,
                     const char *target)
{
    return esdm__objects_find(&monitor->objects, container, dataset, target);
}

/* ---- the thread that writes ------------------------------------------------------------------ */

void
esdm__monitor_drain(esdm__monitor *m)
{
    esdm__record record;
    for (int i = 0; i < AT_ONCE && esdm__ring_take(m->ring, &record); i++) {
        const esdm__object *object = esdm__objects_get(&m->objects, record.object);
        bool good = record.kind == ESDM__SPAN_KINDS
                        ? esdm__sink_line(m->sink, record.detail, &m->give_up)
                        : esdm__sink_record(m->sink, object, &record, &m->give_up);
        (void) atomic_fetch_add(good ? &m->written : &m->dropped, 1);
        free(record.detail);
    }
}

static void
sample(esdm__monitor *m)
{
    esdm__node_sample now;
    esdm__node_read(&now);
    if (m->sink != NULL)
        (void) esdm__sink_sample(m->sink, &m->last, &now, &m->give_up);
    m->last = now;
}

/* The last of the trace, in its file or database. */
static void
finish_trace(esdm__monitor *m)
{
    uint64_t before;
    do {
        before = atomic_load(&m->written) + atomic_load(&m->dropped);
        esdm__monitor_drain(m);
    } while (atomic_load(&m->written) + atomic_load(&m->dropped) != before);
    (void) esdm__sink_flush(m->sink, &m->give_up);
    if (m->trace_database != NULL) {
        esdm__database_flush(m->trace_database, true, &m->give_up);
        (void) atomic_fetch_add(&m->dropped, esdm__database_lost(m->trace_database));
        return;
    }
    (void) atomic_fetch_add(&m->dropped, m->sink->lost);
    if (m->sink->opened)
        esdm__sink_dropped(m->sink, atomic_load(&m->dropped), &m->give_up);
    (void) esdm__sink_flush(m->sink, &m->give_up);
}

/* A program may end without freeing what it has: what SQLite has in its log goes into the file. */
static void
close_databases(esdm__monitor *m)
{
    esdm__database_close(m->stats_database);
    if (m->trace_database != m->stats_database)
        esdm__database_close(m->trace_database);
}

static void
finish(esdm__monitor *m)
{
    if (m->samples)
        sample(m);
    esdm__reasoner_end(m);
    if (m->sink != NULL)
        finish_trace(m);
    if (esdm__stats_are_empty(m))
        return;
    if (m->stats_database != NULL)
        atomic_store(&m->has_stats, esdm__database_end(m->stats_database, m, true, &m->give_up));
    if (m->trace_database != NULL && m->trace_database != m->stats_database)
        (void) esdm__database_end(m->trace_database, m, false, &m->give_up);
}

static void
wait_ms(esdm__monitor *m, uint64_t ms)
{
    const struct timespec until = esdm__deadline(CLOCK_MONOTONIC, ms * 1000000);
    (void) pthread_mutex_lock(&m->lock);
    if (!atomic_load(&m->stop))
        (void) pthread_cond_timedwait(&m->wakeup, &m->lock, &until);
    (void) pthread_mutex_unlock(&m->lock);
}

static uint64_t
pause_ms(const esdm__monitor *m)
{
    uint64_t ms = m->options.interval_ms;
    bool traces = atomic_load(&m->tracing);
    if (m->reasoner != NULL && ms > ESDM__LOOK_MS)
        ms = ESDM__LOOK_MS;
    return traces && (!m->samples || ms > DRAIN_MS) ? DRAIN_MS : ms;
}

static void *
work(void *argument)
{
    esdm__monitor *m = argument;
    esdm__plain_locale locale;
    bool plain = esdm__plain_locale_enter(&locale, NULL) == ESDM_OK;
    uint64_t interval_ns = m->options.interval_ms * 1000000u;
    while (!atomic_load(&m->stop)) {
        wait_ms(m, pause_ms(m));
        if (m->reasoner != NULL)
            esdm__reasoner_look(m);
        if (m->ring != NULL)
            esdm__monitor_drain(m);
        if (m->samples && esdm__monitor_now_ns() - m->last.at_ns >= interval_ns)
            sample(m);
        if (m->sink != NULL)
            (void) esdm__sink_flush(m->sink, &m->give_up);
    }
    finish(m);
    close_databases(m);
    if (plain)
        esdm__plain_locale_leave(&locale);
    return NULL;
}

static bool
start_thread(esdm__monitor *m)
{
    m->has_thread = esdm__thread_start(&m->thread, NULL, work, m);
    return m->has_thread;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void
free_all(esdm__monitor *m)
{
    if (m->sink != NULL)
        esdm__sink_close(m->sink);
    free(m->sink);
    if (m->trace_database != m->stats_database)
        esdm__database_free(m->trace_database);
    esdm__database_free(m->stats_database);
    esdm__ring_free(m->ring);
    esdm__recent_free(m->recent);
    esdm__recent_free(m->kept);
    esdm__reasoner_free(m->reasoner);
    esdm__expectations_free(m->expect);
    esdm__objects_clear(&m->objects);
    esdm__monitor_options_clear(&m->options);
    (void) pthread_cond_destroy(&m->wakeup);
    (void) pthread_mutex_destroy(&m->lock);
    free(m->actions);
    free(m->unusual);
    free(m);
}

bool
esdm__monitor_is_beside_runs(const esdm__monitor *m)
{
    return m->options.trace_file == NULL && (m->options.modules & ESDM__MONITOR_TRACE) == 0 &&
           (m->options.modules & ESDM__MONITOR_RUNS) != 0;
}

static esdm_status
open_beside_runs(esdm__monitor *m, esdm__sink *sink, esdm_error *err)
{
    char *path = NULL;
    char *program = esdm__runs_program();
    int fd = program != NULL ? esdm__runs_trace(m->options.runs, program, &path) : -1;
    free(program);
    if (path == NULL)
        return esdm__error_set_errno(err, errno, "monitor.runs: %s", m->options.runs);
    esdm__sink_use(sink, fd, path, &m->who);
    return ESDM_OK;
}

static esdm_status
open_sink(esdm__monitor *m, esdm__sink *sink, esdm_error *err)
{
    const char *pattern =
        m->options.trace_file != NULL ? m->options.trace_file : ESDM__MONITOR_TRACE_FILE;
    if (esdm__monitor_is_beside_runs(m))
        return open_beside_runs(m, sink, err);
    char *path = esdm__monitor_file(pattern, &m->who);
    if (path == NULL)
        return esdm__error_nomem(err, sizeof *m, "the monitor");
    esdm__sink_init(sink, path, &m->who);
    if (!esdm__monitor_is_database(pattern))
        return ESDM_OK;
    if (m->stats_database != NULL && esdm__database_is_at(m->stats_database, path)) {
        m->trace_database = m->stats_database;
    } else {
        char *place = strdup(path);
        m->trace_database = place != NULL ? esdm__database_new(place, &m->who) : NULL;
    }
    sink->database = m->trace_database;
    return m->trace_database != NULL ? ESDM_OK : esdm__error_nomem(err, sizeof *m, "the monitor");
}

esdm_status
esdm__monitor_open_trace(esdm__monitor *m, esdm_error *err)
{
    if (m->sink != NULL)
        return ESDM_OK;
    esdm__ring *ring = m->ring != NULL ? m->ring : esdm__ring_new(m->options.buffer_bytes);
    esdm__sink *sink = calloc(1, sizeof *sink);
    m->ring = ring;
    esdm_status status = ring != NULL && sink != NULL
                             ? open_sink(m, sink, err)
                             : esdm__error_nomem(err, m->options.buffer_bytes, "the monitor");
    if (status == ESDM_OK) {
        m->sink = sink;
    } else if (sink != NULL) {
        free(sink->path);
        free(sink);
    }
    return status;
}

/* That of the trace, when it is the same. */
static esdm_status
open_statistics(esdm__monitor *m, esdm_error *err)
{
    const char *pattern = m->options.stats_file;
    if (pattern == NULL || !esdm__monitor_is_database(pattern))
        return ESDM_OK;
    char *place = esdm__monitor_file(pattern, &m->who);
    if (place != NULL && m->trace_database != NULL &&
        esdm__database_is_at(m->trace_database, place)) {
        m->stats_database = m->trace_database;
        free(place);
        return ESDM_OK;
    }
    m->stats_database = place != NULL ? esdm__database_new(place, &m->who) : NULL;
    return m->stats_database != NULL ? ESDM_OK : esdm__error_nomem(err, sizeof *m, "the monitor");
}

static void
init_condition(esdm__monitor *m)
{
    pthread_condattr_t attributes;
    (void) pthread_condattr_init(&attributes);
    (void) pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void) pthread_cond_init(&m->wakeup, &attributes);
    (void) pthread_condattr_destroy(&attributes);
    (void) pthread_mutex_init(&m->lock, NULL);
}

static esdm_status
fill(esdm__monitor *m, const esdm__monitor_options *options, esdm_error *err)
{
    esdm_status status = esdm__monitor_options_copy(options, &m->options, err);
    bool good = esdm__objects_init(&m->objects);
    if (status != ESDM_OK)
        return status;
    if (!good)
        return esdm__error_nomem(err, sizeof *m, "the monitor");
    if (m->options.buffer_bytes == 0)
        m->options.buffer_bytes = BUFFER_BYTES;
    if (m->options.interval_ms == 0)
        m->options.interval_ms = INTERVAL_MS;
    if ((m->options.modules & ESDM__MONITOR_TRACE) != 0)
        status = esdm__monitor_open_trace(m, err);
    atomic_init(&m->tracing, (m->options.modules & ESDM__MONITOR_TRACE) != 0);
    m->samples = (m->options.modules & ESDM__MONITOR_NODE) != 0;
    if ((m->options.modules & ESDM__MONITOR_RULES) != 0) {
        m->reasoner = esdm__reasoner_new(m);
        m->recent = esdm__recent_new(ESDM__RECENT_MOST);
        if (m->reasoner == NULL || m->recent == NULL)
            return esdm__error_nomem(err, sizeof *m, "the monitor");
    }
    if ((m->options.modules & ESDM__MONITOR_KEEP) != 0) {
        m->kept = esdm__recent_new(ESDM__KEPT_MOST);
        if (m->kept == NULL)
            return esdm__error_nomem(err, sizeof *m, "the monitor");
    }
    if (status == ESDM_OK && (m->options.modules & ESDM__MONITOR_STATS) != 0)
        status = open_statistics(m, err);
    if ((m->options.modules & ESDM__MONITOR_NODE) != 0)
        esdm__node_read(&m->first);
    m->last = m->first;
    return status;
}

esdm_status
esdm__monitor_new(const esdm__monitor_options *options, esdm__monitor **ret_monitor,
                  esdm_error *err)
{
    if (options->modules == 0) {
        *ret_monitor = NULL;
        return ESDM_OK;
    }
    esdm__monitor *m = calloc(1, sizeof *m);
    if (m == NULL)
        return esdm__error_nomem(err, sizeof *m, "the monitor");
    init_condition(m);
    esdm__who_ask(&m->who);
    atomic_init(&m->next_id, 1);
    esdm_status status = fill(m, options, err);
    bool needs_thread =
        m->sink != NULL || m->samples || m->reasoner != NULL || m->stats_database != NULL;
    if (status == ESDM_OK && needs_thread && !start_thread(m))
        status = esdm__error_set(err, ESDM_ENOMEM, "the thread of the monitor cannot be started");
    if (status != ESDM_OK) {
        free_all(m);
        return status;
    }
    if (m->kept != NULL)
        esdm__sofar_add(m);
    *ret_monitor = m;
    return ESDM_OK;
}

/* Whether the thread has ended. One that waits for a file is told to give up; when the file holds
 * it even then (a server that does not answer) it is left alone, with all that it uses. */
static bool
end_thread(esdm__monitor *m)
{
    (void) pthread_mutex_lock(&m->lock);
    atomic_store(&m->stop, true);
    (void) pthread_cond_signal(&m->wakeup);
    (void) pthread_mutex_unlock(&m->lock);
    struct timespec until;
    (void) clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LAST_WAIT_S;
    if (pthread_timedjoin_np(m->thread, NULL, &until) == 0)
        return true;
    atomic_store(&m->give_up, true);
    until.tv_sec += GIVE_UP_S;
    if (pthread_timedjoin_np(m->thread, NULL, &until) == 0)
        return true;
    (void) pthread_detach(m->thread);
    return false;
}

/* Spans that the thread had no time for. */
static void
count_left(esdm__monitor *m)
{
    esdm__record record;
    while (m->ring != NULL && esdm__ring_take(m->ring, &record)) {
        (void) atomic_fetch_add(&m->dropped, 1);
        free(record.detail);
    }
}

void
esdm__monitor_settle(esdm__monitor *monitor)
{
    if (monitor == NULL || monitor->who.pid != getpid() || atomic_exchange(&monitor->settled, true))
        return;
    monitor->abandoned = monitor->has_thread && !end_thread(monitor);
    if (!monitor->abandoned)
        count_left(monitor);
    if ((monitor->options.modules & ESDM__MONITOR_STATS) != 0)
        esdm__stats_write(monitor);
    if ((monitor->options.modules & ESDM__MONITOR_RUNS) != 0)
        esdm__runs_write(monitor);
}

void
esdm__monitor_free(esdm__monitor *monitor)
{
    if (monitor == NULL)
        return;
    if (monitor->kept != NULL)
        esdm__sofar_remove(monitor);
    esdm__monitor_settle(monitor);
    if (!monitor->abandoned)
        free_all(monitor);
}

void
esdm__monitor_total(const esdm__monitor *monitor, esdm__span_kind kind,
                    esdm__span_counts *ret_counts)
{
    *ret_counts = (esdm__span_counts){0};
    unsigned count = atomic_load(&monitor->objects.count);
    for (unsigned i = 1; i < count; i++) {
        esdm__span_counts one;
        esdm__counts_read(&esdm__objects_get(&monitor->objects, i)->counts[kind], &one);
        ret_counts->count += one.count;
        ret_counts->failed += one.failed;
        ret_counts->pieces += one.pieces;
        ret_counts->bytes += one.bytes;
        ret_counts->stored_bytes += one.stored_bytes;
        ret_counts->ns += one.ns;
        if (one.longest_ns > ret_counts->longest_ns)
            ret_counts->longest_ns = one.longest_ns;
        for (size_t s = 0; s < ESDM__SPAN_SIZES; s++)
            ret_counts->sizes[s] += one.sizes[s];
    }
}

uint64_t
esdm__monitor_dropped(const esdm__monitor *monitor)
{
    return atomic_load(&monitor->dropped);
}
