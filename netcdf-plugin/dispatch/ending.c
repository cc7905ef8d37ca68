/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Files at the end of the program, and *postponed* ones: closed by a Python program while an
 * exception unwinds its stack, so that they are half written. What becomes of them is known later:
 * when the exception is handled they are committed, when the program fails nothing of them is.
 */

#include "storage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How long an exit waits for another thread to open or close a file. */
#define EXIT_LOCK_S 5

/* All under the lock of the table. */
static bool is_ending;    /* Python takes its modules apart, and closes what is open */
static bool is_over;      /* files_exit() was here */
static bool is_killed;    /* the program will die by a signal, without files_exit() */
static char failure[256]; /* the exception that ends the program */

static bool
is_snapshot(const esdm_snapshot_info *info, void *user)
{
    *(bool *) user = info != NULL;
    return false;
}

/* Whether a commit would be the first one of a new container that takes an older one's name. */
static bool
would_replace(const esdmnc_file *file)
{
    bool found = false;
    esdm_session *session = esdmnc_session_now();
    return session != NULL && esdm_container_snapshot(file->container) == 0 &&
           esdm_container_snapshots(session, file->name, is_snapshot, &found, NULL) == ESDM_OK &&
           found;
}

static const char *
what_remains(const esdmnc_file *file)
{
    if (would_replace(file))
        return "what stood there before stays";
    return esdm_container_snapshot(file->container) == 0 ? "nothing is left of it"
                                                         : "it stays as it was committed last";
}

static void
tell_failure(const esdmnc_file *file, const char *reason, int status)
{
    char text[32];
    (void) snprintf(text, sizeof text, "exit status %d", status);
    esdmnc_say("'%s' is not committed, because the program failed before it was complete (%s): %s",
               file->name, reason[0] != '\0' ? reason : text, what_remains(file));
}

/* Nothing more of it is committed, and nobody else is shown it. */
static void
give_up(esdmnc_file *file)
{
    file->transient = true;
    file->hidden = true;
}

/* The packs that it wrote would lie on the disk, which may be full, and belong to nothing. With the
 * lock held. */
static void
drop(esdmnc_file *file)
{
    esdmnc_files_take_out(file);
    if (!esdmnc_files_in_use(file->container))
        esdm_container_discard(file->container);
    esdmnc_file_free(file);
}

/* ---- postponed files ------------------------------------------------------------------------ */

static bool
belongs_here(const esdmnc_file *file)
{
    return file->postponed && file->generation == esdmnc_session_generation();
}

bool
esdmnc_postpone(esdmnc_file *file, int key)
{
    bool postponed = false;
    (void) esdmnc_files_lock(NULL);
    if (key == 0)
        key = file->exception; /* it was closed because of one before */
    if (!is_over && (key != 0 || is_ending)) {
        esdmnc_files_free_slot(file);
        file->postponed = true;
        file->exception = key;
        esdmnc_creation_keep(file->instance, file->ncid);
        postponed = true;
        if (is_killed) {
            tell_failure(file, failure, 0);
            drop(file);
        }
    }
    esdmnc_files_unlock();
    return postponed;
}

static void
finish(esdmnc_file *file, bool complete, const char *reason)
{
    esdm_error err;
    if (!complete)
        tell_failure(file, reason, 1);
    else if (esdm_container_commit(file->container, NULL, &err) != ESDM_OK)
        (void) esdmnc_error_loud(&err, "commit after an exception of", file->name);
    else
        esdmnc_debug(
            "'%s' was closed while an exception was raised (%s), which was handled: committed",
            file->name, reason);
    (void) esdmnc_files_lock(NULL);
    char *name = strdup(file->name);
    if (!esdmnc_files_in_use(file->container))
        esdm_container_discard(file->container);
    esdmnc_files_unlock();
    esdmnc_file_free(file);
    if (name != NULL)
        esdmnc_creation_end(name);
    free(name);
}

static bool
is_wanted(const esdmnc_file *file, int key, const char *name)
{
    if (!belongs_here(file))
        return false;
    return name != NULL ? strcmp(file->name, name) == 0 : key < 0 || file->exception == key;
}

/* Takes a postponed file out: of a name, or when that is NULL of an exception, or of any one when
 * `key` is negative. Owned by the caller. NULL: none. */
static esdmnc_file *
take(int key, const char *name)
{
    (void) esdmnc_files_lock(NULL);
    esdmnc_file *file = esdmnc_files_first();
    while (file != NULL && !is_wanted(file, key, name))
        file = file->next;
    if (file != NULL)
        esdmnc_files_take_out(file);
    esdmnc_files_unlock();
    return file;
}

/* Those that were opened for writing again meanwhile. */
static void
settle_resumed(int key, bool complete, const char *reason)
{
    (void) esdmnc_files_lock(NULL);
    for (esdmnc_file *file = esdmnc_files_first(); file != NULL; file = file->next) {
        if (file->postponed || file->exception == 0 || (key >= 0 && file->exception != key) ||
            file->generation != esdmnc_session_generation())
            continue;
        file->exception = 0;
        if (!complete) {
            tell_failure(file, reason, 1);
            give_up(file);
        }
    }
    esdmnc_files_unlock();
}

void
esdmnc_postponed_settle(int key, bool complete, const char *reason)
{
    esdmnc_file *file;
    settle_resumed(key, complete, reason);
    while ((file = take(key, NULL)) != NULL)
        finish(file, complete, reason);
}

void
esdmnc_files_abandon(int opening, const char *reason, bool drops)
{
    (void) esdmnc_files_lock(NULL);
    for (esdmnc_file *file = esdmnc_files_first(); file != NULL; file = file->next) {
        if (file->opening != opening || file->postponed || !file->writable || file->transient ||
            esdmnc_comm(file) != NULL || file->generation != esdmnc_session_generation() ||
            !esdm_container_is_dirty(file->container))
            continue;
        if (drops) {
            tell_failure(file, reason, 1);
            give_up(file);
        } else {
            esdmnc_say("'%s' is still open for writing after a failure (%s): when it is closed, "
                       "also by Python itself, what was written until then is committed. To begin "
                       "again, create it anew",
                       file->name, reason);
        }
    }
    esdmnc_files_unlock();
}

void
esdmnc_files_supersede(const char *name)
{
    (void) esdmnc_files_lock(NULL);
    for (esdmnc_file *file = esdmnc_files_first(); file != NULL; file = file->next) {
        if (file->postponed || !file->writable || esdmnc_comm(file) != NULL ||
            file->generation != esdmnc_session_generation() || strcmp(file->name, name) != 0)
            continue;
        file->hidden = true;
        if (file->transient || esdm_container_snapshot(file->container) != 0)
            continue; /* it is no new one: a commit after the replacement is an error */
        esdmnc_say("'%s' is created anew, and this process has not closed the one that it created "
                   "before: what was written to that one is given up",
                   name);
        give_up(file);
    }
    esdmnc_files_unlock();
}

void
esdmnc_postponed_resume(esdmnc_file *file)
{
    esdmnc_file *kept = take(0, file->name);
    if (kept == NULL)
        return;
    file->container = kept->container;
    file->exception = kept->exception;
    esdmnc_file_free(kept);
}

void
esdmnc_postponed_commit(const char *name)
{
    esdmnc_file *file;
    while ((file = take(0, name)) != NULL)
        finish(file, true, "the program uses it again");
}

bool
esdmnc_postponed_drop(const char *name)
{
    esdmnc_file *file;
    bool found = false;
    while ((file = take(0, name)) != NULL) {
        found = true;
        (void) esdmnc_files_lock(NULL);
        if (!esdmnc_files_in_use(file->container))
            esdm_container_discard(file->container);
        esdmnc_files_unlock();
        esdmnc_file_free(file);
        esdmnc_creation_end(name);
    }
    return found;
}

/* ---- the end of the program ----------------------------------------------------------------- */

void
esdmnc_files_ending(const char *reason, bool by_signal)
{
    (void) esdmnc_files_lock(NULL);
    is_ending = true;
    is_killed = by_signal;
    (void) snprintf(failure, sizeof failure, "%s", reason);
    esdmnc_file *next = NULL;
    for (esdmnc_file *file = esdmnc_files_first(); file != NULL && by_signal; file = next) {
        next = file->next;
        if (belongs_here(file)) {
            tell_failure(file, reason, 0);
            drop(file);
        }
    }
    if (by_signal)
        esdmnc_replaced_tell(failure);
    esdmnc_files_unlock();
}

/* Whether all that the file holds is committed. What is still being defined for the first time is
 * not: nobody could make sense of it. Nor does a program that failed replace what was there. */
static bool
commit_at_exit(const esdmnc_file *file, int status)
{
    esdm_error err;
    if (file->is_new || file->transient || (file->refused && !file->published))
        return false;
    if (file->refused) /* what was told to be wrong */
        esdm_container_revert(file->container);
    if (!esdm_container_is_dirty(file->container))
        return true;
    if (esdmnc_comm(file) != NULL) {
        esdmnc_say("'%s' was opened by several ranks and not closed: what was written "
                   "since the last commit is lost",
                   file->name);
        return false;
    }
    if (status != 0 && (file->exception != 0 || failure[0] != '\0')) {
        tell_failure(file, failure, status);
        return false;
    }
    if (status != 0 && would_replace(file)) {
        esdmnc_say("'%s' was not closed by this program, which ends with status %d: what stood "
                   "there before stays, and what was written is lost",
                   file->name, status);
        return false;
    }
    esdmnc_debug("'%s' was not closed: committing it at exit", file->name);
    if (esdm_container_commit(file->container, NULL, &err) == ESDM_OK)
        return true;
    if (file->commit_failed) /* and that was told */
        esdmnc_debug("commit at exit of '%s': %s", file->name, err.message);
    else
        (void) esdmnc_error_loud(&err, "commit at exit of", file->name);
    return false;
}

void
esdmnc_files_finalize(void)
{
    esdmnc_file *next = NULL;
    uint64_t generation = esdmnc_session_generation();
    (void) esdmnc_files_lock(NULL);
    /* Newest first. The order in which ranks opened files was free of deadlocks; so is its reverse,
     * in which they all commit here. */
    for (esdmnc_file *file = esdmnc_files_first(); file != NULL; file = next) {
        esdm_error err;
        bool keep = false;
        next = file->next;
        if (file->generation != generation || esdmnc_comm(file) == NULL)
            continue;
        bool mine = file->writable && !file->is_new && !file->transient && !file->refused;
        if (esdmnc_any(file, mine, &keep) == NC_NOERR && keep &&
            esdm_container_commit(file->container, NULL, &err) != ESDM_OK)
            (void) esdmnc_error_of_all(file, &err, "commit at MPI_Finalize of");
        drop(file);
    }
    esdmnc_files_unlock();
}

void
esdmnc_files_exit(int status, void *unused)
{
    (void) unused;
    /* Programs that end without nc_close() find their data in a netCDF-4 file all the same, for
     * HDF5 flushes at exit. */
    uint64_t generation = esdmnc_session_generation();
    /* Not for ever: exit() may have been called in a signal handler, above the lock's holder. */
    struct timespec until;
    (void) clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += EXIT_LOCK_S;
    if (!esdmnc_files_lock(&until)) {
        esdmnc_say("open files are not committed at exit: a call was interrupted");
        return;
    }
    is_over = true;
    esdmnc_file *next = NULL;
    for (esdmnc_file *file = esdmnc_files_first(); file != NULL; file = next) {
        next = file->next;
        if (file->generation == generation && file->writable && !commit_at_exit(file, status))
            drop(file);
    }
    if (status != 0 && failure[0] != '\0')
        esdmnc_replaced_tell(failure);
    esdmnc_files_unlock();
    esdmnc_missing_ending(status);
    esdmnc_session_settle();
}
