/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Facts about containers for those who see them as files. */

#include "internal.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- parked --------------------------------------------------------------------------------- */

/* The container whose bytes were looked at last: who chooses by them what to do with a file opens
 * it next, in most programs. Until then, or until another one is looked at, opened or changed, it
 * keeps its snapshot. */
typedef struct parked {
    esdm_container *container;
    uint64_t generation;
    char name[ESDM_CONTAINER_NAME_MAX + 1];
} parked;
static _Atomic(parked *) last;

/* Takes it out; NULL when there is none, or it is of the process that this one was forked from,
 * whose session does not work here. */
static parked *
take_last(void)
{
    parked *it = atomic_exchange(&last, NULL);
    if (it == NULL || it->generation == esdmnc_session_generation())
        return it;
    free(it);
    return NULL;
}

static void
free_parked(parked *it)
{
    if (it == NULL)
        return;
    esdm_container_discard(it->container);
    free(it);
}

void
esdmnc_parked_drop(void)
{
    free_parked(take_last());
}

esdm_container *
esdmnc_parked_take(const char *name)
{
    esdm_error err;
    parked *it = take_last();
    if (it == NULL || strcmp(it->name, name) != 0 ||
        esdm_container_refresh(it->container, &err) != ESDM_OK) {
        free_parked(it);
        return NULL;
    }
    esdm_container *container = it->container;
    free(it);
    return container;
}

/* Owns the container from now on. */
static void
park(const char *name, esdm_container *container)
{
    parked *it = malloc(sizeof *it);
    if (it == NULL) {
        esdm_container_discard(container);
        return;
    }
    it->container = container;
    it->generation = esdmnc_session_generation();
    (void) strcpy(it->name, name);
    esdmnc_parked_drop();
    it = atomic_exchange(&last, it);
    free_parked(it); /* of another thread, meanwhile */
}

/* ---- facts ---------------------------------------------------------------------------------- */

typedef struct search {
    const char *folder;
    bool found;
} search;

static bool
visit(const esdm_container_info *info, void *user)
{
    search *s = user;
    s->found = strcmp(info->name, s->folder) != 0; /* the list has one of that very name first */
    return !s->found;
}

int
esdmnc_format(const char *container)
{
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_session *session;
    esdm_container *handle;
    esdm_error err;
    char buffer[ESDM_CONTAINER_NAME_MAX + 1];
    container = esdmnc_recipe_name(container, ESDMNC_TO_READ, buffer);
    if (esdm_container_normalise(container, name, &err) != ESDM_OK ||
        esdmnc_session(false, &session) != NC_NOERR)
        return NC_FORMAT_NETCDF4;
    handle = esdmnc_files_writer(name);
    if (handle != NULL)
        return esdmnc_hinted_format(handle);
    handle = esdmnc_parked_take(name);
    if (handle == NULL && esdm_container_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST,
                                              &handle, &err) != ESDM_OK)
        return NC_FORMAT_NETCDF4;
    int format = esdmnc_hinted_format(handle);
    park(name, handle);
    return format;
}

/* Folders exist as parts of names. */
int
esdmnc_is_folder(const char *folder)
{
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_session *session;
    esdm_error err;
    search s = {.folder = name};
    if (esdm_container_normalise(folder, name, &err) != ESDM_OK ||
        esdmnc_session(false, &session) != NC_NOERR)
        return 0;
    if (esdm_container_list(session, name, visit, &s, &err) != ESDM_OK) {
        (void) esdmnc_error(&err, "list", name);
        return 0;
    }
    return s.found;
}
