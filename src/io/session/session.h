/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_SESSION_SESSION_H
#define ESDM_IO_SESSION_SESSION_H

/** @file An open site: plug-ins, pool, cache, memory budget. Immutable but for what locks itself.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "codec/chain.h"
#include "esdm/session.h"
#include "esdm/sys/meta_store.h"
#include "io/session/ahead.h"
#include "io/session/behind.h"
#include "io/session/cache.h"
#include "io/session/earlier.h"
#include "io/session/pool.h"
#include "io/session/room.h"
#include "io/session/target.h"
#include "layout/fragment.h"
#include "monitor/monitor.h"
#include "placement/placement.h"
#include "site/site.h"

/** Blocks of mode archive have at least that, as all blocks of numbers. */
#define ESDM__ARCHIVE_BLOCK_LEAST (UINT64_C(1) << 20)

/** What the functions of io/read/elsewhere.h keep in a session (open files, caches): first member
 *  of a struct of theirs, which locks itself. The first thread that needs it sets it. */
typedef struct esdm__source_state {
    void (*free)(struct esdm__source_state *state);
} esdm__source_state;

/** What other modules leave with a session until it is over: first member of a struct of theirs. */
typedef struct esdm__kept {
    struct esdm__kept *next;
    void (*end)(esdm_session *session, struct esdm__kept *kept);
} esdm__kept;

/** What another process has asked of the metadata store, so that this one need not connect. */
typedef struct esdm__store_told {
    char site_id[ESDM__UUID_BYTES];
    uint64_t configuration; /* esdm__session_store_configuration() there */
    const char *model;      /* texts of io/session/models.h; NULL: none; borrowed */
    const char *observed;
} esdm__store_told;

struct esdm_session {
    esdm__site *site;
    const esdm_meta_plugin *meta;
    void *store;
    esdm__target *targets;
    size_t ntargets;
    pthread_mutex_t target_lock; /* guards what targets say it does; a leaf lock */
    pthread_cond_t target_tried; /* a target is not being opened any more */
    struct esdm__models *models; /* io/session/models.h */
    esdm__monitor *monitor;      /* NULL: nobody observes */
    esdm__pool *pool;
    esdm__behind *behind; /* NULL: who writes stores it before it goes on */
    esdm__cache *cache;
    /* What readers have in memory of blocks that they decode: who waits for a server takes nothing
     * from those who read files. */
    esdm__room *decoding;
    esdm__room *decoding_remote;
    esdm__ahead *ahead;            /* NULL: no target is on a network */
    esdm__ahead_account stepped;   /* what was asked ahead because steps went on */
    esdm__earlier *earlier;        /* NULL: what earlier runs did does not count */
    struct esdm__readers *readers; /* how datasets are read; NULL: that does not count */
    esdm__chain default_chain;
    pthread_mutex_t writer_lock;   /* guards writer; a leaf lock */
    esdm__kept *kept;              /* guarded by writer_lock; owned */
    struct esdm__drainer *drainer; /* upkeep/background.c; guarded by writer_lock */
    /* io/session/journaling.c and io/session/backups.c; guarded by writer_lock */
    struct esdm__journal *journal;
    struct esdm__journal_targets *journal_targets; /* NULL: not begun */
    struct esdm__backup_thread *backup;
    atomic_uint_fast64_t backup_due_s; /* monotonic; 0: nothing was committed */
    atomic_bool changed;               /* something of the catalogue */
    _Atomic uint64_t followed_ns;      /* when saved queries were widened (virtual/follow.c) */
    atomic_bool journal_lacks;         /* and it is told */
    _Atomic(esdm__source_state *) sources[ESDM__SOURCE_KINDS]; /* owned; or NULL */
    char node[256];                                            /* name of this node */
    char writer[192];                                          /* see esdm__session_writer() */
    bool read_only;
    bool told;                 /* by another process, which has asked the store */
    atomic_uint find_most_ms;  /* questions to the store end after so long; 0: no limit */
    atomic_bool serves_others; /* who reads is not the user of this process */
    char *made_site;           /* folder of the default site, when opening this made it */
    atomic_uint replaced;      /* containers that were replaced or removed */
    atomic_uint_fast64_t relieved_containers; /* former ones that were freed to make room */
    atomic_uint_fast64_t relieved_bytes;
    atomic_uint next_pack;                 /* number in the names of packs */
    atomic_uint_fast64_t rescued;          /* reads that another copy had to answer */
    atomic_uint_fast64_t gathered;         /* bytes in gather buffers */
    uint64_t gather_limit_bytes;           /* of them all */
    atomic_uint_fast64_t indexed;          /* bytes of loaded index pages and directories */
    atomic_uint_fast64_t inlined;          /* bytes of data in pending fragments' records */
    uint64_t index_limit_bytes;            /* of each of these, about */
    atomic_uint_fast64_t small_containers; /* new ones that were small as a whole, and */
    atomic_uint_fast64_t small_bytes; /* what of these went to index pages (io/write/small.h) */
    uint32_t streams;                 /* fragments under way at once */
    uint64_t fragment_bytes;          /* preferred: stated, or by the model */
    uint64_t fragment_limit_bytes;    /* largest fragment that a pool thread may have in memory */
    uint64_t archive_block_bytes;     /* blocks of mode archive: as large as memory allows */
};

/** @param told NULL: nothing is. Where the configuration of the store is another one, it does not
 *  count. */
esdm_status esdm__session_new(const esdm_session_options *options, const esdm__store_told *told,
                              esdm_session **ret_session, esdm_error *err);
/** Tells configurations of metadata stores apart. */
uint64_t esdm__session_store_configuration(const esdm_session *session);
void esdm__session_free(esdm_session *session); /* NULL is accepted */
/** Sessions that are opened from now on keep what they do; esdm_records_keep(). */
void esdm__session_keep_records(void);
/** Tells the monitor what was asked ahead and what that gained, and keeps for the next run what was
 *  read. Once. */
void esdm__session_settle_ahead(esdm_session *session);
/** NULL when the site has no such target. */
esdm__target *esdm__session_target(esdm_session *session, const char *name);
/** Whether it may write, as far as permissions go. */
bool esdm__session_writes(const esdm_session *session);
/** ESDM_EACCES of one that may not: why, and what to do. */
esdm_status esdm__session_read_only(const esdm_session *session, esdm_error *err);
/** Whether some target is asked over a network: large requests, several at once, cost least. */
bool esdm__session_is_far(const esdm_session *session);
/** Whether calls of the target wait more than they work: the pool does something else meanwhile. */
bool esdm__target_waits(const esdm__target *target);
/** pack_read() of the target; while a slow one answers, the pool does something else. */
esdm_status esdm__session_read(esdm_session *session, esdm__target *target, const char *pack,
                               const esdm_range *ranges, size_t nranges, esdm_error *err);
/** "user@host:pid program" for snapshots. Asking for the user's name takes time: done at the first
 * commit.
 */
const char *esdm__session_writer(esdm_session *session);
/** Frees garbage containers that nobody has open: records first, then packs. Best effort. */
void esdm__session_collect(esdm_session *session);

#endif
