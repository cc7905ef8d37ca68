/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Sources are read by a process of their own: a damaged file can crash the library that reads it,
 * or keep it busy for ever. What the process found of a source comes back when it is done with it.
 */

#include "esdm-advise/apart.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

double advise_timeout_s;

/* What is sent: the length of what was found and the bytes. These lengths alone say that a block of
 * the source is done with, and that work goes on. */
#define BLOCK UINT64_MAX
#define ALIVE (UINT64_MAX - 1)

static int to_parent = -1; /* -1: this process is nobody's child */

/* ---- the process that reads --------------------------------------------------------------- */

static void
send_all(const void *from, size_t bytes)
{
    const char *at = from;
    while (bytes > 0) {
        ssize_t sent = write(to_parent, at, bytes);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            _exit(TOOL_FAILED); /* nobody wants it any more */
        at += sent;
        bytes -= (size_t) sent;
    }
}

static void
send_length(uint64_t length)
{
    if (to_parent >= 0)
        send_all(&length, sizeof length);
}

void
advise_apart_block(void)
{
    send_length(BLOCK);
}

void
advise_apart_alive(void)
{
    send_length(ALIVE);
}

static void
read_sources(const advise_turn *turn, guint from)
{
    for (guint i = from; i < turn->sources->len; i++) {
        g_autoptr(GByteArray) found = g_byte_array_new();
        turn->read(turn->user, i, found);
        send_length(found->len);
        send_all(found->data, found->len);
    }
}

esdm_status
advise_apart_session(bool wanted, esdm_session **ret_session, esdm_error *err)
{
    esdm_session_options options = {.config_path = tool.config, .read_only = true};
    *ret_session = NULL;
    return wanted ? esdm_session_open(&options, ret_session, err) : ESDM_OK;
}

static esdm_status
begin(const advise_turn *turn, esdm_error *err)
{
    esdm_session *session = NULL;
    esdm_status status = advise_apart_session(turn->with_session, &session, err);
    return status == ESDM_OK ? turn->begin(turn->user, session, err) : status;
}

static G_NORETURN void
run_child(const advise_turn *turn, guint from)
{
    esdm_error err = {0};
    esdm_status status = begin(turn, &err);
    if (status == ESDM_OK)
        read_sources(turn, from);
    else
        (void) tool_fail(status, &err);
    _exit(status == ESDM_OK ? TOOL_OK : TOOL_FAILED);
}

/* ---- the process that waits --------------------------------------------------------------- */

typedef struct reader {
    pid_t process;
    int end;
    bool late; /* it was given up */
} reader;

/* @return false: there can be no process. In the one that is made r->process is 0. */
static bool
start(reader *r)
{
    int ends[2];
    *r = (reader){.process = -1, .end = -1};
    pid_t parent = getpid();
    (void) fflush(NULL);
    if (pipe(ends) != 0)
        return false;
    r->process = fork();
    if (r->process == 0) {
        (void) close(ends[0]);
        (void) prctl(PR_SET_PDEATHSIG, SIGTERM); /* when this one is killed */
        if (getppid() != parent)
            _exit(TOOL_FAILED); /* it was */
        to_parent = ends[1];
        return true;
    }
    (void) close(ends[1]);
    r->end = ends[0];
    if (r->process < 0)
        (void) close(r->end);
    return r->process > 0;
}

/* Whether something comes before the time is over. */
static bool
await(reader *r)
{
    struct pollfd wanted = {.fd = r->end, .events = POLLIN};
    gint64 until_us = g_get_monotonic_time() + (gint64) (MIN(advise_timeout_s, 1e9) * 1e6);
    for (;;) {
        gint64 left_ms = (until_us - g_get_monotonic_time() + 999) / 1000;
        int limit = advise_timeout_s <= 0 ? -1 : (int) CLAMP(left_ms, 0, 1000000);
        int ready = poll(&wanted, 1, limit);
        if (ready > 0 || (ready < 0 && errno != EINTR))
            return true; /* reading tells what is wrong */
        if (advise_timeout_s > 0 && g_get_monotonic_time() >= until_us)
            break;
    }
    r->late = true;
    return false;
}

static bool
receive(reader *r, void *to, size_t bytes)
{
    char *at = to;
    while (bytes > 0) {
        if (!await(r))
            return false;
        ssize_t got = read(r->end, at, bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        bytes -= (size_t) got;
    }
    return true;
}

/* The length of what comes next; false: nothing, as the process is no more. */
static bool
receive_length(reader *r, void (*block)(void *user), void *user, uint64_t *ret_length)
{
    *ret_length = ALIVE;
    while (*ret_length >= ALIVE) {
        if (!receive(r, ret_length, sizeof *ret_length))
            return false;
        if (*ret_length == BLOCK && block != NULL)
            block(user);
    }
    return true;
}

/* What was found of one source; NULL: nothing. */
static GByteArray *
receive_found(reader *r, const advise_turn *turn)
{
    uint64_t bytes;
    if (!receive_length(r, turn->block, turn->user, &bytes))
        return NULL;
    GByteArray *found = g_byte_array_new();
    g_byte_array_set_size(found, (guint) bytes);
    if (!receive(r, found->data, bytes))
        g_clear_pointer(&found, g_byte_array_unref);
    return found;
}

/* Waits for its end. @param source that it did not come to the end of, which is said; NULL: none.
 * @return its exit status */
static int
end(reader *r, const char *source)
{
    int status = 0;
    if (r->late)
        (void) kill(r->process, SIGKILL);
    (void) close(r->end);
    while (waitpid(r->process, &status, 0) < 0 && errno == EINTR)
        continue;
    if (source == NULL)
        return WIFEXITED(status) ? WEXITSTATUS(status) : TOOL_FAILED;
    if (r->late)
        tool_error("%s: nothing was read of it for %g s (--timeout); is the file damaged? "
                   "\"ncdump\" may tell",
                   source, advise_timeout_s);
    else if (WIFSIGNALED(status))
        tool_error("%s: the process that read it died (signal %d: %s)", source, WTERMSIG(status),
                   strsignal(WTERMSIG(status))); /* else it has said why */
    return TOOL_FAILED;
}

/* Where there can be no process. */
static void
read_here(const advise_turn *turn, guint from)
{
    esdm_error err = {0};
    esdm_status status = begin(turn, &err);
    if (status != ESDM_OK)
        (void) tool_fail(status, &err);
    for (guint i = from; i < turn->sources->len; i++) {
        g_autoptr(GByteArray) found = g_byte_array_new();
        if (status == ESDM_OK)
            turn->read(turn->user, i, found);
        if (status == ESDM_OK)
            turn->take(turn->user, i, found->data, found->len);
        else
            turn->lost(turn->user, i);
    }
}

void
advise_apart(const advise_turn *turn)
{
    guint next = 0;
    while (next < turn->sources->len) {
        reader r;
        if (!start(&r)) {
            read_here(turn, next);
            return;
        }
        if (r.process == 0)
            run_child(turn, next);
        GByteArray *found = NULL;
        while (next < turn->sources->len && (found = receive_found(&r, turn)) != NULL) {
            turn->take(turn->user, next++, found->data, found->len);
            g_byte_array_unref(found);
        }
        const advise_source *lost =
            next < turn->sources->len ? g_ptr_array_index(turn->sources, next) : NULL;
        (void) end(&r, lost != NULL ? lost->name : NULL);
        if (lost != NULL)
            turn->lost(turn->user, next++);
    }
}

bool
advise_apart_whole(tool_exit (*run)(void *user), void *user, const char *(*in_hand)(void *user),
                   tool_exit *ret_result)
{
    reader r;
    uint64_t length;
    if (!start(&r)) {
        *ret_result = run(user);
        return true;
    }
    if (r.process == 0) {
        tool_exit result = tool_finish(run(user));
        send_length(0);
        _exit((int) result);
    }
    bool whole = receive_length(&r, NULL, NULL, &length);
    *ret_result = (tool_exit) end(&r, whole ? NULL : in_hand(user));
    return whole;
}

/* ---- what is sent ------------------------------------------------------------------------- */

void
advise_put(GByteArray *to, const void *from, size_t bytes)
{
    (void) g_byte_array_append(to, from, (guint) bytes);
}

void
advise_put_text(GByteArray *to, const char *text)
{
    advise_put(to, text, strlen(text) + 1);
}

void
advise_get(const uint8_t **at, void *to, size_t bytes)
{
    memcpy(to, *at, bytes);
    *at += bytes;
}

const char *
advise_get_text(const uint8_t **at)
{
    const char *text = (const char *) *at;
    *at += strlen(text) + 1;
    return text;
}
