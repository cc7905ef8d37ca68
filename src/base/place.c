/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "base/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/parent.h"

/* Marks are written under this prefix and then linked into place. */
#define MARK_TEMPORARY ESDM__MARK_FILE "."

/* With less than this free a disk counts as full. */
#define LOW_SPACE_BYTES (UINT64_C(16) << 20)

typedef struct mark_words {
    char where[PATH_MAX + 16];
    char file[PATH_MAX + 32];
} mark_words;

void
esdm__report(esdm_plugin_reporter report, void *user, const char *format, ...)
{
    if (report == NULL)
        return;
    char line[PATH_MAX + 256];
    va_list args;
    va_start(args, format);
    (void) vsnprintf(line, sizeof line, format, args);
    va_end(args);
    report(line, user);
}

esdm_status
esdm__place_init(esdm__place *ret_place, const char *plugin, const esdm_plugin_config *config,
                 esdm_error *err)
{
    json_t *options = NULL;
    if (config->json == NULL || config->name == NULL)
        return esdm__error_set(err, ESDM_EINVAL, "%s: a target needs a name and an object", plugin);
    const char *path = config->path != NULL ? config->path : config->name;
    esdm_status status = esdm__json_parse(config->json, strlen(config->json), path, &options, err);
    if (status != ESDM_OK)
        return status;

    esdm__json_node root = esdm__json_root(options, path);
    esdm__json_node node;
    const char *directory = NULL;
    if ((status = esdm__json_is_object(&root, err)) == ESDM_OK &&
        (status = esdm__json_require(&root, "directory", &node, err)) == ESDM_OK)
        status = esdm__json_string(&node, &directory, err);
    if (status == ESDM_OK && directory[0] != '/')
        status = esdm__json_error(&node, err, "'%.200s' is not an absolute path", directory);
    if (status == ESDM_OK && strlen(directory) >= PATH_MAX - NAME_MAX)
        status =
            esdm__json_error(&node, err, "the path is too long (%zu bytes)", strlen(directory));
    char *copy = status == ESDM_OK ? strdup(directory) : NULL;
    if (status == ESDM_OK && copy == NULL)
        status = esdm__error_nomem(err, strlen(directory) + 1, "a directory name");
    if (status != ESDM_OK) {
        json_decref(options);
        return status;
    }
    *ret_place = (esdm__place){.plugin = plugin,
                               .name = config->name,
                               .path = path,
                               .site_id = config->site_id != NULL ? config->site_id : "",
                               .directory = copy,
                               .options = options};
    return ESDM_OK;
}

void
esdm__place_clear(esdm__place *place)
{
    free(place->directory);
    json_decref(place->options);
    *place = (esdm__place){0};
}

/* ESDM_ENOENT with os_errno 0 when there is no mark. */
static esdm_status
read_mark(const esdm__place *place, int fd, char *text, size_t capacity, size_t *ret_bytes,
          esdm_error *err)
{
    int file = openat(fd, ESDM__MARK_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0 && errno == ENOENT)
        return esdm__error_set(err, ESDM_ENOENT,
                               "%s: directory '%s' is not marked as ESDM's (no %s); make the site "
                               "with esdm-mkfs",
                               place->path, place->directory, ESDM__MARK_FILE);
    if (file < 0)
        return esdm__error_set_errno(err, errno, "%s: cannot read the mark '%s/%s'", place->path,
                                     place->directory, ESDM__MARK_FILE);
    size_t have = 0;
    while (have < capacity) {
        ssize_t n = read(file, text + have, capacity - have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            esdm_status status =
                esdm__error_set_errno(err, errno, "%s: cannot read the mark '%s/%s'", place->path,
                                      place->directory, ESDM__MARK_FILE);
            (void) close(file);
            return status;
        }
        if (n == 0)
            break;
        have += (size_t) n;
    }
    (void) close(file);
    *ret_bytes = have;
    return ESDM_OK;
}

/* What the mark must agree with, and how messages call it. The texts live in `words`. */
static esdm__mark
expected_mark(const esdm__place *place, mark_words *words)
{
    (void) snprintf(words->where, sizeof words->where, "directory '%s'", place->directory);
    (void) snprintf(words->file, sizeof words->file, "%s/%s", place->directory, ESDM__MARK_FILE);
    return (esdm__mark){.plugin = place->plugin,
                        .target = place->name,
                        .site_id = place->site_id,
                        .path = place->path,
                        .where = words->where,
                        .file = words->file};
}

static esdm_status
verify_mark(const esdm__place *place, int fd, esdm_error *err)
{
    char text[ESDM__MARK_MAX_BYTES];
    mark_words words;
    size_t bytes = 0;
    esdm_status status = read_mark(place, fd, text, sizeof text, &bytes, err);
    if (status != ESDM_OK)
        return status;
    const esdm__mark expected = expected_mark(place, &words);
    return esdm__mark_verify(&expected, text, bytes, err);
}

static esdm_status
open_directory(const esdm__place *place, int *ret_fd, esdm_error *err)
{
    int fd = open(place->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return esdm__error_set(err, ESDM_ENOENT,
                               "%s: directory '%s' does not exist (is its disk mounted? esdm-mkfs "
                               "makes what a new site lacks)",
                               place->path, place->directory);
    if (fd < 0)
        return esdm__error_set_errno(err, errno, "%s: cannot open directory '%s'", place->path,
                                     place->directory);
    *ret_fd = fd;
    return ESDM_OK;
}

esdm_status
esdm__place_open(const esdm__place *place, int *ret_fd, esdm_error *err)
{
    int fd = -1;
    esdm_status status = open_directory(place, &fd, err);
    if (status != ESDM_OK)
        return status;
    status = verify_mark(place, fd, err);
    if (status != ESDM_OK) {
        (void) close(fd);
        return status;
    }
    *ret_fd = fd;
    return ESDM_OK;
}

esdm_status
esdm__place_site_id(const esdm__place *place, char ret_id[ESDM__UUID_BYTES], esdm_error *err)
{
    char text[ESDM__MARK_MAX_BYTES];
    mark_words words;
    size_t bytes = 0;
    int fd = -1;
    esdm_status status = open_directory(place, &fd, err);
    if (status != ESDM_OK)
        return status;
    status = read_mark(place, fd, text, sizeof text, &bytes, err);
    (void) close(fd);
    if (status != ESDM_OK)
        return status;
    const esdm__mark expected = expected_mark(place, &words);
    return esdm__mark_site_id(&expected, text, bytes, ret_id, err);
}

esdm_status
esdm__place_read_site_id(const char *plugin, const esdm_plugin_config *config,
                         char ret_id[ESDM__UUID_BYTES], esdm_error *err)
{
    esdm__place place = {0};
    esdm_status status = esdm__place_init(&place, plugin, config, err);
    if (status == ESDM_OK)
        status = esdm__place_site_id(&place, ret_id, err);
    esdm__place_clear(&place);
    return status;
}

/* mkdir -p. Modes come from the umask. */
static esdm_status
make_directories(const esdm__place *place, esdm_error *err)
{
    char path[PATH_MAX];
    (void) snprintf(path, sizeof path, "%s", place->directory);
    for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash != NULL)
            *slash = '\0';
        int why = mkdir(path, 0777) == 0 ? 0 : errno;
        if (why == 0) {
            esdm__sync_parent(path);
        } else if (why != EEXIST) {
            struct stat found;
            /* Some file systems answer EACCES or EROFS for a directory that exists. */
            if (stat(path, &found) != 0 || !S_ISDIR(found.st_mode))
                return esdm__error_set_errno(err, why, "%s: cannot make directory '%s'",
                                             place->path, path);
        }
        if (slash == NULL)
            return ESDM_OK;
        *slash = '/';
    }
}

static bool
is_tolerated(const esdm__place *place, const char *name)
{
    for (const char *const *some = place->tolerates; some != NULL && *some != NULL; some++) {
        if (strncmp(name, *some, strlen(*some)) == 0)
            return true;
    }
    return false;
}

/* Names the first entry that is not ours; "" when the directory is empty. */
static esdm_status
find_foreign(const esdm__place *place, int fd, char ret_name[NAME_MAX + 1], esdm_error *err)
{
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    if (dir == NULL) {
        esdm_status status = esdm__error_set_errno(err, errno, "%s: cannot list directory '%s'",
                                                   place->path, place->directory);
        if (copy >= 0)
            (void) close(copy);
        return status;
    }
    ret_name[0] = '\0';
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        const char *name = entry->d_name;
        bool ours = strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
                    strncmp(name, MARK_TEMPORARY, sizeof MARK_TEMPORARY - 1) == 0 ||
                    is_tolerated(place, name);
        /* The root of a fresh ext file system is empty in the eyes of its owner. */
        if (ours || strcmp(name, "lost+found") == 0)
            continue;
        (void) snprintf(ret_name, NAME_MAX + 1, "%s", name);
        break;
    }
    (void) closedir(dir);
    return ESDM_OK;
}

esdm_status
esdm__write_all(int fd, const void *data, size_t bytes)
{
    const uint8_t *from = data;
    while (bytes > 0) {
        ssize_t n = write(fd, from, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return ESDM_EIO;
        from += n;
        bytes -= (size_t) n;
    }
    return ESDM_OK;
}

static bool
is_unknown_here(int why)
{
    return why == EPERM || why == EINVAL || why == ENOSYS || why == EOPNOTSUPP;
}

int
esdm__place_rename_new(int fd, const char *from, const char *to)
{
    if (renameat2(fd, from, fd, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (!is_unknown_here(errno))
        return -1;
    if (linkat(fd, from, fd, to, 0) == 0) {
        (void) unlinkat(fd, from, 0);
        return 0;
    }
    return is_unknown_here(errno) ? renameat(fd, from, fd, to) : -1;
}

/* Moves a complete file into place: whoever sees the mark sees all of it, and of two makers one
 * wins. ESDM_EEXIST is left to the caller to look at. */
static esdm_status
publish_mark(const esdm__place *place, int fd, const char *text, esdm_error *err)
{
    char id[ESDM__UUID_BYTES];
    char temporary[sizeof MARK_TEMPORARY + ESDM__UUID_BYTES];
    esdm__uuid_new(id);
    (void) snprintf(temporary, sizeof temporary, "%s%s", MARK_TEMPORARY, id);

    int file = openat(fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    bool failed =
        file < 0 || esdm__write_all(file, text, strlen(text)) != ESDM_OK || fsync(file) != 0;
    int why = errno;
    if (file >= 0 && close(file) != 0 && !failed) {
        failed = true;
        why = errno;
    }
    if (!failed && esdm__place_rename_new(fd, temporary, ESDM__MARK_FILE) != 0) {
        failed = true;
        why = errno;
    }
    if (file >= 0 && failed)
        (void) unlinkat(fd, temporary, 0);
    if (failed)
        return esdm__error_set_errno(err, why, "%s: cannot write the mark '%s/%s'", place->path,
                                     place->directory, ESDM__MARK_FILE);
    (void) fsync(fd);
    return ESDM_OK;
}

/* Whether the mark is there and ours. ESDM_EEXIST for somebody else's. */
static esdm_status
is_marked(const esdm__place *place, int fd, bool *ret_marked, esdm_error *err)
{
    esdm_error why = {0};
    esdm_status status = verify_mark(place, fd, &why);
    *ret_marked = status == ESDM_OK;
    if (status == ESDM_OK || status == ESDM_ENOENT)
        return ESDM_OK;
    if (err != NULL)
        *err = why;
    if (status != ESDM_EINVAL)
        return status;
    if (err != NULL)
        err->status = ESDM_EEXIST;
    return ESDM_EEXIST;
}

static esdm_status
write_mark(const esdm__place *place, int fd, esdm_error *err)
{
    if (place->site_id[0] == '\0')
        return esdm__error_set(err, ESDM_EINVAL, "%s: there is no site to mark '%s' for",
                               place->path, place->directory);
    mark_words words;
    const esdm__mark expected = expected_mark(place, &words);
    char *text = esdm__mark_text(&expected);
    if (text == NULL)
        return esdm__error_nomem(err, ESDM__MARK_MAX_BYTES, "a mark");
    esdm_status status = publish_mark(place, fd, text, err);
    free(text);
    if (status != ESDM_EEXIST)
        return status;
    /* Somebody was faster since we looked; ESDM_EEXIST lets the maker of a site take over that id.
     */
    bool marked = false;
    status = is_marked(place, fd, &marked, err);
    if (status == ESDM_OK && !marked)
        return esdm__error_set(err, ESDM_EIO,
                               "%s: the mark '%s/%s' came and went while it was "
                               "written; is somebody removing the site?",
                               place->path, place->directory, ESDM__MARK_FILE);
    return status;
}

/* Marks an open directory unless it is marked. */
static esdm_status
mark_directory(const esdm__place *place, int fd, bool dry_run, esdm_plugin_reporter report,
               void *user, esdm_error *err)
{
    char foreign[NAME_MAX + 1] = "";
    bool marked = false;
    esdm_status status = is_marked(place, fd, &marked, err);
    if (status != ESDM_OK || marked)
        return status;
    status = find_foreign(place, fd, foreign, err);
    if (status != ESDM_OK)
        return status;
    if (foreign[0] != '\0') {
        /* Another process may have marked it, and filled it, since we looked. */
        status = is_marked(place, fd, &marked, err);
        if (status != ESDM_OK || marked)
            return status;
        return esdm__error_set(err, ESDM_EEXIST,
                               "%s: directory '%s' is not empty (it holds '%.100s') and not "
                               "marked as ESDM's; choose an empty or a new one",
                               place->path, place->directory, foreign);
    }
    status = dry_run ? esdm__parent_check(place->path, place->directory, err)
                     : write_mark(place, fd, err);
    if (status == ESDM_OK)
        esdm__report(report, user, "mark directory %s for %s target '%s'", place->directory,
                     place->plugin, place->name);
    return status;
}

esdm_status
esdm__place_make(const esdm__place *place, bool dry_run, esdm_plugin_reporter report, void *user,
                 int *ret_fd, esdm_error *err)
{
    struct stat found;
    if (stat(place->directory, &found) != 0) {
        if (errno != ENOENT)
            return esdm__error_set_errno(err, errno, "%s: cannot use directory '%s'", place->path,
                                         place->directory);
        if (dry_run) {
            esdm_status possible = esdm__parent_check(place->path, place->directory, err);
            if (possible != ESDM_OK)
                return possible;
            esdm__report(report, user, "make directory %s", place->directory);
            esdm__report(report, user, "mark directory %s for %s target '%s'", place->directory,
                         place->plugin, place->name);
            *ret_fd = -1;
            return ESDM_OK;
        }
        esdm_status status = make_directories(place, err);
        if (status != ESDM_OK)
            return status;
        esdm__report(report, user, "make directory %s", place->directory);
    } else if (!S_ISDIR(found.st_mode)) {
        return esdm__error_set(err, ESDM_EEXIST, "%s: '%s' exists and is not a directory",
                               place->path, place->directory);
    }

    int fd = -1;
    esdm_status status = open_directory(place, &fd, err);
    if (status != ESDM_OK)
        return status;
    status = mark_directory(place, fd, dry_run, report, user, err);
    if (status != ESDM_OK) {
        (void) close(fd);
        return status;
    }
    *ret_fd = fd;
    return ESDM_OK;
}

/* Left behind by a maker that was killed. */
static void
remove_temporaries(int fd)
{
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    if (dir == NULL) {
        if (copy >= 0)
            (void) close(copy);
        return;
    }
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (strncmp(entry->d_name, MARK_TEMPORARY, sizeof MARK_TEMPORARY - 1) == 0)
            (void) unlinkat(fd, entry->d_name, 0);
    }
    (void) closedir(dir);
}

esdm_status
esdm__place_unmark(const esdm__place *place, int fd, bool dry_run, esdm_plugin_reporter report,
                   void *user, esdm_error *err)
{
    esdm__report(report, user, "remove the mark of %s", place->directory);
    if (dry_run)
        return ESDM_OK;
    if (unlinkat(fd, ESDM__MARK_FILE, 0) != 0 && errno != ENOENT)
        return esdm__error_set_errno(err, errno, "%s: cannot remove the mark '%s/%s'", place->path,
                                     place->directory, ESDM__MARK_FILE);
    remove_temporaries(fd);
    if (rmdir(place->directory) == 0)
        esdm__report(report, user, "remove directory %s", place->directory);
    else if (errno == ENOTEMPTY || errno == EEXIST)
        esdm__report(report, user, "keep directory %s: it holds files that are not ESDM's",
                     place->directory);
    return ESDM_OK;
}

/* ---- findings ------------------------------------------------------------------------------- */

void
esdm__findings_add(esdm__findings *all, const esdm_error *problem)
{
    esdm__report(all->report, all->user, "%s", problem->message);
    /* Damage outweighs what else was found before. */
    if (all->status == ESDM_OK ||
        (problem->status == ESDM_ECORRUPT && all->status != ESDM_ECORRUPT)) {
        all->status = problem->status;
        all->first = *problem;
    }
}

esdm_status
esdm__place_check(const char *plugin, const esdm_plugin_config *config,
                  esdm__place_inspector inspect, esdm_plugin_reporter report, void *user,
                  esdm_error *err)
{
    esdm__place place = {0};
    esdm__findings all = {.report = report, .user = user, .status = ESDM_OK};
    esdm_error problem = {0};
    int fd = -1;
    if (esdm__place_init(&place, plugin, config, &problem) != ESDM_OK ||
        esdm__place_open(&place, &fd, &problem) != ESDM_OK) {
        esdm__findings_add(&all, &problem);
    } else {
        inspect(&place, fd, config, &all);
        (void) close(fd);
    }
    esdm__place_clear(&place);
    if (all.status != ESDM_OK && err != NULL)
        *err = all.first;
    return all.status;
}

void
esdm__place_inspect_file(const esdm__place *place, int fd, const char *file, esdm__findings *all)
{
    esdm_error problem;
    if (faccessat(fd, ".", R_OK | W_OK | X_OK, AT_EACCESS) != 0) {
        (void) !esdm__error_set(&problem, ESDM_EACCES,
                                "%s: no permission to write in '%s'; this user can at most read",
                                place->path, place->directory);
        esdm__findings_add(all, &problem);
    }
    if (faccessat(fd, file, R_OK, AT_EACCESS) != 0) {
        (void) !esdm__error_set_errno(&problem, errno, "%s: cannot use '%s/%s'", place->path,
                                      place->directory, file);
        esdm__findings_add(all, &problem);
    }
}

void
esdm__place_inspect_space(const esdm__place *place, int fd, esdm__findings *all)
{
    esdm_error problem;
    struct statvfs space;
    if (fstatvfs(fd, &space) != 0) {
        (void) !esdm__error_set_errno(&problem, errno, "%s: cannot ask for the space of '%s'",
                                      place->path, place->directory);
        esdm__findings_add(all, &problem);
        return;
    }
    uint64_t total = (uint64_t) space.f_blocks * space.f_frsize;
    uint64_t available = (uint64_t) space.f_bavail * space.f_frsize;
    if (available < LOW_SPACE_BYTES || space.f_favail == 0) {
        /* Some file systems count no inodes: f_files is 0 there. */
        if (available >= LOW_SPACE_BYTES && space.f_files == 0)
            return;
        (void) !esdm__error_set(&problem, ESDM_ENOSPC,
                                "%s: '%s' is full: %llu MiB and %llu files are free", place->path,
                                place->directory, (unsigned long long) (available >> 20),
                                (unsigned long long) space.f_favail);
        esdm__findings_add(all, &problem);
    } else if (available < total / 20) {
        esdm__report(all->report, all->user, "%s: note: '%s' has only %llu of %llu MiB left",
                     place->path, place->directory, (unsigned long long) (available >> 20),
                     (unsigned long long) (total >> 20));
    }
}

esdm_status
esdm__place_remove(const char *plugin, const esdm_plugin_config *config, esdm__place_emptier empty,
                   bool dry_run, esdm_plugin_reporter report, void *user, esdm_error *err)
{
    esdm__place place = {0};
    int fd = -1;
    esdm_status status = esdm__place_init(&place, plugin, config, err);
    if (status == ESDM_OK)
        status = esdm__place_open(&place, &fd, err);
    if (status == ESDM_OK)
        status = empty(&place, fd, config, dry_run, report, user, err);
    if (status == ESDM_OK)
        status = esdm__place_unmark(&place, fd, dry_run, report, user, err);
    if (fd >= 0)
        (void) close(fd);
    esdm__place_clear(&place);
    return status;
}
