/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "esdm/digest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/digest.h"
#include "base/arguments.h"
#include "base/error.h"
#include "digest/digest.h"
#include "io/session/former.h"

/* Digests are noted as a fact of the container, a line for each: snapshot, its time (a catalogue
 * that was restored may count snapshots anew), digest. The newest ones, as facts are small. */
#define NOTED_MOST 64

typedef struct noted {
    char fact[ESDM__UUID_BYTES + 16];
    char line[64]; /* what a line begins with */
    uint64_t snapshot;
    uint64_t time_ns; /* 0: unknown */
} noted;

static bool
note_time(uint64_t snapshot, uint64_t parent, uint64_t time_ns, const char *writer,
          const char *message, void *user)
{
    noted *n = user;
    (void) parent, (void) writer, (void) message;
    if (snapshot == n->snapshot)
        n->time_ns = time_ns;
    return n->time_ns == 0;
}

/* Where the digest of this snapshot is noted; false: nowhere. */
static bool
place_of(const esdm_container *container, noted *ret)
{
    esdm_session *session = container->session;
    esdm_error ignored;
    if (container->provider != NULL || container->snapshot == 0)
        return false;
    *ret = (noted){.snapshot = container->snapshot};
    if (session->meta->snapshot_list(session->store, container->name, note_time, ret, &ignored) !=
            ESDM_OK ||
        ret->time_ns == 0)
        return false;
    (void) snprintf(ret->fact, sizeof ret->fact, "%s/digest", esdm_container_uuid(container));
    (void) snprintf(ret->line, sizeof ret->line, "%" PRIu64 " %" PRIu64 " ", ret->snapshot,
                    ret->time_ns);
    return true;
}

static bool
is_digest(const char *text)
{
    return strncmp(text, "esdm1:", 6) == 0 &&
           strspn(text + 6, "0123456789abcdef") == ESDM_DIGEST_BYTES - 7;
}

static bool
find_noted(esdm_session *session, const noted *place, char *ret_text)
{
    esdm_error ignored;
    char *text = NULL;
    bool found = false;
    if (session->meta->fact_get(session->store, place->fact, &text, &ignored) != ESDM_OK)
        return false;
    size_t begin = strlen(place->line);
    for (const char *line = text; line != NULL && !found; line = strchr(line, '\n')) {
        line += *line == '\n' ? 1 : 0;
        found = strncmp(line, place->line, begin) == 0 && is_digest(line + begin);
        if (found)
            (void) snprintf(ret_text, ESDM_DIGEST_BYTES, "%s", line + begin);
    }
    free(text);
    return found;
}

/* Best effort: what another process notes at the same time may get lost. */
static void
note_digest(esdm_session *session, const noted *place, const char *digest)
{
    esdm_error ignored;
    char *old = NULL;
    const char *end;
    if (!session->meta->is_writable(session->store))
        return;
    if (session->meta->fact_get(session->store, place->fact, &old, &ignored) != ESDM_OK)
        old = NULL;
    size_t lines = 1;
    for (end = old; end != NULL && *end != '\0' && lines < NOTED_MOST; lines++) {
        const char *next = strchr(end, '\n');
        end = next != NULL ? next + 1 : end + strlen(end);
    }
    size_t kept = end != NULL ? (size_t) (end - old) : 0;
    size_t room = strlen(place->line) + ESDM_DIGEST_BYTES + kept + 2;
    char *text = malloc(room);
    if (text != NULL) {
        (void) snprintf(text, room, "%s%s\n%.*s", place->line, digest, (int) kept,
                        old != NULL ? old : "");
        (void) session->meta->fact_put(session->store, place->fact, text, &ignored);
    }
    free(text);
    free(old);
}

static esdm_status
check_clean(const esdm_container *container, esdm_error *err)
{
    if (container->coarse)
        return esdm__error_set(err, ESDM_EINVAL,
                               "container '%s' is read less accurately than it is stored: a digest "
                               "is of what is stored",
                               container->name);
    return esdm_container_is_dirty(container)
               ? esdm__error_set(err, ESDM_EINVAL,
                                 "container '%s' has changes that are not committed: commit them, "
                                 "then ask for its digest",
                                 container->name)
               : ESDM_OK;
}

esdm_status
esdm_container_digest(esdm_container *container, uint32_t flags, char *ret_text, esdm_error *err)
{
    noted place;
    uint8_t hash[ESDM__SHA256_BYTES];
    ESDM__NEED(err, container);
    ESDM__NEED(err, ret_text);
    esdm_status status = check_clean(container, err);
    if (status != ESDM_OK)
        return status;
    bool has_place = place_of(container, &place);
    if (has_place && (flags & ESDM_DIGEST_READ) == 0 &&
        find_noted(container->session, &place, ret_text))
        return ESDM_OK;
    status = esdm__digest_container(container, hash, err);
    if (status != ESDM_OK)
        return status;
    esdm__digest_print(hash, ret_text);
    if (has_place)
        note_digest(container->session, &place, ret_text);
    return ESDM_OK;
}

esdm_status
esdm_container_tell_digest(esdm_container *container, esdm_error *err)
{
    char text[ESDM_DIGEST_BYTES + sizeof " esdm://@" + ESDM__FORMER_NAME_BYTES + 20];
    char digest[ESDM_DIGEST_BYTES];
    bool changed;
    ESDM__NEED(err, container);
    if (container->writable)
        return esdm__error_set(err, ESDM_EINVAL,
                               "container '%s' is open for writing: what it contains is not known "
                               "before it is closed",
                               container->name);
    esdm_status status = esdm_container_digest(container, 0, digest, err);
    if (status != ESDM_OK)
        return status;
    if (container->snapshot > 0)
        (void) snprintf(text, sizeof text, "%s esdm://%s@%" PRIu64, digest, container->name,
                        container->snapshot);
    else
        (void) snprintf(text, sizeof text, "%s esdm://%s", digest, container->name);
    esdm_group *root = container->groups.items[0];
    return esdm__attribute_put(&root->attributes, ESDM_DIGEST_ATTRIBUTE, ESDM_TYPE_CHAR,
                               strlen(text), text, &changed, err);
}

bool
esdm__digest_is_asked(const char *name, char *ret_name)
{
    static const char suffix[] = "?digest";
    size_t bytes = strlen(name);
    if (bytes < sizeof suffix || strcmp(name + bytes - (sizeof suffix - 1), suffix) != 0)
        return false;
    (void) snprintf(ret_name, ESDM_CONTAINER_NAME_MAX + 1, "%.*s",
                    (int) (bytes - (sizeof suffix - 1)), name);
    return true;
}

esdm_status
esdm_dataset_digest(esdm_dataset *dataset, char *ret_text, esdm_error *err)
{
    uint8_t hash[ESDM__SHA256_BYTES];
    ESDM__NEED(err, dataset);
    ESDM__NEED(err, ret_text);
    esdm_status status = check_clean(dataset->group->container, err);
    if (status == ESDM_OK)
        status = esdm__usertypes_complete(dataset->group->container, err);
    if (status == ESDM_OK)
        status = esdm__digest_dataset(dataset, hash, err);
    if (status == ESDM_OK)
        esdm__digest_print(hash, ret_text);
    return status;
}
