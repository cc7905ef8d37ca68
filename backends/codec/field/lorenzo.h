/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef FIELD_LORENZO_H
#define FIELD_LORENZO_H

/**
 * @file
 * Coder "lorenzo", the balance of bytes and time: differences to neighbours, coded by static
 * frequencies. Which frequencies a difference is coded with is told by the sizes of the differences
 * around it in the rows before, so those of a whole row are known before it is decoded.
 *
 * How differences are taken, and what masked points stand for, is in modes.h.
 *
 * A difference, folded (0, -1, 1, -2, …) into u, is a token and raw bits: u itself below 16; from
 * there on two tokens for each power of two, and the bits below the two highest ones.
 *
 * The level of a difference is that of s = 1 + 2 N + NW + NE + Z + ZN + ZS + B, the u at the points
 * around it (at most 65535 each): two levels for each power of two. Neighbouring levels share a
 * table of frequencies.
 *
 * Stored, little-endian: mode u8; number of tables u8; for each the number of its levels u8, and
 * its table: last token u8, frequencies (varint) up to it, their sum 2048; varint bytes of raw
 * bits; varint number of words; raw bits, lowest first, and 8 bytes 0; 32 states u32; words u16,
 * then 16 words 0. The states are those of range asymmetric numeral systems (J. Duda,
 * arXiv:1311.2540), from 2^15 to 2^31, refilled by one word. Token i of a row that is coded is of
 * state i mod 32.
 */

#include "pack.h"
#include "volume.h"

/** Blocks of fewer elements are not worth their tables. */
#define FIELD__LORENZO_LEAST 4096u

/** Codes of 32 bits; masked ones are filled. ESDM_ENOMEM. */
esdm_status field__lorenzo_encode(const field__volume *volume, esdm__buffer *out, esdm_error *err);
/** @param sink gets each row as soon as it is complete. */
esdm_status field__lorenzo_decode(const field__volume *volume, esdm__cursor *in,
                                  field__row_sink sink, void *user, esdm_error *err);

#endif
