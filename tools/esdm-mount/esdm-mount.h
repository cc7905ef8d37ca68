/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_MOUNT_H
#define ESDM_TOOLS_MOUNT_H

/** @file What the files of esdm-mount share. */

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include "common/common.h"
#include "vfile/pool.h"

/** The folder of old snapshots, at the top. */
#define MOUNT_SNAPSHOTS "@snapshots"

typedef enum mount_kind {
    MOUNT_FOLDER,
    MOUNT_FILE,    /* a snapshot of a container */
    MOUNT_HISTORY, /* a folder below @snapshots; a container is one, too */
} mount_kind;

/** What the kernel knows by a number. A container that is committed becomes another node, so that
 *  what the kernel keeps of a file is of one snapshot. Immutable but for `lookups`. */
typedef struct mount_node {
    fuse_ino_t number;
    mount_kind kind;
    char *key;
    char *path; /* of the container or the folder: "" or "a/b" */
    uint64_t snapshot, created_ns, time_ns;
    uint64_t size, stored_bytes;
    uint64_t lookups; /* of the kernel; under the lock of nodes */
} mount_node;

typedef struct mount_state {
    esdm_session *session;
    vfile_pool *files;
    esdm_vfile_format format;
    uid_t uid;
    gid_t gid;
    uint64_t mounted_ns;
} mount_state;

/* ---- nodes (nodes.c): locked inside ------------------------------------------------------- */

void mount_nodes_init(void);
void mount_nodes_clear(void);
/** Borrowed: the kernel holds it. */
const mount_node *mount_node_get(fuse_ino_t number);
/** The node that is like this one, made if there is none, with one more lookup. Takes what
 *  `like` owns. */
const mount_node *mount_node_enter(mount_node *like);
void mount_node_forget(fuse_ino_t number, uint64_t lookups);

/* ---- names (names.c) ---------------------------------------------------------------------- */

/** What stands under a name in a folder. @return 0, or an errno. @param ret owned. */
int mount_find(mount_state *state, const mount_node *folder, const char *name, mount_node *ret);
typedef struct mount_entry {
    char *name;
    bool is_file;
} mount_entry;
/** mount_entry, owned, by name; or NULL and an errno. */
GPtrArray *mount_list(mount_state *state, const mount_node *folder, int *ret_errno);

/* ---- operations (operations.c) ------------------------------------------------------------ */

extern const struct fuse_lowlevel_ops mount_operations;
/** The errno of a failure, which is told on standard error. */
int mount_failed(const char *path, esdm_status status, const esdm_error *err);

#endif
