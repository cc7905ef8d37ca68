/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_SCRATCH_H
#define ESDM_BASE_SCRATCH_H

/**
 * @file
 * Memory for the time of a call that is made for block after block. What is given back stays with
 * its thread, up to ESDM__SCRATCH_KEPT bytes, because the system takes longer to hand out fresh
 * pages than a fast codec takes to fill them. It ends with its thread, or as base/per_thread.h
 * says. Larger pieces are kept for all threads together, up to ESDM__SCRATCH_LARGE bytes; others go
 * back to the system at once.
 */

#include <stddef.h>

#define ESDM__SCRATCH_KEPT  ((size_t) 4 << 20)
#define ESDM__SCRATCH_LARGE ((size_t) 32 << 20)

/** Uninitialised, aligned as malloc's. NULL when out of memory. */
void *esdm__scratch_new(size_t bytes);
/** The same, but larger pieces are malloc's, which may have them at hand: for what is filled in no
 *  time. */
void *esdm__scratch_new_near(size_t bytes);
/** By any thread; NULL is nothing. */
void esdm__scratch_free(void *memory);

#endif
