/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Stubs in routed folders: which containers have none any more, and which stubs have no
 * container. */

#include "esdm-gc/esdm-gc.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct search {
    GHashTable *named;    /* by stubs: container → itself */
    GHashTable *prefixes; /* of containers made in `folder`: prefix → itself */
    GHashTable *listed;   /* containers that were looked at: name → itself */
    const char *folder;   /* NULL: prefixes are not looked for */
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

/* A stub tells where it was made, and how the container is called: NAME/sub/a.nc of FOLDER/sub/a.nc
 * was made below a folder that was routed to NAME, which ESDM_NC_ROUTE need not say any more. */
static void
note_prefix(search *s, const unsigned char *bytes, size_t size)
{
    g_autofree char *container = NULL;
    g_autofree char *path = NULL;
    if (s->folder == NULL || !tool_stub_origin(bytes, size, &container, &path))
        return;
    size_t above = strlen(s->folder);
    if (strncmp(path, s->folder, above) != 0 || path[above] != '/')
        return;
    const char *rest = path + above; /* with its slash */
    size_t length = strlen(container);
    size_t rest_length = strlen(rest);
    if (length > rest_length && strcmp(container + length - rest_length, rest) == 0)
        g_hash_table_add(s->prefixes, g_strndup(container, length - rest_length));
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
    note_prefix(s, bytes, (size_t) size);
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
    if (g_hash_table_contains(s->named, info->name) ||
        !g_hash_table_add(s->listed, g_strdup(info->name))) /* of two prefixes */
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
    const char *rest = real != NULL ? below(folder, real) : NULL;
    free(real);
    if (rest == NULL)
        return NULL;
    rest += strspn(rest, "/"); /* below the root */
    if (name[0] == '\0')
        return g_strdup(rest);
    return *rest != '\0' ? g_strdup_printf("%s/%s", name, rest) : g_strdup(name);
}

/* Splits the FOLDER of an entry where its first component with a wildcard begins; NULL: it has
 * none, or is a folder that is there. Owned. "*" alone stands for the whole file system. */
static char *
split_pattern(const char *entry, const char **ret_pattern)
{
    size_t length = strcspn(entry, "=");
    size_t fixed = strcspn(entry, "*?[");
    g_autofree char *folder = g_strndup(entry, length);
    if (fixed >= length || (strcmp(folder, "*") != 0 && g_file_test(folder, G_FILE_TEST_EXISTS)))
        return NULL;
    while (fixed > 0 && entry[fixed - 1] != '/')
        fixed--;
    *ret_pattern = entry + fixed;
    return strcmp(folder, "*") == 0 ? g_strdup("/")
           : fixed == 0             ? g_strdup(".")
                                    : g_strndup(entry, fixed);
}

/* Names go on from what lies before the first wildcard, so that a pattern is as good as that folder
 * (netcdf-plugin/router/routes.c). Takes and gives an owned FOLDER or FOLDER=NAME. */
static char *
without_pattern(char *entry)
{
    const char *pattern = NULL;
    g_autofree char *fixed = split_pattern(entry, &pattern);
    if (fixed == NULL)
        return entry;
    char *plain = g_strconcat(fixed, strchr(entry, '='), NULL);
    g_free(entry);
    return plain;
}

/* Whether files in a real folder may be routed by an entry. */
static bool
may_fit(const char *entry, const char *folder)
{
    const char *pattern = NULL;
    g_autofree char *fixed = split_pattern(entry, &pattern);
    if (fixed == NULL || strcspn(pattern, "=") == strspn(pattern, "*"))
        return true; /* "*" routes everything */
    char *real = realpath(fixed, NULL);
    const char *rest = real != NULL ? below(folder, real) : NULL;
    bool fits = rest != NULL && *rest == '\0'; /* it may be files that fit */
    free(real);
    g_autofree char *wanted = g_strndup(pattern, strcspn(pattern, "="));
    for (size_t bytes = strlen(wanted); bytes > 0 && wanted[bytes - 1] == '/'; bytes--)
        wanted[bytes - 1] = '\0';
    g_autofree char *part = g_strdup(rest != NULL ? rest : "");
    for (char *end = part + strlen(part); !fits && end != NULL && end > part;
         end = strrchr(part, '/')) {
        *end = '\0';
        fits = fnmatch(wanted, part, FNM_PATHNAME) == 0;
    }
    return fits;
}

static GStrv
stated_routes(void)
{
    const char *stated = g_getenv("ESDM_NC_ROUTE");
    return g_strsplit(stated != NULL ? stated : "", ":", -1);
}

/* The entries of $ESDM_NC_ROUTE: FOLDER=NAME, or FOLDER alone. Owned. */
static GStrv
routes(void)
{
    GStrv entries = stated_routes();
    for (char **entry = entries; *entry != NULL; entry++)
        *entry = without_pattern(*entry);
    return entries;
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
    g_auto(GStrv) stated = stated_routes();
    g_auto(GStrv) entries = routes();
    for (size_t i = 0; entries[i] != NULL; i++) {
        char **entry = &entries[i];
        if (!may_fit(stated[i], folder))
            continue;
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

/* Whether one of the arguments names these containers. */
static bool
is_stated(char **folders, const char *path, const char *prefix)
{
    bool found = false;
    for (char **folder = folders; *folder != NULL && !found; folder++) {
        g_autofree char *stated = NULL;
        char *same = split(*folder, &stated);
        found = same != NULL && strcmp(same, path) == 0 && below(prefix, stated) != NULL;
        free(same);
    }
    return found;
}

/* Containers that were made here under a NAME which nobody states now. Others may have stubs
 * elsewhere under the same NAME: they are not taken for stubless unasked. */
static void
tell_other_names(search *s, const char *path, char **folders, const char *prefix)
{
    GHashTableIter all;
    gpointer name;
    g_hash_table_iter_init(&all, s->prefixes);
    while (g_hash_table_iter_next(&all, &name, NULL)) {
        if (below(name, prefix) != NULL || is_stated(folders, path, name))
            continue;
        g_autofree char *option = g_strdup_printf("%s=%s", path, (const char *) name);
        g_autofree char *printable = tool_printable(option);
        tool_error("stubs in this folder stand for containers of a route to a name, which are not "
                   "looked at; if all their stubs are there: --stubs '%s'",
                   printable);
    }
    g_hash_table_remove_all(s->prefixes);
}

/* No stub tells under which name the folder was routed. */
static void
tell_unknown_names(char **folders, const GPtrArray *prefixes)
{
    for (guint i = 0; i < prefixes->len; i++) {
        g_autofree char *folder = tool_printable(folders[i]);
        g_autofree char *prefix = tool_printable(g_ptr_array_index(prefixes, i));
        tool_error(
            "there is no stub in '%s', and no container below '%s'; if the folder was routed "
            "as FOLDER=NAME, say --stubs FOLDER=NAME",
            folder, prefix);
    }
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
        s->folder = path;
        result = walk(s, path);
        s->folder = NULL;
        if (result == TOOL_OK)
            tell_other_names(s, path, folders, prefix);
        if (result == TOOL_OK)
            result = walk_routes(s, path, prefix);
        free(path);
    }
    for (guint i = 0; i < prefixes->len && result == TOOL_OK; i++)
        result = list_containers(s, session, g_ptr_array_index(prefixes, i));
    if (result == TOOL_OK && g_hash_table_size(s->listed) + g_hash_table_size(s->named) == 0)
        tell_unknown_names(folders, prefixes);
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
                .prefixes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                .listed = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                .names = g_ptr_array_new_with_free_func(g_free),
                .newest_ns = now_ns - age_ns};
    tool_exit result = search_folders(&s, session, folders);
    g_hash_table_unref(s.named);
    g_hash_table_unref(s.prefixes);
    g_hash_table_unref(s.listed);
    *ret_young = s.young;
    if (result == TOOL_OK)
        *ret_names = s.names;
    else
        g_ptr_array_unref(s.names);
    return result;
}
