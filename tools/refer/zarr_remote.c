/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Objects of a Zarr store on a web server. Nothing can be listed there, so each chunk that
 * the array may have is asked for, many at once; one that is not there is missing. */

#include <stdlib.h>
#include <string.h>

#include "common/common.h"
#include "refer/remote.h"
#include "refer/zarr.h"

#define THREADS     16
#define BATCH       4096u
#define CHUNKS_MOST (UINT64_C(1) << 24)

/* ---- metadata ------------------------------------------------------------------------------- */

static char *
url_of(const char *store, const char *path, const char *name)
{
    g_autofree char *inner = g_uri_escape_string(path, G_URI_RESERVED_CHARS_ALLOWED_IN_PATH, FALSE);
    return g_strconcat(store, "/", inner, inner[0] != '\0' ? "/" : "", name, NULL);
}

esdm_status
zarr_remote_load(const char *store, const char *path, const char *name, size_t most,
                 char **ret_text, size_t *ret_bytes, esdm_error *err)
{
    g_autofree char *url = url_of(store, path, name);
    esdm_remote_state state;
    void *data = NULL;
    *ret_text = NULL;
    *ret_bytes = 0;
    esdm_status status =
        esdm_remote_load(remote_session(), url, most, &state, &data, ret_bytes, err);
    if (status == ESDM_ENOENT)
        return ESDM_OK;
    *ret_text = data;
    return status;
}

bool
zarr_remote_is_store(const char *url)
{
    static const char *const names[] = {"zarr.json", ".zmetadata", ".zgroup", ".zarray"};
    static const char *const others[] = {".nc", ".nc4", ".h5", ".hdf5", ".hdf"};
    static char *asked;
    static bool answer;
    if (asked != NULL && g_str_equal(asked, url))
        return answer;
    for (size_t i = 0; i < G_N_ELEMENTS(others); i++) {
        if (g_str_has_suffix(url, others[i]))
            return false;
    }
    g_free(asked);
    asked = g_strdup(url);
    answer = false;
    for (size_t i = 0; i < G_N_ELEMENTS(names) && !answer; i++) {
        g_autofree char *one = url_of(url, "", names[i]);
        esdm_remote_state state;
        esdm_error ignored = {0};
        esdm_status status = esdm_remote_stat(remote_session(), one, &state, &ignored);
        answer = status == ESDM_OK || status == ESDM_ECONFLICT;
    }
    return answer;
}

/* ---- chunks --------------------------------------------------------------------------------- */

typedef struct object {
    char *url;
    uint64_t at[ESDM_MAX_RANK]; /* in the grid of objects */
    esdm_remote_state state;
    uint8_t *index; /* of a shard; owned */
    bool there;
    esdm_status status;
    esdm_error error;
} object;

typedef struct asking {
    const zarr_array *array;
} asking;

static void
read_index(const zarr_array *a, object *o)
{
    uint64_t bytes = zarr_index_bytes(a);
    if (bytes > o->state.bytes) {
        o->status = tool_error_set(&o->error, ESDM_ECORRUPT,
                                   "'%s' is shorter than the index of a shard", o->url);
        return;
    }
    o->index = g_malloc(bytes);
    o->status = esdm_remote_read(remote_session(), o->url, &o->state,
                                 a->index_at_start ? 0 : o->state.bytes - bytes, o->index, bytes,
                                 &o->error);
}

/* A thread of the pool. */
static void
ask(gpointer data, gpointer user)
{
    object *o = data;
    const asking *all = user;
    o->status = esdm_remote_stat(remote_session(), o->url, &o->state, &o->error);
    o->there = o->status == ESDM_OK;
    if (o->status == ESDM_ENOENT)
        o->status = ESDM_OK;
    if (o->there && all->array->sharded)
        read_index(all->array, o);
}

static char *
key_of(const zarr_array *a, const uint64_t *at)
{
    g_autoptr(GString) key = g_string_new(a->flat ? "" : "c");
    for (uint32_t d = 0; d < a->rank; d++) {
        if (d > 0 || !a->flat)
            g_string_append_c(key, a->separator);
        g_string_append_printf(key, "%" G_GUINT64_FORMAT, (guint64) at[d]);
    }
    if (a->rank == 0 && a->flat)
        g_string_append(key, "0");
    return g_strdup(key->str);
}

static bool
next(const zarr_array *a, const uint64_t *grid, uint64_t *at)
{
    for (uint32_t d = a->rank; d-- > 0;) {
        if (++at[d] < grid[d])
            return true;
        at[d] = 0;
    }
    return false;
}

static void
free_object(gpointer data)
{
    object *o = data;
    g_free(o->url);
    g_free(o->index);
    g_free(o);
}

/* Asks for all of a batch at once. */
static esdm_status
ask_all(GPtrArray *objects, const zarr_array *a, esdm_error *err)
{
    asking all = {.array = a};
    g_autoptr(GError) error = NULL;
    GThreadPool *pool = g_thread_pool_new(ask, &all, THREADS, FALSE, &error);
    if (pool == NULL)
        return tool_error_set(err, ESDM_ENOMEM, "%s", error->message);
    for (guint i = 0; i < objects->len; i++)
        (void) g_thread_pool_push(pool, g_ptr_array_index(objects, i), NULL);
    g_thread_pool_free(pool, FALSE, TRUE);
    return ESDM_OK;
}

esdm_status
zarr_remote_chunks(const zarr_store *store, const zarr_node *node, const zarr_array *a,
                   const uint64_t *grid, zarr_remote_visit visit, void *user, esdm_error *err)
{
    uint64_t at[ESDM_MAX_RANK] = {0}, count = 1;
    for (uint32_t d = 0; d < a->rank; d++)
        count = grid[d] > 0 && count > CHUNKS_MOST / grid[d] ? CHUNKS_MOST + 1 : count * grid[d];
    if (count > CHUNKS_MOST)
        return tool_error_set(err, ESDM_ENOTSUP,
                              "array '/%s' may have more than %" G_GUINT64_FORMAT
                              " objects, each of which would have to be asked for",
                              node->path, (guint64) CHUNKS_MOST);
    g_autoptr(GPtrArray) objects = g_ptr_array_new_with_free_func(free_object);
    esdm_status status = ESDM_OK;
    bool more = count > 0;
    while (more && status == ESDM_OK) {
        g_ptr_array_set_size(objects, 0);
        while (more && objects->len < BATCH) {
            object *o = g_new0(object, 1);
            g_autofree char *key = key_of(a, at);
            o->url = url_of(store->location, node->path, key);
            memcpy(o->at, at, sizeof at);
            g_ptr_array_add(objects, o);
            more = next(a, grid, at);
        }
        status = ask_all(objects, a, err);
        for (guint i = 0; i < objects->len && status == ESDM_OK; i++) {
            const object *o = g_ptr_array_index(objects, i);
            status = o->status;
            if (status != ESDM_OK)
                *err = o->error;
            else if (o->there)
                status = visit(o->url, &o->state, o->at, o->index, user);
        }
    }
    return status;
}
