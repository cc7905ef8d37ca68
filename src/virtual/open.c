/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Opens what a query finds: one container, or several as one. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/read/coarse.h"
#include "virtual/parts.h"

static const esdm__provider provider = {.read = esdm__virtual_read, .free = esdm__virtual_free};

static esdm_status
join(esdm__virtual *whole, const esdm__question *question, const esdm__bundles *bundles,
     esdm_container *container, esdm_error *err)
{
    esdm_status status = esdm__members_init(&whole->members, esdm_container_session(container),
                                            question, bundles, err);
    whole->said = container->name;
    whole->stacks = bundles != NULL && bundles->axis[0] == '\0';
    if (status == ESDM_OK)
        status = esdm__virtual_survey(whole, question, bundles, err);
    if (status == ESDM_OK)
        status = esdm__virtual_build(whole, bundles, container, err);
    if (status == ESDM_OK)
        status =
            esdm__virtual_overlap(whole, question->overlap != ESDM__OVERLAP_EQUAL, container, err);
    return status;
}

/* Variables of several containers: each is joined first. */
static esdm_status
merge(esdm__virtual *whole, const esdm__question *question, const esdm__bundles *bundles,
      esdm_container *container, esdm_error *err)
{
    esdm_status status = esdm__members_init(&whole->members, esdm_container_session(container),
                                            question, bundles, err);
    whole->said = container->name;
    return status == ESDM_OK ? esdm__virtual_merge(whole, question, container, err) : status;
}

static esdm_status
join_or_merge(esdm__virtual *whole, const esdm__question *question, esdm_container *container,
              esdm_error *err)
{
    esdm__bundles bundles = {0};
    esdm_error why = {0};
    if (esdm__remembered_open(whole, question, container))
        return ESDM_OK;
    esdm_status status = container->datasets.count == 0
                             ? join(whole, question, NULL, container, err)
                             : esdm__error_set(err, ESDM_ECORRUPT,
                                               "what was kept about '%.200s' was damaged, and is "
                                               "removed: open it again",
                                               container->name);
    if (status == ESDM_OK)
        esdm__remembered_keep(whole, question, container);
    if (status != ESDM_EINVAL || container->datasets.count > 0)
        return status;
    /* Members do not fit: they may have different variables, or be tiles. */
    esdm_session *session = esdm_container_session(container);
    if (esdm__bundles_by_variable(session, question, &bundles, &why) == ESDM_OK &&
        bundles.count > 0) {
        esdm__virtual_clear(whole);
        status = merge(whole, question, &bundles, container, err);
    } else if (!whole->results && /* a mean over an area is no tile beside it */
               esdm__bundles_by_tile(session, question, &bundles, &why) == ESDM_OK &&
               bundles.count > 0) {
        esdm__virtual_clear(whole);
        status = join(whole, question, &bundles, container, err);
    }
    esdm__bundles_clear(&bundles);
    return status;
}

static esdm_status
open_bundled(esdm__virtual *whole, const esdm__question *question, esdm_container *container,
             esdm_error *err)
{
    esdm__bundles bundles = {0};
    if (question->ensemble == NULL)
        return join_or_merge(whole, question, container, err);
    esdm_status status =
        esdm__bundles_by_label(esdm_container_session(container), question, &bundles, err);
    if (status == ESDM_OK)
        status = join(whole, question, &bundles, container, err);
    esdm__bundles_clear(&bundles);
    return status;
}

esdm_status
esdm__virtual_open_joined(esdm_session *session, const char *name, const esdm__question *question,
                          esdm_container **ret_container, esdm_error *err)
{
    esdm_container *container = NULL;
    esdm_status status = esdm__container_new_handle(session, name, &container, err);
    if (status != ESDM_OK)
        return status;
    esdm__virtual *whole = calloc(1, sizeof *whole);
    if (whole == NULL) {
        esdm__container_drop(container);
        return esdm__error_nomem(err, sizeof *whole, "a virtual container");
    }
    container->provider = &provider;
    container->provided = whole;
    esdm__uuid_new(esdm__io_of(container)->uuid);
    status = open_bundled(whole, question, container, err);
    if (status != ESDM_OK) {
        esdm__container_drop(container);
        return esdm__error_prefix(err, status, "'%.300s'", name);
    }
    *ret_container = container;
    return ESDM_OK;
}

esdm_status
esdm__virtual_open_question(esdm_session *session, const char *name, const esdm__question *question,
                            esdm_container **ret_container, esdm_error *err)
{
    if (question->count != 1 || question->ensemble != NULL)
        return esdm__virtual_open_joined(session, name, question, ret_container, err);
    esdm_container *only = NULL;
    esdm_status status = esdm__question_open(session, question, 0, &only, err);
    if (status == ESDM_OK)
        *ret_container = only;
    return status;
}

esdm_status
esdm__virtual_open(esdm_session *session, const char *query, esdm_container **ret_container,
                   esdm_error *err)
{
    esdm__question question = {0};
    esdm_status status = esdm__question_ask(session, query, NULL, &question, err);
    if (status != ESDM_OK)
        return status;
    esdm_container *container = NULL;
    status = esdm__virtual_open_question(session, query, &question, &container, err);
    if (status == ESDM_OK && question.accuracy != NULL)
        status = esdm__virtual_coarse(container, question.accuracy, err);
    esdm__question_clear(&question);
    if (status == ESDM_OK)
        *ret_container = container;
    else
        esdm__container_drop(container);
    return status;
}

/* Members that are several in one are told, too. */
static esdm_status
loosen_members(esdm__members *members, const char *text, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    members->accuracy = strdup(text);
    if (members->accuracy == NULL)
        return esdm__error_nomem(err, strlen(text), "an accuracy");
    for (size_t i = 0; i < members->count && status == ESDM_OK; i++) {
        esdm_container *open = members->items[i].open;
        if (open != NULL && open->provider == &provider)
            status = loosen_members(&((esdm__virtual *) open->provided)->members, text, err);
        else if (open != NULL)
            status = esdm__coarse_apply_to_member(open, text, err);
    }
    return status;
}

esdm_status
esdm__virtual_coarse(esdm_container *container, const char *text, esdm_error *err)
{
    esdm_status status = esdm__coarse_apply(container, text, err);
    if (status != ESDM_OK || container->provider != &provider)
        return status;
    return loosen_members(&((esdm__virtual *) container->provided)->members, text, err);
}

esdm_status
esdm__virtual_stat_question(const esdm_session *session, const esdm__question *question,
                            esdm_meta_container *ret_record, esdm_error *err)
{
    esdm_meta_container sum = {0};
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < question->count && status == ESDM_OK; i++) {
        esdm_meta_container one;
        status = session->meta->container_find(session->store, question->names[i], &one, err);
        if (status != ESDM_OK)
            break;
        sum.raw_bytes += one.raw_bytes;
        sum.stored_bytes += one.stored_bytes;
        sum.fragments += one.fragments;
        sum.datasets = one.datasets > sum.datasets ? one.datasets : sum.datasets;
        sum.created_ns = one.created_ns > sum.created_ns ? one.created_ns : sum.created_ns;
        sum.modified_ns = one.modified_ns > sum.modified_ns ? one.modified_ns : sum.modified_ns;
        sum.snapshot = question->count == 1 ? one.snapshot : 0;
    }
    if (status == ESDM_OK)
        *ret_record = sum;
    return status;
}

esdm_status
esdm__virtual_stat(esdm_session *session, const char *query, esdm_meta_container *ret_record,
                   esdm_error *err)
{
    esdm__question question = {0};
    esdm_status status = esdm__question_ask(session, query, NULL, &question, err);
    if (status == ESDM_OK)
        status = esdm__virtual_stat_question(session, &question, ret_record, err);
    esdm__question_clear(&question);
    return status;
}
