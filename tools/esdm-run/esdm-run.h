/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_RUN_H
#define ESDM_RUN_H

/** @file What the files of this tool share. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "watch/hints.h"

#define EXIT_CANNOT 126 /* as env(1): the program cannot be started */
#define EXIT_ABSENT 127 /* there is none */

extern const char run_help[];

/** A message on the error output, printable. */
__attribute__((format(printf, 1, 2))) void run_say(const char *format, ...);

/** Looks `name` up as execvp() does. @return 0, or the exit status after a message. */
int program_find(const char *name, char *path, size_t size);
/** Whether preloading will have an effect on the program, following `#!` lines to the one that will
 * run.
 *  @param strict it must link the NetCDF library. @param quiet no warnings.
 *  @return 0, or the exit status after a message. */
int program_examine(const char *path, bool strict, bool quiet);

/** Adds a library to $LD_PRELOAD unless it is there: behind what there is, but before a libnetcdf.
 *  False when out of memory. */
bool preload_add(const char *library);

/** The site's chunk cache of plain files, or that of the environment, as a number for the plug-in
 *  (chunk_cache.c). False when out of memory. */
bool chunk_cache_set(void);

/** Becomes `esdm-recipe record` with this program and its arguments. @param image in which it runs;
 *  NULL: none. @return only where that fails: an errno. */
int record_run(int argc, char **argv, const char *image);

typedef struct report_options {
    bool report;                   /* explain at the end */
    bool json;                     /* as JSON */
    bool read_ahead;               /* act on patterns */
    bool unusual;                  /* tell when calls of plain files take unusually long */
    bool mpi_hints;                /* give files by MPI the hints that earlier runs speak for */
    bool quiet;                    /* no warnings */
    const char *page;              /* NULL: no page */
    const char *records;           /* NULL: a folder that goes with the run */
    const char *history;           /* what the last run read; NULL: that does not count */
    const char *hints;             /* hints for files by MPI; NULL: none */
    char stated[WATCH_HINTS_TEXT]; /* hints that the user states: lines KEY=VALUE */
    char *const *arguments;        /* of the program: the last ones of this process */
} report_options;

/** Longest name of a folder for records. */
#define REPORT_FOLDER 3072

/** A run that is recorded. */
typedef struct report_run {
    char folder[REPORT_FOLDER];
    bool keep;       /* the folder */
    bool in_program; /* this is the child, which becomes the program */
    int program;     /* the child */
    int rank;
    int ranks;   /* each started by an esdm-run */
    bool local;  /* all on this node */
    int on_node; /* ranks on each node */
    bool shared; /* ranks on this node write to the folder, which none but the first one removes */
    char job[128];
    int looker;    /* process of esdm-explain that looks at the run; 0: none */
    int looker_fd; /* a pidfd of it; -1: none */
    int ends_one;  /* a pipe: it ends when this is closed; -1: it is */
} report_run;

/** Whether nothing but what is unusual is wanted: the program runs whatever happens to that. */
bool report_is_light(const report_options *o);
/** Makes the folder, forks, and in the child sets what libesdm-watch.so reads. @param r zeroed.
 *  false, and why. */
bool report_begin(report_run *r, const report_options *o, const char **ret_why);
/** In the parent: waits for the program, and on rank 0 for the others; explains.
 *  @return the program's exit status. */
int report_end(report_run *r, const report_options *o);
/** Forks the program, which ends when this process is killed, and passes signals on to it
 * (signals.c). @param arguments the program's, as this process was given them
 *  @return as fork() */
int signals_fork_program(char *const *arguments);
/** The child has been waited for: nothing is passed on any more. */
void signals_program_ended(void);
/** As processes do that end after the program. */
void report_ignore_signals(void);
/** Closes this descriptor and all above it. */
void report_close_from(int fd);

/** Whether the site keeps runs and has a rule for files: one second at most (look.c). */
bool look_is_wanted(void);
/** Starts to look whether calls of plain files are as slow as usual. */
void look_begin(report_run *r, const report_options *o);
/** It has been waited for. */
void look_ended(report_run *r);
/** The program has ended: waits for what was found, for so long at most. */
void look_end(report_run *r, int most_ms);
/** Waits until a pidfd is readable. @return false: it was not. */
bool look_wait(int fd, int most_ms);
/** CLOCK_MONOTONIC. */
uint64_t look_now_ns(void);

/** The file in the user's cache for a program (its path) with these arguments.
 *  @param end of its name: "history", "hints". @return false: none, since
 *  the user does not want it ($ESDM_EARLIER_RUNS), or has no cache. */
bool history_place(const char *program, char *const *arguments, const char *end, char *ret,
                   size_t room);

#endif
