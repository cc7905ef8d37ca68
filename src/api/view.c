/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Public functions on views. */

#include "esdm/view.h"

#include <stdlib.h>
#include <string.h>

#include "api/catalogue.h"
#include "base/arguments.h"
#include "base/error.h"
#include "io/session/session.h"
#include "query/view.h"

_Static_assert(ESDM_VIEW_NAME_MAX == ESDM__VIEW_COMPONENT_MOST, "what is told of a component");

esdm_status
esdm_view_list(esdm_session *session, esdm_view_info_visitor visit, void *user, esdm_error *err)
{
    ESDM__NEED(err, session);
    ESDM__NEED(err, visit);
    for (size_t i = 0; i < session->site->nviews; i++) {
        const esdm__site_view *view = &session->site->views[i];
        const esdm_view_info info = {.name = view->name,
                                     .template_text = view->text,
                                     .levels = view->nlevels,
                                     .built_in = view->built_in};
        if (!visit(&info, user))
            break;
    }
    return ESDM_OK;
}

bool
esdm_view_is_said(const esdm_session *session, const char *name)
{
    return session != NULL && name != NULL && esdm__view_is_said(session->site, name);
}

esdm_status
esdm_view_name(const char *value, char *buffer, esdm_error *err)
{
    esdm__buffer text;
    ESDM__NEED(err, buffer);
    esdm__buffer_init(&text);
    esdm__view_component(value, &text);
    if (!text.failed)
        memcpy(buffer, text.data, text.bytes);
    bool failed = text.failed;
    esdm__buffer_clear(&text);
    return failed ? esdm__error_nomem(err, ESDM_VIEW_NAME_MAX, "a component") : ESDM_OK;
}

typedef struct level_visitor {
    esdm_view_visitor visit;
    void *user;
    bool is_last;
} level_visitor;

static bool
visit_component(const char *component, uint64_t containers, void *user)
{
    const level_visitor *v = user;
    const esdm_view_entry entry = {component, containers, v->is_last};
    return v->visit(&entry, v->user);
}

esdm_status
esdm_view_level(esdm_session *session, const char *place, esdm_view_visitor visit, void *user,
                esdm_error *err)
{
    esdm__view_path path;
    ESDM__NEED(err, session);
    ESDM__NEED(err, place);
    ESDM__NEED(err, visit);
    esdm_status status = esdm__view_path_parse(session->site, place, &path, err);
    if (status != ESDM_OK)
        return status;
    level_visitor v = {visit, user, path.depth + 1 == path.view->nlevels};
    if (path.depth < path.view->nlevels)
        status =
            esdm__view_level_list(session->meta, session->store, &path, visit_component, &v, err);
    esdm__view_path_clear(&path);
    return status;
}

esdm_status
esdm_view_expression(esdm_session *session, const char *place, char **ret_expression,
                     esdm_error *err)
{
    esdm__view_path path;
    esdm__buffer text;
    size_t bytes = 0;
    ESDM__NEED(err, session);
    ESDM__NEED(err, place);
    ESDM__NEED(err, ret_expression);
    esdm_status status = esdm__view_path_parse(session->site, place, &path, err);
    if (status != ESDM_OK)
        return status;
    esdm__buffer_init(&text);
    status = esdm__view_expression(&path, &text, err);
    esdm__view_path_clear(&path);
    if (status == ESDM_OK)
        *ret_expression = (char *) esdm__buffer_steal(&text, &bytes);
    esdm__buffer_clear(&text);
    return status;
}

typedef struct name_list {
    char **names; /* owned, each too */
    size_t count;
    bool nomem;
} name_list;

static bool
note_name(const char *name, void *user)
{
    name_list *list = user;
    char *copy = strdup(name);
    list->nomem = copy == NULL || !esdm__array_grow(&list->names, list->count, sizeof copy);
    if (list->nomem)
        free(copy);
    else
        list->names[list->count++] = copy;
    return !list->nomem;
}

/* A visitor never calls the store: names are gathered before. */
static esdm_status
tell_containers(const esdm_session *session, const name_list *list, esdm_container_visitor visit,
                void *user, esdm_error *err)
{
    for (size_t i = 0; i < list->count; i++) {
        esdm_meta_container record;
        esdm_error why = {0};
        esdm_status status =
            session->meta->container_find(session->store, list->names[i], &record, &why);
        if (status == ESDM_ENOENT)
            continue; /* it was removed meanwhile */
        if (status != ESDM_OK) {
            if (err != NULL)
                *err = why;
            return status;
        }
        const esdm_container_info info = esdm__info_of(list->names[i], &record);
        if (!visit(&info, user))
            break;
    }
    return ESDM_OK;
}

esdm_status
esdm_view_containers(esdm_session *session, const char *place, esdm_container_visitor visit,
                     void *user, esdm_error *err)
{
    esdm__view_path path;
    name_list list = {0};
    ESDM__NEED(err, session);
    ESDM__NEED(err, place);
    ESDM__NEED(err, visit);
    esdm_status status = esdm__view_path_parse(session->site, place, &path, err);
    if (status != ESDM_OK)
        return status;
    status = esdm__view_containers(session->meta, session->store, &path, note_name, &list, err);
    if (status == ESDM_OK && list.nomem)
        status = esdm__error_nomem(err, list.count * sizeof *list.names, "what a view has");
    esdm__view_path_clear(&path);
    if (status == ESDM_OK)
        status = tell_containers(session, &list, visit, user, err);
    for (size_t i = 0; i < list.count; i++)
        free(list.names[i]);
    free(list.names);
    return status;
}
