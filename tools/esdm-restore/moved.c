/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Whether the file that stands for a container was moved, and not removed: a second one
 * would let a program that writes in its old place replace what the first one stands for. As the
 * router does before it replaces (netcdf-plugin/router/living.c), the folder above is looked
 * through. */

#include <errno.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/common.h"
#include "esdm-restore/file.h"

#define ENTRIES_MAX 200000 /* in all; further ones are not looked at */

static GHashTable *places;    /* of files that stand for containers, by name and number: path */
static GPtrArray *roots;      /* folders that were looked through */
static unsigned long entries; /* in them */

static char *
key_of(const char *name, guint64 number)
{
    return g_strdup_printf("%" G_GINT64_MODIFIER "x %s", number, name);
}

static bool
is_below(const char *path, const char *folder)
{
    size_t bytes = strlen(folder);
    return strncmp(path, folder, bytes) == 0 && (path[bytes] == '\0' || path[bytes] == '/');
}

static void
note(const char *path)
{
    guint64 number = 0;
    g_autofree char *name = tool_stub_original(path, &number);
    if (name != NULL)
        g_hash_table_insert(places, key_of(name, number), g_strdup(path));
}

/* What cannot be read is left out, and so is what nobody but others may have moved there. */
static void
look_through(char *root)
{
    char *const paths[] = {root, NULL};
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
    FTSENT *entry;
    while (tree != NULL && entries < ENTRIES_MAX && (entry = fts_read(tree)) != NULL) {
        entries++;
        if (entry->fts_info == FTS_D && entry->fts_level > 0 &&
            entry->fts_statp->st_uid != geteuid() && access(entry->fts_accpath, W_OK) != 0)
            (void) fts_set(tree, entry, FTS_SKIP);
        else if (entry->fts_info == FTS_F && S_ISREG(entry->fts_statp->st_mode) &&
                 entry->fts_statp->st_size <= TOOL_STUB_BYTES)
            note(entry->fts_path);
    }
    if (tree != NULL)
        (void) fts_close(tree);
}

/* The folder above, or the first one above that which is there: owned. */
static char *
root_of(const char *folder)
{
    struct stat is;
    char *root = g_path_get_dirname(folder);
    while (strlen(root) > 1 && stat(root, &is) != 0) {
        char *above = g_path_get_dirname(root);
        g_free(root);
        root = above;
    }
    return root;
}

const char *
restore_moved_to(const char *folder, const char *name, uint64_t number)
{
    g_autofree char *root = root_of(folder);
    if (places == NULL) {
        places = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
        roots = g_ptr_array_new_with_free_func(g_free);
    }
    bool looked = strlen(root) <= 1; /* all that there is would be too much */
    for (guint i = 0; i < roots->len && !looked; i++)
        looked = is_below(root, g_ptr_array_index(roots, i));
    if (!looked) {
        look_through(root);
        g_ptr_array_add(roots, g_steal_pointer(&root));
    }
    g_autofree char *key = key_of(name, number);
    return g_hash_table_lookup(places, key);
}
