/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The whole database as bytes, and a database made of such bytes. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/ids.h"
#include "base/place.h"
#include "store.h"

#define PIECE_BYTES (1u << 20)
/* A file of a backup that was interrupted is older than this. */
#define LEFT_BEHIND_S 86400
/* Pages that are copied while the database cannot be changed; where there is a log it always can.
 */
#define COPY_PAGES 4096

static const char *const logs[] = {"", "-wal", "-shm", "-journal"};
#define NUMBER_TEXT(number)    NUMBER_TEXT_OF(number)
#define NUMBER_TEXT_OF(number) #number
#define LOGS                   (sizeof logs / sizeof logs[0])

static void
temporary_name(char ret_name[64])
{
    char id[ESDM__UUID_BYTES];
    esdm__uuid_new(id);
    (void) snprintf(ret_name, 64, SQLITE__BACKUP "%.16s", id);
}

/* What interrupted backups have left. */
static void
remove_left_behind(const char *directory)
{
    DIR *dir = opendir(directory);
    time_t now = time(NULL);
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL;
         entry = readdir(dir)) {
        struct stat found;
        if (strncmp(entry->d_name, SQLITE__BACKUP, sizeof SQLITE__BACKUP - 1) == 0 &&
            fstatat(dirfd(dir), entry->d_name, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
            now - found.st_mtim.tv_sec > LEFT_BEHIND_S)
            (void) unlinkat(dirfd(dir), entry->d_name, 0);
    }
    if (dir != NULL)
        (void) closedir(dir);
}

/* ---- out ------------------------------------------------------------------------------------ */

/* SQLite's own backup into another file: one state of the database, whoever writes meanwhile. */
static esdm_status
copy_database(sqlite__link *from, sqlite__link *to, esdm_error *err)
{
    sqlite3_backup *copy = sqlite3_backup_init(to->db, "main", from->db, "main");
    if (copy == NULL)
        return sqlite__error(to, sqlite3_extended_errcode(to->db), err);
    int pages = sqlite3_db_readonly(from->db, "main") == 1 ? -1 : COPY_PAGES;
    int code = SQLITE_OK;
    time_t until = time(NULL) + SQLITE__BUSY_SECONDS;
    while (code == SQLITE_OK ||
           ((code == SQLITE_BUSY || code == SQLITE_LOCKED) && time(NULL) < until)) {
        code = sqlite3_backup_step(copy, pages);
        if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
            (void) sqlite3_sleep(10);
    }
    int finished = sqlite3_backup_finish(copy);
    if (code == SQLITE_DONE)
        code = finished;
    return code == SQLITE_OK ? ESDM_OK : sqlite__error(from, code, err);
}

static esdm_status
copy_to(const sqlite__store *store, const char *path, esdm_error *err)
{
    sqlite__link from = {0};
    sqlite__link to = {0};
    esdm_status status =
        sqlite__link_open(&from, store->file, store->file, SQLITE_OPEN_READONLY, err);
    if (status == ESDM_OK)
        status =
            sqlite__link_open(&to, path, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);
    if (status == ESDM_OK)
        status = sqlite__exec(&to, "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF", err);
    if (status == ESDM_OK)
        status = copy_database(&from, &to, err);
    sqlite__link_close(&to);
    sqlite__link_close(&from);
    return status;
}

static esdm_status
hand_out(int fd, const char *path, esdm_meta_bytes_sink put, void *user, esdm_error *err)
{
    uint8_t *piece = malloc(PIECE_BYTES);
    esdm_status status = piece != NULL ? ESDM_OK : esdm__error_nomem(err, PIECE_BYTES, "a backup");
    while (status == ESDM_OK) {
        ssize_t n = read(fd, piece, PIECE_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            status = esdm__error_set_errno(err, errno, "cannot read '%s'", path);
        if (n <= 0)
            break;
        status = put(user, piece, (size_t) n, err);
    }
    free(piece);
    return status;
}

static void
remove_database(const char *path)
{
    char file[PATH_MAX];
    for (size_t i = 0; i < LOGS; i++) {
        (void) snprintf(file, sizeof file, "%s%s", path, logs[i]);
        (void) unlink(file);
    }
}

esdm_status
sqlite__backup(void *self, esdm_meta_bytes_sink put, void *user, esdm_error *err)
{
    const sqlite__store *store = self;
    char name[64];
    char path[PATH_MAX];
    if (store->pid != getpid() || !store->writable)
        return esdm__error_set(err, ESDM_EACCES,
                               "metadata store '%.200s' is not open for writing: no backup is made",
                               store->file);
    remove_left_behind(store->directory);
    temporary_name(name);
    (void) snprintf(path, sizeof path, "%s/%s", store->directory, name);
    esdm_status status = copy_to(store, path, err);
    int fd = status == ESDM_OK ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (status == ESDM_OK && fd < 0)
        status = esdm__error_set_errno(err, errno, "cannot open '%s'", path);
    remove_database(path);
    if (status == ESDM_OK)
        status = hand_out(fd, path, put, user, err);
    if (fd >= 0)
        (void) close(fd);
    return status;
}

/* ---- in ------------------------------------------------------------------------------------- */

static esdm_status
fill_file(const esdm__place *place, int fd, const char *name, esdm_meta_bytes_source next,
          void *next_user, esdm_error *err)
{
    int file = openat(fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    esdm_status status = ESDM_OK;
    if (file < 0)
        return esdm__error_set_errno(err, errno, "%s: cannot make '%s/%s'", place->path,
                                     place->directory, name);
    while (status == ESDM_OK) {
        const void *data = NULL;
        size_t bytes = 0;
        status = next(next_user, &data, &bytes, err);
        if (status != ESDM_OK || data == NULL)
            break;
        if (esdm__write_all(file, data, bytes) != ESDM_OK)
            status = esdm__error_set_errno(err, errno, "%s: cannot write '%s/%s'", place->path,
                                           place->directory, name);
    }
    if (status == ESDM_OK && fsync(file) != 0)
        status = esdm__error_set_errno(err, errno, "%s: cannot write '%s/%s'", place->path,
                                       place->directory, name);
    (void) close(file);
    return status;
}

/* Keeps what is there under another name. */
static esdm_status
put_aside(const esdm__place *place, int fd, esdm_plugin_reporter report, void *user,
          esdm_error *err)
{
    char from[64];
    char to[128];
    struct tm date;
    time_t now = time(NULL);
    char suffix[32];
    (void) gmtime_r(&now, &date);
    (void) strftime(suffix, sizeof suffix, "%Y%m%dT%H%M%SZ", &date);
    for (size_t i = 0; i < LOGS; i++) {
        (void) snprintf(from, sizeof from, "%s%s", SQLITE__FILE, logs[i]);
        (void) snprintf(to, sizeof to, "%s.former-%s%s", SQLITE__FILE, suffix, logs[i]);
        if (renameat(fd, from, fd, to) != 0) {
            if (errno == ENOENT)
                continue;
            return esdm__error_set_errno(err, errno, "%s: cannot rename '%s/%s'", place->path,
                                         place->directory, from);
        }
        if (i == 0)
            esdm__report(report, user, "the former database is kept as %s/%s", place->directory,
                         to);
    }
    return ESDM_OK;
}

/* Whether the file is a database of ours; it gets the state and its log.
 * @param may_be_empty then it gets tables. */
static esdm_status
prepare(const esdm__place *place, const char *name, bool may_be_empty, bool network,
        const char *note, esdm_error *err)
{
    char path[PATH_MAX];
    sqlite__link link = {0};
    bool current = false;
    (void) snprintf(path, sizeof path, "%s/%s", place->directory, name);
    esdm_status status = sqlite__link_open(&link, path, path, SQLITE_OPEN_READWRITE, err);
    esdm_error why = {0};
    if (status == ESDM_OK)
        status = sqlite__schema_check(&link, &why);
    bool empty = may_be_empty && status == ESDM_ENOENT;
    if (status != ESDM_OK && !empty && err != NULL && why.status != ESDM_OK)
        *err = why;
    if (status == ESDM_OK || empty)
        status = sqlite__exec(
            &link, network ? "PRAGMA journal_mode = TRUNCATE" : "PRAGMA journal_mode = WAL", err);
    if (status == ESDM_OK && empty)
        status = sqlite__schema_make(&link, err);
    if (status == ESDM_OK)
        status = sqlite__exec(&link, "PRAGMA synchronous = FULL", err);
    if (status == ESDM_OK)
        status = sqlite__run(&link, SQLITE__BEGIN_WRITE, err, "");
    if (status == ESDM_OK) {
        status = sqlite__schema_upgrade(&link, &current, err);
        if (status == ESDM_OK)
            status = sqlite__run(&link, SQLITE__STATE_SET, err, "it", (uint64_t) ESDM_META_ARRIVING,
                                 note);
        if (status == ESDM_OK)
            status = sqlite__exec(
                &link, "PRAGMA user_version = " NUMBER_TEXT(SQLITE__FORMAT_MIGRATION), err);
        if (status == ESDM_OK)
            status = sqlite__run(&link, SQLITE__COMMIT, err, "");
    }
    int code = status == ESDM_OK ? sqlite3_wal_checkpoint_v2(link.db, NULL,
                                                             SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL)
                                 : SQLITE_OK;
    if (code != SQLITE_OK)
        status = sqlite__error(&link, code, err);
    sqlite__link_close(&link);
    return status;
}

static esdm_status
install(const esdm__place *place, int fd, esdm_meta_bytes_source next, void *next_user,
        const char *note, esdm_plugin_reporter report, void *user, esdm_error *err)
{
    char name[64];
    char path[PATH_MAX];
    temporary_name(name);
    (void) snprintf(path, sizeof path, "%s/%s", place->directory, name);
    esdm_status status = fill_file(place, fd, name, next, next_user, err);
    if (status == ESDM_OK)
        status = prepare(place, name, true, sqlite__is_network(fd), note, err);
    if (status == ESDM_OK)
        status = put_aside(place, fd, report, user, err);
    if (status == ESDM_OK && renameat(fd, name, fd, SQLITE__FILE) != 0)
        status = esdm__error_set_errno(err, errno, "%s: cannot rename '%s/%s'", place->path,
                                       place->directory, name);
    remove_database(path);
    if (status == ESDM_OK)
        esdm__report(report, user, "bring back the database %s/%s", place->directory, SQLITE__FILE);
    return status;
}

esdm_status
sqlite__restore(const esdm_plugin_config *config, esdm_meta_bytes_source next, void *next_user,
                const char *note, esdm_plugin_reporter report, void *user, esdm_error *err)
{
    static const char *const ours[] = {SQLITE__FILE, SQLITE__BACKUP, SQLITE__PINS, NULL};
    esdm__place place = {0};
    int fd = -1;
    sqlite__abandon_inherited();
    esdm_status status = esdm__place_init(&place, "sqlite", config, err);
    if (status != ESDM_OK)
        return status;
    place.tolerates = ours;
    char file[PATH_MAX];
    (void) snprintf(file, sizeof file, "%s/%s", place.directory, SQLITE__FILE);
    if (next == NULL && access(file, F_OK) != 0)
        status = esdm__error_set(err, ESDM_ENOENT, "there is no '%.300s'", file);
    if (status == ESDM_OK)
        status = esdm__place_make(&place, false, report, user, &fd, err);
    if (status == ESDM_OK)
        status = sqlite__pins_make(fd, place.directory, err);
    if (status == ESDM_OK)
        status = next != NULL
                     ? install(&place, fd, next, next_user, note, report, user, err)
                     : prepare(&place, SQLITE__FILE, false, sqlite__is_network(fd), note, err);
    if (fd >= 0) {
        (void) fsync(fd);
        (void) close(fd);
    }
    esdm__place_clear(&place);
    return status;
}
