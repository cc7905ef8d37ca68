/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What the kernel asks for when something is changed. Without --write it does not ask. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "esdm-mount/esdm-mount.h"

static mount_state *
state_of(fuse_req_t request)
{
    return fuse_req_userdata(request);
}

/* The path of a name in a folder; owned. NULL: nothing can be changed there. */
static char *
path_in(fuse_ino_t parent, const char *name)
{
    const mount_node *folder = mount_node_get(parent);
    if (folder == NULL || folder->kind != MOUNT_FOLDER ||
        (folder->path[0] == '\0' &&
         (g_str_equal(name, MOUNT_SNAPSHOTS) || g_str_equal(name, MOUNT_VIEWS_NAME))))
        return NULL;
    return mount_path_below(folder, name);
}

/* ---- files -------------------------------------------------------------------------------- */

void
mount_do_create(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode,
                struct fuse_file_info *fi)
{
    (void) mode;
    mount_open *opened = NULL;
    g_autofree char *path = path_in(parent, name);
    int wrong = path == NULL ? EACCES
                             : mount_staged_open(state_of(request), path,
                                                 fi->flags | O_CREAT | O_TRUNC, &opened);
    if (wrong != 0) {
        (void) fuse_reply_err(request, wrong);
        return;
    }
    mount_node like = {.kind = MOUNT_STAGED, .path = g_steal_pointer(&path)};
    const mount_node *node = mount_node_enter(&like);
    struct fuse_entry_param entry = mount_entry_of(state_of(request), node);
    fuse_ino_t number = node->number;
    fi->fh = (uintptr_t) opened;
    fi->direct_io = 1;
    mount_opened(opened);
    if (fuse_reply_create(request, &entry, fi) != 0) {
        mount_node_forget(number, 1);
        mount_closed(state_of(request), opened);
    }
}

void
mount_do_write(fuse_req_t request, fuse_ino_t number, const char *bytes, size_t size, off_t offset,
               struct fuse_file_info *fi)
{
    (void) number;
    mount_open *opened = (mount_open *) (uintptr_t) fi->fh;
    ssize_t written =
        opened->writes ? pwrite(opened->fd, bytes, size, offset) : (errno = EBADF, -1);
    if (written < 0) {
        (void) fuse_reply_err(request, errno);
        return;
    }
    opened->changed = true;
    opened->failed = false;
    (void) fuse_reply_write(request, (size_t) written);
}

void
mount_do_flush(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *fi)
{
    (void) number;
    (void) fuse_reply_err(request,
                          mount_staged_flush(state_of(request), (mount_open *) (uintptr_t) fi->fh));
}

void
mount_do_fsync(fuse_req_t request, fuse_ino_t number, int data_only, struct fuse_file_info *fi)
{
    (void) number;
    (void) data_only;
    const mount_open *opened = (const mount_open *) (uintptr_t) fi->fh;
    (void) fuse_reply_err(request, opened->file != NULL || fsync(opened->fd) == 0 ? 0 : errno);
}

static int
resize(const mount_state *state, const mount_node *node, const mount_open *opened, off_t size)
{
    if (opened != NULL && opened->file == NULL)
        return ftruncate(opened->fd, size) == 0 ? 0 : errno;
    if (node->kind != MOUNT_STAGED)
        return EOPNOTSUPP; /* containers are replaced as a whole */
    g_autofree char *file = mount_staged(state, node->path);
    return truncate(file, size) == 0 ? 0 : errno;
}

/* Times, owners and modes of containers are what they are; cp -p and rsync want no error. */
void
mount_do_setattr(fuse_req_t request, fuse_ino_t number, struct stat *st, int what,
                 struct fuse_file_info *fi)
{
    mount_state *state = state_of(request);
    const mount_node *node = mount_node_get(number);
    mount_open *opened = fi != NULL ? (mount_open *) (uintptr_t) fi->fh : NULL;
    int wrong = node == NULL ? ESTALE : 0;
    if (wrong == 0 && (what & FUSE_SET_ATTR_SIZE) != 0)
        wrong = resize(state, node, opened, st->st_size);
    if (wrong == 0 && (what & FUSE_SET_ATTR_SIZE) != 0 && opened != NULL)
        opened->changed = true;
    struct stat now;
    if (wrong == 0)
        wrong = mount_attributes(state, node, &now);
    if (wrong != 0)
        (void) fuse_reply_err(request, wrong);
    else
        (void) fuse_reply_attr(request, &now, 0);
}

/* ---- names -------------------------------------------------------------------------------- */

void
mount_do_mkdir(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode)
{
    (void) mode;
    mount_state *state = state_of(request);
    g_autofree char *path = path_in(parent, name);
    int wrong = path == NULL ? EACCES : mount_staged_make_folder(state, path);
    if (wrong != 0) {
        (void) fuse_reply_err(request, wrong);
        return;
    }
    mount_node like = {
        .kind = MOUNT_FOLDER, .path = g_steal_pointer(&path), .time_ns = state->mounted_ns};
    const mount_node *node = mount_node_enter(&like);
    struct fuse_entry_param entry = mount_entry_of(state, node);
    fuse_ino_t number = node->number;
    if (fuse_reply_entry(request, &entry) != 0)
        mount_node_forget(number, 1);
}

/* What a name stands for. @param ret owned by the caller. */
static int
find_in(fuse_req_t request, fuse_ino_t parent, const char *name, mount_node *ret)
{
    const mount_node *folder = mount_node_get(parent);
    if (folder == NULL)
        return ESTALE;
    return folder->kind != MOUNT_FOLDER ? EACCES : mount_find(state_of(request), folder, name, ret);
}

void
mount_do_unlink(fuse_req_t request, fuse_ino_t parent, const char *name)
{
    mount_node node = {0};
    esdm_error err = {0};
    int wrong = find_in(request, parent, name, &node);
    if (wrong == 0 && node.kind == MOUNT_STAGED) {
        wrong = mount_staged_remove(state_of(request), node.path);
    } else if (wrong == 0 && node.kind == MOUNT_FILE) {
        esdm_status status = esdm_container_remove(state_of(request)->session, node.path, &err);
        wrong = status == ESDM_OK ? 0 : mount_failed(node.path, status, &err);
        if (wrong == 0) /* a file that it hid would come to light */
            (void) mount_staged_remove(state_of(request), node.path);
    } else if (wrong == 0) {
        wrong = EISDIR;
    }
    g_free(node.path);
    (void) fuse_reply_err(request, wrong);
}

void
mount_do_rmdir(fuse_req_t request, fuse_ino_t parent, const char *name)
{
    mount_node node = {0};
    int wrong = find_in(request, parent, name, &node);
    if (wrong == 0 && node.kind == MOUNT_FOLDER) {
        g_autoptr(GPtrArray) entries = mount_list(state_of(request), &node, &wrong);
        if (entries != NULL)
            wrong =
                entries->len > 0 ? ENOTEMPTY : mount_staged_remove(state_of(request), node.path);
    } else if (wrong == 0) {
        wrong = node.kind == MOUNT_HISTORY || node.kind == MOUNT_VIEWS ? EACCES : ENOTDIR;
    }
    g_free(node.path);
    (void) fuse_reply_err(request, wrong);
}

static bool
note_name(const esdm_container_info *info, void *user)
{
    g_ptr_array_add(user, g_strdup(info->name));
    return true;
}

/* All containers of a folder, one by one. */
static int
rename_folder(const mount_state *state, const char *from, const char *to)
{
    struct stat st;
    esdm_error err = {0};
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    esdm_status status = esdm_container_list(state->session, from, note_name, names, &err);
    for (guint i = 0; i < names->len && status == ESDM_OK; i++) {
        const char *name = g_ptr_array_index(names, i);
        g_autofree char *new = g_strconcat(to, name + strlen(from), NULL);
        status = esdm_container_move(state->session, name, new, false, &err);
    }
    if (status != ESDM_OK)
        return mount_failed(from, status, &err);
    return mount_staged_find(state, from, &st) ? mount_staged_rename(state, from, to) : 0;
}

static int
rename_node(mount_state *state, const mount_node *from, const mount_node *at, const char *to,
            unsigned flags)
{
    esdm_error err = {0};
    bool taken = at->path != NULL;
    if (taken && (flags & RENAME_NOREPLACE) != 0)
        return EEXIST;
    if (taken && (at->kind == MOUNT_FOLDER) != (from->kind == MOUNT_FOLDER))
        return at->kind == MOUNT_FOLDER ? EISDIR : ENOTDIR;
    if (from->kind == MOUNT_FOLDER)
        return taken ? ENOTEMPTY : rename_folder(state, from->path, to);
    if (from->kind == MOUNT_STAGED && taken && at->kind == MOUNT_FILE)
        return EEXIST; /* the container would hide it */
    if (from->kind == MOUNT_STAGED)
        return mount_staged_rename(state, from->path, to);
    esdm_status status = esdm_container_move(state->session, from->path, to, true, &err);
    if (status == ESDM_OK && at->kind == MOUNT_STAGED && taken)
        (void) mount_staged_remove(state, to);
    return status == ESDM_OK ? 0 : mount_failed(from->path, status, &err);
}

void
mount_do_rename(fuse_req_t request, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
                const char *new_name, unsigned flags)
{
    mount_node from = {0}, at = {0};
    g_autofree char *to = path_in(new_parent, new_name);
    int wrong = to == NULL                               ? EACCES
                : (flags & ~(unsigned) RENAME_NOREPLACE) ? EINVAL
                                                         : find_in(request, parent, name, &from);
    if (wrong == 0) {
        wrong = find_in(request, new_parent, new_name, &at);
        if (wrong == 0 || wrong == ENOENT)
            wrong = rename_node(state_of(request), &from, &at, to, flags);
    }
    g_free(from.path);
    g_free(at.path);
    (void) fuse_reply_err(request, wrong);
}
