/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TOOLS_ESDM_DIFF_H
#define TOOLS_ESDM_DIFF_H

/** @file What the files of esdm-diff share. */

#include "esdm-cp/esdm-cp.h"

/** A box of elements. */
typedef struct diff_box {
    guint64 lo[ESDM_MAX_RANK];
    guint64 n[ESDM_MAX_RANK];
} diff_box;

/** What the two datasets of one path have in common, and not. */
typedef struct diff_values {
    guint64 compared;             /* elements of which both were looked at, or known to be equal */
    guint64 different;            /* elements */
    bool numbers;                 /* the next ones are known */
    double absolute;              /* largest difference; INFINITY: a number on one side alone */
    double relative;              /* largest, of the larger of both */
    guint64 first[ESDM_MAX_RANK]; /* of the different ones: lowest and highest index */
    guint64 last[ESDM_MAX_RANK];
    guint64 read_bytes; /* of one side */
} diff_values;

/**
 * Boxes outside of which the two are equal, as they share the fragments there: they do not meet,
 * and lie within `all`. Takes time in proportion to the number of fragments, where these do not
 * overlap much. @return owned array of diff_box; NULL: nothing is known.
 */
GArray *diff_regions(const cp_end *a, const cp_dataset *x, const cp_end *b, const cp_dataset *y,
                     const diff_box *all);

/** " K", or "". Owned. */
char *diff_units(const cp_dataset *dataset);
/** Where the values differ, in coordinates as far as there are some. Owned. */
char *diff_where(const cp_end *end, const cp_model *model, const cp_dataset *dataset,
                 const diff_values *v);
/** Writes a record of the differences. @param file "-": standard output. @param body lines. */
esdm_status diff_erratum_write(const char *file, const cp_end ends[2], char **arguments,
                               const GString *body, esdm_error *err);

/** Compares the elements within the lengths that both have. Fragments that both share are not read.
 */
esdm_status diff_values_compare(const cp_end *a, const cp_dataset *x, const cp_end *b,
                                const cp_dataset *y, diff_values *ret, esdm_error *err);

#endif
