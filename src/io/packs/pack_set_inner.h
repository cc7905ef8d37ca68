/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_PACKS_PACK_SET_INNER_H
#define ESDM_IO_PACKS_PACK_SET_INNER_H

/** @file What pack_set.c (appending) and pack_publish.c (publishing, ending) share. */

#include <pthread.h>
#include <sys/types.h>

#include "io/packs/decisions.h"
#include "io/packs/pack_set.h"

struct esdm__pack_set {
    esdm__pack_owner owner;
    pthread_mutex_t lock; /* guards lists, turn and busy flags; never held across target calls */
    pthread_cond_t idle;  /* some pack ceased to be busy */
    esdm__pack *open;     /* those that are not sealed, or failed */
    esdm__pack *sealed;   /* since the last commit */
    esdm__pack *kept;     /* sealed and committed: nothing is left to do */
    esdm__pack *lost;     /* failed, and cannot be stored again: what is not committed is gone */
    uint64_t turn;        /* blobs that were placed */
    bool committed;       /* something was */
    struct esdm__handover *handover; /* to another rank; owned; NULL: everything is stored here */
    atomic_uint_fast64_t commits;
    esdm__write_counters counters;
    esdm__decisions *decisions; /* NULL: nothing is noted */
    bool writing;               /* the metadata store knows that the writer lives */
    esdm__writer_doubt doubt;   /* whether the writer may have seemed dead: on rank 0 what it will
                                   tell the others, on these what they were told. This and the
                                   next four under commit_lock */
    bool unsure;                /* it may have seemed dead: packs may be gone */
    bool missing;               /* some pack is gone */
    bool unanswered;            /* whether what was committed is there could not be told */
    bool look_back;             /* it can be told now, and may not be there */
    pid_t process;              /* a forked child has no part in what its parent writes */
};

static inline void
esdm__pack_push(esdm__pack **list, esdm__pack *pack)
{
    pack->next = *list;
    *list = pack;
}

typedef esdm_status (*esdm__pack_visitor)(esdm__pack_set *packs, esdm__pack *pack, void *user,
                                          esdm_error *err);

/** Calls fn on every pack that is not sealed, or on those that `wanted` wants (NULL: all; called
 * under the lock), on several at once where targets wait for servers; stops at the first failure.
 * Those that are begun meanwhile are not concerned. */
esdm_status esdm__pack_set_visit(esdm__pack_set *packs,
                                 bool (*wanted)(const esdm__pack *pack, void *user),
                                 esdm__pack_visitor fn, void *user, esdm_error *err);
/** A pack that the caller had busy is free for others; a sealed one goes to its list. */
void esdm__pack_set_release(esdm__pack_set *packs, esdm__pack *pack);
/** Tells the model how long the requests took of which it has not heard yet. */
void esdm__pack_set_tell_model(const esdm__pack_set *packs, esdm__pack *pack);
/** Asks the target whether a pack whose storing was begun is stored, before it is sealed. */
void esdm__pack_ask_ended(esdm__pack *pack);
/** Tells model and decisions how long the target took to store a pack whose storing was begun
 * before, as the target said (esdm__pack_ask_ended()), or when the caller has waited for the end of
 * it from `waited_from_s` on. */
void esdm__pack_set_tell_stored(const esdm__pack_set *packs, esdm__pack *pack,
                                double waited_from_s);
/** Whether nothing more is to be appended. */
bool esdm__pack_set_is_full(const esdm__pack_set *packs, const esdm__pack *pack);

#endif
