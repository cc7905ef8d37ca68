/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Numbers of stubs. A container has the number of the stub that was made with it, and a version,
 * which is another one each time that a program writes the file anew. A copy of the stub keeps what
 * it was copied with: by that it is found which container it means, this one or a former one.
 */

#include "internal.h"

#include "calls.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND_NS UINT64_C(1000000000)

esdm_status
esdmnc_stub_set(esdm_container *container, uint64_t number, uint64_t version, esdm_error *err)
{
    char text[34];
    (void) snprintf(text, sizeof text, "%016" PRIx64 " %016" PRIx64, number, version);
    return esdm_container_set_hint(container, ESDMNC_HINT_STUB, text, err);
}

static uint64_t
number_of(const esdm_container *container, uint64_t *ret_version)
{
    const char *hint = esdm_container_hint(container, ESDMNC_HINT_STUB);
    char *end = NULL;
    uint64_t number = hint == NULL ? 0 : strtoull(hint, &end, 16);
    uint64_t version = number == 0 ? 0 : strtoull(end, NULL, 16);
    *ret_version = version == 0 ? number : version; /* of an earlier ESDM */
    return number;
}

uint64_t
esdmnc_stub_number(int instance, int ncid, uint64_t *ret_version)
{
    esdmnc_file *file;
    esdmnc_group *group;
    *ret_version = 0;
    if (esdmnc_find(esdmnc_id_make(instance, ncid), &file, &group) != NC_NOERR)
        return 0;
    return number_of(file->container, ret_version);
}

static bool
has_number(esdm_session *session, const char *name, uint64_t number, uint64_t version)
{
    esdm_container *container;
    uint64_t found = 0;
    if (esdm_container_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container,
                            NULL) != ESDM_OK)
        return false;
    bool same = number_of(container, &found) == number && found == version;
    esdm_container_discard(container);
    return same;
}

/* Moments at which former containers of the name were read; the newest first. */
typedef struct moments {
    const char *name;
    uint64_t *times_ns;
    size_t count;
    bool failed;
} moments;

static bool
note_former(const esdm_former_info *info, void *user)
{
    moments *all = user;
    if (strcmp(info->container.name, all->name) != 0 || info->time_ns == 0)
        return true;
    uint64_t *grown = realloc(all->times_ns, (all->count + 2) * sizeof *grown);
    all->failed = grown == NULL;
    if (grown == NULL)
        return false;
    all->times_ns = grown;
    grown[all->count++] = info->container.modified_ns;
    grown[all->count++] = info->time_ns - 1; /* just before it lost the name */
    return true;
}

static bool
name_at(const char *name, uint64_t time_ns, char *ret_name, size_t size)
{
    time_t seconds = (time_t) (time_ns / SECOND_NS);
    char text[24];
    struct tm date;
    if (gmtime_r(&seconds, &date) == NULL ||
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &date) == 0)
        return false;
    int n = snprintf(ret_name, size, "%s@%s.%09u", name, text, (unsigned) (time_ns % SECOND_NS));
    return n > 0 && (size_t) n < size;
}

int
esdmnc_numbered(const char *container, uint64_t number, uint64_t version, char *ret_name,
                size_t size)
{
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    char buffer[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_session *session;
    moments all = {.name = name};
    if (esdm_container_normalise(esdmnc_recipe_name(container, ESDMNC_TO_READ, buffer), name,
                                 NULL) != ESDM_OK ||
        esdmnc_session(false, &session) != NC_NOERR)
        return ENOENT;
    int rc = ENOENT;
    if (has_number(session, name, number, version)) {
        (void) snprintf(ret_name, size, "%s", container);
        return NC_NOERR;
    }
    if (esdm_former_list(session, name, note_former, &all, NULL) == ESDM_OK && !all.failed) {
        for (size_t i = all.count; i-- > 0 && rc != NC_NOERR;) {
            if (name_at(name, all.times_ns[i], ret_name, size) &&
                has_number(session, ret_name, number, version))
                rc = NC_NOERR;
        }
    }
    free(all.times_ns);
    return rc;
}
