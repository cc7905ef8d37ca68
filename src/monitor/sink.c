/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * A trace file: JSON Lines, or what Chrome and Perfetto call trace events. Whole lines are
 * appended, so that several processes can write to one file, and what a killed one has written can
 * be read: the list of trace events may lack its end.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "monitor/database.h"
#include "monitor/parts.h"
#include "monitor/text.h"

#define POLL_MS 100
_Static_assert(ESDM__NUMBER_BYTES == 21u, "as in ESDM__LINE_BYTES");

/* Waits until the file takes something; false: it need not, any more. */
static bool
wait_for(int fd, const atomic_bool *give_up)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    while (!atomic_load(give_up)) {
        if (poll(&ready, 1, POLL_MS) > 0)
            return true;
    }
    return false;
}

static bool
write_all(esdm__sink *sink, const char *text, size_t bytes, const atomic_bool *give_up)
{
    while (bytes > 0) {
        ssize_t n = write(sink->fd, text, bytes);
        if (n > 0) {
            text += n;
            bytes -= (size_t) n;
        } else if (n < 0 && errno == EAGAIN) {
            if (!wait_for(sink->fd, give_up))
                return false;
        } else if (n == 0 || errno != EINTR) {
            atomic_store(&sink->failure, n == 0 ? EIO : errno);
            return false;
        }
    }
    return true;
}

bool
esdm__sink_flush(esdm__sink *sink, const atomic_bool *give_up)
{
    size_t bytes = sink->used;
    uint32_t lines = sink->lines;
    if (sink->database != NULL)
        esdm__database_flush(sink->database, false, give_up);
    sink->used = 0;
    sink->lines = 0;
    if (bytes == 0)
        return true;
    if (sink->cut)
        sink->cut = !write_all(sink, "\n", 1, give_up);
    sink->bytes += bytes;
    if (sink->cut || !write_all(sink, sink->text, bytes, give_up)) {
        sink->cut = true; /* some of it may be there */
        sink->lost += lines;
        return false;
    }
    return true;
}

/* The first line of this process. */
static void
put_head(esdm__sink *sink, bool fresh)
{
    const esdm__who *who = sink->who;
    int n = 0;
    if (sink->chrome)
        n = snprintf(
            sink->text, sizeof sink->text,
            "%s{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":%s}},\n",
            fresh ? "[\n" : "", (int) who->pid, who->program);
    else
        n = snprintf(
            sink->text, sizeof sink->text,
            "{\"what\":\"process\",\"version\":1,\"program\":%s,\"host\":\"%s\",\"pid\":%d,"
            "\"rank\":%d,\"realtime_ns\":%" PRIu64 ",\"monotonic_ns\":%" PRIu64 "}\n",
            who->program, who->host, (int) who->pid, who->rank, who->realtime_ns,
            who->monotonic_ns);
    sink->used = n > 0 ? (size_t) n : 0;
}

/* Never waits for a reader. */
static void
open_now(esdm__sink *sink)
{
    int flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    int fd = open(sink->path, flags | O_CREAT | O_EXCL, 0666);
    bool fresh = fd >= 0;
    if (!fresh && errno == EEXIST)
        fd = open(sink->path, flags);
    sink->opened = true;
    atomic_store(&sink->failure, fd < 0 ? errno : 0);
    sink->fd = esdm__descriptor_keep(fd);
    struct stat st;
    fresh |= sink->fd >= 0 && fstat(sink->fd, &st) == 0 && st.st_size == 0;
    if (sink->fd < 0)
        return;
    put_head(sink, fresh);
}

__attribute__((format(printf, 3, 4))) static bool
put(esdm__sink *sink, const atomic_bool *give_up, const char *format, ...)
{
    if (!sink->opened)
        open_now(sink);
    bool good = sink->fd >= 0;
    for (int attempt = 0; attempt < 2 && good; attempt++) {
        va_list arguments;
        size_t room = sizeof sink->text - sink->used;
        va_start(arguments, format);
        int n = vsnprintf(sink->text + sink->used, room, format, arguments);
        va_end(arguments);
        if (n >= 0 && (size_t) n < room) {
            sink->used += (size_t) n;
            sink->lines++;
            return true;
        }
        good = sink->used > 0 && esdm__sink_flush(sink, give_up);
    }
    return false;
}

/* Room for so many bytes in the text. */
static bool
make_room(esdm__sink *sink, size_t bytes, const atomic_bool *give_up)
{
    if (!sink->opened)
        open_now(sink);
    if (sink->fd < 0 || bytes > sizeof sink->text)
        return false;
    return bytes <= sizeof sink->text - sink->used || esdm__sink_flush(sink, give_up);
}

void
esdm__span_heads_init(esdm__span_heads *heads, const esdm__who *who)
{
    for (int kind = 0; kind < ESDM__SPAN_KINDS; kind++) {
        int n = snprintf(heads->of[kind].text, sizeof heads->of[kind].text,
                         "{\"what\":\"span\",\"kind\":\"%s\",\"pid\":%d,\"thread\":",
                         esdm__span_name((esdm__span_kind) kind), (int) who->pid);
        heads->of[kind].bytes = (size_t) n;
    }
}

char *
esdm__put_span(char *at, const esdm__span_heads *heads, const esdm__object *object,
               const esdm__record *r)
{
    at = esdm__put_bytes(at, heads->of[r->kind].text, heads->of[r->kind].bytes);
    at = esdm__put_signed(at, r->thread);
    at = esdm__put_number(esdm__put_text(at, ",\"id\":"), r->id);
    at = esdm__put_number(esdm__put_text(at, ",\"cause\":"), r->cause);
    at = esdm__put_number(esdm__put_text(at, ",\"start_ns\":"), r->start_ns);
    at = esdm__put_number(esdm__put_text(at, ",\"ns\":"), r->ns);
    at = esdm__put_bytes(at, object->members, object->member_bytes);
    at = esdm__put_number(esdm__put_text(at, ",\"bytes\":"), r->bytes);
    if (r->stored_bytes == 0 && r->pieces == 0 && r->status == 0) { /* of most */
        at = esdm__put_text(at, ",\"stored_bytes\":0,\"pieces\":0,\"status\":0");
    } else {
        at = esdm__put_number(esdm__put_text(at, ",\"stored_bytes\":"), r->stored_bytes);
        at = esdm__put_number(esdm__put_text(at, ",\"pieces\":"), r->pieces);
        at = esdm__put_signed(esdm__put_text(at, ",\"status\":"), r->status);
    }
    if (r->detail == NULL)
        return esdm__put_text(at, "}\n");
    return esdm__put_text(esdm__put_text(at, r->detail), "}\n");
}

void
esdm__sink_init(esdm__sink *sink, char *path, const esdm__who *who)
{
    sink->path = path;
    sink->who = who;
    sink->fd = -1;
    sink->chrome = esdm__monitor_ends_with(path, ".json");
    esdm__span_heads_init(&sink->heads, who);
}

void
esdm__sink_use(esdm__sink *sink, int fd, char *path, const esdm__who *who)
{
    esdm__sink_init(sink, path, who);
    sink->fd = esdm__descriptor_keep(fd);
    sink->opened = true;
    if (sink->fd >= 0)
        put_head(sink, true);
}

bool
esdm__sink_line(esdm__sink *sink, const char *line, const atomic_bool *give_up)
{
    if (sink->database != NULL)
        return esdm__database_dataset(sink->database, line, give_up);
    return sink->chrome || put(sink, give_up, "%s", line);
}

bool
esdm__sink_record(esdm__sink *sink, const esdm__object *object, const esdm__record *r,
                  const atomic_bool *give_up)
{
    if (sink->database != NULL)
        return esdm__database_span(sink->database, object, r, give_up);
    size_t detail_bytes = r->detail != NULL ? strlen(r->detail) : 0;
    if (sink->chrome)
        return put(sink, give_up,
                   "{\"name\":\"%s\",\"cat\":\"esdm\",\"ph\":\"X\",\"ts\":%" PRIu64 ".%03u,"
                   "\"dur\":%" PRIu64 ".%03u,\"pid\":%d,\"tid\":%d,\"args\":{\"id\":%" PRIu64
                   ",\"cause\":%" PRIu64 "%s,\"bytes\":%" PRIu64 ",\"status\":%d%s}},\n",
                   esdm__span_name((esdm__span_kind) r->kind), r->start_ns / 1000,
                   (unsigned) (r->start_ns % 1000), r->ns / 1000, (unsigned) (r->ns % 1000),
                   (int) sink->who->pid, (int) r->thread, r->id, r->cause, object->members,
                   r->bytes, (int) r->status, r->detail != NULL ? r->detail : "");
    if (!make_room(sink, ESDM__LINE_BYTES + object->member_bytes + detail_bytes, give_up))
        return false;
    char *at = esdm__put_span(sink->text + sink->used, &sink->heads, object, r);
    sink->used = (size_t) (at - sink->text);
    sink->lines++;
    return true;
}

static double
rate(double before, double now, double seconds)
{
    return before < 0 || now < before || !(seconds > 0) ? -1 : (now - before) / seconds;
}

bool
esdm__sink_sample(esdm__sink *sink, const esdm__node_sample *b, const esdm__node_sample *n,
                  const atomic_bool *give_up)
{
    double s = (double) (n->at_ns - b->at_ns) / 1e9;
    double cpu = n->cpu_all_s - b->cpu_all_s;
    double busy = rate(b->cpu_busy_s, n->cpu_busy_s, cpu);
    double waiting = rate(b->cpu_wait_s, n->cpu_wait_s, cpu);
    double in = rate(b->disk_read_bytes, n->disk_read_bytes, s);
    double out = rate(b->disk_write_bytes, n->disk_write_bytes, s);
    if (sink->database != NULL) {
        const double numbers[] = {s,
                                  busy,
                                  waiting,
                                  n->memory_bytes,
                                  n->dirty_bytes,
                                  rate(b->net_in_bytes, n->net_in_bytes, s),
                                  rate(b->net_out_bytes, n->net_out_bytes, s),
                                  in,
                                  out,
                                  rate(b->disk_busy_s, n->disk_busy_s, s),
                                  rate(b->energy_j, n->energy_j, s)};
        return esdm__database_sample(sink->database, numbers, n->at_ns, give_up);
    }
    if (sink->chrome)
        return put(sink, give_up,
                   "{\"name\":\"node\",\"ph\":\"C\",\"ts\":%" PRIu64
                   ",\"pid\":%d,\"args\":{\"cpu_busy\":%.3f,\"cpu_wait\":%.3f,"
                   "\"disk_read_MB_per_s\":%.3f,\"disk_write_MB_per_s\":%.3f}},\n",
                   n->at_ns / 1000, (int) sink->who->pid, busy, waiting, in / 1e6, out / 1e6);
    return put(sink, give_up,
               "{\"what\":\"node\",\"host\":\"%s\",\"pid\":%d,\"at_ns\":%" PRIu64
               ",\"seconds\":%.3f,\"cpu_busy\":%.4f,\"cpu_wait\":%.4f,\"memory_free_bytes\":%.0f,"
               "\"dirty_bytes\":%.0f,\"net_in_bytes_per_s\":%.0f,\"net_out_bytes_per_s\":%.0f,"
               "\"disk_read_bytes_per_s\":%.0f,\"disk_write_bytes_per_s\":%.0f,"
               "\"disk_busy\":%.4f,\"watts\":%.2f}\n",
               sink->who->host, (int) sink->who->pid, n->at_ns, s, busy, waiting, n->memory_bytes,
               n->dirty_bytes, rate(b->net_in_bytes, n->net_in_bytes, s),
               rate(b->net_out_bytes, n->net_out_bytes, s), in, out,
               rate(b->disk_busy_s, n->disk_busy_s, s), rate(b->energy_j, n->energy_j, s));
}

void
esdm__sink_dropped(esdm__sink *sink, uint64_t dropped, const atomic_bool *give_up)
{
    if (!sink->chrome)
        (void) put(sink, give_up,
                   "{\"what\":\"end\",\"pid\":%d,\"at_ns\":%" PRIu64 ",\"dropped\":%" PRIu64 "}\n",
                   (int) sink->who->pid, esdm__monitor_now_ns(), dropped);
    else if (dropped > 0)
        (void) put(sink, give_up,
                   "{\"name\":\"%" PRIu64 " spans were dropped\",\"ph\":\"i\",\"s\":\"p\","
                   "\"ts\":%" PRIu64 ",\"pid\":%d,\"tid\":0},\n",
                   dropped, esdm__monitor_now_ns() / 1000, (int) sink->who->pid);
}

void
esdm__sink_close(esdm__sink *sink)
{
    free(sink->path);
    if (sink->fd >= 0)
        (void) esdm__descriptor_close(sink->fd);
    sink->fd = -1;
}
