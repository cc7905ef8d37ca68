/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Connections that ask for nothing, or hardly take the answer, give their place to others:
 * libmicrohttpd's own time begins anew with each byte, so that clients which send or take one now
 * and then would keep all places for ever. Where all places are taken and others wait, the slowest
 * give theirs, however fast they are: there is no speed at which a flood could stay. */
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
/* When all places are taken and others wait, the slowest one gives its place, once in so long; who
 * has been answered for less than that stays. */
#define SECONDS_BETWEEN 1
#define SECONDS_SURE    10

/* A connection. */
typedef struct seat {
    MHD_socket socket;
    gint64 since_us; /* when it began to wait for a request */
    /* While it is answered: from when on the client had something to take, and how much it had
     * taken until then. */
    gint64 taking_us;
    uint64_t taken;
    uint64_t speed; /* bytes per second, when last known; FASTEST: as fast as the server */
    bool answering;
    bool ended;
    bool looked_up; /* whose it is */
    bool stranger;
} seat;

#define FASTEST UINT64_MAX

struct serve_guard {
    pthread_mutex_t lock; /* guards all below; nothing is called with it but shutdown() */
    GHashTable *seats;    /* seat */
    guint places;
    guint crowd;          /* places that are taken when patience ends */
    gint64 given_us;      /* when the slowest one last gave its place, or nobody waited */
    atomic_int listening; /* socket; -1: not yet */
    atomic_bool over;
    pthread_t watcher;
};

/* What the kernel tells of a socket. @return how many bytes of it are there; 0: nothing. */
static size_t
ask_kernel(int socket, struct tcp_info *ret)
{
    socklen_t bytes = sizeof *ret;
    memset(ret, 0, sizeof *ret);
    return getsockopt(socket, IPPROTO_TCP, TCP_INFO, ret, &bytes) == 0 ? bytes : 0;
}

/* Bytes that the client has got. Kernels before 4.1 do not tell: then nobody is too slow. */
static uint64_t
taken_by(const seat *s)
{
    struct tcp_info info;
    if (ask_kernel(s->socket, &info) <
        offsetof(struct tcp_info, tcpi_bytes_acked) + sizeof info.tcpi_bytes_acked)
        return UINT64_MAX;
    return info.tcpi_bytes_acked;
}

/* Whether connections have come that got no place. */
static bool
others_wait(serve_guard *guard)
{
    struct tcp_info info;
    int socket = atomic_load(&guard->listening);
    return socket >= 0 && ask_kernel(socket, &info) != 0 && info.tcpi_unacked > 0;
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
    gint64 passed_us = MAX(now_us - s->taking_us, 1);
    s->speed = has && taken != UINT64_MAX
                   ? (uint64_t) ((double) (taken - s->taken) * G_USEC_PER_SEC / (double) passed_us)
                   : FASTEST;
    s->taking_us = now_us;
    s->taken = taken;
    return slow;
}

/* Whether a client that has no answer yet has had its time: not while what it sent lies unread, as
 * all threads of the server are busy. */
static bool
is_idle(const seat *s, gint64 now_us, gint64 patience_us)
{
    int unread = 0;
    return now_us - s->since_us >= patience_us &&
           (ioctl(s->socket, SIOCINQ, &unread) != 0 || unread == 0);
}

static void
end_seat(seat *s)
{
    s->ended = true;
    (void) shutdown(s->socket, SHUT_RDWR); /* libmicrohttpd closes it then */
}

/* Who takes its answer as fast as the server gives it keeps its place in any case. */
static void
end_slowest(serve_guard *guard, gint64 now_us)
{
    GHashTableIter iterator;
    gpointer key;
    seat *slowest = NULL;
    if (g_hash_table_size(guard->seats) < guard->places || !others_wait(guard)) {
        guard->given_us = now_us;
        return;
    }
    if (now_us - guard->given_us < SECONDS_BETWEEN * G_USEC_PER_SEC)
        return;
    g_hash_table_iter_init(&iterator, guard->seats);
    while (g_hash_table_iter_next(&iterator, &key, NULL)) {
        seat *s = key;
        if (!s->ended && s->answering && s->speed != FASTEST &&
            now_us - s->since_us >= SECONDS_SURE * G_USEC_PER_SEC &&
            (slowest == NULL || s->speed < slowest->speed))
            slowest = s;
    }
    if (slowest == NULL)
        return;
    end_seat(slowest);
    guard->given_us = now_us;
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
        if (s->ended || (s->answering ? !is_slow(s, now) || !crowded : !is_idle(s, now, patience)))
            continue;
        end_seat(s);
    }
    end_slowest(guard, now);
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
    guard->places = connections;
    guard->crowd = connections / 2;
    atomic_store(&guard->listening, -1);
    if (pthread_create(&guard->watcher, NULL, watch, guard) == 0)
        return guard;
    g_hash_table_unref(guard->seats);
    g_free(guard);
    return NULL;
}

void
serve_guard_listens(serve_guard *guard, MHD_socket socket)
{
    atomic_store(&guard->listening, socket);
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
    s->speed = FASTEST;
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
