/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Views below @views: a folder for each value, and files at the last level. */

#include <errno.h>
#include <string.h>

#include "esdm-mount/esdm-mount.h"

static bool
note_view(const esdm_view_info *info, void *user)
{
    mount_add_entry(user, g_strdup(info->name), false);
    return true;
}

static bool
note_place(const esdm_view_entry *entry, void *user)
{
    mount_add_entry(user, g_strdup(entry->name), entry->is_last);
    return true;
}

int
mount_views_list(const mount_state *state, const char *place, GPtrArray *entries)
{
    esdm_error err = {0};
    esdm_status status = place[0] == '\0'
                             ? esdm_view_list(state->session, note_view, entries, &err)
                             : esdm_view_level(state->session, place, note_place, entries, &err);
    return status == ESDM_OK ? 0 : mount_failed(place, status, &err);
}

int
mount_views_find(mount_state *state, const mount_node *folder, const char *name, mount_node *ret)
{
    esdm_error err = {0};
    esdm_container_info info;
    g_autoptr(GPtrArray) entries = mount_entries_new();
    int wrong = mount_views_list(state, folder->path, entries);
    const mount_entry *found = NULL;
    for (guint i = 0; i < entries->len && found == NULL; i++) {
        const mount_entry *entry = g_ptr_array_index(entries, i);
        found = g_str_equal(entry->name, name) ? entry : NULL;
    }
    if (wrong != 0 || found == NULL)
        return wrong != 0 ? wrong : ENOENT;
    g_autofree char *place = folder->path[0] == '\0' ? g_strconcat(name, ":", NULL)
                                                     : g_strconcat(folder->path, "/", name, NULL);
    ret->fixed = true;
    ret->kind = MOUNT_VIEWS;
    if (found->is_file) {
        esdm_status status = esdm_container_stat(state->session, place, &info, &err);
        if (status != ESDM_OK)
            return status == ESDM_ENOENT ? ENOENT : mount_failed(place, status, &err);
        ret->path = g_steal_pointer(&place);
        mount_become_file(state, &info, info.snapshot, info.modified_ns, ret);
        return 0;
    }
    ret->path = g_steal_pointer(&place);
    return 0;
}
