/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_SESSION_TARGET_H
#define ESDM_IO_SESSION_TARGET_H

/**
 * @file
 * The targets of a session. Those that wait for a network are opened when they are needed, the
 * others with the session. One that cannot be opened stops nobody who can do without it: why is
 * remembered, and after a while it is tried again.
 * Threads: locked inside.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "esdm/session.h"
#include "esdm/sys/data_target.h"
#include "monitor/monitor.h"

enum { ESDM__TARGET_CLOSED, ESDM__TARGET_OPENING, ESDM__TARGET_OPEN };

typedef struct esdm__target {
    const esdm_data_plugin *plugin;
    void *handle;     /* valid once it is open, and then never changes */
    const char *name; /* borrowed from the site */
    bool local;       /* each node has one of its own */
    bool shows_late;  /* other nodes find what is appended when it was flushed; set as the handle is
                       */
    char *place;      /* owned; how records name it: layout/places.h */
    atomic_int state;
    uint64_t retry_ns;      /* not to be tried before; guarded by the session's target_lock */
    esdm_error failure;     /* of the last attempt; guarded by the session's target_lock */
    void *early;            /* while it is being opened: handle to read from; likewise guarded */
    unsigned early_readers; /* of that; likewise */
    atomic_uint_fast64_t suspect_ns; /* reads prefer other copies until then; 0: never failed */
    atomic_bool full; /* took ENOSPC or failed: tried last until a write succeeds there */
    atomic_uint_fast64_t again_ns; /* monotonic; when one write asks it in its turn all the same */
    atomic_uint_fast64_t pause_ns; /* until that, since the last failure or attempt */
    /* What all containers of the session are writing there at this moment. */
    atomic_uint_fast64_t queued_bytes;
    atomic_uint queued_requests;
    atomic_uint_fast64_t ending_bytes;  /* of packs that are being stored */
    atomic_uint_fast64_t owed_until_ns; /* monotonic; when what it has taken into memory is stored,
                                           by the model; 0: it stores what it takes */
    atomic_uint readers;                /* reads under way */
    atomic_uint_fast64_t unchecked_bytes; /* written since the reserve was looked at */
    atomic_bool checked;                  /* it was, once */
    atomic_bool short_of_space;           /* less is free than the reserve */
    atomic_uint object;                   /* esdm__monitor_object(); 0: not asked yet */
    atomic_bool told;                     /* what it asked for twice is in the statistics */
    /* Set when the session is made: */
    esdm__monitor *monitor; /* borrowed from the session */
    bool slow;              /* measured: calls wait for a device */
    double cost;            /* of the configuration */
    bool retiring;          /* likewise: nothing new goes there */
    uint64_t reserve_bytes; /* likewise */
    uint64_t read_bytes;    /* as the plug-in's, or as measured: what a read costs, in bytes */
    bool measured;          /* it is from a measurement, or stated */
    /* Of one that nobody has measured, as the first reads with holes have shown (io/read/jobs.h):
     * the largest hole that one request spans; 0: not known; 1: none, requests are cheap. */
    atomic_uint_fast64_t hole_bytes;
} esdm__target;

/**
 * Opens the targets of a session that need no network. @param strict one that cannot be opened is a
 * failure; otherwise only wrong configurations are, and missing plug-ins. Whatever happens:
 * esdm__targets_close().
 */
esdm_status esdm__targets_open(esdm_session *session, bool strict, esdm_error *err);
/** A session without targets is accepted. */
void esdm__targets_close(esdm_session *session);
/** ESDM_OK when there is one that is open, or can be opened: there is somewhere to write. Else why
 *  the first cannot. */
esdm_status esdm__targets_need_one(esdm_session *session, esdm_error *err);
/**
 * Sees to it that the target is open; without this its handle must not be used. Several threads
 * wait for one attempt, and for some seconds after it its failure is the answer.
 */
esdm_status esdm__target_need(esdm_session *session, esdm__target *target, esdm_error *err);
/** A read that the attempt to open a target may take along. Zero-initialise the rest. */
typedef struct esdm__first_read {
    const char *pack;
    const esdm_range *ranges;
    size_t nranges;
    bool done; /* it was: `status` is that of pack_read(), and `why` tells of a failure */
    esdm_status status;
    esdm_error why;
} esdm__first_read;
/** The same for who wants to read: one that waits for a network is opened and read from at once,
 *  where the plug-in can. What was read is not handed out unless it could be opened. */
esdm_status esdm__target_need_to_read(esdm_session *session, esdm__target *target,
                                      esdm__first_read *read, esdm_error *err);
/** A request has ended that was begun with the target's monitor. @param pieces of one call. */
static inline void
esdm__target_observed(esdm__target *target, const esdm__span *span, esdm__span_kind kind,
                      uint64_t bytes, size_t pieces, esdm_status status)
{
    if (!esdm__span_is_observed(span))
        return;
    uint32_t object = atomic_load(&target->object);
    if (object == 0) {
        object = esdm__monitor_object(span->monitor, NULL, NULL, target->name);
        atomic_store(&target->object, object);
    }
    const esdm__span_facts facts = {.kind = kind,
                                    .object = object,
                                    .bytes = bytes,
                                    .pieces = (uint32_t) pieces,
                                    .status = status};
    esdm__span_stop(span, &facts);
}
/** A write failed there: others ask it last. */
void esdm__target_failed(esdm__target *target);
/** Something was stored there. An append stores where esdm__target_stores_appends(); elsewhere only
 *  a seal or a sync does. */
static inline void
esdm__target_worked(esdm__target *target)
{
    if (atomic_load(&target->full))
        atomic_store(&target->full, false);
}
/** Whether what is appended goes there at once; else it may stay in memory. */
static inline bool
esdm__target_stores_appends(const esdm__target *target)
{
    return target->plugin->pack_recall == NULL;
}
/** It has taken so much into memory that storing it takes `seconds` more. */
void esdm__target_owes(esdm__target *target, double seconds);
/** Storing what it has in memory takes `seconds` from now on. */
void esdm__target_owes_just(esdm__target *target, double seconds);
/** Seconds until what it has taken into memory is stored, by the model. */
double esdm__target_owed_s(esdm__target *target);
/** Whether a target that has failed may be asked in its turn: some time has passed. */
bool esdm__target_is_due(esdm__target *target);
/** Whether this write is the one to do so; another pause, a longer one, begins. */
bool esdm__target_take_turn(esdm__target *target);
/** Looks at the reserves of the targets where it is time to: at first, and whenever a part of the
 *  reserve may have been used up. */
void esdm__targets_check_reserves(esdm_session *session);
/** Whether it could not be opened for a reason that must not be passed over: its configuration is
 *  wrong, or it belongs to somebody else. */
bool esdm__target_is_wrong(esdm_status opened);

#endif
