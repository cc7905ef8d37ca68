/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Public functions on sessions, and on what a site holds. */

#include "io/session/session.h"

#include "base/arguments.h"
#include "base/error.h"
#include "esdm/float_env.h"
#include "io/session/journaling.h"
#include "io/session/models.h"
#include "upkeep/upkeep.h"
#include "virtual/virtual.h"

esdm_status
esdm_session_open(const esdm_session_options *options, esdm_session **ret_session, esdm_error *err)
{
    ESDM_FLOAT_ENV_OWN;
    ESDM__NEED(err, ret_session);
    return esdm__session_new(options, NULL, ret_session, err);
}

void
esdm_session_settle(esdm_session *session)
{
    if (session == NULL)
        return;
    if (atomic_load(&session->changed))
        (void) esdm__virtual_follow(session);
    esdm__drain_end(session);
    esdm__models_settle(session->models, session);
    esdm__journaling_settle(session);
    esdm__session_settle_ahead(session);
    esdm__monitor_settle(session->monitor);
}

void
esdm_session_close(esdm_session *session)
{
    ESDM_FLOAT_ENV_OWN;
    if (session != NULL && atomic_load(&session->changed))
        (void) esdm__virtual_follow(session);
    if (session != NULL)
        esdm__drain_end(session);
    esdm__session_free(session);
}

const char *
esdm_session_config_source(const esdm_session *session)
{
    if (session == NULL)
        return NULL;
    return session->site->source;
}

const char *
esdm_session_site_name(const esdm_session *session)
{
    if (session == NULL)
        return NULL;
    return session->site->name;
}

const char *
esdm_session_site_id(const esdm_session *session)
{
    if (session == NULL)
        return NULL;
    return session->site->id;
}

const char *
esdm_session_warning(const esdm_session *session)
{
    if (session == NULL)
        return NULL;
    return session->site->warning;
}

const char *
esdm_session_made_site(const esdm_session *session)
{
    if (session == NULL)
        return NULL;
    return session->made_site;
}

void
esdm_session_serve_others(esdm_session *session)
{
    if (session != NULL)
        atomic_store(&session->serves_others, true);
}

size_t
esdm_session_route_count(const esdm_session *session)
{
    if (session == NULL)
        return 0;
    return session->site->nroutes;
}

const char *
esdm_session_route(const esdm_session *session, size_t index)
{
    if (session == NULL)
        return NULL;
    return index < session->site->nroutes ? session->site->routes[index] : NULL;
}

bool
esdm_session_keeps_accuracy(const esdm_session *session)
{
    if (session == NULL)
        return false;
    return !session->site->removes_accuracy;
}
