/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDMNC_STUB_H
#define ESDMNC_STUB_H

/** @file Between stub.c and stub_kinds.c. */

#include "router/router.h"
#include "router/stub_build.h"

/** What stands in front of a stub that looks like another format than the classic one. @return its
 *  bytes; 0: they do not fit. */
size_t esdmnc__stub_prefix(const char *container, int format, unsigned char *bytes, size_t size);
/** Whether bytes, which are no stub, begin a classic file that was one, or that a program that does
 *  not know of ESDM made of one. @param container ESDMNC_NAME_MAX + 1 bytes. */
bool esdmnc__stub_remains(const unsigned char *bytes, size_t size, char *container);
/** Finds the stub in bytes that may begin so. */
bool esdmnc__stub_find(const unsigned char *bytes, size_t size, size_t *ret_offset);

#endif
