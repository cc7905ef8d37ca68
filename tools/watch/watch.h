/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_WATCH_WATCH_H
#define ESDM_WATCH_WATCH_H

/** @file What the files of the library share. */

#include "watch/functions.h"

#define WATCH_OTHERS  1u         /* the entry for what has none of its own */
#define WATCH_IGNORED UINT32_MAX /* no regular file */
#define WATCH_FDS     65536

/** Of the thread. `busy`: in the library itself, whose calls are not observed. */
typedef struct watch_here {
    bool busy;
    uint16_t depth; /* NetCDF calls around */
    int32_t thread;
    const void *caller; /* of the outermost NetCDF call */
    uint64_t box;       /* for the next record; 0: none */
    uint16_t flags;     /* for the next record */
    uint16_t mpi;       /* calls of MPI around */
    const void *mpi_caller;
    bool opening; /* in a call that opens a file by MPI */
} watch_here;
extern __thread watch_here watch__here __attribute__((tls_model("initial-exec")));

/** Begins the file of this process; false: nobody asked, or it cannot be made. */
bool watch__windows_begin(void);
bool watch__is_on(void);
/** Whether this is the process that the file belongs to, and no child of vfork(). */
bool watch__is_owner(void);
watch_head *watch__head(void);
uint64_t watch__now_ns(void);
/** Room for a record; NULL: there is none, which is counted. */
watch_record *watch__record(void);
/** Room for the part that a call moved; NULL: there is none. */
watch_box *watch__box(uint64_t *ret_number);
/** @param number 1 … */
watch_entry *watch__entry(uint32_t number);
/** The entry of that kind and name, made when there is none; WATCH_OTHERS when there is no room.
 *  @param ret_fresh whether it was made: then watch__entry_ready(). */
uint32_t watch__entry_find(uint32_t kind, const char *name, bool *ret_fresh);
void watch__entry_ready(uint32_t number, uint32_t kind);

/** Counts and enters a call. */
void watch__enter(const watch_call *call, watch_op op, uint32_t entry, uint64_t position,
                  uint64_t want, uint64_t moved, unsigned failed, watch_counts *counts);

/** The entry of a descriptor, whose name is asked for when it is not known. */
uint32_t watch__fd_entry(int fd);
/** Forgets all descriptors: in a forked child. */
void watch__fds_forget(void);

/** A read of a descriptor ends (watch/ahead.c). */
void watch__ahead_done(const watch_call *call, int fd, uint64_t at, uint64_t moved, uint64_t ns);
void watch__ahead_begin(watch_call *call, int fd, uint32_t entry, uint64_t at, uint64_t want);
void watch__ahead_forget(int fd);
/** Whether the user wants read-ahead. */
bool watch__ahead_is_wanted(void);

/** Whether memory has what a read asks for (watch/resident.c); the call's time begins behind that.
 */
void watch__ask_memory(watch_call *call, int fd, const watch_entry *entry, uint64_t at,
                       uint64_t want);
/** Whether calls are recorded to be learnt from. */
bool watch__is_complete(void);

/** What the last run read (watch/history.c): in the constructor, and in a forked child. */
void watch__history_begin(void);
void watch__history_opened(int fd, watch_entry *entry);
/** A read begins. @return whether the file is read as it was, so that nothing else is to be asked
 *  for. */
bool watch__history_read(watch_call *call, int fd, watch_entry *entry, uint64_t at, uint64_t want);
/** It ends, when call->ahead was set. */
void watch__history_done(const watch_call *call, watch_entry *entry, uint64_t moved, uint64_t ns);

#endif
