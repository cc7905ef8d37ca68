/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MODEL_ACCURACY_QUANTITIES_H
#define ESDM_MODEL_ACCURACY_QUANTITIES_H

/** @file The quantities of esdm_accuracy as a table. For the files model/accuracy*.c alone. */

#include "esdm/accuracy.h"

typedef enum esdm__quantity_kind {
    ESDM__TOLERANCE,
    ESDM__SHARE,
    ESDM__COUNT,
    ESDM__CONSERVE,
    ESDM__NUMBER,
    ESDM__NUMBERS,
    ESDM__SPEED,
    ESDM__MODE
} esdm__quantity_kind;

typedef struct esdm__quantity {
    const char *name;
    const char *short_name; /**< or NULL */
    uint32_t flag;          /**< ESDM_ACCURACY_* */
    esdm__quantity_kind kind;
    size_t offset; /**< of the member */
    uint32_t most; /**< of an ESDM__COUNT */
} esdm__quantity;

#define ESDM__QUANTITIES 14
extern const esdm__quantity esdm__quantities[ESDM__QUANTITIES];

/** esdm_accuracy_check(). @param stored  by a version that had no upper limit of shares. */
esdm_status esdm__accuracy_check(const esdm_accuracy *accuracy, bool stored, esdm_error *err);

#endif
