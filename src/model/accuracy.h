/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MODEL_ACCURACY_H
#define ESDM_MODEL_ACCURACY_H

/** @file What esdm/accuracy.h states, in memory and as text. Pure. */

#include "base/buffer.h"
#include "esdm/accuracy.h"

/** Appends the text of esdm_accuracy_print(). The caller has set the "C" locale. */
void esdm__accuracy_put(esdm__buffer *out, const esdm_accuracy *accuracy);
/** The quantity of that name, long or short: ESDM_ACCURACY_*; 0: there is none. */
uint32_t esdm__accuracy_flag(const char *name);
/** esdm_accuracy_parse() for a text that was stored: earlier versions took shares of 1 and more. */
esdm_status esdm__accuracy_parse_stored(esdm_accuracy *accuracy, const char *text, esdm_error *err);
/** Whether a number of that type can have an accuracy. */
bool esdm__accuracy_has_type(esdm_type type);
/** Whether both state the same; NULL states nothing. */
bool esdm__accuracy_equal(const esdm_accuracy *a, const esdm_accuracy *b);
/** Adds what `other` states; of a quantity that both state the stricter one counts, of speeds and
 *  modes the other's. ESDM_EINVAL: too many exact values. */
esdm_status esdm__accuracy_join(esdm_accuracy *into, const esdm_accuracy *other, esdm_error *err);
/** Likewise of two statements that are complete, each for itself: relative_finest belongs to the
 *  relative tolerance of its own, and loosens no other one. */
esdm_status esdm__accuracy_join_statement(esdm_accuracy *into, const esdm_accuracy *other,
                                          esdm_error *err);
/** The tolerances of a region as a statement of its own. */
void esdm__region_accuracy(const esdm_accuracy_region *region, esdm_accuracy *ret);
/** Sets the member of the dataset, and nothing else. *ret_changed (may be NULL): false when it was
 *  so already. */
esdm_status esdm__dataset_put_accuracy(esdm_dataset *dataset, const esdm_accuracy *accuracy,
                                       bool *ret_changed, esdm_error *err);

/* Thresholds are no differences: kelvin and degrees Celsius are not the same for them. */
#define ESDM__THRESHOLDS                                                                           \
    ((uint32_t) ESDM_ACCURACY_LOSSLESS_UP_TO | (uint32_t) ESDM_ACCURACY_LOSSLESS_FROM |            \
     (uint32_t) ESDM_ACCURACY_EXACT_VALUES)
/** What is stated in the units of the dataset. */
#define ESDM__IN_UNITS                                                                             \
    (ESDM__THRESHOLDS | (uint32_t) ESDM_ACCURACY_ABSOLUTE_TOLERANCE |                              \
     (uint32_t) ESDM_ACCURACY_RELATIVE_FINEST | (uint32_t) ESDM_ACCURACY_REGIONS |                 \
     (uint32_t) ESDM_ACCURACY_GRADIENT_TOLERANCE | (uint32_t) ESDM_ACCURACY_VECTOR_TOLERANCE |     \
     (uint32_t) ESDM_ACCURACY_MEAN_TOLERANCE)
#define ESDM__LOSES_NOTHING                                                                        \
    ((uint32_t) ESDM_ACCURACY_MODE | (uint32_t) ESDM_ACCURACY_COMPRESSION_SPEED |                  \
     (uint32_t) ESDM_ACCURACY_DECOMPRESSION_SPEED)

/** Whether numbers in these units are the same; `before` is not "". @param thresholds are stated.
 */
bool esdm__accuracy_same_units(const char *before, const char *now, bool thresholds);
/** Before the attribute `units` becomes another one: what is stated holds in those of now. */
esdm_status esdm__accuracy_note_units(esdm_dataset *dataset, esdm_error *err);

#endif
