/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The report for people; report_json.c has it as JSON. */
#include "esdm-explain/esdm-explain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ROWS        8
#define ADVICE      3
#define LEAST_SHARE 0.005 /* of the time: what took less is one of the others */
/* Waiting that is told. */
#define CLASS_SHARE 0.01 /* the same of classes of times */
#define CLASSES_S   1e-3 /* all reads, or all writes, took less: nobody asks why */

typedef enum order { BY_FILE_TIME, BY_VARIABLE_TIME } order;

static guint64
time_of(const object *o)
{
    return o->entry.read.ns + o->entry.write.ns + o->entry.other.ns;
}

static gint
by_time(gconstpointer a, gconstpointer b)
{
    guint64 x = time_of(*(const object *const *) a);
    guint64 y = time_of(*(const object *const *) b);
    return x < y ? 1 : x > y ? -1 : 0;
}

GPtrArray *
run_objects(const run *r, guint32 kind)
{
    GPtrArray *list = g_ptr_array_new();
    for (guint i = 0; i < r->objects->len; i++) {
        object *o = r->objects->pdata[i];
        if (o->kind == kind &&
            o->entry.read.calls + o->entry.write.calls + o->entry.mapped_bytes > 0)
            g_ptr_array_add(list, o);
    }
    g_ptr_array_sort(list, by_time);
    return list;
}

double
run_seconds(const run *r)
{
    return MAX(seconds_of(r->end_ns - r->start_ns), 1e-9);
}

/* ---- what it did -------------------------------------------------------------------------------
 */

static void
print_direction(const char *verb, const char *from, guint64 bytes, guint64 calls, guint64 small,
                guint64 ns)
{
    char *text = bytes_text((double) bytes);
    char *time = time_text(seconds_of(ns));
    char *rate = bytes_text((double) bytes / MAX(seconds_of(ns), 1e-9));
    if (calls == 0)
        (void) printf("  It %s nothing %s.\n", verb, from); /* small data are in the catalogue */
    else
        (void) printf("  It %s %s %s in %" G_GUINT64_FORMAT
                      " call%s, which took %s (%s/s). %.0f %% of "
                      "them moved less than 64 KiB.\n",
                      verb, text, from, calls, calls == 1 ? "" : "s", time, rate,
                      100.0 * (double) small / (double) calls);
    g_free(rate);
    g_free(time);
    g_free(text);
}

static void
print_head(const run *r)
{
    char *time = time_text(run_seconds(r));
    (void) printf("%s\n", r->command);
    if (r->ranks > 1)
        (void) printf("  %u ranks (%u processes), %s\n", r->ranks, r->processes->len, time);
    else
        (void) printf("  %u process%s, %s\n", r->processes->len, r->processes->len > 1 ? "es" : "",
                      time);
    if (r->partial)
        (void) printf("  This is a part of the run: the trace began by itself.\n");
    if (r->so_far)
        (void) printf("  This is what was done so far: the process goes on.\n");
    if (r->dropped > 0 && r->so_far)
        (void) printf("  %" G_GUINT64_FORMAT
                      " calls and requests are only counted: the last 8192 of a session are known "
                      "one by one.\n",
                      r->dropped);
    else if (r->dropped > 0 && r->engine)
        (void) printf("  %" G_GUINT64_FORMAT
                      " spans are only counted: the database did not take them in time.\n",
                      r->dropped);
    else if (r->dropped > 0)
        (void) printf("  %" G_GUINT64_FORMAT
                      " calls are only counted: there was no room for them (see "
                      "ESDM_WATCH_MB).\n",
                      r->dropped);
    g_free(time);
}

static void
print_row(const object *o)
{
    char *name = o->variable != NULL ? g_strdup_printf("%s", o->variable) : short_name(o->name);
    char *file = short_name(o->name);
    char *read = o->entry.read.calls > 0 ? bytes_text((double) o->entry.read.bytes) : g_strdup("-");
    char *written =
        o->entry.write.calls > 0 ? bytes_text((double) o->entry.write.bytes) : g_strdup("-");
    char *time = time_text(seconds_of(time_of(o)));
    char *how = NULL;
    if (o->variable != NULL) {
        guint64 calls = o->entry.read.calls + o->entry.write.calls;
        how = g_strdup_printf("%" G_GUINT64_FORMAT " call%s, in %s%s", calls, calls == 1 ? "" : "s",
                              file, o->entry.deflate >= 0 ? ", compressed" : "");
    } else if (o->kind == WATCH_MPI_FILE) {
        how = ranks_text(o);
    } else if (of_esdm(o->name) != NULL) {
        how = g_strdup_printf("ESDM's %s", of_esdm(o->name));
    } else if (of_mpi(o->name)) {
        how = g_strdup("MPI's own");
    } else {
        how = pattern_text(o->entry.read.ns >= o->entry.write.ns ? &o->reads : &o->writes);
        if (o->entry.mapped_bytes > 0 && o->entry.read.calls + o->entry.write.calls == 0) {
            g_free(how);
            how = g_strdup("mapped into memory: accesses are not seen");
        }
    }
    (void) printf("  %-45s %9s %9s %9s  %s\n", name, read, written, time, how);
    if (o->kind == WATCH_MPI_FILE)
        print_ranks(o);
    g_free(how);
    g_free(time);
    g_free(written);
    g_free(read);
    g_free(file);
    g_free(name);
}

static void
print_objects(const run *r, guint32 kind, const char *title)
{
    GPtrArray *list = run_objects(r, kind);
    if (list->len > 0)
        (void) printf("\n  %-45s %9s %9s %9s  how\n", title, "read", "written", "time");
    guint64 all = 0;
    for (guint i = 0; i < list->len; i++)
        all += time_of(list->pdata[i]);
    guint rows = 0;
    while (rows < list->len && rows < ROWS &&
           (rows == 0 || (double) time_of(list->pdata[rows]) > LEAST_SHARE * (double) all))
        print_row(list->pdata[rows++]);
    if (list->len > rows) {
        guint64 ns = 0;
        for (guint i = rows; i < list->len; i++)
            ns += time_of(list->pdata[i]);
        char *time = time_text(seconds_of(ns));
        (void) printf("  and %u %s, %s%s\n", list->len - rows,
                      list->len - rows == 1 ? "other" : "others", time,
                      list->len - rows == 1 ? "" : " together");
        g_free(time);
    }
    g_ptr_array_free(list, TRUE);
}

static void
print_spans(const run *r)
{
    double encode = 0;
    double commit = 0;
    guint64 commits = 0;
    guint64 raw = 0;
    guint64 stored = 0;
    for (guint i = 0; i < r->spans->len; i++) {
        const span_total *s = r->spans->pdata[i];
        if (g_str_equal(s->kind, "encode")) {
            encode += s->seconds;
            raw += s->bytes;
            stored += s->stored_bytes;
        } else if (g_str_equal(s->kind, "commit")) {
            commit += s->seconds;
            commits += s->count;
        }
    }
    if (raw == 0 && commit <= 0)
        return;
    char *a = bytes_text((double) raw);
    char *b = bytes_text((double) stored);
    char *c = time_text(encode);
    char *d = time_text(commit);
    /* Ranks commit together, and wait for each other there. */
    const char *together = r->ranks > 1 && commits > 1 ? " (of all ranks together)" : "";
    if (raw > 0)
        (void) printf("\n  ESDM made %s of %s (%s of all threads together), and "
                      "needed %s for %" G_GUINT64_FORMAT " commit%s%s.\n",
                      b, a, c, d, commits, commits == 1 ? "" : "s", together);
    else
        (void) printf("\n  ESDM needed %s for %" G_GUINT64_FORMAT " commit%s%s.\n", d, commits,
                      commits == 1 ? "" : "s", together);
    g_free(d);
    g_free(c);
    g_free(b);
    g_free(a);
}

/* ---- time --------------------------------------------------------------------------------------
 */

double
run_ahead_gain(const run *r)
{
    double gain = 0;
    for (guint i = 0; i < r->objects->len; i++) {
        const watch_entry *e = &((const object *) r->objects->pdata[i])->entry;
        gain += history_gain(e);
        if (e->plain_reads == 0 || e->advised_reads == 0)
            continue;
        double plain = seconds_of(e->plain_ns) / (double) e->plain_reads;
        gain +=
            plain * (double) e->advised_reads - seconds_of(e->advised_ns) - seconds_of(e->ahead_ns);
    }
    return gain;
}

static void
print_ahead(const run *r)
{
    for (guint i = 0; i < r->objects->len; i++) {
        const object *o = r->objects->pdata[i];
        const watch_entry *e = &o->entry;
        if (e->ahead_calls == 0)
            continue;
        char *name = short_name(o->name);
        char *plain = time_text(seconds_of(e->plain_ns) / MAX((double) e->plain_reads, 1));
        char *advised = time_text(seconds_of(e->advised_ns) / MAX((double) e->advised_reads, 1));
        char *cost = time_text(seconds_of(e->ahead_ns) / (double) e->ahead_calls);
        (void) printf("  Read-ahead of %s: %" G_GUINT64_FORMAT
                      " pieces were asked for early, %s each. A read "
                      "took %s with it and %s without (%" G_GUINT64_FORMAT " and %" G_GUINT64_FORMAT
                      " of them)%s.\n",
                      name, e->ahead_calls, cost, advised, plain, e->advised_reads, e->plain_reads,
                      e->ahead_stopped > 0 ? "; it did not help, and was stopped" : "");
        g_free(cost);
        g_free(advised);
        g_free(plain);
        g_free(name);
    }
    print_history(r);
    double gain = run_ahead_gain(r);
    char *time = time_text(fabs(gain));
    if (fabs(gain) > 1e-3)
        (void) printf("  Read-ahead %s about %s.\n", gain > 0 ? "saved" : "cost", time);
    g_free(time);
}

static void
print_sentences(const char *mark, const char *text)
{
    guint column = (guint) strlen(mark) + 1;
    bool fresh = false; /* a line without a word */
    char **words = g_strsplit(text, " ", -1);
    (void) printf("%s", mark);
    for (char **word = words; *word != NULL; word++) {
        guint length = (guint) g_utf8_strlen(*word, -1);
        if (column + length > 98) {
            (void) printf("\n%*s", (int) strlen(mark) + 1, "");
            column = (guint) strlen(mark) + 2;
            fresh = true;
        }
        (void) printf("%s%s", fresh ? "" : " ", *word);
        column += length + 1;
        fresh = false;
    }
    (void) printf("\n");
    g_strfreev(words);
}

static void
print_time(const run *r)
{
    time_share shares[TIME_SHARES];
    guint count = time_shares(r, shares);
    g_autofree char *waited = waiting_text(r);
    g_autofree char *closing = closing_text(r);
    (void) printf("\nWhere the time went%s\n", time_shares_of_all(r));
    for (guint i = 0; i < count; i++) {
        char *time = time_text(shares[i].seconds);
        (void) printf("  %-52s %9s %4.0f %%\n", shares[i].what, time,
                      100 * shares[i].seconds / time_of_shares(r));
        g_free(time);
    }
    if (count == 0)
        (void) printf("  Input and output took next to nothing of it.\n");
    if (closing != NULL)
        print_sentences(" ", closing);
    if (waited != NULL)
        print_sentences(" ", waited);
    print_ahead(r);
}

/* Of so little of the time nothing is to be learned; a few slow calls are chance. */
static bool
is_worth_it(const time_class *c, double all_s)
{
    return c->seconds >= CLASS_SHARE * all_s;
}

static double
class_seconds(const GPtrArray *classes)
{
    double all_s = 0;
    for (guint i = 0; i < classes->len; i++)
        all_s += ((const time_class *) classes->pdata[i])->seconds;
    return all_s;
}

static bool
has_waited(const GPtrArray *classes)
{
    double all_s = class_seconds(classes);
    for (guint i = 0; i < classes->len; i++) {
        const time_class *c = classes->pdata[i];
        if (!g_str_equal(c->cause, "page cache") && is_worth_it(c, all_s))
            return true;
    }
    return false;
}

static bool
are_told(const GPtrArray *classes, double run_s)
{
    double all_s = class_seconds(classes);
    return classes->len > 0 && (all_s >= CLASSES_S || all_s >= CLASS_SHARE * run_s);
}

static void
print_classes(const char *title, const GPtrArray *classes, double run_s)
{
    double all_s = class_seconds(classes);
    if (!are_told(classes, run_s))
        return;
    (void) printf("  %s:\n", title);
    for (guint i = 0; i < classes->len; i++) {
        const time_class *c = classes->pdata[i];
        if (!is_worth_it(c, all_s))
            continue;
        char *sum = time_text(c->seconds);
        (void) printf("    %-22s %8" G_GUINT64_FORMAT " call%s, %s: %s\n", c->cause, c->calls,
                      c->calls == 1 ? "" : "s", sum, c->because);
        g_free(sum);
    }
}

static void
print_why(const run *r)
{
    if (!are_told(r->read_classes, run_seconds(r)) && !are_told(r->write_classes, run_seconds(r)))
        return;
    char *best = time_text(r->best_s);
    char *now = time_text(seconds_of(r->read_ns));
    (void) printf("\nWhy calls took as long as they did\n");
    print_classes("Reads", r->read_classes, run_seconds(r));
    print_classes("Writes", r->write_classes, run_seconds(r));
    if (r->read_ns > 1000000 && has_waited(r->read_classes))
        (void) printf("  If memory had had everything, reading would have taken %s "
                      "instead of %s.\n",
                      best, now);
    g_free(now);
    g_free(best);
}

/* What starting and ending takes may hide the rest of shorter runs. */
#define WAIT_SHARE 0.1 /* of the run: then it is told which calls waited for storage */
#define SHORT_S    1.0

/* The class of calls that waited longest for storage; NULL: none did. */
static const time_class *
longest_wait(const GPtrArray *classes)
{
    const time_class *found = NULL;
    for (guint i = 0; i < classes->len; i++) {
        const time_class *c = classes->pdata[i];
        if (!g_str_equal(c->cause, "page cache") && !g_str_equal(c->cause, "read-ahead") &&
            (found == NULL || c->seconds > found->seconds))
            found = c;
    }
    return found;
}

/* Modules of Python, and libraries. */
static bool
is_code(const char *name)
{
    return g_str_has_suffix(name, ".pyc") || g_str_has_suffix(name, ".py") ||
           g_str_has_suffix(name, ".so") || strstr(name, ".so.") != NULL ||
           strstr(name, "/site-packages/") != NULL || strstr(name, "/dist-packages/") != NULL;
}

/* When most of a wait for reads was for the program itself; "": it was not. Owned. */
static char *
code_text(const run *r, double waited_s)
{
    double seconds = 0;
    guint files = 0;
    for (guint i = 0; i < r->objects->len; i++) {
        const object *o = r->objects->pdata[i];
        if (o->kind == WATCH_FILE && o->entry.read.calls > 0 && is_code(o->name)) {
            seconds += seconds_of(o->entry.read.ns);
            files++;
        }
    }
    if (seconds < 0.5 * waited_s)
        return g_strdup("");
    g_autofree char *time = time_text(seconds);
    return g_strdup_printf(
        " Most of it was no data: reading %u file%s of the program's own code (modules of Python, "
        "libraries) took %s. The next run on this node mostly finds them in memory; for many nodes "
        "keep the environment on local disks, or in one file (an image).",
        files, files == 1 ? "" : "s", time);
}

/* Where calls are as they should be it is the storage that takes the time: that is told, too. */
static void
print_wait(const run *r)
{
    const time_class *in = longest_wait(r->read_classes), *out = longest_wait(r->write_classes);
    bool writes = out != NULL && (in == NULL || out->seconds > in->seconds);
    const time_class *c = writes ? out : in;
    if (c == NULL || c->seconds < WAIT_SHARE * run_seconds(r))
        return;
    g_autofree char *time = time_text(c->seconds);
    g_autofree char *code = writes ? g_strdup("") : code_text(r, c->seconds);
    g_autofree char *text = g_strdup_printf(
        "What took longest was storage itself: %" G_GUINT64_FORMAT " call%s that %s waited %s "
        "together, %.0f %% of the run (%s).%s",
        c->calls, c->calls == 1 ? "" : "s", writes ? "write" : "read", time,
        100 * c->seconds / run_seconds(r), c->cause,
        code[0] != '\0' ? code
                        : " Fewer bytes (compression, fewer digits, only what is needed) or "
                          "faster storage shorten that; other calls do not.");
    print_sentences(" ", text);
}

static void
print_advice(const run *r)
{
    double io = seconds_of(r->read_ns + r->write_ns + r->sync_ns + r->meta_ns + r->library_ns);
    double gains = 0;
    (void) printf("\nWhat would help most\n");
    if (r->advice->len == 0) {
        char *time = time_text(io);
        (void) printf("  Nothing that is worth it: input and output took %s%s, %.0f %% of the run, "
                      "and none of it "
                      "looks wasteful.\n",
                      time, r->ranks > 1 ? " of all ranks together" : "",
                      100 * io / time_of_shares(r));
        g_free(time);
        print_wait(r);
        if (run_seconds(r) < SHORT_S)
            (void) printf("  The run is too short to tell what long ones wait for: take one with "
                          "more steps or data.\n");
    }
    for (guint i = 0; i < r->advice->len && i < ADVICE; i++) {
        const advice *a = r->advice->pdata[i];
        char *gain = time_text(a->gain_s);
        char *text = g_strdup_printf("%s Could save up to %s.", a->text, gain);
        char mark[8];
        (void) g_snprintf(mark, sizeof mark, "  %u.", i + 1);
        print_sentences(mark, text);
        g_free(text);
        g_free(gain);
        gains += a->gain_s;
    }
    if (gains > io)
        print_sentences(" ", "Each of these is counted by itself: who follows one has less to gain "
                             "by the others.");
}

void
print_report(const run *r)
{
    print_head(r);
    (void) printf("\nWhat it did\n");
    print_direction("read", r->engine ? "from targets" : "from files", r->read_bytes, r->read_calls,
                    r->small_reads, r->read_ns);
    print_direction("wrote", r->engine ? "to targets" : "to files", r->write_bytes, r->write_calls,
                    r->small_writes, r->write_ns);
    print_objects(r, WATCH_FILE, r->engine ? "target" : "file");
    print_objects(r, WATCH_MPI_FILE, "file by MPI");
    print_objects(r, WATCH_VARIABLE, "variable");
    print_spans(r);
    print_time(r);
    print_earlier(r);
    print_unusual(r);
    print_actions(r);
    print_why(r);
    print_advice(r);
}
