/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MODEL_VALUES_H
#define ESDM_MODEL_VALUES_H

/**
 * @file
 * Walking values of any type: copying, freeing, comparing, and their stored form
 * (model/usertype.h). Types are complete. Memory needs no alignment. Pure functions.
 */

#include "base/buffer.h"
#include "model/usertype.h"

/** Frees what hangs below and sets it to NULL. */
void esdm__values_clear(esdm__typeref of, uint64_t count, void *values);
/** Deep copy. On failure `to` holds nothing that must be freed. */
esdm_status esdm__values_copy(esdm__typeref of, uint64_t count, const void *from, void *to,
                              esdm_error *err);
bool esdm__values_equal(esdm__typeref of, uint64_t count, const void *a, const void *b);

/** Bytes of the stored form, saturating. */
uint64_t esdm__values_stored_bytes(esdm__typeref of, uint64_t count, const void *values);
/** Appends the stored form; a lack of memory shows in out->failed. ESDM_EINVAL for an array that
 *  says NULL holds elements. */
esdm_status esdm__values_encode(esdm__typeref of, uint64_t count, const void *values,
                                esdm__buffer *out, esdm_error *err);
/**
 * Takes the stored form of `count` elements from the cursor. Safe on any bytes.
 * @param values room for the elements; on failure nothing in it must be freed.
 * @return ESDM_ECORRUPT or ESDM_ENOMEM.
 */
esdm_status esdm__values_decode(esdm__typeref of, uint64_t count, esdm__cursor *cursor,
                                void *values, esdm_error *err);

/** Stored form of `count` elements of fixed size that lie `step` bytes apart in memory. */
void esdm__values_pack(esdm__typeref of, uint64_t count, const void *values, int64_t step,
                       uint8_t *ret_stored);
/** The reverse; padding in memory stays as it is. */
void esdm__values_unpack(esdm__typeref of, uint64_t count, const uint8_t *stored, void *values,
                         int64_t step);

/** One element in memory of its own, with all that is within it. Strings lie in the same
 *  allocation. */
esdm_status esdm__value_new(esdm__typeref of, const void *value, void **ret_value, esdm_error *err);
/** Frees it. NULL is accepted. */
void esdm__value_free(esdm__typeref of, void *value);

#endif
