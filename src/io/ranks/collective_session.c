/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Several ranks open a site: rank 0 asks the metadata store, and tells the others what it answers,
 * so that they need no connection of their own. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/ranks/collective.h"
#include "io/session/models.h"

/* What rank 0 tells; two texts follow. */
typedef struct news {
    uint64_t configuration;
    uint64_t has_model;
    uint64_t has_observed;
    char site_id[ESDM__UUID_BYTES];
} news;

/* A text of rank 0; NULL where it has none. @param ret_text owned on all ranks. */
static esdm_status
share_text(esdm_comm *comm, bool there, char **ret_text, esdm_error *err)
{
    void *data = *ret_text;
    size_t bytes = data != NULL ? strlen(*ret_text) : 0;
    if (!there)
        return ESDM_OK;
    esdm_status status = esdm__comm_share_block(comm, &data, &bytes, err);
    *ret_text = data;
    return status;
}

/* @param session of rank 0. @param ret_model,ret_observed owned, as they are told. */
static esdm_status
share_store(esdm_comm *comm, const esdm_session *session, esdm__store_told *ret_told,
            char **ret_model, char **ret_observed, esdm_error *err)
{
    news told = {0};
    if (comm->rank == 0) {
        esdm__models_texts(session, ret_model, ret_observed);
        told.configuration = esdm__session_store_configuration(session);
        told.has_model = *ret_model != NULL;
        told.has_observed = *ret_observed != NULL;
        memcpy(told.site_id, session->site->id, sizeof told.site_id);
    }
    esdm_status status = comm->ops->broadcast(comm, &told, sizeof told, 0, err);
    if (status == ESDM_OK)
        status = share_text(comm, told.has_model != 0, ret_model, err);
    if (status == ESDM_OK)
        status = share_text(comm, told.has_observed != 0, ret_observed, err);
    ret_told->configuration = told.configuration;
    memcpy(ret_told->site_id, told.site_id, sizeof told.site_id);
    ret_told->model = *ret_model;
    ret_told->observed = *ret_observed;
    return status;
}

/* The ranks that have no session yet open theirs; rank 0 has one. */
static esdm_status
open_others(const esdm_session_options *options, esdm_comm *comm, const esdm_session *first,
            esdm_session **session, esdm_error *err)
{
    esdm__store_told told = {0};
    char *model = NULL;
    char *observed = NULL;
    esdm_status status = share_store(comm, first, &told, &model, &observed, err);
    if (status == ESDM_OK) {
        if (*session == NULL)
            status = esdm__session_new(options, &told, session, err);
        status = esdm__comm_agree(comm, status, err);
    }
    free(model);
    free(observed);
    return status;
}

esdm_status
esdm__collective_session(const esdm_session_options *options, esdm_comm *comm, esdm_session *have,
                         esdm_session **ret_session, esdm_error *err)
{
    esdm_session *session = have;
    esdm_error mine = {0};
    uint64_t values[2] = {0, have == NULL};
    if (comm->rank == 0 && have == NULL)
        mine.status = esdm__session_new(options, NULL, &session, &mine);
    if (comm->rank == 0) /* which knows by itself what the others would be told */
        values[1] = 0;
    esdm_status status = esdm__comm_agree_on(comm, mine.status, values, 1, &mine);
    if (status == ESDM_OK && values[1] != 0)
        status = open_others(options, comm, session, &session, &mine);
    if (status == ESDM_OK) {
        *ret_session = session;
        return ESDM_OK;
    }
    if (session != have)
        esdm__session_free(session);
    if (err != NULL)
        *err = mine;
    return status;
}
