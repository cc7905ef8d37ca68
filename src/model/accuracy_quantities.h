/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MODEL_ACCURACY_QUANTITIES_H
#define ESDM_MODEL_ACCURACY_QUANTITIES_H

/** @file The quantities of esdm_accuracy as a table. For the files model/accuracy*.c alone. */

#include "base/buffer.h"
#include "esdm/accuracy.h"

typedef enum esdm__quantity_kind {
    ESDM__TOLERANCE,
    ESDM__SHARE,
    ESDM__COUNT,
    ESDM__CONSERVE,
    ESDM__NUMBER,
    ESDM__NUMBERS,
    ESDM__SPEED,
    ESDM__MODE,
    ESDM__DECIBELS,
    ESDM__REGIONS,
    ESDM__NSB, /**< netCDF's, as significant bits */
    ESDM__NSD  /**< likewise */
} esdm__quantity_kind;

typedef struct esdm__quantity {
    const char *name;
    const char *short_name; /**< or NULL */
    uint32_t flag;          /**< ESDM_ACCURACY_* */
    esdm__quantity_kind kind;
    size_t offset;  /**< of the member */
    uint32_t most;  /**< of an ESDM__COUNT */
    uint32_t least; /**< likewise; 0 is 1 */
} esdm__quantity;

#define ESDM__QUANTITIES 20
/** Largest psnr: double knows no more. */
#define ESDM__DECIBELS_MOST 300
extern const esdm__quantity esdm__quantities[ESDM__QUANTITIES];

/* What numbers may be off by. */
#define ESDM__TOLERANCES                                                                           \
    ((uint32_t) (ESDM_ACCURACY_ABSOLUTE_TOLERANCE | ESDM_ACCURACY_RELATIVE_TOLERANCE |             \
                 ESDM_ACCURACY_SIGNIFICANT_DIGITS | ESDM_ACCURACY_SIGNIFICANT_BITS |               \
                 ESDM_ACCURACY_RANGE_TOLERANCE | ESDM_ACCURACY_STD_TOLERANCE |                     \
                 ESDM_ACCURACY_PSNR | ESDM_ACCURACY_GRADIENT_TOLERANCE |                           \
                 ESDM_ACCURACY_VECTOR_TOLERANCE))

/** How a text is read. */
typedef struct esdm__accuracy_reading {
    const char *units; /**< of the dataset, or NULL */
    bool stored;       /**< by a version that had no upper limit of shares */
    bool inner;        /**< what a region states */
} esdm__accuracy_reading;

/** Bytes of one part of a text: a quantity, or a region with what it states. */
size_t esdm__accuracy_part(const char *text);
/** Joins "NAME=VALUE" and regions, separated by ';' and ',', to *into. In the C locale. */
esdm_status esdm__accuracy_read_parts(esdm_accuracy *into, const char *text,
                                      const esdm__accuracy_reading *how, esdm_error *err);

/** Appends a number as short as it reads back. */
void esdm__accuracy_put_number(esdm__buffer *out, double number);
/** Appends the quantities, with a text between them. In the C locale. */
void esdm__accuracy_put_apart(esdm__buffer *out, const esdm_accuracy *accuracy,
                              const char *between);

/* Regions, in model/accuracy_regions.c. */
/** Whether a part of a text begins like a region. */
bool esdm__region_begins(const char *text);
/** Reads regions that are separated by ';' instead of those that *accuracy has. */
esdm_status esdm__regions_read(esdm_accuracy *accuracy, const char *text,
                               const esdm__accuracy_reading *how, esdm_error *err);
/** Adds those of `other`; where both have the same region the stricter tolerances count. */
esdm_status esdm__regions_join(esdm_accuracy *into, const esdm_accuracy *other, esdm_error *err);
/** Appends "; "-separated texts. */
void esdm__regions_put(esdm__buffer *out, const esdm_accuracy *accuracy);
/** Whether both state the same of the same regions, in the same order. */
bool esdm__regions_equal(const esdm_accuracy *a, const esdm_accuracy *b);
/** Whether each of them is right, by itself and beside what is stated for all. */
esdm_status esdm__regions_check(const esdm_accuracy *accuracy, bool stored, esdm_error *err);
/** One that is looser than what is stated for all states nothing: ESDM_EINVAL. */
esdm_status esdm__regions_check_use(const esdm_accuracy *accuracy, esdm_error *err);

/** esdm_accuracy_check(). @param stored  by a version that had no upper limit of shares. */
esdm_status esdm__accuracy_check(const esdm_accuracy *accuracy, bool stored, esdm_error *err);

#endif
