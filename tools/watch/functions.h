/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_WATCH_FUNCTIONS_H
#define ESDM_WATCH_FUNCTIONS_H

/**
 * @file
 * What the functions that generate.py makes call. Each of them is
 *
 *     if (!watch__begin(&call)) return real(…);   nobody looks, or this is ESDM's own call
 *     result = real(…);
 *     watch__moved(&call, …, result);             enters a record; errno stays
 *
 * Nothing here waits, takes a lock of libc or allocates with malloc(); all works before
 * constructors have run and in forked children, and does nothing in the child of a vfork().
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "watch/calls.h"
#include "watch/hints.h"
#include "watch/records.h"

#define WATCH_EXPORT __attribute__((visibility("default")))

/* As both kinds of MPI hand them over: in a register or a place of eight bytes on the stack,
 * whether they are pointers or numbers. Nobody looks into the upper half of what may be a number.
 */
typedef intptr_t MPI_Comm;
typedef intptr_t MPI_Info;
typedef intptr_t MPI_Datatype;
typedef void *MPI_File;
typedef int64_t MPI_Offset;
typedef int64_t MPI_Count;
typedef void MPI_Status;
typedef void MPI_Request;

/** What is known of a read when it begins; 0: nothing. */
enum {
    WATCH_AHEAD_PLAIN = 1, /* in a pattern */
    WATCH_AHEAD_ADVISED,   /* in one, and asked for before */
    WATCH_AHEAD_CONTROL,   /* as in the last run, and not asked for, to compare with */
    WATCH_AHEAD_EARLIER    /* as in the last run, and asked for */
};

typedef struct watch_call {
    uint64_t start_ns;
    uint64_t ns;       /* of the real call */
    uint32_t fd_entry; /* of a descriptor that is being closed, or of a NetCDF file */
    uint64_t advised;  /* watch/ahead.c: nanoseconds that the advice took */
    uint64_t position; /* in a file by MPI, before the call */
    uint8_t ahead;     /* WATCH_AHEAD_… */
    uint8_t cached;    /* as WATCH_CACHED_BIT says */
} watch_call;

/** The next definition of a function, looked up once. Functions outlive the process's threads. */
#define WATCH_REAL(type, name)                                                                     \
    ({                                                                                             \
        static void *found_;                                                                       \
        void *real_ = __atomic_load_n(&found_, __ATOMIC_RELAXED);                                  \
        if (!real_) {                                                                              \
            real_ = dlsym(RTLD_NEXT, name);                                                        \
            __atomic_store_n(&found_, real_, __ATOMIC_RELAXED);                                    \
        }                                                                                          \
        (type) real_;                                                                              \
    })

/** Where a NetCDF function of a caller is. */
typedef struct watch_nc_cache {
    void *everybody; /* in front of all libraries, or NULL */
    const void *caller;
    void *callers;
} watch_nc_cache;
void *watch__nc_real(watch_nc_cache *cache, const char *name, const void *caller);
#define WATCH_NC_REAL(type, name)                                                                  \
    ({                                                                                             \
        static watch_nc_cache cache_;                                                              \
        (type) watch__nc_real(&cache_, name, __builtin_return_address(0));                         \
    })

bool watch__begin(watch_call *call);
bool watch__nc_begin(watch_call *call, const void *caller);
int watch__nc_absent(void);
/** The real call has returned. Keeps errno. */
void watch__real_done(watch_call *call);
uint64_t watch__vector_bytes(const struct iovec *vector, int count);

void watch__opened(watch_call *call, watch_op op, int fd, int dir, const char *path, int flags);
void watch__fopened(watch_call *call, watch_op op, FILE *file, const char *path, const char *mode);
void watch__reading(watch_call *call, int fd, int64_t at, uint64_t want);
/** @param at -1: the current position, which moves. */
void watch__moved(watch_call *call, watch_op op, int fd, bool writes, int64_t at, uint64_t want,
                  uint64_t moved, bool failed);
void watch__file_moved(watch_call *call, watch_op op, FILE *file, bool writes, uint64_t want,
                       uint64_t moved);
void watch__closing(watch_call *call, int fd);
void watch__closed(watch_call *call, watch_op op, int fd);
void watch__duplicated(watch_call *call, watch_op op, int fd, int other);
void watch__sought(watch_call *call, watch_op op, int fd, int64_t position);
void watch__file_sought(watch_call *call, watch_op op, FILE *file);
void watch__synced(watch_call *call, watch_op op, int fd);
void watch__file_synced(watch_call *call, watch_op op, FILE *file);
void watch__mapped(watch_call *call, watch_op op, int fd, uint64_t bytes, uint64_t at);
void watch__copied(watch_call *call, watch_op op, int in, int out, uint64_t bytes);
void watch__path(watch_call *call, watch_op op, int dir, const char *path, bool failed);

void watch__nc_opened(watch_call *call, watch_op op, const char *path, const int *ncid, int status);
void watch__nc_closing(watch_call *call, int ncid);
void watch__nc_closed(watch_call *call, watch_op op, int ncid);
void watch__nc_meta(watch_call *call, watch_op op, int ncid, int status);
/** @param count NULL: one element, or with `whole` the whole variable. */
void watch__nc_moved(watch_call *call, watch_op op, int ncid, int varid, const size_t *start,
                     const size_t *count, const ptrdiff_t *stride, bool whole, bool writes,
                     int status);

/* Files by MPI (watch/mpi.c). */
#define WATCH_MPI_OWN    (-1) /* where the rank's own pointer is */
#define WATCH_MPI_SHARED (-2)
typedef struct watch_mpi_status {
    int64_t room[16];
} watch_mpi_status;

/** What a file is opened with (watch/hints.c). */
typedef struct watch_hints {
    MPI_Info info;               /* for the real call */
    bool own;                    /* it is made here */
    bool outer;                  /* no other open is around this one */
    char text[WATCH_HINTS_TEXT]; /* lines KEY=VALUE that the program did not state; "": none */
} watch_hints;

/** Hints that runs before this one speak for; collective where the user wants them. Each call needs
 *  a watch__hints_drop() after the file was opened. */
void watch__hints_choose(watch_hints *ret, MPI_Comm comm, const char *path, MPI_Info info,
                         const void *caller);
void watch__hints_drop(watch_hints *hints);

bool watch__mpi_begin(watch_call *call, const void *caller);
int watch__mpi_absent(void);
void watch__mpi_opened(watch_call *call, watch_op op, MPI_Comm comm, const char *path, int mode,
                       MPI_Info info, const watch_hints *hints, const MPI_File *file, int result);
void watch__mpi_closing(watch_call *call, const MPI_File *file);
void watch__mpi_closed(watch_call *call, watch_op op, int result);
void watch__mpi_path(watch_call *call, watch_op op, int result);
void watch__mpi_viewed(watch_call *call, watch_op op, MPI_File file, MPI_Offset at,
                       MPI_Datatype etype, MPI_Datatype filetype, MPI_Info info, int result);
void watch__mpi_meta(watch_call *call, watch_op op, MPI_File file, int result);
/** @param at in the view, or one of the above. */
void watch__mpi_moving(watch_call *call, MPI_File file, MPI_Offset at);
/** What the real call is to fill: `own` where the program wants no status. */
MPI_Status *watch__mpi_status(MPI_Status *status, watch_mpi_status *own);
/** @param status NULL: the call has only begun to move `count` elements. */
void watch__mpi_moved(watch_call *call, watch_op op, MPI_File file, bool writes, int64_t count,
                      MPI_Datatype type, const MPI_Status *status, unsigned flags, int result);

#endif
