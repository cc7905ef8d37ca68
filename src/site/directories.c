/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Directories of a site: which ones there are, and whether they keep apart, as a removal of one
 * must not find another inside. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arguments.h"
#include "base/error.h"
#include "base/json.h"
#include "site/admin.h"
#include "site/parts.h"

/* One component more. "." and ".." are settled, as nothing there can be a link. */
static bool
append(char **path, const char *name, size_t bytes)
{
    char *slash = strrchr(*path, '/');
    if (bytes == 0 || (bytes == 1 && name[0] == '.'))
        return true;
    if (bytes == 2 && name[0] == '.' && name[1] == '.') {
        slash[slash == *path ? 1 : 0] = '\0';
        return true;
    }
    char *own = strndup(name, bytes);
    char *longer = own != NULL ? esdm__site_join(*path, own) : NULL;
    free(own);
    if (longer == NULL)
        return false;
    free(*path);
    *path = longer;
    return true;
}

/* The path without symbolic links as far as it exists, and as it is written from there on. What
 * cannot be looked at counts as not there. NULL: out of memory. */
static char *
real_directory(const char *directory)
{
    char *head = strdup(directory);
    char *real = NULL;
    size_t bytes = strlen(directory);
    while (head != NULL && (real = realpath(head, NULL)) == NULL && errno != ENOMEM && bytes > 1) {
        while (bytes > 1 && head[bytes - 1] != '/')
            bytes--;
        while (bytes > 1 && head[bytes - 1] == '/')
            bytes--;
        head[bytes] = '\0';
    }
    free(head);
    for (const char *at = directory + bytes; real != NULL && *at != '\0';) {
        size_t length = strcspn(at, "/");
        if (!append(&real, at, length)) {
            free(real);
            real = NULL;
        } else {
            at += length;
            at += strspn(at, "/");
        }
    }
    return real;
}

static bool
is_inside(const char *path, const char *folder)
{
    size_t bytes = strlen(folder);
    return strncmp(path, folder, bytes) == 0 &&
           (path[bytes] == '/' || (bytes > 0 && folder[bytes - 1] == '/'));
}

static const esdm__site_target *
target_at(const esdm__site *site, size_t index)
{
    return index < site->ntargets ? &site->targets[index] : &site->metadata;
}

/* "targets[1]" of "site.json: targets[1]" */
static const char *
short_path(const esdm__site *site, const esdm__site_target *target)
{
    size_t bytes = strlen(site->source);
    return strncmp(target->path, site->source, bytes) == 0 && target->path[bytes] == ':'
               ? target->path + bytes + 2
               : target->path;
}

/* @param reals real directories, NULL for a target without one. */
static esdm_status
compare(const esdm__site *site, char *const *reals, size_t later, size_t earlier, esdm_error *err)
{
    const esdm__site_target *a = target_at(site, later);
    const char *other = short_path(site, target_at(site, earlier));
    if (strcmp(reals[later], reals[earlier]) == 0)
        return esdm__error_set(err, ESDM_EINVAL, "%s: \"%.180s\" is the directory of %s already",
                               a->path, reals[later], other);
    bool inner = is_inside(reals[later], reals[earlier]);
    if (!inner && !is_inside(reals[earlier], reals[later]))
        return ESDM_OK;
    return esdm__error_set(err, ESDM_EINVAL,
                           "%s: the directory \"%.140s\" lies %s the one of %s, \"%.140s\"; "
                           "directories must lie side by side",
                           a->path, reals[later], inner ? "inside" : "around", other,
                           reals[earlier]);
}

/* Owned; NULL: it has none on this machine, or no memory. */
static char *
directory_of(const esdm__site_target *target)
{
    json_t *object = esdm__json_read(target->json);
    const char *stated = json_string_value(json_object_get(object, "directory"));
    char *directory = stated != NULL && stated[0] == '/' ? strdup(stated) : NULL;
    json_decref(object);
    return directory;
}

static esdm_status
find_reals(const esdm__site *site, char **reals, esdm_error *err)
{
    for (size_t i = 0; i <= site->ntargets; i++) {
        char *directory = directory_of(target_at(site, i));
        reals[i] = directory != NULL ? real_directory(directory) : NULL;
        bool failed = directory != NULL && reals[i] == NULL;
        free(directory);
        if (failed)
            return esdm__error_nomem(err, 4096, "a path");
    }
    return ESDM_OK;
}

esdm_status
esdm__site_check_directories(const esdm__site *site, esdm_error *err)
{
    char **reals = calloc(site->ntargets + 1, sizeof *reals);
    if (reals == NULL)
        return esdm__error_nomem(err, (site->ntargets + 1) * sizeof *reals, "directories");
    esdm_status status = find_reals(site, reals, err);
    for (size_t i = 0; i <= site->ntargets && status == ESDM_OK; i++) {
        for (size_t j = 0; j < i && reals[i] != NULL && status == ESDM_OK; j++) {
            if (reals[j] != NULL)
                status = compare(site, reals, i, j, err);
        }
    }
    for (size_t i = 0; i <= site->ntargets; i++)
        free(reals[i]);
    free(reals);
    return status;
}

esdm_status
esdm_site_directories(const esdm_site_options *options, esdm_directory_visitor visit, void *user,
                      esdm_error *err)
{
    ESDM__NEED(err, visit);
    esdm__site *site = NULL;
    esdm_status status = esdm__site_load_options(&options, &site, err);
    bool more = true;
    for (size_t i = 0; status == ESDM_OK && more && i <= site->ntargets; i++) {
        char *directory = directory_of(target_at(site, i));
        more = visit(directory, user);
        free(directory);
    }
    if (status == ESDM_OK && more && site->references.s3 != NULL)
        (void) visit(NULL, user);
    esdm__site_free(site);
    return status;
}
