/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_SQLITE_PINS_H
#define ESDM_BACKEND_SQLITE_PINS_H

/**
 * @file
 * Pins: which snapshots are in use, over all processes of the machines that share the directory.
 *
 * A pin is a read lock on one byte of the file `pins` (offset container << 32 | snapshot) by open
 * file description, so that it dies with its process, and closing another file of the same name
 * does not drop it. Who deletes snapshots takes the write lock on their bytes first and keeps it
 * until the deletion is published: a reader pins, then looks whether the snapshot is still there.
 * Threads: locked inside.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "esdm/status.h"

typedef struct sqlite__pin_entry {
    uint64_t key; /* 0: free */
    uint32_t count;
    bool there; /* somebody who counts has seen it since it was pinned: it cannot go meanwhile */
} sqlite__pin_entry;

typedef struct sqlite__pins {
    pthread_mutex_t mutex;    /* guards fd and the table; may be held while a deleter commits */
    int fd;                   /* for read locks; -1: not open */
    sqlite__pin_entry *table; /* open addressing; capacity is a power of two */
    size_t capacity;
    size_t used;
    int probe_fd;          /* for write locks; -1: not open; under the store's write_mutex */
    const char *directory; /* borrowed from the store */
    bool optional;         /* a frozen store: do without the file */
    bool taken;            /* some write lock is held; under write_mutex */
} sqlite__pins;

esdm_status sqlite__pins_init(sqlite__pins *pins, const char *directory, esdm_error *err);
void sqlite__pins_clear(sqlite__pins *pins);
/** Makes the file in an open directory. */
esdm_status sqlite__pins_make(int directory_fd, const char *directory, esdm_error *err);

/** Counts. Waits while a deleter has the byte. @param ret_there whether somebody has seen the
 *  snapshot while it was pinned, so that one need not look again; NULL: nobody asks. */
esdm_status sqlite__pins_add(sqlite__pins *pins, uint64_t key, bool *ret_there, esdm_error *err);
/** Notes that a snapshot that the caller has pinned was seen. */
void sqlite__pins_seen(sqlite__pins *pins, uint64_t key);
void sqlite__pins_drop(sqlite__pins *pins, uint64_t key);

/** Takes the write lock on `count` bytes if nobody has one of them pinned, this process included.
 *  Under the store's write_mutex. @param ret_taken whether it was taken. */
esdm_status sqlite__pins_take(sqlite__pins *pins, uint64_t first, uint64_t count, bool *ret_taken,
                              esdm_error *err);
/** Whether one of the bytes is pinned, without taking anything. Under write_mutex. */
esdm_status sqlite__pins_probe(sqlite__pins *pins, uint64_t first, uint64_t count, bool *ret_pinned,
                               esdm_error *err);
/** Frees all write locks. Under write_mutex. */
void sqlite__pins_release(sqlite__pins *pins);

#endif
