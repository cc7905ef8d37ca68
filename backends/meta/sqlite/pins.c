/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "pins.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "store.h"

#define PIN_NAP_NS 200000

esdm_status
sqlite__pins_init(sqlite__pins *pins, const char *directory, esdm_error *err)
{
    *pins = (sqlite__pins){.fd = -1, .probe_fd = -1, .directory = directory};
    if (pthread_mutex_init(&pins->mutex, NULL) != 0)
        return esdm__error_nomem(err, sizeof pins->mutex, "a mutex");
    return ESDM_OK;
}

void
sqlite__pins_clear(sqlite__pins *pins)
{
    if (pins->fd >= 0)
        (void) esdm__descriptor_close(pins->fd);
    if (pins->probe_fd >= 0)
        (void) esdm__descriptor_close(pins->probe_fd);
    free(pins->table);
    (void) pthread_mutex_destroy(&pins->mutex);
}

esdm_status
sqlite__pins_make(int directory_fd, const char *directory, esdm_error *err)
{
    int fd = openat(directory_fd, SQLITE__PINS, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return esdm__error_set_errno(err, errno, "cannot make '%.200s/%s'", directory,
                                     SQLITE__PINS);
    (void) close(fd);
    return ESDM_OK;
}

static int
open_file(const sqlite__pins *pins, int flags)
{
    char path[PATH_MAX];
    (void) snprintf(path, sizeof path, "%s/%s", pins->directory, SQLITE__PINS);
    return esdm__descriptor_keep(open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666));
}

/* Returns 0 or an errno. */
static int
set_lock(int fd, int command, short type, uint64_t first, uint64_t count)
{
    struct flock lock = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t) first, .l_len = (off_t) count};
    while (fcntl(fd, command, &lock) != 0) {
        if (errno != EINTR)
            return errno;
    }
    return 0;
}

static esdm_status
lock_error(const sqlite__pins *pins, int why, esdm_error *err)
{
    return esdm__error_set_errno(err, why, "cannot lock '%.200s/%s'", pins->directory,
                                 SQLITE__PINS);
}

/* ---- table of this process's pins ----------------------------------------------------------- */

static size_t
slot_of(const sqlite__pins *pins, uint64_t key)
{
    size_t at = (size_t) ((key * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & (pins->capacity - 1);
    while (pins->table[at].key != 0 && pins->table[at].key != key)
        at = (at + 1) & (pins->capacity - 1);
    return at;
}

static bool
grow_table(sqlite__pins *pins)
{
    /* The table alone: other members are under other locks. */
    sqlite__pins grown = {.capacity = pins->capacity == 0 ? 64 : pins->capacity * 2};
    grown.table = calloc(grown.capacity, sizeof *grown.table);
    if (grown.table == NULL)
        return false;
    for (size_t i = 0; i < pins->capacity; i++) {
        if (pins->table[i].key != 0)
            grown.table[slot_of(&grown, pins->table[i].key)] = pins->table[i];
    }
    free(pins->table);
    pins->table = grown.table;
    pins->capacity = grown.capacity;
    return true;
}

/* Moves later entries of the run up, so that none becomes unreachable. */
static void
erase_slot(sqlite__pins *pins, size_t at)
{
    size_t mask = pins->capacity - 1;
    pins->table[at] = (sqlite__pin_entry){0};
    pins->used--;
    for (size_t next = (at + 1) & mask; pins->table[next].key != 0; next = (next + 1) & mask) {
        sqlite__pin_entry moved = pins->table[next];
        pins->table[next] = (sqlite__pin_entry){0};
        pins->table[slot_of(pins, moved.key)] = moved;
    }
}

/* ---- pins ----------------------------------------------------------------------------------- */

/* Deleters hold a byte as long as a commit takes, unless they are stopped. Returns 0 or an errno.
 */
static int
wait_for_deleter(int fd, uint64_t key)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    const time_t until = now.tv_sec + SQLITE__BUSY_SECONDS;
    for (;;) {
        int why = set_lock(fd, F_OFD_SETLK, F_RDLCK, key, 1);
        if (why == EACCES)
            why = EAGAIN; /* POSIX allows both */
        (void) clock_gettime(CLOCK_MONOTONIC, &now);
        if (why != EAGAIN || now.tv_sec >= until)
            return why;
        const struct timespec nap = {.tv_nsec = PIN_NAP_NS};
        (void) nanosleep(&nap, NULL);
    }
}

/* Under the mutex. */
static esdm_status
lock_byte(sqlite__pins *pins, uint64_t key, esdm_error *err)
{
    if (pins->fd < 0)
        pins->fd = open_file(pins, O_RDONLY);
    int why = pins->fd < 0 ? errno : wait_for_deleter(pins->fd, key);
    if (why == EAGAIN && !pins->optional)
        return esdm__error_set(err, ESDM_ETIMEDOUT,
                               "'%.200s/%s': a process that deletes snapshots holds its lock for "
                               "more than %d s; is it stopped?",
                               pins->directory, SQLITE__PINS, SQLITE__BUSY_SECONDS);
    if (why == 0 || pins->optional)
        return ESDM_OK;
    return lock_error(pins, why, err);
}

esdm_status
sqlite__pins_add(sqlite__pins *pins, uint64_t key, bool *ret_there, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    (void) pthread_mutex_lock(&pins->mutex);
    if (2 * (pins->used + 1) > pins->capacity && !grow_table(pins)) {
        status = esdm__error_nomem(err, pins->capacity * 2 * sizeof *pins->table, "pins");
    } else {
        sqlite__pin_entry *pin = &pins->table[slot_of(pins, key)];
        if (pin->key == 0)
            status = lock_byte(pins, key, err);
        if (status == ESDM_OK) {
            pins->used += pin->key == 0;
            pin->key = key;
            pin->count++;
            if (ret_there != NULL)
                *ret_there = pin->there;
        }
    }
    (void) pthread_mutex_unlock(&pins->mutex);
    return status;
}

void
sqlite__pins_seen(sqlite__pins *pins, uint64_t key)
{
    (void) pthread_mutex_lock(&pins->mutex);
    sqlite__pin_entry *pin = &pins->table[slot_of(pins, key)];
    pin->there = pin->key == key;
    (void) pthread_mutex_unlock(&pins->mutex);
}

void
sqlite__pins_drop(sqlite__pins *pins, uint64_t key)
{
    (void) pthread_mutex_lock(&pins->mutex);
    size_t at = pins->capacity > 0 ? slot_of(pins, key) : 0;
    if (pins->capacity > 0 && pins->table[at].key == key && --pins->table[at].count == 0) {
        erase_slot(pins, at);
        if (pins->fd >= 0)
            (void) set_lock(pins->fd, F_OFD_SETLK, F_UNLCK, key, 1);
    }
    (void) pthread_mutex_unlock(&pins->mutex);
}

/* ---- deleters ------------------------------------------------------------------------------- */

static esdm_status
open_probe(sqlite__pins *pins, esdm_error *err)
{
    if (pins->probe_fd < 0)
        pins->probe_fd = open_file(pins, O_RDWR | O_CREAT);
    return pins->probe_fd >= 0 ? ESDM_OK : lock_error(pins, errno, err);
}

esdm_status
sqlite__pins_take(sqlite__pins *pins, uint64_t first, uint64_t count, bool *ret_taken,
                  esdm_error *err)
{
    esdm_status status = open_probe(pins, err);
    if (status != ESDM_OK)
        return status;
    int why = set_lock(pins->probe_fd, F_OFD_SETLK, F_WRLCK, first, count);
    if (why != 0 && why != EAGAIN && why != EACCES)
        return lock_error(pins, why, err);
    *ret_taken = why == 0;
    pins->taken |= why == 0;
    return ESDM_OK;
}

esdm_status
sqlite__pins_probe(sqlite__pins *pins, uint64_t first, uint64_t count, bool *ret_pinned,
                   esdm_error *err)
{
    esdm_status status = open_probe(pins, err);
    if (status != ESDM_OK)
        return status;
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t) first, .l_len = (off_t) count};
    if (fcntl(pins->probe_fd, F_OFD_GETLK, &lock) != 0)
        return lock_error(pins, errno, err);
    *ret_pinned = lock.l_type != F_UNLCK;
    return ESDM_OK;
}

void
sqlite__pins_release(sqlite__pins *pins)
{
    if (pins->taken)
        (void) set_lock(pins->probe_fd, F_OFD_SETLK, F_UNLCK, 0, 0);
    pins->taken = false;
}
