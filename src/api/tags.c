/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Looking for tags, also of former containers. */

#include "api/tags.h"

#include <stdio.h>
#include <string.h>

#include "api/formers.h"
#include "base/error.h"
#include "model/names.h"

bool
esdm__tag_is_valid(const char *tag)
{
    size_t bytes = strlen(tag);
    if (bytes == 0 || bytes > ESDM_TAG_MAX || !esdm__utf8_is_valid(tag, bytes))
        return false;
    for (const char *c = tag; *c != '\0'; c++) {
        if ((unsigned char) *c <= ' ' || *c == 127 || strchr("/@?:", *c) != NULL)
            return false;
    }
    return true;
}

/* ---- finding ------------------------------------------------------------------------------- */

static bool
look_for(const esdm_meta_tag *tag, void *user)
{
    esdm__tagged *t = user;
    if (strcmp(tag->name, t->name) != 0)
        return true;
    t->snapshot = tag->snapshot;
    return false;
}

esdm_status
esdm__tag_find(esdm_session *session, uint64_t record, esdm__tagged *tagged, esdm_error *err)
{
    tagged->snapshot = 0;
    if (session->meta->tag_list == NULL)
        return ESDM_OK;
    return session->meta->tag_list(session->store, record, look_for, tagged, err);
}

/* The newest former container of that name that has the tag. */
static esdm_status
look_for_tag_in_formers(esdm_session *session, const char *base, esdm__tagged *tagged,
                        esdm__moment *ret_moment, uint64_t *ret_record, esdm_error *err)
{
    esdm__formers all;
    uint64_t found = 0;
    esdm_status status = esdm__formers_load(session, base, &all, err);
    for (size_t i = all.count; i-- > 0 && status == ESDM_OK && found == 0;) {
        const esdm__former_record *one = &all.items[i];
        status = esdm__tag_find(session, one->record, tagged, err);
        if (status != ESDM_OK || tagged->snapshot == 0)
            continue;
        found = tagged->snapshot;
        *ret_record = one->record;
        (void) snprintf(ret_moment->stored, sizeof ret_moment->stored, "%s", one->stored);
    }
    esdm__formers_clear(&all);
    tagged->snapshot = found;
    return status;
}

esdm_status
esdm__moment_find_tag(esdm_session *session, const char *name, const char *tag,
                      esdm__moment *ret_moment, uint64_t *ret_record, esdm_error *err)
{
    esdm_meta_container record;
    esdm__tagged tagged = {.name = tag};
    esdm_error why = {0};
    esdm_status status = session->meta->container_find(session->store, name, &record, &why);
    bool absent = status == ESDM_ENOENT;
    if (status == ESDM_OK)
        status = esdm__tag_find(session, record.container, &tagged, &why);
    (void) snprintf(ret_moment->stored, sizeof ret_moment->stored, "%s", name);
    *ret_record = record.container;
    if (absent || (status == ESDM_OK && tagged.snapshot == 0))
        status = look_for_tag_in_formers(session, name, &tagged, ret_moment, ret_record, &why);
    ret_moment->snapshot = tagged.snapshot;
    if (status == ESDM_OK && tagged.snapshot == 0)
        return absent ? esdm__error_set(err, ESDM_ENOENT, "container '%s' does not exist", name)
                      : esdm__error_set(err, ESDM_ENOENT,
                                        "container '%s' has no tag '%s' (esdm-tag '%s' lists them)",
                                        name, tag, name);
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

/* ---- listing ------------------------------------------------------------------------------- */

typedef struct visitor {
    esdm_tag_visitor visit;
    void *user;
    uint64_t former_ns;
    bool more;
} visitor;

static bool
visit_tag(const esdm_meta_tag *tag, void *user)
{
    visitor *v = user;
    if (strncmp(tag->name, "esdm:", 5) == 0) /* the engine's own */
        return true;
    const esdm_tag_info info = {.tag = tag->name,
                                .snapshot = tag->snapshot,
                                .created_ns = tag->created_ns,
                                .author = tag->author != NULL ? tag->author : "",
                                .former_ns = v->former_ns};
    v->more = v->visit(&info, v->user);
    return v->more;
}

/* A name in time: the tags of the container that it says. */
static esdm_status
visit_moment(esdm_session *session, const char *name, visitor *v, esdm_error *err)
{
    esdm__moment moment;
    esdm__former former;
    esdm_meta_container record;
    esdm_status status = esdm__moment_find(session, name, &moment, err);
    if (status == ESDM_OK)
        status = session->meta->container_find(session->store, moment.stored, &record, err);
    if (status != ESDM_OK)
        return status;
    v->former_ns = esdm__former_parse(moment.stored, &former) ? former.time_ns : 0;
    return session->meta->tag_list(session->store, record.container, visit_tag, v, err);
}

esdm_status
esdm__tags_visit(esdm_session *session, const char *name, esdm_tag_visitor visit, void *user,
                 esdm_error *err)
{
    esdm_meta_container record;
    esdm__formers all;
    visitor v = {.visit = visit, .user = user, .more = true};
    esdm_error why = {0};
    esdm_status status = session->meta->container_find(session->store, name, &record, &why);
    bool absent = status == ESDM_ENOENT;
    if (status != ESDM_OK && !absent)
        return esdm__error_set(err, status, "%s", why.message);
    if (session->meta->tag_list == NULL)
        return ESDM_OK;
    if (absent && esdm__moment_is_said(name))
        return visit_moment(session, name, &v, err);
    if (!absent)
        status = session->meta->tag_list(session->store, record.container, visit_tag, &v, err);
    if (status != ESDM_OK && !absent)
        return status;
    status = esdm__formers_load(session, name, &all, err);
    if (status == ESDM_OK && absent && all.count == 0)
        status = esdm__error_set(err, ESDM_ENOENT, "container '%s' does not exist", name);
    for (size_t i = all.count; i-- > 0 && v.more && status == ESDM_OK;) {
        v.former_ns = all.items[i].time_ns;
        status = session->meta->tag_list(session->store, all.items[i].record, visit_tag, &v, err);
    }
    esdm__formers_clear(&all);
    return status;
}
