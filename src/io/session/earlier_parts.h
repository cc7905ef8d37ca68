/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_SESSION_EARLIER_PARTS_H
#define ESDM_IO_SESSION_EARLIER_PARTS_H

/** @file What earlier.c and the file of the record (earlier_file.c) share. */

#include <pthread.h>

#include "io/session/earlier.h"

/** Uses in a record. */
#define ESDM__USES_MOST 64u
/** Confidence in a use: one run is an accident, two are a habit. */
#define ESDM__TRUST_LEAST (-4)
#define ESDM__TRUST_NEW   1
#define ESDM__TRUST_MOST  3

struct esdm__use {
    esdm__use *next;
    char *container; /* owned */
    char *dataset;   /* owned; its path */
    uint32_t rank;
    uint64_t lengths[ESDM_MAX_RANK];
    esdm__loops before; /* of an earlier run */
    esdm__loops now;
    int trust;         /* below 1: no action */
    uint64_t order;    /* of its first read, in the run that `before` is of */
    uint64_t seen_s;   /* when that was, since 1970 */
    bool held;         /* a reader has a pointer to it */
    bool read;         /* in this run */
    uint64_t read_as;  /* order of its first read in this run */
    bool other_length; /* than in the earlier run */
    bool astray;       /* a read was not that of the earlier run */
    esdm__loops_at at; /* the read that would come next */
    uint64_t followed;
    esdm__ahead_account account;
    atomic_uint_fast64_t cost_ns;
};

struct esdm__earlier {
    pthread_mutex_t lock; /* guards all of the uses, but for accounts and costs; a leaf lock */
    esdm__use *uses;
    size_t count;
    uint64_t order; /* of the next dataset that is read for the first time */
    bool settled;   /* under the lock */
    bool stale;     /* the file was not written for a day */
    pid_t owner;    /* a forked child writes nothing */
    char *program;  /* owned; as the file says */
    char *folder;   /* owned */
    char file[96];  /* in it */
};

/** A use without loops. NULL: no memory. */
esdm__use *esdm__use_new(const char *container, const char *dataset, uint32_t rank,
                         const uint64_t *lengths);
void esdm__use_free(esdm__use *use); /* NULL is accepted */

/** Says where the record is. false: nowhere. (earlier_file.c) */
bool esdm__earlier_place(esdm__earlier *earlier, const char *site_id);
/** Reads it. */
void esdm__earlier_load(esdm__earlier *earlier);
/** Writes what `uses` say, and of other datasets what the file says by then. */
void esdm__earlier_save(esdm__earlier *earlier);

#endif
