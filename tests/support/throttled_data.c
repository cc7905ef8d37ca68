/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file
 * Data target "throttled": the target "posix", as slow as its configuration says, for placement.
 *
 *     {"name": "slow", "plugin": "throttled", "directory": "…",
 *      "bytes_per_s": 50e6, "latency_ms": 1, "service_ms": 0.1}
 *
 * One server works off requests in the order of their arrival: `service_ms` and the time of the
 * bytes for each; `latency_ms` passes beside. Processes do not see each other.
 */
#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "esdm/sys/data_target.h"

extern const esdm_data_plugin esdm_data_posix_plugin;
#define inner esdm_data_posix_plugin

typedef struct throttled {
    void *target;
    double s_per_byte;
    double latency_s;
    double service_s;
    pthread_mutex_t lock; /* guards free_at */
    double free_at;       /* monotonic; when the server has worked off what has come */
} throttled;

typedef struct throttled_pack {
    throttled *on;
    void *pack;
} throttled_pack;

static double
now_s(void)
{
    struct timespec t;
    (void) clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}

/* Returns when a request of this size, which came at `came`, would be done. */
static void
serve(throttled *t, double came, size_t bytes)
{
    double busy = t->service_s + (double) bytes * t->s_per_byte;
    (void) pthread_mutex_lock(&t->lock);
    t->free_at = (t->free_at > came ? t->free_at : came) + busy;
    double until = t->free_at + t->latency_s;
    (void) pthread_mutex_unlock(&t->lock);
    struct timespec at = {.tv_sec = (time_t) until};
    at.tv_nsec = (long) ((until - (double) at.tv_sec) * 1e9);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        ;
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
        t->latency_s = number_of(root, "latency_ms") * 1e-3;
        t->service_s = number_of(root, "service_ms") * 1e-3;
        (void) pthread_mutex_init(&t->lock, NULL);
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
    free(t);
}

static esdm_status
throttled_create(void *target, const char *name, void **ret_pack, esdm_error *err)
{
    throttled_pack *p = calloc(1, sizeof *p);
    if (p == NULL)
        return esdm__error_nomem(err, sizeof *p, "a throttled pack");
    p->on = target;
    esdm_status status = inner.pack_create(p->on->target, name, &p->pack, err);
    if (status == ESDM_OK)
        *ret_pack = p;
    else
        free(p);
    return status;
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
    esdm_status status = inner.pack_append(p->pack, iov, niov, ret_position, err);
    serve(p->on, came, bytes);
    return status;
}

static esdm_status
throttled_sync(void *pack, esdm_error *err)
{
    return inner.pack_sync(((throttled_pack *) pack)->pack, err);
}

static esdm_status
throttled_seal(void *pack, esdm_error *err)
{
    throttled_pack *p = pack;
    esdm_status status = inner.pack_seal(p != NULL ? p->pack : NULL, err);
    free(p);
    return status;
}

static esdm_status
throttled_read(void *target, const char *name, const esdm_range *ranges, size_t nranges,
               esdm_error *err)
{
    throttled *t = target;
    double came = now_s();
    size_t bytes = 0;
    for (size_t i = 0; i < nranges; i++)
        bytes += ranges[i].bytes;
    esdm_status status = inner.pack_read(t->target, name, ranges, nranges, err);
    serve(t, came, bytes);
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
             .kind = ESDM_PLUGIN_DATA,
             .name = "throttled",
             .summary = "posix with a bandwidth (tests)"},
    .flags = ESDM_DATA_READ_UNSEALED,
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
};

ESDM_API const esdm_plugin *esdm_plugin_entry(void);

const esdm_plugin *
esdm_plugin_entry(void)
{
    return &throttled_plugin.base;
}
