/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Files that are held: clones of files of others, which share their blocks (FICLONE: XFS, Btrfs,
 * …). They lie in the folder `files`, beside those of packs, and are never changed.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "posix.h"

#define FOLDER "files"

typedef char file_path[POSIX__NAME_MAX + sizeof FOLDER + 2];

static esdm_status
path_of(const char *name, file_path ret, esdm_error *err)
{
    if (!posix__is_pack_name(name))
        return esdm__error_set(err, ESDM_EINVAL, "posix: '%.120s' is not the name of a held file",
                               name);
    (void) snprintf(ret, sizeof(file_path), FOLDER "/%s", name);
    return ESDM_OK;
}

static esdm_status
failed(const posix__target *target, const char *what, const char *path, int why, esdm_error *err)
{
    return esdm__error_set_errno(err, why, "posix: cannot %s '%s/%s'", what, target->directory,
                                 path);
}

/* With the rights of the directory, as the folders of packs. */
static esdm_status
make_folder(const posix__target *target, esdm_error *err)
{
    struct stat is;
    if (mkdirat(target->fd, FOLDER, 0777) != 0)
        return errno == EEXIST ? ESDM_OK : failed(target, "make folder", FOLDER, errno, err);
    if (fstat(target->fd, &is) == 0)
        (void) !fchmodat(target->fd, FOLDER, is.st_mode & 07777, 0);
    if (fsync(target->fd) != 0)
        return failed(target, "store folder", FOLDER, errno, err);
    return ESDM_OK;
}

/* The file and its entry. */
static esdm_status
store(const posix__target *target, int fd, const char *path, esdm_error *err)
{
    struct stat folder, file;
    if (fstat(target->fd, &folder) == 0 && fstat(fd, &file) == 0) /* as of packs */
        (void) !fchmod(fd, (file.st_mode | (folder.st_mode & 0444)) & 0444);
    int entries = openat(target->fd, FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool stored = entries >= 0 && fsync(fd) == 0 && fsync(entries) == 0;
    int why = errno;
    if (entries >= 0)
        (void) close(entries);
    return stored ? ESDM_OK : failed(target, "store", path, why, err);
}

/* Another process that cannot share blocks may take the folder away. */
static int
create_file(const posix__target *target, const char *path)
{
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(target->fd, path, flags, 0666);
    if (fd < 0 && errno == ENOENT && make_folder(target, NULL) == ESDM_OK)
        fd = openat(target->fd, path, flags, 0666);
    return fd;
}

static bool
cannot_share(int why)
{
    return why == EOPNOTSUPP || why == ENOTSUP || why == EXDEV || why == EINVAL || why == ENOTTY ||
           why == ENOSYS || why == EPERM;
}

esdm_status
posix__file_hold(void *self, const char *name, int fd, esdm_error *err)
{
    const posix__target *target = self;
    file_path path;
    esdm_status status = path_of(name, path, err);
    if (status == ESDM_OK)
        status = make_folder(target, err);
    if (status != ESDM_OK)
        return status;
    int to = create_file(target, path);
    if (to < 0)
        return failed(target, "make", path, errno, err);
    if (ioctl(to, FICLONE, fd) == 0)
        status = store(target, to, path, err);
    else if (cannot_share(errno))
        status =
            esdm__error_set(err, ESDM_ENOTSUP, "posix: '%s' cannot share the blocks of the file",
                            target->directory);
    else
        status = failed(target, "clone a file as", path, errno, err);
    (void) close(to);
    if (status != ESDM_OK) {
        (void) unlinkat(target->fd, path, 0);
        (void) unlinkat(target->fd, FOLDER, AT_REMOVEDIR); /* unless it has files */
    }
    return status;
}

esdm_status
posix__file_open(void *self, const char *name, int *ret_fd, esdm_error *err)
{
    const posix__target *target = self;
    struct stat is;
    file_path path;
    esdm_status status = path_of(name, path, err);
    if (status != ESDM_OK)
        return status;
    int fd = openat(target->fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &is) != 0 || !S_ISREG(is.st_mode)) {
        status = failed(target, "read the held file", path, fd < 0 ? errno : EINVAL, err);
        if (fd >= 0)
            (void) close(fd);
        return status;
    }
    *ret_fd = esdm__descriptor_keep(fd);
    return ESDM_OK;
}

esdm_status
posix__file_remove(void *self, const char *name, esdm_error *err)
{
    const posix__target *target = self;
    file_path path;
    esdm_status status = path_of(name, path, err);
    if (status == ESDM_OK && unlinkat(target->fd, path, 0) != 0 && errno != ENOENT)
        status = failed(target, "remove", path, errno, err);
    return status;
}

esdm_status
posix__visit_files(int fd, const char *directory, esdm_pack_visitor visit, void *user,
                   esdm_error *err)
{
    int folder = openat(fd, FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = folder < 0 ? NULL : fdopendir(folder);
    bool more = true;
    if (folder < 0 && errno == ENOENT)
        return ESDM_OK;
    if (dir == NULL) {
        esdm_status status = esdm__error_set_errno(err, errno, "posix: cannot list folder '%s/%s'",
                                                   directory, FOLDER);
        if (folder >= 0)
            (void) close(folder);
        return status;
    }
    for (struct dirent *entry = readdir(dir); entry != NULL && more; entry = readdir(dir)) {
        struct stat is;
        if (!posix__is_pack_name(entry->d_name) ||
            fstatat(folder, entry->d_name, &is, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(is.st_mode))
            continue;
        more =
            visit(entry->d_name, (uint64_t) is.st_size,
                  (uint64_t) is.st_mtim.tv_sec * 1000000000u + (uint64_t) is.st_mtim.tv_nsec, user);
    }
    (void) closedir(dir);
    return ESDM_OK;
}

esdm_status
posix__file_list(void *self, esdm_pack_visitor visit, void *user, esdm_error *err)
{
    const posix__target *target = self;
    return posix__visit_files(target->fd, target->directory, visit, user, err);
}

/* ---- the target goes ------------------------------------------------------------------------ */

typedef struct removal {
    int fd;
    uint64_t files;
    bool dry_run;
    int why; /* errno of the first failure */
} removal;

static bool
remove_file(const char *name, uint64_t bytes, uint64_t modified_ns, void *user)
{
    removal *all = user;
    file_path path;
    (void) bytes, (void) modified_ns;
    if (path_of(name, path, NULL) != ESDM_OK)
        return true;
    if (!all->dry_run && unlinkat(all->fd, path, 0) != 0 && errno != ENOENT)
        all->why = errno;
    all->files++;
    return all->why == 0;
}

esdm_status
posix__remove_files(int fd, const char *directory, bool dry_run, uint64_t *ret_files,
                    esdm_error *err)
{
    removal all = {.fd = fd, .dry_run = dry_run};
    uint64_t before = 0;
    esdm_status status = ESDM_OK;
    do { /* a listing may skip names while others are being removed */
        before = all.files;
        status = posix__visit_files(fd, directory, remove_file, &all, err);
    } while (status == ESDM_OK && all.why == 0 && !dry_run && all.files != before);
    if (status == ESDM_OK && all.why != 0)
        status = esdm__error_set_errno(err, all.why, "posix: cannot remove files in '%s/%s'",
                                       directory, FOLDER);
    if (status == ESDM_OK && !dry_run)
        (void) unlinkat(fd, FOLDER, AT_REMOVEDIR); /* what is not ESDM's stays */
    *ret_files = all.files;
    return status;
}
