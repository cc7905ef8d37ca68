/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Zarr stores as the source of a copy: their structure, and containers that refer to them. */

#include "esdm-cp/zarr.h"

#include <stdlib.h>
#include <string.h>

static void
free_array(gpointer data)
{
    cp_zarr_array *a = data;
    zarr_array_clear(&a->array);
    if (a->chunks != NULL)
        g_array_unref(a->chunks);
    g_free(a);
}

static void
free_zarr(void *state)
{
    cp_zarr *zarr = state;
    g_ptr_array_unref(zarr->arrays);
    g_string_chunk_free(zarr->locations);
    zarr_store_free(zarr->store);
    g_free(zarr);
}

/* ---- dimensions ----------------------------------------------------------------------------- */

/* NCZarr has the paths of dimensions. */
static char *
nczarr_dimension(const zarr_node *node, uint32_t axis)
{
    static const char *const keys[] = {"_nczarr_array", "_NCZARR_ARRAY"};
    static const char *const lists[] = {"dimension_references", "dimrefs"};
    for (size_t k = 0; k < G_N_ELEMENTS(keys); k++) {
        const json_t *object = json_object_get(node->attributes, keys[k]);
        if (object == NULL)
            object = json_object_get(node->metadata, keys[k]);
        for (size_t i = 0; i < G_N_ELEMENTS(lists); i++) {
            const char *path =
                zarr_json_text(json_array_get(json_object_get(object, lists[i]), axis));
            if (path != NULL)
                return g_path_get_basename(path);
        }
    }
    return NULL;
}

static char *
dimension_name(const cp_zarr_array *a, uint32_t axis)
{
    const json_t *names = json_object_get(a->node->attributes, "_ARRAY_DIMENSIONS");
    const char *name = zarr_json_text(json_array_get(names, axis));
    if (axis >= a->array.rank)
        return g_strdup_printf("string%u", a->array.length);
    if (a->array.dimensions[axis] != NULL)
        return g_strdup(a->array.dimensions[axis]);
    if (name != NULL && json_array_size(names) == a->array.rank)
        return g_strdup(name);
    char *other = nczarr_dimension(a->node, axis);
    return other != NULL
               ? other
               : g_strdup_printf("dim_%" G_GUINT64_FORMAT, (guint64) a->array.shape[axis]);
}

static cp_dimension *
find_dimension(const cp_group *group, const char *name)
{
    for (guint i = 0; i < group->dimensions->len; i++) {
        cp_dimension *dimension = g_ptr_array_index(group->dimensions, i);
        if (g_str_equal(dimension->name, name))
            return dimension;
    }
    return NULL;
}

/* Groups from the root to the one of a path; made where they are not there. */
static void
groups_of(cp_model *model, const char *path, GPtrArray *groups)
{
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);
    cp_group *group = model->root;
    g_ptr_array_add(groups, group);
    for (char **part = parts; *part != NULL && **part != '\0'; part++) {
        cp_group *next = NULL;
        for (guint i = 0; i < group->groups->len && next == NULL; i++) {
            cp_group *child = g_ptr_array_index(group->groups, i);
            next = g_str_equal(child->name, *part) ? child : NULL;
        }
        group = next != NULL ? next : cp_group_new(group, *part);
        g_ptr_array_add(groups, group);
    }
}

/* Of that length: the one of this group or of those above it, or a new one. */
static cp_dimension *
dimension_of(const GPtrArray *groups, const char *name, uint64_t length, esdm_error *err,
             const char *path)
{
    cp_group *own = g_ptr_array_index(groups, groups->len - 1);
    cp_dimension *here = find_dimension(own, name);
    if (here != NULL && here->length != length) {
        (void) tool_error_set(err, ESDM_EINVAL,
                              "array '%s': its dimension '%s' has %" G_GUINT64_FORMAT
                              " indices, in another array of the group %" G_GUINT64_FORMAT,
                              path, name, (guint64) length, (guint64) here->length);
        return NULL;
    }
    for (guint i = groups->len; i-- > 0 && here == NULL;) {
        cp_dimension *above = find_dimension(g_ptr_array_index(groups, i), name);
        if (above != NULL && above->length == length)
            here = above;
        else if (above != NULL)
            break;
    }
    return here != NULL ? here : cp_dimension_add(own, name, length, false);
}

/* ---- structure ------------------------------------------------------------------------------ */

static void
load_fill(cp_dataset *dataset, const zarr_array *a)
{
    const cp_attribute *fill = cp_attribute_find(dataset->attributes, "_FillValue");
    if (a->type == ESDM_TYPE_STRING || !a->has_fill)
        return;
    dataset->fill = g_memdup2(a->fill, dataset->type->bytes);
    /* In Zarr 2 it is what NetCDF's _FillValue is; in Zarr 3 only an attribute says so. */
    if (fill == NULL && a->format == 2 && !a->is_bool)
        cp_attribute_add(dataset->attributes, "_FillValue", dataset->type, 1,
                         g_memdup2(a->fill, dataset->type->bytes));
}

static esdm_status
add_array(cp_zarr *zarr, cp_model *model, cp_zarr_array *a, esdm_error *err)
{
    g_autoptr(GPtrArray) groups = g_ptr_array_new();
    g_autofree char *folder = g_path_get_dirname(a->node->path);
    g_autofree char *base =
        g_path_get_basename(a->node->path[0] != '\0' ? a->node->path : zarr->store->location);
    groups_of(model, g_str_equal(folder, ".") ? "" : folder, groups);
    cp_dataset *dataset = cp_dataset_add(model, g_ptr_array_index(groups, groups->len - 1), base,
                                         cp_type_atomic(a->array.type));
    uint32_t rank = a->array.rank + (a->array.kind == ZARR_BYTES);
    dataset->from = (cp_place){.ncid = -1, .varid = (int) zarr->arrays->len - 1};
    dataset->rank = rank;
    for (uint32_t d = 0; d < rank; d++) {
        g_autofree char *name = dimension_name(a, d);
        uint64_t length = d < a->array.rank ? a->array.shape[d] : a->array.length;
        dataset->dimensions[d] = dimension_of(groups, name, length, err, a->node->path);
        if (dataset->dimensions[d] == NULL)
            return ESDM_EINVAL;
    }
    cp_zarr_attributes(a->node->attributes, dataset, dataset->attributes);
    if (a->array.is_bool && cp_attribute_find(dataset->attributes, "dtype") == NULL)
        cp_attribute_add(dataset->attributes, "dtype", cp_type_atomic(ESDM_TYPE_CHAR), 4,
                         g_strdup("bool"));
    load_fill(dataset, &a->array);
    dataset->storage = g_strdup(rank > 0 ? "chunked" : "contiguous");
    if (rank > 0) {
        dataset->chunk = g_new0(uint64_t, rank);
        for (uint32_t d = 0; d < rank; d++)
            dataset->chunk[d] = d < a->array.rank ? a->array.chunk[d] : a->array.length;
    }
    return ESDM_OK;
}

/* In the order of a model: those of a group before those of its groups. */
static void
list_datasets(cp_model *model, const cp_group *group)
{
    for (guint i = 0; i < group->datasets->len; i++)
        g_ptr_array_add(model->datasets, g_ptr_array_index(group->datasets, i));
    for (guint i = 0; i < group->groups->len; i++)
        list_datasets(model, g_ptr_array_index(group->groups, i));
}

static esdm_status
load_node(cp_zarr *zarr, cp_model *model, const zarr_node *node, esdm_error *err)
{
    char why[200];
    if (!node->is_array) {
        g_autoptr(GPtrArray) groups = g_ptr_array_new();
        groups_of(model, node->path, groups);
        const cp_group *group = g_ptr_array_index(groups, groups->len - 1);
        cp_zarr_attributes(node->attributes, NULL, group->attributes);
        return ESDM_OK;
    }
    cp_zarr_array *a = g_new0(cp_zarr_array, 1);
    a->node = node;
    g_ptr_array_add(zarr->arrays, a);
    if (!zarr_array_parse(node->metadata, &a->array, why))
        return tool_error_set(err, ESDM_ENOTSUP, "%s: array '/%s': %s", zarr->store->location,
                              node->path, why);
    return add_array(zarr, model, a, err);
}

/* ---- references ----------------------------------------------------------------------------- */

typedef struct referring {
    esdm_dataset *dataset;
    esdm_file_layout layout;
} referring;

static esdm_status
refer_to(const zarr_object *object, void *user, esdm_error *err)
{
    referring *r = user;
    r->layout.location = object->location;
    r->layout.bytes = object->bytes;
    r->layout.modified_ns = object->modified_ns;
    r->layout.changed_ns = object->changed_ns;
    r->layout.inode = object->inode;
    r->layout.identity = object->identity;
    return esdm_dataset_refer(r->dataset, &r->layout, object->parts, object->nparts, err);
}

static esdm_status
refer(const cp_end *end, const cp_dataset *dataset, bool *ret_referred, const char **ret_why,
      esdm_error *err)
{
    const cp_zarr *zarr = end->state;
    const cp_zarr_array *a = g_ptr_array_index(zarr->arrays, (guint) dataset->from.varid);
    uint32_t order[ESDM_MAX_RANK];
    uint64_t chunks = 0;
    *ret_referred = a->array.type != ESDM_TYPE_STRING;
    *ret_why = "texts are no plain bytes";
    if (!*ret_referred)
        return ESDM_OK;
    memcpy(order, a->array.order, sizeof order);
    if (a->array.kind == ZARR_BYTES)
        order[a->array.rank] = a->array.rank;
    referring r = {.dataset = dataset->to.dataset,
                   .layout = {.big_endian = a->array.big_endian && a->array.element_bytes > 1,
                              .nfilters = a->array.nfilters,
                              .filters = a->array.filters,
                              .chunk = dataset->chunk,
                              .order = a->array.ordered ? order : NULL}};
    return zarr_chunks(zarr->store, a->node, &a->array, refer_to, &r, &chunks, err);
}

/* ---- all ------------------------------------------------------------------------------------ */

static const cp_source_ops ops = {.read = cp_zarr_read, .refer = refer, .close = free_zarr};

esdm_status
cp_zarr_open(cp_end *end, cp_model **ret_model, esdm_error *err)
{
    cp_zarr *zarr = g_new0(cp_zarr, 1);
    zarr->arrays = g_ptr_array_new_with_free_func(free_array);
    zarr->locations = g_string_chunk_new(4096);
    esdm_status status = zarr_store_open(end->name, &zarr->store, err);
    g_autoptr(cp_model) model = cp_model_new();
    model->format = g_strdup("netcdf4");
    for (guint i = 0; status == ESDM_OK && i < zarr->store->nodes->len; i++)
        status = load_node(zarr, model, g_ptr_array_index(zarr->store->nodes, i), err);
    if (status != ESDM_OK) {
        free_zarr(zarr);
        return status;
    }
    g_ptr_array_set_size(model->datasets, 0);
    list_datasets(model, model->root);
    cp_model_finish(model);
    end->state = zarr;
    end->ops = &ops;
    *ret_model = g_steal_pointer(&model);
    return ESDM_OK;
}
