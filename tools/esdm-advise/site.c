/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Which defaults would be best for a whole site: for what its jobs did, and for samples of its
 * data. */

#include "esdm-advise/esdm-advise.h"

#include <math.h>
#include <stdio.h>

#define USES_MOST         12u
#define USUAL_LATENCY_S   1e-4
#define USUAL_BYTES_PER_S 1e9
#define MIB               0x1p20

static const struct {
    const char *label, *mode;
} codecs[] = {{"none", NULL},
              {"mode=speed", "mode=speed"},
              {"mode=balanced", "mode=balanced"},
              {"mode=archive", "mode=archive"}};

static const advise_layout layouts[] = {
    {"maps", "1 MiB"},        {"maps", "4 MiB"},        {"maps", "16 MiB"},
    {"both", "1 MiB"},        {"both", "4 MiB"},        {"both", "16 MiB"},
    {"time-series", "1 MiB"}, {"time-series", "4 MiB"}, {"time-series", "16 MiB"},
};
#define USUAL_LAYOUT 1

void
advise_site_candidates(advise_study *study)
{
    /* The one that is taken where another one means nothing comes first. */
    for (gsize i = 0; i < G_N_ELEMENTS(codecs); i++) {
        advise_candidate one = {.label = g_strdup(codecs[i].label),
                                .text = g_strdup(codecs[i].mode)};
        g_array_append_val(study->candidates, one);
    }
}

/* ---- the device ----------------------------------------------------------------------------- */

typedef struct slowest {
    double latency_s, bytes_per_s;
    guint count;
} slowest;

static bool
take_model(const esdm_model_info *info, void *user)
{
    slowest *s = user;
    if (!info->reading)
        return true;
    s->latency_s = fmax(s->latency_s, info->latency_s * info->latency_drift);
    s->bytes_per_s = fmin(s->bytes_per_s, info->stream_bytes_per_s / info->bandwidth_drift);
    s->count++;
    return true;
}

/* What options say, else the model of the site, else what is usual. */
static advise_device
device_of(esdm_session *session, double latency_s, double bytes_per_s)
{
    slowest s = {.bytes_per_s = INFINITY};
    esdm_error ignored;
    if (session != NULL && esdm_session_models(session, take_model, &s, &ignored) != ESDM_OK)
        s.count = 0;
    bool known = s.count > 0 && s.bytes_per_s > 0 && isfinite(s.bytes_per_s);
    advise_device device = {.latency_s = known ? s.latency_s : USUAL_LATENCY_S,
                            .bytes_per_s = known ? s.bytes_per_s : USUAL_BYTES_PER_S};
    device.source =
        latency_s > 0 && bytes_per_s > 0
            ? g_strdup("as stated")
            : g_strdup_printf("%s%s",
                              latency_s > 0 || bytes_per_s > 0 ? "partly as stated, else " : "",
                              known ? "measured by esdm-mkfs --calibrate"
                                    : "assumed: measure it with esdm-mkfs --calibrate, or state it "
                                      "with --latency and --bandwidth");
    device.latency_s = latency_s > 0 ? latency_s : device.latency_s;
    device.bytes_per_s = bytes_per_s > 0 ? bytes_per_s : device.bytes_per_s;
    return device;
}

/* ---- codecs --------------------------------------------------------------------------------- */

typedef struct sums {
    double raw, stored, write_s, read_s;
} sums;

static sums
sums_of(const advise_study *study, const char *variable, guint candidate)
{
    sums s = {0};
    for (guint i = 0; i < study->samples->len; i++) {
        const advise_sample *sample = g_ptr_array_index(study->samples, i);
        const advise_result *result = &sample->results[candidate];
        if (!g_str_equal(sample->variable, variable))
            continue;
        s.raw += (double) sample->raw_bytes;
        s.stored += (double) result->stored_bytes;
        s.write_s += result->write_s;
        s.read_s += result->read_s;
    }
    return s;
}

/* Seconds for a byte, as jobs read and write. A codec works on all processors, and a device while
 * it does. */
static double
seconds_of_byte(const sums *s, const advise_jobs *jobs, const advise_device *device)
{
    double cores = g_get_num_processors();
    double moved = s->stored / device->bytes_per_s;
    double written = fmax(s->write_s / cores, moved), read = fmax(s->read_s / cores, moved);
    bool all = jobs->weight_written + jobs->weight_read > 0; /* what the whole site does */
    double w = all ? jobs->weight_written : (double) jobs->written_bytes;
    double r = all ? jobs->weight_read : (double) jobs->read_bytes;
    if (w + r <= 0)
        w = r = 1;
    return (w * written + r * read) / (w + r) / s->raw;
}

static GPtrArray *
names_of_samples(const advise_study *study)
{
    GPtrArray *names = g_ptr_array_new();
    for (guint i = 0; i < study->samples->len; i++) {
        const advise_sample *sample = g_ptr_array_index(study->samples, i);
        if (!g_ptr_array_find_with_equal_func(names, sample->variable, g_str_equal, NULL))
            g_ptr_array_add(names, sample->variable);
    }
    return names;
}

static void
compare_codecs(const advise_study *study, const advise_jobs *jobs, const advise_device *device,
               advise_weigh weigh, advise_means *ret_means)
{
    g_autoptr(GPtrArray) names = names_of_samples(study);
    const char *labels[G_N_ELEMENTS(codecs)];
    g_autofree double *costs = g_new(double, G_N_ELEMENTS(codecs) * MAX(names->len, 1));
    for (guint i = 0; i < G_N_ELEMENTS(codecs); i++) {
        labels[i] = codecs[i].label;
        for (guint k = 0; k < names->len; k++) {
            sums s = sums_of(study, names->pdata[k], i);
            double time = fmax(seconds_of_byte(&s, jobs, device), 1e-15);
            double space = fmax(s.stored / s.raw, 1e-9);
            costs[i * names->len + k] = weigh == ADVISE_TIME    ? time
                                        : weigh == ADVISE_SPACE ? space
                                                                : sqrt(time * space);
        }
    }
    advise_means_init(ret_means, labels, G_N_ELEMENTS(codecs), names, costs, 0);
}

/* ---- how data are cut ----------------------------------------------------------------------- */

static esdm_status
compare_layouts(const advise_jobs *jobs, const char *mode, const advise_device *device,
                advise_means *ret_means, esdm_error *err)
{
    guint count = MIN(jobs->uses->len, USES_MOST), choices = G_N_ELEMENTS(layouts);
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    g_autoptr(GPtrArray) labels = g_ptr_array_new_with_free_func(g_free);
    g_autofree double *costs = g_new(double, choices *MAX(count, 1));
    for (guint k = 0; k < count; k++)
        g_ptr_array_add(names, ((advise_use *) jobs->uses->pdata[k])->name);
    for (guint i = 0; i < choices; i++) {
        g_ptr_array_add(
            labels, g_strdup_printf("%s, fragments of %s", layouts[i].access, layouts[i].fragment));
        for (guint k = 0; k < count; k++) {
            esdm_status st = advise_try_layout(jobs->uses->pdata[k], &layouts[i], mode, device,
                                               &costs[i * count + k], err);
            if (st != ESDM_OK)
                return st;
        }
    }
    advise_means_init(ret_means, (const char *const *) labels->pdata, choices, names, costs,
                      USUAL_LAYOUT);
    return ESDM_OK;
}

/* ---- reading ahead -------------------------------------------------------------------------- */

static void
compare_aheads(const advise_jobs *jobs, advise_means *ret_means)
{
    static const char *const labels[] = {"as the kernel does", "esdm-run --read-ahead"};
    guint count = jobs->aheads->len;
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    g_autofree double *costs = g_new(double, 2 * MAX(count, 1));
    for (guint k = 0; k < count; k++) {
        const advise_ahead *ahead = jobs->aheads->pdata[k];
        g_ptr_array_add(names, ahead->name);
        costs[k] = fmax(ahead->plain_s, 1e-12);
        costs[count + k] = fmax(ahead->advised_s, 1e-12);
    }
    advise_means_init(ret_means, labels, 2, names, costs, 0);
}

/* ---- report --------------------------------------------------------------------------------- */

typedef struct findings {
    const advise_study *study;
    const advise_jobs *jobs;
    advise_device device;
    advise_weigh weigh;
    advise_means codec, layout, ahead; /* without choices: not compared */
} findings;

/* What would stand in the site's configuration; empty: all is best as it is. */
static json_t *
lines_of(const findings *f)
{
    json_t *root = json_object();
    guint codec = f->codec.choices != NULL ? advise_best(&f->codec) : 0;
    if (codec != 0)
        tool_json_set(root, "accuracy", json_pack("[{s:s}]", "quantities", codecs[codec].mode));
    guint layout = f->layout.choices != NULL ? advise_best(&f->layout) : USUAL_LAYOUT;
    const advise_layout *best = &layouts[layout], *usual = &layouts[USUAL_LAYOUT];
    if (!g_str_equal(best->fragment, usual->fragment))
        tool_json_set(root, "engine", json_pack("{s:s}", "fragment", best->fragment));
    if (!g_str_equal(best->access, usual->access))
        tool_json_set(root, "policies", json_pack("[{s:s}]", "access", best->access));
    return root;
}

static const char *
weighed(advise_weigh weigh)
{
    return weigh == ADVISE_TIME    ? "by the time of reads and writes"
           : weigh == ADVISE_SPACE ? "by the space that is taken"
                                   : "by time and space alike";
}

static void
print_lines(const findings *f)
{
    json_t *lines = lines_of(f);
    if (json_object_size(lines) == 0) {
        (void) printf("The site's configuration is best as it is when nothing is stated.\n");
    } else {
        char *text = json_dumps(lines, JSON_INDENT(2));
        (void) printf("For the site's configuration (rules that are more special come before "
                      "these):\n%s\n",
                      text != NULL ? text : "");
        free(text);
    }
    if (json_object_get(lines, "policies") != NULL)
        (void) printf("\"access\" cuts what is written in large pieces from then on, as by "
                      "esdm-cp;\na chunk shape that a program states goes before it.\n");
    json_decref(lines);
    if (f->ahead.choices != NULL && advise_best(&f->ahead) == 1)
        (void) printf("And let jobs that read plain files run with 'esdm-run --read-ahead'.\n");
}

static void
print_aheads(const findings *f)
{
    if (f->ahead.choices != NULL)
        advise_means_print(&f->ahead, "Reading plain files ahead, by the time of a read",
                           "files that jobs read");
    if (f->jobs->plain_jobs > 0)
        (void) printf("%u of %u %s ran without --read-ahead, and %s nothing of it: record some "
                      "with\n'esdm-run --read-ahead --records FOLDER PROGRAM'.\n\n",
                      f->jobs->plain_jobs, f->jobs->jobs, f->jobs->jobs == 1 ? "job" : "jobs",
                      f->jobs->plain_jobs == 1 ? "says" : "say");
}

static void
print_findings(const findings *f)
{
    g_autofree char *read = tool_bytes(f->jobs->read_bytes);
    g_autofree char *written = tool_bytes(f->jobs->written_bytes);
    g_autofree char *title = g_strdup_printf("Codec without loss, %s", weighed(f->weigh));
    guint variables = f->jobs->uses->len + f->jobs->small_uses;
    (void) printf("%u %s that read %s and wrote %s of %u variable%s (%u of them of at most 1 "
                  "MiB); %u sample%s of %u %s.\nA request takes %.3g ms, and what it moves goes at "
                  "%.4g MiB/s "
                  "(%s).\n\n",
                  f->jobs->jobs, f->jobs->jobs == 1 ? "job" : "jobs", read, written, variables,
                  variables == 1 ? "" : "s", f->jobs->small_uses, f->study->samples->len,
                  f->study->samples->len == 1 ? "" : "s", f->study->sources->len,
                  f->study->sources->len == 1 ? "file or container" : "files and containers",
                  f->device.latency_s * 1e3, f->device.bytes_per_s / MIB, f->device.source);
    if (f->jobs->runs > 0) {
        g_autofree char *all_read = tool_bytes((uint64_t) f->jobs->runs_read);
        g_autofree char *all_written = tool_bytes((uint64_t) f->jobs->runs_written);
        (void) printf("The site has kept %u run%s of %u program%s by %u user%s that read %s and "
                      "wrote %s: reading and\nwriting are weighed like that.\n\n",
                      f->jobs->runs, f->jobs->runs == 1 ? "" : "s", f->jobs->programs,
                      f->jobs->programs == 1 ? "" : "s", f->jobs->users,
                      f->jobs->users == 1 ? "" : "s", all_read, all_written);
    }
    if (f->codec.choices != NULL)
        advise_means_print(&f->codec, title, "variables");
    else
        (void) printf("Name files or containers to sample, and codecs are compared, too.\n\n");
    if (f->layout.choices != NULL)
        advise_means_print(&f->layout, "How data are cut, by the time of what jobs did with them",
                           "uses of variables");
    else if (f->jobs->jobs > 0)
        (void) printf("No job used a variable of more than 1 MiB: smaller ones are not cut.\n\n");
    if (f->jobs->uses->len > USES_MOST)
        (void) printf("These are the uses that took longest; %u others were left out.\n\n",
                      f->jobs->uses->len - USES_MOST);
    print_aheads(f);
    print_lines(f);
}

static void
set_means(json_t *root, const char *key, const advise_means *means)
{
    tool_json_set(root, key, means->choices != NULL ? advise_means_json(means) : json_null());
}

static void
print_findings_json(const findings *f)
{
    json_t *root = json_object();
    tool_json_set(root, "jobs", tool_json_u64(f->jobs->jobs));
    tool_json_set(root, "jobs_without_read_ahead", tool_json_u64(f->jobs->plain_jobs));
    tool_json_set(root, "small_uses", tool_json_u64(f->jobs->small_uses));
    tool_json_set(root, "uses", tool_json_u64(f->jobs->uses->len));
    tool_json_set(root, "read_bytes", tool_json_u64(f->jobs->read_bytes));
    tool_json_set(root, "written_bytes", tool_json_u64(f->jobs->written_bytes));
    tool_json_set(root, "site_runs", tool_json_u64(f->jobs->runs));
    tool_json_set(root, "site_users", tool_json_u64(f->jobs->users));
    tool_json_set(root, "site_read_bytes", json_real(f->jobs->runs_read));
    tool_json_set(root, "site_written_bytes", json_real(f->jobs->runs_written));
    tool_json_set(root, "samples", tool_json_u64(f->study->samples->len));
    tool_json_set(root, "latency_s", json_real(f->device.latency_s));
    tool_json_set(root, "bytes_per_s", json_real(f->device.bytes_per_s));
    tool_json_set(root, "device", tool_json_text(f->device.source));
    set_means(root, "codec", &f->codec);
    set_means(root, "layout", &f->layout);
    set_means(root, "read_ahead", &f->ahead);
    tool_json_set(root, "configuration", lines_of(f));
    tool_json_print(root);
}

tool_exit
advise_site(const advise_study *study, const advise_jobs *jobs, esdm_session *session,
            advise_weigh weigh, double latency_s, double bytes_per_s)
{
    esdm_error err = {0};
    findings f = {.study = study,
                  .jobs = jobs,
                  .weigh = weigh,
                  .device = device_of(session, latency_s, bytes_per_s)};
    esdm_status st = ESDM_OK;
    if (study->samples->len > 0)
        compare_codecs(study, jobs, &f.device, weigh, &f.codec);
    /* Pieces are compressed as they will be. */
    const char *mode = f.codec.choices != NULL ? codecs[advise_best(&f.codec)].mode : NULL;
    if (jobs->uses->len > 0)
        st = compare_layouts(jobs, mode, &f.device, &f.layout, &err);
    if (jobs->aheads->len > 0)
        compare_aheads(jobs, &f.ahead);
    if (st == ESDM_OK && tool.json)
        print_findings_json(&f);
    else if (st == ESDM_OK)
        print_findings(&f);
    advise_means_clear(&f.codec);
    advise_means_clear(&f.layout);
    advise_means_clear(&f.ahead);
    g_free(f.device.source);
    return st == ESDM_OK ? TOOL_OK : tool_fail(st, &err);
}
