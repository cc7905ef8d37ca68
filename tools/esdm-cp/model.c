/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Structure of a container or file while it is copied. */

#include "esdm-cp/esdm-cp.h"

#include <string.h>

static void
free_attribute(gpointer data)
{
    cp_attribute *attribute = data;
    cp_values_clear(attribute->type, attribute->count, attribute->values);
    g_free(attribute->values);
    g_free(attribute->name);
    g_free(attribute);
}

static void
free_dimension(gpointer data)
{
    cp_dimension *dimension = data;
    g_free(dimension->name);
    g_free(dimension);
}

static void
free_dataset(gpointer data)
{
    cp_dataset *dataset = data;
    if (dataset->fill != NULL)
        cp_values_clear(dataset->type, 1, dataset->fill);
    g_free(dataset->fill);
    g_free(dataset->path);
    g_free(dataset->name);
    g_free(dataset->chunk);
    g_free(dataset->storage);
    g_free(dataset->endian);
    g_free(dataset->filters);
    g_free(dataset->codec);
    g_ptr_array_unref(dataset->attributes);
    g_free(dataset);
}

static void
free_group(gpointer data)
{
    cp_group *group = data;
    g_free(group->name);
    g_free(group->path);
    g_ptr_array_unref(group->types);
    g_ptr_array_unref(group->groups);
    g_ptr_array_unref(group->datasets);
    g_ptr_array_unref(group->dimensions);
    g_ptr_array_unref(group->attributes);
    g_free(group);
}

cp_group *
cp_group_new(cp_group *parent, const char *name)
{
    cp_group *group = g_new0(cp_group, 1);
    group->name = g_strdup(name);
    group->path = parent != NULL ? g_strdup_printf("%s/%s", parent->path, name) : g_strdup("");
    group->types = g_ptr_array_new();
    group->dimensions = g_ptr_array_new_with_free_func(free_dimension);
    group->datasets = g_ptr_array_new_with_free_func(free_dataset);
    group->attributes = g_ptr_array_new_with_free_func(free_attribute);
    group->groups = g_ptr_array_new_with_free_func(free_group);
    if (parent != NULL)
        g_ptr_array_add(parent->groups, group);
    return group;
}

cp_model *
cp_model_new(void)
{
    cp_model *model = g_new0(cp_model, 1);
    model->root = cp_group_new(NULL, "");
    model->types = g_ptr_array_new_with_free_func(cp_type_free);
    model->datasets = g_ptr_array_new();
    return model;
}

void
cp_model_free(cp_model *model)
{
    if (model == NULL)
        return;
    free_group(model->root);
    g_ptr_array_unref(model->datasets);
    g_ptr_array_unref(model->types); /* last: values are freed by them */
    g_free(model->format);
    g_free(model);
}

cp_dimension *
cp_dimension_add(cp_group *group, const char *name, uint64_t length, bool unlimited)
{
    cp_dimension *dimension = g_new0(cp_dimension, 1);
    dimension->name = g_strdup(name);
    dimension->length = length;
    dimension->unlimited = unlimited;
    g_ptr_array_add(group->dimensions, dimension);
    return dimension;
}

cp_dataset *
cp_dataset_add(cp_model *model, cp_group *group, const char *name, const cp_type *type)
{
    cp_dataset *dataset = g_new0(cp_dataset, 1);
    dataset->name = g_strdup(name);
    dataset->path = g_strdup_printf("%s/%s", group->path, name);
    dataset->type = type;
    dataset->attributes = g_ptr_array_new_with_free_func(free_attribute);
    g_ptr_array_add(group->datasets, dataset);
    g_ptr_array_add(model->datasets, dataset);
    return dataset;
}

void
cp_attribute_add(GPtrArray *attributes, const char *name, const cp_type *type, uint64_t count,
                 void *values)
{
    cp_attribute *attribute = g_new0(cp_attribute, 1);
    attribute->name = g_strdup(name);
    attribute->type = type;
    attribute->count = count;
    attribute->values = values;
    g_ptr_array_add(attributes, attribute);
}

void
cp_attribute_set(GPtrArray *attributes, const char *name, const cp_type *type, uint64_t count,
                 void *values)
{
    for (guint i = 0; i < attributes->len; i++) {
        cp_attribute *attribute = g_ptr_array_index(attributes, i);
        if (!g_str_equal(attribute->name, name))
            continue;
        cp_values_clear(attribute->type, attribute->count, attribute->values);
        g_free(attribute->values);
        attribute->type = type;
        attribute->count = count;
        attribute->values = values;
        return;
    }
    cp_attribute_add(attributes, name, type, count, values);
}

const cp_attribute *
cp_attribute_find(const GPtrArray *attributes, const char *name)
{
    for (guint i = 0; i < attributes->len; i++) {
        const cp_attribute *attribute = g_ptr_array_index(attributes, i);
        if (g_str_equal(attribute->name, name))
            return attribute;
    }
    return NULL;
}

uint64_t
cp_dataset_elements(const cp_dataset *dataset)
{
    uint64_t elements = 1;
    for (uint32_t i = 0; i < dataset->rank; i++) {
        if (__builtin_mul_overflow(elements, dataset->dimensions[i]->length, &elements))
            return UINT64_MAX;
    }
    return elements;
}

uint64_t
cp_model_bytes(const cp_model *model)
{
    uint64_t sum = 0;
    for (guint i = 0; i < model->datasets->len; i++) {
        const cp_dataset *dataset = g_ptr_array_index(model->datasets, i);
        sum += cp_dataset_elements(dataset) * dataset->type->bytes;
    }
    return sum;
}

void
cp_model_finish(cp_model *model)
{
    for (guint i = 0; i < model->datasets->len; i++) {
        cp_dataset *dataset = g_ptr_array_index(model->datasets, i);
        bool filled = cp_dataset_elements(dataset) > 0;
        for (uint32_t axis = 0; axis < dataset->rank; axis++)
            dataset->dimensions[axis]->filled |= filled;
    }
}
