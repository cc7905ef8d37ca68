/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Measures one target: every thread writes a pack of its own, then reads it, as the engine does. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/ids.h"
#include "io/measure/calibrate.h"
#include "io/session/models.h"

/* What is written in one piece; larger requests repeat it. */
#define PIECE_BYTES (UINT64_C(1) << 20)
/* A point that is expected to take more than this part of the time that is left is left out. */
#define POINT_SHARE 0.5
/* What is measured in any case. */
#define NEEDED_BYTES       (UINT64_C(256) << 10)
#define NEEDED_REPETITIONS 2u
#define NEEDED_SIZES       3u
/* Of the free space of a target. */
#define FREE_SHARE 10u

/* ---- one thread --------------------------------------------------------------------------- */

/* A measurement under way: `concurrency` threads make requests of `bytes`. */
typedef struct point {
    esdm_session *session;
    esdm__target *target;
    const esdm__calibration *c;
    const uint8_t *piece;
    const char *writer; /* in the names of the packs */
    uint64_t bytes;
    uint32_t concurrency;
    unsigned requests;          /* of each thread */
    atomic_bool from_memory[2]; /* writes, reads: some did not wait for the device */
    pthread_mutex_t lock;       /* guards gate */
    pthread_cond_t opened;
    enum { CLOSED, OPEN, GIVE_UP } gate; /* before which threads wait until all have started */
    pthread_barrier_t written;
} point;

typedef struct worker {
    point *p;
    pthread_t thread;
    char pack[96];
    uint64_t *positions; /* of the requests; owned */
    uint8_t *buffer;     /* for a request; owned */
    double write_s;      /* of all requests */
    double read_s;
    esdm_status status;
    esdm_error error;
} worker;

static esdm_status
append_one(worker *w, void *handle, const esdm_iov *iov, size_t niov, unsigned i)
{
    const esdm_data_plugin *plugin = w->p->target->plugin;
    return plugin->pack_append(handle, iov, niov, &w->positions[i], &w->error);
}

/* Appends may wait in memory: they count when the device has them, whatever the site wants. Where
 * that cannot be asked for without ending the pack, the end counts. */
static esdm_status
flush(worker *w, void *handle)
{
    const esdm_data_plugin *plugin = w->p->target->plugin;
    if ((plugin->flags & ESDM_DATA_SEAL_DURABLE) != 0)
        return ESDM_OK;
    esdm_status status = plugin->pack_sync(handle, &w->error);
    if (status != ESDM_ENOTSUP)
        return status;
    if ((plugin->flags & ESDM_DATA_CACHED) != 0)
        atomic_store(&w->p->from_memory[0], true);
    return ESDM_OK;
}

/* The device is to answer what is read next. */
static void
evict(worker *w)
{
    const esdm_data_plugin *plugin = w->p->target->plugin;
    if ((plugin->flags & ESDM_DATA_CACHED) == 0)
        return;
    if (plugin->pack_evict == NULL ||
        plugin->pack_evict(w->p->target->handle, w->pack, NULL) != ESDM_OK)
        atomic_store(&w->p->from_memory[1], true);
}

static esdm_status
write_requests(worker *w, const esdm_iov *iov, size_t niov)
{
    const point *p = w->p;
    const esdm_data_plugin *plugin = p->target->plugin;
    void *handle = NULL;
    double started = esdm__seconds_now();
    esdm_status status = plugin->pack_create(p->target->handle, w->pack, &handle, &w->error);
    if (status != ESDM_OK)
        return status;
    for (unsigned i = 0; i < p->requests && status == ESDM_OK; i++)
        status = append_one(w, handle, iov, niov, i);
    if (status == ESDM_OK)
        status = flush(w, handle);
    esdm_status sealed = plugin->pack_seal(handle, status == ESDM_OK ? &w->error : NULL);
    w->write_s = esdm__seconds_now() - started;
    return status == ESDM_OK ? sealed : status;
}

static esdm_status
write_pack(worker *w)
{
    const point *p = w->p;
    size_t niov = (size_t) ((p->bytes + PIECE_BYTES - 1) / PIECE_BYTES);
    esdm_iov *iov = calloc(niov, sizeof *iov);
    if (iov == NULL)
        return esdm__error_nomem(&w->error, niov * sizeof *iov, "a measurement");
    for (size_t i = 0; i < niov; i++) {
        uint64_t left = p->bytes - i * PIECE_BYTES;
        iov[i] = (esdm_iov){p->piece, (size_t) (left < PIECE_BYTES ? left : PIECE_BYTES)};
    }
    esdm_status status = write_requests(w, iov, niov);
    free(iov);
    return status;
}

static esdm_status
read_pack(worker *w)
{
    const point *p = w->p;
    esdm_status status = ESDM_OK;
    double started = esdm__seconds_now();
    for (unsigned i = 0; i < p->requests && status == ESDM_OK; i++) {
        esdm_range range = {w->positions[i], p->bytes, w->buffer};
        status = p->target->plugin->pack_read(p->target->handle, w->pack, &range, 1, &w->error);
    }
    w->read_s = esdm__seconds_now() - started;
    for (uint64_t at = 0; at < p->bytes && status == ESDM_OK; at += PIECE_BYTES) {
        uint64_t left = p->bytes - at;
        if (memcmp(w->buffer + at, p->piece, (size_t) (left < PIECE_BYTES ? left : PIECE_BYTES)) !=
            0)
            status =
                esdm__error_set(&w->error, ESDM_ECORRUPT, "what was read is not what was written");
    }
    return status;
}

static bool
pass_gate(point *p)
{
    (void) pthread_mutex_lock(&p->lock);
    while (p->gate == CLOSED)
        (void) pthread_cond_wait(&p->opened, &p->lock);
    bool open = p->gate == OPEN;
    (void) pthread_mutex_unlock(&p->lock);
    return open;
}

static void
set_gate(point *p, bool open)
{
    (void) pthread_mutex_lock(&p->lock);
    p->gate = open ? OPEN : GIVE_UP;
    (void) pthread_cond_broadcast(&p->opened);
    (void) pthread_mutex_unlock(&p->lock);
}

/* All threads write, then all read, what the memory has forgotten. */
static void *
work(void *argument)
{
    worker *w = argument;
    if (!pass_gate(w->p))
        return NULL;
    w->status = write_pack(w);
    if (w->status == ESDM_OK)
        evict(w);
    (void) pthread_barrier_wait(&w->p->written);
    if (w->status == ESDM_OK)
        w->status = read_pack(w);
    return NULL;
}

/* ---- one point ---------------------------------------------------------------------------- */

static void
clear_workers(const point *p, worker *workers)
{
    for (uint32_t i = 0; i < p->concurrency; i++) {
        if (workers[i].pack[0] != '\0')
            (void) p->target->plugin->pack_remove(p->target->handle, workers[i].pack, NULL);
        free(workers[i].positions);
        free(workers[i].buffer);
    }
    free(workers);
}

static esdm_status
new_workers(point *p, worker **ret_workers, esdm_error *err)
{
    char id[ESDM__UUID_BYTES];
    worker *workers = calloc(p->concurrency, sizeof *workers);
    bool ok = workers != NULL;
    for (uint32_t i = 0; ok && i < p->concurrency; i++) {
        workers[i].p = p;
        workers[i].positions = calloc(p->requests, sizeof(uint64_t));
        workers[i].buffer = malloc((size_t) p->bytes);
        ok = workers[i].positions != NULL && workers[i].buffer != NULL;
        if (ok)
            memset(workers[i].buffer, 0, (size_t) p->bytes); /* its pages are there */
    }
    if (!ok) {
        if (workers != NULL)
            clear_workers(p, workers);
        return esdm__error_nomem(err, (size_t) p->bytes * p->concurrency, "a measurement");
    }
    esdm__uuid_new(id);
    for (uint32_t i = 0; i < p->concurrency; i++)
        (void) snprintf(workers[i].pack, sizeof workers[i].pack, "%s-%.16s-%x", id, p->writer,
                        atomic_fetch_add(&p->session->next_pack, 1u));
    *ret_workers = workers;
    return ESDM_OK;
}

static esdm_status
run_workers(point *p, worker *workers, esdm_error *err)
{
    uint32_t started = 0;
    p->gate = CLOSED;
    (void) pthread_mutex_init(&p->lock, NULL);
    (void) pthread_cond_init(&p->opened, NULL);
    (void) pthread_barrier_init(&p->written, NULL, p->concurrency);
    while (started < p->concurrency &&
           pthread_create(&workers[started].thread, NULL, work, &workers[started]) == 0)
        started++;
    set_gate(p, started == p->concurrency);
    for (uint32_t i = 0; i < started; i++)
        (void) pthread_join(workers[i].thread, NULL);
    (void) pthread_barrier_destroy(&p->written);
    (void) pthread_cond_destroy(&p->opened);
    (void) pthread_mutex_destroy(&p->lock);
    if (started < p->concurrency)
        return esdm__error_set(err, ESDM_ENOMEM, "only %u of %u threads could be started", started,
                               p->concurrency);
    for (uint32_t i = 0; i < started; i++) {
        if (workers[i].status != ESDM_OK) {
            if (err != NULL)
                *err = workers[i].error;
            return workers[i].status;
        }
    }
    return ESDM_OK;
}

static void
add_sample(const point *p, const worker *workers, bool reading, esdm__measured *m)
{
    double seconds = 0;
    for (uint32_t i = 0; i < p->concurrency; i++)
        seconds += reading ? workers[i].read_s : workers[i].write_s;
    m->samples[m->nsamples++] = (esdm__perf_sample){
        .bytes = (double) p->bytes,
        .concurrency = p->concurrency,
        .seconds = fmax(seconds / p->concurrency / p->requests, 1e-9),
    };
}

static esdm_status
measure_point(point *p, esdm__target_model *model, esdm_error *err)
{
    worker *workers = NULL;
    esdm_status status = new_workers(p, &workers, err);
    if (status == ESDM_OK)
        status = run_workers(p, workers, err);
    if (status == ESDM_OK) {
        add_sample(p, workers, false, &model->write);
        add_sample(p, workers, true, &model->read);
    }
    if (workers != NULL)
        clear_workers(p, workers);
    return status;
}

/* ---- all points --------------------------------------------------------------------------- */

/* What a calibration of one target has used up. */
typedef struct run {
    const esdm__calibration *c;
    const esdm__calibration_watch *watch;
    uint64_t bytes_left;
    double started;
    size_t points; /* that were looked at */
    double *took;  /* seconds of each size and concurrency at the last repetition, 0: not yet */
} run;

/* From the last repetition, or the smaller sizes. */
static double
expected_seconds(const run *r, size_t size, size_t concurrency)
{
    const double *took = &r->took[concurrency * r->c->nsizes];
    if (took[size] > 0)
        return took[size];
    for (size_t i = size; i > 0; i--) {
        double grown = (double) r->c->sizes[size] / (double) r->c->sizes[i - 1];
        grown *= (double) esdm__calibration_requests(r->c->sizes[size]) /
                 esdm__calibration_requests(r->c->sizes[i - 1]);
        if (took[i - 1] > 0)
            return took[i - 1] * grown / 2;
    }
    return 0;
}

static bool
go_on(const run *r, const char *target, uint64_t bytes, uint32_t concurrency)
{
    const esdm_calibrate_options *how = r->watch->how;
    if (how->progress == NULL)
        return true;
    char text[160];
    size_t all = r->c->nsizes * r->c->nconcurrencies * r->c->repetitions;
    double points = (double) r->points / (double) all;
    double time = (esdm__seconds_now() - r->started) / r->c->seconds_max;
    (void) snprintf(text, sizeof text, "%s: %" PRIu64 " KiB, %u at once", target, bytes / 1024,
                    concurrency);
    return how->progress(((double) r->watch->target + fmin(fmax(points, time), 1)) /
                             (double) r->watch->targets,
                         text, how->user);
}

/* Measured whatever the time: latency and bandwidth need several sizes, saturation several requests
 * at once, and every number some measurements more than one. */
static bool
is_needed(const run *r, unsigned repetition, size_t size, size_t concurrency)
{
    if (repetition >= NEEDED_REPETITIONS)
        return false;
    if (concurrency == 0)
        return r->c->sizes[size] <= NEEDED_BYTES;
    return size == 0 && concurrency + 1 == r->c->nconcurrencies;
}

static esdm_status
one_point(run *r, point *p, size_t size, size_t concurrency, bool needed, esdm__target_model *model,
          esdm_error *err)
{
    p->bytes = r->c->sizes[size];
    p->concurrency = r->c->concurrencies[concurrency];
    p->requests = esdm__calibration_requests(p->bytes);
    uint64_t total = p->bytes * p->requests * p->concurrency;
    double left = r->c->seconds_max - (esdm__seconds_now() - r->started);
    r->points++;
    bool late = left <= 0 || expected_seconds(r, size, concurrency) > POINT_SHARE * left;
    if (total > r->bytes_left || p->bytes * p->concurrency > r->c->memory_bytes ||
        (late && !needed))
        return ESDM_OK;
    if (!go_on(r, p->target->name, p->bytes, p->concurrency))
        return esdm__error_set(err, ESDM_ECANCELED, "the calibration was interrupted");
    r->bytes_left -= total;
    double began = esdm__seconds_now();
    esdm_status status = measure_point(p, model, err);
    r->took[concurrency * r->c->nsizes + size] = esdm__seconds_now() - began;
    return status;
}

static esdm_status
all_points(run *r, point *p, esdm__target_model *model, esdm_error *err)
{
    const esdm__calibration *c = r->c;
    size_t most = c->nsizes * c->nconcurrencies * c->repetitions;
    model->write.samples = calloc(most, sizeof(esdm__perf_sample));
    model->read.samples = calloc(most, sizeof(esdm__perf_sample));
    if (model->write.samples == NULL || model->read.samples == NULL)
        return esdm__error_nomem(err, most * sizeof(esdm__perf_sample), "measurements");
    esdm_status status = ESDM_OK;
    for (unsigned k = 0; k < c->repetitions && status == ESDM_OK; k++)
        for (size_t i = 0; i < c->nsizes && status == ESDM_OK; i++)
            for (size_t j = 0; j < c->nconcurrencies && status == ESDM_OK; j++)
                status = one_point(r, p, i, j, is_needed(r, k, i, j), model, err);
    return status;
}

/* Where bytes or memory are short, what remains may tell nothing. */
static esdm_status
check_sizes(const esdm__measured *m, esdm_error *err)
{
    size_t sizes = 0;
    for (size_t i = 0; i < m->nsamples; i++) {
        size_t first = 0;
        while (m->samples[first].bytes != m->samples[i].bytes)
            first++;
        sizes += first == i;
    }
    if (sizes >= NEEDED_SIZES && m->nsamples >= ESDM__PERF_LEAST_SAMPLES)
        return ESDM_OK;
    return esdm__error_set(err, ESDM_EINVAL,
                           "%zu measurements of %zu sizes; a model needs at least %u of %u. The "
                           "target may be too full, or engine.memory too small",
                           m->nsamples, sizes, ESDM__PERF_LEAST_SAMPLES, NEEDED_SIZES);
}

static esdm_status
fit_measured(esdm__measured *m, esdm_error *err)
{
    esdm_status status = check_sizes(m, err);
    if (status == ESDM_OK)
        status = esdm__perf_fit(m->samples, m->nsamples, &m->perf, err);
    if (status == ESDM_OK) /* too few for a validation: the errors stay 0, of 0 samples */
        (void) !esdm__perf_validate(m->samples, m->nsamples, &m->error, NULL);
    return status;
}

static uint64_t
room_on(const esdm__target *target, uint64_t bytes_max)
{
    esdm_target_usage usage = {0};
    if (target->plugin->usage == NULL ||
        target->plugin->usage(target->handle, &usage, NULL) != ESDM_OK || usage.total_bytes == 0)
        return bytes_max;
    uint64_t room = usage.free_bytes / FREE_SHARE;
    return room < bytes_max ? room : bytes_max;
}

/* Bytes that no target can compress. */
static uint8_t *
new_piece(void)
{
    uint64_t *piece = malloc(PIECE_BYTES);
    uint64_t x = esdm__now_ns() | 1;
    for (size_t i = 0; piece != NULL && i < PIECE_BYTES / sizeof *piece; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        piece[i] = x;
    }
    return (uint8_t *) piece;
}

esdm_status
esdm__calibrate_target(esdm_session *session, esdm__target *target, const esdm__calibration *c,
                       const esdm__calibration_watch *watch, esdm__target_model *ret_model,
                       esdm_error *err)
{
    esdm_status status = esdm__target_need(session, target, err);
    if (status != ESDM_OK)
        return esdm__error_prefix(err, status, "target '%s'", target->name);
    uint8_t *piece = new_piece();
    run r = {.c = c,
             .watch = watch,
             .bytes_left = room_on(target, c->bytes_max),
             .started = esdm__seconds_now(),
             .took = calloc(c->nsizes * c->nconcurrencies, sizeof(double))};
    char writer[ESDM__UUID_BYTES];
    esdm__uuid_new(writer);
    point p = {.session = session, .target = target, .c = c, .piece = piece, .writer = writer};
    if (piece == NULL || r.took == NULL)
        status = esdm__error_nomem(err, PIECE_BYTES, "measurements");
    if (status == ESDM_OK) /* so that nobody takes the packs for garbage */
        status = session->meta->writer_begin(session->store, writer, err);
    if (status == ESDM_OK) {
        status = all_points(&r, &p, ret_model, err);
        session->meta->writer_end(session->store, writer);
    }
    if (status == ESDM_OK)
        status = fit_measured(&ret_model->write, err);
    if (status == ESDM_OK)
        status = fit_measured(&ret_model->read, err);
    ret_model->write.past_memory = !atomic_load(&p.from_memory[0]);
    ret_model->read.past_memory = !atomic_load(&p.from_memory[1]);
    ret_model->measured_ns = esdm__now_ns();
    ret_model->quick = watch->how->quick;
    free(piece);
    free(r.took);
    return status == ESDM_OK ? ESDM_OK
                             : esdm__error_prefix(err, status, "target '%s'", target->name);
}
