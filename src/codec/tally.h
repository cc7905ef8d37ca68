/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CODEC_TALLY_H
#define ESDM_CODEC_TALLY_H

/**
 * @file
 * Statistics of numbers, made block by block while they are in the processor's cache. Pure
 * functions; one tally is used by one thread.
 */

#include <stddef.h>

#include "base/statistics.h"

typedef struct esdm__tally {
    int32_t type;                 /* esdm_type, of numbers */
    const esdm__missing *missing; /* borrowed; of the same class */
    esdm__statistics statistics;  /* so far; class ESDM__CLASS_NONE: nothing yet */
    bool masked;                  /* something was missing in the last numbers */
} esdm__tally;

/** The class of a type; ESDM__CLASS_NONE when it is no number. */
uint8_t esdm__class_of(int32_t type);
/** A number of that type. */
esdm__number esdm__number_of(int32_t type, const void *value);
/** Bytes of a number of that type, which is one of numbers. */
size_t esdm__tally_number_bytes(int32_t type);
/** Adds `n` numbers. */
void esdm__tally_add(esdm__tally *tally, const void *numbers, size_t n);
/** Adds the numbers of whole blocks of ESDM__TALLY_BLOCK_BYTES, and tells the checksum of each
 *  (base/checksum.h): in one pass where that is faster. */
void esdm__tally_add_blocks(esdm__tally *tally, const void *numbers, size_t blocks,
                            uint64_t *ret_checksums);

#endif
