/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_WATCH_HINTS_H
#define ESDM_WATCH_HINTS_H

/**
 * @file
 * Hints for files by MPI that earlier runs of a program speak for: esdm-explain writes them when a
 * run has ended, libesdm-watch.so of the first rank reads them in the next one.
 *
 * A head, and a record for each file, or series of files (watch_history_alike). The order of bytes
 * is that of the machine: what does not fit is as good as no record.
 */

#include <stdint.h>

#define WATCH_HINTS_MAGIC UINT64_C(0x32746e6968646564) /* "dedhint2" */
#define WATCH_HINTS_FILES 64u                          /* at most */

/** Bytes of a hint that a user states, KEY=VALUE, and of its KEY: Open MPI ends jobs that ask for a
 *  longer one. */
#define WATCH_HINT_BYTES 120u
#define WATCH_HINT_KEY   35u
/** Of all hints of a run together, as lines KEY=VALUE with the NUL at the end. */
#define WATCH_HINTS_TEXT 256u

/** What is done with a file. */
enum {
    WATCH_HINTS_LEARN = 1, /* runs without hints are measured */
    WATCH_HINTS_TRY,       /* runs with hints are */
    WATCH_HINTS_KEEP,      /* they were faster; some runs go without, to compare with */
    WATCH_HINTS_OVER       /* nothing helped, or no more */
};

typedef struct watch_hints_head {
    uint64_t magic;
    uint64_t files;
} watch_hints_head;

typedef struct watch_hints_file {
    char program[64]; /* its name without folders; ends with NUL, so the next two */
    char name[512];   /* of the file, as entries have it */
    char give[256];   /* to the next run: lines KEY=VALUE; "": none */
    char best[256];   /* that are tried, or kept */
    uint32_t ranks;
    uint32_t phase;     /* WATCH_HINTS_… */
    uint32_t candidate; /* its rule, from 1 (esdm-explain/hints.c); 0: none */
    uint32_t tried;     /* bits: rules that had their turn */
    uint32_t plain_runs;
    uint32_t hinted_runs; /* with `best` */
    double plain_ns;      /* a byte, without hints; 0: not known */
    double hinted_ns;     /* a byte, with `best` */
    double call_bytes;    /* of a call on average: what else it does, is another program */
    double bytes;         /* of all ranks */
    double gained_s;      /* in calls of all ranks, over all runs */
    uint64_t seen_s;      /* when the last run was, since 1970 */
} watch_hints_file;

#define WATCH_HINTS_BYTES (sizeof(watch_hints_head) + WATCH_HINTS_FILES * sizeof(watch_hints_file))

#endif
