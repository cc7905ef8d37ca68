/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Connections that ask for nothing, or hardly take the answer, give their place to others:
 * libmicrohttpd's own time begins anew with each byte, so that clients which send or take one now
 * and then would keep all places for ever. */
#include "esdm-serve/esdm-serve.h"

#include <linux/sockios.h>
#include <linux/tcp.h> /* glibc's struct tcp_info is older */
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define SECONDS_PATIENT   10 /* for the headers of a request */
#define SECONDS_IMPATIENT 1  /* when most places are taken */
/* Who takes less than that of an answer for so long, when most places are taken. */
#define SECONDS_SLOW     5
#define SLOW_BYTES_PER_S (64u << 10)
#define LOOK_US          200000

/* A connection. */
typedef struct seat {
    MHD_socket socket;
    gint64 since_us; /* when it began to wait for a request */
    /* While it is answered: from when on the client had something to take, and how much it had
     * taken until then. */
    gint64 taking_us;
    uint64_t taken;
    bool answering;
    bool ended;
    bool looked_up; /* whose it is */
    bool stranger;
} seat;

struct serve_guard {
    pthread_mutex_t lock; /* guards all below; nothing is called with it but shutdown() */
    GHashTable *seats;    /* seat */
    guint crowd;          /* places that are taken when patience ends */
    atomic_bool over;
    pthread_t watcher;
};

/* Bytes that the client has got. Kernels before 4.1 do not tell: then nobody is too slow. */
static uint64_t
taken_by(const seat *s)
{
    struct tcp_info info;
    socklen_t bytes = sizeof info;
    memset(&info, 0, sizeof info);
    if (getsockopt(s->socket, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0 ||
        bytes < offsetof(struct tcp_info, tcpi_bytes_acked) + sizeof info.tcpi_bytes_acked)
        return UINT64_MAX;
    return info.tcpi_bytes_acked;
}

/* Whether a client keeps its place without taking what waits for it. The time in which nothing
 * waits is the server's own. */
static bool
is_slow(seat *s, gint64 now_us)
{
    int waiting = 0;
    bool has = ioctl(s->socket, SIOCOUTQ, &waiting) == 0 && waiting > 0;
    if (has && now_us - s->taking_us < SECONDS_SLOW * G_USEC_PER_SEC)
        return false;
    uint64_t taken = taken_by(s);
    uint64_t least = (uint64_t) (now_us - s->taking_us) * SLOW_BYTES_PER_S / G_USEC_PER_SEC;
    bool slow = has && taken != UINT64_MAX && taken - s->taken < least;
    s->taking_us = now_us;
    s->taken = taken;
    return slow;
}

static void
look(serve_guard *guard)
{
    GHashTableIter iterator;
    gpointer key;
    gint64 now = g_get_monotonic_time();
    (void) pthread_mutex_lock(&guard->lock);
    bool crowded = g_hash_table_size(guard->seats) >= guard->crowd;
    gint64 patience = (crowded ? SECONDS_IMPATIENT : SECONDS_PATIENT) * G_USEC_PER_SEC;
    g_hash_table_iter_init(&iterator, guard->seats);
    while (g_hash_table_iter_next(&iterator, &key, NULL)) {
        seat *s = key;
        if (s->ended ||
            (s->answering ? !is_slow(s, now) || !crowded : now - s->since_us < patience))
            continue;
        s->ended = true;
        (void) shutdown(s->socket, SHUT_RDWR); /* libmicrohttpd closes it then */
    }
    (void) pthread_mutex_unlock(&guard->lock);
}

static void *
watch(void *user)
{
    serve_guard *guard = user;
    while (!atomic_load(&guard->over)) {
        look(guard);
        g_usleep(LOOK_US);
    }
    return NULL;
}

serve_guard *
serve_guard_new(guint connections)
{
    serve_guard *guard = g_new0(serve_guard, 1);
    (void) pthread_mutex_init(&guard->lock, NULL);
    guard->seats = g_hash_table_new(NULL, NULL);
    guard->crowd = connections / 2;
    if (pthread_create(&guard->watcher, NULL, watch, guard) == 0)
        return guard;
    g_hash_table_unref(guard->seats);
    g_free(guard);
    return NULL;
}

void
serve_guard_free(serve_guard *guard)
{
    atomic_store(&guard->over, true);
    (void) pthread_join(guard->watcher, NULL);
    g_hash_table_unref(guard->seats);
    (void) pthread_mutex_destroy(&guard->lock);
    g_free(guard);
}

void
serve_guard_connection(void *user, struct MHD_Connection *connection, void **context,
                       enum MHD_ConnectionNotificationCode what)
{
    serve_guard *guard = user;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        seat *s = g_new0(seat, 1);
        s->socket = info != NULL ? info->connect_fd : -1;
        s->since_us = g_get_monotonic_time();
        *context = s;
        (void) pthread_mutex_lock(&guard->lock);
        (void) g_hash_table_add(guard->seats, s);
        (void) pthread_mutex_unlock(&guard->lock);
    } else if (*context != NULL) {
        (void) pthread_mutex_lock(&guard->lock);
        (void) g_hash_table_remove(guard->seats, *context);
        (void) pthread_mutex_unlock(&guard->lock);
        g_free(*context);
        *context = NULL;
    }
}

static seat *
seat_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

static void
set_answering(serve_guard *guard, struct MHD_Connection *connection, bool answering)
{
    seat *s = seat_of(connection);
    if (s == NULL)
        return;
    (void) pthread_mutex_lock(&guard->lock);
    s->answering = answering;
    s->since_us = g_get_monotonic_time();
    s->taking_us = s->since_us;
    s->taken = taken_by(s);
    (void) pthread_mutex_unlock(&guard->lock);
}

void
serve_guard_request(serve_guard *guard, struct MHD_Connection *connection, bool *ret_stranger)
{
    seat *s = seat_of(connection);
    set_answering(guard, connection, true);
    if (ret_stranger == NULL)
        return;
    *ret_stranger = true;
    if (s == NULL)
        return;
    if (!s->looked_up) /* this thread alone has the connection */
        s->stranger = serve_is_stranger(s->socket);
    s->looked_up = true;
    *ret_stranger = s->stranger;
}

void
serve_guard_done(void *user, struct MHD_Connection *connection, void **seen,
                 enum MHD_RequestTerminationCode how)
{
    (void) seen;
    (void) how;
    set_answering(user, connection, false);
}
