/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MONITOR_RUNS_H
#define ESDM_MONITOR_RUNS_H

/**
 * @file
 * Runs of programs, kept in a folder of the site for all its users ("monitor.runs").
 *
 * FOLDER/UID/PROGRAM-HASH.jsonl has a line of JSON for each run of that program by that user: what
 * "stats" writes, summed over containers and datasets unless the site wants their names. A user's
 * folder and files are the user's own, and nobody else can write there: what lies elsewhere, or is
 * not of its folder's user, is neither written to nor read. Who may read follows the site's folder:
 * files have its bits for reading, or fewer, when their user has taken them away. The folder needs
 * the sticky bit where others may write into it.
 *
 * Bounded: ESDM__RUNS_LINE a run, ESDM__RUNS_FILE a program, ESDM__RUNS_FILES programs and
 * ESDM__RUNS_TRACES traces of a user, of which the oldest go.
 *
 * Threads: any; users of one file wait for each other for some milliseconds.
 */

#include <sys/types.h>

#include "monitor/monitor.h"

#define ESDM__RUNS_LINE  ((size_t) 32 << 10)
#define ESDM__RUNS_FILE  ((size_t) 256 << 10)
#define ESDM__RUNS_FILES 256u
/** Traces of a user, in FOLDER/UID/traces, which that user alone may read. */
#define ESDM__RUNS_TRACES 8u

/** Why nothing can be kept in the folder, or NULL: it is good. A text that lives for ever.
 *  @param folder borrowed. */
const char *esdm__runs_problem(const char *folder);
#define ESDM__RUNS_TOLD 8u
/** Finds folders that have a user's number and are another's: that user's runs are not kept. The
 *  first ESDM__RUNS_TOLD are told. @return how many there are; 0 also where it cannot be listed. */
unsigned esdm__runs_foreign(const char *folder,
                            void (*tell)(void *context, uid_t user, uid_t owner), void *context);
/** Makes the folder, for all users of the node, when it is missing. ESDM_EIO, ESDM_EACCES. */
esdm_status esdm__runs_make(const char *folder, esdm_error *err);

/**
 * Adds a line to those of the program, by this user.
 *
 * @param program "ncks", "python3 plot.py". @param line JSON without an end of line; both borrowed.
 * @return ESDM_EACCES, ESDM_EIO, ESDM_ENOSPC: nothing was kept; ESDM_ETIMEDOUT: others are at it;
 *         ESDM_EINVAL: the line is too long.
 */
esdm_status esdm__runs_add(const char *folder, const char *program, const char *line,
                           esdm_error *err);

/** Makes a file for a trace of this program by this user; the oldest of too many go. May wait for
 * the folder. @param program as esdm__runs_add(). @param ret_path owned; NULL when there is none.
 * @return descriptor, for appending; -1 and errno. */
int esdm__runs_trace(const char *folder, const char *program, char **ret_path);

/** @param user numeric id. @param line borrowed. @return false: no more is wanted. */
typedef bool (*esdm__runs_visitor)(void *context, uint64_t user, const char *line);

/** Lines of all users whom this one may read, each user's in order of time.
 *  @param program NULL: of all. ESDM_ENOENT: there is no folder; ESDM_EACCES; ESDM_ENOMEM. */
esdm_status esdm__runs_read(const char *folder, const char *program, esdm__runs_visitor take,
                            void *context, esdm_error *err);

/** The name under which runs of this program are kept. Owned; NULL: it has none, or no memory. */
char *esdm__runs_program(void);
/** Keeps what the session did, when it moved data. Waits for the folder for a second at most, and
 *  tells nobody when that fails. */
void esdm__runs_write(struct esdm__monitor *monitor);

#endif
