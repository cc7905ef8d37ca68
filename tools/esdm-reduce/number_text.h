/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_REDUCE_NUMBER_TEXT_H
#define ESDM_REDUCE_NUMBER_TEXT_H

/** @file Numbers as text, for lists of millions of them. Any thread. */

#include <stddef.h>
#include <stdint.h>

#define NUMBER_TEXT_BYTES 32
/** Significant ones of number_text(). */
#define NUMBER_TEXT_DIGITS 10

/** The same characters as printf("%.10g"), in a tenth of the time where the number is common.
 *  @return how many. */
size_t number_text(double value, char ret[NUMBER_TEXT_BYTES]);
/** The same as printf("%u"). */
size_t whole_text(uint64_t number, char ret[NUMBER_TEXT_BYTES]);

#endif
