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
/** The folder of views, at the top. */
#define MOUNT_VIEWS_NAME "@views"

typedef enum mount_kind {
    MOUNT_FOLDER,
    MOUNT_FILE,    /* a snapshot of a container */
    MOUNT_STAGED,  /* a file that is being written, or did not become a container */
    MOUNT_HISTORY, /* a folder below @snapshots; a container is one, too */
    MOUNT_VIEWS    /* @views (path ""), or a place of a view that is a folder */
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
    bool fixed;       /* a place of a view, or a snapshot: it cannot be written to */
    uint64_t lookups; /* of the kernel; under the lock of nodes */
} mount_node;

typedef struct mount_state {
    esdm_session *session;
    vfile_pool *files;
    esdm_vfile_format format;
    uid_t uid;
    gid_t gid;
    uint64_t mounted_ns;
    bool direct;   /* --direct, and all data lie in directories of this machine */
    char *staging; /* folder of files that are written; NULL: nothing can be */
} mount_state;

typedef struct mount_ahead mount_ahead;

/** An open file: of a snapshot, or one that is staged. */
typedef struct mount_open {
    vfile_shared *file; /* NULL: staged */
    mount_ahead *ahead; /* NULL: it is not read directly, or staged */
    int fd;
    char *path;
    bool writes;
    bool changed; /* not taken in yet */
    bool failed;  /* what was written last did not become a container */
} mount_open;

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

/** The path of a name in a folder; owned. */
char *mount_path_below(const mount_node *folder, const char *name);
/** What stands under a name in a folder. @return 0, or an errno. @param ret owned. */
int mount_find(mount_state *state, const mount_node *folder, const char *name, mount_node *ret);
typedef struct mount_entry {
    char *name;
    bool is_file;
} mount_entry;
/** mount_entry, owned, by name; or NULL and an errno. */
GPtrArray *mount_list(mount_state *state, const mount_node *folder, int *ret_errno);

/** A list of mount_entry, owned. */
GPtrArray *mount_entries_new(void);
void mount_add_entry(GPtrArray *entries, char *name, bool is_file);
/** Fills in a node of a snapshot; 0: of several containers as one. */
void mount_become_file(mount_state *state, const esdm_container_info *info, uint64_t snapshot,
                       uint64_t time_ns, mount_node *node);

/* ---- views (views.c) ---------------------------------------------------------------------- */

/** As mount_find() in a folder of kind MOUNT_VIEWS. */
int mount_views_find(mount_state *state, const mount_node *folder, const char *name,
                     mount_node *ret);
/** Appends what lies at a place, "" : the views. @return 0, or an errno. */
int mount_views_list(const mount_state *state, const char *place, GPtrArray *entries);

/* ---- staging (staging.c): locked inside; functions return 0 or an errno ---------------------- */

/** Path of the file that is staged under a name; owned. NULL: nothing can be written. */
char *mount_staged(const mount_state *state, const char *path);
/** Whether there is such a file or folder. */
bool mount_staged_find(const mount_state *state, const char *path, struct stat *ret);
/** What is there of a file that replaces a container, as long as somebody writes it; false: nobody
 *  does. */
bool mount_staged_is_written(const mount_state *state, const char *path, struct stat *ret);
/** @param flags of open(2). @param ret_open owned: mount_staged_close(). */
int mount_staged_open(const mount_state *state, const char *path, int flags, mount_open **ret_open);
/** Makes a container of what was written, when nobody else writes to it. */
int mount_staged_flush(const mount_state *state, mount_open *opened);
/** What did not become a container gets the name NAME.failed. */
void mount_staged_close(const mount_state *state, mount_open *opened);
int mount_staged_rename(const mount_state *state, const char *from, const char *to);
int mount_staged_make_folder(const mount_state *state, const char *path);
int mount_staged_remove(const mount_state *state, const char *path);

/* ---- open files (operations.c): locked inside ----------------------------------------------- */

/** What the kernel has open from now on. */
void mount_opened(mount_open *opened);
void mount_closed(const mount_state *state, mount_open *opened);
/** Closes what the kernel has not: it need not when the folder is gone. */
void mount_close_all(const mount_state *state);

/* ---- reading past the kernel's memory (direct.c) --------------------------------------------- */

/** Asks the kernel for what it needs; of the callback `init` alone. */
void mount_direct_init(const struct fuse_conn_info *conn);
/** Whether a file is to be opened so. Threads: any, after `init`. */
bool mount_is_direct(const mount_state *state, const mount_node *node);

/* ---- reading ahead of programs (ahead.c): locked inside -------------------------------------- */

void mount_ahead_init(void);
void mount_ahead_clear(void);
/** For a file that is read directly. @param opened, number as of mount_read(). */
mount_ahead *mount_ahead_new(const mount_open *opened, fuse_ino_t number);
/** Waits for what is under way. Comes before the file is closed. NULL is accepted. */
void mount_ahead_free(mount_ahead *ahead);
/** What was made of the bytes from `offset` on, owned: mount_answer_give(); NULL: nothing was.
 *  @param ret_got how many of them; where they are fewer than `size`, the rest is to be read. */
char *mount_ahead_take(mount_ahead *ahead, size_t size, uint64_t offset, size_t *ret_got);
/** Makes what comes after these bytes if the program goes on like that. */
void mount_ahead_go_on(mount_ahead *ahead, size_t size, uint64_t offset);

/* ---- changes (writing.c): as in fuse_lowlevel_ops ------------------------------------------- */

void mount_do_create(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode,
                     struct fuse_file_info *fi);
void mount_do_write(fuse_req_t request, fuse_ino_t number, const char *bytes, size_t size,
                    off_t offset, struct fuse_file_info *fi);
void mount_do_flush(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *fi);
void mount_do_fsync(fuse_req_t request, fuse_ino_t number, int data_only,
                    struct fuse_file_info *fi);
void mount_do_setattr(fuse_req_t request, fuse_ino_t number, struct stat *st, int what,
                      struct fuse_file_info *fi);
void mount_do_mkdir(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode);
void mount_do_unlink(fuse_req_t request, fuse_ino_t parent, const char *name);
void mount_do_rmdir(fuse_req_t request, fuse_ino_t parent, const char *name);
void mount_do_rename(fuse_req_t request, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
                     const char *new_name, unsigned flags);

/* ---- operations (operations.c) ------------------------------------------------------------ */

/** The most bytes of one request. */
#define MOUNT_LARGEST_READ (1u << 20)
/** How far the kernel reads ahead, where it may: so that several answers are made at the same time,
 * and no processor waits where values are decoded. */
#define MOUNT_READ_AHEAD (2u << 20)
/** Memory for an answer of at most MOUNT_LARGEST_READ; owned: mount_answer_give(). NULL: none. */
char *mount_answer_take(void);
/** NULL is accepted. */
void mount_answer_give(char *bytes);
/** Reads bytes of an open file. @param number of its node, for messages. @return 0 or an errno. */
int mount_read(const mount_open *opened, char *buffer, size_t size, off_t offset, size_t *ret_got,
               fuse_ino_t number);

extern const struct fuse_lowlevel_ops mount_operations;
/** @return 0 or an errno. */
int mount_attributes(const mount_state *state, const mount_node *node, struct stat *ret);
/** What the kernel is told of a node that it looked up. */
struct fuse_entry_param mount_entry_of(const mount_state *state, const mount_node *node);
/** The errno of a failure, which is told on standard error. */
int mount_failed(const char *path, esdm_status status, const esdm_error *err);

#endif
