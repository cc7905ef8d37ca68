/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MODEL_DOCUMENT_VALUE_H
#define ESDM_MODEL_DOCUMENT_VALUE_H

/**
 * @file
 * Reading the container document: the way to the value being read, for error texts, and single
 * values. `key` is the member that holds the value, NULL for the element of a list. Wrong values
 * are ESDM_ECORRUPT. One thread.
 */

#include "model/attribute.h"
#include "model/tape.h"
#include "model/values.h"

typedef struct esdm__document_reader {
    esdm__tape tape;
    esdm_container *container;
    esdm_error *err;
    uint64_t format;
    uint32_t depth;
    struct {
        const char *key;
        uint32_t index; /* of the element that is being read; UINT32_MAX: none yet */
    } path[4];
} esdm__document_reader;

/** What is read from now on lies in member `key`. */
void esdm__document_enter(esdm__document_reader *r, const char *key);
/** In its next element. */
void esdm__document_advance(esdm__document_reader *r);
void esdm__document_leave(esdm__document_reader *r);

/** ESDM_ECORRUPT "container document: datasets[3].attributes[1]: text". */
esdm_status esdm__document_wrong(esdm__document_reader *r, const char *key, const char *format, ...)
    ESDM_PRINTF(3, 4);
/** Passes the result of a model function on; a refusal, whose text is in r->err, becomes the
 *  same as above. */
esdm_status esdm__document_result(esdm__document_reader *r, esdm_status st);

esdm_status esdm__document_expect(esdm__document_reader *r, const char *key, uint32_t node,
                                  esdm__tape_kind kind);
/** A whole number from 0 to `max`; where larger ones than INT64_MAX are allowed, also as a text. */
esdm_status esdm__document_u64(esdm__document_reader *r, const char *key, uint32_t node,
                               uint64_t max, uint64_t *ret_value);
/** A text without NUL. @param ret_text owned, free(). */
esdm_status esdm__document_text(esdm__document_reader *r, const char *key, uint32_t node,
                                char **ret_text);
/** A text without NUL that fits ESDM_NAME_MAX. @param ret_name ESDM_NAME_MAX + 1 bytes. */
esdm_status esdm__document_name(esdm__document_reader *r, const char *key, uint32_t node,
                                char *ret_name);
/** The name of an atomic type, or the number of a user-defined one that stands before. */
esdm_status esdm__document_type(esdm__document_reader *r, const char *key, uint32_t node,
                                esdm_type *ret_type);

/**
 * Reads `nodes` neighbouring values of an atomic type from `node` on. A text (ESDM_TYPE_CHAR) is
 * one node and as many elements as it has bytes.
 * @param ret_values owned, free(): one allocation; NULL when there are none.
 */
esdm_status esdm__document_values(esdm__document_reader *r, const char *key, uint32_t node,
                                  uint32_t nodes, esdm_type type, uint64_t *ret_count,
                                  void **ret_values);

/** Reads `count` > 0 values of a user-defined type: one text.
 *  @param ret_values owned, esdm__attribute_values_free(). */
esdm_status esdm__document_user_values(esdm__document_reader *r, const char *key, uint32_t node,
                                       esdm_type type, uint64_t count, void **ret_values);

#define ESDM__DOCUMENT_MEMBERS_MAX 11

/** Finds the members of an object, of which the first `required` must be there, and no others.
 *  @param keys at most ESDM__DOCUMENT_MEMBERS_MAX, then NULL. @param slots slots[i] is the node of
 *  keys[i], 0 when it is missing (0 is the document itself, which is nobody's member). */
esdm_status esdm__document_members(esdm__document_reader *r, uint32_t object,
                                   const char *const *keys, size_t required, uint32_t *slots);
/** The group of an object: the root when it is not stated (node 0). */
esdm_status esdm__document_parent(esdm__document_reader *r, uint32_t node, esdm_group **ret_group);
/** Reads one type (document_read_types.c). */
esdm_status esdm__document_usertype(esdm__document_reader *r, uint32_t node);

#endif
