/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What a source was when a container was made that refers to it: a text that the container keeps,
 * so that a later scan knows without opening the source whether it still is the same. */

#include "esdm-cp/esdm-cp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "refer/remote.h"
#include "refer/zarr.h"

/* Clocks of kernels tick in up to 10 ms, those of some file systems in 1 or 2 s. */
#define TICK_NS        ((int64_t) 20 * 1000000)
#define COARSE_TICK_NS ((int64_t) 2 * 1000000000)
#define SECOND_NS      ((int64_t) 1000000000)
#define DEPTH_MAX      64u

static int64_t
nanoseconds(struct timespec t)
{
    return (int64_t) t.tv_sec * SECOND_NS + t.tv_nsec;
}

/* ---- all objects of a store ----------------------------------------------------------------- */

typedef struct gather {
    GChecksum *sum;
    GChecksum *kept; /* of what copies keep alone */
    uint64_t objects;
    uint64_t bytes;
    int64_t newest_ns; /* time of modification or change */
    esdm_error *err;
} gather;

static void
gather_object(gather *g, const char *below, const struct stat *is)
{
    int64_t changed_ns = nanoseconds(is->st_ctim), modified_ns = nanoseconds(is->st_mtim);
    g_autofree char *line = g_strdup_printf("%s\n%" G_GINT64_FORMAT " %" G_GINT64_FORMAT
                                            " %" G_GINT64_FORMAT " %" G_GUINT64_FORMAT "\n",
                                            below, (gint64) is->st_size, (gint64) modified_ns,
                                            (gint64) changed_ns, (guint64) is->st_ino);
    g_checksum_update(g->sum, (const guchar *) line, -1);
    g_autofree char *kept =
        g_strdup_printf("%s\n%" G_GINT64_FORMAT " %" G_GINT64_FORMAT "\n", below,
                        (gint64) is->st_size, (gint64) is->st_mtim.tv_sec);
    g_checksum_update(g->kept, (const guchar *) kept, -1);
    g->objects++;
    g->bytes += (uint64_t) is->st_size;
    g->newest_ns = MAX(g->newest_ns, MAX(changed_ns, modified_ns));
}

static esdm_status
gather_folder(gather *g, const char *folder, const char *below, unsigned depth)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) names = depth < DEPTH_MAX ? tool_folder_names(folder, &error) : NULL;
    if (names == NULL)
        return tool_error_set(g->err, ESDM_EIO, "%s: %s", folder,
                              error != NULL ? error->message : "its folders lie too deep");
    esdm_status status = ESDM_OK;
    for (guint i = 0; i < names->len && status == ESDM_OK; i++) {
        const char *name = g_ptr_array_index(names, i);
        g_autofree char *path = g_build_filename(folder, name, NULL);
        g_autofree char *inner = g_strconcat(below, "/", name, NULL);
        struct stat is;
        if (stat(path, &is) != 0)
            status = tool_error_set(g->err, ESDM_EIO, "%s: %s", path, g_strerror(errno));
        else if (S_ISDIR(is.st_mode))
            status = gather_folder(g, path, inner, depth + 1);
        else
            gather_object(g, inner, &is);
    }
    return status;
}

static esdm_status
see_store(json_t *seen, const char *path, int64_t *ret_newest_ns, esdm_error *err)
{
    gather g = {.sum = g_checksum_new(G_CHECKSUM_SHA256),
                .kept = g_checksum_new(G_CHECKSUM_SHA256),
                .err = err};
    esdm_status status = gather_folder(&g, path, "", 0);
    tool_json_set(seen, "objects", tool_json_u64(g.objects));
    tool_json_set(seen, "bytes", tool_json_u64(g.bytes));
    tool_json_set(seen, "digest", json_string(g_checksum_get_string(g.sum)));
    tool_json_set(seen, CP_SEEN_KEPT, json_string(g_checksum_get_string(g.kept)));
    g_checksum_free(g.sum);
    g_checksum_free(g.kept);
    *ret_newest_ns = g.newest_ns;
    return status;
}

/* ---- files ---------------------------------------------------------------------------------- */

static void
see_file(json_t *seen, const struct stat *is, int64_t *ret_newest_ns)
{
    int64_t changed_ns = nanoseconds(is->st_ctim), modified_ns = nanoseconds(is->st_mtim);
    tool_json_set(seen, "bytes", tool_json_u64((uint64_t) is->st_size));
    tool_json_set(seen, "modified_ns", json_integer(modified_ns));
    tool_json_set(seen, "changed_ns", json_integer(changed_ns));
    tool_json_set(seen, "inode", tool_json_u64((uint64_t) is->st_ino));
    *ret_newest_ns = MAX(changed_ns, modified_ns);
}

static char *
text_of(const json_t *seen)
{
    char *text = json_dumps(seen, JSON_COMPACT | JSON_SORT_KEYS);
    char *copy = g_strdup(text);
    free(text);
    return copy;
}

/* Whether what is written from now on could leave the times as they are. */
static bool
is_fresh(int64_t newest_ns)
{
    int64_t tick = newest_ns % SECOND_NS == 0 ? COARSE_TICK_NS : TICK_NS;
    return newest_ns >= (int64_t) g_get_real_time() * 1000 - tick;
}

/* Of a store nothing tells whether one of its objects was changed: it is looked at each time. */
static esdm_status
see_remote(const char *url, char **ret_text, esdm_error *err)
{
    json_t *seen = json_object();
    esdm_status status = ESDM_OK;
    tool_json_set(seen, "name", tool_json_text(url));
    if (zarr_is_store(url)) {
        tool_json_set(seen, "fresh", json_true());
    } else {
        remote_object *object = NULL;
        status = remote_open(url, &object, err);
        if (status == ESDM_OK) {
            tool_json_set(seen, "bytes", tool_json_u64(object->state.bytes));
            tool_json_set(seen, "modified_ns", json_integer(object->state.modified_ns));
            tool_json_set(seen, "identity", tool_json_text(object->state.identity));
        }
    }
    *ret_text = status == ESDM_OK ? text_of(seen) : NULL;
    json_decref(seen);
    return status;
}

esdm_status
cp_seen_take(const char *name, char **ret_text, esdm_error *err)
{
    struct stat is;
    int64_t newest_ns = 0;
    if (esdm_location_is_remote(name))
        return see_remote(name, ret_text, err);
    g_autofree char *real = realpath(name, NULL);
    if (real == NULL || stat(real, &is) != 0)
        return tool_error_set(err, errno == ENOENT ? ESDM_ENOENT : ESDM_EIO, "%s: %s", name,
                              g_strerror(errno));
    g_autofree char *whole = g_canonicalize_filename(name, NULL);
    json_t *seen = json_object();
    tool_json_set(seen, "name", tool_json_text(whole));
    tool_json_set(seen, "path", tool_json_text(real));
    esdm_status status = ESDM_OK;
    if (S_ISDIR(is.st_mode))
        status = see_store(seen, real, &newest_ns, err);
    else
        see_file(seen, &is, &newest_ns);
    if (status == ESDM_OK) {
        /* Never equal to what is seen later. */
        if (is_fresh(newest_ns))
            tool_json_set(seen, "fresh", json_true());
        *ret_text = text_of(seen);
    }
    json_decref(seen);
    return status;
}

bool
cp_seen_equal(const char *then, const char *now)
{
    json_t *a = tool_json_read(then, -1, 0, NULL), *b = tool_json_read(now, -1, 0, NULL);
    bool equal = json_object_get(a, "fresh") == NULL;
    (void) json_object_del(b, "fresh");
    (void) json_object_del(a, CP_SEEN_KEPT); /* an older esdm-ref did not have it */
    (void) json_object_del(b, CP_SEEN_KEPT);
    equal = equal && json_equal(a, b) == 1;
    json_decref(a);
    json_decref(b);
    return equal;
}

char *
cp_seen_name(const char *text)
{
    json_t *seen = tool_json_read(text, -1, 0, NULL);
    const char *name = json_string_value(json_object_get(seen, "name"));
    char *copy = g_strdup(name);
    json_decref(seen);
    return copy;
}
