/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What ESDM itself recorded ("monitor", $ESDM_MONITOR), out of a database or a trace: targets take
 * the place of files, containers and their variables that of NetCDF files. Counters are those of
 * the statistics, which are exact; where a process has left none, those of its spans.
 */
#include "esdm-explain/esdm-explain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "esdm/monitor.h"

#define SMALL_SIZES 4 /* of `sizes`: below 64 KiB */

/* How a kind of span is counted; what is not here is a part of one that is. */
static const struct {
    const char *span;
    watch_kind kind;
    bool of_target;
} kinds[] = {
    {"fetch", WATCH_KIND_READ, true},           {"append", WATCH_KIND_WRITE, true},
    {"netcdf-read", WATCH_KIND_NC_READ, false}, {"netcdf-write", WATCH_KIND_NC_WRITE, false},
    {"read", WATCH_KIND_NC_READ, false},        {"write", WATCH_KIND_NC_WRITE, false},
    {"open", WATCH_KIND_OPEN, false},           {"close", WATCH_KIND_OTHER, false},
    {"commit", WATCH_KIND_SYNC, false},
};

typedef struct reader {
    run *r;
    process *now;      /* whose lines are read; NULL: of one that is not wanted */
    bool adds;         /* to a run that was loaded from a folder */
    bool counted;      /* the process has statistics */
    guint first;       /* call of the process */
    guint64 ahead_ns;  /* of the time of day before the clock of its spans */
    GHashTable *names; /* of spans, owned */
    GHashTable *runs;  /* names of jobs, owned */
} reader;

static const char *
text_of(const json_t *line, const char *key)
{
    const char *text = json_string_value(json_object_get(line, key));
    return text != NULL ? text : "";
}

static guint64
number_of(const json_t *line, const char *key)
{
    json_int_t number = json_integer_value(json_object_get(line, key));
    return number > 0 ? (guint64) number : 0;
}

static gint
kind_of(const char *name)
{
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (g_str_equal(kinds[i].span, name))
            return (gint) i;
    }
    return -1;
}

/* Of transfers, those of the outermost layer are calls of the program. */
static bool
is_inner(const char *name)
{
    return g_str_equal(name, "read") || g_str_equal(name, "write");
}

/* ---- objects ----------------------------------------------------------------------------------
 */

static object *
object_of(const reader *d, gint kind, const json_t *line)
{
    watch_entry e = {.deflate = -1, .chunked = -1};
    bool variable = kinds[kind].kind >= WATCH_KIND_NC_READ;
    const char *container = text_of(line, "container");
    if (kinds[kind].of_target)
        (void) g_snprintf(e.name, sizeof e.name, "target %s", text_of(line, "target"));
    else if (variable)
        (void) g_snprintf(e.name, sizeof e.name, "esdm:%s\n%s", container,
                          text_of(line, "dataset"));
    else
        (void) g_snprintf(e.name, sizeof e.name, "esdm:%s", container);
    e.kind = variable ? WATCH_VARIABLE : WATCH_FILE;
    if (e.name[strlen(e.name) - 1] == '\n')
        e.name[strlen(e.name) - 1] = '\0';
    object *o = object_named(d->r, &e);
    o->target = kinds[kind].of_target;
    if (variable && o->variable == NULL)
        o->variable = g_strdup("(other variables)");
    return o;
}

static void
add(const reader *d, object *o, watch_kind kind, guint64 calls, guint64 bytes, guint64 ns,
    guint64 small)
{
    bool reads = kind == WATCH_KIND_READ || kind == WATCH_KIND_NC_READ;
    bool writes = kind == WATCH_KIND_WRITE || kind == WATCH_KIND_NC_WRITE;
    watch_counts *c = reads ? &o->entry.read : writes ? &o->entry.write : &o->entry.other;
    c->calls += calls;
    c->bytes += bytes;
    c->ns += ns;
    c->small += small;
    if (!d->r->engine) /* run_sum() counts these */
        return;
    if (kind == WATCH_KIND_OPEN)
        d->r->opens += calls;
    if (kind == WATCH_KIND_SYNC)
        d->r->commit_ns += ns;
    if (!o->target)
        d->now->calls_ns += ns;
}

/* ---- lines ------------------------------------------------------------------------------------
 */

/* The spans of a process that has left no statistics are what is known of it. */
static void
settle(reader *d)
{
    for (guint i = d->first; i < d->r->calls->len && d->now != NULL && !d->counted && !d->adds;
         i++) {
        const call *c = &g_array_index(d->r->calls, call, i);
        add(d, c->object, c->kind, 1, c->bytes, c->ns, c->bytes < 65536);
    }
    d->now = NULL;
    d->counted = false;
    d->first = d->r->calls->len;
}

/* The process of a folder that the line is of; NULL: there is none. A number may come again, but
 * not while a program runs, which begins before it opens a site. */
static process *
known(const reader *d, const json_t *line)
{
    guint64 begin = number_of(line, "realtime_ns");
    for (guint i = 0; i < d->r->processes->len; i++) {
        process *p = d->r->processes->pdata[i];
        guint64 end_ns = p->head.started_realtime_ns + (p->end_ns - p->head.started_ns);
        if ((guint64) p->head.pid == number_of(line, "pid") &&
            g_str_equal(p->head.host, text_of(line, "host")) &&
            begin + G_USEC_PER_SEC * 1000 > p->head.started_realtime_ns &&
            begin < end_ns + 2 * (guint64) G_USEC_PER_SEC * 1000)
            return p;
    }
    return NULL;
}

static void
add_process(reader *d, const json_t *line)
{
    settle(d);
    if (d->adds) {
        d->now = known(d, line);
        return;
    }
    process *p = g_new0(process, 1);
    const json_t *rank = json_object_get(line, "rank");
    p->objects = g_ptr_array_new();
    p->head.pid = (gint32) number_of(line, "pid");
    p->head.rank = json_is_integer(rank) ? (gint32) json_integer_value(rank) : -1;
    p->head.started_realtime_ns = number_of(line, "realtime_ns");
    p->head.started_ns = p->head.started_realtime_ns;
    p->end_ns = p->head.started_ns;
    d->r->so_far = d->r->so_far || json_is_true(json_object_get(line, "so_far"));
    (void) g_strlcpy(p->head.host, text_of(line, "host"), sizeof p->head.host);
    (void) g_strlcpy(p->head.program, text_of(line, "program"), sizeof p->head.program);
    /* Its arguments are not recorded; the end has two NUL. */
    (void) g_strlcpy(p->head.command, text_of(line, "program"), sizeof p->head.command - 1);
    guint64 monotonic_ns = number_of(line, "monotonic_ns");
    d->ahead_ns = p->head.started_ns > monotonic_ns ? p->head.started_ns - monotonic_ns : 0;
    d->now = p;
    g_ptr_array_add(d->r->processes, p);
    (void) g_hash_table_add(d->runs, g_strdup(text_of(line, "job")));
}

static const char *
name_kept(const reader *d, const char *name)
{
    char *kept = g_hash_table_lookup(d->names, name);
    if (kept == NULL) {
        kept = g_strdup(name);
        (void) g_hash_table_add(d->names, kept);
    }
    return kept;
}

static void
add_span(const reader *d, const json_t *line)
{
    const char *name = text_of(line, "kind");
    gint kind = kind_of(name);
    bool nested = number_of(line, "cause") != 0;
    if (kind < 0 || (is_inner(name) && nested))
        return;
    const call one = {
        .start_ns = number_of(line, "start_ns") + d->ahead_ns,
        .ns = number_of(line, "ns"),
        .bytes = number_of(line, "bytes"),
        .wanted = number_of(line, "bytes"),
        .position = WATCH_NOWHERE,
        .object = object_of(d, kind, line),
        .process = d->now,
        .name = name_kept(d, name),
        .thread = (guint32) number_of(line, "thread"),
        .kind = kinds[kind].kind,
        .failed = json_integer_value(json_object_get(line, "status")) != 0,
        .nested = nested,
    };
    g_array_append_val(d->r->calls, one);
    d->now->end_ns = MAX(d->now->end_ns, one.start_ns + one.ns);
    if (json_is_true(json_object_get(line, "before"))) /* they were over when the trace began */
        d->now->head.started_ns = MIN(d->now->head.started_ns, one.start_ns);
}

/* A call of plain files, which a part of a run has (look_trace.c). */
static void
add_call(const reader *d, const json_t *line)
{
    call one;
    d->r->engine = false;
    if (!call_of_line(d->r, line, d->ahead_ns, &one))
        return;
    g_array_append_val(d->r->calls, one);
    one.process->end_ns = MAX(one.process->end_ns, one.start_ns + one.ns);
}

/* Of processes there is what the trace has of them. */
static void
begin_with_calls(run *r)
{
    for (guint i = 0; i < r->processes->len; i++) {
        process *p = r->processes->pdata[i];
        p->head.started_ns = p->end_ns;
    }
    for (guint i = 0; i < r->calls->len; i++) {
        const call *c = &g_array_index(r->calls, call, i);
        c->process->head.started_ns = MIN(c->process->head.started_ns, c->start_ns);
    }
}

/* Whether the same was counted as calls of NetCDF. */
static bool
has_calls(const json_t *spans, const json_t *inner)
{
    g_autofree char *name = g_strconcat("netcdf-", text_of(inner, "kind"), NULL);
    size_t i;
    const json_t *s;
    json_array_foreach(spans, i, s)
    {
        if (g_str_equal(text_of(s, "kind"), name) &&
            g_str_equal(text_of(s, "container"), text_of(inner, "container")) &&
            g_str_equal(text_of(s, "dataset"), text_of(inner, "dataset")))
            return true;
    }
    return false;
}

static void
add_counters(reader *d, const json_t *line)
{
    const json_t *spans = json_object_get(line, "spans");
    size_t i;
    const json_t *s;
    run_add_statistics(d->r, line);
    if (d->adds)
        return;
    d->counted = true;
    json_array_foreach(spans, i, s)
    {
        gint kind = kind_of(text_of(s, "kind"));
        guint64 small = 0;
        if (kind < 0 || (is_inner(kinds[kind].span) && has_calls(spans, s)))
            continue;
        for (size_t k = 0; k < SMALL_SIZES; k++)
            small += (guint64) json_integer_value(json_array_get(json_object_get(s, "sizes"), k));
        double ns = json_number_value(json_object_get(s, "seconds")) * 1e9;
        add(d, object_of(d, kind, s), kinds[kind].kind, number_of(s, "count"),
            number_of(s, "bytes"), ns > 0 ? (guint64) ns : 0, small);
    }
    double seconds = json_number_value(json_object_get(line, "seconds"));
    guint64 end_ns = d->now->head.started_ns + (guint64) (CLAMP(seconds, 0, 1e9) * 1e9);
    d->now->end_ns = MAX(d->now->end_ns, end_ns);
}

/* Detailed monitoring that began by itself: the trace is of that time alone. */
static void
add_unusual(reader *d, const json_t *line)
{
    guint64 now_ns = number_of(line, "now_ns") + d->ahead_ns;
    process *p = d->now;
    if (json_is_true(json_object_get(line, "begins"))) {
        action *a = action_of(line, "detailed monitoring");
        g_ptr_array_add(d->r->actions, a);
        if (d->r->calls->len == d->first) {
            d->r->partial = true;
            p->head.started_ns = now_ns;
            p->end_ns = MAX(p->end_ns, now_ns);
        }
        return;
    }
    action *last = d->r->actions->len > 0 ? d->r->actions->pdata[d->r->actions->len - 1] : NULL;
    if (last == NULL || !action_is_detail(last) || last->ended != NULL)
        return;
    last->ended = g_strdup(text_of(line, "ended"));
    last->requests = number_of(line, "spans");
    last->before = number_of(line, "before");
    last->lasted_s = json_number_value(json_object_get(line, "lasted_s"));
    g_free(last->trace); /* that is what is read */
    last->trace = NULL;
    p->end_ns = MAX(p->end_ns, now_ns);
}

static bool
add_line(void *context, const char *text)
{
    reader *d = context;
    json_t *line = tool_json_read(text, -1, 0, NULL);
    const char *what = text_of(line, "what");
    if (g_str_equal(what, "process"))
        add_process(d, line);
    else if (d->now != NULL && g_str_equal(what, "statistics"))
        add_counters(d, line);
    else if (d->now != NULL && !d->adds && g_str_equal(what, "span"))
        add_span(d, line);
    else if (d->now != NULL && !d->adds && g_str_equal(what, "call"))
        add_call(d, line);
    else if (d->now != NULL && !d->adds && g_str_equal(what, "file"))
        file_of_line(d->r, line);
    else if (d->now != NULL && !d->adds && g_str_equal(what, "unusual"))
        add_unusual(d, line);
    else if (d->now != NULL && !d->adds && g_str_equal(what, "end"))
        d->now->head.dropped = number_of(line, "dropped");
    json_decref(line);
    return true;
}

/* Lines that a killed program, or a full disk, has cut are left out. */
static bool
read_file(const char *file, reader *d)
{
    FILE *in = fopen(file, "re");
    char *line = NULL;
    size_t room = 0;
    bool any = false;
    while (in != NULL && getline(&line, &room, in) > 0) {
        any = any || strstr(line, "\"what\":\"process\"") != NULL;
        (void) add_line(d, line);
    }
    free(line);
    bool good = in != NULL && ferror(in) == 0;
    int why = errno;
    if (in != NULL)
        (void) fclose(in);
    errno = why;
    if (!good)
        tool_error("%s: %s", file, g_strerror(errno));
    else if (!any)
        tool_error("%s is no trace of \"monitor\": it has no line of a process", file);
    return good && any;
}

static esdm_status
read_lines(const char *source, run *r, bool adds, guint *ret_runs, esdm_error *err)
{
    reader d = {.r = r,
                .adds = adds,
                .names = g_hash_table_new(g_str_hash, g_str_equal), /* lives on in calls */
                .runs = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL)};
    bool database = esdm_records_are_in_database(source);
    esdm_status status = database                ? esdm_records_read(source, add_line, &d, err)
                         : read_file(source, &d) ? ESDM_OK
                                                 : ESDM_ENOENT;
    settle(&d);
    *ret_runs = g_hash_table_size(d.runs);
    g_hash_table_destroy(d.runs);
    g_hash_table_destroy(d.names);
    return status;
}

tool_exit
spans_load(const char *source, run *ret_run)
{
    esdm_error err = {0};
    guint runs = 0;
    run_new(ret_run);
    ret_run->engine = true;
    esdm_status status = read_lines(source, ret_run, false, &runs, &err);
    if (status != ESDM_OK && !esdm_records_are_in_database(source))
        return TOOL_NOT_FOUND;
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    if (!ret_run->engine)
        begin_with_calls(ret_run);
    g_array_sort(ret_run->calls, call_by_start);
    if (runs > 1)
        tool_error("these are %u runs as one; DATABASE#RUN takes one by its name (column job of "
                   "esdm_process), DATABASE#latest the last one",
                   runs);
    return TOOL_OK;
}

tool_exit
spans_add(const char *source, run *r)
{
    esdm_error err = {0};
    guint runs = 0;
    esdm_status status = read_lines(source, r, true, &runs, &err);
    return status == ESDM_OK ? TOOL_OK : tool_fail(status, &err);
}

void
spans_sum(run *r)
{
    guint64 reads = 0;
    guint64 writes = 0;
    for (guint i = 0; i < r->objects->len; i++) {
        const object *o = r->objects->pdata[i];
        reads += o->kind == WATCH_VARIABLE ? o->entry.read.ns : 0;
        writes += o->kind == WATCH_VARIABLE ? o->entry.write.ns : 0;
    }
    /* Requests of other threads may take longer than the calls they are for. */
    r->library_read_ns = reads - MIN(reads, r->read_ns);
    r->library_ns = r->library_read_ns + writes - MIN(writes, r->write_ns);
    r->sync_ns = r->commit_ns;
    r->meta_ns -= MIN(r->meta_ns, r->commit_ns);
}
