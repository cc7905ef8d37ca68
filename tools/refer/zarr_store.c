/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Groups and arrays of a Zarr store: from consolidated metadata, else from its folders. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/common.h"
#include "refer/zarr.h"

#define METADATA_BYTES_MAX ((size_t) 1 << 30)
#define DEPTH_MAX          64u

static void
free_node(gpointer data)
{
    zarr_node *node = data;
    json_decref(node->metadata);
    json_decref(node->attributes);
    g_free(node->path);
    g_free(node);
}

void
zarr_store_free(zarr_store *store)
{
    if (store == NULL)
        return;
    g_ptr_array_unref(store->nodes);
    g_free(store->location);
    g_free(store);
}

static bool
has(const char *folder, const char *name)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    return g_file_test(path, G_FILE_TEST_IS_REGULAR);
}

bool
zarr_is_store(const char *path)
{
    if (esdm_location_is_remote(path))
        return zarr_remote_is_store(path);
    return has(path, "zarr.json") || has(path, ".zgroup") || has(path, ".zarray") ||
           has(path, ".zmetadata");
}

/* @param ret_json NULL, with ESDM_OK: there is no such object. */
static esdm_status
load(const zarr_store *store, const char *path, const char *name, json_t **ret_json,
     esdm_error *err)
{
    g_autofree char *file = g_build_filename(store->location, path, name, NULL);
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    gsize bytes = 0;
    struct stat is;
    char why[200] = "";
    *ret_json = NULL;
    if (esdm_location_is_remote(store->location)) {
        size_t n = 0;
        esdm_status status =
            zarr_remote_load(store->location, path, name, METADATA_BYTES_MAX, &text, &n, err);
        if (status != ESDM_OK || text == NULL)
            return status;
        *ret_json = zarr_json(text, n, why);
        return *ret_json != NULL ? ESDM_OK
                                 : tool_error_set(err, ESDM_ECORRUPT, "%s: %s", file, why);
    }
    if (stat(file, &is) != 0 && errno == ENOENT)
        return ESDM_OK;
    if (!S_ISREG(is.st_mode) || (size_t) is.st_size > METADATA_BYTES_MAX)
        return tool_error_set(err, ESDM_EINVAL, "%s: no metadata of Zarr", file);
    if (!g_file_get_contents(file, &text, &bytes, &error))
        return tool_error_set(err, ESDM_EIO, "%s", error->message);
    *ret_json = zarr_json(text, bytes, why);
    if (*ret_json == NULL)
        return tool_error_set(err, ESDM_ECORRUPT, "%s: %s", file, why);
    return ESDM_OK;
}

/* Takes the metadata and attributes. */
static void
add(zarr_store *store, const char *path, int format, bool is_array, json_t *metadata,
    json_t *attributes)
{
    zarr_node *node = g_new0(zarr_node, 1);
    node->path = g_strdup(path);
    node->format = format;
    node->is_array = is_array;
    node->metadata = metadata;
    node->attributes = json_is_object(attributes) ? attributes : json_object();
    if (node->attributes != attributes)
        json_decref(attributes);
    g_ptr_array_add(store->nodes, node);
}

static esdm_status
add3(zarr_store *store, const char *path, json_t *metadata, bool *ret_is_array, esdm_error *err)
{
    const char *type = zarr_json_text(json_object_get(metadata, "node_type"));
    *ret_is_array = type != NULL && strcmp(type, "array") == 0;
    if (type == NULL || (!*ret_is_array && strcmp(type, "group") != 0))
        return tool_error_set(err, ESDM_ECORRUPT,
                              "%s: '/%s' is neither a group nor an array (zarr.json)",
                              store->location, path);
    add(store, path, 3, *ret_is_array, json_incref(metadata),
        json_incref(json_object_get(metadata, "attributes")));
    return ESDM_OK;
}

/* ---- consolidated --------------------------------------------------------------------------- */

static bool
is_clean(const char *path)
{
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);
    for (char **part = parts; *part != NULL; part++) {
        if (**part == '\0' || g_str_equal(*part, ".") || g_str_equal(*part, ".."))
            return path[0] == '\0';
    }
    return true;
}

static esdm_status
unclean(const zarr_store *store, const char *path, esdm_error *err)
{
    return tool_error_set(err, ESDM_ECORRUPT, "%s: the metadata name '%s', which is no path",
                          store->location, path);
}

static esdm_status
consolidated2(zarr_store *store, const json_t *all, esdm_error *err)
{
    const char *key;
    json_t *metadata, *list = json_object_get(all, "metadata");
    json_object_foreach(list, key, metadata)
    {
        bool is_array = g_str_has_suffix(key, ".zarray");
        if (!is_array && !g_str_has_suffix(key, ".zgroup"))
            continue;
        g_autofree char *path = g_strndup(key, strlen(key) - strlen(".zarray"));
        size_t n = strlen(path);
        if (n > 0 && path[n - 1] == '/')
            path[n - 1] = '\0';
        if (!is_clean(path))
            return unclean(store, path, err);
        g_autofree char *attributes =
            g_strconcat(path, path[0] != '\0' ? "/" : "", ".zattrs", NULL);
        add(store, path, 2, is_array, json_incref(metadata),
            json_incref(json_object_get(list, attributes)));
    }
    return ESDM_OK;
}

static esdm_status
consolidated3(zarr_store *store, json_t *root, const json_t *all, esdm_error *err)
{
    const char *path;
    json_t *metadata;
    bool is_array = false;
    esdm_status status = add3(store, "", root, &is_array, err);
    json_object_foreach((json_t *) (uintptr_t) all, path, metadata)
    {
        if (status != ESDM_OK || !is_clean(path) || path[0] == '\0')
            return status != ESDM_OK ? status : unclean(store, path, err);
        status = add3(store, path, metadata, &is_array, err);
    }
    return status;
}

/* ---- folders -------------------------------------------------------------------------------- */

/* @param ret_more false: nothing of Zarr is below. */
static esdm_status
look_at(zarr_store *store, const char *path, bool *ret_more, esdm_error *err)
{
    json_t *metadata = NULL, *attributes = NULL;
    bool is_array = false;
    esdm_status status = load(store, path, "zarr.json", &metadata, err);
    if (status == ESDM_OK && metadata != NULL) {
        status = add3(store, path, metadata, &is_array, err);
        json_decref(metadata);
        *ret_more = !is_array;
        return status;
    }
    if (status == ESDM_OK)
        status = load(store, path, ".zarray", &metadata, err);
    is_array = metadata != NULL;
    if (status == ESDM_OK && metadata == NULL)
        status = load(store, path, ".zgroup", &metadata, err);
    *ret_more = !is_array && metadata != NULL;
    if (status == ESDM_OK && metadata != NULL)
        status = load(store, path, ".zattrs", &attributes, err);
    if (status == ESDM_OK && metadata != NULL)
        add(store, path, 2, is_array, metadata, attributes);
    else
        json_decref(metadata);
    return status;
}

static esdm_status
walk(zarr_store *store, const char *path, unsigned depth, esdm_error *err)
{
    bool more = false;
    esdm_status status = look_at(store, path, &more, err);
    if (status != ESDM_OK || !more)
        return status;
    if (esdm_location_is_remote(store->location))
        return tool_error_set(err, ESDM_ENOTSUP,
                              "'%s': a group without consolidated metadata: what is in it cannot "
                              "be listed on a web server (zarr.consolidate_metadata() writes them)",
                              store->location);
    g_autofree char *folder = g_build_filename(store->location, path, NULL);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    if (dir == NULL || depth > DEPTH_MAX)
        return tool_error_set(err, ESDM_EIO, "%s: cannot be listed", folder);
    for (const char *name = g_dir_read_name(dir); name != NULL && status == ESDM_OK;
         name = g_dir_read_name(dir)) {
        g_autofree char *below = g_build_filename(folder, name, NULL);
        if (name[0] == '.' || !g_file_test(below, G_FILE_TEST_IS_DIR))
            continue;
        g_autofree char *inner = g_strconcat(path, path[0] != '\0' ? "/" : "", name, NULL);
        status = walk(store, inner, depth + 1, err);
    }
    return status;
}

/* ---- all ------------------------------------------------------------------------------------ */

static gint
by_path(gconstpointer a, gconstpointer b)
{
    return strcmp((*(const zarr_node *const *) a)->path, (*(const zarr_node *const *) b)->path);
}

static esdm_status
read_nodes(zarr_store *store, esdm_error *err)
{
    json_t *root = NULL, *all = NULL;
    esdm_status status = load(store, "", "zarr.json", &root, err);
    const json_t *inner =
        json_object_get(json_object_get(root, "consolidated_metadata"), "metadata");
    if (status == ESDM_OK && root == NULL)
        status = load(store, "", ".zmetadata", &all, err);
    if (status == ESDM_OK && json_is_object(inner))
        status = consolidated3(store, root, inner, err);
    else if (status == ESDM_OK && json_is_object(json_object_get(all, "metadata")))
        status = consolidated2(store, all, err);
    else if (status == ESDM_OK)
        status = walk(store, "", 0, err);
    json_decref(root);
    json_decref(all);
    return status;
}

esdm_status
zarr_store_open(const char *path, zarr_store **ret, esdm_error *err)
{
    char *whole = esdm_location_is_remote(path) ? strdup(path) : realpath(path, NULL);
    if (whole == NULL)
        return tool_error_set(err, ESDM_ENOENT, "%s: %s", path, g_strerror(errno));
    zarr_store *store = g_new0(zarr_store, 1);
    store->location = g_strdup(whole);
    store->nodes = g_ptr_array_new_with_free_func(free_node);
    free(whole);
    esdm_status status = read_nodes(store, err);
    if (status == ESDM_OK && store->nodes->len == 0)
        status = tool_error_set(err, ESDM_EINVAL, "%s: nothing of Zarr is in it", path);
    if (status != ESDM_OK) {
        zarr_store_free(store);
        return status;
    }
    g_ptr_array_sort(store->nodes, by_path);
    *ret = store;
    return ESDM_OK;
}
