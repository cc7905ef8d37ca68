/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The folder of a site's runs: who may write what, and what is read of it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/process_place.h"
#include "monitor/runs.h"

#define SUFFIX       ".jsonl"
#define LOCK         ".lock"
#define LOCK_TRIES   100
#define LOCK_WAIT_NS 5000000
#define NAME_BYTES   64

/* ---- the site's folder ---------------------------------------------------------------------- */

static const char *
problem_of(const struct stat *st)
{
    if (!S_ISDIR(st->st_mode))
        return "it is no folder";
    if ((st->st_mode & 022) != 0 && (st->st_mode & S_ISVTX) == 0)
        return "others may write there and it has no sticky bit, so that they could replace each "
               "other's records: chmod +t";
    return NULL;
}

const char *
esdm__runs_problem(const char *folder)
{
    struct stat st;
    if (stat(folder, &st) == 0)
        return problem_of(&st);
    return errno == ENOENT ? "it is not there" : "it cannot be looked at";
}

/* "1001"; false: it is no folder of a user. */
static bool
user_of(const char *name, uid_t *ret_uid)
{
    char *end = NULL, again[24];
    unsigned long long value = name[0] >= '0' && name[0] <= '9' ? strtoull(name, &end, 10) : 0;
    *ret_uid = (uid_t) value;
    (void) snprintf(again, sizeof again, "%llu", (unsigned long long) *ret_uid);
    return end != NULL && *end == '\0' && strcmp(again, name) == 0;
}

unsigned
esdm__runs_foreign(const char *folder, void (*tell)(void *context, uid_t user, uid_t owner),
                   void *context)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    struct stat st;
    uid_t user;
    unsigned count = 0;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (!user_of(entry->d_name, &user) ||
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || st.st_uid == user)
            continue;
        if (count++ < ESDM__RUNS_TOLD)
            tell(context, user, st.st_uid);
    }
    if (dir != NULL)
        (void) closedir(dir);
    return count;
}

esdm_status
esdm__runs_make(const char *folder, esdm_error *err)
{
    if (mkdir(folder, 0700) != 0)
        return errno == EEXIST ? ESDM_OK
                               : esdm__error_set_errno(err, errno, "monitor.runs: %s", folder);
    if (chmod(folder, 01777) != 0)
        return esdm__error_set_errno(err, errno, "monitor.runs: %s", folder);
    return ESDM_OK;
}

/* Who may read it may read what is in it. */
static mode_t
mode_of(const struct stat *site, bool is_folder)
{
    mode_t mode = is_folder ? 0700 : 0600;
    if ((site->st_mode & S_IRGRP) != 0)
        mode |= is_folder ? 0050 : 0040;
    if ((site->st_mode & S_IROTH) != 0)
        mode |= is_folder ? 0005 : 0004;
    return mode;
}

static int
open_site(const char *folder, struct stat *ret_st)
{
    int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, ret_st) != 0 || problem_of(ret_st) != NULL)) {
        (void) close(fd);
        errno = EPERM;
        return -1;
    }
    return fd;
}

/* A user's folder, which nobody else can have made or can change. */
static int
open_user(int site, const char *user, uid_t uid)
{
    struct stat st;
    int fd = openat(site, user, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &st) != 0 || st.st_uid != uid || (st.st_mode & 022) != 0)) {
        (void) close(fd);
        errno = EPERM;
        return -1;
    }
    return fd;
}

/* "plot.py-0123456789abcdef.jsonl" */
static void
name_file(const char *program, char ret[NAME_BYTES])
{
    uint64_t hash = UINT64_C(14695981039346656037);
    char plain[33];
    for (const char *c = program; *c != '\0'; c++)
        hash = (hash ^ (unsigned char) *c) * UINT64_C(1099511628211);
    (void) snprintf(plain, sizeof plain, "%s", program);
    for (char *c = plain; *c != '\0'; c++) {
        bool good = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                    (*c >= '0' && *c <= '9') || (*c == '.' && c != plain) || *c == '_';
        *c = good ? *c : '-';
    }
    (void) snprintf(ret, NAME_BYTES, "%s-%016llx" SUFFIX, plain, (unsigned long long) hash);
}

static bool
is_runs_file(const char *name)
{
    size_t length = strlen(name);
    return name[0] != '.' && length > sizeof SUFFIX &&
           strcmp(name + length - (sizeof SUFFIX - 1), SUFFIX) == 0;
}

/* A regular file of that user. @param most bytes; 0: any. */
static int
open_file(int folder, const char *name, int flags, uid_t uid, struct stat *ret_st)
{
    int fd = openat(folder, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd >= 0 && (fstat(fd, ret_st) != 0 || !S_ISREG(ret_st->st_mode) || ret_st->st_uid != uid ||
                    ret_st->st_nlink != 1 || (ret_st->st_mode & 022) != 0)) {
        (void) close(fd);
        errno = EPERM;
        return -1;
    }
    return fd;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* Of `most` files the one that was not added to for the longest time goes. */
static void
make_room(int folder, unsigned most)
{
    char oldest[NAME_MAX + 1] = "";
    struct timespec when = {0};
    unsigned count = 0;
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    const struct dirent *entry;
    struct stat st;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (!is_runs_file(entry->d_name) ||
            fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        bool older = st.st_mtim.tv_sec < when.tv_sec ||
                     (st.st_mtim.tv_sec == when.tv_sec && st.st_mtim.tv_nsec < when.tv_nsec);
        if (count++ == 0 || older) {
            when = st.st_mtim;
            (void) snprintf(oldest, sizeof oldest, "%s", entry->d_name);
        }
    }
    if (dir != NULL)
        (void) closedir(dir);
    else if (copy >= 0)
        (void) close(copy);
    if (count >= most)
        (void) unlinkat(folder, oldest, 0);
}

static bool
write_all(int fd, const char *text, size_t bytes)
{
    while (bytes > 0) {
        ssize_t n = write(fd, text, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        text += n;
        bytes -= (size_t) n;
    }
    return true;
}

/* The newer half of a full file becomes the file. */
static int
halve(int folder, const char *name, int fd, const struct stat *st, mode_t mode)
{
    static const char next[] = ".next";
    char *text = malloc(ESDM__RUNS_FILE / 2);
    off_t from = st->st_size > (off_t) (ESDM__RUNS_FILE / 2)
                     ? st->st_size - (off_t) (ESDM__RUNS_FILE / 2)
                     : 0;
    ssize_t n = text != NULL ? pread(fd, text, ESDM__RUNS_FILE / 2, from) : -1;
    const char *first = n > 0 ? memchr(text, '\n', (size_t) n) : NULL;
    first = first != NULL ? first + 1 : text;
    (void) unlinkat(folder, next, 0);
    int to =
        n > 0 ? openat(folder, next, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    bool good = to >= 0 && fchmod(to, mode) == 0 &&
                write_all(to, first, (size_t) (text + n - first)) &&
                renameat(folder, next, folder, name) == 0;
    free(text);
    (void) close(fd);
    if (good)
        return to;
    if (to >= 0)
        (void) close(to);
    return -1;
}

/* All of it or nothing. */
static bool
append(int fd, const char *line)
{
    struct stat st;
    size_t bytes = strlen(line);
    char *text = malloc(bytes + 1);
    if (text == NULL || fstat(fd, &st) != 0) {
        free(text);
        return false;
    }
    memcpy(text, line, bytes);
    text[bytes] = '\n';
    bool good = write_all(fd, text, bytes + 1);
    int why = errno;
    if (!good)
        (void) !ftruncate(fd, st.st_size);
    errno = why;
    free(text);
    return good;
}

static int
lock_folder(int folder)
{
    struct stat st;
    int fd = open_file(folder, LOCK, O_RDWR | O_CREAT, geteuid(), &st);
    for (int tries = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0; tries++) {
        const struct timespec wait = {.tv_nsec = LOCK_WAIT_NS};
        if (tries == LOCK_TRIES || (errno != EWOULDBLOCK && errno != EINTR)) {
            (void) close(fd);
            errno = ETIMEDOUT;
            return -1;
        }
        (void) nanosleep(&wait, NULL);
    }
    return fd;
}

static bool
add_locked(int folder, const char *name, const char *line, mode_t mode)
{
    struct stat st;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        make_room(folder, ESDM__RUNS_FILES);
    int fd = open_file(folder, name, O_RDWR | O_APPEND | O_CREAT, geteuid(), &st);
    /* Later the user may have closed it further, which stays. */
    mode = fd >= 0 && st.st_size > 0 ? st.st_mode & mode : mode;
    if (fd >= 0 && (st.st_mode & 0777) != mode)
        (void) fchmod(fd, mode);
    if (fd >= 0 && (size_t) st.st_size + strlen(line) + 1 > ESDM__RUNS_FILE)
        fd = halve(folder, name, fd, &st, mode);
    bool good = fd >= 0 && append(fd, line);
    int why = errno;
    if (fd >= 0)
        (void) close(fd);
    errno = why;
    return good;
}

/* This user's folder, made when it is missing. */
static int
own_folder(int site, const struct stat *of)
{
    char user[24];
    struct stat st;
    (void) snprintf(user, sizeof user, "%llu", (unsigned long long) geteuid());
    bool made = mkdirat(site, user, 0700) == 0;
    if (!made && errno != EEXIST)
        return -1;
    int folder = open_user(site, user, geteuid());
    if (folder >= 0 && fstat(folder, &st) == 0) {
        mode_t mode = mode_of(of, true) & (made ? 0777 : st.st_mode);
        if ((st.st_mode & 0777) != mode)
            (void) fchmod(folder, mode | (st.st_mode & S_ISGID));
    }
    return folder;
}

static bool
add(int site, const struct stat *of, const char *program, const char *line)
{
    char name[NAME_BYTES];
    name_file(program, name);
    int folder = own_folder(site, of);
    if (folder < 0)
        return false;
    int lock = lock_folder(folder);
    bool good = lock >= 0 && add_locked(folder, name, line, mode_of(of, false));
    int why = errno;
    if (lock >= 0)
        (void) close(lock);
    (void) close(folder);
    errno = why;
    return good;
}

esdm_status
esdm__runs_add(const char *folder, const char *program, const char *line, esdm_error *err)
{
    struct stat st;
    if (strlen(line) >= ESDM__RUNS_LINE || strchr(line, '\n') != NULL)
        return esdm__error_set(err, ESDM_EINVAL,
                               "a record of a run is one line of less than %zu bytes",
                               ESDM__RUNS_LINE);
    int site = open_site(folder, &st);
    bool good = site >= 0 && add(site, &st, program, line);
    int why = errno;
    if (site >= 0)
        (void) close(site);
    return good ? ESDM_OK : esdm__error_set_errno(err, why, "monitor.runs: %s", folder);
}

/* ---- traces ---------------------------------------------------------------------------------- */

#define TRACES "traces"

/* Each has a name of its own: the program, the time and the process. */
static int
make_trace(int user, const char *name, char *ret_name, size_t room)
{
    char program[NAME_BYTES], when[24] = "";
    struct tm tm;
    time_t now = time(NULL);
    if (mkdirat(user, TRACES, 0700) != 0 && errno != EEXIST)
        return -1;
    name_file(name, program);
    program[strcspn(program, ".")] = '\0';
    if (gmtime_r(&now, &tm) != NULL)
        (void) strftime(when, sizeof when, "%Y%m%dT%H%M%SZ", &tm);
    (void) snprintf(ret_name, room, "%s-%s-%08x-%d" SUFFIX, program, when,
                    (unsigned) esdm__process_place(), (int) getpid());
    int folder = open_user(user, TRACES, geteuid());
    if (folder < 0)
        return -1;
    make_room(folder, ESDM__RUNS_TRACES);
    int fd = openat(folder, ret_name, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int why = errno;
    (void) close(folder);
    errno = why;
    return fd;
}

int
esdm__runs_trace(const char *folder, const char *program, char **ret_path)
{
    struct stat st;
    char name[NAME_BYTES + 64];
    *ret_path = NULL;
    int site = open_site(folder, &st);
    int user = site >= 0 ? own_folder(site, &st) : -1;
    int fd = user >= 0 ? make_trace(user, program, name, sizeof name) : -1;
    int why = errno;
    if (user >= 0)
        (void) close(user);
    if (site >= 0)
        (void) close(site);
    if (fd >= 0 && asprintf(ret_path, "%s/%llu/" TRACES "/%s", folder,
                            (unsigned long long) geteuid(), name) < 0) {
        *ret_path = NULL;
        (void) close(fd);
        fd = -1;
        why = ENOMEM;
    }
    errno = why;
    return fd;
}

/* ---- reading -------------------------------------------------------------------------------- */

typedef struct reader {
    const char *program; /* NULL: all */
    char name[NAME_BYTES];
    esdm__runs_visitor take;
    void *context;
    bool more;
} reader;

static void
give_lines(reader *r, uid_t uid, char *text)
{
    char *state = NULL;
    for (char *line = strtok_r(text, "\n", &state); line != NULL && r->more;
         line = strtok_r(NULL, "\n", &state))
        r->more = r->take(r->context, uid, line);
}

static void
read_file(reader *r, int folder, const char *name, uid_t uid)
{
    struct stat st;
    int fd = open_file(folder, name, O_RDONLY, uid, &st);
    if (fd < 0)
        return;
    size_t bytes = (size_t) st.st_size;
    char *text = bytes <= ESDM__RUNS_FILE ? malloc(bytes + 1) : NULL;
    ssize_t n = text != NULL ? pread(fd, text, bytes, 0) : -1;
    if (n > 0) {
        for (char *zero = text; (zero = memchr(zero, '\0', (size_t) (text + n - zero))) != NULL;)
            *zero = '\n'; /* damaged: what is around it may be good */
        text[n] = '\0';
        give_lines(r, uid, text);
    }
    free(text);
    (void) close(fd);
}

static void
read_user(reader *r, int site, const char *user, uid_t uid)
{
    int folder = open_user(site, user, uid);
    if (folder >= 0 && r->program != NULL) {
        read_file(r, folder, r->name, uid);
        (void) close(folder);
        return;
    }
    DIR *dir = folder >= 0 ? fdopendir(folder) : NULL;
    const struct dirent *entry;
    unsigned count = 0;
    while (dir != NULL && r->more && (entry = readdir(dir)) != NULL) {
        if (is_runs_file(entry->d_name) && count++ < ESDM__RUNS_FILES)
            read_file(r, folder, entry->d_name, uid);
    }
    if (dir != NULL)
        (void) closedir(dir);
    else if (folder >= 0)
        (void) close(folder);
}

esdm_status
esdm__runs_read(const char *folder, const char *program, esdm__runs_visitor take, void *context,
                esdm_error *err)
{
    reader r = {.program = program, .take = take, .context = context, .more = true};
    struct stat st;
    uid_t uid;
    if (program != NULL)
        name_file(program, r.name);
    int site = open_site(folder, &st);
    if (site < 0)
        return esdm__error_set_errno(err, errno, "monitor.runs: %s", folder);
    int list = openat(site, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = list >= 0 ? fdopendir(list) : NULL;
    if (dir == NULL && list >= 0)
        (void) close(list);
    if (dir == NULL) { /* each user sees the own ones alone */
        char user[24];
        (void) snprintf(user, sizeof user, "%llu", (unsigned long long) geteuid());
        read_user(&r, site, user, geteuid());
    }
    const struct dirent *entry;
    while (dir != NULL && r.more && (entry = readdir(dir)) != NULL) {
        if (user_of(entry->d_name, &uid))
            read_user(&r, site, entry->d_name, uid);
    }
    if (dir != NULL)
        (void) closedir(dir);
    (void) close(site);
    return ESDM_OK;
}
