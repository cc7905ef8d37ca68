/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Models and their corrections as JSON. */

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "placement/site_model.h"

#define SOURCE "the site's model"
/* A calibration makes some hundred. */
#define SAMPLES_MAX 100000u
/* A model that is wrong by this factor is as good as none: what is worse is no number to write. */
#define ERROR_MOST 1e9

/* ---- out ---------------------------------------------------------------------------------- */

static bool
is_sample(const double *values)
{
    for (size_t i = 0; i < 3; i++) {
        if (!(values[i] >= 0) || !isfinite(values[i]))
            return false;
    }
    return true;
}

/* JSON has no infinity. */
static double
error_of(double error)
{
    return error < ERROR_MOST ? error : ERROR_MOST;
}

static json_t *
put_measured(const esdm__measured *m)
{
    json_t *samples = json_array();
    for (size_t i = 0; i < m->nsamples && samples != NULL; i++) {
        const esdm__perf_sample *s = &m->samples[i];
        const double values[3] = {s->bytes, s->concurrency, s->seconds};
        if (!is_sample(values) || json_array_size(samples) == SAMPLES_MAX)
            continue;
        (void) json_array_append_new(samples,
                                     json_pack("[f, f, f]", s->bytes, s->concurrency, s->seconds));
    }
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:b, s:o?}", "latency_s",
                     m->perf.latency_s, "stream_s_per_byte", m->perf.stream_s_per_byte, "service_s",
                     m->perf.service_s, "shared_s_per_byte", m->perf.shared_s_per_byte, "error",
                     error_of(m->error.model), "naive_error", error_of(m->error.naive),
                     "median_error", error_of(m->error.median), "held_out",
                     (json_int_t) m->error.samples, "past_memory", m->past_memory, "samples",
                     samples);
}

static json_t *
put_learned(const esdm__learned *l)
{
    json_t *nodes = json_array();
    for (uint32_t i = 0; i < l->count; i++) {
        const esdm__learned_node *n = &l->nodes[i];
        (void) json_array_append_new(nodes, json_pack("[i, f, i, i, f]", (int) n->by, n->limit,
                                                      (int) n->less, (int) n->more, n->factor));
    }
    return json_pack("{s:I, s:I, s:f, s:f, s:o?}", "learned_ns", (json_int_t) l->learned_ns,
                     "requests", (json_int_t) l->requests, "error", error_of(l->error),
                     "calibrated_error", error_of(l->calibrated_error), "nodes", nodes);
}

static json_t *
put_drift(const esdm__measured *m)
{
    json_t *drift =
        json_pack("{s:f, s:f, s:I}", "latency", m->drift.latency, "bandwidth", m->drift.bandwidth,
                  "observations", (json_int_t) m->drift.observations);
    if (drift != NULL && m->learned.count > 0)
        (void) json_object_set_new(drift, "learned", put_learned(&m->learned));
    return drift;
}

static esdm_status
finish(json_t *root, char **ret_text, esdm_error *err)
{
    char *text = root != NULL ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(root);
    if (text == NULL)
        return esdm__error_nomem(err, 1, SOURCE);
    *ret_text = text;
    return ESDM_OK;
}

esdm_status
esdm__site_model_encode(const esdm__site_model *model, char **ret_text, esdm_error *err)
{
    json_t *targets = json_object();
    for (size_t i = 0; i < model->count; i++) {
        const esdm__target_model *t = &model->targets[i];
        (void) json_object_set_new(
            targets, t->name,
            json_pack("{s:I, s:b, s:o?, s:o?}", "measured_ns", (json_int_t) t->measured_ns, "quick",
                      t->quick, "write", put_measured(&t->write), "read", put_measured(&t->read)));
    }
    return finish(json_pack("{s:i, s:o?}", "format", ESDM__MODEL_FORMAT, "targets", targets),
                  ret_text, err);
}

esdm_status
esdm__site_drifts_encode(const esdm__site_model *model, char **ret_text, esdm_error *err)
{
    json_t *targets = json_object();
    for (size_t i = 0; i < model->count; i++) {
        const esdm__target_model *t = &model->targets[i];
        (void) json_object_set_new(targets, t->name,
                                   json_pack("{s:I, s:o?, s:o?}", "measured_ns",
                                             (json_int_t) t->measured_ns, "write",
                                             put_drift(&t->write), "read", put_drift(&t->read)));
    }
    return finish(json_pack("{s:i, s:I, s:o?}", "format", ESDM__MODEL_FORMAT, "observed_ns",
                            (json_int_t) model->observed_ns, "targets", targets),
                  ret_text, err);
}

/* ---- in ----------------------------------------------------------------------------------- */

static esdm_status
number_of(const esdm__json_node *object, const char *key, double *ret_value, esdm_error *err)
{
    esdm__json_node node;
    esdm_status status = esdm__json_require(object, key, &node, err);
    if (status != ESDM_OK)
        return status;
    if (!json_is_number(node.value) || !isfinite(json_number_value(node.value)))
        return esdm__json_error(&node, err, "expected a number");
    *ret_value = json_number_value(node.value);
    return ESDM_OK;
}

static esdm_status
read_sample(const esdm__json_node *node, esdm__perf_sample *ret_sample, esdm_error *err)
{
    if (!json_is_array(node->value) || json_array_size(node->value) != 3)
        return esdm__json_error(node, err, "expected bytes, concurrency and seconds");
    double values[3];
    for (size_t i = 0; i < 3; i++)
        values[i] = json_number_value(json_array_get(node->value, i));
    if (!is_sample(values))
        return esdm__json_error(node, err, "expected three numbers");
    *ret_sample = (esdm__perf_sample){values[0], values[1], values[2]};
    return ESDM_OK;
}

static esdm_status
read_samples(const esdm__json_node *node, esdm__measured *m, esdm_error *err)
{
    esdm__json_node list;
    esdm_status status = esdm__json_require(node, "samples", &list, err);
    if (status == ESDM_OK)
        status = esdm__json_is_array(&list, err);
    if (status != ESDM_OK)
        return status;
    size_t count = json_array_size(list.value);
    if (count > SAMPLES_MAX)
        return esdm__json_error(&list, err, "more than %u samples", SAMPLES_MAX);
    m->samples = calloc(count + 1, sizeof *m->samples);
    if (m->samples == NULL)
        return esdm__error_nomem(err, count * sizeof *m->samples, SOURCE);
    for (size_t i = 0; i < count && status == ESDM_OK; i++) {
        esdm__json_node sample = esdm__json_element(&list, i);
        status = read_sample(&sample, &m->samples[i], err);
        m->nsamples += status == ESDM_OK;
    }
    return status;
}

static esdm_status
read_measured(const esdm__json_node *target, const char *key, esdm__measured *m, esdm_error *err)
{
    esdm__json_node node;
    double held_out = 0;
    esdm_status status = esdm__json_require(target, key, &node, err);
    if (status == ESDM_OK)
        status = esdm__json_is_object(&node, err);
    const struct {
        const char *key;
        double *value;
    } numbers[] = {
        {"latency_s", &m->perf.latency_s},  {"stream_s_per_byte", &m->perf.stream_s_per_byte},
        {"service_s", &m->perf.service_s},  {"shared_s_per_byte", &m->perf.shared_s_per_byte},
        {"error", &m->error.model},         {"naive_error", &m->error.naive},
        {"median_error", &m->error.median}, {"held_out", &held_out},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && status == ESDM_OK; i++)
        status = number_of(&node, numbers[i].key, numbers[i].value, err);
    if (status != ESDM_OK)
        return status;
    if (!esdm__perf_valid(&m->perf))
        return esdm__json_error(&node, err, "these are no times");
    m->past_memory = json_is_true(json_object_get(node.value, "past_memory"));
    m->error.samples = held_out >= 0 && held_out <= SAMPLES_MAX ? (size_t) held_out : 0;
    return read_samples(&node, m, err);
}

static esdm_status
read_target(const esdm__json_node *node, esdm__site_model *model, esdm_error *err)
{
    esdm__json_node member;
    esdm__target_model *target = esdm__site_model_add(model, node->key);
    if (target == NULL)
        return esdm__error_nomem(err, sizeof *target, SOURCE);
    esdm_status status = esdm__json_is_object(node, err);
    if (status == ESDM_OK)
        status = esdm__json_require(node, "measured_ns", &member, err);
    if (status == ESDM_OK)
        status = esdm__json_u64(&member, 0, INT64_MAX, &target->measured_ns, err);
    if (status == ESDM_OK && esdm__json_member(node, "quick", &member))
        target->quick = json_is_true(member.value);
    if (status == ESDM_OK)
        status = read_measured(node, "write", &target->write, err);
    return status == ESDM_OK ? read_measured(node, "read", &target->read, err) : status;
}

static esdm_status
check_format(const esdm__json_node *root, esdm_error *err)
{
    esdm__json_node node;
    uint64_t format = 0;
    esdm_status status = esdm__json_require(root, "format", &node, err);
    if (status == ESDM_OK)
        status = esdm__json_u64(&node, 1, UINT32_MAX, &format, err);
    if (status == ESDM_OK && format > ESDM__MODEL_FORMAT)
        status = esdm__error_set(err, ESDM_ENOTSUP,
                                 SOURCE " has format %" PRIu64 ", newer than the %d that this "
                                        "version of ESDM knows",
                                 format, ESDM__MODEL_FORMAT);
    return status;
}

static esdm_status
read_model(json_t *document, esdm__site_model *model, esdm_error *err)
{
    esdm__json_node root = esdm__json_root(document, SOURCE);
    esdm__json_node targets;
    const char *key;
    json_t *value;
    esdm_status status = check_format(&root, err);
    if (status == ESDM_OK)
        status = esdm__json_require(&root, "targets", &targets, err);
    if (status == ESDM_OK)
        status = esdm__json_is_object(&targets, err);
    if (status != ESDM_OK)
        return status;
    json_object_foreach(targets.value, key, value)
    {
        esdm__json_node node = {
            .value = value, .source = targets.source, .parent = &targets, .key = key};
        if (status == ESDM_OK)
            status = read_target(&node, model, err);
    }
    return status;
}

static void
read_drift(const json_t *target, const char *key, esdm__drift *drift)
{
    const json_t *node = json_object_get(target, key);
    double latency = json_number_value(json_object_get(node, "latency"));
    double bandwidth = json_number_value(json_object_get(node, "bandwidth"));
    json_int_t observations = json_integer_value(json_object_get(node, "observations"));
    if (observations > 0)
        *drift = esdm__drift_limited(&(esdm__drift){latency, bandwidth, (uint64_t) observations});
}

static double
element(const json_t *list, size_t i)
{
    return json_number_value(json_array_get(list, i));
}

/* A number of a node, or one that is none. */
static uint32_t
number_of_node(double value)
{
    return value >= 0 && value < ESDM__LEARNED_NODES ? (uint32_t) value : ESDM__LEARNED_NODES;
}

static void
read_learned(const json_t *target, const char *key, esdm__learned *ret_learned)
{
    const json_t *node = json_object_get(json_object_get(target, key), "learned");
    const json_t *nodes = json_object_get(node, "nodes");
    json_int_t requests = json_integer_value(json_object_get(node, "requests"));
    json_int_t learned_ns = json_integer_value(json_object_get(node, "learned_ns"));
    esdm__learned l = {.requests = requests > 0 ? (uint64_t) requests : 0,
                       .learned_ns = learned_ns > 0 ? (uint64_t) learned_ns : 0,
                       .error = json_number_value(json_object_get(node, "error")),
                       .calibrated_error =
                           json_number_value(json_object_get(node, "calibrated_error"))};
    if (json_array_size(nodes) > ESDM__LEARNED_NODES)
        return;
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const json_t *n = json_array_get(nodes, i);
        l.nodes[l.count++] =
            (esdm__learned_node){.by = (esdm__learned_by) number_of_node(element(n, 0)),
                                 .limit = element(n, 1),
                                 .less = number_of_node(element(n, 2)),
                                 .more = number_of_node(element(n, 3)),
                                 .factor = element(n, 4)};
    }
    if (esdm__learned_valid(&l))
        *ret_learned = l;
}

/* What is damaged is as good as not there. */
static void
read_drifts(const json_t *root, esdm__site_model *model)
{
    const json_t *targets = json_object_get(root, "targets");
    if (json_integer_value(json_object_get(root, "format")) != ESDM__MODEL_FORMAT)
        return;
    json_int_t observed_ns = json_integer_value(json_object_get(root, "observed_ns"));
    model->observed_ns = observed_ns > 0 ? (uint64_t) observed_ns : 0;
    for (size_t i = 0; i < model->count; i++) {
        esdm__target_model *t = &model->targets[i];
        const json_t *target = json_object_get(targets, t->name);
        if (json_integer_value(json_object_get(target, "measured_ns")) !=
            (json_int_t) t->measured_ns)
            continue;
        read_drift(target, "write", &t->write.drift);
        read_drift(target, "read", &t->read.drift);
        read_learned(target, "write", &t->write.learned);
        read_learned(target, "read", &t->read.learned);
    }
}

esdm_status
esdm__site_model_decode(const char *text, const char *observed, esdm__site_model *ret_model,
                        esdm_error *err)
{
    esdm__site_model model = {0};
    json_t *root = NULL;
    esdm_status status = esdm__json_parse(text, strlen(text), SOURCE, &root, err);
    if (status == ESDM_OK)
        status = read_model(root, &model, err);
    json_decref(root);
    if (status != ESDM_OK) {
        esdm__site_model_clear(&model);
        if (status != ESDM_EINVAL)
            return status;
        (void) esdm__error_prefix(err, ESDM_ECORRUPT,
                                  "the model that the metadata store has is damaged; measure again "
                                  "with esdm-mkfs --calibrate");
        return ESDM_ECORRUPT;
    }
    root = NULL;
    if (observed != NULL &&
        esdm__json_parse(observed, strlen(observed), SOURCE, &root, NULL) == ESDM_OK)
        read_drifts(root, &model);
    json_decref(root);
    *ret_model = model;
    return ESDM_OK;
}
