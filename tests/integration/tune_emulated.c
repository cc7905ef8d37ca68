/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * esdm-tune on emulated back ends: the search, the model and the space of settings are those of the
 * tool; runs are replaced by an emulation that counts time instead of taking it. Latency, bandwidth
 * of a stream and of all together, time of a server per request, places in its queue, a cache,
 * codecs and noise are drawn for each back end. What theory knows of it was measured with few
 * requests, with errors, as esdm-mkfs --calibrate does.
 *
 *     tune_emulated BACK-ENDS TRIALS WITHIN SHARE [FIRST [GENETIC]]
 *     tune_emulated BACK-ENDS [truth]
 *
 * Each is tuned with so many runs; compared with the best of all settings, without noise. Fails
 * when fewer than SHARE are within WITHIN of that, or one is more than 3 % slower than before. With
 * GENETIC, a number of trials, a genetic search does the same; fails unless what it finds is within
 * WITHIN as often, and the same each time that it has the same seed. With their number alone: a
 * table of what some settings take on each, for esdm-tune --learn --choices; with `truth` the same
 * without noise.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "esdm-tune/esdm-tune.h"

#define CORES   8u
#define DATA    256e6 /* bytes */
#define WORKERS 64u
#define PLACES  64u
#define CODECS  4u

typedef struct back_end {
    double latency_s, stream, shared, service_s;
    unsigned places; /* requests at once */
    double cache;    /* bytes that writes leave behind */
    double cached;   /* share of what is read that memory has */
    double request_noise, run_noise;
    double encodes[CODECS], decodes[CODECS], left[CODECS];
} back_end;

static back_end site;
static esdm_model_info measured[2];
static unsigned runs;
static bool quiet_air; /* no noise */
static double data = DATA;

/* ---- chance --------------------------------------------------------------------------------- */

static guint64 chance;

static double
uniform(double from, double to)
{
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    guint64 x = (chance >> 33) ^ (chance >> 17);
    return from + (to - from) * (double) (x & 0xffffffu) / (double) 0x1000000u;
}

static double
log_uniform(double from, double to)
{
    return from * pow(to / from, uniform(0, 1));
}

static double
noisy(double deviation)
{
    double normal = 0;
    for (int i = 0; i < 12; i++)
        normal += uniform(0, 1);
    return quiet_air ? 1 : exp(deviation * (normal - 6));
}

static void
draw(guint64 seed)
{
    static const double encodes[] = {INFINITY, 1.5e9, 1.3e9, 6e8};
    static const double decodes[] = {INFINITY, 6e9, 4.5e9, 2.2e9};
    static const double left[] = {1, 0.9, 0.7, 0.6};
    chance = seed * 0x9e3779b97f4a7c15u + 1;
    for (int i = 0; i < 16; i++)
        (void) uniform(0, 1);
    site = (back_end){.latency_s = log_uniform(20e-6, 30e-3), .stream = log_uniform(20e6, 2e9)};
    site.shared = site.stream * log_uniform(1, 16);
    site.service_s = fmin(log_uniform(5e-6, 2e-3), site.latency_s);
    site.places = (unsigned) log_uniform(1, PLACES);
    site.cache = uniform(0, 1) < 0.5 ? 0 : log_uniform(16e6, 128e6);
    site.cached = uniform(0, 1) < 0.5 ? 0 : uniform(0, 0.8);
    site.request_noise = uniform(0.01, 0.2);
    site.run_noise = uniform(0.005, 0.05);
    for (unsigned c = 0; c < CODECS; c++) {
        site.encodes[c] = encodes[c] * noisy(0.25);
        site.decodes[c] = decodes[c] * noisy(0.25);
        site.left[c] = c == 0 ? 1 : fmin(left[c] * uniform(0.8, 1.2), 1);
    }
}

/* ---- the clock ------------------------------------------------------------------------------ */

typedef struct clocks {
    double worker[WORKERS], core[CORES], place[PLACES];
    double server;
    double cache; /* bytes that it still takes */
} clocks;

static unsigned
earliest(const double *times, unsigned count)
{
    unsigned first = 0;
    for (unsigned i = 1; i < count; i++)
        first = times[i] < times[first] ? i : first;
    return first;
}

/* A worker has a core for so long. */
static double
compute(clocks *c, double at, double seconds)
{
    unsigned core = earliest(c->core, CORES);
    double end = fmax(at, c->core[core]) + seconds;
    c->core[core] = end;
    return end;
}

static double
request(clocks *c, double at, double bytes)
{
    unsigned place = earliest(c->place, site.places);
    double begin = fmax(at, c->place[place]);
    double noise = noisy(site.request_noise);
    c->server = fmax(c->server, begin) + site.service_s + bytes / site.shared;
    double end = fmax(c->server, begin + (site.latency_s + bytes / site.stream) * noise);
    c->place[place] = end;
    return end;
}

/* What the cache takes, the server stores while others are written. */
static double
store(clocks *c, double at, double bytes)
{
    if (c->cache < bytes)
        return request(c, at, bytes);
    c->cache -= bytes;
    (void) request(c, at, bytes);
    return at + 5e-6 + bytes / 4e9;
}

static double
latest(const clocks *c, unsigned threads)
{
    double end = c->server;
    for (unsigned i = 0; i < threads; i++)
        end = fmax(end, c->worker[i]);
    for (unsigned i = 0; i < site.places; i++)
        end = fmax(end, c->place[i]);
    return end;
}

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
            at = store(&c, at, stored);
        } else {
            bool memory = (double) (i % 16) < 16 * site.cached;
            at = memory ? at + 5e-6 + stored / 8e9 : request(&c, at, stored);
            at = compute(&c, at, size / site.decodes[codec] + size / 4e9);
        }
        c.worker[w] = at;
    }
    return latest(&c, threads);
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
    *ret_s = seconds_of(way_of_run->config);
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

/* Few requests tell about the back end, with errors. */
static void
measure(void)
{
    for (int reading = 0; reading < 2; reading++)
        measured[reading] = (esdm_model_info){
            .reading = reading == 1,
            .latency_s = site.latency_s * noisy(0.1),
            .stream_bytes_per_s = site.stream * noisy(0.1),
            .service_s = fmax(site.service_s, site.latency_s / (double) site.places) * noisy(0.1),
            .shared_bytes_per_s =
                fmin(site.shared, site.stream * (double) site.places) * noisy(0.1),
            .latency_drift = 1,
            .bandwidth_drift = 1};
}

esdm_status
esdm_session_models(esdm_session *session, esdm_model_visitor visit, void *user, esdm_error *err)
{
    (void) session, (void) err;
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

static double
without_noise(const tune_space *space, const tune_setting *setting)
{
    json_t *config = tune_space_config(space, setting);
    quiet_air = true;
    double seconds = seconds_of(config);
    quiet_air = false;
    json_decref(config);
    return seconds;
}

static double
best_of_all(const tune_space *space)
{
    double best = INFINITY;
    for (guint64 n = 0; n < tune_space_size(space); n++) {
        tune_setting setting = tune_space_at(space, n);
        best = fmin(best, without_noise(space, &setting));
    }
    return best;
}

/* @param ret_found,ret_before times as long as the best: what was chosen, and what was before. */
static void
tune_one(guint64 seed, guint trials, double *ret_found, double *ret_before)
{
    tune_space space;
    tune_workload workload = {.kernel = "emulated"};
    draw(seed);
    measure();
    json_t *config = json_object();
    if (tune_space_init(&space, config, NULL) != TOOL_OK)
        exit(1);
    tune_theory *theory = tune_theory_new(NULL, DATA, true, true);
    tune_search search = {.space = &space,
                          .workload = &workload,
                          .expectation = {tune_theory_prior, theory},
                          .trials_most = trials,
                          .pairs = 3,
                          .quiet = true};
    if (tune_search_run(&search) != TOOL_OK || search.trials->len > trials)
        exit(1);
    tune_setting current = tune_space_current(&space);
    double best = best_of_all(&space);
    *ret_before = without_noise(&space, &current) / best;
    *ret_found = search.better ? without_noise(&space, &search.best) / best : *ret_before;
    g_autofree char *text = tune_setting_text(&space, search.better ? &search.best : &current);
    printf(
        "  %3u: %.2f instead of %.2f times the best, %u trials: %s (latency %.3f ms, stream %.0f, "
        "all %.0f MB/s, service %.3f ms, %u places, cache %.0f MB)\n",
        (unsigned) seed, *ret_found, *ret_before, search.trials->len, text, site.latency_s * 1e3,
        site.stream / 1e6, site.shared / 1e6, site.service_s * 1e3, site.places, site.cache / 1e6);
}

/* Both searches; @param ret_genetic,ret_model times as long as the best: what each found. */
static guint
tune_both(guint64 seed, guint trials, guint genetic, double *ret_genetic, double *ret_model)
{
    tune_space space;
    tune_workload workload = {.kernel = "emulated"};
    draw(seed);
    measure();
    json_t *config = json_object();
    if (tune_space_init(&space, config, NULL) != TOOL_OK)
        exit(1);
    tune_search search = {
        .space = &space,
        .workload = &workload,
        .expectation = {tune_theory_prior, tune_theory_new(NULL, DATA, true, true)},
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
    *ret_genetic = without_noise(&space, &search.genetic_best) / best;
    *ret_model = without_noise(&space, &search.best) / best;
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
        draw(1 + i);
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
