/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Public functions for containers that several ranks share. */

#include "io/ranks/collective.h"
#include "api/branches.h"
#include "api/moment.h"
#include "api/regions.h"
#include "api/transfer.h"
#include "base/error.h"
#include "esdm/float_env.h"
#include "io/read/coarse.h"
#include "query/view.h"
#include "virtual/virtual.h"

static esdm_status
check_rank(const esdm_comm *comm, const void *ret, esdm_error *err)
{
    if (comm == NULL || comm->ops == NULL || ret == NULL)
        return esdm__error_set(err, ESDM_EINVAL, "session, comm or result is NULL");
    if (comm->size < 1 || comm->rank < 0 || comm->rank >= comm->size)
        return esdm__error_set(err, ESDM_EINVAL, "there is no rank %d of %d", comm->rank,
                               comm->size);
    return ESDM_OK;
}

static esdm_status
check_comm(const esdm_session *session, const esdm_comm *comm, const void *ret, esdm_error *err)
{
    return check_rank(comm, session != NULL ? ret : NULL, err);
}

esdm_status
esdm_session_open_collective(const esdm_session_options *options, esdm_comm *comm,
                             esdm_session *have, esdm_session **ret_session, esdm_error *err)
{
    ESDM_FLOAT_ENV_OWN;
    esdm_status status = check_rank(comm, ret_session, err);
    return status == ESDM_OK ? esdm__collective_session(options, comm, have, ret_session, err)
                             : status;
}

static esdm_status
not_a_query(const esdm_session *session, const char *normal, esdm_error *err)
{
    bool query = esdm__virtual_is_said(normal);
    if (!query && !esdm__view_is_said(session->site, normal))
        return ESDM_OK;
    return esdm__error_set(err, ESDM_ENOTSUP,
                           "'%s' is a %s: ranks do not open or create such a container together, "
                           "each of them can open it alone",
                           normal, query ? "query" : "place of a view");
}

esdm_status
esdm_container_create_collective(esdm_session *session, esdm_comm *comm, const char *name,
                                 esdm_create_mode mode, esdm_container **ret_container,
                                 esdm_error *err)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_status status = check_comm(session, comm, ret_container, err);
    if (status != ESDM_OK)
        return status;
    if (mode != ESDM_CREATE_NEW && mode != ESDM_CREATE_REPLACE)
        status = esdm__error_set(err, ESDM_EINVAL, "unknown mode %d", (int) mode);
    if (status == ESDM_OK)
        status = esdm_container_normalise(name, normal, err);
    if (status == ESDM_OK)
        status = not_a_query(session, normal, err);
    if (status == ESDM_OK)
        status = esdm__branch_check_name(session, normal, err);
    if (status == ESDM_OK)
        status = esdm__moment_check_new(session, normal, err);
    status = esdm__comm_agree(comm, status, err);
    if (status != ESDM_OK)
        return status;
    esdm__span span;
    esdm__span_begin(&span, session->monitor);
    status = esdm__collective_create(session, comm, normal, mode, ret_container, err);
    esdm__opening_observed(&span, normal, status == ESDM_OK ? *ret_container : NULL,
                           mode == ESDM_CREATE_REPLACE ? "replace" : "create", comm, status);
    return status;
}

/* "?accuracy=…" was said behind the name. */
static esdm_status
open_coarse(esdm_session *session, esdm_comm *comm, const char *name, const char *accuracy,
            esdm_open_mode mode, uint64_t snapshot, esdm_container **ret_container, esdm_error *err)
{
    esdm_container *container = NULL;
    if (mode == ESDM_OPEN_WRITE)
        return esdm__error_set(err, ESDM_EACCES,
                               "'%s?accuracy=%s' is for reading: write to '%s' itself", name,
                               accuracy, name);
    esdm_status status = not_a_query(session, name, err);
    if (status == ESDM_OK)
        status = esdm__collective_open(session, comm, name, mode, snapshot, &container, err);
    if (status == ESDM_OK && !esdm__virtual_is_saved(container))
        status = esdm__comm_agree(comm, esdm__coarse_apply(container, accuracy, err), err);
    if (status == ESDM_OK)
        *ret_container = container;
    else
        esdm_container_discard(container);
    return status;
}

esdm_status
esdm_container_open_collective(esdm_session *session, esdm_comm *comm, const char *name,
                               esdm_open_mode mode, uint64_t snapshot,
                               esdm_container **ret_container, esdm_error *err)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_status status = check_comm(session, comm, ret_container, err);
    if (status != ESDM_OK)
        return status;
    if (mode != ESDM_OPEN_READ && mode != ESDM_OPEN_WRITE)
        status = esdm__error_set(err, ESDM_EINVAL, "unknown mode %d", (int) mode);
    if (status == ESDM_OK)
        status = esdm_container_normalise(name, normal, err);
    if (status == ESDM_OK)
        status = not_a_query(session, normal, err);
    status = esdm__comm_agree(comm, status, err);
    if (status != ESDM_OK)
        return status;
    esdm_container *container = NULL;
    esdm__span span;
    char plain[ESDM_CONTAINER_NAME_MAX + 1];
    esdm__span_begin(&span, session->monitor);
    status = esdm__collective_open(session, comm, normal, mode, snapshot, &container, err);
    const char *accuracy = status == ESDM_ENOENT ? esdm__coarse_is_said(normal, plain) : NULL;
    if (accuracy != NULL) /* on all ranks */
        status = open_coarse(session, comm, plain, accuracy, mode, snapshot, &container, err);
    esdm__opening_observed(&span, normal, status == ESDM_OK ? container : NULL,
                           mode == ESDM_OPEN_WRITE ? "write" : "read", comm, status);
    if (status == ESDM_OK && esdm__virtual_is_saved(container)) {
        esdm_container_discard(container); /* all ranks see it */
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "'%s' is a virtual container: ranks do not open such a container "
                               "together, each of them can open it alone",
                               normal);
    }
    if (status == ESDM_OK)
        *ret_container = container;
    return status;
}

esdm_comm *
esdm_container_comm(const esdm_container *container)
{
    if (container == NULL)
        return NULL;
    return esdm__io_of(container)->comm;
}

static esdm_status
check_shared(const esdm_container *container, esdm_error *err)
{
    if (esdm__io_of(container)->comm != NULL)
        return ESDM_OK;
    return esdm__error_set(err, ESDM_EINVAL,
                           "container '%s' was not opened with esdm_container_*_collective()",
                           container->name);
}

esdm_status
esdm_container_align(esdm_container *container, esdm_error *err)
{
    if (container == NULL)
        return esdm__error_set(err, ESDM_EINVAL, "esdm_container_align: container is NULL");
    esdm_status status = check_shared(container, err);
    if (status != ESDM_OK)
        return status;
    esdm__span span;
    esdm__span_begin(&span, container->session->monitor);
    status = esdm__collective_align(container, err);
    esdm__meeting_observed(&span, NULL, container, NULL, true, status);
    return status;
}

esdm_status
esdm_dataset_align(esdm_dataset *dataset, const esdm_dataspace *space, bool writing,
                   esdm_error *err)
{
    if (dataset == NULL)
        return esdm__error_set(err, ESDM_EINVAL, "esdm_dataset_align: dataset is NULL");
    esdm_status status = check_shared(dataset->group->container, err);
    if (status == ESDM_OK && writing)
        status = esdm__check_writable(dataset, err);
    if (status != ESDM_OK) /* on all ranks */
        return status;
    if (space != NULL && space->rank != dataset->rank)
        space = NULL; /* the transfer will say so */
    esdm__span span;
    esdm__span_begin(&span, dataset->group->container->session->monitor);
    status = esdm__collective_transfer(dataset, space, writing, err);
    esdm__meeting_observed(&span, dataset, dataset->group->container, space, writing, status);
    return status;
}

/* Aligns for a transfer after this rank's own checks, which do not keep it from taking part. */
static esdm_status
align_checked(esdm_dataset *dataset, const esdm_dataspace *space, bool writing, esdm_status checked,
              esdm_error *err)
{
    esdm_error mine = {0};
    esdm_status status =
        esdm_dataset_align(dataset, checked == ESDM_OK ? space : NULL, writing, &mine);
    if (status == ESDM_OK)
        return checked;
    if (err != NULL)
        *err = mine;
    return status;
}

esdm_status
esdm_write_collective(esdm_dataset *dataset, const esdm_dataspace *space, esdm_type memory_type,
                      const void *buffer, uint64_t *ret_out_of_range, esdm_error *err)
{
    ESDM_FLOAT_ENV_OWN;
    if (dataset == NULL)
        return esdm__error_set(err, ESDM_EINVAL, "esdm_write_collective: dataset is NULL");
    esdm_status status = ESDM_OK;
    if (space != NULL)
        status = esdm__check_transfer(dataset, space, memory_type, buffer, err);
    if (status == ESDM_OK && space != NULL)
        status = esdm__space_check(dataset, space, true, err);
    status = align_checked(dataset, space, true, status, err);
    if (status != ESDM_OK || space == NULL)
        return status;
    esdm__regions_look(dataset);
    return esdm__io_write(dataset, space, memory_type, buffer, ret_out_of_range, err);
}

esdm_status
esdm_read_collective(esdm_dataset *dataset, const esdm_dataspace *space, esdm_type memory_type,
                     void *buffer, uint64_t *ret_out_of_range, esdm_error *err)
{
    ESDM_FLOAT_ENV_OWN;
    if (dataset == NULL)
        return esdm__error_set(err, ESDM_EINVAL, "esdm_read_collective: dataset is NULL");
    esdm_status status = ESDM_OK;
    if (space != NULL)
        status = esdm__check_transfer(dataset, space, memory_type, buffer, err);
    status = align_checked(dataset, space, false, status, err);
    if (status != ESDM_OK || space == NULL)
        return status;
    return esdm__io_read(dataset, space, memory_type, buffer, ret_out_of_range, err);
}

bool
esdm_container_settled(esdm_container *container, char *text, size_t bytes)
{
    return container != NULL && text != NULL &&
           esdm__collective_take_settled(container, text, bytes);
}
