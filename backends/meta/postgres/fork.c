/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Stores and fork(). A child shares the sockets of its parent's connections: it must not write to
 * them, and as long as it has them open, the server does not notice the end of the parent, whose
 * pins would stay. So a child lets go of them at once.
 */

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "postgres.h"

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER; /* guards open_stores; outermost */
static postgres__store *open_stores;

static void
before_fork(void)
{
    (void) pthread_mutex_lock(&list_mutex);
}

static void
after_fork_in_parent(void)
{
    (void) pthread_mutex_unlock(&list_mutex);
}

/* Only the thread that forked lives on in the child, but the thread sanitizer does not know it
 * before fork() returns: it takes what the others last did for a race with the handler. */
#ifdef __SANITIZE_THREAD__
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
#else
#define AnnotateIgnoreReadsBegin(file, line)  ((void) 0)
#define AnnotateIgnoreReadsEnd(file, line)    ((void) 0)
#define AnnotateIgnoreWritesBegin(file, line) ((void) 0)
#define AnnotateIgnoreWritesEnd(file, line)   ((void) 0)
#endif

static void
let_go_of_connections(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (postgres__store *store = open_stores; store != NULL; store = store->next) {
        int socket = store->link.conn != NULL ? PQsocket(store->link.conn) : -1;
        if (socket >= 0 && null >= 0)
            (void) dup3(null, socket, O_CLOEXEC);
        postgres__link_abandon(&store->link);
    }
    if (null >= 0)
        (void) close(null);
}

static void
after_fork_in_child(void)
{
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    let_go_of_connections();
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    (void) pthread_mutex_unlock(&list_mutex);
}

static void
register_handlers(void)
{
    (void) pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

void
postgres__enter_list(postgres__store *store)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void) pthread_once(&once, register_handlers);
    (void) pthread_mutex_lock(&list_mutex);
    store->next = open_stores;
    open_stores = store;
    (void) pthread_mutex_unlock(&list_mutex);
}

void
postgres__leave_list(postgres__store *store)
{
    (void) pthread_mutex_lock(&list_mutex);
    for (postgres__store **at = &open_stores; *at != NULL; at = &(*at)->next) {
        if (*at == store) {
            *at = store->next;
            break;
        }
    }
    (void) pthread_mutex_unlock(&list_mutex);
}
