/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What esdm-stat tells, as JSON. */

#include "esdm-stat/esdm-stat.h"

static void
set_time(json_t *object, const char *key, uint64_t time_ns)
{
    g_autofree char *text = tool_time_iso(time_ns);
    tool_json_set(object, key, json_string(text));
}

static json_t *
shape_json(const uint64_t *shape, uint32_t rank)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < rank; i++)
        tool_json_append(list, tool_json_u64(shape[i]));
    return list;
}

static json_t *
attributes_json(const esdm_container *container, esdm_attributes *attributes)
{
    json_t *list = json_array();
    esdm_attribute attribute;
    for (size_t i = 0; esdm_attribute_at(attributes, i, &attribute); i++) {
        json_t *object = json_object();
        tool_json_set(object, "name", tool_json_text(attribute.name));
        tool_json_set(object, "type", tool_json_text(stat_type_name(container, attribute.type)));
        tool_json_set(
            object, "value",
            stat_values_json(container, attribute.type, attribute.count, attribute.values));
        tool_json_append(list, object);
    }
    return list;
}

/* ---- datasets ----------------------------------------------------------------------------- */

static gboolean
add_target(gpointer key, gpointer value, gpointer user)
{
    const stat_target *target = value;
    json_t *object = json_object();
    tool_json_set(object, "target", tool_json_text(key));
    tool_json_set(object, "fragments", tool_json_u64(target->fragments));
    tool_json_set(object, "stored_bytes", tool_json_u64(target->stored_bytes));
    tool_json_set(object, "packs", tool_json_u64(g_hash_table_size(target->packs)));
    tool_json_append(user, object);
    return FALSE;
}

static gboolean
add_codec(gpointer key, gpointer value, gpointer user)
{
    tool_json_set(user, key, tool_json_u64(*(const uint64_t *) value));
    return FALSE;
}

static json_t *
fragments_json(const GPtrArray *list)
{
    json_t *all = json_array();
    for (guint i = 0; i < list->len; i++) {
        const stat_fragment *fragment = g_ptr_array_index(list, i);
        json_t *object = json_object();
        tool_json_set(object, "offset", shape_json(fragment->offset, fragment->rank));
        tool_json_set(object, "size", shape_json(fragment->size, fragment->rank));
        if (fragment->strided)
            tool_json_set(object, "stride", shape_json(fragment->stride, fragment->rank));
        tool_json_set(object, "raw_bytes", tool_json_u64(fragment->raw_bytes));
        tool_json_set(object, "stored_bytes", tool_json_u64(fragment->stored_bytes));
        tool_json_set(object, "target", tool_json_text(fragment->target));
        tool_json_set(object, "pack", tool_json_text(fragment->pack));
        tool_json_set(object, "position", tool_json_u64(fragment->position));
        tool_json_set(object, "codec", tool_json_text(fragment->codec));
        tool_json_append(all, object);
    }
    return all;
}

static esdm_status
set_storage(json_t *object, esdm_dataset *dataset, esdm_error *err)
{
    stat_storage storage;
    esdm_status status = stat_storage_read(dataset, &storage, err);
    if (status == ESDM_OK) {
        json_t *targets = json_array(), *codecs = json_object();
        g_tree_foreach(storage.targets, add_target, targets);
        g_tree_foreach(storage.codecs, add_codec, codecs);
        tool_json_set(object, "raw_bytes", tool_json_u64(storage.raw_bytes));
        tool_json_set(object, "stored_bytes", tool_json_u64(storage.stored_bytes));
        tool_json_set(object, "fragment_count", tool_json_u64(storage.fragments));
        tool_json_set(object, "shared_fragments", tool_json_u64(storage.shared));
        tool_json_set(object, "shared_bytes", tool_json_u64(storage.shared_bytes));
        tool_json_set(object, "targets", targets);
        tool_json_set(object, "codecs", codecs);
        if (stat_wants.fragments)
            tool_json_set(object, "fragments", fragments_json(storage.list));
    }
    stat_storage_clear(&storage);
    return status;
}

static json_t *
dataset_json(esdm_dataset *dataset, esdm_error *err)
{
    uint32_t rank = esdm_dataset_rank(dataset);
    bool is_default = false;
    const void *fill = esdm_dataset_fill(dataset, &is_default);
    json_t *object = json_object(), *names = json_array(), *shape = json_array();
    for (uint32_t i = 0; i < rank; i++) {
        const esdm_dimension *dimension = esdm_dataset_dimension(dataset, i);
        tool_json_append(names, tool_json_text(esdm_dimension_name(dimension)));
        tool_json_append(shape, tool_json_u64(esdm_dimension_length(dimension)));
    }
    tool_json_set(object, "name", tool_json_text(esdm_dataset_name(dataset)));
    const esdm_container *container = esdm_group_container(esdm_dataset_group(dataset));
    tool_json_set(object, "type",
                  tool_json_text(stat_type_name(container, esdm_dataset_type(dataset))));
    tool_json_set(object, "dimensions", names);
    tool_json_set(object, "shape", shape);
    if (esdm_dataset_chunk(dataset) != NULL)
        tool_json_set(object, "chunk", shape_json(esdm_dataset_chunk(dataset), rank));
    if (esdm_dataset_codec(dataset) != NULL)
        tool_json_set(object, "codec", tool_json_text(esdm_dataset_codec(dataset)));
    if (!is_default)
        tool_json_set(object, "fill",
                      stat_values_json(container, esdm_dataset_type(dataset), 1, fill));
    tool_json_set(object, "attributes",
                  attributes_json(container, esdm_dataset_attributes(dataset)));
    if ((stat_wants.statistics || stat_wants.exact) &&
        stat_statistics_json(dataset, object, err) != ESDM_OK) {
        json_decref(object);
        return NULL;
    }
    if (!stat_wants.summary &&
        (set_storage(object, dataset, err) != ESDM_OK ||
         (stat_wants.accuracy && stat_accuracy_json(dataset, object, err) != ESDM_OK))) {
        json_decref(object);
        return NULL;
    }
    return object;
}

/* ---- groups ------------------------------------------------------------------------------- */

static json_t *
dimensions_json(const esdm_group *group)
{
    json_t *list = json_array();
    for (size_t i = 0; i < esdm_group_dimension_count(group); i++) {
        const esdm_dimension *dimension = esdm_group_dimension_at(group, i);
        json_t *object = json_object();
        tool_json_set(object, "name", tool_json_text(esdm_dimension_name(dimension)));
        tool_json_set(object, "length", tool_json_u64(esdm_dimension_length(dimension)));
        tool_json_set(object, "unlimited", json_boolean(esdm_dimension_is_unlimited(dimension)));
        tool_json_append(list, object);
    }
    return list;
}

static json_t *
group_json(esdm_group *group, esdm_error *err)
{
    json_t *object = json_object(), *datasets = json_array(), *groups = json_array();
    tool_json_set(object, "name", tool_json_text(esdm_group_name(group)));
    tool_json_set(object, "attributes",
                  attributes_json(esdm_group_container(group), esdm_group_attributes(group)));
    tool_json_set(object, "types", stat_types_json(group));
    tool_json_set(object, "dimensions", dimensions_json(group));
    tool_json_set(object, "datasets", datasets);
    tool_json_set(object, "groups", groups);
    for (size_t i = 0; i < esdm_group_dataset_count(group); i++) {
        json_t *dataset = dataset_json(esdm_group_dataset_at(group, i), err);
        if (dataset == NULL)
            goto failed;
        tool_json_append(datasets, dataset);
    }
    for (size_t i = 0; i < esdm_group_count(group); i++) {
        json_t *child = group_json(esdm_group_at(group, i), err);
        if (child == NULL)
            goto failed;
        tool_json_append(groups, child);
    }
    return object;
failed:
    json_decref(object);
    return NULL;
}

static json_t *
snapshots_json(const GPtrArray *snapshots)
{
    json_t *list = json_array();
    for (guint i = 0; i < snapshots->len; i++) {
        const stat_snapshot *snapshot = g_ptr_array_index(snapshots, i);
        json_t *object = json_object();
        tool_json_set(object, "snapshot", tool_json_u64(snapshot->snapshot));
        tool_json_set(object, "parent", tool_json_u64(snapshot->parent));
        set_time(object, "time", snapshot->time_ns);
        tool_json_set(object, "writer", tool_json_text(snapshot->writer));
        tool_json_set(object, "message", tool_json_text(snapshot->message));
        tool_json_append(list, object);
    }
    return list;
}

static json_t *
former_json(const GPtrArray *formers)
{
    json_t *list = json_array();
    for (guint i = 0; i < formers->len; i++) {
        const stat_former *former = g_ptr_array_index(formers, i);
        json_t *object = json_object();
        tool_json_set(object, "id", tool_json_text(former->id));
        tool_json_set(object, "was", json_string(former->removed ? "removed" : "replaced"));
        set_time(object, "time", former->time_ns);
        if (former->until_ns == G_MAXUINT64) /* as long as its file is there */
            tool_json_set(object, "kept_until", json_null());
        else
            set_time(object, "kept_until", former->until_ns);
        tool_json_set(object, "stored_bytes", tool_json_u64(former->stored_bytes));
        tool_json_append(list, object);
    }
    return list;
}

json_t *
stat_recipe(const esdm_container *container)
{
    static const char *const kept[] = {"program", "recorded", "digest", "tolerances", "restored"};
    const char *text = esdm_container_hint(container, "recipe");
    json_t *recipe = text != NULL ? tool_json_read(text, -1, 0, NULL) : NULL;
    if (recipe == NULL)
        return NULL;
    json_t *object = json_object();
    for (gsize i = 0; i < G_N_ELEMENTS(kept); i++) {
        json_t *value = json_object_get(recipe, kept[i]);
        if (value != NULL)
            tool_json_set(object, kept[i], json_incref(value));
    }
    tool_json_set(object, "accepted",
                  json_integer((json_int_t) json_array_size(json_object_get(recipe, "accepted"))));
    json_decref(recipe);
    return object;
}

json_t *
stat_json(esdm_container *container, const stat_facts *facts, esdm_error *err)
{
    json_t *object = json_object();
    const esdm_container_info *info = &facts->info;
    tool_json_set(object, "name", tool_json_text(esdm_container_name(container)));
    tool_json_set(object, "snapshot", tool_json_u64(esdm_container_snapshot(container)));
    set_time(object, "created", info->created_ns);
    set_time(object, "modified", info->modified_ns);
    tool_json_set(object, "raw_bytes", tool_json_u64(info->raw_bytes));
    tool_json_set(object, "stored_bytes", tool_json_u64(info->stored_bytes));
    tool_json_set(object, "fragments", tool_json_u64(info->fragments));
    const char *format = esdm_container_hint(container, "netcdf.format");
    if (format != NULL)
        tool_json_set(object, "netcdf_format", tool_json_text(format));
    json_t *writes = json_object();
    tool_json_set(writes, "fragments", tool_json_u64(facts->writes.fragments));
    tool_json_set(writes, "elsewhere", tool_json_u64(facts->writes.elsewhere));
    tool_json_set(writes, "fewer_copies", tool_json_u64(facts->writes.fewer_copies));
    tool_json_set(object, "writes", writes);
    tool_json_set(object, "snapshots", snapshots_json(facts->snapshots));
    tool_json_set(object, "former", former_json(facts->former));
    if (facts->is_former) {
        json_t *lost = json_object();
        tool_json_set(lost, "name", tool_json_text(facts->lost.base));
        tool_json_set(lost, "id", tool_json_text(facts->lost.id));
        set_time(lost, facts->lost.removed ? "removed" : "replaced", facts->lost.time_ns);
        tool_json_set(object, "lost", lost);
    }
    json_t *shares = json_array();
    for (guint i = 0; i < facts->shares->len; i++)
        tool_json_append(shares, tool_json_text(g_ptr_array_index(facts->shares, i)));
    tool_json_set(object, "shares_with", shares);
    json_t *recipe = stat_recipe(container);
    if (recipe != NULL)
        tool_json_set(object, "recipe", recipe);
    if (stat_shapes_json(container, object, err) != ESDM_OK) {
        json_decref(object);
        return NULL;
    }
    json_t *root = group_json(esdm_container_root(container), err);
    if (root == NULL) {
        json_decref(object);
        return NULL;
    }
    tool_json_set(object, "root", root);
    return object;
}
