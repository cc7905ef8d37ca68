/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CODEC_TALLY_CHECKSUMS_H
#define ESDM_CODEC_TALLY_CHECKSUMS_H

/**
 * @file
 * Checksums (base/checksum.h) of blocks, and in the same pass what a tally has of their numbers:
 * one of the two waits for memory while the other one computes. Pure functions.
 */

#include "codec/tally_kernels.h"

/** Bytes of a block. */
#define ESDM__TALLY_BLOCK_BYTES 4096u

/** @param blocks at least one. @param ret_checksums of each block. @param ret as of
 *  esdm__tally_all_fn, of all blocks together. */
typedef void (*esdm__tally_checksums_fn)(const void *numbers, size_t blocks,
                                         uint64_t *ret_checksums, esdm__run *ret);

#if defined(__x86_64__)
/** Need AVX2. */
void esdm__tally_checksums_f32(const void *numbers, size_t blocks, uint64_t *ret_checksums,
                               esdm__run *ret);
void esdm__tally_checksums_f64(const void *numbers, size_t blocks, uint64_t *ret_checksums,
                               esdm__run *ret);
#endif

#endif
