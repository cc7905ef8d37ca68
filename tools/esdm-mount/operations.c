/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What the kernel asks for. */

#include "esdm-mount/esdm-mount.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAMES_KEPT_S 1.0    /* after that a name is looked at again: it may have a new snapshot */
#define FILES_KEPT_S 3600.0 /* a snapshot does not change */
#define BLOCK        4096u
#define SECOND_NS    UINT64_C(1000000000)

static mount_state *
state_of(fuse_req_t request)
{
    return fuse_req_userdata(request);
}

int
mount_failed(const char *path, esdm_status status, const esdm_error *err)
{
    tool_error("%s: %s", path, err->message);
    switch (status) {
    case ESDM_ENOENT:
        return ENOENT;
    case ESDM_EEXIST:
        return EEXIST;
    case ESDM_EACCES:
        return EACCES;
    case ESDM_ENOMEM:
        return ENOMEM;
    case ESDM_ENOSPC:
        return ENOSPC;
    case ESDM_ENOTSUP:
    case ESDM_EINVAL:
        return EOPNOTSUPP;
    case ESDM_ETIMEDOUT:
        return ETIMEDOUT;
    default:
        return EIO;
    }
}

/* ---- attributes --------------------------------------------------------------------------- */

static void
become_time(struct stat *st, uint64_t time_ns)
{
    st->st_mtim.tv_sec = (time_t) (time_ns / SECOND_NS);
    st->st_mtim.tv_nsec = (long) (time_ns % SECOND_NS);
    st->st_atim = st->st_ctim = st->st_mtim;
}

int
mount_attributes(const mount_state *state, const mount_node *node, struct stat *ret)
{
    struct stat st = {.st_ino = node->number, .st_uid = state->uid, .st_gid = state->gid}, staged;
    bool fixed = node->kind == MOUNT_HISTORY || node->kind == MOUNT_VIEWS || node->fixed;
    mode_t write = state->staging != NULL && !fixed ? 0200 : 0;
    st.st_blksize = MOUNT_LARGEST_READ;
    become_time(&st, node->time_ns);
    if (node->kind == MOUNT_STAGED) {
        if (!mount_staged_find(state, node->path, &staged))
            return ESTALE; /* it has become a container */
        st.st_mode = S_IFREG | 0444 | write;
        st.st_nlink = 1;
        st.st_size = staged.st_size;
        st.st_blocks = staged.st_blocks;
        st.st_atim = st.st_ctim = st.st_mtim = staged.st_mtim;
    } else if (node->kind == MOUNT_FILE && !node->fixed &&
               mount_staged_is_written(state, node->path, &staged)) {
        /* Who has opened it with O_TRUNC looks at the size next: HDF5. */
        st.st_mode = S_IFREG | 0444 | write;
        st.st_nlink = 1;
        st.st_size = staged.st_size;
        st.st_blocks = staged.st_blocks;
        st.st_atim = st.st_ctim = st.st_mtim = staged.st_mtim;
    } else if (node->kind == MOUNT_FILE) {
        st.st_mode = S_IFREG | 0444 | write;
        st.st_nlink = 1;
        st.st_size = (off_t) node->size;
        /* What it takes where it is stored; none would mean that there are only zeros in it. */
        st.st_blocks = (blkcnt_t) (node->stored_bytes / 512 + 8);
    } else {
        st.st_mode = S_IFDIR | 0555 | write;
        st.st_nlink = 2;
        st.st_size = BLOCK;
    }
    *ret = st;
    return 0;
}

static double
kept_s(const mount_state *state, const mount_node *node)
{
    struct stat staged;
    if (node->kind == MOUNT_FILE)
        return !node->fixed && mount_staged_is_written(state, node->path, &staged) ? 0
                                                                                   : FILES_KEPT_S;
    return node->kind == MOUNT_STAGED ? 0 : NAMES_KEPT_S;
}

struct fuse_entry_param
mount_entry_of(const mount_state *state, const mount_node *node)
{
    /* What was written is to be seen at once. */
    bool changes =
        node->kind == MOUNT_STAGED || (node->kind == MOUNT_FILE && state->staging != NULL);
    struct fuse_entry_param entry = {.ino = node->number,
                                     .generation = 1,
                                     .attr_timeout = kept_s(state, node),
                                     .entry_timeout = changes ? 0 : NAMES_KEPT_S};
    (void) mount_attributes(state, node, &entry.attr);
    return entry;
}

static void
do_lookup(fuse_req_t request, fuse_ino_t parent, const char *name)
{
    mount_state *state = state_of(request);
    const mount_node *folder = mount_node_get(parent);
    mount_node found;
    int wrong = folder == NULL ? ESTALE : mount_find(state, folder, name, &found);
    if (wrong != 0) {
        (void) fuse_reply_err(request, wrong);
        return;
    }
    const mount_node *node = mount_node_enter(&found);
    struct fuse_entry_param entry = mount_entry_of(state, node);
    fuse_ino_t number = node->number;
    if (fuse_reply_entry(request, &entry) != 0)
        mount_node_forget(number, 1);
}

static void
do_forget(fuse_req_t request, fuse_ino_t number, uint64_t lookups)
{
    mount_node_forget(number, lookups);
    fuse_reply_none(request);
}

static void
do_forget_multi(fuse_req_t request, size_t count, struct fuse_forget_data *forgets)
{
    for (size_t i = 0; i < count; i++)
        mount_node_forget(forgets[i].ino, forgets[i].nlookup);
    fuse_reply_none(request);
}

/* Who has it open reads a snapshot, which stays as long as it is, also while another one writes a
 * file that takes its name: so what the kernel asks with that handle, before it reads, is of the
 * snapshot. */
static void
do_getattr(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *fi)
{
    struct stat st;
    const mount_state *state = state_of(request);
    const mount_node *node = mount_node_get(number);
    const mount_open *opened = fi != NULL ? (const mount_open *) (uintptr_t) fi->fh : NULL;
    bool reads = opened != NULL && opened->file != NULL;
    int wrong = node == NULL ? ESTALE : mount_attributes(state, node, &st);
    if (wrong != 0) {
        (void) fuse_reply_err(request, wrong);
        return;
    }
    double kept = kept_s(state, node);
    if (reads && kept == 0)
        st.st_size = (off_t) esdm_vfile_size(vfile_of(opened->file));
    (void) fuse_reply_attr(request, &st, kept);
}

/* ---- folders ------------------------------------------------------------------------------ */

static void
do_opendir(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *fi)
{
    const mount_node *node = mount_node_get(number);
    int wrong = node == NULL ? ESTALE : 0;
    GPtrArray *entries = node != NULL ? mount_list(state_of(request), node, &wrong) : NULL;
    fi->fh = (uintptr_t) entries;
    if (entries == NULL)
        (void) fuse_reply_err(request, wrong);
    else if (fuse_reply_open(request, fi) != 0)
        g_ptr_array_unref(entries);
}

static void
do_readdir(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset,
           struct fuse_file_info *fi)
{
    const GPtrArray *entries = (const GPtrArray *) (uintptr_t) fi->fh;
    g_autofree char *buffer = g_malloc(size);
    size_t used = 0;
    for (uint64_t i = (uint64_t) offset; i < entries->len + 2u; i++) {
        const mount_entry *entry = i < 2 ? NULL : g_ptr_array_index(entries, i - 2);
        const char *name = entry != NULL ? entry->name : i == 0 ? "." : "..";
        struct stat st = {.st_ino = entry != NULL ? g_str_hash(name) : number,
                          .st_mode = entry != NULL && entry->is_file ? S_IFREG : S_IFDIR};
        size_t bytes =
            fuse_add_direntry(request, buffer + used, size - used, name, &st, (off_t) i + 1);
        if (bytes > size - used)
            break;
        used += bytes;
    }
    (void) fuse_reply_buf(request, buffer, used);
}

static void
do_releasedir(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *fi)
{
    (void) number;
    g_ptr_array_unref((GPtrArray *) (uintptr_t) fi->fh);
    (void) fuse_reply_err(request, 0);
}

/* ---- files -------------------------------------------------------------------------------- */

static void
close_file(const mount_state *state, mount_open *opened)
{
    if (opened->file == NULL) {
        mount_staged_close(state, opened);
        return;
    }
    mount_ahead_free(opened->ahead);
    vfile_pool_put(state->files, opened->file);
    g_free(opened);
}

static pthread_mutex_t opens_lock = PTHREAD_MUTEX_INITIALIZER;
static GHashTable *opens; /* a set of mount_open; NULL: none yet */

void
mount_opened(mount_open *opened)
{
    (void) pthread_mutex_lock(&opens_lock);
    if (opens == NULL)
        opens = g_hash_table_new(NULL, NULL);
    (void) g_hash_table_add(opens, opened);
    (void) pthread_mutex_unlock(&opens_lock);
}

/* Whether somebody has the same file open. */
static bool
is_open(const vfile_shared *file)
{
    GHashTableIter at;
    gpointer one;
    bool found = false;
    (void) pthread_mutex_lock(&opens_lock);
    if (opens != NULL) {
        g_hash_table_iter_init(&at, opens);
        while (!found && g_hash_table_iter_next(&at, &one, NULL))
            found = ((const mount_open *) one)->file == file;
    }
    (void) pthread_mutex_unlock(&opens_lock);
    return found;
}

void
mount_closed(const mount_state *state, mount_open *opened)
{
    (void) pthread_mutex_lock(&opens_lock);
    bool known = opens != NULL && g_hash_table_remove(opens, opened);
    (void) pthread_mutex_unlock(&opens_lock);
    if (known)
        close_file(state, opened);
}

void
mount_close_all(const mount_state *state)
{
    GHashTableIter at;
    gpointer opened;
    if (opens == NULL)
        return;
    g_hash_table_iter_init(&at, opens);
    while (g_hash_table_iter_next(&at, &opened, NULL))
        close_file(state, opened);
    g_hash_table_unref(opens);
    opens = NULL;
}

static int
open_snapshot(const mount_state *state, const mount_node *node, mount_open **ret_open)
{
    vfile_shared *file = NULL;
    esdm_error err = {0};
    esdm_status status = vfile_pool_get(state->files, node->path, node->created_ns, node->snapshot,
                                        state->format, &file, &err);
    if (status != ESDM_OK)
        return mount_failed(node->path, status, &err);
    *ret_open = g_new0(mount_open, 1);
    (*ret_open)->file = file;
    (*ret_open)->fd = -1;
    return 0;
}

static int
open_node(const mount_state *state, const mount_node *node, int flags, mount_open **ret_open)
{
    bool reads = (flags & O_ACCMODE) == O_RDONLY;
    if (!reads && state->staging == NULL)
        return EROFS;
    if (node->kind == MOUNT_STAGED)
        return mount_staged_open(state, node->path, flags, ret_open);
    if (!reads && node->fixed)
        return EACCES;
    if (reads)
        return open_snapshot(state, node, ret_open);
    if ((flags & O_TRUNC) == 0)
        return EOPNOTSUPP; /* a container is replaced as a whole */
    return mount_staged_open(state, node->path, flags | O_CREAT, ret_open);
}

static void
do_open(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *fi)
{
    mount_state *state = state_of(request);
    const mount_node *node = mount_node_get(number);
    mount_open *opened = NULL;
    int wrong = node == NULL ? ESTALE : open_node(state, node, fi->flags, &opened);
    if (wrong != 0) {
        (void) fuse_reply_err(request, wrong);
        return;
    }
    fi->fh = (uintptr_t) opened;
    /* Several readers at the same time share what the kernel keeps. */
    fi->direct_io =
        opened->file == NULL || (mount_is_direct(state, node) && !is_open(opened->file));
    if (opened->file != NULL && fi->direct_io)
        opened->ahead = mount_ahead_new(opened, number);
    fi->keep_cache = opened->file != NULL; /* of this snapshot */
    mount_opened(opened);
    if (fuse_reply_open(request, fi) != 0)
        mount_closed(state, opened);
}

int
mount_read(const mount_open *opened, char *buffer, size_t size, off_t offset, size_t *ret_got,
           fuse_ino_t number)
{
    esdm_error err = {0};
    if (opened->file == NULL) {
        ssize_t got = pread(opened->fd, buffer, size, offset);
        *ret_got = got > 0 ? (size_t) got : 0;
        return got < 0 ? errno : 0;
    }
    esdm_status status =
        esdm_vfile_pread(vfile_of(opened->file), buffer, size, (uint64_t) offset, ret_got, &err);
    const mount_node *node = mount_node_get(number);
    return status == ESDM_OK ? 0 : mount_failed(node != NULL ? node->path : "?", status, &err);
}

/* What the last answer lay in is still in the processors' caches: the next one is made there. Fresh
 * memory for each would go through all of them. */
typedef struct answer {
    struct answer *next; /* in its first bytes, while nobody has it */
} answer;

static pthread_mutex_t answers_lock = PTHREAD_MUTEX_INITIALIZER;
static answer *answers; /* as many as there were at the same time */

char *
mount_answer_take(void)
{
    (void) pthread_mutex_lock(&answers_lock);
    answer *one = answers;
    if (one != NULL)
        answers = one->next;
    (void) pthread_mutex_unlock(&answers_lock);
    void *fresh = NULL;
    if (one == NULL && posix_memalign(&fresh, BLOCK, MOUNT_LARGEST_READ) == 0)
        one = fresh;
    return (char *) one;
}

void
mount_answer_give(char *bytes)
{
    answer *one = (answer *) (void *) bytes;
    if (one == NULL)
        return;
    (void) pthread_mutex_lock(&answers_lock);
    one->next = answers;
    answers = one;
    (void) pthread_mutex_unlock(&answers_lock);
}

static void
do_read(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *fi)
{
    const mount_open *opened = (const mount_open *) (uintptr_t) fi->fh;
    mount_ahead *ahead = size <= MOUNT_LARGEST_READ ? opened->ahead : NULL;
    size_t got = 0;
    int wrong = 0;
    char *buffer = ahead != NULL ? mount_ahead_take(ahead, size, (uint64_t) offset, &got) : NULL;
    if (buffer == NULL)
        buffer = size <= MOUNT_LARGEST_READ ? mount_answer_take() : malloc(size);
    if (buffer == NULL) {
        wrong = ENOMEM;
    } else if (got < size) {
        size_t more = 0;
        wrong = mount_read(opened, buffer + got, size - got, offset + (off_t) got, &more, number);
        got += more;
    }
    if (ahead != NULL && wrong == 0 && got == size)
        mount_ahead_go_on(ahead, size, (uint64_t) offset);
    if (wrong == 0)
        (void) fuse_reply_buf(request, buffer, got);
    else
        (void) fuse_reply_err(request, wrong);
    if (size <= MOUNT_LARGEST_READ)
        mount_answer_give(buffer);
    else
        free(buffer);
}

static void
do_release(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *fi)
{
    (void) number;
    mount_closed(state_of(request), (mount_open *) (uintptr_t) fi->fh);
    (void) fuse_reply_err(request, 0);
}

/* ---- the whole ---------------------------------------------------------------------------- */

static bool
add_stored(const esdm_container_info *info, void *user)
{
    struct statvfs *st = user;
    st->f_blocks += info->stored_bytes / BLOCK + 1;
    st->f_files++;
    return true;
}

/* As with other file systems that cannot be written to, all is used then. */
static void
do_statfs(fuse_req_t request, fuse_ino_t number)
{
    (void) number;
    esdm_error err = {0};
    struct statvfs st = {.f_bsize = BLOCK, .f_frsize = BLOCK, .f_namemax = 255};
    esdm_status status =
        esdm_container_list(state_of(request)->session, NULL, add_stored, &st, &err);
    struct statvfs free_room;
    const char *staging = state_of(request)->staging;
    if (staging != NULL && statvfs(staging, &free_room) == 0) { /* the next file must fit there */
        st.f_bfree = st.f_bavail = free_room.f_bavail * free_room.f_frsize / BLOCK;
        st.f_blocks += st.f_bfree;
    }
    if (status == ESDM_OK)
        (void) fuse_reply_statfs(request, &st);
    else
        (void) fuse_reply_err(request, mount_failed("the site", status, &err));
}

static void
do_init(void *user, struct fuse_conn_info *conn)
{
    (void) user;
    conn->want |= conn->capable & FUSE_CAP_ATOMIC_O_TRUNC;
    conn->max_write = MOUNT_LARGEST_READ; /* from this libfuse tells how large requests may be */
    conn->max_read = MOUNT_LARGEST_READ;
    conn->max_readahead = MOUNT_READ_AHEAD;
    mount_direct_init(conn);
}

const struct fuse_lowlevel_ops mount_operations = {.init = do_init,
                                                   .lookup = do_lookup,
                                                   .forget = do_forget,
                                                   .forget_multi = do_forget_multi,
                                                   .getattr = do_getattr,
                                                   .opendir = do_opendir,
                                                   .readdir = do_readdir,
                                                   .releasedir = do_releasedir,
                                                   .open = do_open,
                                                   .read = do_read,
                                                   .release = do_release,
                                                   .statfs = do_statfs,
                                                   .create = mount_do_create,
                                                   .write = mount_do_write,
                                                   .flush = mount_do_flush,
                                                   .fsync = mount_do_fsync,
                                                   .setattr = mount_do_setattr,
                                                   .mkdir = mount_do_mkdir,
                                                   .unlink = mount_do_unlink,
                                                   .rmdir = mount_do_rmdir,
                                                   .rename = mount_do_rename};
