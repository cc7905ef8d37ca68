/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What is unusual turns detailed monitoring on for a while. */
#include "monitor/rules.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "monitor/usual.h"

#define FIRST_LOOK_NS UINT64_C(1000000000) /* shorter programs are no matter */
#define READ_NS       UINT64_C(5000000000) /* then the model alone counts */
#define WINDOW_NS     UINT64_C(250000000)
#define LONGEST_NS    UINT64_C(10000000000)
#define REQUESTS      4   /* of a window, unless that is long */
#define USUAL_AGAIN   8   /* windows */
#define LOST_S        0.1 /* less is not worth it */
#define NO_RULE       SIZE_MAX

/* Requests of one kind to one target. */
typedef struct watched {
    const char *target; /* borrowed, of an object; NULL: the catalogue */
    esdm__span_kind kind;
    esdm__span_counts now;
    esdm__span_counts begin; /* of the window */
    uint64_t begin_ns;
    bool told;      /* it has not been as usual since */
    unsigned usual; /* windows in a row that were */
} watched;

/* What is under way. */
typedef struct detail {
    size_t rule; /* NO_RULE: nothing */
    json_t *what;
    uint64_t begin_ns;
    uint64_t spans, bytes; /* when it began */
    uint64_t before;       /* requests that were over by then */
} detail;

struct esdm__reasoner {
    esdm__usual *usual;
    watched list[ESDM__TARGETS_MAX][ESDM__REQUEST_KINDS]; /* begin_ns 0: there was none */
    uint64_t used[ESDM__RULES_MAX];
    bool asked_run;
    detail detail;
};

esdm__reasoner *
esdm__reasoner_new(esdm__monitor *m)
{
    esdm__reasoner *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->usual = esdm__usual_new(&m->options);
    r->detail.rule = NO_RULE;
    if (r->usual != NULL)
        return r;
    free(r);
    return NULL;
}

void
esdm__reasoner_free(esdm__reasoner *r)
{
    if (r == NULL)
        return;
    esdm__usual_free(r->usual);
    json_decref(r->detail.what);
    free(r);
}

/* ---- beginning and ending --------------------------------------------------------------------
 */

static uint64_t
trace_bytes(const esdm__monitor *m)
{
    /* A row of a database has about as much as a line. */
    return m->trace_database != NULL ? 300 * atomic_load(&m->written) : m->sink->bytes;
}

/* A line of the trace. */
static void
tell_trace(esdm__monitor *m, const json_t *what, bool begins)
{
    json_t *line = json_pack("{s:s,s:i,s:I,s:b}", "what", "unusual", "pid", (int) m->who.pid,
                             "now_ns", (json_int_t) esdm__monitor_now_ns(), "begins", (int) begins);
    if (line == NULL || json_object_update(line, (json_t *) (uintptr_t) what) != 0) {
        json_decref(line);
        return;
    }
    char *text = json_dumps(line, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(6));
    char *whole = NULL;
    json_decref(line);
    if (text != NULL && m->trace_database == NULL && asprintf(&whole, "%s\n", text) >= 0)
        (void) esdm__sink_line(m->sink, whole, &m->give_up);
    free(text);
    free(whole);
}

/* "2026-11-29 12:03:11", as the node has it. */
static void
time_text(uint64_t at_ns, char *ret, size_t room)
{
    time_t at = (time_t) (at_ns / 1000000000);
    struct tm tm;
    ret[0] = '\0';
    if (localtime_r(&at, &tm) != NULL)
        (void) strftime(ret, room, "%Y-%m-%d %H:%M:%S", &tm);
}

/* What has ended goes into the statistics, and to the runs of the site. */
static void
keep(esdm__monitor *m, json_t *what, uint64_t spans, uint64_t bytes)
{
    char *text = json_dumps(what, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(6));
    const char *because = json_string_value(json_object_get(what, "because"));
    json_t *action = esdm__action_json(&(esdm__action){.kind = ESDM__ACTION_DETAIL,
                                                       .requests = spans,
                                                       .used = spans,
                                                       .bytes = bytes,
                                                       .stopped = because});
    if (action != NULL)
        (void) json_object_update(action, what);
    char *other =
        action != NULL
            ? json_dumps(action, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(6))
            : NULL;
    json_decref(action);
    (void) pthread_mutex_lock(&m->lock);
    if (text != NULL)
        esdm__monitor_join(&m->unusual, text);
    if (other != NULL)
        esdm__monitor_join(&m->actions, other);
    (void) pthread_mutex_unlock(&m->lock);
    free(text);
    free(other);
}

/* The last requests before the trace, which may be those that gave the alarm. */
static uint64_t
put_recent(esdm__monitor *m)
{
    static char marked[] = ",\"before\":true";
    esdm__record record;
    uint64_t count = 0;
    while (m->recent != NULL && esdm__recent_take(m->recent, &record)) {
        record.detail = marked;
        count += esdm__sink_record(m->sink, esdm__objects_get(&m->objects, record.object), &record,
                                   &m->give_up);
    }
    return count;
}

static void
begin(esdm__monitor *m, size_t number, json_t *what)
{
    esdm__reasoner *r = m->reasoner;
    const esdm__monitor_rule *rule = &m->options.rules[number];
    bool traced = (m->options.modules & ESDM__MONITOR_TRACE) != 0;
    esdm_error err = {0};
    /* Few traces of a user are kept beside the runs: of a job that of the first rank, as its runs.
     */
    if (m->who.rank > 0 && esdm__monitor_is_beside_runs(m)) {
        json_decref(what);
        return;
    }
    r->used[number]++;
    if (esdm__monitor_open_trace(m, &err) != ESDM_OK) {
        (void) json_object_set_new(what, "trace", json_null());
        (void) json_object_set_new(what, "ended", json_string(err.message));
        keep(m, what, 0, 0);
        json_decref(what);
        return;
    }
    r->detail = (detail){.rule = number,
                         .what = what,
                         .begin_ns = esdm__monitor_now_ns(),
                         .spans = atomic_load(&m->written),
                         .bytes = trace_bytes(m)};
    (void) json_object_set_new(what, "for_s", json_integer((json_int_t) rule->for_s));
    (void) json_object_set_new(
        what, "trace", m->trace_database != NULL ? json_null() : json_string(m->sink->path));
    tell_trace(m, what, true);
    if (!traced && (rule->then & ESDM__MONITOR_TRACE) != 0) {
        atomic_store_explicit(&m->tracing, true, memory_order_release);
        r->detail.before = put_recent(m);
        r->detail.bytes = trace_bytes(m) + m->sink->used; /* these do not count */
    }
    if ((rule->then & ESDM__MONITOR_NODE) != 0 && !m->samples) {
        esdm__node_read(&m->last);
        m->samples = true;
    }
}

static void
end(esdm__monitor *m, const char *why)
{
    detail *d = &m->reasoner->detail;
    if (d->rule == NO_RULE)
        return;
    json_t *what = d->what;
    if ((m->options.modules & ESDM__MONITOR_TRACE) == 0)
        atomic_store_explicit(&m->tracing, false, memory_order_release);
    m->samples = (m->options.modules & ESDM__MONITOR_NODE) != 0;
    if (m->ring != NULL)
        esdm__monitor_drain(m);
    uint64_t spans = atomic_load(&m->written) - d->spans;
    (void) json_object_set_new(what, "spans", json_integer((json_int_t) spans));
    (void) json_object_set_new(what, "before", json_integer((json_int_t) d->before));
    (void) json_object_set_new(what, "lasted_s",
                               json_real((double) (esdm__monitor_now_ns() - d->begin_ns) / 1e9));
    (void) json_object_set_new(what, "ended", json_string(why));
    tell_trace(m, what, false);
    (void) esdm__sink_flush(m->sink, &m->give_up);
    keep(m, what, spans, trace_bytes(m) - d->bytes);
    json_decref(what);
    *d = (detail){.rule = NO_RULE};
}

void
esdm__reasoner_end(esdm__monitor *m)
{
    if (m->reasoner != NULL)
        end(m, "the program ended");
}

/* ---- why -------------------------------------------------------------------------------------
 */

static const char *
words_of(esdm__span_kind kind)
{
    switch (kind) {
    case ESDM__SPAN_FETCH:
        return "requests that read from target ";
    case ESDM__SPAN_APPEND:
        return "requests that write to target ";
    case ESDM__SPAN_CATALOG:
        return "transactions of the catalogue";
    default:
        return "waiting until data are stored, on target ";
    }
}

/* "8.1 ms" */
static void
seconds_text(double seconds, char *ret, size_t room)
{
    double scale = seconds < 1e-3 ? 1e6 : seconds < 1 ? 1e3 : 1;
    const char *unit = seconds < 1e-3 ? "us" : seconds < 1 ? "ms" : "s";
    (void) snprintf(ret, room, "%.3g %s", seconds * scale, unit);
}

/* @param last_run else requests of this run. NULL: no memory. */
static json_t *
describe(const esdm__window *w, const esdm__expected *e, const char *because, double times,
         bool last_run)
{
    char at[32];
    struct timespec now;
    (void) clock_gettime(CLOCK_REALTIME, &now);
    uint64_t at_ns = (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
    time_text(at_ns, at, sizeof at);
    json_t *what = json_pack("{s:I,s:s,s:s,s:f,s:b}", "at_ns", (json_int_t) at_ns, "at", at,
                             "because", because, "times", times, "last_run", (int) last_run);
    if (what == NULL || w == NULL)
        return what;
    (void) json_object_update_new(
        what, json_pack("{s:s,s:s?,s:f,s:f,s:s}", "of", esdm__span_name(w->kind), "target",
                        w->target, "seconds", w->seconds / w->count, "usual_s",
                        e->seconds / w->count, "by", e->by_runs ? "earlier runs" : "model"));
    return what;
}

static json_t *
describe_requests(const esdm__window *w, const esdm__expected *e)
{
    char took[24], usual[24], because[512];
    double times = w->seconds / e->seconds;
    seconds_text(w->seconds / w->count, took, sizeof took);
    seconds_text(e->seconds / w->count, usual, sizeof usual);
    (void) snprintf(because, sizeof because, "%s%.200s took %s each, %.1f times as long as %s (%s)",
                    words_of(w->kind), w->target != NULL ? w->target : "", took, times,
                    e->by_runs ? "in earlier runs of this program" : "the site's model says",
                    usual);
    return describe(w, e, because, times, false);
}

static json_t *
describe_run(double times)
{
    char because[160];
    (void) snprintf(because, sizeof because,
                    "the last run of this program was %.1f times as slow as those before", times);
    return describe(NULL, NULL, because, times, true);
}

/* ---- looking ---------------------------------------------------------------------------------
 */

static bool
names_target(const esdm__monitor_rule *rule, const char *target)
{
    if (rule->targets == NULL)
        return true;
    size_t bytes = target != NULL ? strlen(target) : 0;
    for (const char *at = rule->targets; bytes > 0 && *at != '\0'; at = strchr(at, '\n') + 1) {
        if (strncmp(at, target, bytes) == 0 && at[bytes] == '\n')
            return true;
    }
    return false;
}

/* What was counted until now of one kind of requests to a target. False: nothing. */
static bool
count(esdm__monitor *m, watched *w, unsigned target, size_t kind, uint64_t now_ns)
{
    const esdm__total *t = &m->objects.totals[target][kind];
    w->now.count = atomic_load_explicit(&t->count, memory_order_relaxed);
    w->now.bytes = atomic_load_explicit(&t->bytes, memory_order_relaxed);
    w->now.ns = atomic_load_explicit(&t->ns, memory_order_relaxed);
    if (w->now.count > 0 && w->begin_ns == 0) {
        w->target = m->objects.targets[target];
        w->kind = esdm__request_kinds[kind];
        w->begin_ns = now_ns;
    }
    return w->now.count > 0;
}

/* Requests of a target since its window began. False: too few. */
static bool
window_of(const watched *w, uint64_t now_ns, esdm__window *ret)
{
    uint64_t lasted_ns = now_ns - w->begin_ns;
    uint64_t requests = w->now.count - w->begin.count;
    if (requests == 0 || lasted_ns < WINDOW_NS || (requests < REQUESTS && lasted_ns < LONGEST_NS))
        return false;
    double seconds = (double) (w->now.ns - w->begin.ns) / 1e9;
    double at_once = seconds / ((double) lasted_ns / 1e9);
    *ret = (esdm__window){.target = w->target,
                          .kind = w->kind,
                          .count = (double) requests,
                          .bytes = (double) (w->now.bytes - w->begin.bytes),
                          .seconds = seconds,
                          .concurrency = at_once > 1 ? at_once : 1};
    return true;
}

/* The first rule that it is too slow for; NO_RULE: none. @param ret_usual whether it is nearer to
 *  what is usual than to that. */
static size_t
rule_for(esdm__monitor *m, const esdm__window *w, esdm__expected *ret_expected, bool *ret_usual)
{
    *ret_usual = false;
    for (size_t i = 0; i < m->options.nrules; i++) {
        const esdm__monitor_rule *rule = &m->options.rules[i];
        if (rule->of_run || rule->of_files || !names_target(rule, w->target))
            continue;
        (void) pthread_mutex_lock(&m->lock);
        esdm__expected e = esdm__usual_of(m->reasoner->usual, m->expect, w, rule->slower);
        (void) pthread_mutex_unlock(&m->lock);
        if (e.seconds > 0 && w->seconds > e.most_s && w->seconds - e.seconds >= LOST_S) {
            *ret_expected = e;
            return i;
        }
        *ret_usual |= e.seconds > 0 && w->seconds * w->seconds <= e.seconds * e.most_s;
    }
    return NO_RULE;
}

static void
look_at(esdm__monitor *m, watched *w, uint64_t now_ns)
{
    esdm__reasoner *r = m->reasoner;
    esdm__window window;
    esdm__expected expected = {0};
    bool usual;
    if (!window_of(w, now_ns, &window))
        return;
    size_t rule = rule_for(m, &window, &expected, &usual);
    w->begin = w->now;
    w->begin_ns = now_ns;
    w->usual = usual ? w->usual + 1 : 0;
    if (w->usual >= USUAL_AGAIN)
        w->told = false;
    if (rule == NO_RULE || w->told || r->detail.rule != NO_RULE ||
        r->used[rule] >= m->options.rules[rule].times)
        return;
    json_t *what = describe_requests(&window, &expected);
    w->told = true;
    if (what != NULL)
        begin(m, rule, what);
}

/* Whether this run is looked at because the last one was slow. */
static void
look_at_last_run(esdm__monitor *m)
{
    for (size_t i = 0; i < m->options.nrules && m->reasoner->detail.rule == NO_RULE; i++) {
        const esdm__monitor_rule *rule = &m->options.rules[i];
        unsigned traced = 0;
        double times = 0;
        if (!rule->of_run ||
            !esdm__usual_last_was_slow(m->reasoner->usual, rule->slower,
                                       (unsigned) (10 * rule->times), &times, &traced) ||
            traced >= rule->times)
            continue;
        json_t *what = describe_run(times);
        if (what != NULL)
            begin(m, i, what);
    }
}

void
esdm__reasoner_look(esdm__monitor *m)
{
    esdm__reasoner *r = m->reasoner;
    uint64_t now_ns = esdm__monitor_now_ns();
    uint64_t since_ns = now_ns - m->who.monotonic_ns;
    if (r == NULL || since_ns < FIRST_LOOK_NS)
        return;
    const detail *d = &r->detail;
    if (d->rule != NO_RULE) {
        const esdm__monitor_rule *rule = &m->options.rules[d->rule];
        if (now_ns - d->begin_ns >= rule->for_s * UINT64_C(1000000000))
            end(m, "its time was over");
        else if (trace_bytes(m) - d->bytes + m->sink->used >= rule->bytes)
            end(m, "the trace was large enough");
    }
    bool is_read = esdm__usual_is_read(r->usual);
    if (!is_read && since_ns < FIRST_LOOK_NS + READ_NS)
        return;
    if (is_read && !r->asked_run) {
        r->asked_run = true;
        look_at_last_run(m);
    }
    unsigned targets = atomic_load_explicit(&m->objects.ntargets, memory_order_acquire);
    for (unsigned t = 0; t < targets; t++) {
        for (size_t k = 0; k < ESDM__REQUEST_KINDS; k++) {
            if (count(m, &r->list[t][k], t, k, now_ns))
                look_at(m, &r->list[t][k], now_ns);
        }
    }
}
