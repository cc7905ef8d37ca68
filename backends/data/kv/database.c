/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Opening and deleting the files of databases, while other processes do so too.
 *
 * A database that has become empty is deleted under the exclusive lock of the file `lock`; who
 * opens one for writing holds it shared meanwhile, and so never gets hold of a deleted file.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/ids.h"
#include "kv.h"

/* Others hold a shard open for some milliseconds (shard.c): more short naps than that. */
#define FIRST_NAP  UINT64_C(200000)
#define LONGER_NAP UINT64_C(5000000)
#define SHORT_NAPS 60u

/* What a database begins with. */
#define HEADER_BYTES 64u

/* ---- errors --------------------------------------------------------------------------------- */

/* Which other process has the file locked; 0: none, or nobody knows. Only while this one does not
 * have it open. */
static pid_t
holder_of(const char *path)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    bool known = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    (void) close(fd);
    return known ? lock.l_pid : 0;
}

esdm_status
kv__locked_error(const kv__target *target, const char *file, pid_t holder, unsigned wait_ms,
                 esdm_error *err)
{
    if (holder != 0)
        return esdm__error_set(err, ESDM_ETIMEDOUT,
                               "kv: '%s/%s' is locked by process %ld for more than %u ms; is it "
                               "stopped?",
                               target->directory, file, (long) holder, wait_ms);
    return esdm__error_set(err, ESDM_ETIMEDOUT, "kv: '%s/%s' is locked for more than %u ms",
                           target->directory, file, wait_ms);
}

/* ---- opening -------------------------------------------------------------------------------- */

/* Kyoto Cabinet makes files with mode 0644: a site of a group needs what the umask says. A pack's
 * own database is always a new one; unlike a shard it is not opened by who lists packs, and when it
 * is left unfinished nothing else is in it.
 * @param ret_made it is new, and nobody else writes to it. */
static esdm_status
make_file(const kv__target *target, const char *file, kv__mode mode, int *ret_fd, bool *ret_made,
          esdm_error *err)
{
    int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
    bool shard = kv__is_shard(file);
    esdm_status status = ESDM_OK;
    if (shard && mode == KV__WRITE && !kv__is_there(target, file))
        status = kv__make_shard(target, file, err);
    if (status != ESDM_OK)
        return status;
    *ret_made = !shard && mode == KV__WRITE;
    if (*ret_made)
        flags |= O_CREAT | O_EXCL;
    int fd = openat(target->fd, file, flags, 0666);
    *ret_made = *ret_made && fd >= 0;
    fd = esdm__descriptor_keep(fd); /* before it is locked */
    *ret_fd = fd;
    return fd >= 0 ? ESDM_OK
                   : esdm__error_set_errno(err, errno, "kv: cannot open '%s/%s' for writing",
                                           target->directory, file);
}

/* A shard is written in transactions alone: then what was cut off is undone by its log, and none of
 * it need be put in order anew. */
static uint32_t
flags_of(const char *file, kv__mode mode)
{
    if (mode == KV__READ)
        return KCOREADER | KCOTRYLOCK;
    return KCOWRITER | KCOCREATE | KCOTRYLOCK | (kv__is_shard(file) ? (uint32_t) KCOAUTOTRAN : 0);
}

/* -1: no lock could be had (EWOULDBLOCK: now); then nothing is deleted, and nothing need be
 * protected. */
static int
lock_directory(const kv__target *target, int how)
{
    int fd = openat(target->fd, KV__LOCK_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0)
        kv__hide_lock(target->fd, fd);
    if (fd >= 0 && flock(fd, how | LOCK_NB) != 0) {
        int why = errno;
        (void) close(fd);
        errno = why;
        return -1;
    }
    return fd;
}

/* Whether the file is what was left when its database was not made: by a writer that was killed, or
 * on a full disk. */
static bool
was_never_made(const kv__target *target, const char *file)
{
    static const char nothing[HEADER_BYTES];
    char header[HEADER_BYTES] = "";
    struct stat found;
    int fd = openat(target->fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT;
    bool never = fstat(fd, &found) == 0 && (uint64_t) found.st_size <= KV__EMPTY_BYTES &&
                 pread(fd, header, sizeof header, 0) >= 0 &&
                 memcmp(header, nothing, sizeof header) == 0;
    (void) close(fd);
    return never;
}

/* Deletes a shard whose making was never completed. ESDM_ENOENT: it is gone. ESDM_ECANCELED:
 * somebody opens one at this moment, or has completed it. */
static esdm_status
delete_never_made(const kv__target *target, const char *file, esdm_error *err)
{
    int lock = lock_directory(target, LOCK_EX);
    if (lock < 0 && errno == EWOULDBLOCK)
        return ESDM_ECANCELED;
    if (lock < 0)
        return esdm__error_set(err, ESDM_EIO,
                               "kv: '%s/%s' is empty, and '" KV__LOCK_FILE "' cannot be locked",
                               target->directory, file);
    bool never = was_never_made(target, file);
    esdm_status status = never ? kv__delete(target, file, err) : ESDM_ECANCELED;
    (void) close(lock);
    return status != ESDM_OK ? status
                             : esdm__error_set(err, ESDM_ENOENT, "kv: '%s/%s' was empty",
                                               target->directory, file);
}

/* One attempt. ESDM_ECANCELED: somebody has it locked, or another one may do.
 * @param ret_directory whether it is the directory that is locked. */
static esdm_status
open_database(const kv__target *target, const char *file, const char *path, kv__mode mode,
              KCDB **ret_db, int *ret_fd, bool *ret_directory, esdm_error *err)
{
    char tuned[PATH_MAX];
    if (snprintf(tuned, sizeof tuned, "%s" KV__TUNING, path) >= (int) sizeof tuned)
        return esdm__error_set(err, ESDM_EINVAL, "kv: '%.200s' is too long", path);
    if (mode == KV__READ && faccessat(target->fd, file, R_OK, AT_EACCESS) != 0)
        return esdm__error_set_errno(err, errno, "kv: cannot open '%s/%s'", target->directory,
                                     file);
    struct stat found;
    if (fstatat(target->fd, file, &found, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(found.st_mode))
        return esdm__error_set(err, ESDM_ECORRUPT, "kv: '%s/%s' is no regular file",
                               target->directory, file); /* a pipe would be waited for */
    int directory_lock = mode != KV__READ ? lock_directory(target, LOCK_SH) : -1;
    *ret_directory = mode != KV__READ && directory_lock < 0 && errno == EWOULDBLOCK;
    if (*ret_directory)
        return ESDM_ECANCELED;
    KCDB *db = kcdbnew();
    if (db == NULL) {
        if (directory_lock >= 0)
            (void) close(directory_lock);
        return esdm__error_nomem(err, 1, "a database");
    }
    int fd = -1;
    bool made = false;
    bool never = false;
    esdm_status status =
        mode != KV__READ ? make_file(target, file, mode, &fd, &made, err) : ESDM_OK;
    if (status == ESDM_OK && mode == KV__CHANGE && lseek(fd, 0, SEEK_END) == 0) {
        never = true; /* Kyoto Cabinet would make it */
        status = ESDM_ECANCELED;
    }
    errno = 0;
    if (status == ESDM_OK && !kv__start(target, file, db, tuned, flags_of(file, mode))) {
        bool locked = kcdbecode(db) == KCESYSTEM && strstr(kcdbemsg(db), "fcntl") != NULL;
        status = locked ? ESDM_ECANCELED : kv__error(target, file, db, "open", err);
        if (made)
            (void) !kv__delete(target, file, NULL);
        never = !locked && !made && was_never_made(target, file);
        if (never && mode == KV__READ)
            status =
                esdm__error_set(err, ESDM_ENOENT, "kv: '%s/%s' is empty", target->directory, file);
    }
    if (directory_lock >= 0)
        (void) close(directory_lock);
    if (status == ESDM_OK) {
        *ret_db = db;
        *ret_fd = fd;
        return ESDM_OK;
    }
    kcdbdel(db);
    if (fd >= 0)
        (void) esdm__descriptor_close(fd);
    if (!never || mode == KV__READ)
        return status;
    status = delete_never_made(target, file, err);
    return status == ESDM_ENOENT && mode == KV__WRITE ? ESDM_ECANCELED : status;
}

bool
kv__is_there(const kv__target *target, const char *file)
{
    return faccessat(target->fd, file, F_OK, 0) == 0 || errno != ENOENT;
}

void
kv__nap(uint64_t ns)
{
    struct timespec time = {.tv_sec = 0, .tv_nsec = (long) ns};
    (void) nanosleep(&time, NULL);
}

esdm_status
kv__open_database(const kv__target *target, const char *file, const char *path, kv__mode mode,
                  uint64_t until_ns, unsigned wait_ms, KCDB **ret_db, int *ret_fd, esdm_error *err)
{
    for (unsigned attempt = 0;; attempt++) {
        bool directory = false;
        esdm_status status =
            open_database(target, file, path, mode, ret_db, ret_fd, &directory, err);
        if (status != ESDM_ECANCELED)
            return status;
        if (directory && esdm__now_ns() >= until_ns)
            return kv__locked_error(target, KV__LOCK_FILE, 0, wait_ms, err);
        if (esdm__now_ns() >= until_ns)
            return kv__locked_error(target, file, holder_of(path), wait_ms, err);
        kv__nap(attempt < SHORT_NAPS ? FIRST_NAP : LONGER_NAP);
    }
}

/* ---- deleting ------------------------------------------------------------------------------- */

void
kv__delete_empty(const kv__target *target, const char *file)
{
    int directory_lock = lock_directory(target, LOCK_EX);
    if (directory_lock < 0)
        return; /* somebody opens one at this moment: it stays */
    (void) !kv__delete(target, file, NULL);
    (void) close(directory_lock);
}

esdm_status
kv__delete(const kv__target *target, const char *file, esdm_error *err)
{
    char log[KV__FILE_BYTES + 8];
    (void) snprintf(log, sizeof log, "%s.wal", file);
    if (unlinkat(target->fd, file, 0) != 0 && errno != ENOENT)
        return esdm__error_set_errno(err, errno, "kv: cannot remove '%s/%s'", target->directory,
                                     file);
    (void) unlinkat(target->fd, log, 0);
    return ESDM_OK;
}

void
kv__hide_lock(int directory_fd, int lock_fd)
{
    struct stat directory;
    struct stat lock;
    if (fstat(directory_fd, &directory) != 0 || fstat(lock_fd, &lock) != 0 ||
        lock.st_uid != geteuid())
        return;
    mode_t wanted = lock.st_mode & 0777;
    if ((directory.st_mode & S_IWGRP) == 0)
        wanted &= ~(mode_t) 0070;
    if ((directory.st_mode & S_IWOTH) == 0)
        wanted &= ~(mode_t) 0007;
    if (wanted != (lock.st_mode & 0777))
        (void) fchmod(lock_fd, wanted);
}
