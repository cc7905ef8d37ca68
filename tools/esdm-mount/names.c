/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What stands under which name: containers, the folders in their names, and their snapshots. */

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "esdm-mount/esdm-mount.h"

char *
mount_path_below(const mount_node *folder, const char *name)
{
    return folder->path[0] == '\0' ? g_strdup(name) : g_strconcat(folder->path, "/", name, NULL);
}

static bool
note_any(const esdm_container_info *info, void *user)
{
    (void) info;
    *(bool *) user = true;
    return false;
}

/* Whether there are containers below a path. */
static int
is_folder(mount_state *state, const char *path)
{
    bool any = false;
    esdm_error err = {0};
    esdm_status status = esdm_container_list(state->session, path, note_any, &any, &err);
    if (status != ESDM_OK)
        return mount_failed(path, status, &err);
    return any ? 0 : ENOENT;
}

/* ---- files -------------------------------------------------------------------------------- */

/* How large files are that were looked at: who lists a folder asks for them all. */
static pthread_mutex_t sizes_lock = PTHREAD_MUTEX_INITIALIZER;
static GHashTable *sizes;
#define MOST_SIZES 100000u

static uint64_t
file_size(mount_state *state, const mount_node *node)
{
    vfile_shared *file = NULL;
    esdm_error err = {0};
    g_autofree char *key =
        g_strdup_printf("%" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %s",
                        (guint64) node->created_ns, (guint64) node->snapshot, node->path);
    (void) pthread_mutex_lock(&sizes_lock);
    if (sizes == NULL || g_hash_table_size(sizes) > MOST_SIZES) {
        if (sizes != NULL)
            g_hash_table_unref(sizes);
        sizes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    }
    const uint64_t *known = g_hash_table_lookup(sizes, key);
    uint64_t size = known != NULL ? *known : 0;
    (void) pthread_mutex_unlock(&sizes_lock);
    if (known != NULL)
        return size;
    esdm_status status = vfile_pool_get(state->files, node->path, node->created_ns, node->snapshot,
                                        state->format, &file, &err);
    if (status != ESDM_OK) {
        (void) mount_failed(node->path, status, &err);
        return 0; /* opening it tells more */
    }
    size = esdm_vfile_size(vfile_of(file));
    vfile_pool_put(state->files, file);
    (void) pthread_mutex_lock(&sizes_lock);
    (void) g_hash_table_insert(sizes, g_steal_pointer(&key), g_memdup2(&size, sizeof size));
    (void) pthread_mutex_unlock(&sizes_lock);
    return size;
}

void
mount_become_file(mount_state *state, const esdm_container_info *info, uint64_t snapshot,
                  uint64_t time_ns, mount_node *node)
{
    node->kind = MOUNT_FILE;
    node->snapshot = snapshot;
    node->created_ns = snapshot != 0 ? info->created_ns : time_ns; /* a query has no snapshot */
    node->time_ns = time_ns;
    node->stored_bytes = info->stored_bytes;
    node->size = file_size(state, node);
}

/* ---- snapshots ---------------------------------------------------------------------------- */

typedef struct seeker {
    uint64_t wanted, time_ns;
    GPtrArray *names; /* of all; NULL: one is sought */
} seeker;

void
mount_add_entry(GPtrArray *entries, char *name, bool is_file)
{
    mount_entry *entry = g_new0(mount_entry, 1);
    *entry = (mount_entry){.name = name, .is_file = is_file};
    g_ptr_array_add(entries, entry);
}

static bool
visit_snapshot(const esdm_snapshot_info *info, void *user)
{
    seeker *s = user;
    if (s->names != NULL)
        mount_add_entry(s->names, g_strdup_printf("%" G_GUINT64_FORMAT, (guint64) info->snapshot),
                        true);
    if (info->snapshot == s->wanted)
        s->time_ns = info->time_ns;
    return true;
}

static int
find_snapshot(mount_state *state, const mount_node *folder, const esdm_container_info *info,
              const char *name, mount_node *ret)
{
    guint64 number = 0;
    esdm_error err = {0};
    if (!g_ascii_string_to_unsigned(name, 10, 1, G_MAXUINT64, &number, NULL) || name[0] == '0')
        return ENOENT;
    seeker s = {.wanted = number};
    esdm_status status =
        esdm_container_snapshots(state->session, folder->path, visit_snapshot, &s, &err);
    if (status != ESDM_OK)
        return mount_failed(folder->path, status, &err);
    if (s.time_ns == 0)
        return ENOENT;
    ret->path = g_strdup(folder->path);
    mount_become_file(state, info, number, s.time_ns, ret);
    ret->fixed = true;
    return 0;
}

/* ---- both --------------------------------------------------------------------------------- */

/* 0: there is such a container. */
static int
find_container(mount_state *state, const char *path, esdm_container_info *ret_info)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    if (path[0] == '\0' || esdm_container_normalise(path, normal, NULL) != ESDM_OK ||
        !g_str_equal(path, normal))
        return ENOENT;
    esdm_error err = {0};
    esdm_status status = esdm_container_stat(state->session, path, ret_info, &err);
    if (status == ESDM_ENOENT)
        return ENOENT;
    return status == ESDM_OK ? 0 : mount_failed(path, status, &err);
}

int
mount_find(mount_state *state, const mount_node *folder, const char *name, mount_node *ret)
{
    esdm_container_info info;
    *ret = (mount_node){.time_ns = state->mounted_ns};
    if (folder->kind == MOUNT_FOLDER && folder->path[0] == '\0' &&
        g_str_equal(name, MOUNT_SNAPSHOTS)) {
        ret->kind = MOUNT_HISTORY;
        ret->path = g_strdup("");
        return 0;
    }
    if (folder->kind == MOUNT_FOLDER && folder->path[0] == '\0' &&
        g_str_equal(name, MOUNT_VIEWS_NAME)) {
        ret->kind = MOUNT_VIEWS;
        ret->path = g_strdup("");
        return 0;
    }
    if (folder->kind == MOUNT_VIEWS)
        return mount_views_find(state, folder, name, ret);
    if (folder->kind == MOUNT_HISTORY && find_container(state, folder->path, &info) == 0)
        return find_snapshot(state, folder, &info, name, ret);
    ret->path = mount_path_below(folder, name);
    int wrong = find_container(state, ret->path, &info);
    if (wrong == 0 && folder->kind == MOUNT_FOLDER) {
        mount_become_file(state, &info, info.snapshot, info.modified_ns, ret);
        return 0;
    }
    ret->kind = folder->kind;
    if (wrong == ENOENT)
        wrong = is_folder(state, ret->path);
    struct stat st;
    if (wrong == ENOENT && folder->kind == MOUNT_FOLDER &&
        mount_staged_find(state, ret->path, &st)) {
        ret->kind = S_ISDIR(st.st_mode) ? MOUNT_FOLDER : MOUNT_STAGED;
        wrong = 0;
    }
    if (wrong != 0)
        g_clear_pointer(&ret->path, g_free);
    return wrong;
}

typedef struct lister {
    size_t skip; /* bytes of the folder's name and the slash */
    bool files;  /* containers are files, not folders */
    GPtrArray *entries;
} lister;

static bool
visit_container(const esdm_container_info *info, void *user)
{
    lister *l = user;
    if (strlen(info->name) <= l->skip)
        return true;
    const char *name = info->name + l->skip;
    size_t length = strcspn(name, "/");
    const mount_entry *before =
        l->entries->len > 0 ? g_ptr_array_index(l->entries, l->entries->len - 1) : NULL;
    if (before != NULL && strlen(before->name) == length &&
        strncmp(before->name, name, length) == 0)
        return true; /* they come by their names */
    mount_add_entry(l->entries, g_strndup(name, length), l->files && name[length] == '\0');
    return true;
}

static void
free_entry(gpointer data)
{
    mount_entry *entry = data;
    g_free(entry->name);
    g_free(entry);
}

GPtrArray *
mount_entries_new(void)
{
    return g_ptr_array_new_with_free_func(free_entry);
}

/* Names with signs below '/' may stand between those of a folder. */
static void
drop_repeated(GPtrArray *entries)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < entries->len;) {
        const mount_entry *entry = g_ptr_array_index(entries, i);
        if (g_hash_table_add(seen, entry->name))
            i++;
        else
            g_ptr_array_remove_index(entries, i);
    }
}

/* Files that are being written, that did not become containers, and folders without any. */
static void
list_staged(const mount_state *state, const char *path, GPtrArray *entries)
{
    g_autofree char *folder = mount_staged(state, path);
    g_autoptr(GDir) dir = folder != NULL ? g_dir_open(folder, 0, NULL) : NULL;
    const char *name;
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *file = g_build_filename(folder, name, NULL);
        mount_add_entry(entries, g_strdup(name), !g_file_test(file, G_FILE_TEST_IS_DIR));
    }
}

GPtrArray *
mount_list(mount_state *state, const mount_node *folder, int *ret_errno)
{
    esdm_error err = {0};
    esdm_container_info info;
    g_autoptr(GPtrArray) entries = mount_entries_new();
    if (folder->kind == MOUNT_VIEWS) {
        *ret_errno = mount_views_list(state, folder->path, entries);
        return *ret_errno == 0 ? g_steal_pointer(&entries) : NULL;
    }
    const char *prefix = folder->path[0] != '\0' ? folder->path : NULL;
    esdm_status status;
    if (folder->kind == MOUNT_HISTORY && find_container(state, folder->path, &info) == 0) {
        seeker s = {.names = entries};
        status = esdm_container_snapshots(state->session, folder->path, visit_snapshot, &s, &err);
    } else {
        lister l = {.skip = prefix != NULL ? strlen(prefix) + 1 : 0,
                    .files = folder->kind == MOUNT_FOLDER,
                    .entries = entries};
        status = esdm_container_list(state->session, prefix, visit_container, &l, &err);
        if (folder->kind == MOUNT_FOLDER)
            list_staged(state, folder->path, entries);
        drop_repeated(entries);
    }
    if (status != ESDM_OK) {
        *ret_errno = mount_failed(folder->path, status, &err);
        return NULL;
    }
    return g_steal_pointer(&entries);
}
