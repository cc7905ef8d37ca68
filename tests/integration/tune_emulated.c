/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * esdm-tune on emulated back ends: the search, the model and the space of settings are those of the
 * tool; runs are replaced by an emulation that counts time instead of taking it. Latency, bandwidth
 * of a stream and of all together, time of a server per request, places in its queue, a cache,
 * codecs and noise are drawn for each back end. What theory knows of it was measured with few
 * requests, with errors, as esdm-mkfs --calibrate does.
 *
 *     tune_emulated [--load NAME] BACK-ENDS TRIALS WITHIN SHARE [FIRST [GENETIC]]
 *     tune_emulated BACK-ENDS [truth]
 *
 * Each is tuned with so many runs; compared with the best of all settings, without noise. Fails
 * when fewer than SHARE are within WITHIN of that, or one is more than 3 % slower than before. With
 * GENETIC, a number of trials, a genetic search does the same; fails unless what it finds is within
 * WITHIN as often, and the same each time that it has the same seed. With their number alone: a
 * table of what some settings take on each, for esdm-tune --learn --choices; with `truth` the same
 * without noise. A load is a program of which requests decide (emulated_loads.c); without one a
 * program writes and reads all that there is.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulated.h"

static esdm_model_info measured[2];
static unsigned runs;
static double data = DATA;
static const emulated_load *load; /* NULL: a program that writes and reads all */

static double
way(bool reading, unsigned threads, double fragment, unsigned codec)
{
    clocks c = {.cache = reading ? 0 : site.cache};
    unsigned count = (unsigned) fmax(ceil(data / fragment), 1);
    double size = data / count;
    for (unsigned i = 0; i < count; i++) {
        unsigned w = earliest(c.worker, threads);
        double at = c.worker[w];
        double stored = size * site.left[codec];
        if (!reading) {
            at = compute(&c, at, size / site.encodes[codec] + size / 4e9);
            at = store(&c, &site, at, stored);
        } else {
            bool memory = (double) (i % 16) < 16 * site.cached;
            at = memory ? at + 5e-6 + stored / 8e9 : request(&c, &site, at, stored);
            at = compute(&c, at, size / site.decodes[codec] + size / 4e9);
        }
        c.worker[w] = at;
    }
    return latest(&c, &site, threads);
}

static double
seconds_of(const json_t *config)
{
    static const char *const codecs[] = {"none", "lz4", "shuffle+lz4", "shuffle+zstd"};
    const json_t *engine = json_object_get(config, "engine");
    const json_t *threads = json_object_get(engine, "threads");
    const json_t *fragment = json_object_get(engine, "fragment");
    const char *codec = json_string_value(json_object_get(engine, "codec"));
    unsigned t = threads != NULL ? (unsigned) json_integer_value(threads) : 0;
    double f = fragment != NULL ? (double) json_integer_value(fragment) : 4 << 20;
    unsigned k = 0;
    while (codec != NULL && k + 1 < CODECS && strcmp(codecs[k], codec) != 0)
        k++;
    t = t == 0 ? CORES : t < WORKERS ? t : WORKERS;
    return (way(false, t, f, k) + way(true, t, f, k)) * noisy(site.run_noise);
}

/* ---- in place of the tool's ----------------------------------------------------------------- */

tool_exit
tune_run(tune_workload *workload, const tune_way *way_of_run, bool may_fail, double *ret_s)
{
    (void) may_fail;
    *ret_s = load != NULL ? load->seconds(way_of_run->config) * noisy(site.run_noise)
                          : seconds_of(way_of_run->config);
    if (workload->limit_s > 0 && *ret_s > workload->limit_s)
        *ret_s = INFINITY;
    runs++;
    return TOOL_OK;
}

guint
tune_run_inside(const tune_workload *workload)
{
    (void) workload;
    return 0;
}

bool
tune_stopped(void)
{
    return false;
}

static void
measure(void)
{
    for (int reading = 0; reading < 2; reading++)
        measured[reading] = measured_of(&site, reading == 1);
}

esdm_status
esdm_session_models(esdm_session *session, esdm_model_visitor visit, void *user, esdm_error *err)
{
    (void) session, (void) err;
    if (load != NULL)
        return emulated_models(visit, user) ? ESDM_OK : ESDM_EINVAL;
    return visit(&measured[0], user) && visit(&measured[1], user) ? ESDM_OK : ESDM_EINVAL;
}

/* The machine that is emulated has so many cores, whatever this one has. */
long __wrap_sysconf(int name);
guint __wrap_g_get_num_processors(void);

long
__wrap_sysconf(int name)
{
    (void) name;
    return (long) CORES;
}

guint
__wrap_g_get_num_processors(void)
{
    return CORES;
}

/* ---- the test ------------------------------------------------------------------------------- */

/* Runs with noise of which a mean is taken, the same chance for each setting. */
#define FEW  6
#define MANY 100

static double
without_noise(const tune_space *space, const tune_setting *setting, guint64 of)
{
    json_t *config = tune_space_config(space, setting);
    double seconds = 0;
    quiet_air = load == NULL;
    if (load == NULL)
        seconds = seconds_of(config);
    /* Who waits for the slowest of many requests waits longer where these vary. */
    for (guint64 i = 0; load != NULL && i < of; i++) {
        chance_begin(i);
        seconds += load->seconds(config) / (double) of;
    }
    quiet_air = false;
    json_decref(config);
    return seconds;
}

static double
best_of_all(const tune_space *space)
{
    double best = INFINITY;
    tune_setting which = tune_space_current(space);
    for (guint64 n = 0; n < tune_space_size(space); n++) {
        tune_setting setting = tune_space_at(space, n);
        double seconds =
            tune_space_can_be(space, &setting) ? without_noise(space, &setting, FEW) : INFINITY;
        if (seconds < best) {
            best = seconds;
            which = setting;
        }
    }
    return without_noise(space, &which, MANY);
}

/* Draws a back end, or a load and its site. @return the configuration, a new reference. */
static json_t *
begin(guint64 seed, tune_space *ret_space)
{
    g_auto(GStrv) wishes = load != NULL ? g_strsplit(load->tries, " ", -1) : NULL;
    json_t *config = load != NULL ? load->draw(seed) : json_object();
    if (load == NULL) {
        draw_site(seed);
        measure();
    }
    if (tune_space_init(ret_space, config, wishes) != TOOL_OK)
        exit(1);
    return config;
}

/* @param ret_found,ret_before times as long as the best: what was chosen, and what was before. */
static void
tune_one(guint64 seed, guint trials, double *ret_found, double *ret_before)
{
    tune_space space;
    tune_workload workload = {.kernel = "emulated"};
    json_t *config = begin(seed, &space);
    tune_theory *theory = tune_theory_new(NULL, load != NULL ? 0 : DATA, true, true);
    tune_search search = {
        .space = &space, .workload = &workload, .trials_most = trials, .pairs = 3, .quiet = true};
    search.expectation = tune_expect(&space, theory);
    if (tune_search_run(&search) != TOOL_OK || search.trials->len > trials)
        exit(1);
    tune_setting current = tune_space_current(&space);
    double best = best_of_all(&space);
    *ret_before = without_noise(&space, &current, MANY) / best;
    *ret_found = search.better ? without_noise(&space, &search.best, MANY) / best : *ret_before;
    g_autofree char *text = tune_setting_text(&space, search.better ? &search.best : &current);
    printf(
        "  %3u: %.2f instead of %.2f times the best, %u trials: %s (latency %.3f ms, stream %.0f, "
        "all %.0f MB/s, service %.3f ms, %u places, cache %.0f MB)\n",
        (unsigned) seed, *ret_found, *ret_before, search.trials->len, text, site.latency_s * 1e3,
        site.stream / 1e6, site.shared / 1e6, site.service_s * 1e3, site.places, site.cache / 1e6);
    json_decref(config);
}

/* Both searches; @param ret_genetic,ret_model times as long as the best: what each found. */
static guint
tune_both(guint64 seed, guint trials, guint genetic, double *ret_genetic, double *ret_model)
{
    tune_space space;
    tune_workload workload = {.kernel = "emulated"};
    json_t *config = begin(seed, &space);
    tune_search search = {.space = &space,
                          .workload = &workload,
                          .expectation =
                              tune_expect(&space, tune_theory_new(NULL, DATA, true, true)),
                          .trials_most = trials,
                          .genetic_most = genetic,
                          .seed = seed,
                          .quiet = true};
    unsigned before = runs;
    if (tune_search_run(&search) != TOOL_OK || search.known == NULL ||
        search.known->len > genetic || search.trials->len > trials)
        exit(1);
    guint fresh = 0; /* what both have tried is run once */
    for (guint i = 0; i < search.trials->len; i++)
        fresh += !g_array_index(search.trials, tune_trial, i).known;
    if (runs - before != search.known->len + fresh)
        exit(1);
    double best = best_of_all(&space);
    *ret_genetic = without_noise(&space, &search.genetic_best, MANY) / best;
    *ret_model = without_noise(&space, &search.best, MANY) / best;
    json_decref(config);
    return search.known->len;
}

static int
compare_searches(unsigned count, guint64 first, char **argv)
{
    double within = 1 + g_ascii_strtod(argv[3], NULL);
    guint genetic = (guint) atoi(argv[6]);
    unsigned near = 0;
    double sum = 0, sum_model = 0, taken = 0;
    for (unsigned i = 0; i < count; i++) {
        double found, again, model;
        taken += tune_both(first + i, (guint) atoi(argv[2]), genetic, &found, &model);
        (void) tune_both(first + i, (guint) atoi(argv[2]), genetic, &again, &model);
        if (found != again) /* the same seed */
            return 1;
        near += found <= within;
        sum += log(found);
        sum_model += log(model);
    }
    printf("%u back ends: the genetic search took %.0f trials each, %u (%.1f %%) within %.0f %% of "
           "the best, %.3f times the best in the mean; the model-driven one at most %s, %.3f\n",
           count, taken / count, near, 100.0 * near / count, 100 * (within - 1), exp(sum / count),
           argv[2], exp(sum_model / count));
    return near < g_ascii_strtod(argv[4], NULL) * count;
}

/* What is known before: the measured model, how much, and which way. */
static void
print_cases(unsigned count, bool truth)
{
    static const unsigned threads[] = {8, 1, 2, 4, 16, 32};
    static const unsigned fragments[] = {4, 1, 16}; /* MiB; the first ones are the defaults */
    printf("reads,data,latency,stream,service,shared,request,streams");
    for (unsigned t = 0; t < G_N_ELEMENTS(threads); t++)
        for (unsigned f = 0; f < G_N_ELEMENTS(fragments); f++)
            printf(",t%u_f%uM", threads[t], fragments[f]);
    for (unsigned i = 0; i < count; i++) {
        draw_site(1 + i);
        measure();
        for (unsigned k = 0; k < 8; k++) {
            const esdm_model_info *m = &measured[k % 2];
            data = log_uniform(8e6, 512e6);
            printf("\n%u,%.0f,%.9f,%.0f,%.9f,%.0f,%.0f,%.3f", k % 2, data, m->latency_s,
                   m->stream_bytes_per_s, m->service_s, m->shared_bytes_per_s,
                   m->latency_s * m->stream_bytes_per_s,
                   m->shared_bytes_per_s / m->stream_bytes_per_s);
            for (unsigned t = 0; t < G_N_ELEMENTS(threads); t++)
                for (unsigned f = 0; f < G_N_ELEMENTS(fragments); f++) {
                    quiet_air = truth; /* as much is drawn with it */
                    printf(",%.9f", way(k % 2 == 1, threads[t], fragments[f] * 1048576.0, 0) *
                                        noisy(site.run_noise));
                    quiet_air = false;
                }
        }
    }
    printf("\n");
}

int
main(int argc, char **argv)
{
    if (argc > 3 && strcmp(argv[1], "--load") == 0) {
        load = emulated_load_named(argv[2]);
        if (load == NULL)
            return 2;
        argc -= 2;
        argv += 2;
    }
    if (argc == 2 || (argc == 3 && strcmp(argv[2], "truth") == 0))
        return print_cases((unsigned) atoi(argv[1]), argc == 3), 0;
    if (argc < 5)
        return 2;
    guint64 first = argc > 5 ? g_ascii_strtoull(argv[5], NULL, 10) : 1;
    unsigned count = (unsigned) atoi(argv[1]);
    double within = 1 + g_ascii_strtod(argv[3], NULL);
    if (argc > 6)
        return compare_searches(count, first, argv);
    unsigned near = 0, near_before = 0, slower = 0;
    double sum = 0, sum_before = 0;
    for (unsigned i = 0; i < count; i++) {
        double found, before;
        tune_one(first + i, (guint) atoi(argv[2]), &found, &before);
        near += found <= within;
        near_before += before <= within;
        slower += found > 1.03 * before;
        sum += log(found);
        sum_before += log(before);
    }
    printf(
        "%u back ends, at most %s trials each: %u (%.1f %%) within %.0f %% of the best of all "
        "settings, %u of the defaults; %.3f times the best in the mean, defaults %.3f; %u slower "
        "than before\n",
        count, argv[2], near, 100.0 * near / count, 100 * (within - 1), near_before,
        exp(sum / count), exp(sum_before / count), slower);
    return slower > 0 || near < g_ascii_strtod(argv[4], NULL) * count;
}
