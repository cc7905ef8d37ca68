/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MONITOR_RULES_H
#define ESDM_MONITOR_RULES_H

/**
 * @file
 * What is unusual turns detailed monitoring on for a while.
 *
 * Four times a second the thread of the monitor looks at the counters of requests, which are
 * counted anyway. When those of a target took much longer than usual (usual.h), the trace begins,
 * or samples of the node, and ends by itself after a time or so many bytes. Programs pay nothing
 * for that while nothing is unusual. The thread of the monitor alone.
 */

#include "monitor/monitor.h"

typedef struct esdm__reasoner esdm__reasoner;

#define ESDM__LOOK_MS 250u

/** NULL: no memory. */
esdm__reasoner *esdm__reasoner_new(struct esdm__monitor *monitor);
/** Begins or ends what rules say. */
void esdm__reasoner_look(struct esdm__monitor *monitor);
/** The end of the session: what has begun is told. */
void esdm__reasoner_end(struct esdm__monitor *monitor);
void esdm__reasoner_free(esdm__reasoner *reasoner); /* NULL is accepted */

#endif
