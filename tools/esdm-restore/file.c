/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The file that stands for a container in a folder: it was removed with the container, and
 * comes back with it. */

#include "esdm-restore/file.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "common/common.h"
#include "esdm/history.h"
#include "router/stub_build.h"

/* Programs that find the name taken get NAME~2: the file is called otherwise, and nothing tells
 * how. */
static bool
is_another(const char *base)
{
    const char *number = strrchr(base, '~');
    return number != NULL && number[1] != '\0' &&
           strspn(number + 1, "0123456789") == strlen(number + 1);
}

/* Where the file lay, as far as the folder is the same one. Owned; NULL: it has none, or not here.
 */
static char *
path_of(esdm_session *session, const esdm_container *container)
{
    char place[ESDM_STUB_PLACE_BYTES];
    const char *folder = esdm_container_stub_folder(container);
    g_autofree char *base = g_path_get_basename(esdm_container_name(container));
    /* Brought back under another name, which never had a file; a program's mv renames both. */
    bool never =
        esdm_container_restored_ns(container) != 0 && esdm_container_stub_is_renamed(container);
    if (folder == NULL || is_another(base) || never)
        return NULL;
    esdm_stub_place(session, folder, place);
    return esdm_container_stub_is_at(container, place) ? g_build_filename(folder, base, NULL)
                                                       : NULL;
}

/* 0 or an errno. */
static int
put(esdm_session *session, const char *path, const char *name, uint64_t number, uint64_t version)
{
    char absolute[PATH_MAX];
    g_autofree char *folder = g_path_get_dirname(path);
    if (g_mkdir_with_parents(folder, 0777) != 0) /* rm -r has taken the folder, too */
        return errno;
    return esdmnc__stub_put(path, false, name, number, version, esdm_session_site_id(session),
                            absolute);
}

restore_file
restore_file_put(esdm_session *session, const char *name, bool dry_run, char **ret_path)
{
    esdm_container *container = NULL;
    esdm_error ignored;
    uint64_t version = 0;
    struct stat is;
    *ret_path = NULL;
    if (esdm_container_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container,
                            &ignored) != ESDM_OK)
        return RESTORE_FILE_NONE;
    uint64_t number = esdm_container_stub(container, &version);
    char *path = number != 0 ? path_of(session, container) : NULL;
    restore_file done = path == NULL ? RESTORE_FILE_NONE : RESTORE_FILE_THERE;
    bool missing = path != NULL && lstat(path, &is) != 0 && errno == ENOENT;
    const char *moved =
        missing ? restore_moved_to(esdm_container_stub_folder(container), name, number) : NULL;
    if (moved != NULL) {
        g_free(path);
        path = g_strdup(moved);
        done = RESTORE_FILE_MOVED;
    } else if (missing) {
        int failed = dry_run ? 0 : put(session, path, name, number, version);
        done = failed == 0        ? RESTORE_FILE_PUT
               : failed == EEXIST ? RESTORE_FILE_THERE
                                  : RESTORE_FILE_FAILED;
        if (done == RESTORE_FILE_FAILED)
            tool_error(
                "the file '%s' that stood for '%s' cannot be put back: %s; the container is read "
                "as 'esdm://%s'",
                path, name, g_strerror(failed), name);
    }
    esdm_container_discard(container);
    *ret_path = path;
    return done;
}
