/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "api/renamed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arguments.h"
#include "base/error.h"
#include "esdm/history.h"
#include "io/session/former.h"
#include "model/names.h"

#define PREFIX     "renamed/"
#define KEPT_MOST  256
#define CHAIN_MOST 16 /* renames of one container that are followed */

typedef struct fact_name {
    char text[sizeof PREFIX + ESDM_CONTAINER_NAME_MAX];
} fact_name;

typedef struct renamed {
    char uuid[ESDM_META_UUID_BYTES];
    uint64_t time_ns;
    char to[ESDM_CONTAINER_NAME_MAX + 1];
} renamed;

static fact_name
fact_of(const char *name)
{
    fact_name fact;
    (void) snprintf(fact.text, sizeof fact.text, PREFIX "%s", name);
    return fact;
}

static bool
parse(const char *text, renamed *ret)
{
    int at = 0;
    *ret = (renamed){.time_ns = 0};
    if (sscanf(text, "%32[0-9a-f] %" SCNu64 " %n", ret->uuid, &ret->time_ns, &at) != 2 || at == 0)
        return false;
    int n = snprintf(ret->to, sizeof ret->to, "%s", text + at);
    return n > 0 && (size_t) n < sizeof ret->to;
}

static bool
find(esdm_session *session, const char *name, renamed *ret)
{
    char *text = NULL;
    if (session->meta->fact_get == NULL ||
        session->meta->fact_get(session->store, fact_of(name).text, &text, NULL) != ESDM_OK)
        return false;
    bool found = parse(text, ret);
    free(text);
    return found;
}

typedef struct oldest {
    size_t count;
    uint64_t time_ns;
    fact_name fact;
} oldest;

static bool
note_oldest(const char *name, const char *text, void *user)
{
    oldest *all = user;
    renamed one;
    bool known = parse(text, &one);
    if (all->count++ == 0 || !known || one.time_ns < all->time_ns) {
        all->time_ns = known ? one.time_ns : 0;
        (void) snprintf(all->fact.text, sizeof all->fact.text, "%s", name);
    }
    return true;
}

void
esdm__renamed_note(esdm_session *session, const char *from, const char *to)
{
    char text[ESDM_META_UUID_BYTES + 24 + ESDM_CONTAINER_NAME_MAX];
    esdm_meta_container record;
    struct timespec now;
    oldest all = {.count = 0};
    const esdm_meta_plugin *meta = session->meta;
    if (meta->fact_put == NULL || meta->fact_list == NULL || esdm__name_is_hidden(from) ||
        esdm__name_is_hidden(to) || esdm_container_name_is_intermediate(from) ||
        meta->container_find(session->store, to, &record, NULL) != ESDM_OK ||
        clock_gettime(CLOCK_REALTIME, &now) != 0)
        return;
    (void) !meta->fact_list(session->store, PREFIX, note_oldest, &all, NULL);
    if (all.count >= KEPT_MOST)
        (void) !meta->fact_put(session->store, all.fact.text, NULL, NULL);
    (void) snprintf(text, sizeof text, "%s %" PRIu64 " %s", record.uuid,
                    (uint64_t) now.tv_sec * UINT64_C(1000000000) + (uint64_t) now.tv_nsec, to);
    (void) !meta->fact_put(session->store, fact_of(from).text, text, NULL);
}

bool
esdm__renamed_find(esdm_session *session, const char *name,
                   char ret_now[ESDM_CONTAINER_NAME_MAX + 1], uint64_t *ret_time_ns)
{
    renamed first, next;
    esdm_meta_container record;
    if (!find(session, name, &first))
        return false;
    next = first;
    for (int i = 0; i < CHAIN_MOST; i++) {
        if (session->meta->container_find(session->store, next.to, &record, NULL) == ESDM_OK &&
            strcmp(record.uuid, first.uuid) == 0) {
            (void) snprintf(ret_now, ESDM_CONTAINER_NAME_MAX + 1, "%s", next.to);
            *ret_time_ns = first.time_ns;
            return true;
        }
        char to[sizeof next.to];
        (void) snprintf(to, sizeof to, "%s", next.to);
        if (!find(session, to, &next) || strcmp(next.uuid, first.uuid) != 0)
            break;
    }
    return false;
}

esdm_status
esdm_container_renamed_to(esdm_session *session, const char *name, char *ret_to, esdm_error *err)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    char *text = NULL;
    renamed known;
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    ESDM__NEED(err, ret_to);
    esdm_status status = esdm__name_normalise(name, normal, err);
    if (status == ESDM_OK && session->meta->fact_get != NULL) {
        status = session->meta->fact_get(session->store, fact_of(normal).text, &text, err);
        if (status != ESDM_OK && status != ESDM_ENOENT)
            return status;
    }
    bool found = status == ESDM_OK && text != NULL && parse(text, &known);
    free(text);
    if (status == ESDM_OK && found)
        (void) snprintf(ret_to, ESDM_CONTAINER_NAME_MAX + 1, "%s", known.to);
    else if (status == ESDM_OK || status == ESDM_ENOENT)
        status = esdm__error_set(err, ESDM_ENOENT, "no container '%.300s' is known to be renamed",
                                 normal);
    return status;
}

esdm_status
esdm_container_renamed(esdm_session *session, const char *name, char *ret_now,
                       uint64_t *ret_time_ns, esdm_error *err)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    char now[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_meta_container record;
    uint64_t time_ns = 0;
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    ESDM__NEED(err, ret_now);
    esdm_status status = esdm__name_normalise(name, normal, err);
    if (status != ESDM_OK)
        return status;
    if (session->meta->container_find(session->store, normal, &record, NULL) == ESDM_OK ||
        !esdm__renamed_find(session, normal, now, &time_ns))
        return esdm__error_set(err, ESDM_ENOENT, "no container '%.300s' is known to be renamed",
                               normal);
    (void) snprintf(ret_now, ESDM_CONTAINER_NAME_MAX + 1, "%s", now);
    if (ret_time_ns != NULL)
        *ret_time_ns = time_ns;
    return ESDM_OK;
}
