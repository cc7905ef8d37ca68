/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Whether a container still has its stub somewhere, when a program creates a file at the path that
 * the container is called after and no stub is there. `rm -rf run; mkdir run; model` replaces what
 * the last run made; `mv run run-1; mkdir run; model` must not. So the folder above the routed one
 * is looked through, once for each process and as far as a bound allows.
 */
#include "router/router.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENTRIES_MAX 200000
#define DEPTH_MAX   64

/** A stub that was seen. */
typedef struct seen {
    struct seen *next;
    const char *path; /**< behind the container's name */
    char container[];
} seen;

/** Guards all below. Held while folders are read. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static seen *stubs;
static char root[PATH_MAX]; /**< what was looked through; "" for nothing */
static bool complete;       /**< all of it */
static size_t entries;

void
esdmnc__living_forked(void)
{
    static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    memcpy(&lock, &unlocked, sizeof(lock));
}

static void
note(const char *path, const char *container)
{
    size_t name_bytes = strlen(container) + 1;
    size_t path_bytes = strlen(path) + 1;
    seen *new = malloc(sizeof(*new) + name_bytes + path_bytes);
    if (!new) {
        complete = false;
        return;
    }
    memcpy(new->container, container, name_bytes);
    memcpy(new->container + name_bytes, path, path_bytes);
    new->path = new->container + name_bytes;
    new->next = stubs;
    stubs = new;
}

static void
look_at(const char *path, const struct stat *st)
{
    esdmnc__stub stub;
    if (st->st_size > ESDMNC_STUB_MAGIC_LEN && st->st_size <= ESDMNC_STUB_MAX &&
        esdmnc__stub_read(path, &stub) == NC_NOERR) {
        note(path, stub.container);
    }
}

/** Whether somebody may have moved a stub of ours into the folder. */
static bool
is_worth_it(DIR *above, const char *name, const struct stat *st)
{
    return st->st_uid == geteuid() || faccessat(dirfd(above), name, W_OK, AT_EACCESS) == 0;
}

/** @param path of a folder; buffer of PATH_MAX bytes that is used for what lies below. */
static void
look_through(char *path, dev_t device, int depth)
{
    DIR *folder = depth < DEPTH_MAX ? opendir(path) : NULL;
    size_t length = strlen(path);
    if (!folder) {
        complete = complete && depth < DEPTH_MAX && (errno == EACCES || errno == ENOENT);
        return;
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        struct stat st;
        int n = snprintf(path + length, PATH_MAX - length, "/%s", entry->d_name);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        if (n <= 0 || (size_t) n >= PATH_MAX - length || ++entries > ENTRIES_MAX) {
            complete = false;
            break;
        }
        if (S_ISDIR(st.st_mode) && st.st_dev == device && is_worth_it(folder, entry->d_name, &st)) {
            look_through(path, device, depth + 1);
        } else if (S_ISREG(st.st_mode)) {
            look_at(path, &st);
        }
    }
    path[length] = '\0';
    (void) closedir(folder);
}

static void
look_again(const char *start)
{
    char path[PATH_MAX];
    struct stat st;
    while (stubs) {
        seen *next = stubs->next;
        free(stubs);
        stubs = next;
    }
    (void) snprintf(root, sizeof(root), "%s", start);
    (void) snprintf(path, sizeof(path), "%s", start);
    complete = stat(path, &st) == 0;
    entries = 0;
    if (complete) {
        look_through(path, st.st_dev, 0);
    }
}

/** Whether a stub that was seen is still where it was. @param ret_stale set when one is not. */
static bool
find(const char *container, char *where, size_t size, bool *ret_stale)
{
    esdmnc__stub stub;
    for (const seen *s = stubs; s; s = s->next) {
        if (strcmp(s->container, container) != 0) {
            continue;
        }
        if (esdmnc__stub_read(s->path, &stub) == NC_NOERR &&
            strcmp(stub.container, container) == 0) {
            (void) snprintf(where, size, "%s", s->path);
            return true;
        }
        *ret_stale = true;
    }
    return false;
}

esdmnc__living
esdmnc__living_stub(const char *folder, const char *container, char *where, size_t size)
{
    char start[PATH_MAX];
    (void) snprintf(start, sizeof(start), "%s", folder);
    char *slash = strrchr(start, '/');
    if (slash && slash != start) {
        *slash = '\0'; /* the folder may have been renamed; the root is too much to look through */
    }
    (void) pthread_mutex_lock(&lock);
    bool stale = strcmp(root, start) != 0;
    bool found = !stale && find(container, where, size, &stale);
    if (!found && stale) {
        look_again(start);
        found = find(container, where, size, &stale);
    }
    bool known = found || complete;
    (void) pthread_mutex_unlock(&lock);
    return !known ? ESDMNC_LIVING_UNKNOWN : found ? ESDMNC_LIVING_YES : ESDMNC_LIVING_NO;
}

void
esdmnc__living_note(const char *path, const char *container)
{
    (void) pthread_mutex_lock(&lock);
    if (root[0]) {
        note(path, container);
    }
    (void) pthread_mutex_unlock(&lock);
}
