/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Which paths are ESDM's, and which container they mean:
 *  - `esdm:NAME`, with any number of slashes after the colon; with some, in letters of either case;
 *  - `FOLDER/esdm:/NAME`, what os.path.abspath() and the like make of it, unless FOLDER really
 *    holds something called `esdm:`;
 *  - stub files;
 *  - for a create, what is routed (routes.c).
 */
#include "router/router.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX     "esdm:"
#define PREFIX_LEN 5

const char *
esdmnc__path_mangled(const char *path)
{
    const char *inner = strstr(path, "/" PREFIX "/");
    if (!inner) {
        return NULL;
    }
    char folder[PATH_MAX];
    size_t length = (size_t) (inner - path) + 1 + PREFIX_LEN;
    if (length >= sizeof(folder)) {
        return NULL;
    }
    memcpy(folder, path, length);
    folder[length] = '\0';
    int saved = errno;
    struct stat st;
    bool real = lstat(folder, &st) == 0;
    errno = saved;
    return real ? NULL : inner + 1;
}

const char *
esdmnc__path_prefixed(const char *path)
{
    if (strncmp(path, PREFIX, PREFIX_LEN) == 0 ||
        strncasecmp(path, PREFIX "/", PREFIX_LEN + 1) == 0) {
        return path;
    }
    return esdmnc__path_mangled(path);
}

int
esdmnc__path_container(const char *prefixed, char *container, size_t size)
{
    const char *name = prefixed + PREFIX_LEN;
    name += strspn(name, "/");
    size_t length = strlen(name);
    while (length > 0 && name[length - 1] == '/') {
        length--;
    }
    if (length >= size) {
        return NC_EMAXNAME;
    }
    memcpy(container, name, length);
    container[length] = '\0';
    return NC_NOERR;
}

/* ---- decisions ------------------------------------------------------------------------------ */

/** Who reads it would take what is left for all there is. */
static void
tell_remains(const char *path, const char *container)
{
    static int told;
    if (!__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED)) {
        esdmnc__tell("'%s' stood for the container '%s', and was changed by a program that was "
                     "started without esdm-run: it holds what that program wrote, and nothing of "
                     "the container, which is esdm://%s",
                     path, container, container);
    }
}

bool
esdmnc__path_is_ours(const char *path, bool creating)
{
    path += strspn(path, " \t\r\n"); /* as libnetcdf does */
    if (esdmnc__path_prefixed(path)) {
        return true;
    }
    esdmnc__stub stub;
    int status = esdmnc__stub_read(path, &stub);
    if (!creating) {
        if (status != NC_NOERR && stub.remains) {
            tell_remains(path, stub.container);
        }
        return status == NC_NOERR;
    }
    char container[ESDMNC_NAME_MAX + 1];
    if ((status == NC_NOERR && stub.is_original) ||
        esdmnc__route_container(path, container, sizeof(container)) != ENOENT) {
        return true;
    }
    esdmnc__route_told(path);
    return false;
}

bool
esdmnc__path_may_be_ours(const char *path)
{
    char container[ESDMNC_NAME_MAX + 1];
    path += strspn(path, " \t\r\n");
    return esdmnc__path_is_ours(path, true) || esdmnc__path_is_ours(path, false) ||
           esdmnc__route_container(path, container, sizeof(container)) != ENOENT;
}

/** Whether a new container may take the name of one that is there: the stub that stood for it is
 *  gone. */
static bool
may_replace(const char *path, const char *folder, const char *container)
{
    static int told, told_kept; /* one line is enough for all files of a run */
    char where[PATH_MAX];
    switch (esdmnc__living_stub(folder, container, where, sizeof(where))) {
    case ESDMNC_LIVING_YES:
        if (!__atomic_exchange_n(&told_kept, 1, __ATOMIC_RELAXED)) {
            esdmnc__tell("the container '%s' stays as it is, as '%s' stands for it. What this "
                         "program writes now is read by its own path, '%s', as ever; where the "
                         "name of a container is taken, the new one has a number behind its name "
                         "(~2, ~3 …: esdm-ls)",
                         container, where, path);
        }
        return false;
    case ESDMNC_LIVING_UNKNOWN:
        esdmnc__tell(
            "'%s' does not become the container '%s', which may have a stub elsewhere: the "
            "new one gets ~2 or the like behind its name; without need of the old one: "
            "esdm-rm '%s'",
            path, container, container);
        return false;
    case ESDMNC_LIVING_NO:
        break;
    }
    (void) esdmnc__core_get()->stub_file(container, NULL); /* or it was moved far away */
    if (!__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED)) {
        esdmnc__tell(
            "'%s' replaces the container '%s', whose stub is gone (while the site keeps it, "
            "esdm-restore '%s' brings it back; and if the stub was moved, reading it there "
            "once keeps the container as long as the stub); further ones that this program "
            "replaces so are not told",
            path, container, container);
    }
    return true;
}

int
esdmnc__path_free_name(const char *path, const char *folder, char *container, size_t size)
{
    const esdmnc__core *core = esdmnc__core_get();
    size_t length = strlen(container);
    esdmnc_stat st;
    int status = core ? core->exists(container, &st) : ENOENT;
    for (int i = 2; status == NC_NOERR && i < 10000; i++) {
        if (may_replace(path, folder, container)) {
            return NC_NOERR;
        }
        int n = snprintf(container + length, size - length, "~%d", i);
        if (n <= 0 || (size_t) n >= size - length) {
            return NC_EMAXNAME;
        }
        status = core->exists(container, &st);
    }
    return status == ENOENT ? NC_NOERR : status == NC_NOERR ? NC_EEXIST : status;
}

static uint64_t
new_number(void)
{
    uint64_t number = 0;
    while (number == 0 && getrandom(&number, sizeof(number), 0) == (ssize_t) sizeof(number)) {
    }
    return number;
}

/** Real path of the folder in which a file lies, or is going to. "": not known. Keeps errno. */
static void
real_folder(const char *path, char folder[PATH_MAX])
{
    char file[PATH_MAX];
    int saved = errno;
    if (!realpath(path, file)) { /* it is not there yet */
        const char *slash = strrchr(path, '/');
        size_t length = slash ? (size_t) (slash - path) : 0;
        int n = snprintf(file, sizeof(file), "%.*s", slash ? (int) (length ? length : 1) : 1,
                         slash ? path : ".");
        folder[0] = '\0';
        if (n > 0 && (size_t) n < sizeof(file) && !realpath(file, folder)) {
            folder[0] = '\0';
        }
    } else {
        char *slash = strrchr(file, '/');
        slash[slash == file] = '\0';
        memcpy(folder, file, strlen(file) + 1);
    }
    errno = saved;
}

int
esdmnc__path_target(const char *path, int cmode, esdmnc__target *ret)
{
    esdmnc__target target = {0};
    const char *prefixed = esdmnc__path_prefixed(path);
    int status;
    if (prefixed) {
        status = esdmnc__path_container(prefixed, target.container, sizeof(target.container));
    } else {
        esdmnc__stub stub;
        struct stat st;
        if ((cmode & NC_NOCLOBBER) && lstat(path, &st) == 0) {
            return NC_EEXIST;
        }
        if (esdmnc__stub_read(path, &stub) == NC_NOERR && stub.is_original) {
            esdmnc__text_copy(target.container, stub.container);
            target.number = stub.number;
            target.version = stub.number ? new_number() : 0;
            status = NC_NOERR;
        } else {
            char folder[PATH_MAX];
            /* What is diskless and not to persist never shows as a file. */
            target.write_stub = !(cmode & (NC_DISKLESS | NC_MMAP)) || (cmode & NC_PERSIST);
            target.number = target.write_stub ? new_number() : 0;
            target.version = target.number;
            status = esdmnc__route(path, target.container, sizeof(target.container), folder);
            if (status == NC_NOERR) {
                status = esdmnc__path_free_name(path, folder, target.container,
                                                sizeof(target.container));
            }
        }
    }
    if (status == NC_NOERR) {
        if (target.number != 0) {
            real_folder(path, target.folder);
        }
        *ret = target;
    }
    return status;
}

int
esdmnc_resolve(const char *path, char *container, size_t size)
{
    if (!path) {
        return ENOENT;
    }
    path += strspn(path, " \t\r\n");
    const char *prefixed = esdmnc__path_prefixed(path);
    if (prefixed) {
        return esdmnc__path_container(prefixed, container, size);
    }
    esdmnc__stub stub;
    if (esdmnc__stub_read(path, &stub) == NC_NOERR) {
        if (strlen(stub.container) >= size) {
            return NC_EMAXNAME;
        }
        esdmnc__text_copy(container, stub.container);
        return NC_NOERR;
    }
    return esdmnc__route_container(path, container, size);
}
