/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The statistics of a session, as one line of JSON. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/plain_locale.h"
#include "monitor/database.h"
#include "monitor/parts.h"

static void
put_counts(FILE *out, const esdm__object *object, esdm__span_kind kind, const char **separator)
{
    esdm__span_counts c;
    esdm__counts_read(&object->counts[kind], &c);
    if (c.count == 0)
        return;
    (void) fprintf(
        out,
        "%s{\"kind\":\"%s\",\"container\":%s,\"dataset\":%s,\"target\":%s,\"count\":%" PRIu64
        ",\"failed\":%" PRIu64 ",\"pieces\":%" PRIu64 ",\"bytes\":%" PRIu64
        ",\"stored_bytes\":%" PRIu64 ",\"seconds\":%.6f,\"longest_s\":%.6f,\"sizes\":[",
        *separator, esdm__span_name(kind), object->container != NULL ? object->container : "null",
        object->dataset != NULL ? object->dataset : "null",
        object->target != NULL ? object->target : "null", c.count, c.failed, c.pieces, c.bytes,
        c.stored_bytes, (double) c.ns / 1e9, (double) c.longest_ns / 1e9);
    for (size_t i = 0; i < ESDM__SPAN_SIZES; i++)
        (void) fprintf(out, "%s%" PRIu64, i > 0 ? "," : "", c.sizes[i]);
    (void) fputs("]}", out);
    *separator = ",";
}

/* What the node did while the session was open. null: not readable here. */
static void
put_node(FILE *out, const esdm__node_sample *before)
{
    esdm__node_sample now;
    double totals[ESDM__NODE_TOTALS];
    esdm__node_read(&now);
    esdm__node_totals(before, &now, totals);
    for (unsigned i = 0; i < ESDM__NODE_TOTALS; i++) {
        (void) fprintf(out, "%s\"%s\":", i == 0 ? ",\"node\":{" : ",", esdm__node_total_names[i]);
        if (totals[i] < 0)
            (void) fputs("null", out);
        else
            (void) fprintf(out, "%.3f", totals[i]);
    }
    (void) fputs("}", out);
}

void
esdm__stats_print(FILE *out, esdm__monitor *m)
{
    const char *separator = "";
    const esdm__who *who = &m->who;
    (void) fprintf(out,
                   "{\"what\":\"statistics\",\"version\":1,\"program\":%s,\"host\":\"%s\","
                   "\"pid\":%d,\"rank\":%d,\"started_ns\":%" PRIu64
                   ",\"seconds\":%.6f,\"dropped\":%" PRIu64 ",\"trace_failure\":",
                   who->program, who->host, (int) who->pid, who->rank, who->realtime_ns,
                   (double) (esdm__monitor_now_ns() - who->monotonic_ns) / 1e9,
                   esdm__monitor_dropped(m));
    const char *why = m->trace_database != NULL ? esdm__database_failure(m->trace_database) : NULL;
    if (why == NULL && m->stats_database != NULL)
        why = esdm__database_failure(m->stats_database);
    json_t *quoted = why != NULL ? json_string(why) : NULL;
    char *text = quoted != NULL ? json_dumps(quoted, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;
    int failure = m->sink != NULL ? atomic_load(&m->sink->failure) : 0;
    if (text != NULL)
        (void) fputs(text, out);
    else if (failure != 0)
        (void) fprintf(out, "\"%s\"", strerrordesc_np(failure));
    else
        (void) fputs("null", out);
    free(text);
    json_decref(quoted);
    (void) fputs(",\"spans\":[", out);
    unsigned count = atomic_load(&m->objects.count);
    for (unsigned i = 1; i < count; i++) {
        for (int kind = 0; kind < ESDM__SPAN_KINDS; kind++)
            put_counts(out, esdm__objects_get(&m->objects, i), (esdm__span_kind) kind, &separator);
    }
    (void) fprintf(out, "],\"actions\":[%s]", m->actions != NULL ? m->actions : "");
    if ((m->options.modules & ESDM__MONITOR_NODE) != 0)
        put_node(out, &m->first);
    (void) fputs("}\n", out);
}

/* A file that does not take it at once does without: nobody is to wait for statistics. */
static void
append(const char *path, const char *text, size_t bytes)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
    if (fd < 0)
        return;
    while (bytes > 0) {
        ssize_t n = write(fd, text, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        text += n;
        bytes -= (size_t) n;
    }
    (void) close(fd);
}

/* Programs that do nothing with ESDM are no news. */
bool
esdm__stats_are_empty(const esdm__monitor *m)
{
    for (int kind = 0; kind < ESDM__SPAN_KINDS; kind++) {
        esdm__span_counts c;
        esdm__monitor_total(m, (esdm__span_kind) kind, &c);
        if (c.count > 0)
            return false;
    }
    return true;
}

void
esdm__stats_write(esdm__monitor *m)
{
    if (esdm__stats_are_empty(m) || atomic_load(&m->has_stats))
        return;
    /* What a database has not taken stays beside the program. */
    const char *pattern = m->options.stats_file != NULL && m->stats_database == NULL
                              ? m->options.stats_file
                              : ESDM__MONITOR_STATS_FILE;
    char *path = esdm__monitor_file(pattern, &m->who);
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = path != NULL ? open_memstream(&text, &bytes) : NULL;
    esdm__plain_locale locale;
    if (out != NULL && esdm__plain_locale_enter(&locale, NULL) == ESDM_OK) {
        esdm__stats_print(out, m);
        esdm__plain_locale_leave(&locale);
        if (fclose(out) == 0)
            append(path, text, bytes);
    }
    free(text);
    free(path);
}
