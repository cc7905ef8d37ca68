/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "placement/site_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Weights of one more observation: of a small request, and of each so many bytes of a large one. A
 * tenfold change is followed within 64 MB. */
#define OBSERVED_WEIGHT (1.0 / 32)
#define BYTES_WEIGHT    (1.0 / 4)
#define BYTES_OBSERVED  (4.0 * 1024 * 1024)
#define MOST_STEPS      16
/* One of these counts for no more than this, and all of them together: factors as logarithms. */
#define LARGEST_STEP  0.7 /* 2 */
#define LARGEST_DRIFT 4.6 /* 100 */

static void
measured_clear(esdm__measured *m)
{
    free(m->samples);
    m->samples = NULL;
    m->nsamples = 0;
}

void
esdm__site_model_clear(esdm__site_model *model)
{
    for (size_t i = 0; i < model->count; i++) {
        free(model->targets[i].name);
        measured_clear(&model->targets[i].write);
        measured_clear(&model->targets[i].read);
    }
    free(model->targets);
    *model = (esdm__site_model){0};
}

esdm__target_model *
esdm__site_model_find(const esdm__site_model *model, const char *name)
{
    for (size_t i = 0; i < model->count; i++) {
        if (strcmp(model->targets[i].name, name) == 0)
            return &model->targets[i];
    }
    return NULL;
}

esdm__target_model *
esdm__site_model_add(esdm__site_model *model, const char *name)
{
    esdm__target_model *found = esdm__site_model_find(model, name);
    if (found != NULL)
        return found;
    esdm__target_model *grown = realloc(model->targets, (model->count + 1) * sizeof *grown);
    if (grown == NULL)
        return NULL;
    model->targets = grown;
    grown[model->count] = (esdm__target_model){.name = strdup(name)};
    if (grown[model->count].name == NULL)
        return NULL;
    return &grown[model->count++];
}

esdm__perf
esdm__perf_drifted(const esdm__perf *measured, const esdm__drift *drift)
{
    double latency = exp(drift->latency);
    double bandwidth = exp(drift->bandwidth);
    return (esdm__perf){.learned = measured->learned,
                        .latency_s = measured->latency_s * latency,
                        .service_s = measured->service_s * latency,
                        .stream_s_per_byte = measured->stream_s_per_byte * bandwidth,
                        .shared_s_per_byte = measured->shared_s_per_byte * bandwidth};
}

static double
clamp(double value, double most)
{
    return fmax(-most, fmin(most, value));
}

esdm__drift
esdm__drift_limited(const esdm__drift *drift)
{
    esdm__drift limited = *drift;
    limited.latency = isnan(drift->latency) ? 0 : clamp(drift->latency, LARGEST_DRIFT);
    limited.bandwidth = isnan(drift->bandwidth) ? 0 : clamp(drift->bandwidth, LARGEST_DRIFT);
    return limited;
}

void
esdm__drift_add(esdm__drift *drift, const esdm__drift *before, const esdm__drift *now)
{
    const esdm__drift sum = {drift->latency + (now->latency - before->latency),
                             drift->bandwidth + (now->bandwidth - before->bandwidth),
                             drift->observations + (now->observations - before->observations)};
    *drift = esdm__drift_limited(&sum);
}

static void
step_towards(esdm__drift *drift, const esdm__perf *measured, double bytes, double concurrency,
             double seconds, double weight)
{
    esdm__perf now = esdm__perf_drifted(measured, drift);
    double predicted = esdm__perf_seconds(&now, bytes, fmax(1, concurrency));
    if (!(predicted > 0))
        return;
    double alone = now.latency_s + bytes * now.stream_s_per_byte;
    double busy = concurrency * (now.service_s + bytes * now.shared_s_per_byte);
    double fixed = alone >= busy ? now.latency_s / alone : concurrency * now.service_s / busy;
    double share = fixed * fixed + (1 - fixed) * (1 - fixed); /* of a step, in what is predicted */
    double step = weight * clamp(log(seconds / predicted), LARGEST_STEP) / share;
    drift->latency = clamp(drift->latency + step * fixed, LARGEST_DRIFT);
    drift->bandwidth = clamp(drift->bandwidth + step * (1 - fixed), LARGEST_DRIFT);
}

void
esdm__drift_observe(esdm__drift *drift, const esdm__perf *measured, double bytes,
                    double concurrency, double seconds)
{
    esdm__perf now = esdm__perf_drifted(measured, drift);
    if (!(seconds > 0) || !isfinite(seconds) || !(bytes >= 0) ||
        !(esdm__perf_seconds(&now, bytes, fmax(1, concurrency)) > 0))
        return;
    double left = bytes / BYTES_OBSERVED; /* as if each of these was a request of its own */
    for (int i = 0; i < MOST_STEPS && (i == 0 || left > 0); i++, left -= 1)
        step_towards(drift, measured, bytes, concurrency, seconds,
                     fmax(OBSERVED_WEIGHT, BYTES_WEIGHT * fmin(1, left)));
    drift->observations++;
}
