/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_SESSION_ROOM_H
#define ESDM_IO_SESSION_ROOM_H

/**
 * @file
 * Memory that the readers of a session may hold together while they decode. Who finds no room
 * waits, in the order of arrival; what is larger than the whole room goes on alone. Threads: locked
 * inside.
 */

#include <stdint.h>

#include "io/session/pool.h"

typedef struct esdm__room esdm__room;

/** @param pool borrowed: gives the place of who waits to others. NULL when out of memory. */
esdm__room *esdm__room_new(uint64_t limit_bytes, esdm__pool *pool);
void esdm__room_free(esdm__room *room); /* NULL is accepted; nobody may be in it */

/**
 * Waits until there is room for `bytes`. A thread that has some must not ask for more, and no lock
 * may be held. @return what is to be given back: 0 in a forked child, where nothing is counted.
 */
uint64_t esdm__room_take(esdm__room *room, uint64_t bytes);
/** By any thread. @param bytes as esdm__room_take() told; 0 is nothing. */
void esdm__room_give(esdm__room *room, uint64_t bytes);

#endif
