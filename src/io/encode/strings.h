/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_ENCODE_STRINGS_H
#define ESDM_IO_ENCODE_STRINGS_H

/**
 * @file
 * Stored form of string elements: n lengths (u32, little-endian, without NUL; 2^32-1 for NULL),
 * then the bytes one after the other. Older readers do not know NULL: fragments that hold one have
 * a version that these refuse (codec/blob.h). Pure functions.
 */

#include "base/buffer.h"
#include "esdm/status.h"

/** Appends the stored form of `n` texts. ESDM_EINVAL over 4 GiB - 2 a text. */
esdm_status esdm__strings_encode(const char *const *texts, uint64_t n, esdm__buffer *out,
                                 bool *ret_has_null, esdm_error *err);

/** Element access into stored bytes. Borrows them. */
typedef struct esdm__strings_view {
    const uint8_t *raw;
    uint64_t *offsets; /* owned; n + 1 entries, from raw */
    uint64_t n;
} esdm__strings_view;

/** ESDM_ECORRUPT when the lengths do not add up to `bytes`. */
esdm_status esdm__strings_open(const void *raw, size_t bytes, uint64_t n,
                               esdm__strings_view *ret_view, esdm_error *err);
void esdm__strings_close(esdm__strings_view *view);
/** Stands for a stored NULL where NULL means something else. Not to be freed. */
extern const char esdm__text_null[1];
/** A copy of text i, owned, free(), or esdm__text_null; NULL when out of memory. */
char *esdm__strings_dup(const esdm__strings_view *view, uint64_t i);

#endif
