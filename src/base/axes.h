/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_AXES_H
#define ESDM_BASE_AXES_H

/** @file Shapes for libraries that know only a few axes. Pure. */

#include <stddef.h>
#include <stdint.h>

/**
 * Joins the slow axes until at most `most` (at least 1) are left; those of one element do not
 * count.
 * @param rank of `shape`, slowest first; 0: not known. What does not divide the `n` elements, as in
 *        damaged data, ends the list early.
 * @param ret_length at least `most` lengths, fastest first; their product is n.
 * @return how many were set, at least 1.
 */
uint32_t esdm__axes_join(uint32_t rank, const uint64_t *shape, size_t n, uint32_t most,
                         size_t *ret_length);

#endif
