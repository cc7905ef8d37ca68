/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * A slow device: one file, read only, over FUSE, whose every request takes some time more.
 *
 *     slow_file FILE DELAY_US FOLDER    shows FILE as FOLDER/data until it is unmounted
 *
 * Requests wait beside each other, as on a device with a queue, or on a network.
 */
#define FUSE_USE_VERSION 312
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int source = -1;
static long delay_us;

static int
is_data(const char *path)
{
    return strcmp(path, "/data") == 0;
}

static int
slow_getattr(const char *path, struct stat *st, struct fuse_file_info *info)
{
    (void) info;
    (void) memset(st, 0, sizeof *st);
    if (strcmp(path, "/") == 0) {
        st->st_mode = S_IFDIR | 0755;
        st->st_nlink = 2;
        return 0;
    }
    if (!is_data(path))
        return -ENOENT;
    if (fstat(source, st) != 0)
        return -errno;
    st->st_mode = S_IFREG | 0444;
    return 0;
}

static int
slow_open(const char *path, struct fuse_file_info *info)
{
    if (!is_data(path))
        return -ENOENT;
    return (info->flags & O_ACCMODE) == O_RDONLY ? 0 : -EACCES; /* forgets what was cached */
}

static int
slow_read(const char *path, char *data, size_t bytes, off_t at, struct fuse_file_info *info)
{
    struct timespec delay = {.tv_sec = delay_us / 1000000, .tv_nsec = delay_us % 1000000 * 1000};
    (void) path;
    (void) info;
    while (nanosleep(&delay, &delay) != 0 && errno == EINTR)
        ;
    ssize_t n = pread(source, data, bytes, at);
    return n >= 0 ? (int) n : -errno;
}

int
main(int argc, char **argv)
{
    static const struct fuse_operations operations = {
        .getattr = slow_getattr, .open = slow_open, .read = slow_read};
    if (argc != 4)
        return 2;
    source = open(argv[1], O_RDONLY | O_CLOEXEC);
    delay_us = atol(argv[2]);
    if (source < 0) {
        perror(argv[1]);
        return 1;
    }
    char *options[] = {argv[0], "-f", "-o", "auto_unmount,max_idle_threads=32", argv[3], NULL};
    return fuse_main(5, options, &operations, NULL);
}
