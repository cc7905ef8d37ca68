/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Measures the targets, and shows their models. */

#include <math.h>
#include <signal.h>
#include <string.h>

#include "esdm-mkfs/esdm-mkfs.h"

static volatile sig_atomic_t interrupted;

static void
note_signal(int signal)
{
    (void) signal;
    interrupted = 1;
}

static bool
show_progress(double share, const char *text, void *user)
{
    tool_progress *progress = user;
    tool_progress_show(progress, share, text);
    return !interrupted;
}

esdm_status
mkfs_calibrate(const esdm_site_options *options, const esdm_calibrate_options *how, esdm_error *err)
{
    tool_progress progress;
    struct sigaction action = {.sa_handler = note_signal};
    esdm_calibrate_options watched = *how;
    (void) sigemptyset(&action.sa_mask);
    (void) sigaction(SIGINT, &action, NULL);
    (void) sigaction(SIGTERM, &action, NULL);
    tool_progress_start(&progress, !options->dry_run && !tool.json);
    watched.progress = show_progress;
    watched.user = &progress;
    esdm_status status = esdm_site_calibrate(options, &watched, err);
    tool_progress_end(&progress);
    return status;
}

static void
free_model(gpointer data)
{
    esdm_model_info *m = data;
    g_free((char *) (uintptr_t) m->target);
    g_free((esdm_model_sample *) (uintptr_t) m->samples);
    g_free(m);
}

static bool
copy_model(const esdm_model_info *info, void *user)
{
    esdm_model_info *copy = g_new(esdm_model_info, 1);
    *copy = *info;
    copy->target = g_strdup(info->target);
    copy->samples = g_memdup2(info->samples, info->nsamples * sizeof *info->samples);
    g_ptr_array_add(user, copy);
    return true;
}

esdm_status
mkfs_models(const esdm_site_options *options, GPtrArray **ret_models, esdm_error *err)
{
    const esdm_session_options open = {.config_path = options->config_path,
                                       .config_json = options->config_json,
                                       .read_only = true};
    esdm_session *session = NULL;
    esdm_status status = esdm_session_open(&open, &session, err);
    if (status != ESDM_OK)
        return status;
    GPtrArray *models = g_ptr_array_new_with_free_func(free_model);
    status = esdm_session_models(session, copy_model, models, err);
    esdm_session_close(session);
    if (status == ESDM_OK)
        *ret_models = models;
    else
        g_ptr_array_unref(models);
    return status;
}

static json_t *
number_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *
samples_json(const esdm_model_info *m)
{
    json_t *samples = json_array();
    for (size_t k = 0; k < m->nsamples; k++) {
        const esdm_model_sample *s = &m->samples[k];
        tool_json_append(samples, json_pack("[f, f, f]", s->bytes, s->concurrency, s->seconds));
    }
    return samples;
}

json_t *
mkfs_models_json(const GPtrArray *models)
{
    json_t *list = json_array();
    for (guint i = 0; i < models->len; i++) {
        const esdm_model_info *m = g_ptr_array_index(models, i);
        g_autofree char *measured = tool_time_iso(m->measured_ns);
        json_t *entry = json_object();
        tool_json_set(entry, "target", tool_json_text(m->target));
        tool_json_set(entry, "direction", json_string(m->reading ? "read" : "write"));
        tool_json_set(entry, "measured", json_string(measured));
        tool_json_set(entry, "quick", json_boolean(m->quick));
        tool_json_set(entry, "past_memory", json_boolean(m->past_memory));
        tool_json_set(entry, "latency_s", json_real(m->latency_s));
        tool_json_set(entry, "stream_bytes_per_s", number_json(m->stream_bytes_per_s));
        tool_json_set(entry, "service_s", json_real(m->service_s));
        tool_json_set(entry, "shared_bytes_per_s", number_json(m->shared_bytes_per_s));
        tool_json_set(entry, "error", json_real(m->error));
        tool_json_set(entry, "median_error", json_real(m->median_error));
        tool_json_set(entry, "naive_error", json_real(m->naive_error));
        tool_json_set(entry, "held_out", tool_json_u64(m->held_out));
        tool_json_set(entry, "latency_drift", json_real(m->latency_drift));
        tool_json_set(entry, "bandwidth_drift", json_real(m->bandwidth_drift));
        tool_json_set(entry, "observations", tool_json_u64(m->observations));
        tool_json_set(entry, "samples", samples_json(m));
        tool_json_append(list, entry);
    }
    return list;
}
