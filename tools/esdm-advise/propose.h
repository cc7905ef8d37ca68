/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_ADVISE_PROPOSE_H
#define ESDM_TOOLS_ADVISE_PROPOSE_H

/**
 * @file
 * A tolerance proposed for each variable, and the evidence for it.
 *
 * Information: mutual information of each bit of neighbouring numbers (Klöwer et al. 2021,
 * doi:10.1038/s43588-021-00156-2), with their test of significance. Ensemble: the spread of its
 * members. What a proposal does is measured on blocks that are stored with it and read again.
 */

#include "esdm-advise/esdm-advise.h"

#define PROPOSE_BITS_MAX 64
#define PROPOSE_BLOCKS   8u  /**< of a variable, at most, spread over all sources */
#define PROPOSE_WAVES    512 /**< wavenumbers that are kept for the page */

/* ---- esdm-advise/information.c ------------------------------------------------------------ */

/** How often the bits of neighbours are 0 or 1, the most significant bit first. */
typedef struct propose_pairs {
    uint32_t bits; /**< 32 or 64; of the type */
    uint64_t count;
    uint64_t of[PROPOSE_BITS_MAX][2][2];
} propose_pairs;

typedef struct propose_information {
    double of[PROPOSE_BITS_MAX]; /**< bits; 0: no more than chance gives */
    double total, chance;        /**< what chance gives, with 99 % */
    uint32_t kept;               /**< bits of the mantissa that have the wanted share of all */
} propose_information;

/** Adds the pairs of rows of `row` numbers. @param is_data of each; others are in no pair. */
void propose_pairs_add(propose_pairs *pairs, const void *values, const uint8_t *is_data,
                       uint64_t count, uint64_t row);
/** @param share of all information: 0.99. */
void propose_information_of(const propose_pairs *pairs, double share, propose_information *ret);

/* ---- esdm-advise/evidence.c --------------------------------------------------------------- */

/** A block before and after, as doubles in C order. */
typedef struct propose_block {
    const double *before, *after;
    const uint8_t *is_data;
    uint64_t rows, row; /**< of the fastest axis that has more than one point */
    uint64_t plane;     /**< rows of a plane; 1: there are no planes */
} propose_block;

/** What became of blocks: [0] before, [1] after. */
typedef struct propose_evidence {
    double count, sum[2], squares[2], origin; /* moments about the first number */
    double least[2], most[2];
    double steps, slopes[2];     /* squares of differences of neighbours, and their number */
    double largest_error, error; /* the latter: sum of squares */
    double similar, planes;      /* of DSSIM */
    uint64_t row, waves;         /* of all spectra; those of other rows are left out */
    double power[2][PROPOSE_WAVES];
} propose_evidence;

void propose_evidence_add(propose_evidence *e, const propose_block *block);
/** Mean and standard deviation. */
double propose_mean(const propose_evidence *e, int which);
double propose_deviation(const propose_evidence *e, int which);
/** Root of the mean square of differences of neighbours: after by before; NAN: none. */
double propose_slope_ratio(const propose_evidence *e);
/** Structural similarity of floating-point data (Baker et al. 2023); 1: no difference. */
double propose_dssim(const propose_evidence *e);
/** Largest change of the power of a wavenumber, as a share of it, of those that have 99.9 % of the
 * variance; NAN: none. */
double propose_spectral_change(const propose_evidence *e);

/* ---- esdm-advise/propose.c ---------------------------------------------------------------- */

/** What is proposed, and why. */
typedef enum propose_reason {
    PROPOSE_NOTHING,
    PROPOSE_INFORMATION,
    PROPOSE_ENSEMBLE
} propose_reason;
#define PROPOSE_REASONS 3

/** What one text of accuracy does. */
typedef struct propose_result {
    char *accuracy; /**< owned; NULL: not proposed for that reason */
    uint64_t raw_bytes, stored_bytes;
    propose_evidence evidence;
} propose_result;

typedef struct propose_variable {
    char *name;  /**< owned */
    char *units; /**< owned; NULL: not stated */
    esdm_type type;
    bool mixed;    /**< another source has another type: left out there */
    uint64_t seen; /**< blocks that were gone by */
    propose_pairs pairs;
    propose_information information;
    GArray *spreads; /**< double; owned; of points */
    uint64_t members;
    double spread;                   /**< that nine of ten points exceed; 0: none */
    double *sums, *squares, *firsts; /**< owned; of points of one block, with --members */
    uint64_t points, of_members;
    propose_result results[PROPOSE_REASONS]; /**< the first is without loss */
    propose_reason chosen;
} propose_variable;

typedef struct propose_options {
    const char *dimension; /**< of members; NULL: by its name */
    bool members;          /**< sources are members */
    double share;          /**< of the information: 0.99 */
    const char *page;      /**< NULL: none */
    bool progress;
} propose_options;

/** What the process that reads tells, in memory that it shares with the one that waits. */
typedef struct propose_told {
    guint in_hand; /**< source that is read */
    bool failed[]; /**< each that had an error, which was said */
} propose_told;

typedef struct propose_study {
    advise_study *advise; /**< borrowed */
    propose_told *told;
    guint lost; /**< sources that cost their process */
    esdm_session *session;
    propose_options options;
    GPtrArray *variables; /**< propose_variable; owned */
} propose_study;

/** Proposes, measures and prints. @param study surveyed. */
tool_exit advise_propose(advise_study *study, const propose_options *options);

/* ---- esdm-advise/spread.c ----------------------------------------------------------------- */

/** The axis of members of a dataset; its rank: none. */
uint32_t propose_member_axis(const propose_study *study, const cp_dataset *dataset);
/** Adds the spread of members within a dataset. */
esdm_status propose_spread_add(const cp_end *end, const cp_dataset *dataset, uint32_t axis,
                               uint64_t block_bytes, propose_variable *v, esdm_error *err);
/** Adds a block of a source that is a member. */
void propose_member_add(propose_variable *v, const double *numbers, const uint8_t *is_data,
                        uint64_t count);
/** What all that was added says: `spread`. */
void propose_spread_end(propose_variable *v);

/* ---- esdm-advise/proposals.c, esdm-advise/page.c ------------------------------------------ */

void propose_print(const propose_study *study);
void propose_print_json(const propose_study *study);
tool_exit propose_page(const propose_study *study, const char *file);
/** "99 % of the information …"; owned. */
char *propose_why(const propose_study *study, const propose_variable *v, propose_reason reason);

#endif
