/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What this process has read of containers, so that one which it made of another does not take the
 * name of that one when others have changed it meanwhile: copy, change, rename. Each name has the
 * snapshot at which it was opened last, or that this process has committed itself.
 *
 * NCO has its files renamed by mv, another process: what it is going to rename so carries a note.
 */

#include "internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct seen {
    char uuid[33];
    uint64_t snapshot;
    char *name; /* NULL: free */
} seen;

/* Guards what follows. Open addressing; never full. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static seen *table;
static size_t room; /* a power of two, or 0 */
static size_t used; /* those forgotten too: they keep their names, with an empty uuid */

static uint64_t
hash(const char *name)
{
    uint64_t sum = 14695981039346656037u; /* FNV-1a */
    for (; *name != '\0'; name++)
        sum = (sum ^ (unsigned char) *name) * 1099511628211u;
    return sum;
}

/* The place of a name, or where it would stand. Room is there. */
static seen *
place(seen *items, size_t count, const char *name)
{
    size_t at = hash(name) & (count - 1);
    while (items[at].name != NULL && strcmp(items[at].name, name) != 0)
        at = (at + 1) & (count - 1);
    return &items[at];
}

static bool
grow(void)
{
    size_t next = room == 0 ? 64 : room;
    size_t living = 0;
    for (size_t i = 0; i < room; i++)
        living += table[i].name != NULL && table[i].uuid[0] != '\0';
    while (living * 2 >= next)
        next *= 2;
    seen *items = calloc(next, sizeof *items);
    if (items == NULL)
        return false;
    for (size_t i = 0; i < room; i++) {
        if (table[i].name != NULL && table[i].uuid[0] != '\0')
            *place(items, next, table[i].name) = table[i];
        else
            free(table[i].name);
    }
    free(table);
    table = items;
    room = next;
    used = living;
    return true;
}

/* Without memory nothing is noted: renames go through then as they did. */
static void
note(const char *name, const char *uuid, uint64_t snapshot)
{
    pthread_mutex_lock(&lock);
    seen *one = room != 0 ? place(table, room, name) : NULL;
    if ((one == NULL || one->name == NULL) && (used + 1) * 4 > room * 3)
        one = grow() ? place(table, room, name) : NULL;
    if (one != NULL && one->name == NULL) {
        one->name = strdup(name);
        used += one->name != NULL;
    }
    if (one != NULL && one->name != NULL) {
        (void) strncpy(one->uuid, uuid, sizeof one->uuid - 1);
        one->snapshot = snapshot;
    }
    pthread_mutex_unlock(&lock);
}

void
esdmnc_seen_note(const esdmnc_file *file)
{
    const char *uuid = esdm_container_uuid(file->container);
    uint64_t snapshot = esdm_container_snapshot(file->container);
    if (uuid != NULL && strlen(uuid) == sizeof table->uuid - 1 && snapshot != 0)
        note(file->name, uuid, snapshot);
}

void
esdmnc_seen_forget(const char *name)
{
    pthread_mutex_lock(&lock);
    seen *one = room != 0 ? place(table, room, name) : NULL;
    if (one != NULL && one->name != NULL)
        one->uuid[0] = '\0';
    pthread_mutex_unlock(&lock);
}

bool
esdmnc_seen_find(const char *name, char *uuid, uint64_t *ret_snapshot)
{
    pthread_mutex_lock(&lock);
    const seen *one = room != 0 ? place(table, room, name) : NULL;
    bool found = one != NULL && one->name != NULL && one->uuid[0] != '\0';
    if (found) {
        memcpy(uuid, one->uuid, sizeof one->uuid);
        *ret_snapshot = one->snapshot;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static const char *
last_part(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash != NULL ? slash + 1 : name;
}

/* Whether an intermediate file is to be renamed to this container, as far as names tell: a route
 * may have given that one a further name, "a.nc~2". @param bytes of the part before ".pid". */
static bool
may_become(const char *part, size_t bytes, const char *name)
{
    const char *other = last_part(name);
    return strncmp(part, other, bytes) == 0 && (other[bytes] == '\0' || other[bytes] == '~');
}

void
esdmnc_seen_hand_on(const esdmnc_file *file)
{
    const char *part = last_part(file->name);
    const char *mark = strstr(part, ".pid");
    esdm_session *session = esdm_container_session(file->container);
    if (mark == NULL || !esdm_container_name_is_intermediate(file->name) ||
        esdm_container_snapshot(file->container) == 0)
        return;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < room; i++) {
        const seen *one = &table[i];
        esdm_error err;
        if (one->name == NULL || one->uuid[0] == '\0' ||
            !may_become(part, (size_t) (mark - part), one->name))
            continue;
        if (esdm_container_note_seen(session, file->name, one->name, one->uuid, one->snapshot,
                                     &err) != ESDM_OK)
            esdmnc_debug("note for the rename of '%s': %s", file->name, err.message);
    }
    pthread_mutex_unlock(&lock);
}

void
esdmnc_seen_forked(void)
{
    pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    memcpy(&lock, &unlocked, sizeof lock);
}
