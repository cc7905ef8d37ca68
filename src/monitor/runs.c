/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What a session did, as a line of the site's runs. */
#include "monitor/runs.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/plain_locale.h"
#include "base/program.h"
#include "base/thread.h"
#include "esdm/text.h"
#include "monitor/parts.h"

#define WAIT_NS      UINT64_C(1000000000)
#define UNUSUAL_MOST 8u

/* ---- the line ------------------------------------------------------------------------------- */

/* Numbers of one kind and target, of all containers. */
typedef struct sum {
    const char *target; /* borrowed; NULL: none */
    esdm__span_kind kind;
    esdm__span_counts counts;
} sum;

typedef struct sums {
    sum *list;
    size_t count;
    size_t room;
} sums;

static sum *
sum_of(sums *all, const char *target, esdm__span_kind kind)
{
    for (size_t i = 0; i < all->count; i++) {
        const char *other = all->list[i].target;
        bool same = other == NULL || target == NULL ? other == target : strcmp(other, target) == 0;
        if (all->list[i].kind == kind && same)
            return &all->list[i];
    }
    if (all->count == all->room) {
        size_t room = all->room > 0 ? 2 * all->room : 32;
        sum *more = reallocarray(all->list, room, sizeof *more);
        if (more == NULL)
            return NULL;
        all->list = more;
        all->room = room;
    }
    sum *new = &all->list[all->count++];
    *new = (sum){.target = target, .kind = kind};
    return new;
}

static void
add_counts(esdm__span_counts *to, const esdm__span_counts *c)
{
    to->count += c->count;
    to->failed += c->failed;
    to->pieces += c->pieces;
    to->bytes += c->bytes;
    to->stored_bytes += c->stored_bytes;
    to->ns += c->ns;
    to->longest_ns = c->longest_ns > to->longest_ns ? c->longest_ns : to->longest_ns;
    for (size_t i = 0; i < ESDM__SPAN_SIZES; i++)
        to->sizes[i] += c->sizes[i];
}

static json_t *
counts_json(const char *kind, const char *container, const char *dataset, const char *target,
            const esdm__span_counts *c)
{
    json_t *sizes = json_array();
    for (size_t i = 0; i < ESDM__SPAN_SIZES; i++)
        (void) json_array_append_new(sizes, json_integer((json_int_t) c->sizes[i]));
    return json_pack("{s:s,s:s?,s:s?,s:s?,s:I,s:I,s:I,s:I,s:I,s:f,s:f,s:o}", "kind", kind,
                     "container", container, "dataset", dataset, "target", target, "count",
                     (json_int_t) c->count, "failed", (json_int_t) c->failed, "pieces",
                     (json_int_t) c->pieces, "bytes", (json_int_t) c->bytes, "stored_bytes",
                     (json_int_t) c->stored_bytes, "seconds", (double) c->ns / 1e9, "longest_s",
                     (double) c->longest_ns / 1e9, "sizes", sizes);
}

typedef void (*counts_visitor)(const esdm__object *object, esdm__span_kind kind,
                               const esdm__span_counts *counts, void *user);

/* Visits what was counted. */
static void
for_each_count(esdm__monitor *m, counts_visitor visit, void *user)
{
    unsigned count = atomic_load(&m->objects.count);
    for (unsigned i = 1; i < count; i++) {
        const esdm__object *o = esdm__objects_get(&m->objects, i);
        for (int kind = 0; kind < ESDM__SPAN_KINDS; kind++) {
            esdm__span_counts c;
            esdm__counts_read(&o->counts[kind], &c);
            if (c.count > 0)
                visit(o, (esdm__span_kind) kind, &c, user);
        }
    }
}

static void
add_to_sums(const esdm__object *object, esdm__span_kind kind, const esdm__span_counts *counts,
            void *user)
{
    sum *to = sum_of(user, object->plain[2], kind);
    if (to != NULL)
        add_counts(&to->counts, counts);
}

static json_t *
sums_json(esdm__monitor *m)
{
    sums all = {0};
    json_t *list = json_array();
    for_each_count(m, add_to_sums, &all);
    for (size_t i = 0; i < all.count; i++)
        (void) json_array_append_new(list,
                                     counts_json(esdm__span_name(all.list[i].kind), NULL, NULL,
                                                 all.list[i].target, &all.list[i].counts));
    free(all.list);
    return list;
}

static void
add_named(const esdm__object *object, esdm__span_kind kind, const esdm__span_counts *counts,
          void *user)
{
    (void) json_array_append_new(user, counts_json(esdm__span_name(kind), object->plain[0],
                                                   object->plain[1], object->plain[2], counts));
}

static json_t *
named_json(esdm__monitor *m)
{
    json_t *list = json_array();
    for_each_count(m, add_named, list);
    return list;
}

/* What began detailed monitoring, the first of it. */
static json_t *
unusual_json(esdm__monitor *m)
{
    char *all = NULL;
    (void) pthread_mutex_lock(&m->lock);
    int n = asprintf(&all, "[%s]", m->unusual != NULL ? m->unusual : "");
    (void) pthread_mutex_unlock(&m->lock);
    json_t *list = n >= 0 ? esdm__json_read(all) : NULL;
    if (n >= 0)
        free(all);
    while (json_array_size(list) > UNUSUAL_MOST)
        (void) json_array_remove(list, json_array_size(list) - 1);
    return list;
}

/* Owned; NULL: no memory. @param program without folders. */
static char *
line_of(esdm__monitor *m, const char *program, bool names, bool unusual)
{
    const esdm__who *who = &m->who;
    double seconds = (double) (esdm__monitor_now_ns() - who->monotonic_ns) / 1e9;
    json_t *line =
        json_pack("{s:s,s:i,s:s,s:s,s:s,s:i,s:i,s:I,s:f,s:o}", "what", "statistics", "version", 1,
                  "program", program, "job", who->job, "host", who->host, "pid", (int) who->pid,
                  "rank", who->rank, "started_ns", (json_int_t) who->realtime_ns, "seconds",
                  seconds, "spans", names ? named_json(m) : sums_json(m));
    json_t *what = unusual ? unusual_json(m) : NULL;
    if (line != NULL && json_array_size(what) > 0)
        (void) json_object_set(line, "unusual", what);
    json_decref(what);
    char *text = line != NULL
                     ? json_dumps(line, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9))
                     : NULL;
    json_decref(line);
    if (text != NULL && (names || unusual) && strlen(text) >= ESDM__RUNS_LINE) { /* too much */
        free(text);
        return line_of(m, program, false, unusual && names);
    }
    return text;
}

/* ---- keeping it ----------------------------------------------------------------------------- */

typedef struct parcel {
    char *folder; /* owned, so the next two */
    char *program;
    char *line;
} parcel;

static void
parcel_free(parcel *p)
{
    free(p->folder);
    free(p->program);
    free(p->line);
    free(p);
}

static void *
deliver(void *argument)
{
    parcel *p = argument;
    (void) !esdm__runs_add(p->folder, p->program, p->line, NULL);
    parcel_free(p);
    return NULL;
}

/* Tools that list, and programs that only look, are no runs. Of a job the first rank alone. */
static bool
is_a_run(const esdm__monitor *m)
{
    esdm__span_counts reads, writes;
    esdm__monitor_total(m, ESDM__SPAN_READ, &reads);
    esdm__monitor_total(m, ESDM__SPAN_WRITE, &writes);
    return m->who.rank <= 0 && reads.bytes + writes.bytes > 0 && geteuid() == getuid();
}

char *
esdm__runs_program(void)
{
    char printable[200];
    char *name = esdm__program_name(false);
    if (name == NULL)
        return NULL;
    (void) esdm_text_printable(name, printable, sizeof printable);
    free(name);
    return strdup(printable);
}

void
esdm__runs_write(esdm__monitor *m)
{
    esdm__plain_locale locale;
    if (!is_a_run(m) || esdm__plain_locale_enter(&locale, NULL) != ESDM_OK)
        return;
    parcel *p = calloc(1, sizeof *p);
    if (p != NULL) {
        p->program = esdm__runs_program();
        p->folder = strdup(m->options.runs);
        p->line = p->program != NULL ? line_of(m, p->program, m->options.runs_names, true) : NULL;
    }
    esdm__plain_locale_leave(&locale);
    pthread_t thread;
    if (p == NULL || p->folder == NULL || p->line == NULL ||
        !esdm__thread_start(&thread, NULL, deliver, p)) {
        if (p != NULL)
            parcel_free(p);
        return;
    }
    const struct timespec until = esdm__deadline(CLOCK_REALTIME, WAIT_NS);
    if (pthread_timedjoin_np(thread, NULL, &until) != 0)
        (void) pthread_detach(thread);
}
