/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What programs create as containers, and what these are called: all that lies in the folders of
 * $ESDM_NC_ROUTE and of the site configuration.
 *
 * An entry of the variable is FOLDER, a pattern as the shell's, or `*` alone, which stands for the
 * whole file system; `=NAME` may follow. What is matched are folders, at any depth above the file,
 * or the file itself. Names go on behind NAME with what follows the folder, and of a pattern with
 * what follows the last folder before its first wildcard: so no two files get one name.
 */
#include "router/router.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define EVERYTHING "*"

/* ---- folders -------------------------------------------------------------------------------- */

/** Resolves the folder of `path` and appends its last component. The file need not exist. */
static bool
absolute_path(const char *path, char *absolute, size_t size)
{
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    char folder[PATH_MAX];
    char resolved[PATH_MAX];
    size_t length = slash ? (size_t) (slash - path) : 0;
    if (!file[0] || strcmp(file, ".") == 0 || strcmp(file, "..") == 0 || length >= PATH_MAX) {
        return false;
    }
    memcpy(folder, path, length);
    folder[length] = '\0';
    if (!realpath(slash ? (length ? folder : "/") : ".", resolved)) {
        return false;
    }
    int n = snprintf(absolute, size, "%s/%s", resolved[1] ? resolved : "", file);
    return n > 0 && (size_t) n < size;
}

/** What of an absolute path follows a real folder and its slash; NULL: it lies elsewhere. */
static const char *
below(const char *absolute, const char *folder)
{
    size_t length = folder[1] ? strlen(folder) : 0;
    bool lies_there = strncmp(absolute, folder, length) == 0 && absolute[length] == '/';
    return lies_there ? absolute + length + 1 : NULL;
}

/** @param name goes in front of `rest`; NULL: the path of the real folder. NC_NOERR, NC_EMAXNAME.
 */
static int
compose(const char *name, const char *folder, const char *rest, char *container, size_t size)
{
    if (!name) {
        name = folder + 1;
    }
    name += strspn(name, "/");
    int n = snprintf(container, size, "%s%s%s", name, name[0] ? "/" : "", rest);
    return n > 0 && (size_t) n < size ? NC_NOERR : NC_EMAXNAME;
}

/* ---- patterns ------------------------------------------------------------------------------- */

/** Devices and the like are no files that could become a container. */
static bool
is_special(const char *absolute)
{
    return below(absolute, "/proc") || (below(absolute, "/dev") && !below(absolute, "/dev/shm"));
}

/** Splits a pattern behind the last folder before its first wildcard. @return what is to be
 *  matched; NULL: no pattern. */
static const char *
split(const char *pattern, char *fixed, size_t size)
{
    size_t length = strcspn(pattern, "*?[");
    if (!pattern[length] || length + 1 >= size) {
        return NULL;
    }
    while (length > 0 && pattern[length - 1] != '/') {
        length--;
    }
    (void) snprintf(fixed, size, "%.*s", length ? (int) length : 1, length ? pattern : ".");
    return pattern + length;
}

/** Whether the pattern fits the path `rest` or a folder that it lies in. @param ret_bytes of that
 *  folder, or of the one that holds the file. */
static bool
fits(const char *pattern, const char *rest, size_t *ret_bytes)
{
    char part[PATH_MAX];
    char wanted[PATH_MAX];
    size_t length = strlen(pattern);
    size_t above = 0;
    while (length > 0 && pattern[length - 1] == '/') {
        length--;
    }
    if (length >= sizeof(wanted) || strlen(rest) >= sizeof(part)) {
        return false;
    }
    memcpy(wanted, pattern, length);
    wanted[length] = '\0';
    for (size_t end = 0; rest[end]; end++) {
        bool complete = !rest[end + 1] || rest[end + 1] == '/';
        part[end] = rest[end];
        part[end + 1] = '\0';
        if (complete && fnmatch(wanted, part, FNM_PATHNAME) == 0) {
            *ret_bytes = rest[end + 1] ? end + 1 : above;
            return true;
        }
        above = complete ? end + 1 : above;
    }
    return false;
}

/** The first `bytes` of a path, without slashes behind. */
static void
folder_of(const char *absolute, size_t bytes, char *folder)
{
    while (bytes > 0 && absolute[bytes - 1] == '/') {
        bytes--;
    }
    (void) snprintf(folder, PATH_MAX, "%.*s", bytes ? (int) bytes : 1, bytes ? absolute : "/");
}

/** As match(), for what is not the name of a folder. */
static int
match_pattern(const char *routed, const char *name, const char *absolute, char *container,
              size_t size, char *folder)
{
    char fixed[PATH_MAX];
    size_t bytes = 0;
    const char *pattern = split(routed, fixed, sizeof(fixed));
    const char *rest = pattern && realpath(fixed, folder) ? below(absolute, folder) : NULL;
    if (!rest || !fits(pattern, rest, &bytes)) {
        return ENOENT;
    }
    int status = compose(name, folder, rest, container, size);
    folder_of(absolute, (size_t) (rest - absolute) + bytes, folder);
    return status;
}

/** What an entry makes of an absolute path. @param folder receives the real path of the folder that
 *  is routed. NC_NOERR, ENOENT, NC_EMAXNAME. */
static int
match(const char *routed, const char *name, const char *absolute, char *container, size_t size,
      char *folder)
{
    if (strcmp(routed, EVERYTHING) == 0) {
        folder_of(absolute, (size_t) (strrchr(absolute, '/') - absolute), folder);
        return is_special(absolute) ? ENOENT : compose(name, "/", absolute + 1, container, size);
    }
    if (!realpath(routed, folder)) {
        return match_pattern(routed, name, absolute, container, size, folder);
    }
    const char *rest = below(absolute, folder);
    return rest ? compose(name, folder, rest, container, size) : ENOENT;
}

/* ---- routes --------------------------------------------------------------------------------- */

/** Takes the next entry off $ESDM_NC_ROUTE, `*at`; empty ones are left out. @param ret_name behind
 *  `=`, or NULL. @return `text`; "" when the entry is too long for any path; NULL: no more. */
static const char *
next_entry(const char **at, char text[PATH_MAX], const char **ret_name)
{
    if (!*at) {
        return NULL;
    }
    *at += strspn(*at, ":");
    size_t length = strcspn(*at, ":");
    if (length == 0) {
        return NULL;
    }
    bool fits_in = length < PATH_MAX;
    memcpy(text, *at, fits_in ? length : 0);
    text[fits_in ? length : 0] = '\0';
    *at += length;
    char *name = strchr(text, '=');
    if (name) {
        *name++ = '\0';
    }
    *ret_name = name;
    return text;
}

/** $ESDM_NC_ROUTE: the first entry that fits counts. */
static int
route_by_environment(const char *absolute, char *container, size_t size, char *folder)
{
    const char *at = secure_getenv("ESDM_NC_ROUTE");
    const char *name;
    char entry[PATH_MAX];
    int status = ENOENT;
    while (status == ENOENT && next_entry(&at, entry, &name)) {
        status = match(entry, name, absolute, container, size, folder);
    }
    return status;
}

/** "netcdf.routes" of the site configuration. */
static int
route_by_site(const char *absolute, char *container, size_t size, char *folder)
{
    const esdmnc__core *core = esdmnc__core_get();
    const char *routed;
    int status = ENOENT;
    for (size_t i = 0; core && status == ENOENT && (routed = core->route(i)); i++) {
        status = match(routed, NULL, absolute, container, size, folder);
    }
    return status;
}

int
esdmnc__route(const char *path, char *container, size_t size, char *folder)
{
    char absolute[PATH_MAX];
    struct stat st;
    int saved = errno;
    int status = ENOENT;
    if (absolute_path(path, absolute, sizeof(absolute)) &&
        (stat(absolute, &st) != 0 || S_ISREG(st.st_mode))) {
        status = route_by_environment(absolute, container, size, folder);
        if (status == ENOENT) {
            status = route_by_site(absolute, container, size, folder);
        }
    }
    errno = saved;
    return status;
}

int
esdmnc__route_container(const char *path, char *container, size_t size)
{
    char folder[PATH_MAX];
    return esdmnc__route(path, container, size, folder);
}

/* ---- entries that route nothing ------------------------------------------------------------- */

/** Whether there is a folder that an entry could mean. */
static bool
may_route(const char *entry)
{
    char fixed[PATH_MAX];
    struct stat st;
    if (strcmp(entry, EVERYTHING) == 0 || (stat(entry, &st) == 0 && S_ISDIR(st.st_mode))) {
        return true;
    }
    return split(entry, fixed, sizeof(fixed)) && stat(fixed, &st) == 0 && S_ISDIR(st.st_mode);
}

void
esdmnc__route_told(const char *path)
{
    static int told; /* one line is enough for all files of a run */
    const char *at = secure_getenv("ESDM_NC_ROUTE");
    const char *name;
    char entry[PATH_MAX];
    int saved = errno;
    while (!__atomic_load_n(&told, __ATOMIC_RELAXED) && next_entry(&at, entry, &name)) {
        if (!may_route(entry) && !__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED)) {
            esdmnc__tell(
                "'%s' does not become a container: ESDM_NC_ROUTE names '%s', but there is no "
                "such folder (wanted: FOLDER or FOLDER=NAME, with ':' between, or '*' for "
                "all files)",
                path, entry);
        }
    }
    errno = saved;
}
