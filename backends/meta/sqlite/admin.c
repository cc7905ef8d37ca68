/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file mkfs, check and removal. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "store.h"

/* Two makers at once get in each other's way when the journal mode is set. */
#define MAKE_ATTEMPTS 200
#define MAKE_NAP_NS   10000000

static const char *const files[] = {SQLITE__FILE, SQLITE__FILE "-wal", SQLITE__FILE "-shm",
                                    SQLITE__FILE "-journal", SQLITE__PINS};
#define FILES (sizeof files / sizeof files[0])

/* A store that was or is being migrated is not the site's own any more: its packs belong to
 * another. Of one of a newer version nothing is known. One that cannot be read does not get in the
 * way. */
static esdm_status
refuse_foreign(const esdm_plugin_config *config, esdm_error *err)
{
    esdm_plugin_config any = *config;
    void *opened = NULL;
    bool writes = false;
    any.migrating = true;
    if (config->migrating)
        return ESDM_OK;
    esdm_error why = {0};
    esdm_status status = sqlite__open(&any, true, &opened, &why);
    if (status == ESDM_ENOTSUP && err != NULL)
        *err = why;
    if (status != ESDM_OK)
        return status == ESDM_ENOTSUP ? status : ESDM_OK;
    sqlite__store *store = opened;
    status = sqlite__begin_read(store, err);
    if (status == ESDM_OK) {
        status = sqlite__check_state(&store->reader, false, &writes, err);
        sqlite__end_read(store);
    }
    sqlite__close(store);
    return status;
}

static char *
database_path(const esdm__place *place)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", place->directory, SQLITE__FILE) < 0 ? NULL : path;
}

/* ---- mkfs ----------------------------------------------------------------------------------- */

static esdm_status
make_tables(sqlite__link *link, bool network, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (int attempt = 0; attempt < MAKE_ATTEMPTS; attempt++) {
        status = sqlite__schema_check(link, err);
        if (status == ESDM_ENOENT)
            status = sqlite__exec(
                link, network ? "PRAGMA journal_mode = TRUNCATE" : "PRAGMA journal_mode = WAL",
                err);
        else
            return status;
        if (status == ESDM_OK)
            status = sqlite__schema_make(link, err);
        if (status != ESDM_ETIMEDOUT)
            return status;
        struct timespec nap = {.tv_sec = 0, .tv_nsec = MAKE_NAP_NS};
        (void) nanosleep(&nap, NULL);
    }
    return status;
}

/* SQLite makes files with mode 0644, and gives its other files the mode of the database: a site of
 * a group needs what the umask says. An existing database is not opened: closing it would drop the
 * locks that this process has on it. */
static esdm_status
make_file(const esdm__place *place, int fd, esdm_error *err)
{
    int file = openat(fd, SQLITE__FILE, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file < 0 && errno != EEXIST)
        return esdm__error_set_errno(err, errno, "%s: cannot make '%s/%s'", place->path,
                                     place->directory, SQLITE__FILE);
    if (file >= 0)
        (void) close(file);
    return ESDM_OK;
}

static esdm_status
make_database(const esdm__place *place, int fd, esdm_error *err)
{
    sqlite__link link = {0};
    char *path = database_path(place);
    if (path == NULL)
        return esdm__error_nomem(err, strlen(place->directory), "a path");
    esdm_status status = sqlite__pins_make(fd, place->directory, err);
    if (status == ESDM_OK)
        status = make_file(place, fd, err);
    if (status == ESDM_OK)
        status =
            sqlite__link_open(&link, path, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);
    if (status == ESDM_OK) {
        status = make_tables(&link, sqlite__is_network(fd), err);
        /* Others may have to read before anybody writes: leave no log behind. */
        if (status == ESDM_OK)
            (void) sqlite3_wal_checkpoint_v2(link.db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
        sqlite__link_close(&link);
        (void) fsync(fd);
    }
    free(path);
    return status;
}

esdm_status
sqlite__make(const esdm_plugin_config *config, bool dry_run, esdm_plugin_reporter report,
             void *user, esdm_error *err)
{
    esdm__place place = {0};
    int fd = -1;
    esdm_status status = esdm__place_init(&place, "sqlite", config, err);
    if (status != ESDM_OK)
        return status;
    status = esdm__place_make(&place, dry_run, report, user, &fd, err);
    bool absent = fd < 0 || faccessat(fd, SQLITE__FILE, F_OK, 0) != 0;
    if (status == ESDM_OK && !absent)
        status = refuse_foreign(config, err);
    if (status == ESDM_OK && !dry_run)
        status = make_database(&place, fd, err);
    if (status == ESDM_OK && absent)
        esdm__report(report, user, "make database %s/%s", place.directory, SQLITE__FILE);
    if (fd >= 0)
        (void) close(fd);
    esdm__place_clear(&place);
    return status;
}

esdm_status
sqlite__site_id(const esdm_plugin_config *config, char ret_id[ESDM_META_UUID_BYTES],
                esdm_error *err)
{
    esdm_status status = esdm__place_read_site_id("sqlite", config, ret_id, err);
    if (status == ESDM_ENOENT)
        sqlite__tell_restore(err);
    return status;
}

/* ---- check ---------------------------------------------------------------------------------- */

static void
check_files(const esdm__place *place, int fd, esdm__findings *all)
{
    esdm_error problem;
    esdm__place_inspect_file(place, fd, SQLITE__PINS, all);
    if (faccessat(fd, SQLITE__FILE, W_OK, AT_EACCESS) != 0 && errno != ENOENT) {
        (void) !esdm__error_set_errno(&problem, errno, "%s: cannot write to '%s/%s'", place->path,
                                      place->directory, SQLITE__FILE);
        esdm__findings_add(all, &problem);
    }
    esdm__place_inspect_space(place, fd, all);
}

static void
check_database(const esdm_plugin_config *config, esdm__findings *all)
{
    esdm_error problem = {0};
    void *opened = NULL;
    esdm_status status = sqlite__open(config, true, &opened, &problem);
    if (status == ESDM_OK) {
        sqlite__store *store = opened;
        sqlite3_stmt *statement = NULL;
        int code =
            sqlite3_prepare_v2(store->reader.db, "PRAGMA quick_check(1)", -1, &statement, NULL);
        if (code == SQLITE_OK)
            code = sqlite3_step(statement);
        if (code != SQLITE_ROW)
            status = sqlite__error(&store->reader, code, &problem);
        else if (strcmp(sqlite__text(statement, 0), "ok") != 0)
            status = esdm__error_set(&problem, ESDM_ECORRUPT,
                                     "%s: '%s' is damaged: %.150s; " SQLITE__REMEDY, config->path,
                                     store->file, sqlite__text(statement, 0));
        (void) sqlite3_finalize(statement);
        sqlite__close(store);
    }
    if (status != ESDM_OK)
        esdm__findings_add(all, &problem);
}

static void
inspect(const esdm__place *place, int fd, const esdm_plugin_config *config, esdm__findings *all)
{
    check_files(place, fd, all);
    check_database(config, all);
}

esdm_status
sqlite__check(const esdm_plugin_config *config, esdm_plugin_reporter report, void *user,
              esdm_error *err)
{
    return esdm__place_check("sqlite", config, inspect, report, user, err);
}

/* ---- remove --------------------------------------------------------------------------------- */

static esdm_status
remove_database(const esdm__place *place, int fd, const esdm_plugin_config *config, bool dry_run,
                esdm_plugin_reporter report, void *user, esdm_error *err)
{
    esdm_status status = refuse_foreign(config, err);
    if (status == ESDM_OK)
        esdm__report(report, user, "remove the database %s/%s", place->directory, SQLITE__FILE);
    for (size_t i = 0; i < FILES && status == ESDM_OK && !dry_run; i++) {
        if (unlinkat(fd, files[i], 0) != 0 && errno != ENOENT)
            status = esdm__error_set_errno(err, errno, "%s: cannot remove '%s/%s'", place->path,
                                           place->directory, files[i]);
    }
    return status;
}

esdm_status
sqlite__remove(const esdm_plugin_config *config, bool dry_run, esdm_plugin_reporter report,
               void *user, esdm_error *err)
{
    return esdm__place_remove("sqlite", config, remove_database, dry_run, report, user, err);
}
