/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_PACKS_PACK_H
#define ESDM_IO_PACKS_PACK_H

/**
 * @file
 * One pack that is being written. Where the target can give back what was appended and is not
 * sealed yet, a pack that cannot be finished there goes on on another target: under its name, with
 * its bytes, so that all positions stay. One with copies is whole on their targets, and stays.
 * Threads: one at a time, which has the pack busy; the target may be asked for by any.
 */

#include "esdm/placement.h"
#include "io/packs/mirrors.h"
#include "io/packs/pack_state.h"

/** Tells that a pack is at another place (layout/places.h) now. Called by the thread that has it
 * busy. */
typedef esdm_status (*esdm__pack_moved)(void *user, const char *pack, const char *from,
                                        const char *to, esdm_error *err);

/** Whether something that is to be committed lies in the pack. */
typedef bool (*esdm__pack_needed)(void *user, const char *pack);

/** Some of the session's targets, by their numbers. */
typedef struct esdm__target_set {
    uint64_t bits[ESDM__SITE_TARGETS_MAX / 64];
} esdm__target_set;

static inline void
esdm__target_set_add(esdm__target_set *set, size_t number)
{
    set->bits[number / 64] |= UINT64_C(1) << (number % 64);
}

static inline bool
esdm__target_set_has(const esdm__target_set *set, size_t number)
{
    return (set->bits[number / 64] >> (number % 64) & 1) != 0;
}

/* Once made, a record stays as long as its esdm__pack_set, because fragments refer to it. */
typedef struct esdm__pack {
    struct esdm__pack *next;
    _Atomic(esdm__target *) target;
    void *handle; /* NULL: nothing more can be done to it */
    esdm__mirrors mirrors;
    char *places; /* owned; NULL: no mirrors. Of what lies on the target and all mirrors */
    char *fewer;  /* owned; of the last blob, when a mirror refused it; else NULL */
    uint64_t length_bytes;
    uint64_t blobs; /* that are whole on all targets of the pack, and not counted as degraded */
    struct {        /* what the model has not been told yet */
        uint64_t requests;
        double bytes;
        double concurrency; /* sum over requests */
        double seconds;
    } spent;
    atomic_bool moved;              /* it has been on another target */
    atomic_uint_fast64_t handed_at; /* when another rank last had something stored in it: commits
                                       of the pack set, and 1; 0: never */
    esdm__target_set allowed;       /* targets where it may lie */
    bool asks;                      /* something was appended while the target counted as failed */
    esdm__pack_stage stage;         /* changed by esdm__pack_enter() alone */
    esdm__pack_use use; /* by esdm__pack_use_next() alone; under the lock of the pack set */
    bool busy;          /* a thread is appending, syncing or sealing */
    bool unsynced;
    double begun_s;      /* when storing began (esdm__seconds_now()); 0: not, or the model knows */
    double ended_s;      /* when that ended, as the target says; 0: not known */
    bool ended;          /* it has */
    double beside;       /* packs that were being stored then, this one included */
    esdm_error *lost;    /* NULL: no; else the target may lack what the mirrors have, for good */
    esdm_error *failure; /* NULL: none; else what was appended may be lost, for good */
    char name[96];
} esdm__pack;

/** How appends went; see esdm_write_counts. */
typedef struct esdm__write_counters {
    atomic_uint_fast64_t fragments;
    atomic_uint_fast64_t elsewhere;
    atomic_uint_fast64_t fewer_copies;
} esdm__write_counters;

/** Who writes the packs, and who is told when one moves. */
typedef struct esdm__pack_owner {
    esdm_session *session;
    esdm__pack_moved moved;   /* NULL: they stay where they are */
    esdm__pack_needed needed; /* NULL: everything is */
    void *user;
    bool moves;       /* what others have written: the record of it counts no writes */
    bool durable;     /* whatever the site wants: other data go when these are there */
    bool tells_later; /* `moved` is called when packs are published or made readable, not by those
                         who append for others (taker.h) */
    esdm__write_counters *counters; /* esdm__pack_set_new() sets it */
    char uuid[ESDM__UUID_BYTES];    /* of the container */
    char writer[ESDM__UUID_BYTES]; /* in the names of the packs; "": esdm__pack_set_new() sets it */
    int rank; /* of those that share the writer: rank 0 says that it lives, and all others are told
                 when it may have seemed dead; -1: nobody shares it */
} esdm__pack_owner;

/** Tells the owner that all that it knows of the pack lies at `place`, wherever it was before. */
esdm_status esdm__pack_tell_moved(const esdm__pack_owner *owner, const char *pack,
                                  const char *place, esdm_error *err);

static inline esdm__target *
esdm__pack_target(const esdm__pack *pack)
{
    return atomic_load(&pack->target);
}

/** What commits do to it; under the lock of the pack set. */
static inline void
esdm__pack_note(esdm__pack *pack, esdm__pack_commit commit)
{
    pack->use = esdm__pack_use_next(pack->use, commit);
}

/** Whether it is done with: nothing is appended, flushed or stored any more. */
static inline bool
esdm__pack_is_done(const esdm__pack *pack)
{
    return pack->stage == ESDM__PACK_SEALED ||
           (pack->stage == ESDM__PACK_GONE && pack->failure == NULL);
}

/** Starts a pack on a target, which is open, and copies of it on those of `mirrors` that take one.
 *  @param ret_pack busy; owned, esdm__pack_end(). */
esdm_status esdm__pack_create(const esdm__pack_owner *owner, esdm__target *target,
                              const esdm__mirror_targets *mirrors, const esdm__target_set *allowed,
                              esdm__pack **ret_pack, esdm_error *err);
/** Appends one blob, to the copies too. One that refuses is none any more, and the pack is not to
 *  be appended to again. @param ret_places where the blob lies; borrowed from the pack; NULL: where
 *  the pack does. */
esdm_status esdm__pack_append(esdm__pack *pack, const esdm_iov *iov, size_t niov,
                              uint64_t *ret_position, const char **ret_places, esdm_error *err);
/** Whether more can be appended to it for these targets. */
bool esdm__pack_takes(const esdm__pack *pack, const esdm__target *target,
                      const esdm__mirror_targets *mirrors, const esdm__target_set *allowed);
/** Whether what is appended can be read everywhere before it is sealed. */
bool esdm__pack_reads_unsealed(const esdm__pack *pack);
/** Whether other nodes find what was appended only when it was flushed: one that is committed is.
 */
bool esdm__pack_shows_late(const esdm__pack *pack);
/** Whether the pack must be flushed before it is sealed: afterwards it cannot be any more, and a
 *  commit may refer to it. */
bool esdm__pack_needs_sync(const esdm__pack_owner *owner, const esdm__pack *pack);
/** Whether a full pack is sealed at once. One that must be flushed first waits for the commit,
 * which flushes it anyhow, unless one of its targets keeps it in memory until then. */
bool esdm__pack_may_end(const esdm__pack_owner *owner, const esdm__pack *pack);
/** Seals the pack unless it is, flushed where that is needed; moves it to another target first when
 * that fails. A failure is remembered. */
esdm_status esdm__pack_seal(const esdm__pack_owner *owner, esdm__pack *pack, esdm_error *err);
/** Where the target can store a pack while others are written: starts that, for a pack that is
 *  full. */
void esdm__pack_begin_seal(esdm__pack *pack);
/** Makes durable what can be before the pack is sealed. A failure is remembered. */
esdm_status esdm__pack_sync(const esdm__pack_owner *owner, esdm__pack *pack, esdm_error *err);
/** Looks whether the pack, as others see it, still has what was appended; otherwise it is `gone`.
 *  Fails when that cannot be found out. */
esdm_status esdm__pack_look(esdm__pack *pack, esdm_error *err);
/** Whether it has failed and its bytes are lost, so that no other attempt can be made. */
bool esdm__pack_is_lost(const esdm__pack *pack);
/** After a failure: seals the pack once more when all its bytes are still at hand, on its target or
 *  another one. Else, or when it fails again, the failure that was remembered. */
esdm_status esdm__pack_retry(const esdm__pack_owner *owner, esdm__pack *pack, esdm_error *err);
/** The failure that was remembered. */
esdm_status esdm__pack_failed(const esdm__pack *pack, esdm_error *err);
/** Seals the pack, or throws it away when no commit refers to it. With `forget` the record alone
 *  goes (in a forked child). Frees it. */
void esdm__pack_end(const esdm__pack_owner *owner, esdm__pack *pack, bool forget);

#endif
