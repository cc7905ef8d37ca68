/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_COMMON_JSON_READ_H
#define ESDM_TOOLS_COMMON_JSON_READ_H

/** @file The one place of the tools that parses JSON (`unit.includes` holds it): keys that stand
 *  twice are an error, and so is what is nested too deep or too long. */

#include <glib.h>
#include <jansson.h>

/** Largest text, in bytes. */
#define TOOL_JSON_MOST ((gsize) 256 << 20)

/** @param text NULL: it is no JSON. @param bytes -1: up to its NUL. @param flags of Jansson: as it
 *  has them. @param ret_problem where and what; may be NULL. @return owned; NULL: it is no JSON. */
json_t *tool_json_read(const char *text, gssize bytes, size_t flags, json_error_t *ret_problem);
/** Of a file. */
json_t *tool_json_load(const char *path, json_error_t *ret_problem);

#endif
