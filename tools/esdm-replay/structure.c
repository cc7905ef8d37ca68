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
    if (st != ESDM_OK || d->accuracy == NULL)
        return st;
    esdm_accuracy_init(&accuracy);
    st = esdm_accuracy_parse(&accuracy, d->accuracy, NULL, err);
    return st == ESDM_OK ? esdm_dataset_set_accuracy(made, &accuracy, err) : st;
}

static esdm_status
define_one(esdm_container *container, GHashTable *known, const replay_dataset *d, bool with_lengths,
           esdm_error *err)
{
    esdm_dimension *dimensions[ESDM_MAX_RANK];
    esdm_group *group = NULL;
    esdm_dataset *made = NULL;
    const char *last = NULL;
    esdm_status st = ESDM_OK;
    for (guint i = 0; i < d->rank && st == ESDM_OK; i++) {
        st = dimension_of(container, known, &d->dimensions[i], &dimensions[i], err);
        if (st == ESDM_OK && with_lengths && d->dimensions[i].unlimited)
            st = esdm_dimension_extend(dimensions[i], d->dimensions[i].length, err);
    }
    if (st == ESDM_OK)
        st = group_of(esdm_container_root(container), d->path, true, &group, &last, err);
    if (st == ESDM_OK)
        st = esdm_dataset_create(group, last, d->type, d->rank, dimensions, &made, err);
    return st == ESDM_OK ? state(made, d, err) : st;
}

esdm_status
replay_define(esdm_container *container, const GPtrArray *datasets, bool with_lengths,
              esdm_error *err)
{
    g_autoptr(GHashTable) known = g_hash_table_new(g_direct_hash, g_direct_equal);
    esdm_status st = ESDM_OK;
    for (guint i = 0; i < datasets->len && st == ESDM_OK; i++) {
        const replay_dataset *d = datasets->pdata[i];
        if (d->type != ESDM_TYPE_NONE)
            st = define_one(container, known, d, with_lengths, err);
    }
    return st;
}
