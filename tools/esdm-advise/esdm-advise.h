/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_ADVISE_H
#define ESDM_TOOLS_ADVISE_H

/**
 * @file
 * What the files of esdm-advise share.
 *
 * A source (file or container) is drawn with a probability that is proportional to its bytes, then
 * a variable in it by its raw bytes, then a block of that variable by the same. Each block is
 * stored with each candidate in a site in memory, where it lies in the whole variable: fragments
 * are cut as they will be, with the codecs that are chosen for the variable's first block; then it
 * is read back, and compared.
 */

#include "esdm-cp/esdm-cp.h"

/** Raw bytes of a sample: as much as the largest fragments have. */
#define ADVISE_BLOCK_BYTES    (UINT64_C(16) << 20)
#define ADVISE_CANDIDATES_MAX 16

/** A file or a container. */
typedef struct advise_source {
    char *name;
    bool is_container;
    uint64_t bytes; /**< that it takes now */
} advise_source;

/** What one candidate makes of one sample. */
typedef struct advise_result {
    bool refused; /**< the quantity means nothing for this variable: measured without loss */
    uint64_t stored_bytes;
    double write_s, read_s;
    double largest_error; /**< |x' - x| of finite numbers, as stored */
    bool exact;           /**< bit for bit */
} advise_result;

/** A block of a variable. */
typedef struct advise_sample {
    char *variable; /**< name without groups */
    uint64_t raw_bytes;
    double chance;    /**< to be drawn, at each draw */
    bool again;       /**< drawn before: counts, and tells nothing new */
    double raw_share; /**< raw bytes of its source's numbers by bytes of the source */
    bool auxiliary;   /**< rounded only where an accuracy names it */
    double range;     /**< largest less smallest finite number; 0: none */
    advise_result results[ADVISE_CANDIDATES_MAX];
} advise_sample;

typedef struct advise_candidate {
    char *label;
    char *pattern; /**< of variables that it is for; NULL: all */
    char *text;    /**< for esdm_accuracy_parse(); NULL: no accuracy is stated, as it comes */
} advise_candidate;

typedef struct advise_study {
    GPtrArray *sources; /**< advise_source */
    GArray *candidates; /**< advise_candidate; the first is lossless */
    GPtrArray *samples; /**< advise_sample */
    uint64_t total_bytes;
    double blocks;         /**< that can be drawn, of all sources */
    GHashTable *blocks_of; /**< the same of variables of that name: double *; owned */
    GHashTable *raw_bytes; /**< double of each variable with numbers, by its name, of all sources */
    guint unreadable;      /**< files, folders and containers that cannot be opened */
    guint missed;          /**< draws that hit what could not be read, or had no numbers */
    double confidence;     /**< 0 ... 1 */
    double error; /**< half the width of an interval of a share, for the number of samples */
    uint64_t seed;
    uint64_t block_bytes; /**< raw bytes of a sample, at most */
} advise_study;

/** An estimate: the mean and half the width of its confidence interval. */
typedef struct advise_estimate {
    double mean;
    double half;
} advise_estimate;

/* ---- esdm-advise/sources.c ---------------------------------------------------------------- */

/** Enters what an argument stands for: a file, all NetCDF files below a folder, a container, or
 *  with @param recursive all containers below a name. Prints errors. */
tool_exit advise_add_source(advise_study *study, esdm_session **session, const char *argument);
/** Cochran's number of samples for a share with the study's confidence and error, corrected for
 *  the population of the study's blocks. */
guint advise_sample_count(const advise_study *study);
/** Opens every source and counts its blocks. Prints, counts and drops what cannot be opened. */
void advise_survey(advise_study *study, bool progress);
bool advise_has_containers(const advise_study *study);
/** Counts a source as one that cannot be read, and forgets it. */
void advise_leave_out(advise_study *study, guint source);
/** Opens one of them. @param ret_end cp_close(), also after a failure. @param ret_model owned. */
esdm_status advise_open_source(const advise_source *source, esdm_session *session, cp_end *ret_end,
                               cp_model **ret_model, esdm_error *err);
/** Draws and measures `count` samples. Prints what cannot be read. */
void advise_draw(advise_study *study, guint count, bool progress);
/** Measures every block once, where there are few. Counts them as advise_draw() does. */
void advise_measure_all(advise_study *study, bool progress);

/* ---- esdm-advise/measure.c ---------------------------------------------------------------- */

typedef struct advise_lab advise_lab;
/** A site in memory, with one thread. @param ret_lab owned. */
esdm_status advise_lab_open(advise_lab **ret_lab, esdm_error *err);
void advise_lab_close(advise_lab *lab);
/** Finds out which variables of a source describe others (`auxiliary`), as ESDM tells them. */
esdm_status advise_find_auxiliary(advise_lab *lab, cp_model *model, esdm_error *err);
/** Whether a candidate leaves auxiliary variables as they are. */
bool advise_spares(const advise_candidate *candidate);
/** Stores the block with every candidate. @param first the first block of the dataset, which codecs
 * are chosen for. */
esdm_status advise_measure(advise_lab *lab, const GArray *candidates, const cp_end *end,
                           const cp_dataset *dataset, const cp_slab *first, const cp_slab *slab,
                           advise_sample *sample, esdm_error *err);
/** Numbers as double; owned. */
double *advise_doubles(esdm_type type, const void *values, uint64_t count);
/** 1 for each that is finite and stands for no missing one; owned. @param numbers the values. */
uint8_t *advise_is_data(const cp_dataset *dataset, const void *values, const double *numbers,
                        uint64_t count);
/** Stores a block under an accuracy, by itself, and reads it. @param after as many values.
 *  @return ESDM_EINVAL: the accuracy means nothing for this variable. */
esdm_status advise_store_block(advise_lab *lab, const char *text, const cp_dataset *from,
                               const cp_slab *slab, const void *values, void *after,
                               uint64_t *ret_stored, esdm_error *err);
/** Forgets the datasets of a source: before its model goes. */
void advise_lab_leave(advise_lab *lab);

/* ---- esdm-advise/estimate.c --------------------------------------------------------------- */

/** A normal deviate's quantile: 1.96 for 0.95. */
double advise_quantile(double confidence);
/** The same of Student's distribution; INFINITY without degrees of freedom. */
double advise_student(double confidence, guint degrees);
/** Stored bytes by raw bytes of a variable. @param variable NULL: of all. */
advise_estimate advise_share(const advise_study *study, const char *variable, guint candidate);
/** How far bytes of a whole variable may be from those of its blocks together, as a share of them.
 */
double advise_cut_share(const advise_study *study);
/** Share of today's bytes that all sources would take with a candidate. */
advise_estimate advise_total(const advise_study *study, guint candidate);

/* ---- esdm-advise/fit.c --------------------------------------------------------------------- */

/** Enters the candidates that --fit measures. */
void advise_fit_candidates(advise_study *study);
/** Prints an accuracy for each variable with which all fits; an error where none is enough. */
tool_exit advise_fit_report(const advise_study *study, uint64_t wanted_bytes);

/* ---- esdm-advise/report.c ----------------------------------------------------------------- */

/** What storage costs. */
typedef struct advise_price {
    double per_tb_year; /**< 0: not asked for */
    double years;
    const char *currency;
} advise_price;

void advise_print(const advise_study *study, const advise_price *price);
void advise_print_json(const advise_study *study, const advise_price *price);
/** Bars of all candidates with their intervals as SVG. */
esdm_status advise_plot(const advise_study *study, const char *file, esdm_error *err);

/* ---- esdm-advise/jobs.c: what monitored jobs did ------------------------------------------ */

/** Variables up to this size are one fragment, however others are cut. */
#define ADVISE_SMALL_BYTES (1 << 20)

/** A read or write of a variable. */
typedef struct advise_access {
    uint64_t row, rows; /**< of the slowest dimension */
    uint64_t bytes;
    bool writes;
} advise_access;

/** A variable that a job used. */
typedef struct advise_use {
    char *name; /**< "tas in run.nc (job)"; owned */
    uint32_t rank, element_bytes;
    uint64_t size[8];
    GArray *accesses; /**< advise_access, in order of time */
    uint64_t read_bytes, written_bytes;
    double seconds; /**< that the job spent in them */
} advise_use;

/** A plain file of a job that ran with --read-ahead. */
typedef struct advise_ahead {
    char *name;       /**< owned */
    double plain_s;   /**< of a read that was not asked for early */
    double advised_s; /**< of a read on average, with what asking took */
    uint64_t reads;
} advise_ahead;

typedef struct advise_jobs {
    GPtrArray *uses;   /**< advise_use; those that took longest first */
    GPtrArray *aheads; /**< advise_ahead */
    guint small_uses;  /**< left out: of at most ADVISE_SMALL_BYTES */
    guint jobs;
    guint plain_jobs;                   /**< that ran without --read-ahead */
    uint64_t read_bytes, written_bytes; /**< of variables */
    guint runs, users, programs;        /**< of all users, as the site keeps them */
    double runs_read, runs_written;     /**< bytes of variables and files */
    double weight_read, weight_written; /**< the same, of nobody more than of all others */
} advise_jobs;

/** Adds what the records below a folder tell: those of one run, or folders of runs. */
tool_exit advise_load_jobs(advise_jobs *jobs, const char *folder);
/** Adds what runs of all users moved, where the site keeps them. */
void advise_load_runs(advise_jobs *jobs);
void advise_jobs_clear(advise_jobs *jobs);

/* ---- esdm-advise/layouts.c ---------------------------------------------------------------- */

/** What a request to the site's storage takes. */
typedef struct advise_device {
    double latency_s, bytes_per_s;
    char *source; /**< where this comes from; owned */
} advise_device;

/** What may stand in the site's configuration of how data are cut. */
typedef struct advise_layout {
    const char *access;   /**< of "policies" */
    const char *fragment; /**< of "engine" */
} advise_layout;

/** Writes a variable and does with it what the job did, in a site in a temporary folder.
 *  @param mode of its accuracy; NULL: no codec. @param ret_s seconds that this takes with the
 *  device. */
esdm_status advise_try_layout(const advise_use *use, const advise_layout *layout, const char *mode,
                              const advise_device *device, double *ret_s, esdm_error *err);

/* ---- esdm-advise/means.c ------------------------------------------------------------------ */

/** Choices and cases: how good each is for each, relative to the best one. */
typedef struct advise_means {
    GPtrArray *choices; /**< texts; owned */
    GPtrArray *cases;   /**< texts; owned */
    double *relative;   /**< choices x cases: 1 is the best of the case; owned */
    guint usual;        /**< the choice that holds where nothing is stated */
} advise_means;

/** @param cost choices x cases, above 0: less is better. */
void advise_means_init(advise_means *means, const char *const *choices, guint nchoices,
                       GPtrArray *cases, const double *cost, guint usual);
void advise_means_clear(advise_means *means);
double advise_arithmetic(const advise_means *means, guint choice);
double advise_harmonic(const advise_means *means, guint choice);
/** The one with the best harmonic mean; the usual one unless another is better by 2 %. */
guint advise_best(const advise_means *means);
/** A table and sentences. */
void advise_means_print(const advise_means *means, const char *title, const char *what);
json_t *advise_means_json(const advise_means *means);

/* ---- esdm-advise/site.c ------------------------------------------------------------------- */

/** What counts for codecs. */
typedef enum advise_weigh { ADVISE_BOTH, ADVISE_TIME, ADVISE_SPACE } advise_weigh;

/** Adds the candidates whose samples advise_site() looks at. */
void advise_site_candidates(advise_study *study);
/** Which defaults would be best for all. @param study without samples: nothing is told of codecs.
 *  @param session NULL: no model is known. */
tool_exit advise_site(const advise_study *study, const advise_jobs *jobs, esdm_session *session,
                      advise_weigh weigh, double latency_s, double bytes_per_s);

#endif
