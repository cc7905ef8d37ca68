/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_ADVISE_H
#define ESDM_TOOLS_ADVISE_H

/**
 * @file
 * What the files of esdm-advise share.
 *
 * A source (file or container) is drawn with a probability that is proportional to its bytes, then
 * a variable in it by its raw bytes, then a block of that variable. Each block is stored with each
 * candidate in a site in memory, read back, and compared.
 */

#include "esdm-cp/esdm-cp.h"

/** Raw bytes of a sample: what ESDM would put into one fragment, about. */
#define ADVISE_SAMPLE_BYTES   (UINT64_C(1) << 20)
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
    double raw_share; /**< raw bytes of its source's numbers by bytes of the source */
    bool auxiliary;   /**< rounded only where an accuracy names it */
    double range;     /**< largest less smallest finite number; 0: none */
    advise_result results[ADVISE_CANDIDATES_MAX];
} advise_sample;

typedef struct advise_candidate {
    char *label;
    char *pattern; /**< of variables that it is for; NULL: all */
    char *text;    /**< for esdm_accuracy_parse() */
} advise_candidate;

typedef struct advise_study {
    GPtrArray *sources; /**< advise_source */
    GArray *candidates; /**< advise_candidate; the first is lossless */
    GPtrArray *samples; /**< advise_sample */
    uint64_t total_bytes;
    double blocks;     /**< that can be drawn, of all sources */
    guint unreadable;  /**< files, folders and containers that cannot be opened */
    guint missed;      /**< draws that hit what could not be read, or had no numbers */
    double confidence; /**< 0 ... 1 */
    double error;      /**< half the width of an interval of a share, for the number of samples */
    uint64_t seed;
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
void advise_survey(advise_study *study, esdm_session *session, bool progress);
/** Draws and measures `count` samples. Prints what cannot be read. */
tool_exit advise_draw(advise_study *study, esdm_session *session, guint count, bool progress);
/** A normal deviate's quantile: 1.96 for 0.95. */
double advise_quantile(double confidence);

/* ---- esdm-advise/measure.c ---------------------------------------------------------------- */

typedef struct advise_lab advise_lab;
/** A site in memory, with one thread. @param ret_lab owned. */
esdm_status advise_lab_open(advise_lab **ret_lab, esdm_error *err);
void advise_lab_close(advise_lab *lab);
/** Finds out which variables of a source describe others (`auxiliary`), as ESDM tells them. */
esdm_status advise_find_auxiliary(advise_lab *lab, cp_model *model, esdm_error *err);
/** Whether a candidate leaves auxiliary variables as they are. */
bool advise_spares(const advise_candidate *candidate);
/** Stores the block with every candidate. @param size of the block along `rank` axes. */
esdm_status advise_measure(advise_lab *lab, const GArray *candidates, const cp_dataset *dataset,
                           const uint64_t *size, const void *values, advise_sample *sample,
                           esdm_error *err);

/* ---- esdm-advise/report.c ----------------------------------------------------------------- */

/** What storage costs. */
typedef struct advise_price {
    double per_tb_year; /**< 0: not asked for */
    double years;
    const char *currency;
} advise_price;

/** Share of today's bytes that all sources would take with a candidate. */
advise_estimate advise_total(const advise_study *study, guint candidate);
void advise_print(const advise_study *study, const advise_price *price);
void advise_print_json(const advise_study *study, const advise_price *price);
/** Bars of all candidates with their intervals as SVG. */
esdm_status advise_plot(const advise_study *study, const char *file, esdm_error *err);

#endif
