/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_READ_JOBS_H
#define ESDM_IO_READ_JOBS_H

/** @file Which pieces of a plan one thread reads together, and in which order jobs begin. */

#include "io/container/transfer.h"
#include "io/session/session.h"
#include "layout/index.h"

/** A blob up to this size is read whole and together with its neighbours. */
#define ESDM__SMALL_BLOB_BYTES (UINT64_C(64) << 10)

/** One task of the pool: `count` pieces; more than one: all inline, or all small in one pack. */
typedef struct esdm__read_job {
    size_t first;
    size_t count;
    double due; /* share of its target's bytes that come before it */
} esdm__read_job;

/** What a strided read leaves out is in no job, or between what one of them wants.
 * @param together as for esdm__read_pieces(). @param jobs room for `npieces`. @return how many. */
size_t esdm__read_jobs_make(const esdm__transfer *t, const esdm__piece *pieces, size_t npieces,
                            const size_t *together, esdm__read_job *jobs);
/**
 * How many of the first jobs tell what requests cost a target that nobody has measured, where there
 * are many small ones, with holes between them that are not read: three rounds of as many as the
 * pool has threads. In the third one two are read as one, with their hole. All are needed anyway.
 *
 * @param jobs those two become the second of them.
 * @return the target; NULL: nothing is to be learned.
 */
esdm__target *esdm__read_jobs_ask(const esdm__transfer *t, const esdm__piece *pieces,
                                  esdm__read_job *jobs, size_t njobs, uint64_t *ret_hole);
/** A job that takes less is so quick that holes are not worth a thought. */
#define ESDM__QUICK_JOB_NS UINT64_C(4000000)
/** What the target is told. @param round_ns of one job for each thread. @param spanned_ns of the
 * third round; 0: there was none. */
void esdm__read_jobs_learn(const esdm_session *session, esdm__target *target, uint64_t hole,
                           uint64_t round_ns, uint64_t spanned_ns);

/** Jobs come sorted by target: all of them are to be busy from the beginning to the end, and within
 *  each the order is to stay. Without memory the order is as good as before. */
void esdm__read_jobs_spread(esdm_session *session, const esdm__piece *pieces, esdm__read_job *jobs,
                            size_t njobs);

#endif
