/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What nobody has told: how large the pieces are that a program reads or writes, how large holes
 * between them, what targets are like that nobody has measured, or how much slower than measured.
 * Many guesses are drawn, always the same. What each lets expect of settings follows from what the
 * engine does with them (io/read/jobs.c, io/container/dataset_io.c, placement, backends/data/s3);
 * trials tell which guesses are likely (model.c).
 */
#include <math.h>
#include <string.h>

#include "esdm-tune/prior.h"

#define GUESSES 500u
#define EACH    8u /* targets that are told apart */
/* More settings than that are not kept: what is expected of them is reckoned again. */
#define TABLE_MOST 4000000u

#define KIB  1024.0
#define MIB  (1024 * KIB)
#define MISS (-1.0) /* in tables: not reckoned yet */

/* Of the engine: a write below is gathered; a hole up to that is read in any case, and up to that
 * at most; what a request spans. */
#define DIRECT    (256 * KIB)
#define HOLE      (64 * KIB)
#define HOLE_MOST (4 * MIB)
#define SPAN      (1 * MIB)
#define FRAGMENT  (4 * MIB)
/* Of the plug-in for S3, and the tasks that wait for it beside the threads. */
#define PART        (32 * MIB)
#define CONNECTIONS 16.0
#define WAITING     8.0
#define FILL_SPEED  1e9 /* bytes per second of a core that encodes */

typedef struct guess {
    double bytes;
    bool writes, reads;
    double step;                            /* of a write */
    double memory;                          /* bytes of writes that a target takes at once */
    double piece, hole, far, pieces, group; /* of a strided read */
    double limit, pause_s; /* requests at once that objects take; of one that was refused */
    guint targets;
    target_model models[2][EACH];
    double slower[EACH]; /* times as slow as was measured */
} guess;

typedef struct guessed {
    const tune_theory *theory; /* or NULL */
    guess list[GUESSES];
    char *names[EACH]; /* of targets */
    double *table;     /* of each setting each guess; or NULL */
    bool gather, sieve, split, objects;
} guessed;

/* ---- drawing -------------------------------------------------------------------------------- */

static double
unit(guint64 *chance)
{
    return tool_unit(*chance = tool_scramble(*chance));
}

static double
between(guint64 *chance, double from, double to)
{
    return from * pow(to / from, unit(chance));
}

/* NULL: it is not. */
static const target_model *
measured_of(const tune_theory *theory, guint direction, const char *name)
{
    for (guint i = 0; theory != NULL && i < theory->count[direction]; i++)
        if (g_strcmp0(theory->models[direction][i].name, name) == 0)
            return &theory->models[direction][i];
    return NULL;
}

static void
draw_models(guess *g, const guessed *all, guint64 *chance)
{
    for (guint i = 0; i < g->targets; i++) {
        double latency = all->objects ? between(chance, 1e-3, 0.3) : between(chance, 2e-5, 0.05);
        double stream = between(chance, 15e6, 2e9);
        target_model m = {.latency_s = latency, .stream = stream};
        m.shared = stream * between(chance, 1, 32);
        m.service_s = fmax(latency / between(chance, 1, 64), 5e-6);
        for (guint k = 0; k < 2; k++) {
            g->models[k][i] = m;
            const target_model *known = measured_of(all->theory, k, all->names[i]);
            if (known != NULL)
                g->models[k][i] = *known;
        }
        bool loaded = all->theory != NULL && all->split && unit(chance) < 0.3;
        g->slower[i] = loaded ? between(chance, 1, 12) : 1;
    }
}

static void
draw(guess *g, const guessed *all, guint64 *chance)
{
    double what = all->sieve ? 1 : unit(chance) * 3;
    *g = (guess){.bytes = between(chance, 24e6, 1e9), .writes = what < 2, .reads = what >= 1};
    g->step = between(chance, 32 * KIB, 16 * MIB);
    g->memory = unit(chance) < 0.5 ? 0 : between(chance, 16e6, 128e6);
    g->piece = between(chance, 512, HOLE);
    g->hole = between(chance, 2 * KIB, 1.5 * MIB);
    g->far = g->hole * between(chance, 1, 64);
    g->pieces = between(chance, 100, 1500);
    g->group = between(chance, 4, 64);
    g->limit = between(chance, 4, 128);
    g->pause_s = between(chance, 0.05, 0.4);
    while (g->targets < EACH && all->names[g->targets] != NULL)
        g->targets++;
    draw_models(g, all, chance);
}

/* ---- what requests take --------------------------------------------------------------------- */

static double
cores(void)
{
    return (double) g_get_num_processors();
}

static double
or_else(double number, double otherwise)
{
    return isnan(number) ? otherwise : number;
}

/* Bytes of a setting of which words stand for something else. */
static double
size_or(const tune_space *space, const tune_setting *setting, const char *name, double otherwise)
{
    const char *text = tune_space_text(space, setting, name);
    double size = tune_space_number(space, setting, name);
    return text == NULL || !g_ascii_isdigit(*text) ? otherwise : size;
}

/* Steps come one after the other; what is gathered of them goes out at once. */
static double
steps_s(const guess *g, double gather, double fragment, double threads)
{
    double limit = fragment, direct = fmin(DIRECT, fragment);
    for (; limit <= gather / 2; direct = fmax(direct, limit / 4))
        limit *= 2;
    double box = g->step >= direct ? g->step : fmax(floor(limit / g->step), 1) * g->step;
    double pieces = fmax(ceil(box / fragment - 1e-9), 1), bytes = box / pieces;
    double cpu = bytes / TUNE_MEMORY_SPEED + 10e-6, boxes = g->bytes / box;
    double waits =
        boxes * tune_rounds_s(g->models[0], 1, pieces, bytes, cpu, fmin(threads, pieces), cores());
    double quick = fmin(g->memory / g->bytes, 1);
    double served =
        g->bytes / bytes * g->models[0][0].service_s + g->bytes / g->models[0][0].shared;
    return fmax(waits * (1 - quick) + quick * boxes * (cpu + 5e-6), served) +
           g->bytes / TUNE_MEMORY_SPEED;
}

/* The hole that the engine reads where nobody states one. */
static double
hole_of_model(const guess *g, bool measured, double threads)
{
    const target_model *m = &g->models[1][0];
    double took = m->latency_s + g->piece / m->stream;
    double hole = fmin(g->hole, MIB) / m->stream;
    if (measured)
        return fmax(fmin(m->latency_s * m->stream, HOLE_MOST), HOLE);
    return g->pieces >= 16 * threads && took >= 4e-3 && 2 * hole <= took
               ? fmax(fmin(2 * g->hole, HOLE_MOST), HOLE)
               : HOLE;
}

static double
strided_s(const guess *g, double most, double threads)
{
    double near = g->piece + g->hole, longest = fmax(2 * most, SPAN);
    double groups = ceil(g->pieces / g->group);
    double total = g->pieces * near + groups * (g->far - g->hole);
    double count = g->pieces, bytes = g->piece, together = 1;
    if (most >= g->far && near <= longest) {
        count = fmax(total / longest, 1);
        together = g->pieces / count;
        bytes = total / count;
    } else if (most >= g->hole) {
        double fit = fmax(floor((longest + g->hole) / near), 1);
        together = fmin(g->group / ceil(g->group / fit), g->pieces);
        count = g->pieces / together;
        bytes = together * near - g->hole;
    }
    return tune_rounds_s(g->models[1], 1, ceil(count), bytes, 5e-6 * together + bytes / 8e9,
                         fmin(threads, ceil(count)), cores());
}

static bool
is_named(const char *split, const char *name)
{
    g_auto(GStrv) parts = g_strsplit(split, "+", -1);
    return g_str_equal(split, TUNE_SPLIT_ALL) || g_strv_contains((const char *const *) parts, name);
}

/* Shares follow what is measured, or are alike; the last one that is done counts. */
static double
split_s(const guess *g, const guessed *all, guint direction, const bool *takes, double threads)
{
    double bytes = FRAGMENT, count = ceil(g->bytes / bytes), cpu = bytes / TUNE_MEMORY_SPEED;
    double named = 0, shares = 0, share[EACH] = {0}, longest = 0, rates = 0;
    for (guint i = 0; i < g->targets; i++)
        named += takes[i];
    for (guint i = 0; i < g->targets; i++) {
        double each = fmax(threads / named, 1);
        share[i] = !takes[i] ? 0
                   : all->theory == NULL
                       ? 1
                       : tune_rate(&g->models[0][i], bytes, cpu, each, threads, cores());
        shares += share[i];
    }
    for (guint i = 0; i < g->targets; i++) {
        const target_model *m = &g->models[direction][i];
        target_model now = {NULL, m->latency_s * g->slower[i], m->stream / g->slower[i],
                            m->service_s, m->shared / g->slower[i]};
        if (!takes[i])
            continue;
        double of = share[i] / shares * count;
        longest = fmax(longest, of / tune_rate(&now, bytes, cpu, fmin(threads, fmax(of, 1)),
                                               threads, cores()));
        rates += tune_rate(&now, bytes, cpu, fmax(threads / named, 1), threads, cores());
    }
    return fmax(longest, count / rates);
}

/* Requests at once on so many connections. Those beyond what objects take are refused, and come
 * again after pauses, so that places are free at times. */
static double
requests_s(const guess *g, double count, double bytes, double at_once)
{
    target_model m = g->models[0][0];
    m.service_s = 0; /* many servers */
    at_once = fmin(at_once, count);
    if (at_once <= g->limit)
        return 2 * m.latency_s + tune_rounds_s(&m, 1, count, bytes, 0, at_once, cores());
    double alone = m.latency_s + bytes / m.stream;
    m.latency_s += alone * 0.3 + g->pause_s * g->limit / at_once;
    return 2 * g->models[0][0].latency_s + g->pause_s +
           tune_rounds_s(&m, 1, count, bytes, 0, g->limit, cores());
}

static double
objects_s(const guess *g, double connections, double part, double threads)
{
    double fragments = ceil(g->bytes / FRAGMENT), packs = fmin(threads, fragments);
    double each = g->bytes / packs, parts = fmax(ceil(each / part), 1);
    double fill = fmax(packs / cores(), 1) / FILL_SPEED, bytes = fmin(part, each), seconds = 0;
    if (g->writes) {
        double first = bytes * fill, last = each - (parts - 1) * bytes;
        double filled = each * fill + g->models[0][0].latency_s + last / g->models[0][0].stream;
        seconds += (parts > 1 ? 2 : 0) * g->models[0][0].latency_s +
                   fmax(first + requests_s(g, parts * packs, g->bytes / packs / parts, connections),
                        filled);
    }
    if (g->reads)
        seconds +=
            requests_s(g, fragments, g->bytes / fragments, fmin(connections, threads + WAITING));
    return seconds;
}

static double
seconds_of(const guess *g, const guessed *all, const tune_space *space, const tune_setting *setting)
{
    double threads = or_else(tune_space_number(space, setting, "threads"), cores());
    double fragment = or_else(tune_space_number(space, setting, "fragment"), FRAGMENT);
    if (all->sieve)
        return strided_s(
            g, size_or(space, setting, "sieve", hole_of_model(g, all->theory != NULL, threads)),
            threads);
    if (all->gather)
        return steps_s(g, size_or(space, setting, "gather", 0), fragment, threads);
    if (all->objects)
        return objects_s(g, or_else(tune_space_number(space, setting, "connections"), CONNECTIONS),
                         or_else(tune_space_number(space, setting, "part"), PART), threads);
    bool takes[EACH] = {false};
    const char *split = tune_space_text(space, setting, "split");
    for (guint i = 0; i < g->targets; i++)
        takes[i] = is_named(split, all->names[i]);
    return (g->writes ? split_s(g, all, 0, takes, threads) : 0) +
           (g->reads ? split_s(g, all, 1, takes, threads) : 0);
}

/* ---- what the search asks ------------------------------------------------------------------- */

static guint64
number_of(const tune_space *space, const tune_setting *setting)
{
    guint64 number = 0;
    for (guint i = space->count; i-- > 0;)
        number = number * space->parameters[i].count + setting->value[i];
    return number;
}

static double
prior(const tune_space *space, const tune_setting *setting, void *user, guint which)
{
    guessed *all = user;
    double *kept =
        all->table != NULL ? all->table + number_of(space, setting) * GUESSES + which : NULL;
    if (kept != NULL && *kept != MISS)
        return *kept;
    double seconds = log(fmax(seconds_of(&all->list[which], all, space, setting), 1e-6));
    if (kept != NULL)
        *kept = seconds;
    return seconds;
}

bool
tune_expects(const tune_parameter *p)
{
    static const char *const names[] = {"threads", "fragment",    "codec", "gather", "sieve",
                                        "split",   "connections", "part",  NULL};
    return g_strv_contains(names, p->name);
}

static bool
has(const tune_space *space, const char *name)
{
    for (guint i = 0; i < space->count; i++)
        if (g_str_equal(space->parameters[i].name, name))
            return true;
    return false;
}

/* Those that take new data. */
static void
name_targets(guessed *all, const tune_space *space)
{
    const json_t *targets = json_object_get(space->config, "targets");
    guint count = 0;
    for (gsize i = 0; i < json_array_size(targets) && count < EACH; i++) {
        const json_t *target = json_array_get(targets, i);
        if (!json_is_true(json_object_get(target, "retiring")))
            all->names[count++] = g_strdup(json_string_value(json_object_get(target, "name")));
    }
}

tune_expectation
tune_expect(const tune_space *space, const tune_theory *theory)
{
    guessed *all = g_new0(guessed, 1);
    guint64 chance = 1, settings = tune_space_size(space);
    all->sieve = has(space, "sieve");
    all->gather = has(space, "gather");
    all->split = has(space, "split");
    all->objects = has(space, "connections") || has(space, "part");
    if (all->sieve + all->gather + all->split + all->objects != 1) {
        g_free(all);
        return (tune_expectation){theory != NULL ? tune_theory_prior : NULL, (void *) theory, 0};
    }
    all->theory = theory;
    name_targets(all, space);
    if (settings * GUESSES <= TABLE_MOST) {
        all->table = g_new(double, settings *GUESSES);
        for (guint64 i = 0; i < settings * GUESSES; i++)
            all->table[i] = MISS;
    }
    for (guint i = 0; i < GUESSES; i++)
        draw(&all->list[i], all, &chance);
    return (tune_expectation){prior, all, GUESSES};
}
