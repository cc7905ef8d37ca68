/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Public functions on placement: calibration, models, forecasts, decisions. */

#include "esdm/placement.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arguments.h"
#include "base/error.h"
#include "base/ids.h"
#include "io/io.h"
#include "io/measure/calibrate.h"
#include "io/measure/forecast.h"
#include "io/packs/decisions.h"
#include "io/packs/pack_set.h"
#include "io/session/models.h"

esdm_status
esdm_site_calibrate(const esdm_site_options *options, const esdm_calibrate_options *how,
                    esdm_error *err)
{
    return esdm__calibrate(options, how, err);
}

esdm_status
esdm_container_decisions(esdm_container *container, esdm_decision_visitor visit, void *user,
                         esdm_error *err)
{
    ESDM__NEED(err, container);
    ESDM__NEED(err, visit);
    return esdm__container_decisions(container, visit, user, err);
}

void
esdm_container_write_counts(esdm_container *container, esdm_write_counts *ret_counts)
{
    if (ret_counts == NULL)
        return;
    *ret_counts = (esdm_write_counts){0};
    if (container == NULL)
        return;
    esdm__container_io *io = esdm__io_of(container);
    esdm__pack_set *packs = __atomic_load_n(&io->packs, __ATOMIC_ACQUIRE);
    if (packs != NULL)
        esdm__pack_set_counts(packs, ret_counts);
}

esdm_status
esdm_container_write_history(esdm_container *container, esdm_write_counts *ret_counts,
                             esdm_error *err)
{
    ESDM__NEED(err, container);
    ESDM__NEED(err, ret_counts);
    const esdm__container_io *io = esdm__io_of(container);
    return esdm__decisions_history(io->session, io->uuid, ret_counts, err);
}

esdm_status
esdm_forecast_write(esdm_session *session, const esdm_forecast_request *request,
                    esdm_forecast_visitor visit, void *user, double *ret_seconds, esdm_error *err)
{
    if (session == NULL || request == NULL || visit == NULL || ret_seconds == NULL ||
        request->container == NULL || request->path == NULL ||
        (request->shape == NULL && request->rank > 0))
        return esdm__error_set(err, ESDM_EINVAL, "esdm_forecast_write: an argument is NULL");
    return esdm__io_forecast(session, request, visit, user, ret_seconds, err);
}

static double
per_second(double seconds_per_byte)
{
    return seconds_per_byte > 0 ? 1 / seconds_per_byte : (double) INFINITY;
}

static double
seconds_per_byte(double bytes_per_s)
{
    return isfinite(bytes_per_s) && bytes_per_s > 0 ? 1 / bytes_per_s : 0;
}

double
esdm_model_seconds(const esdm_model_info *info, double bytes, double concurrency)
{
    if (info == NULL)
        return 0;
    const esdm__perf perf = {
        .latency_s = info->latency_s * info->latency_drift,
        .service_s = info->service_s * info->latency_drift,
        .stream_s_per_byte = seconds_per_byte(info->stream_bytes_per_s) * info->bandwidth_drift,
        .shared_s_per_byte = seconds_per_byte(info->shared_bytes_per_s) * info->bandwidth_drift};
    return esdm__perf_seconds(&perf, bytes, fmax(1, concurrency));
}

/* true: go on. */
static bool
visit_way(const esdm__target_model *t, bool reading, esdm_model_visitor visit, void *user)
{
    const esdm__measured *m = reading ? &t->read : &t->write;
    if (!esdm__perf_valid(&m->perf))
        return true;
    esdm_model_sample *samples = calloc(m->nsamples + 1, sizeof *samples);
    for (size_t i = 0; samples != NULL && i < m->nsamples; i++)
        samples[i] = (esdm_model_sample){m->samples[i].bytes, m->samples[i].concurrency,
                                         m->samples[i].seconds};
    const esdm_model_info info = {
        .target = t->name,
        .reading = reading,
        .quick = t->quick,
        .measured_ns = t->measured_ns,
        .latency_s = m->perf.latency_s,
        .stream_bytes_per_s = per_second(m->perf.stream_s_per_byte),
        .service_s = m->perf.service_s,
        .shared_bytes_per_s = per_second(m->perf.shared_s_per_byte),
        .error = m->error.model,
        .naive_error = m->error.naive,
        .median_error = m->error.median,
        .held_out = m->error.samples,
        .latency_drift = exp(m->drift.latency),
        .bandwidth_drift = exp(m->drift.bandwidth),
        .observations = m->drift.observations,
        .nsamples = samples != NULL ? m->nsamples : 0,
        .samples = samples,
        .past_memory = m->past_memory,
        .learned_requests = m->learned.count > 0 ? m->learned.requests : 0,
        .learned_error = m->learned.error,
        .learned_from_error = m->learned.calibrated_error,
    };
    bool more = visit(&info, user);
    free(samples);
    return more;
}

esdm_status
esdm_session_models(esdm_session *session, esdm_model_visitor visit, void *user, esdm_error *err)
{
    esdm__site_model model = {0};
    ESDM__NEED(err, session);
    ESDM__NEED(err, visit);
    esdm_status status = esdm__models_load(session, &model, err);
    if (status == ESDM_ENOENT)
        return ESDM_OK;
    if (status != ESDM_OK)
        return status;
    for (size_t i = 0; i < session->ntargets; i++) {
        const esdm__target_model *t = esdm__site_model_find(&model, session->targets[i].name);
        if (t != NULL && (!visit_way(t, false, visit, user) || !visit_way(t, true, visit, user)))
            break;
    }
    esdm__site_model_clear(&model);
    return ESDM_OK;
}

/* ---- learning from requests ----------------------------------------------------------------- */

/* What memory takes or answers faster says nothing about the device. */
static bool
has_memory_before_it(const esdm_session *session, const char *target)
{
    for (size_t i = 0; i < session->ntargets; i++) {
        if (strcmp(session->targets[i].name, target) == 0)
            return (session->targets[i].plugin->flags & ESDM_DATA_CACHED) != 0;
    }
    return false;
}

static esdm_status
fit(const esdm__perf *perf, const esdm_model_sample *samples, size_t nsamples, bool memory,
    esdm__learned *ret_learned, bool *ret_better, esdm_error *err)
{
    esdm__perf_sample *list = calloc(nsamples + 1, sizeof *list);
    if (list == NULL)
        return esdm__error_nomem(err, nsamples * sizeof *list, "requests");
    for (size_t i = 0; i < nsamples; i++) {
        const esdm_model_sample *s = &samples[i];
        double least = memory ? esdm__perf_seconds(perf, s->bytes, fmax(1, s->concurrency)) : 0;
        list[i] = (esdm__perf_sample){s->bytes, s->concurrency,
                                      s->seconds > 0 ? fmax(s->seconds, least) : s->seconds};
    }
    esdm_status status = esdm__learned_fit(perf, list, nsamples, ret_learned, ret_better, err);
    free(list);
    return status;
}

esdm_status
esdm_session_learn(esdm_session *session, const char *target, bool reading,
                   const esdm_model_sample *samples, size_t nsamples, bool keep,
                   esdm_learn_result *ret_result, esdm_error *err)
{
    esdm__site_model model = {0};
    esdm__learned learned = {0};
    bool better = false;
    ESDM__NEED(err, session);
    ESDM__NEED(err, target);
    ESDM__NEED(err, ret_result);
    if (samples == NULL && nsamples > 0)
        return esdm__error_set(err, ESDM_EINVAL, "esdm_session_learn: samples is NULL");
    if (keep && (session->read_only || !session->meta->is_writable(session->store)))
        return esdm__error_set(err, ESDM_EACCES,
                               "what was learned cannot be kept: the site is open for reading");
    esdm_status status = esdm__models_load(session, &model, err);
    if (status != ESDM_OK && status != ESDM_ENOENT)
        return status;
    const esdm__target_model *t = esdm__site_model_find(&model, target);
    const esdm__measured *m = t == NULL ? NULL : reading ? &t->read : &t->write;
    if (m == NULL || !esdm__perf_valid(&m->perf))
        status = esdm__error_set(err, ESDM_ENOENT,
                                 "target '%s' was not measured; esdm-mkfs --calibrate does that",
                                 target);
    else
        status = fit(&m->perf, samples, nsamples, has_memory_before_it(session, target), &learned,
                     &better, err);
    if (status == ESDM_OK) {
        const esdm__learned nothing = {0};
        learned.learned_ns = esdm__now_ns();
        *ret_result = (esdm_learn_result){.requests = learned.requests,
                                          .error = learned.error,
                                          .calibrated_error = learned.calibrated_error,
                                          .better = better};
        if (keep)
            status = esdm__models_keep_learned(session, target, t->measured_ns, reading,
                                               better ? &learned : &nothing, err);
    }
    esdm__site_model_clear(&model);
    return status;
}
