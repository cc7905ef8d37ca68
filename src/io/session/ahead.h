/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_SESSION_AHEAD_H
#define ESDM_IO_SESSION_AHEAD_H

/**
 * @file
 * Bytes of packs that are asked for before they are wanted, on targets that wait for a network:
 * many requests are under way at once, in threads of their own that only wait. Memory is bounded;
 * what fails or finds no room is as if it had not been asked for. Packs never change, so bytes
 * never become wrong. Threads: locked inside.
 */

#include <stdatomic.h>

#include "esdm/sys/data_target.h"
#include "io/session/target.h"

typedef struct esdm__ahead esdm__ahead;

/** Reads a range now. Called in threads of its own. */
typedef esdm_status (*esdm__ahead_read)(void *user, esdm__target *target, const char *pack,
                                        const esdm_range *range, esdm_error *err);

/** What became of the requests of one action. Any thread. */
typedef struct esdm__ahead_account {
    atomic_uint_fast64_t requests;  /* without those that somebody wanted before they began */
    atomic_uint_fast64_t bytes;     /* of them */
    atomic_uint_fast64_t used;      /* of them: somebody wanted the bytes */
    atomic_uint_fast64_t gained_ns; /* that they took while nobody waited for them */
} esdm__ahead_account;

/** Where bytes lie, and for whom. */
typedef struct esdm__ahead_want {
    esdm__target *target;
    const char *pack; /* copied */
    uint64_t position;
    uint64_t bytes;
    const void *owner;
    uint64_t turn;                /* of the owner's: wanted until the end of it */
    esdm__ahead_account *account; /* stays until the end of the session; NULL: nobody counts */
} esdm__ahead_want;

/** @param threads requests under way at once. @param limit_bytes of all that is held or under way.
 *  NULL when out of memory. */
esdm__ahead *esdm__ahead_new(unsigned threads, uint64_t limit_bytes, esdm__ahead_read read,
                             void *user);
/** Waits for what is under way. NULL is accepted. */
void esdm__ahead_free(esdm__ahead *ahead);
/** Bytes that may be held at once. */
uint64_t esdm__ahead_limit(const esdm__ahead *ahead);
/** Whether nothing is held or under way. */
bool esdm__ahead_is_empty(const esdm__ahead *ahead);
/** Begins to read; what is there or under way is kept for this turn too. false: there is no room,
 *  or nobody to do it. */
bool esdm__ahead_ask(esdm__ahead *ahead, const esdm__ahead_want *want);
/** Whether bytes that hold the range were asked for: then they are copied, when they have arrived.
 *  What nobody has begun to read the caller reads by itself. */
bool esdm__ahead_take(esdm__ahead *ahead, const esdm__target *target, const char *pack,
                      const esdm_range *range);
/** Bytes of the pack were damaged on their way: what is held of it, or under way, is not handed out
 * any more. @return whether there was any. */
bool esdm__ahead_forget(esdm__ahead *ahead, const esdm__target *target, const char *pack);
/** The owner wants nothing more of its turns [from, before). */
void esdm__ahead_drop(esdm__ahead *ahead, const void *owner, uint64_t from, uint64_t before);

#endif
