/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Paths of site configurations: variables, home and data folders. */

#include "site/parts.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/parent.h"

char *
esdm__site_join(const char *folder, const char *name)
{
    char *path = NULL;
    const char *slash = folder[0] != '\0' && folder[strlen(folder) - 1] == '/' ? "" : "/";
    return asprintf(&path, "%s%s%s", folder, slash, name) < 0 ? NULL : path;
}

/* An environment variable that must hold an absolute path to count (XDG's rule). */
static const char *
absolute_variable(const char *name)
{
    const char *value = secure_getenv(name);
    return value != NULL && value[0] == '/' ? value : NULL;
}

static esdm_status
join_checked(const char *folder, const char *name, char **ret_path, esdm_error *err)
{
    char *path = esdm__site_join(folder, name);
    if (path == NULL)
        return esdm__error_nomem(err, strlen(folder) + strlen(name) + 2, "a path");
    *ret_path = path;
    return ESDM_OK;
}

esdm_status
esdm__site_data_folder(char **ret_path, esdm_error *err)
{
    const char *folder = absolute_variable("XDG_DATA_HOME");
    if (folder != NULL)
        return join_checked(folder, "esdm", ret_path, err);
    folder = absolute_variable("HOME");
    if (folder != NULL)
        return join_checked(folder, ".local/share/esdm", ret_path, err);
    return esdm__error_set(err, ESDM_ENOENT,
                           "no site configuration was found, and there is no place for the default "
                           "site: set HOME or XDG_DATA_HOME to an absolute path, or ESDM_CONFIG to "
                           "a site configuration");
}

esdm_status
esdm__site_user_config(char **ret_path, esdm_error *err)
{
    const char *folder = absolute_variable("XDG_CONFIG_HOME");
    if (folder != NULL)
        return join_checked(folder, "esdm/site.json", ret_path, err);
    folder = absolute_variable("HOME");
    if (folder != NULL)
        return join_checked(folder, ".config/esdm/site.json", ret_path, err);
    *ret_path = NULL;
    return ESDM_OK;
}

esdm_status
esdm__site_make_folders(const char *path, esdm_error *err)
{
    char *copy = strdup(path);
    if (copy == NULL)
        return esdm__error_nomem(err, strlen(path) + 1, "a path");
    esdm_status status = ESDM_OK;
    for (char *at = copy + 1; status == ESDM_OK; at++) {
        char end = *at;
        if (end != '/' && end != '\0')
            continue;
        *at = '\0';
        struct stat info;
        /* An existing folder on a read-only file system would be EROFS for mkdir(). */
        if (stat(copy, &info) != 0) {
            int why = mkdir(copy, 0700) == 0 ? 0 : errno;
            if (why == 0)
                esdm__sync_parent(copy);
            else if (why != EEXIST)
                status = esdm__error_set_errno(err, why, "cannot make the folder '%s'", copy);
        }
        *at = end;
        if (end == '\0')
            break;
    }
    free(copy);
    return status;
}

esdm_status
esdm__site_folder_of(const char *file, char **ret_folder, esdm_error *err)
{
    char *here = NULL;
    if (file == NULL || file[0] != '/') {
        here = getcwd(NULL, 0);
        if (here == NULL)
            return esdm__error_set_errno(err, errno, "cannot tell the current folder");
    }
    const char *slash = file != NULL ? strrchr(file, '/') : NULL;
    char *folder = NULL;
    if (slash == NULL) {
        folder = here;
        here = NULL;
    } else {
        size_t bytes = slash == file ? 1 : (size_t) (slash - file);
        char *own = strndup(file, bytes);
        folder = own != NULL && here != NULL ? esdm__site_join(here, own) : own;
        if (here != NULL)
            free(own);
    }
    free(here);
    if (folder == NULL)
        return esdm__error_nomem(err, file != NULL ? strlen(file) : 1, "a path");
    *ret_folder = folder;
    return ESDM_OK;
}

/* ---- directories of the configuration ----------------------------------------------------- */

static bool
is_name_byte(char c)
{
    return isalnum((unsigned char) c) || c == '_';
}

/* Appends the variable that starts after the dollar sign at `at`; *ret_next is what follows. */
static esdm_status
put_variable(const esdm__json_node *node, const char *at, esdm__buffer *out, const char **ret_next,
             esdm_error *err)
{
    if (*at == '$') {
        esdm__buffer_put_u8(out, '$');
        *ret_next = at + 1;
        return ESDM_OK;
    }
    bool braces = *at == '{';
    const char *start = braces ? at + 1 : at;
    size_t bytes = 0;
    while (is_name_byte(start[bytes]))
        bytes++;
    if (bytes == 0 || (braces && start[bytes] != '}'))
        return esdm__json_error(node, err,
                                "write \"$NAME\" or \"${NAME}\" for an environment "
                                "variable and \"$$\" for a dollar sign");
    char name[128];
    (void) snprintf(name, sizeof name, "%.*s", (int) (bytes < sizeof name ? bytes : 127), start);
    const char *value = secure_getenv(name);
    if (value == NULL || value[0] == '\0')
        return esdm__json_error(node, err, "the environment variable %s is not set", name);
    esdm__buffer_put(out, value, strlen(value));
    *ret_next = start + bytes + (braces ? 1 : 0);
    return ESDM_OK;
}

static esdm_status
expand(const esdm__json_node *node, const char *text, esdm__buffer *out, esdm_error *err)
{
    const char *at = text;
    if (*at == '~') {
        const char *home = absolute_variable("HOME");
        if (at[1] != '\0' && at[1] != '/')
            return esdm__json_error(node, err, "\"~user\" is not supported; write the full path");
        if (home == NULL)
            return esdm__json_error(node, err, "\"~\" needs HOME, which is not set");
        esdm__buffer_put(out, home, strlen(home));
        at++;
    }
    while (*at != '\0') {
        if (*at != '$') {
            esdm__buffer_put_u8(out, (uint8_t) *at++);
            continue;
        }
        esdm_status status = put_variable(node, at + 1, out, &at, err);
        if (status != ESDM_OK)
            return status;
    }
    return ESDM_OK;
}

/* The buffer's text as an absolute path without slashes at the end. */
static esdm_status
finish_path(esdm__buffer *out, const char *base, char **ret_path, esdm_error *err)
{
    esdm__buffer_put_u8(out, 0);
    if (out->failed)
        return esdm__error_nomem(err, out->bytes + 64, "a path");
    const char *text = (const char *) out->data;
    char *path = text[0] == '/' ? strdup(text) : esdm__site_join(base, text);
    if (path == NULL)
        return esdm__error_nomem(err, out->bytes, "a path");
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
        path[n - 1] = '\0';
    *ret_path = path;
    return ESDM_OK;
}

esdm_status
esdm__site_directory(const esdm__json_node *node, const esdm__site_folder *folder, char **ret_path,
                     esdm_error *err)
{
    const char *text = NULL;
    esdm_status status = esdm__json_string(node, &text, err);
    if (status != ESDM_OK)
        return status;
    if (text[0] == '\0')
        return esdm__json_error(node, err, "the directory is empty");
    esdm__buffer out;
    esdm__buffer_init(&out);
    if (folder->expand)
        status = expand(node, text, &out, err);
    else
        esdm__buffer_put(&out, text, strlen(text));
    if (status == ESDM_OK)
        status = finish_path(&out, folder->base, ret_path, err);
    esdm__buffer_clear(&out);
    return status;
}
