/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_DESCRIPTOR_H
#define ESDM_BASE_DESCRIPTOR_H

/**
 * @file
 * Descriptors that ESDM keeps open, out of the way of the program.
 *
 * A program may write to a number that it never opened, or close all from 3 on and open files of
 * its own under the same numbers: what ESDM then writes to its catalogue goes into these files, or
 * the other way round. So descriptors that stay open have high numbers, are closed by exec(), and a
 * table tells which they are: the preloaded library keeps close() and its like off them
 * (esdm/descriptors.h). Numbers from ESDM_DESCRIPTORS_MAX on are not in the table.
 *
 * Threads: all functions may be called at any time; those of the table are safe in signal handlers.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "esdm/descriptors.h"

/** Which descriptors are ESDM's. */
typedef struct esdm__descriptors {
    void (*set_moving)(bool on); /**< esdm__descriptors_moving() of the copy that has the table */
    _Atomic(pid_t) owner;        /**< process whose `kept` are */
    _Atomic uint64_t kept[ESDM_DESCRIPTORS_MAX / 64];      /**< opened by this process */
    _Atomic uint64_t inherited[ESDM_DESCRIPTORS_MAX / 64]; /**< opened by one that forked us */
} esdm__descriptors;

/**
 * Moves a descriptor that was just opened to a high number (512, or half of a lower limit) and
 * enters it. Where no high number is free it stays where it is.
 *
 * Must not be used for a file on which this process may hold a lock of fcntl(F_SETLK): the old
 * number is closed, which gives such locks up.
 * @param fd -1 is accepted: what open() returned. Keeps errno then.
 * @return the descriptor, for esdm__descriptor_close(); -1 for -1.
 */
int esdm__descriptor_keep(int fd);
/** Another descriptor of the same open file, high and entered. -1 and errno. */
int esdm__descriptor_dup(int fd);
/** Enters a descriptor as it is. */
void esdm__descriptor_enter(int fd);
/** close() of a descriptor that was entered. One that the program has closed in a forked child is
 * left alone: its number may be another file's. @return 0, or -1 and errno. */
int esdm__descriptor_close(int fd);

/**
 * Around calls of a library that opens descriptors of its own: what this thread opens meanwhile is
 * moved and entered, what it closes is taken out. Only where libc's calls are intercepted
 * (esdm/descriptors.h); else nothing happens.
 */
void esdm__descriptors_moving(bool on);

/** The table of libesdm, or of a program that has its objects in itself. */
esdm__descriptors *esdm__descriptors_own(void);
/** Makes this copy use another one's table. Before anything is opened. */
void esdm__descriptors_share(esdm__descriptors *table);

/**
 * A loadable plug-in has a copy of src/base of its own. This line in it, once, makes the registry
 * of plug-ins give it the table of libesdm.
 */
#define ESDM__DESCRIPTORS_ENTRY "esdm_plugin_descriptors"
#define ESDM__DESCRIPTORS_SHARED                                                                   \
    __attribute__((visibility("default"))) void esdm_plugin_descriptors(esdm__descriptors *table); \
    void esdm_plugin_descriptors(esdm__descriptors *table)                                         \
    {                                                                                              \
        esdm__descriptors_share(table);                                                            \
    }

#endif
