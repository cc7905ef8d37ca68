/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What was perhaps meant by the name of a container that is not there. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/digest.h"
#include "api/renamed.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "io/read/coarse.h"
#include "io/session/former.h"
#include "model/container.h"

/* Looking at more would take longer than the hint is worth. */
#define NAMES_MOST 10000

typedef struct names {
    esdm__buffer bytes; /* one name after the other, each with its NUL */
    size_t count;
    const char *folder; /* of former containers: only those below it; "": all */
} names;

static bool
add_name(names *all, const char *name)
{
    esdm__buffer_put(&all->bytes, name, strlen(name) + 1);
    return ++all->count < NAMES_MOST;
}

static bool
note_name(const char *name, const esdm_meta_container *record, void *user)
{
    (void) record;
    return esdm__name_is_own(name) || add_name(user, name);
}

static bool
note_former(const char *stored, const esdm_meta_container *record, void *user)
{
    (void) record;
    names *all = user;
    esdm__former former;
    size_t bytes = strlen(all->folder);
    if (!esdm__former_parse(stored, &former) ||
        (bytes > 0 && (strncmp(former.name, all->folder, bytes) != 0 || former.name[bytes] != '/')))
        return true;
    return add_name(all, former.name);
}

/* "ocean.nc" for "ocean", "ocean.cn". */
static bool
has_other_extension(const char *known, const char *stem)
{
    size_t bytes = strlen(stem);
    return bytes > 0 && strncmp(known, stem, bytes) == 0 && known[bytes] == '.' &&
           strpbrk(known + bytes + 1, "./") == NULL;
}

/* The nearest name of those that begin with `folder`; "" when none is near. Only what lies behind
 * the folder is compared. */
static void
find_nearest(names *all, const char *name, const char *folder, char *text)
{
    char stem[ESDM_CONTAINER_NAME_MAX + 1];
    size_t skip = strlen(folder) + (folder[0] != '\0');
    const char **known = calloc(all->count + 1, sizeof *known);
    char *at = (char *) all->bytes.data;
    size_t count = 0;
    text[0] = '\0';
    (void) snprintf(stem, sizeof stem, "%s", name + skip);
    const char *extension = strrchr(name + skip, '.');
    size_t bytes = extension != NULL ? strlen(extension) : 0;
    stem[strlen(stem) - bytes] = '\0';
    for (size_t i = 0; known != NULL && i < all->count; i++) {
        size_t length = strlen(at);
        char *end = at + length;
        if (text[0] == '\0' && length > skip && has_other_extension(at + skip, stem))
            (void) snprintf(text, ESDM_CONTAINER_NAME_MAX + 1, "%s", at);
        /* Nearly all names end in ".nc": that makes no two of them alike. */
        if (length > skip + bytes && (bytes == 0 || strcmp(end - bytes, extension) == 0)) {
            *(end - bytes) = '\0';
            known[count++] = at + skip;
        }
        at = end + 1;
    }
    const char *nearest = count > 0 && text[0] == '\0' ? esdm__nearest_word(stem, known) : NULL;
    if (nearest != NULL)
        (void) snprintf(text, ESDM_CONTAINER_NAME_MAX + 1, "%s%s", nearest - skip,
                        bytes > 0 ? extension : "");
    free(known);
}

/* Names of living containers, or of former ones, below a folder. */
static esdm_status
list_names(const esdm_session *session, const char *folder, bool former, names *all)
{
    all->folder = folder;
    if (former)
        return session->meta->container_list(session->store, ESDM__FORMER_PREFIX, note_former, all,
                                             NULL);
    return session->meta->container_list(session->store, folder[0] != '\0' ? folder : NULL,
                                         note_name, all, NULL);
}

/* Among those of its folder first, then among all. */
static void
nearest_name(const esdm_session *session, const char *name, bool former, char *text)
{
    char folder[ESDM_CONTAINER_NAME_MAX + 1];
    (void) snprintf(folder, sizeof folder, "%s", name);
    char *slash = strrchr(folder, '/');
    text[0] = '\0';
    for (int i = slash != NULL ? 0 : 1; i < 2 && text[0] == '\0'; i++) {
        names all = {.count = 0};
        esdm__buffer_init(&all.bytes);
        if (i == 0)
            *slash = '\0';
        else
            folder[0] = '\0';
        if (list_names(session, folder, former, &all) == ESDM_OK && !all.bytes.failed)
            find_nearest(&all, name, folder, text);
        esdm__buffer_clear(&all.bytes);
    }
}

typedef struct formers {
    const char *name;
    uint64_t count;
    uint64_t last_ns; /* when the newest one lost the name */
} formers;

static bool
count_former(const char *stored, const esdm_meta_container *record, void *user)
{
    (void) record;
    formers *all = user;
    esdm__former former;
    if (!esdm__former_parse(stored, &former) || strcmp(former.name, all->name) != 0)
        return true;
    all->count++;
    if (former.time_ns > all->last_ns)
        all->last_ns = former.time_ns;
    return true;
}

/* The one that had the name last has another one now. */
static bool
suggest_renamed(esdm_session *session, const formers *all, char *text, size_t bytes)
{
    char now[ESDM_CONTAINER_NAME_MAX + 1];
    uint64_t time_ns = 0;
    if (!esdm__renamed_find(session, all->name, now, &time_ns) || all->last_ns > time_ns)
        return false;
    int n = snprintf(text, bytes, "it was renamed: it is called '%s' now", now);
    if (all->count > 0 && n > 0 && (size_t) n < bytes)
        (void) snprintf(text + n, bytes - (size_t) n,
                        " (an older one of this name is kept: esdm-restore --list)");
    return true;
}

/* Whether something can be suggested at all; `normal` is then the name, and `text` empty. */
static bool
begin(const esdm_session *session, const char *name, char *text, size_t bytes, char *normal)
{
    if (text != NULL && bytes > 0)
        text[0] = '\0';
    return session != NULL && name != NULL && text != NULL && bytes > 0 &&
           esdm__name_normalise(name, normal, NULL) == ESDM_OK;
}

static void
ask_for(const char *nearest, char *text, size_t bytes)
{
    if (nearest[0] != '\0')
        (void) snprintf(text, bytes, "did you mean '%s'?", nearest);
}

/* NAME@TEXT, where TEXT is no time and no number: the branch or tag of that name, or what may stand
 * there. */
static bool
suggest_behind_at(esdm_session *session, const char *name, char *text, size_t bytes)
{
    static const char *const kinds[] = {"branch", "tag"};
    const char *at = strrchr(name, '@');
    char whole[ESDM_CONTAINER_NAME_MAX + 16];
    esdm_container_info info;
    if (at == NULL || at == name || at[1] == '\0' || strchr(at, '/') != NULL ||
        strchr(at, ':') != NULL)
        return false;
    (void) snprintf(whole, sizeof whole, "%.*s", (int) (at - name), name);
    if (esdm_container_stat(session, whole, &info, NULL) != ESDM_OK)
        return false;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        (void) snprintf(whole, sizeof whole, "%.*s@%s:%s", (int) (at - name), name, kinds[i],
                        at + 1);
        if (esdm_container_stat(session, whole, &info, NULL) == ESDM_OK) {
            ask_for(whole, text, bytes);
            return true;
        }
    }
    (void) snprintf(text, bytes,
                    "behind '@' stands a number of esdm-log (@7, @-1), a time "
                    "(@2026-11-20T12:00), 'tag:TAG' or 'branch:BRANCH'");
    return true;
}

void
esdm_container_suggest(esdm_session *session, const char *name, char *text, size_t bytes)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    char nearest[ESDM_CONTAINER_NAME_MAX + 1];
    char below[ESDM__FORMER_NAME_BYTES];
    if (!begin(session, name, text, bytes, normal))
        return;
    char plain[ESDM_CONTAINER_NAME_MAX + 1];
    const char *asked = strchr(normal, '?');
    if (esdm__coarse_is_said(normal, plain) != NULL || esdm__digest_is_asked(normal, plain)) {
        (void) snprintf(normal, sizeof normal, "%s", plain);
    } else if (asked != NULL && strchr(asked, '=') != NULL && strpbrk(normal, "*[") == NULL) {
        (void) snprintf(
            text, bytes,
            "behind a name may stand '?accuracy=1%%', to read less accurately, or "
            "'?digest'; a query begins with '?': esdm://?ATTRIBUTE=VALUE, and of one folder "
            "alone esdm://?ATTRIBUTE=VALUE&within=%.*s",
            (int) (asked - normal), normal);
        return;
    }
    if (strpbrk(normal, "*?[") != NULL) {
        size_t folder = strcspn(normal, "*?[");
        while (folder > 0 && normal[folder] != '/')
            folder--;
        (void) snprintf(text, bytes,
                        "nobody expands * here: esdm-ls '%.*s' lists the names, esdm-find chooses "
                        "among them, and esdm://?ATTRIBUTE=VALUE opens several as one",
                        (int) folder, normal);
        return;
    }
    if (suggest_behind_at(session, normal, text, bytes))
        return;
    formers all = {.name = normal};
    (void) snprintf(below, sizeof below, ESDM__FORMER_PREFIX "/%s", normal);
    (void) !session->meta->container_list(session->store, below, count_former, &all, NULL);
    if (suggest_renamed(session, &all, text, bytes))
        return;
    if (all.count > 0) {
        (void) snprintf(text, bytes,
                        "a container of this name was removed and is kept: esdm-restore '%s' "
                        "brings it back, '%s@-0' is what it was",
                        normal, normal);
        return;
    }
    nearest_name(session, normal, false, nearest);
    ask_for(nearest, text, bytes);
}

void
esdm_former_suggest(esdm_session *session, const char *name, char *text, size_t bytes)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    char nearest[ESDM_CONTAINER_NAME_MAX + 1];
    if (!begin(session, name, text, bytes, normal))
        return;
    nearest_name(session, normal, true, nearest);
    if (strcmp(nearest, normal) != 0)
        ask_for(nearest, text, bytes);
}
