/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What a snapshot contains, and how two of them differ. */
#include <string.h>

#include "common/common.h"
#include "esdm-log/esdm-log.h"

/* Fragments of a dataset: where each lies, and its bytes. */
typedef struct fragments {
    esdm_dataset *dataset; /* while it is loaded */
    GHashTable *places;    /* text to bytes */
} fragments;

struct log_contents {
    GHashTable *lengths;    /* path of a dimension to its length */
    GHashTable *attributes; /* "PATH:NAME" to a digest of the value */
    GHashTable *datasets;   /* path to fragments */
};

static void
free_fragments(gpointer data)
{
    fragments *f = data;
    g_hash_table_unref(f->places);
    g_free(f);
}

void
log_contents_free(log_contents *contents)
{
    if (contents == NULL)
        return;
    g_hash_table_unref(contents->lengths);
    g_hash_table_unref(contents->attributes);
    g_hash_table_unref(contents->datasets);
    g_free(contents);
}

/* ---- loading ------------------------------------------------------------------------------ */

static void
digest_value(GChecksum *sum, const esdm_attribute *attribute)
{
    json_t *value = tool_json_values(attribute->type, attribute->count, attribute->values);
    char *text = value != NULL ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    if (text != NULL)
        g_checksum_update(sum, (const guchar *) text, (gssize) strlen(text));
    free(text);
    json_decref(value);
}

static void
load_attributes(log_contents *contents, const char *path, const esdm_attributes *list)
{
    esdm_attribute attribute;
    for (size_t i = 0; esdm_attribute_at(list, i, &attribute); i++) {
        g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA1);
        digest_value(sum, &attribute);
        g_hash_table_insert(contents->attributes, g_strdup_printf("%s:%s", path, attribute.name),
                            g_strdup(g_checksum_get_string(sum)));
    }
}

/* A fragment that lies in the index has no place that stays: its values tell it from others. Of
 * many that are equal the first one does, and what lies elsewhere is told by its place there. */
static void
digest_values(const esdm_fragment_info *info, esdm_dataset *dataset, GString *key)
{
    static const uint64_t one[ESDM_MAX_RANK] = {[0 ... ESDM_MAX_RANK - 1] = 1};
    esdm_dataspace space;
    esdm_error ignored;
    esdm_type type = esdm_dataset_type(dataset);
    size_t size = esdm_type_size(type);
    bool is_inline = g_str_equal(info->target, "(inline)");
    if (!is_inline && !g_str_equal(info->target, "(constant)")) {
        g_string_append_printf(key, "%s %" G_GUINT64_FORMAT, info->target,
                               (guint64) info->position);
        return;
    }
    if (size == 0 || type == ESDM_TYPE_STRING ||
        esdm_dataspace_init(&space, info->rank, info->offset, is_inline ? info->size : one,
                            &ignored) != ESDM_OK)
        return;
    g_autofree guchar *values = g_try_malloc0_n(esdm_dataspace_elements(&space), size);
    if (values == NULL || esdm_read(dataset, &space, type, values, NULL, &ignored) != ESDM_OK)
        return;
    g_autofree char *sum = g_compute_checksum_for_data(G_CHECKSUM_SHA1, values,
                                                       esdm_dataspace_elements(&space) * size);
    g_string_append(key, sum);
}

static bool
note_fragment(const esdm_fragment_info *info, void *user)
{
    fragments *f = user;
    g_autoptr(GString) key = g_string_new(info->pack);
    if (info->pack[0] != '\0')
        g_string_append_printf(key, " %" G_GUINT64_FORMAT, (guint64) info->position);
    else
        digest_values(info, f->dataset, key);
    for (uint32_t d = 0; d < info->rank; d++)
        g_string_append_printf(key, " %" G_GUINT64_FORMAT "+%" G_GUINT64_FORMAT,
                               (guint64) info->offset[d], (guint64) info->size[d]);
    guint64 *bytes = g_new(guint64, 1);
    *bytes = info->raw_bytes;
    g_hash_table_insert(f->places, g_strdup(key->str), bytes);
    return true;
}

static esdm_status
load_group(log_contents *contents, esdm_group *group, const char *path, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    load_attributes(contents, path[0] != '\0' ? path : "/", esdm_group_attributes(group));
    for (size_t i = 0; i < esdm_group_dimension_count(group); i++) {
        const esdm_dimension *dimension = esdm_group_dimension_at(group, i);
        guint64 *length = g_new(guint64, 1);
        *length = esdm_dimension_length(dimension);
        g_hash_table_insert(contents->lengths,
                            g_strdup_printf("%s/%s", path, esdm_dimension_name(dimension)), length);
    }
    for (size_t i = 0; i < esdm_group_dataset_count(group) && status == ESDM_OK; i++) {
        esdm_dataset *dataset = esdm_group_dataset_at(group, i);
        char *name = g_strdup_printf("%s/%s", path, esdm_dataset_name(dataset));
        fragments *f = g_new0(fragments, 1);
        f->places = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
        f->dataset = dataset;
        g_hash_table_insert(contents->datasets, name, f);
        load_attributes(contents, name, esdm_dataset_attributes(dataset));
        status = esdm_dataset_fragments(dataset, note_fragment, f, err);
    }
    for (size_t i = 0; i < esdm_group_count(group) && status == ESDM_OK; i++) {
        esdm_group *child = esdm_group_at(group, i);
        g_autofree char *name = g_strdup_printf("%s/%s", path, esdm_group_name(child));
        status = load_group(contents, child, name, err);
    }
    return status;
}

esdm_status
log_contents_load(esdm_session *session, const char *name, guint64 snapshot,
                  log_contents **ret_contents, esdm_error *err)
{
    esdm_container *container = NULL;
    esdm_status status =
        esdm_container_open(session, name, ESDM_OPEN_READ, snapshot, &container, err);
    *ret_contents = NULL;
    if (status != ESDM_OK)
        return status;
    log_contents *contents = g_new0(log_contents, 1);
    contents->lengths = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    contents->attributes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    contents->datasets = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_fragments);
    status = load_group(contents, esdm_container_root(container), "", err);
    esdm_container_discard(container);
    if (status == ESDM_OK)
        *ret_contents = contents;
    else
        log_contents_free(contents);
    return status;
}

/* ---- comparing ---------------------------------------------------------------------------- */

/* Keys of both, sorted, each once. */
static GPtrArray *
keys_of(GHashTable *older, GHashTable *newer)
{
    GPtrArray *keys = g_ptr_array_new();
    GHashTableIter at;
    gpointer key;
    g_hash_table_iter_init(&at, newer);
    while (g_hash_table_iter_next(&at, &key, NULL))
        g_ptr_array_add(keys, key);
    if (older != NULL)
        g_hash_table_iter_init(&at, older);
    while (older != NULL && g_hash_table_iter_next(&at, &key, NULL)) {
        if (!g_hash_table_contains(newer, key))
            g_ptr_array_add(keys, key);
    }
    g_ptr_array_sort(keys, tool_by_text);
    return keys;
}

static void
compare_lengths(GPtrArray *lines, GHashTable *older, GHashTable *newer)
{
    g_autoptr(GPtrArray) keys = keys_of(older, newer);
    for (guint i = 0; i < keys->len; i++) {
        const char *key = g_ptr_array_index(keys, i);
        const guint64 *x = g_hash_table_lookup(older, key);
        const guint64 *y = g_hash_table_lookup(newer, key);
        if (x != NULL && y != NULL && *x == *y)
            continue;
        g_ptr_array_add(
            lines, x == NULL   ? g_strdup_printf("dimension %s added, %" G_GUINT64_FORMAT, key, *y)
                   : y == NULL ? g_strdup_printf("dimension %s removed", key)
                               : g_strdup_printf("dimension %s from %" G_GUINT64_FORMAT
                                                 " to %" G_GUINT64_FORMAT,
                                                 key, *x, *y));
    }
}

static void
compare_attributes(GPtrArray *lines, GHashTable *older, GHashTable *newer)
{
    g_autoptr(GPtrArray) keys = keys_of(older, newer);
    for (guint i = 0; i < keys->len; i++) {
        const char *key = g_ptr_array_index(keys, i);
        const char *x = g_hash_table_lookup(older, key);
        const char *y = g_hash_table_lookup(newer, key);
        if (x == NULL || y == NULL || !g_str_equal(x, y))
            g_ptr_array_add(lines, g_strdup_printf("attribute %s %s", key,
                                                   x == NULL   ? "added"
                                                   : y == NULL ? "removed"
                                                               : "changed"));
    }
}

/* Fragments of y that x does not have, and their bytes. */
static guint
count_new(const fragments *x, const fragments *y, guint64 *ret_bytes)
{
    GHashTableIter at;
    gpointer key, bytes;
    guint count = 0;
    *ret_bytes = 0;
    g_hash_table_iter_init(&at, y->places);
    while (g_hash_table_iter_next(&at, &key, &bytes)) {
        if (x != NULL && g_hash_table_contains(x->places, key))
            continue;
        count++;
        *ret_bytes += *(guint64 *) bytes;
    }
    return count;
}

static void
compare_datasets(GPtrArray *lines, GHashTable *older, GHashTable *newer)
{
    g_autoptr(GPtrArray) keys = keys_of(older, newer);
    for (guint i = 0; i < keys->len; i++) {
        const char *key = g_ptr_array_index(keys, i);
        const fragments *x = older != NULL ? g_hash_table_lookup(older, key) : NULL;
        const fragments *y = g_hash_table_lookup(newer, key);
        guint64 bytes = 0;
        if (y == NULL) {
            g_ptr_array_add(lines, g_strdup_printf("variable %s removed", key));
            continue;
        }
        guint count = count_new(x, y, &bytes);
        g_autofree char *text = tool_bytes(bytes);
        if (x == NULL)
            g_ptr_array_add(lines, g_strdup_printf("variable %s added%s%s", key,
                                                   count > 0 ? ", " : "", count > 0 ? text : ""));
        else if (count > 0)
            g_ptr_array_add(lines, g_strdup_printf("variable %s: %s written in %u fragment%s", key,
                                                   text, count, count == 1 ? "" : "s"));
    }
}

GPtrArray *
log_contents_compare(const log_contents *older, const log_contents *newer, bool unknown)
{
    GPtrArray *lines = g_ptr_array_new_with_free_func(g_free);
    if (older == NULL && unknown) {
        g_ptr_array_add(lines, g_strdup("what was before is not kept any more"));
        return lines;
    }
    if (older != NULL) {
        compare_lengths(lines, older->lengths, newer->lengths);
        compare_attributes(lines, older->attributes, newer->attributes);
    }
    compare_datasets(lines, older != NULL ? older->datasets : NULL, newer->datasets);
    return lines;
}
