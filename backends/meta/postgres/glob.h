/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_POSTGRES_GLOB_H
#define ESDM_BACKEND_POSTGRES_GLOB_H

/** @file Patterns of file names as regular expressions of PostgreSQL. */

#include "base/buffer.h"

/**
 * Writes the regular expression that matches what SQLite's GLOB matches: `*`, `?`, `[a-z]`,
 * `[^a-z]`; a `]` that comes first in brackets stands for itself. An open bracket without its end
 * matches nothing.
 */
void postgres__put_glob(esdm__buffer *buffer, const char *pattern);

#endif
