/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_WATCH_HISTORY_H
#define ESDM_WATCH_HISTORY_H

/**
 * @file
 * What the last run of a program read of plain files, in order: esdm-explain writes it when a run
 * has ended, libesdm-watch.so maps it in the next one.
 *
 * A head, the files, and the reads of all of them. The order of bytes is that of the machine: what
 * does not fit is as good as no history.
 */

#include <stdint.h>

#define WATCH_HISTORY_MAGIC UINT64_C(0x3174736968646564) /* "dedhist1" */
#define WATCH_HISTORY_FILES 64u                          /* at most */
#define WATCH_HISTORY_READS 4096u                        /* of a file, at most */
#define WATCH_HISTORY_BYTES                                                                        \
    (64u + WATCH_HISTORY_FILES *                                                                   \
               (sizeof(watch_history_file) + WATCH_HISTORY_READS * sizeof(watch_history_read)))

/** Confidence: one run is an accident, two are a habit. Below 1 nothing is asked for. */
#define WATCH_TRUST_LEAST (-4)
#define WATCH_TRUST_NEW   1
#define WATCH_TRUST_MOST  3

typedef struct watch_history_head {
    uint64_t magic;
    uint32_t files;
    uint32_t reads; /* of all files */
    uint64_t unused[6];
} watch_history_head;

typedef struct watch_history_file {
    char program[64]; /* its name without folders; ends with NUL, so the next one */
    char name[512];   /* of the file, as entries have it */
    int32_t rank;     /* -1: none */
    int32_t trust;
    uint32_t first; /* of its reads */
    uint32_t reads;
    uint64_t seen_s; /* when the run was, since 1970 */
} watch_history_file;

typedef struct watch_history_read {
    uint64_t at;
    uint64_t bytes;
} watch_history_read;

/** Whether both names are the same but for numbers in them: files of a series. */
static inline int
watch_history_alike(const char *a, const char *b)
{
    while (*a != '\0' && *b != '\0') {
        int digit = *a >= '0' && *a <= '9';
        if (digit != (*b >= '0' && *b <= '9') || (!digit && *a != *b))
            return 0;
        if (!digit) {
            a++;
            b++;
            continue;
        }
        while (*a >= '0' && *a <= '9')
            a++;
        while (*b >= '0' && *b <= '9')
            b++;
    }
    return *a == *b;
}

#endif
