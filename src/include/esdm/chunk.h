/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CHUNK_H
#define ESDM_CHUNK_H

/**
 * @file
 * ESDM's codecs for bytes that are kept elsewhere, such as chunks of HDF5 files: a chunk is encoded
 * as a fragment is (checksums of all blocks included), and tells by itself what it holds. No site
 * is needed. Threads: any.
 */

#include "esdm/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Encodes the numbers of a box without loss.
 *
 * @param chain codecs by their names, "field", "shuffle+zstd"; "none" stores them as they are.
 * @param type of numbers; in the byte order of this machine.
 * @param rank,shape elements along each axis, slowest first, each at least 1; rank 0: one element.
 * @param raw as many elements, dense; borrowed.
 * @param ret_bytes owned, free(). @param ret_size their number.
 * @return ESDM_EINVAL for a wrong chain, type or shape; ESDM_ENOENT for a codec that is not there;
 *         ESDM_ENOMEM.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_chunk_encode(const char *chain, esdm_type type,
                                                       uint32_t rank, const uint64_t *shape,
                                                       const void *raw, void **ret_bytes,
                                                       size_t *ret_size, esdm_error *err);

/**
 * Decodes and verifies what esdm_chunk_encode() made. Safe on hostile bytes.
 *
 * @param most largest number of bytes that may come out; more is ESDM_ECORRUPT.
 * @param ret_raw owned, free(). @param ret_size its bytes.
 * @return ESDM_ECORRUPT; ESDM_ENOTSUP for a codec that is not there or a newer version;
 * ESDM_ENOMEM.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_chunk_decode(const void *bytes, size_t size, size_t most,
                                                       void **ret_raw, size_t *ret_size,
                                                       esdm_error *err);

#ifdef __cplusplus
}
#endif
#endif
