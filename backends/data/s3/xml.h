/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_S3_XML_H
#define ESDM_BACKEND_S3_XML_H

/**
 * @file
 * Reads the XML in which S3 servers answer: elements with text; attributes, comments, processing
 * instructions are passed over. Document types are refused, and so are entities but the five of XML
 * and character references: nothing grows beyond its input. Pure; safe on hostile input.
 */

#include <stddef.h>

#include "esdm/status.h"

/** Deeper nesting is refused. */
#define S3__XML_DEPTH 16

/**
 * Called when an element ends.
 * @param path names from the root, joined by '/', without namespace prefixes:
 *        "ListBucketResult/Contents/Key". Borrowed.
 * @param text what stood directly in it, decoded, NUL-terminated ("" when it has children only);
 *        borrowed, may be changed in place.
 * @return anything but ESDM_OK ends the parsing and is returned; `err` is then filled.
 */
typedef esdm_status (*s3__xml_visitor)(const char *path, char *text, void *user, esdm_error *err);

/** ESDM_EIO: not well-formed, with the position. ESDM_ENOMEM. */
esdm_status s3__xml_parse(const void *data, size_t bytes, s3__xml_visitor visit, void *user,
                          esdm_error *err);

#endif
