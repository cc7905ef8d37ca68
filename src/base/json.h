/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_JSON_H
#define ESDM_BASE_JSON_H

/**
 * @file
 * The one place of the library that parses JSON (`unit.includes` holds it). Tools, which see public
 * headers alone, have tool_json_read(); plug-ins from elsewhere get this one with the plug-in kit.
 *
 * Of JSON that people wrote every error names the source, and line and column (syntax) or
 * the JSON path ("site.json: targets[0].directory: expected a string, found a number").
 *
 * A node is a value together with the way to it. Nodes live on the caller's stack and borrow their
 * parent, which must outlive them; nothing needs to be freed. Wrong input is ESDM_EINVAL.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "esdm/status.h"

/** Largest text that is accepted, in bytes: a longer one is not a configuration. */
#define ESDM__JSON_MAX_BYTES (16u << 20)

typedef struct esdm__json_node {
    json_t *value;                        /**< borrowed */
    const char *source;                   /**< file name for messages; borrowed */
    const struct esdm__json_node *parent; /**< NULL for the document; borrowed */
    const char *key;                      /**< member of an object, NULL: element of an array */
    size_t index;                         /**< of the element */
} esdm__json_node;

/** Parses an object or array; duplicate keys are errors. Messages quote nothing of a document that
 *  seems to hold secrets. @param ret_value owned, json_decref(). */
esdm_status esdm__json_parse(const char *text, size_t bytes, const char *source, json_t **ret_value,
                             esdm_error *err);

/** Of what programs wrote, where damage says nothing to anybody: the same checks. NULL: it is no
 *  object or array, a key stands twice, it is nested too deep or too long, memory ran out, or
 *  `text` is NULL. @return owned, json_decref(). */
json_t *esdm__json_read(const char *text);
/** The same, also of a text, a number, true, false or null. */
json_t *esdm__json_read_any(const char *text);

/** Reads and parses a file. ESDM_ENOENT, ESDM_EACCES, ESDM_EIO for the file itself. */
esdm_status esdm__json_load(const char *path, json_t **ret_value, esdm_error *err);
/** The same for one that is open. @param path for messages. */
esdm_status esdm__json_load_file(FILE *file, const char *path, json_t **ret_value, esdm_error *err);

/** The document itself as a node. */
esdm__json_node esdm__json_root(json_t *value, const char *source);

/** Writes "targets[0].directory" (cut to `bytes`); "" for the document. */
void esdm__json_path(const esdm__json_node *node, char *ret_path, size_t bytes);

/** ESDM_EINVAL with "SOURCE: PATH: text". */
esdm_status esdm__json_error(const esdm__json_node *node, esdm_error *err, const char *format, ...)
    ESDM_PRINTF(3, 4);

/** Member of an object; false, and *ret_node untouched, when it is not there. */
bool esdm__json_member(const esdm__json_node *object, const char *key, esdm__json_node *ret_node);
/** As above, but its absence is an error. */
esdm_status esdm__json_require(const esdm__json_node *object, const char *key,
                               esdm__json_node *ret_node, esdm_error *err);
/** Element of an array; `index` must be below json_array_size(). */
esdm__json_node esdm__json_element(const esdm__json_node *array, size_t index);

esdm_status esdm__json_is_object(const esdm__json_node *node, esdm_error *err);
esdm_status esdm__json_is_array(const esdm__json_node *node, esdm_error *err);
/** A member that is an array of at most `max` elements. Its absence is fine: *ret_count is 0. */
esdm_status esdm__json_list(const esdm__json_node *object, const char *key, size_t max,
                            esdm__json_node *ret_list, size_t *ret_count, esdm_error *err);

/** Refuses keys that are not among `keys` (NULL-terminated) and names the nearest one. */
esdm_status esdm__json_known_keys(const esdm__json_node *object, const char *const *keys,
                                  esdm_error *err);

/** A text without NUL. @param ret_text borrowed from the value. */
esdm_status esdm__json_string(const esdm__json_node *node, const char **ret_text, esdm_error *err);
/** Index of the text in `choices` (NULL-terminated). */
esdm_status esdm__json_choice(const esdm__json_node *node, const char *const *choices,
                              size_t *ret_index, esdm_error *err);
/** A whole number in [min, max]. */
esdm_status esdm__json_u64(const esdm__json_node *node, uint64_t min, uint64_t max,
                           uint64_t *ret_value, esdm_error *err);
/** Bytes in [min, max]: a whole number, or a text for esdm__size_parse(). */
esdm_status esdm__json_size(const esdm__json_node *node, uint64_t min, uint64_t max,
                            uint64_t *ret_bytes, esdm_error *err);

/**
 * Parses "256 MiB", "1.5GB", "4096". Units: B; KiB MiB GiB TiB PiB and K M G T P (powers of 1024);
 * kB MB GB TB PB (powers of 1000); letters of either case. False when it is not such a text or
 * does not fit; *ret_bytes is then untouched.
 */
bool esdm__size_parse(const char *text, uint64_t *ret_bytes);

/** The text among `known` (NULL-terminated) nearest to `word`; NULL when none is near. Borrowed. */
const char *esdm__nearest_word(const char *word, const char *const *known);

#endif
