/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Containers as source and target of a copy, and the calls that serve both kinds of ends. */

#include "esdm-cp/esdm-cp.h"

#include <netcdf.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading the structure ---------------------------------------------------------------- */

/* Containers of version 0.1 have other hints for the three filters that they know. */
static char *
filters_of(const esdm_dataset *dataset)
{
    const char *filters = esdm_dataset_hint(dataset, CP_HINT_FILTERS);
    const char *deflate = esdm_dataset_hint(dataset, CP_HINT_DEFLATE);
    if (filters != NULL)
        return g_strdup(filters);
    int shuffle = 0, level = 0;
    g_autoptr(GString) text = g_string_new(NULL);
    if (deflate != NULL && sscanf(deflate, "%d %d", &shuffle, &level) != 2)
        shuffle = level = 0;
    if (esdm_dataset_hint(dataset, CP_HINT_FLETCHER32) != NULL)
        g_string_append(text, "3");
    if (shuffle != 0)
        g_string_append(text, text->len > 0 ? ";2" : "2");
    if (level > 0)
        g_string_append_printf(text, "%s1,%d", text->len > 0 ? ";" : "", level);
    return text->len > 0 ? g_strdup(text->str) : NULL;
}

/* Numbers of user-defined types are their places in the container's list, and in the model's. */
static const cp_type *
type_of(const cp_model *model, esdm_type number)
{
    if (number < ESDM_TYPE_FIRST_USER)
        return cp_type_atomic(number);
    return g_ptr_array_index(model->types, (guint) (number - ESDM_TYPE_FIRST_USER));
}

static void
load_type(cp_model *model, const esdm_container *from, esdm_type number, GHashTable *groups)
{
    esdm_type_info info;
    esdm_compound_member field;
    esdm_enum_member value;
    (void) esdm_type_inquire(from, number, &info);
    cp_group *group = g_hash_table_lookup(groups, info.group);
    cp_type *type = cp_type_add(model, group, info.name, info.kind, info.bytes);
    if (info.base != ESDM_TYPE_NONE)
        type->base = type_of(model, info.base);
    for (uint32_t i = 0; esdm_compound_member_at(from, number, i, &field); i++)
        cp_member_shape(cp_member_add(type, field.name, type_of(model, field.type), field.offset),
                        field.rank, field.shape);
    for (uint32_t i = 0; esdm_enum_member_at(from, number, i, &value); i++)
        memcpy(&cp_member_add(type, value.name, NULL, 0)->value, value.value, info.bytes);
}

static void
load_attributes(const cp_model *model, esdm_attributes *list, GPtrArray *attributes)
{
    esdm_attribute attribute;
    for (size_t i = 0; esdm_attribute_at(list, i, &attribute); i++) {
        const cp_type *type = type_of(model, attribute.type);
        cp_attribute_add(attributes, attribute.name, type, attribute.count,
                         cp_values_copy(type, attribute.count, attribute.values));
    }
}

static void
load_dataset(cp_model *model, cp_group *group, esdm_dataset *from, GHashTable *dimensions)
{
    cp_dataset *dataset = cp_dataset_add(model, group, esdm_dataset_name(from),
                                         type_of(model, esdm_dataset_type(from)));
    dataset->from.dataset = from;
    dataset->rank = esdm_dataset_rank(from);
    for (uint32_t i = 0; i < dataset->rank; i++)
        dataset->dimensions[i] = g_hash_table_lookup(dimensions, esdm_dataset_dimension(from, i));
    load_attributes(model, esdm_dataset_attributes(from), dataset->attributes);
    bool is_default = true;
    const void *fill = esdm_dataset_fill(from, &is_default);
    if (!is_default)
        dataset->fill = cp_values_copy(dataset->type, 1, fill);
    const uint64_t *chunk = esdm_dataset_chunk(from);
    if (chunk != NULL && dataset->rank > 0)
        dataset->chunk = g_memdup2(chunk, dataset->rank * sizeof *chunk);
    dataset->storage = g_strdup(esdm_dataset_hint(from, CP_HINT_STORAGE));
    dataset->endian = g_strdup(esdm_dataset_hint(from, CP_HINT_ENDIAN));
    dataset->filters = filters_of(from);
    dataset->nofill = esdm_dataset_hint(from, CP_HINT_NOFILL) != NULL;
    dataset->codec = g_strdup(esdm_dataset_codec(from));
}

/* Groups and dimensions, which types and datasets of other groups may need. */
static void
load_group(cp_group *group, esdm_group *from, GHashTable *groups, GHashTable *dimensions)
{
    g_hash_table_insert(groups, from, group);
    for (size_t i = 0; i < esdm_group_dimension_count(from); i++) {
        esdm_dimension *dimension = esdm_group_dimension_at(from, i);
        g_hash_table_insert(dimensions, dimension,
                            cp_dimension_add(group, esdm_dimension_name(dimension),
                                             esdm_dimension_length(dimension),
                                             esdm_dimension_is_unlimited(dimension)));
    }
    for (size_t i = 0; i < esdm_group_count(from); i++) {
        esdm_group *child = esdm_group_at(from, i);
        load_group(cp_group_new(group, esdm_group_name(child)), child, groups, dimensions);
    }
}

static void
load_contents(cp_model *model, cp_group *group, esdm_group *from, GHashTable *dimensions)
{
    load_attributes(model, esdm_group_attributes(from), group->attributes);
    for (size_t i = 0; i < esdm_group_dataset_count(from); i++)
        load_dataset(model, group, esdm_group_dataset_at(from, i), dimensions);
    for (size_t i = 0; i < esdm_group_count(from); i++)
        load_contents(model, g_ptr_array_index(group->groups, i), esdm_group_at(from, i),
                      dimensions);
}

static bool
count_one(const esdm_container_info *info, void *user)
{
    (void) info;
    (*(guint *) user)++;
    return true;
}

/* Adds what was perhaps meant to the message. */
static void
add_suggestion(const cp_end *end, esdm_error *err)
{
    char hint[ESDM_CONTAINER_NAME_MAX + 128];
    guint below = 0;
    if (esdm_container_list(end->session, end->name, count_one, &below, NULL) == ESDM_OK &&
        below > 0)
        (void) g_snprintf(hint, sizeof hint, "%u below it: --recursive copies these", below);
    else
        esdm_container_suggest(end->session, end->name, hint, sizeof hint);
    if (hint[0] == '\0' || err == NULL)
        return;
    g_autofree char *message = g_strdup_printf("%s; %s", err->message, hint);
    (void) g_strlcpy(err->message, message, sizeof err->message);
}

esdm_status
cp_container_open(cp_end *end, cp_model **ret_model, esdm_error *err)
{
    esdm_status status = esdm_container_open(end->session, end->name, ESDM_OPEN_READ, end->snapshot,
                                             &end->container, err);
    if (status == ESDM_ENOENT)
        add_suggestion(end, err);
    if (status != ESDM_OK)
        return status;
    cp_model *model = cp_model_new();
    g_autoptr(GHashTable) dimensions = g_hash_table_new(NULL, NULL);
    g_autoptr(GHashTable) groups = g_hash_table_new(NULL, NULL);
    esdm_group *root = esdm_container_root(end->container);
    model->format = g_strdup(esdm_container_hint(end->container, CP_HINT_FORMAT));
    load_group(model->root, root, groups, dimensions);
    for (size_t i = 0; i < esdm_container_type_count(end->container); i++)
        load_type(model, end->container, ESDM_TYPE_FIRST_USER + (esdm_type) i, groups);
    load_contents(model, model->root, root, dimensions);
    cp_model_finish(model);
    *ret_model = model;
    return ESDM_OK;
}

/* ---- creating the structure --------------------------------------------------------------- */

static esdm_status
put_attributes(esdm_attributes *list, const GPtrArray *attributes, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (guint i = 0; i < attributes->len && status == ESDM_OK; i++) {
        const cp_attribute *attribute = g_ptr_array_index(attributes, i);
        status = esdm_attribute_set(list, attribute->name, attribute->type->to_esdm,
                                    attribute->count, attribute->values, err);
    }
    return status;
}

static esdm_status
put_hint(esdm_dataset *dataset, const char *key, const char *value, esdm_error *err)
{
    return value != NULL ? esdm_dataset_set_hint(dataset, key, value, err) : ESDM_OK;
}

/* Whether the filters compress; then which codec serves is for this site to say. */
static bool
is_compressed(const char *filters)
{
    bool compressed = false;
    g_auto(GStrv) list = g_strsplit(filters != NULL ? filters : "", ";", -1);
    for (char **filter = list; *filter != NULL; filter++) {
        guint64 id = g_ascii_strtoull(*filter, NULL, 10);
        bool neither = id == 2 || id == 3; /* shuffle, fletcher32 */
        compressed |= **filter != '\0' && !neither && !g_str_equal(*filter, "1,0");
    }
    return compressed;
}

static esdm_status
put_codec(const cp_dataset *dataset, esdm_error *err)
{
    if (dataset->codec != NULL)
        return esdm_dataset_set_codec(dataset->to.dataset, dataset->codec, err);
    return is_compressed(dataset->filters)
               ? esdm_dataset_request_compression(dataset->to.dataset, err)
               : ESDM_OK;
}

static esdm_status
put_storage(const cp_dataset *dataset, esdm_error *err)
{
    esdm_dataset *to = dataset->to.dataset;
    esdm_status status = ESDM_OK;
    if (dataset->fill != NULL)
        status = esdm_dataset_set_fill(to, dataset->fill, err);
    if (status == ESDM_OK && dataset->chunk != NULL)
        status = esdm_dataset_set_chunk(to, dataset->chunk, err);
    if (status != ESDM_OK ||
        (status = put_hint(to, CP_HINT_STORAGE, dataset->storage, err)) != ESDM_OK ||
        (status = put_hint(to, CP_HINT_ENDIAN, dataset->endian, err)) != ESDM_OK ||
        (status = put_hint(to, CP_HINT_FILTERS, dataset->filters, err)) != ESDM_OK ||
        (status = put_hint(to, CP_HINT_NOFILL, dataset->nofill ? "1" : NULL, err)) != ESDM_OK)
        return status;
    return put_codec(dataset, err);
}

static esdm_status
put_dataset(esdm_group *to, cp_dataset *dataset, esdm_error *err)
{
    esdm_dimension *dimensions[ESDM_MAX_RANK];
    for (uint32_t i = 0; i < dataset->rank; i++)
        dimensions[i] = dataset->dimensions[i]->dimension;
    esdm_status status = esdm_dataset_create(to, dataset->name, dataset->type->to_esdm,
                                             dataset->rank, dimensions, &dataset->to.dataset, err);
    if (status == ESDM_OK)
        status = put_storage(dataset, err);
    if (status == ESDM_OK)
        status =
            put_attributes(esdm_dataset_attributes(dataset->to.dataset), dataset->attributes, err);
    return status;
}

static esdm_status
put_dimension(esdm_group *to, cp_dimension *dimension, esdm_error *err)
{
    esdm_status status = esdm_dimension_create(
        to, dimension->name, dimension->unlimited ? ESDM_UNLIMITED : dimension->length,
        &dimension->dimension, err);
    if (status == ESDM_OK && dimension->unlimited && dimension->length > 0)
        status = esdm_dimension_extend(dimension->dimension, dimension->length, err);
    return status;
}

static esdm_status
put_members(esdm_container *container, const cp_type *type, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (guint i = 0; i < type->members->len && status == ESDM_OK; i++) {
        const cp_member *m = g_ptr_array_index(type->members, i);
        if (type->kind == ESDM_CLASS_ENUM)
            status = esdm_enum_add(container, type->to_esdm, m->name, &m->value, err);
        else
            status = esdm_compound_add(container, type->to_esdm, m->name, m->offset,
                                       m->type->to_esdm, m->rank, m->shape, err);
    }
    return status;
}

static esdm_status
put_type(esdm_container *container, cp_type *type, esdm_error *err)
{
    esdm_group *to = type->group->to_esdm;
    esdm_status status = ESDM_OK;
    switch (type->kind) {
    case ESDM_CLASS_COMPOUND:
        status = esdm_compound_create(to, type->name, type->bytes, &type->to_esdm, err);
        break;
    case ESDM_CLASS_ENUM:
        status = esdm_enum_create(to, type->name, type->base->to_esdm, &type->to_esdm, err);
        break;
    case ESDM_CLASS_OPAQUE:
        status = esdm_opaque_create(to, type->name, type->bytes, &type->to_esdm, err);
        break;
    default:
        status = esdm_vlen_create(to, type->name, type->base->to_esdm, &type->to_esdm, err);
        break;
    }
    return status == ESDM_OK ? put_members(container, type, err) : status;
}

/* Groups and dimensions, which types and datasets of other groups may need. */
static esdm_status
put_group(const cp_group *group, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (guint i = 0; i < group->dimensions->len && status == ESDM_OK; i++)
        status = put_dimension(group->to_esdm, g_ptr_array_index(group->dimensions, i), err);
    for (guint i = 0; i < group->groups->len && status == ESDM_OK; i++) {
        cp_group *child = g_ptr_array_index(group->groups, i);
        status = esdm_group_create(group->to_esdm, child->name, &child->to_esdm, err);
        if (status == ESDM_OK)
            status = put_group(child, err);
    }
    return status;
}

static esdm_status
put_contents(const cp_group *group, esdm_error *err)
{
    esdm_status status =
        put_attributes(esdm_group_attributes(group->to_esdm), group->attributes, err);
    for (guint i = 0; i < group->datasets->len && status == ESDM_OK; i++)
        status = put_dataset(group->to_esdm, g_ptr_array_index(group->datasets, i), err);
    for (guint i = 0; i < group->groups->len && status == ESDM_OK; i++)
        status = put_contents(g_ptr_array_index(group->groups, i), err);
    return status;
}

static esdm_status
put_all(esdm_container *container, cp_model *model, esdm_error *err)
{
    model->root->to_esdm = esdm_container_root(container);
    esdm_status status = put_group(model->root, err);
    for (guint i = 0; i < model->types->len && status == ESDM_OK; i++)
        status = put_type(container, g_ptr_array_index(model->types, i), err);
    return status == ESDM_OK ? put_contents(model->root, err) : status;
}

esdm_status
cp_container_create(cp_end *end, cp_model *model, esdm_error *err)
{
    const char *format = cp_wants.format != NULL ? cp_wants.format : model->format;
    if (model->types->len > 0 && format != NULL && !g_str_equal(format, "netcdf4"))
        return tool_error_set(err, ESDM_EINVAL, "%s: format %s has no user-defined types",
                              end->name, format);
    esdm_status status = esdm_container_create(
        end->session, end->name, cp_wants.force ? ESDM_CREATE_REPLACE : ESDM_CREATE_NEW,
        &end->container, err);
    if (status == ESDM_OK && format != NULL)
        status = esdm_container_set_hint(end->container, CP_HINT_FORMAT, format, err);
    return status == ESDM_OK ? put_all(end->container, model, err) : status;
}

/* ---- data --------------------------------------------------------------------------------- */

esdm_status
cp_read(const cp_end *end, const cp_dataset *dataset, const cp_slab *slab, void *buffer,
        esdm_error *err)
{
    if (end->ops != NULL)
        return end->ops->read(end, dataset, slab, buffer, err);
    if (!end->is_container)
        return cp_netcdf_read(end, dataset, slab, buffer, err);
    esdm_dataspace space;
    esdm_status status = esdm_dataspace_init(&space, slab->rank, slab->offset, slab->size, err);
    if (status == ESDM_OK)
        status = esdm_read(dataset->from.dataset, &space, esdm_dataset_type(dataset->from.dataset),
                           buffer, NULL, err);
    return status;
}

esdm_status
cp_write(const cp_end *end, const cp_dataset *dataset, const cp_slab *slab, const void *buffer,
         esdm_error *err)
{
    if (end->ops != NULL)
        return end->ops->write(end, dataset, slab, buffer, err);
    if (!end->is_container)
        return cp_netcdf_write(end, dataset, slab, buffer, err);
    esdm_dataspace space;
    esdm_status status = esdm_dataspace_init(&space, slab->rank, slab->offset, slab->size, err);
    if (status == ESDM_OK)
        status = esdm_write(dataset->to.dataset, &space, dataset->type->to_esdm, buffer, NULL, err);
    return status;
}

/* ---- closing ------------------------------------------------------------------------------ */

esdm_status
cp_complete(cp_end *end, const char *message, esdm_error *err)
{
    if (end->ops != NULL) {
        esdm_status status = end->ops->complete(end, err);
        if (status == ESDM_OK)
            cp_close(end);
        return status;
    }
    if (!end->is_container) {
        int rc = nc_close(end->ncid);
        if (rc != NC_NOERR)
            return cp_netcdf_error(err, rc, end->name, "cannot close");
        end->ncid = -1;
        return ESDM_OK;
    }
    esdm_status status = esdm_container_commit(end->container, message, err);
    if (status == ESDM_OK) {
        if (end->committed != NULL)
            end->committed(end);
        esdm_container_write_counts(end->container, &end->writes);
        status = esdm_container_close(end->container, err);
        end->container = NULL;
    }
    return status;
}

void
cp_close(cp_end *end)
{
    cp_crash_at(end->name);
    if (end->ncid >= 0 && nc_close(end->ncid) != NC_NOERR)
        (void) nc_abort(end->ncid);
    cp_crash_at(NULL);
    end->ncid = -1;
    if (end->ops != NULL)
        end->ops->close(end->state);
    end->ops = NULL;
    esdm_container_discard(end->container);
    end->container = NULL;
}
