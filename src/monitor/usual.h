/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MONITOR_USUAL_H
#define ESDM_MONITOR_USUAL_H

/**
 * @file
 * What is usual of requests: by the site's model, which the session has told, and by earlier runs
 * of the program, which the site keeps.
 *
 * The thread of the monitor alone, but for esdm__monitor_expect(). Nothing here waits: a thread of
 * its own reads the earlier runs, whose folder may hang.
 */

#include "monitor/monitor.h"
#include "monitor/parts.h"

typedef struct esdm__usual esdm__usual;

/** @param options borrowed while it lives. NULL: no memory. */
esdm__usual *esdm__usual_new(const esdm__monitor_options *options);
void esdm__usual_free(esdm__usual *usual); /* NULL is accepted */

/** Begins to read earlier runs, and tells whether that is done. At once where there are none. */
bool esdm__usual_is_read(esdm__usual *usual);

/** What requests took, all together. */
typedef struct esdm__window {
    const char *target; /* borrowed; NULL: the catalogue */
    esdm__span_kind kind;
    double count, bytes, seconds;
    double concurrency; /* on average; at least 1 */
} esdm__window;

typedef struct esdm__expected {
    double seconds; /* that the window would usually take; 0: nothing is known */
    double most_s;  /* more is slower than the factor, and than runs differ by themselves */
    bool by_runs;   /* by earlier runs of the program, else by the site's model */
} esdm__expected;

/** @param expect of the monitor, with its lock held; NULL: no model. @param factor above 1. */
esdm__expected esdm__usual_of(const esdm__usual *usual, const struct esdm__expectations *expect,
                              const esdm__window *window, double factor);

/** Whether the last run of this user was slower than those before by the factor. @param ret_times
 *  by which one. @param ret_traced how many of the last `among` runs were looked at for that. */
bool esdm__usual_last_was_slow(const esdm__usual *usual, double factor, unsigned among,
                               double *ret_times, unsigned *ret_traced);

void esdm__expectations_free(struct esdm__expectations *expect); /* NULL is accepted */

#endif
