/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/session/references.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/url.h"

/* Whether a path without links lies below a directory, whose links are followed. */
static bool
is_below(const char *path, const char *root)
{
    char real[PATH_MAX];
    if (esdm__site_is_url(root))
        return false;
    if (realpath(root, real) == NULL)
        return false; /* it is not there, so nothing is below it */
    size_t bytes = strlen(real);
    if (bytes == 1)
        return true;
    return strncmp(path, real, bytes) == 0 && path[bytes] == '/';
}

static esdm_status
below_roots(const esdm_session *session, const char *path, const char *location, esdm_error *err)
{
    const esdm__site *site = session->site;
    for (size_t i = 0; i < site->references.nroots; i++)
        if (is_below(path, site->references.roots[i]))
            return ESDM_OK;
    return esdm__error_set(err, ESDM_EACCES,
                           "file '%s' lies below none of the directories that containers of this "
                           "site may refer to (\"references.roots\" in %s)",
                           location, site->source);
}

/* By the modes of the file and of the folders above it. */
static bool
everybody_may_read(const char *path, const struct stat *file)
{
    char folder[PATH_MAX];
    bool may = (file->st_mode & S_IROTH) != 0 && strlen(path) < sizeof folder;
    if (may)
        (void) snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = NULL; may && (slash = strrchr(folder, '/')) != NULL;) {
        struct stat is;
        *slash = '\0';
        may = stat(folder[0] != '\0' ? folder : "/", &is) == 0 && (is.st_mode & S_IXOTH) != 0;
    }
    return may;
}

static esdm_status
check_path(const esdm_session *session, const char *path, const struct stat *file,
           const char *location, esdm_error *err)
{
    if (session->site->references.limited)
        return below_roots(session, path, location, err);
    if (!atomic_load(&session->serves_others) || everybody_may_read(path, file))
        return ESDM_OK;
    return esdm__error_set(err, ESDM_EACCES,
                           "file '%s' is not readable for everybody, and this program serves "
                           "others: state its folder in \"references.roots\" of the site "
                           "configuration, or give everybody the right to read it",
                           location);
}

/* A path that names what a descriptor has opened. */
static void
name_of(int fd, char *name, size_t bytes)
{
    (void) snprintf(name, bytes, "/proc/self/fd/%d", fd);
}

static esdm_status
check_opened(const esdm_session *session, int fd, const char *location, esdm_error *err)
{
    char name[40], path[PATH_MAX];
    struct stat is;
    if (fstat(fd, &is) != 0)
        return esdm__error_set_errno(err, errno, "file '%s'", location);
    if (!S_ISREG(is.st_mode))
        return esdm__error_set(err, ESDM_ECONFLICT,
                               "'%s', which it refers to, is no regular file any more", location);
    if (!session->site->references.limited && !atomic_load(&session->serves_others))
        return ESDM_OK;
    name_of(fd, name, sizeof name);
    ssize_t n = readlink(name, path, sizeof path - 1);
    if (n <= 0)
        return esdm__error_set(err, ESDM_EACCES,
                               "cannot tell where file '%s' lies: /proc is not there", location);
    path[n] = '\0';
    return check_path(session, path, &is, location, err);
}

esdm_status
esdm__reference_open(const esdm_session *session, const char *location, int *ret_fd,
                     esdm_error *err)
{
    char name[40];
    /* First without reading: opening a device may do something. */
    int place = open(location, O_PATH | O_CLOEXEC);
    if (place < 0)
        return esdm__error_set_errno(err, errno, "file '%s', which it refers to", location);
    esdm_status status = check_opened(session, place, location, err);
    if (status != ESDM_OK) {
        (void) close(place);
        return status;
    }
    name_of(place, name, sizeof name);
    int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    int fd = open(name, flags);
    if (fd < 0 && errno == ENOENT && access("/proc/self/fd", F_OK) != 0)
        fd = open(location, flags);
    int why = errno;
    (void) close(place);
    if (fd < 0)
        return esdm__error_set_errno(err, why, "file '%s', which it refers to", location);
    *ret_fd = esdm__descriptor_keep(fd);
    return ESDM_OK;
}

/* Steps upwards, plain or escaped, and what would be read in two ways. */
static bool
is_crooked(const char *url)
{
    const char *path = strstr(url, "//") + 2;
    for (const char *at = path; *at != '\0'; at++) {
        if ((unsigned char) *at <= ' ' || *at == 0x7f || strchr("@#?\\", *at) != NULL)
            return true;
        if (*at == '/' && (strncmp(at, "/../", 4) == 0 || strcmp(at, "/..") == 0 ||
                           strncmp(at, "/./", 3) == 0 || strcmp(at, "/.") == 0))
            return true;
        if (strncasecmp(at, "%2e", 3) == 0 || strncasecmp(at, "%2f", 3) == 0 ||
            strncasecmp(at, "%5c", 3) == 0 || strncmp(at, "%00", 3) == 0)
            return true;
    }
    return false;
}

static esdm_status
url_allowed(const esdm_session *session, const char *url, esdm_error *err)
{
    const esdm__site *site = session->site;
    if (is_crooked(url))
        return esdm__error_set(err, ESDM_EACCES,
                               "'%s': a URL with '..', a user, a question or such escapes is not "
                               "read",
                               url);
    for (size_t i = 0; i < site->references.nroots; i++) {
        const char *root = site->references.roots[i];
        if (esdm__site_is_url(root) && esdm__url_is_in(url, root) && strcmp(url, root) != 0)
            return ESDM_OK;
    }
    return esdm__error_set(err, ESDM_EACCES,
                           "'%s' lies below none of the URLs that containers of this site may "
                           "refer to (\"references.roots\" in %s)",
                           url, site->source);
}

esdm_status
esdm__reference_allowed(const esdm_session *session, const char *location, esdm_error *err)
{
    char real[PATH_MAX];
    if (esdm__site_is_url(location))
        return url_allowed(session, location, err);
    if (!session->site->references.limited)
        return ESDM_OK;
    if (realpath(location, real) == NULL)
        return esdm__error_set_errno(err, errno, "file '%s'", location);
    return below_roots(session, real, location, err);
}
