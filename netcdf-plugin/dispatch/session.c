/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The one ESDM session of the process, and the calls that concern containers as if files. */

#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Guards `current` and what is known of it. Held while a session opens, so that two threads do not
 * open two. */
static pthread_mutex_t session_lock = PTHREAD_MUTEX_INITIALIZER;
static esdm_session *current;
static bool current_read_only;
static uint64_t current_generation;
/* ESDM_CONFIG, as it named `current`; owned; NULL: it was not set. */
static char *current_config;
/* The file of `current`, as an absolute path; owned; NULL: there is none. */
static char *current_file;

static _Atomic uint64_t generation = 1;
static pthread_once_t handlers_once = PTHREAD_ONCE_INIT;

/* A session has threads and a database connection, neither of which survives a fork: the child
 * forgets it and opens its own. */
static void
after_fork_in_child(void)
{
    atomic_fetch_add(&generation, 1);
    pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    memcpy(&session_lock, &unlocked, sizeof session_lock);
    esdmnc_files_forked();
    esdmnc_seen_forked();
}

static void
install_handlers(void)
{
    (void) pthread_atfork(NULL, NULL, after_fork_in_child);
    (void) on_exit(esdmnc_files_exit, NULL);
}

uint64_t
esdmnc_session_generation(void)
{
    return atomic_load_explicit(&generation, memory_order_relaxed);
}

/* The file of the site that is meant now, owned, as an absolute path: what was named by a relative
 * one stays the same when the program goes to another folder. NULL: there is none. */
static char *
site_file(void)
{
    char *path = NULL;
    if (esdm_site_find(&path, NULL) != ESDM_OK || path == NULL)
        return NULL;
    char *file = realpath(path, NULL);
    free(path);
    return file;
}

/* The lock is held. */
static void
note_config(void)
{
    const char *config = secure_getenv("ESDM_CONFIG");
    free(current_config);
    current_config = config != NULL ? strdup(config) : NULL;
}

/* The lock is held. */
static void
set_current(esdm_session *session, bool read_only)
{
    note_config();
    free(current_file);
    /* Where it was found; "(embedded default)" is no file. */
    current_file = realpath(esdm_session_config_source(session), NULL);
    current = session;
    current_read_only = read_only;
    current_generation = esdmnc_session_generation();
}

/* A program that sets ESDM_CONFIG after it has used a site means another one, unless that is
 * another name of the same: what it writes would replace containers of the first, and what it reads
 * under the same name would be the first one's. The lock is held. */
static int
check_config(void)
{
    static bool told;
    const char *config = secure_getenv("ESDM_CONFIG");
    if (config == NULL || current_config == NULL ? config == current_config
                                                 : strcmp(config, current_config) == 0)
        return NC_NOERR;
    char *file = site_file();
    bool same = file != NULL && current_file != NULL && strcmp(file, current_file) == 0;
    free(file);
    if (same) {
        note_config();
        return NC_NOERR;
    }
    if (!told)
        esdmnc_say("ESDM_CONFIG became '%s' after this process had opened the site '%s': nothing "
                   "more is opened or written on either; start another process for another site",
                   config != NULL ? config : "", esdm_session_site_name(current));
    told = true;
    return EACCES;
}

static int
open_session(bool read_only, esdm_error *err)
{
    esdm_session_options options = {.read_only = read_only};
    esdm_session *session;
    if (esdmnc_is_activated()) /* nobody watches from outside, and questions come in mid-session */
        esdm_records_keep();
    esdm_status st = esdm_session_open(&options, &session, err);
    if (st != ESDM_OK)
        return (int) st;
    set_current(session, read_only);
    return ESDM_OK;
}

static bool
cannot_write(const char *path, char *ret_why, size_t bytes)
{
    (void) snprintf(ret_why, bytes, "cannot write '%s': %s", path, strerror(errno));
    return false;
}

bool
esdmnc_records_write(const char *path, char *ret_why, size_t bytes)
{
    esdm_error err = {0};
    char part[PATH_MAX]; /* what stands at `path` stays unless all is written */
    if ((size_t) snprintf(part, sizeof part, "%s.XXXXXX", path) >= sizeof part) {
        errno = ENAMETOOLONG;
        return cannot_write(path, ret_why, bytes);
    }
    int file = mkostemp(part, O_CLOEXEC);
    if (file < 0)
        return cannot_write(path, ret_why, bytes);
    esdm_status status = esdm_records_write(file, &err);
    bool written = fchmod(file, 0644) == 0;
    written = close(file) == 0 && written && (status != ESDM_OK || rename(part, path) == 0);
    if (!written)
        (void) cannot_write(path, ret_why, bytes);
    else if (status != ESDM_OK)
        (void) snprintf(ret_why, bytes, "%s", err.message);
    if (!written || status != ESDM_OK)
        (void) unlink(part);
    return written && status == ESDM_OK;
}

/* Whether there is no site, and the default one would be made by opening it: reading finds nothing
 * there, and should leave nothing either. */
static bool
would_be_made(void)
{
    char folder[PATH_MAX];
    char *path = NULL;
    const char *data = secure_getenv("XDG_DATA_HOME");
    const char *home = secure_getenv("HOME");
    const char *named = secure_getenv("ESDM_CONFIG");
    if (named != NULL && named[0] != '\0')
        return false;
    bool absolute = data != NULL && data[0] == '/';
    if (!absolute && (home == NULL || home[0] != '/'))
        return false;
    (void) snprintf(folder, sizeof folder, "%s%s/esdm", absolute ? data : home,
                    absolute ? "" : "/.local/share");
    bool none = access(folder, F_OK) != 0 && errno == ENOENT &&
                esdm_site_find(&path, NULL) == ESDM_OK && path == NULL;
    free(path);
    return none;
}

int
esdmnc_session(bool writing, esdm_session **ret_session)
{
    esdm_error err;
    int rc = NC_NOERR;
    pthread_once(&handlers_once, install_handlers);
    pthread_mutex_lock(&session_lock);
    bool closed = current == NULL || current_generation != esdmnc_session_generation();
    if (closed && !writing && would_be_made()) {
        esdmnc_debug("there is no site yet");
        esdmnc_missing_site();
        rc = ENOENT;
    } else if (closed) {
        int st = open_session(false, &err);
        if (st == ESDM_EACCES)
            st = open_session(true, &err);
        if (st != ESDM_OK)
            /* A wrong configuration cannot be told by a code, and nothing works without it. */
            rc = esdmnc_error_site(&err, true);
    } else {
        rc = check_config();
    }
    if (rc == NC_NOERR && writing && current_read_only) {
        esdmnc_debug("the site '%s' can only be read", esdm_session_site_name(current));
        rc = EACCES;
    }
    if (rc == NC_NOERR)
        *ret_session = current;
    pthread_mutex_unlock(&session_lock);
    return rc;
}

/* What this process has open already; NULL: nothing. */
static esdm_session *
session_before(void)
{
    pthread_mutex_lock(&session_lock);
    esdm_session *session = current_generation == esdmnc_session_generation() ? current : NULL;
    pthread_mutex_unlock(&session_lock);
    return session;
}

/* The lock is not held meanwhile: other ranks are waited for. */
int
esdmnc_session_of_ranks(esdmnc_ranks *ranks)
{
    esdm_error err;
    esdm_session *before = session_before();
    esdm_session *session = NULL;
    esdm_session_options options = {.read_only = false};
    pthread_once(&handlers_once, install_handlers);
    esdm_status st = esdm_session_open_collective(&options, ranks, before, &session, &err);
    options.read_only = st == ESDM_EACCES;
    if (options.read_only)
        st = esdm_session_open_collective(&options, ranks, before, &session, &err);
    pthread_mutex_lock(&session_lock);
    if (st != ESDM_OK) { /* one rank tells it for all */
        int rc = esdmnc_error_site(&err, ranks->rank == 0);
        pthread_mutex_unlock(&session_lock);
        return rc;
    }
    bool other = current != before && current_generation == esdmnc_session_generation();
    if (session != before && !other)
        set_current(session, options.read_only);
    pthread_mutex_unlock(&session_lock);
    if (session != before && other) /* another thread was first */
        esdm_session_close(session);
    return NC_NOERR;
}

esdm_session *
esdmnc_session_now(void)
{
    esdm_session *session = NULL;
    if (pthread_mutex_trylock(&session_lock) == 0) {
        session = current_generation == esdmnc_session_generation() ? current : NULL;
        pthread_mutex_unlock(&session_lock);
    }
    return session;
}

void
esdmnc_session_settle(void)
{
    esdmnc_parked_drop();
    esdm_session *session = esdmnc_session_now();
    if (session != NULL)
        esdm_session_settle(session);
}

void
esdmnc_site(char *ret_id)
{
    pthread_mutex_lock(&session_lock);
    bool open = current != NULL && current_generation == esdmnc_session_generation();
    const char *id = open ? esdm_session_site_id(current) : "";
    (void) snprintf(ret_id, ESDMNC_SITE_BYTES, "%s", id);
    pthread_mutex_unlock(&session_lock);
}

static int
normalise(const char *container, char *name)
{
    esdm_error err;
    if (esdm_container_normalise(container, name, &err) != ESDM_OK)
        return esdmnc_error(&err, "container", container);
    return NC_NOERR;
}

int
esdmnc_delete(const char *container)
{
    esdm_session *session;
    esdm_error err;
    int rc = esdmnc_session(true, &session);
    if (rc != NC_NOERR)
        return rc == EACCES ? NC_EPERM : rc;
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    char buffer[ESDM_CONTAINER_NAME_MAX + 1];
    container = esdmnc_recipe_name(container, ESDMNC_TO_MAKE, buffer);
    esdmnc_recipe_note("remove", container, "");
    esdmnc_parked_drop();
    bool dropped = normalise(container, name) == NC_NOERR && esdmnc_postponed_drop(name);
    if (normalise(container, name) == NC_NOERR)
        esdmnc_seen_forget(name);
    esdm_status st = esdm_container_name_is_intermediate(container)
                         ? esdm_container_erase(session, container, &err)
                         : esdm_container_remove(session, container, &err);
    if (st == ESDM_OK || (dropped && st == ESDM_ENOENT))
        return NC_NOERR;
    return esdmnc_error(&err, "remove", container);
}

/* @param replaces false: only tells whether it would be refused. */
static esdm_status
move_seen(esdm_session *session, const char *from, const char *to, bool replaces, esdm_error *err)
{
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    char uuid[33];
    uint64_t snapshot = 0;
    bool seen = normalise(to, name) == NC_NOERR && esdmnc_seen_find(name, uuid, &snapshot);
    if (!replaces)
        return esdm_container_check_seen(session, from, to, seen ? uuid : NULL, snapshot, err);
    return esdm_container_move_seen(session, from, to, seen ? uuid : NULL, snapshot, err);
}

static int
rename_or_ask(const char *from, const char *to, bool replaces)
{
    esdm_session *session;
    esdm_error err;
    int rc = esdmnc_session(true, &session);
    if (rc != NC_NOERR)
        return rc == EACCES ? NC_EPERM : rc;
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    char buffers[2][ESDM_CONTAINER_NAME_MAX + 1];
    from = esdmnc_recipe_name(from, ESDMNC_TO_WRITE, buffers[0]);
    to = esdmnc_recipe_name(to, ESDMNC_TO_MAKE, buffers[1]);
    esdmnc_parked_drop();
    if (normalise(from, name) == NC_NOERR)
        esdmnc_postponed_commit(name);
    if (replaces && normalise(to, name) == NC_NOERR) {
        (void) esdmnc_postponed_drop(name);
        esdmnc_warn_unkept(session, name);
    }
    esdm_status status = move_seen(session, from, to, replaces, &err);
    if (status == ESDM_ECONFLICT) {
        (void) esdmnc_error_loud(&err, "rename", from);
        return ESTALE;
    }
    if (status != ESDM_OK)
        return esdmnc_error(&err, "rename", from);
    if (!replaces)
        return NC_NOERR;
    esdmnc_seen_forget(from);
    esdmnc_seen_forget(to);
    esdmnc_recipe_note("rename", from, to);
    return NC_NOERR;
}

int
esdmnc_rename(const char *from, const char *to)
{
    return rename_or_ask(from, to, true);
}

int
esdmnc_may_rename(const char *from, const char *to)
{
    int rc = rename_or_ask(from, to, false);
    return rc == ESTALE ? rc : NC_NOERR;
}

/* FNV-1a: an inode number needs to be stable and to differ, no more. */
static uint64_t
identity(const char *name, uint64_t created_ns)
{
    uint64_t hash = 14695981039346656037u ^ created_ns;
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char) *name) * 1099511628211u;
    return hash == 0 ? 1 : hash;
}

int
esdmnc_exists(const char *container, esdmnc_stat *ret)
{
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    char buffer[ESDM_CONTAINER_NAME_MAX + 1];
    int rc = normalise(esdmnc_recipe_name(container, ESDMNC_TO_READ, buffer), name);
    if (rc != NC_NOERR)
        return rc == NC_EINVAL ? ENOENT : rc; /* what cannot be a name does not exist */
    esdm_session *session;
    rc = esdmnc_session(false, &session);
    if (rc != NC_NOERR)
        return rc;
    esdm_container_info info;
    esdm_error err;
    esdm_status st = esdm_container_stat(session, name, &info, &err);
    if (st == ESDM_ENOENT && esdmnc_files_writing(name)) {
        if (ret != NULL)
            *ret = (esdmnc_stat){.size_bytes = 1, .id = identity(name, 0)};
        return NC_NOERR;
    }
    if (st == ESDM_ENOENT)
        esdmnc_missing_note(name);
    if (st != ESDM_OK)
        return esdmnc_error(&err, "stat", name);
    if (ret != NULL) {
        ret->size_bytes = info.raw_bytes > 0 ? info.raw_bytes : 1;
        ret->modified_ns = info.modified_ns;
        ret->created_ns = info.created_ns;
        ret->id = identity(name, info.created_ns);
    }
    return NC_NOERR;
}
