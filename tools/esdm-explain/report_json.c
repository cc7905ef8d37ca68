/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The report as JSON; report.c has it for people. */
#include "esdm-explain/esdm-explain.h"

static json_t *
counts_json(const watch_counts *c)
{
    return json_pack("{s:I,s:I,s:f,s:I}", "calls", (json_int_t) c->calls, "bytes",
                     (json_int_t) c->bytes, "seconds", seconds_of(c->ns), "below_64_KiB",
                     (json_int_t) c->small);
}

static json_t *
pattern_json(const pattern *p)
{
    char *text = pattern_text(p);
    json_t *json = json_pack("{s:s,s:I,s:I,s:I,s:I}", "is", text, "calls", (json_int_t) p->calls,
                             "following", (json_int_t) p->following, "strided",
                             (json_int_t) p->strided, "stride_bytes", (json_int_t) p->stride);
    g_free(text);
    return json;
}

static json_t *
object_json(const object *o)
{
    const watch_entry *e = &o->entry;
    char *name = g_utf8_make_valid(o->name, -1);
    char *variable = o->variable != NULL ? g_utf8_make_valid(o->variable, -1) : NULL;
    json_t *json = json_pack("{s:s,s:s?,s:o,s:o,s:o,s:I,s:i}", "file", name, "variable", variable,
                             "read", counts_json(&e->read), "write", counts_json(&e->write),
                             "other", counts_json(&e->other), "file_bytes",
                             (json_int_t) e->file_bytes, "processes", (int) o->processes);
    if (o->kind == WATCH_MPI_FILE)
        ranks_json(json, o);
    if (o->kind == WATCH_FILE) {
        (void) json_object_set_new(json, "read_pattern", pattern_json(&o->reads));
        (void) json_object_set_new(json, "write_pattern", pattern_json(&o->writes));
    }
    if (e->ahead_calls > 0)
        (void) json_object_set_new(
            json, "read_ahead",
            json_pack("{s:I,s:I,s:f,s:I,s:f,s:I,s:f,s:I}", "calls", (json_int_t) e->ahead_calls,
                      "bytes", (json_int_t) e->ahead_bytes, "seconds", seconds_of(e->ahead_ns),
                      "plain_reads", (json_int_t) e->plain_reads, "plain_seconds",
                      seconds_of(e->plain_ns), "advised_reads", (json_int_t) e->advised_reads,
                      "advised_seconds", seconds_of(e->advised_ns), "stopped",
                      (json_int_t) e->ahead_stopped));
    json_t *history = history_json(e);
    if (history != NULL)
        (void) json_object_set_new(json, "earlier_runs", history);
    g_free(variable);
    g_free(name);
    return json;
}

static json_t *
objects_json(const run *r, guint32 kind)
{
    GPtrArray *list = run_objects(r, kind);
    json_t *array = json_array();
    for (guint i = 0; i < list->len; i++)
        (void) json_array_append_new(array, object_json(list->pdata[i]));
    g_ptr_array_free(list, TRUE);
    return array;
}

static json_t *
classes_json(const GPtrArray *classes)
{
    json_t *array = json_array();
    for (guint i = 0; i < classes->len; i++) {
        const time_class *c = classes->pdata[i];
        (void) json_array_append_new(
            array,
            json_pack("{s:s,s:s,s:I,s:I,s:f,s:f,s:f}", "cause", c->cause, "because", c->because,
                      "calls", (json_int_t) c->calls, "bytes", (json_int_t) c->bytes, "seconds",
                      c->seconds, "typical_s", c->typical_s, "from_s", c->low_s));
    }
    return array;
}

json_t *
report_json(const run *r)
{
    json_t *advices = json_array();
    char *command = g_utf8_make_valid(r->command, -1);
    for (guint i = 0; i < r->advice->len; i++) {
        const advice *a = r->advice->pdata[i];
        char *text = g_utf8_make_valid(a->text, -1);
        (void) json_array_append_new(advices,
                                     json_pack("{s:s,s:f}", "text", text, "gain_s", a->gain_s));
        g_free(text);
    }
    json_t *report = json_pack(
        "{s:s,s:i,s:i,s:f,s:f,s:I,s:o,s:o,s:o,s:o,s:o,s:o}", "command", command, "processes",
        (int) r->processes->len, "ranks", (int) r->ranks, "seconds", run_seconds(r), "cpu_seconds",
        (double) r->cpu_us / 1e6, "dropped", (json_int_t) r->dropped, "files",
        objects_json(r, WATCH_FILE), "mpi_files", objects_json(r, WATCH_MPI_FILE), "variables",
        objects_json(r, WATCH_VARIABLE), "read_times", classes_json(r->read_classes), "write_times",
        classes_json(r->write_classes), "advice", advices);
    (void) json_object_set_new(
        report, "time",
        json_pack("{s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f}", "reading", seconds_of(r->read_ns), "writing",
                  seconds_of(r->write_ns), "sync", seconds_of(r->sync_ns), "metadata",
                  seconds_of(r->meta_ns), "mpi", seconds_of(r->mpi_ns), "netcdf_library",
                  seconds_of(r->library_ns), "reading_if_cached", r->best_s, "read_ahead_gain",
                  run_ahead_gain(r)));
    (void) json_object_set_new(
        report, "moved",
        json_pack("{s:I,s:I,s:I,s:I}", "read_bytes", (json_int_t) r->read_bytes, "read_calls",
                  (json_int_t) r->read_calls, "write_bytes", (json_int_t) r->write_bytes,
                  "write_calls", (json_int_t) r->write_calls));
    (void) json_object_set_new(report, "actions", actions_json(r));
    json_t *earlier = earlier_json(r);
    if (earlier != NULL)
        (void) json_object_set_new(report, "earlier_runs", earlier);
    g_free(command);
    return report;
}
