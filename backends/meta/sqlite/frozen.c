/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Reading a store whose files cannot be locked: read-only media, or a folder where this user may
 * not make SQLite's shared memory. With an empty log the database is read as it is; otherwise it is
 * copied, with its log, to a private place. Either way the files are looked at before each read,
 * and taken anew when somebody changed them: what is stale is never shown.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "base/error.h"
#include "store.h"

#define ATTEMPTS 5

static const char *const suffixes[] = {"", "-wal", "-journal"};
#define FILES (sizeof suffixes / sizeof suffixes[0])

static void
take_stamp(const sqlite__store *store, sqlite__stamp *ret_stamp)
{
    char path[PATH_MAX];
    memset(ret_stamp, 0, sizeof *ret_stamp);
    for (size_t i = 0; i < FILES; i++) {
        struct stat found;
        (void) snprintf(path, sizeof path, "%s%s", store->file, suffixes[i]);
        ret_stamp->bytes[i] = -1;
        if (stat(path, &found) == 0) {
            ret_stamp->bytes[i] = found.st_size;
            ret_stamp->modified[i] = found.st_mtim;
        }
    }
}

static bool
same_stamp(const sqlite__stamp *a, const sqlite__stamp *b)
{
    for (size_t i = 0; i < FILES; i++) {
        if (a->bytes[i] != b->bytes[i] || a->modified[i].tv_sec != b->modified[i].tv_sec ||
            a->modified[i].tv_nsec != b->modified[i].tv_nsec)
            return false;
    }
    return true;
}

bool
sqlite__frozen_changed(const sqlite__store *store)
{
    sqlite__stamp now;
    take_stamp(store, &now);
    return !same_stamp(&now, &store->stamp);
}

/* ---- as it is ------------------------------------------------------------------------------- */

/* A file: URI of a path: what has a meaning there is escaped. Cut if it does not fit. */
static void
make_uri(const char *path, const char *query, char *ret_uri, size_t bytes)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t used = (size_t) snprintf(ret_uri, bytes, "file:");
    for (; *path != '\0' && used + 4 < bytes; path++) {
        if (*path == '?' || *path == '#' || *path == '%') {
            ret_uri[used++] = '%';
            ret_uri[used++] = digits[(*path >> 4) & 15];
            ret_uri[used++] = digits[*path & 15];
        } else {
            ret_uri[used++] = *path;
        }
    }
    (void) snprintf(ret_uri + used, bytes - used, "%s", query);
}

static esdm_status
open_immutable(sqlite__store *store, esdm_error *err)
{
    char uri[3 * PATH_MAX];
    make_uri(store->file, "?immutable=1", uri, sizeof uri);
    store->access = SQLITE__IMMUTABLE;
    bool writes = false;
    esdm_status status =
        sqlite__link_open(&store->reader, uri, store->file, SQLITE_OPEN_READONLY, err);
    if (status == ESDM_OK)
        status = sqlite__schema_check(&store->reader, err);
    if (status == ESDM_OK)
        status = sqlite__check_state(&store->reader, store->migrating, &writes, err);
    if (status == ESDM_OK)
        status = sqlite__schema_adapt(&store->reader, err);
    return status;
}

/* ---- a private copy ------------------------------------------------------------------------- */

/* Returns 0 or an errno; a file that does not exist is not copied. */
static int
copy_file(const char *from, const char *to)
{
    int source = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (source < 0)
        return errno == ENOENT ? 0 : errno;
    int target = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int why = target < 0 ? errno : 0;
    while (why == 0) {
        ssize_t n = sendfile(target, source, NULL, 1 << 30);
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR)
            why = errno;
    }
    (void) close(source);
    if (target >= 0 && close(target) != 0 && why == 0)
        why = errno;
    return why;
}

static esdm_status
copy_files(const sqlite__store *store, const char *folder, esdm_error *err)
{
    char from[PATH_MAX];
    char to[PATH_MAX];
    for (size_t i = 0; i < FILES; i++) {
        int why = ENAMETOOLONG;
        if (snprintf(from, sizeof from, "%s%s", store->file, suffixes[i]) < PATH_MAX &&
            snprintf(to, sizeof to, "%s/%s%s", folder, SQLITE__FILE, suffixes[i]) < PATH_MAX)
            why = copy_file(from, to);
        if (why != 0)
            return esdm__error_set_errno(err, why, "cannot copy '%.200s' to '%.100s' to read it",
                                         from, folder);
    }
    return ESDM_OK;
}

/* The connection has the files open: their names are not needed any more. */
static void
remove_copy(const char *folder)
{
    static const char *const names[] = {SQLITE__FILE, SQLITE__FILE "-wal", SQLITE__FILE "-journal",
                                        SQLITE__FILE "-shm"};
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (snprintf(path, sizeof path, "%s/%s", folder, names[i]) < PATH_MAX)
            (void) unlink(path);
    }
    (void) rmdir(folder);
}

static esdm_status
open_copy(sqlite__store *store, esdm_error *err)
{
    char folder[PATH_MAX];
    char file[PATH_MAX];
    const char *base = secure_getenv("TMPDIR");
    if (base == NULL || base[0] != '/')
        base = "/tmp";
    errno = ENAMETOOLONG;
    if (snprintf(folder, sizeof folder, "%s/esdm-copy-XXXXXX", base) >= PATH_MAX - NAME_MAX ||
        mkdtemp(folder) == NULL ||
        snprintf(file, sizeof file, "%s/%s", folder, SQLITE__FILE) >= PATH_MAX)
        return esdm__error_set_errno(err, errno,
                                     "cannot make a folder in '%.200s' for a copy of '%.200s'",
                                     base, store->file);
    store->access = SQLITE__COPY;
    bool writes = false;
    esdm_status status = copy_files(store, folder, err);
    if (status == ESDM_OK)
        status = sqlite__link_open(&store->reader, file, store->file, SQLITE_OPEN_READWRITE, err);
    if (status == ESDM_OK) /* reads the log too: from here on all files are open */
        status = sqlite__schema_check(&store->reader, err);
    if (status == ESDM_OK)
        status = sqlite__check_state(&store->reader, store->migrating, &writes, err);
    if (status == ESDM_OK)
        status = sqlite__schema_adapt(&store->reader, err);
    remove_copy(folder);
    return status;
}

esdm_status
sqlite__open_frozen(sqlite__store *store, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    store->writable = false;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        take_stamp(store, &store->stamp);
        if (store->stamp.bytes[1] > 0 || store->stamp.bytes[2] > 0)
            status = open_copy(store, err);
        else
            status = open_immutable(store, err);
        bool changed = sqlite__frozen_changed(store);
        if (status == ESDM_OK && !changed)
            return ESDM_OK;
        sqlite__link_close(&store->reader);
        if (!changed)
            return status;
    }
    return esdm__error_set(err, ESDM_ETIMEDOUT,
                           "metadata store '%.200s' is being written to and cannot be locked; read "
                           "it as a user who may write there",
                           store->file);
}
