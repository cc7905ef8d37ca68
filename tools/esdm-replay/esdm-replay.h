/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_REPLAY_H
#define ESDM_REPLAY_H

/**
 * @file
 * What the files of this tool share: what was recorded, and its replay. One thread, unless said;
 * what is loaded stays until the end.
 */

#include "common/common.h"

/* ---- what was recorded (load.c) ---------------------------------------------------------------
 */

typedef enum replay_kind {
    REPLAY_OPEN,
    REPLAY_CREATE, /* with the definitions that belong to it */
    REPLAY_READ,
    REPLAY_WRITE,
    REPLAY_ALIGN, /* ranks meet */
    REPLAY_COMMIT,
    REPLAY_CLOSE,
    REPLAY_KINDS
} replay_kind;

typedef struct replay_dimension {
    guint32 id; /* in its container */
    char *name;
    guint64 length; /* when the dataset was first used */
    bool unlimited;
} replay_dimension;

typedef struct replay_dataset {
    char *path;     /* "/group/tas" */
    guint32 id;     /* in its container, in order of creation */
    esdm_type type; /* ESDM_TYPE_NONE: of the user, which is not replayed */
    guint rank;
    replay_dimension dimensions[ESDM_MAX_RANK];
    guint64 *chunk; /* NULL: none was stated; the same of the others */
    char *codec;
    bool compressed; /* in some way */
    char *accuracy;
    /* Of an input: the box around all that is read of it before it could be written. */
    bool is_read;
    guint64 first[ESDM_MAX_RANK];
    guint64 end[ESDM_MAX_RANK];
} replay_dataset;

/** A container by its name, as long as nobody makes another one of that name. */
typedef struct replay_file {
    char *name;
    guint number;      /* of its scratch name */
    bool input;        /* it was there before */
    GPtrArray *inputs; /* replay_dataset of an input */
    guint64 first_ns;  /* of its first open */
} replay_file;

/** An open container of a process. */
typedef struct replay_handle {
    guint64 id;
    replay_file *file;
    bool creates;
    bool replaces;
    bool writes;
    bool commits;        /* when it is closed */
    guint ranks;         /* that share it; 0: one process */
    guint rank;          /* of them */
    guint meeting;       /* 1 + the number of those who share it; 0: nobody does */
    GPtrArray *datasets; /* replay_dataset */
    guint number;        /* in its process */
} replay_handle;

/** That so many operations of a process have been done. */
typedef struct replay_wait {
    guint process;
    guint64 operations;
} replay_wait;

typedef struct replay_operation {
    replay_kind kind;
    replay_handle *handle;
    replay_dataset *dataset; /* reads and writes */
    esdm_type memory;
    esdm_dataspace *space; /* of an align NULL: nothing */
    bool writing;          /* an align */
    guint64 start_ns;      /* of the epoch */
    guint64 ns;
    guint64 bytes;
    guint64 id;
    guint64 cause;
    gint32 thread;
    GArray *waits; /* replay_wait; NULL: none */
} replay_operation;

typedef struct replay_process {
    char *program;
    char *host;
    int pid;
    int rank;
    guint64 ahead_ns; /* of its clock to the epoch's; modulo 2^64 */
    GPtrArray *handles;
    GHashTable *by_id;
    GArray *operations; /* replay_operation, in order of start */
    GArray *waits;      /* replay_wait: before it starts; NULL: none */
    guint64 start_ns;
    guint64 end_ns;
} replay_process;

typedef struct replay_load {
    GPtrArray *processes; /* in order of start; each has operations */
    GPtrArray *files;
    guint32 datasets; /* of plain files, so far */
    GArray *meetings; /* guint: of how many ranks */
    guint64 left_out; /* calls on types of the user */
    guint64 failed;   /* calls that failed when they were recorded */
    guint64 damaged;  /* lines that are no JSON */
    guint64 dropped;  /* spans that the record lacks, as it says */
    guint64 written_bytes;
    guint64 input_bytes;
} replay_load;

/** Of a record that is being read. */
replay_process *replay_process_new(replay_load *load, int pid);
replay_file *replay_file_named(replay_load *load, GHashTable *files, const char *name);
replay_handle *replay_handle_new(replay_process *process, replay_file *file, guint64 id);
replay_dataset *replay_dataset_in(const GPtrArray *datasets, const char *path);
/** NetCDF calls on plain files, of a folder of esdm-run --records (watched.c). @param files by
 * name. */
tool_exit replay_load_watched(replay_load *load, const char *folder, GHashTable *files);

/** Reads a trace (JSON Lines of "monitor"), or all `*.jsonl` of a folder. What is wrong in them is
 *  told. @param count of paths. */
tool_exit replay_load_paths(char **paths, guint count, replay_load *ret);
/** Finds out what is an input and who waits for whom, after all was read (order.c). */
tool_exit replay_settle(replay_load *load);

/** Finds which handles of which processes were one that ranks shared (ranks.c). */
tool_exit replay_find_meetings(replay_load *load);

/* ---- values (values.c) ------------------------------------------------------------------------
 */

/** Numbers that look like those of models, or those of a container; many threads once it is made.
 */
typedef struct replay_values replay_values;
/** @param data container whose values are taken; NULL: none. @param session NULL when there is
 * none.
 */
tool_exit replay_values_new(const replay_load *load, esdm_session *session, const char *data,
                            replay_values **ret);
/** Fills `count` elements of the type in memory. Texts of strings stay owned by the values. */
void replay_values_fill(const replay_values *values, const replay_dataset *dataset,
                        esdm_type memory, void *buffer, guint64 count, guint64 seed);

/* ---- the replay -------------------------------------------------------------------------------
 */

typedef struct replay_options {
    const char *prefix; /* of scratch names */
    const char *data;
    bool think; /* wait as the program did between its calls */
    bool keep;
} replay_options;

/** The name of a file in the replay; owned. */
char *replay_name(const replay_options *options, const replay_file *file);
/** Makes the datasets of a handle or an input (structure.c). */
esdm_status replay_define(esdm_container *container, const GPtrArray *datasets, bool with_lengths,
                          esdm_error *err);
esdm_dataset *replay_find(esdm_container *container, const char *path);

/** Makes the inputs (prepare.c). */
tool_exit replay_prepare(const replay_load *load, const replay_options *options,
                         const replay_values *values, esdm_session *session);
/** Removes what has a scratch name. */
tool_exit replay_remove(const replay_load *load, const replay_options *options);

/** What processes of the replay share; in memory that all of them see. */
typedef struct replay_shared {
    int ready; /* atomic, as all here: processes that are */
    int go;
    int stop;
    int failed;    /* 1 + the process that failed first */
    int working;   /* processes that have not ended */
    int waiting;   /* of these, for others */
    guint64 steps; /* that any of them has made */
    char why[600];
} replay_shared;

static inline void
replay_wait_begin(replay_shared *shared)
{
    (void) __atomic_fetch_add(&shared->waiting, 1, __ATOMIC_SEQ_CST);
}

static inline void
replay_wait_end(replay_shared *shared)
{
    (void) __atomic_fetch_sub(&shared->waiting, 1, __ATOMIC_SEQ_CST);
}

/** Whether each process waits for another one. */
static inline bool
replay_all_wait(const replay_shared *shared)
{
    return __atomic_load_n(&shared->waiting, __ATOMIC_SEQ_CST) >=
           __atomic_load_n(&shared->working, __ATOMIC_SEQ_CST);
}

/** Where the ranks that share a container meet; in memory that all of them see (comm.c). */
typedef struct replay_meeting replay_meeting;
gsize replay_meeting_bytes(guint ranks);
/** @param meeting that many bytes of zeros. @param shared borrowed. */
void replay_meeting_init(replay_meeting *meeting, guint ranks, replay_shared *shared);
/** Owned. */
esdm_comm *replay_meeting_comm(replay_meeting *meeting, guint rank);
/** This rank has done all; others that wait for it fail. */
void replay_meeting_leave(replay_meeting *meeting);

typedef struct replay_progress {
    guint64 done; /* operations, in order */
    guint64 start_ns;
    guint64 end_ns;
} replay_progress;

/** One process of the replay. */
typedef struct replay_player {
    const replay_load *load;
    const replay_options *options;
    const replay_values *values;
    const replay_process *process;
    replay_shared *shared;
    replay_progress *all; /* of each process */
    replay_meeting **meetings;
    guint number; /* of this process */
    guint64 *ns;  /* receives the time of each of its operations */
} replay_player;

/** Does what a process did; in a process of its own (play.c). @return exit status. */
int replay_play(const replay_player *player);

typedef struct replay_sum {
    guint64 calls;
    guint64 bytes;
    double seconds;
    double recorded;
} replay_sum;

typedef struct replay_result {
    replay_sum sums[REPLAY_KINDS];
    double seconds;        /* from the first call to the end of the last one */
    double recorded;       /* the same, of the record */
    double recorded_calls; /* the longest that a process of the record spent in calls */
    double prepare_s;
} replay_result;

/** Makes the inputs, starts a process for each recorded one, waits for all, and removes what they
 *  made (crew.c). */
tool_exit replay_run(const replay_load *load, const replay_options *options, replay_result *ret);
bool replay_stopped(void);

/** Lets what the replay writes go to one target of the site: from here on the tool uses another
 *  configuration (target.c). @param ret_path its file, for the caller to remove; owned. */
tool_exit replay_use_target(const char *target, const char *prefix, char **ret_path);

const char *replay_kind_name(replay_kind kind);
void replay_report(const replay_load *load, const replay_result *result, bool compare);
json_t *replay_report_json(const replay_load *load, const replay_result *result);

#endif
