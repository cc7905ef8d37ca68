/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* A part of a run of plain files as a trace (look.c), and its lines read again (spans.c). */
#define WATCH_NAMES
#include "esdm-explain/esdm-explain.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "esdm/monitor.h"

#define BEFORE_MOST 1024
#define WRITE_MS    20000 /* that the folder of the site's runs has */

/* ---- writing ----------------------------------------------------------------------------------
 */

static bool
put(FILE *out, json_t *line)
{
    bool good = line != NULL && json_dumpf(line, out, JSON_COMPACT | JSON_ENSURE_ASCII) == 0 &&
                fputc('\n', out) != EOF;
    json_decref(line);
    return good;
}

static json_t *
process_json(const process *p)
{
    g_autofree char *program = program_name(&p->head);
    return json_pack(
        "{s:s,s:s,s:i,s:i,s:o,s:I,s:I}", "what", "process", "job", "", "pid", (int) p->head.pid,
        "rank", (int) p->head.rank, "program", tool_json_text(program), "realtime_ns",
        (json_int_t) p->head.started_realtime_ns, "monotonic_ns", (json_int_t) p->head.started_ns);
}

static json_t *
file_json(const object *o)
{
    const watch_entry *e = &o->entry;
    return json_pack(
        "{s:s,s:o,s:o,s:i,s:I,s:I,s:i,s:i}", "what", "file", "file", tool_json_text(o->name),
        "variable", o->variable != NULL ? tool_json_text(o->variable) : json_null(), "kind",
        (int) o->kind, "file_system", (json_int_t) e->file_system, "file_bytes",
        (json_int_t) e->file_bytes, "deflate", (int) e->deflate, "chunked", (int) e->chunked);
}

static json_t *
unusual_json(const json_t *what, guint64 at_ns, bool begins)
{
    json_t *line = json_pack("{s:s,s:I,s:b}", "what", "unusual", "now_ns", (json_int_t) at_ns,
                             "begins", (int) begins);
    (void) json_object_update(line, (json_t *) (guintptr) what);
    return line;
}

/* Index of the first call before the trace that is told. */
static guint
first_before(const run *r, guint64 begin_ns)
{
    guint count = 0;
    for (guint i = r->calls->len; i-- > 0;) {
        const call *c = &g_array_index(r->calls, call, i);
        count += c->start_ns + c->ns <= begin_ns;
        if (count == BEFORE_MOST)
            return i;
    }
    return 0;
}

/* @param what gets the numbers. */
static bool
write_part(const run *r, FILE *out, guint64 begin_ns, guint64 end_ns, json_t *what)
{
    guint64 before = 0, calls = 0;
    bool good = true;
    for (guint i = 0; i < r->processes->len && good; i++)
        good = put(out, process_json(r->processes->pdata[i]));
    good = good && put(out, unusual_json(what, begin_ns, true));
    for (guint i = 0; i < r->objects->len && good; i++)
        good = put(out, file_json(r->objects->pdata[i]));
    for (guint i = first_before(r, begin_ns); i < r->calls->len && good; i++) {
        const call *c = &g_array_index(r->calls, call, i);
        bool over = c->start_ns + c->ns <= begin_ns;
        json_t *line = c->start_ns < end_ns ? call_json(c) : NULL;
        if (line == NULL)
            continue;
        if (over)
            (void) json_object_set_new(line, "before", json_true());
        good = put(out, line);
        before += over;
        calls += !over;
    }
    (void) json_object_set_new(what, "spans", json_integer((json_int_t) calls));
    (void) json_object_set_new(what, "before", json_integer((json_int_t) before));
    return good && put(out, unusual_json(what, end_ns, false));
}

/* There is no trace. */
static void
fail(json_t *what, const char *why)
{
    (void) json_object_set_new(what, "lasted_s", json_real(0));
    (void) json_object_set_new(what, "ended", tool_json_text(why));
}

/* In a process of its own, whose memory its end frees and which may hang. Its result goes down the
 * pipe. */
_Noreturn static void
write_in_child(const char *folder, const char *program, guint64 begin_ns, guint64 end_ns,
               json_t *what, int result)
{
    static run r;
    esdm_error err = {0};
    char *path = NULL;
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (int out = STDOUT_FILENO; fd >= 0 && out <= STDERR_FILENO; out++)
        (void) dup2(fd, out); /* who reads them may be gone before this one ends */
    fd = -1;
    if (run_load(folder, &r) != TOOL_OK)
        _exit(1);
    if (esdm_runs_trace(tool.config, program, &fd, &path, &err) != ESDM_OK) {
        fail(what, err.message);
    } else {
        FILE *out = fdopen(fd, "a");
        (void) json_object_set_new(what, "trace", tool_json_text(path));
        bool good = out != NULL && write_part(&r, out, begin_ns, end_ns, what);
        if (out == NULL || fclose(out) != 0 || !good)
            fail(what, g_strerror(errno));
    }
    char *text = json_dumps(what, JSON_COMPACT | JSON_ENSURE_ASCII);
    _exit(text != NULL && write(result, text, strlen(text)) > 0 ? 0 : 1);
}

void
look_trace(const char *folder, const char *program, guint64 begin_ns, guint64 end_ns, json_t *what)
{
    char text[8192];
    int ends[2];
    (void) json_object_set_new(what, "trace", json_null());
    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    pid_t child = fork();
    if (child == 0)
        write_in_child(folder, program, begin_ns, end_ns, what, ends[1]);
    (void) close(ends[1]);
    struct pollfd wait = {.fd = ends[0], .events = POLLIN};
    gint64 until_us = g_get_monotonic_time() + WRITE_MS * G_GINT64_CONSTANT(1000);
    int ready = child > 0 ? -1 : 0;
    errno = EINTR;
    while (ready < 0 && errno == EINTR) {
        gint64 left_us = until_us - g_get_monotonic_time();
        ready = poll(&wait, 1, left_us > 0 ? (int) (left_us / 1000) : 0);
    }
    bool came = ready > 0;
    ssize_t n = came ? read(ends[0], text, sizeof text - 1) : 0;
    (void) close(ends[0]);
    if (!came && child > 0)
        (void) kill(child, SIGKILL);
    if (child > 0)
        (void) waitpid(child, NULL, came ? 0 : WNOHANG);
    json_t *told = n > 0 ? tool_json_read(text, n, 0, NULL) : NULL;
    if (told != NULL)
        (void) json_object_update(what, told);
    else
        fail(what, "the trace could not be written in time");
    json_decref(told);
}

/* ---- reading ----------------------------------------------------------------------------------
 */

static guint64
number_of(const json_t *line, const char *key)
{
    json_int_t number = json_integer_value(json_object_get(line, key));
    return number > 0 ? (guint64) number : 0;
}

static object *
object_of_line(run *r, const json_t *line, guint32 kind)
{
    watch_entry e = {.kind = kind, .deflate = -1, .chunked = -1};
    const char *file = json_string_value(json_object_get(line, "file"));
    const char *variable = json_string_value(json_object_get(line, "variable"));
    if (file == NULL)
        return NULL;
    (void) g_snprintf(e.name, sizeof e.name, "%s%s%s", file, variable != NULL ? "\n" : "",
                      variable != NULL ? variable : "");
    return object_named(r, &e);
}

void
file_of_line(run *r, const json_t *line)
{
    guint64 kind = number_of(line, "kind");
    object *o = kind >= WATCH_FILE && kind <= WATCH_MPI_FILE
                    ? object_of_line(r, line, (guint32) kind)
                    : NULL;
    if (o == NULL)
        return;
    o->entry.file_system = (guint32) number_of(line, "file_system");
    o->entry.file_bytes = number_of(line, "file_bytes");
    o->entry.deflate = (gint32) json_integer_value(json_object_get(line, "deflate"));
    o->entry.chunked = (gint32) json_integer_value(json_object_get(line, "chunked"));
}

static guint16
op_of(const char *name)
{
    static GHashTable *ops;
    if (ops == NULL) {
        ops = g_hash_table_new(g_str_hash, g_str_equal);
        for (guint i = 1; i < WATCH_OPS; i++)
            g_hash_table_insert(ops, (gpointer) watch_ops[i].name, GUINT_TO_POINTER(i));
    }
    return (guint16) GPOINTER_TO_UINT(g_hash_table_lookup(ops, name));
}

static process *
process_of(const run *r, const json_t *line)
{
    json_int_t pid = json_integer_value(json_object_get(line, "pid"));
    for (guint i = r->processes->len; i-- > 0;) {
        process *p = r->processes->pdata[i];
        if (p->head.pid == pid)
            return p;
    }
    return NULL;
}

bool
call_of_line(run *r, const json_t *line, guint64 ahead_ns, call *ret)
{
    const char *name = json_string_value(json_object_get(line, "call"));
    guint16 op = name != NULL ? op_of(name) : 0;
    watch_kind kind = watch_ops[op].kind;
    process *p = process_of(r, line);
    guint32 about = kind == WATCH_KIND_NC_READ || kind == WATCH_KIND_NC_WRITE ? WATCH_VARIABLE
                    : kind == WATCH_KIND_NC_META                              ? WATCH_DATASET
                    : kind >= WATCH_KIND_MPI_READ                             ? WATCH_MPI_FILE
                                                                              : WATCH_FILE;
    object *o = op != 0 && p != NULL ? object_of_line(r, line, about) : NULL;
    if (o == NULL)
        return false;
    const json_t *position = json_object_get(line, "position");
    *ret = (call){
        .start_ns = number_of(line, "start_ns") + ahead_ns,
        .ns = number_of(line, "ns"),
        .bytes = number_of(line, "bytes"),
        .wanted = number_of(line, "bytes"),
        .position = json_is_integer(position) ? number_of(line, "position") : WATCH_NOWHERE,
        .object = o,
        .process = p,
        .thread = (guint32) number_of(line, "thread"),
        .kind = kind,
        .op = op,
        .flags =
            (guint16) ((json_is_true(json_object_get(line, "in_mpi")) ? WATCH_FLAG_IN_MPI : 0) |
                       (json_is_true(json_object_get(line, "collective")) ? WATCH_FLAG_TOGETHER
                                                                          : 0)),
        .failed = json_is_true(json_object_get(line, "failed")),
        .nested = json_is_true(json_object_get(line, "in_netcdf")),
    };
    return true;
}
