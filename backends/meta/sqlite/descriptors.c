/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * SQLite's files under high numbers (base/descriptor.h), through its table of system calls.
 *
 * SQLite locks files by fcntl(F_SETLK): a lock belongs to the process, and closing any descriptor
 * of the file gives it up. So a file that is open already is not opened again, which would have to
 * be moved and closed under its low number: the new connection gets another descriptor of the same
 * open file. SQLite reads and writes by pread() and pwrite(), which share no position. When the
 * open one can only be read, and writing is wanted, the low number stays open beside the high one
 * until the last descriptor of that file is closed.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/sqlite_files.h"
#include "log_writes.h"
#include "mutexes.h"
#include "sql.h"

typedef struct open_file {
    struct open_file *next;
    dev_t device;
    ino_t inode;
    int fd;
    bool writable;
    bool parked; /* nobody uses it: closed with the file's last descriptor */
} open_file;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards the list; innermost */
static open_file *files;

static bool
is_file(const open_file *file, const struct stat *found)
{
    return file->device == found->st_dev && file->inode == found->st_ino;
}

/* Under the mutex. */
static void
forget(open_file *file)
{
    for (open_file **at = &files; *at != NULL; at = &(*at)->next) {
        if (*at == file) {
            *at = file->next;
            free(file);
            return;
        }
    }
}

/* Whether the number is still that of the file: a program can close any number. */
static bool
is_open(const open_file *file)
{
    struct stat found;
    return fstat(file->fd, &found) == 0 && is_file(file, &found);
}

/* Under the mutex: one through which the file is open. Forgets those that are gone. */
static open_file *
find_open(const struct stat *wanted)
{
    open_file *next = NULL;
    open_file *best = NULL;
    for (open_file *file = files; file != NULL; file = next) {
        next = file->next;
        if (!is_file(file, wanted))
            continue;
        if (!is_open(file))
            forget(file);
        else if (best == NULL || file->writable)
            best = file;
    }
    return best;
}

/* Under the mutex. Without memory the file is not known: closed as any other. */
static void
enter(const struct stat *found, int fd, bool writable, bool parked)
{
    open_file *file = malloc(sizeof *file);
    if (file == NULL)
        return;
    *file = (open_file){.next = files,
                        .device = found->st_dev,
                        .inode = found->st_ino,
                        .fd = fd,
                        .writable = writable,
                        .parked = parked};
    files = file;
}

/* Under the mutex: what open() has returned. */
static int
move_opened(int fd, bool writable)
{
    struct stat found;
    if (fd < 0 || fstat(fd, &found) != 0 || !S_ISREG(found.st_mode))
        return fd; /* a directory, which is closed at once */
    int high = fd;
    if (find_open(&found) == NULL) {
        high = esdm__descriptor_keep(fd);
    } else {
        high = esdm__descriptor_dup(fd);
        esdm__descriptor_enter(fd);
        if (high < 0)
            high = fd;
        else
            enter(&found, fd, writable, true);
    }
    enter(&found, high, writable, false);
    return high;
}

/* Called by SQLite. O_NONBLOCK: a pipe in place of a file is an error, rather than waited for. */
static int
open_high(const char *path, int flags, int mode)
{
    struct stat found;
    bool writable = (flags & O_ACCMODE) != O_RDONLY;
    int fd = -1;
    (void) pthread_mutex_lock(&mutex);
    const open_file *same = NULL;
    if ((flags & (O_EXCL | O_TRUNC | O_DIRECTORY)) == 0 &&
        ((flags & O_NOFOLLOW) != 0 ? lstat(path, &found) : stat(path, &found)) == 0)
        same = find_open(&found);
    if (same != NULL && (same->writable || !writable)) {
        writable = same->writable;
        fd = esdm__descriptor_dup(same->fd);
        if (fd >= 0)
            enter(&found, fd, writable, false);
    } else {
        fd = move_opened(open(path, flags | O_CLOEXEC | O_NONBLOCK, mode), writable);
    }
    int why = errno;
    sqlite__log_opened(path, fd);
    (void) pthread_mutex_unlock(&mutex);
    errno = why;
    return fd;
}

/* Under the mutex: the last user of the file is gone. */
static void
close_parked(const struct stat *of)
{
    open_file *next = NULL;
    for (open_file *file = files; file != NULL; file = file->next) {
        if (is_file(file, of) && !file->parked)
            return;
    }
    for (open_file *file = files; file != NULL; file = next) {
        next = file->next;
        if (!is_file(file, of))
            continue;
        if (is_open(file))
            (void) esdm__descriptor_close(file->fd);
        forget(file);
    }
}

/* Called by SQLite. */
static int
close_high(int fd)
{
    (void) pthread_mutex_lock(&mutex);
    sqlite__log_closing(fd);
    open_file *file = files;
    while (file != NULL && (file->fd != fd || file->parked))
        file = file->next;
    int result = 0;
    int why = errno;
    if (file == NULL) {
        result = close(fd);
        why = errno;
    } else {
        const struct stat of = {.st_dev = file->device, .st_ino = file->inode};
        if (is_open(file)) { /* else somebody else's by now */
            result = esdm__descriptor_close(fd);
            why = errno;
        }
        forget(file);
        close_parked(&of);
    }
    (void) pthread_mutex_unlock(&mutex);
    errno = why;
    return result;
}

/* ---- the table of system calls -------------------------------------------------------------- */

static void
lock_for_fork(void)
{
    (void) pthread_mutex_lock(&mutex);
}

static void
unlock_after_fork(void)
{
    (void) pthread_mutex_unlock(&mutex);
}

static void
set_calls(sqlite3_syscall_ptr open_call, sqlite3_syscall_ptr close_call)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find("unix");
    /* Two descriptors of one open file have one position. */
    if (vfs == NULL || vfs->iVersion < 3 ||
        (vfs->xGetSystemCall(vfs, "pread64") == NULL && vfs->xGetSystemCall(vfs, "pread") == NULL))
        return;
    (void) vfs->xSetSystemCall(vfs, "open", open_call);
    (void) vfs->xSetSystemCall(vfs, "close", close_call);
#ifdef ESDM_OWN_SQLITE
    sqlite__log_install(vfs);
#endif
}

static void
install(void)
{
#ifdef ESDM_OWN_SQLITE
    /* Nobody asks how much memory SQLite has; counting it takes a lock for each piece. */
    (void) sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    /* Nor 20 pages at once for each connection, which are touched as they are made: a program that
     * reads a container needs some ten. */
    (void) sqlite3_config(SQLITE_CONFIG_PAGECACHE, NULL, 0, 0);
    sqlite__mutexes_install();
#endif
    /* First: what is registered first is locked last. */
    set_calls((sqlite3_syscall_ptr) open_high, (sqlite3_syscall_ptr) close_high);
    (void) pthread_atfork(lock_for_fork, unlock_after_fork, unlock_after_fork);
}

void
esdm__sqlite_high_descriptors(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void) pthread_once(&once, install);
}
