/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What a container consists of, and where its fragments lie. */

#include <stdlib.h>
#include <string.h>

#include "esdm-serve/esdm-serve.h"
#include "esdm/accuracy.h"
#include "esdm/usertypes.h"

esdm_container *
serve_open(serve_request *request, serve_result *ret)
{
    uint64_t snapshot = 0;
    esdm_container *container = NULL;
    esdm_error err = {0};
    if (!serve_number(request, "snapshot", ESDM_SNAPSHOT_LATEST, &snapshot, ret))
        return NULL;
    esdm_status status = esdm_container_open(request->state->session, request->rest, ESDM_OPEN_READ,
                                             snapshot, &container, &err);
    if (status == ESDM_OK)
        return container;
    *ret = serve_failed(request, status, &err);
    return NULL;
}

esdm_dataset *
serve_dataset(esdm_container *container, const char *path)
{
    esdm_group *group = esdm_container_root(container);
    g_auto(GStrv) parts = g_strsplit(path[0] == '/' ? path + 1 : path, "/", -1);
    guint count = g_strv_length(parts);
    for (guint i = 0; i + 1 < count && group != NULL; i++)
        group = esdm_group_find(group, parts[i]);
    return group != NULL && count > 0 ? esdm_group_dataset_find(group, parts[count - 1]) : NULL;
}

static const char *
type_name(const esdm_container *container, esdm_type type)
{
    esdm_type_info info;
    if (type < ESDM_TYPE_FIRST_USER)
        return esdm_type_name(type);
    return esdm_type_inquire(container, type, &info) ? info.name : "?";
}

static json_t *
attributes_json(const esdm_container *container, esdm_attributes *all)
{
    json_t *items = json_array();
    esdm_attribute a;
    for (size_t i = 0; esdm_attribute_at(all, i, &a); i++) {
        json_t *item = json_object();
        uint64_t told =
            a.type == ESDM_TYPE_CHAR ? MIN(a.count, 65536) : MIN(a.count, SERVE_MOST_VALUES);
        tool_json_set(item, "name", tool_json_text(a.name));
        tool_json_set(item, "type", tool_json_text(type_name(container, a.type)));
        tool_json_set(item, "count", tool_json_u64(a.count));
        if (a.type < ESDM_TYPE_FIRST_USER)
            tool_json_set(item, "values", tool_json_values(a.type, told, a.values));
        tool_json_append(items, item);
    }
    return items;
}

/* "/group/name" */
static char *
path_of(const esdm_group *group, const char *name)
{
    g_autoptr(GString) path = g_string_new(name);
    for (; group != NULL; group = esdm_group_parent(group)) {
        g_string_prepend(path, "/");
        if (esdm_group_parent(group) != NULL)
            g_string_prepend(path, esdm_group_name(group));
    }
    return g_strdup(path->str);
}

static json_t *
dimension_json(const esdm_dimension *dimension)
{
    json_t *item = json_object();
    tool_json_set(item, "name", tool_json_text(esdm_dimension_name(dimension)));
    tool_json_set(item, "length", tool_json_u64(esdm_dimension_length(dimension)));
    tool_json_set(item, "unlimited", json_boolean(esdm_dimension_is_unlimited(dimension)));
    return item;
}

static json_t *
dataset_json(const esdm_container *container, esdm_dataset *dataset)
{
    json_t *item = json_object(), *dimensions = json_array();
    g_autofree char *path = path_of(esdm_dataset_group(dataset), esdm_dataset_name(dataset));
    for (uint32_t i = 0; i < esdm_dataset_rank(dataset); i++)
        tool_json_append(dimensions, dimension_json(esdm_dataset_dimension(dataset, i)));
    tool_json_set(item, "path", tool_json_text(path));
    tool_json_set(item, "name", tool_json_text(esdm_dataset_name(dataset)));
    tool_json_set(item, "type", tool_json_text(type_name(container, esdm_dataset_type(dataset))));
    tool_json_set(item, "is_number",
                  json_boolean(esdm_dataset_type(dataset) < ESDM_TYPE_STRING &&
                               esdm_dataset_type(dataset) != ESDM_TYPE_CHAR));
    tool_json_set(item, "dimensions", dimensions);
    tool_json_set(item, "attributes", attributes_json(container, esdm_dataset_attributes(dataset)));
    return item;
}

static json_t *
group_json(const esdm_container *container, esdm_group *group)
{
    json_t *item = json_object(), *dimensions = json_array(), *datasets = json_array();
    json_t *groups = json_array();
    for (size_t i = 0; i < esdm_group_dimension_count(group); i++)
        tool_json_append(dimensions, dimension_json(esdm_group_dimension_at(group, i)));
    for (size_t i = 0; i < esdm_group_dataset_count(group); i++)
        tool_json_append(datasets, dataset_json(container, esdm_group_dataset_at(group, i)));
    for (size_t i = 0; i < esdm_group_count(group); i++)
        tool_json_append(groups, group_json(container, esdm_group_at(group, i)));
    tool_json_set(item, "name", tool_json_text(esdm_group_name(group)));
    tool_json_set(item, "dimensions", dimensions);
    tool_json_set(item, "datasets", datasets);
    tool_json_set(item, "attributes", attributes_json(container, esdm_group_attributes(group)));
    tool_json_set(item, "groups", groups);
    return item;
}

serve_result
serve_container(serve_request *request)
{
    serve_result result = MHD_NO;
    esdm_container *container = serve_open(request, &result);
    if (container == NULL)
        return result;
    json_t *root = group_json(container, esdm_container_root(container));
    tool_json_set(root, "name", tool_json_text(esdm_container_name(container)));
    tool_json_set(root, "snapshot", tool_json_u64(esdm_container_snapshot(container)));
    tool_json_set(root, "uuid", tool_json_text(esdm_container_uuid(container)));
    esdm_container_discard(container);
    return serve_json(request, MHD_HTTP_OK, root);
}

/* ---- fragments ---------------------------------------------------------------------------- */

/* What fragments of one target, or of one codec, take. */
typedef struct share {
    uint64_t fragments, stored_bytes, raw_bytes;
} share;

typedef struct fragments {
    json_t *items;
    share all;
    GHashTable *targets, *codecs; /* name → share, both owned */
} fragments;

static void
add_share(share *s, const esdm_fragment_info *info)
{
    s->fragments++;
    s->stored_bytes += info->stored_bytes;
    s->raw_bytes += info->raw_bytes;
}

static void
add_named(GHashTable *shares, const char *name, const esdm_fragment_info *info)
{
    share *s = g_hash_table_lookup(shares, name);
    if (s == NULL) {
        s = g_new0(share, 1);
        (void) g_hash_table_insert(shares, g_strdup(name), s);
    }
    add_share(s, info);
}

static json_t *
share_json(json_t *item, const share *s)
{
    tool_json_set(item, "fragments", tool_json_u64(s->fragments));
    tool_json_set(item, "raw_bytes", tool_json_u64(s->raw_bytes));
    tool_json_set(item, "stored_bytes", tool_json_u64(s->stored_bytes));
    return item;
}

/* {NAME: {"fragments": …}} by order of names. */
static json_t *
shares_json(GHashTable *shares)
{
    json_t *object = json_object();
    g_autoptr(GList) names = g_list_sort(g_hash_table_get_keys(shares), (GCompareFunc) strcmp);
    for (GList *n = names; n != NULL; n = n->next)
        tool_json_set(object, n->data,
                      share_json(json_object(), g_hash_table_lookup(shares, n->data)));
    return object;
}

static json_t *
numbers_json(uint32_t rank, const uint64_t *numbers)
{
    json_t *items = json_array();
    for (uint32_t i = 0; i < rank; i++)
        tool_json_append(items, tool_json_u64(numbers[i]));
    return items;
}

static bool
visit_fragment(const esdm_fragment_info *info, void *user)
{
    fragments *f = user;
    add_share(&f->all, info);
    add_named(f->targets, info->target, info);
    add_named(f->codecs, info->codec, info);
    if (json_array_size(f->items) >= SERVE_MOST_NAMES)
        return true;
    json_t *item = json_object();
    tool_json_set(item, "offset", numbers_json(info->rank, info->offset));
    tool_json_set(item, "size", numbers_json(info->rank, info->size));
    tool_json_set(item, "raw_bytes", tool_json_u64(info->raw_bytes));
    tool_json_set(item, "stored_bytes", tool_json_u64(info->stored_bytes));
    tool_json_set(item, "target", tool_json_text(info->target));
    tool_json_set(item, "pack", tool_json_text(info->pack));
    tool_json_set(item, "codec", tool_json_text(info->codec));
    tool_json_append(f->items, item);
    return true;
}

/* What is stated of the numbers, as esdm-stat tells it. */
static void
add_accuracy(json_t *root, const esdm_dataset *dataset)
{
    esdm_error err = {0};
    esdm_accuracy accuracy;
    char *text = NULL;
    if (!esdm_dataset_accuracy(dataset, &accuracy))
        return;
    if (esdm_accuracy_print(&accuracy, &text, &err) == ESDM_OK)
        tool_json_set(root, "accuracy", tool_json_text(text));
    free(text);
}

serve_result
serve_fragments(serve_request *request)
{
    serve_result result = MHD_NO;
    esdm_error err = {0};
    const char *variable = serve_parameter(request, "variable");
    esdm_container *container = serve_open(request, &result);
    if (container == NULL)
        return result;
    esdm_dataset *dataset = variable != NULL ? serve_dataset(container, variable) : NULL;
    if (dataset == NULL) {
        esdm_container_discard(container);
        return serve_error(request, MHD_HTTP_NOT_FOUND, "there is no such variable");
    }
    fragments f = {.items = json_array(),
                   .targets = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
                   .codecs = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free)};
    esdm_status status = esdm_dataset_fragments(dataset, visit_fragment, &f, &err);
    json_t *root = share_json(json_object(), &f.all);
    tool_json_set(root, "count", tool_json_u64(f.all.fragments));
    tool_json_set(root, "targets", shares_json(f.targets));
    tool_json_set(root, "codecs", shares_json(f.codecs));
    tool_json_set(root, "more", json_boolean(f.all.fragments > json_array_size(f.items)));
    tool_json_set(root, "fragments", f.items);
    add_accuracy(root, dataset);
    esdm_container_discard(container);
    g_hash_table_destroy(f.targets);
    g_hash_table_destroy(f.codecs);
    if (status == ESDM_OK)
        return serve_json(request, MHD_HTTP_OK, root);
    json_decref(root);
    return serve_failed(request, status, &err);
}
