/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MONITOR_MONITOR_H
#define ESDM_MONITOR_MONITOR_H

/**
 * @file
 * Observes a session: spans (what took from when to when, of which dataset, how many bytes), the
 * span that caused each, and counters.
 *
 * A session that nobody observes has no monitor: NULL, and each span costs one branch. Otherwise
 * a span that ends adds to counters and enters a ring of bounded size; a thread of the monitor
 * empties it into the file. A file that takes nothing, or is full, holds up only that thread: what
 * does not fit into the ring is counted as dropped. No function here waits or fails, but for
 * esdm__monitor_new() and esdm__monitor_free().
 *
 * Threads: locked inside, without a lock on the way of a span.
 */

#include "esdm/status.h"
#include "monitor/options.h"

typedef struct esdm__monitor esdm__monitor;

typedef enum esdm__span_kind {
    ESDM__SPAN_CALL_READ,  /* a NetCDF call that reads */
    ESDM__SPAN_CALL_WRITE, /* one that writes */
    ESDM__SPAN_OPEN,       /* a container is opened or made */
    ESDM__SPAN_CLOSE,      /* its handle is freed, after the last commit */
    ESDM__SPAN_ALIGN,      /* ranks meet before they transfer, or define */
    ESDM__SPAN_READ,       /* a selection of a dataset, to the caller's memory */
    ESDM__SPAN_WRITE,      /* from it */
    ESDM__SPAN_ENCODE,     /* a fragment: codecs, checksums */
    ESDM__SPAN_DECODE,
    ESDM__SPAN_APPEND, /* requests to a target */
    ESDM__SPAN_FETCH,
    ESDM__SPAN_SYNC,
    ESDM__SPAN_SEAL,
    ESDM__SPAN_COMMIT,  /* a container is published */
    ESDM__SPAN_CATALOG, /* the transaction of the metadata store */
    ESDM__SPAN_KINDS
} esdm__span_kind;

/** "write", "append", …; for reports and traces. */
const char *esdm__span_name(esdm__span_kind kind);

/** One that is under way; on the stack of the thread that begins and ends it. */
typedef struct esdm__span {
    esdm__monitor *monitor; /* NULL: nobody observes */
    uint64_t id;
    uint64_t cause; /* id of the span in which it began; 0: none */
    uint64_t start_ns;
} esdm__span;

/**
 * @param options borrowed. No modules: *ret_monitor is NULL.
 * A file that cannot be opened is no failure: the statistics tell, and what it would have got is
 * counted as dropped.
 */
esdm_status esdm__monitor_new(const esdm__monitor_options *options, esdm__monitor **ret_monitor,
                              esdm_error *err);
/** At the end of a program that cannot free the monitor, since other threads may be in a span: as
 *  esdm__monitor_free(), but it stays usable; what ends later is not written. NULL is accepted. */
void esdm__monitor_settle(esdm__monitor *monitor);
/** Writes what is left, for at most some seconds, and the statistics. No span may be under way.
 *  NULL is accepted. */
void esdm__monitor_free(esdm__monitor *monitor);

/**
 * The number of what spans are about. The same names have the same number; beyond some thousand
 * all have 1, which has no name. @param container,dataset,target each may be NULL; copied.
 * @return never 0, which stands for "not asked yet" where callers keep it.
 */
uint32_t esdm__monitor_object(esdm__monitor *monitor, const char *container, const char *dataset,
                              const char *target);

/** What a span was about, when it ends. */
typedef struct esdm__span_facts {
    esdm__span_kind kind;
    uint32_t object; /* esdm__monitor_object(); 0: nothing in particular */
    uint64_t bytes;
    uint64_t stored_bytes; /* encode and decode: with codecs; others 0 */
    uint32_t pieces;       /* requests of one call; 0 counts as 1 */
    esdm_status status;
    char *detail; /* further members of its line in a trace, `,"handle":7`; owned, taken over by
                     esdm__span_stop(); NULL: none */
} esdm__span_facts;

/** Whether spans are written one by one, so that details of them make sense. NULL is accepted. */
bool esdm__monitor_traces(const esdm__monitor *monitor);

void esdm__span_start(esdm__span *span);
void esdm__span_stop(const esdm__span *span, const esdm__span_facts *facts);

/** Begins a span on this thread. With `monitor` NULL nothing happens then and at its end. */
static inline void
esdm__span_begin(esdm__span *span, esdm__monitor *monitor)
{
    span->monitor = monitor;
    if (__builtin_expect(monitor != NULL, 0))
        esdm__span_start(span);
}

static inline bool
esdm__span_is_observed(const esdm__span *span)
{
    return __builtin_expect(span->monitor != NULL, 0);
}

/** The span that is under way on this thread; 0: none. */
uint64_t esdm__span_current(void);
/** Spans of this thread have this cause from now on: for threads that work for another one.
 *  @return what it was before. */
uint64_t esdm__span_adopt(uint64_t cause);

/* ---- what a replay needs to know (structure.c) ------------------------------------------------
 */

/** A selection, as details of a span: handle, type in memory, offset, size and, where it is not 1,
 *  stride of each dimension. @param memory name of a type; NULL: one of the user.
 *  @return owned; NULL: no memory. */
char *esdm__detail_selection(uint64_t handle, const char *memory, uint32_t rank,
                             const uint64_t *offset, const uint64_t *size, const uint64_t *stride);
/** A handle that is opened. @param mode "create", "replace", "read" or "write". @param ranks that
 *  share it, of which this is number `rank`; 0: one process. */
char *esdm__detail_opening(uint64_t handle, const char *mode, int ranks, int rank);
/** Ranks that meet. @param selection of esdm__detail_selection(), taken over; NULL: none. */
char *esdm__detail_meeting(uint64_t handle, bool writing, char *selection);
/** A handle alone. */
char *esdm__detail_handle(uint64_t handle);

typedef struct esdm__dimension_facts {
    uint32_t id; /* in the container */
    const char *name;
    uint64_t length;
    bool unlimited;
} esdm__dimension_facts;

/** What a dataset is; all borrowed. */
typedef struct esdm__dataset_facts {
    uint64_t handle;  /* of its container */
    uint32_t object;  /* names of container and dataset */
    const char *type; /* NULL: one of the user */
    uint32_t id;      /* in the container, in order of creation */
    uint32_t rank;
    const esdm__dimension_facts *dimensions;
    const uint64_t *chunk; /* NULL: none was stated; the same of the others */
    const char *codec;
    const char *accuracy;
} esdm__dataset_facts;

/** Whether this is asked for the first time of the object. */
bool esdm__monitor_is_new(esdm__monitor *monitor, uint32_t object);
/** A line of the trace that tells what a dataset is. Nothing without a trace. */
void esdm__monitor_dataset(esdm__monitor *monitor, const esdm__dataset_facts *facts);

/* ---- what ESDM did by itself ------------------------------------------------------------------
 */

/** Requests that nobody had asked for yet, and what they gained; texts are borrowed. */
/** Reads (`requests`) of a variable that was cut for its readers; `gained_ns` or `cost_ns` to what
 *  they would have taken of fragments as usual, where that is known. */
#define ESDM__ACTION_SHAPE "shape for readers"
/** A trace that began by itself (rules.h): spans (`requests`) and bytes of it; `stopped` says why
 * it began. */
#define ESDM__ACTION_DETAIL "detailed monitoring"

/** Reads that waited so long for an answer that a target asked for them again (`requests`); the
 *  second answer came first (`used`). */
#define ESDM__ACTION_SECOND "second requests"

typedef struct esdm__action {
    const char *kind;      /* "read-ahead", "earlier runs", ESDM__ACTION_SHAPE, … */
    const char *container; /* NULL: of the whole session; so the dataset */
    const char *dataset;
    uint64_t requests;
    uint64_t used; /* of them */
    uint64_t bytes;
    uint64_t gained_ns;  /* that requests took while nobody waited for them */
    uint64_t cost_ns;    /* that it took to ask */
    const char *stopped; /* why it ended; NULL: it did not */
} esdm__action;

/** A line of the statistics. NULL is accepted as monitor. */
void esdm__monitor_action(esdm__monitor *monitor, const esdm__action *action);

/* ---- what is usual (usual.c, rules.c) ---------------------------------------------------------
 */

/** Seconds of one request, of 2^(FIRST + STEP * i) bytes, while 2^k of them are under way; all
 *  above 0. */
#define ESDM__TIMES_FIRST   9
#define ESDM__TIMES_STEP    2
#define ESDM__TIMES_BYTES   10
#define ESDM__TIMES_AT_ONCE 7
typedef struct esdm__monitor_times {
    double seconds[ESDM__TIMES_BYTES][ESDM__TIMES_AT_ONCE];
} esdm__monitor_times;

/** Whether esdm__monitor_expect() is of use. NULL is accepted. */
bool esdm__monitor_has_rules(const esdm__monitor *monitor);
/** What the site's model says of requests to a target. Once for each target and direction, when the
 *  session begins. @param target,times borrowed. */
void esdm__monitor_expect(esdm__monitor *monitor, const char *target, bool reading,
                          const esdm__monitor_times *times);

/* ---- what sessions did so far (sofar.c) -------------------------------------------------------
 */

/** What monitors of this process that have ESDM__MONITOR_KEEP counted and kept, as a trace; see
 *  esdm_records_write(). @param ret_text owned, free(). */
esdm_status esdm__sofar_text(char **ret_text, size_t *ret_bytes, esdm_error *err);

/* ---- what was counted ------------------------------------------------------------------------ */

#define ESDM__SPAN_SIZES 8 /* < 1, 4, 16, 64, 256 KiB, 1, 4 MiB, and more */

typedef struct esdm__span_counts {
    uint64_t count;
    uint64_t failed;
    uint64_t pieces;
    uint64_t bytes;
    uint64_t stored_bytes;
    uint64_t ns;
    uint64_t longest_ns;
    uint64_t sizes[ESDM__SPAN_SIZES];
} esdm__span_counts;

/** What was counted of one kind, over all objects. */
void esdm__monitor_total(const esdm__monitor *monitor, esdm__span_kind kind,
                         esdm__span_counts *ret_counts);
/** Spans that no file has taken. */
uint64_t esdm__monitor_dropped(const esdm__monitor *monitor);

#endif
