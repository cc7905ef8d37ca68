/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDMNC_STUB_H
#define ESDMNC_STUB_H

/** @file Between stub.c and stub_kinds.c. */

#include "router/router.h"

/** What every reader of a stub is told. */
extern const char esdmnc__stub_notice[];

/** Where a stub was made, and for what. */
typedef struct esdmnc__stub_place {
    const char *inode;
    const char *path;
    uint64_t number;  /**< 0: none */
    uint64_t version; /**< of what stands there */
    const char *site; /**< "": none */
} esdmnc__stub_place;

/** A classic file with a stub's attributes. @param version 1 (a stub), 2 or 5: of CDF. @param place
 *  NULL: of bytes that lie nowhere. @return bytes; 0: they do not fit. */
size_t esdmnc__stub_build(int version, const char *container, const esdmnc__stub_place *place,
                          unsigned char *bytes, size_t size);

/** What stands in front of a stub that looks like another format than the classic one. @return its
 *  bytes; 0: they do not fit. */
size_t esdmnc__stub_prefix(const char *container, int format, unsigned char *bytes, size_t size);
/** Whether bytes, which are no stub, begin a classic file that was one, or that a program that does
 *  not know of ESDM made of one. @param container ESDMNC_NAME_MAX + 1 bytes. */
bool esdmnc__stub_remains(const unsigned char *bytes, size_t size, char *container);
/** Finds the stub in bytes that may begin so. */
bool esdmnc__stub_find(const unsigned char *bytes, size_t size, size_t *ret_offset);

#endif
