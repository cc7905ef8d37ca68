/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MONITOR_H
#define ESDM_MONITOR_H

/**
 * @file
 * For layers above ESDM: tells those who observe a session (`"monitor"` of the site configuration,
 * $ESDM_MONITOR) that what ESDM does meanwhile is done for one call of such a layer, as the NetCDF
 * plug-in does. Where nobody observes, each function costs one branch.
 */

#include "esdm/container.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A call that is under way, on the stack of the thread that makes it. Its members are ESDM's. */
typedef struct esdm_call {
    const esdm_dataset *dataset;
    void *monitor;
    uint64_t numbers[3];
} esdm_call;

/** @param dataset borrowed until esdm_call_end(). */
ESDM_API void esdm_call_begin(const esdm_dataset *dataset, esdm_call *call);
/** On the same thread, calls in it having ended. @param writes else it reads. @param bytes in the
 *  caller's memory. @param failed whether the caller gets an error. */
ESDM_API void esdm_call_end(const esdm_call *call, bool writes, uint64_t bytes, bool failed);

/** Whether records of programs (`"monitor"`) lie in a database: a name in .sqlite, .sqlite3 or .db,
 *  or a URL of PostgreSQL; `#RUN` may follow. Any thread. */
ESDM_API bool esdm_records_are_in_database(const char *source);

/** Takes one line of JSON, without an end of line; borrowed. @return false: no more is wanted. */
typedef bool (*esdm_records_visitor)(void *context, const char *line);

/**
 * Reads records out of a database, as the lines that files of JSON have: of each process the line
 * `process`, its datasets, spans and samples of the node, its end, and its statistics.
 *
 * @param source database, or `DATABASE#RUN`: one run alone, by its name in the column `job`;
 *        `#latest`: the one that began last. Borrowed.
 * @param take called by this thread; no function of this header may be called in it.
 * @return ESDM_ENOENT: no such file, records or run; ESDM_ENOTSUP: of another format, or there is
 *         no libpq; ESDM_ETIMEDOUT: a server does not answer, or a lock is not given up; ESDM_EIO.
 */
ESDM_API esdm_status esdm_records_read(const char *source, esdm_records_visitor take, void *context,
                                       esdm_error *err);

/**
 * From now on sessions that this process opens keep in memory what they do, for
 * esdm_records_write(): counters, which are exact, and the last 8192 calls, commits and requests to
 * targets one by one, which take 720 KiB in each session. $ESDM_MONITOR=off wins. Any thread.
 */
ESDM_API void esdm_records_keep(void);

/**
 * Writes what sessions of this process that are open and keep records did so far, as a trace that
 * `esdm-explain FILE.jsonl` explains: one process, which began with the first of them.
 *
 * @param file descriptor, open for writing; borrowed.
 * @return ESDM_ENOENT: no session keeps records; ESDM_ENOMEM; ESDM_ENOSPC, ESDM_EIO: a part may be
 *         written. Any thread, while others read and write; sessions are not closed meanwhile.
 */
ESDM_API esdm_status esdm_records_write(int file, esdm_error *err);

/** Takes what one run did; see esdm_runs_read(). @param user numeric id. @param line borrowed.
 *  @return false: no more is wanted. */
typedef bool (*esdm_runs_visitor)(void *context, uint64_t user, const char *line);

/**
 * Reads what runs of programs by all users did, as the site keeps it (`"monitor": {"runs":
 * FOLDER}`): a line of JSON each, as "stats" writes, `program`, `job`, `started_ns` and `seconds`
 * among it. Lines come out of files that their users may have changed: they say of whom they are,
 * but need not be true, nor JSON.
 *
 * @param config_path the site's file; NULL: as esdm_site_find() finds it. Nothing of the site is
 *        opened.
 * @param program "ncks", "python3 plot.py"; NULL: all.
 * @param take called by this thread, for each user in order of time.
 * @return ESDM_ENOENT: the site keeps no runs, or its folder is not there; ESDM_EACCES.
 *         Those that this user may not read are left out. Any thread.
 */
ESDM_API esdm_status esdm_runs_read(const char *config_path, const char *program,
                                    esdm_runs_visitor take, void *context, esdm_error *err);

/** Keeps a run of this user for the site. @param line one line of JSON of less than 32 KiB.
 *  @return ESDM_ENOENT: as esdm_runs_read(); ESDM_EINVAL: too long; ESDM_EACCES, ESDM_ENOSPC,
 *          ESDM_EIO; ESDM_ETIMEDOUT: another one writes for half a second. Any thread. */
ESDM_API esdm_status esdm_runs_add(const char *config_path, const char *program, const char *line,
                                   esdm_error *err);

/** When calls of plain files are unusually slow, and what is then recorded
 *  (`"monitor": {"rules": [{"when": "files"}]}`). */
typedef struct esdm_files_rule {
    double slower;  /* than usual, as a factor */
    uint64_t for_s; /* the trace is of so many seconds */
    uint64_t bytes; /* and has about so many at most */
    uint64_t times; /* in one run */
} esdm_files_rule;

/** What the site has watchers of plain files do. @param config_path as esdm_runs_read().
 *  @return ESDM_ENOENT: the site keeps no runs, or has no such rule. Any thread. */
ESDM_API esdm_status esdm_runs_rule(const char *config_path, esdm_files_rule *ret_rule,
                                    esdm_error *err);

/**
 * Makes a file for a trace of a program, beside the runs of this user, who alone may read it; the
 * oldest of more than 8 go.
 *
 * @param program as esdm_runs_read(). @param ret_file descriptor, for appending; owned.
 * @param ret_path owned, free().
 * @return ESDM_ENOENT: as esdm_runs_read(); ESDM_EACCES, ESDM_ENOSPC, ESDM_EIO. Any thread; may
 *         wait for the folder's file system.
 */
ESDM_API esdm_status esdm_runs_trace(const char *config_path, const char *program, int *ret_file,
                                     char **ret_path, esdm_error *err);

#ifdef __cplusplus
}
#endif

#endif
