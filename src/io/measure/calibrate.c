/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/measure/calibrate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/session/models.h"
#include "site/admin.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)
#define GIB (MIB * 1024)

/* A thread makes so many requests one after the other, or so many bytes. */
#define REQUESTS_MAX    16u
#define REQUESTS_BYTES  (16 * MIB)
#define CONCURRENCY_MAX 64u

unsigned
esdm__calibration_requests(uint64_t bytes)
{
    uint64_t requests = REQUESTS_BYTES / bytes;
    return requests < 1 ? 1 : requests > REQUESTS_MAX ? REQUESTS_MAX : (unsigned) requests;
}

static uint32_t
concurrency_of(const esdm_session *session, const esdm_calibrate_options *how)
{
    uint32_t most = session->site->engine.threads;
    for (size_t i = 0; i < session->ntargets; i++) {
        uint32_t wanted = session->targets[i].plugin->concurrency;
        most = wanted > most ? wanted : most;
    }
    most = most < 4 ? 4 : most;
    if (how->concurrency > 0)
        most = how->concurrency;
    return most < CONCURRENCY_MAX ? most : CONCURRENCY_MAX;
}

esdm__calibration
esdm__calibration_of(const esdm_session *session, const esdm_calibrate_options *how)
{
    esdm__calibration c = {
        .repetitions = how->quick ? 2 : 3,
        .bytes_max = how->bytes > 0 ? how->bytes
                     : how->quick   ? 256 * MIB
                                    : 4 * GIB,
        .seconds_max = how->seconds > 0 ? how->seconds
                       : how->quick     ? 6
                                        : 60,
        .memory_bytes = session->site->engine.memory_bytes,
    };
    uint32_t most = concurrency_of(session, how);
    for (uint64_t bytes = 4 * KIB; bytes <= (how->quick ? 16 * MIB : 256 * MIB);
         bytes *= how->quick ? 8 : 4)
        c.sizes[c.nsizes++] = bytes;
    for (uint32_t n = 1; n < most; n *= how->quick ? 4 : 2)
        c.concurrencies[c.nconcurrencies++] = n;
    c.concurrencies[c.nconcurrencies++] = most;
    return c;
}

/* ---- report ------------------------------------------------------------------------------- */

static void
format_rate(double seconds_per_byte, char ret_text[40])
{
    char bytes[24];
    if (!(seconds_per_byte > 1e-15)) {
        (void) snprintf(ret_text, 40, "not measurable");
        return;
    }
    esdm__format_bytes((uint64_t) (1 / seconds_per_byte), bytes);
    (void) snprintf(ret_text, 40, "%s/s", bytes);
}

static void
say_measured(const esdm__report_to *say, const char *target, const char *direction,
             const esdm__measured *m)
{
    char stream[40];
    char shared[40];
    format_rate(m->perf.stream_s_per_byte, stream);
    format_rate(m->perf.shared_s_per_byte, shared);
    esdm__say(say, "%s, %s: latency %.3g ms, one stream %s, all together %s", target, direction,
              m->perf.latency_s * 1e3, stream, shared);
    if (!m->past_memory)
        esdm__say(say,
                  "%s, %s: the memory of this machine had a part in that and cannot be kept out: "
                  "of more data than it holds, expect less",
                  target, direction);
    if (m->error.samples > 0)
        esdm__say(say,
                  "%s, %s: %zu measurements; predicted from the others, each is wrong by %.0f %% "
                  "(median %.0f %%); with the mean of the others for a prediction by %.0f %%",
                  target, direction, m->error.samples, m->error.model * 100, m->error.median * 100,
                  m->error.naive * 100);
}

static void
say_plan(const esdm__report_to *say, const esdm__target *target, const esdm__calibration *c)
{
    char first[24];
    char last[24];
    char most[24];
    esdm__format_bytes(c->sizes[0], first);
    esdm__format_bytes(c->sizes[c->nsizes - 1], last);
    esdm__format_bytes(c->bytes_max, most);
    esdm__say(say,
              "measure target '%s': requests of %s to %s, 1 to %u at once, write and read, %u "
              "times; at most %s and about %.0f s, all of which is removed",
              target->name, first, last, c->concurrencies[c->nconcurrencies - 1], c->repetitions,
              most, c->seconds_max);
}

/* ---- calibration -------------------------------------------------------------------------- */

static void
replace_model(esdm__target_model *target, esdm__target_model *measured)
{
    free(target->write.samples);
    free(target->read.samples);
    measured->name = target->name;
    *target = *measured;
}

static esdm_status
calibrate_one(esdm_session *session, esdm__target *target, const esdm__calibration *c,
              const esdm__calibration_watch *watch, const esdm__report_to *say,
              esdm__site_model *model, esdm_error *err)
{
    esdm__target_model measured = {0};
    esdm_status status = esdm__calibrate_target(session, target, c, watch, &measured, err);
    esdm__target_model *entry =
        status == ESDM_OK ? esdm__site_model_add(model, target->name) : NULL;
    if (status == ESDM_OK && entry == NULL)
        status = esdm__error_nomem(err, sizeof *entry, "a model");
    if (status != ESDM_OK) {
        free(measured.write.samples);
        free(measured.read.samples);
        return status;
    }
    replace_model(entry, &measured);
    say_measured(say, target->name, "write", &entry->write);
    say_measured(say, target->name, "read", &entry->read);
    return ESDM_OK;
}

/* How many targets could not be measured, and why the first one. */
typedef struct unmeasured {
    size_t count;
    esdm_error first;
} unmeasured;

/* One that fails does not cost the measurements of the others. */
static esdm_status
calibrate_next(esdm_session *session, esdm__target *target, const esdm__calibration *c,
               const esdm__calibration_watch *watch, const esdm__report_to *say,
               esdm__site_model *model, unmeasured *failed, esdm_error *err)
{
    esdm_error why = {0};
    esdm_status status = calibrate_one(session, target, c, watch, say, model, &why);
    if (status == ESDM_OK)
        return ESDM_OK;
    why.status = status;
    if (status == ESDM_ECANCELED || status == ESDM_ENOMEM) {
        if (err != NULL)
            *err = why;
        return status;
    }
    esdm__say(say, "target '%s' was not measured", target->name);
    if (failed->count++ == 0)
        failed->first = why;
    return ESDM_OK;
}

static esdm_status
report_failed(const unmeasured *failed, size_t targets, esdm_error *err)
{
    if (failed->count == 0)
        return ESDM_OK;
    if (err != NULL)
        *err = failed->first;
    if (targets == 1)
        return failed->first.status;
    return esdm__error_prefix(err, failed->first.status, "%zu of %zu targets were not measured%s",
                              failed->count, targets,
                              failed->count < targets ? ", the others' measurements are kept" : "");
}

static esdm_status
calibrate_session(esdm_session *session, const esdm_site_options *options,
                  const esdm_calibrate_options *how, esdm_error *err)
{
    const esdm__report_to say = esdm__reporter(options->report, options->user);
    esdm__calibration c = esdm__calibration_of(session, how);
    esdm__calibration_watch watch = {.how = how,
                                     .targets = how->target != NULL ? 1 : session->ntargets};
    esdm__site_model model = {0};
    unmeasured failed = {.count = 0};
    if (how->target != NULL && esdm__session_target(session, how->target) == NULL)
        return esdm__error_set(err, ESDM_ENOENT, "%s: there is no target '%.100s'",
                               session->site->source, how->target);
    /* A damaged one is replaced; a newer one is not ours to replace. */
    esdm_status status = esdm__models_load(session, &model, err);
    if (status == ESDM_ENOENT || status == ESDM_ECORRUPT)
        status = ESDM_OK;
    for (size_t i = 0; i < session->ntargets && status == ESDM_OK; i++) {
        esdm__target *target = &session->targets[i];
        if (how->target != NULL && strcmp(target->name, how->target) != 0)
            continue;
        if (options->dry_run)
            say_plan(&say, target, &c);
        else
            status = calibrate_next(session, target, &c, &watch, &say, &model, &failed, err);
        watch.target++;
    }
    if (status == ESDM_OK && !options->dry_run && failed.count < watch.targets)
        status = esdm__models_store(session, &model, err);
    esdm__site_model_clear(&model);
    return status == ESDM_OK ? report_failed(&failed, watch.targets, err) : status;
}

esdm_status
esdm__calibrate(const esdm_site_options *options, const esdm_calibrate_options *how,
                esdm_error *err)
{
    static const esdm_site_options no_options = {0};
    static const esdm_calibrate_options default_how = {0};
    options = options != NULL ? options : &no_options;
    how = how != NULL ? how : &default_how;
    const esdm_session_options open = {.config_path = options->config_path,
                                       .config_json = options->config_json,
                                       .read_only = options->dry_run};
    esdm_session *session = NULL;
    esdm_status status = esdm__session_new(&open, NULL, &session, err);
    if (status != ESDM_OK)
        return status;
    if (!options->dry_run && !session->meta->is_writable(session->store))
        status = esdm__error_set(err, ESDM_EACCES,
                                 "%s: the model cannot be kept: no permission to write to the "
                                 "metadata store",
                                 session->site->source);
    if (status == ESDM_OK)
        status = calibrate_session(session, options, how, err);
    esdm__session_free(session);
    return status;
}
