/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef FIELD_TABLES_H
#define FIELD_TABLES_H

/** @file Static frequencies of the coder "lorenzo" (lorenzo.h): which levels share them. */

#include "base/buffer.h"
#include "esdm/status.h"
#include "kernels.h"

/** How often each token occurs at each level. */
typedef uint32_t field__counts[FIELD__TOKENS];

typedef struct field__tables {
    uint32_t count;
    uint8_t table[FIELD__LEVELS]; /**< of each level */
    uint16_t frequency[FIELD__TABLES_MOST][FIELD__TOKENS];
} field__tables;

/** Makes tables that neighbouring levels share, where that costs least.
 *  @param counts FIELD__LEVELS of them. */
void field__tables_make(const field__counts *counts, field__tables *ret);
void field__tables_put(const field__tables *tables, esdm__buffer *out);
/** False when they are not what field__tables_put() writes. */
bool field__tables_get(field__tables *tables, esdm__cursor *in);

/** What encoding each symbol takes. */
void field__tables_codes(const field__tables *tables,
                         field__token_code codes[FIELD__SYMBOLS_OF_ROWS]);
/** The decoder's form, one table of 2048 entries after the other. */
void field__tables_slots(const field__tables *tables, uint32_t *slots);

#endif
