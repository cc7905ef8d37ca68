/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file
 * Data target "throttled": the target "posix", as slow as its configuration says, for placement.
 *
 *     {"name": "slow", "plugin": "throttled", "directory": "…",
 *      "bytes_per_s": 50e6, "latency_ms": 1, "service_ms": 0.1}
 *
 * After `"changes_at"` bytes its speed is `"then_bytes_per_s"`.
 *
 * A bend: with `"crowd_above": N` requests of less than `"crowd_below_bytes"` take `"crowd_factor"`
 * times as long when more than N are under way.
 *
 * One server works off requests in the order of their arrival: `service_ms` and the time of the
 * bytes for each; `latency_ms` passes beside. Processes do not see each other.
 *
 * Built as "buffered" it has a memory before it, as a disk has: appends are slow when they are
 * synced, reads when their pack was evicted. With `"keeps": true` that memory forgets nothing.
 *
 * $THROTTLED_LOG names a file that gets a line for each request that reads: how many have arrived,
 * how many of them were answered, the pack, where its first range begins, how many ranges there
 * are, and the bytes of the first one. With $THROTTLED_GATE=N none is answered before N have
 * arrived, or 20 seconds have passed.
 *
 * With $THROTTLED_HOLD=FILE no append begins before FILE is there, or 60 seconds have passed.
 * $THROTTLED_APPENDS names a file that gets a line for each append that is done: the process and
 * the bytes.
 *
 * Built as "background" it keeps what is appended in memory, as an object store does: what is
 * written is stored when the pack ends, while others are filled, and waited for when it is sealed.
 */
#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "esdm/sys/data_target.h"

#ifdef BUFFERED
#define NAME   "buffered"
#define MEMORY true
#elif defined(BACKGROUND)
#define NAME   "background"
#define MEMORY false
#else
#define NAME   "throttled"
#define MEMORY false
#endif

#ifdef BACKGROUND
#define STORES_APPENDS false
#else
#define STORES_APPENDS (!MEMORY)
#endif
#define FULL_BYTES ((size_t) 4 << 20) /* "background": of a pack */

extern const esdm_data_plugin esdm_data_posix_plugin;
#define inner esdm_data_posix_plugin

typedef struct throttled {
    void *target;
    double s_per_byte;
    double latency_s;
    double service_s;
    bool keeps;
    double changes_at; /* bytes; 0: never */
    double then_s_per_byte;
    double crowd_above; /* 0: no bend */
    double crowd_below_bytes;
    double crowd_factor;
    pthread_mutex_t lock; /* guards what follows */
    double under_way;
    double seen;          /* bytes */
    double free_at;       /* monotonic; when the server has worked off what has come */
    char evicted[64][96]; /* the last ones */
    size_t nevicted;
    size_t arrived; /* requests that read; guarded by gate_lock */
    size_t answered;
    pthread_mutex_t gate_lock;
    pthread_cond_t gate;
} throttled;

typedef struct throttled_pack {
    throttled *on;
    void *pack;
    size_t unsynced; /* "background": all of it */
    bool ending;
    double until; /* when it is stored */
    char name[128];
} throttled_pack;

static double
now_s(void)
{
    struct timespec t;
    (void) clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}

/* When a request of this size, which came at `came`, will be done. */
static double
schedule(throttled *t, double came, size_t bytes)
{
    (void) pthread_mutex_lock(&t->lock);
    bool changed = t->changes_at > 0 && t->seen >= t->changes_at;
    double busy = t->service_s + (double) bytes * (changed ? t->then_s_per_byte : t->s_per_byte);
    t->seen += (double) bytes;
    bool crowded = t->crowd_above > 0 && t->under_way > t->crowd_above;
    busy *= crowded && (double) bytes < t->crowd_below_bytes ? t->crowd_factor : 1;
    t->free_at = (t->free_at > came ? t->free_at : came) + busy;
    double until = t->free_at + t->latency_s;
    (void) pthread_mutex_unlock(&t->lock);
    return until;
}

static void
sleep_until(double until)
{
    struct timespec at = {.tv_sec = (time_t) until};
    at.tv_nsec = (long) ((until - (double) at.tv_sec) * 1e9);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        ;
}

/* Returns when a request of this size, which came at `came`, would be done. */
static void
serve(throttled *t, double came, size_t bytes)
{
    (void) pthread_mutex_lock(&t->lock);
    t->under_way++;
    (void) pthread_mutex_unlock(&t->lock);
    sleep_until(schedule(t, came, bytes));
    (void) pthread_mutex_lock(&t->lock);
    t->under_way--;
    (void) pthread_mutex_unlock(&t->lock);
}

static double
number_of(const json_t *root, const char *key)
{
    return json_number_value(json_object_get(root, key));
}

static esdm_status
throttled_open(const esdm_plugin_config *config, void **ret_target, esdm_error *err)
{
    json_t *root = json_loads(config->json, 0, NULL);
    throttled *t = calloc(1, sizeof *t);
    esdm_status status = root != NULL && t != NULL
                             ? inner.open(config, &t->target, err)
                             : esdm__error_nomem(err, sizeof *t, "a throttled target");
    if (status == ESDM_OK) {
        double bytes_per_s = number_of(root, "bytes_per_s");
        t->s_per_byte = bytes_per_s > 0 ? 1 / bytes_per_s : 0;
        double then = number_of(root, "then_bytes_per_s");
        t->then_s_per_byte = then > 0 ? 1 / then : 0;
        t->changes_at = number_of(root, "changes_at");
        t->latency_s = number_of(root, "latency_ms") * 1e-3;
        t->service_s = number_of(root, "service_ms") * 1e-3;
        t->crowd_above = number_of(root, "crowd_above");
        t->crowd_below_bytes = number_of(root, "crowd_below_bytes");
        t->crowd_factor = number_of(root, "crowd_factor");
        t->keeps = json_is_true(json_object_get(root, "keeps"));
        (void) pthread_mutex_init(&t->lock, NULL);
        (void) pthread_mutex_init(&t->gate_lock, NULL);
        (void) pthread_cond_init(&t->gate, NULL);
        *ret_target = t;
    } else {
        free(t);
    }
    json_decref(root);
    return status;
}

static void
throttled_close(void *target)
{
    throttled *t = target;
    if (t == NULL)
        return;
    inner.close(t->target);
    (void) pthread_mutex_destroy(&t->lock);
    (void) pthread_mutex_destroy(&t->gate_lock);
    (void) pthread_cond_destroy(&t->gate);
    free(t);
}

static esdm_status
throttled_create(void *target, const char *name, void **ret_pack, esdm_error *err)
{
    throttled_pack *p = calloc(1, sizeof *p);
    if (p == NULL)
        return esdm__error_nomem(err, sizeof *p, "a throttled pack");
    p->on = target;
    (void) snprintf(p->name, sizeof p->name, "%s", name);
    esdm_status status = inner.pack_create(p->on->target, name, &p->pack, err);
    if (status == ESDM_OK)
        *ret_pack = p;
    else
        free(p);
    return status;
}

/* ---- what a test wants to know of writes --------------------------------------------------- */

static void
wait_for_hold(void)
{
    const char *file = getenv("THROTTLED_HOLD");
    const double until = now_s() + 60;
    while (file != NULL && access(file, F_OK) != 0 && now_s() < until)
        sleep_until(now_s() + 1e-3);
}

static void
note_append(size_t bytes)
{
    const char *log = getenv("THROTTLED_APPENDS");
    FILE *out = log != NULL ? fopen(log, "ae") : NULL;
    if (out == NULL)
        return;
    (void) fprintf(out, "%ld %zu\n", (long) getpid(), bytes);
    (void) fclose(out);
}

static esdm_status
throttled_append(void *pack, const esdm_iov *iov, size_t niov, uint64_t *ret_position,
                 esdm_error *err)
{
    throttled_pack *p = pack;
    double came = now_s();
    size_t bytes = 0;
    for (size_t i = 0; i < niov; i++)
        bytes += iov[i].bytes;
    wait_for_hold();
    esdm_status status = inner.pack_append(p->pack, iov, niov, ret_position, err);
    p->unsynced += bytes;
    if (STORES_APPENDS)
        serve(p->on, came, bytes);
    note_append(bytes);
    return status;
}

#ifdef BACKGROUND
static bool
background_is_full(void *pack)
{
    return ((throttled_pack *) pack)->unsynced >= FULL_BYTES;
}

static void
background_begin_seal(void *pack)
{
    throttled_pack *p = pack;
    if (!p->ending)
        p->until = schedule(p->on, now_s(), p->unsynced);
    p->ending = true;
}

static bool
background_has_ended(void *pack, double *ret_ended_s)
{
    const throttled_pack *p = pack;
    *ret_ended_s = p->until;
    return p->ending && now_s() >= p->until;
}

static esdm_status
background_recall(void *pack, uint64_t position, size_t bytes, void *buffer, esdm_error *err)
{
    throttled_pack *p = pack;
    const esdm_range range = {.position = position, .bytes = bytes, .buffer = buffer};
    return inner.pack_read(p->on->target, p->name, &range, 1, err);
}

static esdm_status
background_discard(void *pack, esdm_error *err)
{
    throttled_pack *p = pack;
    (void) inner.pack_seal(p->pack, NULL);
    esdm_status status = inner.pack_remove(p->on->target, p->name, err);
    free(p);
    return status;
}
#endif

static esdm_status
throttled_sync(void *pack, esdm_error *err)
{
    throttled_pack *p = pack;
    if (MEMORY)
        serve(p->on, now_s(), p->unsynced);
    p->unsynced = 0;
    return inner.pack_sync(p->pack, err);
}

static esdm_status
throttled_seal(void *pack, esdm_error *err)
{
    throttled_pack *p = pack;
#ifdef BACKGROUND
    if (p != NULL) {
        background_begin_seal(p);
        sleep_until(p->until);
    }
#endif
    esdm_status status = inner.pack_seal(p != NULL ? p->pack : NULL, err);
    free(p);
    return status;
}

static esdm_status
throttled_evict(void *target, const char *name, esdm_error *err)
{
    throttled *t = target;
    if (!MEMORY || t->keeps)
        return esdm__error_set(err, ESDM_ENOTSUP, "throttled: nothing is forgotten");
    (void) pthread_mutex_lock(&t->lock);
    (void) snprintf(t->evicted[t->nevicted++ % 64], sizeof t->evicted[0], "%s", name);
    (void) pthread_mutex_unlock(&t->lock);
    return ESDM_OK;
}

static bool
is_in_memory(throttled *t, const char *name)
{
    bool found = false;
    (void) pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < 64 && !found; i++)
        found = strcmp(t->evicted[i], name) == 0;
    (void) pthread_mutex_unlock(&t->lock);
    return MEMORY && !found;
}

/* ---- what a test wants to know of reads ---------------------------------------------------- */

static void
note_arrival(throttled *t, const char *name, const esdm_range *ranges, size_t nranges)
{
    const char *log = getenv("THROTTLED_LOG");
    const char *stated = getenv("THROTTLED_GATE");
    size_t gate = stated != NULL ? strtoul(stated, NULL, 10) : 0;
    struct timespec until;
    (void) clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    (void) pthread_mutex_lock(&t->gate_lock);
    t->arrived++;
    FILE *out = log != NULL ? fopen(log, "ae") : NULL;
    if (out != NULL) {
        (void) fprintf(out, "%zu %zu %s %llu %zu %llu\n", t->arrived, t->answered, name,
                       (unsigned long long) ranges[0].position, nranges,
                       (unsigned long long) ranges[0].bytes);
        (void) fclose(out);
    }
    (void) pthread_cond_broadcast(&t->gate);
    while (t->arrived < gate && pthread_cond_timedwait(&t->gate, &t->gate_lock, &until) == 0)
        ;
    (void) pthread_mutex_unlock(&t->gate_lock);
}

static void
note_answer(throttled *t)
{
    (void) pthread_mutex_lock(&t->gate_lock);
    t->answered++;
    (void) pthread_mutex_unlock(&t->gate_lock);
}

static esdm_status
throttled_read(void *target, const char *name, const esdm_range *ranges, size_t nranges,
               esdm_error *err)
{
    throttled *t = target;
    double came = now_s();
    size_t bytes = 0;
    note_arrival(t, name, ranges, nranges);
    for (size_t i = 0; i < nranges; i++)
        bytes += ranges[i].bytes;
    esdm_status status = inner.pack_read(t->target, name, ranges, nranges, err);
    if (!is_in_memory(t, name))
        serve(t, came, bytes);
    note_answer(t);
    return status;
}

static esdm_status
throttled_remove_pack(void *target, const char *name, esdm_error *err)
{
    return inner.pack_remove(((throttled *) target)->target, name, err);
}

static esdm_status
throttled_list(void *target, const char *prefix, esdm_pack_visitor visit, void *user,
               esdm_error *err)
{
    return inner.pack_list(((throttled *) target)->target, prefix, visit, user, err);
}

static esdm_status
throttled_usage(void *target, esdm_target_usage *ret_usage, esdm_error *err)
{
    return inner.usage(((throttled *) target)->target, ret_usage, err);
}

static esdm_status
throttled_make(const esdm_plugin_config *config, bool dry_run, esdm_plugin_reporter report,
               void *user, esdm_error *err)
{
    return inner.make(config, dry_run, report, user, err);
}

static esdm_status
throttled_check(const esdm_plugin_config *config, esdm_plugin_reporter report, void *user,
                esdm_error *err)
{
    return inner.check(config, report, user, err);
}

static esdm_status
throttled_remove(const esdm_plugin_config *config, bool dry_run, esdm_plugin_reporter report,
                 void *user, esdm_error *err)
{
    return inner.remove(config, dry_run, report, user, err);
}

static const esdm_data_plugin throttled_plugin = {
    .base = {.abi = ESDM_PLUGIN_ABI,
             .table_bytes = sizeof(esdm_data_plugin),
             .kind = ESDM_PLUGIN_DATA,
             .name = NAME,
             .summary = "posix with a bandwidth (tests)"},
#ifdef BACKGROUND
    .flags = ESDM_DATA_SEAL_DURABLE,
    .concurrency = 16,
    .pack_is_full = background_is_full,
    .pack_begin_seal = background_begin_seal,
    .pack_has_ended = background_has_ended,
    .pack_recall = background_recall,
    .pack_discard = background_discard,
#else
    .flags = ESDM_DATA_READ_UNSEALED | (MEMORY ? ESDM_DATA_CACHED : 0),
#endif
    .make = throttled_make,
    .check = throttled_check,
    .remove = throttled_remove,
    .open = throttled_open,
    .close = throttled_close,
    .usage = throttled_usage,
    .pack_create = throttled_create,
    .pack_append = throttled_append,
    .pack_sync = throttled_sync,
    .pack_seal = throttled_seal,
    .pack_read = throttled_read,
    .pack_remove = throttled_remove_pack,
    .pack_list = throttled_list,
    .pack_evict = throttled_evict,
};

ESDM_API const esdm_plugin *esdm_plugin_entry(void);

const esdm_plugin *
esdm_plugin_entry(void)
{
    return &throttled_plugin.base;
}
