/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Containers that were replaced or removed. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/catalogue.h"
#include "api/moment.h"
#include "api/tags.h"
#include "base/arguments.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/ids.h"
#include "esdm/history.h"
#include "io/commit/extents.h"
#include "io/session/fact_name.h"
#include "io/session/former.h"
#include "io/session/journaling.h"
#include "io/session/nesting.h"
#include "io/session/stub_files.h"
#include "model/container.h"
#include "upkeep/shapes.h"

#define SECOND_NS UINT64_C(1000000000)

typedef struct listed {
    char *stored; /* owned */
    esdm_meta_container record;
} listed;

typedef struct list {
    listed *items; /* owned */
    size_t count;
    bool failed;
} list;

static bool
note_listed(const char *stored, const esdm_meta_container *record, void *user)
{
    list *all = user;
    char *copy = strdup(stored);
    if (copy == NULL || !esdm__array_grow(&all->items, all->count, sizeof *all->items)) {
        free(copy);
        all->failed = true;
        return false;
    }
    all->items[all->count++] = (listed){copy, *record};
    return true;
}

static bool
tell_listed(const esdm_session *session, const listed *one, esdm_former_visitor visit, void *user)
{
    esdm__former former;
    if (!esdm__former_parse(one->stored, &former))
        return true;
    uint64_t until_ns = former.time_ns + session->site->replaced.keep_s * SECOND_NS;
    uint64_t file_ns = esdm__stub_file_until(session, one->record.uuid, false);
    const esdm_former_info info = {
        .container = esdm__info_of(former.name, &one->record),
        .id = former.id,
        .time_ns = former.time_ns,
        .until_ns = file_ns > until_ns ? file_ns : until_ns,
        .removed = former.removed,
    };
    return visit(&info, user);
}

esdm_status
esdm_former_list(esdm_session *session, const char *prefix, esdm_former_visitor visit, void *user,
                 esdm_error *err)
{
    char stored[ESDM__FORMER_NAME_BYTES] = ESDM__FORMER_PREFIX;
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    ESDM__NEED(err, session);
    ESDM__NEED(err, visit);
    if (prefix != NULL) {
        esdm_status status = esdm__name_normalise(prefix, normal, err);
        if (status != ESDM_OK)
            return status;
        (void) snprintf(stored, sizeof stored, ESDM__FORMER_PREFIX "/%s", normal);
    }
    list all = {.items = NULL};
    esdm_status status =
        session->meta->container_list(session->store, stored, note_listed, &all, err);
    if (status == ESDM_OK && all.failed)
        status = esdm__error_nomem(err, all.count * sizeof *all.items, "former containers");
    bool more = status == ESDM_OK;
    for (size_t i = 0; i < all.count; i++) {
        more = more && tell_listed(session, &all.items[i], visit, user);
        free(all.items[i].stored);
    }
    free(all.items);
    return status;
}

bool
esdm_former_would_be_kept(esdm_session *session, const char *name)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    return session == NULL || name == NULL || esdm__name_normalise(name, normal, NULL) != ESDM_OK ||
           esdm__former_fits(session, normal);
}

/* ---- bringing back ------------------------------------------------------------------------ */

/* When a person wanted it back is a fact of the container. */
#define FACT "restored"

uint64_t
esdm_container_restored_ns(const esdm_container *container)
{
    const esdm_session *session = container != NULL ? container->session : NULL;
    char *text = NULL;
    if (session == NULL || session->meta->fact_get == NULL ||
        session->meta->fact_get(session->store,
                                esdm__fact_of(esdm_container_uuid(container), FACT).text, &text,
                                NULL) != ESDM_OK)
        return 0;
    uint64_t time_ns = strtoull(text, NULL, 10);
    free(text);
    return time_ns;
}

/* Before it has its name again: nobody takes it for one that may go meanwhile. */
static esdm_status
note_restored(const esdm_session *session, const char *uuid, esdm_error *err)
{
    char text[24];
    (void) snprintf(text, sizeof text, "%" PRIu64, esdm__now_ns());
    return session->meta->fact_put == NULL
               ? ESDM_OK
               : session->meta->fact_put(session->store, esdm__fact_of(uuid, FACT).text, text, err);
}

typedef struct search {
    const char *name;
    const char *id;
    char uuid[ESDM_META_UUID_BYTES];
    char stored[ESDM__FORMER_NAME_BYTES]; /* "": none was found */
} search;

static bool
find_former(const char *stored, const esdm_meta_container *record, void *user)
{
    search *s = user;
    esdm__former former;
    if (!esdm__former_parse(stored, &former) || strcmp(former.name, s->name) != 0 ||
        (s->id != NULL && strcmp(former.id, s->id) != 0))
        return true;
    (void) snprintf(s->stored, sizeof s->stored, "%s", stored); /* the last one is the newest */
    (void) snprintf(s->uuid, sizeof s->uuid, "%s", record->uuid);
    return true;
}

static esdm_status
no_former(const search *s, esdm_error *err)
{
    return esdm__error_set(err, ESDM_ENOENT,
                           "there is no former container '%.300s'%s%.20s; esdm-ls --replaced tells "
                           "which there are",
                           s->name, s->id != NULL ? " with the id " : "",
                           s->id != NULL ? s->id : "");
}

esdm_status
esdm_former_restore(esdm_session *session, const char *name, const char *id, const char *to,
                    bool replace, esdm_error *err)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    char target[ESDM_CONTAINER_NAME_MAX + 1];
    char below[ESDM__FORMER_NAME_BYTES];
    char stored[ESDM__FORMER_NAME_BYTES];
    search s = {.name = normal, .id = id};
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    esdm_status status = esdm__name_normalise(name, normal, err);
    if (status == ESDM_OK)
        status = esdm__name_normalise(to != NULL ? to : name, target, err);
    if (status == ESDM_OK)
        status = esdm__need_writable(session, err);
    if (status != ESDM_OK)
        return status;
    (void) snprintf(below, sizeof below, ESDM__FORMER_PREFIX "/%s", normal);
    status = session->meta->container_list(session->store, below, find_former, &s, err);
    if (status == ESDM_OK && s.stored[0] == '\0')
        return no_former(&s, err);
    if (status == ESDM_OK)
        status = esdm__nesting_check(session, target, err);
    if (status == ESDM_OK && to != NULL)
        status = esdm__moment_check_new(session, target, err);
    if (status == ESDM_OK)
        status = note_restored(session, s.uuid, err);
    if (status != ESDM_OK)
        return status;
    esdm_error why = {0};
    uint64_t replaced = 0;
    status = esdm__named_move(session, s.stored, target, replace,
                              replace ? esdm__former_name(session, target, false, stored) : NULL,
                              NULL, &replaced, &why);
    if (status == ESDM_ENOENT) /* it was freed meanwhile */
        return no_former(&s, err);
    if (status != ESDM_OK && err != NULL)
        *err = why;
    if (status == ESDM_OK)
        esdm__extents_mark(session, target);
    if (status == ESDM_OK && replaced != 0)
        esdm__session_replaced(session);
    return status;
}

/* ---- for good ----------------------------------------------------------------------------- */

typedef struct tagged {
    char tag[ESDM_TAG_MAX + 1];
    size_t more;
} tagged;

static bool
note_tag(const esdm_tag_info *info, void *user)
{
    tagged *t = user;
    if (t->tag[0] == '\0')
        (void) snprintf(t->tag, sizeof t->tag, "%s", info->tag);
    else
        t->more++;
    return true;
}

/* Who gave a tag counts on it: people, virtual containers with pinned members, dropped recipes. */
static esdm_status
check_untagged(esdm_session *session, const char *name, esdm_error *err)
{
    tagged t = {.more = 0};
    char others[48] = "";
    esdm_status status = esdm__tags_visit(session, name, note_tag, &t, err);
    if (status == ESDM_ENOENT) /* who removes it says so */
        return ESDM_OK;
    if (status != ESDM_OK || t.tag[0] == '\0')
        return status;
    if (t.more > 0)
        (void) snprintf(others, sizeof others, " and %zu more", t.more);
    return esdm__error_set(
        err, ESDM_EEXIST,
        "container '%s' has the tag '%s'%s, which keeps a snapshot of it, or of a "
        "former one: esdm-tag '%s' lists them, esdm-tag --remove lets them go",
        name, t.tag, others, name);
}

/* What lines keep for a branch goes with it, as its own tags tell: it is a former one first. */
static esdm_status
remove_living(esdm_session *session, const char *normal, uint64_t *ret_removed, esdm_error *err)
{
    esdm_status status;
    if (esdm__name_branch(normal, NULL) != NULL) {
        status = esdm__remove(session, normal, true, err);
        *ret_removed = status == ESDM_OK;
        return status;
    }
    status = esdm__named_remove(session, normal, ret_removed, err);
    if (status == ESDM_OK)
        esdm__shapes_follow(session, normal, NULL);
    return status;
}

esdm_status
esdm_container_erase(esdm_session *session, const char *name, esdm_error *err)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    uint64_t removed = 0;
    esdm__former_sum freed = {0};
    esdm_error absent = {0};
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    esdm_status status = esdm__name_normalise(name, normal, err);
    if (status == ESDM_OK)
        status = esdm__need_writable(session, err);
    if (status == ESDM_OK)
        status = check_untagged(session, normal, err);
    if (status != ESDM_OK)
        return status;
    esdm_status living = remove_living(session, normal, &removed, &absent);
    if (living == ESDM_OK || living == ESDM_ENOENT)
        status = esdm__former_forget(session, normal, &freed, err);
    else
        status = living;
    if (status == living || (status == ESDM_OK && freed.containers == 0)) {
        status = living;
        if (status != ESDM_OK && err != NULL)
            *err = absent;
    }
    if (removed != 0 || freed.containers > 0)
        esdm__session_collect(session);
    return status;
}

void
esdm_session_relieved(const esdm_session *session, uint64_t *ret_containers, uint64_t *ret_bytes)
{
    if (session == NULL || ret_containers == NULL || ret_bytes == NULL)
        return;
    *ret_containers = atomic_load(&session->relieved_containers);
    *ret_bytes = atomic_load(&session->relieved_bytes);
}
