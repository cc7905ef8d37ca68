/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Calls that change or resolve names: rename, unlink, remove, realpath. */
#include "shim/shim.h"

#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

/*
 * A rename between a container and a file is refused, and programs such as Python's shutil.move()
 * then copy the bytes (which are a stub) and unlink the source: that would lose the data. So a
 * container whose rename was refused cannot be unlinked by this process any more.
 */
#define GUARDED 64
static _Atomic uint64_t guarded[GUARDED];
static atomic_uint guarded_next;

static uint64_t
name_hash(const char *name)
{
    uint64_t hash = 14695981039346656037U; /* FNV-1a */
    for (; *name; name++) {
        hash = (hash ^ (unsigned char) *name) * 1099511628211U;
    }
    return hash ? hash : 1;
}

static void
guard(const char *container)
{
    guarded[atomic_fetch_add(&guarded_next, 1) % GUARDED] = name_hash(container);
}

static bool
is_guarded(const char *container)
{
    uint64_t hash = name_hash(container);
    for (size_t i = 0; i < GUARDED; i++) {
        if (guarded[i] == hash) {
            return true;
        }
    }
    return false;
}

static int
unlink_container(const char *path)
{
    char container[ESDMNC_NAME_MAX + 1];
    int saved = errno;
    int status = esdmnc__path_container(path, container, sizeof(container));
    if (status == NC_NOERR && !container[0]) {
        return shim_return(EISDIR);
    }
    if (status == NC_NOERR && is_guarded(container)) {
        esdmnc_debug("%s is kept: moving it to a file failed before", path);
        return shim_return(EOPNOTSUPP);
    }
    if (status == NC_NOERR) {
        const esdmnc__core *core = esdmnc__core_get();
        status = core ? core->remove(container) : NC_ENOTBUILT;
    }
    errno = saved;
    return shim_return(shim_errno(status));
}

/** At least one of the two is an `esdm:` path, given without a folder in front. */
static int
rename_container(const char *from, const char *to, unsigned int flags)
{
    char source[ESDMNC_NAME_MAX + 1];
    char target[ESDMNC_NAME_MAX + 1];
    int saved = errno;
    int status = from ? esdmnc__path_container(from, source, sizeof(source)) : NC_NOERR;
    if (status == NC_NOERR && from && !to) {
        guard(source);
    }
    if (status == NC_NOERR && (!from || !to)) {
        esdmnc_debug("a container and a file cannot be renamed into each other; use esdm-cp");
        return shim_return(EOPNOTSUPP); /* EXDEV would make mv(1) copy and remove */
    }
    if (status == NC_NOERR) {
        status = esdmnc__path_container(to, target, sizeof(target));
    }
    if (status == NC_NOERR && (!source[0] || !target[0])) {
        return shim_return(EISDIR);
    }
    if (status == NC_NOERR && (flags & ~(unsigned int) RENAME_NOREPLACE)) {
        return shim_return(EINVAL);
    }
    const esdmnc__core *core = status == NC_NOERR ? esdmnc__core_get() : NULL;
    if (status == NC_NOERR && !core) {
        status = NC_ENOTBUILT;
    }
    esdmnc_stat st;
    if (status == NC_NOERR && (flags & RENAME_NOREPLACE) && core->exists(target, &st) == NC_NOERR) {
        status = NC_EEXIST;
    }
    if (status == NC_NOERR) {
        status = core->rename(source, target);
        esdmnc_debug("rename '%s' to '%s': %d", source, target, status);
    }
    errno = saved;
    return shim_return(shim_errno(status));
}

/** Tells whether a rename is ours: `*from` and `*to` are set to the `esdm:` parts or NULL. */
static bool
rename_is_ours(int from_dir, const char **from, int to_dir, const char **to)
{
    const char *a = *from;
    const char *b = *to;
    *from = from_dir == AT_FDCWD ? shim_path(a) : NULL;
    *to = to_dir == AT_FDCWD ? shim_path(b) : NULL;
    if (!*from && !*to) {
        return false;
    }
    if (!*from && a) {
        *from = esdmnc__path_mangled(a);
    }
    if (!*to && b) {
        *to = esdmnc__path_mangled(b);
    }
    return true;
}

/** After a real rename failed: the same for paths that were made absolute. */
static bool
rename_is_mangled(const char **from, const char **to)
{
    if (errno != ENOENT || !*from || !*to) {
        return false;
    }
    *from = esdmnc__path_mangled(*from);
    *to = esdmnc__path_mangled(*to);
    return *from || *to;
}

/** A rename of real files; in a routed folder the container of a stub follows. What others have
 *  changed meanwhile stays: then the rename fails, or is taken back. */
#define REAL_RENAME(from, to, call, back)                                                          \
    ({                                                                                             \
        esdmnc__move move_;                                                                        \
        const char *to_ = (to);                                                                    \
        int refused_ = esdmnc__move_begin((from), to_, &move_);                                    \
        int result_ = refused_ != 0 ? shim_return(refused_) : (call);                              \
        if (result_ == 0 && (refused_ = esdmnc__move_end(to_, &move_)) != 0) {                     \
            if ((back) == 0) {                                                                     \
                esdmnc__move_undo(to_, &move_);                                                    \
            }                                                                                      \
            result_ = shim_return(refused_);                                                       \
        }                                                                                          \
        result_;                                                                                   \
    })

ESDMNC_EXPORT int
rename(const char *from, const char *to)
{
    const char *a = from;
    const char *b = to;
    if (!rename_is_ours(AT_FDCWD, &a, AT_FDCWD, &b)) {
        int result =
            REAL_RENAME(from, to, SHIM_REAL(rename)(from, to), SHIM_REAL(rename)(to, from));
        a = from;
        b = to;
        if (result == 0 || !rename_is_mangled(&a, &b)) {
            return result;
        }
    }
    return rename_container(a, b, 0);
}

ESDMNC_EXPORT int
renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    const char *a = from;
    const char *b = to;
    if (!rename_is_ours(from_dir, &a, to_dir, &b)) {
        int result = REAL_RENAME(from_dir == AT_FDCWD ? from : NULL, to_dir == AT_FDCWD ? to : NULL,
                                 SHIM_REAL(renameat)(from_dir, from, to_dir, to),
                                 SHIM_REAL(rename)(to, from));
        a = from;
        b = to;
        if (result == 0 || !rename_is_mangled(&a, &b)) {
            return result;
        }
    }
    return rename_container(a, b, 0);
}

ESDMNC_EXPORT int
renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned int flags)
{
    const char *a = from;
    const char *b = to;
    if (!rename_is_ours(from_dir, &a, to_dir, &b)) {
        int result = REAL_RENAME(from_dir == AT_FDCWD ? from : NULL, to_dir == AT_FDCWD ? to : NULL,
                                 SHIM_REAL(renameat2)(from_dir, from, to_dir, to, flags),
                                 SHIM_REAL(rename)(to, from));
        a = from;
        b = to;
        if (result == 0 || !rename_is_mangled(&a, &b)) {
            return result;
        }
    }
    return rename_container(a, b, flags);
}

#define UNLINK_CALL(name)                                                                          \
    ESDMNC_EXPORT int name(const char *path)                                                       \
    {                                                                                              \
        const char *ours = shim_path(path);                                                        \
        if (!ours) {                                                                               \
            int result = SHIM_REAL(name)(path);                                                    \
            if (result == 0 || !(ours = shim_missing(path))) {                                     \
                return result;                                                                     \
            }                                                                                      \
        }                                                                                          \
        return unlink_container(ours);                                                             \
    }

UNLINK_CALL(unlink)
UNLINK_CALL(remove)

ESDMNC_EXPORT int
unlinkat(int dirfd, const char *path, int flags)
{
    const char *ours = dirfd == AT_FDCWD ? shim_path(path) : NULL;
    if (!ours) {
        int result = SHIM_REAL(unlinkat)(dirfd, path, flags);
        if (result == 0 || !(ours = shim_missing(path))) {
            return result;
        }
    }
    return (flags & AT_REMOVEDIR) ? shim_return(ENOTDIR) : unlink_container(ours);
}

/* ---- realpath ------------------------------------------------------------------------------- */

/** `esdm:` paths are absolute and have no links: they resolve to themselves. */
static char *
resolve_container(const char *path, char *resolved)
{
    if (!resolved) {
        return strdup(path);
    }
    if (strlen(path) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    esdmnc__text_copy(resolved, path);
    return resolved;
}

ESDMNC_EXPORT char *
realpath(const char *path, char *resolved)
{
    const char *ours = shim_path(path);
    if (!ours) {
        char *result = SHIM_REAL(realpath)(path, resolved);
        if (result || !(ours = shim_missing(path))) {
            return result;
        }
    }
    return resolve_container(ours, resolved);
}

ESDMNC_EXPORT char *__realpath_chk(const char *path, char *resolved, size_t size);

ESDMNC_EXPORT char *
__realpath_chk(const char *path, char *resolved, size_t size)
{
    const char *ours = shim_path(path);
    if (!ours) {
        char *result = SHIM_REAL(__realpath_chk)(path, resolved, size);
        if (result || !(ours = shim_missing(path))) {
            return result;
        }
    }
    return resolve_container(ours, resolved);
}

ESDMNC_EXPORT char *
canonicalize_file_name(const char *path)
{
    const char *ours = shim_path(path);
    if (!ours) {
        char *result = SHIM_REAL(canonicalize_file_name)(path);
        if (result || !(ours = shim_missing(path))) {
            return result;
        }
    }
    return resolve_container(ours, NULL);
}

/* ---- extended attributes ----------------------------------------------------------------------
 */

/* ls(1) and cp(1) ask for them after a successful stat. Containers have none. */

#define XATTR_CALL(name, result_type, parameters, ...)                                             \
    ESDMNC_EXPORT result_type name parameters                                                      \
    {                                                                                              \
        const char *ours = shim_path(path);                                                        \
        if (!ours) {                                                                               \
            result_type result = SHIM_REAL(name)(__VA_ARGS__);                                     \
            if (result >= 0 || !(ours = shim_missing(path))) {                                     \
                return result;                                                                     \
            }                                                                                      \
        }                                                                                          \
        return no_attributes(ours);                                                                \
    }

static int
no_attributes(const char *path)
{
    esdmnc_stat st;
    bool is_folder;
    int error = shim_lookup(path, &st, &is_folder);
    return shim_return(error ? error : EOPNOTSUPP);
}

XATTR_CALL(getxattr, ssize_t, (const char *path, const char *name, void *value, size_t size), path,
           name, value, size)
XATTR_CALL(lgetxattr, ssize_t, (const char *path, const char *name, void *value, size_t size), path,
           name, value, size)
XATTR_CALL(listxattr, ssize_t, (const char *path, char *list, size_t size), path, list, size)
XATTR_CALL(llistxattr, ssize_t, (const char *path, char *list, size_t size), path, list, size)
