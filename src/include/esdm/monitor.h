/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MONITOR_H
#define ESDM_MONITOR_H

/**
 * @file
 * For layers above ESDM: tells those who observe a session (`"monitor"` of the site configuration,
 * $ESDM_MONITOR) that what ESDM does meanwhile is done for one call of such a layer, as the NetCDF
 * plug-in does. Where nobody observes, each function costs one branch.
 */

#include "esdm/container.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A call that is under way, on the stack of the thread that makes it. Its members are ESDM's. */
typedef struct esdm_call {
    const esdm_dataset *dataset;
    void *monitor;
    uint64_t numbers[3];
} esdm_call;

/** @param dataset borrowed until esdm_call_end(). */
ESDM_API void esdm_call_begin(const esdm_dataset *dataset, esdm_call *call);
/** On the same thread, calls in it having ended. @param writes else it reads. @param bytes in the
 *  caller's memory. @param failed whether the caller gets an error. */
ESDM_API void esdm_call_end(const esdm_call *call, bool writes, uint64_t bytes, bool failed);

#ifdef __cplusplus
}
#endif

#endif
