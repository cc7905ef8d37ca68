/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The open families. Reading an `esdm:` path gives the bytes of a stub: a valid NetCDF header that
 * names the container, which is what programs that sniff at magic numbers need. Writing bytes to a
 * container is not possible. Many programs open for reading and writing what they only read, so
 * that this succeeds, and writing fails.
 */
#include "shim/shim.h"

#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

/** Says once why, as programs say no more than "Operation not supported". */
static void
tell_bytes(const char *path)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&told)) {
        esdmnc__tell("'%s': a container takes no bytes, but what is written by NetCDF's calls: let "
                     "the program write NetCDF (cdo: -f nc4), or a file elsewhere",
                     path);
    }
}

/** Whether HDF5 itself opens the file, for a program that does not ask libnetcdf: h5py, h5netcdf,
 * h5dump. `caller` is where the call came from. Takes no lock of the dynamic linker's, which a
 * thread may have held when the process was forked. */
static bool
called_by_hdf5(const void *caller)
{
    const struct link_map *map = esdmnc__map_of(caller);
    const char *slash = map ? strrchr(map->l_name, '/') : NULL;
    return map && strncmp(slash ? slash + 1 : map->l_name, "libhdf5", 7) == 0;
}

/** HDF5 would find a valid file without variables, and the program would go on with nothing.
 * @return -1, with errno set. */
static int
refuse_hdf5(const char *path)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&told)) {
        esdmnc__tell("'%s': a container is read by the NetCDF library (netCDF4, xarray's "
                     "engine=\"netcdf4\"), not by HDF5 alone (h5py, h5netcdf, h5dump): esdm-mount "
                     "shows it as a file, esdm-cp makes one",
                     path);
    }
    return shim_return(EOPNOTSUPP);
}

/** A descriptor for an `esdm:` path, or -1 and errno. */
static int
open_container(const char *path, int flags, const void *caller)
{
    esdmnc_stat st;
    bool is_folder;
    int error = shim_lookup(path, &st, &is_folder);
    bool writes = (flags & O_ACCMODE) == O_WRONLY || (flags & (O_CREAT | O_TRUNC | O_APPEND));
    if (error == 0 && (flags & O_CREAT) && (flags & O_EXCL)) {
        error = EEXIST;
    } else if (error == 0 && is_folder) {
        bool reads = (flags & O_ACCMODE) == O_RDONLY && !writes;
        error = reads ? EOPNOTSUPP : EISDIR; /* folders of containers cannot be listed this way */
    } else if (error == 0 && (flags & O_DIRECTORY)) {
        error = ENOTDIR;
    } else if (writes && (error == 0 || (error == ENOENT && (flags & O_CREAT)))) {
        tell_bytes(path);
        error = EOPNOTSUPP;
    }
    if (error != 0) {
        return shim_return(error);
    }
    if (called_by_hdf5(caller)) {
        return refuse_hdf5(path);
    }
    char container[ESDMNC_NAME_MAX + 1];
    if (esdmnc__path_container(path, container, sizeof(container)) != NC_NOERR) {
        return shim_return(ENAMETOOLONG);
    }
    return shim_stub_descriptor(container, (flags & O_CLOEXEC) != 0);
}

/** What the program gets for a real file that it has opened. */
static int
opened(int fd, const char *path, int flags, const void *caller)
{
    fd = shim_descriptor_opened(fd);
    if (fd < 0 || (flags & (O_CREAT | O_TRUNC | O_APPEND | O_PATH)) ||
        (flags & O_ACCMODE) == O_WRONLY) {
        return fd;
    }
    int shown = shim_stub_shown(fd, (flags & O_CLOEXEC) != 0);
    if (shown < 0) {
        return fd;
    }
    (void) close(fd);
    if (called_by_hdf5(caller)) {
        (void) close(shown);
        return refuse_hdf5(path);
    }
    return shown;
}

static mode_t
creation_mode(int flags, va_list args)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(args, mode_t) : 0;
}

/** In a call that the program makes. */
#define CALLER __builtin_return_address(0)

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
                return opened(fd, path, flags, CALLER);                                            \
            }                                                                                      \
        }                                                                                          \
        return open_container(ours, flags, CALLER);                                                \
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
                return opened(fd, path, flags, CALLER);                                            \
            }                                                                                      \
        }                                                                                          \
        return open_container(ours, flags, CALLER);                                                \
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
                return opened(fd, path, flags, CALLER);                                            \
            }                                                                                      \
        }                                                                                          \
        return open_container(ours, flags, CALLER);                                                \
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
                return opened(fd, path, flags, CALLER);                                            \
            }                                                                                      \
        }                                                                                          \
        return open_container(ours, flags, CALLER);                                                \
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
        return open_container(ours, O_WRONLY | O_CREAT | O_TRUNC, CALLER);                         \
    }

CREAT_CALL(creat)
CREAT_CALL(creat64)

/** What the program gets for a real file that it has opened. */
static FILE *
fopened(FILE *file, const char *mode)
{
    bool reads = file && mode[0] == 'r';
    int shown = reads ? shim_stub_shown(fileno(file), strchr(mode, 'e') != NULL) : -1;
    FILE *other = shown >= 0 ? fdopen(shown, mode) : NULL;
    if (!other) {
        if (shown >= 0) {
            (void) close(shown);
        }
        return file;
    }
    (void) fclose(file);
    return other;
}

static FILE *
fopen_container(const char *path, const char *mode)
{
    int flags = mode[0] == 'r' ? O_RDONLY : O_WRONLY | O_CREAT;
    if (strchr(mode, '+')) {
        flags = (flags & ~O_ACCMODE) | O_RDWR;
    }
    flags |= strchr(mode, 'x') ? O_EXCL : 0;
    flags |= strchr(mode, 'e') ? O_CLOEXEC : 0;
    int fd = open_container(path, flags, NULL);
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
                return fopened(file, mode);                                                        \
            }                                                                                      \
        }                                                                                          \
        return fopen_container(ours, mode);                                                        \
    }

FOPEN_CALL(fopen)
FOPEN_CALL(fopen64)
