/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Traces of "monitor" (JSON Lines), as operations of processes. */
#include "esdm-replay/esdm-replay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "esdm/monitor.h"

#define LINE_MOST (UINT64_C(1) << 24)

/** A file while it is read. */
typedef struct reader {
    replay_load *load;
    const char *path;
    guint64 line;
    bool good;          /* of a database: no line was wrong */
    GHashTable *by_pid; /* replay_process; of this file */
    GHashTable *files;  /* replay_file by name; of all files */
} reader;

static bool wrong(const reader *r, const char *format, ...) G_GNUC_PRINTF(2, 3);

static bool
wrong(const reader *r, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *what = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    tool_error("%s: line %" G_GUINT64_FORMAT ": %s: the record is damaged, or of another ESDM",
               r->path, r->line, what);
    return false;
}

/* ---- members --------------------------------------------------------------------------------- */

static bool
number_of(const reader *r, const json_t *line, const char *key, guint64 *ret)
{
    const json_t *value = json_object_get(line, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return wrong(r, "\"%s\" is no number from 0", key);
    *ret = (guint64) json_integer_value(value);
    return true;
}

static bool
numbers_of(const reader *r, const json_t *line, const char *key, guint count, guint64 *ret)
{
    const json_t *list = json_object_get(line, key);
    if (!json_is_array(list) || json_array_size(list) != count)
        return wrong(r, "\"%s\" has not %u numbers", key, count);
    for (guint i = 0; i < count; i++) {
        const json_t *value = json_array_get(list, i);
        if (!json_is_integer(value) || json_integer_value(value) < 0)
            return wrong(r, "\"%s\" has something else than numbers from 0", key);
        ret[i] = (guint64) json_integer_value(value);
    }
    return true;
}

static const char *
text_of(const json_t *line, const char *key)
{
    return json_string_value(json_object_get(line, key));
}

/* ESDM_TYPE_NONE: of the user. */
static esdm_type
type_of(const char *name)
{
    for (esdm_type type = ESDM_TYPE_INT8; type <= ESDM_TYPE_STRING; type++) {
        if (name != NULL && g_str_equal(esdm_type_name(type), name))
            return type;
    }
    return ESDM_TYPE_NONE;
}

/* ---- processes, handles, datasets ------------------------------------------------------------ */

replay_process *
replay_process_new(replay_load *load, int pid)
{
    replay_process *p = g_new0(replay_process, 1);
    p->pid = pid;
    p->rank = -1;
    p->handles = g_ptr_array_new();
    p->by_id = g_hash_table_new(g_int64_hash, g_int64_equal);
    p->operations = g_array_new(FALSE, TRUE, sizeof(replay_operation));
    g_ptr_array_add(load->processes, p);
    return p;
}

static replay_process *
process_new(reader *r, int pid)
{
    replay_process *p = replay_process_new(r->load, pid);
    g_hash_table_insert(r->by_pid, GINT_TO_POINTER(pid), p);
    return p;
}

static bool
add_process(reader *r, const json_t *line)
{
    guint64 pid;
    guint64 realtime;
    guint64 monotonic;
    if (!number_of(r, line, "pid", &pid) || !number_of(r, line, "realtime_ns", &realtime) ||
        !number_of(r, line, "monotonic_ns", &monotonic))
        return false;
    replay_process *p = process_new(r, (int) pid);
    p->ahead_ns = realtime - monotonic;
    p->program = g_strdup(text_of(line, "program"));
    p->host = g_strdup(text_of(line, "host"));
    const json_t *rank = json_object_get(line, "rank");
    p->rank = json_is_integer(rank) ? (int) json_integer_value(rank) : -1;
    return true;
}

/* The line of a process may have been lost. */
static replay_process *
process_of(reader *r, const json_t *line)
{
    guint64 pid;
    if (!number_of(r, line, "pid", &pid))
        return NULL;
    replay_process *p = g_hash_table_lookup(r->by_pid, GINT_TO_POINTER((int) pid));
    return p != NULL ? p : process_new(r, (int) pid);
}

replay_file *
replay_file_named(replay_load *load, GHashTable *files, const char *name)
{
    replay_file *file = g_hash_table_lookup(files, name);
    if (file != NULL)
        return file;
    file = g_new0(replay_file, 1);
    file->name = g_strdup(name);
    file->number = load->files->len;
    file->inputs = g_ptr_array_new();
    file->first_ns = G_MAXUINT64;
    g_ptr_array_add(load->files, file);
    g_hash_table_insert(files, file->name, file);
    return file;
}

replay_handle *
replay_handle_new(replay_process *p, replay_file *file, guint64 id)
{
    replay_handle *handle = g_new0(replay_handle, 1);
    handle->id = id;
    handle->file = file;
    handle->datasets = g_ptr_array_new();
    handle->number = p->handles->len;
    g_ptr_array_add(p->handles, handle);
    if (id != 0)
        g_hash_table_insert(p->by_id, &handle->id, handle);
    return handle;
}

/* One that was not recorded when it was opened (a container that is put together, a trace that
 * lacks its beginning) is opened for reading when it is first used. */
static replay_handle *
handle_of(reader *r, replay_process *p, const json_t *line)
{
    guint64 id = 0;
    const char *name = text_of(line, "container");
    if (json_object_get(line, "handle") != NULL && !number_of(r, line, "handle", &id))
        return NULL;
    if (name == NULL) {
        (void) wrong(r, "\"container\" is missing");
        return NULL;
    }
    replay_file *file = replay_file_named(r->load, r->files, name);
    for (guint i = p->handles->len; id == 0 && i > 0; i--) {
        replay_handle *one = p->handles->pdata[i - 1];
        if (one->file == file)
            return one;
    }
    replay_handle *handle = id != 0 ? g_hash_table_lookup(p->by_id, &id) : NULL;
    if (handle != NULL && handle->file == file)
        return handle;
    return replay_handle_new(p, file, id);
}

replay_dataset *
replay_dataset_in(const GPtrArray *datasets, const char *path)
{
    for (guint i = datasets->len; i > 0; i--) {
        replay_dataset *d = datasets->pdata[i - 1];
        if (g_str_equal(d->path, path))
            return d;
    }
    return NULL;
}

static bool
dimension_of(const reader *r, const json_t *value, replay_dimension *ret)
{
    guint64 id;
    const char *name = text_of(value, "name");
    if (!json_is_object(value) || name == NULL)
        return wrong(r, "a dimension has no name");
    if (!number_of(r, value, "id", &id) || !number_of(r, value, "length", &ret->length))
        return false;
    ret->id = (guint32) id;
    ret->name = g_strdup(name);
    ret->unlimited = json_is_true(json_object_get(value, "unlimited"));
    return true;
}

static bool
add_dataset(reader *r, const json_t *line)
{
    replay_process *p = process_of(r, line);
    replay_handle *handle = p != NULL ? handle_of(r, p, line) : NULL;
    const json_t *dimensions = json_object_get(line, "dimensions");
    guint64 id;
    const char *path = text_of(line, "dataset");
    if (handle == NULL)
        return false;
    if (path == NULL || path[0] != '/' || path[1] == '\0')
        return wrong(r, "\"dataset\" is no path");
    if (!json_is_array(dimensions) || json_array_size(dimensions) > ESDM_MAX_RANK)
        return wrong(r, "\"dimensions\" are not up to %d", ESDM_MAX_RANK);
    if (replay_dataset_in(handle->datasets, path) != NULL) /* said again */
        return true;
    replay_dataset *d = g_new0(replay_dataset, 1);
    d->path = g_strdup(path);
    g_ptr_array_add(handle->datasets, d);
    if (!number_of(r, line, "id", &id))
        return false;
    d->id = (guint32) id;
    d->type = type_of(text_of(line, "type"));
    d->rank = (guint) json_array_size(dimensions);
    for (guint i = 0; i < d->rank; i++) {
        if (!dimension_of(r, json_array_get(dimensions, i), &d->dimensions[i]))
            return false;
    }
    if (json_is_array(json_object_get(line, "chunk"))) {
        d->chunk = g_new0(guint64, ESDM_MAX_RANK);
        if (!numbers_of(r, line, "chunk", d->rank, d->chunk))
            return false;
    }
    d->codec = g_strdup(text_of(line, "codec"));
    d->accuracy = g_strdup(text_of(line, "accuracy"));
    return true;
}

/* ---- operations ------------------------------------------------------------------------------ */

static bool
space_of(const reader *r, const json_t *line, const replay_dataset *d, esdm_dataspace **ret)
{
    guint64 offset[ESDM_MAX_RANK];
    guint64 size[ESDM_MAX_RANK];
    guint64 stride[ESDM_MAX_RANK];
    esdm_error err = {0};
    bool strides = json_object_get(line, "stride") != NULL;
    if (!numbers_of(r, line, "offset", d->rank, offset) ||
        !numbers_of(r, line, "size", d->rank, size) ||
        (strides && !numbers_of(r, line, "stride", d->rank, stride)))
        return false;
    *ret = g_new0(esdm_dataspace, 1);
    esdm_status st = esdm_dataspace_init(*ret, d->rank, offset, size, &err);
    if (st == ESDM_OK && strides)
        st = esdm_dataspace_set_stride(*ret, stride, &err);
    for (guint i = 0; i < d->rank && st == ESDM_OK; i++) {
        guint64 last = size[i] > 0 ? (size[i] - 1) : 0;
        if ((strides && stride[i] > 0 && last > G_MAXINT64 / stride[i]) ||
            offset[i] > G_MAXINT64 - last * (strides ? stride[i] : 1))
            st = tool_error_set(&err, ESDM_EINVAL, "a selection ends beyond 2^63");
    }
    return st == ESDM_OK || wrong(r, "%s", err.message);
}

/* As the handle has it, else another one of the same container. */
static replay_dataset *
dataset_of(const replay_process *p, const replay_handle *handle, const char *path)
{
    replay_dataset *found = replay_dataset_in(handle->datasets, path);
    for (guint i = p->handles->len; found == NULL && i > 0; i--) {
        const replay_handle *other = p->handles->pdata[i - 1];
        if (other->file == handle->file)
            found = replay_dataset_in(other->datasets, path);
    }
    return found;
}

/* Ranks meet for a dataset, or for the structure of a container. */
static bool
add_align(const reader *r, replay_process *p, replay_operation *o, const json_t *line)
{
    const char *path = text_of(line, "dataset");
    if (o->handle->ranks <= 1)
        return true; /* it met nobody */
    o->writing = json_is_true(json_object_get(line, "writing"));
    o->dataset = path != NULL ? dataset_of(p, o->handle, path) : NULL;
    if (path != NULL && o->dataset == NULL)
        return wrong(r, "dataset '%s' was not described before", path);
    if (o->dataset != NULL && o->dataset->type == ESDM_TYPE_NONE) {
        r->load->left_out++; /* on all ranks */
        return true;
    }
    if (o->dataset != NULL && json_object_get(line, "offset") != NULL &&
        !space_of(r, line, o->dataset, &o->space))
        return false;
    g_array_append_val(p->operations, *o);
    return true;
}

static bool
add_transfer(reader *r, replay_process *p, replay_operation *o, const json_t *line)
{
    const char *path = text_of(line, "dataset");
    if (path == NULL || json_object_get(line, "offset") == NULL)
        return wrong(r, "it does not tell what part of which dataset was moved; traces of ESDM "
                        "before 0.1.0 do not");
    o->dataset = dataset_of(p, o->handle, path);
    if (o->dataset == NULL && r->load->dropped == 0)
        return wrong(r, "dataset '%s' was not described before", path);
    o->memory = type_of(text_of(line, "memory"));
    if (o->dataset == NULL || o->dataset->type == ESDM_TYPE_NONE || o->memory == ESDM_TYPE_NONE) {
        r->load->left_out++;
        return true;
    }
    bool text = o->memory == ESDM_TYPE_CHAR || o->memory == ESDM_TYPE_STRING ||
                o->dataset->type == ESDM_TYPE_CHAR || o->dataset->type == ESDM_TYPE_STRING;
    if (text && o->memory != o->dataset->type)
        return wrong(r, "text and numbers do not convert");
    if (!space_of(r, line, o->dataset, &o->space))
        return false;
    guint64 elements = esdm_dataspace_elements(o->space);
    if (elements > G_MAXINT64 / 8 || elements * esdm_type_size(o->dataset->type) != o->bytes)
        return wrong(r, "%" G_GUINT64_FORMAT " bytes are not those of the selection", o->bytes);
    g_array_append_val(p->operations, *o);
    return true;
}

static bool
add_opening(const reader *r, replay_process *p, replay_operation *o, const json_t *line)
{
    const char *mode = text_of(line, "mode");
    guint64 ranks = 0;
    guint64 rank = 0;
    if (mode == NULL ||
        (json_object_get(line, "ranks") != NULL && !number_of(r, line, "ranks", &ranks)) ||
        (json_object_get(line, "rank") != NULL && !number_of(r, line, "rank", &rank)))
        return wrong(r, "it does not tell how the container was opened; traces of ESDM before "
                        "0.1.0 do not");
    replay_handle *h = o->handle;
    h->replaces = g_str_equal(mode, "replace");
    h->creates = h->replaces || g_str_equal(mode, "create");
    h->writes = h->creates || g_str_equal(mode, "write");
    h->ranks = (guint) MIN(ranks, G_MAXINT);
    h->rank = (guint) MIN(rank, G_MAXINT);
    if (!h->writes && !g_str_equal(mode, "read"))
        return wrong(r, "\"mode\" is unknown");
    o->kind = h->creates ? REPLAY_CREATE : REPLAY_OPEN;
    g_array_append_val(p->operations, *o);
    return true;
}

static bool
kind_of(const char *name, replay_kind *ret)
{
    static const struct {
        const char *name;
        replay_kind kind;
    } kinds[] = {{"open", REPLAY_OPEN},   {"read", REPLAY_READ},     {"write", REPLAY_WRITE},
                 {"align", REPLAY_ALIGN}, {"commit", REPLAY_COMMIT}, {"close", REPLAY_CLOSE}};
    for (gsize i = 0; name != NULL && i < G_N_ELEMENTS(kinds); i++) {
        if (g_str_equal(kinds[i].name, name)) {
            *ret = kinds[i].kind;
            return true;
        }
    }
    return false;
}

static bool
add_span(reader *r, const json_t *line)
{
    replay_operation o = {0};
    guint64 thread;
    guint64 status;
    if (!kind_of(text_of(line, "kind"), &o.kind))
        return true;
    replay_process *p = process_of(r, line);
    if (p == NULL || !number_of(r, line, "start_ns", &o.start_ns) ||
        !number_of(r, line, "ns", &o.ns) || !number_of(r, line, "id", &o.id) ||
        !number_of(r, line, "cause", &o.cause) || !number_of(r, line, "bytes", &o.bytes) ||
        !number_of(r, line, "thread", &thread) || !number_of(r, line, "status", &status))
        return false;
    o.start_ns += p->ahead_ns;
    if (o.ns > G_MAXINT64 || o.start_ns > G_MAXINT64)
        return wrong(r, "a time lies beyond 2^63");
    o.thread = (gint32) thread;
    if (status != 0) {
        r->load->failed++;
        return true;
    }
    o.handle = handle_of(r, p, line);
    if (o.handle == NULL)
        return false;
    if (o.kind == REPLAY_OPEN)
        return add_opening(r, p, &o, line);
    if (o.kind == REPLAY_ALIGN)
        return add_align(r, p, &o, line);
    if (o.kind == REPLAY_READ || o.kind == REPLAY_WRITE)
        return add_transfer(r, p, &o, line);
    g_array_append_val(p->operations, o);
    return true;
}

static bool
add_line(reader *r, const char *text, gsize bytes)
{
    bool good = true;
    json_t *line = tool_json_read(text, (gssize) bytes, 0, NULL);
    const char *what = text_of(line, "what");
    if (line == NULL)
        r->load->damaged++; /* of a killed process, or a full disk */
    else if (what == NULL)
        good = wrong(r, "it is no line of a trace of \"monitor\"");
    else if (g_str_equal(what, "process"))
        good = add_process(r, line);
    else if (g_str_equal(what, "dataset"))
        good = add_dataset(r, line);
    else if (g_str_equal(what, "span"))
        good = add_span(r, line);
    else if (g_str_equal(what, "end"))
        r->load->dropped += (guint64) json_integer_value(json_object_get(line, "dropped"));
    json_decref(line);
    return good;
}

static tool_exit
load_file(replay_load *load, const char *path, GHashTable *files)
{
    char *text = NULL;
    size_t room = 0;
    ssize_t bytes = 0;
    bool good = true;
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        tool_error("%s: %s", path, g_strerror(errno));
        return TOOL_NOT_FOUND;
    }
    reader r = {.load = load,
                .path = path,
                .by_pid = g_hash_table_new(g_direct_hash, g_direct_equal),
                .files = files};
    while (good && (bytes = getline(&text, &room, file)) > 0) {
        r.line++;
        if ((guint64) bytes > LINE_MOST)
            good = wrong(&r, "it is longer than lines are");
        else
            good = add_line(&r, text, (gsize) bytes);
    }
    if (good && ferror(file) != 0) {
        tool_error("%s: %s", path, g_strerror(errno));
        good = false;
    }
    (void) fclose(file);
    free(text);
    g_hash_table_destroy(r.by_pid);
    return good ? TOOL_OK : TOOL_FAILED;
}

static bool
take_line(void *context, const char *line)
{
    reader *r = context;
    r->line++;
    r->good = add_line(r, line, strlen(line));
    return r->good;
}

static tool_exit
load_database(replay_load *load, const char *source, GHashTable *files)
{
    esdm_error err = {0};
    reader r = {.load = load,
                .path = source,
                .good = true,
                .by_pid = g_hash_table_new(g_direct_hash, g_direct_equal),
                .files = files};
    esdm_status status = esdm_records_read(source, take_line, &r, &err);
    g_hash_table_destroy(r.by_pid);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    return r.good ? TOOL_OK : TOOL_FAILED;
}

static tool_exit
load_folder(replay_load *load, const char *path, GHashTable *files)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) names = tool_folder_names(path, &error);
    tool_exit result = TOOL_OK;
    bool watched = false;
    if (names == NULL) {
        tool_error("%s", error->message);
        return TOOL_NOT_FOUND;
    }
    for (guint i = 0; i < names->len && result == TOOL_OK; i++) {
        const char *name = g_ptr_array_index(names, i);
        g_autofree char *file = g_build_filename(path, name, NULL);
        watched = watched || g_str_has_suffix(name, ".watch");
        if (g_str_has_suffix(name, ".jsonl"))
            result = load_file(load, file, files);
    }
    return result == TOOL_OK && watched ? replay_load_watched(load, path, files) : result;
}

tool_exit
replay_load_paths(char **paths, guint count, replay_load *ret)
{
    tool_exit result = TOOL_OK;
    *ret = (replay_load){.processes = g_ptr_array_new(),
                         .files = g_ptr_array_new(),
                         .meetings = g_array_new(FALSE, FALSE, sizeof(guint))};
    GHashTable *files = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < count && result == TOOL_OK; i++)
        result = esdm_records_are_in_database(paths[i])      ? load_database(ret, paths[i], files)
                 : g_file_test(paths[i], G_FILE_TEST_IS_DIR) ? load_folder(ret, paths[i], files)
                                                             : load_file(ret, paths[i], files);
    g_hash_table_destroy(files);
    return result == TOOL_OK ? replay_settle(ret) : result;
}
