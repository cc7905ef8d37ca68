/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_SESSION_READERS_H
#define ESDM_IO_SESSION_READERS_H

/**
 * @file
 * How datasets of this site are read, for who writes the next container of the same name but for
 * numbers in it: large writes are cut so that these reads need less, where nobody states a shape.
 *
 * Of each dataset a session sums up what its reads cost with each way of cutting; at its end these
 * sums are added to a fact of the site, of all readers together. Old sums count less with each
 * session. A fact is made only where another way costs at most half. It is a guess: without it, or
 * without memory, all is as usual.
 *
 * Threads: locked inside.
 */

#include "layout/fragmenter.h"
#include "model/container.h"
#include "monitor/monitor.h"

typedef struct esdm__readers esdm__readers;

/** NULL: what is read does not count here (configuration, $ESDM_EARLIER_RUNS), or no memory. */
esdm__readers *esdm__readers_new(const esdm_session *session);
void esdm__readers_free(esdm__readers *readers); /* NULL is accepted */

/** Whether reads of the dataset are to be noted. NULL is accepted. */
bool esdm__readers_count(const esdm__readers *readers, const esdm_dataset *dataset);
/** One of them has ended. @param record of the container in the store. */
void esdm__readers_note(esdm__readers *readers, const esdm_dataset *dataset, uint64_t record,
                        const esdm_dataspace *space, double seconds);
/** Adds what was noted to the facts of the site, and tells the monitor. Once; later calls do
 *  nothing. NULL is accepted. */
void esdm__readers_settle(esdm__readers *readers, esdm__monitor *monitor);

/**
 * Which way readers of such a dataset want large writes to be cut.
 * @param ret_why room for a sentence; NULL: not wanted.
 * @return false: the usual one.
 */
bool esdm__readers_want(esdm__readers *readers, const esdm_dataset *dataset, esdm__cut *ret_cut,
                        char *ret_why, size_t room);
/** Bytes of a fragment at most: halving what is too large by little would make many of them, so
 * half as many bytes again count as a fragment. */
static inline uint64_t
esdm__readers_preferred(uint64_t preferred_bytes, esdm__cut cut)
{
    return cut == ESDM__CUT_CONTIGUOUS ? preferred_bytes : preferred_bytes + preferred_bytes / 2;
}
/** Bytes that a writer may gather for one cut, at most. */
uint64_t esdm__readers_gathered(const esdm_session *session);

#endif
