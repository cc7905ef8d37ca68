/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_LAYOUT_CLAIMS_H
#define ESDM_LAYOUT_CLAIMS_H

/**
 * @file
 * Boxes that several owners claim, and whether one of them wants what another one has. Found by
 * cutting space in two again and again, so that n boxes which do not meet cost O(n log n). Pure
 * functions on arrays of numbers, which may be sent between processes as they are.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What an owner says of a box. */
enum { ESDM__CLAIM_WANTS = 1, ESDM__CLAIM_HAS = 2 };

/** Numbers of a claim: owner and kind, lower corner, upper corner (exclusive). */
static inline size_t
esdm__claim_numbers(uint32_t rank)
{
    return 1 + (size_t) 2 * rank;
}

static inline uint64_t
esdm__claim_head(uint64_t owner, unsigned kind)
{
    return owner << 2 | kind;
}

/** Puts the claims one behind the other that make one larger box; all have the same kind, and the
 *  owner of the first remains. Finds neighbours that follow each other, as the parts of a regular
 *  decomposition do. @return how many are left. */
size_t esdm__claims_join(uint32_t rank, uint64_t *claims, size_t count);

/**
 * Whether an owner wants an element that another owner has. Changes the order of the claims.
 *
 * @param tests so often a box is compared with another one, or with a cut, at most; then, or
 *              without memory, the answer is true.
 */
bool esdm__claims_meet(uint32_t rank, uint64_t *claims, size_t count, uint64_t tests);

#endif
