/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_CP_H
#define ESDM_TOOLS_CP_H

/**
 * @file
 * What the files of esdm-cp share.
 *
 * A copy reads the structure of its source into a cp_model, creates the same structure at its
 * target, and moves the data in slabs of bounded size. Source and target are *ends*: a NetCDF file
 * or a container. ESDM's atomic types have the numbers of NetCDF's; user-defined ones are defined
 * at the target as they are at the source, with the same layout in memory.
 *
 * One process copies one thing at a time: libnetcdf is not safe for threads. Parallel copies run in
 * processes of their own (esdm-cp/run.c).
 */

#include "common/common.h"

/** Data in flight of one copy: one buffer, two when comparing. */
#define CP_SLAB_BYTES (32u << 20)

/** Hints under which containers keep what NetCDF's interface reports back. */
#define CP_HINT_FORMAT     "netcdf.format"
#define CP_HINT_STORAGE    "netcdf.storage"
#define CP_HINT_DEFLATE    "netcdf.deflate"    /* read only: "SHUFFLE LEVEL" of version 0.1 */
#define CP_HINT_FLETCHER32 "netcdf.fletcher32" /* likewise */
#define CP_HINT_ENDIAN     "netcdf.endian"
#define CP_HINT_NOFILL     "netcdf.nofill"
#define CP_HINT_FILTERS    "netcdf.filters" /* "ID,PARAMETER…;…": HDF5 filters in their order */
/** Names of copies that are not complete begin so. */
#define CP_TEMPORARY ESDM_UNFINISHED_COPY

/* ---- the model (esdm-cp/model.c) ---------------------------------------------------------- */

typedef struct cp_type cp_type;
typedef struct cp_group cp_group;
typedef struct cp_model cp_model;

/** A member of a compound or an enumeration. */
typedef struct cp_member {
    char *name;
    const cp_type *type; /* of compounds; borrowed */
    size_t offset;
    uint32_t rank; /* 0: a single element */
    uint32_t shape[ESDM_MAX_RANK];
    uint64_t elements;
    uint64_t value; /* of enumerations: its first bytes are an element of the base type */
} cp_member;

/** A type of elements. */
struct cp_type {
    char *name;
    char *path; /* "/group/name"; NULL: atomic */
    cp_group *group;
    esdm_type_class kind;
    esdm_type atomic;
    size_t bytes;        /* of one element in memory, at the source and at the target */
    bool varies;         /* elements hold texts or arrays, in memory of their own */
    const cp_type *base; /* of enumerations and arrays; borrowed */
    GPtrArray *members;  /* cp_member, owned; NULL: atomic */
    esdm_type to_esdm;   /* number at the target */
    int to_nc;
};

typedef struct cp_attribute {
    char *name;
    const cp_type *type; /* borrowed, here and below */
    uint64_t count;
    void *values; /* owned, with all that is within them */
} cp_attribute;

typedef struct cp_dimension {
    char *name;
    uint64_t length;
    bool unlimited;
    bool filled; /* some dataset with data has it: its length can be seen everywhere */
    int dimid;   /* at a NetCDF end */
    esdm_dimension *dimension; /* at a container end */
} cp_dimension;

/** A dataset at one end. */
typedef struct cp_place {
    int ncid, varid;
    esdm_dataset *dataset;
} cp_place;

typedef struct cp_dataset {
    char *path; /* "/group/name" */
    char *name;
    const cp_type *type;
    uint32_t rank;
    cp_dimension *dimensions[ESDM_MAX_RANK]; /* borrowed from the model */
    GPtrArray *attributes;                   /* cp_attribute */
    void *fill;                              /* one element, NULL: the default */
    uint64_t *chunk;                         /* NULL: not stated */
    char *storage;                           /* values of the hints above; NULL: none */
    char *endian;
    char *filters;
    char *codec;
    bool nofill;
    bool doubted;           /* attributes of a file, or a pattern, state its accuracy */
    bool auxiliary;         /* esdm_dataset_is_auxiliary(); of esdm-advise alone */
    bool as_it_is;          /* its numbers are rounded already: they are copied bit for bit */
    esdm_accuracy accuracy; /* what is stated of them, then */
    cp_place from;          /* where the model was read */
    cp_place to;            /* where it is written */
} cp_dataset;

struct cp_group {
    char *name;
    char *path;            /* "" or "/a/b" */
    GPtrArray *types;      /* cp_type, borrowed from the model */
    GPtrArray *dimensions; /* cp_dimension, owned */
    GPtrArray *datasets;   /* cp_dataset, owned */
    GPtrArray *attributes; /* cp_attribute, owned */
    GPtrArray *groups;     /* cp_group, owned */
    int from_nc;           /* ncids */
    int to_nc;
    esdm_group *to_esdm;
};

struct cp_model {
    cp_group *root;
    char *format;        /* "netcdf4", …; NULL: not stated */
    GPtrArray *types;    /* cp_type, owned; those that others are made of stand before them */
    GPtrArray *datasets; /* all, borrowed, in order */
};

cp_model *cp_model_new(void);
void cp_model_free(cp_model *model);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(cp_model, cp_model_free)
/** @param parent NULL for the root. */
cp_group *cp_group_new(cp_group *parent, const char *name);
cp_dimension *cp_dimension_add(cp_group *group, const char *name, uint64_t length, bool unlimited);
/** Also enters it into the model. */
cp_dataset *cp_dataset_add(cp_model *model, cp_group *group, const char *name, const cp_type *type);
/** Steals `values`. */
void cp_attribute_add(GPtrArray *attributes, const char *name, const cp_type *type, uint64_t count,
                      void *values);
/** Likewise, in place of one of that name. */
void cp_attribute_set(GPtrArray *attributes, const char *name, const cp_type *type, uint64_t count,
                      void *values);
const cp_attribute *cp_attribute_find(const GPtrArray *attributes, const char *name);
/** Marks dimensions as filled; call when all datasets are there. */
void cp_model_finish(cp_model *model);
/** Elements of the dataset, saturating. */
uint64_t cp_dataset_elements(const cp_dataset *dataset);
/** Bytes of the elements of all datasets. */
uint64_t cp_model_bytes(const cp_model *model);

/* ---- types and values (esdm-cp/types.c) --------------------------------------------------- */

/** NULL when there is no such type. */
const cp_type *cp_type_atomic(esdm_type number);
/** For messages. */
const char *cp_type_name(const cp_type *type);
/** Enters a user-defined type without base and members into the model. */
cp_type *cp_type_add(cp_model *model, cp_group *group, const char *name, esdm_type_class kind,
                     size_t bytes);
cp_member *cp_member_add(cp_type *type, const char *name, const cp_type *of, size_t offset);
void cp_member_shape(cp_member *member, uint32_t rank, const uint32_t *shape);
void cp_type_free(gpointer type);
/** Layouts in memory do not count. */
bool cp_type_equal(const cp_type *a, const cp_type *b);

/** A deep copy of values. */
void *cp_values_copy(const cp_type *type, uint64_t count, const void *values);
/** Frees what lies within values, not their array. */
void cp_values_clear(const cp_type *type, uint64_t count, void *values);
/** Bits of `count` elements of types that are equal. @param ret_index of the first difference. */
bool cp_values_equal(const cp_type *a, const cp_type *b, uint64_t count, const void *x,
                     const void *y, uint64_t *ret_index);

/* ---- slabs (esdm-cp/slab.c) --------------------------------------------------------------- */

typedef struct cp_slab {
    uint32_t rank;
    uint64_t shape[ESDM_MAX_RANK];  /* of the dataset */
    uint64_t step[ESDM_MAX_RANK];   /* largest slab */
    uint64_t offset[ESDM_MAX_RANK]; /* the current slab */
    uint64_t size[ESDM_MAX_RANK];
    uint64_t elements;      /* of the current slab */
    uint64_t most_elements; /* of any slab */
    bool started;
} cp_slab;

/** Slabs of at most CP_SLAB_BYTES, multiples of the chunk shape where that fits. */
void cp_slab_init(cp_slab *slab, const cp_dataset *dataset);
/** The same of at most so many bytes. */
void cp_slab_init_of(cp_slab *slab, const cp_dataset *dataset, uint64_t bytes);
bool cp_slab_next(cp_slab *slab);

/* ---- filters (esdm-cp/filters.c) ---------------------------------------------------------- */

/** Filters that the target does not have although the source has. Lies in memory that processes
 *  share. */
typedef struct cp_left_out {
    uint64_t datasets;
    char names[100]; /* "zstd, filter 4711" */
} cp_left_out;

/** --keep-codecs: what the datasets of a container are stored with, as filters of its model; HDF5
 *  is told where ESDM's filter lies. ESDM_ENOTSUP: it is not found. (esdm-cp/keep.c) */
esdm_status cp_keep_codecs(const cp_model *model, esdm_error *err);
/** Tells where other programs find the filter. */
void cp_keep_tell(void);

/* ---- ends --------------------------------------------------------------------------------- */

typedef struct cp_end cp_end;

/** Functions of ends that are neither NetCDF files nor containers; their state is end->state. */
typedef struct cp_source_ops {
    /** As cp_read(). */
    esdm_status (*read)(const cp_end *end, const cp_dataset *dataset, const cp_slab *slab,
                        void *buffer, esdm_error *err);
    /** As cp_refer(); NULL: a NetCDF file, of which only values are read in another way. */
    esdm_status (*refer)(const cp_end *end, const cp_dataset *dataset, bool *ret_referred,
                         const char **ret_why, esdm_error *err);
    /** Of targets: as cp_write() and cp_complete(). */
    esdm_status (*write)(const cp_end *end, const cp_dataset *dataset, const cp_slab *slab,
                         const void *buffer, esdm_error *err);
    esdm_status (*complete)(cp_end *end, esdm_error *err);
    void (*close)(void *state);
} cp_source_ops;

struct cp_end {
    bool is_container;
    char *name;               /* path or container name */
    const char *path;         /* borrowed: where libnetcdf opens it; NULL: by its name */
    const cp_source_ops *ops; /* NULL: a NetCDF file or container, or closed */
    void *state;              /* owned; of `ops` */
    const cp_model *stated;   /* borrowed; of a container whose accuracies are stated */
    void (*committed)(const cp_end *end); /* called when it is, before it is closed; or NULL */
    int ncid;                             /* NetCDF; < 0: closed */
    esdm_session *session;                /* borrowed */
    uint64_t snapshot;                    /* to be opened; 0: the newest */
    esdm_container *container;            /* owned while open */
    esdm_write_counts writes;             /* of a container that is complete */
    cp_left_out left_out;                 /* of a NetCDF file that was created */
};

/** Opens for reading. @param ret_model owned. */
esdm_status cp_netcdf_open(cp_end *end, cp_model **ret_model, esdm_error *err);
esdm_status cp_container_open(cp_end *end, cp_model **ret_model, esdm_error *err);
/** Creates a new file or container of that structure. @param origin for the snapshot's message. */
esdm_status cp_netcdf_create(cp_end *end, cp_model *model, esdm_error *err);
esdm_status cp_container_create(cp_end *end, cp_model *model, esdm_error *err);

/** @param buffer what is within elements is owned afterwards. */
esdm_status cp_read(const cp_end *end, const cp_dataset *dataset, const cp_slab *slab, void *buffer,
                    esdm_error *err);
esdm_status cp_write(const cp_end *end, const cp_dataset *dataset, const cp_slab *slab,
                     const void *buffer, esdm_error *err);
/** Completes what was created: closes the file, or commits and closes the container. */
esdm_status cp_complete(cp_end *end, const char *message, esdm_error *err);
/** Closes without completing; safe in every state. */
void cp_close(cp_end *end);

esdm_status cp_netcdf_read(const cp_end *end, const cp_dataset *dataset, const cp_slab *slab,
                           void *buffer, esdm_error *err);
esdm_status cp_netcdf_write(const cp_end *end, const cp_dataset *dataset, const cp_slab *slab,
                            const void *buffer, esdm_error *err);
/** The same of a Zarr store, which is a folder (esdm-cp/zarr.c), and of a GRIB file
 * (esdm-cp/grib.c). */
esdm_status cp_zarr_open(cp_end *end, cp_model **ret_model, esdm_error *err);
esdm_status cp_grib_open(cp_end *end, cp_model **ret_model, esdm_error *err);
/** The same of any object on a web server (esdm-cp/remote.c). */
esdm_status cp_remote_open(cp_end *end, cp_model **ret_model, esdm_error *err);
/** Fills the error for a failed libnetcdf call on a file. */
esdm_status cp_netcdf_error(esdm_error *err, int rc, const char *name, const char *what);

/** From now on a crash of libnetcdf (SIGSEGV, SIGABRT, SIGBUS, SIGFPE) names the file that it reads
 * and ends the process with that exit status (esdm-cp/crash.c). For programs that read files in one
 * thread and write nothing that others see. */
void cp_tell_crashes(int status);
/** libnetcdf reads that file now. @param name lives until the next call; NULL: it reads nothing. */
void cp_crash_at(const char *name);

/* ---- comparing (esdm-cp/compare.c) -------------------------------------------------------- */

/** ESDM_ECORRUPT naming the first difference. */
esdm_status cp_compare_models(const cp_model *a, const cp_model *b, esdm_error *err);

/* ---- accuracy (esdm-cp/accuracy.c) -------------------------------------------------------- */

/** The first --accuracy that is not of the form NAME: QUANTITIES; NULL: none. */
const char *cp_accuracy_wrong(void);
/** Whether all of them state what is possible, whatever the variables are. */
bool cp_accuracy_check(esdm_error *err);
/** To be called before the copies. false: no memory; prints the error. */
bool cp_accuracy_begin(void);
/** After them: prints and tells those --accuracy that fitted no variable of a whole tree. */
tool_exit cp_accuracy_end(void);
/** States what attributes and --accuracy say of the datasets of a new container. What its readers
 *  are told is in the model then. */
esdm_status cp_accuracy_state(const cp_model *model, const cp_end *source, esdm_error *err);
/** Of a container that becomes a file: what earlier versions showed as statements tells only. */
void cp_accuracy_document(const cp_model *model);
/** Takes back what an attribute of a file states of numbers that it cannot have been stated of, and
 *  says so. Reads them as far as it must. */
esdm_status cp_accuracy_doubt(const cp_model *model, const cp_end *source, esdm_error *err);
/** Tells, once for all copies, of which variables everything keeps the accuracy of their regions,
 * as it is not known where these lie: of a container, when it is committed. */
void cp_accuracy_tell_regions(const cp_end *target);
/** States the accuracy of numbers that were copied as they are; call before cp_complete(). */
esdm_status cp_accuracy_restate(const cp_model *model, esdm_error *err);

/* ---- sizes (esdm-cp/fit.c) ---------------------------------------------------------------- */

/** NULL, or what is wrong with --fit beside other options and for these jobs. */
const char *cp_fit_wrong(const GPtrArray *jobs);
/** Makes the copies, with accuracies with which all of them take no more than --fit says.
 *  @param sources as they were named. @param run makes them as the options say, and tells errors.
 */
tool_exit cp_fit(char **sources, int nsources, const GPtrArray *jobs,
                 tool_exit (*run)(const GPtrArray *jobs));

/* ---- references (esdm-cp/refer.c) --------------------------------------------------------- */

/** A NetCDF file or Zarr store whose values stay where they are. */
typedef struct cp_referrer cp_referrer;
esdm_status cp_referrer_new(const char *name, cp_referrer **ret, esdm_error *err);
void cp_referrer_free(cp_referrer *referrer); /* NULL is accepted */
/** Makes a dataset of the target refer to the file.
 *  @param source the same file, open. @param ret_referred false: its values must be
 *  copied; *ret_why says why. */
esdm_status cp_refer(const cp_referrer *referrer, const cp_end *source, const cp_dataset *dataset,
                     bool *ret_referred, const char **ret_why, esdm_error *err);
/** ESDM_ECONFLICT: the file was written to meanwhile. */
esdm_status cp_referrer_check(const cp_referrer *referrer, esdm_error *err);

/* ---- scanning again (esdm-cp/seen.c, esdm-cp/update.c) ------------------------------------- */

/** What a file or store is now, as a text, without opening what is in it: names, sizes, times,
 *  inodes. @param ret_text owned, g_free(). */
esdm_status cp_seen_take(const char *name, char **ret_text, esdm_error *err);
/** Of a store: digest of names, sizes and times (in seconds) of its objects, which copies keep. */
#define CP_SEEN_KEPT "kept"
/** Whether a source that was `then` is still the same. */
bool cp_seen_equal(const char *then, const char *now);
/** The absolute path by which it was named; owned. NULL: the text is damaged. */
char *cp_seen_name(const char *text);

/* ---- jobs --------------------------------------------------------------------------------- */

/* No number: -1 is one that can be typed. */
#define CP_JOBS_DEFAULT G_MININT
#define CP_LEVEL_NONE   G_MININT

/** Whether containers are cloned instead of copied. */
typedef enum cp_reflink {
    CP_REFLINK_NEVER,
    CP_REFLINK_AUTO, /**< where that can be done */
    CP_REFLINK_ALWAYS
} cp_reflink;

typedef struct cp_options {
    gboolean force;
    gboolean skip_existing;
    gboolean verify;
    gboolean reference; /**< values stay in the NetCDF files */
    cp_reflink reflink;
    bool no_reflink; /* --reflink=never was said */
    gboolean recursive;
    gboolean members;     /**< those of an ensemble in GRIB files are a dimension */
    gboolean keep_codecs; /**< NetCDF files have the codecs of their containers */
    gboolean pin;         /**< containers keep what the files have */
    gboolean update;      /**< what is as it was is left alone, what changed is replaced */
    gboolean remove_gone; /**< containers go whose sources are gone */
    char *moved;          /**< the folder below which sources lay before; NULL: where they are */
    gboolean dry_run;
    gboolean verbose;
    gboolean quiet;
    double timeout_s; /**< a copy is given up that does not get on for so long; 0: never */
    gint jobs;        /**< CP_JOBS_DEFAULT: as many as there are cores */
    char *format;
    gint deflate; /**< levels for NetCDF files; CP_LEVEL_NONE: as the source */
    gint zstd;
    char **accuracy; /* 'NAME: QUANTITIES' */
    char *list;      /**< a file that names sources; NULL: none */
    char *fit;       /**< the size that all copies are to take at most, as text; NULL: none */
} cp_options;
extern cp_options cp_wants;
/** Of the program that this is (esdm-cp/help.c). */
extern const tool_help cp_help;

typedef struct cp_job {
    char *source;
    char *target;
    bool from_container;
    bool to_container;
    bool pin_only; /* source and target are one */
} cp_job;

/** A folder that was gone through. */
typedef struct cp_tree {
    char *folder; /* absolute path */
    char *prefix; /* its containers are called so, and below; "": the root */
    bool absent;  /* there is no such folder (any more) */
} cp_tree;

/** Turns the arguments into jobs (esdm-cp/plan.c). Prints errors. @param ret_jobs owned.
 *  @param ret_trees owned; cp_tree, of folders that become containers. */
tool_exit cp_plan(char **arguments, int count, GPtrArray **ret_jobs, GPtrArray **ret_trees);

/** Reads the sources that a file names, one a line; "-": the standard input (esdm-cp/list.c). Empty
 *  lines and those that begin with # do not count. Prints errors.
 *  @param ret_sources owned texts are added. @param ret_shared bytes that all begin with: folders.
 */
tool_exit cp_list_read(const char *name, GPtrArray *ret_sources, size_t *ret_shared);

/** Called while a job moves data. @param total grows as sources are opened. */
typedef void (*cp_progress)(uint64_t bytes_done, uint64_t bytes_total, void *user);

/** What a scan found out about a source. */
typedef enum cp_change {
    CP_CHANGE_UNKNOWN, /* it was not asked */
    CP_CHANGE_NEW,
    CP_CHANGE_CHANGED,
    CP_CHANGE_NONE,
    CP_CHANGE_KEPT /* it is another one, but its container is pinned */
} cp_change;

/** What came of a job. Lies in memory that processes share: no pointers. */
typedef struct cp_result {
    int state;                /* 0: waiting, 1: begun, 2: done */
    int process;              /* that began it */
    _Atomic int64_t moved_us; /* monotonic time of its last progress */
    bool given_up;            /* there was none for --timeout, and its process was ended */
    esdm_status status;
    bool skipped;     /* with ESDM_OK: the target exists, and was to be left as it is */
    bool cloned;      /* no data were copied: source and target share them */
    cp_change change; /* with --update */
    bool elsewhere;   /* its container was made of another file or store */
    bool told;        /* that was said with others of its tree */
    bool pinned;      /* and how many files that took, and bytes of values */
    uint64_t pinned_files;
    uint64_t pinned_bytes;
    uint64_t pinned_shared; /* of these, those that share blocks of the files */
    uint64_t bytes;
    uint64_t datasets;
    uint64_t referred; /* of them: their values stay in the file */
    double seconds;
    esdm_write_counts writes; /* to a container; not all of them as planned, perhaps */
    cp_left_out left_out;     /* in a NetCDF file */
    char message[ESDM_ERROR_MESSAGE_BYTES];
} cp_result;

/** Whether the target exists. @param session not used for files. */
esdm_status cp_job_exists(const cp_job *job, esdm_session *session, bool *ret_exists,
                          esdm_error *err);
/** Copies one thing, verifies it, and only then gives it its name. */
esdm_status cp_job_run(const cp_job *job, esdm_session *session, cp_progress progress, void *user,
                       cp_result *result, esdm_error *err);

/** What has become of a source since its container was made. Any process.
 *  @param now of cp_seen_take(). @return ESDM_EEXIST: the container was made of something else, or
 *  written to since. */
esdm_status cp_update_look(const cp_job *job, esdm_session *session, const char *now,
                           cp_result *result, esdm_error *err);

/* ---- sources that were moved (esdm-cp/moved.c) ---------------------------------------------- */

/** Whether --moved says that a source that was called `was` is called `whole` now. */
bool cp_moved_fits(const char *was, const char *whole);
/** Whether it is the same by size and time; of stores by names, sizes and times of all objects.
 * Both of cp_seen_take(). */
bool cp_moved_same(const char *then, const char *now);
/** What a result says whose container was made of `was`, and not of `whole`. ESDM_EEXIST. */
esdm_status cp_moved_refuse(const cp_job *job, const char *was, const char *whole, esdm_error *err);
/** Says once for a tree, and not for each of its files, that its containers were made of files
 *  below another folder, and marks the results that this says. */
void cp_moved_tell(const GPtrArray *jobs, cp_result *results, const GPtrArray *trees);

/** A container without a source. */
typedef struct cp_gone {
    char *source;
    char *target;
    bool pinned;
    bool removed;
    bool told; /* by one sentence for all of its tree */
} cp_gone;

typedef struct cp_swept {
    GPtrArray *gone; /* cp_gone, owned */
    guint removed;   /* of them */
} cp_swept;

typedef struct cp_counts {
    guint added, changed, unchanged, kept, gone, removed;
} cp_counts;

/** Finds containers of the trees whose sources are gone, and removes them when that is wanted.
 *  Prints errors. @param ret zeroed. */
tool_exit cp_update_sweep(const GPtrArray *jobs, const GPtrArray *trees, cp_swept *ret);
cp_counts cp_update_counts(const GPtrArray *jobs, const cp_result *results, const cp_swept *swept);
void cp_update_print(const GPtrArray *jobs, const cp_result *results, const cp_swept *swept,
                     double seconds);
void cp_update_json(json_t *root, const cp_counts *counts, const cp_swept *swept);
/** "new", "changed", "unchanged", "kept". */
const char *cp_change_name(cp_change change);

/** Brings the values of the files that a container refers to into ESDM (esdm-cp/pin.c). */
esdm_status cp_pin(esdm_session *session, const char *name, cp_result *result, esdm_error *err);
json_t *cp_pin_json(const cp_result *result);
void cp_pin_print(const cp_job *job, const cp_result *result);
/** Whether the arguments are containers alone, which are to be pinned. */
bool cp_pin_only(char **arguments, int count);
/** Adds a job for each of them, and for each below such a name. Prints errors. */
tool_exit cp_pin_plan(char **arguments, int count, GPtrArray *jobs);
void cp_job_free(gpointer job);

/** Runs all jobs in up to cp_wants.jobs processes. @param ret_results one for each job; owned by
 *  the process. */
void cp_run(const GPtrArray *jobs, cp_result **ret_results);

/** Whether the user interrupted; jobs then end in an orderly way. */
bool cp_is_interrupted(void);
void cp_catch_interrupts(void);
/** What is in hand may keep this process busy for so many seconds after an interrupt, of which it
 *  then dies: the process that would end it may be no more. 0: for ever. */
void cp_end_after_interrupt(double seconds);

#endif
