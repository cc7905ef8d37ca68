/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Hints for files by MPI, from one run to the next (watch/hints.h): what a run did, and the file
 * of records. */
#include "esdm-explain/esdm-explain.h"
#include "esdm-explain/hints_learn.h"
#include "watch/history.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>
#include <time.h>

#define LUSTRE     0x0bd00bd0u
#define AGE_MOST_S (90 * 86400)

/* ---- what the run did -------------------------------------------------------------------------
 */

static double
used_number(const object *o, const char *key)
{
    gsize length = strlen(key);
    for (guint i = 0; o->used != NULL && i < o->used->len; i++) {
        const char *hint = o->used->pdata[i];
        if (strncmp(hint, key, length) == 0 && hint[length] == '=')
            return g_ascii_strtod(hint + length + 1, NULL);
    }
    return 0;
}

static bool
is_romio(const object *o)
{
    for (guint i = 0; o->used != NULL && i < o->used->len; i++) {
        if (g_str_has_prefix(o->used->pdata[i], "romio_"))
            return true;
    }
    return false;
}

static void
add_facts(const run *r, const object *o, hints_facts *f)
{
    const watch_entry *e = &o->entry;
    guint64 ns = e->read.ns + e->write.ns; /* opening waits for ranks */
    f->seconds += seconds_of(ns - MIN(ns, o->waiting_ns));
    f->read_bytes += (double) e->read.bytes;
    f->write_bytes += (double) e->write.bytes;
    f->read_calls += (double) e->read.calls;
    f->write_calls += (double) e->write.calls;
    f->together_read_bytes += (double) e->together_read.bytes;
    f->together_write_bytes += (double) e->together_write.bytes;
    f->together_read_calls += (double) e->together_read.calls;
    f->together_write_calls += (double) e->together_write.calls;
    f->gap_calls += (double) o->calls_with_gaps;
    f->romio = f->romio || is_romio(o);
    f->aggregators = MAX(f->aggregators, (guint32) used_number(o, "cb_nodes"));
    f->buffer_bytes = MAX(f->buffer_bytes, used_number(o, "cb_buffer_size"));
    g_autofree char *key = g_strdup_printf("%d %s", WATCH_FILE, o->name);
    const object *file = g_hash_table_lookup(r->by_name, key);
    if (file == NULL)
        return;
    f->file_read_bytes += (double) file->entry.read.bytes;
    f->file_read_calls += (double) file->entry.read.calls;
    f->file_write_calls += (double) file->entry.write.calls;
    f->lustre = f->lustre || file->entry.file_system == LUSTRE;
}

/* "KEY=VALUE\n" each, as they were given. Owned. */
static char *
given_to(const object *o)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; o->chosen != NULL && i < o->chosen->len; i++)
        g_string_append_printf(text, "%s\n", (const char *) o->chosen->pdata[i]);
    return g_string_free(text, FALSE);
}

/* ---- records ----------------------------------------------------------------------------------
 */

static GArray *
load_records(const char *path)
{
    GArray *list = g_array_new(FALSE, TRUE, sizeof(watch_hints_file));
    gsize size = 0;
    g_autofree char *bytes =
        history_read_file(path, sizeof(watch_hints_head), WATCH_HINTS_BYTES, &size);
    if (bytes == NULL)
        return list;
    watch_hints_head head;
    memcpy(&head, bytes, sizeof head);
    if (head.magic != WATCH_HINTS_MAGIC || head.files > WATCH_HINTS_FILES ||
        size != sizeof head + head.files * sizeof(watch_hints_file))
        return list;
    g_array_append_vals(list, bytes + sizeof head, (guint) head.files);
    for (guint i = 0; i < list->len; i++) {
        watch_hints_file *f = &g_array_index(list, watch_hints_file, i);
        f->program[sizeof f->program - 1] = '\0';
        f->name[sizeof f->name - 1] = '\0';
        f->give[sizeof f->give - 1] = '\0';
        f->best[sizeof f->best - 1] = '\0';
        if (!isfinite(f->plain_ns) || !isfinite(f->hinted_ns) || !isfinite(f->call_bytes) ||
            !isfinite(f->gained_s) || f->phase > WATCH_HINTS_OVER)
            f->phase = 0;
    }
    return list;
}

static watch_hints_file *
record_of(GArray *list, const char *program, const object *o)
{
    for (guint i = 0; i < list->len; i++) {
        watch_hints_file *f = &g_array_index(list, watch_hints_file, i);
        if (f->ranks == o->entry.ranks && g_str_equal(f->program, program) &&
            watch_history_alike(f->name, o->name))
            return f;
    }
    watch_hints_file fresh = {.ranks = o->entry.ranks};
    (void) g_strlcpy(fresh.program, program, sizeof fresh.program);
    (void) g_strlcpy(fresh.name, o->name, sizeof fresh.name);
    g_array_append_val(list, fresh);
    return &g_array_index(list, watch_hints_file, list->len - 1);
}

/* "KEY=VALUE KEY=VALUE"; owned. */
static char *
in_line(const char *hints)
{
    return g_strchomp(g_strdelimit(g_strdup(hints), "\n", ' '));
}

/* Owned; NULL: nothing to say. */
static char *
sentence(const watch_hints_file *f, const char *given, double gain_s)
{
    g_autofree char *was = in_line(given);
    g_autofree char *next = in_line(f->give);
    g_autofree char *with = time_text(f->hinted_ns / 1e3); /* of a MB */
    g_autofree char *without = time_text(f->plain_ns / 1e3);
    g_autofree char *gain = time_text(fabs(gain_s));
    bool now = given[0] != '\0';
    if (f->phase == WATCH_HINTS_KEEP)
        return now ? g_strdup_printf("hint %s, as earlier runs speak for it (%s): a MB takes %s "
                                     "with it and %s without; %s %s in calls of all ranks",
                                     was, hints_why(f), with, without,
                                     gain_s >= 0 ? "this run saved" : "this run lost", gain)
                   : g_strdup_printf("this run went without the hint that helped, to compare: a MB "
                                     "takes %s with it and %s without",
                                     with, without);
    if (now && f->phase == WATCH_HINTS_LEARN)
        return g_strdup_printf("hint %s was tried, and did not help (%s %s in calls of all ranks): "
                               "it is not given again",
                               was, gain_s >= 0 ? "saved" : "lost", gain);
    if (f->phase == WATCH_HINTS_LEARN && f->hinted_runs > 2 && f->plain_runs == 1)
        return g_strdup("a run without the hint that helped was as fast: it is not given again");
    if (f->phase == WATCH_HINTS_TRY)
        return g_strdup_printf("%s%s%sthe next run tries hint %s: %s", now ? "hint " : "",
                               now ? was : "", now ? " was tried; " : "", next, hints_why(f));
    if (f->phase == WATCH_HINTS_OVER)
        return g_strdup("of the hints that earlier runs speak for none helps, or there are none");
    return g_strdup("runs without hints are measured first");
}

/* Files that differ by numbers alone are one; the first one has the sentence. */
static void
learn_one(const run *r, GArray *list, object *o, const char *program, GHashTable *done)
{
    hints_facts facts = {.ranks = o->entry.ranks};
    for (guint i = 0; i < r->objects->len; i++) {
        object *other = r->objects->pdata[i];
        if (other->kind != WATCH_MPI_FILE || other->entry.ranks != o->entry.ranks ||
            !watch_history_alike(other->name, o->name) || !g_hash_table_add(done, other))
            continue;
        add_facts(r, other, &facts);
    }
    g_autofree char *given = given_to(o);
    watch_hints_file *record = record_of(list, program, o);
    double gain = hints_learn(record, &facts, given);
    if (record->phase == 0)
        return;
    record->seen_s = (guint64) time(NULL);
    o->hints_gain_s = gain;
    o->hints_text = sentence(record, given, gain);
}

/* Old ones, and those of which there is nothing to know, go; the latest stay. */
static gint
by_age(gconstpointer a, gconstpointer b)
{
    const watch_hints_file *x = a;
    const watch_hints_file *y = b;
    return x->seen_s > y->seen_s ? -1 : x->seen_s < y->seen_s;
}

static void
drop_old(GArray *list)
{
    guint64 least_s = (guint64) time(NULL) - AGE_MOST_S;
    for (guint i = list->len; i-- > 0;) {
        const watch_hints_file *f = &g_array_index(list, watch_hints_file, i);
        if (f->phase == 0 || f->seen_s < least_s)
            g_array_remove_index(list, i);
    }
    g_array_sort(list, by_age);
    if (list->len > WATCH_HINTS_FILES)
        g_array_set_size(list, WATCH_HINTS_FILES);
}

static tool_exit
write_records(const GArray *list, const char *file)
{
    g_autofree char *folder = g_path_get_dirname(file);
    g_autoptr(GError) error = NULL;
    watch_hints_head head = {.magic = WATCH_HINTS_MAGIC, .files = list->len};
    if (g_mkdir_with_parents(folder, 0700) != 0) {
        tool_error("%s: %s", folder, g_strerror(errno));
        return TOOL_FAILED;
    }
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    (void) g_byte_array_append(bytes, (const guint8 *) &head, sizeof head);
    (void) g_byte_array_append(bytes, (const guint8 *) list->data,
                               (guint) (list->len * sizeof(watch_hints_file)));
    if (!g_file_set_contents_full(file, (const char *) bytes->data, (gssize) bytes->len,
                                  G_FILE_SET_CONTENTS_CONSISTENT, 0600, &error)) {
        tool_error("%s", error->message);
        return TOOL_FAILED;
    }
    history_remove_old(folder, file);
    return TOOL_OK;
}

/* Of the first rank's process that has the file; NULL: none. */
static const char *
program_of(const run *r, const object *o)
{
    for (guint i = 0; i < r->processes->len; i++) {
        const process *p = r->processes->pdata[i];
        const char *slash = strrchr(p->head.program, '/');
        if (g_ptr_array_find(p->objects, o, NULL))
            return slash != NULL ? slash + 1 : p->head.program;
    }
    return NULL;
}

tool_exit
hints_write(const run *r, const char *file)
{
    g_autoptr(GArray) list = load_records(file);
    g_autoptr(GHashTable) done = g_hash_table_new(g_direct_hash, g_direct_equal);
    for (guint i = 0; i < r->objects->len; i++) {
        object *o = r->objects->pdata[i];
        const char *program = o->kind == WATCH_MPI_FILE ? program_of(r, o) : NULL;
        if (program == NULL || o->entry.ranks < 2 || o->name[0] != '/' ||
            g_hash_table_contains(done, o))
            continue;
        char name[64]; /* as records have it */
        (void) g_strlcpy(name, program, sizeof name);
        learn_one(r, list, o, name, done);
    }
    bool any = list->len > 0;
    drop_old(list);
    return any ? write_records(list, file) : TOOL_OK;
}
