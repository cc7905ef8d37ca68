/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Which container a stub file means: by the number and the version that both have. And where
 * it was made. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/seen.h"
#include "base/arguments.h"
#include "base/error.h"
#include "esdm/esdm.h"
#include "io/io.h"
#include "io/session/stub_files.h"
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
                        const char *folder, const char *place, esdm_error *err)
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
    bool placed = place != NULL && place[0] != '\0' && strpbrk(place, " \t\n") == NULL &&
                  esdm__utf8_is_valid(place, strlen(place));
    const char *at = placed ? place : "-";
    size_t room =
        strlen(esdm_container_uuid(container)) + strlen(name) + strlen(at) + strlen(folder) + 32;
    char *text = malloc(room);
    if (text == NULL)
        return esdm__error_nomem(err, room, "the folder of a stub");
    (void) snprintf(text, room, "%s %zu %s %s %s", esdm_container_uuid(container), strlen(name),
                    name, at, folder);
    status = esdm_container_set_hint(container, ESDM_HINT_STUB_FOLDER, text, err);
    free(text);
    return status;
}

/* What the hint says; all borrowed. */
typedef struct origin {
    const char *name;
    size_t name_bytes;
    const char *place;
    size_t place_bytes;
    const char *folder;
} origin;

/* false: it says nothing of this container. */
static bool
origin_of(const esdm_container *container, origin *ret)
{
    const char *text =
        container != NULL ? esdm_container_hint(container, ESDM_HINT_STUB_FOLDER) : NULL;
    const char *uuid = text != NULL ? esdm_container_uuid(container) : "";
    size_t digits = strlen(uuid);
    if (digits == 0 || strncmp(text, uuid, digits) != 0 || text[digits] != ' ')
        return false;
    char *at = NULL;
    uintmax_t bytes = strtoumax(text + digits + 1, &at, 10);
    if (*at != ' ' || bytes == 0 || bytes >= strlen(at + 1) || at[1 + bytes] != ' ')
        return false;
    ret->name = at + 1;
    ret->name_bytes = (size_t) bytes;
    ret->place = ret->name + bytes + 1;
    ret->place_bytes = strcspn(ret->place, " ");
    ret->folder = ret->place + ret->place_bytes + 1;
    return ret->place_bytes > 0 && strncmp(ret->place + ret->place_bytes, " /", 2) == 0;
}

const char *
esdm_container_stub_folder(const esdm_container *container)
{
    origin from;
    if (!origin_of(container, &from))
        return NULL;
    const char *name = esdm_container_name(container);
    size_t above = bytes_above(name);
    bool same = above < from.name_bytes && strncmp(from.name, name, above) == 0 &&
                (above == 0 || from.name[above] == '/') &&
                memchr(from.name + above + 1, '/', from.name_bytes - above - 1) == NULL &&
                (above > 0 || from.name[0] != '/');
    return same ? from.folder : NULL;
}

bool
esdm_container_stub_is_at(const esdm_container *container, const char *place)
{
    origin from;
    return place != NULL && place[0] != '\0' && strcmp(place, "-") != 0 &&
           origin_of(container, &from) && strlen(place) == from.place_bytes &&
           strncmp(place, from.place, from.place_bytes) == 0;
}

bool
esdm_container_stub_is_renamed(const esdm_container *container)
{
    char then[ESDM_CONTAINER_NAME_MAX + 1];
    char to_be[ESDM_CONTAINER_NAME_MAX + 1];
    origin from;
    if (!origin_of(container, &from))
        return false;
    const char *name = esdm_container_name(container);
    (void) snprintf(then, sizeof then, "%.*s", (int) from.name_bytes, from.name);
    esdm__name_to_be(then, to_be);
    return strcmp(name, then) != 0 && strcmp(name, to_be) != 0;
}

void
esdm_stub_place(const esdm_session *session, const char *folder, char *ret_place)
{
    if (ret_place == NULL)
        return;
    ret_place[0] = '\0';
    if (session != NULL && folder != NULL)
        esdm__stub_file_place(session, folder, ret_place);
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

/* ---- former containers whose files may live ------------------------------------------------- */

static bool
can_note(const esdm_session *session)
{
    return !session->read_only && session->meta->fact_put != NULL &&
           session->meta->is_writable(session->store);
}

esdm_status
esdm_container_stub_lost(esdm_session *session, const char *name, esdm_error *err)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_meta_container record;
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    esdm_status status = esdm__name_normalise(name, normal, err);
    if (status == ESDM_OK && can_note(session))
        status = session->meta->container_find(session->store, normal, &record, err);
    return status == ESDM_OK && can_note(session)
               ? esdm__stub_file_missing(session, record.uuid, err)
               : status;
}

esdm_status
esdm_container_stub_found(esdm_session *session, const char *name, const char *path,
                          esdm_error *err)
{
    esdm_container *container;
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    ESDM__NEED(err, path);
    if (path[0] != '/')
        return esdm__error_set(err, ESDM_EINVAL, "the path of a stub is a whole one, not '%.300s'",
                               path);
    if (!can_note(session))
        return esdm__error_set(err, ESDM_EACCES, "the site's catalogue cannot be written to");
    esdm_status status =
        esdm_container_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container, err);
    if (status != ESDM_OK)
        return status;
    status = esdm__stub_file_seen(session, esdm_container_uuid(container), path, err);
    esdm_container_discard(container);
    return status;
}
