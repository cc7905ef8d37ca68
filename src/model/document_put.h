/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MODEL_DOCUMENT_PUT_H
#define ESDM_MODEL_DOCUMENT_PUT_H

/**
 * @file
 * Writing the container document: texts and values as JSON. A lack of memory shows in out->failed.
 */

#include "base/buffer.h"
#include "esdm/types.h"

/** As it is. */
void esdm__put_text(esdm__buffer *out, const char *text);
/** Valid UTF-8 as a JSON string. */
void esdm__put_string(esdm__buffer *out, const char *text, size_t bytes);
/** {"base64": …} */
void esdm__put_base64(esdm__buffer *out, const void *data, size_t bytes);
/** Any bytes: a JSON string, or as base64 when they are not UTF-8. */
void esdm__put_bytes(esdm__buffer *out, const char *text, size_t bytes);
void esdm__put_u64(esdm__buffer *out, uint64_t value);
/** Many readers of JSON hold integers in int64; larger ones are texts. */
void esdm__put_large_u64(esdm__buffer *out, uint64_t value);
/** One element of an atomic type in memory form, aligned. The caller has set the "C" locale. */
void esdm__put_value(esdm__buffer *out, esdm_type type, const void *value);

#define ESDM__DOCUMENT_END_BYTES 33
/** The last member and the closing bracket: XXH3 of all `bytes` before them, in hexadecimal. */
void esdm__document_end(const void *text, size_t bytes, char ret_end[ESDM__DOCUMENT_END_BYTES + 1]);

#endif
