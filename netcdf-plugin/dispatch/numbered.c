/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Numbers of stubs. A container has the number of the stub that was made with it, and a version,
 * which is another one each time that a program writes the file anew. A copy of the stub keeps what
 * it was copied with: by that it is found which container it means, this one or a former one
 * (src/api/stubs.c).
 */

#include "internal.h"

#include "calls.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

uint64_t
esdmnc_stub_number(int instance, int ncid, uint64_t *ret_version)
{
    esdmnc_file *file;
    esdmnc_group *group;
    *ret_version = 0;
    if (esdmnc_find(esdmnc_id_make(instance, ncid), &file, &group) != NC_NOERR)
        return 0;
    return esdm_container_stub(file->container, ret_version);
}

int
esdmnc_numbered(const char *container, uint64_t number, uint64_t version, char *ret_name,
                size_t size)
{
    char buffer[ESDM_CONTAINER_NAME_MAX + 1];
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    char found[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_session *session;
    const char *name = esdmnc_recipe_name(container, ESDMNC_TO_READ, buffer);
    if (esdm_container_normalise(name, normal, NULL) != ESDM_OK ||
        esdmnc_session(false, &session) != NC_NOERR ||
        esdm_container_of_stub(session, name, number, version, found, NULL) != ESDM_OK)
        return ENOENT;
    int n = snprintf(ret_name, size, "%s", strcmp(found, normal) == 0 ? container : found);
    return n >= 0 && (size_t) n < size ? NC_NOERR : ENOENT;
}

int
esdmnc_stub_file(const char *container, const char *path)
{
    char buffer[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_session *session;
    const char *name = esdmnc_recipe_name(container, ESDMNC_TO_READ, buffer);
    if (esdmnc_session(false, &session) != NC_NOERR)
        return ENOENT;
    esdm_status st = path == NULL ? esdm_container_stub_lost(session, name, NULL)
                                  : esdm_container_stub_found(session, name, path, NULL);
    return st == ESDM_OK ? NC_NOERR : ENOENT;
}
