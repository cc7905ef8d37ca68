/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The open families. Reading an `esdm:` path gives the bytes of a stub: a valid NetCDF header that
 * names the container, which is what programs that sniff at magic numbers need. Writing bytes to a
 * container is not possible.
 */
#include "shim/shim.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/** A descriptor for an `esdm:` path, or -1 and errno. */
static int
open_container(const char *path, int flags)
{
    esdmnc_stat st;
    bool is_folder;
    int error = shim_lookup(path, &st, &is_folder);
    bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC));
    if (error == 0 && (flags & O_CREAT) && (flags & O_EXCL)) {
        error = EEXIST;
    } else if (error == 0 && is_folder) {
        error = writes ? EISDIR : EOPNOTSUPP; /* folders of containers cannot be listed this way */
    } else if (error == 0 && (flags & O_DIRECTORY)) {
        error = ENOTDIR;
    } else if (writes && (error == 0 || (error == ENOENT && (flags & O_CREAT)))) {
        esdmnc_debug("%s: containers are written through NetCDF calls, not as bytes", path);
        error = EOPNOTSUPP;
    }
    if (error != 0) {
        return shim_return(error);
    }
    char container[ESDMNC_NAME_MAX + 1];
    unsigned char bytes[ESDMNC_STUB_MAX];
    size_t length = 0;
    if (esdmnc__path_container(path, container, sizeof(container)) == NC_NOERR) {
        const esdmnc__core *core = esdmnc__core_get();
        int format = core ? core->format(container) : NC_FORMAT_CLASSIC;
        length = esdmnc__stub_bytes(container, format, bytes, sizeof(bytes));
    }
    if (length == 0) {
        return shim_return(ENAMETOOLONG);
    }
    int fd = memfd_create("esdm-stub", (flags & O_CLOEXEC) ? MFD_CLOEXEC : 0);
    if (fd >= 0 && pwrite(fd, bytes, length, 0) != (ssize_t) length) {
        error = errno;
        (void) close(fd);
        return shim_return(error ? error : EIO);
    }
    return fd;
}

static mode_t
creation_mode(int flags, va_list args)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(args, mode_t) : 0;
}

#define OPEN_CALL(name)                                                                            \
    ESDMNC_EXPORT int name(const char *path, int flags, ...)                                       \
    {                                                                                              \
        const char *ours = shim_path(path);                                                        \
        if (!ours) {                                                                               \
            va_list args;                                                                          \
            va_start(args, flags);                                                                 \
            mode_t mode = creation_mode(flags, args);                                              \
            va_end(args);                                                                          \
            int fd = SHIM_REAL(name)(path, flags, mode);                                           \
            if (fd >= 0 || !(ours = shim_missing(path))) {                                         \
                return fd;                                                                         \
            }                                                                                      \
        }                                                                                          \
        return open_container(ours, flags);                                                        \
    }

OPEN_CALL(open)
OPEN_CALL(open64)

#define OPENAT_CALL(name)                                                                          \
    ESDMNC_EXPORT int name(int dirfd, const char *path, int flags, ...)                            \
    {                                                                                              \
        const char *ours = dirfd == AT_FDCWD ? shim_path(path) : NULL;                             \
        if (!ours) {                                                                               \
            va_list args;                                                                          \
            va_start(args, flags);                                                                 \
            mode_t mode = creation_mode(flags, args);                                              \
            va_end(args);                                                                          \
            int fd = SHIM_REAL(name)(dirfd, path, flags, mode);                                    \
            if (fd >= 0 || !(ours = shim_missing(path))) {                                         \
                return fd;                                                                         \
            }                                                                                      \
        }                                                                                          \
        return open_container(ours, flags);                                                        \
    }

OPENAT_CALL(openat)
OPENAT_CALL(openat64)

/* What -D_FORTIFY_SOURCE makes of open calls without a mode. */
#define OPEN2_CALL(name)                                                                           \
    ESDMNC_EXPORT int name(const char *path, int flags);                                           \
    ESDMNC_EXPORT int name(const char *path, int flags)                                            \
    {                                                                                              \
        const char *ours = shim_path(path);                                                        \
        if (!ours) {                                                                               \
            int fd = SHIM_REAL(name)(path, flags);                                                 \
            if (fd >= 0 || !(ours = shim_missing(path))) {                                         \
                return fd;                                                                         \
            }                                                                                      \
        }                                                                                          \
        return open_container(ours, flags);                                                        \
    }

OPEN2_CALL(__open_2)
OPEN2_CALL(__open64_2)

#define OPENAT2_CALL(name)                                                                         \
    ESDMNC_EXPORT int name(int dirfd, const char *path, int flags);                                \
    ESDMNC_EXPORT int name(int dirfd, const char *path, int flags)                                 \
    {                                                                                              \
        const char *ours = dirfd == AT_FDCWD ? shim_path(path) : NULL;                             \
        if (!ours) {                                                                               \
            int fd = SHIM_REAL(name)(dirfd, path, flags);                                          \
            if (fd >= 0 || !(ours = shim_missing(path))) {                                         \
                return fd;                                                                         \
            }                                                                                      \
        }                                                                                          \
        return open_container(ours, flags);                                                        \
    }

OPENAT2_CALL(__openat_2)
OPENAT2_CALL(__openat64_2)

#define CREAT_CALL(name)                                                                           \
    ESDMNC_EXPORT int name(const char *path, mode_t mode)                                          \
    {                                                                                              \
        const char *ours = shim_path(path);                                                        \
        if (!ours) {                                                                               \
            int fd = SHIM_REAL(name)(path, mode);                                                  \
            if (fd >= 0 || !(ours = shim_missing(path))) {                                         \
                return fd;                                                                         \
            }                                                                                      \
        }                                                                                          \
        return open_container(ours, O_WRONLY | O_CREAT | O_TRUNC);                                 \
    }

CREAT_CALL(creat)
CREAT_CALL(creat64)

static FILE *
fopen_container(const char *path, const char *mode)
{
    int flags = mode[0] == 'r' ? O_RDONLY : O_WRONLY | O_CREAT;
    if (strchr(mode, '+')) {
        flags = (flags & ~O_ACCMODE) | O_RDWR;
    }
    flags |= strchr(mode, 'x') ? O_EXCL : 0;
    flags |= strchr(mode, 'e') ? O_CLOEXEC : 0;
    int fd = open_container(path, flags);
    FILE *file = fd >= 0 ? fdopen(fd, mode) : NULL;
    if (fd >= 0 && !file) {
        int error = errno;
        (void) close(fd);
        errno = error;
    }
    return file;
}

#define FOPEN_CALL(name)                                                                           \
    ESDMNC_EXPORT FILE *name(const char *path, const char *mode)                                   \
    {                                                                                              \
        const char *ours = shim_path(path);                                                        \
        if (!ours) {                                                                               \
            FILE *file = SHIM_REAL(name)(path, mode);                                              \
            if (file || !(ours = shim_missing(path))) {                                            \
                return file;                                                                       \
            }                                                                                      \
        }                                                                                          \
        return fopen_container(ours, mode);                                                        \
    }

FOPEN_CALL(fopen)
FOPEN_CALL(fopen64)
