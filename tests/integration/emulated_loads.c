/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Programs on emulated sites, of which requests decide: a strided read, steps that are written one
 * after the other, targets of different speed, objects. What the engine and the plug-in for S3 do
 * with a setting is told here as they do it (io/read/jobs.c, io/container/dataset_io.c,
 * backends/data/s3); over which targets fragments go the engine's placement itself says.
 */
#include "emulated.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placement/placement.h"

#define TARGETS 4u
#define KIB     1024.0
#define MIB     (1024 * KIB)

static back_end targets[TARGETS];
static esdm_model_info models[TARGETS][2];
static unsigned count;
static bool calibrated;

bool
emulated_models(esdm_model_visitor visit, void *user)
{
    for (unsigned i = 0; i < count && calibrated; i++)
        for (unsigned k = 0; k < 2; k++)
            if (!visit(&models[i][k], user))
                return false;
    return true;
}

/* A site of so many targets, half of such sites measured. */
static json_t *
draw_targets(guint64 seed, unsigned number, const char *plugin)
{
    static const char *const names[TARGETS] = {"one", "two", "three", "four"};
    json_t *list = json_array();
    count = number;
    for (unsigned i = 0; i < count; i++) {
        draw_site(TARGETS * seed + i);
        targets[i] = site;
        json_array_append_new(list, json_pack("{s:s,s:s}", "name", names[i], "plugin", plugin));
    }
    calibrated = uniform(0, 1) < 0.5;
    for (unsigned i = 0; i < count; i++)
        for (unsigned k = 0; k < 2; k++) {
            models[i][k] = measured_of(&targets[i], k == 1);
            models[i][k].target = names[i];
        }
    return json_pack("{s:o}", "targets", list);
}

/* ---- what a configuration states ------------------------------------------------------------ */

static double
bytes_of(const char *text)
{
    char *end;
    double number = g_ascii_strtod(text, &end);
    return number * (*end == 'K' ? KIB : *end == 'M' ? MIB : 1);
}

static const json_t *
member(const json_t *config, const char *section, const char *key)
{
    return json_object_get(json_object_get(config, section), key);
}

/* A size, stated as a number or as a text; `otherwise` where it is neither. */
static double
size_of(const json_t *value, double otherwise)
{
    if (json_is_integer(value))
        return (double) json_integer_value(value);
    const char *text = json_string_value(value);
    return text != NULL && g_ascii_isdigit(*text) ? bytes_of(text) : otherwise;
}

static unsigned
threads_of(const json_t *config)
{
    double threads = size_of(member(config, "engine", "threads"), 0);
    return threads < 1 ? CORES : (unsigned) fmin(threads, WORKERS);
}

static double
fragment_of(const json_t *config)
{
    return size_of(member(config, "engine", "fragment"), 4 * MIB);
}

/* ---- a strided read ------------------------------------------------------------------------- */

#define RUN_GAP    (64 * KIB)
#define READ_MOST  (4 * MIB)
#define QUICK_S    4e-3
#define SMALL_BLOB (64 * KIB)

/* Pieces with holes between them, and larger holes between groups of these. */
static struct {
    double piece, hole, far_hole;
    unsigned pieces, group;
} stride;

static json_t *
draw_strided(guint64 seed)
{
    json_t *config = draw_targets(seed, 1, "throttled");
    stride.piece = log_uniform(512, SMALL_BLOB);
    stride.hole = log_uniform(2 * KIB, 1 * MIB);
    stride.far_hole = stride.hole * log_uniform(1, 64);
    stride.pieces = (unsigned) log_uniform(128, 1024);
    stride.group = (unsigned) log_uniform(4, 64);
    return config;
}

/* Up to which hole one request spans two pieces where nobody states it. */
static double
hole_of_model(unsigned threads)
{
    const esdm_model_info *m = &models[0][1];
    if (calibrated)
        return fmax(fmin(m->latency_s * m->stream_bytes_per_s, READ_MOST), RUN_GAP);
    /* The first pieces tell, where there are enough of them. */
    double took = targets[0].latency_s + stride.piece / targets[0].stream;
    double hole = fmin(stride.hole, MIB) / targets[0].stream;
    bool learns = stride.pieces >= 16 * threads && took >= QUICK_S && 2 * hole <= took &&
                  stride.hole > RUN_GAP;
    return learns ? fmin(2 * stride.hole, READ_MOST) : RUN_GAP;
}

static double
seconds_strided(const json_t *config)
{
    clocks c = {.server = 0};
    unsigned threads = threads_of(config);
    double most = size_of(member(config, "engine", "sieve"), -1);
    most = most < 0 ? hole_of_model(threads) : most;
    double longest = fmax(2 * most, MIB);
    for (unsigned i = 0; i < stride.pieces;) {
        double span = stride.piece;
        unsigned pieces = 1;
        for (; ++i < stride.pieces; pieces++) {
            double hole = i % stride.group == 0 ? stride.far_hole : stride.hole;
            if (hole > most || span + hole + stride.piece > longest)
                break;
            span += hole + stride.piece;
        }
        unsigned w = earliest(c.worker, threads);
        double at = request(&c, &targets[0], c.worker[w], span);
        c.worker[w] = compute(&c, at, 5e-6 * pieces + span / 8e9);
    }
    return latest(&c, &targets[0], threads);
}

/* ---- steps that are written one after the other --------------------------------------------- */

#define DIRECT (256 * KIB)

static struct {
    double bytes;
    unsigned steps;
} series;

static json_t *
draw_gathered(guint64 seed)
{
    json_t *config = draw_targets(seed, 1, "throttled");
    series.bytes = log_uniform(32 * KIB, 8 * MIB);
    series.steps = (unsigned) ceil(log_uniform(32e6, 192e6) / series.bytes);
    return config;
}

/* A box goes out as fragments, all at once; the program waits. */
static double
store_box(clocks *c, double begin, double bytes, double fragment, unsigned threads)
{
    unsigned pieces = (unsigned) fmax(ceil(bytes / fragment - 1e-9), 1);
    double end = begin;
    for (unsigned i = 0; i < threads; i++)
        c->worker[i] = begin;
    for (unsigned i = 0; i < pieces; i++) {
        unsigned w = earliest(c->worker, threads);
        double at = compute(c, c->worker[w], bytes / pieces / 4e9 + 10e-6);
        c->worker[w] = store(c, &targets[0], at, bytes / pieces);
        end = fmax(end, c->worker[w]);
    }
    return end;
}

static double
seconds_gathered(const json_t *config)
{
    clocks c = {.cache = targets[0].cache};
    unsigned threads = threads_of(config);
    double fragment = fragment_of(config), at = 0, waiting = 0;
    double gather = size_of(member(config, "engine", "gather"), 0);
    double limit = fragment, direct = fmin(DIRECT, fragment);
    while (fragment <= gather / 2 && limit <= gather / 2)
        limit *= 2;
    direct = limit > fragment ? fmax(direct, limit / 4) : direct;
    for (unsigned i = 0; i < series.steps; i++) {
        at += series.bytes / 4e9; /* it is computed, or copied */
        if (series.bytes >= direct) {
            at = store_box(&c, at, series.bytes, fragment, threads);
            continue;
        }
        if (waiting + series.bytes > limit) {
            at = store_box(&c, at, waiting, fragment, threads);
            waiting = 0;
        }
        waiting += series.bytes;
    }
    if (waiting > 0)
        at = store_box(&c, at, waiting, fragment, threads);
    return fmax(at, latest(&c, &targets[0], threads));
}

/* ---- targets of different speed ------------------------------------------------------------- */

#define FRAGMENTS 256u

static double moved;              /* bytes that are written, and read again */
static double loaded_by[TARGETS]; /* times as slow as they were when somebody measured them */

static json_t *
draw_split(guint64 seed)
{
    chance_begin(seed);
    json_t *config = draw_targets(seed, 2 + (unsigned) uniform(0, 2.999), "throttled");
    moved = log_uniform(32e6, FRAGMENTS * 4 * MIB);
    for (unsigned i = 0; i < count; i++) {
        loaded_by[i] = uniform(0, 1) < 0.3 ? log_uniform(1, 10) : 1;
        targets[i].latency_s *= loaded_by[i];
        targets[i].stream /= loaded_by[i];
        targets[i].shared /= loaded_by[i];
    }
    return config;
}

static bool
is_allowed(const json_t *config, unsigned target)
{
    const json_t *list =
        json_object_get(json_array_get(json_object_get(config, "policies"), 0), "targets");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (g_strcmp0(json_string_value(json_array_get(list, i)), models[target][0].target) == 0)
            return true;
    return list == NULL;
}

/* What is under way at a moment. */
typedef struct under_way {
    double until[FRAGMENTS + 1];
    unsigned on[FRAGMENTS + 1], count;
} under_way;

static unsigned
place(const json_t *config, const under_way *all, double now, double bytes, double behind)
{
    esdm__perf perf[TARGETS];
    esdm__place_target list[TARGETS] = {{0}};
    esdm__place_choice order[TARGETS];
    for (unsigned i = 0; i < count; i++) {
        const esdm_model_info *m = &models[i][0];
        perf[i] = (esdm__perf){.latency_s = m->latency_s,
                               .stream_s_per_byte = 1 / m->stream_bytes_per_s,
                               .service_s = m->service_s,
                               .shared_s_per_byte = 1 / m->shared_bytes_per_s};
        list[i] = (esdm__place_target){.write = calibrated ? &perf[i] : NULL,
                                       .allowed = is_allowed(config, i)};
    }
    for (unsigned i = 0; i < all->count; i++)
        if (all->until[i] > now) {
            list[all->on[i]].queued_requests++;
            list[all->on[i]].queued_bytes += (uint64_t) bytes;
        }
    const esdm__place_request wanted = {
        .bytes = (uint64_t) bytes, .behind = (uint64_t) behind, .turn = all->count};
    (void) esdm__placement_order(list, count, &wanted, order);
    return (unsigned) order[0].target;
}

static double
seconds_split(const json_t *config)
{
    clocks writing[TARGETS] = {{.server = 0}}, reading[TARGETS] = {{.server = 0}};
    clocks c = {.server = 0};
    under_way all = {.count = 0};
    unsigned threads = threads_of(config), pieces = (unsigned) ceil(moved / (4 * MIB));
    double bytes = moved / pieces, end = 0;
    for (unsigned i = 0; i < pieces; i++) {
        unsigned w = earliest(c.worker, threads);
        double at = compute(&c, c.worker[w], bytes / 4e9);
        unsigned on = place(config, &all, at, bytes, bytes * (pieces - 1 - i));
        c.worker[w] = request(&writing[on], &targets[on], at, bytes);
        all.until[all.count] = c.worker[w];
        all.on[all.count++] = on;
        end = fmax(end, c.worker[w]);
    }
    c = (clocks){.server = 0};
    double read = 0;
    for (unsigned i = 0; i < pieces; i++) {
        unsigned w = earliest(c.worker, threads);
        double at = request(&reading[all.on[i]], &targets[all.on[i]], c.worker[w], bytes);
        c.worker[w] = compute(&c, at, bytes / 4e9);
        read = fmax(read, c.worker[w]);
    }
    return (end + read);
}

/* ---- objects -------------------------------------------------------------------------------- */

#define CONNECTIONS  64u
#define WAITING      16u /* tasks that wait for the store beside those that work */
#define GET_MOST     (8 * MIB)
#define MEMORY_TASKS 8u /* fragments of 4 MiB in an eighth of the memory */

static struct {
    double latency_s, stream, shared, refusal_s;
    unsigned limit; /* requests at once; others are refused, and come again */
    double bytes;
} objects;

static json_t *
draw_objects(guint64 seed)
{
    json_t *config = draw_targets(seed, 1, "s3");
    objects.latency_s = log_uniform(2e-3, 200e-3);
    objects.stream = log_uniform(5e6, 200e6);
    objects.shared = objects.stream * log_uniform(2, 64);
    objects.limit = (unsigned) log_uniform(4, 128);
    objects.refusal_s = uniform(0.05, 0.2);
    objects.bytes = log_uniform(64e6, 1e9);
    targets[0].latency_s = objects.latency_s;
    targets[0].stream = objects.stream;
    targets[0].shared = objects.shared;
    targets[0].service_s = objects.latency_s / 200;
    targets[0].places = (unsigned) fmin(objects.limit, PLACES);
    for (unsigned k = 0; k < 2; k++) {
        models[0][k] = measured_of(&targets[0], k == 1);
        models[0][k].target = "one";
    }
    return config;
}

typedef struct http {
    unsigned connections;
    double busy[CONNECTIONS]; /* until then */
    bool open[CONNECTIONS];
    double line; /* of this machine, or of the server: bytes of all */
} http;

/* @param round_trips beside that of the request itself. */
static double
ask(http *h, double at, double bytes)
{
    unsigned slot = earliest(h->busy, h->connections);
    double begin = fmax(at, h->busy[slot]);
    if (!h->open[slot])
        begin += 2 * objects.latency_s; /* TCP and TLS */
    h->open[slot] = true;
    for (unsigned tries = 0; tries < 6; tries++) {
        unsigned busy = 0;
        for (unsigned i = 0; i < h->connections; i++)
            busy += h->busy[i] > begin;
        if (busy < objects.limit)
            break;
        begin += objects.latency_s + objects.refusal_s * (1u << tries);
    }
    h->line = fmax(h->line, begin) + bytes / objects.shared;
    double alone = (objects.latency_s + bytes / objects.stream) * noisy(targets[0].request_noise);
    h->busy[slot] = fmax(h->line, begin + alone);
    return h->busy[slot];
}

/* Each thread fills a pack of its own; parts are on their way while the next one is filled. */
static double
put_all(const json_t *config, http *h)
{
    const json_t *target = json_array_get(json_object_get(config, "targets"), 0);
    double part = size_of(json_object_get(target, "part"), 32 * MIB);
    unsigned fragments = (unsigned) ceil(objects.bytes / (4 * MIB));
    unsigned packs = threads_of(config) < fragments ? threads_of(config) : fragments;
    double each = objects.bytes / packs, end = 0;
    unsigned parts = (unsigned) fmax(ceil(each / part), 1);
    double filled = part / 1e9 * fmax((double) packs / CORES, 1); /* a core encodes */
    double sent[WORKERS] = {0};
    double first = parts > 1 ? objects.latency_s : 0; /* an upload is begun */
    for (unsigned i = 0; i < parts; i++)
        for (unsigned k = 0; k < packs; k++) {
            double bytes = fmin(part, each - part * i);
            double done = ask(h, first + filled * fmin(i + 1, each / part), bytes);
            sent[k] = fmax(sent[k], done);
        }
    for (unsigned k = 0; k < packs; k++)
        end = fmax(end, parts > 1 ? ask(h, sent[k], 0) : sent[k]);
    return end;
}

static double
get_all(const json_t *config, http *h)
{
    double at[WORKERS + WAITING] = {0};
    unsigned tasks = threads_of(config) + MEMORY_TASKS;
    unsigned fragments = (unsigned) ceil(objects.bytes / (4 * MIB));
    double bytes = objects.bytes / fragments, end = 0;
    for (unsigned i = 0; i < fragments; i++) {
        unsigned w = earliest(at, tasks);
        at[w] = ask(h, at[w], fmin(bytes, GET_MOST)) + bytes / 4e9;
        end = fmax(end, at[w]);
    }
    return end;
}

static double
seconds_objects(const json_t *config)
{
    const json_t *target = json_array_get(json_object_get(config, "targets"), 0);
    double connections = size_of(json_object_get(target, "connections"), 16);
    http writing = {.connections = (unsigned) fmin(connections, CONNECTIONS)};
    http reading = {.connections = writing.connections};
    return (put_all(config, &writing) + get_all(config, &reading));
}

/* ---- all of them ---------------------------------------------------------------------------- */

const emulated_load *
emulated_load_named(const char *name)
{
    static const emulated_load loads[] = {
        {"strided", "sieve threads", draw_strided, seconds_strided},
        {"gathered", "gather fragment threads", draw_gathered, seconds_gathered},
        {"split", "split threads", draw_split, seconds_split},
        {"objects", "connections part threads", draw_objects, seconds_objects}};
    for (gsize i = 0; i < G_N_ELEMENTS(loads); i++)
        if (g_str_equal(loads[i].name, name))
            return &loads[i];
    return NULL;
}
