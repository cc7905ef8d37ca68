/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * The pages that a transaction adds to the log, by one call. SQLite writes each of them by two:
 * first a frame's head of 24 bytes, then the page.
 *
 * What fits this pattern is kept in memory until the page is complete whose head says that it ends
 * a transaction. That write writes all, and returns the error of all. Only then does SQLite tell
 * others, through the shared memory, that the transaction is there; so nobody ever looks for a page
 * that is not in the file. What is written otherwise (the head of the log, a page that is written
 * for a second time, a head alone) goes to the file at once, behind what is kept. So does what is
 * kept when it is much.
 *
 * A transaction that is taken back leaves something here. It is thrown away when the lock is given
 * up that writers hold (it never was in the log, for anybody), as others may write there next. A
 * child of fork() throws away what was its parent's.
 *
 * Heads are also written alone, when a page of the transaction was written twice: SQLite then reads
 * each frame as a whole, and writes its head again. By this reading they are recognised.
 */

#include "log_writes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD 24 /* bytes of a frame before its page */
/* Where the head says how large the database is behind it; 0: the transaction goes on. */
#define ENDS_AT    4
#define PAGE_MIN   512
#define PAGE_MAX   65536
#define ROOM       (264 * 1024) /* for 64 frames of usual pages, and a few of the largest */
#define WRITE_LOCK 120 /* position in the shared memory's file of the lock that writers hold */

typedef enum role {
    LOG,   /* "-wal" */
    MEMORY /* "-shm" */
} role;

typedef struct log_file {
    struct log_file *next;
    int fd;
    role role;
    dev_t device; /* of the database */
    ino_t inode;
    char *kept;    /* owned; NULL: nothing was kept yet */
    size_t bytes;  /* kept; the last frame may be a head alone */
    off_t at;      /* where they belong */
    bool headed;   /* the last of them is a head, whose page is to come */
    bool ends;     /* which ends the transaction */
    off_t read_at; /* where a whole frame was read last; -1: nowhere */
} log_file;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards all below; innermost */
static log_file *logs;
static atomic_int nkept; /* logs of which something is kept */

/* ---- what is kept: under the mutex ---------------------------------------------------------- */

static log_file *
find_log(int fd)
{
    log_file *log = logs;
    while (log != NULL && log->fd != fd)
        log = log->next;
    return log;
}

static bool
is_same(const log_file *a, const log_file *b)
{
    return a->device == b->device && a->inode == b->inode;
}

/* Whether somebody tells us when the lock is given up. */
static bool
has_memory(const log_file *of)
{
    for (const log_file *log = logs; log != NULL; log = log->next) {
        if (log->role == MEMORY && is_same(log, of))
            return true;
    }
    return false;
}

static void
throw_away(log_file *log)
{
    if (log->bytes > 0)
        atomic_fetch_sub(&nkept, 1);
    log->bytes = 0;
    log->headed = log->ends = false;
}

/* 0, or -1 and errno. Nothing is kept afterwards: SQLite takes a transaction back that fails.
 * Others need not wait meanwhile: of one log nothing happens but by the thread that is here. */
static int
write_kept(log_file *log)
{
    const size_t bytes = log->bytes;
    const off_t at = log->at;
    int why = 0;
    if (bytes == 0)
        return 0;
    (void) pthread_mutex_unlock(&mutex);
    for (size_t done = 0; done < bytes && why == 0;) {
        ssize_t n = pwrite(log->fd, log->kept + done, bytes - done, at + (off_t) done);
        if (n > 0)
            done += (size_t) n;
        else if (n == 0 || errno != EINTR)
            why = n == 0 ? ENOSPC : errno;
    }
    (void) pthread_mutex_lock(&mutex);
    throw_away(log);
    errno = why;
    return why == 0 ? 0 : -1;
}

static void
keep(log_file *log, const void *data, size_t bytes, off_t at)
{
    if (log->bytes == 0) {
        atomic_fetch_add(&nkept, 1);
        log->at = at;
    }
    memcpy(log->kept + log->bytes, data, bytes);
    log->bytes += bytes;
}

static bool
ends_transaction(const char *head)
{
    static const char none[4];
    return memcmp(head + ENDS_AT, none, sizeof none) != 0;
}

/* Whether it may be the head of the next frame. */
static bool
is_head(log_file *log, size_t bytes, off_t at)
{
    if (bytes != HEAD || log->headed || at == log->read_at)
        return false;
    if (log->bytes > 0)
        return at == log->at + (off_t) log->bytes;
    return (log->kept != NULL || (log->kept = malloc(ROOM)) != NULL) && has_memory(log);
}

static bool
is_page(const log_file *log, size_t bytes, off_t at)
{
    return log->headed && bytes >= PAGE_MIN && bytes <= PAGE_MAX &&
           at == log->at + (off_t) log->bytes;
}

/* ---- SQLite's calls ------------------------------------------------------------------------- */

/* Keeps it, or writes what is kept. Under the mutex. @return 0, or -1 and errno.
 * @param ret_done false: it has to be written itself, behind that. */
static int
take(log_file *log, const void *data, size_t bytes, off_t at, bool *ret_done)
{
    *ret_done = true;
    if (is_head(log, bytes, at)) {
        if (log->bytes + HEAD + PAGE_MAX > ROOM && write_kept(log) != 0)
            return -1;
        keep(log, data, bytes, at);
        log->headed = true;
        log->ends = ends_transaction(data);
        return 0;
    }
    if (is_page(log, bytes, at)) {
        keep(log, data, bytes, at);
        log->headed = false;
        return log->ends ? write_kept(log) : 0;
    }
    *ret_done = false;
    return write_kept(log);
}

static ssize_t
write_log(int fd, const void *data, size_t bytes, off_t at)
{
    bool done = false;
    int failed = 0;
    (void) pthread_mutex_lock(&mutex);
    log_file *log = find_log(fd);
    if (log != NULL && log->role == LOG)
        failed = take(log, data, bytes, at, &done);
    int why = errno;
    (void) pthread_mutex_unlock(&mutex);
    errno = why;
    if (failed != 0)
        return -1;
    return done ? (ssize_t) bytes : pwrite(fd, data, bytes, at);
}

/* A whole frame is no power of two. Pages that the transaction has written are read from memory, so
 * that a full disk is no error of a read. */
static ssize_t
read_log(int fd, void *data, size_t bytes, off_t at)
{
    bool is_frame = bytes > PAGE_MIN && (bytes & (bytes - 1)) != 0;
    if (!is_frame && atomic_load(&nkept) == 0)
        return pread(fd, data, bytes, at);
    ssize_t result = 0;
    (void) pthread_mutex_lock(&mutex);
    log_file *log = find_log(fd);
    if (log != NULL && log->role == LOG) {
        log->read_at = is_frame ? at : -1;
        if (at >= log->at && at + (off_t) bytes <= log->at + (off_t) log->bytes) {
            memcpy(data, log->kept + (at - log->at), bytes);
            result = (ssize_t) bytes;
        } else if (at + (off_t) bytes > log->at) {
            result = write_kept(log);
        }
    }
    int why = errno;
    (void) pthread_mutex_unlock(&mutex);
    errno = why;
    return result != 0 ? result : pread(fd, data, bytes, at);
}

/* The writer gives up its lock, or takes it: what is kept is of a transaction that was taken back.
 */
static void
end_transaction(int fd)
{
    (void) pthread_mutex_lock(&mutex);
    const log_file *memory = find_log(fd);
    for (log_file *log = logs; log != NULL && memory != NULL && memory->role == MEMORY;
         log = log->next) {
        if (log->role == LOG && is_same(log, memory)) {
            throw_away(log);
            log->read_at = -1;
        }
    }
    (void) pthread_mutex_unlock(&mutex);
}

static int
control_file(int fd, int command, ...)
{
    va_list rest;
    int result = 0;
    va_start(rest, command);
    if (command == F_SETLK || command == F_SETLKW || command == F_GETLK) {
        struct flock *lock = va_arg(rest, struct flock *);
        if (command != F_GETLK && lock->l_type != F_RDLCK && lock->l_start == WRITE_LOCK &&
            lock->l_whence == SEEK_SET)
            end_transaction(fd);
        result = fcntl(fd, command, lock);
    } else {
        int argument = va_arg(rest, int);
        result = fcntl(fd, command, argument);
    }
    va_end(rest);
    return result;
}

/* ---- files ---------------------------------------------------------------------------------- */

void
sqlite__log_opened(const char *path, int fd)
{
    static const char *const ends[] = {[LOG] = "-wal", [MEMORY] = "-shm"};
    char database[PATH_MAX];
    size_t bytes = strlen(path);
    struct stat found;
    for (size_t what = LOG; what <= MEMORY; what++) {
        if (fd < 0 || bytes < 5 || bytes >= sizeof database ||
            strcmp(path + bytes - 4, ends[what]) != 0)
            continue;
        memcpy(database, path, bytes - 4);
        database[bytes - 4] = '\0';
        log_file *log = stat(database, &found) == 0 ? malloc(sizeof *log) : NULL;
        if (log == NULL)
            return; /* as SQLite writes it */
        *log = (log_file){.fd = fd,
                          .role = (role) what,
                          .device = found.st_dev,
                          .inode = found.st_ino,
                          .read_at = -1};
        (void) pthread_mutex_lock(&mutex);
        log->next = logs;
        logs = log;
        (void) pthread_mutex_unlock(&mutex);
    }
}

void
sqlite__log_closing(int fd)
{
    (void) pthread_mutex_lock(&mutex);
    for (log_file **at = &logs; *at != NULL; at = &(*at)->next) {
        log_file *log = *at;
        if (log->fd != fd)
            continue;
        throw_away(log);
        *at = log->next;
        free(log->kept);
        free(log);
        break;
    }
    (void) pthread_mutex_unlock(&mutex);
}

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
unlock_in_child(void)
{
    for (log_file *log = logs; log != NULL; log = log->next)
        throw_away(log);
    (void) pthread_mutex_unlock(&mutex);
}

void
sqlite__log_install(sqlite3_vfs *vfs)
{
    (void) pthread_atfork(lock_for_fork, unlock_after_fork, unlock_in_child);
    (void) vfs->xSetSystemCall(vfs, "pwrite", (sqlite3_syscall_ptr) write_log);
    (void) vfs->xSetSystemCall(vfs, "pwrite64", (sqlite3_syscall_ptr) write_log);
    (void) vfs->xSetSystemCall(vfs, "pread", (sqlite3_syscall_ptr) read_log);
    (void) vfs->xSetSystemCall(vfs, "pread64", (sqlite3_syscall_ptr) read_log);
    (void) vfs->xSetSystemCall(vfs, "fcntl", (sqlite3_syscall_ptr) control_file);
}
