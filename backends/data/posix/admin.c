/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file mkfs, check and removal of the directory; walking over its packs. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "posix.h"

static void
shard_name(unsigned shard, char ret_name[3])
{
    static const char digits[] = "0123456789abcdef";
    ret_name[0] = digits[(shard >> 4) & 15u];
    ret_name[1] = digits[shard & 15u];
    ret_name[2] = '\0';
}

static bool
is_folder(int fd, const char *name)
{
    struct stat found;
    return fstatat(fd, name, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(found.st_mode);
}

/* ---- packs ---------------------------------------------------------------------------------- */

/* Opens a folder for listing; ret_dir is NULL when it does not exist. */
static esdm_status
open_folder(int fd, const char *directory, const char *name, DIR **ret_dir, esdm_error *err)
{
    int folder = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    *ret_dir = folder < 0 ? NULL : fdopendir(folder);
    if (*ret_dir != NULL || (folder < 0 && errno == ENOENT))
        return ESDM_OK;
    esdm_status status =
        esdm__error_set_errno(err, errno, "posix: cannot list folder '%s/%s'", directory, name);
    if (folder >= 0)
        (void) close(folder);
    return status;
}

/* Visits one folder. ret_go_on is set to false when the visitor has seen enough. */
static esdm_status
visit_shard(int fd, const char *directory, unsigned shard, const char *prefix,
            esdm_pack_visitor visit, void *user, bool *ret_go_on, esdm_error *err)
{
    char name[3];
    DIR *dir = NULL;
    shard_name(shard, name);
    esdm_status status = open_folder(fd, directory, name, &dir, err);
    if (status != ESDM_OK || dir == NULL)
        return status;
    size_t prefix_bytes = strlen(prefix);
    for (struct dirent *entry = readdir(dir); entry != NULL && *ret_go_on; entry = readdir(dir)) {
        struct stat found;
        if (!posix__is_pack_name(entry->d_name) ||
            strncmp(entry->d_name, prefix, prefix_bytes) != 0)
            continue;
        /* Gone already, or not a pack. */
        if (fstatat(dirfd(dir), entry->d_name, &found, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(found.st_mode))
            continue;
        uint64_t modified_ns =
            (uint64_t) found.st_mtim.tv_sec * 1000000000u + (uint64_t) found.st_mtim.tv_nsec;
        *ret_go_on = visit(entry->d_name, (uint64_t) found.st_size, modified_ns, user);
    }
    (void) closedir(dir);
    return ESDM_OK;
}

esdm_status
posix__visit_packs(int fd, const char *directory, const char *prefix, esdm_pack_visitor visit,
                   void *user, esdm_error *err)
{
    bool go_on = true;
    esdm_status status = ESDM_OK;
    if (prefix == NULL)
        prefix = "";
    for (unsigned shard = 0; shard < POSIX__SHARDS && go_on && status == ESDM_OK; shard++) {
        char name[3];
        shard_name(shard, name);
        size_t known = strlen(prefix) < 2 ? strlen(prefix) : 2;
        if (strncmp(name, prefix, known) == 0)
            status = visit_shard(fd, directory, shard, prefix, visit, user, &go_on, err);
    }
    return status;
}

/* ---- mkfs ----------------------------------------------------------------------------------- */

static esdm_status
make_shards(const esdm__place *place, int fd, bool dry_run, esdm_plugin_reporter report, void *user,
            esdm_error *err)
{
    unsigned made = 0;
    for (unsigned shard = 0; shard < POSIX__SHARDS; shard++) {
        char name[3];
        shard_name(shard, name);
        if (fd >= 0 && is_folder(fd, name))
            continue;
        if (!dry_run && mkdirat(fd, name, 0777) != 0 && errno != EEXIST)
            return esdm__error_set_errno(err, errno, "%s: cannot make folder '%s/%s'", place->path,
                                         place->directory, name);
        made++;
    }
    if (made > 0) {
        esdm__report(report, user, "make %u folders for packs in %s", made, place->directory);
        if (!dry_run)
            (void) fsync(fd);
    }
    return ESDM_OK;
}

esdm_status
posix__make(const esdm_plugin_config *config, bool dry_run, esdm_plugin_reporter report, void *user,
            esdm_error *err)
{
    esdm__place place = {0};
    int fd = -1;
    esdm_status status = esdm__place_init(&place, "posix", config, err);
    if (status != ESDM_OK)
        return status;
    status = esdm__place_make(&place, dry_run, report, user, &fd, err);
    if (status == ESDM_OK)
        status = make_shards(&place, fd, dry_run, report, user, err);
    if (fd >= 0)
        (void) close(fd);
    esdm__place_clear(&place);
    return status;
}

esdm_status
posix__site_id(const esdm_plugin_config *config, char ret_id[ESDM__UUID_BYTES], esdm_error *err)
{
    return esdm__place_read_site_id("posix", config, ret_id, err);
}

/* ---- check ---------------------------------------------------------------------------------- */

static void
check_access(const esdm__place *place, int fd, esdm__findings *all)
{
    esdm_error problem;
    unsigned missing = 0;
    unsigned locked = faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) != 0;
    for (unsigned shard = 0; shard < POSIX__SHARDS; shard++) {
        char name[3];
        shard_name(shard, name);
        if (!is_folder(fd, name))
            missing++;
        else if (faccessat(fd, name, R_OK | W_OK | X_OK, AT_EACCESS) != 0)
            locked++;
    }
    if (missing > 0) {
        (void) !esdm__error_set(&problem, ESDM_ENOENT,
                                "%s: %u of %d pack folders are missing in '%s'; packs in them are "
                                "lost, esdm-mkfs makes the folders again",
                                place->path, missing, POSIX__SHARDS, place->directory);
        esdm__findings_add(all, &problem);
    }
    if (locked > 0) {
        (void) !esdm__error_set(&problem, ESDM_EACCES,
                                "%s: no permission to write in %u folders of '%s'; this user can "
                                "at most read",
                                place->path, locked, place->directory);
        esdm__findings_add(all, &problem);
    }
}

static void
inspect(const esdm__place *place, int fd, const esdm_plugin_config *config, esdm__findings *all)
{
    (void) config;
    check_access(place, fd, all);
    esdm__place_inspect_space(place, fd, all);
}

esdm_status
posix__check(const esdm_plugin_config *config, esdm_plugin_reporter report, void *user,
             esdm_error *err)
{
    return esdm__place_check("posix", config, inspect, report, user, err);
}

/* ---- remove --------------------------------------------------------------------------------- */

typedef struct removal {
    int fd;
    uint64_t packs;
    uint64_t bytes;
    bool dry_run;
    int why; /* errno of the first failure */
} removal;

static bool
remove_pack(const char *name, uint64_t bytes, uint64_t modified_ns, void *user)
{
    (void) modified_ns;
    removal *all = user;
    char file[POSIX__FILE_BYTES];
    if (posix__file_name(name, file, NULL) != ESDM_OK)
        return true;
    if (!all->dry_run && unlinkat(all->fd, file, 0) != 0 && errno != ENOENT) {
        all->why = errno;
        return false;
    }
    all->packs++;
    all->bytes += bytes;
    return true;
}

static esdm_status
remove_contents(const esdm__place *place, int fd, const esdm_plugin_config *config, bool dry_run,
                esdm_plugin_reporter report, void *user, esdm_error *err)
{
    (void) config;
    removal all = {.fd = fd, .dry_run = dry_run};
    esdm_status status = ESDM_OK;
    uint64_t before = 0;
    do { /* a listing may skip names while others are being removed */
        before = all.packs;
        status = posix__visit_packs(fd, place->directory, NULL, remove_pack, &all, err);
        if (status != ESDM_OK)
            return status;
    } while (!dry_run && all.packs != before);
    if (all.why != 0)
        return esdm__error_set_errno(err, all.why, "%s: cannot remove packs in '%s'", place->path,
                                     place->directory);
    uint64_t files = 0;
    status = posix__remove_files(fd, place->directory, dry_run, &files, err);
    if (status != ESDM_OK)
        return status;
    if (files > 0)
        esdm__report(report, user, "remove %llu files that pinned containers held in %s",
                     (unsigned long long) files, place->directory);
    esdm__report(report, user, "remove %llu packs (%llu bytes) and their folders in %s",
                 (unsigned long long) all.packs, (unsigned long long) all.bytes, place->directory);
    for (unsigned shard = 0; shard < POSIX__SHARDS && !dry_run; shard++) {
        char name[3];
        shard_name(shard, name);
        if (unlinkat(fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
            continue;
        if (errno != ENOTEMPTY && errno != EEXIST)
            return esdm__error_set_errno(err, errno, "%s: cannot remove folder '%s/%s'",
                                         place->path, place->directory, name);
        esdm__report(report, user, "keep folder %s/%s: it holds files that are not ESDM's",
                     place->directory, name);
    }
    return ESDM_OK;
}

esdm_status
posix__remove(const esdm_plugin_config *config, bool dry_run, esdm_plugin_reporter report,
              void *user, esdm_error *err)
{
    return esdm__place_remove("posix", config, remove_contents, dry_run, report, user, err);
}
