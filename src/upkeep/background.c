/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Draining beside the program that writes: one thread of a session, begun by the first
 *  commit, one container after the other. */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/own_process.h"
#include "upkeep/upkeep.h"

typedef struct entry {
    struct entry *next;
    bool due;    /* something was committed since it was drained */
    char name[]; /* of a container */
} entry;

struct esdm__drainer {
    esdm_session *session;
    pid_t process;           /* a forked child has no part in what its parent drains */
    esdm__departed departed; /* of the thread */
    pthread_mutex_t lock;    /* guards all that follows */
    pthread_cond_t work;
    entry *entries; /* all containers that were committed; none is taken out */
    bool ends;
    pthread_t thread;
};

static void
drain_one(esdm__drainer *drainer, entry *e)
{
    const char *const names[] = {e->name};
    esdm_drain_result result;
    const esdm_drain_options options = {.containers = names, .ncontainers = 1};
    /* What fails now is tried again at the end, and can be done by esdm-drain. */
    (void) !esdm__upkeep_drain(drainer->session, &options, &drainer->departed, &result, NULL);
}

static void *
work(void *argument)
{
    esdm__drainer *drainer = argument;
    (void) pthread_mutex_lock(&drainer->lock);
    for (;;) {
        entry *e = drainer->entries;
        while (e != NULL && !e->due)
            e = e->next;
        if (e == NULL && drainer->ends)
            break;
        if (e == NULL) {
            (void) pthread_cond_wait(&drainer->work, &drainer->lock);
            continue;
        }
        e->due = false;
        (void) pthread_mutex_unlock(&drainer->lock);
        drain_one(drainer, e);
        (void) pthread_mutex_lock(&drainer->lock);
    }
    (void) pthread_mutex_unlock(&drainer->lock);
    return NULL;
}

static esdm__drainer *
start(esdm_session *session)
{
    esdm__drainer *drainer = calloc(1, sizeof *drainer);
    if (drainer == NULL)
        return NULL;
    drainer->session = session;
    drainer->process = esdm__own_pid();
    (void) pthread_mutex_init(&drainer->lock, NULL);
    (void) pthread_cond_init(&drainer->work, NULL);
    if (pthread_create(&drainer->thread, NULL, work, drainer) == 0)
        return drainer;
    (void) pthread_cond_destroy(&drainer->work);
    (void) pthread_mutex_destroy(&drainer->lock);
    free(drainer);
    return NULL;
}

static bool
is_wanted(const esdm_session *session)
{
    bool local = false;
    for (size_t i = 0; i < session->ntargets; i++)
        local |= session->targets[i].local;
    return local && session->site->engine.drain_in_background && !session->read_only;
}

void
esdm__drain_later(esdm_session *session, const char *name)
{
    if (!is_wanted(session))
        return;
    (void) pthread_mutex_lock(&session->writer_lock);
    if (session->drainer == NULL)
        session->drainer = start(session);
    esdm__drainer *drainer = session->drainer;
    (void) pthread_mutex_unlock(&session->writer_lock);
    if (drainer == NULL || drainer->process != esdm__own_pid())
        return;
    (void) pthread_mutex_lock(&drainer->lock);
    entry *e = drainer->entries;
    while (e != NULL && strcmp(e->name, name) != 0)
        e = e->next;
    if (e == NULL && (e = malloc(sizeof *e + strlen(name) + 1)) != NULL) {
        memcpy(e->name, name, strlen(name) + 1);
        e->next = drainer->entries;
        drainer->entries = e;
    }
    if (e != NULL)
        e->due = true;
    (void) pthread_cond_signal(&drainer->work);
    (void) pthread_mutex_unlock(&drainer->lock);
}

static void
free_entries(esdm__drainer *drainer)
{
    while (drainer->entries != NULL) {
        entry *e = drainer->entries;
        drainer->entries = e->next;
        free(e);
    }
}

void
esdm__drain_end(esdm_session *session)
{
    /* At the end of a program a lock may never be given back. */
    if (pthread_mutex_trylock(&session->writer_lock) != 0)
        return;
    esdm__drainer *drainer = session->drainer;
    session->drainer = NULL;
    (void) pthread_mutex_unlock(&session->writer_lock);
    if (drainer == NULL)
        return;
    if (drainer->process != esdm__own_pid()) {
        /* Its thread is not here; what it was about to change, the lock too, is in an unknown
         * state. */
        free_entries(drainer);
        free(drainer);
        return;
    }
    (void) pthread_mutex_lock(&drainer->lock);
    drainer->ends = true;
    /* All containers are closed: their packs can go now. */
    for (entry *e = drainer->entries; e != NULL; e = e->next)
        e->due = true;
    (void) pthread_cond_signal(&drainer->work);
    (void) pthread_mutex_unlock(&drainer->lock);
    (void) pthread_join(drainer->thread, NULL);
    esdm__departed_clear(&drainer->departed);
    free_entries(drainer);
    (void) pthread_cond_destroy(&drainer->work);
    (void) pthread_mutex_destroy(&drainer->lock);
    free(drainer);
}
