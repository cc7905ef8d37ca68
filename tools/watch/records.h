/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_WATCH_RECORDS_H
#define ESDM_WATCH_RECORDS_H

/**
 * @file
 * What the preloaded library `libesdm-watch.so` leaves of a process, for esdm-explain: one file a
 * process, `HOST.PID.N.watch`, which the process has mapped, so that it is whole after a kill, too.
 *
 * The file is a row of windows of WATCH_WINDOW bytes. The first holds the head; each other one
 * begins with a watch_window and holds entries (what calls are about), records (calls), or boxes
 * (which part of a variable a call moved).
 * The order of bytes is that of the machine; the files live as long as a run.
 */

#include <stdint.h>

#define WATCH_MAGIC   UINT64_C(0x3168637461776465) /* "edwatch1" */
#define WATCH_WINDOW  65536u
#define WATCH_WINDOWS 4096u /* at most, of a process */

#define WATCH_NAME 512u /* with the NUL; longer ones lack their beginning */
#define WATCH_DIMS 8u

enum { WATCH_ENTRIES = 1, WATCH_RECORDS = 2, WATCH_BOXES = 3 };
/** What an entry is. */
enum {
    WATCH_FILE = 1,
    WATCH_VARIABLE = 2,
    WATCH_DATASET = 3 /* a NetCDF file as opened */,
    WATCH_MPI_FILE = 4 /* as MPI opened it */,
    WATCH_HINTS = 5 /* of the MPI file `parent`: lines "asked KEY=VALUE", "chosen KEY=VALUE" (by
                       watch/hints.c) and "used KEY=VALUE" */
};

typedef struct watch_head {
    uint64_t magic;
    uint32_t window_bytes;
    int32_t pid;
    int32_t parent;
    int32_t rank;  /* -1: none */
    int32_t ranks; /* 0: none */
    uint32_t cores;
    uint64_t started_realtime_ns;
    uint64_t started_ns; /* CLOCK_MONOTONIC, as in records */
    uint64_t ended_ns;   /* 0: it was killed, or is running */
    uint64_t user_us;    /* CPU time at the end */
    uint64_t system_us;
    uint64_t windows; /* that are in use; atomic */
    uint64_t entries; /* that are taken; atomic */
    uint64_t records; /* that are taken; atomic */
    uint64_t dropped; /* calls that found no room; atomic */
    char host[64];
    char program[256];
    char command[2048]; /* arguments, separated by NUL */
    uint64_t boxes;     /* that are taken; atomic */
    /* The last calls alone are kept ($ESDM_WATCH_RING), in the first windows of records, over and
     * over; while `keep` is set, which who looks at the file sets, what comes lies behind them. */
    uint32_t ring; /* windows; 0: all calls are kept */
    uint32_t keep; /* atomic */
    uint64_t kept; /* records that are taken behind the ring; atomic */
    uint64_t pids; /* the namespace that `pid` is of, as its inode; 0: not known */
} watch_head;

typedef struct watch_window {
    uint32_t kind;
    uint32_t index; /* of the windows of its kind */
    uint64_t unused[7];
} watch_window;

typedef struct watch_counts {
    uint64_t calls;
    uint64_t bytes;
    uint64_t ns;
    uint64_t small; /* calls of less than 64 KiB */
} watch_counts;

/** 1,024 bytes (watch/windows.c checks). Counters are exact even when records were dropped. */
typedef struct watch_entry {
    uint32_t kind; /* 0: not ready yet; written last */
    uint32_t parent;
    int32_t flags; /* of open() */
    uint32_t rank; /* of a variable: dimensions */
    uint32_t element_bytes;
    int32_t deflate;      /* level; -1: none or not known */
    int32_t chunked;      /* 1: chunked, 0: contiguous, -1: not known */
    uint32_t file_system; /* statfs(): f_type */
    watch_counts read;
    watch_counts write;
    watch_counts other;        /* open, close, sync, seek, stat, … */
    uint64_t mapped_bytes;     /* by mmap() */
    uint64_t file_bytes;       /* when it was opened, or entered */
    uint64_t size[WATCH_DIMS]; /* of a variable */
    uint64_t chunk[WATCH_DIMS];
    uint64_t device;
    uint64_t inode;
    /* Read-ahead (watch/ahead.c): */
    uint64_t ahead_calls; /* of posix_fadvise() */
    uint64_t ahead_bytes;
    uint64_t ahead_ns;    /* that they took */
    uint64_t plain_reads; /* in a pattern, not advised before */
    uint64_t plain_ns;
    uint64_t advised_reads; /* advised before */
    uint64_t advised_ns;
    uint64_t ahead_stopped; /* how often it did not help */
    char name[WATCH_NAME];
    char wanted;          /* its kind, before it is ready */
    char earlier_stopped; /* WATCH_EARLIER_… */
    uint8_t history;      /* 1 …: its number (watch/history.c); 0: none */
    char unused;
    int32_t type;                  /* of a variable: nc_type; 0: not known */
    uint32_t unlimited;            /* bits: of its dimensions those that are */
    int32_t dimension[WATCH_DIMS]; /* their numbers in the file */
    uint32_t ranks;                /* of an MPI file: that opened it together */
    watch_counts together_read;    /* of an MPI file: collective ones of `read` */
    watch_counts together_write;
    /* What the last run read, asked for early (watch/history.c): */
    uint64_t earlier_calls; /* of posix_fadvise() */
    uint64_t earlier_ns;    /* that they took */
    uint64_t earlier_reads;
    uint64_t earlier_read_ns;
    uint64_t earlier_plain_reads; /* without, to compare with */
    uint64_t earlier_plain_ns;
} watch_entry;

/** Why a history was left. */
enum {
    WATCH_EARLIER_ASTRAY = 1, /* the program read something else */
    WATCH_EARLIER_USELESS,    /* reads were not faster */
    WATCH_EARLIER_CACHED      /* memory had the file */
};

/** 64 bytes: one call. */
typedef struct watch_record {
    uint64_t start_ns; /* 0: not ready; written last */
    uint64_t ns;
    uint64_t bytes;    /* that were moved; variables: in memory */
    uint64_t position; /* in the file; of a variable: of its first dimension; WATCH_NOWHERE */
    uint64_t wanted;   /* bytes asked for; of a variable: elements of the first dimension */
    uint32_t entry;
    uint32_t thread;
    uint16_t op;     /* enum watch_op */
    uint16_t failed; /* errno, or 1 */
    uint16_t depth;  /* NetCDF calls around it: 1 in one */
    uint16_t flags;
    uint64_t box; /* its number, from 1; 0: none */
} watch_record;

/** 192 bytes: the part of a variable of up to WATCH_DIMS dimensions. */
typedef struct watch_box {
    uint64_t start[WATCH_DIMS];
    uint64_t count[WATCH_DIMS];
    uint64_t stride[WATCH_DIMS];
} watch_box;

#define WATCH_NOWHERE UINT64_MAX
/** Flags. */
#define WATCH_FLAG_IN_MPI   2u  /* in a call of MPI */
#define WATCH_FLAG_TOGETHER 4u  /* collective */
#define WATCH_FLAG_PENDING  8u  /* it only begins to move data */
#define WATCH_FLAG_GAPS     16u /* the rank's view of the file has gaps */
/** Of flags, four bits: how many eighths of what a read asked for memory had before
 * (watch/resident.c), and one; 0: that was not asked. Neither none nor all is rounded. */
#define WATCH_CACHED_BIT 8u

#endif
