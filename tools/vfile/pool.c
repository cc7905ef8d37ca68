/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "vfile/pool.h"

#include <glib.h>

struct vfile_pool {
    tool_pool *files;
};

typedef struct wanted {
    const char *name;
    uint64_t snapshot;
    esdm_vfile_format format;
} wanted;

static esdm_status
open_file(void *user, const void *what, void **ret_file, esdm_error *err)
{
    const wanted *w = what;
    esdm_vfile *file = NULL;
    esdm_status status = esdm_vfile_open(user, w->name, w->snapshot, w->format, &file, err);
    *ret_file = file;
    return status;
}

static void
close_file(void *file)
{
    esdm_vfile_close(file);
}

vfile_pool *
vfile_pool_new(esdm_session *session, unsigned most_idle)
{
    vfile_pool *pool = g_new0(vfile_pool, 1);
    pool->files = tool_pool_new(open_file, close_file, session, most_idle);
    return pool;
}

void
vfile_pool_free(vfile_pool *pool)
{
    if (pool == NULL)
        return;
    tool_pool_free(pool->files);
    g_free(pool);
}

esdm_status
vfile_pool_get(vfile_pool *pool, const char *name, uint64_t created_ns, uint64_t snapshot,
               esdm_vfile_format format, vfile_shared **ret_file, esdm_error *err)
{
    const wanted what = {.name = name, .snapshot = snapshot, .format = format};
    g_autofree char *key =
        g_strdup_printf("%s\n%" G_GUINT64_FORMAT "\n%" G_GUINT64_FORMAT "\n%d", name,
                        (guint64) created_ns, (guint64) snapshot, (int) format);
    return tool_pool_get(pool->files, key, &what, ret_file, err);
}

void
vfile_pool_put(vfile_pool *pool, vfile_shared *file)
{
    tool_pool_put(pool->files, file);
}

esdm_vfile *
vfile_of(const vfile_shared *file)
{
    return tool_held_thing(file);
}
