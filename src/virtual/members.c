/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The containers that a query found. All are pinned; few of them are open at a time. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/read/coarse.h"
#include "io/session/pool.h"
#include "virtual/parts.h"

/* Closes the container that was used longest ago, when too many are open. Returns what the caller
 * closes outside of the lock. */
static esdm_container *
take_oldest(esdm__members *members)
{
    esdm__virtual_member *oldest = NULL;
    if (members->open <= ESDM__MEMBERS_OPEN)
        return NULL;
    for (size_t i = 0; i < members->count; i++) {
        esdm__virtual_member *m = &members->items[i];
        if (m->open != NULL && m->users == 0 && (oldest == NULL || m->used < oldest->used))
            oldest = m;
    }
    if (oldest == NULL)
        return NULL;
    esdm_container *container = oldest->open;
    oldest->open = NULL;
    members->open--;
    return container;
}

void
esdm__member_release(esdm__members *members, size_t i)
{
    (void) pthread_mutex_lock(&members->lock);
    members->items[i].users--;
    members->items[i].used = ++members->clock;
    esdm_container *closed = take_oldest(members);
    (void) pthread_mutex_unlock(&members->lock);
    esdm__container_drop(closed);
}

static esdm_status
open_again(esdm__members *members, const esdm__virtual_member *member, esdm_container **ret,
           esdm_error *err)
{
    esdm_container *container = NULL;
    esdm_status status = esdm__io_open(members->session, member->name, ESDM_OPEN_READ,
                                       member->snapshot, &container, err);
    if (status != ESDM_OK)
        return esdm__error_prefix(err, status, "member of a virtual container");
    if (esdm__io_of(container)->record != member->record) {
        esdm__container_drop(container);
        return esdm__error_set(err, ESDM_ECONFLICT,
                               "member '%s' of a virtual container was replaced since that was "
                               "opened: open it again",
                               member->name);
    }
    if (members->accuracy != NULL)
        status = esdm__coarse_apply_to_member(container, members->accuracy, err);
    if (status != ESDM_OK) {
        esdm__container_drop(container);
        return status;
    }
    *ret = container;
    return ESDM_OK;
}

/* A member that is used for the first time stays as it is from now on. */
static esdm_status
pin_used(esdm__members *members, esdm__virtual_member *member, esdm_error *err)
{
    const esdm_session *session = members->session;
    esdm_status status = session->meta->pin(session->store, member->record, member->snapshot, err);
    if (status != ESDM_OK)
        return status;
    (void) pthread_mutex_lock(&members->lock);
    bool twice = member->pinned; /* another thread was faster */
    member->pinned = true;
    (void) pthread_mutex_unlock(&members->lock);
    if (twice)
        session->meta->unpin(session->store, member->record, member->snapshot);
    return ESDM_OK;
}

esdm_status
esdm__member_use(esdm__members *members, size_t i, esdm_container **ret, esdm_error *err)
{
    esdm__virtual_member *member = &members->items[i];
    esdm_container *mine = NULL;
    (void) pthread_mutex_lock(&members->lock);
    bool open = member->open != NULL;
    bool pinned = member->pinned || member->joined;
    member->users++;
    (void) pthread_mutex_unlock(&members->lock);
    if (!open) {
        esdm_status status = open_again(members, member, &mine, err);
        if (status == ESDM_OK && !pinned)
            status = pin_used(members, member, err);
        if (status != ESDM_OK) {
            esdm__container_drop(mine);
            (void) pthread_mutex_lock(&members->lock);
            member->users--;
            (void) pthread_mutex_unlock(&members->lock);
            return status;
        }
    }
    (void) pthread_mutex_lock(&members->lock);
    if (member->open == NULL) {
        member->open = mine;
        mine = NULL;
        members->open++;
    }
    *ret = member->open;
    (void) pthread_mutex_unlock(&members->lock);
    esdm__container_drop(mine); /* another thread was faster */
    return ESDM_OK;
}

esdm_status
esdm__pin_lost(const char *name, const esdm__pin *pin, esdm_error *err)
{
    return esdm__error_set(err, ESDM_ECORRUPT,
                           "its member '%s' of snapshot %" PRIu64 " was removed or replaced: "
                           "esdm-restore brings it back as long as it is kept",
                           name, pin->snapshot);
}

typedef struct beginning {
    esdm__members *members;
    const esdm__question *question;
    const esdm__bundles *bundles; /* NULL: each container is a member */
} beginning;

/* Several containers become one member, which stays open. */
static esdm_status
first_use_of_several(const beginning *b, size_t i, esdm_error *err)
{
    const esdm__bundle *bundle = &b->bundles->items[i];
    esdm__virtual_member *member = &b->members->items[i];
    char name[ESDM_NAME_MAX + 256];
    const char *by = b->bundles->axis[0] != '\0'     ? b->bundles->axis
                     : b->question->ensemble != NULL ? b->question->ensemble
                                                     : "variable";
    (void) snprintf(name, sizeof name, "%s=%.100s (%zu containers)", by, bundle->label,
                    bundle->question.count);
    member->name = strdup(name);
    if (member->name == NULL)
        return esdm__error_nomem(err, strlen(name) + 1, "a name");
    member->joined = true;
    member->users = 1; /* never closed before the whole */
    return esdm__virtual_open_joined(b->members->session, name, &bundle->question, &member->open,
                                     err);
}

static esdm_status
first_use(void *context, size_t i, esdm_error *err)
{
    const beginning *b = context;
    esdm__members *members = b->members;
    const esdm_session *session = members->session;
    esdm__virtual_member *member = &members->items[i];
    esdm_container *container = NULL;
    const esdm__question *question =
        b->bundles != NULL ? &b->bundles->items[i].question : b->question;
    size_t k = b->bundles != NULL ? 0 : i;
    if (b->bundles != NULL && question->count > 1)
        return first_use_of_several(b, i, err);
    member->name = strdup(question->names[k]);
    if (member->name == NULL)
        return esdm__error_nomem(err, strlen(question->names[k]) + 1, "a name");
    esdm_status status = esdm__question_open(members->session, question, k, &container, err);
    if (status != ESDM_OK)
        return status;
    const esdm__container_io *io = esdm__io_of(container);
    memcpy(member->uuid, io->uuid, sizeof member->uuid);
    esdm_meta_container record;
    member->record = io->record;
    member->snapshot = io->snapshot;
    if (b->question->overlap == ESDM__OVERLAP_NEWEST) {
        status = session->meta->container_find(session->store, member->name, &record, err);
        member->modified_ns = status == ESDM_OK ? record.modified_ns : 0;
    }
    if (status == ESDM_OK)
        status = session->meta->pin(session->store, member->record, member->snapshot, err);
    member->pinned = status == ESDM_OK;
    (void) pthread_mutex_lock(&members->lock);
    member->open = container;
    member->users = 1;
    members->open++;
    (void) pthread_mutex_unlock(&members->lock);
    esdm__member_release(members, i);
    return status;
}

esdm_status
esdm__members_init(esdm__members *members, esdm_session *session, const esdm__question *question,
                   const esdm__bundles *bundles, esdm_error *err)
{
    beginning b = {members, question, bundles};
    size_t count = bundles != NULL ? bundles->count : question->count;
    *members = (esdm__members){.session = session};
    (void) pthread_mutex_init(&members->lock, NULL);
    members->items = calloc(count, sizeof *members->items);
    if (members->items == NULL)
        return esdm__error_nomem(err, count * sizeof *members->items, "members");
    members->count = count;
    return esdm__pool_run(session->pool, members->count, first_use, &b, err);
}

esdm_status
esdm__member_find(const esdm_session *session, esdm__virtual_member *member, esdm_error *err)
{
    esdm_meta_container record;
    esdm_status status = session->meta->container_find(session->store, member->name, &record, err);
    if (status != ESDM_OK)
        return status;
    member->record = record.container;
    member->snapshot = record.snapshot;
    member->modified_ns = record.modified_ns;
    memcpy(member->uuid, record.uuid, sizeof member->uuid);
    return ESDM_OK;
}

/* Of many members only those that are used are pinned: each pin costs what the others cost. */
static esdm_status
expect_one(esdm__members *members, size_t i, const char *name, bool pin, esdm_error *err)
{
    const esdm_session *session = members->session;
    esdm__virtual_member *member = &members->items[i];
    member->name = strdup(name);
    if (member->name == NULL)
        return esdm__error_nomem(err, strlen(name) + 1, "a name");
    esdm_status status = esdm__member_find(session, member, err);
    if (status == ESDM_OK && pin)
        status = session->meta->pin(session->store, member->record, member->snapshot, err);
    member->pinned = pin && status == ESDM_OK;
    return status;
}

esdm_status
esdm__members_expect(esdm__members *members, esdm_session *session, const esdm__question *question,
                     esdm_error *err)
{
    size_t count = question->count;
    esdm_status status = ESDM_OK;
    *members = (esdm__members){.session = session};
    (void) pthread_mutex_init(&members->lock, NULL);
    members->items = calloc(count, sizeof *members->items);
    if (members->items == NULL)
        return esdm__error_nomem(err, count * sizeof *members->items, "members");
    members->count = count;
    for (size_t i = 0; i < count && status == ESDM_OK; i++)
        status = expect_one(members, i, question->names[i], count <= ESDM__MEMBERS_OPEN, err);
    return status;
}

bool
esdm__members_visit(const esdm__members *members,
                    bool (*visit)(const esdm__virtual_member *member, void *user), void *user)
{
    for (size_t i = 0; i < members->count; i++) {
        const esdm__virtual_member *m = &members->items[i];
        const esdm__virtual *inner = m->joined && m->open != NULL ? m->open->provided : NULL;
        if (inner != NULL ? !esdm__members_visit(&inner->members, visit, user) : !visit(m, user))
            return false;
    }
    return true;
}

void
esdm__members_clear(esdm__members *members)
{
    const esdm_session *session = members->session;
    for (size_t i = 0; i < members->count; i++) {
        esdm__virtual_member *m = &members->items[i];
        esdm__container_drop(m->open);
        if (m->pinned)
            session->meta->unpin(session->store, m->record, m->snapshot);
        free(m->name);
    }
    free(members->items);
    free(members->accuracy);
    if (session != NULL)
        (void) pthread_mutex_destroy(&members->lock);
    *members = (esdm__members){0};
}

esdm_status
esdm__virtual_found(esdm_session *session, const char *query,
                    bool (*visit)(const char *name, void *user), void *user, esdm_error *err)
{
    esdm__question question = {0};
    esdm_status status = esdm__question_ask(session, query, NULL, &question, err);
    for (size_t i = 0; status == ESDM_OK && i < question.count; i++) {
        if (!visit(question.names[i], user))
            break;
    }
    esdm__question_clear(&question);
    return status;
}
