/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What a run read of plain files, for the next run of the same program (watch/history.h), and what
 * that has gained. */
#include "watch/history.h"
#include "esdm-explain/esdm-explain.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LEAST_READS 4
#define LEAST_NS    2000000u /* that a file's reads take in all, to be worth it … */
#define CACHED_NS   20000u   /* … and each of them: memory is faster */
#define SAME        0.9      /* of the reads, or more: the run did as the last one */
#define AGE_MOST_S  (90 * 86400)
#define FILES_MOST  256u /* in the folder */

/* A file of a process. */
typedef struct seen {
    watch_history_file file;
    GArray *reads; /* watch_history_read */
    guint64 ns;
    bool writes;
} seen;

static void
seen_free(gpointer data)
{
    seen *s = data;
    g_array_free(s->reads, TRUE);
    g_free(s);
}

/* ---- what was gained --------------------------------------------------------------------------
 */

double
history_gain(const watch_entry *e)
{
    if (e->earlier_reads == 0 || e->earlier_plain_reads == 0)
        return -seconds_of(e->earlier_ns);
    double plain = seconds_of(e->earlier_plain_ns) / (double) e->earlier_plain_reads;
    return plain * (double) e->earlier_reads - seconds_of(e->earlier_read_ns) -
           seconds_of(e->earlier_ns);
}

static const char *
why_stopped(const watch_entry *e)
{
    static const char *const why[] = {NULL, "the program read something else",
                                      "reads were not faster", "memory had the file"};
    guint i = (guint) e->earlier_stopped;
    return i < G_N_ELEMENTS(why) ? why[i] : NULL;
}

static void
print_one(const object *o)
{
    const watch_entry *e = &o->entry;
    const char *why = why_stopped(e);
    char *name = short_name(o->name);
    char *with = time_text(seconds_of(e->earlier_read_ns) / MAX((double) e->earlier_reads, 1));
    char *without =
        time_text(seconds_of(e->earlier_plain_ns) / MAX((double) e->earlier_plain_reads, 1));
    char *cost = time_text(seconds_of(e->earlier_ns) / (double) e->earlier_calls);
    (void) printf("  As the last run read %s: %" G_GUINT64_FORMAT
                  " pieces were asked for early, %s each. A read took %s with it and %s without "
                  "(%" G_GUINT64_FORMAT " and %" G_GUINT64_FORMAT " of them)%s%s.\n",
                  name, e->earlier_calls, cost, with, without, e->earlier_reads,
                  e->earlier_plain_reads, why != NULL ? "; stopped: " : "", why != NULL ? why : "");
    g_free(cost);
    g_free(without);
    g_free(with);
    g_free(name);
}

void
print_history(const run *r)
{
    for (guint i = 0; i < r->objects->len; i++) {
        const object *o = r->objects->pdata[i];
        if (o->entry.earlier_calls > 0)
            print_one(o);
    }
}

json_t *
history_json(const watch_entry *e)
{
    if (e->earlier_calls == 0)
        return NULL;
    return json_pack(
        "{s:I,s:f,s:I,s:f,s:I,s:f,s:f,s:s?}", "calls", (json_int_t) e->earlier_calls, "seconds",
        seconds_of(e->earlier_ns), "advised_reads", (json_int_t) e->earlier_reads,
        "advised_seconds", seconds_of(e->earlier_read_ns), "plain_reads",
        (json_int_t) e->earlier_plain_reads, "plain_seconds", seconds_of(e->earlier_plain_ns),
        "gain_s", history_gain(e), "stopped", why_stopped(e));
}

/* ---- what this run read ------------------------------------------------------------------------
 */

static seen *
seen_of(GHashTable *by_name, GPtrArray *list, const call *c)
{
    char *key = g_strdup_printf("%p %p", (void *) c->process, (void *) c->object);
    seen *s = g_hash_table_lookup(by_name, key);
    if (s != NULL) {
        g_free(key);
        return s;
    }
    const watch_head *head = &c->process->head;
    const char *slash = strrchr(head->program, '/');
    s = g_new0(seen, 1);
    s->reads = g_array_new(FALSE, FALSE, sizeof(watch_history_read));
    (void) g_strlcpy(s->file.program, slash != NULL ? slash + 1 : head->program,
                     sizeof s->file.program);
    (void) g_strlcpy(s->file.name, c->object->name, sizeof s->file.name);
    s->file.rank = head->rank;
    s->file.trust = WATCH_TRUST_NEW;
    s->file.seen_s = (guint64) time(NULL);
    g_hash_table_insert(by_name, key, s);
    g_ptr_array_add(list, s);
    return s;
}

/* In order of the first reads. */
static GPtrArray *
reads_of(const run *r)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(seen_free);
    g_autoptr(GHashTable) by_name = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < r->calls->len; i++) {
        const call *c = &g_array_index(r->calls, call, i);
        if (c->object->kind != WATCH_FILE || c->bytes == 0 || c->position == WATCH_NOWHERE ||
            (c->kind != WATCH_KIND_READ && c->kind != WATCH_KIND_WRITE))
            continue;
        seen *s = seen_of(by_name, list, c);
        s->writes = s->writes || c->kind == WATCH_KIND_WRITE;
        s->ns += c->ns;
        const watch_history_read one = {.at = c->position, .bytes = c->bytes};
        if (s->reads->len < WATCH_HISTORY_READS)
            g_array_append_val(s->reads, one);
    }
    return list;
}

/* ---- what the last run read ---------------------------------------------------------------------
 */

char *
history_read_file(const char *path, gsize least, gsize most, gsize *ret_size)
{
    struct stat st;
    char *bytes = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        (gsize) st.st_size >= least && (gsize) st.st_size <= most) {
        bytes = g_malloc((gsize) st.st_size);
        *ret_size = (gsize) st.st_size;
        if (pread(fd, bytes, *ret_size, 0) != (gssize) st.st_size)
            g_clear_pointer(&bytes, g_free);
    }
    if (fd >= 0)
        (void) close(fd);
    return bytes;
}

static GPtrArray *
load_old(const char *path)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(seen_free);
    gsize size = 0;
    g_autofree char *bytes =
        history_read_file(path, sizeof(watch_history_head), WATCH_HISTORY_BYTES, &size);
    if (bytes == NULL)
        return list;
    const watch_history_head *head = (const void *) bytes;
    const watch_history_file *files = (const void *) (head + 1);
    if (head->magic != WATCH_HISTORY_MAGIC || head->files > WATCH_HISTORY_FILES ||
        size != sizeof *head + head->files * sizeof *files +
                    (gsize) head->reads * sizeof(watch_history_read))
        return list;
    const watch_history_read *reads = (const void *) (files + head->files);
    for (guint i = 0; i < head->files; i++) {
        if (files[i].first > head->reads || files[i].reads > head->reads - files[i].first)
            continue;
        seen *s = g_new0(seen, 1);
        s->file = files[i];
        s->file.program[sizeof s->file.program - 1] = '\0';
        s->file.name[sizeof s->file.name - 1] = '\0';
        s->reads = g_array_new(FALSE, FALSE, sizeof *reads);
        g_array_append_vals(s->reads, reads + files[i].first, files[i].reads);
        g_ptr_array_add(list, s);
    }
    return list;
}

static seen *
same_file(const GPtrArray *list, const watch_history_file *file)
{
    for (guint i = 0; i < list->len; i++) {
        seen *s = list->pdata[i];
        if (s->file.rank == file->rank && g_str_equal(s->file.program, file->program) &&
            g_str_equal(s->file.name, file->name))
            return s;
    }
    return NULL;
}

/* The share of reads that are in both, in this order. */
static double
likeness(const GArray *a, const GArray *b)
{
    guint same = 0;
    guint at = 0;
    for (guint i = 0; i < a->len; i++) {
        const watch_history_read *x = &g_array_index(a, watch_history_read, i);
        for (guint k = at; k < b->len && k < at + 16; k++) {
            const watch_history_read *y = &g_array_index(b, watch_history_read, k);
            if (x->at == y->at && x->bytes == y->bytes) {
                same++;
                at = k + 1;
                break;
            }
        }
    }
    return (double) same / MAX(MAX(a->len, b->len), 1);
}

/* What the next run is to think of it. */
static gint32
trust_after(const seen *old, const seen *now, const watch_entry *e)
{
    gint32 trust = CLAMP(old->file.trust, WATCH_TRUST_LEAST, WATCH_TRUST_MOST);
    bool failed = e->earlier_stopped == WATCH_EARLIER_ASTRAY ||
                  e->earlier_stopped == WATCH_EARLIER_USELESS ||
                  (e->earlier_stopped == 0 && e->earlier_plain_reads > 0 && history_gain(e) < 0);
    if (e->earlier_calls > 0 && failed)
        return MAX(trust - 2, WATCH_TRUST_LEAST);
    if (likeness(now->reads, old->reads) >= SAME)
        return MIN(trust + 1, WATCH_TRUST_MOST);
    return MIN(trust, WATCH_TRUST_NEW);
}

static bool
is_worth(const seen *s)
{
    return !s->writes && s->reads->len >= LEAST_READS && s->ns >= LEAST_NS &&
           s->ns / s->reads->len >= CACHED_NS;
}

/* Files of this run in front; the oldest go. Moves what it keeps. */
static GPtrArray *
merge(const run *r, GPtrArray *now, GPtrArray *old)
{
    GPtrArray *all = g_ptr_array_new();
    for (guint i = 0; i < now->len; i++) {
        seen *s = now->pdata[i];
        seen *before = same_file(old, &s->file);
        g_autofree char *key = g_strdup_printf("%d %s", WATCH_FILE, s->file.name);
        const object *o = g_hash_table_lookup(r->by_name, key);
        if (s->writes || same_file(all, &s->file) != NULL || (before == NULL && !is_worth(s)))
            continue;
        if (before != NULL && o != NULL)
            s->file.trust = trust_after(before, s, &o->entry);
        g_ptr_array_add(all, s);
    }
    guint64 least_s = (guint64) time(NULL) - AGE_MOST_S;
    for (guint i = 0; i < old->len; i++) {
        const seen *s = old->pdata[i];
        if (same_file(now, &s->file) == NULL && s->file.seen_s > least_s)
            g_ptr_array_add(all, old->pdata[i]);
    }
    if (all->len > WATCH_HISTORY_FILES)
        g_ptr_array_set_size(all, WATCH_HISTORY_FILES);
    return all;
}

/* ---- the file -----------------------------------------------------------------------------------
 */

/* Those of programs that nobody runs any more; where there are too many, some of them, but never
 * the one that was just written. */
void
history_remove_old(const char *folder, const char *written)
{
    GPtrArray *names = tool_folder_names(folder, NULL);
    for (guint i = 0; names != NULL && i < names->len; i++) {
        g_autofree char *path = g_build_filename(folder, names->pdata[i], NULL);
        struct stat st;
        if ((g_str_has_suffix(path, ".history") || g_str_has_suffix(path, ".hints")) &&
            !g_str_equal(path, written) && lstat(path, &st) == 0 &&
            (st.st_mtim.tv_sec < time(NULL) - AGE_MOST_S || names->len > FILES_MOST + i))
            (void) unlink(path);
    }
    if (names != NULL)
        g_ptr_array_unref(names);
}

static GByteArray *
bytes_of(GPtrArray *all)
{
    GByteArray *bytes = g_byte_array_new();
    watch_history_head head = {.magic = WATCH_HISTORY_MAGIC, .files = all->len};
    for (guint i = 0; i < all->len; i++) {
        seen *s = all->pdata[i];
        s->file.first = head.reads;
        s->file.reads = s->reads->len;
        head.reads += s->reads->len;
    }
    (void) g_byte_array_append(bytes, (const guint8 *) &head, sizeof head);
    for (guint i = 0; i < all->len; i++)
        (void) g_byte_array_append(bytes, (const guint8 *) &((seen *) all->pdata[i])->file,
                                   sizeof(watch_history_file));
    for (guint i = 0; i < all->len; i++) {
        const GArray *reads = ((const seen *) all->pdata[i])->reads;
        (void) g_byte_array_append(bytes, (const guint8 *) reads->data,
                                   (guint) (reads->len * sizeof(watch_history_read)));
    }
    return bytes;
}

tool_exit
history_write(const run *r, const char *file)
{
    g_autofree char *folder = g_path_get_dirname(file);
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) now = reads_of(r);
    g_autoptr(GPtrArray) old = load_old(file);
    g_autoptr(GPtrArray) all = merge(r, now, old);
    tool_exit result = TOOL_OK;
    if (all->len == 0 && old->len == 0)
        return TOOL_OK;
    if (g_mkdir_with_parents(folder, 0700) != 0) {
        tool_error("%s: %s", folder, g_strerror(errno));
        return TOOL_FAILED;
    }
    GByteArray *bytes = bytes_of(all);
    /* Replaced as a whole: who reads it sees all of one or of the other. */
    if (!g_file_set_contents_full(file, (const char *) bytes->data, (gssize) bytes->len,
                                  G_FILE_SET_CONTENTS_CONSISTENT, 0600, &error)) {
        tool_error("%s", error->message);
        result = TOOL_FAILED;
    }
    (void) g_byte_array_unref(bytes);
    history_remove_old(folder, file);
    return result;
}
