/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef FIELD_VALUES_H
#define FIELD_VALUES_H

/** @file Elements of any type as doubles, as ordered integers and back. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The types that the codec tells apart; others are UINT8. Stored. */
typedef enum field__kind {
    FIELD__UINT8,
    FIELD__INT8,
    FIELD__UINT16,
    FIELD__INT16,
    FIELD__UINT32,
    FIELD__INT32,
    FIELD__UINT64,
    FIELD__INT64,
    FIELD__FLOAT32,
    FIELD__FLOAT64,
    FIELD__KINDS
} field__kind;

field__kind field__kind_of(int32_t type);
bool field__is_number(int32_t type);
size_t field__kind_bytes(field__kind kind);
static inline bool
field__is_float(field__kind kind)
{
    return kind >= FIELD__FLOAT32;
}

/** Values first … first+count-1 as doubles; 64-bit integers are rounded. */
void field__load(field__kind kind, const void *raw, size_t first, size_t count, double *to);
/** Doubles rounded to the type; integers must be in its range, which field__fits tells. */
void field__store(field__kind kind, const double *from, size_t first, size_t count, void *raw);
/** `value` as an integer type has it, as a double; NAN outside its range. */
double field__rounded(field__kind kind, double value);

/** Values as integers in the same order, wrapped around for uint64. */
void field__load_ordered(field__kind kind, const void *raw, size_t first, size_t count,
                         int64_t *to);
void field__store_ordered(field__kind kind, const int64_t *from, size_t first, size_t count,
                          void *raw);

#endif
