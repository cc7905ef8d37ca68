/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Which containers share what is stored. */

#include <string.h>

#include "api/catalogue.h"
#include "base/arguments.h"
#include "base/error.h"
#include "io/io.h"
#include "io/session/former.h"
#include "io/session/sharers.h"

typedef struct sharing {
    const esdm__sharers *all;
    const esdm_meta_container *own;
    const esdm__sharer *rows; /* of the container: uuids whose packs it may refer to */
    size_t nrows;
    esdm_container_visitor visit;
    void *user;
} sharing;

/* Whether the packs of a uuid may be referred to by a record. */
static bool
refers(const sharing *s, const char *uuid, const esdm_meta_container *record)
{
    return strcmp(record->uuid, uuid) == 0 || esdm__sharers_has(s->all, uuid, record->container);
}

static bool
visit_record(const char *name, const esdm_meta_container *record, void *user)
{
    const sharing *s = user;
    if (record->container == s->own->container || esdm__name_is_own(name))
        return true;
    bool shares = refers(s, s->own->uuid, record);
    for (size_t i = 0; i < s->nrows && !shares; i++)
        shares = refers(s, s->rows[i].uuid, record);
    if (!shares)
        return true;
    const esdm_container_info info = esdm__info_of(name, record);
    return s->visit(&info, s->user);
}

esdm_status
esdm_container_shares(esdm_session *session, const char *name, esdm_container_visitor visit,
                      void *user, esdm_error *err)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_meta_container own;
    esdm__sharers all = {0};
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    ESDM__NEED(err, visit);
    esdm_status status = esdm__name_normalise(name, normal, err);
    if (status == ESDM_OK)
        status = session->meta->container_find(session->store, normal, &own, err);
    if (status == ESDM_OK)
        status = esdm__sharers_load(session, &all, err);
    if (status != ESDM_OK)
        return status;
    sharing s = {.all = &all, .own = &own, .visit = visit, .user = user};
    s.nrows = esdm__sharers_of(&all, own.container, &s.rows);
    if (s.nrows > 0 || esdm__sharers_any(&all, own.uuid))
        status = session->meta->container_list(session->store, NULL, visit_record, &s, err);
    esdm__sharers_clear(&all);
    return status;
}
