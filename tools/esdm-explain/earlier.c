/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* This run beside earlier ones of the same program, by all users of the site; and what the site's
 * programs do. */
#include "esdm-explain/esdm-explain.h"

#include "esdm/monitor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define DAY_NS       (INT64_C(86400) * 1000000000)
#define ROWS_MOST    20u
#define UNUSUAL_MOST 8u    /* as sessions keep of a run */
#define NOTE_S       2.0   /* a server that hangs holds nobody up for longer */
#define LEAST_S      0.001 /* less says nothing of a speed */

/* ---- which program ---------------------------------------------------------------------------
 */

char *
program_name(const watch_head *head)
{
    static const char *const names[] = {"python", "julia",   "Rscript", "perl", "ncl",
                                        "octave", "ipython", "idl",     "gdl",  NULL};
    const char *command = head->command, *end = command + sizeof head->command;
    g_autofree char *name = g_path_get_basename(head->program);
    bool interprets = false;
    for (const char *const *one = names; *one != NULL; one++)
        interprets = interprets || g_str_has_prefix(name, *one);
    char *said = NULL;
    for (const char *at = command + strlen(command) + 1; interprets && at < end && *at != '\0';
         at += strlen(at) + 1) {
        if (g_str_equal(at, "-c") || g_str_equal(at, "-e"))
            break;
        if (*at == '-')
            continue;
        g_autofree char *script = g_path_get_basename(at);
        said = g_strdup_printf("%s %s", name, script);
        break;
    }
    g_autofree char *text = said != NULL ? said : g_strdup(name);
    char printable[200];
    (void) esdm_text_printable(text, printable, sizeof printable);
    return g_strdup(printable);
}

/* The one that was longest in calls: scripts around it wait. */
static const process *
main_process(const run *r)
{
    const process *found = NULL;
    for (guint i = 0; i < r->processes->len; i++) {
        const process *p = r->processes->pdata[i];
        if (found == NULL || p->calls_ns > found->calls_ns)
            found = p;
    }
    return found;
}

/* ---- this run --------------------------------------------------------------------------------
 */

static double
seconds_of_run(const run *r)
{
    return MAX(seconds_of(r->end_ns - r->start_ns), 1e-9);
}

static json_t *
span_json(const run *r, const char *kind, guint64 count, guint64 bytes, guint64 ns)
{
    json_t *span = json_pack("{s:s,s:n,s:n,s:n,s:I,s:I,s:f}", "kind", kind, "container", "dataset",
                             "target", "count", (json_int_t) count, "bytes", (json_int_t) bytes,
                             "seconds", seconds_of(ns));
    json_t *worst = json_object_get(json_object_get(r->looked, LOOK_WORST), kind);
    if (json_is_number(worst))
        (void) json_object_set(span, LOOK_WORST, worst);
    return span;
}

/* What look.c found unusual. */
static void
add_unusual(const run *r, json_t *line)
{
    const json_t *actions = json_object_get(r->looked, "actions");
    json_t *list = json_array();
    size_t i;
    json_t *one;
    json_array_foreach(actions, i, one)
    {
        json_t *what = i < UNUSUAL_MOST ? json_deep_copy(one) : NULL;
        (void) json_object_del(what, "action");
        (void) json_object_del(what, "requests");
        if (what != NULL)
            tool_json_append(list, what);
    }
    if (json_array_size(list) > 0)
        (void) json_object_set(line, "unusual", list);
    json_decref(list);
}

typedef struct parcel {
    char *program; /* owned, so the next one */
    char *line;
    esdm_status status;
    esdm_error err;
} parcel;

static void
deliver(void *data)
{
    parcel *p = data;
    p->status = esdm_runs_add(tool.config, p->program, p->line, &p->err);
}

static void
free_parcel(void *data)
{
    parcel *p = data;
    g_free(p->program);
    free(p->line);
    g_free(p);
}

/* Calls of processes whose files are no longer there count, too. */
static watch_counts
moved_by_removed(const run *r, const char *key)
{
    const json_t *sum = json_object_get(r->looked, key);
    return (watch_counts){
        .calls = (guint64) json_integer_value(json_object_get(sum, "calls")),
        .bytes = (guint64) json_integer_value(json_object_get(sum, "bytes")),
        .ns = (guint64) json_integer_value(json_object_get(sum, "ns")),
    };
}

static double
seconds_with_removed(const run *r, const process *p, gint64 *ret_began_ns)
{
    gint64 own = (gint64) p->head.started_realtime_ns;
    gint64 began = json_integer_value(json_object_get(r->looked, LOOK_BEGAN));
    gint64 first = own + (gint64) r->start_ns - (gint64) p->head.started_ns;
    *ret_began_ns = began > 0 ? MIN(own, began) : own;
    return seconds_of_run(r) +
           (began > 0 && began < first ? seconds_of((guint64) (first - began)) : 0);
}

/* Requests of ESDM come from its sessions; of plain files only esdm-run knows. Nothing fails for
 * it. */
void
earlier_note(const run *r)
{
    const process *p = main_process(r);
    watch_counts read = moved_by_removed(r, LOOK_READ), written = moved_by_removed(r, LOOK_WRITTEN);
    gint64 began_ns = 0;
    read.calls += r->read_calls;
    read.bytes += r->read_bytes;
    read.ns += r->read_ns;
    written.calls += r->write_calls;
    written.bytes += r->write_bytes;
    written.ns += r->write_ns;
    if (p == NULL || r->engine || read.bytes + written.bytes == 0 || tool_runs_are_silent())
        return;
    double seconds = seconds_with_removed(r, p, &began_ns);
    char *program = program_name(&p->head);
    g_autofree char *host = g_utf8_make_valid(p->head.host, -1);
    json_t *spans = json_array();
    bool plain = r->spans->len == 0; /* ESDM's sessions keep what they moved themselves */
    if (plain && read.calls > 0)
        tool_json_append(spans, span_json(r, KIND_READ, read.calls, read.bytes, read.ns));
    if (plain && written.calls > 0)
        tool_json_append(spans, span_json(r, KIND_WRITE, written.calls, written.bytes, written.ns));
    json_t *line = json_pack("{s:s,s:i,s:s,s:s,s:s,s:i,s:i,s:I,s:f,s:o}", "what", "statistics",
                             "version", 1, "program", program, "by", "esdm-run", "host", host,
                             "pid", (int) p->head.pid, "ranks", (int) r->ranks, "started_ns",
                             (json_int_t) began_ns, "seconds", seconds, "spans", spans);
    add_unusual(r, line);
    parcel *sent = g_new0(parcel, 1);
    sent->program = program;
    sent->line = json_dumps(line, JSON_COMPACT | JSON_ENSURE_ASCII);
    json_decref(line);
    if (sent->line != NULL && !tool_in_time(deliver, sent, free_parcel, NOTE_S, NULL)) {
        tool_error("this run is not kept for the site: the folder of its runs does not answer");
        return;
    }
    /* Most users have a site that keeps none, or none at all. */
    if (sent->line != NULL && sent->status != ESDM_OK && sent->status != ESDM_ENOENT)
        tool_error("this run is not kept for the site: %s", sent->err.message);
    free_parcel(sent);
}

/* ---- compared --------------------------------------------------------------------------------
 */

/* A speed, or the seconds of the whole run. */
typedef struct compared {
    char *what; /* "requests that read from disk"; NULL: the whole run */
    double now;
    tool_usual usual;
    bool unusual;
} compared;

typedef struct comparison {
    char *program;
    GPtrArray *runs; /* earlier ones */
    GArray *rows;    /* compared */
} comparison;

static tool_moved
moved_now(const run *r, const char *kind, const char *target)
{
    tool_moved sum = {0};
    if (g_str_equal(kind, KIND_READ))
        return (tool_moved){.bytes = (double) r->read_bytes, .seconds = seconds_of(r->read_ns)};
    if (g_str_equal(kind, KIND_WRITE))
        return (tool_moved){.bytes = (double) r->write_bytes, .seconds = seconds_of(r->write_ns)};
    for (guint i = 0; i < r->spans->len; i++) {
        const span_total *s = r->spans->pdata[i];
        if (g_str_equal(s->kind, kind) && g_strcmp0(s->target, target) == 0) {
            sum.bytes += (double) s->bytes;
            sum.seconds += s->seconds;
        }
    }
    return sum;
}

static void
compare_speed(comparison *c, const run *r, const char *kind, const char *target, const char *what)
{
    tool_moved now = moved_now(r, kind, target);
    g_autoptr(GArray) values = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < c->runs->len; i++) {
        tool_moved then = tool_run_moved(c->runs->pdata[i], kind, target);
        double speed = then.bytes / MAX(then.seconds, 1e-9);
        if (then.seconds >= LEAST_S)
            g_array_append_val(values, speed);
    }
    if (now.seconds < LEAST_S || values->len == 0)
        return;
    compared row = {
        .what = g_strdup(what), .now = now.bytes / now.seconds, .usual = tool_usual_of(values)};
    row.unusual = tool_is_unusual(&row.usual, row.now);
    g_array_append_val(c->rows, row);
}

static void
compare_seconds(comparison *c, const run *r)
{
    g_autoptr(GArray) values = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < c->runs->len; i++) {
        const tool_run *one = c->runs->pdata[i];
        /* A session is not the whole of a program. */
        bool whole = json_is_string(json_object_get(one->line, "by"));
        if (whole != r->engine)
            g_array_append_val(values, one->seconds);
    }
    if (values->len == 0)
        return;
    compared row = {.now = seconds_of_run(r), .usual = tool_usual_of(values)};
    row.unusual = tool_is_unusual(&row.usual, row.now);
    g_array_append_val(c->rows, row);
}

static bool
is_request(const span_total *s)
{
    return s->target != NULL && (g_str_equal(s->kind, "fetch") || g_str_equal(s->kind, "append"));
}

static void
compare_targets(comparison *c, const run *r)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < r->spans->len; i++) {
        const span_total *s = r->spans->pdata[i];
        if (!is_request(s) || !g_hash_table_add(seen, g_strdup_printf("%s %s", s->kind, s->target)))
            continue;
        g_autofree char *what =
            g_strdup_printf("%s %s",
                            g_str_equal(s->kind, "fetch") ? "requests that read from target"
                                                          : "requests that write to target",
                            s->target);
        compare_speed(c, r, s->kind, s->target, what);
    }
}

/* Those that began before. NULL: the site keeps no runs, or there was none. What is found is kept
 * until the end of the process. */
static comparison *
compare(const run *r)
{
    static comparison *c;
    const process *p = main_process(r);
    if (p == NULL)
        return NULL;
    if (c != NULL)
        return c->runs != NULL && c->runs->len > 0 ? c : NULL;
    c = g_new0(comparison, 1);
    c->program = program_name(&p->head);
    c->runs = tool_runs(c->program, NULL);
    c->rows = g_array_new(FALSE, TRUE, sizeof(compared));
    gint64 first = INT64_MAX;
    for (guint i = 0; i < r->processes->len; i++) {
        const process *one = r->processes->pdata[i];
        first = MIN(first, (gint64) one->head.started_realtime_ns);
    }
    for (guint i = c->runs != NULL ? c->runs->len : 0; i-- > 0;) {
        if (((const tool_run *) c->runs->pdata[i])->started_ns >= first)
            g_ptr_array_remove_index(c->runs, i);
    }
    if (c->runs == NULL || c->runs->len == 0)
        return NULL;
    if (!r->partial)
        compare_seconds(c, r);
    compare_speed(c, r, KIND_READ, NULL, "calls that read files");
    compare_speed(c, r, KIND_WRITE, NULL, "calls that write files");
    compare_targets(c, r);
    return c;
}

/* "3.4 times as long"; a speed: "as slow". */
static char *
factor_text(const compared *row)
{
    bool speed = row->what != NULL;
    double more = row->now / row->usual.middle;
    if (more >= 1)
        return g_strdup_printf("%.1f times as %s", more, speed ? "fast" : "long");
    return g_strdup_printf("%.1f times as %s", 1 / more, speed ? "slow" : "fast");
}

static void
print_compared(const compared *row)
{
    bool speed = row->what != NULL;
    char *(*text)(double) = speed ? bytes_text : time_text;
    const char *unit = speed ? "/s" : "";
    g_autofree char *now = text(row->now);
    g_autofree char *usual = text(row->usual.middle);
    g_autofree char *low = text(row->usual.low);
    g_autofree char *high = text(row->usual.high);
    g_autofree char *factor = factor_text(row);
    g_autofree char *what = speed ? tool_printable(row->what) : g_strdup("the whole run");
    (void) printf("  %s: %s%s, usually %s%s (half of %u runs: %s to %s%s)%s%s%s\n", what, now, unit,
                  usual, unit, row->usual.count, low, high, unit, row->unusual ? ". UNUSUAL: " : "",
                  row->unusual ? factor : "", row->unusual ? " as usual." : ".");
}

void
print_earlier(const run *r)
{
    comparison *c = compare(r);
    if (c == NULL || c->rows->len == 0)
        return;
    g_autofree char *program = tool_printable(c->program);
    guint users = tool_run_users(c->runs);
    (void) printf("\nCompared with the %u earlier run%s of %s, by %u user%s\n", c->runs->len,
                  c->runs->len == 1 ? "" : "s", program, users, users == 1 ? "" : "s");
    for (guint i = 0; i < c->rows->len; i++)
        print_compared(&g_array_index(c->rows, compared, i));
}

json_t *
earlier_json(const run *r)
{
    const comparison *c = compare(r);
    if (c == NULL)
        return NULL;
    json_t *rows = json_array();
    for (guint i = 0; i < c->rows->len; i++) {
        const compared *row = &g_array_index(c->rows, compared, i);
        tool_json_append(rows, json_pack("{s:s,s:s,s:f,s:f,s:f,s:f,s:i,s:b}", "what",
                                         row->what != NULL ? row->what : "the whole run", "unit",
                                         row->what != NULL ? "B/s" : "s", "now", row->now, "usual",
                                         row->usual.middle, "low", row->usual.low, "high",
                                         row->usual.high, "runs", (int) row->usual.count, "unusual",
                                         (int) row->unusual));
    }
    return json_pack("{s:s,s:i,s:i,s:o}", "program", c->program, "runs", (int) c->runs->len,
                     "users", (int) tool_run_users(c->runs), "compared", rows);
}

/* ---- the site --------------------------------------------------------------------------------
 */

typedef struct row {
    const char *name;              /* borrowed */
    GPtrArray *runs;               /* tool_run, borrowed */
    double read, written, seconds; /* in requests and calls of files */
} row;

static const char *const read_kinds[] = {"fetch", KIND_READ};
static const char *const write_kinds[] = {"append", KIND_WRITE};

static gint
by_seconds(gconstpointer a, gconstpointer b)
{
    const row *x = *(const row *const *) a, *y = *(const row *const *) b;
    return x->seconds < y->seconds ? 1 : x->seconds > y->seconds ? -1 : 0;
}

static void
free_row(gpointer data)
{
    row *one = data;
    g_ptr_array_unref(one->runs);
    g_free(one);
}

static GPtrArray *
rows_of(const GPtrArray *runs)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(free_row);
    g_autoptr(GHashTable) by_name = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < runs->len; i++) {
        const tool_run *one = runs->pdata[i];
        row *to = g_hash_table_lookup(by_name, one->program);
        if (to == NULL) {
            to = g_new0(row, 1);
            to->name = one->program;
            to->runs = g_ptr_array_new();
            g_hash_table_insert(by_name, (gpointer) to->name, to);
            g_ptr_array_add(list, to);
        }
        g_ptr_array_add(to->runs, (gpointer) one);
        for (gsize k = 0; k < G_N_ELEMENTS(read_kinds); k++) {
            tool_moved in = tool_run_moved(one, read_kinds[k], NULL);
            tool_moved out = tool_run_moved(one, write_kinds[k], NULL);
            to->read += in.bytes;
            to->written += out.bytes;
            to->seconds += in.seconds + out.seconds;
        }
    }
    g_ptr_array_sort(list, by_seconds);
    return list;
}

/* Speeds of requests to a target in the last day, beside those before. */
typedef struct target_row {
    char *target;
    const char *kind;
    tool_usual before, now;
    bool unusual;
} target_row;

static target_row *
target_row_of(const GPtrArray *runs, const char *kind, const char *target)
{
    g_autoptr(GArray) before = g_array_new(FALSE, FALSE, sizeof(double));
    g_autoptr(GArray) now = g_array_new(FALSE, FALSE, sizeof(double));
    gint64 day = g_get_real_time() * 1000 - DAY_NS;
    for (guint i = 0; i < runs->len; i++) {
        const tool_run *one = runs->pdata[i];
        tool_moved moved = tool_run_moved(one, kind, target);
        double speed = moved.bytes / MAX(moved.seconds, 1e-9);
        if (moved.seconds >= LEAST_S)
            g_array_append_val(one->started_ns >= day ? now : before, speed);
    }
    if (before->len + now->len == 0)
        return NULL;
    target_row *t = g_new0(target_row, 1);
    *t = (target_row){.target = g_strdup(target),
                      .kind = kind,
                      .before = tool_usual_of(before),
                      .now = tool_usual_of(now)};
    t->unusual = now->len > 0 && tool_is_unusual(&t->before, t->now.middle);
    return t;
}

static void
free_target_row(gpointer data)
{
    target_row *one = data;
    g_free(one->target);
    g_free(one);
}

static GPtrArray *
targets_of(const GPtrArray *runs)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(free_target_row);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < runs->len; i++) {
        size_t k;
        const json_t *s;
        json_array_foreach(json_object_get(((const tool_run *) runs->pdata[i])->line, "spans"), k,
                           s)
        {
            const char *target = json_string_value(json_object_get(s, "target"));
            if (target == NULL || list->len > 2 * ROWS_MOST ||
                !g_hash_table_add(seen, (gpointer) target))
                continue;
            target_row *in = target_row_of(runs, "fetch", target);
            target_row *out = target_row_of(runs, "append", target);
            if (in != NULL)
                g_ptr_array_add(list, in);
            if (out != NULL)
                g_ptr_array_add(list, out);
        }
    }
    return list;
}

static void
print_targets(const GPtrArray *list)
{
    if (list->len > 0)
        (void) printf("\n%-24s %7s %14s %14s\n", "target", "", "last 24 hours", "before");
    for (guint i = 0; i < list->len; i++) {
        const target_row *t = list->pdata[i];
        bool reads = g_str_equal(t->kind, "fetch");
        g_autofree char *name = tool_printable(t->target);
        g_autofree char *now = t->now.count > 0 ? bytes_text(t->now.middle) : g_strdup("-");
        g_autofree char *before =
            t->before.count > 0 ? bytes_text(t->before.middle) : g_strdup("-");
        (void) printf("%-24s %7s %12s%s %12s%s%s\n", name, reads ? "reads" : "writes", now,
                      t->now.count > 0 ? "/s" : "  ", before, t->before.count > 0 ? "/s" : "  ",
                      t->unusual ? "  UNUSUAL" : "");
    }
}

static void
print_site(const GPtrArray *runs, const GPtrArray *rows, const GPtrArray *targets)
{
    guint users = tool_run_users(runs);
    g_autofree char *since = tool_time((uint64_t) ((const tool_run *) runs->pdata[0])->started_ns);
    (void) printf("%u run%s of %u program%s by %u user%s since %s\n\n", runs->len,
                  runs->len == 1 ? "" : "s", rows->len, rows->len == 1 ? "" : "s", users,
                  users == 1 ? "" : "s", since);
    (void) printf("%-32s %6s %6s %10s %10s %12s\n", "program", "runs", "users", "read", "written",
                  "storage took");
    for (guint i = 0; i < rows->len && i < ROWS_MOST; i++) {
        const row *p = rows->pdata[i];
        g_autofree char *name = tool_printable(p->name);
        g_autofree char *read = bytes_text(p->read);
        g_autofree char *written = bytes_text(p->written);
        g_autofree char *took = time_text(p->seconds);
        (void) printf("%-32s %6u %6u %10s %10s %12s\n", name, p->runs->len, tool_run_users(p->runs),
                      read, written, took);
    }
    if (rows->len > ROWS_MOST)
        (void) printf("and %u more (--json)\n", rows->len - ROWS_MOST);
    print_targets(targets);
    print_site_unusual(runs);
}

static json_t *
usual_json(const tool_usual *u)
{
    return u->count == 0 ? json_null()
                         : json_pack("{s:i,s:f,s:f,s:f}", "runs", (int) u->count, "usual",
                                     u->middle, "low", u->low, "high", u->high);
}

static void
print_site_json(const GPtrArray *runs, const GPtrArray *rows, const GPtrArray *targets)
{
    json_t *programs = json_array(), *speeds = json_array();
    for (guint i = 0; i < rows->len; i++) {
        const row *p = rows->pdata[i];
        tool_json_append(programs,
                         json_pack("{s:o,s:i,s:i,s:f,s:f,s:f}", "program", tool_json_text(p->name),
                                   "runs", (int) p->runs->len, "users",
                                   (int) tool_run_users(p->runs), "read_bytes", p->read,
                                   "written_bytes", p->written, "storage_s", p->seconds));
    }
    for (guint i = 0; i < targets->len; i++) {
        const target_row *t = targets->pdata[i];
        tool_json_append(speeds,
                         json_pack("{s:o,s:s,s:o,s:o,s:b}", "target", tool_json_text(t->target),
                                   "requests", t->kind, "last_day", usual_json(&t->now), "before",
                                   usual_json(&t->before), "unusual", (int) t->unusual));
    }
    tool_json_print(json_pack("{s:i,s:i,s:o,s:o,s:o}", "runs", (int) runs->len, "users",
                              (int) tool_run_users(runs), "programs", programs, "targets", speeds,
                              "unusual", site_unusual_json(runs)));
}

tool_exit
earlier_site(void)
{
    tool_exit result = TOOL_OK;
    g_autoptr(GPtrArray) runs = tool_runs(NULL, &result);
    if (runs == NULL)
        return result;
    if (runs->len == 0) {
        tool_error("the site has no records of runs yet, or none that you may read");
        return TOOL_NOT_FOUND;
    }
    g_autoptr(GPtrArray) rows = rows_of(runs);
    g_autoptr(GPtrArray) targets = targets_of(runs);
    if (tool.json)
        print_site_json(runs, rows, targets);
    else
        print_site(runs, rows, targets);
    return TOOL_OK;
}
