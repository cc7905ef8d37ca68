/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Totals of a run, and how the calls of a file follow each other. */
#define WATCH_NAMES
#include "esdm-explain/esdm-explain.h"

#include <math.h>
#include <string.h>

#define STREAMS 8 /* places in a file from which a program may go on */

/* ---- patterns ---------------------------------------------------------------------------------
 */

typedef struct stream {
    guint64 start;
    guint64 end;
    gint64 stride; /* 0: not known yet */
    guint64 used;
} stream;

/* The reads or writes of a file by one process. */
typedef struct follower {
    pattern *pattern;
    stream streams[STREAMS];
    guint64 clock;
    GHashTable *strides; /* distance → calls */
} follower;

static void
follower_free(gpointer data)
{
    follower *f = data;
    g_hash_table_destroy(f->strides);
    g_free(f);
}

static guint64 *
counter(GHashTable *table, guint64 key)
{
    guint64 *value = g_hash_table_lookup(table, &key);
    if (value == NULL) {
        guint64 *copy = g_new(guint64, 1);
        *copy = key;
        value = g_new0(guint64, 1);
        g_hash_table_insert(table, copy, value);
    }
    return value;
}

static stream *
oldest(follower *f)
{
    stream *found = &f->streams[0];
    for (int i = 1; i < STREAMS; i++)
        found = f->streams[i].used < found->used ? &f->streams[i] : found;
    return found;
}

static stream *
newest(follower *f)
{
    stream *found = &f->streams[0];
    for (int i = 1; i < STREAMS; i++)
        found = f->streams[i].used > found->used ? &f->streams[i] : found;
    return found;
}

/* Whether the call goes on where one ended, or at the distance at which one followed another. */
static void
follow(follower *f, pattern *p, guint64 start, guint64 bytes)
{
    stream *found = NULL;
    p->calls++;
    for (int i = 0; i < STREAMS && found == NULL; i++) {
        if (f->streams[i].used > 0 && f->streams[i].end == start)
            found = &f->streams[i];
    }
    if (found != NULL) {
        p->following++;
        found->stride = 0;
    }
    for (int i = 0; i < STREAMS && found == NULL; i++) {
        stream *s = &f->streams[i];
        if (s->used > 0 && s->stride != 0 && s->start + (guint64) s->stride == start)
            found = s;
    }
    if (found != NULL && found->stride != 0) {
        p->strided++;
        (*counter(f->strides, (guint64) ABS(found->stride)))++;
    }
    if (found == NULL) {
        stream *last = newest(f);
        bool first = last->used == 0;
        gint64 stride = first ? 0 : (gint64) (start - last->start);
        found = first || last->stride == 0 ? last : oldest(f);
        found->stride = stride;
    }
    found->start = start;
    found->end = start + bytes;
    found->used = ++f->clock;
}

static follower *
follower_of(GHashTable *followers, const call *c)
{
    char *key = g_strdup_printf("%p %p %d", (void *) c->object, (void *) c->process,
                                c->kind == WATCH_KIND_WRITE);
    follower *f = g_hash_table_lookup(followers, key);
    if (f != NULL) {
        g_free(key);
        return f;
    }
    f = g_new0(follower, 1);
    f->strides = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    g_hash_table_insert(followers, key, f);
    return f;
}

static void
most_frequent(gpointer unused, gpointer of, gpointer user)
{
    const follower *f = of;
    pattern *p = f->pattern;
    (void) unused;
    (void) user;
    GHashTableIter iter;
    gpointer key;
    gpointer value;
    g_hash_table_iter_init(&iter, f->strides);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        guint64 calls = *(guint64 *) value;
        if (calls > p->stride_calls) {
            p->stride_calls = calls;
            p->stride = *(guint64 *) key;
        }
    }
}

/* The class of sizes, by powers of two, with most calls. */
static void
typical_sizes(const run *r)
{
    GHashTable *sizes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    for (guint i = 0; i < r->calls->len; i++) {
        const call *c = &g_array_index(r->calls, call, i);
        if ((c->kind != WATCH_KIND_READ && c->kind != WATCH_KIND_WRITE) || c->bytes == 0)
            continue;
        char *key = g_strdup_printf("%p %d %" G_GUINT64_FORMAT, (void *) c->object,
                                    c->kind == WATCH_KIND_WRITE, c->bytes);
        guint64 *count = g_hash_table_lookup(sizes, key);
        if (count == NULL) {
            count = g_new0(guint64, 2);
            g_hash_table_insert(sizes, g_strdup(key), count);
        }
        pattern *p = c->kind == WATCH_KIND_WRITE ? &c->object->writes : &c->object->reads;
        count[0]++;
        count[1] = c->bytes;
        if (count[0] * 2 > p->calls) /* more than half of them */
            p->typical_bytes = c->bytes;
        g_free(key);
    }
    g_hash_table_destroy(sizes);
}

static void
find_patterns(run *r)
{
    GHashTable *followers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, follower_free);
    for (guint i = 0; i < r->calls->len; i++) {
        const call *c = &g_array_index(r->calls, call, i);
        if ((c->kind != WATCH_KIND_READ && c->kind != WATCH_KIND_WRITE) || c->bytes == 0 ||
            c->position == WATCH_NOWHERE || c->object->kind != WATCH_FILE)
            continue;
        follower *f = follower_of(followers, c);
        pattern *p = c->kind == WATCH_KIND_WRITE ? &c->object->writes : &c->object->reads;
        f->pattern = p;
        follow(f, p, c->position, c->bytes);
    }
    g_hash_table_foreach(followers, most_frequent, NULL);
    g_hash_table_destroy(followers);
    typical_sizes(r);
}

/* ---- totals ------------------------------------------------------------------------------------
 */

static void
add_file(run *r, const object *o)
{
    r->read_ns += o->entry.read.ns;
    r->write_ns += o->entry.write.ns;
    r->read_bytes += o->entry.read.bytes;
    r->write_bytes += o->entry.write.bytes;
    r->read_calls += o->entry.read.calls;
    r->write_calls += o->entry.write.calls;
    r->small_reads += o->entry.read.small;
    r->small_writes += o->entry.write.small;
    r->files += o->entry.read.calls + o->entry.write.calls > 0;
    r->meta_ns += o->entry.other.ns;
}

/* A NetCDF call begins before the calls of files in it. @param outer the last one of each thread */
static void
add_call(run *r, const call *c, GHashTable *outer)
{
    bool is_nc = c->kind >= WATCH_KIND_NC_READ;
    gpointer thread = GUINT_TO_POINTER(c->thread);
    if (is_nc)
        g_hash_table_insert(outer, thread, (gpointer) c);
    bool is_mpi = c->kind >= WATCH_KIND_MPI_READ && !is_nc;
    bool in_mpi = (c->flags & WATCH_FLAG_IN_MPI) != 0;
    if (is_mpi)
        r->mpi_ns += c->ns;
    if (in_mpi)
        r->mpi_ns -= MIN(c->ns, r->mpi_ns);
    const call *around = !is_nc && !in_mpi && c->nested ? g_hash_table_lookup(outer, thread) : NULL;
    if (around != NULL && around->kind == WATCH_KIND_NC_READ)
        r->library_read_ns -= MIN(c->ns, r->library_read_ns);
    if (is_nc)
        r->library_ns += c->ns;
    if (c->op == WATCH_OP_nc_close)
        r->closing_ns += c->ns;
    if (around != NULL && around->op == WATCH_OP_nc_close)
        r->closing_ns -= MIN(c->ns, r->closing_ns);
    if (c->kind == WATCH_KIND_NC_READ)
        r->library_read_ns += c->ns;
    if (!is_nc && c->nested) {
        c->object->nested_ns += c->ns;
        r->library_ns -= in_mpi ? 0 : MIN(c->ns, r->library_ns);
    }
    if (!c->nested && !in_mpi)
        c->process->calls_ns += c->ns;
    if (c->kind == WATCH_KIND_SYNC) {
        r->sync_ns += c->ns;
        r->meta_ns -= MIN(c->ns, r->meta_ns);
    }
    r->opens += c->kind == WATCH_KIND_OPEN && !c->failed;
    bool looks = c->object->entry.kind == WATCH_FILE && c->position == WATCH_NOWHERE &&
                 strcmp(c->object->name, "(other files)") == 0;
    r->lookups += looks;
    r->failed_lookups += looks && c->failed;
}

static char *
command_of(const process *p)
{
    GString *text = g_string_new(NULL);
    const char *at = p->head.command;
    const char *end = at + sizeof p->head.command;
    while (at < end) {
        const char *word = at;
        const char *slash = strrchr(word, '/');
        at += strlen(word) + 1;
        if (word[0] == '\0') /* as where an argument became shorter: shim/habits.c */
            continue;
        bool program = text->len == 0;
        g_string_append_printf(text, "%s%s", program ? "" : " ",
                               program && slash != NULL ? slash + 1 : word);
    }
    if (text->len > 300) {
        g_string_truncate(text, 300);
        g_string_append(text, " …");
    }
    return g_string_free(text, FALSE);
}

/* Whether the processor time of a process is known: it ended, or called exec(), and the program
 * that followed it ended, whose time includes it. */
static bool
is_over(const run *r, const process *p)
{
    for (guint i = 0; i < r->processes->len; i++) {
        const process *other = r->processes->pdata[i];
        if (other->head.ended_ns != 0 && other->head.pid == p->head.pid &&
            strncmp(other->head.host, p->head.host, sizeof p->head.host) == 0 &&
            other->head.started_ns >= p->head.started_ns)
            return true;
    }
    return false;
}

/* Seconds that processes had processors: those that called the library, where some did, since
 * children that only begin others leave no time. INFINITY: one was killed. */
static double
cpu_most(const run *r)
{
    double seconds = 0;
    g_autoptr(GHashTable) asked = g_hash_table_new(g_direct_hash, g_direct_equal);
    for (guint i = 0; i < r->calls->len; i++) {
        const call *c = &g_array_index(r->calls, call, i);
        if (c->kind >= WATCH_KIND_NC_READ)
            (void) g_hash_table_add(asked, c->process);
    }
    for (guint i = 0; i < r->processes->len; i++) {
        process *p = r->processes->pdata[i];
        if (g_hash_table_size(asked) > 0 && !g_hash_table_contains(asked, p))
            continue;
        if (!is_over(r, p))
            return INFINITY;
        seconds += (double) (p->head.user_us + p->head.system_us) / 1e6;
    }
    return seconds > 0 ? seconds : INFINITY;
}

void
run_sum(run *r)
{
    const process *first = r->processes->pdata[0];
    r->start_ns = G_MAXUINT64;
    GHashTable *ranks = g_hash_table_new(g_direct_hash, g_direct_equal);
    for (guint i = 0; i < r->processes->len; i++) {
        const process *p = r->processes->pdata[i];
        if (p->head.started_ns < r->start_ns)
            first = p;
        r->start_ns = MIN(r->start_ns, p->head.started_ns);
        r->end_ns = MAX(r->end_ns, p->end_ns);
        r->dropped += p->head.dropped;
        r->cpu_us += p->head.user_us + p->head.system_us;
        if (p->head.rank >= 0)
            (void) g_hash_table_add(ranks, GINT_TO_POINTER(p->head.rank + 1));
    }
    r->cpu_most_s = cpu_most(r);
    r->ranks = g_hash_table_size(ranks);
    g_hash_table_destroy(ranks);
    r->command = command_of(first);
    for (guint i = 0; i < r->objects->len; i++) {
        const object *o = r->objects->pdata[i];
        if (o->kind == WATCH_FILE)
            add_file(r, o);
    }
    GHashTable *outer = g_hash_table_new(g_direct_hash, g_direct_equal);
    for (guint i = 0; i < r->calls->len && !r->engine; i++)
        add_call(r, &g_array_index(r->calls, call, i), outer);
    g_hash_table_destroy(outer);
    if (r->engine)
        spans_sum(r);
    find_patterns(r);
    run_openings(r);
    run_ranks(r);
}
