/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file mkfs, check and removal of the directory. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "kv.h"

esdm_status
kv__site_id(const esdm_plugin_config *config, char ret_id[ESDM__UUID_BYTES], esdm_error *err)
{
    return esdm__place_read_site_id("kv", config, ret_id, err);
}

esdm_status
kv__make(const esdm_plugin_config *config, bool dry_run, esdm_plugin_reporter report, void *user,
         esdm_error *err)
{
    esdm__place place = {0};
    int fd = -1;
    esdm_status status = esdm__place_init(&place, "kv", config, err);
    if (status != ESDM_OK)
        return status;
    status = esdm__place_make(&place, dry_run, report, user, &fd, err);
    if (status == ESDM_OK && !dry_run) {
        int lock = openat(fd, KV__LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (lock < 0 && faccessat(fd, KV__LOCK_FILE, F_OK, 0) != 0)
            status = esdm__error_set_errno(err, errno, "%s: cannot make '%s/%s'", place.path,
                                           place.directory, KV__LOCK_FILE);
        if (lock >= 0) {
            kv__hide_lock(fd, lock);
            (void) close(lock);
        }
    }
    if (fd >= 0)
        (void) close(fd);
    esdm__place_clear(&place);
    return status;
}

/* ---- check ---------------------------------------------------------------------------------- */

static bool
go_on(const char *name, uint64_t bytes, uint64_t modified_ns, void *user)
{
    (void) name, (void) bytes, (void) modified_ns, (void) user;
    return true;
}

/* Every shard can be opened. */
static void
check_shards(const esdm_plugin_config *config, esdm__findings *all)
{
    esdm_error problem = {0};
    void *target = NULL;
    esdm_status status = kv__open(config, &target, &problem);
    if (status == ESDM_OK)
        status = kv__pack_list(target, NULL, go_on, NULL, &problem);
    kv__close(target);
    if (status != ESDM_OK)
        esdm__findings_add(all, &problem);
}

static void
inspect(const esdm__place *place, int fd, const esdm_plugin_config *config, esdm__findings *all)
{
    esdm__place_inspect_file(place, fd, KV__LOCK_FILE, all);
    esdm__place_inspect_space(place, fd, all);
    check_shards(config, all);
}

esdm_status
kv__check(const esdm_plugin_config *config, esdm_plugin_reporter report, void *user,
          esdm_error *err)
{
    return esdm__place_check("kv", config, inspect, report, user, err);
}

/* ---- remove --------------------------------------------------------------------------------- */

static esdm_status
remove_files(const esdm__place *place, int fd, const esdm_plugin_config *config, bool dry_run,
             esdm_plugin_reporter report, void *user, esdm_error *err)
{
    (void) config;
    unsigned files = 0;
    esdm_status status = ESDM_OK;
    DIR *dir = opendir(place->directory);
    if (dir == NULL)
        return esdm__error_set_errno(err, errno, "%s: cannot list '%s'", place->path,
                                     place->directory);
    for (struct dirent *entry = readdir(dir); entry != NULL && status == ESDM_OK;
         entry = readdir(dir)) {
        bool lock = strcmp(entry->d_name, KV__LOCK_FILE) == 0;
        if (!lock && !kv__is_database(entry->d_name))
            continue;
        files += !lock;
        if (!dry_run && unlinkat(fd, entry->d_name, 0) != 0 && errno != ENOENT)
            status = esdm__error_set_errno(err, errno, "%s: cannot remove '%s/%s'", place->path,
                                           place->directory, entry->d_name);
    }
    (void) closedir(dir);
    if (status == ESDM_OK)
        esdm__report(report, user, "remove %u databases in %s", files, place->directory);
    return status;
}

esdm_status
kv__remove(const esdm_plugin_config *config, bool dry_run, esdm_plugin_reporter report, void *user,
           esdm_error *err)
{
    return esdm__place_remove("kv", config, remove_files, dry_run, report, user, err);
}
