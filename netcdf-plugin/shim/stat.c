/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The stat and access families. */
#include "shim/shim.h"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define BLOCK_BYTES 4096
#define NS_PER_S    1000000000U

/** The device number that containers report: of no real device (major 0 is for unnamed ones). */
#define DEVICE_MAJOR 0
#define DEVICE_MINOR 0xE5D31

typedef struct facts {
    esdmnc_stat container;
    bool is_folder;
} facts;

static mode_t
mode_of(const facts *f)
{
    return f->is_folder ? S_IFDIR | 0755 : S_IFREG | 0644;
}

static int
fill_stat(const char *path, struct stat *st)
{
    facts f;
    int error = shim_lookup(path, &f.container, &f.is_folder);
    if (error != 0) {
        return shim_return(error);
    }
    memset(st, 0, sizeof(*st));
    st->st_dev = makedev(DEVICE_MAJOR, DEVICE_MINOR);
    st->st_ino = f.container.id;
    st->st_mode = mode_of(&f);
    st->st_nlink = 1;
    st->st_uid = geteuid();
    st->st_gid = getegid();
    st->st_size = (off_t) f.container.size_bytes;
    st->st_blksize = BLOCK_BYTES;
    st->st_blocks = (blkcnt_t) ((f.container.size_bytes + 511) / 512);
    st->st_mtim.tv_sec = (time_t) (f.container.modified_ns / NS_PER_S);
    st->st_mtim.tv_nsec = (long) (f.container.modified_ns % NS_PER_S);
    st->st_ctim = st->st_mtim;
    st->st_atim = st->st_mtim;
    return 0;
}

/* Types as macro arguments cannot stand in parentheses. NOLINTBEGIN(bugprone-macro-parentheses) */

/* The 64-bit structures are the same on every platform that ESDM runs on. */
_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "stat and stat64 differ");

#define STAT_CALL(name, structure)                                                                 \
    ESDMNC_EXPORT int name(const char *path, structure *st)                                        \
    {                                                                                              \
        const char *ours = shim_path(path);                                                        \
        if (!ours) {                                                                               \
            int result = SHIM_REAL(name)(path, st);                                                \
            if (result == 0 || !(ours = shim_missing(path))) {                                     \
                return result;                                                                     \
            }                                                                                      \
        }                                                                                          \
        return fill_stat(ours, (struct stat *) st);                                                \
    }

STAT_CALL(stat, struct stat)
STAT_CALL(lstat, struct stat)
STAT_CALL(stat64, struct stat64)
STAT_CALL(lstat64, struct stat64)

#define STATAT_CALL(name, structure)                                                               \
    ESDMNC_EXPORT int name(int dirfd, const char *path, structure *st, int flags)                  \
    {                                                                                              \
        const char *ours = dirfd == AT_FDCWD ? shim_path(path) : NULL;                             \
        if (!ours) {                                                                               \
            int result = SHIM_REAL(name)(dirfd, path, st, flags);                                  \
            if (result == 0 || !(ours = shim_missing(path))) {                                     \
                return result;                                                                     \
            }                                                                                      \
        }                                                                                          \
        return fill_stat(ours, (struct stat *) st);                                                \
    }

STATAT_CALL(fstatat, struct stat)
STATAT_CALL(fstatat64, struct stat64)

/* What programs built before glibc 2.33 call. Newer headers do not declare them. */
#define XSTAT_CALL(name, structure)                                                                \
    ESDMNC_EXPORT int name(int version, const char *path, structure *st);                          \
    ESDMNC_EXPORT int name(int version, const char *path, structure *st)                           \
    {                                                                                              \
        const char *ours = shim_path(path);                                                        \
        if (!ours) {                                                                               \
            int result = SHIM_REAL(name)(version, path, st);                                       \
            if (result == 0 || !(ours = shim_missing(path))) {                                     \
                return result;                                                                     \
            }                                                                                      \
        }                                                                                          \
        return fill_stat(ours, (struct stat *) st);                                                \
    }

XSTAT_CALL(__xstat, struct stat)
XSTAT_CALL(__lxstat, struct stat)
XSTAT_CALL(__xstat64, struct stat64)
XSTAT_CALL(__lxstat64, struct stat64)

#define XSTATAT_CALL(name, structure)                                                              \
    ESDMNC_EXPORT int name(int version, int dirfd, const char *path, structure *st, int flags);    \
    ESDMNC_EXPORT int name(int version, int dirfd, const char *path, structure *st, int flags)     \
    {                                                                                              \
        const char *ours = dirfd == AT_FDCWD ? shim_path(path) : NULL;                             \
        if (!ours) {                                                                               \
            int result = SHIM_REAL(name)(version, dirfd, path, st, flags);                         \
            if (result == 0 || !(ours = shim_missing(path))) {                                     \
                return result;                                                                     \
            }                                                                                      \
        }                                                                                          \
        return fill_stat(ours, (struct stat *) st);                                                \
    }

XSTATAT_CALL(__fxstatat, struct stat)
XSTATAT_CALL(__fxstatat64, struct stat64)

/* NOLINTEND(bugprone-macro-parentheses) */

static struct statx_timestamp
statx_time(uint64_t ns)
{
    return (struct statx_timestamp){.tv_sec = (int64_t) (ns / NS_PER_S),
                                    .tv_nsec = (uint32_t) (ns % NS_PER_S)};
}

ESDMNC_EXPORT int
statx(int dirfd, const char *path, int flags, unsigned int mask, struct statx *stx)
{
    const char *ours = dirfd == AT_FDCWD ? shim_path(path) : NULL;
    if (!ours) {
        int result = SHIM_REAL(statx)(dirfd, path, flags, mask, stx);
        if (result == 0 || !(ours = shim_missing(path))) {
            return result;
        }
    }
    facts f;
    int error = shim_lookup(ours, &f.container, &f.is_folder);
    if (error != 0) {
        return shim_return(error);
    }
    memset(stx, 0, sizeof(*stx));
    stx->stx_mask = STATX_BASIC_STATS | STATX_BTIME;
    stx->stx_blksize = BLOCK_BYTES;
    stx->stx_nlink = 1;
    stx->stx_uid = geteuid();
    stx->stx_gid = getegid();
    stx->stx_mode = (uint16_t) mode_of(&f);
    stx->stx_ino = f.container.id;
    stx->stx_size = f.container.size_bytes;
    stx->stx_blocks = (f.container.size_bytes + 511) / 512;
    stx->stx_atime = stx->stx_mtime = stx->stx_ctime = statx_time(f.container.modified_ns);
    stx->stx_btime = statx_time(f.container.created_ns);
    stx->stx_dev_major = DEVICE_MAJOR;
    stx->stx_dev_minor = DEVICE_MINOR;
    return 0;
}

static int
check_access(const char *path, int mode)
{
    facts f;
    int error = shim_lookup(path, &f.container, &f.is_folder);
    if (error == 0 && (mode & X_OK) && !f.is_folder) {
        error = EACCES;
    }
    return shim_return(error);
}

#define ACCESS_CALL(name)                                                                          \
    ESDMNC_EXPORT int name(const char *path, int mode)                                             \
    {                                                                                              \
        const char *ours = shim_path(path);                                                        \
        if (!ours) {                                                                               \
            int result = SHIM_REAL(name)(path, mode);                                              \
            if (result == 0 || !(ours = shim_missing(path))) {                                     \
                return result;                                                                     \
            }                                                                                      \
        }                                                                                          \
        return check_access(ours, mode);                                                           \
    }

ACCESS_CALL(access)
ACCESS_CALL(euidaccess)
ACCESS_CALL(eaccess)

ESDMNC_EXPORT int
faccessat(int dirfd, const char *path, int mode, int flags)
{
    const char *ours = dirfd == AT_FDCWD ? shim_path(path) : NULL;
    if (!ours) {
        int result = SHIM_REAL(faccessat)(dirfd, path, mode, flags);
        if (result == 0 || !(ours = shim_missing(path))) {
            return result;
        }
    }
    return check_access(ours, mode);
}
