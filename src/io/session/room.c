/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/session/room.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/own_process.h"

struct esdm__room {
    pthread_mutex_t lock; /* guards what changes below; a leaf lock */
    pthread_cond_t changed;
    esdm__pool *pool;
    uint64_t limit_bytes;
    uint64_t taken_bytes;
    uint64_t arrived; /* who waits has a number; */
    uint64_t served;  /* that one is next */
    pid_t owner;      /* what a forked child has copied may never be given back there */
};

esdm__room *
esdm__room_new(uint64_t limit_bytes, esdm__pool *pool)
{
    esdm__room *room = calloc(1, sizeof *room);
    if (room == NULL)
        return NULL;
    room->limit_bytes = limit_bytes;
    room->pool = pool;
    room->owner = esdm__own_pid();
    (void) pthread_mutex_init(&room->lock, NULL);
    (void) pthread_cond_init(&room->changed, NULL);
    return room;
}

void
esdm__room_free(esdm__room *room)
{
    if (room == NULL)
        return;
    if (room->owner == esdm__own_pid()) {
        (void) pthread_cond_destroy(&room->changed);
        (void) pthread_mutex_destroy(&room->lock);
    }
    free(room);
}

/* With the lock held. */
static bool
fits(const esdm__room *room, uint64_t bytes)
{
    return room->taken_bytes == 0 || (room->taken_bytes <= room->limit_bytes &&
                                      bytes <= room->limit_bytes - room->taken_bytes);
}

/* Who is in the room needs nothing that a waiting thread has: it has no lock, and its place in the
 * pool goes to others, such as who comes back from a target with its room. */
static void
wait_for_turn(esdm__room *room, uint64_t bytes)
{
    esdm__pool_wait_begin(room->pool);
    (void) pthread_mutex_lock(&room->lock);
    uint64_t number = room->arrived++;
    while (room->served != number || !fits(room, bytes))
        (void) pthread_cond_wait(&room->changed, &room->lock);
    room->served++;
    room->taken_bytes += bytes;
    (void) pthread_cond_broadcast(&room->changed);
    (void) pthread_mutex_unlock(&room->lock);
    esdm__pool_wait_end(room->pool);
}

uint64_t
esdm__room_take(esdm__room *room, uint64_t bytes)
{
    if (bytes == 0 || room->owner != esdm__own_pid())
        return 0;
    (void) pthread_mutex_lock(&room->lock);
    bool at_once = room->served == room->arrived && fits(room, bytes);
    if (at_once)
        room->taken_bytes += bytes;
    (void) pthread_mutex_unlock(&room->lock);
    if (!at_once)
        wait_for_turn(room, bytes);
    return bytes;
}

void
esdm__room_give(esdm__room *room, uint64_t bytes)
{
    if (bytes == 0)
        return;
    (void) pthread_mutex_lock(&room->lock);
    room->taken_bytes -= bytes;
    if (room->served != room->arrived)
        (void) pthread_cond_broadcast(&room->changed);
    (void) pthread_mutex_unlock(&room->lock);
}
