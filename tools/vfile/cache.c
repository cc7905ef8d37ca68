/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* The folder of sparse files. A file is whole when it has its name, and never changes. */

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "vfile/cache.h"

#define MOST_BYTES (256u << 20) /* on disk, of all files together */

#define LEFT_BEHIND_S 3600

static char *folder; /* owned; set before threads are */

void
esdm_vfile_set_cache(const char *path)
{
    g_free(folder);
    folder = g_strdup(path);
}

/* What is not ours alone could be changed by others. */
static bool
is_own(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           (st.st_mode & 022) == 0;
}

char *
vf_cache_path(const char *name, esdm_error *err)
{
    if (folder == NULL)
        folder = g_build_filename(g_get_user_cache_dir(), "esdm", "vfile", NULL);
    if (g_mkdir_with_parents(folder, 0700) != 0) {
        (void) tool_error_set(err, ESDM_EACCES, "cannot make the folder '%s' for headers: %s",
                              folder, g_strerror(errno));
        return NULL;
    }
    if (!is_own(folder)) {
        (void) tool_error_set(
            err, ESDM_EACCES,
            "'%s' is not yours alone, so headers are not kept there: name another "
            "folder with XDG_CACHE_HOME",
            folder);
        return NULL;
    }
    return g_build_filename(folder, name, NULL);
}

typedef struct cached {
    char *path;
    gint64 time_ns;
    uint64_t bytes;
} cached;

static void
free_cached(gpointer data)
{
    cached *c = data;
    g_free(c->path);
    g_free(c);
}

static gint
oldest_first(gconstpointer a, gconstpointer b)
{
    const cached *x = *(cached *const *) a, *y = *(cached *const *) b;
    return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

void
vf_cache_trim(void)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    g_autoptr(GPtrArray) files = g_ptr_array_new_with_free_func(free_cached);
    uint64_t bytes = 0;
    const char *name;
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        struct stat st;
        cached c = {.path = g_build_filename(folder, name, NULL)};
        bool whole = g_str_has_suffix(name, ".vfile"), known = lstat(c.path, &st) == 0;
        if (!whole && known && strstr(name, ".vfile.") != NULL &&
            st.st_mtim.tv_sec < time(NULL) - LEFT_BEHIND_S)
            (void) unlink(c.path); /* a program was killed while it made one */
        if (!whole || !known) {
            g_free(c.path);
            continue;
        }
        c.time_ns = (gint64) st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
        c.bytes = (uint64_t) st.st_blocks * 512;
        bytes += c.bytes;
        g_ptr_array_add(files, g_memdup2(&c, sizeof c));
    }
    g_ptr_array_sort(files, oldest_first);
    for (guint i = 0; i < files->len && bytes > MOST_BYTES; i++) {
        const cached *c = g_ptr_array_index(files, i);
        (void) unlink(c->path); /* who has it open goes on reading it */
        bytes -= MIN(bytes, c->bytes);
    }
}

esdm_status
vf_cache_keep(const char *made, const char *path, esdm_error *err)
{
    int fd = open(made, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && fsync(fd) == 0 && chmod(made, 0400) == 0 && rename(made, path) == 0;
    int why = errno;
    if (fd >= 0)
        (void) close(fd);
    if (good)
        return ESDM_OK;
    return tool_error_set(err, why == ENOSPC ? ESDM_ENOSPC : ESDM_EIO,
                          "cannot keep the header '%s': %s", path, g_strerror(why));
}
