/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MODEL_TAPE_H
#define ESDM_MODEL_TAPE_H

/**
 * @file
 * A JSON text as one flat array of nodes, made in one pass without an allocation per value: opening
 * a container reads its document, which may hold tens of thousands of attributes. Strict RFC 8259:
 * UTF-8 is checked, duplicate members are the reader's business. One thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "esdm/status.h"

typedef enum esdm__tape_kind {
    ESDM__TAPE_NULL,
    ESDM__TAPE_FALSE,
    ESDM__TAPE_TRUE,
    ESDM__TAPE_NUMBER,
    ESDM__TAPE_STRING,
    ESDM__TAPE_ARRAY,
    ESDM__TAPE_OBJECT
} esdm__tape_kind;

/** The first child of an array or object is the next node; an object's children are key, value,
 *  key, value … */
typedef struct esdm__tape_node {
    uint32_t next;   /**< index of the node behind this value and all that is in it */
    uint32_t start;  /**< of its text, in bytes; of a string, behind the quote */
    uint32_t length; /**< bytes of text (strings: escaped), or number of elements or members */
    uint8_t kind;
    bool escaped; /**< a string with escapes */
} esdm__tape_node;

typedef struct esdm__tape {
    const char *text; /**< borrowed */
    size_t bytes;
    esdm__tape_node *nodes; /**< owned; [0] is the document */
    uint32_t count;
    uint32_t capacity;
} esdm__tape;

/** Longest text, and deepest nesting, that are accepted. */
#define ESDM__TAPE_MAX_BYTES (UINT32_C(1) << 30)
#define ESDM__TAPE_MAX_DEPTH 8

/** ESDM_ECORRUPT names the byte. The tape needs esdm__tape_clear() in every case. */
esdm_status esdm__tape_parse(esdm__tape *tape, const char *text, size_t bytes, esdm_error *err);
void esdm__tape_clear(esdm__tape *tape);

/** Whether the string equals an ASCII text without characters that need escapes. */
bool esdm__tape_equals(const esdm__tape *tape, const esdm__tape_node *node, const char *text,
                       size_t bytes);
/** Writes the text of a string without its escapes, at most node->length bytes and no NUL behind
 *  them. @return bytes written. */
size_t esdm__tape_decode(const esdm__tape *tape, const esdm__tape_node *node, char *ret_text);

/** "an object", "a number" … */
const char *esdm__tape_kind_name(const esdm__tape_node *node);

#endif
