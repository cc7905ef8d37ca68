/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/session/models.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/ids.h"
#include "io/session/session.h"

/* What was observed is written back when it is of so many requests, and the last time is so long
 * ago: a program that runs for a second has nothing new to tell. */
#define WRITE_BACK_REQUESTS 64u
#define WRITE_BACK_BYTES    (64.0 * 1024 * 1024)
#define WRITE_BACK_NS       (UINT64_C(600) * 1000000000u)

/* One direction of one target of the session. */
typedef struct way {
    bool measured;
    esdm__perf perf; /* as measured */
    uint64_t measured_ns;
    esdm__learned learned;
    esdm__drift loaded;
    esdm__drift drift; /* `loaded` and what was seen since */
    double bytes;      /* that were seen since */
} way;

struct esdm__models {
    pthread_mutex_t lock; /* guards everything below; a leaf lock, but for loading */
    bool loaded;
    bool any;
    uint64_t observed_ns;
    size_t count;
    way ways[]; /* of each target: write, read */
};

esdm__models *
esdm__models_new(size_t ntargets)
{
    esdm__models *models = calloc(1, sizeof *models + 2 * ntargets * sizeof(way));
    if (models == NULL)
        return NULL;
    (void) pthread_mutex_init(&models->lock, NULL);
    models->count = ntargets;
    return models;
}

double
esdm__seconds_now(void)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
}

/* ---- the facts ---------------------------------------------------------------------------- */

esdm_status
esdm__models_load(const esdm_session *session, esdm__site_model *ret_model, esdm_error *err)
{
    char *text = NULL;
    char *observed = NULL;
    esdm_status status = session->meta->fact_get(session->store, ESDM__MODEL_FACT, &text, err);
    if (status != ESDM_OK)
        return status;
    (void) !session->meta->fact_get(session->store, ESDM__OBSERVED_FACT, &observed, NULL);
    status = esdm__site_model_decode(text, observed, ret_model, err);
    free(text);
    free(observed);
    return status;
}

esdm_status
esdm__models_store(const esdm_session *session, const esdm__site_model *model, esdm_error *err)
{
    char *text = NULL;
    esdm_status status = esdm__site_model_encode(model, &text, err);
    if (status == ESDM_OK)
        status = session->meta->fact_put(session->store, ESDM__MODEL_FACT, text, err);
    free(text);
    return status;
}

esdm_status
esdm__models_keep_learned(const esdm_session *session, const char *target, uint64_t measured_ns,
                          bool reading, const esdm__learned *learned, esdm_error *err)
{
    esdm__site_model model = {0};
    char *text = NULL;
    esdm_status status = esdm__models_load(session, &model, err);
    if (status != ESDM_OK)
        return status;
    esdm__target_model *t = esdm__site_model_find(&model, target);
    if (t == NULL || t->measured_ns != measured_ns)
        status = esdm__error_set(err, ESDM_ENOENT,
                                 "target '%s' was calibrated meanwhile: learn again", target);
    if (status == ESDM_OK) {
        esdm__measured *m = reading ? &t->read : &t->write;
        bool had = m->learned.count > 0;
        m->learned = *learned;
        if (had || learned->count > 0) /* it is of the other model */
            m->drift = (esdm__drift){0};
        status = esdm__site_drifts_encode(&model, &text, err);
    }
    if (status == ESDM_OK)
        status = session->meta->fact_put(session->store, ESDM__OBSERVED_FACT, text, err);
    free(text);
    esdm__site_model_clear(&model);
    return status;
}

/* ---- in the session ----------------------------------------------------------------------- */

static void
take_way(way *w, const esdm__target_model *t, const esdm__measured *m)
{
    w->measured_ns = t->measured_ns;
    w->measured = esdm__perf_valid(&m->perf);
    w->perf = m->perf;
    w->learned = m->learned;
    w->perf.learned = w->learned.count > 0 ? &w->learned : NULL;
    w->loaded = m->drift;
    w->drift = m->drift;
}

static void
take_model(const esdm_session *session, esdm__models *models, const esdm__site_model *model)
{
    models->observed_ns = model->observed_ns;
    for (size_t i = 0; i < models->count; i++) {
        const esdm__target_model *t = esdm__site_model_find(model, session->targets[i].name);
        if (t == NULL)
            continue;
        take_way(&models->ways[2 * i], t, &t->write);
        take_way(&models->ways[2 * i + 1], t, &t->read);
        models->any = models->any || models->ways[2 * i].measured;
    }
}

/* With the lock held. */
static void
load_once(const esdm_session *session, esdm__models *models)
{
    esdm__site_model model = {0};
    if (models->loaded)
        return;
    models->loaded = true;
    if (session->meta == NULL || esdm__models_load(session, &model, NULL) != ESDM_OK)
        return;
    take_model(session, models, &model);
    esdm__site_model_clear(&model);
}

void
esdm__models_tell(const esdm_session *session, const char *text, const char *observed)
{
    esdm__models *models = session->models;
    esdm__site_model model = {0};
    (void) pthread_mutex_lock(&models->lock);
    models->loaded = true;
    if (text != NULL && esdm__site_model_decode(text, observed, &model, NULL) == ESDM_OK) {
        take_model(session, models, &model);
        esdm__site_model_clear(&model);
    }
    (void) pthread_mutex_unlock(&models->lock);
}

void
esdm__models_texts(const esdm_session *session, char **ret_model, char **ret_observed)
{
    *ret_model = NULL;
    *ret_observed = NULL;
    if (session->meta->fact_get(session->store, ESDM__MODEL_FACT, ret_model, NULL) == ESDM_OK)
        (void) !session->meta->fact_get(session->store, ESDM__OBSERVED_FACT, ret_observed, NULL);
}

bool
esdm__models_get(esdm_session *session, size_t target, bool reading, esdm__perf *ret_perf)
{
    esdm__models *models = session->models;
    (void) pthread_mutex_lock(&models->lock);
    load_once(session, models);
    const way *w = &models->ways[2 * target + reading];
    bool measured = w->measured;
    if (measured)
        *ret_perf = esdm__perf_drifted(&w->perf, &w->drift);
    (void) pthread_mutex_unlock(&models->lock);
    return measured;
}

bool
esdm__models_write(esdm_session *session, esdm__perf *ret_perfs, bool *ret_measured)
{
    esdm__models *models = session->models;
    (void) pthread_mutex_lock(&models->lock);
    load_once(session, models);
    bool any = models->any;
    for (size_t i = 0; i < models->count; i++) {
        const way *w = &models->ways[2 * i];
        ret_measured[i] = w->measured;
        if (w->measured)
            ret_perfs[i] = esdm__perf_drifted(&w->perf, &w->drift);
    }
    (void) pthread_mutex_unlock(&models->lock);
    return any;
}

void
esdm__models_observe(esdm_session *session, size_t target, bool reading, double bytes,
                     double concurrency, double seconds)
{
    esdm__models *models = session->models;
    (void) pthread_mutex_lock(&models->lock);
    way *w = &models->ways[2 * target + reading];
    /* What memory takes or answers faster says nothing about the device; what is slower does. */
    if (w->measured && (session->targets[target].plugin->flags & ESDM_DATA_CACHED) != 0)
        seconds = fmax(seconds, esdm__perf_seconds(&w->perf, bytes, fmax(1, concurrency)));
    if (w->measured)
        esdm__drift_observe(&w->drift, &w->perf, bytes, concurrency, seconds);
    w->bytes += bytes;
    (void) pthread_mutex_unlock(&models->lock);
}

/* ---- back --------------------------------------------------------------------------------- */

static uint64_t
seen(const way *w)
{
    return w->drift.observations - w->loaded.observations;
}

static void
write_back(esdm__models *models, const esdm_session *session)
{
    esdm__site_model model = {0};
    char *text = NULL;
    if (esdm__models_load(session, &model, NULL) != ESDM_OK)
        return;
    for (size_t i = 0; i < models->count; i++) {
        esdm__target_model *t = esdm__site_model_find(&model, session->targets[i].name);
        if (t == NULL || t->measured_ns != models->ways[2 * i].measured_ns)
            continue;
        const way *write = &models->ways[2 * i];
        const way *read = write + 1;
        /* Added to what is stored by now: others may have written, too. */
        esdm__drift_add(&t->write.drift, &write->loaded, &write->drift);
        esdm__drift_add(&t->read.drift, &read->loaded, &read->drift);
    }
    model.observed_ns = esdm__now_ns();
    if (esdm__site_drifts_encode(&model, &text, NULL) == ESDM_OK &&
        session->meta->fact_put(session->store, ESDM__OBSERVED_FACT, text, NULL) == ESDM_OK) {
        models->observed_ns = model.observed_ns;
        for (size_t i = 0; i < 2 * models->count; i++) {
            models->ways[i].loaded = models->ways[i].drift;
            models->ways[i].bytes = 0;
        }
    }
    free(text);
    esdm__site_model_clear(&model);
}

void
esdm__models_settle(esdm__models *models, const esdm_session *session)
{
    uint64_t requests = 0;
    double bytes = 0;
    /* At the end of a program the lock may never be given back. */
    if (models == NULL || pthread_mutex_trylock(&models->lock) != 0)
        return;
    for (size_t i = 0; i < 2 * models->count; i++)
        requests += seen(&models->ways[i]);
    for (size_t i = 0; i < 2 * models->count; i++)
        bytes += models->ways[i].bytes;
    bool enough = requests >= WRITE_BACK_REQUESTS || (requests > 0 && bytes >= WRITE_BACK_BYTES);
    if (enough && !session->read_only && !session->told && session->store != NULL &&
        session->meta->is_writable(session->store) &&
        esdm__now_ns() - models->observed_ns >= WRITE_BACK_NS)
        write_back(models, session);
    (void) pthread_mutex_unlock(&models->lock);
}

void
esdm__models_free(esdm__models *models, const esdm_session *session)
{
    if (models == NULL)
        return;
    esdm__models_settle(models, session);
    (void) pthread_mutex_destroy(&models->lock);
    free(models);
}
