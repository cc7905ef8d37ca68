/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "api/seen.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/catalogue.h"
#include "base/arguments.h"
#include "base/error.h"
#include "base/text.h"
#include "io/session/fact_name.h"
#include "model/names.h"

bool
esdm_container_name_is_intermediate(const char *name)
{
    const char *at = name != NULL ? strstr(name, ".pid") : NULL;
    if (at == NULL)
        return false;
    size_t bytes = strlen(name);
    size_t digits = strspn(at + 4, "0123456789");
    return digits > 0 && at[4 + digits] == '.' && strcmp(name + bytes - 4, ".tmp") == 0;
}

void
esdm__name_to_be(const char *name, char ret[ESDM_CONTAINER_NAME_MAX + 1])
{
    const char *end = esdm_container_name_is_intermediate(name) ? strstr(name, ".pid") : NULL;
    (void) esdm__text_part(ret, ret + ESDM_CONTAINER_NAME_MAX + 1, name,
                           end != NULL ? (size_t) (end - name) : ESDM_CONTAINER_NAME_MAX);
}

/* @return false: there is no such container, or the store keeps no facts. */
static bool
find_fact(esdm_session *session, const char *name, esdm__fact_name *ret)
{
    esdm_meta_container record;
    if (session->meta->fact_get == NULL || session->meta->fact_put == NULL ||
        session->meta->container_find(session->store, name, &record, NULL) != ESDM_OK)
        return false;
    *ret = esdm__fact_of(record.uuid, "seen");
    return true;
}

/* The earliest counts, of which something may be left in what was made. */
static bool
is_earlier(const esdm__seen *said, const esdm__seen *known)
{
    return known->uuid[0] == '\0' ||
           (strcmp(said->uuid, known->uuid) == 0 && said->snapshot < known->snapshot);
}

void
esdm__seen_find(esdm_session *session, const char *from, const char *to, esdm__seen *seen)
{
    esdm__fact_name fact;
    char *text = NULL;
    char *rest = NULL;
    if (seen->uuid[0] != '\0' || !esdm_container_name_is_intermediate(from) ||
        !find_fact(session, from, &fact) ||
        session->meta->fact_get(session->store, fact.text, &text, NULL) != ESDM_OK)
        return;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        esdm__seen said = {.uuid = ""};
        int name_at = 0;
        if (sscanf(line, "%32[0-9a-f] %" SCNu64 " %n", said.uuid, &said.snapshot, &name_at) == 2 &&
            name_at > 0 && strcmp(line + name_at, to) == 0 && is_earlier(&said, seen))
            *seen = said;
    }
    free(text);
}

typedef struct last_writer {
    uint64_t snapshot;
    char writer[96];
} last_writer;

static bool
note_writer(uint64_t snapshot, uint64_t parent, uint64_t time_ns, const char *writer,
            const char *message, void *user)
{
    last_writer *last = user;
    (void) parent, (void) time_ns, (void) message;
    last->snapshot = snapshot;
    (void) snprintf(last->writer, sizeof last->writer, "%s", writer != NULL ? writer : "");
    return true;
}

static esdm_status
overtaken(esdm_session *session, const char *from, const char *to, bool replaced,
          const esdm__seen *seen, esdm_error *err)
{
    last_writer last = {0};
    (void) !session->meta->snapshot_list(session->store, to, note_writer, &last, NULL);
    return esdm__error_set(
        err, ESDM_ECONFLICT,
        "'%.110s' was %s by another program%s%s after this one had read it (snapshot %" PRIu64
        "), whose work it would lose. What was made is kept as '%.110s': run the program again, or "
        "put it there all the same with 'esdm-mv --replace' (\"overlap\": \"last\" in the site's "
        "configuration lets the last one win)",
        to, replaced ? "replaced" : "changed", last.writer[0] != '\0' ? ", " : "", last.writer,
        seen->snapshot, from);
}

esdm_status
esdm__seen_check(esdm_session *session, const char *from, const char *to, const esdm__seen *seen,
                 esdm_meta_seen *ret_expected, bool *ret_expects, esdm_error *err)
{
    esdm_meta_container now;
    *ret_expects = false;
    if (seen->uuid[0] == '\0' || session->site->last_wins || strcmp(from, to) == 0)
        return ESDM_OK;
    esdm_status status = session->meta->container_find(session->store, to, &now, err);
    if (status == ESDM_ENOENT)
        return ESDM_OK;
    if (status != ESDM_OK)
        return status;
    bool replaced = strcmp(now.uuid, seen->uuid) != 0;
    if (replaced || now.snapshot != seen->snapshot)
        return overtaken(session, from, to, replaced, seen, err);
    *ret_expected = (esdm_meta_seen){.container = now.container, .snapshot = now.snapshot};
    *ret_expects = true;
    return ESDM_OK;
}

void
esdm__seen_forget(esdm_session *session, const char *to)
{
    esdm__fact_name fact;
    if (find_fact(session, to, &fact))
        (void) !session->meta->fact_put(session->store, fact.text, NULL, NULL);
}

esdm_status
esdm__seen_note(esdm_session *session, const char *name, const char *of, const char *uuid,
                uint64_t snapshot, esdm_error *err)
{
    esdm__fact_name fact;
    char *old = NULL;
    if (session->site->last_wins)
        return ESDM_OK;
    if (!find_fact(session, name, &fact))
        return esdm__error_set(err, ESDM_ENOENT, "there is no container '%.300s'", name);
    if (session->meta->fact_get(session->store, fact.text, &old, NULL) != ESDM_OK)
        old = NULL;
    size_t room = (old != NULL ? strlen(old) : 0) + strlen(of) + ESDM_META_UUID_BYTES + 32;
    char *text = malloc(room);
    esdm_status status = ESDM_OK;
    if (text == NULL) {
        status = esdm__error_nomem(err, room, "what was seen");
    } else {
        (void) snprintf(text, room, "%s%.32s %" PRIu64 " %s\n", old != NULL ? old : "", uuid,
                        snapshot, of);
        status = session->meta->fact_put(session->store, fact.text, text, err);
    }
    free(text);
    free(old);
    return status;
}

esdm_status
esdm_container_note_seen(esdm_session *session, const char *name, const char *of, const char *uuid,
                         uint64_t snapshot, esdm_error *err)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    char normal_of[ESDM_CONTAINER_NAME_MAX + 1];
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    ESDM__NEED(err, of);
    ESDM__NEED(err, uuid);
    esdm_status status = esdm__name_normalise(name, normal, err);
    if (status == ESDM_OK)
        status = esdm__name_normalise(of, normal_of, err);
    if (status == ESDM_OK)
        status = esdm__need_writable(session, err);
    if (status == ESDM_OK && strspn(uuid, "0123456789abcdef") != ESDM_META_UUID_BYTES - 1)
        status = esdm__error_set(err, ESDM_EINVAL, "'%.40s' is no uuid of a container", uuid);
    return status == ESDM_OK ? esdm__seen_note(session, normal, normal_of, uuid, snapshot, err)
                             : status;
}
