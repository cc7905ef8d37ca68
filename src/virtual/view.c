/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Opens what lies at the last level of a view: a container, or several as one. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/session/session.h"
#include "query/view.h"
#include "virtual/parts.h"

static bool
add_name(const char *name, void *user)
{
    esdm__pointers *names = user;
    char *copy = strdup(name);
    if (copy == NULL || !esdm__pointers_add(names, copy)) {
        free(copy);
        names->count = SIZE_MAX; /* out of memory */
        return false;
    }
    return names->count <= ESDM__MEMBERS_MOST;
}

/* ESDM_ENOENT: nothing is there, or a folder is. */
static esdm_status
folder_said(const esdm__view_path *path, const char *name, size_t count, esdm_error *err)
{
    if (count == 0)
        return esdm__error_set(err, ESDM_ENOENT, "there is nothing at '%.300s' in the view %s",
                               name, path->view->text);
    return esdm__error_set(
        err, ESDM_ENOENT,
        "'%.300s' is a folder of a view: esdm-ls shows what is in it. A name has "
        "all levels: %s",
        name, path->view->text);
}

static esdm_status
ask_view(esdm_session *session, const char *name, esdm__question *ret, esdm_error *err)
{
    esdm__view_path path;
    esdm__pointers names = {0};
    esdm_status status = esdm__view_path_parse(session->site, name, &path, err);
    if (status != ESDM_OK)
        return status;
    status = esdm__view_containers(session->meta, session->store, &path, add_name, &names, err);
    esdm__question question = {.names = (char **) names.items, .count = names.count};
    if (names.count == SIZE_MAX) {
        free(names.items);
        question = (esdm__question){0};
        status = esdm__error_nomem(err, sizeof(char *), "what a view has");
    }
    if (status == ESDM_OK && (path.depth < path.view->nlevels || question.count == 0))
        status = folder_said(&path, name, question.count, err);
    if (status == ESDM_OK && question.count > ESDM__MEMBERS_MOST)
        status = esdm__error_set(err, ESDM_ENOTSUP,
                                 "at '%.300s' are more than %u containers, too many to open as one",
                                 name, ESDM__MEMBERS_MOST);
    esdm__view_path_clear(&path);
    if (status == ESDM_OK)
        *ret = question;
    else
        esdm__question_clear(&question);
    return status;
}

esdm_status
esdm__virtual_open_view(esdm_session *session, const char *name, uint64_t snapshot,
                        esdm_container **ret_container, esdm_error *err)
{
    esdm__question question = {0};
    esdm_status status = ask_view(session, name, &question, err);
    if (status == ESDM_OK && snapshot != ESDM_SNAPSHOT_LATEST && question.count > 1)
        status = esdm__error_set(err, ESDM_ENOTSUP,
                                 "at '%.300s' are %zu containers, of which the newest snapshots "
                                 "are opened only",
                                 name, question.count);
    else if (status == ESDM_OK && snapshot != ESDM_SNAPSHOT_LATEST)
        status =
            esdm__io_open(session, question.names[0], ESDM_OPEN_READ, snapshot, ret_container, err);
    else if (status == ESDM_OK)
        status = esdm__virtual_open_question(session, name, &question, ret_container, err);
    esdm__question_clear(&question);
    return status;
}

esdm_status
esdm__virtual_stat_view(esdm_session *session, const char *name, esdm_meta_container *ret_record,
                        esdm_error *err)
{
    esdm__question question = {0};
    esdm_status status = ask_view(session, name, &question, err);
    if (status == ESDM_OK)
        status = esdm__virtual_stat_question(session, &question, ret_record, err);
    esdm__question_clear(&question);
    return status;
}
