/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Facts about containers for those who see them as files. */

#include "internal.h"

#include <string.h>

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
    if (esdm_container_normalise(container, name, &err) != ESDM_OK ||
        esdmnc_session(false, &session) != NC_NOERR)
        return NC_FORMAT_NETCDF4;
    handle = esdmnc_files_writer(name);
    if (handle != NULL)
        return esdmnc_hinted_format(handle);
    if (esdm_container_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &handle, &err) !=
        ESDM_OK)
        return NC_FORMAT_NETCDF4;
    int format = esdmnc_hinted_format(handle);
    esdm_container_discard(handle);
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
