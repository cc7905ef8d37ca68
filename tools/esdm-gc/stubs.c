/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Stubs in routed folders: which containers have none any more, and which stubs have no
 * container. */

#include "esdm-gc/search.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- stubs -------------------------------------------------------------------------------- */

static void
note_name(char *name, void *user)
{
    gc_search *s = user;
    g_hash_table_add(s->named, name);
}

/* A stub tells where it was made, and how the container is called: NAME/sub/a.nc of FOLDER/sub/a.nc
 * was made below a folder that was routed to NAME, which ESDM_NC_ROUTE need not say any more. */
static void
note_origin(gc_search *s, const unsigned char *bytes, size_t size)
{
    g_autofree char *container = NULL;
    g_autofree char *path = NULL;
    guint64 number = 0;
    if (!tool_stub_origin(bytes, size, &container, &path, &number))
        return;
    g_hash_table_add(s->numbers, gc_number(number));
    size_t above = s->folder != NULL ? strlen(s->folder) : 0;
    if (s->folder == NULL || strncmp(path, s->folder, above) != 0 || path[above] != '/')
        return;
    const char *rest = path + above; /* with its slash */
    size_t length = strlen(container);
    size_t rest_length = strlen(rest);
    if (length > rest_length && strcmp(container + length - rest_length, rest) == 0)
        g_hash_table_add(s->prefixes, g_strndup(container, length - rest_length));
}

/* An errno: it cannot be read. */
static int
look_into(gc_search *s, const char *path)
{
    unsigned char bytes[TOOL_STUB_BYTES];
    /* Not blocking: somebody may have put a FIFO in its place. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return 0;
    struct stat is;
    ssize_t size = fd < 0 || fstat(fd, &is) != 0 ? -1 : pread(fd, bytes, sizeof bytes, 0);
    int why = errno;
    if (fd >= 0)
        (void) close(fd);
    if (size < 0)
        return why;
    /* What merely looks like a stub keeps its container, too. */
    (void) tool_stub_names(bytes, (size_t) size, note_name, s);
    note_origin(s, bytes, (size_t) size);
    if (s->folder != NULL && is.st_size == size)
        gc_note_stub(s, path, bytes, (size_t) size, &is);
    return 0;
}

static tool_exit
walk(gc_search *s, char *folder)
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
            int why = look_into(s, entry->fts_path);
            if (why != 0) {
                tool_error("cannot read '%s', which may be a stub: %s; nothing is removed",
                           entry->fts_path, g_strerror(why));
                result = TOOL_FAILED;
            }
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

bool
gc_look_at_folder(gc_search *s, const char *folder)
{
    GDir *all = g_dir_open(folder, 0, NULL);
    const char *name;
    bool readable = all != NULL;
    while (all != NULL && readable && (name = g_dir_read_name(all)) != NULL) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        struct stat is;
        if (lstat(path, &is) != 0)
            readable = errno == ENOENT;
        else if (S_ISREG(is.st_mode) && is.st_size <= TOOL_STUB_BYTES)
            readable = look_into(s, path) == 0;
    }
    if (all != NULL)
        g_dir_close(all);
    return readable;
}

/* ---- containers --------------------------------------------------------------------------- */

/* Stubs of the containers called `prefix` may lie in folders of other routes, too; `walked` has
 * been looked through. */
tool_exit
gc_walk_routes(gc_search *s, const char *walked, const char *prefix)
{
    g_auto(GStrv) entries = gc_routes();
    tool_exit result = TOOL_OK;
    for (char **entry = entries; *entry != NULL && result == TOOL_OK; entry++) {
        g_autofree char *name = gc_route_name(*entry);
        const char *rest = name != NULL ? gc_below(prefix, name) : NULL;
        if (name == NULL || (rest == NULL && gc_below(name, prefix) == NULL))
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
        if (real != NULL && gc_below(real, walked) == NULL) {
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

/* Whether one of the arguments names these containers. */
static bool
is_stated(char **folders, const char *path, const char *prefix)
{
    bool found = false;
    for (char **folder = folders; *folder != NULL && !found; folder++) {
        g_autofree char *stated = NULL;
        char *same = gc_split(*folder, &stated);
        found = same != NULL && strcmp(same, path) == 0 && gc_below(prefix, stated) != NULL;
        free(same);
    }
    return found;
}

static void
other_free(gpointer item)
{
    gc_other *other = item;
    g_free(other->folder);
    g_free(other->prefix);
    g_free(other);
}

/* Notes the names of routes by which containers were made here, but for those that were asked for.
 */
static void
note_other_names(gc_search *s, const char *path, char **folders, const char *prefix)
{
    GHashTableIter all;
    gpointer name;
    g_hash_table_iter_init(&all, s->prefixes);
    while (g_hash_table_iter_next(&all, &name, NULL)) {
        if (gc_below(name, prefix) != NULL || is_stated(folders, path, name))
            continue;
        gc_other *other = g_new0(gc_other, 1);
        other->folder = g_strdup(path);
        other->prefix = g_strdup(name);
        g_ptr_array_add(s->others, other);
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
search_folders(gc_search *s, esdm_session *session, char **folders)
{
    tool_exit result = TOOL_OK;
    /* A stub may have been moved from one folder to another: all are looked at first. */
    for (char **folder = folders; *folder != NULL && result == TOOL_OK; folder++) {
        char *prefix = NULL;
        char *path = gc_split(*folder, &prefix);
        if (path == NULL)
            return TOOL_NOT_FOUND;
        g_ptr_array_add(s->wanted, prefix);
        g_ptr_array_add(s->folders, g_strdup(path));
        s->folder = path;
        result = walk(s, path);
        s->folder = NULL;
        if (result == TOOL_OK)
            note_other_names(s, path, folders, prefix);
        if (result == TOOL_OK)
            result = gc_walk_routes(s, path, prefix);
        free(path);
        if (result == TOOL_OK && prefix[0] == '\0') {
            tool_error("the whole file system is no routed folder");
            result = TOOL_USAGE;
        }
    }
    if (result == TOOL_OK)
        result = gc_find_candidates(s, session);
    if (result == TOOL_OK && s->found + g_hash_table_size(s->named) == 0)
        tell_unknown_names(folders, s->wanted);
    if (result == TOOL_OK && s->result->names->len > 0 && g_hash_table_size(s->named) == 0) {
        g_autofree char *prefix = tool_printable(s->prefix);
        tool_error("no stub file at all was found: is the file system mounted? If it is, and all "
                   "stubs were removed, remove the containers with esdm-rm -r '%s'",
                   prefix);
        return TOOL_REFUSED;
    }
    return result;
}

static GHashTable *
new_texts(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

void
gc_found_init(gc_found *found)
{
    *found = (gc_found){.names = g_ptr_array_new_with_free_func(g_free),
                        .stubs = g_ptr_array_new_with_free_func(gc_stub_free)};
}

void
gc_found_clear(gc_found *found)
{
    g_ptr_array_unref(found->names);
    g_ptr_array_unref(found->stubs);
}

tool_exit
gc_find_stubless(esdm_session *session, char **folders, uint64_t age_s, gc_found *found)
{
    guint64 now_ns = (guint64) g_get_real_time() * 1000;
    guint64 age_ns =
        MIN(age_s, now_ns / G_GUINT64_CONSTANT(1000000000)) * G_GUINT64_CONSTANT(1000000000);
    gc_search s = {.named = new_texts(),
                   .numbers = new_texts(),
                   .prefixes = new_texts(),
                   .living = new_texts(),
                   .held = new_texts(),
                   .folders = g_ptr_array_new_with_free_func(g_free),
                   .wanted = g_ptr_array_new_with_free_func(g_free),
                   .others = g_ptr_array_new_with_free_func(other_free),
                   .stubs = g_ptr_array_new_with_free_func(gc_stub_free),
                   .result = found,
                   .newest_ns = now_ns - age_ns};
    tool_exit result = search_folders(&s, session, folders);
    if (result == TOOL_OK)
        gc_find_gone(&s, session);
    GHashTable *texts[] = {s.named, s.numbers, s.prefixes, s.living, s.held};
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
        g_hash_table_unref(texts[i]);
    GPtrArray *arrays[] = {s.folders, s.wanted, s.others, s.stubs};
    for (size_t i = 0; i < G_N_ELEMENTS(arrays); i++)
        g_ptr_array_unref(arrays[i]);
    g_free(s.prefix);
    return result;
}
