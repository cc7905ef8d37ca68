/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Public functions on containers: open, create, commit, close. */

#include <stdlib.h>
#include <string.h>

#include "api/adopt.h"
#include "api/branches.h"
#include "api/digest.h"
#include "api/moment.h"
#include "api/regions.h"
#include "api/seal.h"
#include "api/seen.h"
#include "base/arguments.h"
#include "base/error.h"
#include "base/text.h"
#include "esdm/digest.h"
#include "esdm/float_env.h"
#include "io/io.h"
#include "io/ranks/collective.h"
#include "io/read/coarse.h"
#include "io/read/second_shape.h"
#include "io/session/session.h"
#include "model/undo.h"
#include "query/view.h"
#include "upkeep/upkeep.h"
#include "virtual/virtual.h"

esdm_status
esdm_container_normalise(const char *name, char *buffer, esdm_error *err)
{
    ESDM__NEED(err, name);
    ESDM__NEED(err, buffer);
    if (esdm__virtual_is_said(name))
        return esdm__virtual_normalise(name, buffer, err);
    return esdm__name_normalise(name, buffer, err);
}

esdm_status
esdm_container_create(esdm_session *session, const char *name, esdm_create_mode mode,
                      esdm_container **ret_container, esdm_error *err)
{
    ESDM_FLOAT_ENV_OWN;
    ESDM__NEED(err, session);
    ESDM__NEED(err, ret_container);
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    if (mode != ESDM_CREATE_NEW && mode != ESDM_CREATE_REPLACE)
        return esdm__error_set(err, ESDM_EINVAL, "esdm_container_create: wrong argument");
    esdm_status status = esdm_container_normalise(name, normal, err);
    if (status != ESDM_OK)
        return status;
    if (esdm__virtual_is_said(normal))
        return esdm__error_set(err, ESDM_EACCES,
                               "'%s' is a query, which nobody can write to: name a container",
                               normal);
    if (esdm__view_is_said(session->site, normal))
        return esdm__view_refuse(normal, err);
    status = esdm__branch_check_name(session, normal, err);
    if (status == ESDM_OK)
        status = esdm__moment_check_new(session, normal, err);
    if (status != ESDM_OK)
        return status;
    esdm_container *container = NULL;
    char made[ESDM_CONTAINER_NAME_MAX + 1];
    esdm__name_to_be(normal, made);
    if (strcmp(made, normal) != 0)
        status = esdm__sealed_check(session, made, err); /* before NCO has written all */
    if (status != ESDM_OK)
        return status;
    esdm__text_copy(made, sizeof made, normal);
    if (mode == ESDM_CREATE_REPLACE)
        esdm__branch_over_name(session, normal, made);
    status = esdm__io_create(session, made, mode, &container, err);
    if (status == ESDM_OK && strcmp(made, normal) != 0) {
        esdm__io_of(container)->over = strdup(normal);
        if (esdm__io_of(container)->over == NULL)
            status = esdm__error_nomem(err, strlen(normal), "a name");
        if (status == ESDM_OK)
            status = esdm__sealed_check(session, normal, err);
    }
    if (status == ESDM_OK)
        status = esdm__sealed_at_create(container, err);
    if (status == ESDM_OK)
        *ret_container = container;
    else
        esdm_container_discard(container);
    return status;
}

static esdm_status
open_plain(esdm_session *session, const char *stored, esdm_open_mode mode, uint64_t snapshot,
           esdm_container **ret_container, esdm_error *err)
{
    esdm_container *container;
    esdm_status status = esdm__io_open(session, stored, mode, snapshot, &container, err);
    if (status != ESDM_OK)
        return status;
    status = esdm__sealed_at_open(container, err);
    if (status == ESDM_OK)
        *ret_container = container;
    else
        esdm_container_discard(container);
    return status;
}

/* A container that is a saved query stands for what this finds. */
static esdm_status
follow_saved(esdm_open_mode mode, esdm_container **container, esdm_error *err)
{
    esdm_container *definition = *container;
    esdm_status status = ESDM_OK;
    if (!esdm__virtual_is_saved(definition))
        return ESDM_OK;
    *container = NULL;
    if (mode == ESDM_OPEN_WRITE)
        status = esdm__error_set(err, ESDM_EACCES,
                                 "'%s' is a virtual container, which nobody can write to: write to "
                                 "its members, or copy it (esdm-cp)",
                                 definition->name);
    else
        status = esdm__virtual_open_saved(definition, container, err);
    esdm_container_discard(definition);
    return status;
}

/* A name that says a point of time, where no container is called so. */
static esdm_status
open_moment(esdm_session *session, const char *name, esdm_open_mode mode, uint64_t snapshot,
            esdm_container **ret_container, esdm_error *err)
{
    esdm__moment moment;
    esdm_status status = esdm__moment_find(session, name, &moment, err);
    if (status == ESDM_OK && mode == ESDM_OPEN_WRITE)
        return esdm__error_set(err, ESDM_EACCES,
                               "'%s' is a snapshot, which nobody can write to: esdm-cp esdm://%s "
                               "esdm://NEW makes a container of it",
                               name, name);
    if (status == ESDM_OK)
        status = open_plain(session, moment.stored, mode,
                            snapshot != ESDM_SNAPSHOT_LATEST ? snapshot : moment.snapshot,
                            ret_container, err);
    if (status == ESDM_OK && esdm__name_is_own(moment.stored)) {
        (*ret_container)->said = strdup(name);
        if ((*ret_container)->said == NULL) {
            esdm_container_discard(*ret_container);
            status = esdm__error_nomem(err, strlen(name) + 1, "the name of a container");
        }
    }
    return status;
}

/* A name that says a place of a view, where no container is called so. */
static esdm_status
open_view(esdm_session *session, const char *name, esdm_open_mode mode, uint64_t snapshot,
          esdm_container **ret_container, esdm_error *err)
{
    if (mode == ESDM_OPEN_WRITE)
        return esdm__view_refuse(name, err);
    return esdm__virtual_open_view(session, name, snapshot, ret_container, err);
}

/* A name that is a query. */
static esdm_status
open_query(esdm_session *session, const char *query, esdm_open_mode mode, uint64_t snapshot,
           esdm_container **ret_container, esdm_error *err)
{
    if (mode == ESDM_OPEN_WRITE)
        return esdm__error_set(err, ESDM_EACCES,
                               "'%s' is a query, which nobody can write to: write to the "
                               "containers that it finds, or copy it (esdm-cp 'esdm://%s' "
                               "esdm://NEW)",
                               query, query);
    if (snapshot != ESDM_SNAPSHOT_LATEST)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "'%s' is a query, which opens the newest snapshots only", query);
    return esdm__virtual_open(session, query, ret_container, err);
}

/* "?digest" was said behind the name. */
static esdm_status
open_with_digest(esdm_session *session, const char *name, esdm_open_mode mode, uint64_t snapshot,
                 esdm_container **ret_container, esdm_error *err)
{
    esdm_container *container;
    if (mode == ESDM_OPEN_WRITE)
        return esdm__error_set(err, ESDM_EACCES, "'%s?digest' is for reading: write to '%s' itself",
                               name, name);
    esdm_status status = esdm_container_open(session, name, mode, snapshot, &container, err);
    if (status != ESDM_OK)
        return status;
    status = esdm_container_tell_digest(container, err);
    if (status == ESDM_OK)
        *ret_container = container;
    else
        esdm_container_discard(container);
    return status;
}

/* `coarse`: the caller says how accurately it reads, and asks for what earlier runs read. */
static esdm_status open_container(esdm_session *session, const char *name, esdm_open_mode mode,
                                  uint64_t snapshot, bool coarse, esdm_container **ret_container,
                                  esdm_error *err);

/* "?accuracy=…" was said behind the name. */
static esdm_status
open_coarse(esdm_session *session, const char *name, const char *accuracy, esdm_open_mode mode,
            uint64_t snapshot, esdm_container **ret_container, esdm_error *err)
{
    esdm_container *container;
    if (mode == ESDM_OPEN_WRITE)
        return esdm__error_set(err, ESDM_EACCES,
                               "'%s?accuracy=%s' is for reading: write to '%s' itself", name,
                               accuracy, name);
    esdm_status status = open_container(session, name, mode, snapshot, true, &container, err);
    if (status != ESDM_OK)
        return status;
    status = esdm__virtual_coarse(container, accuracy, err);
    if (status != ESDM_OK) {
        esdm_container_discard(container);
        return status;
    }
    if (container->provider == NULL)
        esdm__read_as_before(container);
    *ret_container = container;
    return ESDM_OK;
}

static esdm_status
open_container(esdm_session *session, const char *name, esdm_open_mode mode, uint64_t snapshot,
               bool coarse, esdm_container **ret_container, esdm_error *err)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    if (mode != ESDM_OPEN_READ && mode != ESDM_OPEN_WRITE)
        return esdm__error_set(err, ESDM_EINVAL, "esdm_container_open: wrong argument");
    esdm_status status = esdm_container_normalise(name, normal, err);
    if (status != ESDM_OK)
        return status;
    if (esdm__virtual_is_said(normal))
        return open_query(session, normal, mode, snapshot, ret_container, err);
    esdm_error why = {0};
    esdm_container *container = NULL;
    status = open_plain(session, normal, mode, snapshot, &container, &why);
    char plain[ESDM_CONTAINER_NAME_MAX + 1];
    const char *accuracy = status == ESDM_ENOENT ? esdm__coarse_is_said(normal, plain) : NULL;
    if (accuracy != NULL)
        return open_coarse(session, plain, accuracy, mode, snapshot, ret_container, err);
    if (status == ESDM_ENOENT && esdm__view_is_said(session->site, normal))
        return open_view(session, normal, mode, snapshot, ret_container, err);
    if (status == ESDM_ENOENT && esdm__digest_is_asked(normal, plain))
        return open_with_digest(session, plain, mode, snapshot, ret_container, err);
    if (status == ESDM_ENOENT && esdm__moment_is_said(normal))
        status = open_moment(session, normal, mode, snapshot, &container, &why);
    if (status == ESDM_OK && mode == ESDM_OPEN_WRITE &&
        esdm_container_hint(container, ESDM__HINT_SHAPES_OF) != NULL) {
        esdm_container_discard(container);
        return esdm__error_set(err, ESDM_EACCES,
                               "'%s' has what others have in a second shape: only esdm-compact "
                               "writes to it",
                               normal);
    }
    if (status == ESDM_OK)
        status = follow_saved(mode, &container, &why);
    if (status == ESDM_OK && mode == ESDM_OPEN_READ && !coarse)
        esdm__read_as_before(container);
    if (status == ESDM_OK)
        *ret_container = container;
    else if (err != NULL)
        *err = why;
    return status;
}

esdm_status
esdm_container_open(esdm_session *session, const char *name, esdm_open_mode mode, uint64_t snapshot,
                    esdm_container **ret_container, esdm_error *err)
{
    ESDM_FLOAT_ENV_OWN;
    ESDM__NEED(err, session);
    ESDM__NEED(err, ret_container);
    return open_container(session, name, mode, snapshot, false, ret_container, err);
}

/* Commits count snapshots alone: those that were kept for their age go now and then. */
#define PRUNE_EVERY 64

static void
prune_old(const esdm_container *container)
{
    const esdm_session *session = container->session;
    if (container->writable && container->snapshot > 0 &&
        esdm__site_retention(session->site, container->name).age_s > 0)
        (void) !esdm__upkeep_prune(session, esdm__io_of(container)->record, container->name, NULL);
}

esdm_status
esdm_container_commit(esdm_container *container, const char *message, esdm_error *err)
{
    ESDM_FLOAT_ENV_OWN;
    ESDM__NEED(err, container);
    esdm__regions_look_all(container);
    esdm_status status = esdm__io_commit(container, message, err);
    if (status == ESDM_OK)
        status = esdm__branch_over_publish(container, err);
    if (status == ESDM_OK)
        esdm__undo_forget(container);
    if (status == ESDM_OK && container->writable) {
        esdm__drain_later(container->session, container->name);
        esdm__virtual_follow_later(container->session);
    }
    if (status == ESDM_OK && container->snapshot % PRUNE_EVERY == 0)
        prune_old(container);
    return status;
}

esdm_status
esdm_container_commit_last(esdm_container *container, const char *message, esdm_error *err)
{
    ESDM__NEED(err, container);
    /* What takes a branch's place may be refused after its commit: the handle stays then. */
    esdm__io_of(container)->leaves = esdm__io_of(container)->over == NULL;
    esdm_status status = esdm_container_commit(container, message, err);
    esdm__io_of(container)->leaves = status == ESDM_OK;
    return status;
}

size_t
esdm_container_give_up_failed(esdm_container *container)
{
    return container != NULL ? esdm__io_give_up_failed(container) : 0;
}

void
esdm_container_revert(esdm_container *container)
{
    if (container != NULL)
        esdm__io_revert(container);
}

esdm_status
esdm_container_close(esdm_container *container, esdm_error *err)
{
    ESDM_FLOAT_ENV_OWN;
    if (container == NULL)
        return ESDM_OK;
    esdm__io_of(container)->leaves = true;
    esdm_status status = esdm__io_commit(container, NULL, err);
    if (status == ESDM_OK)
        status = esdm__branch_over_publish(container, err);
    if (status == ESDM_OK && container->writable) {
        esdm__drain_later(container->session, container->name);
        esdm__virtual_follow_later(container->session);
    }
    esdm_container_discard(container);
    return status;
}

void
esdm_container_discard(esdm_container *container)
{
    ESDM_FLOAT_ENV_OWN;
    if (container == NULL)
        return;
    esdm_session *session = container->session;
    esdm__span span;
    char uuid[ESDM__UUID_BYTES];
    uint64_t record = 0;
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    esdm__span_begin(&span, session->monitor);
    const esdm__span_facts facts = esdm__closing_facts(container, &span);
    prune_old(container);
    esdm__collective_end_ranges(container);
    bool over = esdm__branch_over_is_made(container);
    bool trims = esdm__io_has_dropped(container, &record, uuid);
    esdm__text_copy(name, sizeof name, container->name);
    esdm__container_io_free(container);
    esdm__container_free(container);
    if (over)
        esdm__branch_over_end(session, name);
    if (trims) /* what it was writing has an end now */
        esdm__upkeep_trim(session, record, uuid, name);
    if (esdm__span_is_observed(&span))
        esdm__span_stop(&span, &facts);
}

esdm_status
esdm_container_refresh(esdm_container *container, esdm_error *err)
{
    ESDM__NEED(err, container);
    if (container->provider != NULL)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "'%s' is put together from several containers: open it again to see "
                               "their newest snapshots",
                               container->name);
    return esdm__io_refresh(container, err);
}

bool
esdm_container_is_dirty(const esdm_container *container)
{
    if (container == NULL)
        return false;
    return esdm__io_is_dirty(container);
}

const char *
esdm_container_uuid(const esdm_container *container)
{
    return container != NULL ? esdm__io_of(container)->uuid : "";
}
