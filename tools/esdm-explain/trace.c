/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* All calls of a run, one a line. */
#define WATCH_NAMES
#include "esdm-explain/esdm-explain.h"

#include <errno.h>
#include <stdio.h>

static json_t *
text_json(const char *text)
{
    return text != NULL ? tool_json_text(text) : json_null();
}

const char *
call_name(const call *c)
{
    return c->name != NULL ? c->name : watch_ops[c->op].name;
}

static json_t *
position_json(const call *c)
{
    return c->position == WATCH_NOWHERE ? json_null() : json_integer((json_int_t) c->position);
}

json_t *
call_json(const call *c)
{
    guint had = c->flags >> WATCH_CACHED_BIT & 15u;
    json_t *line = json_pack(
        "{s:s,s:s,s:i,s:i,s:i,s:I,s:I,s:o,s:o,s:I,s:o,s:b,s:b,s:b,s:b,s:s?}", "what", "call",
        "call", call_name(c), "pid", (int) c->process->head.pid, "rank",
        (int) c->process->head.rank, "thread", (int) c->thread, "start_ns",
        (json_int_t) c->start_ns, "ns", (json_int_t) c->ns, "file", text_json(c->object->name),
        "variable", text_json(c->object->variable), "bytes", (json_int_t) c->bytes, "position",
        position_json(c), "in_netcdf", (int) c->nested, "in_mpi",
        (c->flags & WATCH_FLAG_IN_MPI) != 0, "collective", (c->flags & WATCH_FLAG_TOGETHER) != 0,
        "failed", (int) c->failed, "cause", c->class != NULL ? c->class->cause : NULL);
    /* The share that memory had, where somebody asked. */
    if (line != NULL && had > 0)
        (void) json_object_set_new(line, "had_before", json_real((had - 1) / 8.0));
    return line;
}

static json_t *
event_json(const call *c)
{
    json_t *arguments =
        json_pack("{s:o,s:o,s:I,s:o,s:s?}", "file", text_json(c->object->name), "variable",
                  text_json(c->object->variable), "bytes", (json_int_t) c->bytes, "position",
                  position_json(c), "cause", c->class != NULL ? c->class->cause : NULL);
    return json_pack("{s:s,s:s,s:s,s:f,s:f,s:i,s:i,s:o}", "name", call_name(c), "cat",
                     c->kind >= WATCH_KIND_NC_READ    ? "netcdf"
                     : c->kind >= WATCH_KIND_MPI_READ ? "mpi"
                                                      : "file",
                     "ph", "X", "ts", (double) c->start_ns / 1e3, "dur", (double) c->ns / 1e3,
                     "pid", (int) c->process->head.pid, "tid", (int) c->thread, "args", arguments);
}

static bool
put_line(FILE *out, json_t *line, const char *end)
{
    bool good = line != NULL && json_dumpf(line, out, JSON_COMPACT) == 0 && fputs(end, out) != EOF;
    json_decref(line);
    return good;
}

tool_exit
write_trace(const run *r, const char *file)
{
    if (g_str_has_suffix(file, ".otf2"))
        return write_otf2(r, file);
    bool chrome = g_str_has_suffix(file, ".json");
    FILE *out = fopen(file, "we");
    bool good = out != NULL && (!chrome || fputs("[\n", out) != EOF);
    for (guint i = 0; i < r->calls->len && good; i++) {
        const call *c = &g_array_index(r->calls, call, i);
        const char *end = !chrome ? "\n" : i + 1 < r->calls->len ? ",\n" : "\n";
        good = put_line(out, chrome ? event_json(c) : call_json(c), end);
    }
    good = good && (!chrome || fputs("]\n", out) != EOF);
    if (out != NULL && fclose(out) != 0)
        good = false;
    if (!good)
        tool_error("%s: %s", file, g_strerror(errno));
    return good ? TOOL_OK : TOOL_FAILED;
}
