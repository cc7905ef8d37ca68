/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What the measured model of a site (esdm-mkfs --calibrate) lets expect: fragments go to all
 * targets as these are fast, as many at once as there are threads, and codecs take the time of a
 * core. It is meant to order settings, not to tell seconds.
 */
#include "esdm-tune/esdm-tune.h"

#include <math.h>

#define TARGETS 64u
/* Bytes that a run moves where nobody says how many. */
#define USUAL_BYTES 256e6
/* A fragment that stays in memory while it is written costs this beside: bytes per second. */
#define MEMORY_SPEED 4e9

typedef struct target_model {
    double latency_s, stream, service_s, shared;
} target_model;

struct tune_theory {
    double bytes;
    bool writes, reads;
    target_model models[2][TARGETS]; /* writing, reading */
    guint count[2];
};

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
    if (*count < TARGETS)
        t->models[info->reading][(*count)++] = (target_model){
            info->latency_s * info->latency_drift, info->stream_bytes_per_s / info->bandwidth_drift,
            info->service_s * info->latency_drift,
            info->shared_bytes_per_s / info->bandwidth_drift};
    return true;
}

tune_theory *
tune_theory_new(esdm_session *session, double bytes, bool writes, bool reads)
{
    tune_theory *t = g_new0(tune_theory, 1);
    t->bytes = bytes > 0 ? bytes : USUAL_BYTES;
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
static double
rounds_s(const target_model *models, guint targets, double count, double bytes, double cpu_s,
         double threads, double cores)
{
    double rate = 0; /* fragments a second */
    double each = fmax(threads / targets, 1);
    for (guint i = 0; i < targets; i++) {
        const target_model *m = &models[i];
        double served = m->service_s + bytes / m->shared;
        double cycle = fmax(fmax(cpu_s + m->latency_s + bytes / m->stream, each * served),
                            threads / cores * cpu_s);
        rate += each / fmax(cycle, 1e-9);
    }
    double rounds = ceil(count / threads); /* the last one is not full */
    return fmax(count / rate, rounds * threads / rate);
}

static double
way_s(const tune_theory *t, bool reading, double fragment, double threads, gsize codec)
{
    double count = fmax(ceil(t->bytes / fragment), 1);
    double size = t->bytes / count;
    double speed = reading ? codecs[codec].decodes : codecs[codec].encodes;
    return rounds_s(t->models[reading], t->count[reading], count, size * codecs[codec].left,
                    size / speed + size / MEMORY_SPEED, fmin(threads, count),
                    (double) g_get_num_processors());
}

double
tune_theory_prior(const tune_space *space, const tune_setting *setting, void *theory)
{
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
