/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What is there: containers, matches of a query, snapshots. */

#include <string.h>

#include "esdm-serve/esdm-serve.h"

typedef struct list {
    json_t *items;
    const char *after; /* those up to this name were told before */
    uint64_t most;
    bool more;
    json_t *why; /* that nothing was found; NULL: not told */
} list;

static bool
visit_container(const esdm_container_info *info, void *user)
{
    list *l = user;
    if (l->after != NULL && strcmp(info->name, l->after) <= 0)
        return true;
    if (json_array_size(l->items) >= l->most) {
        l->more = true;
        return false;
    }
    json_t *item = json_object();
    g_autofree char *time = tool_time_iso(info->modified_ns);
    tool_json_set(item, "name", tool_json_text(info->name));
    tool_json_set(item, "snapshot", tool_json_u64(info->snapshot));
    tool_json_set(item, "modified", tool_json_text(time));
    tool_json_set(item, "raw_bytes", tool_json_u64(info->raw_bytes));
    tool_json_set(item, "stored_bytes", tool_json_u64(info->stored_bytes));
    tool_json_set(item, "fragments", tool_json_u64(info->fragments));
    tool_json_set(item, "datasets", tool_json_u64(info->datasets));
    tool_json_append(l->items, item);
    return true;
}

static serve_result
finish(serve_request *request, esdm_status status, const esdm_error *err, const char *key, list *l)
{
    if (status != ESDM_OK) {
        json_decref(l->items);
        return serve_failed(request, status, err);
    }
    json_t *root = json_object();
    tool_json_set(root, "site", tool_json_text(esdm_session_site_name(request->state->session)));
    tool_json_set(root, key, l->items);
    tool_json_set(root, "more", json_boolean(l->more));
    if (l->why != NULL)
        tool_json_set(root, "why", l->why);
    return serve_json(request, MHD_HTTP_OK, root);
}

static bool
visit_place(const esdm_view_entry *entry, void *user)
{
    list *l = user;
    if (l->after != NULL && strcmp(entry->name, l->after) <= 0)
        return true;
    if (json_array_size(l->items) >= l->most) {
        l->more = true;
        return false;
    }
    json_t *item = json_object();
    tool_json_set(item, "name", tool_json_text(entry->name));
    tool_json_set(item, "containers", tool_json_u64(entry->containers));
    tool_json_set(item, "folder", json_boolean(!entry->is_last));
    tool_json_append(l->items, item);
    return true;
}

static bool
visit_view(const esdm_view_info *info, void *user)
{
    list *l = user;
    json_t *item = json_object();
    tool_json_set(item, "name", tool_json_text(info->name));
    tool_json_set(item, "template", tool_json_text(info->template_text));
    tool_json_append(l->items, item);
    return true;
}

serve_result
serve_views(serve_request *request)
{
    esdm_error err = {0};
    serve_result result = MHD_NO;
    esdm_session *session = request->state->session;
    list l = {.after = serve_parameter(request, "after")};
    const char *place = request->rest;
    if (!serve_number(request, "limit", SERVE_MOST_NAMES, &l.most, &result))
        return result;
    l.most = MIN(l.most, SERVE_MOST_NAMES);
    l.items = json_array();
    bool all = place[strspn(place, "/")] == '\0';
    esdm_status status = all ? esdm_view_list(session, visit_view, &l, &err)
                             : esdm_view_level(session, place, visit_place, &l, &err);
    if (status == ESDM_OK && !all && json_array_size(l.items) == 0 && l.after == NULL) {
        status = esdm_view_containers(session, place, visit_container, &l, &err);
        return finish(request, status, &err, "containers", &l);
    }
    return finish(request, status, &err, all ? "views" : "places", &l);
}

serve_result
serve_list(serve_request *request)
{
    esdm_error err = {0};
    serve_result result = MHD_NO;
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    list l = {.after = serve_parameter(request, "after")};
    const char *prefix = serve_parameter(request, "prefix");
    if (!serve_number(request, "limit", SERVE_MOST_NAMES, &l.most, &result))
        return result;
    l.most = MIN(l.most, SERVE_MOST_NAMES);
    l.items = json_array();
    esdm_status status = ESDM_OK;
    if (prefix != NULL && prefix[0] != '\0') {
        status = esdm_container_normalise(prefix, normal, &err);
        prefix = normal;
    } else {
        prefix = NULL;
    }
    if (status == ESDM_OK)
        status = esdm_container_list(request->state->session, prefix, visit_container, &l, &err);
    return finish(request, status, &err, "containers", &l);
}

static bool
visit_match(const esdm_match *match, void *user)
{
    list *l = user;
    if (json_array_size(l->items) >= l->most) {
        l->more = true;
        return false;
    }
    json_t *item = json_object();
    tool_json_set(item, "container", tool_json_text(match->container));
    if (match->dataset != NULL)
        tool_json_set(item, "dataset", tool_json_text(match->dataset));
    tool_json_append(l->items, item);
    return true;
}

/* Names that nothing has: a slip of the pen must not look like an answer. */
static bool
visit_why(const char *text, void *user)
{
    tool_json_append(user, tool_json_text(text));
    return true;
}

serve_result
serve_find(serve_request *request)
{
    esdm_error err = {0};
    const char *query = serve_parameter(request, "q");
    if (query == NULL || query[0] == '\0')
        return serve_error(request, MHD_HTTP_BAD_REQUEST, "say what is sought: ?q=NAME = VALUE");
    list l = {.most = SERVE_MOST_NAMES, .items = json_array()};
    esdm_status status = esdm_find(request->state->session, query, visit_match, &l, &err);
    if (status == ESDM_OK && json_array_size(l.items) == 0) {
        esdm_error ignored = {0};
        l.why = json_array();
        (void) !esdm_find_explain(request->state->session, query, visit_why, l.why, &ignored);
    }
    return finish(request, status, &err, "matches", &l);
}

/* ---- facets ------------------------------------------------------------------------------- */

#define MOST_FACETS       32u
#define VALUES_OF_A_FACET 50u

typedef struct facet_list {
    json_t *facets; /* [{"name": …, "values": [{"value": …, "containers": …}], "more": …}] */
    size_t first;   /* place of the first name of this question there */
} facet_list;

static bool
visit_facet(size_t name, const char *value, uint64_t containers, void *user)
{
    facet_list *l = user;
    json_t *facet = json_array_get(l->facets, l->first + name);
    json_t *values = json_object_get(facet, "values");
    if (json_array_size(values) >= VALUES_OF_A_FACET) {
        tool_json_set(facet, "more", json_true());
        return true; /* the next name has its own */
    }
    json_t *item = json_object();
    tool_json_set(item, "value", tool_json_text(value));
    tool_json_set(item, "containers", tool_json_u64(containers));
    tool_json_append(values, item);
    return true;
}

/* Without an expression, all containers that have the attribute are counted. */
static esdm_status
count_facets(esdm_session *session, const char *query, const char *const *names, size_t nnames,
             facet_list *l, esdm_error *err)
{
    if (query != NULL && query[0] != '\0')
        return esdm_find_facets(session, query, names, nnames, visit_facet, l, err);
    esdm_status status = ESDM_OK;
    for (size_t i = 0; status == ESDM_OK && i < nnames; i++) {
        g_autofree char *all = g_strdup_printf("exists :%s", names[i]);
        l->first = i;
        status = esdm_find_facets(session, all, &names[i], 1, visit_facet, l, err);
    }
    return status;
}

serve_result
serve_facets(serve_request *request)
{
    esdm_error err = {0};
    const char *text = serve_parameter(request, "names");
    g_auto(GStrv) names = g_strsplit(text != NULL ? text : "", ",", -1);
    size_t nnames = g_strv_length(names);
    if (nnames == 0 || nnames > MOST_FACETS || g_strv_contains((const char *const *) names, ""))
        return serve_error(request, MHD_HTTP_BAD_REQUEST,
                           "say up to 32 attributes: ?names=source_id,table_id");
    facet_list l = {.facets = json_array()};
    for (size_t i = 0; i < nnames; i++) {
        json_t *facet = json_object();
        tool_json_set(facet, "name", tool_json_text(names[i]));
        tool_json_set(facet, "values", json_array());
        tool_json_set(facet, "more", json_false());
        tool_json_append(l.facets, facet);
    }
    esdm_status status = count_facets(request->state->session, serve_parameter(request, "q"),
                                      (const char *const *) names, nnames, &l, &err);
    if (status != ESDM_OK) {
        json_decref(l.facets);
        return serve_failed(request, status, &err);
    }
    json_t *root = json_object();
    tool_json_set(root, "facets", l.facets);
    return serve_json(request, MHD_HTTP_OK, root);
}

/* ---- snapshots ---------------------------------------------------------------------------- */

static bool
visit_snapshot(const esdm_snapshot_info *info, void *user)
{
    list *l = user;
    json_t *item = json_object();
    g_autofree char *time = tool_time_iso(info->time_ns);
    tool_json_set(item, "snapshot", tool_json_u64(info->snapshot));
    tool_json_set(item, "time", tool_json_text(time));
    tool_json_set(item, "writer", tool_json_text(info->writer));
    tool_json_set(item, "message", tool_json_text(info->message));
    tool_json_append(l->items, item);
    if (json_array_size(l->items) > l->most) { /* the oldest */
        (void) json_array_remove(l->items, 0);
        l->more = true;
    }
    return true;
}

serve_result
serve_snapshots(serve_request *request)
{
    esdm_error err = {0};
    list l = {.most = SERVE_MOST_NAMES, .items = json_array()};
    esdm_status status =
        esdm_container_snapshots(request->state->session, request->rest, visit_snapshot, &l, &err);
    return finish(request, status, &err, "snapshots", &l);
}
