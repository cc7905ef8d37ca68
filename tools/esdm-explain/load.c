/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What processes have left: their calls, and what ESDM counted itself. */
#define WATCH_NAMES
#include "esdm-explain/esdm-explain.h"

#include <stdlib.h>
#include <string.h>

/* NCO writes out.nc as out.nc.pid271.ncra.tmp, which is renamed when it is complete: users know
 * out.nc. @param name of a file, or "FILE\nVARIABLE" */
static void
drop_temporary(char *name)
{
    static const char digits[] = "0123456789", letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    char *end = strchr(name, '\n');
    char *mark = NULL;
    end = end != NULL ? end : name + strlen(name);
    for (char *at = strstr(name, ".pid"); at != NULL && at < end; at = strstr(at + 1, ".pid"))
        mark = at;
    if (mark == NULL || mark == name || mark[-1] == '/')
        return;
    const char *at = mark + strlen(".pid");
    gsize number = strspn(at, digits);
    gsize program = at[number] == '.' ? strspn(at + number + 1, letters) : 0;
    if (number > 0 && program > 0 && g_str_has_prefix(at + number + 1 + program, ".tmp") &&
        at + number + 1 + program + strlen(".tmp") == end)
        memmove(mark, end, strlen(end) + 1);
}

object *
object_named(run *r, const watch_entry *e)
{
    char *name = g_strndup(e->name, sizeof e->name);
    drop_temporary(name);
    char *key = g_strdup_printf("%u %s", e->kind, name);
    object *found = g_hash_table_lookup(r->by_name, key);
    if (found != NULL) {
        g_free(key);
        g_free(name);
        return found;
    }
    found = g_new0(object, 1);
    found->kind = e->kind;
    char *line = strchr(name, '\n');
    found->variable = line != NULL ? line + 1 : NULL;
    if (line != NULL)
        *line = '\0';
    found->name = name;
    found->entry = *e;
    memset(&found->entry.read, 0, sizeof(watch_counts));
    memset(&found->entry.write, 0, sizeof(watch_counts));
    memset(&found->entry.other, 0, sizeof(watch_counts));
    memset(&found->entry.together_read, 0, sizeof(watch_counts));
    memset(&found->entry.together_write, 0, sizeof(watch_counts));
    found->entry.mapped_bytes = 0;
    found->latest = -1;
    memset(&found->entry.ahead_calls, 0,
           G_STRUCT_OFFSET(watch_entry, name) - G_STRUCT_OFFSET(watch_entry, ahead_calls));
    found->entry.earlier_stopped = 0;
    memset(&found->entry.earlier_calls, 0,
           sizeof(watch_entry) - G_STRUCT_OFFSET(watch_entry, earlier_calls));
    g_hash_table_insert(r->by_name, key, found);
    g_ptr_array_add(r->objects, found);
    return found;
}

static void
add_counts(watch_counts *sum, const watch_counts *more)
{
    sum->calls += more->calls;
    sum->bytes += more->bytes;
    sum->ns += more->ns;
    sum->small += more->small;
}

/* A line "asked KEY=VALUE", "chosen KEY=VALUE" or "used KEY=VALUE" each. */
static void
add_hints(const process *p, const watch_entry *e)
{
    object *o = e->parent < p->objects->len ? p->objects->pdata[e->parent] : NULL;
    if (o == NULL || o->asked != NULL)
        return;
    o->asked = g_ptr_array_new();
    o->used = g_ptr_array_new();
    o->chosen = g_ptr_array_new();
    char *text = g_strndup(e->name, sizeof e->name);
    char **lines = g_strsplit(text, "\n", -1);
    for (guint i = 1; lines[0] != NULL && lines[i] != NULL; i++) {
        const char *hint = strchr(lines[i], ' ');
        if (hint != NULL && strchr(hint, '=') != NULL)
            g_ptr_array_add(lines[i][0] == 'a'   ? o->asked
                            : lines[i][0] == 'c' ? o->chosen
                                                 : o->used,
                            g_strdup(hint + 1));
    }
    g_strfreev(lines);
    g_free(text);
}

static void
add_entry(run *r, process *p, guint number, const watch_entry *e)
{
    if (e->kind == WATCH_HINTS)
        add_hints(p, e);
    if (e->kind != WATCH_FILE && e->kind != WATCH_VARIABLE && e->kind != WATCH_DATASET &&
        e->kind != WATCH_MPI_FILE)
        return;
    object *o = object_named(r, e);
    watch_entry *sum = &o->entry;
    if (p->objects->len <= number)
        g_ptr_array_set_size(p->objects, (gint) number + 1);
    p->objects->pdata[number] = o;
    add_counts(&sum->read, &e->read);
    add_counts(&sum->write, &e->write);
    add_counts(&sum->other, &e->other);
    if (e->kind == WATCH_MPI_FILE) {
        add_counts(&sum->together_read, &e->together_read);
        add_counts(&sum->together_write, &e->together_write);
        sum->ranks = MAX(sum->ranks, e->ranks);
    }
    sum->mapped_bytes += e->mapped_bytes;
    sum->ahead_calls += e->ahead_calls;
    sum->ahead_bytes += e->ahead_bytes;
    sum->ahead_ns += e->ahead_ns;
    sum->plain_reads += e->plain_reads;
    sum->plain_ns += e->plain_ns;
    sum->advised_reads += e->advised_reads;
    sum->advised_ns += e->advised_ns;
    sum->ahead_stopped += e->ahead_stopped;
    sum->earlier_calls += e->earlier_calls;
    sum->earlier_ns += e->earlier_ns;
    sum->earlier_reads += e->earlier_reads;
    sum->earlier_read_ns += e->earlier_read_ns;
    sum->earlier_plain_reads += e->earlier_plain_reads;
    sum->earlier_plain_ns += e->earlier_plain_ns;
    sum->earlier_stopped = MAX(sum->earlier_stopped, e->earlier_stopped);
    sum->file_bytes = MAX(sum->file_bytes, e->file_bytes);
    o->processes++;
}

static void
add_record(run *r, process *p, const watch_record *w)
{
    if (w->start_ns == 0 || w->op >= WATCH_OPS || w->entry >= p->objects->len ||
        p->objects->pdata[w->entry] == NULL)
        return;
    bool has_box = w->box > 0 && w->box <= p->box_count;
    const call one = {
        .box = has_box ? &p->boxes[w->box - 1] : NULL,
        .start_ns = w->start_ns,
        .ns = w->ns,
        .bytes = w->bytes,
        .wanted = w->wanted,
        .position = w->position,
        .object = p->objects->pdata[w->entry],
        .process = p,
        .thread = w->thread,
        .kind = watch_ops[w->op].kind,
        .op = w->op,
        .flags = w->flags,
        .failed = w->failed != 0,
        .nested = w->depth > 0,
    };
    g_array_append_val(r->calls, one);
    p->end_ns = MAX(p->end_ns, one.start_ns + one.ns);
}

/* Copied, as the file goes; in order of windows. */
static void
load_boxes(process *p, const char *bytes, gsize size)
{
    gsize each = (WATCH_WINDOW - sizeof(watch_window)) / sizeof(watch_box);
    for (gsize at = WATCH_WINDOW; at + WATCH_WINDOW <= size; at += WATCH_WINDOW) {
        const watch_window *w = (const watch_window *) (bytes + at);
        if (w->kind != WATCH_BOXES || w->index >= size / WATCH_WINDOW)
            continue;
        guint64 count = (w->index + 1) * each;
        if (count > p->box_count) {
            p->boxes = g_renew(watch_box, p->boxes, count);
            memset(p->boxes + p->box_count, 0, (count - p->box_count) * sizeof(watch_box));
            p->box_count = count;
        }
        memcpy(p->boxes + w->index * each, w + 1, each * sizeof(watch_box));
    }
}

/* Entries come first, whatever the order of the windows. */
static void
load_windows(run *r, process *p, const char *bytes, gsize size, guint32 kind)
{
    for (gsize at = WATCH_WINDOW; at + WATCH_WINDOW <= size; at += WATCH_WINDOW) {
        const watch_window *w = (const watch_window *) (bytes + at);
        const char *first = bytes + at + sizeof *w;
        gsize room = WATCH_WINDOW - sizeof *w;
        if (w->kind != kind || w->index >= WATCH_WINDOWS)
            continue;
        if (kind == WATCH_ENTRIES)
            for (gsize i = 0; i < room / sizeof(watch_entry); i++)
                add_entry(r, p, (guint) (w->index * (room / sizeof(watch_entry)) + i + 1),
                          (const watch_entry *) first + i);
        else
            for (gsize i = 0; i < room / sizeof(watch_record); i++)
                add_record(r, p, (const watch_record *) first + i);
    }
}

static void
load_process(run *r, const char *path)
{
    char *bytes = NULL;
    gsize size = 0;
    const watch_head *head;
    if (!g_file_get_contents(path, &bytes, &size, NULL))
        return;
    head = (const watch_head *) bytes;
    if (size < WATCH_WINDOW || head->magic != WATCH_MAGIC || head->window_bytes != WATCH_WINDOW) {
        g_free(bytes);
        return;
    }
    process *p = g_new0(process, 1);
    p->head = *head;
    p->head.host[sizeof p->head.host - 1] = '\0';
    p->head.program[sizeof p->head.program - 1] = '\0';
    p->head.command[sizeof p->head.command - 1] = '\0';
    p->objects = g_ptr_array_new();
    p->end_ns = MAX(head->started_ns, head->ended_ns);
    load_boxes(p, bytes, size);
    load_windows(r, p, bytes, size, WATCH_ENTRIES);
    load_windows(r, p, bytes, size, WATCH_RECORDS);
    g_ptr_array_add(r->processes, p);
    g_free(bytes);
}

/* ---- ESDM's statistics ------------------------------------------------------------------------
 */

static char *
text_of(const json_t *value, const char *key)
{
    return g_strdup(json_string_value(json_object_get(value, key)));
}

static void
add_span(run *r, const json_t *value)
{
    span_total *s = g_new0(span_total, 1);
    s->kind = text_of(value, "kind");
    s->container = text_of(value, "container");
    s->dataset = text_of(value, "dataset");
    s->target = text_of(value, "target");
    s->count = (guint64) json_integer_value(json_object_get(value, "count"));
    s->bytes = (guint64) json_integer_value(json_object_get(value, "bytes"));
    s->stored_bytes = (guint64) json_integer_value(json_object_get(value, "stored_bytes"));
    s->seconds = json_number_value(json_object_get(value, "seconds"));
    if (s->kind != NULL)
        g_ptr_array_add(r->spans, s);
}

action *
action_of(const json_t *value, const char *kind)
{
    action *a = g_new0(action, 1);
    a->kind = kind != NULL ? g_strdup(kind) : text_of(value, "action");
    a->container = text_of(value, "container");
    a->dataset = text_of(value, "dataset");
    a->stopped = text_of(value, "stopped");
    a->requests = (guint64) json_integer_value(json_object_get(value, "requests"));
    a->used = (guint64) json_integer_value(json_object_get(value, "used"));
    a->bytes = (guint64) json_integer_value(json_object_get(value, "bytes"));
    a->gained_s = json_number_value(json_object_get(value, "gained_ns")) / 1e9;
    a->cost_s = json_number_value(json_object_get(value, "cost_ns")) / 1e9;
    a->before = (guint64) json_integer_value(json_object_get(value, "before"));
    a->at = text_of(value, "at");
    a->because = text_of(value, "because");
    a->trace = text_of(value, "trace");
    a->ended = text_of(value, "ended");
    a->lasted_s = json_number_value(json_object_get(value, "lasted_s"));
    return a;
}

void
action_free(action *a)
{
    g_free(a->kind);
    g_free(a->container);
    g_free(a->dataset);
    g_free(a->stopped);
    g_free(a->at);
    g_free(a->because);
    g_free(a->trace);
    g_free(a->ended);
    g_free(a);
}

static void
add_action(run *r, const json_t *value)
{
    if (json_is_string(json_object_get(value, "action")))
        g_ptr_array_add(r->actions, action_of(value, NULL));
}

void
run_add_statistics(run *r, const json_t *line)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(line, "spans"), i, one) add_span(r, one);
    json_array_foreach(json_object_get(line, "actions"), i, one) add_action(r, one);
    if (json_is_object(json_object_get(line, LOOK_WORST))) {
        json_decref(r->looked);
        r->looked = json_incref((json_t *) (guintptr) line);
    }
}

static void
load_statistics(run *r, const char *path)
{
    char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL))
        return;
    char **lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        json_t *line_of = tool_json_read(*line, -1, 0, NULL);
        run_add_statistics(r, line_of);
        json_decref(line_of);
    }
    g_strfreev(lines);
    g_free(text);
}

gint
call_by_start(gconstpointer a, gconstpointer b)
{
    const call *x = a;
    const call *y = b;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

void
run_new(run *ret_run)
{
    *ret_run = (run){.processes = g_ptr_array_new(),
                     .objects = g_ptr_array_new(),
                     .by_name = g_hash_table_new(g_str_hash, g_str_equal),
                     .calls = g_array_new(FALSE, FALSE, sizeof(call)),
                     .spans = g_ptr_array_new(),
                     .actions = g_ptr_array_new(),
                     .advice = g_ptr_array_new(),
                     .read_classes = g_ptr_array_new(),
                     .write_classes = g_ptr_array_new()};
}

tool_exit
run_load(const char *folder, run *ret_run)
{
    GError *error = NULL;
    g_autoptr(GPtrArray) names = tool_folder_names(folder, &error);
    if (names == NULL) {
        tool_error("%s", error->message);
        g_error_free(error);
        return TOOL_NOT_FOUND;
    }
    run_new(ret_run);
    for (guint i = 0; i < names->len; i++) {
        g_autofree char *path = g_build_filename(folder, g_ptr_array_index(names, i), NULL);
        if (g_str_has_suffix(path, ".watch"))
            load_process(ret_run, path);
        else if (g_str_has_suffix(path, ".stats.json"))
            load_statistics(ret_run, path);
    }
    if (ret_run->processes->len == 0) {
        tool_error("%s holds no records of a run (HOST.PID.N.watch)", folder);
        return TOOL_NOT_FOUND;
    }
    g_array_sort(ret_run->calls, call_by_start);
    return TOOL_OK;
}
