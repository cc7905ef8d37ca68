/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_S3_LANE_H
#define ESDM_BACKEND_S3_LANE_H

/**
 * @file
 * One thread of a client, with connections of its own: it drives its requests with libcurl's multi
 * interface, attempt after attempt.
 */

#include <pthread.h>

#include "hedge.h"
#include "transfer.h"

/** In the order in which they came. Zeroed: empty. A transfer is in one list at a time. */
typedef struct s3__transfers {
    s3__transfer *first;
    s3__transfer *last;
} s3__transfers;

/** What the lanes of a client have in common. */
typedef struct s3__lane_shared {
    const s3__options *options;         /* borrowed */
    const s3__credentials *credentials; /* borrowed */
    pthread_mutex_t lock; /* guards what follows, what is marked in lanes, results; a leaf */
    int64_t skew_s;
    s3__hedges hedges;
    s3__transfers queue; /* of requests that no lane had a connection for */
} s3__lane_shared;

typedef struct s3__lane {
    s3__lane_shared *shared; /* borrowed */
    CURLM *multi;
    uint32_t connections; /* at most */
    pthread_t thread;

    /* Guarded by the lock. */
    s3__transfers submitted;
    uint64_t load; /* bytes of requests that are not done, about */
    uint32_t held; /* requests that have a connection or want one: not those that pause */
    bool started;
    bool stop;
    bool canceling; /* some request under way was canceled */

    /* The thread's own. */
    s3__transfers ready;   /* to be sent when a connection is free */
    s3__transfers waiting; /* for their next attempt */
    s3__transfers active;
    uint32_t nactive;
    CURL **idle; /* handles kept for reuse */
    uint32_t nidle;
    uint64_t random;
    s3__signer signer;
} s3__lane;

/** Fills a zeroed lane. false: out of memory; s3__lane_clear() frees what is there. */
bool s3__lane_init(s3__lane *lane, s3__lane_shared *shared, uint32_t connections);
/** Ends its thread. No request may be under way. */
void s3__lane_clear(s3__lane *lane);
/** Starts its thread, which blocks all signals, unless it runs. With the lock held. */
bool s3__lane_start(s3__lane *lane);
/** Whether a request would be sent at once. With the lock held. */
bool s3__lane_has_room(const s3__lane *lane);
/** Takes over a request that has its transfer; wake `multi` after it. With the lock held. */
void s3__lane_take(s3__lane *lane, s3__request *request);
/** For a request that no lane has room for: the first that has takes it. With the lock held. */
void s3__lane_queue(s3__lane_shared *shared, s3__request *request);
/** Ends a request that is in the queue still. @return whether it was. With the lock held. */
bool s3__lane_unqueue(s3__lane_shared *shared, s3__request *request);

#endif
