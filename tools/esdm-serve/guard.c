/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Connections that ask for nothing give their place to others: libmicrohttpd's own time begins anew
 * with each byte, so that clients which send one now and then would keep all places for ever. */
#include "esdm-serve/esdm-serve.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#define SECONDS_PATIENT   10 /* for the headers of a request */
#define SECONDS_IMPATIENT 1  /* when most places are taken */
#define LOOK_US           200000

/* A connection. */
typedef struct seat {
    MHD_socket socket;
    gint64 since_us; /* when it began to wait for a request */
    bool answering;
    bool ended;
} seat;

struct serve_guard {
    pthread_mutex_t lock; /* guards all below; nothing is called with it but shutdown() */
    GHashTable *seats;    /* seat */
    guint crowd;          /* places that are taken when patience ends */
    atomic_bool over;
    pthread_t watcher;
};

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
        if (s->answering || s->ended || now - s->since_us < patience)
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

static void
set_answering(serve_guard *guard, struct MHD_Connection *connection, bool answering)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    seat *s = info != NULL ? info->socket_context : NULL;
    if (s == NULL)
        return;
    (void) pthread_mutex_lock(&guard->lock);
    s->answering = answering;
    s->since_us = g_get_monotonic_time();
    (void) pthread_mutex_unlock(&guard->lock);
}

void
serve_guard_request(serve_guard *guard, struct MHD_Connection *connection)
{
    set_answering(guard, connection, true);
}

void
serve_guard_done(void *user, struct MHD_Connection *connection, void **seen,
                 enum MHD_RequestTerminationCode how)
{
    (void) seen;
    (void) how;
    set_answering(user, connection, false);
}
