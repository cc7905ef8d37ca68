/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Databases that this process has open.
 *
 * Kyoto Cabinet locks files by fcntl(): a lock belongs to the process, and closing any descriptor
 * of the file gives it up. So a process opens each database once, and its threads share it here.
 * A forked child has none of its parent's locks: it leaves their handles alone.
 *
 * Opening and closing a shard takes longer than storing a few bytes in it. So it stays open between
 * the transactions of a burst: until one of this process wants to read it, or IDLE_NS have passed
 * (the keeper, a thread that lives as long as there are such shards, sees to that), or it has been
 * open for HELD_NS. Then it is closed after each transaction for REST_NS, so that others get hold
 * of it, who try every FIRST_NAP.
 *
 * A database that has become empty is deleted under the exclusive lock of the file `lock`; who
 * opens one for writing holds it shared meanwhile, and so never gets hold of a deleted file.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/ids.h"
#include "kv.h"

#define MILLION    UINT64_C(1000000)
#define FIRST_NAP  UINT64_C(200000)
#define LONGER_NAP UINT64_C(5000000)
#define SHORT_NAPS 60u /* more than HELD_NS and REST_NS */

/* Packs that follow each other within this time are a burst. */
#define BURST_NS UINT64_C(1000000)
#define IDLE_NS  UINT64_C(2000000)
#define HELD_NS  UINT64_C(6000000)
#define REST_NS  UINT64_C(2000000)

/* Databases are not mapped into memory: on a full disk a mapping ends the program by SIGBUS. Few
 * buckets: a shard has some thousand records, and empty ones shall be small. Few free blocks are
 * remembered: they are read whenever it is opened, and there are none but of the list. */
#define TUNING "#msiz=0#bnum=8191#opts=l#fpow=4"

/* What a database begins with. */
#define HEADER_BYTES 64u

struct kv__handle {
    struct kv__handle *next;
    char *path;
    KCDB *db; /* NULL: being opened or closed */
    int fd;   /* of a writer, for space: closed after the database, for that gives up its lock */
    kv__mode mode;
    unsigned users;   /* 0: it is held open, or being closed */
    uint64_t held_ns; /* since when it is held open */
    uint64_t opened_ns;
    kv__target *target; /* of one that is, or was, held open */
    pid_t pid;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards the list and what is in it */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static kv__handle *handles;
static pid_t keeper; /* process whose keeper runs; 0: none */

KCDB *
kv__database(const kv__handle *handle)
{
    return handle->db;
}

int
kv__descriptor(const kv__handle *handle)
{
    return handle->fd;
}

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

static esdm_status
locked_error(const kv__target *target, const char *file, pid_t holder, unsigned wait_ms,
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
 * own database is always a new one. */
static esdm_status
make_file(const kv__target *target, const char *file, kv__mode mode, int *ret_fd, bool *ret_made,
          esdm_error *err)
{
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
    bool shard = kv__is_shard(file);
    int fd = shard ? openat(target->fd, file, flags) : -1;
    *ret_made = fd < 0 && mode == KV__WRITE;
    if (*ret_made)
        fd = openat(target->fd, file, flags | O_CREAT | O_EXCL, 0666);
    if (*ret_made && fd < 0 && errno == EEXIST && shard) {
        *ret_made = false;
        fd = openat(target->fd, file, flags);
    }
    *ret_made = *ret_made && fd >= 0;
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
    int fd = openat(target->fd, KV__LOCK_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && flock(fd, how) != 0) {
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

/* A shard that was never made, before it is written to. ESDM_ENOENT: it is gone. ESDM_ECANCELED:
 * somebody opens one at this moment, or has made it. */
static esdm_status
delete_never_made(const kv__target *target, const char *file, esdm_error *err)
{
    int lock = lock_directory(target, LOCK_EX | LOCK_NB);
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

/* One attempt. ESDM_ECANCELED: somebody has it locked, or another one may do. */
static esdm_status
open_database(const kv__target *target, const char *file, const char *path, kv__mode mode,
              KCDB **ret_db, int *ret_fd, esdm_error *err)
{
    char tuned[PATH_MAX];
    if (snprintf(tuned, sizeof tuned, "%s" TUNING, path) >= (int) sizeof tuned)
        return esdm__error_set(err, ESDM_EINVAL, "kv: '%.200s' is too long", path);
    if (mode == KV__READ && faccessat(target->fd, file, R_OK, AT_EACCESS) != 0)
        return esdm__error_set_errno(err, errno, "kv: cannot open '%s/%s'", target->directory,
                                     file);
    KCDB *db = kcdbnew();
    if (db == NULL)
        return esdm__error_nomem(err, 1, "a database");
    int directory_lock = mode != KV__READ ? lock_directory(target, LOCK_SH) : -1;
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
    if (status == ESDM_OK && kcdbopen(db, tuned, flags_of(file, mode)) == 0) {
        bool locked = kcdbecode(db) == KCESYSTEM && strstr(kcdbemsg(db), "fcntl") != NULL;
        status = locked ? ESDM_ECANCELED : kv__error(target, file, db, "open", err);
        if (made && (!locked || !kv__is_shard(file))) /* else others may go on with it */
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
        (void) close(fd);
    if (!never || mode == KV__READ)
        return status;
    status = delete_never_made(target, file, err);
    return status == ESDM_ENOENT && mode == KV__WRITE ? ESDM_ECANCELED : status;
}

static void
nap(uint64_t ns)
{
    struct timespec time = {.tv_sec = 0, .tv_nsec = (long) ns};
    (void) nanosleep(&time, NULL);
}

static uint64_t
monotonic_ns(void)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000 * MILLION + (uint64_t) now.tv_nsec;
}

static esdm_status
open_patiently(const kv__target *target, const char *file, const char *path, kv__mode mode,
               uint64_t until_ns, unsigned wait_ms, KCDB **ret_db, int *ret_fd, esdm_error *err)
{
    for (unsigned attempt = 0;; attempt++) {
        esdm_status status = open_database(target, file, path, mode, ret_db, ret_fd, err);
        if (status != ESDM_ECANCELED)
            return status;
        if (esdm__now_ns() >= until_ns)
            return locked_error(target, file, holder_of(path), wait_ms, err);
        nap(attempt < SHORT_NAPS ? FIRST_NAP : LONGER_NAP);
    }
}

/* ---- handles -------------------------------------------------------------------------------- */

static void
lock_for_fork(void)
{
    kv__lock_packs();
    (void) pthread_mutex_lock(&mutex);
}

static void
unlock_after_fork(void)
{
    (void) pthread_mutex_unlock(&mutex);
    kv__unlock_packs();
}

/* Who waits in the parent is not here: the condition would wait for it. */
static void
unlock_in_child(void)
{
    changed = (pthread_cond_t) PTHREAD_COND_INITIALIZER;
    unlock_after_fork();
}

static void
register_handlers(void)
{
    (void) pthread_atfork(lock_for_fork, unlock_after_fork, unlock_in_child);
}

void
kv__prepare_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void) pthread_once(&once, register_handlers);
}

/* Under the mutex; of this process. */
static kv__handle *
find_handle(const char *path)
{
    kv__handle *handle = handles;
    while (handle != NULL && (handle->pid != getpid() || strcmp(handle->path, path) != 0))
        handle = handle->next;
    return handle;
}

/* Under the mutex. */
static void
erase_handle(kv__handle *handle)
{
    for (kv__handle **at = &handles; *at != NULL; at = &(*at)->next) {
        if (*at == handle) {
            *at = handle->next;
            break;
        }
    }
    free(handle->path);
    free(handle);
    (void) pthread_cond_broadcast(&changed);
}

/* Under the mutex: nobody uses it, and it is open. */
static bool
is_held(const kv__handle *handle)
{
    return handle->users == 0 && handle->db != NULL;
}

/* Under the mutex, which is let go meanwhile: others wait until it is closed. The handle is gone.
 * Of one that is held, whose packs count as stored, a failure is told by `target` later. */
static esdm_status
close_handle(kv__handle *handle, esdm_error *err)
{
    KCDB *db = handle->db;
    esdm_status status = ESDM_OK;
    esdm_error why = {0};
    handle->db = NULL;
    (void) pthread_mutex_unlock(&mutex);
    if (kcdbclose(db) == 0 && handle->mode != KV__READ)
        status = esdm__error_set(&why, ESDM_EIO, "kv: cannot close '%.300s': %s", handle->path,
                                 kcdbemsg(db));
    kcdbdel(db);
    if (handle->fd >= 0)
        (void) close(handle->fd);
    (void) pthread_mutex_lock(&mutex);
    if (status != ESDM_OK && err != NULL)
        *err = why;
    else if (status != ESDM_OK && handle->target != NULL)
        handle->target->failure = why;
    erase_handle(handle);
    return status;
}

/* Under the mutex: waits until the database is free, or can be shared, which gives its handle; so
 * does one that is held open, to a writer.
 * false: out of time. */
static bool
wait_for_turn(const char *path, kv__mode mode, uint64_t until_ns, kv__handle **ret_shared)
{
    struct timespec until = {.tv_sec = (time_t) (until_ns / 1000 / MILLION),
                             .tv_nsec = (long) (until_ns % (1000 * MILLION))};
    *ret_shared = NULL;
    for (;;) {
        kv__handle *handle = find_handle(path);
        if (handle == NULL)
            return true;
        if (is_held(handle) && mode == KV__READ) {
            (void) !close_handle(handle, NULL);
            continue;
        }
        if (is_held(handle)) {
            *ret_shared = handle;
            return true;
        }
        if (mode == KV__READ && handle->mode == KV__READ && handle->db != NULL) {
            *ret_shared = handle;
            return true;
        }
        if (pthread_cond_timedwait(&changed, &mutex, &until) == ETIMEDOUT &&
            find_handle(path) != NULL)
            return false;
    }
}

/* Under the mutex: takes the place, so that other threads wait. */
static kv__handle *
enter_handle(const char *path, kv__mode mode)
{
    kv__handle *handle = calloc(1, sizeof *handle);
    char *copy = strdup(path);
    if (handle == NULL || copy == NULL) {
        free(handle);
        free(copy);
        return NULL;
    }
    *handle = (kv__handle){
        .next = handles, .path = copy, .fd = -1, .mode = mode, .users = 1, .pid = getpid()};
    handles = handle;
    return handle;
}

esdm_status
kv__acquire(const kv__target *target, const char *file, kv__mode mode, unsigned wait_ms,
            kv__handle **ret_handle, esdm_error *err)
{
    char path[PATH_MAX];
    uint64_t until_ns = esdm__now_ns() + wait_ms * MILLION;
    kv__handle *shared = NULL;
    if (snprintf(path, sizeof path, "%s/%s", target->directory, file) >= (int) sizeof path)
        return esdm__error_set(err, ESDM_EINVAL, "kv: '%.200s' is too long", target->directory);
    (void) pthread_mutex_lock(&mutex);
    bool in_time = wait_for_turn(path, mode, until_ns, &shared);
    kv__handle *handle = in_time && shared == NULL ? enter_handle(path, mode) : NULL;
    if (shared != NULL)
        shared->users++;
    (void) pthread_mutex_unlock(&mutex);
    if (!in_time)
        return locked_error(target, file, getpid(), wait_ms, err);
    if (shared != NULL) {
        *ret_handle = shared;
        return ESDM_OK;
    }
    if (handle == NULL)
        return esdm__error_nomem(err, sizeof *handle, "a database");
    KCDB *db = NULL;
    int fd = -1;
    esdm_status status = open_patiently(target, file, path, mode, until_ns, wait_ms, &db, &fd, err);
    (void) pthread_mutex_lock(&mutex);
    handle->db = db;
    handle->fd = fd;
    handle->opened_ns = monotonic_ns();
    if (status != ESDM_OK)
        erase_handle(handle);
    else
        (void) pthread_cond_broadcast(&changed);
    (void) pthread_mutex_unlock(&mutex);
    if (status == ESDM_OK)
        *ret_handle = handle;
    return status;
}

esdm_status
kv__release(kv__handle *handle, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    if (handle == NULL || handle->pid != getpid())
        return ESDM_OK;
    (void) pthread_mutex_lock(&mutex);
    if (--handle->users == 0)
        status = close_handle(handle, err);
    (void) pthread_mutex_unlock(&mutex);
    return status;
}

/* ---- shards that are held open -------------------------------------------------------------- */

/* Under the mutex: one that is held since before that; NULL: none. `target` NULL: any. */
static kv__handle *
find_held(const kv__target *target, uint64_t before_ns)
{
    kv__handle *handle = handles;
    while (handle != NULL &&
           (handle->pid != getpid() || !is_held(handle) || handle->held_ns > before_ns ||
            (target != NULL && handle->target != target)))
        handle = handle->next;
    return handle;
}

static void *
keep(void *nothing)
{
    (void) nothing;
    (void) pthread_mutex_lock(&mutex);
    while (find_held(NULL, UINT64_MAX) != NULL) {
        kv__handle *expired = find_held(NULL, monotonic_ns() - IDLE_NS);
        if (expired != NULL) {
            (void) !close_handle(expired, NULL); /* its transactions have ended */
            continue;
        }
        (void) pthread_mutex_unlock(&mutex);
        nap(IDLE_NS / 2);
        (void) pthread_mutex_lock(&mutex);
    }
    keeper = 0;
    (void) pthread_mutex_unlock(&mutex);
    return NULL;
}

/* Under the mutex. Signals are for the program's threads. */
static bool
start_keeper(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all;
    sigset_t before;
    if (keeper == getpid())
        return true;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    (void) pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void) sigfillset(&all);
    (void) pthread_sigmask(SIG_SETMASK, &all, &before);
    bool good = pthread_create(&thread, &attributes, keep, NULL) == 0;
    (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void) pthread_attr_destroy(&attributes);
    keeper = good ? getpid() : 0;
    return good;
}

/* Under the mutex. */
static bool
shall_hold(kv__target *target, const kv__handle *handle, uint64_t now_ns)
{
    bool burst = now_ns - target->stored_ns < BURST_NS;
    target->stored_ns = now_ns;
    if (now_ns - handle->opened_ns > HELD_NS)
        target->rest_ns = now_ns + REST_NS;
    return burst && now_ns >= target->rest_ns && start_keeper();
}

esdm_status
kv__release_soon(kv__target *target, kv__handle *handle, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    if (handle == NULL || handle->pid != getpid())
        return ESDM_OK;
    uint64_t now_ns = monotonic_ns();
    (void) pthread_mutex_lock(&mutex);
    handle->users = 0;
    if (shall_hold(target, handle, now_ns)) {
        handle->held_ns = now_ns;
        handle->target = target;
        (void) pthread_cond_broadcast(&changed);
    } else {
        status = close_handle(handle, err);
    }
    (void) pthread_mutex_unlock(&mutex);
    return status;
}

/* Under the mutex: whether one that was held for the target is not closed yet. */
static bool
is_holder(const kv__target *target)
{
    const kv__handle *handle = handles;
    while (handle != NULL && (handle->pid != getpid() || handle->target != target))
        handle = handle->next;
    return handle != NULL;
}

void
kv__release_all(const kv__target *target)
{
    (void) pthread_mutex_lock(&mutex);
    while (is_holder(target)) {
        kv__handle *held = find_held(target, UINT64_MAX);
        if (held != NULL)
            (void) !close_handle(held, NULL);
        else
            (void) pthread_cond_wait(&changed, &mutex);
    }
    (void) pthread_mutex_unlock(&mutex);
}

esdm_status
kv__held_failure(kv__target *target, esdm_error *err)
{
    (void) pthread_mutex_lock(&mutex);
    esdm_status status = target->failure.status;
    if (status != ESDM_OK && err != NULL)
        *err = target->failure;
    target->failure = (esdm_error){0};
    (void) pthread_mutex_unlock(&mutex);
    return status;
}

/* ---- deleting ------------------------------------------------------------------------------- */

void
kv__delete_empty(const kv__target *target, const char *file)
{
    int directory_lock = lock_directory(target, LOCK_EX | LOCK_NB);
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
