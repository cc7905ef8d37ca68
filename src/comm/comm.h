/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_COMM_COMM_H
#define ESDM_COMM_COMM_H

/** @file Agreement between the ranks of an esdm_comm. All functions are collective. */

#include <stdbool.h>

#include "esdm/comm.h"

/**
 * Whether all ranks succeeded. Otherwise every rank returns the failure of the lowest one that
 * failed, with "rank N: " in front. @param status,err of this rank; err holds its text.
 */
esdm_status esdm__comm_agree(esdm_comm *comm, esdm_status status, esdm_error *err);

/** The same, and replaces values[1] … values[count] by the largest of any rank, unless messages
 * fail. values[0] is for the function's own use. */
esdm_status esdm__comm_agree_on(esdm_comm *comm, esdm_status status, uint64_t *values, size_t count,
                                esdm_error *err);

/**
 * The same with one value, asked for twice: a rank that misses one of the two answers knows the
 * other, and goes on as all do.
 * @param ret_lost it has missed both: *value is this rank's.
 */
esdm_status esdm__comm_agree_twice(esdm_comm *comm, esdm_status status, uint64_t *value,
                                   bool *ret_lost, esdm_error *err);

/**
 * Agreement, largest numbers and sums in as few messages as possible.
 *
 * @param maxima as `values` of esdm__comm_agree_on(), with `nmaxima` + 1 entries.
 * @param values,ret_lower,ret_all as of the comm's `sums`; set when all succeeded.
 */
esdm_status esdm__comm_exchange(esdm_comm *comm, esdm_status status, uint64_t *maxima,
                                size_t nmaxima, const uint64_t *values, size_t nvalues,
                                uint64_t *ret_lower, uint64_t *ret_all, esdm_error *err);

/** Sends a block of rank 0's bytes to all. @param data,bytes in: of rank 0; out on the others:
 *  owned, free(), with a NUL behind the last byte. ESDM_ENOMEM on all when one has no memory. */
esdm_status esdm__comm_share_block(esdm_comm *comm, void **data, size_t *bytes, esdm_error *err);

#endif
