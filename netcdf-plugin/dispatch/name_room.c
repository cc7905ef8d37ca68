/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The room of names in netCDF-3 files: a name that is made shorter in data mode keeps its bytes in
 * the file's header, and may become as long again. Kept until the file is closed.
 */

#include "internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct esdmnc_room {
    const void *owner; /* dimension, dataset, or list of attributes */
    char *attribute;   /* owned; NULL: the name of the owner itself */
    size_t bytes;
} esdmnc_room;

static esdmnc_room *
find(const esdmnc_file *file, const void *owner, const char *attribute)
{
    for (size_t i = 0; i < file->room_count; i++) {
        esdmnc_room *room = &file->rooms[i];
        if (room->owner == owner && (attribute == NULL) == (room->attribute == NULL) &&
            (attribute == NULL || strcmp(attribute, room->attribute) == 0))
            return room;
    }
    return NULL;
}

bool
esdmnc_room_suffices(const esdmnc_file *file, const void *owner, const char *attribute,
                     const char *old_name, const char *new_name)
{
    const esdmnc_room *room = esdmnc_is_nc3(file) ? find(file, owner, attribute) : NULL;
    size_t bytes = room != NULL ? room->bytes : strlen(old_name);
    return strlen(new_name) <= bytes;
}

void
esdmnc_room_forget(esdmnc_file *file, const void *owner, const char *attribute)
{
    esdmnc_room *room = find(file, owner, attribute);
    if (room == NULL)
        return;
    free(room->attribute);
    *room = file->rooms[--file->room_count];
}

static int
add(esdmnc_file *file, const void *owner, char *attribute, size_t bytes)
{
    esdmnc_room *rooms = reallocarray(file->rooms, file->room_count + 1, sizeof *rooms);
    if (rooms == NULL)
        return NC_ENOMEM;
    file->rooms = rooms;
    rooms[file->room_count++] = (esdmnc_room){owner, attribute, bytes};
    return NC_NOERR;
}

int
esdmnc_room_renamed(esdmnc_file *file, const void *owner, bool is_attribute, const char *old_name,
                    const char *new_name)
{
    const char *attribute = is_attribute ? old_name : NULL;
    const esdmnc_room *room = find(file, owner, attribute);
    size_t bytes = room != NULL ? room->bytes : strlen(old_name);
    esdmnc_room_forget(file, owner, attribute);
    if (!esdmnc_is_nc3(file) || atomic_load(&file->indef) || strlen(new_name) >= bytes)
        return NC_NOERR;
    char *copy = is_attribute ? strdup(new_name) : NULL;
    if (is_attribute && copy == NULL)
        return NC_ENOMEM;
    int rc = add(file, owner, copy, bytes);
    if (rc != NC_NOERR)
        free(copy);
    return rc;
}

void
esdmnc_rooms_clear(esdmnc_file *file)
{
    for (size_t i = 0; i < file->room_count; i++)
        free(file->rooms[i].attribute);
    free(file->rooms);
    file->rooms = NULL;
    file->room_count = 0;
}
