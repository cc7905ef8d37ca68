/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What the sessions of this process did so far, for who asks while they go on: counters, which are
 * exact, and the last calls, commits and requests to targets one by one.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/plain_locale.h"
#include "monitor/parts.h"

/* Guards the list; a leaf lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static esdm__monitor *first;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Sessions do not survive fork(), and another thread may have had the lock. */
static void
forget(void)
{
    pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    memcpy(&lock, &unlocked, sizeof lock);
}

static void
install(void)
{
    (void) pthread_atfork(NULL, NULL, forget);
}

void
esdm__sofar_note(esdm__monitor *monitor, const esdm__record *record)
{
    switch ((esdm__span_kind) record->kind) {
    case ESDM__SPAN_READ:
    case ESDM__SPAN_WRITE: /* in a call of NetCDF, which is kept */
        if (record->cause != 0)
            return;
        break;
    case ESDM__SPAN_CALL_READ:
    case ESDM__SPAN_CALL_WRITE:
    case ESDM__SPAN_OPEN:
    case ESDM__SPAN_CLOSE:
    case ESDM__SPAN_APPEND:
    case ESDM__SPAN_FETCH:
    case ESDM__SPAN_COMMIT:
        break;
    default:
        return;
    }
    esdm__recent_put(monitor->kept, record);
}

void
esdm__sofar_add(esdm__monitor *monitor)
{
    (void) pthread_once(&once, install);
    (void) pthread_mutex_lock(&lock);
    monitor->next = first;
    if (first != NULL)
        first->previous = monitor;
    first = monitor;
    (void) pthread_mutex_unlock(&lock);
}

void
esdm__sofar_remove(esdm__monitor *monitor)
{
    (void) pthread_mutex_lock(&lock);
    if (monitor->previous != NULL)
        monitor->previous->next = monitor->next;
    else if (first == monitor)
        first = monitor->next;
    if (monitor->next != NULL)
        monitor->next->previous = monitor->previous;
    (void) pthread_mutex_unlock(&lock);
}

/* @return how many spans are counted alone. */
static uint64_t
print_spans(FILE *out, esdm__monitor *m)
{
    esdm__span_heads heads;
    uint64_t end = esdm__recent_count(m->kept);
    uint64_t printed = 0;
    char *line = NULL;
    size_t room = 0;
    esdm__span_heads_init(&heads, &m->who);
    for (uint64_t n = end - (end < ESDM__KEPT_MOST ? end : ESDM__KEPT_MOST); n < end; n++) {
        esdm__record record;
        if (!esdm__recent_see(m->kept, n, &record))
            continue;
        const esdm__object *object = esdm__objects_get(&m->objects, record.object);
        size_t need = ESDM__LINE_BYTES + object->member_bytes;
        char *more = need > room ? realloc(line, need) : line;
        if (more == NULL)
            continue;
        room = need > room ? need : room;
        line = more;
        (void) fwrite(line, 1, (size_t) (esdm__put_span(line, &heads, object, &record) - line),
                      out);
        printed++;
    }
    free(line);
    return end - printed;
}

/* Sessions of a process, as one that began with the first of them. With the lock held.
 * @return whether there are any. */
static bool
print_all(FILE *out)
{
    const esdm__monitor *oldest = NULL;
    uint64_t left = 0;
    pid_t self = getpid();
    for (const esdm__monitor *m = first; m != NULL; m = m->next) {
        if (m->who.pid == self &&
            (oldest == NULL || m->who.monotonic_ns < oldest->who.monotonic_ns))
            oldest = m;
    }
    if (oldest == NULL)
        return false;
    (void) fprintf(out,
                   "{\"what\":\"process\",\"version\":1,\"program\":%s,\"host\":\"%s\",\"pid\":%d,"
                   "\"rank\":%d,\"realtime_ns\":%" PRIu64 ",\"monotonic_ns\":%" PRIu64
                   ",\"so_far\":true}\n",
                   oldest->who.program, oldest->who.host, (int) self, oldest->who.rank,
                   oldest->who.realtime_ns, oldest->who.monotonic_ns);
    for (esdm__monitor *m = first; m != NULL; m = m->next) {
        if (m->who.pid != self)
            continue;
        left += print_spans(out, m);
        esdm__stats_print(out, m);
    }
    (void) fprintf(out,
                   "{\"what\":\"end\",\"pid\":%d,\"at_ns\":%" PRIu64 ",\"dropped\":%" PRIu64 "}\n",
                   (int) self, esdm__monitor_now_ns(), left);
    return true;
}

esdm_status
esdm__sofar_text(char **ret_text, size_t *ret_bytes, esdm_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    esdm__plain_locale locale;
    esdm_status status = esdm__plain_locale_enter(&locale, err);
    if (status != ESDM_OK)
        return status;
    FILE *out = open_memstream(&text, &bytes);
    bool any = true;
    if (out != NULL) {
        (void) pthread_mutex_lock(&lock);
        any = print_all(out);
        (void) pthread_mutex_unlock(&lock);
    }
    bool good = out != NULL && ferror(out) == 0;
    good = out != NULL && fclose(out) == 0 && good;
    esdm__plain_locale_leave(&locale);
    if (!good)
        status = esdm__error_nomem(err, bytes, "what was done so far");
    else if (!any)
        status = esdm__error_set(err, ESDM_ENOENT,
                                 "no session of this process keeps what it does: nothing was done "
                                 "with ESDM yet, or ESDM_MONITOR=off (calls of plain files are "
                                 "not recorded here: esdm-run --report PROGRAM tells them)");
    if (status != ESDM_OK) {
        free(text);
        return status;
    }
    *ret_text = text;
    *ret_bytes = bytes;
    return ESDM_OK;
}
