/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Containers that are being created or written: an abort takes the stub of one that did not come
 * into being away, and what is committed gives its stub the time of the commit, as a file would
 * have it (make, rsync and `ls -t` look at it, and dask takes files of one name and time for the
 * same data).
 */
#include "router/router.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/** A container that is being created, whose folder exists already; or one that is written through
 * its stub. */
typedef struct creation {
    struct creation *next;
    bool made;
    bool has_new_stub; /**< which goes when the container does not come into being */
    pid_t pid;         /**< a forked child inherits the list, but not the containers */
    int instance;
    int ncid;
    uint64_t number;  /**< of the stub that is there, which gets `version` after the first commit */
    uint64_t version; /**< 0: it keeps its own */
    const char *path; /**< of the stub, behind the container's name; "" for none */
    char container[];
} creation;

/** Of a creation whose ncid is closed (esdmnc_creation_keep()). */
#define NCID_KEPT (-1)

static creation *creations;
/** Guards `creations`. Spins: held for a few pointer steps only. */
static atomic_flag creations_lock = ATOMIC_FLAG_INIT;

static void
creations_acquire(void)
{
    while (atomic_flag_test_and_set_explicit(&creations_lock, memory_order_acquire)) {
    }
}

static void
creations_release(void)
{
    atomic_flag_clear_explicit(&creations_lock, memory_order_release);
}

static void
creation_put(creation *c)
{
    creations_acquire();
    c->next = creations;
    creations = c;
    creations_release();
}

void
esdmnc__creation_version(int instance, int ncid, uint64_t number, uint64_t version)
{
    creations_acquire();
    for (creation *c = creations; c; c = c->next) {
        if (c->instance == instance && c->ncid == ncid) {
            c->number = number;
            c->version = version;
        }
    }
    creations_release();
}

bool
esdmnc__creation_is_made(const char *container)
{
    bool made = false;
    creations_acquire();
    for (const creation *c = creations; c && !made; c = c->next) {
        made = c->made && c->pid == getpid() && strcmp(c->container, container) == 0;
    }
    creations_release();
    return made;
}

void
esdmnc__creations_forked(void)
{
    creations_release();
}

void
esdmnc__creation_add(int instance, int ncid, bool made, bool has_new_stub, const char *path,
                     const char *container)
{
    char folder[PATH_MAX];
    char absolute[2 * PATH_MAX];
    if (path[0] && path[0] != '/' && getcwd(folder, sizeof(folder))) { /* chdir() may come */
        (void) snprintf(absolute, sizeof(absolute), "%s/%s", folder, path);
        path = absolute;
    }
    size_t name_size = strlen(container) + 1;
    size_t path_size = strlen(path) + 1;
    creation *c = malloc(sizeof(*c) + name_size + path_size);
    if (!c) {
        return; /* an abort then leaves the stub, which esdm-gc finds */
    }
    *c = (creation){.pid = getpid()};
    c->made = made;
    c->has_new_stub = has_new_stub;
    c->instance = instance;
    c->ncid = ncid;
    c->path = c->container + name_size;
    memcpy(c->container, container, name_size);
    memcpy(c->container + name_size, path, path_size);
    creation_put(c);
}

/** Takes the entry out; owned by the caller then, free(). */
static creation *
creation_take(int instance, int ncid)
{
    creations_acquire();
    creation **link = &creations;
    while (*link && ((*link)->instance != instance || (*link)->ncid != ncid)) {
        link = &(*link)->next;
    }
    creation *found = *link;
    if (found) {
        *link = found->next;
    }
    creations_release();
    return found;
}

bool
esdmnc__creating_below(const char *folder)
{
    size_t length = strlen(folder);
    bool found = false;
    creations_acquire();
    for (const creation *c = creations; c && !found; c = c->next) {
        found =
            c->made && strncmp(c->container, folder, length) == 0 && c->container[length] == '/';
    }
    creations_release();
    return found;
}

/** Takes the stub of a container away that did not come into being. */
static void
creation_undo(const creation *c)
{
    const esdmnc__core *core = esdmnc__core_if_loaded();
    esdmnc_stat st;
    if (c->has_new_stub && core && core->exists(c->container, &st) == ENOENT) {
        esdmnc__stub_drop(c->path, c->container);
    }
}

/** What was written anew is committed: a copy of the stub that was made before means what was
 *  replaced. Until then the original stands for either (table.c). */
static void
creation_renew(creation *c, const esdmnc__core *core)
{
    char name[ESDMNC_NAME_MAX + 1];
    if (c->version == 0 ||
        core->numbered(c->container, c->number, c->version, name, sizeof(name)) != NC_NOERR ||
        strcmp(name, c->container) != 0) {
        return;
    }
    int saved = errno;
    int status = esdmnc__stub_renew(c->path, c->version);
    if (status != NC_NOERR) {
        esdmnc_debug("%s: cannot renew the stub: %s", c->path, strerror(status));
    }
    c->version = 0;
    errno = saved;
}

/** The first commit: from now on the stub tells on which site its container is. Until then nobody
 *  knows whether there will be one, and esdm-gc leaves it. */
static void
creation_settle(const creation *c, const esdmnc__core *core, const esdmnc__stub *stub)
{
    static int told; /* one line is enough for all files of a run */
    char site[ESDMNC_SITE_BYTES] = "";
    int saved = errno;
    core->site(site);
    if (stub->site[0] && strlen(site) == ESDMNC_SITE_BYTES - 1 && strcmp(stub->site, site) != 0) {
        int status = esdmnc__stub_settle(c->path, site);
        if (status != NC_NOERR) {
            esdmnc_debug("%s: the stub does not tell its site: %s", c->path, strerror(status));
        }
        if (strcmp(stub->site, ESDMNC_SITE_NONE) != 0 && c->made &&
            !__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED)) {
            esdmnc__tell("'%s' stood for a container of another site, with another configuration "
                         "(ESDM_CONFIG, ./esdm.json; \"esdm-ls --json\" tells which one is used), "
                         "which has it as 'esdm://%s' if that site is still there; %s",
                         c->path, c->container,
                         status == NC_NOERR
                             ? "from now on it stands for what this program wrote"
                             : "the file cannot be changed: with that site it goes on to stand for "
                               "that one, with this one for what this program wrote");
        }
    }
    errno = saved;
}

/** Gives the stub the time of the last commit. */
static void
creation_touch(creation *c)
{
    const esdmnc__core *core = esdmnc__core_if_loaded();
    esdmnc__stub stub;
    esdmnc_stat st;
    if (!c->path[0] || !core || core->exists(c->container, &st) != NC_NOERR ||
        st.modified_ns == 0 || esdmnc__stub_read(c->path, &stub) != NC_NOERR || !stub.is_original ||
        strcmp(stub.container, c->container) != 0) {
        return;
    }
    creation_renew(c, core);
    creation_settle(c, core, &stub);
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
                                {.tv_sec = (time_t) (st.modified_ns / 1000000000),
                                 .tv_nsec = (long) (st.modified_ns % 1000000000)}};
    int saved = errno;
    if (utimensat(AT_FDCWD, c->path, times, 0) != 0) { /* it belongs to somebody else */
        times[1] = (struct timespec){.tv_nsec = UTIME_NOW};
        (void) utimensat(AT_FDCWD, c->path, times, 0);
    }
    errno = saved;
}

void
esdmnc__creation_closed(int instance, int ncid)
{
    creation *c = creation_take(instance, ncid);
    if (c) {
        creation_touch(c);
    }
    free(c);
}

void
esdmnc__creation_synced(int instance, int ncid)
{
    creation *c = creation_take(instance, ncid);
    if (c) {
        creation_touch(c);
        creation_put(c);
    }
}

void
esdmnc__creation_aborted(int instance, int ncid)
{
    creation *c = creation_take(instance, ncid);
    /* In data mode nc_abort() is nc_close(): then the container is there and keeps its stub. */
    if (c) {
        creation_undo(c);
        creation_touch(c);
    }
    free(c);
}

void
esdmnc_creation_keep(int instance, int ncid)
{
    creation *c = creation_take(instance, ncid);
    if (!c) {
        return;
    }
    c->ncid = NCID_KEPT;
    creation_put(c);
}

void
esdmnc_creation_end(const char *container)
{
    creations_acquire();
    creation **link = &creations;
    while (*link && ((*link)->ncid != NCID_KEPT || strcmp((*link)->container, container) != 0)) {
        link = &(*link)->next;
    }
    creation *found = *link;
    if (found) {
        *link = found->next;
    }
    creations_release();
    if (found) {
        creation_undo(found);
        creation_touch(found);
    }
    free(found);
}

/** At exit, after the dispatcher has committed what can be committed. */
static void
creations_end(void)
{
    creations_acquire();
    creation *rest = creations;
    creations = NULL;
    creations_release();
    pid_t pid = getpid();
    while (rest) {
        creation *next = rest->next;
        if (rest->pid == pid) {
            creation_undo(rest);
            creation_touch(rest);
        }
        free(rest);
        rest = next;
    }
}

/* Early, so that it runs late. */
__attribute__((constructor)) static void
creations_start(void)
{
    (void) atexit(creations_end);
}
