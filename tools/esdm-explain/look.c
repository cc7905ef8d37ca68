/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Looks at a run of plain files while it is under way, in a process of its own that esdm-run
 * starts: four times a second at the counters that libesdm-watch.so leaves in memory. When calls
 * took much longer than in earlier runs of the program, a part of the run begins to be noted, and
 * ends as the site's rule for "files" says; then its calls, and the last ones before it, are
 * written as a trace beside the site's runs. What was unusual lies in the run's folder for the
 * report. Nobody waits for this.
 */
#include "esdm-explain/esdm-explain.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "esdm/monitor.h"

#define LOOK_MS      250
#define FIRST_LOOK_S 0.3 /* esdm-run begins this 0.7 s after the program */
#define CALLS_LEAST  4   /* of a window, unless that is long */
#define LONGEST_S    10.0
#define USUAL_AGAIN  8 /* windows */
#define YOUNG_NS     G_GUINT64_CONSTANT(1000000000)
#define SAID_S       2   /* after that nobody listens: who reads standard error is not held up */
#define LOST_S       0.1 /* less is not worth it */
#define LEAST_S      0.001
#define OLD_S        10  /* ranks of a run begin within so many seconds */
#define WORST_TIMES  1.5 /* so much slower than the slowest window of a usual run */
#define CALL_BYTES   380 /* of a line of the trace, about */

/* A file of records, mapped as far as it goes. */
typedef struct source {
    char *path;
    const char *bytes;
    gsize size;
    guint64 ns;        /* in calls of files, so far */
    bool noted;        /* when it began */
    bool of_other_run; /* or of another node, whose clock is not ours */
    bool settled;      /* it has ended, and its counters are in `ended` */
} source;

/* Calls of all processes that read, or write. */
typedef struct way {
    const char *kind; /* KIND_READ, KIND_WRITE */
    watch_counts now, begin;
    double begin_s;
    tool_usual call, byte; /* seconds of earlier runs */
    double worst;          /* of the slowest window of a usual run; 0: not known */
    double worst_now;      /* of this run */
    bool told;             /* it has not been as usual since */
    guint usual;           /* windows in a row that were */
} way;

typedef struct looker {
    const char *folder;
    guint64 begun_ns;
    esdm_files_rule rule;
    GPtrArray *sources;
    GHashTable *names;                 /* of sources, as set */
    GHashTable *last;                  /* when the last program of each process began */
    guint64 pids;                      /* the namespace of our number; 0: not known */
    source *longest;                   /* in calls; borrowed */
    watch_counts ended[2], removed[2]; /* of sources that were settled; of those whose file went */
    guint64 ended_records, removed_began_ns;
    way ways[2];
    char *program; /* whose earlier runs are read; NULL: none yet */
    guint64 used;  /* traces */
    json_t *what;  /* what began detailed monitoring; NULL: nothing is under way */
    guint64 begin_ns, records;
    json_t *all; /* what has ended */
} looker;

static guint64
now_ns(void)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (guint64) now.tv_sec * 1000000000u + (guint64) now.tv_nsec;
}

/* ---- counters ---------------------------------------------------------------------------------
 */

static void
map_source(source *s)
{
    struct stat st;
    int fd = open(s->path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && (gsize) st.st_size > s->size) {
        void *more = mmap(NULL, (gsize) st.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (more != MAP_FAILED) {
            if (s->bytes != NULL)
                (void) munmap((void *) (guintptr) s->bytes, s->size);
            s->bytes = more;
            s->size = (gsize) st.st_size;
        }
    }
    if (fd >= 0)
        (void) close(fd);
}

static const watch_head *
head_of(const source *s)
{
    const watch_head *head = (const watch_head *) s->bytes;
    if (head == NULL || s->size < WATCH_WINDOW || head->magic != WATCH_MAGIC)
        return NULL;
    return s->of_other_run ? NULL : head;
}

static bool
is_of_other_run(const looker *l, const watch_head *head)
{
    if (head->ring >
        0) /* in memory of this node, in a folder of this run; a container may have another name */
        return false;
    return strncmp(head->host, g_get_host_name(), sizeof head->host - 1) != 0 ||
           ((head->ended_ns != 0 && head->ended_ns < l->begun_ns) ||
            head->started_ns + OLD_S * G_GUINT64_CONSTANT(1000000000) < l->begun_ns);
}

/* Names that are known are not looked at again. */
static void
find_sources(looker *l)
{
    GDir *dir = g_dir_open(l->folder, 0, NULL);
    const char *name;
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        if (!g_str_has_suffix(name, ".watch") || g_hash_table_contains(l->names, name))
            continue;
        source *s = g_new0(source, 1);
        s->path = g_build_filename(l->folder, name, NULL);
        map_source(s);
        const watch_head *head = head_of(s);
        s->of_other_run = head != NULL && is_of_other_run(l, head);
        (void) g_hash_table_add(l->names, g_strdup(name));
        g_ptr_array_add(l->sources, s);
    }
    if (dir != NULL)
        g_dir_close(dir);
}

static void
add(watch_counts *sum, const watch_counts *c)
{
    sum->calls += __atomic_load_n(&c->calls, __ATOMIC_RELAXED);
    sum->bytes += __atomic_load_n(&c->bytes, __ATOMIC_RELAXED);
    sum->ns += __atomic_load_n(&c->ns, __ATOMIC_RELAXED);
}

/* Of files alone, as the record of a run has it. @param sums reads, writes */
static void
add_windows(watch_counts *sums, const source *s)
{
    for (gsize at = WATCH_WINDOW; at + WATCH_WINDOW <= s->size; at += WATCH_WINDOW) {
        const watch_window *w = (const watch_window *) (s->bytes + at);
        const watch_entry *e = (const watch_entry *) (w + 1);
        if (w->kind != WATCH_ENTRIES)
            continue;
        for (gsize i = 0; i < (WATCH_WINDOW - sizeof *w) / sizeof *e; i++, e++) {
            if (__atomic_load_n(&e->kind, __ATOMIC_ACQUIRE) != WATCH_FILE)
                continue;
            add(&sums[0], &e->read);
            add(&sums[1], &e->write);
        }
    }
}

/* A program that a process began by exec() ends the one before, which cannot say so. */
static guint64 *
last_of(const looker *l, const watch_head *head)
{
    const gint64 key = (gint64) (head->pids << 32 | (guint32) head->pid);
    guint64 *last = g_hash_table_lookup(l->last, &key);
    if (last == NULL) {
        last = g_new0(guint64, 1);
        g_hash_table_insert(l->last, g_memdup2(&key, sizeof key), last);
    }
    return last;
}

/* Numbers of processes of another namespace, a container's, are not ours to ask for: such a process
 * is there until it says that it ends. */
static bool
is_gone(const looker *l, const watch_head *head)
{
    return head->pids == l->pids && kill(head->pid, 0) != 0 && errno == ESRCH;
}

static void
note_beginnings(const looker *l)
{
    for (guint i = 0; i < l->sources->len; i++) {
        source *s = l->sources->pdata[i];
        const watch_head *head = s->noted ? NULL : head_of(s);
        if (head == NULL)
            continue;
        guint64 *last = last_of(l, head);
        *last = MAX(*last, head->started_ns);
        s->noted = true;
    }
}

/* It ended, or was killed, or is another program now; a while ago, so that calls which give the
 * alarm are there for the trace. */
static bool
is_over(const looker *l, const watch_head *head)
{
    guint64 ended_ns = __atomic_load_n(&head->ended_ns, __ATOMIC_ACQUIRE);
    if (ended_ns != 0)
        return ended_ns + YOUNG_NS < now_ns();
    return *last_of(l, head) > head->started_ns || is_gone(l, head);
}

/* Of what keeps its last calls alone the file goes, too: memory of the node. */
static void
settle(looker *l, source *s, const watch_head *head, const watch_counts *sums)
{
    bool remove = head->ring > 0;
    for (guint k = 0; k < 2; k++) {
        add(&l->ended[k], &sums[k]);
        if (remove)
            add(&l->removed[k], &sums[k]);
    }
    l->ended_records += head->records;
    if (remove && (l->removed_began_ns == 0 || head->started_realtime_ns < l->removed_began_ns))
        l->removed_began_ns = head->started_realtime_ns;
    if (remove) {
        const char *name = strrchr(s->path, '/');
        (void) unlink(s->path);
        (void) g_hash_table_remove(l->names, name != NULL ? name + 1 : s->path);
    }
    (void) munmap((void *) (guintptr) s->bytes, s->size);
    s->bytes = NULL;
    s->settled = true;
}

static void
free_source(gpointer data)
{
    source *s = data;
    if (s->bytes != NULL)
        (void) munmap((void *) (guintptr) s->bytes, s->size);
    g_free(s->path);
    g_free(s);
}

/* The longest one stays, under whose name the run will be recorded.
 * @return calls that were noted so far. */
static guint64
count(looker *l, bool last)
{
    guint64 records = 0;
    watch_counts now[2] = {{0}};
    note_beginnings(l);
    for (guint i = 0; i < l->sources->len; i++) {
        source *s = l->sources->pdata[i];
        const watch_head *head = head_of(s);
        bool over = head != NULL && is_over(l, head);
        if (!s->of_other_run)
            map_source(s);
        head = head_of(s);
        if (head == NULL)
            continue;
        watch_counts sums[2] = {{0}};
        add_windows(sums, s);
        s->ns = sums[0].ns + sums[1].ns;
        if (l->longest == NULL || s->ns > l->longest->ns)
            l->longest = s;
        if (over && !last && l->what == NULL && s != l->longest) {
            settle(l, s, head, sums);
            continue;
        }
        add(&now[0], &sums[0]);
        add(&now[1], &sums[1]);
        records += __atomic_load_n(&head->records, __ATOMIC_RELAXED);
    }
    for (guint k = 0; k < 2; k++) {
        add(&now[k], &l->ended[k]);
        l->ways[k].now = now[k];
    }
    for (guint i = l->sources->len; i-- > 0;) {
        if (((source *) l->sources->pdata[i])->settled)
            (void) g_ptr_array_remove_index_fast(l->sources, i);
    }
    return records + l->ended_records;
}

/* ---- what is usual ----------------------------------------------------------------------------
 */

static tool_usual
usual_of(const GPtrArray *runs, const char *kind, bool by_call)
{
    g_autoptr(GArray) values = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < runs->len; i++) {
        const tool_run *one = runs->pdata[i];
        tool_moved moved = tool_run_moved(one, kind, NULL);
        double each = by_call ? moved.count : moved.bytes;
        if (moved.seconds >= LEAST_S && each >= 1) {
            double value = moved.seconds / each;
            g_array_append_val(values, value);
        }
    }
    return tool_usual_of(values);
}

/* Within a run calls differ as well: by the slowest window of usual ones. */
static double
worst_of(const GPtrArray *runs, const char *kind)
{
    g_autoptr(GArray) values = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < runs->len; i++) {
        size_t k;
        const json_t *s;
        json_array_foreach(json_object_get(((const tool_run *) runs->pdata[i])->line, "spans"), k,
                           s)
        {
            double times = json_number_value(json_object_get(s, LOOK_WORST));
            if (g_strcmp0(json_string_value(json_object_get(s, "kind")), kind) == 0 && times > 0 &&
                times < 1e6)
                g_array_append_val(values, times);
        }
    }
    return values->len > 0 ? tool_usual_of(values).middle : 0;
}

/* The last ones of this user, as sessions count them (src/monitor/usual.c). */
static void
read_usual(looker *l)
{
    g_autoptr(GPtrArray) runs = tool_runs(l->program, NULL);
    g_autoptr(GPtrArray) own = g_ptr_array_new();
    for (guint i = runs != NULL ? runs->len : 0; i-- > 0 && own->len < 50;) {
        const tool_run *one = runs->pdata[i];
        if (one->user == geteuid() && json_is_string(json_object_get(one->line, "by")))
            g_ptr_array_add(own, (gpointer) one);
    }
    for (guint i = 0; i < 2; i++) {
        way *w = &l->ways[i];
        w->call = usual_of(own, w->kind, true);
        w->byte = usual_of(own, w->kind, false);
        w->worst = worst_of(own, w->kind);
    }
}

/* The program under which the run will be recorded: the one that is longest in calls. */
static void
find_program(looker *l)
{
    const watch_head *found = l->longest != NULL ? head_of(l->longest) : NULL;
    if (found == NULL)
        return;
    g_autofree char *name = program_name(found);
    if (g_strcmp0(name, l->program) == 0)
        return;
    g_free(l->program);
    l->program = g_steal_pointer(&name);
    read_usual(l);
}

/* Has processes that keep their last calls alone keep all, or no longer. */
static void
keep_calls(const looker *l, bool keep)
{
    for (guint i = 0; i < l->sources->len; i++) {
        const source *s = l->sources->pdata[i];
        const watch_head *seen = head_of(s);
        int fd = seen != NULL && seen->ring > 0 && (seen->keep != 0) != keep
                     ? open(s->path, O_RDWR | O_CLOEXEC)
                     : -1;
        if (fd < 0)
            continue;
        watch_head *head = mmap(NULL, WATCH_WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        (void) close(fd);
        if (head == MAP_FAILED)
            continue;
        __atomic_store_n(&head->keep, keep, __ATOMIC_RELEASE);
        (void) munmap(head, WATCH_WINDOW);
    }
}

/* ---- beginning and ending ---------------------------------------------------------------------
 */

static json_t *
describe(const looker *l, const way *w, double calls, double seconds, double usual_s)
{
    g_autofree char *took = time_text(seconds / calls);
    g_autofree char *usual = time_text(usual_s / calls);
    g_autofree char *because = g_strdup_printf(
        "calls that %s files took %s each, %.1f times as long as in earlier runs of this program "
        "(%s)",
        w == &l->ways[0] ? "read" : "write", took, seconds / usual_s, usual);
    g_autoptr(GDateTime) now = g_date_time_new_now_local();
    g_autofree char *at = g_date_time_format(now, "%Y-%m-%d %H:%M:%S");
    return json_pack("{s:I,s:s,s:s,s:f,s:b,s:s,s:n,s:f,s:f,s:s,s:I}", "at_ns",
                     (json_int_t) g_get_real_time() * 1000, "at", at, "because", because, "times",
                     seconds / usual_s, "last_run", 0, "of", w->kind, "target", "seconds",
                     seconds / calls, "usual_s", usual_s / calls, "by", "earlier runs", "for_s",
                     (json_int_t) l->rule.for_s);
}

static void
begin(looker *l, json_t *what, guint64 records)
{
    l->what = what;
    l->used++;
    l->begin_ns = now_ns();
    l->records = records;
    keep_calls(l, true);
}

static void
end(looker *l, const char *why)
{
    if (l->what == NULL)
        return;
    guint64 end_ns = now_ns();
    (void) json_object_set_new(l->what, "lasted_s", json_real(seconds_of(end_ns - l->begin_ns)));
    (void) json_object_set_new(l->what, "ended", json_string(why));
    look_trace(l->folder, l->program, l->begin_ns, end_ns, l->what);
    keep_calls(l, false);
    tool_json_append(l->all, l->what);
    l->what = NULL;
}

/* ---- looking ----------------------------------------------------------------------------------
 */

static double
most(const tool_usual *u, double factor)
{
    return MAX(factor * u->middle, u->high + 1.5 * (u->high - u->low));
}

static void
look_at(looker *l, way *w, double at_s, guint64 records)
{
    double calls = (double) (w->now.calls - w->begin.calls);
    double bytes = (double) (w->now.bytes - w->begin.bytes);
    double seconds = seconds_of(w->now.ns - w->begin.ns);
    double lasted_s = at_s - w->begin_s;
    if (calls < 1 || lasted_s < LOOK_MS / 1e3 || (calls < CALLS_LEAST && lasted_s < LONGEST_S))
        return;
    w->begin = w->now;
    w->begin_s = at_s;
    if (w->call.count < TOOL_RUNS_LEAST || w->byte.count < TOOL_RUNS_LEAST)
        return;
    double usual_s = MAX(calls * w->call.middle, bytes * w->byte.middle);
    double most_s =
        MAX(calls * most(&w->call, l->rule.slower), bytes * most(&w->byte, l->rule.slower));
    if (seconds - usual_s >= LOST_S)
        w->worst_now = MAX(w->worst_now, seconds / usual_s);
    bool slow = seconds > most_s && seconds - usual_s >= LOST_S &&
                seconds > WORST_TIMES * w->worst * usual_s;
    w->usual = !slow && seconds * seconds <= usual_s * most_s ? w->usual + 1 : 0;
    if (w->usual >= USUAL_AGAIN)
        w->told = false;
    if (!slow || w->told || l->what != NULL || l->used >= l->rule.times)
        return;
    w->told = true;
    begin(l, describe(l, w, calls, seconds, usual_s), records);
}

static void
look(looker *l)
{
    double at_s = seconds_of(now_ns() - l->begun_ns);
    find_sources(l);
    guint64 records = count(l, false);
    if (at_s < FIRST_LOOK_S)
        return;
    if (l->what != NULL && seconds_of(now_ns() - l->begin_ns) >= (double) l->rule.for_s)
        end(l, "its time was over");
    else if (l->what != NULL && (records - l->records) * CALL_BYTES >= l->rule.bytes)
        end(l, "the trace was large enough");
    if (l->what != NULL)
        keep_calls(l, true); /* of processes that have begun meanwhile */
    find_program(l);
    look_at(l, &l->ways[0], at_s, records);
    look_at(l, &l->ways[1], at_s, records);
}

/* ---- the end ----------------------------------------------------------------------------------
 */

/* As statistics, which are read with the records; by another name until it is whole. */
static void
leave_for_report(const looker *l)
{
    json_t *actions = json_array(), *worst = json_object();
    size_t i;
    json_t *one;
    json_array_foreach(l->all, i, one)
    {
        json_t *a = json_deep_copy(one);
        (void) json_object_set_new(a, "action", json_string("detailed monitoring"));
        (void) json_object_set(a, "requests", json_object_get(one, "spans"));
        tool_json_append(actions, a);
    }
    for (guint k = 0; k < 2; k++) {
        if (l->ways[k].worst_now > 0)
            (void) json_object_set_new(worst, l->ways[k].kind, json_real(l->ways[k].worst_now));
    }
    json_t *line = json_pack("{s:s,s:[],s:o,s:o}", "what", "statistics", "spans", "actions",
                             actions, LOOK_WORST, worst);
    for (guint k = 0; k < 2; k++) {
        const watch_counts *c = &l->removed[k];
        (void) json_object_set_new(line, k == 0 ? LOOK_READ : LOOK_WRITTEN,
                                   json_pack("{s:I,s:I,s:I}", "calls", (json_int_t) c->calls,
                                             "bytes", (json_int_t) c->bytes, "ns",
                                             (json_int_t) c->ns));
    }
    (void) json_object_set_new(line, LOOK_BEGAN, json_integer((json_int_t) l->removed_began_ns));
    char *text = json_dumps(line, JSON_COMPACT | JSON_ENSURE_ASCII);
    g_autofree char *path = g_build_filename(l->folder, "looker.stats.json", NULL);
    if (text != NULL)
        (void) g_file_set_contents(path, text, -1, NULL);
    free(text);
    json_decref(line);
}

static int nothing = -1;

static void
fall_silent(int number)
{
    (void) number;
    (void) dup2(nothing, STDOUT_FILENO);
    (void) dup2(nothing, STDERR_FILENO);
}

tool_exit
look_wanted(void)
{
    esdm_files_rule rule;
    esdm_error err = {0};
    return esdm_runs_rule(tool.config, &rule, &err) == ESDM_OK ? TOOL_OK : TOOL_NOT_FOUND;
}

tool_exit
look_run(const char *folder, bool tells)
{
    esdm_error err = {0};
    looker l = {.folder = folder,
                .begun_ns = now_ns(),
                .ways = {{.kind = KIND_READ}, {.kind = KIND_WRITE}},
                .sources = g_ptr_array_new_with_free_func(free_source),
                .names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                .last = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free),
                .all = json_array()};
    struct stat own;
    if (stat("/proc/self/ns/pid", &own) == 0)
        l.pids = (guint64) own.st_ino;
    if (esdm_runs_rule(tool.config, &l.rule, &err) != ESDM_OK)
        return TOOL_OK; /* most users have a site that keeps no runs, or none */
    struct pollfd over = {.fd = STDIN_FILENO}; /* esdm-run closes it */
    for (int n; (n = poll(&over, 1, LOOK_MS)) <= 0;) {
        if (n == 0)
            look(&l);
        else if (errno != EINTR)
            break;
    }
    find_sources(&l);
    (void) count(&l, true);
    nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    (void) signal(SIGALRM, fall_silent);
    (void) alarm(SAID_S);
    end(&l, "the program ended");
    leave_for_report(&l);
    if (tells)
        print_told(l.all);
    return TOOL_OK;
}
