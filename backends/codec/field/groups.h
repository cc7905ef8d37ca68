/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef FIELD_GROUPS_H
#define FIELD_GROUPS_H

/**
 * @file
 * Coder "groups", for speed: folded differences (modes.h) of points that are not masked, one after
 * the other, each 64 of them in as many planes of bits as the largest needs.
 *
 * Stored: mode u8; bits of a width u8 (4 or 8); a width for each group, the first one lowest, and
 * bits 0 to the next byte; the planes of each group, that of the lowest bit first: u64, whose
 * lowest bit is of the first difference. The last group is filled with zeros.
 */

#include "pack.h"
#include "volume.h"

/** Codes of 32 bits; masked ones are filled. ESDM_ENOMEM. */
esdm_status field__groups_encode(const field__volume *volume, esdm__buffer *out, esdm_error *err);
/** @param sink gets each row as soon as it is complete. */
esdm_status field__groups_decode(const field__volume *volume, esdm__cursor *in,
                                 field__row_sink sink, void *user, esdm_error *err);

#endif
