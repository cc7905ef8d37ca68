/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * A FUSE server that does nothing but answer: what a mounted file can be read with at best.
 * mount.py runs it.
 *
 *     bench_fuse FOLDER MIB [direct]
 *
 * shows a file FOLDER/data of so many MiB until it is unmounted. With "direct" the kernel keeps
 * nothing of it. Requests and threads are as in esdm-mount.
 */

#define FUSE_USE_VERSION 312
#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST (1u << 20)
#define DATA    (FUSE_ROOT_ID + 1)
#define KEPT_S  3600.0

static off_t size;
static bool direct;
static char bytes[LARGEST] __attribute__((aligned(4096)));

static bool
describe(fuse_ino_t number, struct stat *ret)
{
    *ret = (struct stat){.st_ino = number,
                         .st_nlink = 1,
                         .st_mode = number == DATA ? S_IFREG | 0444 : S_IFDIR | 0555,
                         .st_size = number == DATA ? size : 0};
    return number == DATA || number == FUSE_ROOT_ID;
}

static void
do_lookup(fuse_req_t request, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry = {
        .ino = DATA, .attr_timeout = KEPT_S, .entry_timeout = KEPT_S, .generation = 1};
    if (parent != FUSE_ROOT_ID || strcmp(name, "data") != 0 || !describe(DATA, &entry.attr))
        (void) fuse_reply_err(request, ENOENT);
    else
        (void) fuse_reply_entry(request, &entry);
}

static void
do_getattr(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *fi)
{
    struct stat st;
    (void) fi;
    if (describe(number, &st))
        (void) fuse_reply_attr(request, &st, KEPT_S);
    else
        (void) fuse_reply_err(request, ENOENT);
}

static void
do_open(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *fi)
{
    (void) number;
    fi->keep_cache = !direct;
    fi->direct_io = direct;
    (void) fuse_reply_open(request, fi);
}

static void
do_read(fuse_req_t request, fuse_ino_t number, size_t count, off_t at, struct fuse_file_info *fi)
{
    (void) number;
    (void) fi;
    size_t left = at < size ? (size_t) (size - at) : 0;
    count = count < left ? count : left;
    (void) fuse_reply_buf(request, bytes, count < LARGEST ? count : LARGEST);
}

static void
do_init(void *user, struct fuse_conn_info *conn)
{
    (void) user;
    conn->max_write = conn->max_read = LARGEST;
    conn->max_readahead = 2 * LARGEST;
}

static const struct fuse_lowlevel_ops operations = {
    .init = do_init, .lookup = do_lookup, .getattr = do_getattr, .open = do_open, .read = do_read};

int
main(int argc, char **argv)
{
    char program[] = "bench_fuse", option[] = "-o", options[] = "ro,max_read=1048576";
    char *words[] = {program, option, options, NULL};
    struct fuse_args args = FUSE_ARGS_INIT(3, words);
    direct = argc == 4 && strcmp(argv[3], "direct") == 0;
    if (argc != 3 && !direct)
        return 2;
    size = (off_t) atol(argv[2]) << 20;
    memset(bytes, 1, sizeof bytes);
    struct fuse_session *fuse = fuse_session_new(&args, &operations, sizeof operations, NULL);
    if (fuse == NULL || fuse_set_signal_handlers(fuse) != 0 ||
        fuse_session_mount(fuse, argv[1]) != 0)
        return 1;
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    fuse_loop_cfg_set_clone_fd(config, 1);
    fuse_loop_cfg_set_idle_threads(config, 10);
    fuse_loop_cfg_set_max_threads(config, 16);
    int ended = fuse_session_loop_mt(fuse, config);
    fuse_loop_cfg_destroy(config);
    fuse_session_unmount(fuse);
    fuse_session_destroy(fuse);
    return ended < 0;
}
