/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_STREAM_H
#define ESDM_STREAM_H

/** @file Values of a selection part by part, to functions that run on them in parallel. */

#include "esdm/container.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A part of a selection. Borrowed during the call that gets it. */
typedef struct esdm_stream_part {
    uint64_t index; /**< 0, 1, … in the order in which parts are reduced */
    uint32_t rank;
    const uint64_t *offset; /**< first index in the dataset along each axis */
    const uint64_t *size;   /**< elements along each axis */
    uint64_t elements;      /**< all of them */
    const void *values;     /**< dense, in C order; NULL for the function that reduces */
    uint64_t out_of_range;  /**< values that the type in memory cannot hold, as esdm_read() tells */
} esdm_stream_part;

/**
 * Works on one part. Called by several threads at the same time, with other parts; it may read from
 * ESDM, and must neither write nor commit to the container, nor close it.
 *
 * @param ret_result what the function that reduces gets; NULL unless it is set.
 * @return ESDM_OK; ESDM_ECANCELED to end the read early; else the failure of the read, with the
 * words that were put into err, which is never NULL.
 */
typedef esdm_status (*esdm_stream_work)(const esdm_stream_part *part, void *user, void **ret_result,
                                        esdm_error *err);
/**
 * Takes the result of one part, after those of all parts before it, one at a time, on any of the
 * threads: sums come out the same however many threads there are.
 * @param result owned from here on, also when it fails.
 */
typedef esdm_status (*esdm_stream_reducer)(const esdm_stream_part *part, void *result, void *user,
                                           esdm_error *err);

/** What is done with the parts. Zero-initialise. */
typedef struct esdm_stream {
    esdm_type type;             /**< of the values in memory; ESDM_TYPE_NONE: the dataset's own */
    uint64_t part_bytes;        /**< of values at most in one part; 0: 1 MiB, 16 MiB where data lie
                                     on servers, and less where `engine.memory` is small */
    esdm_stream_work work;      /**< needed */
    esdm_stream_reducer reduce; /**< may be NULL */
    void (*discard)(void *result, void *user); /**< of parts that are not reduced, as the read has
                                                    ended before; may be NULL */
    void *user;                                /**< for all three */
} esdm_stream;

/**
 * Reads a box without having it in memory as a whole: it is cut into parts, where fragments end as
 * far as `part_bytes` allows, and these are read, decoded and given to `work` by the threads of the
 * session. What nobody wrote has the fill value, and all else is as esdm_read() gives it.
 *
 * At most two parts for each thread (eight where data lie on servers) are in memory, with what
 * decoding takes (`engine.memory`); of results as many that wait for one before them.
 *
 * @param space selection without strides; where values would go in memory does not matter. NULL:
 * all values. After a failure, or ESDM_ECANCELED, no further part begins, those under way end, and
 * nothing else is reduced. Which parts were begun by then is not determined. Threads: as
 * esdm_read(). @return ESDM_ENOTSUP: elements with texts or arrays of their own. ESDM_EINVAL: a
 * selection with strides or outside of the dataset, types that do not convert. What the functions
 * returned. Else as esdm_read().
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_read_stream(esdm_dataset *dataset,
                                                      const esdm_dataspace *space,
                                                      const esdm_stream *stream, esdm_error *err);

#ifdef __cplusplus
}
#endif

#endif
