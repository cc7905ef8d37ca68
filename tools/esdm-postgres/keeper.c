/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* The process that keeps a server: one thread shows that it lives, one asks whether anybody is
 * connected, and the first one starts and ends the server. */

#include <errno.h>
#include <libpq-fe.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "esdm-postgres/processes.h"

#define READY_US (600 * G_USEC_PER_SEC) /* recovery after a crash takes its time */
#define FAST_US  (60 * G_USEC_PER_SEC)
#define ATTEMPTS 3
#define TICK_MS  100
#define LOOK_US  G_USEC_PER_SEC

typedef struct keeper {
    const private_server *server;
    private_lease lease;
    private_endpoint endpoint;
    char *binaries;
    pid_t postmaster;
    int lock;
    GThread *heart;
    _Atomic(gint64) beaten_us;   /* when the last heartbeat was written */
    _Atomic(gint64) occupied_us; /* when somebody was connected last, or it is not known */
    atomic_bool lost;            /* another one has the lease */
    atomic_bool end_heart;
    atomic_bool asked; /* somebody wants it to stop */
} keeper;

/* ---- heartbeat ------------------------------------------------------------------------------ */

/* A file that esdm-postgres --stop writes. */
static bool
is_asked_to_stop(const private_server *server, guint64 lease)
{
    g_autofree char *path = private_path(server, "stop");
    g_autofree char *text = NULL;
    return private_read(path, &text, NULL) == ESDM_OK && g_ascii_strtoull(text, NULL, 10) == lease;
}

static gpointer
beat(gpointer data)
{
    keeper *k = data;
    gint64 pause_us = k->server->lease_s * G_USEC_PER_SEC / 6;
    pause_us = MIN(pause_us, G_USEC_PER_SEC);
    while (!atomic_load(&k->end_heart)) {
        gint64 begun_us = private_now_us();
        esdm_status status = private_lease_beat(k->server, &k->lease, NULL);
        if (status == ESDM_OK)
            atomic_store(&k->beaten_us, begun_us);
        else if (status == ESDM_ECONFLICT)
            atomic_store(&k->lost, true);
        if (is_asked_to_stop(k->server, k->lease.number))
            atomic_store(&k->asked, true);
        for (gint64 i = 0; i < pause_us && !atomic_load(&k->end_heart); i += 50000)
            g_usleep(50000);
    }
    return NULL;
}

/* Whether the server must end at once, as others may count this process as dead soon. */
static bool
is_fenced(const keeper *k)
{
    gint64 silent_us = private_now_us() - atomic_load(&k->beaten_us);
    return atomic_load(&k->lost) || silent_us > k->server->lease_s * G_USEC_PER_SEC * 2 / 3;
}

/* ---- who is connected ----------------------------------------------------------------------- */

/* -1: not known. */
static int
count_sessions(PGconn *connection)
{
    PGresult *result =
        PQexec(connection, "SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = "
                           "'client backend' AND application_name <> 'esdm-postgres'");
    int count = PQresultStatus(result) == PGRES_TUPLES_OK ? atoi(PQgetvalue(result, 0, 0)) : -1;
    PQclear(result);
    return count;
}

static gpointer
look(gpointer data)
{
    keeper *k = data;
    PGconn *connection = NULL;
    for (;;) {
        if (connection == NULL)
            connection = private_connect(k->server, &k->endpoint);
        int count = connection != NULL ? count_sessions(connection) : -1;
        if (count != 0)
            atomic_store(&k->occupied_us, private_now_us());
        if (count < 0 && connection != NULL) {
            PQfinish(connection);
            connection = NULL;
        }
        g_usleep(LOOK_US);
    }
    return NULL;
}

static bool
is_idle(const keeper *k)
{
    return private_now_us() - atomic_load(&k->occupied_us) > k->server->idle_s * G_USEC_PER_SEC;
}

/* ---- signals -------------------------------------------------------------------------------- */

static void
block_signals(sigset_t *ret_signals)
{
    (void) sigemptyset(ret_signals);
    (void) sigaddset(ret_signals, SIGTERM);
    (void) sigaddset(ret_signals, SIGINT);
    (void) sigaddset(ret_signals, SIGHUP);
    (void) sigaddset(ret_signals, SIGCHLD);
    (void) sigaddset(ret_signals, SIGPIPE);
    (void) sigprocmask(SIG_BLOCK, ret_signals, NULL);
}

/* Waits a little. true: it is to end. */
static bool
tick(const sigset_t *signals)
{
    const struct timespec pause = {.tv_nsec = TICK_MS * 1000000L};
    int number = sigtimedwait(signals, NULL, &pause);
    return number == SIGTERM || number == SIGINT;
}

/* ---- starting ------------------------------------------------------------------------------- */

static bool
is_ready(const keeper *k)
{
    g_autofree char *port = g_strdup_printf("%d", (int) k->endpoint.port);
    const char *keywords[] = {"host", "port", "connect_timeout", NULL};
    const char *values[] = {k->endpoint.addresses, port, "3", NULL};
    return PQpingParams(keywords, values, 0) == PQPING_OK;
}

static esdm_status
start_once(keeper *k, const sigset_t *signals, esdm_error *err)
{
    esdm_status status = processes_start(k->server, k->binaries, k->lock, k->endpoint.addresses,
                                         &k->endpoint.port, &k->postmaster, err);
    if (status != ESDM_OK)
        return status;
    gint64 until_us = private_now_us() + READY_US;
    while (!is_ready(k)) {
        if (processes_have_ended(k->postmaster)) {
            g_autofree char *words = processes_last_words(k->server);
            k->postmaster = -1;
            return tool_error_set(err, ESDM_EIO, "the server has ended; see %s/log%s%s",
                                  k->server->folder, words[0] != '\0' ? ": " : "", words);
        }
        if (tick(signals) || is_fenced(k) || private_now_us() > until_us)
            return tool_error_set(err, ESDM_ECANCELED, "the server was stopped while it started");
    }
    return ESDM_OK;
}

/* The number of a process that ran on another node says nothing here, where it may be any other's;
 * none of them lives. That of this node PostgreSQL looks at itself. */
static esdm_status
note_runner(const keeper *k, esdm_error *err)
{
    g_autofree char *path = private_path(k->server, "runner");
    g_autofree char *numbers = private_path(k->server, "data/postmaster.pid");
    g_autofree char *here = private_lease_place(&k->lease);
    g_autofree char *there = NULL;
    if (private_read(path, &there, NULL) == ESDM_OK && g_str_equal(here, there))
        return ESDM_OK;
    (void) unlink(numbers);
    return private_write(path, here, 0600, err);
}

/* Another program may take the port before the server does. */
static esdm_status
start(keeper *k, const sigset_t *signals, esdm_error *err)
{
    esdm_status status = processes_lock(k->server, &k->lock, err);
    if (status != ESDM_OK)
        return status;
    status = note_runner(k, err);
    if (status != ESDM_OK)
        return status;
    status = ESDM_EIO;
    for (int i = 0; i < ATTEMPTS && status == ESDM_EIO; i++)
        status = start_once(k, signals, err);
    if (status == ESDM_OK)
        status = private_endpoint_write(k->server, &k->endpoint, err);
    return status;
}

/* ---- ending --------------------------------------------------------------------------------- */

static void
end_server(keeper *k, const sigset_t *signals)
{
    gint64 until_us = private_now_us() + FAST_US;
    if (k->postmaster > 0)
        (void) kill(k->postmaster, SIGINT); /* rolls back, and writes a checkpoint */
    while (k->postmaster > 0 && !is_fenced(k) && private_now_us() < until_us) {
        if (processes_have_ended(k->postmaster))
            k->postmaster = -1;
        else
            (void) tick(signals);
    }
    processes_kill(k->postmaster);
}

static void
give_up_lease(keeper *k)
{
    atomic_store(&k->end_heart, true);
    if (is_fenced(k))
        return; /* the file system may hang, or the lease be another one's */
    (void) g_thread_join(k->heart);
    private_lease_release(k->server, &k->lease);
}

/* Until the server is to end, or has. true: as it should. */
static bool
serve(keeper *k, const sigset_t *signals)
{
    for (;;) {
        if (tick(signals) || atomic_load(&k->asked) || is_idle(k))
            return true;
        if (processes_have_ended(k->postmaster)) {
            k->postmaster = -1;
            return false;
        }
        if (is_fenced(k))
            return false;
    }
}

tool_exit
private_keep(private_server *server, guint64 after,
             void (*ready)(esdm_status status, const char *text, void *user), void *user)
{
    keeper k = {.server = server, .postmaster = -1, .lock = -1};
    sigset_t signals;
    esdm_error err = {0};
    g_autofree char *version = NULL;
    (void) prctl(PR_SET_CHILD_SUBREAPER, 1);
    block_signals(&signals);
    esdm_status status = private_find_binaries(server, &k.binaries, &version, &err);
    if (status == ESDM_OK)
        status = private_lease_take(server, after, &k.lease, &err);
    if (status != ESDM_OK) {
        ready(status, err.message, user);
        return tool_exit_of(status);
    }
    k.endpoint = (private_endpoint){.lease = k.lease.number,
                                    .host = g_strdup(k.lease.host),
                                    .addresses = private_addresses(server)};
    atomic_store(&k.beaten_us, private_now_us());
    k.heart = g_thread_new("heart", beat, &k);
    status = start(&k, &signals, &err);
    if (status != ESDM_OK) {
        end_server(&k, &signals);
        give_up_lease(&k);
        ready(status, err.message, user);
        exit(TOOL_FAILED);
    }
    atomic_store(&k.occupied_us, private_now_us());
    (void) g_thread_new("look", look, &k);
    ready(ESDM_OK, NULL, user);
    bool good = serve(&k, &signals);
    if (is_fenced(&k))
        processes_kill(k.postmaster);
    else
        end_server(&k, &signals);
    give_up_lease(&k);
    _exit(good ? TOOL_OK : TOOL_FAILED); /* threads may wait for what does not come */
}
