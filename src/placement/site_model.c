/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "placement/site_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Weight of one more observation. */
#define OBSERVED_WEIGHT (1.0 / 32)
/* One request counts for no more than this, and all of them together: factors as logarithms. */
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
    return (esdm__perf){.latency_s = measured->latency_s * latency,
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

void
esdm__drift_observe(esdm__drift *drift, const esdm__perf *measured, double bytes,
                    double concurrency, double seconds)
{
    esdm__perf now = esdm__perf_drifted(measured, drift);
    double predicted = esdm__perf_seconds(&now, bytes, fmax(1, concurrency));
    if (!(seconds > 0) || !isfinite(seconds) || !(predicted > 0))
        return;
    double alone = now.latency_s + bytes * now.stream_s_per_byte;
    double busy = concurrency * (now.service_s + bytes * now.shared_s_per_byte);
    double fixed = alone >= busy ? now.latency_s / alone : concurrency * now.service_s / busy;
    double step = OBSERVED_WEIGHT * clamp(log(seconds / predicted), LARGEST_STEP);
    drift->latency = clamp(drift->latency + step * fixed, LARGEST_DRIFT);
    drift->bandwidth = clamp(drift->bandwidth + step * (1 - fixed), LARGEST_DRIFT);
    drift->observations++;
}
