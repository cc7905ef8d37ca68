/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MODEL_NAMES_H
#define ESDM_MODEL_NAMES_H

/**
 * @file
 * Finding objects by name in constant time, and the rules for names. One thread at a time for
 * changes; lookups may run at once with each other.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hidden_names.h"
#include "esdm/status.h"

/** Hash table from names to numbers. It holds hashes, not names: the owner tells the name of a
 *  number. Zero-initialise. */
typedef struct esdm__names {
    struct esdm__names_slot *slots; /* owned */
    uint32_t capacity;              /* of `slots` */
    uint32_t count;
} esdm__names;

/** The name that belongs to `value`; `owner` is the object that holds the table. */
typedef const char *(*esdm__names_lookup)(const void *owner, uint32_t value);

/** NULL gives 0. */
uint32_t esdm__names_hash(const char *name);
void esdm__names_clear(esdm__names *names);
/** Makes room for one more name; false: out of memory. */
bool esdm__names_reserve(esdm__names *names);
/** Adds an entry; room was reserved and the name is not there. */
void esdm__names_add(esdm__names *names, uint32_t hash, uint32_t value);
/** Takes an entry out; it must be there. */
void esdm__names_remove(esdm__names *names, uint32_t hash, uint32_t value);
/** Lowers every number above `value` by one: an object was removed from a list. */
void esdm__names_shift(esdm__names *names, uint32_t value);
/** false, and *ret_value untouched, when there is none. */
bool esdm__names_find(const esdm__names *names, const char *name, uint32_t hash,
                      esdm__names_lookup lookup, const void *owner, uint32_t *ret_value);

/** Whether the bytes are well-formed UTF-8 (no surrogates, nothing over U+10FFFF). */
bool esdm__utf8_is_valid(const char *text, size_t bytes);

/** Checks a container name and writes the normalised form (see esdm_container_normalise). */
esdm_status esdm__name_normalise(const char *name, char *buffer, esdm_error *err);
/** Checks the name of a branch: 1 to ESDM_BRANCH_MAX bytes, as a container's name without '@', '?',
 *  ':' and blanks, already normalised. */
esdm_status esdm__branch_check(const char *branch, esdm_error *err);

/** Checks the name of a group, dimension, dataset or attribute. `what` names the kind. */
esdm_status esdm__name_check(const char *name, const char *what, esdm_error *err);

#endif
