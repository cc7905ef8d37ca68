/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Files that are written: each lies in the staging folder until it is closed; esdm-cp then makes a
 * container of it, and verifies that. */

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "esdm-mount/esdm-mount.h"

#define FAILED ".failed"
#define WHY    ".why" /* behind that: a text */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static GHashTable *writers; /* path → how many have it open for writing */
static GHashTable *left;    /* paths with changes of writers that are gone, not taken in yet */

char *
mount_staged(const mount_state *state, const char *path)
{
    return state->staging != NULL ? g_build_filename(state->staging, path, NULL) : NULL;
}

static guint
count_writer(const char *path, int change)
{
    (void) pthread_mutex_lock(&lock);
    if (writers == NULL)
        writers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    guint count = GPOINTER_TO_UINT(g_hash_table_lookup(writers, path));
    count = (guint) ((int) count + change);
    if (count == 0)
        (void) g_hash_table_remove(writers, path);
    else
        (void) g_hash_table_insert(writers, g_strdup(path), GUINT_TO_POINTER(count));
    (void) pthread_mutex_unlock(&lock);
    return count;
}

static void
leave_changes(const char *path)
{
    (void) pthread_mutex_lock(&lock);
    if (left == NULL)
        left = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    (void) g_hash_table_add(left, g_strdup(path));
    (void) pthread_mutex_unlock(&lock);
}

/* Whether there are some; the caller takes care of them now. */
static bool
take_changes(const char *path)
{
    (void) pthread_mutex_lock(&lock);
    bool any = left != NULL && g_hash_table_remove(left, path);
    (void) pthread_mutex_unlock(&lock);
    return any;
}

int
mount_staged_open(const mount_state *state, const char *path, int flags, mount_open **ret_open)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    if (esdm_container_normalise(path, normal, NULL) != ESDM_OK || !g_str_equal(path, normal))
        return EINVAL;
    g_autofree char *file = mount_staged(state, path);
    g_autofree char *folder = g_path_get_dirname(file);
    if (g_mkdir_with_parents(folder, 0700) != 0)
        return errno;
    /* The kernel's end for O_APPEND may be that of a snapshot which others read. */
    int kept = flags & (O_CREAT | O_EXCL | O_TRUNC | O_APPEND);
    int wanted = kept | O_RDWR | O_CLOEXEC | O_NOFOLLOW;
    int fd = open(file, wanted, 0600);
    if (fd < 0)
        return errno;
    mount_open *opened = g_new0(mount_open, 1);
    opened->fd = fd;
    opened->path = g_strdup(path);
    opened->writes = (flags & O_ACCMODE) != O_RDONLY;
    opened->changed = (flags & (O_CREAT | O_TRUNC)) != 0;
    if (opened->writes)
        (void) count_writer(path, 1);
    *ret_open = opened;
    return 0;
}

/* ---- taking in ---------------------------------------------------------------------------- */

/* For who sees no more than that close() has failed: in the background messages go nowhere.
 * @param reason NULL: there is none any more. */
static void
leave_reason(const char *file, const char *reason)
{
    g_autofree char *name = g_strconcat(file, FAILED WHY, NULL);
    g_autofree char *text = reason != NULL ? g_strconcat(reason, "\n", NULL) : NULL;
    if (text == NULL)
        (void) unlink(name);
    else
        (void) g_file_set_contents(name, text, -1, NULL);
}

static bool
copy_in(const char *file, const char *path)
{
    g_autofree char *program = tool_beside("esdm-cp");
    g_autofree char *target = g_strconcat("esdm://", path, NULL);
    g_autofree char *config =
        tool.config != NULL ? g_strconcat("--config=", tool.config, NULL) : g_strdup("--quiet");
    g_autofree char *said = NULL;
    g_autoptr(GError) error = NULL;
    const char *arguments[] = {program, "--force", "--quiet", config, "--", file, target, NULL};
    int status = 0;
    bool good = g_spawn_sync(NULL, (char **) (uintptr_t) arguments, NULL,
                             G_SPAWN_SEARCH_PATH | G_SPAWN_STDOUT_TO_DEV_NULL, NULL, NULL, NULL,
                             &said, &status, &error) &&
                g_spawn_check_wait_status(status, &error);
    const char *reason = good                              ? NULL
                         : said != NULL && said[0] != '\0' ? g_strchomp(said)
                                                           : error->message;
    if (!good)
        tool_error("'%s' did not become a container: %s", file, reason);
    leave_reason(file, reason);
    return good;
}

/* Whether the open file still has its name: others may have removed or renamed it. */
static bool
has_name(const mount_open *opened, const char *file, struct stat *ret)
{
    struct stat named;
    return fstat(opened->fd, ret) == 0 && stat(file, &named) == 0 && named.st_ino == ret->st_ino &&
           named.st_dev == ret->st_dev;
}

int
mount_staged_flush(const mount_state *state, mount_open *opened)
{
    g_autofree char *file = mount_staged(state, opened->path);
    struct stat st;
    if (!opened->writes || count_writer(opened->path, 0) > 1)
        return 0;                                        /* the last one does it */
    if (!has_name(opened, file, &st) || st.st_size == 0) /* empty ones may still be written */
        return 0;
    opened->changed |= take_changes(opened->path);
    if (!opened->changed)
        return 0;
    opened->failed = !copy_in(file, opened->path);
    opened->changed = opened->failed; /* it stays until the end: more may be written */
    return opened->failed ? EIO : 0;
}

/* Changes that no flush took in, as another writer was about to go then, are taken in here. */
void
mount_staged_close(const mount_state *state, mount_open *opened)
{
    g_autofree char *file = mount_staged(state, opened->path);
    g_autofree char *failed = g_strconcat(file, FAILED, NULL);
    struct stat st;
    if (opened->writes && opened->changed)
        leave_changes(opened->path);
    if (opened->writes && count_writer(opened->path, -1) == 0) {
        bool changed = take_changes(opened->path);
        bool there = has_name(opened, file, &st);
        bool wanted = there && changed && st.st_size > 0;
        if (wanted && (opened->failed || !copy_in(file, opened->path)))
            (void) rename(file, failed);
        else if (there && (wanted || !changed))
            (void) unlink(file);
    }
    (void) close(opened->fd);
    g_free(opened->path);
    g_free(opened);
}

/* ---- names -------------------------------------------------------------------------------- */

bool
mount_staged_find(const mount_state *state, const char *path, struct stat *ret)
{
    g_autofree char *file = mount_staged(state, path);
    return file != NULL && lstat(file, ret) == 0 &&
           (S_ISREG(ret->st_mode) || S_ISDIR(ret->st_mode));
}

bool
mount_staged_is_written(const mount_state *state, const char *path, struct stat *ret)
{
    return state->staging != NULL && count_writer(path, 0) > 0 &&
           mount_staged_find(state, path, ret) && S_ISREG(ret->st_mode);
}

int
mount_staged_rename(const mount_state *state, const char *from, const char *to)
{
    g_autofree char *old = mount_staged(state, from), *new = mount_staged(state, to);
    g_autofree char *folder = g_path_get_dirname(new);
    struct stat st;
    if (lstat(old, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 && count_writer(from, 0) > 0)
        return EBUSY; /* it becomes a container of this name when it is closed */
    if (g_mkdir_with_parents(folder, 0700) != 0)
        return errno;
    return rename(old, new) == 0 ? 0 : errno;
}

int
mount_staged_make_folder(const mount_state *state, const char *path)
{
    g_autofree char *file = mount_staged(state, path);
    g_autofree char *folder = g_path_get_dirname(file);
    if (g_mkdir_with_parents(folder, 0700) != 0)
        return errno;
    return g_mkdir(file, 0700) == 0 ? 0 : errno;
}

int
mount_staged_remove(const mount_state *state, const char *path)
{
    g_autofree char *file = mount_staged(state, path);
    return g_remove(file) == 0 ? 0 : errno;
}
