/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_REDUCE_HISTOGRAM_H
#define ESDM_REDUCE_HISTOGRAM_H

/** @file The histogram of a variable. */

#include "common/common.h"

/** The intervals that options state. */
typedef struct histogram_wish {
    gchar *edges; /**< "A,B,…"; or NULL, and equal intervals */
    gint bins;
    double from; /**< NaN: not stated; and so is `to` */
    double to;
} histogram_wish;

/** What is wrong with the options; NULL: nothing. */
const char *histogram_wrong(const histogram_wish *wish);
/** Counts and prints. @param container, variable names as they are printed. */
tool_exit histogram_print(esdm_dataset *dataset, const char *container, const char *variable,
                          const histogram_wish *wish);

#endif
