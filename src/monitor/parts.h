/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MONITOR_PARTS_H
#define ESDM_MONITOR_PARTS_H

/** @file What the files of this folder share. */

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "monitor/monitor.h"

/* ---- ring.c: spans on their way to a file ---------------------------------------------------- */

typedef struct esdm__record {
    uint64_t id;
    uint64_t cause;
    uint64_t start_ns; /* CLOCK_MONOTONIC */
    uint64_t ns;
    uint64_t bytes;
    uint64_t stored_bytes;
    uint32_t object;
    uint32_t pieces;
    int32_t thread;
    int16_t kind; /* ESDM__SPAN_KINDS: no span, but a line, which is its detail */
    int16_t status;
    char *detail; /* owned; or NULL */
} esdm__record;

typedef struct esdm__ring esdm__ring;

/** Room for at least one record, and for as many as fit. NULL: out of memory. */
esdm__ring *esdm__ring_new(uint64_t bytes);
void esdm__ring_free(esdm__ring *ring); /* NULL is accepted */
/** Any thread; never waits. False: it is full. */
bool esdm__ring_put(esdm__ring *ring, const esdm__record *record);
/** One thread. False: it is empty. */
bool esdm__ring_take(esdm__ring *ring, esdm__record *ret_record);

/* ---- recent.c: the last requests ------------------------------------------------------------- */

typedef struct esdm__recent esdm__recent;

#define ESDM__RECENT_MOST 1024u /* with 80 bytes each */

#define ESDM__KEPT_MOST 8192u /* the same, of ESDM__MONITOR_KEEP */

/** Room for the last `most` requests. NULL: out of memory. */
esdm__recent *esdm__recent_new(uint32_t most);
void esdm__recent_free(esdm__recent *recent); /* NULL is accepted */
/** Any thread; never waits. Its detail is not kept. */
void esdm__recent_put(esdm__recent *recent, const esdm__record *record);
/** The oldest record that was not taken yet; by one thread alone. false: there is none. */
bool esdm__recent_take(esdm__recent *recent, esdm__record *ret_record);
/** How many were put. Any thread. */
uint64_t esdm__recent_count(const esdm__recent *recent);
/** Any thread, and again: number `number` from 0. False: a later one has its place, or it is just
 *  being written. */
bool esdm__recent_see(esdm__recent *recent, uint64_t number, esdm__record *ret_record);

/* ---- objects.c: names and counters ----------------------------------------------------------- */

/* Each addition locks a line of the CPU's cache: what is nearly always 0 is not added, and calls
 * are those of all sizes. */
typedef struct esdm__counts {
    atomic_uint_fast64_t failed, more_pieces, bytes, stored_bytes, ns, longest_ns;
    atomic_uint_fast64_t sizes[ESDM__SPAN_SIZES];
} esdm__counts;

typedef struct esdm__object {
    char *container; /* owned; as JSON, with quotes; NULL: none */
    char *dataset;
    char *target;
    char *plain[3]; /* the three, as UTF-8; owned; NULL: none */
    char *members;  /* the three, as members of a line of a trace; owned */
    size_t member_bytes;
    char *key;              /* the three, for comparison */
    atomic_bool described;  /* by esdm__monitor_is_new() */
    uint32_t target_number; /* of its target, see esdm__objects; 0: none */
    esdm__counts counts[ESDM__SPAN_KINDS];
} esdm__object;

#define ESDM__OBJECTS_MAX 4096u
#define ESDM__TARGETS_MAX 64u

/** Kinds of requests that rules look at: transactions of the catalogue have no target. */
#define ESDM__REQUEST_KINDS 5u
extern const esdm__span_kind esdm__request_kinds[ESDM__REQUEST_KINDS];

/* Of all requests of one kind to a target, so that rules need not look at each dataset. */
typedef struct esdm__total {
    atomic_uint_fast64_t count, bytes, ns;
} esdm__total;

typedef struct esdm__objects {
    const char *targets[ESDM__TARGETS_MAX]; /* borrowed; 0: what has none, as the catalogue */
    atomic_uint ntargets;                   /* more of them count for 0 targets, thus not */
    esdm__total totals[ESDM__TARGETS_MAX][ESDM__REQUEST_KINDS];
    _Atomic(esdm__object *) list[ESDM__OBJECTS_MAX]; /* 0 is not used, 1: others */
    atomic_uint count;
    pthread_mutex_t lock; /* guards additions; a leaf lock */
} esdm__objects;

bool esdm__objects_init(esdm__objects *objects);
void esdm__objects_clear(esdm__objects *objects);
uint32_t esdm__objects_find(esdm__objects *objects, const char *container, const char *dataset,
                            const char *target);
const esdm__object *esdm__objects_get(const esdm__objects *objects, uint32_t number);
void esdm__objects_add(esdm__objects *objects, const esdm__record *record);
/** Index in esdm__request_kinds; -1: it is no request. */
int esdm__request_index(int kind);
/** Adds to the totals. @param request of esdm__request_index(). */
void esdm__objects_add_total(esdm__objects *objects, const esdm__record *record, int request);
void esdm__counts_read(const esdm__counts *counts, esdm__span_counts *ret_counts);

/* ---- node.c: the node ------------------------------------------------------------------------ */

/** Totals since the node was started; -1: not readable here. */
typedef struct esdm__node_sample {
    uint64_t at_ns;
    double cpu_busy_s; /* over all cores */
    double cpu_wait_s; /* idle while a device had requests */
    double cpu_all_s;
    double memory_bytes; /* available, at this moment */
    double dirty_bytes;  /* to be written back, at this moment */
    double net_in_bytes;
    double net_out_bytes;
    double disk_read_bytes;
    double disk_write_bytes;
    double disk_busy_s;
    double energy_j;
    double self_read_bytes; /* of this process, from devices */
    double self_write_bytes;
} esdm__node_sample;

void esdm__node_read(esdm__node_sample *ret_sample);

/** What a node did between two samples: seconds, and what else has a total. */
#define ESDM__NODE_TOTALS 12u
extern const char *const esdm__node_total_names[ESDM__NODE_TOTALS];
/** @param ret_totals in the order of their names; -1: not readable here. */
void esdm__node_totals(const esdm__node_sample *before, const esdm__node_sample *now,
                       double ret_totals[ESDM__NODE_TOTALS]);

/* ---- sink.c: the file ------------------------------------------------------------------------ */

typedef struct esdm__who {
    pid_t pid;
    int rank; /* -1: none */
    char host[64];
    char job[128];     /* of the scheduler or of MPI; else node and group of processes */
    char program[256]; /* as JSON, with quotes */
    uint64_t realtime_ns;
    uint64_t monotonic_ns;
} esdm__who;

void esdm__who_ask(esdm__who *ret_who);
/** %h, %p, %r: node, process, rank (0 without one), %%: a percent sign. A relative name
 *  begins in the current folder. URLs are taken as they are. Owned; NULL: no memory. */
char *esdm__monitor_file(const char *pattern, const esdm__who *who);

/** How lines of spans begin, by kind. */
typedef struct esdm__span_heads {
    struct {
        char text[80];
        size_t bytes;
    } of[ESDM__SPAN_KINDS];
} esdm__span_heads;

void esdm__span_heads_init(esdm__span_heads *heads, const esdm__who *who);
/** Of a span's line without its texts: names of members, and numbers. */
#define ESDM__LINE_BYTES (160u + 10 * 21u)
/** A line of JSON of ESDM__LINE_BYTES and the bytes of the object's members and of the detail at
 *  most. @return its end. */
char *esdm__put_span(char *at, const esdm__span_heads *heads, const esdm__object *object,
                     const esdm__record *record);

typedef struct esdm__sink {
    struct esdm__database *database; /* borrowed; NULL: a file, of which the rest tells */
    char *path;                      /* owned; made when there is something to write */
    const esdm__who *who;            /* borrowed */
    bool opened;
    int fd;             /* -1: could not be opened: `failure` tells */
    atomic_int failure; /* errno; 0: none */
    bool chrome;
    bool cut;       /* a line has begun and could not be ended */
    uint32_t lines; /* in the text */
    uint64_t lost;  /* lines that could not be written */
    uint64_t bytes; /* that the file has got */
    esdm__span_heads heads;
    size_t used;
    char text[1 << 16];
} esdm__sink;

/** @param path taken over. The file is opened with the first line, for appending. */
void esdm__sink_init(esdm__sink *sink, char *path, const esdm__who *who);
/** As esdm__sink_init() of a file that is open. @param fd taken over. */
void esdm__sink_use(esdm__sink *sink, int fd, char *path, const esdm__who *who);
/** A line that is written as it is, of JSON Lines alone. */
bool esdm__sink_line(esdm__sink *sink, const char *line, const atomic_bool *give_up);
/** One line; false: it was not taken, and is lost. May wait for the file. */
bool esdm__sink_record(esdm__sink *sink, const esdm__object *object, const esdm__record *record,
                       const atomic_bool *give_up);
bool esdm__sink_sample(esdm__sink *sink, const esdm__node_sample *before,
                       const esdm__node_sample *now, const atomic_bool *give_up);
/** What was dropped so far, as a line. */
void esdm__sink_dropped(esdm__sink *sink, uint64_t dropped, const atomic_bool *give_up);
bool esdm__sink_flush(esdm__sink *sink, const atomic_bool *give_up);
void esdm__sink_close(esdm__sink *sink);

/* ---- sofar.c: what is asked for while sessions go on ----------------------------------------- */

/** Keeps a span that has ended, if it is one that tells what the program did. */
void esdm__sofar_note(esdm__monitor *monitor, const esdm__record *record);
void esdm__sofar_add(esdm__monitor *monitor);
/** Waits for esdm_records_write() in another thread. */
void esdm__sofar_remove(esdm__monitor *monitor);

/* ---- stats.c: the statistics ----------------------------------------------------------------- */

struct esdm__monitor {
    esdm__monitor_options options;
    esdm__who who;
    esdm__objects objects;
    esdm__recent *recent; /* requests before a trace; NULL: there are no rules */
    esdm__recent *kept;   /* for esdm_records_write(); NULL: not ESDM__MONITOR_KEEP */
    struct esdm__monitor *previous, *next; /* of those with `kept`, in sofar.c */
    esdm__ring *ring; /* NULL: there was no trace yet; others than the thread look at `tracing` */
    atomic_bool tracing;               /* spans are written one by one */
    bool samples;                      /* of the node, too; of the thread alone */
    struct esdm__reasoner *reasoner;   /* of the thread alone; NULL: there are no rules */
    struct esdm__expectations *expect; /* what the site's model says; guarded by `lock` */
    char *unusual;                     /* as `actions`, of what was unusual alone */
    atomic_uint_fast64_t next_id;
    atomic_uint_fast64_t dropped;
    atomic_uint_fast64_t written;
    esdm__sink *sink;                      /* of the thread alone while that runs; NULL: no trace */
    struct esdm__database *trace_database; /* of the thread alone, too; NULL: none */
    struct esdm__database *stats_database; /* the same; may be the same one */
    atomic_bool has_stats;                 /* they are in their database */
    esdm__node_sample first;
    esdm__node_sample last; /* of the thread alone while that runs */
    pthread_t thread;
    bool has_thread;
    bool abandoned;      /* the thread waits for its file for ever, and uses all this */
    atomic_bool settled; /* the end was written */
    atomic_bool stop;
    atomic_bool give_up;   /* the file is not waited for any more */
    pthread_mutex_t lock;  /* for the condition; guards `actions`, `unusual`, `expect` */
    char *actions;         /* owned; JSON objects, with commas; NULL: none */
    pthread_cond_t wakeup; /* stop has changed */
};

/** One line of JSON, appended to the file; when a database has them already, nothing. */
void esdm__stats_write(esdm__monitor *monitor);
/** The same line. In a plain locale. */
void esdm__stats_print(FILE *out, esdm__monitor *monitor);
/** Whether the program has done nothing with ESDM. */
bool esdm__stats_are_empty(const esdm__monitor *monitor);
uint64_t esdm__monitor_now_ns(void);
/** Where the site keeps runs, a trace that nobody has named lies beside them. */
bool esdm__monitor_is_beside_runs(const esdm__monitor *monitor);
/** Opens the trace: ring, and file or database. What there is stays. */
esdm_status esdm__monitor_open_trace(esdm__monitor *monitor, esdm_error *err);
/** Writes what is in the ring, or a part of it that takes no long time. The thread alone. */
void esdm__monitor_drain(esdm__monitor *monitor);
/** Appends to a list of JSON objects. With the lock held. */
void esdm__monitor_join(char **list, const char *object);
struct json_t;
/** As statistics tell it. Owned; NULL: no memory. */
struct json_t *esdm__action_json(const esdm__action *action);
/** Into the ring, or counted as dropped; takes its detail over. */
void esdm__monitor_put(esdm__monitor *monitor, const esdm__record *record);

#endif
