/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TEXT_H
#define ESDM_TEXT_H

/** @file Texts for people: names and attributes come from strangers. */

#include <stddef.h>

#include "esdm/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Copies a text so that a terminal shows all of it and obeys none of it. Control characters (C0,
 * C1, DEL), characters that change the direction of writing or cannot be seen, and line separators
 * of Unicode become `\x1b` or `\u202e`; bytes that are no UTF-8 become `\xff`. Line feeds, tabs and
 * all other characters stay.
 *
 * @param buffer receives at most `bytes` bytes, with the NUL, and whole characters; may be NULL
 * when `bytes` is 0.
 * @return the length that the result has, or would have, without the NUL. 0 for NULL.
 * Threads: any.
 */
ESDM_API size_t esdm_text_printable(const char *text, char *buffer, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
