/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "esdm-gc.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct search {
    GHashTable *named; /* by stubs: container → itself */
    GPtrArray *names;
    guint64 newest_ns; /* containers that were changed later are left out */
    guint64 young;     /* how many these are */
} search;

/* ---- stubs -------------------------------------------------------------------------------- */

static void
note_name(char *name, void *user)
{
    search *s = user;
    g_hash_table_add(s->named, name);
}

static tool_exit
look_into(search *s, const char *path)
{
    unsigned char bytes[TOOL_STUB_BYTES];
    /* Not blocking: somebody may have put a FIFO in its place. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return TOOL_OK;
    ssize_t size = fd < 0 ? -1 : pread(fd, bytes, sizeof bytes, 0);
    int why = errno;
    if (fd >= 0)
        (void) close(fd);
    if (size < 0) {
        tool_error("cannot read '%s', which may be a stub: %s; nothing is removed", path,
                   g_strerror(why));
        return TOOL_FAILED;
    }
    /* What merely looks like a stub keeps its container, too. */
    (void) tool_stub_names(bytes, (size_t) size, note_name, s);
    return TOOL_OK;
}

static tool_exit
walk(search *s, char *folder)
{
    char *const paths[] = {folder, NULL};
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    tool_exit result = tree != NULL ? TOOL_OK : TOOL_FAILED;
    FTSENT *entry = NULL;
    errno = 0;
    while (result == TOOL_OK && (entry = fts_read(tree)) != NULL) {
        if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR ||
            (entry->fts_info == FTS_NS && entry->fts_errno != ENOENT)) {
            tool_error("cannot look at '%s': %s; nothing is removed", entry->fts_path,
                       g_strerror(entry->fts_errno));
            result = TOOL_FAILED;
        } else if (entry->fts_info == FTS_F && S_ISREG(entry->fts_statp->st_mode) &&
                   entry->fts_statp->st_size <= TOOL_STUB_BYTES) {
            result = look_into(s, entry->fts_path);
        }
        errno = 0;
    }
    if (result == TOOL_OK && entry == NULL && errno != 0) {
        tool_error("cannot look through '%s': %s; nothing is removed", folder, g_strerror(errno));
        result = TOOL_FAILED;
    }
    if (tree != NULL)
        (void) fts_close(tree);
    return result;
}

/* ---- containers --------------------------------------------------------------------------- */

static bool
note_container(const esdm_container_info *info, void *user)
{
    search *s = user;
    if (g_hash_table_contains(s->named, info->name))
        return true;
    if (info->modified_ns <= s->newest_ns)
        g_ptr_array_add(s->names, g_strdup(info->name));
    else
        s->young++;
    return true;
}

/* What follows a name of which `above` is the beginning; NULL: it is not. */
static const char *
below(const char *name, const char *above)
{
    size_t bytes = strlen(above);
    while (bytes > 0 && above[bytes - 1] == '/')
        bytes--;
    if (strncmp(name, above, bytes) != 0)
        return NULL;
    return bytes == 0 || name[bytes] == '\0' ? name + bytes
           : name[bytes] == '/'              ? name + bytes + 1
                                             : NULL;
}

/* What a route calls the containers of a folder: NAME for what lies in the routed one, NAME/… below
 * it. NULL: the route is that of another folder. Owned. */
static char *
name_by_route(const char *routed, const char *name, const char *folder)
{
    char *real = realpath(routed, NULL);
    const char *rest = real != NULL && real[1] != '\0' ? below(folder, real) : NULL;
    free(real);
    if (rest == NULL)
        return NULL;
    return *rest != '\0' ? g_strdup_printf("%s/%s", name, rest) : g_strdup(name);
}

/* The entries of $ESDM_NC_ROUTE: FOLDER=NAME, or FOLDER alone. Owned. */
static GStrv
routes(void)
{
    const char *stated = g_getenv("ESDM_NC_ROUTE");
    return g_strsplit(stated != NULL ? stated : "", ":", -1);
}

/* What a route calls its containers; the entry is cut behind its folder. NULL: the folder's own
 * path would be their name, and it is not there. Owned. */
static char *
route_name(char *entry)
{
    char *name = strchr(entry, '=');
    if (name != NULL) {
        *name++ = '\0';
        return g_strdup(name + strspn(name, "/"));
    }
    char *real = realpath(entry, NULL);
    char *own = real != NULL ? g_strdup(real + 1) : NULL;
    free(real);
    return own;
}

/* By $ESDM_NC_ROUTE, whose first entry for the folder counts, else by the folder's own path. */
static char *
name_of(const char *folder)
{
    g_auto(GStrv) entries = routes();
    for (char **entry = entries; *entry != NULL; entry++) {
        g_autofree char *name = route_name(*entry);
        char *found = name != NULL ? name_by_route(*entry, name, folder) : NULL;
        if (found != NULL)
            return found;
    }
    return g_strdup(folder + 1);
}

/* Stubs of the containers called `prefix` may lie in folders of other routes, too; `walked` has
 * been looked through. */
static tool_exit
walk_routes(search *s, const char *walked, const char *prefix)
{
    g_auto(GStrv) entries = routes();
    tool_exit result = TOOL_OK;
    for (char **entry = entries; *entry != NULL && result == TOOL_OK; entry++) {
        g_autofree char *name = route_name(*entry);
        const char *rest = name != NULL ? below(prefix, name) : NULL;
        if (name == NULL || (rest == NULL && below(name, prefix) == NULL))
            continue;
        if (!g_file_test(*entry, G_FILE_TEST_IS_DIR)) {
            tool_error("ESDM_NC_ROUTE gives containers of '%s' stubs in '%s', which is not there; "
                       "nothing is removed",
                       prefix, *entry);
            return TOOL_REFUSED;
        }
        g_autofree char *folder = g_build_filename(*entry, rest, NULL);
        char *real = realpath(folder, NULL);
        bool absent = real == NULL && (errno == ENOENT || errno == ENOTDIR);
        if (real != NULL && below(real, walked) == NULL) {
            result = walk(s, real);
        } else if (real == NULL && (!absent || g_file_test(folder, G_FILE_TEST_IS_SYMLINK))) {
            tool_error("cannot look at '%s', where ESDM_NC_ROUTE gives containers of '%s' stubs; "
                       "nothing is removed",
                       folder, prefix);
            result = TOOL_FAILED;
        }
        free(real);
    }
    return result;
}

/* The folder as routes see it, and the name of its containers. A folder that is there has no name
 * behind it, whatever it is called. NULL: no such folder. Both owned. */
static char *
split(const char *argument, char **ret_prefix)
{
    g_autofree char *copy = g_strdup(argument);
    char *name = g_file_test(argument, G_FILE_TEST_IS_DIR) ? NULL : strchr(copy, '=');
    if (name != NULL)
        *name++ = '\0';
    char *folder = realpath(copy, NULL);
    if (folder == NULL || !g_file_test(folder, G_FILE_TEST_IS_DIR)) {
        tool_error("there is no folder '%s'", copy);
        free(folder);
        return NULL;
    }
    *ret_prefix = name != NULL ? g_strdup(name + strspn(name, "/")) : name_of(folder);
    return folder;
}

static tool_exit
list_containers(search *s, esdm_session *session, const char *prefix)
{
    esdm_error err = {0};
    if (prefix[0] == '\0') {
        tool_error("the whole file system is no routed folder");
        return TOOL_USAGE;
    }
    esdm_status status = esdm_container_list(session, prefix, note_container, s, &err);
    return status == ESDM_OK ? TOOL_OK : tool_fail(status, &err);
}

static tool_exit
search_folders(search *s, esdm_session *session, char **folders)
{
    g_autoptr(GPtrArray) prefixes = g_ptr_array_new_with_free_func(g_free);
    tool_exit result = TOOL_OK;
    /* A stub may have been moved from one folder to another: all are looked at first. */
    for (char **folder = folders; *folder != NULL && result == TOOL_OK; folder++) {
        char *prefix = NULL;
        char *path = split(*folder, &prefix);
        if (path == NULL)
            return TOOL_NOT_FOUND;
        g_ptr_array_add(prefixes, prefix);
        result = walk(s, path);
        if (result == TOOL_OK)
            result = walk_routes(s, path, prefix);
        free(path);
    }
    for (guint i = 0; i < prefixes->len && result == TOOL_OK; i++)
        result = list_containers(s, session, g_ptr_array_index(prefixes, i));
    if (result == TOOL_OK && s->names->len > 0 && g_hash_table_size(s->named) == 0) {
        g_autofree char *prefix = tool_printable(g_ptr_array_index(prefixes, 0));
        tool_error("no stub file at all was found: is the file system mounted? If it is, and all "
                   "stubs were removed, remove the containers with esdm-rm -r '%s'",
                   prefix);
        return TOOL_REFUSED;
    }
    return result;
}

tool_exit
gc_find_stubless(esdm_session *session, char **folders, uint64_t age_s, GPtrArray **ret_names,
                 guint64 *ret_young)
{
    guint64 now_ns = (guint64) g_get_real_time() * 1000;
    guint64 age_ns =
        MIN(age_s, now_ns / G_GUINT64_CONSTANT(1000000000)) * G_GUINT64_CONSTANT(1000000000);
    search s = {.named = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                .names = g_ptr_array_new_with_free_func(g_free),
                .newest_ns = now_ns - age_ns};
    tool_exit result = search_folders(&s, session, folders);
    g_hash_table_unref(s.named);
    *ret_young = s.young;
    if (result == TOOL_OK)
        *ret_names = s.names;
    else
        g_ptr_array_unref(s.names);
    return result;
}
