/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef FIELD_PACK_H
#define FIELD_PACK_H

/**
 * @file
 * Coder "pack", for speed: differences along up to three axes, compressed as bytes of equal weight.
 * Blocks that were stored before there was the coder "groups" may have them packed into as many
 * bits as the largest of 512 needs.
 *
 * Stored: axes of the differences u8 (0 none, 1 x, 2 y too, 3 z too), method u8; packed: a width u8
 * for each 512 differences, then the packed ones; else the four byte planes (field__bytes_encode).
 */

#include "volume.h"

enum { FIELD__PACK_BITS, FIELD__PACK_PLANES };

/** Codes of 32 bits. Masked ones must be filled. @param ret_axes of the differences. */
esdm_status field__pack_encode(const field__volume *volume, esdm__buffer *out, uint32_t *ret_axes,
                               esdm_error *err);

/** Is given each row of codes as soon as it is complete. */
typedef void (*field__row_sink)(void *user, const field__volume *volume, size_t row);
esdm_status field__pack_decode(const field__volume *volume, esdm__cursor *in, field__row_sink sink,
                               void *user, esdm_error *err);

#endif
