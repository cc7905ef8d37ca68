/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Records of a database, as the lines of JSON that files have. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arguments.h"
#include "base/error.h"
#include "base/json.h"
#include "base/plain_locale.h"
#include "esdm/monitor.h"
#include "monitor/database.h"

typedef struct reader {
    const esdm__engine *engine;
    void *connection;
    esdm_records_visitor take;
    void *context;
    bool more;                /* lines are wanted */
    const char *what;         /* of the lines that are made now */
    const char *const *names; /* of the columns */
    json_t *head;             /* members of each line: pid, host */
    json_t *list;             /* rows go there, instead of to the caller; NULL */
    json_t *members;          /* or into this object; NULL */
} reader;

typedef struct process_row {
    char number[24];
    json_t *line; /* owned */
} process_row;

typedef struct process_list {
    process_row *rows; /* owned */
    size_t count;
    bool failed;
} process_list;

/* ---- lines ----------------------------------------------------------------------------------- */

static json_t *
json_of(const esdm__value *v)
{
    switch (v->kind) {
    case ESDM__VALUE_INTEGER:
        return json_integer(v->integer);
    case ESDM__VALUE_REAL:
        return json_real(v->real);
    case ESDM__VALUE_TEXT:
        return json_string(v->text);
    case ESDM__VALUE_NULL:
        break;
    }
    return json_null();
}

static bool
give(reader *r, const json_t *line)
{
    char *text = json_dumps(line, JSON_COMPACT | JSON_ENSURE_ASCII);
    r->more = r->more && text != NULL && r->take(r->context, text);
    free(text);
    return r->more;
}

static json_t *
named(const reader *r, unsigned count, const esdm__value *values)
{
    json_t *line = json_object();
    if (r->what != NULL)
        (void) json_object_set_new(line, "what", json_string(r->what));
    if (r->head != NULL)
        (void) json_object_update(line, r->head);
    for (unsigned i = 0; i < count; i++)
        (void) json_object_set_new(line, r->names[i], json_of(&values[i]));
    return line;
}

static bool
take_line(void *context, unsigned count, const esdm__value *values)
{
    reader *r = context;
    json_t *line = named(r, count, values);
    if (r->list != NULL)
        (void) json_array_append(r->list, line);
    else if (r->members != NULL)
        (void) json_object_update(r->members, line);
    else
        (void) give(r, line);
    json_decref(line);
    return r->more;
}

/* The last column has further members. */
static bool
take_span(void *context, unsigned count, const esdm__value *values)
{
    reader *r = context;
    json_t *line = named(r, count - 1, values);
    const esdm__value *detail = &values[count - 1];
    json_t *further = detail->kind == ESDM__VALUE_TEXT ? esdm__json_read(detail->text) : NULL;
    if (json_is_object(further))
        (void) json_object_update(line, further);
    (void) give(r, line);
    json_decref(further);
    json_decref(line);
    return r->more;
}

static bool
take_dataset(void *context, unsigned count, const esdm__value *values)
{
    reader *r = context;
    (void) count;
    if (values[0].kind == ESDM__VALUE_TEXT)
        r->more = r->more && r->take(r->context, values[0].text);
    return r->more;
}

/* Sizes are the last columns. */
static bool
take_statistic(void *context, unsigned count, const esdm__value *values)
{
    reader *r = context;
    json_t *line = named(r, count - ESDM__SPAN_SIZES, values);
    json_t *sizes = json_array();
    for (unsigned i = count - ESDM__SPAN_SIZES; i < count; i++)
        (void) json_array_append_new(sizes, json_of(&values[i]));
    (void) json_object_set_new(line, "sizes", sizes);
    (void) json_array_append_new(r->list, line);
    return r->more;
}

/* ---- questions ------------------------------------------------------------------------------- */

/* Rows of one process. */
static esdm_status
ask(reader *r, const process_row *p, const char *columns, const char *table, const char *types,
    esdm__row_fn take, esdm_error *err)
{
    char sql[1024];
    if (!r->more)
        return ESDM_OK;
    (void) snprintf(sql, sizeof sql, "SELECT %s FROM %s WHERE process = CAST($1 AS BIGINT)",
                    columns, table);
    return r->engine->ask(r->connection, sql, p->number, types, take, r, err);
}

static esdm_status
read_trace(reader *r, const process_row *p, esdm_error *err)
{
    static const char *const span[] = {"kind",         "thread",    "id",      "cause",  "start_ns",
                                       "ns",           "container", "dataset", "target", "bytes",
                                       "stored_bytes", "pieces",    "status"};
    static const char *const sample[] = {"at_ns",
                                         "seconds",
                                         "cpu_busy",
                                         "cpu_wait",
                                         "memory_free_bytes",
                                         "dirty_bytes",
                                         "net_in_bytes_per_s",
                                         "net_out_bytes_per_s",
                                         "disk_read_bytes_per_s",
                                         "disk_write_bytes_per_s",
                                         "disk_busy",
                                         "watts"};
    esdm_status status = ask(r, p, "facts", "esdm_dataset", "t", take_dataset, err);
    r->names = span;
    r->what = "span";
    if (status == ESDM_OK)
        status = ask(r, p,
                     "kind, thread, id, cause, start_ns, ns, container, dataset, target, bytes, "
                     "stored_bytes, pieces, status, detail",
                     "esdm_span", "tiiiiitttiiiit", take_span, err);
    r->names = sample;
    r->what = "node";
    if (status == ESDM_OK)
        status = ask(r, p,
                     "at_ns, seconds, cpu_busy, cpu_wait, memory_free_bytes, dirty_bytes, "
                     "net_in_bytes_per_s, net_out_bytes_per_s, disk_read_bytes_per_s, "
                     "disk_write_bytes_per_s, disk_busy, watts",
                     "esdm_node", "irrrrrrrrrrr", take_line, err);
    return status;
}

static esdm_status
read_end(reader *r, const process_row *p, json_t *statistics, esdm_error *err)
{
    static const char *const end[] = {"at_ns", "dropped"};
    static const char *const totals[] = {"seconds", "dropped", "trace_failure"};
    r->names = end;
    r->what = "end";
    esdm_status status = ask(r, p, "at_ns, dropped", "esdm_end", "ii", take_line, err);
    r->names = totals;
    r->what = NULL;
    r->members = statistics;
    if (status == ESDM_OK)
        status = ask(r, p, "seconds, dropped, failure", "esdm_end", "rit", take_line, err);
    r->members = NULL;
    return status;
}

static esdm_status
read_counts(reader *r, const process_row *p, json_t *statistics, esdm_error *err)
{
    static const char *const counts[] = {"kind",         "container", "dataset",  "target",
                                         "count",        "failed",    "pieces",   "bytes",
                                         "stored_bytes", "seconds",   "longest_s"};
    static const char *const actions[] = {"action", "container", "dataset", "requests", "used",
                                          "bytes",  "gained_ns", "cost_ns", "stopped"};
    json_t *spans = json_array();
    json_t *list = json_array();
    json_t *head = r->head;
    (void) json_object_set_new(statistics, "spans", spans);
    (void) json_object_set_new(statistics, "actions", list);
    r->head = NULL;
    r->what = NULL;
    r->names = counts;
    r->list = spans;
    esdm_status status = ask(
        r, p,
        "kind, container, dataset, target, calls, failed, pieces, bytes, stored_bytes, seconds, "
        "longest_s, below_1k, below_4k, below_16k, below_64k, below_256k, below_1m, below_4m, "
        "larger",
        "esdm_statistic", "ttttiiiiirriiiiiiii", take_statistic, err);
    r->names = actions;
    r->list = list;
    if (status == ESDM_OK)
        status = ask(r, p,
                     "kind, container, dataset, requests, used, bytes, gained_ns, cost_ns, stopped",
                     "esdm_action", "tttiiiiit", take_line, err);
    r->list = NULL;
    r->head = head;
    return status;
}

static esdm_status
read_node(reader *r, const process_row *p, json_t *statistics, esdm_error *err)
{
    json_t *head = r->head;
    json_t *members = json_object();
    r->head = NULL;
    r->names = esdm__node_total_names;
    r->what = NULL;
    r->members = members;
    esdm_status status =
        ask(r, p,
            "seconds, cpu_busy_s, cpu_wait_s, cpu_all_s, net_in_bytes, net_out_bytes, "
            "disk_read_bytes, disk_write_bytes, disk_busy_s, process_read_bytes, "
            "process_write_bytes, energy_j",
            "esdm_node_total", "rrrrrrrrrrrr", take_line, err);
    r->members = NULL;
    r->head = head;
    if (json_object_size(members) > 0)
        (void) json_object_set(statistics, "node", members);
    json_decref(members);
    return status;
}

static esdm_status
read_process(reader *r, const process_row *p, esdm_error *err)
{
    json_t *statistics =
        json_pack("{s:s,s:i,s:O,s:O,s:O,s:O,s:O}", "what", "statistics", "version", 1, "program",
                  json_object_get(p->line, "program"), "host", json_object_get(p->line, "host"),
                  "pid", json_object_get(p->line, "pid"), "rank", json_object_get(p->line, "rank"),
                  "started_ns", json_object_get(p->line, "realtime_ns"));
    r->head = json_pack("{s:O,s:O}", "pid", json_object_get(p->line, "pid"), "host",
                        json_object_get(p->line, "host"));
    esdm_status status = ESDM_OK;
    if (statistics != NULL && r->head != NULL && give(r, p->line))
        status = read_trace(r, p, err);
    else if (r->more)
        status = esdm__error_nomem(err, sizeof *p, "records");
    if (status == ESDM_OK)
        status = read_end(r, p, statistics, err);
    if (status == ESDM_OK)
        status = read_counts(r, p, statistics, err);
    if (status == ESDM_OK)
        status = read_node(r, p, statistics, err);
    if (status == ESDM_OK && r->more && json_array_size(json_object_get(statistics, "spans")) > 0)
        (void) give(r, statistics);
    json_decref(r->head);
    json_decref(statistics);
    r->head = NULL;
    return status;
}

/* ---- processes ------------------------------------------------------------------------------- */

static bool
take_process(void *context, unsigned count, const esdm__value *v)
{
    process_list *list = context;
    process_row *grown = realloc(list->rows, (list->count + 1) * sizeof *grown);
    (void) count;
    list->failed = grown == NULL;
    if (grown == NULL)
        return false;
    list->rows = grown;
    process_row *p = &grown[list->count++];
    (void) snprintf(p->number, sizeof p->number, "%" PRId64, v[0].integer);
    p->line = json_pack("{s:s,s:i,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "what", "process", "version", 1,
                        "program", json_of(&v[1]), "host", json_of(&v[2]), "pid", json_of(&v[3]),
                        "rank", json_of(&v[4]), "realtime_ns", json_of(&v[5]), "monotonic_ns",
                        json_of(&v[6]), "job", json_of(&v[7]));
    list->failed = p->line == NULL;
    return !list->failed;
}

static esdm_status
find_processes(reader *r, const char *run, process_list *list, esdm_error *err)
{
    char sql[512];
    bool latest = run != NULL && strcmp(run, "latest") == 0;
    (void) snprintf(
        sql, sizeof sql,
        "SELECT process, program, host, pid, rank, realtime_ns, monotonic_ns, job FROM "
        "esdm_process%s ORDER BY realtime_ns, rank",
        run == NULL ? ""
        : latest ? " WHERE job = (SELECT job FROM esdm_process ORDER BY realtime_ns DESC LIMIT 1)"
                 : " WHERE job = $1");
    esdm_status status = r->engine->ask(r->connection, sql, latest ? NULL : run, "ittiiiit",
                                        take_process, list, err);
    return status == ESDM_OK && list->failed ? esdm__error_nomem(err, sizeof sql, "records")
                                             : status;
}

static esdm_status
read_all(reader *r, const char *place, const char *run, esdm_error *err)
{
    process_list list = {0};
    esdm_status status = r->engine->open(place, true, NULL, &r->connection, err);
    if (status != ESDM_OK)
        return status;
    status = find_processes(r, run, &list, err);
    if (status == ESDM_OK && list.count == 0)
        status = esdm__error_set(err, ESDM_ENOENT,
                                 "the database holds no records of %s%s: the column job of its "
                                 "table esdm_process names those that there are",
                                 run != NULL ? "the run " : "programs", run != NULL ? run : "");
    for (size_t i = 0; i < list.count; i++) {
        if (status == ESDM_OK && r->more)
            status = read_process(r, &list.rows[i], err);
        json_decref(list.rows[i].line);
    }
    free(list.rows);
    r->engine->close(r->connection);
    return status;
}

/* The place without "#RUN": names of folders and of runs may have that sign, too. */
static char *
place_of(const char *source, const char **ret_run)
{
    *ret_run = NULL;
    for (size_t i = strlen(source); i-- > 0;) {
        char *place = source[i] == '#' ? strndup(source, i) : NULL;
        if (place != NULL && esdm__monitor_is_database(place)) {
            *ret_run = source[i + 1] != '\0' ? source + i + 1 : NULL;
            return place;
        }
        free(place);
    }
    return strdup(source);
}

bool
esdm_records_are_in_database(const char *source)
{
    const char *run = NULL;
    char *place = source != NULL ? place_of(source, &run) : NULL;
    bool is = place != NULL && esdm__monitor_is_database(place);
    free(place);
    return is;
}

esdm_status
esdm_records_read(const char *source, esdm_records_visitor take, void *context, esdm_error *err)
{
    ESDM__NEED(err, source);
    ESDM__NEED(err, take);
    const char *run = NULL;
    char *place = place_of(source, &run);
    if (place == NULL)
        return esdm__error_nomem(err, strlen(source), "a name");
    reader r = {
        .engine = esdm__database_engine(place), .take = take, .context = context, .more = true};
    esdm__plain_locale locale;
    esdm_status status =
        r.engine == NULL
            ? esdm__error_set(err, ESDM_EINVAL,
                              "'%.200s' is no database: these are named .sqlite, .sqlite3, .db, or "
                              "by a URL, postgresql://HOST/DATABASE",
                              place)
            : esdm__plain_locale_enter(&locale, err);
    if (status == ESDM_OK) {
        status = read_all(&r, place, run, err);
        esdm__plain_locale_leave(&locale);
    }
    free(place);
    return status;
}
