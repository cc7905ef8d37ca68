/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Snapshots whose structure is kept a while, so that each request need not read it anew. */

#include <string.h>

#include "esdm-serve/esdm-serve.h"

typedef struct wanted {
    const char *name;
    uint64_t snapshot;
} wanted;

static void
add_nodes(GHashTable *nodes, cp_group *group)
{
    serve_node *node = g_new0(serve_node, 1);
    node->group = group;
    g_hash_table_insert(nodes, g_strdup(group->path[0] == '/' ? group->path + 1 : ""), node);
    for (guint i = 0; i < group->datasets->len; i++) {
        node = g_new0(serve_node, 1);
        node->dataset = g_ptr_array_index(group->datasets, i);
        g_hash_table_insert(nodes, g_strdup(node->dataset->path + 1), node);
    }
    for (guint i = 0; i < group->groups->len; i++)
        add_nodes(nodes, g_ptr_array_index(group->groups, i));
}

static void
close_model(void *thing)
{
    serve_model *m = thing;
    if (m->nodes != NULL)
        g_hash_table_unref(m->nodes);
    cp_model_free(m->model);
    cp_close(&m->end);
    g_free(m->end.name);
    g_free(m->consolidated);
    g_free(m);
}

static esdm_status
open_model(void *session, const void *what, void **ret_model, esdm_error *err)
{
    const wanted *w = what;
    serve_model *m = g_new0(serve_model, 1);
    m->end = (cp_end){.is_container = true,
                      .name = g_strdup(w->name),
                      .session = session,
                      .snapshot = w->snapshot,
                      .ncid = -1};
    esdm_status status = cp_container_open(&m->end, &m->model, err);
    if (status != ESDM_OK) {
        close_model(m);
        return status;
    }
    m->nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    add_nodes(m->nodes, m->model->root);
    m->consolidated = serve_zarr_consolidated(m);
    *ret_model = m;
    return ESDM_OK;
}

tool_pool *
serve_models_new(esdm_session *session, unsigned most_idle)
{
    return tool_pool_new(open_model, close_model, session, most_idle);
}

/* "NAME@7": the same bytes for ever. What a query joins has no such name. */
static char *
pinned_name(const serve_model *m)
{
    uint64_t snapshot = esdm_container_snapshot(m->end.container);
    const char *name = esdm_container_name(m->end.container);
    if (snapshot == 0 || name[0] == '/') /* a former container has a name of ESDM's own */
        return NULL;
    /* With what its name asks for beside that, as an accuracy. */
    const char *asked = m->end.name[0] != '?' ? strchr(m->end.name, '?') : NULL;
    g_autofree char *told = g_strdup_printf("%s@%" G_GUINT64_FORMAT "%s", name, (guint64) snapshot,
                                            asked != NULL ? asked : "");
    return g_uri_escape_string(told, "/@", false);
}

uint64_t
serve_now_if_saved(const esdm_container *opened, const esdm_container_info *info)
{
    bool is_saved = info->snapshot != 0 && esdm_container_snapshot(opened) == 0;
    return is_saved ? (uint64_t) (g_get_real_time() / G_USEC_PER_SEC) : 0;
}

static esdm_status
get_model(serve_state *state, const char *name, const esdm_container_info *info, uint64_t now,
          tool_held **ret_held, esdm_error *err)
{
    const wanted w = {.name = name, .snapshot = info->snapshot};
    g_autofree char *key = g_strdup_printf(
        "%s\n%" G_GUINT64_FORMAT "\n%" G_GUINT64_FORMAT "\n%" G_GUINT64_FORMAT, name,
        (guint64) (info->snapshot != 0 ? info->created_ns : info->modified_ns),
        (guint64) info->snapshot, (guint64) now);
    return tool_pool_get(state->models, key, &w, ret_held, err);
}

bool
serve_place_open(serve_request *request, const char *name, serve_place *ret, serve_result *answer)
{
    esdm_error err = {0};
    esdm_container_info info = {.snapshot = 0};
    esdm_status status = esdm_container_stat(request->state->session, name, &info, &err);
    if (status != ESDM_OK)
        return *answer = serve_failed(request, status, &err), false;
    *ret = (serve_place){.held = NULL};
    serve_state *state = request->state;
    status = get_model(state, name, &info, 0, &ret->held, &err);
    uint64_t now = 0;
    if (status == ESDM_OK) {
        const serve_model *m = tool_held_thing(ret->held);
        now = serve_now_if_saved(m->end.container, &info);
    }
    if (now != 0) {
        tool_pool_put(state->models, ret->held);
        ret->held = NULL;
        status = get_model(state, name, &info, now, &ret->held, &err);
    }
    if (status != ESDM_OK)
        return *answer = serve_failed(request, status, &err), false;
    ret->model = tool_held_thing(ret->held);
    ret->pinned = pinned_name(ret->model);
    ret->tag =
        g_strdup_printf("\"%s-%" G_GUINT64_FORMAT "-%" G_GUINT64_FORMAT "\"",
                        esdm_container_uuid(ret->model->end.container), (guint64) info.snapshot,
                        (guint64) (now != 0 ? now : info.modified_ns));
    return true;
}

void
serve_place_clear(serve_state *state, serve_place *place)
{
    if (place->held != NULL)
        tool_pool_put(state->models, place->held);
    g_free(place->tag);
    g_free(place->pinned);
    *place = (serve_place){.held = NULL};
}

const serve_node *
serve_node_find(const serve_model *model, const char *path)
{
    return g_hash_table_lookup(model->nodes, path);
}
