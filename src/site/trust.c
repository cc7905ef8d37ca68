/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Whose configuration is obeyed, and who can read the secrets in it. */

#include "site/parts.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

/* ---- whose configuration it is -------------------------------------------------------------- */

/* Who may have named a group so that only the user is in it. */
static bool
is_private_group(gid_t gid)
{
    char names[2][4096];
    struct passwd user;
    struct group group;
    struct passwd *found_user = NULL;
    struct group *found = NULL;
    if (getpwuid_r(geteuid(), &user, names[0], sizeof names[0], &found_user) != 0 ||
        getgrgid_r(gid, &group, names[1], sizeof names[1], &found) != 0 || found_user == NULL ||
        found == NULL || strcmp(user.pw_name, group.gr_name) != 0)
        return false;
    for (char **member = group.gr_mem; *member != NULL; member++) {
        if (strcmp(*member, user.pw_name) != 0)
            return false;
    }
    return true;
}

static esdm_status
foreign(const char *path, const char *why, esdm_error *err)
{
    return esdm__error_set(err, ESDM_EACCES,
                           "the site configuration '%.200s' is not used: %s. If you trust it, name "
                           "it: ESDM_CONFIG=%s%.200s",
                           path, why, path[0] == '.' ? "$PWD/" : "",
                           strncmp(path, "./", 2) == 0 ? path + 2 : path);
}

static bool
is_trusted_owner(uid_t owner)
{
    return owner == geteuid() || owner == 0;
}

esdm_status
esdm__site_check_owner(const char *path, const struct stat *file, esdm_error *err)
{
    struct stat link;
    if (!S_ISREG(file->st_mode))
        return foreign(path, "it is no regular file", err);
    if (!is_trusted_owner(file->st_uid))
        return foreign(path, "it belongs to another user", err);
    if (lstat(path, &link) == 0 && !is_trusted_owner(link.st_uid))
        return foreign(path, "it is a link that belongs to another user", err);
    if ((file->st_mode & S_IWOTH) != 0)
        return foreign(path, "everybody can write to it (chmod o-w takes that away)", err);
    if ((file->st_mode & S_IWGRP) != 0 && !is_private_group(file->st_gid))
        return foreign(path, "a group can write to it (chmod g-w takes that away)", err);
    return ESDM_OK;
}

/* ---- secrets -------------------------------------------------------------------------------- */

/* "postgresql://USER:PASSWORD@HOST/DATABASE", or "?password=". */
static bool
is_url_with_password(const char *text)
{
    const char *authority = text != NULL ? strstr(text, "://") : NULL;
    if (authority == NULL)
        return false;
    authority += 3;
    const char *at = memchr(authority, '@', strcspn(authority, "/?"));
    const char *query = strchr(authority, '?');
    return (at != NULL && memchr(authority, ':', (size_t) (at - authority)) != NULL) ||
           (query != NULL && strstr(query, "password=") != NULL);
}

static bool
is_secret(const char *key, const json_t *value)
{
    static const char *const words[] = {"secret_key", "session_token", "password"};
    const char *text = json_string_value(value);
    if (text == NULL || text[0] == '\0')
        return false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(key, words[i]) == 0)
            return true;
    }
    return strcmp(key, "connection") == 0 &&
           (strstr(text, "password") != NULL || is_url_with_password(text));
}

/* Of databases that records of programs go to. */
static bool
monitor_has_secret(const json_t *monitor)
{
    return is_url_with_password(json_string_value(json_object_get(monitor, "stats_file"))) ||
           is_url_with_password(json_string_value(json_object_get(monitor, "trace_file")));
}

/* Of a target, of the metadata store, or of a place that references are read from. */
static bool
has_secret(json_t *object)
{
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(object, key, value)
    {
        if (is_secret(key, value))
            return true;
    }
    return false;
}

bool
esdm__site_holds_secret(const json_t *root)
{
    size_t index = 0;
    json_t *target = NULL;
    if (has_secret(json_object_get(root, "metadata")) ||
        monitor_has_secret(json_object_get(root, "monitor")))
        return true;
    json_array_foreach(json_object_get(json_object_get(root, "references"), "s3"), index, target)
    {
        if (has_secret(target))
            return true;
    }
    json_array_foreach(json_object_get(root, "targets"), index, target)
    {
        if (has_secret(target))
            return true;
    }
    return false;
}
