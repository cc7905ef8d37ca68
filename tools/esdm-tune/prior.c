/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What the measured model of a site (esdm-mkfs --calibrate) lets expect: fragments go to all
 * targets as these are fast, as many at once as there are threads, and codecs take the time of a
 * core. It is meant to order settings, not to tell seconds.
 */
#include "esdm-tune/prior.h"

#include <math.h>

/* Bytes per second of a core, and what is left of bytes: of climate fields without loss, about. */
static const struct {
    const char *codec;
    double encodes, decodes, left;
} codecs[] = {{"none", INFINITY, INFINITY, 1},
              {"lz4", 1.5e9, 6e9, 0.9},
              {"shuffle+lz4", 1.3e9, 4.5e9, 0.7},
              {"shuffle+zstd", 6e8, 2.2e9, 0.6}};

static bool
take_model(const esdm_model_info *info, void *user)
{
    tune_theory *t = user;
    guint *count = &t->count[info->reading];
    if (*count < TUNE_TARGETS)
        t->models[info->reading][(*count)++] = (target_model){
            g_strdup(info->target), info->latency_s * info->latency_drift,
            info->stream_bytes_per_s / info->bandwidth_drift, info->service_s * info->latency_drift,
            info->shared_bytes_per_s / info->bandwidth_drift};
    return true;
}

tune_theory *
tune_theory_new(esdm_session *session, double bytes, bool writes, bool reads)
{
    tune_theory *t = g_new0(tune_theory, 1);
    t->bytes = bytes > 0 ? bytes : TUNE_USUAL_BYTES;
    t->writes = writes;
    t->reads = reads;
    if (esdm_session_models(session, take_model, t, NULL) == ESDM_OK && t->count[0] > 0 &&
        t->count[1] > 0)
        return t;
    g_free(t);
    return NULL;
}

/* Seconds for `count` fragments, of which each takes a core for `cpu_s` and is `bytes` on its way.
 * `threads` go round: compute, move, and again; no faster than all cores compute, nor than the
 * targets take what comes (bounds of a closed queueing network). */
double
tune_rate(const target_model *m, double bytes, double cpu_s, double threads, double busy_threads,
          double cores)
{
    double served = m->service_s + bytes / m->shared;
    double cycle = fmax(fmax(cpu_s + m->latency_s + bytes / m->stream, threads * served),
                        busy_threads / cores * cpu_s);
    return threads / fmax(cycle, 1e-9);
}

double
tune_rounds_s(const target_model *models, guint targets, double count, double bytes, double cpu_s,
              double threads, double cores)
{
    double rate = 0; /* fragments a second */
    double each = fmax(threads / targets, 1);
    for (guint i = 0; i < targets; i++)
        rate += tune_rate(&models[i], bytes, cpu_s, each, threads, cores);
    double rounds = ceil(count / threads); /* the last one is not full */
    return fmax(count / rate, rounds * threads / rate);
}

static double
way_s(const tune_theory *t, bool reading, double fragment, double threads, gsize codec)
{
    double count = fmax(ceil(t->bytes / fragment), 1);
    double size = t->bytes / count;
    double speed = reading ? codecs[codec].decodes : codecs[codec].encodes;
    return tune_rounds_s(t->models[reading], t->count[reading], count, size * codecs[codec].left,
                         size / speed + size / TUNE_MEMORY_SPEED, fmin(threads, count),
                         (double) g_get_num_processors());
}

double
tune_theory_prior(const tune_space *space, const tune_setting *setting, void *theory, guint guess)
{
    (void) guess;
    const tune_theory *t = theory;
    double fragment = tune_space_number(space, setting, "fragment");
    double threads = tune_space_number(space, setting, "threads");
    const char *name = tune_space_text(space, setting, "codec");
    double seconds = 0;
    gsize codec = 0;
    for (gsize i = 0; name != NULL && i < G_N_ELEMENTS(codecs); i++)
        codec = g_str_equal(codecs[i].codec, name) ? i : codec;
    if (isnan(fragment))
        fragment = 4 << 20;
    if (isnan(threads))
        threads = (double) g_get_num_processors();
    if (t->writes)
        seconds += way_s(t, false, fragment, threads, codec);
    if (t->reads)
        seconds += way_s(t, true, fragment, threads, codec);
    return log(fmax(seconds, 1e-6));
}
