/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MODEL_ATTRIBUTE_H
#define ESDM_MODEL_ATTRIBUTE_H

/** @file One attribute in memory: used by attribute.c and the container document. */

#include "model/container.h"

typedef struct esdm__attribute_entry {
    const char *name; /* the container's: esdm_container.words */
    uint32_t hash;
    esdm_type type;
    uint64_t count;
    void *values; /* owned; strings lie behind their pointers in one allocation, what elements of a
                     user-defined type hold in others; NULL if count is 0 */
} esdm__attribute_entry;

/**
 * Takes over one attribute that is not there yet: its name is checked, its values are not copied.
 * On failure the caller keeps `values`.
 */
esdm_status esdm__attribute_adopt(esdm_attributes *list, const char *name, esdm_type type,
                                  uint64_t count, void *values, esdm_error *err);

/** Frees values in that form. NULL is accepted. */
void esdm__attribute_values_free(const esdm_container *container, esdm_type type, uint64_t count,
                                 void *values);

#endif
