/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TOOLS_ESDM_DIFF_H
#define TOOLS_ESDM_DIFF_H

/** @file What the files of esdm-diff share. */

#include "esdm-cp/esdm-cp.h"

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

/** Compares the elements within the lengths that both have. Fragments that both share are not read.
 */
esdm_status diff_values_compare(const cp_end *a, const cp_dataset *x, const cp_end *b,
                                const cp_dataset *y, diff_values *ret, esdm_error *err);

#endif
