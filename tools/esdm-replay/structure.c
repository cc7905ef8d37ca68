/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Definitions: groups, dimensions and datasets as they were recorded. */
#include "esdm-replay/esdm-replay.h"

#include <stdlib.h>
#include <string.h>

char *
replay_name(const replay_options *options, const replay_file *file)
{
    return g_strdup_printf("%s/%u", options->prefix, file->number);
}

/* The group of a path, made when it is not there. @param ret_last what follows the last slash. */
static esdm_status
group_of(esdm_group *root, const char *path, bool makes, esdm_group **ret, const char **ret_last,
         esdm_error *err)
{
    esdm_group *group = root;
    esdm_status st = ESDM_OK;
    const char *at = path + 1;
    for (const char *slash; group != NULL && st == ESDM_OK && (slash = strchr(at, '/')) != NULL;
         at = slash + 1) {
        g_autofree char *name = g_strndup(at, (gsize) (slash - at));
        esdm_group *child = esdm_group_find(group, name);
        if (child == NULL && makes)
            st = esdm_group_create(group, name, &child, err);
        group = child;
    }
    *ret = group;
    *ret_last = at;
    return st;
}

esdm_dataset *
replay_find(esdm_container *container, const char *path)
{
    esdm_group *group = NULL;
    const char *last = NULL;
    (void) group_of(esdm_container_root(container), path, false, &group, &last, NULL);
    return group != NULL ? esdm_group_dataset_find(group, last) : NULL;
}

/* Dimensions of one number are one; all are in the root group, where names may have to differ. */
static esdm_status
dimension_of(esdm_container *container, GHashTable *known, const replay_dimension *d,
             esdm_dimension **ret, esdm_error *err)
{
    esdm_group *root = esdm_container_root(container);
    esdm_dimension *made = g_hash_table_lookup(known, GUINT_TO_POINTER(d->id + 1));
    if (made != NULL) {
        *ret = made;
        return ESDM_OK;
    }
    g_autofree char *other = g_strdup_printf("dimension %u", d->id);
    bool taken = esdm_group_dimension_find(root, d->name) != NULL;
    esdm_status st = esdm_dimension_create(root, taken ? other : d->name,
                                           d->unlimited ? ESDM_UNLIMITED : d->length, ret, err);
    if (st == ESDM_OK)
        g_hash_table_insert(known, GUINT_TO_POINTER(d->id + 1), *ret);
    return st;
}

static esdm_status
state(esdm_dataset *made, const replay_dataset *d, esdm_error *err)
{
    esdm_accuracy accuracy;
    esdm_status st = ESDM_OK;
    if (d->chunk != NULL)
        st = esdm_dataset_set_chunk(made, d->chunk, err);
    if (st == ESDM_OK && d->codec != NULL)
        st = esdm_dataset_set_codec(made, d->codec, err);
    if (st == ESDM_OK && d->codec == NULL && d->compressed)
        st = esdm_dataset_request_compression(made, err);
    if (st != ESDM_OK || d->accuracy == NULL)
        return st;
    esdm_accuracy_init(&accuracy);
    st = esdm_accuracy_parse(&accuracy, d->accuracy, NULL, err);
    return st == ESDM_OK ? esdm_dataset_set_accuracy(made, &accuracy, err) : st;
}

static esdm_status
define_one(esdm_container *container, GHashTable *known, const replay_dataset *d, esdm_error *err)
{
    esdm_dimension *dimensions[ESDM_MAX_RANK];
    esdm_group *group = NULL;
    esdm_dataset *made = NULL;
    const char *last = NULL;
    esdm_status st = ESDM_OK;
    for (guint i = 0; i < d->rank && st == ESDM_OK; i++)
        st = dimension_of(container, known, &d->dimensions[i], &dimensions[i], err);
    if (st == ESDM_OK)
        st = group_of(esdm_container_root(container), d->path, true, &group, &last, err);
    if (st == ESDM_OK)
        st = esdm_dataset_create(group, last, d->type, d->rank, dimensions, &made, err);
    return st == ESDM_OK ? state(made, d, err) : st;
}

static gint
datasets_by_id(gconstpointer a, gconstpointer b)
{
    const replay_dataset *x = *(const replay_dataset *const *) a;
    const replay_dataset *y = *(const replay_dataset *const *) b;
    return x->id != y->id ? (x->id < y->id ? -1 : 1) : strcmp(x->path, y->path);
}

static gint
dimensions_by_id(gconstpointer a, gconstpointer b)
{
    const replay_dimension *x = *(const replay_dimension *const *) a;
    const replay_dimension *y = *(const replay_dimension *const *) b;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* All ranks define alike, whatever they use first. */
static esdm_status
define_dimensions(esdm_container *container, GHashTable *known, const GPtrArray *datasets,
                  bool with_lengths, esdm_error *err)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new();
    esdm_status st = ESDM_OK;
    for (guint k = 0; k < datasets->len; k++) {
        replay_dataset *d = datasets->pdata[k];
        for (guint i = 0; i < d->rank && d->type != ESDM_TYPE_NONE; i++)
            g_ptr_array_add(all, &d->dimensions[i]);
    }
    g_ptr_array_sort(all, dimensions_by_id);
    for (guint i = 0; i < all->len && st == ESDM_OK; i++) {
        const replay_dimension *d = all->pdata[i];
        esdm_dimension *made = NULL;
        st = dimension_of(container, known, d, &made, err);
        if (st == ESDM_OK && with_lengths && d->unlimited)
            st = esdm_dimension_extend(made, d->length, err);
    }
    return st;
}

esdm_status
replay_define(esdm_container *container, const GPtrArray *datasets, bool with_lengths,
              esdm_error *err)
{
    g_autoptr(GHashTable) known = g_hash_table_new(g_direct_hash, g_direct_equal);
    g_autoptr(GPtrArray) sorted = g_ptr_array_new();
    for (guint i = 0; i < datasets->len; i++)
        g_ptr_array_add(sorted, datasets->pdata[i]);
    g_ptr_array_sort(sorted, datasets_by_id);
    esdm_status st = define_dimensions(container, known, sorted, with_lengths, err);
    for (guint i = 0; i < sorted->len && st == ESDM_OK; i++) {
        const replay_dataset *d = sorted->pdata[i];
        if (d->type != ESDM_TYPE_NONE)
            st = define_one(container, known, d, err);
    }
    return st;
}
