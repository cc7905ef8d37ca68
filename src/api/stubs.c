/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Which container a stub file means: by the number and the version that both have. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arguments.h"
#include "base/error.h"
#include "esdm/esdm.h"
#include "model/names.h"

#define SECOND_NS UINT64_C(1000000000)

uint64_t
esdm_container_stub(const esdm_container *container, uint64_t *ret_version)
{
    const char *hint = container != NULL ? esdm_container_hint(container, ESDM_HINT_STUB) : NULL;
    char *end = NULL;
    uint64_t number = hint == NULL ? 0 : strtoull(hint, &end, 16);
    uint64_t version = number == 0 ? 0 : strtoull(end, NULL, 16);
    if (ret_version != NULL)
        *ret_version = version == 0 ? number : version; /* of an earlier ESDM */
    return number;
}

/* What a name begins with, without the last slash. */
static size_t
bytes_above(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash != NULL ? (size_t) (slash - name) : 0;
}

esdm_status
esdm_container_set_stub(esdm_container *container, uint64_t number, uint64_t version,
                        const char *folder, esdm_error *err)
{
    char numbers[34];
    ESDM__NEED(err, container);
    if (number == 0 || version == 0)
        return esdm__error_set(err, ESDM_EINVAL, "the number and the version of a stub are not 0");
    if (folder != NULL && folder[0] != '\0' && folder[0] != '/')
        return esdm__error_set(err, ESDM_EINVAL,
                               "the folder of a stub is a whole path, not '%.300s'", folder);
    (void) snprintf(numbers, sizeof numbers, "%016" PRIx64 " %016" PRIx64, number, version);
    esdm_status status = esdm_container_set_hint(container, ESDM_HINT_STUB, numbers, err);
    bool known = folder != NULL && folder[0] != '\0' && esdm__utf8_is_valid(folder, strlen(folder));
    if (status != ESDM_OK || !known)
        return status != ESDM_OK
                   ? status
                   : esdm_container_set_hint(container, ESDM_HINT_STUB_FOLDER, NULL, err);
    const char *name = esdm_container_name(container);
    size_t above = bytes_above(name);
    size_t room = strlen(esdm_container_uuid(container)) + above + strlen(folder) + 32;
    char *text = malloc(room);
    if (text == NULL)
        return esdm__error_nomem(err, room, "the folder of a stub");
    (void) snprintf(text, room, "%s %zu %.*s %s", esdm_container_uuid(container), above,
                    (int) above, name, folder);
    status = esdm_container_set_hint(container, ESDM_HINT_STUB_FOLDER, text, err);
    free(text);
    return status;
}

const char *
esdm_container_stub_folder(const esdm_container *container)
{
    const char *text =
        container != NULL ? esdm_container_hint(container, ESDM_HINT_STUB_FOLDER) : NULL;
    const char *uuid = text != NULL ? esdm_container_uuid(container) : "";
    size_t digits = strlen(uuid);
    if (digits == 0 || strncmp(text, uuid, digits) != 0 || text[digits] != ' ')
        return NULL;
    const char *name = esdm_container_name(container);
    char *at = NULL;
    uintmax_t above = strtoumax(text + digits + 1, &at, 10);
    if (*at != ' ' || above != bytes_above(name) || strncmp(at + 1, name, above) != 0 ||
        strncmp(at + 1 + above, " /", 2) != 0)
        return NULL;
    return at + 2 + above;
}

static bool
has_number(esdm_session *session, const char *name, uint64_t number, uint64_t version)
{
    esdm_container *container;
    uint64_t found = 0;
    if (esdm_container_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container,
                            NULL) != ESDM_OK)
        return false;
    bool same = esdm_container_stub(container, &found) == number && found == version;
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
name_at(const char *name, uint64_t time_ns, char ret_name[ESDM_CONTAINER_NAME_MAX + 1])
{
    time_t seconds = (time_t) (time_ns / SECOND_NS);
    char text[24];
    struct tm date;
    if (gmtime_r(&seconds, &date) == NULL ||
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &date) == 0)
        return false;
    int n = snprintf(ret_name, ESDM_CONTAINER_NAME_MAX + 1, "%s@%s.%09u", name, text,
                     (unsigned) (time_ns % SECOND_NS));
    return n > 0 && n <= ESDM_CONTAINER_NAME_MAX;
}

esdm_status
esdm_container_of_stub(esdm_session *session, const char *name, uint64_t number, uint64_t version,
                       char *ret_name, esdm_error *err)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    char past[ESDM_CONTAINER_NAME_MAX + 1];
    const char *found = NULL;
    moments all = {.name = normal};
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    ESDM__NEED(err, ret_name);
    esdm_status status = esdm_container_normalise(name, normal, err);
    if (status != ESDM_OK)
        return status;
    if (has_number(session, normal, number, version))
        found = normal;
    else if (esdm_former_list(session, normal, note_former, &all, NULL) == ESDM_OK && !all.failed) {
        for (size_t i = all.count; i-- > 0 && found == NULL;)
            found =
                name_at(normal, all.times_ns[i], past) && has_number(session, past, number, version)
                    ? past
                    : NULL;
    }
    free(all.times_ns);
    if (found == NULL)
        return esdm__error_set(err, ESDM_ENOENT,
                               "the container '%.300s' that is meant was replaced or removed since "
                               "then: esdm-ls --replaced shows whether it is kept, esdm-restore "
                               "--as brings it back beside",
                               normal);
    (void) snprintf(ret_name, ESDM_CONTAINER_NAME_MAX + 1, "%s", found);
    return ESDM_OK;
}
