/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What requests usually take. */
#include "monitor/usual.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "base/thread.h"
#include "monitor/runs.h"

#define RUNS_LEAST 5u  /* fewer say nothing of what is usual, as for esdm-explain */
#define RUNS_MOST  50u /* the last ones */
#define WAYS_MOST  64u /* targets and kinds */
#define LINES_MOST 4000u
#define LEAST_S    0.001 /* less says nothing of a speed */
#define MOST_S     1e9

/* ---- what the session has told ---------------------------------------------------------------
 */

typedef struct expectation {
    char *target; /* owned */
    bool reading;
    esdm__monitor_times times;
} expectation;

struct esdm__expectations {
    expectation *list; /* owned */
    size_t count;
};

void
esdm__expectations_free(struct esdm__expectations *e)
{
    for (size_t i = 0; e != NULL && i < e->count; i++)
        free(e->list[i].target);
    if (e != NULL)
        free(e->list);
    free(e);
}

bool
esdm__monitor_has_rules(const esdm__monitor *monitor)
{
    return monitor != NULL && monitor->reasoner != NULL;
}

void
esdm__monitor_expect(esdm__monitor *monitor, const char *target, bool reading,
                     const esdm__monitor_times *times)
{
    (void) pthread_mutex_lock(&monitor->lock);
    if (monitor->expect == NULL)
        monitor->expect = calloc(1, sizeof *monitor->expect);
    struct esdm__expectations *e = monitor->expect;
    expectation *more = e != NULL ? reallocarray(e->list, e->count + 1, sizeof *e->list) : NULL;
    if (more != NULL) {
        e->list = more;
        more[e->count] = (expectation){strdup(target), reading, *times};
        e->count += more[e->count].target != NULL;
    }
    (void) pthread_mutex_unlock(&monitor->lock);
}

/* Between the points of a table, by logarithms. */
static double
seconds_of(const esdm__monitor_times *t, double bytes, double concurrency)
{
    double x = (log2(fmax(bytes, 1)) - ESDM__TIMES_FIRST) / ESDM__TIMES_STEP;
    double y = log2(fmax(concurrency, 1));
    double beyond = fmax(x - (ESDM__TIMES_BYTES - 1), 0); /* then bytes alone count */
    x = fmin(fmax(x, 0), ESDM__TIMES_BYTES - 1);
    y = fmin(y, ESDM__TIMES_AT_ONCE - 1);
    size_t i = (size_t) fmin(x, ESDM__TIMES_BYTES - 2);
    size_t k = (size_t) fmin(y, ESDM__TIMES_AT_ONCE - 2);
    double dx = x - (double) i, dy = y - (double) k;
    double low = (1 - dy) * log(t->seconds[i][k]) + dy * log(t->seconds[i][k + 1]);
    double high = (1 - dy) * log(t->seconds[i + 1][k]) + dy * log(t->seconds[i + 1][k + 1]);
    return exp((1 - dx) * low + dx * high) * exp2(beyond * ESDM__TIMES_STEP);
}

static double
model_of(const struct esdm__expectations *e, const esdm__window *w)
{
    bool reading = w->kind == ESDM__SPAN_FETCH;
    for (size_t i = 0; e != NULL && i < e->count && w->target != NULL; i++) {
        const expectation *one = &e->list[i];
        if ((reading || w->kind == ESDM__SPAN_APPEND) && one->reading == reading &&
            strcmp(one->target, w->target) == 0)
            return w->count * seconds_of(&one->times, w->bytes / w->count, w->concurrency);
    }
    return 0;
}

/* ---- earlier runs ----------------------------------------------------------------------------
 */

/* Requests of one kind to one target, in each run. */
typedef struct way {
    char *target; /* owned; NULL: the catalogue */
    esdm__span_kind kind;
    double counts[RUNS_MOST];
    double bytes[RUNS_MOST];
    double seconds[RUNS_MOST];
} way;

/* A ring of the last runs: number n is at n % RUNS_MOST. */
typedef struct past {
    way ways[WAYS_MOST];
    size_t nways;
    size_t count;            /* of all runs */
    double run_s[RUNS_MOST]; /* seconds of the run */
    double moved[RUNS_MOST]; /* bytes of requests */
    bool traced[RUNS_MOST];  /* for the last run's sake */
} past;

enum { UNREAD, READING, READ, LEFT };

typedef struct errand {
    atomic_int state;
    char *folder; /* owned, so the next two */
    char *program;
    past *own;    /* this user's */
    past *others; /* everybody's else */
    size_t lines;
} errand;

struct esdm__usual {
    const esdm__monitor_options *options;
    errand *errand; /* NULL: the site keeps no runs */
    bool is_read;
};

static void
past_free(past *p)
{
    for (size_t i = 0; p != NULL && i < p->nways; i++)
        free(p->ways[i].target);
    free(p);
}

static void
errand_free(errand *e)
{
    free(e->folder);
    free(e->program);
    past_free(e->own);
    past_free(e->others);
    free(e);
}

static bool
is_way(const way *w, const char *target, esdm__span_kind kind)
{
    bool same =
        target == NULL || w->target == NULL ? target == w->target : strcmp(target, w->target) == 0;
    return same && w->kind == kind;
}

static way *
way_of(past *p, const char *target, esdm__span_kind kind)
{
    for (size_t i = 0; i < p->nways; i++) {
        if (is_way(&p->ways[i], target, kind))
            return &p->ways[i];
    }
    if (p->nways == WAYS_MOST)
        return NULL;
    way *new = &p->ways[p->nways];
    *new = (way){.target = target != NULL ? strdup(target) : NULL, .kind = kind};
    if (target != NULL && new->target == NULL)
        return NULL;
    p->nways++;
    return new;
}

static int
request_kind(const char *name)
{
    for (size_t i = 0; name != NULL && i < ESDM__REQUEST_KINDS; i++) {
        if (strcmp(name, esdm__span_name(esdm__request_kinds[i])) == 0)
            return (int) esdm__request_kinds[i];
    }
    return -1;
}

static double
number_of(const json_t *object, const char *key, double most)
{
    double value = json_number_value(json_object_get(object, key));
    return value >= 0 && value < most ? value : 0;
}

/* What a file of a user says need not be true: numbers that cannot be count as none. */
static void
add_requests(past *p, size_t at, const json_t *span)
{
    int kind = request_kind(json_string_value(json_object_get(span, "kind")));
    double count = number_of(span, "count", 1e15);
    double bytes = number_of(span, "bytes", 1e18);
    double seconds = number_of(span, "seconds", MOST_S);
    way *w = kind >= 0 && count >= 1 ? way_of(p, json_string_value(json_object_get(span, "target")),
                                              (esdm__span_kind) kind)
                                     : NULL;
    if (w == NULL)
        return;
    w->counts[at] += count; /* there may be several containers */
    w->bytes[at] += bytes;
    w->seconds[at] += seconds;
    if (kind == ESDM__SPAN_FETCH || kind == ESDM__SPAN_APPEND)
        p->moved[at] += bytes;
}

static bool
was_traced(const json_t *line)
{
    size_t i;
    const json_t *one;
    json_array_foreach(json_object_get(line, "unusual"), i, one)
    {
        if (json_is_true(json_object_get(one, "last_run")))
            return true;
    }
    return false;
}

static bool
take_run(void *context, uint64_t user, const char *text)
{
    errand *e = context;
    past *p = user == geteuid() ? e->own : e->others;
    json_t *line = esdm__json_read(text);
    const char *program = json_string_value(json_object_get(line, "program"));
    bool of_session = json_object_get(line, "by") == NULL; /* esdm-run sees plain files */
    if (program != NULL && strcmp(program, e->program) == 0 && of_session) {
        size_t i, at = p->count++ % RUNS_MOST;
        const json_t *span;
        for (size_t w = 0; w < p->nways; w++)
            p->ways[w].counts[at] = p->ways[w].bytes[at] = p->ways[w].seconds[at] = 0;
        p->run_s[at] = number_of(line, "seconds", MOST_S);
        p->moved[at] = 0;
        p->traced[at] = was_traced(line);
        json_array_foreach(json_object_get(line, "spans"), i, span) add_requests(p, at, span);
    }
    json_decref(line);
    return ++e->lines < LINES_MOST && atomic_load(&e->state) != LEFT;
}

static void *
read_runs(void *argument)
{
    errand *e = argument;
    (void) !esdm__runs_read(e->folder, e->program, take_run, e, NULL);
    if (atomic_exchange(&e->state, READ) == LEFT)
        errand_free(e);
    return NULL;
}

esdm__usual *
esdm__usual_new(const esdm__monitor_options *options)
{
    esdm__usual *u = calloc(1, sizeof *u);
    if (u != NULL)
        u->options = options;
    return u;
}

/* NULL: no memory, or the program has no name. */
static errand *
errand_new(const char *folder)
{
    errand *e = calloc(1, sizeof *e);
    if (e != NULL) {
        e->folder = strdup(folder);
        e->program = esdm__runs_program();
        e->own = calloc(1, sizeof *e->own);
        e->others = calloc(1, sizeof *e->others);
        atomic_init(&e->state, READING);
    }
    if (e == NULL ||
        (e->folder != NULL && e->program != NULL && e->own != NULL && e->others != NULL))
        return e;
    errand_free(e);
    return NULL;
}

bool
esdm__usual_is_read(esdm__usual *u)
{
    pthread_t thread;
    if (u->is_read)
        return true;
    if (u->errand != NULL) {
        u->is_read = atomic_load(&u->errand->state) == READ;
        return u->is_read;
    }
    bool kept = (u->options->modules & ESDM__MONITOR_RUNS) != 0;
    u->errand = kept ? errand_new(u->options->runs) : NULL;
    if (u->errand != NULL && esdm__thread_start(&thread, NULL, read_runs, u->errand)) {
        (void) pthread_detach(thread);
        return false;
    }
    if (u->errand != NULL)
        errand_free(u->errand);
    u->errand = NULL;
    u->is_read = true;
    return true;
}

void
esdm__usual_free(esdm__usual *u)
{
    if (u == NULL)
        return;
    if (u->errand != NULL && atomic_exchange(&u->errand->state, LEFT) == READ)
        errand_free(u->errand);
    free(u);
}

/* ---- what is usual ---------------------------------------------------------------------------
 */

typedef struct spread {
    size_t count;
    double middle;
    double most; /* of what runs differ by themselves */
} spread;

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

static double
quantile(const double *sorted, size_t count, double share)
{
    double at = share * (double) (count - 1);
    size_t low = (size_t) at;
    size_t high = low + 1 < count ? low + 1 : low;
    return sorted[low] + (at - (double) low) * (sorted[high] - sorted[low]);
}

/* @param values of runs; 0: none. @param without index of a run that does not count. */
static spread
spread_of(const double *values, size_t count, size_t without)
{
    double sorted[RUNS_MOST];
    spread s = {0};
    for (size_t i = 0; i < count && i < RUNS_MOST; i++) {
        if (values[i] > 0 && i != without)
            sorted[s.count++] = values[i];
    }
    if (s.count < RUNS_LEAST)
        return (spread){.count = s.count};
    qsort(sorted, s.count, sizeof *sorted, by_value);
    double low = quantile(sorted, s.count, 0.25), high = quantile(sorted, s.count, 0.75);
    s.middle = quantile(sorted, s.count, 0.5);
    s.most = high + 1.5 * (high - low);
    return s;
}

/* As long as requests, or bytes, of earlier runs say: what is longer. */
static esdm__expected
by_way(const way *w, size_t runs, size_t without, const esdm__window *window, double factor)
{
    double each[RUNS_MOST], bytes[RUNS_MOST];
    for (size_t i = 0; i < runs && i < RUNS_MOST; i++) {
        double seconds = w->seconds[i] >= LEAST_S ? w->seconds[i] : 0;
        each[i] = w->counts[i] > 0 ? seconds / w->counts[i] : 0;
        bytes[i] = w->bytes[i] > 0 ? seconds / w->bytes[i] : 0;
    }
    spread request = spread_of(each, runs, without);
    spread byte = spread_of(bytes, runs, without);
    if (request.count < RUNS_LEAST)
        return (esdm__expected){0};
    return (esdm__expected){
        .seconds = fmax(window->count * request.middle, window->bytes * byte.middle),
        .most_s = fmax(window->count * fmax(factor * request.middle, request.most),
                       window->bytes * fmax(factor * byte.middle, byte.most)),
        .by_runs = true};
}

/* The own runs count, unless they are too few. NULL: nothing was read. */
static const past *
past_of(const esdm__usual *u)
{
    if (!u->is_read || u->errand == NULL)
        return NULL;
    const errand *e = u->errand;
    return e->own->count >= RUNS_LEAST ? e->own : e->others;
}

esdm__expected
esdm__usual_of(const esdm__usual *u, const struct esdm__expectations *expect,
               const esdm__window *window, double factor)
{
    const past *p = past_of(u);
    double model_s = model_of(expect, window);
    esdm__expected found = {0};
    for (size_t i = 0; p != NULL && i < p->nways && found.seconds <= 0; i++) {
        if (is_way(&p->ways[i], window->target, window->kind))
            found = by_way(&p->ways[i], p->count, SIZE_MAX, window, factor);
    }
    /* A model of an idle site knows nothing of others; earlier runs nothing of other sizes. */
    if (found.seconds <= 0 || model_s * factor > found.most_s)
        found = (esdm__expected){.seconds = model_s, .most_s = model_s * factor};
    return found;
}

bool
esdm__usual_last_was_slow(const esdm__usual *u, double factor, unsigned among, double *ret_times,
                          unsigned *ret_traced)
{
    const past *p = u->is_read && u->errand != NULL ? u->errand->own : NULL;
    if (p == NULL || p->count < RUNS_LEAST + 1)
        return false;
    size_t last = (p->count - 1) % RUNS_MOST;
    *ret_traced = 0;
    for (size_t i = 0; i < among && i < RUNS_MOST && i < p->count; i++)
        *ret_traced += p->traced[(p->count - 1 - i) % RUNS_MOST];
    double worst = 0;
    for (size_t i = 0; i < p->nways; i++) {
        const way *w = &p->ways[i];
        const esdm__window window = {
            .count = w->counts[last], .bytes = w->bytes[last], .concurrency = 1};
        if (w->seconds[last] < LEAST_S)
            continue;
        esdm__expected e = by_way(w, p->count, last, &window, factor);
        double times = w->seconds[last] / fmax(e.seconds, 1e-12);
        /* What is a small part of the run is no reason to look at it. */
        if (e.seconds > 0 && w->seconds[last] > e.most_s &&
            w->seconds[last] - e.seconds > 0.1 * p->run_s[last])
            worst = fmax(worst, times);
    }
    spread run = spread_of(p->run_s, p->count, last);
    spread moved = spread_of(p->moved, p->count, last);
    if (run.count >= RUNS_LEAST && moved.count >= RUNS_LEAST &&
        p->run_s[last] > fmax(factor * run.middle, run.most) &&
        p->moved[last] <= 1.2 * moved.middle)
        worst = fmax(worst, p->run_s[last] / run.middle);
    *ret_times = worst;
    return worst > 0;
}
