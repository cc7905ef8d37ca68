/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_EXPLAIN_H
#define ESDM_EXPLAIN_H

/** @file What the files of this tool share. One thread; what is loaded stays until the end. */

#include "common/common.h"
#include "watch/calls.h"
#include "watch/records.h"

/** One process of the run. */
typedef struct process {
    watch_head head;
    GPtrArray *objects; /* by number of the entry, from 1; NULL: not ready */
    watch_box *boxes;   /* of variables' calls; NULL: none */
    guint64 box_count;
    guint64 end_ns;   /* of the process, or of its last call */
    guint64 calls_ns; /* that its threads spent in calls, the outermost ones */
} process;

/** A call, with what it is about. */
typedef struct call {
    guint64 start_ns;
    guint64 ns;
    guint64 bytes;
    guint64 wanted;
    guint64 position;
    struct object *object;
    struct process *process;
    const watch_box *box; /* of a variable; NULL: none was noted */
    const char *name;     /* of what ESDM itself recorded; NULL: that of `op` */
    guint32 thread;
    watch_kind kind;
    guint16 op;
    guint16 flags; /* WATCH_FLAG_… */
    bool failed;
    bool nested;   /* in a NetCDF call */
    bool follows;  /* goes on where the one before ended in this file */
    guint8 beside; /* calls of data under way when it began, itself not counted; at most 255 */
    const struct time_class *class; /* of reads and writes that moved bytes; NULL: of none */
} call;

/** How the reads or the writes of a file follow each other. */
typedef struct pattern {
    guint64 calls;
    guint64 following; /* begin where one before ended */
    guint64 strided;   /* at the distance at which one before followed */
    guint64 stride;    /* bytes; the most frequent distance */
    guint64 stride_calls;
    guint64 typical_bytes; /* the size of most bytes' calls */
} pattern;

/** A file, variable or data set, of all processes. */
typedef struct object {
    guint32 kind; /* WATCH_FILE, … */
    char *name;   /* of the file */
    char *variable;
    watch_entry entry; /* as the first process has it, with the counters of all */
    guint processes;
    bool target; /* of ESDM: whatever storage is behind it (spans.c) */
    pattern reads;
    pattern writes;
    guint64 nested_ns; /* of a file: in NetCDF calls */
    /* Of a file, all processes together (openings.c): */
    guint64 openings;        /* those that read much; 0: not known */
    guint64 opening_bytes;   /* what one of them read at most */
    guint64 openings_bytes;  /* what all openings read */
    guint opening_processes; /* that opened it so */
    /* Of a file by MPI (ranks.c): */
    GPtrArray *asked;  /* hints, "KEY=VALUE"; NULL: none were noted */
    GPtrArray *chosen; /* by earlier runs (hints.c) */
    GPtrArray *used;
    const char *hints_text; /* what earlier runs say of hints, in a sentence; NULL: nothing */
    double hints_gain_s;    /* of this run, in calls of all ranks */
    guint64 calls_with_gaps;
    guint64 waiting_ns; /* in collective calls until the last rank called, all ranks together */
    gint latest;        /* the rank for which others waited longest; -1: none */
} object;

typedef struct span_total {
    char *kind;
    char *container;
    char *dataset;
    char *target;
    guint64 count;
    guint64 bytes;
    guint64 stored_bytes;
    double seconds;
} span_total;

/** What ESDM asked of targets by itself, before the program wanted it. */
typedef struct action {
    char *kind;
    char *container; /* NULL: of a whole session */
    char *dataset;
    char *stopped; /* why it ended; NULL: it did not */
    guint64 requests;
    guint64 used;
    guint64 bytes;
    double gained_s;
    double cost_s;
    /* Of detailed monitoring that began by itself: */
    char *at;      /* time of day; NULL: a database does not tell */
    char *because; /* NULL: it is another action */
    char *trace;   /* file; NULL: not known, or there is none */
    char *ended;   /* why; NULL: it had not, when the program was killed */
    double lasted_s;
    guint64 before; /* requests in the trace that were over when it began */
} action;

/** What is known of the reads of a class. */
typedef enum memory_had {
    MEMORY_UNKNOWN, /* nothing: times alone decide */
    MEMORY_HAD_ALL,
    MEMORY_LACKED /* all, or a part */
} memory_had;

/** Times of one kind that belong together (classes.c). */
typedef struct time_class {
    memory_had memory;
    double low_s; /* between minima of the density */
    double high_s;
    double typical_s; /* the density's maximum */
    guint64 calls;
    guint64 bytes;
    double seconds;
    guint64 following;
    guint64 beside;    /* sum over the calls */
    guint64 remote;    /* calls of files on a network file system */
    guint64 targets;   /* requests to targets of ESDM */
    guint64 in_memory; /* calls of files on a file system without a device */
    char *cause;       /* "page cache", "read-ahead", "device", … */
    char *because;     /* what speaks for it */
} time_class;

typedef struct advice {
    double gain_s;
    char *text; /* sentences */
} advice;

/** Calls of plain files in the records of the site's runs, as esdm-run saw them. */
#define KIND_READ  "file-read"
#define KIND_WRITE "file-write"
/** Of the slowest window of a run, beside what is usual (look.c). */
#define LOOK_WORST "worst_times"
/** Calls of processes whose files look.c has removed, and when the first of them began. */
#define LOOK_READ    "removed_read"
#define LOOK_WRITTEN "removed_written"
#define LOOK_BEGAN   "removed_began_ns"

/** All of a run. */
typedef struct run {
    GPtrArray *processes;
    GPtrArray *objects; /* in order of time */
    GHashTable *by_name;
    GArray *calls;    /* in order of start */
    GPtrArray *spans; /* of ESDM's own statistics */
    GPtrArray *actions;
    json_t *looked;    /* what look.c left; NULL: nothing */
    GPtrArray *advice; /* the most useful first */
    GPtrArray *read_classes;
    GPtrArray *write_classes;
    char *command;
    bool engine;       /* what ESDM itself recorded: "files" are targets (spans.c) */
    bool so_far;       /* of a process that goes on (esdm_records_write()) */
    bool partial;      /* of a part of the run alone: a trace that began by itself */
    guint64 commit_ns; /* of `engine`, which counts more than calls tell */
    guint ranks;
    guint64 start_ns;
    guint64 end_ns;
    guint64 dropped;
    /* Of all processes; nanoseconds of threads: */
    guint64 read_ns, write_ns, sync_ns, meta_ns; /* calls of files */
    guint64 mpi_ns;     /* calls of MPI without the calls of files in them */
    guint64 library_ns; /* NetCDF calls without those and the calls of files in them */
    guint64 library_read_ns;
    guint64 closing_ns; /* of `library_ns`, in nc_close() */
    guint64 read_bytes, write_bytes, read_calls, write_calls, small_reads, small_writes;
    guint64 opens, lookups, failed_lookups, files;
    guint64 cpu_us;
    double cpu_most_s; /* that those with NetCDF calls, else all, had processors; INFINITY: ? */
    double best_s;     /* of the reads, if all were in the page cache */
} run;

/** Nothing, to be filled. */
void run_new(run *ret_run);
/** The object that an entry is about; made, with the entry's facts but without its counters, when
 *  there is none. */
object *object_named(run *r, const watch_entry *e);
/** Counters and actions of a line `statistics`. */
void run_add_statistics(run *r, const json_t *line);
/** Order of calls, for g_array_sort(). */
gint call_by_start(gconstpointer a, gconstpointer b);
/** Reads what ESDM itself recorded out of a database, `DATABASE#RUN`. @param ret_run new. */
tool_exit spans_load(const char *source, run *ret_run);
/** Adds counters and actions of the processes of a run, which was loaded from a folder. */
tool_exit spans_add(const char *source, run *r);
/** What run_sum() does with calls of files, with counters. */
void spans_sum(run *r);

/** Reads the files `*.watch` and statistics `*.stats.json` of a folder. */
tool_exit run_load(const char *folder, run *ret_run);
/** Objects, patterns, totals. */
void run_sum(run *r);
/** How often files were opened and read, and how much each time; of the calls that were kept. */
void run_openings(run *r);
/** Classes of times. */
void run_classes(run *r);
/** What would help most. */
void run_advise(run *r);

/** An advice, unless it gains too little to be worth a sentence. */
G_GNUC_PRINTF(3, 4) void advise(run *r, double gain_s, const char *format, ...);

/** Rules of calls that wait until data are stored (advise_syncs.c). */
void syncs_advise(run *r);
/** Where the file ended when it was opened, or what was written to it, if that is later. */
guint64 file_extent(const run *r, const object *o);

/* Files by MPI (ranks.c). */
void run_ranks(run *r);
void ranks_advise(run *r);
/** "4 ranks: 10 collective calls, …"; owned. */
char *ranks_text(const object *o);
/** What a row of a table has no room for. */
void print_ranks(const object *o);
void ranks_json(json_t *json, const object *o);
bool ranks_share_files(const run *r);
/** Whether ranks share the file and call much on their own. */
bool ranks_are_alone(const run *r, const char *file, bool writes);

/** Gaussian kernel density (density.c) of the logarithms of `n` times on a grid; classes between
 * its minima.
 *  @param times in seconds, sorted. @param ret_cuts times between classes; room for `most` - 1.
 *  @return how many classes there are, at least 1 when n > 0. */
guint density_classes(const double *times, gsize n, double *ret_cuts, double *ret_peaks,
                      guint most);

/** What was called; borrowed. */
const char *call_name(const call *c);
/** All calls, with their causes: JSON Lines, Chrome trace events when FILE ends in ".json", or an
 *  archive when it ends in ".otf2". */
tool_exit write_trace(const run *r, const char *file);
/** An archive of the Open Trace Format 2 of all processes: FILE, and what lies beside it under its
 *  name without ".otf2". Nothing of that may be there. */
tool_exit write_otf2(const run *r, const char *file);
/** Whether an archive has so many threads and events, all of which can be read (otf2_check.c). */
bool otf2_is_whole(const char *file, guint64 locations, guint64 events);
/** Whether nothing more can be written to a folder. */
bool otf2_disk_is_full(const char *folder);
/** Writes what files were read, for the next run (watch/history.h); what a history there says of
 *  other files stays. @param file its folder is made, for this user alone. */
tool_exit history_write(const run *r, const char *file);
/** Measures files by MPI, with and without hints, and notes which ones the next run is to have
 *  (watch/hints.h). After run_sum(); the report tells. */
tool_exit hints_write(const run *r, const char *file);
/** Of the files of programs in a folder of the user's cache, those that nobody uses any more go. */
void history_remove_old(const char *folder, const char *written);
/** A file of ours of at most `most` bytes, neither a FIFO nor a link. Owned; NULL: none. */
char *history_read_file(const char *path, gsize least, gsize most, gsize *ret_size);
/** Seconds that asking for what the last run read has gained of a file; below 0: lost. */
double history_gain(const watch_entry *e);
/** The same in sentences, of all files. */
void print_history(const run *r);
/* Earlier runs by all users of the site (earlier.c), after run_sum(). */
/** Keeps for the site what the run did with plain files. */
void earlier_note(const run *r);
/** The run beside those before it; nothing where the site keeps none. */
void print_earlier(const run *r);
/** The program's name as libesdm has it: "ncks", "python3 plot.py"; owned. */
char *program_name(const watch_head *head);
/** Looks at a run that is under way until standard input is closed. @param tells on standard output
 *  what was unusual, at the end. */
tool_exit look_run(const char *folder, bool tells);
/** Fails, silently, where the site keeps no runs or has no rule for files. */
tool_exit look_wanted(void);
/** Writes the calls of a part of a run, and the last ones before it, as a trace beside the site's
 *  runs. @param what gets "trace", "spans", "before", or why not in "ended". */
void look_trace(const char *folder, const char *program, guint64 begin_ns, guint64 end_ns,
                json_t *what);
/** A line of such a trace. @param ahead_ns as for spans. @return false: it is none. */
bool call_of_line(run *r, const json_t *line, guint64 ahead_ns, call *ret);
void file_of_line(run *r, const json_t *line);
/** A call as a line of a trace; owned. */
json_t *call_json(const call *c);
/** What was unusual, a list of what look.c describes. */
void print_told(const json_t *list);
/** NULL: nothing to compare with. */
json_t *earlier_json(const run *r);
/** What the programs of the site do, and how fast its targets are today. */
tool_exit earlier_site(void);

/** NULL: nothing was asked for. */
json_t *history_json(const watch_entry *e);
void print_report(const run *r);
/** Files, MPI files or variables (WATCH_FILE, …) that moved bytes, the ones that took most time
 * first. The list is the caller's to free, what it lists stays the run's. */
GPtrArray *run_objects(const run *r, guint32 kind);
/** Seconds from the first process's beginning to the last one's end; more than 0. */
double run_seconds(const run *r);
/** Seconds that asking ahead for data has saved, as far as reads with and without it tell. */
double run_ahead_gain(const run *r);
/** Whether an action is detailed monitoring that began by itself. */
bool action_is_detail(const action *a);
/** An action, as statistics and traces tell it (load.c); owned. @param kind NULL: its own. */
action *action_of(const json_t *value, const char *kind);
void action_free(action *a);
/** What made detailed monitoring begin (unusual.c), in this run, or lately in any of the site. */
void print_unusual(const run *r);
void print_site_unusual(const GPtrArray *runs);
json_t *site_unusual_json(const GPtrArray *runs);
/** What ESDM did by itself (actions.c). */
void print_actions(const run *r);
json_t *actions_json(const run *r);
json_t *report_json(const run *r);
/** A page of its own, without references to others. */
tool_exit write_page(const run *r, const char *file);

/** "1.2 GB", "3.4 s", "42 µs"; owned. */
char *bytes_text(double bytes);
/** "1 x 180 x 360" (advise_chunks.c, as the next ones); owned. */
char *shape_text(const guint64 *shape, guint rank);
/** That much is decompressed of which little is taken; "": it has no chunks. Owned. */
char *chunks_taken_text(const object *variable);
/** Whether the run itself made a NetCDF file, as far as its calls were kept: chunks of others may
 *  hold what was written before. */
bool is_new_file(const run *r, const char *name);
/** What was written of a variable, of what its chunks hold; 1: that is not known, as of files that
 *  were there before the run. */
double chunks_filled_share(const run *r, const object *variable);
/** That much was compressed of which little was written. Owned. */
char *chunks_filled_text(const object *variable);
char *time_text(double seconds);
/** "run.nc", or the end of a long name; owned. */
char *short_name(const char *name);
/** What a file is to ESDM, by its name: "catalogue", "data"; NULL: it is none
 * of ESDM's. Programs do not choose how these are read and written. */
const char *of_esdm(const char *name);
/** Whether Open MPI keeps the file for itself. */
bool of_mpi(const char *name);
/** "sequential", "strided: 1 kB every 1 MB", "random"; owned. */
char *pattern_text(const pattern *p);

static inline double
seconds_of(guint64 ns)
{
    return (double) ns / 1e9;
}

/* ---- shares of the time (shares.c) ---------------------------------------------------------- */

#define TIME_SHARES 7u

typedef struct time_share {
    const char *what; /* "reading files" */
    double seconds;
} time_share;

/** Where the time of a run went, without what is too little to be told. @return how many. */
guint time_shares(const run *r, time_share ret_shares[TIME_SHARES]);
/** Seconds that these are shares of: of ranks, all of theirs. */
double time_of_shares(const run *r);
/** What closing files took, where that is much of the library's time; owned; NULL: it is not. */
char *closing_text(const run *r);
/** Behind the title of these; "": of the one process. */
const char *time_shares_of_all(const run *r);
/** A sentence about a program that waited most of the time; NULL: it did not. Owned. */
char *waiting_text(const run *r);

#endif
